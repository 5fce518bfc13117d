//! Sends the items of an iterable one by one.
//!
//! An iterable may be endless, slow, or use the socket itself. So each item is sent before the next is requested, and
//! none is requested while there is no room. If room depends on the message, as with ROUTER_MANDATORY, or another
//! thread takes it, an item may remain; the error then has it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3::{PyTraverseError, intern};
use zeroxide::binding::Direction;
use zeroxide::{ErrorKind, Message, Socket as CoreSocket, Wait};

use super::Socket;
use super::bodies::message_of;
use crate::attempt::send_now;
use crate::buffer::{self, reclaim};
use crate::error::{not_now, raise, say, told};

/// How far sending has come.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stop {
    /// There are no more items.
    Ended,
    /// There is no room for the next message.
    Full,
    /// It took as long as it may.
    Paused,
}

/// An iterable whose items are being sent.
pub(crate) struct Each {
    items: Py<PyIterator>,
    /// A message that was taken and has to wait, and its item.
    left: Option<(Message, Py<PyAny>)>,
    sent: usize,
}

impl Each {
    pub(crate) fn new(messages: &Bound<'_, PyAny>) -> PyResult<Each> {
        if buffer::is_one_body(messages) {
            return Err(PyTypeError::new_err(
                "send_batch takes a list of messages; send takes one message by itself",
            ));
        }
        let not_iterable = |error| match buffer::shown(messages) {
            Ok(shown) => {
                PyTypeError::new_err(format!("send_batch takes a list of messages, not {shown}"))
            }
            Err(_) => error,
        };
        Ok(Each {
            items: messages.try_iter().map_err(not_iterable)?.unbind(),
            left: None,
            sent: 0,
        })
    }

    pub(crate) fn sent(&self) -> usize {
        self.sent
    }

    pub(crate) fn items(&self) -> &Py<PyIterator> {
        &self.items
    }

    /// Sends as long as there are items and room, or until `limit` is reached.
    pub(crate) fn send(
        &mut self,
        py: Python<'_>,
        core: &CoreSocket,
        limit: Option<Duration>,
    ) -> PyResult<Stop> {
        let start = Instant::now();
        loop {
            if self.left.is_none() {
                match core.await_room(Wait::Dont) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::Again => {
                        return Ok(if self.is_known_to_end(py) {
                            Stop::Ended
                        } else {
                            Stop::Full
                        });
                    }
                    Err(_) if self.sent > 0 => return Ok(Stop::Ended),
                    Err(error) => return Err(raise(error)),
                }
                if !self.take(py)? {
                    return Ok(Stop::Ended);
                }
            }
            if !self.send_left(py, core)? {
                return Ok(Stop::Full);
            }
            if limit.is_some_and(|limit| start.elapsed() > limit) {
                return Ok(Stop::Paused);
            }
        }
    }

    /// Takes the next item, whether or not there is room; returns false at the end.
    pub(crate) fn take(&mut self, py: Python<'_>) -> PyResult<bool> {
        let Some(item) = self.items.bind(py).clone().next() else {
            return Ok(false);
        };
        let item = item.map_err(|error| told(py, error, self.sent))?;
        match message_of(py, &item) {
            Ok(message) => {
                self.left = Some((message, item.unbind()));
                Ok(true)
            }
            Err(error) => {
                let error = told(py, error, self.sent);
                say(py, &error, "unsent", &item);
                Err(error)
            }
        }
    }

    /// Sends the remaining message; returns false if it has to wait.
    fn send_left(&mut self, py: Python<'_>, core: &CoreSocket) -> PyResult<bool> {
        let Some((message, item)) = self.left.take() else {
            return Ok(true);
        };
        match send_now(py, core, message) {
            Ok(None) => {
                self.sent += 1;
                Ok(true)
            }
            Ok(Some(message)) => {
                self.left = Some((message, item));
                Ok(false)
            }
            Err(error) => {
                say(py, &error, "unsent", item.bind(py));
                Err(told(py, error, self.sent))
            }
        }
    }

    /// Sends the remaining message with `send`, which may wait.
    pub(crate) fn send_left_by(
        &mut self,
        py: Python<'_>,
        send: impl FnOnce(Message) -> PyResult<()>,
    ) -> PyResult<()> {
        let Some((message, item)) = self.left.take() else {
            return Ok(());
        };
        match send(message) {
            Ok(()) => {
                self.sent += 1;
                Ok(())
            }
            Err(error) => {
                say(py, &error, "unsent", item.bind(py));
                Err(told(py, error, self.sent))
            }
        }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// The result of a call whose time is up: the number of messages sent, unless there are none or an item would be
    /// lost.
    pub(crate) fn so_far(&self, py: Python<'_>, error: impl FnOnce() -> PyErr) -> PyResult<usize> {
        if self.sent > 0 && self.left.is_none() {
            return Ok(self.sent);
        }
        let error = told(py, error(), self.sent);
        if let Some((_, item)) = &self.left {
            say(py, &error, "unsent", item.bind(py));
        }
        Err(error)
    }

    /// Whether the iterable reports that it is empty; a generator does not.
    fn is_known_to_end(&self, py: Python<'_>) -> bool {
        let items = self.items.bind(py);
        let hint = items.call_method0(intern!(py, "__length_hint__"));
        hint.is_ok_and(|hint| hint.extract::<usize>().is_ok_and(|left| left == 0))
    }
}

#[doc = text!(Sending)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Sending {
    socket: Py<Socket>,
    each: Mutex<Option<Each>>,
}

#[pymethods]
impl Sending {
    #[new]
    fn new(socket: Py<Socket>, messages: &Bound<'_, PyAny>) -> PyResult<Sending> {
        Ok(Sending {
            socket,
            each: Mutex::new(Some(Each::new(messages)?)),
        })
    }

    /// Sends as long as there is room, and no longer than `limit` ms. Returns whether everything was sent. Raises
    /// `Again` if nothing could be sent.
    #[pyo3(signature = (limit=None))]
    fn send(&self, py: Python<'_>, limit: Option<f64>) -> PyResult<bool> {
        reclaim();
        let core = self.socket.get().core()?;
        let mut each = self.take()?;
        let before = each.sent();
        let limit = limit.and_then(|limit| Duration::try_from_secs_f64(limit / 1e3).ok());
        let stop = each.send(py, core, limit);
        let stuck = each.sent() == before;
        self.put(each);
        match stop? {
            Stop::Ended => Ok(true),
            Stop::Full if stuck => Err(not_now(py, Direction::Send)),
            Stop::Full | Stop::Paused => Ok(false),
        }
    }

    /// The final number of messages sent; raises `Again` if there were none or an item is left over.
    fn so_far(&self, py: Python<'_>) -> PyResult<usize> {
        let each = self.take()?;
        let sent = each.so_far(py, || not_now(py, Direction::Send));
        self.put(each);
        sent
    }

    /// The number of messages sent.
    #[getter]
    fn sent(&self) -> PyResult<usize> {
        let each = self.take()?;
        let sent = each.sent();
        self.put(each);
        Ok(sent)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.each.try_lock().as_deref() {
            Ok(Some(each)) => visit.call(each.items()),
            _ => Ok(()),
        }
    }
}

impl Sending {
    /// Not under a lock, because the iterable may run any code.
    fn take(&self) -> PyResult<Each> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = || PyValueError::new_err("the iterable sends itself");
        each.take().ok_or_else(busy)
    }

    fn put(&self, each: Each) {
        *self.each.lock().unwrap_or_else(PoisonError::into_inner) = Some(each);
    }
}
