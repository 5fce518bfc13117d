//! What messages carry beside their parts: a routing id (SERVER, PEER) and a group (RADIO, DISH).

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use zeroxide::binding::SocketInternals;
use zeroxide::{ErrorKind, Frame, GROUP_MAX, Message, Socket as CoreSocket};

use crate::arguments;
use crate::error::Failure;

/// See the module text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    pub(crate) routing_id: Option<u32>,
    pub(crate) group: Option<Frame>,
}

impl Labels {
    /// Those of a message.
    #[inline]
    pub(crate) fn of(message: &Message) -> Option<Box<Labels>> {
        message.has_labels().then(|| {
            Box::new(Labels {
                routing_id: message.routing_id(),
                group: message.group().map(Frame::copy_from),
            })
        })
    }

    /// Those that a call was given, and those of the part that it sends, `own`, for the others.
    pub(crate) fn given(
        core: &CoreSocket,
        own: Option<Box<Labels>>,
        given_id: Option<&Bound<'_, PyAny>>,
        given_group: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Box<Labels>>> {
        let mut labels = own.unwrap_or_default();
        if let Some(given) = given_id {
            if !core.numbers_peers() {
                return Err(not_here(core, "routing_id", "SERVER and PEER"));
            }
            labels.routing_id = Some(routing_id(given)?);
        }
        if let Some(given) = given_group {
            if !core.socket_type().has_groups() {
                return Err(not_here(core, "group", "RADIO"));
            }
            labels.group = Some(group(given)?);
        }
        Ok(Some(labels))
    }

    /// Gives them to a message.
    pub(crate) fn put(self, message: &mut Message) {
        if let Some(routing_id) = self.routing_id {
            message.set_routing_id(routing_id);
        }
        if let Some(group) = self.group {
            message.set_group(group);
        }
    }
}

/// Gives labels to a message, if there are any.
#[inline]
pub(crate) fn label(message: &mut Message, labels: Option<Box<Labels>>) {
    if let Some(labels) = labels {
        labels.put(message);
    }
}

/// A routing id that Python code gives.
pub(crate) fn routing_id(given: &Bound<'_, PyAny>) -> PyResult<u32> {
    const TAKES: &str = "routing_id takes the number of a peer, from 1 to 4294967295";
    let number: i64 = arguments::taken(given, TAKES)?;
    match u32::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(invalid(format!("{TAKES}, not {number}"))),
    }
}

/// A group that Python code gives.
pub(crate) fn group(given: &Bound<'_, PyAny>) -> PyResult<Frame> {
    let group = if let Ok(text) = given.cast::<PyString>() {
        Frame::copy_from(arguments::text(text)?.as_bytes())
    } else if let Ok(bytes) = given.cast::<PyBytes>() {
        Frame::copy_from(bytes.as_bytes())
    } else {
        return arguments::taken::<String>(given, "group takes text or bytes")
            .map(|_| Frame::new());
    };
    if group.len() > GROUP_MAX || group.contains(&0) {
        return Err(invalid(format!(
            "the name of a group has at most {GROUP_MAX} bytes, none of which is zero"
        )));
    }
    Ok(group)
}

#[cold]
fn not_here(core: &CoreSocket, what: &str, of: &str) -> PyErr {
    let name = core.socket_type().name();
    invalid(format!("{what} is for {of} sockets; this one is a {name}"))
}

#[cold]
fn invalid(text: String) -> PyErr {
    Failure::with(ErrorKind::Invalid, text).into()
}
