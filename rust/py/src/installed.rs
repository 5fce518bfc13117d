//! The exception classes and other objects that the Python side passes to the extension once.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyTuple};
use zeroxide::binding::Direction;
use zeroxide::{Error, ErrorKind};

/// See the module text.
pub(crate) struct Installed {
    pub(crate) package: Py<PyModule>,
    pub(crate) zmq_error: Py<PyAny>,
    pub(crate) errors: Py<PyDict>,
    pub(crate) again: Option<Again>,
    pub(crate) new: Py<PyAny>,
    pub(crate) not_flushed: Py<PyAny>,
    pub(crate) tracker: Py<PyAny>,
    pub(crate) finished_tracker: Py<PyAny>,
}

/// The arguments of `Again` for calls that must not wait. Polling loops raise one per call.
pub(crate) struct Again {
    send: Py<PyTuple>,
    recv: Py<PyTuple>,
}

impl Again {
    pub(crate) fn of(py: Python<'_>, errors: &Py<PyDict>) -> PyResult<Option<Again>> {
        let (kind, errno) = (ErrorKind::Again, ErrorKind::Again.errno());
        let Some(class) = errors.bind(py).get_item(errno)? else {
            return Ok(None);
        };
        let arguments = |text: &str| {
            let text = Error::with(kind, text).to_string();
            let arguments = (&class, errno, text).into_pyobject(py)?;
            PyResult::Ok(arguments.unbind())
        };
        Ok(Some(Again {
            send: arguments(
                "a message cannot be sent now: no peer is connected, or every queue is full",
            )?,
            recv: arguments("no message to receive now")?,
        }))
    }
}

impl Installed {
    /// Creates an exception from its class, number and text, without running Python code: the class finds the number and
    /// the text in `args`.
    pub(crate) fn make<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.new.bind(py).call1(arguments)
    }

    /// `Again` for a non-blocking call in this direction.
    pub(crate) fn not_now<'py>(
        &self,
        py: Python<'py>,
        direction: Direction,
    ) -> Option<PyResult<Bound<'py, PyAny>>> {
        let again = self.again.as_ref()?;
        let arguments = match direction {
            Direction::Send => &again.send,
            Direction::Recv => &again.recv,
        };
        Some(self.make(py, arguments.bind(py)))
    }
}

static INSTALLED: RwLock<Option<Arc<Installed>>> = RwLock::new(None);

/// The objects, if they have been passed.
pub(crate) fn installed() -> Option<Arc<Installed>> {
    INSTALLED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Replaces the objects that were passed before, and returns those.
pub(crate) fn replace(installed: Installed) -> Option<Arc<Installed>> {
    INSTALLED
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .replace(Arc::new(installed))
}

/// COPY_THRESHOLD of the package.
pub(crate) fn default_copy_threshold(py: Python<'_>) -> usize {
    installed()
        .and_then(|installed| {
            installed
                .package
                .bind(py)
                .getattr("COPY_THRESHOLD")
                .ok()?
                .extract()
                .ok()
        })
        .unwrap_or(65536)
}

/// The tracker that is done.
pub(crate) fn finished_tracker(py: Python<'_>) -> Py<PyAny> {
    match installed() {
        Some(installed) => installed.finished_tracker.clone_ref(py),
        None => py.None(),
    }
}
