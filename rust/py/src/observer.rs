//! The observer of this process, and what it answers.

use std::path::PathBuf;

use pyo3::prelude::*;
use zeroxide::Observer as CoreObserver;

use crate::error::raise;

#[doc = text!(Observer)]
#[pyclass(frozen, module = "zeroxide")]
pub(crate) struct Observer {
    core: CoreObserver,
}

#[pymethods]
impl Observer {
    #[new]
    #[pyo3(signature = (folder=None))]
    fn new(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Observer> {
        let core = py.detach(|| CoreObserver::open(folder.as_deref()));
        Ok(Observer {
            core: core.map_err(raise)?,
        })
    }

    #[doc = text!(Observer::endpoint)]
    #[getter]
    fn endpoint(&self) -> &str {
        self.core.endpoint()
    }

    #[doc = text!(Observer::closed)]
    #[getter]
    fn closed(&self) -> bool {
        !self.core.is_open()
    }

    #[doc = text!(Observer::close)]
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_details))]
    fn __exit__(&self, py: Python<'_>, _details: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { " closed" } else { "" };
        format!("<zeroxide.Observer at {}{closed}>", self.endpoint())
    }
}

#[doc = text!(snapshot)]
#[pyfunction]
pub(crate) fn snapshot(py: Python<'_>, peers: usize) -> String {
    py.detach(|| zeroxide::snapshot(peers))
}

#[doc = text!(observer_folder)]
#[pyfunction]
pub(crate) fn observer_folder() -> PathBuf {
    zeroxide::observer_folder()
}
