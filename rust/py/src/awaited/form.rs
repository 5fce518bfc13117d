//! The forms of calls: to receive a part, a message or several messages, or to send.

use std::collections::VecDeque;
use std::time::Duration;
use std::vec;

use pyo3::prelude::*;
use pyo3::types::PyIterator;
use zeroxide::binding::{Attempt, Receipt, SocketInternals, deferring_wakes};
use zeroxide::{
    Error, ErrorKind, Frame as CoreFrame, Message, SendError, Socket as CoreSocket, Wait,
};

use super::back::{Back, Peer, give_back_batch};
use crate::attempt::send_now;
use crate::begun::{self, Begun};
use crate::buffer::{self, Target};
use crate::error::raise;
use crate::frame::Frame;
use crate::labels::Labels;
use crate::socket::each::{Each, Stop};
use crate::socket::recv::{Items, bytes, frames, item, unread_parts};

/// What to receive, and the type of the result.
pub(crate) enum Form {
    /// `recv`.
    Part { copy: bool, track: bool },
    /// `recv_multipart`.
    Whole { copy: bool, track: bool },
    /// `recv_into`.
    Into { buffer: Py<PyAny>, nbytes: i64 },
    /// `recv_batch`.
    Batch { max: usize, items: Items },
    /// `async for`: the result is bytes for a message of one part, and a list otherwise.
    Each,
}

impl Form {
    /// Receives, if that is possible now. Returns `None` if the call would have to wait. After an error, every message
    /// is where it was before.
    pub(crate) fn take<'py>(
        &self,
        py: Python<'py>,
        core: &CoreSocket,
        patience: Patience,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Back)>> {
        buffer::reclaim();
        if let Some((first, peer)) = core.next_part() {
            return self.take_rest(py, core, first, peer).map(Some);
        }
        if let Form::Batch { max, items } = *self {
            return take_batch(py, core, patience, max, items);
        }
        let named = !matches!(self, Form::Whole { copy: true, .. } | Form::Each);
        let Some((message, receipt)) = receive(py, core, patience, named)? else {
            return Ok(None);
        };
        let in_parts = message.len() > 1 && self.is_for_a_part();
        let value = match self.value_of(py, &message, in_parts, &receipt) {
            Ok(value) => value,
            Err(error) => {
                core.give_back_received(vec![(message, receipt)]);
                return Err(error);
            }
        };
        let back = if in_parts {
            let peer = receipt.peer();
            let first = core.begin_parts(message, peer.clone());
            Back::parts(vec![first], peer)
        } else if matches!(self, Form::Into { .. }) || message.has_labels() {
            Back::message(message, receipt)
        } else {
            Back::Copied(receipt)
        };
        Ok(Some((value, back)))
    }

    fn value_of<'py>(
        &self,
        py: Python<'py>,
        message: &Message,
        in_parts: bool,
        receipt: &Receipt,
    ) -> PyResult<Bound<'py, PyAny>> {
        match *self {
            Form::Part { copy: true, .. } => bytes(py, message.head()),
            Form::Part { track, .. } => {
                let body = message.head().clone();
                let labels = Labels::of(message);
                let frame = Frame::received(py, body, in_parts, receipt.peer(), track, labels);
                Ok(Bound::new(py, frame)?.into_any())
            }
            Form::Into { ref buffer, nbytes } => {
                let body = message.head().as_slice();
                Target::of(buffer.bind(py), nbytes)?.fill(body);
                Ok(body.len().into_pyobject(py)?.into_any())
            }
            Form::Whole { copy: false, track } => {
                Ok(frames(py, message.clone(), &receipt.peer(), track)?.into_any())
            }
            Form::Whole { .. } | Form::Each | Form::Batch { .. } => {
                item(py, message, !matches!(self, Form::Each))
            }
        }
    }

    fn is_for_a_part(&self) -> bool {
        matches!(self, Form::Part { .. } | Form::Into { .. })
    }

    /// Continues with the message that this thread is receiving in parts.
    fn take_rest<'py>(
        &self,
        py: Python<'py>,
        core: &CoreSocket,
        first: CoreFrame,
        peer: Peer,
    ) -> PyResult<(Bound<'py, PyAny>, Back)> {
        let mut parts = vec![first];
        if !self.is_for_a_part() {
            while let Some((part, _)) = core.next_part() {
                parts.push(part);
            }
        }
        let more = core.rcvmore();
        match self.value_of_rest(py, &parts, more, &peer) {
            Ok(value) => Ok((value, Back::parts(parts, peer))),
            Err(error) => {
                unread_parts(core, parts, peer);
                Err(error)
            }
        }
    }

    fn value_of_rest<'py>(
        &self,
        py: Python<'py>,
        parts: &[CoreFrame],
        more: bool,
        peer: &Peer,
    ) -> PyResult<Bound<'py, PyAny>> {
        match *self {
            Form::Part { copy: true, .. } => bytes(py, &parts[0]),
            Form::Part { track, .. } => {
                let part = parts[0].clone();
                let frame = Frame::received(py, part, more, peer.clone(), track, None);
                Ok(Bound::new(py, frame)?.into_any())
            }
            Form::Into { ref buffer, nbytes } => {
                Target::of(buffer.bind(py), nbytes)?.fill(parts[0].as_slice());
                Ok(parts[0].len().into_pyobject(py)?.into_any())
            }
            Form::Whole { copy: false, track } => {
                let message = Message::from_vec(parts.to_vec());
                Ok(frames(py, message, peer, track)?.into_any())
            }
            Form::Whole { .. } => list_of_bytes(py, parts),
            Form::Each if parts.len() == 1 => bytes(py, &parts[0]),
            Form::Each => list_of_bytes(py, parts),
            Form::Batch { items, .. } => {
                let only = items.make(py, &Message::from_vec(parts.to_vec()));
                buffer::list_of(py, [only].into_iter()).map(Bound::into_any)
            }
        }
    }
}

