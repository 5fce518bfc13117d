//! The last part of a message whose other parts were sent before it, for callers that wait by their own means.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use zeroxide::Message;
use zeroxide::binding::Direction;

use super::Socket;
use crate::attempt::send_now;
use crate::begun::{Begun, finish};
use crate::error::not_now;

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
    /// Sends the message if that is possible now, and returns the result of `send`. `Again` if it would have to wait.
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

    /// Gives up the message, because no further attempt will follow.
    fn give_up(&self) {
        drop(self.take());
    }
}
