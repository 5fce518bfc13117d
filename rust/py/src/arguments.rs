//! Arguments that a call does not take: the error names the argument, what it takes, and what was given. Its text is
//! built after a failure only.

use pyo3::PyTypeCheck;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};

use crate::buffer::shown;

/// Converts an argument. `takes` begins the error's sentence: "count takes a whole number".
#[inline]
pub(crate) fn taken<'a, 'py, T>(value: &'a Bound<'py, PyAny>, takes: &str) -> PyResult<T>
where
    T: FromPyObject<'a, 'py>,
{
    value
        .extract()
        .map_err(|error: T::Error| refused(error.into(), value, takes))
}

/// The items of an argument.
pub(crate) fn items<'py>(
    value: &Bound<'py, PyAny>,
    takes: &str,
) -> PyResult<Bound<'py, PyIterator>> {
    value
        .try_iter()
        .map_err(|error| refused(error, value, takes))
}

/// Checks that an argument is a `T`. `takes` begins the error's sentence, as in [`taken`].
pub(crate) fn instance<'a, 'py, T: PyTypeCheck>(
    value: &'a Bound<'py, PyAny>,
    takes: &str,
) -> PyResult<&'a Bound<'py, T>> {
    value
        .cast()
        .map_err(|error| refused(error.into(), value, takes))
}

/// The text of a string. The error for one that UTF-8 cannot encode says what to do.
#[inline]
pub(crate) fn text<'a>(string: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    string.to_str().map_err(|error| curable(error, string.py()))
}

#[cold]
fn curable(error: PyErr, py: Python<'_>) -> PyErr {
    let hints = py.import("zeroxide._hints");
    let told = hints.and_then(|hints| hints.call_method1("tell_cure", (error.value(py),)));
    match told {
        Ok(_) => error,
        Err(failed) => failed,
    }
}

#[cold]
fn refused(error: PyErr, value: &Bound<'_, PyAny>, takes: &str) -> PyErr {
    let py = value.py();
    if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        return curable(error, py);
    }
    let Ok(shown) = shown(value) else {
        return error;
    };
    let text = format!("{takes}, not {shown}");
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(text)
    } else if error.is_instance_of::<PyOverflowError>(py)
        || error.is_instance_of::<PyValueError>(py)
    {
        PyValueError::new_err(text)
    } else {
        // The object's own code failed.
        error
    }
}

/// Functions for `from_py_with`, each for the arguments of one name.
macro_rules! arguments {
    ($($name:ident -> $type:ty: $takes:literal;)*) => {
        $(pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<$type> {
            taken(value, concat!(stringify!($name), " takes ", $takes))
        })*
    };
}

arguments! {
    count -> usize: "a whole number of peers, 0 or more";
    send -> Option<i64>: "a priority of 1 to 16, or None";
    recv -> Option<i64>: "a priority of 1 to 16, or None";
    events -> u32: "a sum of zmq.EVENT_ numbers, such as zmq.EVENT_ALL";
    max_messages -> i64: "a whole number of messages, 1 or more";
    max_rows -> i64: "a whole number of rows, 1 or more";
    max_bytes -> i64: "a whole number of bytes, 1 or more";
    nbytes -> i64: "a whole number of bytes, or 0 for the size of the buffer";
    copy_threshold -> Option<usize>: "a whole number of bytes, 0 or more";
    linger -> Option<i64>: "whole milliseconds, -1 for no limit, or None";
    io_threads -> i64: "a number of threads such as 1, or a context to make another handle of";
    errno -> i32: "the number of an error, such as zmq.EAGAIN";
    capability -> String: "a word such as 'curve' or 'ipc'";
    username -> String: "text";
    user -> String: "text";
    name -> String: "text";
    group -> String: "the name of a group, which is a str";
    multipart -> bool: "True or False";
    frames -> bool: "True or False";
    track -> bool: "True or False";
    copy -> Option<bool>: "True, False or None";
    copies -> bool: "True or False";
    disconnect -> bool: "True or False";
    in_prefix -> Option<Vec<u8>>: "bytes";
    out_prefix -> Option<Vec<u8>>: "bytes";
}

/// A timeout in ms.
#[inline]
pub(crate) fn timeout(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    const TAKES: &str = "timeout takes a number of milliseconds, or None";
    let millis: Option<f64> = taken(value, TAKES)?;
    if millis.is_some_and(f64::is_nan) {
        return Err(PyValueError::new_err(format!("{TAKES}, not nan")));
    }
    Ok(millis)
}

/// The `flags` of `poll`.
pub(crate) fn poll_flags(value: &Bound<'_, PyAny>) -> PyResult<i16> {
    taken(
        value,
        "flags takes zmq.POLLIN, zmq.POLLOUT or zmq.POLLIN | zmq.POLLOUT",
    )
}

/// The `timeout` of `zmq_poll`. More than any program lives is no limit.
pub(crate) fn whole_timeout(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    match value.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(-1),
        _ => taken(
            value,
            "timeout takes whole milliseconds, or -1 for no limit",
        ),
    }
}

/// The type of a socket.
pub(crate) fn socket_type(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    taken(value, "socket_type takes a zmq.SocketType such as zmq.PUSH")
}

/// The number of an option of contexts.
pub(crate) fn context_option(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    taken(
        value,
        "a context's option is a number such as zmq.IO_THREADS",
    )
}
