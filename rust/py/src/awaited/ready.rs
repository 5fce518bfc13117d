//! Results that were there at once.

use pyo3::exceptions::{PyBaseException, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// A future that is done already.
///
/// It takes the place of an `asyncio.Future` where a call had nothing to wait for: making one of those costs several
/// times what receiving a message does. Everything that a program can do with a future that is done, it can do with this.
/// It belongs to no loop: it runs callbacks in the one that is running when they are added.
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Ready {
    value: Py<PyAny>,
}

impl Ready {
    #[inline]
    pub(crate) fn wrap<'py>(py: Python<'py>, value: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, Ready { value })?.into_any())
    }

    pub(crate) fn value(&self, py: Python<'_>) -> Py<PyAny> {
        self.value.clone_ref(py)
    }
}

#[pymethods]
impl Ready {
    #[new]
    fn new(value: Py<PyAny>) -> Ready {
        Ready { value }
    }

    // `isinstance(call, asyncio.Future)` is true of every call.
    #[getter(__class__)]
    fn class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        let future = asyncio(py)?.getattr("Future")?;
        Ok(future.cast_into::<PyType>()?)
    }

    #[inline]
    fn __await__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Ends at once, with the value.
    #[inline]
    fn __next__(&self, py: Python<'_>) -> PyResult<()> {
        let value = self.value.bind(py);
        // The interpreter would take these apart.
        if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyBaseException>() {
            return Err(PyStopIteration::new_err((self.value.clone_ref(py),)));
        }
        Err(PyStopIteration::new_err(self.value.clone_ref(py)))
    }

    /// The value.
    fn result(&self, py: Python<'_>) -> Py<PyAny> {
        self.value.clone_ref(py)
    }

    /// None: it went well.
    fn exception(&self) -> Option<Py<PyAny>> {
        None
    }

    /// True.
    fn done(&self) -> bool {
        true
    }

    /// False.
    fn cancelled(&self) -> bool {
        false
    }

    /// Comes too late.
    #[pyo3(signature = (msg=None))]
    fn cancel(&self, msg: Option<&Bound<'_, PyAny>>) -> bool {
        let _ = msg;
        false
    }

    /// Has the loop call it soon.
    #[pyo3(signature = (callback, /, *, context=None))]
    fn add_done_callback(
        slf: &Bound<'_, Self>,
        callback: &Bound<'_, PyAny>,
        context: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let arguments = PyDict::new(py);
        arguments.set_item("context", context)?;
        current_loop(py)?.call_method("call_soon", (callback, slf), Some(&arguments))?;
        Ok(())
    }

    /// Takes nothing back: callbacks are with the loop already.
    fn remove_done_callback(&self, callback: &Bound<'_, PyAny>) -> usize {
        let _ = callback;
        0
    }

    /// The loop that is running.
    fn get_loop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        current_loop(py)
    }

    /// Refused: it has one.
    fn set_result(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = result;
        Err(already_done(py))
    }

    /// Refused: it has a result.
    fn set_exception(&self, py: Python<'_>, exception: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = exception;
        Err(already_done(py))
    }

    // What asyncio's own functions know futures by.
    #[getter]
    fn _asyncio_future_blocking(&self) -> bool {
        false
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, value: bool) {
        let _ = value;
    }

    #[getter]
    fn _loop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        current_loop(py)
    }

    #[getter]
    fn _state(&self) -> &'static str {
        "FINISHED"
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<Future finished result={}>",
            self.value.bind(py).repr()?
        ))
    }
}

/// The module.
pub(crate) fn asyncio<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("asyncio")?.into_any().unbind())
    })?;
    Ok(module.bind(py).clone())
}

/// The loop that runs in this thread, or None.
pub(crate) fn running_loop<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = FUNCTION.get_or_try_init(py, || {
        asyncio(py)?.getattr("_get_running_loop").map(Bound::unbind)
    })?;
    function.bind(py).call0()
}

fn current_loop<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    let running = running_loop(py)?;
    if running.is_none() {
        return asyncio(py)?.call_method0("get_event_loop");
    }
    Ok(running)
}

fn already_done(py: Python<'_>) -> PyErr {
    let made = || {
        let class = asyncio(py)?.getattr("InvalidStateError")?;
        class.call1(("invalid state",))
    };
    match made() {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
