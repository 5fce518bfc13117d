//! Converts the arguments of `send` and its variants to messages and parts.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use zeroxide::{Frame as CoreFrame, Message};

use crate::buffer;
use crate::frame::Frame;

/// A message of a batch.
pub(crate) fn message_of(py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<Message> {
    if !is_there(message) {
        return Ok(Message::single(part_of(message)?));
    }
    let mut frames = Vec::with_capacity(expected(message));
    for (index, part) in message.try_iter()?.enumerate() {
        let part = part?;
        let frame = part_of(&part).map_err(|error| in_part(py, index, &part, error))?;
        buffer::push(&mut frames, frame)?;
    }
    if frames.is_empty() {
        return Err(PyValueError::new_err("a message has at least one part"));
    }
    Ok(Message::from_vec(frames))
}

fn part_of(data: &Bound<'_, PyAny>) -> PyResult<CoreFrame> {
    match data.cast::<Frame>() {
        Ok(frame) => frame.get().body(),
        Err(_) => buffer::copied(data),
    }
}

/// Whether all of it exists already, and inspecting it consumes nothing.
pub(crate) fn is_there(messages: &Bound<'_, PyAny>) -> bool {
    messages.is_instance_of::<PyList>() || messages.is_instance_of::<PyTuple>()
}

/// The initial capacity for items; `__len__` may return anything.
pub(super) fn expected(items: &Bound<'_, PyAny>) -> usize {
    items.len().unwrap_or(0).min(4096)
}

/// Names the invalid part.
pub(super) fn in_part(
    py: Python<'_>,
    index: usize,
    part: &Bound<'_, PyAny>,
    error: PyErr,
) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let shown: String = match part.repr() {
        Ok(repr) => repr.to_string().chars().take(32).collect(),
        Err(error) => return error,
    };
    let kind = match part.get_type().qualname() {
        Ok(kind) => kind,
        Err(error) => return error,
    };
    PyTypeError::new_err(format!(
        "Frame {index} ({shown}...) does not support the buffer interface: a part is bytes, not {kind}"
    ))
}
