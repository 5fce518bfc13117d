//! What a call wants: a part, a message, many, or to send some.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::vec;

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use zeroxide::{
    Attempt, Error, ErrorKind, Frame as CoreFrame, Message, PartsReceiver, PeerInfo, SendError,
    Socket as CoreSocket, Wait, deferring_wakes,
};

use crate::begun::{self, Begun};
use crate::buffer;
use crate::error::raise;
use crate::frame::Frame;
use crate::socket::each::{Each, Stop};
use crate::socket::recv::{bytes, item, unread, unread_parts};

type Peer = Option<Arc<PeerInfo>>;

/// What to receive, and as what.
pub(crate) enum Form {
    /// `recv`.
    Part { copy: bool, track: bool },
    /// `recv_multipart`.
    Whole { copy: bool, track: bool },
    /// `recv_into`.
    Into { buffer: Py<PyAny>, nbytes: usize },
    /// `recv_batch`.
    Batch { max: usize, multipart: bool },
    /// `async for`: a message of one part is its bytes.
    Each,
}

/// What was received for a call, in case that it cannot be delivered.
pub(crate) struct Kept {
    /// Says what was received before what.
    order: u64,
    /// Parts are for the thread that received them, whichever gives them back.
    receiver: Option<PartsReceiver>,
    parts: Vec<CoreFrame>,
    peer: Peer,
    messages: Vec<(Message, Peer)>,
}

impl Kept {
    pub(crate) fn new() -> Kept {
        static ORDER: AtomicU64 = AtomicU64::new(0);
        Kept {
            order: ORDER.fetch_add(1, Ordering::Relaxed),
            receiver: PartsReceiver::current(),
            parts: Vec::new(),
            peer: None,
            messages: Vec::new(),
        }
    }

    /// Puts it back in front of what is still to be received.
    pub(crate) fn give_back(self, core: &CoreSocket) {
        if !self.parts.is_empty()
            && let Some(receiver) = self.receiver
        {
            core.give_back_parts(&receiver, self.order, self.parts, self.peer);
        }
        if !self.messages.is_empty() {
            core.give_back(self.order, self.messages);
        }
    }
}

impl Form {
    /// Receives, if that is possible now; None = it would have to wait. What is received is remembered in `kept`.
    pub(crate) fn take<'py>(
        &self,
        py: Python<'py>,
        core: &CoreSocket,
        patience: Patience,
        kept: Option<&mut Kept>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        buffer::reclaim();
        if let Some((first, peer)) = core.next_part() {
            return self.take_rest(py, core, first, peer, kept).map(Some);
        }
        if let Form::Batch { max, multipart } = *self {
            return take_batch(py, core, patience, max, multipart, kept);
        }
        let Some((message, peer)) = receive(py, core, patience)? else {
            return Ok(None);
        };
        let single = message.len() == 1;
        let in_parts = !single && self.is_for_a_part();
        let mut kept = kept;
        if let Some(kept) = &mut kept {
            if in_parts {
                kept.parts.push(message.head().clone());
                kept.peer = peer.clone();
            } else {
                kept.messages.push((message.clone(), peer.clone()));
            }
        }
        let value = match *self {
            Form::Part { copy: true, .. } => match bytes(py, message.head()) {
                Ok(first) => {
                    if in_parts {
                        core.begin_parts(message, peer);
                    }
                    first
                }
                Err(error) => return Err(put_aside(core, message, peer, kept, error)),
            },
            Form::Part { track, .. } => {
                let frame = core.begin_parts(message, peer.clone());
                Bound::new(py, Frame::received(py, frame, in_parts, peer, track))?.into_any()
            }
            Form::Into { ref buffer, nbytes } => {
                let frame = core.begin_parts(message, peer);
                buffer::fill(buffer.bind(py), nbytes, frame.as_slice())?;
                frame.len().into_pyobject(py)?.into_any()
            }
            Form::Whole { copy: false, track } => {
                frames(py, message.into_iter(), &peer, track)?.into_any()
            }
            Form::Whole { .. } | Form::Each | Form::Batch { .. } => {
                match item(py, &message, !matches!(self, Form::Each)) {
                    Ok(item) => item,
                    Err(error) => return Err(put_aside(core, message, peer, kept, error)),
                }
            }
        };
        Ok(Some(value))
    }

    fn is_for_a_part(&self) -> bool {
        matches!(self, Form::Part { .. } | Form::Into { .. })
    }

    /// Goes on with the message that this thread is in.
    fn take_rest<'py>(
        &self,
        py: Python<'py>,
        core: &CoreSocket,
        first: CoreFrame,
        peer: Peer,
        kept: Option<&mut Kept>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut parts = vec![first];
        if !self.is_for_a_part() {
            while let Some((part, _)) = core.next_part() {
                parts.push(part);
            }
        }
        let remembered = kept.is_some();
        if let Some(kept) = kept {
            kept.parts.clone_from(&parts);
            kept.peer.clone_from(&peer);
        }
        let made = match *self {
            Form::Part { copy: true, .. } => bytes(py, &parts[0]),
            Form::Part { track, .. } => {
                let more = core.rcvmore();
                let part = parts.swap_remove(0);
                return Ok(
                    Bound::new(py, Frame::received(py, part, more, peer, track))?.into_any(),
                );
            }
            Form::Into { ref buffer, nbytes } => {
                buffer::fill(buffer.bind(py), nbytes, parts[0].as_slice())?;
                return Ok(parts[0].len().into_pyobject(py)?.into_any());
            }
            Form::Whole { copy: false, track } => {
                return Ok(frames(py, parts.into_iter(), &peer, track)?.into_any());
            }
            Form::Whole { .. } => list_of_bytes(py, &parts),
            Form::Each if parts.len() == 1 => bytes(py, &parts[0]),
            Form::Each => list_of_bytes(py, &parts),
            Form::Batch { multipart, .. } => {
                let only = if multipart || parts.len() > 1 {
                    list_of_bytes(py, &parts)
                } else {
                    bytes(py, &parts[0])
                };
                buffer::list_of(py, [only].into_iter()).map(Bound::into_any)
            }
        };
        if made.is_err() && !remembered {
            unread_parts(core, parts, peer);
        }
        made
    }
}

