//! Setting the results of the futures of calls that waited.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use zeroxide::Socket as CoreSocket;

use super::back::Back;
use super::ready;

#[doc = text!(Undo)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Undo {
    core: CoreSocket,
    /// How to give the message back, and the original value of the call.
    back: Mutex<Option<(Back, Py<PyAny>)>>,
}

impl Undo {
    pub(super) fn new(core: &CoreSocket, back: Back, original: Bound<'_, PyAny>) -> Undo {
        Undo {
            core: core.clone(),
            back: Mutex::new(Some((back, original.unbind()))),
        }
    }

    fn take(&self) -> Option<(Back, Py<PyAny>)> {
        let mut back = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        back.take()
    }
}

impl Drop for Undo {
    /// Gives the message back, because no code has asked for the result, and none can any more.
    fn drop(&mut self) {
        if self.back.get_mut().is_ok_and(|back| back.is_some()) {
            Python::attach(|py| self.give_back(py));
        }
    }
}

#[pymethods]
impl Undo {
    /// Puts the message back in front of those that are still to be received. Later calls have no effect.
    pub(super) fn give_back(&self, py: Python<'_>) {
        if let Some((back, original)) = self.take() {
            back.give_back(&self.core, original.bind(py));
        }
    }

    /// Called when the message has reached the program.
    pub(super) fn keep(&self) {
        drop(self.take());
    }
}

/// Raises an error that a call found but that does not concern this call. The loop that calls this object handles the
/// error like that of any other callback.
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Raiser {
    error: Mutex<Option<PyErr>>,
}

impl Raiser {
    pub(super) fn new(error: PyErr) -> Raiser {
        Raiser {
            error: Mutex::new(Some(error)),
        }
    }

    pub(super) fn take(&self) -> Option<PyErr> {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        error.take()
    }
}

#[pymethods]
impl Raiser {
    fn __call__(&self) -> PyResult<()> {
        match self.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// The outcome of settling several futures, each of which may fail by itself.
#[derive(Default)]
pub(super) struct Outcome {
    kept: Option<PyErr>,
}

impl Outcome {
    /// Keeps an error for the code that runs the loop. It can raise only one, so the others are printed. The first one is
    /// kept, but one that is to end the program, such as KeyboardInterrupt, comes before others.
    pub(super) fn note(&mut self, py: Python<'_>, settled: PyResult<()>) {
        let Err(error) = settled else {
            return;
        };
        let is_ordinary = |error: &PyErr| error.is_instance_of::<PyException>(py);
        let other = match &self.kept {
            Some(kept) if !is_ordinary(kept) || is_ordinary(&error) => Some(error),
            _ => self.kept.replace(error),
        };
        if let Some(other) = other {
            other.write_unraisable(py, None);
        }
    }

    pub(super) fn result(self) -> PyResult<()> {
        self.kept.map_or(Ok(()), Err)
    }
}

/// Every answer of `done` except a clear no counts as done, because no result can be set on such a future.
pub(super) fn is_done(py: Python<'_>, future: &Py<PyAny>) -> bool {
    match future.call_method0(py, intern!(py, "done")) {
        Ok(done) => done.is_truthy(py).unwrap_or(true),
        Err(_) => true,
    }
}

/// Whether no code can see the result any more: only the lane refers to the future, and no callback waits for it.
/// Futures of a program's own class do not show this.
pub(super) fn is_abandoned(py: Python<'_>, future: &Py<PyAny>) -> bool {
    if !ready::is_held_once(future.bind(py)) {
        return false;
    }
    let listeners = future.getattr(py, intern!(py, "_listeners"));
    listeners
        .and_then(|listeners| listeners.extract::<i64>(py))
        .is_ok_and(|listeners| listeners <= 0)
}

pub(super) fn succeed(py: Python<'_>, future: &Py<PyAny>, value: Bound<'_, PyAny>) -> PyResult<()> {
    future.call_method1(py, intern!(py, "set_result"), (value,))?;
    Ok(())
}

/// Sets the error of a future. An error that is not an `Exception`, such as KeyboardInterrupt, is returned instead, for
/// the code that runs the loop, and the future is cancelled.
pub(super) fn fail(py: Python<'_>, future: &Py<PyAny>, error: PyErr) -> PyResult<()> {
    if !error.is_instance_of::<PyException>(py) {
        cancel(py, future);
        return Err(error);
    }
    let given = future.call_method1(py, intern!(py, "set_exception"), (error.into_value(py),));
    match given {
        // Futures refuse a StopIteration.
        Err(refusal) => {
            future.call_method1(py, intern!(py, "set_exception"), (refusal.into_value(py),))?;
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

pub(super) fn cancel(py: Python<'_>, future: &Py<PyAny>) {
    // The loop of the future may be closed, and may refuse to run the callbacks.
    let _ = future.call_method0(py, intern!(py, "cancel"));
}
