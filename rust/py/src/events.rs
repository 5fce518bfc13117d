//! The events of a socket, one after the other, for Python.

use std::os::fd::RawFd;
use std::time::UNIX_EPOCH;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use zeroxide::{EventStream as CoreStream, MonitorEvent};

use crate::arguments;
use crate::blocking::{self, deadline_in};
use crate::error::raise;

#[doc = text!(EventStream)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct EventStream {
    stream: CoreStream,
}

impl EventStream {
    pub(crate) fn new(stream: CoreStream) -> EventStream {
        EventStream { stream }
    }
}

#[pymethods]
impl EventStream {
    /// The next event as (kind, value, endpoint, address, routing id, mechanism, user id, reason, time, missed); None
    /// at the end. Raises Again after `timeout` milliseconds (None = no limit).
    #[pyo3(signature = (timeout=None))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let deadline = deadline_in(timeout.map_or(-1, |millis| millis as i64));
        let event = blocking::wait_saying(py, deadline, |wait| self.stream.next(wait))?;
        event.map(|event| to_tuple(py, &event)).transpose()
    }

    /// Readable while `recv` need not wait.
    fn fileno(&self) -> PyResult<RawFd> {
        self.stream.fd().map_err(raise)
    }

    /// Ends the stream. A thread that waits in `recv` gets None.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.stream.close());
    }
}

fn to_tuple<'py>(py: Python<'py>, event: &MonitorEvent) -> PyResult<Bound<'py, PyTuple>> {
    let peer = event.party.peer.as_deref();
    let since = event.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    (
        event.kind as u16,
        event.value,
        &event.endpoint,
        &event.party.address,
        PyBytes::new(py, peer.map_or(&[], |peer| &peer.routing_id)),
        peer.map_or("", |peer| peer.mechanism),
        peer.and_then(|peer| peer.user()).unwrap_or_default(),
        event.reason.as_deref().unwrap_or_default(),
        since.as_secs_f64(),
        event.missed,
    )
        .into_pyobject(py)
}
