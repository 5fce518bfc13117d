//! The core's watcher, for event loops written in Python.

use pyo3::prelude::*;
use zeroxide::Watcher as CoreWatcher;

use crate::error::raise;
use crate::socket::Socket;

#[doc = text!(Watcher)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Watcher {
    inner: CoreWatcher,
}

#[pymethods]
impl Watcher {
    #[new]
    fn new(socket: &Bound<'_, Socket>) -> PyResult<Watcher> {
        let inner = CoreWatcher::new(socket.get().core()?).map_err(raise)?;
        Ok(Watcher { inner })
    }

    /// Returns the descriptor.
    fn fileno(&self) -> i32 {
        self.inner.fd()
    }

    /// Makes the descriptor readable for every event from now on.
    fn watch(&self) {
        self.inner.watch();
    }

    /// Stops making the descriptor readable.
    fn rest(&self) {
        self.inner.rest();
    }

    /// Makes the descriptor unreadable until the next event.
    fn clear(&self) {
        self.inner.clear();
    }
}
