//! Sending.

use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use zeroxide::{
    Attempt, Direction, ErrorKind, Frame as CoreFrame, Message, SendError, Wait, deferring_wakes,
};

use super::each::{Each, Stop};
use super::{DONTWAIT, SNDMORE, Socket, limit_of};
use crate::begun::{self, Begun, LastPart};
use crate::blocking::{self, Step, retry};
use crate::buffer::{self, reclaim};
use crate::error::{not_now, raise, raise_of};
use crate::frame::{Frame, tracker_for};
use crate::install::installed;

/// The number of SNDTIMEO.
pub(crate) const SNDTIMEO: i32 = 28;

impl Socket {
    #[inline]
    pub(super) fn send_one(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        flags: i32,
        copy: bool,
        track: bool,
    ) -> PyResult<Option<Py<PyAny>>> {
        reclaim();
        let core = self.core()?;
        let (frame, tracker) = if copy && data.is_exact_instance_of::<PyBytes>() {
            (buffer::copied(data)?, None)
        } else {
            self.take(py, data, copy, track)?
        };
        if flags & SNDMORE != 0 || core.is_sending_parts() {
            self.send_part(py, frame, flags & SNDMORE != 0, flags)?;
        } else {
            self.send_whole(py, Message::single(frame), flags)?;
        }
        Ok(tracker)
    }

    pub(super) fn send_parts(
        &self,
        py: Python<'_>,
        parts: &Bound<'_, PyAny>,
        flags: i32,
        copy: bool,
        track: bool,
    ) -> PyResult<Option<Py<PyAny>>> {
        reclaim();
        let core = self.core()?;
        let (frames, tracker) = self.take_parts(py, parts, copy, track)?;
        if flags & SNDMORE != 0 || core.is_sending_parts() {
            let last = frames.len() - 1;
            for (index, frame) in frames.into_iter().enumerate() {
                let more = flags & SNDMORE != 0 || index < last;
                self.send_part(py, frame, more, flags)?;
            }
        } else {
            self.send_whole(py, Message::from_vec(frames), flags)?;
        }
        Ok(tracker)
    }

    /// The message of which this thread has gathered all but these parts, if it has gathered any.
    pub(super) fn last_part(
        slf: &Bound<'_, Self>,
        parts: &Bound<'_, PyAny>,
        copy: bool,
        track: bool,
    ) -> PyResult<Option<LastPart>> {
        reclaim();
        let (this, py) = (slf.get(), slf.py());
        let core = this.core()?;
        if !core.is_sending_parts() {
            return Ok(None);
        }
        let (frames, tracker) = this.take_parts(py, parts, copy, track)?;
        LastPart::new(slf, core.complete(frames), tracker).map(Some)
    }

    /// The parts of a message, and what the send of them returns.
    pub(crate) fn take_parts(
        &self,
        py: Python<'_>,
        parts: &Bound<'_, PyAny>,
        copy: bool,
        track: bool,
    ) -> PyResult<(Vec<CoreFrame>, Option<Py<PyAny>>)> {
        let mut frames = Vec::with_capacity(expected(parts));
        let mut trackers = Vec::new();
        let all = parts.try_iter().map_err(|error| not_parts(parts, error))?;
        for (index, part) in all.enumerate() {
            let part = part?;
            let (frame, tracker) = self.take(py, &part, copy, track).map_err(|error| {
                if buffer::is_one_body(parts) {
                    return not_parts(parts, error);
                }
                in_part(py, index, &part, error)
            })?;
            buffer::push(&mut frames, frame)?;
            if let Some(tracker) = tracker {
                buffer::push(&mut trackers, tracker)?;
            }
        }
        if frames.is_empty() {
            let error = PyIndexError::new_err("a message has at least one part");
            return Err(match buffer::is_one_body(parts) {
                true => not_parts(parts, error),
                false => error,
            });
        }
        Ok((frames, merge_trackers(py, trackers, track)?))
    }

