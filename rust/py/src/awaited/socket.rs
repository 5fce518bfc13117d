//! The socket whose calls return futures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pyo3::{PyTraverseError, intern};
use zeroxide::binding::{Attempt, Direction, SocketInternals};
use zeroxide::{ErrorKind, Message, Socket as CoreSocket};

use super::back::Back;
use super::form::{self, Form, Outgoing, Patience, Progress};
use super::lane::{Lane, Start};
use super::queues::Counts;
use super::ready::{self, running_loop};
use super::settling::{Undo, is_done};
use super::turn;
use crate::arguments;
use crate::attempt::send_now;
use crate::blocking::{Limit, deadline_in, millis};
use crate::buffer::{self, Target, reclaim};
use crate::error::{Failure, not_now, raise};
use crate::frame::labels_of;
use crate::labels::{Labels, label};
use crate::socket::each::Each;
use crate::socket::recv::{Items, bytes, unread_parts};
use crate::socket::{DONTWAIT, RCVTIMEO, SNDMORE, SNDTIMEO, Socket, flags, is_there, truth};

#[doc = text!(AsyncSocket)]
#[pyclass(extends = Socket, subclass, frozen, module = "zeroxide._native")]
pub(crate) struct AsyncSocket {
    /// One lane for each loop in which a call had to wait.
    lanes: Mutex<Vec<Py<Lane>>>,
    counts: Arc<Counts>,
    /// Whether immediate results need not be in a future of the program's own class.
    quick: AtomicBool,
}

impl AsyncSocket {
    fn base<'a>(slf: &'a Bound<'_, Self>) -> &'a Socket {
        slf.as_super().get()
    }