/// For a `recv` that returns the first part of a message. The next calls in this thread return the others.
#[cold]
pub(crate) fn begin(core: &CoreSocket, message: Message) -> Back {
    let first = core.begin_parts(message, None);
    Back::parts(vec![first], None)
}

/// For a `recv` that returns a later part of a message.
#[cold]
pub(crate) fn part(part: CoreFrame, peer: Peer) -> Back {
    Back::parts(vec![part], peer)
}

fn take_batch<'py>(
    py: Python<'py>,
    core: &CoreSocket,
    patience: Patience,
    max: usize,
    items: Items,
) -> PyResult<Option<(Bound<'py, PyAny>, Back)>> {
    let (batch, receipts) = match py.detach(|| core.recv_batch_with_receipts(max, Wait::Dont)) {
        Ok(received) => received,
        Err(error) if must_wait(&error, patience) => return Ok(None),
        Err(error) => return Err(raise(error)),
    };
    let items = batch.iter().map(|message| items.make(py, message));
    match buffer::list_of(py, items) {
        Ok(list) => {
            let back = Back::batch(batch, receipts);
            Ok(Some((list.into_any(), back)))
        }
        Err(error) => {
            give_back_batch(core, batch, receipts);
            Err(error)
        }
    }
}

/// Receives one message, if there is one. If `named`, the receipt names the sender.
fn receive(
    py: Python<'_>,
    core: &CoreSocket,
    patience: Patience,
    named: bool,
) -> PyResult<Option<(Message, Receipt)>> {
    let received = match core.try_recv_with_receipt(named) {
        Attempt::Done(received) => Ok(received),
        Attempt::WouldBlock(()) => return Ok(None),
        Attempt::Failed(error) => Err(error),
        Attempt::Contended(()) => py.detach(|| core.recv_with_receipt(Wait::Dont, named)),
    };
    match received {
        Ok(received) => Ok(Some(received)),
        Err(error) if must_wait(&error, patience) => Ok(None),
        Err(error) => Err(raise(error)),
    }
}

