//! Contexts.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use zeroxide::mechanisms::MechanismSpec;
use zeroxide::patterns::PatternSpec;
use zeroxide::{
    CONTEXT_OPTIONS, Context as CoreContext, Error, ErrorKind, MessageTransport, Undelivered, Value,
};

use crate::arguments;
use crate::blocking::{self, deadline_in, millis, retry};
use crate::buffer::shown;
use crate::error::raise;
use crate::parting;
use crate::undelivered;

#[doc = text!(Context)]
#[pyclass(subclass, frozen, module = "zeroxide._native")]
pub struct Context {
    core: OnceLock<CoreContext>,
    /// What `_term_idle` gave up: an exception of a signal handler may reach the program in place of the result.
    given_up: OnceLock<Undelivered>,
}

impl Context {
    /// The core's context.
    pub(crate) fn core(&self) -> PyResult<&CoreContext> {
        parting::prepare();
        match self.core.get() {
            Some(core) => Ok(core),
            None => Err(raise(Error::new(ErrorKind::Fault))),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.core
            .get()
            .is_none_or(|core| core.has_ended() || !core.is_own_process())
    }

    /// Whether it was never opened or has been terminated.
    pub(crate) fn is_ended(&self) -> bool {
        self.core.get().is_none_or(CoreContext::has_ended)
    }

    /// Adds a transport of another crate.
    ///
    /// # Errors
    /// As [`zeroxide::Context::add_transport`].
    pub fn add_transport(&self, transport: Arc<dyn MessageTransport>) -> PyResult<()> {
        self.core()?.add_transport(transport).map_err(raise)
    }

    /// Adds a pattern of another crate.
    ///
    /// # Errors
    /// As [`zeroxide::Context::add_pattern`].
    pub fn add_pattern(&self, pattern: &'static PatternSpec) -> PyResult<()> {
        self.core()?.add_pattern(pattern).map_err(raise)
    }

    /// Adds a mechanism of another crate.
    ///
    /// # Errors
    /// As [`zeroxide::Context::add_mechanism`].
    pub fn add_mechanism(&self, mechanism: &'static MechanismSpec) -> PyResult<()> {
        self.core()?.add_mechanism(mechanism).map_err(raise)
    }

    fn usable(&self) -> Option<&CoreContext> {
        self.core
            .get()
            .filter(|core| core.is_own_process() && !core.has_ended())
    }
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Context {
        Context {
            core: OnceLock::new(),
            given_up: OnceLock::new(),
        }
    }

    /// Makes the core's context.
    fn _open(&self, #[pyo3(from_py_with = arguments::io_threads)] io_threads: i64) -> PyResult<()> {
        let core = CoreContext::new();
        core.set_option(IO_THREADS, &Value::Int(io_threads))
            .map_err(raise)?;
        // A second call changes nothing, because an object stands for one context.
        let _ = self.core.set(core);
        Ok(())
    }

    /// Makes this another handle of `other`'s context.
    fn _share(&self, other: &Context) -> PyResult<()> {
        let _ = self.core.set(other.core()?.clone());
        Ok(())
    }

    /// Changes an option of the context.
    fn set(
        &self,
        #[pyo3(from_py_with = arguments::context_option)] option: i32,
        optval: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let value = if option == THREAD_NAME_PREFIX && optval.is_instance_of::<PyString>() {
            Value::Bytes(arguments::text(optval.cast()?)?.into())
        } else if option == THREAD_NAME_PREFIX && optval.is_instance_of::<PyBytes>() {
            Value::Bytes(optval.extract::<Vec<u8>>()?)
        } else if let Ok(number) = optval.extract::<i64>() {
            Value::Int(number)
        } else {
            return Err(another_type(option, optval)?);
        };
        self.core()?.set_option(option, &value).map_err(raise)
    }

    /// The value of an option of the context.
    fn get(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::context_option)] option: i32,
    ) -> PyResult<Py<PyAny>> {
        match self.core()?.get_option(option).map_err(raise)? {
            Value::Int(number) => Ok(number.into_pyobject(py)?.into_any().unbind()),
            Value::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any().unbind()),
        }
    }

    #[doc = text!(Context::term)]
    fn term(&self, py: Python<'_>) -> PyResult<()> {
        let Some(core) = self.usable() else {
            return Ok(());
        };
        blocking::wait(py, None, |until| retry(core.term_until(until)))?;
        crate::buffer::reclaim();
        Ok(())
    }

    /// Terminates the context in time, and returns what was not delivered.
    fn _term_within<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let Some(core) = self.core.get().filter(|core| core.is_own_process()) else {
            return Ok(PyList::empty(py));
        };
        let deadline = deadline_in(millis(timeout));
        let left = blocking::wait(py, None, |until| retry(core.term_by(deadline, until)))?;
        crate::buffer::reclaim();
        undelivered::to_list(py, &left)
    }

    #[doc = text!(Context::shutdown)]
    fn shutdown(&self) {
        if let Some(core) = self.usable() {
            core.shutdown();
        }
    }

    /// Terminates the context like an exiting program: continues while bytes move, gives up after `idle_ms` without
    /// progress, and returns what was not delivered. A second call returns the same. An exception of a signal handler
    /// gives up at once.
    fn _term_idle<'py>(&self, py: Python<'py>, idle_ms: u64) -> PyResult<Bound<'py, PyList>> {
        if let Some(left) = self.given_up.get() {
            return undelivered::to_list(py, left);
        }
        let Some(core) = self.usable() else {
            return Ok(PyList::empty(py));
        };
        let patience = Duration::from_millis(idle_ms);
        let waited = blocking::wait(py, None, |_| retry(core.term_idle(patience)));
        let (left, interruption) = match waited {
            Ok(left) => (left, None),
            Err(interruption) => {
                let now = || loop {
                    match core.term_idle(Duration::ZERO) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        other => return other,
                    }
                };
                (py.detach(now).map_err(raise)?, Some(interruption))
            }
        };
        crate::buffer::reclaim();
        let left = self.given_up.get_or_init(|| left);
        match interruption {
            Some(interruption) => Err(interruption),
            None => undelivered::to_list(py, left),
        }
    }

    #[doc = text!(Context::closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed()
    }

    #[doc = text!(Context::underlying)]
    #[getter]
    fn underlying(&self) -> PyResult<usize> {
        Ok(self.core()?.id())
    }
}

/// The error for a value that no option of a context takes.
#[cold]
fn another_type(option: i32, value: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let name = CONTEXT_OPTIONS.iter().find(|row| row.id == option);
    let name = name.map_or("an option of a context", |row| row.name);
    let text = format!("{name} takes a whole number, not {}", shown(value)?);
    // A number that fits no option is out of every range.
    Ok(match value.is_instance_of::<PyInt>() {
        true => raise(Error::with(ErrorKind::Invalid, text)),
        false => PyTypeError::new_err(text),
    })
}

/// Numbers of the context options that need special treatment.
const IO_THREADS: i32 = 1;
const THREAD_NAME_PREFIX: i32 = 9;
