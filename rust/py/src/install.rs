//! Connects the extension with the package and with the interpreter: what it needs from the Python side, and what has to
//! happen after a fork and at the end.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};
use zeroxide::binding::prepare_for_forks;

use crate::alarm;
use crate::fork;
use crate::installed::{self, Again, Installed};
use crate::parting;
use crate::reclaimer::{self, stop_reclaiming};

/// Receives the objects from the Python side. A later call replaces those of an earlier one.
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
    // Dropping Python objects may run Python code, so the old ones are dropped here, after the lock is released.
    let old = installed::replace(fresh);
    if old.is_none() {
        let arguments = PyDict::new(py);
        arguments.set_item("after_in_child", wrap_pyfunction!(after_fork, py)?)?;
        py.import("os")?
            .call_method("register_at_fork", (), Some(&arguments))?;
        parting::install();
        prepare_for_forks();
        let stop = wrap_pyfunction!(stop_reclaiming, py)?;
        py.import("atexit")?.call_method1("register", (stop,))?;
    }
    Ok(())
}

/// To be called in the child after a fork.
#[pyfunction]
pub(crate) fn after_fork(py: Python<'_>) {
    fork::note_fork();
    alarm::forget(py);
    reclaimer::forget();
}
