//! Messages that are sent in parts, once it is up to their last part.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use zeroxide::{Direction, Error, ErrorKind, Message, Socket as CoreSocket};

use crate::awaited::form::send_now;
use crate::error::{not_now, raise};
use crate::socket::Socket;

/// Parts were gathered for a message. Unless it is sent, they are lost, and that is counted.
pub(crate) struct Begun {
    core: CoreSocket,
    sent: bool,
}

impl Begun {
    /// For a message that came back from a send of its last part; `None` if it has no other parts.
    pub(crate) fn of(core: &CoreSocket, message: &Message) -> Option<Begun> {
        (message.len() > 1).then(|| Begun {
            core: core.clone(),
            sent: false,
        })
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.sent {
            self.core.count_unfinished();
        }
    }
}

/// The message was sent after all.
pub(crate) fn finish(begun: Option<Begun>) {
    if let Some(mut begun) = begun {
        begun.sent = true;
    }
}

/// The message is given up. Returns what to raise where there was no room for it: `error`, unless parts are lost.
pub(crate) fn give_up(begun: Option<Begun>, error: impl FnOnce() -> PyErr) -> PyErr {
    match begun {
        Some(_) => raise(Error::with(
            ErrorKind::Again,
            "the parts sent before with SNDMORE are discarded; begin again with the first part",
        )),
        None => error(),
    }
}

#[doc = text!(LastPart)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct LastPart {
    socket: Py<Socket>,
    pending: Mutex<Option<(Message, Option<Begun>)>>,
    result: Option<Py<PyAny>>,
}

impl LastPart {
    pub(crate) fn new(
        socket: &Bound<'_, Socket>,
        message: Message,
        result: Option<Py<PyAny>>,
    ) -> PyResult<LastPart> {
        let begun = Begun::of(socket.get().core()?, &message);
        Ok(LastPart {
            socket: socket.clone().unbind(),
            pending: Mutex::new(Some((message, begun))),
            result,
        })
    }

    fn take(&self) -> Option<(Message, Option<Begun>)> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.take()
    }
}

#[pymethods]
impl LastPart {
    /// Sends the message if that is possible now, and returns what `send` does. `Again` if it would have to wait.
    fn attempt(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let core = self.socket.get().core()?;
        let Some((message, begun)) = self.take() else {
            return Err(not_now(py, Direction::Send));
        };
        match send_now(py, core, message)? {
            None => {
                finish(begun);
                Ok(self.result.as_ref().map(|result| result.clone_ref(py)))
            }
            Some(message) => {
                let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
                *pending = Some((message, begun));
                Err(not_now(py, Direction::Send))
            }
        }
    }

    /// Nobody will attempt it any more.
    fn give_up(&self) {
        drop(self.take());
    }
}
