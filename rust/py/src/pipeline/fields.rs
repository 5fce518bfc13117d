//! Reads rows, which are values, or mappings with a value and other fields.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use zeroxide_log::Row;

use super::rows::{Headers, headers, optional_octets, timestamp};
use crate::buffer::is_one_body;

/// The fields of a row, and no others.
const NAMES: [&str; 5] = ["value", "key", "topic", "headers", "timestamp"];

/// A row that is given as a mapping.
pub(super) struct Fields<'py> {
    pub(super) value: Bound<'py, PyAny>,
    key: Option<Bound<'py, PyAny>>,
    topic: Option<Bound<'py, PyAny>>,
    headers: Option<Bound<'py, PyAny>>,
    timestamp: Option<Bound<'py, PyAny>>,
}

impl<'py> Fields<'py> {
    /// The fields of an item; `None` if it is no mapping, and so a value by itself.
    #[inline]
    pub(super) fn of(item: &Bound<'py, PyAny>) -> PyResult<Option<Fields<'py>>> {
        // Exact types come first, because the check for a mapping of another class is slow.
        if let Ok(row) = item.cast_exact::<PyDict>() {
            return Fields::read(item, row.len(), |name| row.get_item(name)).map(Some);
        }
        if is_one_body(item) {
            return Ok(None);
        }
        let Ok(row) = item.cast::<PyMapping>() else {
            return Ok(None);
        };
        let field = |name: &Bound<'py, PyString>| match row.contains(name)? {
            true => row.get_item(name).map(Some),
            false => Ok(None),
        };
        Fields::read(item, row.len()?, field).map(Some)
    }

    /// Reads the fields of a mapping with `len` names. `field` returns one, if there is one with this name.
    fn read(
        row: &Bound<'py, PyAny>,
        len: usize,
        field: impl Fn(&Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>>,
    ) -> PyResult<Fields<'py>> {
        let py = row.py();
        let mut found = 0;
        let mut given = |name| {
            let given = field(name)?;
            found += usize::from(given.is_some());
            PyResult::Ok(given.filter(|given| !given.is_none()))
        };
        let value = given(intern!(py, "value"))?;
        let key = given(intern!(py, "key"))?;
        let topic = given(intern!(py, "topic"))?;
        let headers = given(intern!(py, "headers"))?;
        let timestamp = given(intern!(py, "timestamp"))?;
        if found != len {
            check_names(row)?;
        }
        Ok(Fields {
            value: value.ok_or_else(without_value)?,
            key,
            topic,
            headers,
            timestamp,
        })
    }

    /// The fields other than the value; missing ones are taken from `common`.
    pub(super) fn extras<'a>(&'a self, common: &'a Extras<'_>) -> PyResult<Extras<'a>> {
        let (key, topic) = (self.key.as_ref(), self.topic.as_ref());
        let own = Extras::new(key, topic, self.headers.as_ref(), self.timestamp.as_ref())?;
        Ok(Extras {
            key: own.key.or_else(|| common.key.as_deref().map(Cow::from)),
            topic: own.topic.or_else(|| common.topic.as_deref().map(Cow::from)),
            headers: match self.headers {
                Some(_) => own.headers,
                None => common.borrowed_headers(),
            },
            timestamp: own.timestamp.or(common.timestamp),
        })
    }
}

#[cold]
fn check_names(row: &Bound<'_, PyAny>) -> PyResult<()> {
    for name in row.try_iter()? {
        let name = name?;
        if !NAMES.iter().any(|known| name.eq(*known).unwrap_or(false)) {
            return Err(PyValueError::new_err(format!(
                "a row has value, key, topic, headers and timestamp, not {}",
                name.repr()?
            )));
        }
    }
    Ok(())
}

#[cold]
fn without_value() -> PyErr {
    PyValueError::new_err(
        "a row without a value: a dict must have \"value\", and may have key, topic, headers and timestamp",
    )
}

/// The fields of a row other than its value.
#[derive(Default)]
pub(super) struct Extras<'a> {
    pub(super) key: Option<Cow<'a, [u8]>>,
    topic: Option<Cow<'a, [u8]>>,
    pub(super) headers: Headers<'a>,
    pub(super) timestamp: Option<i64>,
}

impl<'a> Extras<'a> {
    pub(super) fn new(
        key: Option<&'a Bound<'_, PyAny>>,
        topic: Option<&'a Bound<'_, PyAny>>,
        given: Option<&Bound<'a, PyAny>>,
        time: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Extras<'a>> {
        Ok(Extras {
            key: optional_octets(key)?,
            topic: optional_octets(topic)?,
            headers: given.map_or(Ok(Vec::new()), headers)?,
            timestamp: time.map(timestamp).transpose()?,
        })
    }

    fn borrowed_headers(&self) -> Headers<'_> {
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.clone(), Cow::from(value.as_ref())))
            .collect()
    }

    pub(super) fn topic(&self) -> PyResult<Option<&str>> {
        let text = self.topic.as_ref().map(|topic| std::str::from_utf8(topic));
        text.transpose()
            .map_err(|_| PyValueError::new_err("a topic is text: its bytes are not UTF-8"))
    }

    /// Calls `push` with the row.
    pub(super) fn with<T>(&self, value: &[u8], push: impl FnOnce(Row<'_>) -> T) -> PyResult<T> {
        let headers: Vec<(&str, &[u8])> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_ref()))
            .collect();
        Ok(push(Row {
            value,
            key: self.key.as_deref(),
            topic: self.topic()?,
            timestamp: self.timestamp,
            headers: &headers,
            frames: None,
        }))
    }
}
