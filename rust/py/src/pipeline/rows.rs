//! Converts rows from Python.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyString};

use crate::arguments;
use crate::buffer::with_contiguous;

const HEADERS: &str = "headers are a dict, or a list of pairs of name and value";

/// Names and values.
pub(super) type Headers<'a> = Vec<(String, Cow<'a, [u8]>)>;

/// Text or bytes; other buffers are copied.
#[inline]
pub(super) fn octets<'a>(data: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(text) = data.cast::<PyString>() {
        return Ok(Cow::Borrowed(arguments::text(text)?.as_bytes()));
    }
    let copied = with_contiguous(data, |bytes| Cow::Owned(bytes.to_vec()));
    copied.map_err(
        |error| match error.is_instance_of::<PyTypeError>(data.py()) {
            true => no_octets(data),
            false => error,
        },
    )
}

#[cold]
fn no_octets(data: &Bound<'_, PyAny>) -> PyErr {
    let kind = data.get_type();
    PyTypeError::new_err(match kind.qualname() {
        Ok(kind) => {
            format!("rows hold bytes or str, not {kind}: json.dumps makes a str of an object")
        }
        Err(_) => "rows hold bytes or str".to_owned(),
    })
}

/// The same, or None.
#[inline]
pub(super) fn optional_octets<'a>(
    data: Option<&'a Bound<'_, PyAny>>,
) -> PyResult<Option<Cow<'a, [u8]>>> {
    data.map(octets).transpose()
}

/// Headers: a mapping, or pairs.
pub(super) fn headers<'a>(given: &Bound<'a, PyAny>) -> PyResult<Headers<'a>> {
    let pairs = match given.cast::<PyDict>() {
        Ok(mapping) => mapping.items().into_any(),
        Err(_) if given.hasattr(intern!(given.py(), "items"))? => {
            given.call_method0(intern!(given.py(), "items"))?
        }
        Err(_) => given.clone(),
    };
    let mut headers = Vec::new();
    for pair in arguments::items(&pairs, HEADERS)? {
        let (name, value) = pair?
            .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
            .map_err(|_| PyTypeError::new_err(HEADERS))?;
        let name = name
            .cast::<PyString>()
            .map_err(|_| PyTypeError::new_err("the name of a header is a str"))?;
        let name = arguments::text(name)?.to_owned();
        headers.push((name, Cow::Owned(octets(&value)?.into_owned())));
    }
    Ok(headers)
}

/// The first and the last microsecond that a datetime of Python can have.
const YEARS_1_TO_9999: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// A timestamp in microseconds since 1970: a datetime, seconds as a float, microseconds as an int.
pub(super) fn timestamp(given: &Bound<'_, PyAny>) -> PyResult<i64> {
    if given.is_instance_of::<PyInt>() && !given.is_instance_of::<pyo3::types::PyBool>() {
        let micros: i64 = arguments::taken(
            given,
            "a timestamp is a whole number of microseconds since 1970",
        )?;
        return if YEARS_1_TO_9999.contains(&micros) {
            Ok(micros)
        } else {
            Err(PyValueError::new_err(format!(
                "{micros} microseconds since 1970 are not a timestamp of the years 1 to 9999"
            )))
        };
    }
    let is_float = given.is_instance_of::<PyFloat>();
    let seconds: f64 = if is_float {
        given.extract()?
    } else if given.hasattr(intern!(given.py(), "timestamp"))? {
        given
            .call_method0(intern!(given.py(), "timestamp"))?
            .extract()?
    } else {
        return Err(PyTypeError::new_err(format!(
            "a timestamp is a datetime, a float of seconds or an int of microseconds since 1970, not {}",
            given.get_type().qualname()?
        )));
    };
    let micros = (seconds * 1e6).round();
    if micros.is_nan() {
        return Err(PyValueError::new_err("a timestamp is not a number"));
    }
    // Saturating, as the conversion is.
    let micros = micros as i64;
    if YEARS_1_TO_9999.contains(&micros) {
        Ok(micros)
    } else if is_float {
        Err(PyValueError::new_err(format!(
            "{seconds} seconds since 1970 are not a timestamp of the years 1 to 9999"
        )))
    } else {
        // Rounding has moved one of the last datetimes out of the range.
        Ok(micros.clamp(*YEARS_1_TO_9999.start(), *YEARS_1_TO_9999.end()))
    }
}