/// There is no memory for what a message was to become: it is the next to be received, whoever gives it back.
#[cold]
fn put_aside(
    core: &CoreSocket,
    message: Message,
    peer: Peer,
    kept: Option<&mut Kept>,
    error: PyErr,
) -> PyErr {
    match kept {
        None => core.give_back(0, vec![(message, peer)]),
        Some(kept) => {
            kept.parts.clear();
            kept.messages = vec![(message, peer)];
        }
    }
    error
}

fn take_batch<'py>(
    py: Python<'py>,
    core: &CoreSocket,
    patience: Patience,
    max: usize,
    multipart: bool,
    kept: Option<&mut Kept>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let remembered = kept.is_some();
    // Who they are from is of interest only if they may come back.
    let received = match kept {
        None => py.detach(|| core.recv_batch(max, Wait::Dont)),
        Some(kept) => py
            .detach(|| core.recv_batch_from(max, Wait::Dont))
            .map(|batch| {
                kept.messages = batch;
                kept.messages
                    .iter()
                    .map(|(message, _)| message.clone())
                    .collect()
            }),
    };
    let batch = match received {
        Ok(batch) => batch,
        Err(error) if must_wait(&error, patience) => return Ok(None),
        Err(error) => return Err(raise(error)),
    };
    let items = batch.iter().map(|message| item(py, message, multipart));
    match buffer::list_of(py, items) {
        Ok(list) => Ok(Some(list.into_any())),
        Err(error) => {
            if !remembered {
                unread(core, batch);
            }
            Err(error)
        }
    }
}

/// One message, if there is one.
fn receive(
    py: Python<'_>,
    core: &CoreSocket,
    patience: Patience,
) -> PyResult<Option<(Message, Peer)>> {
    let received = match core.try_recv_from() {
        Attempt::Done(received) => Ok(received),
        Attempt::WouldBlock(()) => return Ok(None),
        Attempt::Failed(error) => Err(error),
        Attempt::Contended(()) => py.detach(|| core.recv_from(Wait::Dont)),
    };
    match received {
        Ok(received) => Ok(Some(received)),
        Err(error) if must_wait(&error, patience) => Ok(None),
        Err(error) => Err(raise(error)),
    }
}

/// What becomes of a call that cannot be served at once.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Patience {
    /// It fails, and says why.
    None,
    /// It waits.
    Some,
}

/// Whether receiving is only a matter of time. So is it of a REQ socket before the request is sent: another task may
/// send it while this one waits.
fn must_wait(error: &Error, patience: Patience) -> bool {
    match error.kind() {
        ErrorKind::Again => true,
        ErrorKind::Fsm => patience == Patience::Some,
        _ => false,
    }
}

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
        Attempt::Contended(message) => py.detach(|| core.send(message, Wait::Dont)),
    };
    match failed {
        Ok(()) => Ok(None),
        Err(failed) if failed.error.kind() == ErrorKind::Again => Ok(Some(failed.message)),
        Err(failed) => Err(raise(failed.error)),
    }
}