/// What happens to a call that cannot be served at once.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Patience {
    /// The call fails with the reason.
    None,
    /// The call waits.
    Some,
}

/// Whether a call that failed to receive can succeed later. That includes a REQ socket before the request is sent,
/// because another task may send the request while this one waits.
fn must_wait(error: &Error, patience: Patience) -> bool {
    match error.kind() {
        ErrorKind::Again => true,
        ErrorKind::Fsm => patience == Patience::Some,
        _ => false,
    }
}

/// The messages or parts that a call sends.
pub(crate) enum Outgoing {
    /// `send` and `send_multipart`.
    One {
        message: Option<Message>,
        /// The result of the call.
        result: Py<PyAny>,
        /// The parts of the message that earlier calls gathered, if there are any.
        begun: Option<Begun>,
    },
    /// Parts of a message that several calls send. When the call reaches the front of the queue, it checks whether the
    /// parts are a message by themselves.
    Parts {
        parts: VecDeque<CoreFrame>,
        /// Whether more parts follow in another call.
        more: bool,
        /// The result of this call.
        result: Py<PyAny>,
    },
    /// `send_batch`.
    Many {
        next: Option<Message>,
        /// The messages after it.
        rest: vec::IntoIter<Message>,
        sent: usize,
    },
    /// `send_batch` of an iterable whose messages are not known yet.
    Each(Each),
}

/// The outcome of an attempt to send.
pub(crate) enum Progress {
    /// Everything was sent, and this is the result of the call.
    Done(Py<PyAny>),
    /// There is no room.
    Waiting,
    /// Other tasks run first.
    Paused,
}

/// How long an iterable may keep the loop from turning.
const LIMIT: Duration = Duration::from_millis(2);

impl Outgoing {
    pub(crate) fn one(message: Message, result: Py<PyAny>) -> Outgoing {
        Outgoing::One {
            message: Some(message),
            result,
            begun: None,
        }
    }

    pub(crate) fn parts(message: Message, more: bool, result: Py<PyAny>) -> Outgoing {
        Outgoing::Parts {
            parts: message.into_iter().collect(),
            more,
            result,
        }
    }

    pub(crate) fn many(first: Message, rest: vec::IntoIter<Message>) -> Outgoing {
        Outgoing::Many {
            next: Some(first),
            rest,
            sent: 0,
        }
    }

    /// Sends as much as is possible now.
    pub(crate) fn push(&mut self, py: Python<'_>, core: &CoreSocket) -> PyResult<Progress> {
        if let Outgoing::Each(each) = self {
            return Ok(match each.send(py, core, Some(LIMIT))? {
                Stop::Ended => Progress::Done(count_object(py, each.sent())?),
                Stop::Full => Progress::Waiting,
                Stop::Paused => Progress::Paused,
            });
        }
        let sent = self.push_taken(py, core)?;
        Ok(sent.map_or(Progress::Waiting, Progress::Done))
    }

