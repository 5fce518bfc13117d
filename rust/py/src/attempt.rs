//! One attempt to send.

use pyo3::prelude::*;
use zeroxide::binding::{Attempt, SocketInternals, deferring_wakes};
use zeroxide::{ErrorKind, Message, Socket as CoreSocket, Wait};

use crate::error::raise;

/// Sends without waiting; a message that would have to wait comes back.
pub(crate) fn send_now(
    py: Python<'_>,
    core: &CoreSocket,
    message: Message,
) -> PyResult<Option<Message>> {
    // A thread of this program that the message wakes will want the GIL.
    let (attempt, wakes) = deferring_wakes(|| core.try_send(message));
    if !wakes.is_empty() {
        py.detach(|| drop(wakes));
    }
    let failed = match attempt {
        Attempt::Done(()) => return Ok(None),
        Attempt::WouldBlock(message) => return Ok(Some(message)),
        Attempt::Failed(error) => return Err(raise(error)),
        Attempt::Contended(message) => py.detach(|| core.send_message(message, Wait::Dont)),
    };
    match failed {
        Ok(()) => Ok(None),
        Err(failed) if failed.error.kind() == ErrorKind::Again => Ok(Some(failed.message)),
        Err(failed) => Err(raise(failed.error)),
    }
}
