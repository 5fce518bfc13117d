//! Options by number.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString};
use zeroxide::binding::SocketInternals as _;
use zeroxide::{Error, ErrorKind, OptionKind, OptionRow, Value};

use super::Socket;
use crate::buffer;
use crate::error::raise;

/// The number of an option.
#[inline]
pub(super) fn number_of(option: &Bound<'_, PyAny>) -> PyResult<i32> {
    option
        .extract()
        .map_err(|error| not_a_number(option, error))
}

#[cold]
fn not_a_number(option: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let text = |option: String| format!("an option is a number such as zmq.LINGER, not {option}");
    match buffer::shown(option) {
        Ok(shown) if error.is_instance_of::<PyTypeError>(option.py()) => {
            PyTypeError::new_err(text(shown))
        }
        Ok(shown) if error.is_instance_of::<PyOverflowError>(option.py()) => {
            raise(Error::with(ErrorKind::Invalid, text(shown)))
        }
        _ => error,
    }
}

/// The error for a value whose type the option does not take.
#[cold]
fn another_type(row: Option<&OptionRow>, value: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let shown = buffer::shown(value)?;
    let Some(row) = row else {
        return Ok(PyTypeError::new_err(format!(
            "the value of an option is an int or bytes, not {shown}"
        )));
    };
    let name = row.name;
    if matches!(row.kind, OptionKind::Bytes | OptionKind::Str) {
        let cure = match value.is_instance_of::<PyString>() {
            true => format!("; set_string(zmq.{name}, ...) encodes text"),
            false => String::new(),
        };
        return Ok(PyTypeError::new_err(format!(
            "{name} takes bytes, not {shown}{cure}"
        )));
    }
    let unit = row.unit();
    let what = match (row.kind, unit) {
        (OptionKind::Bool, _) => "0 or 1".to_owned(),
        (_, Some(unit)) => format!("whole {unit}"),
        (_, None) => "a whole number".to_owned(),
    };
    Ok(PyTypeError::new_err(format!(
        "{name} takes {what}, not {shown}{}",
        meant(unit, value)
    )))
}

/// The whole number that the float was probably meant to be.
fn meant(unit: Option<&str>, value: &Bound<'_, PyAny>) -> String {
    let Ok(number) = value.cast::<PyFloat>().map(|value| value.value()) else {
        return String::new();
    };
    let whole = match unit {
        // A fraction was probably meant in seconds.
        Some("milliseconds") if number.fract() != 0.0 => number * 1e3,
        _ => number,
    };
    if whole.fract() != 0.0 || whole.abs() > 1e9 {
        return String::new();
    }
    format!("; did you mean {whole}?")
}

#[cold]
fn is_unsigned(option: i32) -> bool {
    OptionRow::find(option).is_ok_and(|row| row.kind == OptionKind::Uint64)
}

impl Socket {
    pub(super) fn set_value(&self, option: i32, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let core = self.core()?;
        let row = core.option_row(option).ok();
        let row = row.as_deref();
        let takes_bytes =
            row.is_some_and(|row| matches!(row.kind, OptionKind::Bytes | OptionKind::Str));
        let value = if takes_bytes {
            match value.cast::<PyBytes>() {
                Ok(bytes) => Value::Bytes(bytes.as_bytes().to_vec()),
                Err(_) => return Err(another_type(row, value)?),
            }
        } else {
            // An option that does not exist gets the error about that, whatever the value.
            let is_signed = row.is_some_and(|row| row.kind != OptionKind::Uint64);
            match (value.extract::<i64>(), value.extract::<u64>()) {
                (Ok(number), _) => Value::Int(number),
                // AFFINITY is unsigned and travels as its bit pattern.
                (_, Ok(number)) if !is_signed => Value::Int(number.cast_signed()),
                _ if value.is_instance_of::<PyInt>() => {
                    let name = row.map_or("an option", |row| row.name);
                    let text = format!("{name} cannot hold {}", buffer::shown(value)?);
                    return Err(raise(Error::with(ErrorKind::Invalid, text)));
                }
                _ => return Err(another_type(row, value)?),
            }
        };
        core.set_option(option, &value).map_err(raise)
    }

    pub(super) fn get_value<'py>(
        &self,
        py: Python<'py>,
        option: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.core()?.get_option(option).map_err(raise)? {
            Value::Int(number) if number < 0 && is_unsigned(option) => {
                Ok(number.cast_unsigned().into_pyobject(py)?.into_any())
            }
            Value::Int(number) => Ok(number.into_pyobject(py)?.into_any()),
            Value::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        }
    }
}
