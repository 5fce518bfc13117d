//! Receiving.

use std::convert::identity;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use zeroxide::binding::{Attempt, Direction, PartsReceiver, SocketInternals};
use zeroxide::{Frame as CoreFrame, Message, PeerInfo, Socket as CoreSocket, Wait};

use super::{DONTWAIT, Socket, limit_of};
use crate::blocking::{self, Limit, retry};
use crate::buffer::{self, Target, reclaim};
use crate::error::{not_now, raise, raise_of};
use crate::frame::Frame;
use crate::labels::Labels;

/// The number of RCVTIMEO.
pub(crate) const RCVTIMEO: i32 = 27;

impl Socket {
    #[inline]
    pub(super) fn recv_bytes<'py>(
        &self,
        py: Python<'py>,
        flags: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        reclaim();
        let core = self.core()?;
        if let Some((frame, peer)) = core.next_part() {
            return bytes(py, &frame).inspect_err(|_| unread_parts(core, vec![frame], peer));
        }
        let mut message = Message::new();
        Socket::recv_whole(core, py, flags, &mut message)?;
        match bytes(py, message.head()) {
            Ok(first) => {
                if message.len() > 1 {
                    core.begin_parts(message, None);
                }
                Ok(first)
            }
            Err(error) => {
                unread(core, [message]);
                Err(error)
            }
        }
    }

    pub(super) fn recv_frame<'py>(
        &self,
        py: Python<'py>,
        flags: i32,
        track: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        reclaim();
        let core = self.core()?;
        let (frame, peer, labels) = match core.next_part() {
            Some((frame, peer)) => (frame, peer, None),
            None => {
                let (message, peer) = Socket::recv_whole_from(core, py, flags)?;
                let labels = Labels::of(&message);
                (core.begin_parts(message, peer.clone()), peer, labels)
            }
        };
        let more = core.rcvmore();
        let frame = Frame::received(py, frame, more, peer, track, labels);
        Ok(Bound::new(py, frame)?.into_any())
    }

    pub(super) fn recv_parts<'py>(
        &self,
        py: Python<'py>,
        flags: i32,
        copy: bool,
        track: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        reclaim();
        let core = self.core()?;
        let mut in_parts = false;
        let (message, peer) = match core.next_part() {
            Some((first, peer)) => {
                in_parts = true;
                let mut message = Message::single(first);
                while let Some((frame, _)) = core.next_part() {
                    message.push(frame);
                }
                (message, peer)
            }
            None if copy => {
                let mut message = Message::new();
                Socket::recv_whole(core, py, flags, &mut message)?;
                (message, None)
            }
            None => Socket::recv_whole_from(core, py, flags)?,
        };
        if copy {
            return parts(py, &message).inspect_err(|_| match in_parts {
                true => unread_parts(core, message.into_iter().collect(), peer),
                false => unread(core, [message]),
            });
        }
        frames(py, message, &peer, track)
    }

    pub(super) fn recv_many<'py>(
        &self,
        py: Python<'py>,
        max: i64,
        timeout: Option<i64>,
        flags: i32,
        items: Items,
    ) -> PyResult<Bound<'py, PyList>> {
        reclaim();
        let core = self.core()?;
        let max = match usize::try_from(max) {
            Ok(max) if max > 0 => max,
            _ => return Err(PyValueError::new_err("max_messages must be at least 1")),
        };
        let mut batch = Vec::new();
        // The first messages may be the rest of a message.
        let mut rest_of = None;
        if let Some((frame, peer)) = core.next_part() {
            let mut message = Message::single(frame);
            while let Some((frame, _)) = core.next_part() {
                message.push(frame);
            }
            batch.push(message);
            rest_of = Some(peer);
        }
        let room = max - batch.len();
        if batch.is_empty() {
            // `bytes` are created later, because copying each message right after it was moved would wait for its
            // stores.
            batch = self.some(py, room, timeout, flags, identity)?;
        } else if room > 0
            && let Attempt::Done(received) = core.try_recv_batch_as(room, identity)
        {
            batch.extend(received);
        }
        let items = batch.iter().map(|message| items.make(py, message));
        buffer::list_of(py, items).inspect_err(|_| {
            let mut messages = batch.into_iter();
            if let Some(peer) = rest_of {
                let rest = messages.next().into_iter().flatten().collect();
                unread_parts(core, rest, peer);
            }
            unread(core, messages);
        })
    }

    /// Receives the waiting messages, or waits for one; at most `room`. `make` is called with the socket locked.
    pub(super) fn some<T>(
        &self,
        py: Python<'_>,
        most: usize,
        timeout: Option<i64>,
        flags: i32,
        make: impl Fn(Message) -> T,
    ) -> PyResult<Vec<T>> {
        let core = self.core()?;
        let waits = flags & DONTWAIT == 0 && timeout != Some(0);
        match core.try_recv_batch_as(most, &make) {
            Attempt::Done(messages) => return Ok(messages),
            Attempt::Failed(error) => return Err(raise(error)),
            Attempt::WouldBlock(()) | Attempt::Contended(()) if waits => {}
            Attempt::WouldBlock(()) if !core.take_in() => {
                return Err(not_now(py, Direction::Recv));
            }
            Attempt::WouldBlock(()) | Attempt::Contended(()) => {
                let received = py
                    .detach(|| core.recv_batch(most, Wait::Dont))
                    .map_err(|error| raise_of(py, error, Direction::Recv))?;
                return Ok(received.into_iter().map(make).collect());
            }
        }
        let limit = match timeout {
            Some(millis) => Limit::of(millis),
            None => limit_of(core, RCVTIMEO)?,
        };
        let received = blocking::wait_for(py, core, Direction::Recv, limit, |until| {
            retry(core.recv_batch(most, until.map_or(Wait::Forever, Wait::Until)))
        })?;
        Ok(received.into_iter().map(make).collect())
    }

    pub(super) fn recv_to(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        nbytes: i64,
        flags: i32,
    ) -> PyResult<usize> {
        reclaim();
        let core = self.core()?;
        // Held during the wait: a change of the buffer's size fails where it is tried, and never costs the message.
        let target = Target::of(target, nbytes)?;
        let frame = match core.next_part() {
            Some((frame, _)) => frame,
            None => {
                let mut message = Message::new();
                Socket::recv_whole(core, py, flags, &mut message)?;
                core.begin_parts(message, None)
            }
        };
        target.fill(frame.as_slice());
        Ok(frame.len())
    }

    /// Receives a message: immediately with the GIL held if there is one, otherwise waiting without it.
    /// It is filled in place, because a message that moves through results is read before its stores have ended.
    #[inline]
    fn recv_whole(
        core: &CoreSocket,
        py: Python<'_>,
        flags: i32,
        message: &mut Message,
    ) -> PyResult<()> {
        match core.try_recv_to(message) {
            Attempt::Done(()) => Ok(()),
            Attempt::Failed(error) => Err(raise(error)),
            Attempt::WouldBlock(()) if flags & DONTWAIT != 0 && !core.take_in() => {
                Err(not_now(py, Direction::Recv))
            }
            Attempt::WouldBlock(()) | Attempt::Contended(()) => {
                *message = Socket::recv_waiting(core, py, flags)?;
                Ok(())
            }
        }
    }

    #[cold]
    fn recv_waiting(core: &CoreSocket, py: Python<'_>, flags: i32) -> PyResult<Message> {
        if flags & DONTWAIT != 0 {
            return py
                .detach(|| core.recv(Wait::Dont))
                .map_err(|error| raise_of(py, error, Direction::Recv));
        }
        let limit = limit_of(core, RCVTIMEO)?;
        blocking::wait_for(py, core, Direction::Recv, limit, |until| {
            retry(core.recv(until.map_or(Wait::Forever, Wait::Until)))
        })
    }

    fn recv_whole_from(
        core: &CoreSocket,
        py: Python<'_>,
        flags: i32,
    ) -> PyResult<(Message, Option<Arc<PeerInfo>>)> {
        match core.try_recv_from() {
            Attempt::Done(received) => return Ok(received),
            Attempt::Failed(error) => return Err(raise(error)),
            Attempt::WouldBlock(()) if flags & DONTWAIT != 0 && !core.take_in() => {
                return Err(not_now(py, Direction::Recv));
            }
            Attempt::WouldBlock(()) | Attempt::Contended(()) => {}
        }
        if flags & DONTWAIT != 0 {
            return py
                .detach(|| core.recv_from(Wait::Dont))
                .map_err(|error| raise_of(py, error, Direction::Recv));
        }
        let limit = limit_of(core, RCVTIMEO)?;
        blocking::wait_for(py, core, Direction::Recv, limit, |until| {
            retry(core.recv_from(until.map_or(Wait::Forever, Wait::Until)))
        })
    }
}