    /// Returns the socket, for a call that is about to use it.
    #[inline]
    fn opened<'a>(slf: &'a Bound<'_, Self>) -> PyResult<(&'a Socket, &'a CoreSocket)> {
        reclaim();
        let base = AsyncSocket::base(slf);
        Ok((base, base.core()?))
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Py<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the future of an immediate result.
    #[inline]
    fn done<'py>(slf: &Bound<'py, Self>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().quick.load(Ordering::Relaxed) {
            return ready::wrap(slf.py(), value.unbind());
        }
        let future = slf.call_method0(intern!(slf.py(), "_Future"))?;
        future.call_method1(intern!(slf.py(), "set_result"), (value,))?;
        Ok(future)
    }

    /// Returns the future of a value that was received at once.
    #[inline]
    fn received<'py>(
        slf: &Bound<'py, Self>,
        value: Bound<'py, PyAny>,
        back: Back,
    ) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().quick.load(Ordering::Relaxed) {
            return ready::wrap_received(value, slf.as_super(), back);
        }
        AsyncSocket::done(slf, value)
    }

    /// Returns the future of an immediate result of a call that must not wait. The result can be read at once, but
    /// awaiting it lets other tasks run if they have waited too long.
    #[inline]
    fn done_now<'py>(
        slf: &Bound<'py, Self>,
        value: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if turn::is_over(slf.py()) {
            return AsyncSocket::turning(slf, value, None);
        }
        AsyncSocket::done(slf, value)
    }

    #[cold]
    fn turning<'py>(
        slf: &Bound<'py, Self>,
        value: Bound<'py, PyAny>,
        undo: Option<Undo>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.call_method1(intern!(slf.py(), "_turning"), (value, undo))
    }

    /// Returns the future of a call that has sent everything.
    #[inline]
    fn sent<'py>(
        slf: &Bound<'py, Self>,
        value: Bound<'py, PyAny>,
        flags: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        if flags & DONTWAIT != 0 {
            return AsyncSocket::done_now(slf, value);
        }
        if turn::is_over(slf.py()) {
            // The message is sent, even if the call is cancelled.
            return slf.call_method1(intern!(slf.py(), "_settled_next_turn"), (value,));
        }
        AsyncSocket::done(slf, value)
    }

    /// Returns the future of a call that failed at once.
    #[cold]
    fn failed<'py>(slf: &Bound<'py, Self>, error: PyErr) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let over = turn::is_over(py);
        let class = if over {
            intern!(py, "_Receiving")
        } else if slf.get().quick.load(Ordering::Relaxed) {
            // A task can be made from a future of this class.
            intern!(py, "_Sending")
        } else {
            intern!(py, "_Future")
        };
        let future = slf.call_method0(class)?;
        future.call_method1(intern!(py, "set_exception"), (error.into_value(py),))?;
        if over {
            // Futures of a program's own class need not have room for the attribute.
            let _ = future.setattr(intern!(py, "_turns"), true);
        }
        Ok(future)
    }

    /// Returns the lane of the current loop.
    fn lane<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Lane>> {
        let (py, this) = (slf.py(), slf.get());
        let running = running_loop(py)?;
        if let Some(lane) = this.find(py, &running) {
            return Ok(lane);
        }
        let event_loop = slf.call_method0(intern!(py, "_event_loop"))?;
        if let Some(lane) = this.find(py, &event_loop) {
            return Ok(lane);
        }
        AsyncSocket::leave_closed_loops(slf)?;
        let lane = Lane::new(
            py,
            AsyncSocket::base(slf).core()?,
            event_loop.clone().unbind(),
            slf.getattr(intern!(py, "_Receiving"))?.unbind(),
            slf.getattr(intern!(py, "_Sending"))?.unbind(),
            this.quick.load(Ordering::Relaxed),
            this.counts.clone(),
        )?;
        let lane = Bound::new(py, lane)?;
        let mut lanes = this.lanes();
        // Python code ran meanwhile, and may have made a lane.
        let made = lanes.iter().find(|made| made.get().is_of(&event_loop));
        if let Some(made) = made.map(|made| made.bind(py).clone()) {
            drop(lanes);
            return Ok(made);
        }
        lanes.push(lane.clone().unbind());
        drop(lanes);
        Ok(lane)
    }

    /// Abandons the lanes of loops that were closed, because these loops will not serve any call again.
    fn leave_closed_loops(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        // Without the lock, because asking the loops may run Python code.
        let mut closed = this.all_lanes(py);
        closed.retain(|lane| lane.get().is_closed(py));
        if !closed.is_empty() {
            // The removed lanes stay alive in `closed` until the lock is released.
            this.lanes()
                .retain(|lane| !closed.iter().any(|gone| gone.is(lane)));
        }
        Lane::abandon_all(py, closed)
    }

    fn all_lanes(&self, py: Python<'_>) -> Vec<Py<Lane>> {
        let lanes = self.lanes();
        lanes.iter().map(|lane| lane.clone_ref(py)).collect()
    }

    /// Serves the calls that wait, before a call that will not queue after them.
    #[cold]
    fn serve_others(slf: &Bound<'_, Self>) -> PyResult<()> {
        AsyncSocket::leave_closed_loops(slf)?;
        Lane::serve_aside(&AsyncSocket::lane(slf)?)
    }

    fn futures(&self, py: Python<'_>, sending: bool) -> Vec<Py<PyAny>> {
        let lanes = self.lanes();
        lanes
            .iter()
            .flat_map(|lane| lane.get().futures(py, sending))
            .collect()
    }

    fn find<'py>(
        &self,
        py: Python<'py>,
        event_loop: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, Lane>> {
        let lanes = self.lanes();
        let lane = lanes.iter().find(|lane| lane.get().is_of(event_loop))?;
        Some(lane.bind(py).clone())
    }

    // ---- receiving --------------------------------------------------------------------------------------------------

    fn receive<'py>(
        slf: &Bound<'py, Self>,
        form: Form,
        flags: i32,
        timeout: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let over = turn::is_over(slf.py());
        AsyncSocket::receive_if(slf, form, flags, timeout, over)
    }

    /// Receives. If the loop must turn, a call that may wait waits for the next turn.
    fn receive_if<'py>(
        slf: &Bound<'py, Self>,
        form: Form,
        flags: i32,
        timeout: Option<i64>,
        over: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let core = AsyncSocket::base(slf).core()?;
        // Calls that already wait come first.
        let impatient = flags & DONTWAIT != 0 || timeout == Some(0);
        if impatient && this.counts.receivers.load(Ordering::Relaxed) > 0 {
            AsyncSocket::serve_others(slf)?;
        }
        if this.counts.receivers.load(Ordering::Relaxed) == 0 {
            let patience = if flags & DONTWAIT == 0 {
                Patience::Some
            } else {
                Patience::None
            };
            if over && this.quick.load(Ordering::Relaxed) {
                return AsyncSocket::receive_turning(slf, core, form, flags, timeout, patience);
            }
            if over && !impatient {
                // Futures of a program's own class could not give the message back.
                return AsyncSocket::receive_next_turn(slf, core, form, timeout);
            }
            match form.take(py, core, patience) {
                Ok(Some((value, back))) => return AsyncSocket::received(slf, value, back),
                Ok(None) => {}
                Err(error) => return AsyncSocket::receive_failed(slf, core, flags, error),
            }
        }
        AsyncSocket::wait_to_receive(slf, core, form, flags, timeout)
    }

    /// Receives, and lets other tasks run before the caller gets the result.
    #[cold]
    fn receive_turning<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        form: Form,
        flags: i32,
        timeout: Option<i64>,
        patience: Patience,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match form.take(py, core, patience) {
            Ok(Some((value, back))) => {
                let original = back.original(&value);
                let undo = Undo::new(core, back, original);
                if flags & DONTWAIT != 0 || timeout == Some(0) {
                    return AsyncSocket::turning(slf, value, Some(undo));
                }
                let settled = intern!(py, "_settled_next_turn");
                slf.call_method1(settled, (value, undo))
            }
            Ok(None) => AsyncSocket::wait_to_receive(slf, core, form, flags, timeout),
            Err(error) => AsyncSocket::receive_failed(slf, core, flags, error),
        }
    }

    #[cold]
    fn receive_failed<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        flags: i32,
        error: PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Using a socket that cannot be used is the caller's mistake, not a result of waiting.
        if flags & DONTWAIT == 0 && core.readiness().is_err() {
            return Err(error);
        }
        AsyncSocket::failed(slf, error)
    }

    #[cold]
    fn wait_to_receive<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        form: Form,
        flags: i32,
        timeout: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if flags & DONTWAIT != 0 || timeout == Some(0) {
            return AsyncSocket::failed(slf, not_now(slf.py(), Direction::Recv));
        }
        let limit = AsyncSocket::limit(core, timeout, RCVTIMEO)?;
        Lane::receive(&AsyncSocket::lane(slf)?, slf, form, limit, Start::Now)
    }

    /// Leaves messages in the socket until other tasks have run.
    #[cold]
    fn receive_next_turn<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        form: Form,
        timeout: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let limit = AsyncSocket::limit(core, timeout, RCVTIMEO)?;
        Lane::receive(&AsyncSocket::lane(slf)?, slf, form, limit, Start::NextTurn)
    }

    fn limit(core: &CoreSocket, timeout: Option<i64>, option: i32) -> PyResult<Option<Limit>> {
        Ok(Limit::of(match timeout {
            Some(millis) => millis,
            None => core.get_int(option).map_err(raise)?,
        }))
    }

    // ---- sending ----------------------------------------------------------------------------------------------------

    /// Sends a whole message, or waits until it can be sent. No other call waits to send.
    #[inline]
    fn send_message<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        message: Message,
        flags: i32,
        result: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match send_now(slf.py(), core, message) {
            Ok(None) => AsyncSocket::sent(slf, result, flags),
            Ok(Some(message)) => {
                let outgoing = Outgoing::one(message, result.unbind());
                AsyncSocket::wait_to_send(slf, core, outgoing, flags)
            }
            Err(error) => AsyncSocket::failed(slf, error),
        }
    }

    #[cold]
    fn wait_to_send<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        outgoing: Outgoing,
        flags: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        if flags & DONTWAIT != 0 {
            let over = || not_now(slf.py(), Direction::Send);
            return match outgoing.give_up(slf.py(), core, over) {
                Ok(sent) => AsyncSocket::done_now(slf, sent.into_bound(slf.py())),
                Err(error) => AsyncSocket::failed(slf, error),
            };
        }
        let limit = AsyncSocket::limit(core, None, SNDTIMEO)?;
        Lane::send(&AsyncSocket::lane(slf)?, slf, outgoing, limit, Start::Now)
    }

    /// Continues to send after other tasks have run.
    fn send_next_turn<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        outgoing: Outgoing,
    ) -> PyResult<Bound<'py, PyAny>> {
        let limit = AsyncSocket::limit(core, None, SNDTIMEO)?;
        let lane = AsyncSocket::lane(slf)?;
        Lane::send(&lane, slf, outgoing, limit, Start::NextTurn)
    }

    /// Sends parts, or waits until they can be sent. Calls that already wait come first.
    fn send_parts<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        mut outgoing: Outgoing,
        flags: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, senders) = (slf.py(), &slf.get().counts.senders);
        if flags & DONTWAIT != 0 && senders.load(Ordering::Relaxed) > 0 {
            AsyncSocket::serve_others(slf)?;
        }
        if senders.load(Ordering::Relaxed) == 0
            && let Progress::Done(result) = outgoing.push(py, core)?
        {
            return AsyncSocket::sent(slf, result.into_bound(py), flags);
        }
        AsyncSocket::wait_to_send(slf, core, outgoing, flags)
    }

    /// Sends the message of a call of `send` or `send_multipart`. The tracker, if any, is the result of the call.
    #[inline]
    fn send_frames<'py>(
        slf: &Bound<'py, Self>,
        core: &CoreSocket,
        message: Message,
        flags: i32,
        tracker: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let result = tracker.unwrap_or_else(|| slf.py().None());
        let more = flags & SNDMORE != 0;
        // One of the calls that wait may send an earlier part of this message.
        let in_parts =
            more || core.is_sending_parts() || slf.get().counts.senders.load(Ordering::Relaxed) > 0;
        if in_parts {
            let outgoing = if core.is_single_part() && !more {
                Outgoing::one(message, result)
            } else {
                Outgoing::parts(message, more, result)
            };
            return AsyncSocket::send_parts(slf, core, outgoing, flags);
        }
        let result = result.into_bound(slf.py());
        AsyncSocket::send_message(slf, core, message, flags, result)
    }

    fn try_send<'py>(
        slf: &Bound<'py, Self>,
        data: &Bound<'py, PyAny>,
        flags: i32,
        copy: bool,
        track: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (base, core) = AsyncSocket::opened(slf)?;
        if copy && let Ok(bytes) = data.cast_exact::<PyBytes>() {
            let mut message = Message::new();
            buffer::fill_message(&mut message, bytes)?;
            return AsyncSocket::send_frames(slf, core, message, flags, None);
        }
        let (frame, tracker) = base.take(slf.py(), data, copy, track)?;
        let mut message = Message::single(frame);
        label(&mut message, labels_of(data));
        AsyncSocket::send_frames(slf, core, message, flags, tracker)
    }

    fn try_send_labelled<'py>(
        slf: &Bound<'py, Self>,
        data: &Bound<'py, PyAny>,
        flags: i32,
        copy: bool,
        track: bool,
        labels: Option<Box<Labels>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (base, core) = AsyncSocket::opened(slf)?;
        let (frame, tracker) = base.take(slf.py(), data, copy, track)?;
        let mut message = Message::single(frame);
        label(&mut message, labels);
        AsyncSocket::send_frames(slf, core, message, flags, tracker)
    }

    fn try_send_multipart<'py>(
        slf: &Bound<'py, Self>,
        parts: &Bound<'py, PyAny>,
        flags: i32,
        copy: bool,
        track: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (base, core) = AsyncSocket::opened(slf)?;
        let (frames, tracker, labels) = base.take_parts(slf.py(), parts, copy, track)?;
        let mut message = Message::from_vec(frames);
        label(&mut message, labels);
        AsyncSocket::send_frames(slf, core, message, flags, tracker)
    }

    fn try_send_batch<'py>(
        slf: &Bound<'py, Self>,
        messages: &Bound<'py, PyAny>,
        flags: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let (base, core) = AsyncSocket::opened(slf)?;
        let mut outgoing = if is_there(messages) {
            let mut messages = base.take_messages(py, messages)?.into_iter();
            let Some(first) = messages.next() else {
                return AsyncSocket::sent(slf, 0usize.into_pyobject(py)?.into_any(), flags);
            };
            Outgoing::many(first, messages)
        } else {
            Outgoing::Each(Each::new(messages)?)
        };
        if flags & DONTWAIT != 0 && this.counts.senders.load(Ordering::Relaxed) > 0 {
            AsyncSocket::serve_others(slf)?;
        }
        if this.counts.senders.load(Ordering::Relaxed) == 0 {
            match outgoing.push(py, core)? {
                Progress::Done(sent) => {
                    return AsyncSocket::sent(slf, sent.into_bound(py), flags);
                }
                Progress::Paused if flags & DONTWAIT == 0 => {
                    return AsyncSocket::send_next_turn(slf, core, outgoing);
                }
                Progress::Paused | Progress::Waiting => {}
            }
        }
        AsyncSocket::wait_to_send(slf, core, outgoing, flags)
    }
}

