//! Converts the core's errors to Python's exceptions.

use std::cell::Cell;

use pyo3::exceptions::{PyAttributeError, PyMemoryError, PyOSError, PySystemExit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zeroxide::binding::Direction;
use zeroxide::{Error, ErrorKind};

use crate::installed::installed;
use crate::main_thread;
use crate::parting;

thread_local! {
    /// The result of `zmq_errno` in this thread.
    static LAST_ERRNO: Cell<i32> = const { Cell::new(0) };
}

/// The number of the last error raised in this thread.
pub(crate) fn last_errno() -> i32 {
    LAST_ERRNO.get()
}

/// An error of the core on its way to Python.
pub(crate) struct Failure(pub(crate) Error);

impl Failure {
    /// An error of this kind with its own text.
    pub(crate) fn with(kind: ErrorKind, text: impl Into<String>) -> Failure {
        Failure(Error::with(kind, text))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error)
    }
}

impl From<Failure> for PyErr {
    fn from(Failure(error): Failure) -> PyErr {
        LAST_ERRNO.set(error.errno());
        // Its constructor is Python code.
        parting::prepare();
        Python::attach(|py| match is_of_the_end(py, &error) {
            Ok(true) => PySystemExit::new_err(()),
            Ok(false) => exception(py, &error).unwrap_or_else(|failed| failed),
            Err(failed) => failed,
        })
    }
}

/// Whether the end of the program has closed the socket below a thread. Only daemon threads are left then. Their program
/// did not close it, so they end without an error, and no handler of theirs begins anew.
fn is_of_the_end(py: Python<'_>, error: &Error) -> PyResult<bool> {
    let is_closed = matches!(error.kind(), ErrorKind::NotSocket | ErrorKind::Terminated);
    Ok(is_closed && parting::is_ending() && !main_thread::is_current(py)?)
}

/// An error of the core as an exception.
pub(crate) fn raise(error: Error) -> PyErr {
    Failure(error).into()
}

/// The exception of a call that would have to wait, but must not. Polling loops raise many, so it is cheap.
pub(crate) fn not_now(py: Python<'_>, direction: Direction) -> PyErr {
    LAST_ERRNO.set(ErrorKind::Again.errno());
    parting::prepare();
    let made = installed().and_then(|installed| installed.not_now(py, direction));
    match made {
        Some(Ok(again)) => PyErr::from_value(again),
        Some(Err(failed)) => failed,
        None => raise(Error::new(ErrorKind::Again)),
    }
}

/// An error of the core as an exception; an `Again` without a text gets that of the direction.
pub(crate) fn raise_of(py: Python<'_>, error: Error, direction: Direction) -> PyErr {
    if error.kind() == ErrorKind::Again && error.context().is_none() {
        return not_now(py, direction);
    }
    raise(error)
}

/// The error of a call that takes many messages, with the number taken before it.
pub(crate) fn told(py: Python<'_>, error: PyErr, sent: usize) -> PyErr {
    let Ok(sent) = sent.into_pyobject(py);
    say(py, &error, "sent", &sent.into_any());
    error
}

/// Sets an attribute of an exception, if its class allows that.
pub(crate) fn say(py: Python<'_>, error: &PyErr, name: &str, what: &Bound<'_, PyAny>) {
    if let Err(refused) = error.value(py).setattr(name, what)
        && !refused.is_instance_of::<PyAttributeError>(py)
    {
        refused.write_unraisable(py, Some(error.value(py)));
    }
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let errno = error.errno();
    if error.kind() == ErrorKind::NoMemory {
        return Ok(PyMemoryError::new_err(error.to_string()));
    }
    let Some(installed) = installed() else {
        return Ok(PyOSError::new_err((errno, error.to_string())));
    };
    let text = error.to_string();
    let class = match installed.errors.bind(py).get_item(errno)? {
        Some(class) => class,
        None => installed.zmq_error.bind(py).clone(),
    };
    if error.kind() == ErrorKind::Interrupted {
        // This class is also an OSError, which does not keep its arguments.
        return Ok(PyErr::from_value(class.call1((errno, text))?));
    }
    let arguments = (class, errno, text).into_pyobject(py)?;
    Ok(PyErr::from_value(installed.make(py, &arguments)?))
}

/// The exception of a flush that timed out.
pub(crate) fn not_flushed(py: Python<'_>, remaining: Vec<(String, u64)>) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let left = PyDict::new(py);
        for (endpoint, count) in remaining {
            left.set_item(endpoint, count)?;
        }
        match installed() {
            Some(installed) => Ok(PyErr::from_value(
                installed.not_flushed.bind(py).call1((left,))?,
            )),
            None => Ok(raise(Error::new(ErrorKind::Again))),
        }
    };
    build().unwrap_or_else(|failed| failed)
}
