//! Descriptors that become readable once others have errors.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use zeroxide::{ErrorKind, binding};

#[doc = text!(Trouble)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Trouble {
    /// `None` once it is closed.
    inner: Mutex<Option<binding::Trouble>>,
}

#[pymethods]
impl Trouble {
    #[doc = text!(Trouble::fileno)]
    fn fileno(&self) -> PyResult<RawFd> {
        match &*self.inner.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(trouble) => Ok(trouble.as_raw_fd()),
            None => Err(PyValueError::new_err("this Trouble is closed")),
        }
    }

    #[doc = text!(Trouble::close)]
    fn close(&self) {
        drop(
            self.inner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

#[doc = text!(trouble_of)]
#[pyfunction]
pub(crate) fn trouble_of(fd: RawFd, with_urgent: bool) -> PyResult<Option<Trouble>> {
    let trouble =
        binding::Trouble::of(fd, with_urgent).map_err(|error| match error.raw_os_error() {
            Some(errno) => {
                let text = ErrorKind::from_errno(errno).message().into_owned();
                PyOSError::new_err((errno, text))
            }
            None => PyValueError::new_err(format!("{fd} is not a file descriptor")),
        })?;
    Ok(trouble.map(|trouble| Trouble {
        inner: Mutex::new(Some(trouble)),
    }))
}