    /// The messages of a batch.
    pub(crate) fn take_messages(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Message>> {
        let mut batch = Vec::with_capacity(expected(messages));
        // Taking a message may run Python code, and other threads: nothing of that may change what is still to be taken.
        let all = match messages.cast_exact::<PyList>() {
            Ok(list) => list.to_tuple().into_any(),
            Err(_) => messages.clone(),
        };
        for message in all.try_iter()? {
            buffer::push(&mut batch, message_of(py, &message?)?)?;
        }
        Ok(batch)
    }

    pub(super) fn send_many(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        flags: i32,
    ) -> PyResult<usize> {
        reclaim();
        if !is_there(messages) {
            return self.send_each(py, Each::new(messages)?, flags);
        }
        let Some(bodies) = plain(messages) else {
            let batch = self.take_messages(py, messages)?;
            return self.send_messages(py, batch, flags);
        };
        let message = |body: Bound<'_, PyAny>| {
            let body = body.cast_exact().ok()?;
            Some(Message::single(buffer::of_bytes(body).ok()?))
        };
        // What there is no memory for ends the batch, as the first message for which there is no room does.
        let mut messages = bodies.iter().map_while(message);
        match self.send_now(py, &mut messages)? {
            (0, None) if !bodies.is_empty() => Err(PyMemoryError::new_err(())),
            (sent, None) => Ok(sent),
            (sent, Some(failed)) => {
                let rest: Vec<Message> = messages.collect();
                self.send_rest(py, sent, failed, rest, flags)
            }
        }
    }