    /// The same for messages that are already known. Returns the result of the call once all are sent.
    fn push_taken(&mut self, py: Python<'_>, core: &CoreSocket) -> PyResult<Option<Py<PyAny>>> {
        if let Outgoing::Parts {
            parts,
            more: false,
            result,
        } = self
            && !core.is_sending_parts()
        {
            let message = Message::from_frames(parts.drain(..));
            *self = Outgoing::one(message, result.clone_ref(py));
        }
        match self {
            Outgoing::Parts {
                parts,
                more,
                result,
            } => {
                let (pushed, wakes) = deferring_wakes(|| push_parts(core, parts, *more));
                if !wakes.is_empty() {
                    py.detach(|| drop(wakes));
                }
                match pushed? {
                    Pushed::All => Ok(Some(result.clone_ref(py))),
                    Pushed::Waiting => Ok(None),
                    Pushed::AllBut(message) => {
                        let begun = Begun::of(core, &message);
                        *self = Outgoing::One {
                            message: Some(message),
                            result: result.clone_ref(py),
                            begun,
                        };
                        Ok(None)
                    }
                }
            }
            Outgoing::One {
                message: pending,
                result,
                begun,
            } => {
                if let Some(message) = pending.take() {
                    *pending = send_now(py, core, message)?;
                }
                if pending.is_some() {
                    return Ok(None);
                }
                begun::finish(begun.take());
                Ok(Some(result.clone_ref(py)))
            }
            Outgoing::Many { next, rest, sent } => {
                if let Some(message) = next.take() {
                    *next = send_now(py, core, message)?;
                    if next.is_some() {
                        return Ok(None);
                    }
                    *sent += 1;
                }
                let ((count, failed), wakes) =
                    deferring_wakes(|| core.send_messages(&mut *rest, Wait::Dont));
                if !wakes.is_empty() {
                    py.detach(|| drop(wakes));
                }
                *sent += count;
                match failed {
                    Some(SendError { message, error }) if error.kind() == ErrorKind::Again => {
                        *next = Some(message);
                        Ok(None)
                    }
                    Some(failed) if *sent == 0 => Err(raise(failed.error)),
                    _ => Ok(Some(count_object(py, *sent)?)),
                }
            }
            Outgoing::Each(_) => Ok(None),
        }
    }

    /// The result of the call when its time has expired: an error if no message was sent.
    pub(crate) fn give_up(
        self,
        py: Python<'_>,
        core: &CoreSocket,
        error: impl FnOnce() -> PyErr,
    ) -> PyResult<Py<PyAny>> {
        let begun = match self {
            Outgoing::Each(each) => return count_object(py, each.so_far(py, error)?),
            Outgoing::Many { sent, .. } if sent > 0 => return count_object(py, sent),
            Outgoing::Many { .. } | Outgoing::Parts { more: true, .. } => None,
            Outgoing::One { begun, .. } => begun,
            Outgoing::Parts {
                parts, more: false, ..
            } => {
                let gathered = core.is_sending_parts();
                let message = core.complete(parts);
                gathered.then(|| Begun::of(core, &message)).flatten()
            }
        };
        Err(begun::give_up(begun, error))
    }

    /// The object that the garbage collector must visit.
    pub(crate) fn iterable(&self) -> Option<&Py<PyIterator>> {
        match self {
            Outgoing::Each(each) => Some(each.items()),
            _ => None,
        }
    }
}

/// The outcome of an attempt to send parts.
enum Pushed {
    All,
    /// There is no room for the message that these parts begin.
    Waiting,
    /// There is no longer room for this message, which these parts complete.
    AllBut(Message),
}

fn push_parts(core: &CoreSocket, parts: &mut VecDeque<CoreFrame>, more: bool) -> PyResult<Pushed> {
    while let Some(part) = parts.pop_front() {
        let more = more || !parts.is_empty();
        let Err(SendError { message, error }) = core.send_part(part, more, Wait::Dont) else {
            continue;
        };
        if error.kind() != ErrorKind::Again {
            drop(Begun::of(core, &message));
            return Err(raise(error));
        }
        if more && message.len() == 1 {
            parts.push_front(message.into_head());
            return Ok(Pushed::Waiting);
        }
        // Parts that other tasks send meanwhile must not become parts of this message.
        return Ok(Pushed::AllBut(message));
    }
    Ok(Pushed::All)
}

fn count_object(py: Python<'_>, count: usize) -> PyResult<Py<PyAny>> {
    Ok(count.into_pyobject(py)?.into_any().unbind())
}

fn list_of_bytes<'py>(py: Python<'py>, parts: &[CoreFrame]) -> PyResult<Bound<'py, PyAny>> {
    Ok(buffer::list_of(py, parts.iter().map(|part| bytes(py, part)))?.into_any())
}
