//! Whether there is an interpreter.

#![allow(unsafe_code)]

use pyo3::ffi;

/// Whether the interpreter is not shutting down yet. Any thread may call this, with or without the GIL.
pub(crate) fn is_interpreter_up() -> bool {
    // SAFETY: it only reads a flag.
    unsafe { ffi::Py_IsInitialized() != 0 }
}