/// What waits to be sent.
pub(crate) enum Outgoing {
    /// `send` and `send_multipart`: the message, what the call returns, and whether the message was begun by others.
    One(Option<Message>, Py<PyAny>, Option<Begun>),
    /// Parts of a message that is sent by several calls, whether others follow, and what this call returns. What is at the
    /// front of the queue finds out whether they are a message by themselves.
    Parts(VecDeque<CoreFrame>, bool, Py<PyAny>),
    /// `send_batch`: the next message, those behind it, and how many went.
    Many(Option<Message>, vec::IntoIter<Message>, usize),
    /// `send_batch` of what is not there yet.
    Each(Each),
}

/// How an attempt to send went.
pub(crate) enum Progress {
    /// All is sent, and this is the result of the call.
    Done(Py<PyAny>),
    /// There is no room.
    Waiting,
    /// Others have their turn first.
    Paused,
}

/// How long an iterable may keep the loop from turning.
const LIMIT: Duration = Duration::from_millis(2);

impl Outgoing {
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

    /// The same of what is there; the result of the call once all is sent.
    fn push_taken(&mut self, py: Python<'_>, core: &CoreSocket) -> PyResult<Option<Py<PyAny>>> {
        if let Outgoing::Parts(parts, false, result) = self
            && !core.is_sending_parts()
        {
            let message = Message::from_frames(parts.drain(..));
            *self = Outgoing::One(Some(message), result.clone_ref(py), None);
        }
        match self {
            Outgoing::Parts(parts, more, result) => {
                let (pushed, wakes) = deferring_wakes(|| push_parts(core, parts, *more));
                if !wakes.is_empty() {
                    py.detach(|| drop(wakes));
                }
                match pushed? {
                    Pushed::All => Ok(Some(result.clone_ref(py))),
                    Pushed::Waiting => Ok(None),
                    Pushed::AllBut(message) => {
                        let begun = Begun::of(core, &message);
                        *self = Outgoing::One(Some(message), result.clone_ref(py), begun);
                        Ok(None)
                    }
                }
            }
            Outgoing::One(pending, result, begun) => {
                if let Some(message) = pending.take() {
                    *pending = send_now(py, core, message)?;
                }
                if pending.is_some() {
                    return Ok(None);
                }
                begun::finish(begun.take());
                Ok(Some(result.clone_ref(py)))
            }
            Outgoing::Many(pending, rest, sent) => {
                if let Some(message) = pending.take() {
                    *pending = send_now(py, core, message)?;
                    if pending.is_some() {
                        return Ok(None);
                    }
                    *sent += 1;
                }
                let ((count, failed), wakes) =
                    deferring_wakes(|| core.send_batch(&mut *rest, Wait::Dont));
                if !wakes.is_empty() {
                    py.detach(|| drop(wakes));
                }
                *sent += count;
                match failed {
                    Some(SendError { message, error }) if error.kind() == ErrorKind::Again => {
                        *pending = Some(message);
                        Ok(None)
                    }
                    Some(failed) if *sent == 0 => Err(raise(failed.error)),
                    _ => Ok(Some(count_object(py, *sent)?)),
                }
            }
            Outgoing::Each(_) => Ok(None),
        }
    }

    /// The result of the call when its time is over; an error if nothing was sent at all.
    pub(crate) fn give_up(
        self,
        py: Python<'_>,
        core: &CoreSocket,
        error: impl FnOnce() -> PyErr,
    ) -> PyResult<Py<PyAny>> {
        let begun = match self {
            Outgoing::Each(each) => return count_object(py, each.so_far(py, error)?),
            Outgoing::Many(_, _, sent) if sent > 0 => return count_object(py, sent),
            Outgoing::Many(..) | Outgoing::Parts(_, true, _) => None,
            Outgoing::One(_, _, begun) => begun,
            Outgoing::Parts(parts, false, _) => {
                let gathered = core.is_sending_parts();
                let message = core.complete(parts);
                gathered.then(|| Begun::of(core, &message)).flatten()
            }
        };
        Err(begun::give_up(begun, error))
    }

    /// What the garbage collector has to know of.
    pub(crate) fn iterable(&self) -> Option<&Py<PyIterator>> {
        match self {
            Outgoing::Each(each) => Some(each.items()),
            _ => None,
        }
    }
}

/// How an attempt to send parts ended.
enum Pushed {
    All,
    /// There is no room for the message that they begin.
    Waiting,
    /// There is no room any more for the message that they complete: this one.
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
        if more {
            parts.push_front(message.into_head());
            return Ok(Pushed::Waiting);
        }
        // What other tasks send meanwhile must not become parts of it.
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

fn frames<'py>(
    py: Python<'py>,
    parts: impl ExactSizeIterator<Item = CoreFrame>,
    peer: &Peer,
    track: bool,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let last = parts.len() - 1;
    for (index, part) in parts.enumerate() {
        let frame = Frame::received(py, part, index < last, peer.clone(), track);
        list.append(Bound::new(py, frame)?)?;
    }
    Ok(list)
}
