//! Converts the arguments of `send` and its variants to messages and parts.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use zeroxide::{Frame as CoreFrame, Message};

use crate::buffer;
use crate::frame::{frame_of, labels_of};
use crate::labels::label;

/// A message of a batch.
pub(crate) fn message_of(py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<Message> {
    if !is_there(message) {
        let mut made = Message::single(part_of(message)?);
        label(&mut made, labels_of(message));
        return Ok(made);
    }
    let mut frames = Vec::with_capacity(expected(message));
    let mut labels = None;
    for (index, part) in message.try_iter()?.enumerate() {
        let part = part?;
        if index == 0 {
            labels = labels_of(&part);
        }
        let frame = part_of(&part).map_err(|error| in_part(py, index, &part, error))?;
        buffer::push(&mut frames, frame)?;
    }
    if frames.is_empty() {
        return Err(PyValueError::new_err("a message has at least one part"));
    }
    let mut made = Message::from_vec(frames);
    label(&mut made, labels);
    Ok(made)
}

fn part_of(data: &Bound<'_, PyAny>) -> PyResult<CoreFrame> {
    match frame_of(data) {
        Some(frame) => frame.body(),
        None => buffer::copied(data),
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
