//! The core's watcher, for loops that are written in Python.

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

    /// The descriptor.
    fn fileno(&self) -> i32 {
        self.inner.fd()
    }

    /// From now on everything that happens makes the descriptor readable.
    fn watch(&self) {
        self.inner.watch();
    }

    /// From now on nothing does.
    fn rest(&self) {
        self.inner.rest();
    }

    /// Makes the descriptor unreadable until something happens again.
    fn clear(&self) {
        self.inner.clear();
    }
}
