//! Sending.

use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use zeroxide::binding::{Attempt, Direction, SocketInternals, deferring_wakes};
use zeroxide::{ErrorKind, Frame as CoreFrame, Message, SendError, Socket as CoreSocket, Wait};

use super::bodies::{expected, in_part, is_there, message_of};
use super::each::{Each, Stop};
use super::last_part::LastPart;
use super::{DONTWAIT, SNDMORE, Socket, limit_of};
use crate::begun::{self, Begun};
use crate::blocking::{self, Step, retry};
use crate::buffer::{self, reclaim};
use crate::error::{not_now, raise, raise_of};
use crate::frame::{frame_of, labels_of, tracker_for};
use crate::installed::installed;
use crate::labels::{self, Labels, label};

/// The number of SNDTIMEO.
pub(crate) const SNDTIMEO: i32 = 28;

/// Signals such as Ctrl-C are handled once per this many parts of a message.
const PARTS_PER_LOOK: usize = 4096;

/// The parts of a message, the result of sending them, and the labels of the first part.
pub(crate) type Taken = (Vec<CoreFrame>, Option<Py<PyAny>>, Option<Box<Labels>>);

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
        let in_parts = flags & SNDMORE != 0 || core.is_sending_parts();
        if copy
            && !in_parts
            && let Ok(bytes) = data.cast_exact::<PyBytes>()
        {
            let mut message = Message::new();
            buffer::fill_message(&mut message, bytes)?;
            Socket::send_whole(core, py, message, flags)?;
            return Ok(None);
        }
        let labels = labels_of(data);
        self.send_labelled(py, data, flags, copy, track, labels)
    }

    /// Sends `bytes` to a group, the usual case, without the detour over [`Labels`]. Returns false if this is another
    /// case, and has done nothing then.
    pub(super) fn send_to_group(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        flags: i32,
        copy: bool,
        group: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let core = self.core()?;
        let in_parts = flags & SNDMORE != 0 || core.is_sending_parts();
        if !copy || in_parts || !core.socket_type().has_groups() {
            return Ok(false);
        }
        let Ok(bytes) = data.cast_exact::<PyBytes>() else {
            return Ok(false);
        };
        let mut message = Message::new();
        buffer::fill_message(&mut message, bytes)?;
        message.set_group(labels::group(group)?);
        Socket::send_whole(core, py, message, flags)?;
        Ok(true)
    }

    pub(super) fn send_labelled(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        flags: i32,
        copy: bool,
        track: bool,
        labels: Option<Box<Labels>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let core = self.core()?;
        let (frame, tracker) = self.take(py, data, copy, track)?;
        // `take` may have run Python code.
        if flags & SNDMORE != 0 || core.is_sending_parts() {
            Socket::send_part(core, py, frame, flags & SNDMORE != 0, flags)?;
        } else {
            let mut message = Message::single(frame);
            label(&mut message, labels);
            Socket::send_whole(core, py, message, flags)?;
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
        let (frames, tracker, labels) = self.take_parts(py, parts, copy, track)?;
        if flags & SNDMORE != 0 || core.is_sending_parts() {
            let last = frames.len() - 1;
            for (index, frame) in frames.into_iter().enumerate() {
                let more = flags & SNDMORE != 0 || index < last;
                Socket::send_part(core, py, frame, more, flags)?;
            }
        } else {
            let mut message = Message::from_vec(frames);
            label(&mut message, labels);
            Socket::send_whole(core, py, message, flags)?;
        }
        Ok(tracker)
    }

    /// The message of which this thread has gathered all but these parts, if there is one.
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
        let (frames, tracker, _) = this.take_parts(py, parts, copy, track)?;
        LastPart::new(slf, core.complete(frames), tracker).map(Some)
    }

    /// The parts of a message, the result of sending them, and the labels of the first part.
    pub(crate) fn take_parts(
        &self,
        py: Python<'_>,
        parts: &Bound<'_, PyAny>,
        copy: bool,
        track: bool,
    ) -> PyResult<Taken> {
        let mut labels = None;
        let mut frames = Vec::with_capacity(expected(parts));
        let mut trackers = Vec::new();
        let all = parts.try_iter().map_err(|error| not_parts(parts, error))?;
        for (index, part) in all.enumerate() {
            let part = part?;
            if index % PARTS_PER_LOOK == PARTS_PER_LOOK - 1 {
                // An iterator may never end.
                py.check_signals()?;
            }
            if copy && part.is_exact_instance_of::<PyBytes>() {
                buffer::push(&mut frames, buffer::copied(&part)?)?;
                continue;
            }
            if index == 0 {
                labels = labels_of(&part);
            }
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
        Ok((frames, merge_trackers(py, trackers, track)?, labels))
    }

    /// The messages of a batch.
    pub(crate) fn take_messages(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Message>> {
        let mut batch = Vec::with_capacity(expected(messages));
        // Converting a message may run Python code, and other threads, which must not change the remaining messages.
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
        // A message for which there is no memory ends the batch, like one for which there is no room.
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

    /// Sends the items of an iterable. A call without a time limit takes an item before there is room for it, because
    /// that is the only way to learn whether there is one. A call with a limit must leave it in the iterable.
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
                each.send_left_by(py, |message| Socket::send_whole(core, py, message, flags))?;
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

    /// Sends messages; returns how many were sent if not all of them could be.
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

    /// Sends the messages that can be sent without waiting.
    fn send_now(
        &self,
        py: Python<'_>,
        messages: &mut impl Iterator<Item = Message>,
    ) -> PyResult<(usize, Option<SendError>)> {
        let core = self.core()?;
        let (result, wakes) = deferring_wakes(|| core.send_messages(messages, Wait::Dont));
        if !wakes.is_empty() {
            py.detach(|| drop(wakes));
        }
        Ok(result)
    }

    /// Continues a batch of which `sent` messages were sent and the next one was not.
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
        // The rest waits as long as one send would, from one accepted message to the next.
        let mut pending = Some(failed.message);
        while let Some(message) = pending.take() {
            if let Err(error) = Socket::send_whole(core, py, message, flags) {
                return if sent > 0 && is_again(py, &error) {
                    Ok(sent)
                } else {
                    Err(error)
                };
            }
            sent += 1;
            let (more, failed) = py.detach(|| core.send_messages(&mut messages, Wait::Dont));
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

    /// Sends a message: immediately with the GIL held if that is possible, otherwise waiting without it.
    #[inline]
    fn send_whole(core: &CoreSocket, py: Python<'_>, message: Message, flags: i32) -> PyResult<()> {
        // A thread of this program that the message wakes needs the GIL, so it would block at once if it were woken
        // while the GIL is held.
        let (attempt, wakes) = deferring_wakes(|| core.try_send(message));
        if !wakes.is_empty() {
            py.detach(|| drop(wakes));
        }
        match attempt {
            Attempt::Done(()) => Ok(()),
            Attempt::Failed(error) => Err(raise(error)),
            Attempt::WouldBlock(_) if flags & DONTWAIT != 0 => Err(not_now(py, Direction::Send)),
            Attempt::WouldBlock(message) | Attempt::Contended(message) => {
                Socket::send_waiting(core, py, message, flags)
            }
        }
    }

    #[cold]
    fn send_waiting(
        core: &CoreSocket,
        py: Python<'_>,
        message: Message,
        flags: i32,
    ) -> PyResult<()> {
        if flags & DONTWAIT != 0 {
            return py
                .detach(|| core.send_message(message, Wait::Dont))
                .map_err(|failed| raise_of(py, failed.error, Direction::Send));
        }
        let limit = limit_of(core, SNDTIMEO)?;
        let mut pending = Some(message);
        blocking::wait_for(py, core, Direction::Send, limit, move |until| {
            let Some(message) = pending.take() else {
                return Ok(Step::Done(()));
            };
            match core.send_message(message, until.map_or(Wait::Forever, Wait::Until)) {
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

    /// Sends a part: immediately with the GIL held if no wait is needed, otherwise waiting without it. The first part
    /// may wait for room, and so may the last if the room was taken meanwhile. If it fails in any way, the message
    /// ends.
    fn send_part(
        core: &CoreSocket,
        py: Python<'_>,
        part: CoreFrame,
        more: bool,
        flags: i32,
    ) -> PyResult<()> {
        let (attempt, wakes) = deferring_wakes(|| core.send_part(part, more, Wait::Dont));
        if !wakes.is_empty() {
            py.detach(|| drop(wakes));
        }
        let Err(SendError { message, error }) = attempt else {
            return Ok(());
        };
        let begun = Begun::of(core, &message);
        if error.kind() != ErrorKind::Again {
            return Err(raise(begun::failed(begun.as_ref(), error)));
        }
        if flags & DONTWAIT != 0 {
            return Err(begun::give_up(begun, || not_now(py, Direction::Send)));
        }
        if !more || begun.is_some() {
            return match Socket::send_waiting(core, py, message, flags) {
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

    /// A part in the form that the core takes, with the tracker that the send returns for it.
    pub(crate) fn take(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        copy: bool,
        track: bool,
    ) -> PyResult<(CoreFrame, Option<Py<PyAny>>)> {
        if let Some(frame) = frame_of(data) {
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

/// The items of the list, if all are `bytes`: a list may change while it is sent, with or without a GIL.
fn plain<'py>(messages: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    let all = messages.cast_exact::<PyList>().ok()?.to_tuple();
    all.iter_borrowed()
        .all(|item| item.is_exact_instance_of::<PyBytes>())
        .then_some(all)
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
        // A copied message has a tracker that is done.
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
