//! What the extension needs from the Python side: its exception classes and a few objects, handed over once.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyTuple};
use zeroxide::{Direction, Error, ErrorKind};

use crate::functions::after_fork;
use crate::parting;
use crate::reclaimer::stop_reclaiming;

/// See the module text.
pub(crate) struct Installed {
    pub(crate) package: Py<PyModule>,
    pub(crate) zmq_error: Py<PyAny>,
    pub(crate) errors: Py<PyDict>,
    again: Option<Again>,
    new: Py<PyAny>,
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
    fn of(py: Python<'_>, errors: &Py<PyDict>) -> PyResult<Option<Again>> {
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

    /// `Again` for a call in this direction that must not wait.
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

/// What was handed over, if anything was yet.
pub(crate) fn installed() -> Option<Arc<Installed>> {
    INSTALLED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Hands over what the extension needs from the Python side. A later call replaces what an earlier one gave.
#[pyfunction]
#[pyo3(signature = (*, package, zmq_error, errors, not_flushed, tracker, finished_tracker))]
pub(crate) fn install(
    py: Python<'_>,
    package: Py<PyModule>,
    zmq_error: Py<PyAny>,
    errors: Py<PyDict>,
    not_flushed: Py<PyAny>,
    tracker: Py<PyAny>,
    finished_tracker: Py<PyAny>,
) -> PyResult<()> {
    let fresh = Installed {
        package,
        again: Again::of(py, &errors)?,
        new: zmq_error.getattr(py, "__new__")?,
        zmq_error,
        errors,
        not_flushed,
        tracker,
        finished_tracker,
    };
    // The old one is dropped after the lock is released: dropping Python objects may run Python code.
    let old = INSTALLED
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .replace(Arc::new(fresh));
    if old.is_none() {
        let arguments = PyDict::new(py);
        arguments.set_item("after_in_child", wrap_pyfunction!(after_fork, py)?)?;
        py.import("os")?
            .call_method("register_at_fork", (), Some(&arguments))?;
        parting::install();
        let stop = wrap_pyfunction!(stop_reclaiming, py)?;
        py.import("atexit")?.call_method1("register", (stop,))?;
    }
    Ok(())
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
