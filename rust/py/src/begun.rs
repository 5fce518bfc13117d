//! Multipart messages of which all but the last part were gathered.

use pyo3::prelude::*;
use zeroxide::binding::SocketInternals;
use zeroxide::{Error, ErrorKind, Message, Socket as CoreSocket};

use crate::error::raise;

/// The gathered parts of a message. If it is not sent, they are lost, which is counted.
pub(crate) struct Begun {
    core: CoreSocket,
    sent: bool,
}

impl Begun {
    /// For a message returned by a failed send of its last part; `None` if it has no other parts.
    pub(crate) fn of(core: &CoreSocket, message: &Message) -> Option<Begun> {
        (message.len() > 1).then(|| Begun {
            core: core.clone(),
            sent: false,
        })
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.sent {
            self.core.count_unfinished();
        }
    }
}

/// Records that the message was sent after all.
pub(crate) fn finish(begun: Option<Begun>) {
    if let Some(mut begun) = begun {
        begun.sent = true;
    }
}

/// The consequence for a message of which parts were sent before.
const LOST: &str =
    "the parts sent before with SNDMORE are discarded; begin again with the first part";

/// The error of a message that is given up, which says whether parts are lost with it.
pub(crate) fn failed(begun: Option<&Begun>, error: Error) -> Error {
    match (begun, error.context()) {
        (None, _) => error,
        (Some(_), None) => Error::with(error.kind(), LOST),
        (Some(_), Some(context)) => Error::with(error.kind(), format!("{context}; {LOST}")),
    }
}

/// Gives up the message. Returns the exception for a lack of room: `error`, unless parts are lost.
pub(crate) fn give_up(begun: Option<Begun>, error: impl FnOnce() -> PyErr) -> PyErr {
    match begun {
        Some(_) => raise(Error::with(ErrorKind::Again, LOST)),
        None => error(),
    }
}
