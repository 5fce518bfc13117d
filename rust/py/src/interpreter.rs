//! Whether there is an interpreter.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::{PyResult, ffi};

/// The number of the interpreter that has loaded this module; -1 before.
static OWNER: AtomicI64 = AtomicI64::new(-1);

/// Takes the module for the current interpreter. Objects of one interpreter, such as the classes of errors, must not get into
/// another one, and the module keeps some for the whole process.
///
/// # Errors
/// `ImportError` in any other interpreter of the process.
pub(crate) fn claim() -> PyResult<()> {
    // SAFETY: the module is being loaded, so this thread is attached to an interpreter.
    let current = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match OWNER.compare_exchange(-1, current, Ordering::Relaxed, Ordering::Relaxed) {
        Err(owner) if owner != current => Err(PyImportError::new_err(
            "zeroxide was imported in another interpreter of this process, and can be used in one interpreter only: use threads or processes",
        )),
        _ => Ok(()),
    }
}

/// Whether the interpreter is not shutting down yet. Any thread may call this, with or without the GIL.
pub(crate) fn is_interpreter_up() -> bool {
    // SAFETY: it only reads a flag.
    unsafe { ffi::Py_IsInitialized() != 0 }
}
