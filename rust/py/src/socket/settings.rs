//! Options by number.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};
use zeroxide::{Kind, SOCKET_OPTIONS, Value};

use super::Socket;
use crate::error::raise;

impl Socket {
    pub(super) fn set_value(&self, option: i32, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let core = self.core()?;
        if value.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "unicode not allowed, use setsockopt_string",
            ));
        }
        let row = SOCKET_OPTIONS.iter().find(|row| row.id == option);
        let takes_bytes = row.is_some_and(|row| matches!(row.kind, Kind::Bytes | Kind::Str));
        let value = if takes_bytes {
            match value.cast::<PyBytes>() {
                Ok(bytes) => Value::Bytes(bytes.as_bytes().to_vec()),
                Err(_) => {
                    return Err(PyTypeError::new_err(format!(
                        "expected bytes, got: {}",
                        value.repr()?
                    )));
                }
            }
        } else {
            match (value.extract::<i64>(), value.extract::<u64>()) {
                (Ok(number), _) => Value::Int(number),
                // AFFINITY is unsigned and travels as its bit pattern.
                (_, Ok(number)) => Value::Int(number.cast_signed()),
                _ if value.is_instance_of::<PyInt>() => {
                    let text = format!("{value} is more than an option can hold");
                    return Err(PyOverflowError::new_err(text));
                }
                _ => {
                    return Err(PyTypeError::new_err(format!(
                        "expected int, got: {}",
                        value.repr()?
                    )));
                }
            }
        };
        core.set_option(option, &value).map_err(raise)
    }

    pub(super) fn get_value<'py>(
        &self,
        py: Python<'py>,
        option: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let unsigned = SOCKET_OPTIONS
            .iter()
            .any(|row| row.id == option && row.kind == Kind::Uint64);
        match self.core()?.get_option(option).map_err(raise)? {
            Value::Int(number) if unsigned => {
                Ok(number.cast_unsigned().into_pyobject(py)?.into_any())
            }
            Value::Int(number) => Ok(number.into_pyobject(py)?.into_any()),
            Value::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        }
    }
}