#[pymethods]
impl AsyncSocket {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<AsyncSocket> {
        PyClassInitializer::from(Socket::unopened()).add_subclass(AsyncSocket {
            lanes: Mutex::default(),
            counts: Arc::default(),
            quick: AtomicBool::new(false),
        })
    }

    /// The futures that wait to receive, or for POLLIN.
    #[getter]
    fn _recv_futures(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.futures(py, false)
    }

    /// The futures that wait to send, or for POLLOUT.
    #[getter]
    fn _send_futures(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.futures(py, true)
    }

    /// Sets whether immediate results may be returned as `Ready`.
    fn _be_quick(&self, quick: bool) {
        self.quick.store(quick, Ordering::Relaxed);
    }

    #[doc = text!(AsyncSocket::recv)]
    #[pyo3(signature = (flags=0, copy=None, track=None), text_signature = "($self, flags=0, copy=True, track=False)")]
    fn recv<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
        copy: Option<&Bound<'py, PyAny>>,
        track: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (copy, track) = (truth(copy, true)?, truth(track, false)?);
        let form = Form::Part { copy, track };
        let this = slf.get();
        if copy && this.counts.receivers.load(Ordering::Relaxed) == 0 {
            reclaim();
            let core = AsyncSocket::base(slf).core()?;
            if turn::is_over(slf.py()) {
                return AsyncSocket::receive_if(slf, form, flags, None, true);
            }
            if let Some((frame, peer)) = core.next_part() {
                return match bytes(slf.py(), &frame) {
                    Ok(part) => AsyncSocket::received(slf, part, form::part(frame, peer)),
                    Err(error) => {
                        unread_parts(core, vec![frame], peer);
                        AsyncSocket::failed(slf, error)
                    }
                };
            }
            match core.try_recv_with_receipt(false) {
                Attempt::Done((message, receipt)) => {
                    return match bytes(slf.py(), message.head()) {
                        Ok(first) => {
                            let back = match message.len() {
                                1 if message.has_labels() => Back::message(message, receipt),
                                1 => Back::Copied(receipt),
                                _ => form::begin(core, message),
                            };
                            AsyncSocket::received(slf, first, back)
                        }
                        Err(error) => {
                            core.give_back_received(vec![(message, receipt)]);
                            AsyncSocket::failed(slf, error)
                        }
                    };
                }
                Attempt::WouldBlock(()) => {
                    return AsyncSocket::wait_to_receive(slf, core, form, flags, None);
                }
                Attempt::Contended(()) | Attempt::Failed(_) => {}
            }
        }
        AsyncSocket::receive(slf, form, flags, None)
    }

    #[doc = text!(AsyncSocket::recv_multipart)]
    #[pyo3(signature = (flags=0, copy=None, track=None), text_signature = "($self, flags=0, copy=True, track=False)")]
    fn recv_multipart<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
        copy: Option<&Bound<'py, PyAny>>,
        track: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (copy, track) = (truth(copy, true)?, truth(track, false)?);
        AsyncSocket::receive(slf, Form::Whole { copy, track }, flags, None)
    }

    #[doc = text!(AsyncSocket::recv_into)]
    #[pyo3(signature = (buffer, /, *, nbytes=0, flags=0))]
    fn recv_into<'py>(
        slf: &Bound<'py, Self>,
        buffer: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::nbytes)] nbytes: i64,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Err(error) = Target::of(buffer, nbytes) {
            return AsyncSocket::failed(slf, error);
        }
        let buffer = buffer.clone().unbind();
        AsyncSocket::receive(slf, Form::Into { buffer, nbytes }, flags, None)
    }

    #[doc = text!(AsyncSocket::recv_batch)]
    #[pyo3(signature = (max_messages=1024, timeout=None, flags=0, *, multipart=false, copy=true))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn recv_batch<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = arguments::max_messages)] max_messages: i64,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
        #[pyo3(from_py_with = flags::of_recv)] flags: i32,
        #[pyo3(from_py_with = arguments::multipart)] multipart: bool,
        #[pyo3(from_py_with = arguments::copies)] copy: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let max = match usize::try_from(max_messages) {
            Ok(max) if max > 0 => max,
            _ => return Err(PyValueError::new_err("max_messages must be at least 1")),
        };
        let timeout = timeout.map(|timeout| millis(Some(timeout)));
        let items = Items { multipart, copy };
        AsyncSocket::receive(slf, Form::Batch { max, items }, flags, timeout)
    }

    /// Returns the socket itself: `async for` receives messages until the socket is closed.
    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[doc = text!(AsyncSocket::__anext__)]
    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if AsyncSocket::base(slf).is_closed() {
            return Err(pyo3::exceptions::PyStopAsyncIteration::new_err(()));
        }
        AsyncSocket::receive(slf, Form::Each, 0, None)
    }

    #[doc = text!(AsyncSocket::send)]
    #[pyo3(signature = (data, flags=0, copy=None, track=None, routing_id=None, group=None), text_signature = "($self, data, flags=0, copy=True, track=False, routing_id=None, group=None)")]
    #[allow(clippy::too_many_arguments, reason = "the signature is pyzmq's")]
    fn send<'py>(
        slf: &Bound<'py, Self>,
        data: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = flags::of_send)] flags: i32,
        copy: Option<&Bound<'py, PyAny>>,
        track: Option<&Bound<'py, PyAny>>,
        routing_id: Option<&Bound<'py, PyAny>>,
        group: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (copy, track) = (truth(copy, true)?, truth(track, false)?);
        if routing_id.is_some() || group.is_some() {
            return AsyncSocket::opened(slf)
                .and_then(|(_, core)| Labels::given(core, labels_of(data), routing_id, group))
                .and_then(|labels| {
                    AsyncSocket::try_send_labelled(slf, data, flags, copy, track, labels)
                })
                .or_else(|error| AsyncSocket::failed(slf, error));
        }
        AsyncSocket::try_send(slf, data, flags, copy, track)
            .or_else(|error| AsyncSocket::failed(slf, error))
    }

    #[doc = text!(AsyncSocket::send_multipart)]
    #[pyo3(signature = (msg_parts, flags=0, copy=None, track=None), text_signature = "($self, msg_parts, flags=0, copy=True, track=False)")]
    fn send_multipart<'py>(
        slf: &Bound<'py, Self>,
        msg_parts: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = flags::of_send)] flags: i32,
        copy: Option<&Bound<'py, PyAny>>,
        track: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (copy, track) = (truth(copy, true)?, truth(track, false)?);
        AsyncSocket::try_send_multipart(slf, msg_parts, flags, copy, track)
            .or_else(|error| AsyncSocket::failed(slf, error))
    }

    #[doc = text!(AsyncSocket::send_batch)]
    #[pyo3(signature = (messages, flags=0))]
    fn send_batch<'py>(
        slf: &Bound<'py, Self>,
        messages: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = flags::of_send)] flags: i32,
    ) -> PyResult<Bound<'py, PyAny>> {
        AsyncSocket::try_send_batch(slf, messages, flags)
            .or_else(|error| AsyncSocket::failed(slf, error))
    }

    #[doc = text!(AsyncSocket::poll)]
    #[pyo3(signature = (timeout=None, flags=1))]
    fn poll<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
        #[pyo3(from_py_with = arguments::poll_flags)] flags: i16,
    ) -> PyResult<Bound<'py, PyAny>> {
        reclaim();
        let py = slf.py();
        let base = AsyncSocket::base(slf);
        if base.is_closed() {
            return Err(Failure::with(ErrorKind::NotSupported, "this socket is closed").into());
        }
        let core = base.core()?;
        let ready = match py.detach(|| core.readiness()) {
            Ok(ready) => ready.bits() & flags,
            Err(error) => return AsyncSocket::failed(slf, raise(error)),
        };
        let millis = millis(timeout);
        if millis == 0 {
            return AsyncSocket::done_now(slf, ready.into_pyobject(py)?.into_any());
        }
        Lane::poll(&AsyncSocket::lane(slf)?, slf, flags, deadline_in(millis))
    }

    /// Returns a future of the value that `load` makes from the result of `recvd`.
    fn _deserialize<'py>(
        slf: &Bound<'py, Self>,
        recvd: &Bound<'py, PyAny>,
        load: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some((value, taken)) = ready::take(recvd)? {
            return match load.call1((value,)) {
                Ok(value) => ready::wrap_loaded(value, taken),
                Err(error) => AsyncSocket::failed(slf, error),
            };
        }
        let lanes = slf.get().all_lanes(py);
        if !is_done(py, recvd.as_unbound()) && lanes.iter().any(|lane| lane.get().load(recvd, load))
        {
            return Ok(recvd.clone());
        }
        slf.call_method1(intern!(py, "_chain"), (recvd, load))
    }

    /// Cancels the calls that wait, in all loops, and leaves the loops.
    fn _abandon(slf: &Bound<'_, Self>) -> PyResult<()> {
        let lanes = std::mem::take(&mut *slf.get().lanes());
        // A forked child must not touch the lanes of its parent.
        if AsyncSocket::base(slf).core().is_err() {
            return Ok(());
        }
        Lane::abandon_all(slf.py(), lanes)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(lanes) = self.lanes.try_lock() {
            for lane in lanes.iter() {
                visit.call(lane)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let lanes = self
            .lanes
            .try_lock()
            .map(|mut lanes| std::mem::take(&mut *lanes));
        drop(lanes);
    }
}