#[inline]
pub(crate) fn bytes<'py>(py: Python<'py>, frame: &CoreFrame) -> PyResult<Bound<'py, PyAny>> {
    Ok(buffer::bytes_of(py, frame.as_slice())?.into_any())
}

fn parts<'py>(py: Python<'py>, message: &Message) -> PyResult<Bound<'py, PyList>> {
    buffer::list_of(py, message.iter().map(|frame| bytes(py, frame)))
}

/// A message as frames.
pub(crate) fn frames<'py>(
    py: Python<'py>,
    message: Message,
    peer: &Option<Arc<PeerInfo>>,
    track: bool,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let mut labels = Labels::of(&message);
    let last = message.len() - 1;
    for (index, frame) in message.into_iter().enumerate() {
        let more = index < last;
        let frame = Frame::received(py, frame, more, peer.clone(), track, labels.take());
        list.append(Bound::new(py, frame)?)?;
    }
    Ok(list)
}

/// The form of the messages of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Items {
    /// Whether each is a list.
    pub(crate) multipart: bool,
    /// Whether parts are `bytes`, and not frames.
    pub(crate) copy: bool,
}

impl Items {
    /// A message as an item of a batch.
    pub(crate) fn make<'py>(
        self,
        py: Python<'py>,
        message: &Message,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.copy {
            return item(py, message, self.multipart);
        }
        let frames = frames(py, message.clone(), &None, false)?;
        if self.multipart || message.len() > 1 {
            return Ok(frames.into_any());
        }
        frames.get_item(0)
    }
}

/// A message as an item of a batch of `bytes`.
pub(crate) fn item<'py>(
    py: Python<'py>,
    message: &Message,
    multipart: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if multipart || message.len() > 1 {
        return Ok(parts(py, message)?.into_any());
    }
    bytes(py, message.head())
}

/// Returns messages for which there was no memory to the socket, so that they are received next. Their peers were not
/// looked up.
#[cold]
pub(crate) fn unread(core: &CoreSocket, messages: impl IntoIterator<Item = Message>) {
    let messages = messages.into_iter().map(|message| (message, None));
    core.give_back(0, messages.collect());
}

/// Like [`unread`], for the parts of a partly received message.
#[cold]
pub(crate) fn unread_parts(core: &CoreSocket, parts: Vec<CoreFrame>, peer: Option<Arc<PeerInfo>>) {
    if let Some(receiver) = PartsReceiver::current() {
        core.give_back_parts(&receiver, 0, parts, peer);
    }
}
