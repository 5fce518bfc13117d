//! The flags of `send` and `recv`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use zeroxide::ErrorKind;
use zeroxide::binding::Direction;

use crate::buffer::shown;
use crate::error::Failure;

/// Do not wait. Also called NOBLOCK.
pub(crate) const DONTWAIT: i32 = 1;
/// More parts of the message follow.
pub(crate) const SNDMORE: i32 = 2;

/// The argument `flags` of a call that sends.
pub(crate) fn of_send(flags: &Bound<'_, PyAny>) -> PyResult<i32> {
    check(flags, Direction::Send)
}

/// The argument `flags` of a call that receives.
pub(crate) fn of_recv(flags: &Bound<'_, PyAny>) -> PyResult<i32> {
    check(flags, Direction::Recv)
}

pub(super) fn check(flags: &Bound<'_, PyAny>, direction: Direction) -> PyResult<i32> {
    match flags.extract() {
        Ok(known) if known & !(DONTWAIT | SNDMORE) == 0 => Ok(known),
        other => Err(unknown(flags, other.ok(), direction)?),
    }
}

/// The error for unknown flags, which are often a timeout passed as the first argument.
#[cold]
fn unknown(flags: &Bound<'_, PyAny>, number: Option<i32>, direction: Direction) -> PyResult<PyErr> {
    let option = match direction {
        Direction::Send => "SNDTIMEO",
        Direction::Recv => "RCVTIMEO",
    };
    let shown = match number {
        Some(number) => number.to_string(),
        None => shown(flags)?,
    };
    let text = format!(
        "flags are NOBLOCK and SNDMORE, not {shown}; a timeout in ms is set with {option}, or passed to poll"
    );
    Ok(match number {
        Some(_) => Failure::with(ErrorKind::Invalid, text).into(),
        None => PyTypeError::new_err(text),
    })
}