    /// Sends what an iterable gives. Who waits for ever takes an item before there is room for it: only so it learns that
    /// there is none left to wait for. Who does not has to leave it where it is.
    fn send_each(&self, py: Python<'_>, mut each: Each, flags: i32) -> PyResult<usize> {
        let core = self.core()?;
        loop {
            if each.send(py, core, None)? == Stop::Ended {
                return Ok(each.sent());
            }
            if flags & DONTWAIT != 0 {
                return each.so_far(py, || not_now(py, Direction::Send));
            }
            let limit = limit_of(core, SNDTIMEO)?;
            if limit.is_none() && !each.has_left() && !each.take(py)? {
                return Ok(each.sent());
            }
            if each.has_left() {
                each.send_left_by(py, |message| self.send_whole(py, message, flags))?;
                continue;
            }
            let room = blocking::wait_for(py, core, Direction::Send, limit, |until| {
                retry(core.await_room(until.map_or(Wait::Forever, Wait::Until)))
            });
            match room {
                Ok(()) => {}
                Err(error) if is_again(py, &error) => return each.so_far(py, || error),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends messages; gives how many went out when not all of them could.
    pub(super) fn send_messages(
        &self,
        py: Python<'_>,
        batch: Vec<Message>,
        flags: i32,
    ) -> PyResult<usize> {
        let mut messages = batch.into_iter();
        match self.send_now(py, &mut messages)? {
            (sent, None) => Ok(sent),
            (sent, Some(failed)) => self.send_rest(py, sent, failed, messages.collect(), flags),
        }
    }

    /// Sends what can be sent without waiting.
    fn send_now(
        &self,
        py: Python<'_>,
        messages: &mut impl Iterator<Item = Message>,
    ) -> PyResult<(usize, Option<SendError>)> {
        let core = self.core()?;
        let (result, wakes) = deferring_wakes(|| core.send_batch(messages, Wait::Dont));
        if !wakes.is_empty() {
            py.detach(|| drop(wakes));
        }
        Ok(result)
    }

    /// Goes on with a batch of which `sent` messages were sent and the next one was not.
    fn send_rest(
        &self,
        py: Python<'_>,
        mut sent: usize,
        failed: SendError,
        rest: Vec<Message>,
        flags: i32,
    ) -> PyResult<usize> {
        let core = self.core()?;
        let mut messages = rest.into_iter();
        if failed.error.kind() != ErrorKind::Again || flags & DONTWAIT != 0 {
            return if sent > 0 {
                Ok(sent)
            } else {
                Err(raise_of(py, failed.error, Direction::Send))
            };
        }
        // The rest waits as long as one send would, from one acceptance to the next.
        let mut pending = Some(failed.message);
        while let Some(message) = pending.take() {
            if let Err(error) = self.send_whole(py, message, flags) {
                return if sent > 0 && is_again(py, &error) {
                    Ok(sent)
                } else {
                    Err(error)
                };
            }
            sent += 1;
            let (more, failed) = py.detach(|| core.send_batch(&mut messages, Wait::Dont));
            sent += more;
            match failed {
                Some(failed) if failed.error.kind() == ErrorKind::Again => {
                    pending = Some(failed.message)
                }
                Some(failed) => {
                    return if sent > 0 {
                        Ok(sent)
                    } else {
                        Err(raise(failed.error))
                    };
                }
                None => {}
            }
        }
        Ok(sent)
    }

    /// Sends a message: at once with the GIL held if that is possible, else waiting without it.
    #[inline]
    fn send_whole(&self, py: Python<'_>, message: Message, flags: i32) -> PyResult<()> {
        let core = self.core()?;
        // A thread of this program that the message wakes will want the GIL: woken with the GIL in hand it would
        // only run into it.
        let (attempt, wakes) = deferring_wakes(|| core.try_send(message));
        if !wakes.is_empty() {
            py.detach(|| drop(wakes));
        }
        match attempt {
            Attempt::Done(()) => Ok(()),
            Attempt::Failed(error) => Err(raise(error)),
            Attempt::WouldBlock(_) if flags & DONTWAIT != 0 => Err(not_now(py, Direction::Send)),
            Attempt::WouldBlock(message) | Attempt::Contended(message) => {
                self.send_waiting(py, message, flags)
            }
        }
    }

    #[cold]
    fn send_waiting(&self, py: Python<'_>, message: Message, flags: i32) -> PyResult<()> {
        let core = self.core()?;
        if flags & DONTWAIT != 0 {
            return py
                .detach(|| core.send(message, Wait::Dont))
                .map_err(|failed| raise_of(py, failed.error, Direction::Send));
        }
        let limit = limit_of(core, SNDTIMEO)?;
        let mut pending = Some(message);
        blocking::wait_for(py, core, Direction::Send, limit, move |until| {
            let Some(message) = pending.take() else {
                return Ok(Step::Done(()));
            };
            match core.send(message, until.map_or(Wait::Forever, Wait::Until)) {
                Ok(()) => Ok(Step::Done(())),
                Err(failed) => match failed.error.kind() {
                    ErrorKind::Again | ErrorKind::Interrupted => {
                        pending = Some(failed.message);
                        Ok(Step::Again)
                    }
                    _ => Err(failed.error),
                },
            }
        })
    }

    /// Sends a part: at once with the GIL held if nothing has to be waited for, else waiting without it. What is waited for
    /// is room, with the first part and, should it be gone again, with the last. However it fails, the message is over.
    fn send_part(&self, py: Python<'_>, part: CoreFrame, more: bool, flags: i32) -> PyResult<()> {
        let core = self.core()?;
        let (attempt, wakes) = deferring_wakes(|| core.send_part(part, more, Wait::Dont));
        if !wakes.is_empty() {
            py.detach(|| drop(wakes));
        }
        let Err(SendError { message, error }) = attempt else {
            return Ok(());
        };
        let begun = Begun::of(core, &message);
        if error.kind() != ErrorKind::Again {
            return Err(raise(error));
        }
        if flags & DONTWAIT != 0 {
            return Err(begun::give_up(begun, || not_now(py, Direction::Send)));
        }
        if !more {
            return match self.send_waiting(py, message, flags) {
                Ok(()) => {
                    begun::finish(begun);
                    Ok(())
                }
                Err(error) if is_again(py, &error) => Err(begun::give_up(begun, || error)),
                Err(error) => Err(error),
            };
        }
        let mut pending = message.into_iter().next();
        let limit = limit_of(core, SNDTIMEO)?;
        blocking::wait_for(py, core, Direction::Send, limit, move |until| {
            let Some(part) = pending.take() else {
                return Ok(Step::Done(()));
            };
            match core.send_part(part, true, until.map_or(Wait::Forever, Wait::Until)) {
                Ok(()) => Ok(Step::Done(())),
                Err(failed) => match failed.error.kind() {
                    ErrorKind::Again | ErrorKind::Interrupted => {
                        pending = failed.message.into_iter().next();
                        Ok(Step::Again)
                    }
                    _ => Err(failed.error),
                },
            }
        })
    }

    /// A part as the core takes it, with the tracker that the send returns for it.
    pub(crate) fn take(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        copy: bool,
        track: bool,
    ) -> PyResult<(CoreFrame, Option<Py<PyAny>>)> {
        if let Ok(frame) = data.cast::<Frame>() {
            let frame = frame.get();
            let tracker = frame.tracker_of(py);
            if track && tracker.is_none() {
                return Err(PyValueError::new_err("Not a tracked message"));
            }
            return Ok((frame.body()?, tracker));
        }
        if copy {
            return Ok((buffer::copied(data)?, None));
        }
        let lent = buffer::lent(data, self.copy_threshold(), track)?;
        let tracker = if track || !lent.is_lent {
            Some(tracker_for(py, lent.release)?)
        } else {
            None
        };
        Ok((lent.frame, tracker))
    }
}

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

/// Whether all of it is there already, and looking takes nothing away.
pub(crate) fn is_there(messages: &Bound<'_, PyAny>) -> bool {
    messages.is_instance_of::<PyList>() || messages.is_instance_of::<PyTuple>()
}

/// What is in the list, if that is nothing but `bytes`: a list may change while it is sent, with or without a GIL.
fn plain<'py>(messages: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    let all = messages.cast_exact::<PyList>().ok()?.to_tuple();
    all.iter_borrowed()
        .all(|item| item.is_exact_instance_of::<PyBytes>())
        .then_some(all)
}

/// How many items to make room for at first: `__len__` may say anything.
fn expected(items: &Bound<'_, PyAny>) -> usize {
    items.len().unwrap_or(0).min(4096)
}

/// What draft sockets would take.
pub(crate) fn no_drafts() -> PyErr {
    PyRuntimeError::new_err("routing_id and group belong to draft sockets, which are not built in")
}

/// Names the part that is of no use.
fn in_part(py: Python<'_>, index: usize, part: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
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

/// The error for an argument that is not a list of parts.
#[cold]
fn not_parts(parts: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    match buffer::shown(parts) {
        Ok(_) if buffer::is_one_body(parts) => PyTypeError::new_err(
            "send_multipart takes a list of parts; send takes one part by itself",
        ),
        Ok(shown) if error.is_instance_of::<PyTypeError>(parts.py()) => {
            PyTypeError::new_err(format!("send_multipart takes a list of parts, not {shown}"))
        }
        Ok(_) => error,
        Err(error) => error,
    }
}

fn merge_trackers(
    py: Python<'_>,
    mut trackers: Vec<Py<PyAny>>,
    track: bool,
) -> PyResult<Option<Py<PyAny>>> {
    if !track {
        // What was copied is done and says so.
        return Ok(trackers.pop());
    }
    match installed() {
        Some(installed) => {
            let all = PyTuple::new(py, trackers)?;
            Ok(Some(installed.tracker.bind(py).call1(all)?.unbind()))
        }
        None => Ok(None),
    }
}

fn is_again(py: Python<'_>, error: &PyErr) -> bool {
    let again = || error.value(py).getattr("errno").ok()?.extract::<i32>().ok();
    again() == Some(ErrorKind::Again.errno())
}
