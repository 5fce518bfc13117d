//! The queue of the calls in one event loop that wait for one socket.
//!
//! A lane belongs to the thread that its loop runs in. Other threads may only close it. Code that may run Python code
//! is never called under the lane's lock, because a callback may make the next call.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyStopAsyncIteration};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, intern};
use zeroxide::binding::{Direction, SocketInternals};
use zeroxide::{Events, Socket as CoreSocket, Watcher};

use super::back::Back;
use super::form::{Form, Outgoing, Patience, Progress};
use super::queues::{Counts, Poll, Queues, Receiver, Sender};
use super::ready::running_loop;
use super::settling::{Outcome, Raiser, Undo, cancel, fail, is_abandoned, is_done, succeed};
use super::states::{Watch, WatchEvent, Work, WorkEvent};
use crate::blocking::Limit;
use crate::error::{not_now, raise};

#[doc = text!(Lane)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Lane {
    core: CoreSocket,
    watcher: Watcher,
    event_loop: Py<PyAny>,
    /// The arguments for creating a future.
    arguments: Py<PyDict>,
    /// The classes of futures for messages, and of all others.
    receiving: Py<PyAny>,
    other: Py<PyAny>,
    /// Whether futures for messages can give them back. Those of a program's own class cannot.
    gives_back: bool,
    counts: Arc<Counts>,
    queues: Mutex<Queues>,
}

/// When a call that has joined is first served.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// At once, if possible.
    Now,
    /// After the loop has turned.
    NextTurn,
}

const SWEEP_MIN: usize = 64;

/// How much too early a timer of the loop may run.
const GRAIN: Duration = Duration::from_millis(1);

impl Lane {
    pub(super) fn new(
        py: Python<'_>,
        core: &CoreSocket,
        event_loop: Py<PyAny>,
        receiving: Py<PyAny>,
        other: Py<PyAny>,
        gives_back: bool,
        counts: Arc<Counts>,
    ) -> PyResult<Lane> {
        let arguments = PyDict::new(py);
        arguments.set_item("loop", &event_loop)?;
        Ok(Lane {
            core: core.clone(),
            watcher: Watcher::new(core).map_err(raise)?,
            event_loop,
            arguments: arguments.unbind(),
            receiving,
            other,
            gives_back,
            counts,
            queues: Mutex::default(),
        })
    }

    /// Returns the futures that wait to receive or to send. A poll counts by the events it waits for.
    pub(super) fn futures(&self, py: Python<'_>, sending: bool) -> Vec<Py<PyAny>> {
        let queues = self.lock();
        let polled = if sending {
            Events::WRITABLE
        } else {
            Events::READABLE
        };
        let receivers = queues.receivers.iter().map(|call| &call.future);
        let senders = queues.senders.iter().map(|call| &call.future);
        let polls = queues
            .polls
            .iter()
            .filter(|call| call.mask & polled.bits() != 0);
        let chosen: Vec<_> = if sending {
            senders.collect()
        } else {
            receivers.collect()
        };
        chosen
            .into_iter()
            .chain(polls.map(|call| &call.future))
            .map(|future| future.clone_ref(py))
            .collect()
    }

    pub(super) fn is_of(&self, event_loop: &Bound<'_, PyAny>) -> bool {
        self.event_loop.is(event_loop)
    }

    pub(super) fn is_closed(&self, py: Python<'_>) -> bool {
        let closed = self.event_loop.call_method0(py, intern!(py, "is_closed"));
        closed.is_ok_and(|closed| closed.is_truthy(py).unwrap_or(false))
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn future<'py>(
        slf: &Bound<'py, Lane>,
        class: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let arguments = slf.get().arguments.bind(py);
        let future = class.call(PyTuple::empty(py), Some(arguments))?;
        // Futures of this package report to the lane that they are cancelled. Those of a program's own class need not
        // have room for the attribute.
        let _ = future.setattr(intern!(py, "_lane"), slf);
        Ok(future)
    }

    // ---- joining ----------------------------------------------------------------------------------------------------

    /// Waits for a message. The future may already be done when this returns.
    pub(super) fn receive<'py>(
        slf: &Bound<'py, Lane>,
        holder: &Bound<'py, PyAny>,
        form: Form,
        limit: Option<Limit>,
        start: Start,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lane = slf.get();
        let future = Lane::future(slf, lane.receiving.bind(slf.py()))?;
        lane.lock().receivers.push_back(Receiver {
            future: future.clone().unbind(),
            form,
            loads: Vec::new(),
            limit,
        });
        lane.counts.receivers.fetch_add(1, Ordering::Relaxed);
        Lane::wait(slf, holder, limit.map(|limit| limit.at))?;
        Lane::start(slf, start)?;
        Ok(future)
    }

    fn start(slf: &Bound<'_, Lane>, start: Start) -> PyResult<()> {
        match start {
            Start::Now => Lane::serve_aside(slf),
            Start::NextTurn => Lane::serve_next_turn(slf),
        }
    }

    /// Waits until all messages are sent.
    pub(super) fn send<'py>(
        slf: &Bound<'py, Lane>,
        holder: &Bound<'py, PyAny>,
        outgoing: Outgoing,
        limit: Option<Limit>,
        start: Start,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lane = slf.get();
        let future = Lane::future(slf, lane.other.bind(slf.py()))?;
        lane.lock().senders.push_back(Sender {
            future: future.clone().unbind(),
            outgoing,
            limit,
        });
        lane.counts.senders.fetch_add(1, Ordering::Relaxed);
        Lane::wait(slf, holder, limit.map(|limit| limit.at))?;
        Lane::start(slf, start)?;
        Ok(future)
    }

    /// Waits for one of the events in `mask`. The loop turns before the future is done, even if the socket is ready.
    pub(super) fn poll<'py>(
        slf: &Bound<'py, Lane>,
        holder: &Bound<'py, PyAny>,
        mask: i16,
        deadline: Option<Instant>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lane = slf.get();
        let future = Lane::future(slf, lane.other.bind(slf.py()))?;
        lane.lock().polls.push(Poll {
            future: future.clone().unbind(),
            mask,
            deadline,
        });
        Lane::wait(slf, holder, deadline)?;
        // The socket is asked last, because the lane is notified of all events from now on.
        let core = &lane.core;
        let ready = slf.py().detach(|| core.readiness());
        if ready.map_or(true, |ready| ready.bits() & mask != 0) {
            Lane::serve_next_turn(slf)?;
        }
        Ok(future)
    }

    /// Makes `load` turn the value that `future` receives into its result, if the call still waits here.
    pub(super) fn load(&self, future: &Bound<'_, PyAny>, load: &Bound<'_, PyAny>) -> bool {
        let mut queues = self.lock();
        // The call is probably among the newest.
        let mut newest = queues.receivers.iter_mut().rev();
        match newest.find(|call| call.future.is(future)) {
            Some(call) => {
                call.loads.push(load.clone().unbind());
                true
            }
            None => false,
        }
    }

    fn wait(
        slf: &Bound<'_, Lane>,
        holder: &Bound<'_, PyAny>,
        deadline: Option<Instant>,
    ) -> PyResult<()> {
        let (py, lane) = (slf.py(), slf.get());
        let (join, sweep) = {
            let mut queues = lane.lock();
            let join = matches!(queues.watch, Watch::Apart);
            if !matches!(queues.watch, Watch::Waiting(_)) {
                queues.change_watch(WatchEvent::Wait(holder.clone().unbind()));
            }
            let is_long = queues.len() > queues.sweep_at.max(SWEEP_MIN);
            (join, queues.work == Work::Idle && is_long)
        };
        if sweep {
            lane.sweep(py);
        }
        if join {
            let on_ready = slf.getattr(intern!(py, "_on_ready"))?;
            let event_loop = lane.event_loop.bind(py);
            let joined = event_loop.call_method1("add_reader", (lane.watcher.fd(), on_ready));
            if let Err(error) = joined {
                let holder = lane.lock().change_watch(WatchEvent::Leave);
                lane.forsake(py);
                drop(holder);
                return Err(error);
            }
        }
        if let Some(deadline) = deadline {
            Lane::wake_at(slf, deadline)?;
        }
        lane.watcher.watch();
        Ok(())
    }

    /// Removes calls that were cancelled.
    fn sweep(&self, py: Python<'_>) {
        let (receivers, senders, polls) = {
            let mut queues = self.lock();
            queues.cancelled = 0;
            (
                mem::take(&mut queues.receivers),
                mem::take(&mut queues.senders),
                mem::take(&mut queues.polls),
            )
        };
        let (had_receivers, had_senders) = (receivers.len(), senders.len());
        let (mut receivers, gone_receivers): (VecDeque<_>, VecDeque<_>) = receivers
            .into_iter()
            .partition(|call| !is_done(py, &call.future));
        let (mut senders, gone_senders): (VecDeque<_>, VecDeque<_>) = senders
            .into_iter()
            .partition(|call| !is_done(py, &call.future));
        let (mut polls, gone_polls): (Vec<_>, Vec<_>) = polls
            .into_iter()
            .partition(|call| !is_done(py, &call.future));
        self.count_off(had_receivers - receivers.len(), had_senders - senders.len());
        {
            let mut queues = self.lock();
            receivers.append(&mut queues.receivers);
            senders.append(&mut queues.senders);
            polls.append(&mut queues.polls);
            queues.receivers = receivers;
            queues.senders = senders;
            queues.polls = polls;
            queues.sweep_at = queues.len() * 2;
        }
        // These are dropped without the lock.
        drop((gone_receivers, gone_senders, gone_polls));
    }

    /// Stops watching if no call waits any more.
    fn rest_if_empty(&self) {
        let holder = {
            let mut queues = self.lock();
            if queues.len() > 0 {
                return;
            }
            queues.cancelled = 0;
            queues.change_watch(WatchEvent::Rest)
        };
        self.watcher.rest();
        // The holder is dropped without the lock, because it may be the last reference to the socket.
        drop(holder);
    }

    fn count_off(&self, receivers: usize, senders: usize) {
        self.counts
            .receivers
            .fetch_sub(receivers, Ordering::Relaxed);
        self.counts.senders.fetch_sub(senders, Ordering::Relaxed);
    }

    // ---- serving ----------------------------------------------------------------------------------------------------

    /// Serves the calls that wait, as far as possible.
    pub(super) fn serve(slf: &Bound<'_, Lane>) -> PyResult<()> {
        let (py, lane) = (slf.py(), slf.get());
        {
            let mut queues = lane.lock();
            let before = queues.work;
            queues.work = before.next(WorkEvent::Serve);
            if before != Work::Idle {
                // A callback of the work in progress has called this.
                return Ok(());
            }
        }
        let open = loop {
            let open = lane.serve_all(py);
            let mut queues = lane.lock();
            if !matches!(open, Ok(true)) || queues.work != Work::Again {
                break open;
            }
            queues.work = queues.work.next(WorkEvent::Repeat);
        };
        let (left, paused) = {
            let mut queues = lane.lock();
            let paused = queues.work == Work::Paused;
            queues.work = queues.work.next(WorkEvent::Stop);
            (queues.len() > 0, paused)
        };
        lane.rest_if_empty();
        if paused && matches!(open, Ok(true)) {
            return Lane::serve_next_turn(slf);
        }
        match open {
            Ok(true) => Ok(()),
            Ok(false) => {
                lane.forsake(py);
                Ok(())
            }
            Err(error) => {
                // The error is for the code that runs the loop. The other calls must still be served, however the error
                // is handled.
                if left && !lane.is_closed(py) {
                    let on_ready = slf.getattr(intern!(py, "_on_ready"))?;
                    let call_soon = intern!(py, "call_soon");
                    lane.event_loop.call_method1(py, call_soon, (on_ready,))?;
                }
                Err(error)
            }
        }
    }

    /// Has the loop serve the calls that wait after its next turn.
    fn serve_next_turn(slf: &Bound<'_, Lane>) -> PyResult<()> {
        let (py, lane) = (slf.py(), slf.get());
        if mem::replace(&mut lane.lock().called, true) {
            return Ok(());
        }
        let on_turn = slf.getattr(intern!(py, "_on_turn"))?;
        let event_loop = lane.event_loop.bind(py);
        let called = event_loop.call_method1(intern!(py, "call_soon"), (on_turn,));
        if called.is_err() {
            lane.lock().called = false;
        }
        called.map(drop)
    }

    /// Like [`serve`](Self::serve), for a caller that an error does not concern: the loop raises it.
    pub(super) fn serve_aside(slf: &Bound<'_, Lane>) -> PyResult<()> {
        let Err(error) = Lane::serve(slf) else {
            return Ok(());
        };
        let (py, lane) = (slf.py(), slf.get());
        let raiser = Bound::new(py, Raiser::new(error))?;
        let given = lane
            .event_loop
            .call_method1(py, intern!(py, "call_soon"), (&raiser,));
        if given.is_err()
            && let Some(error) = raiser.get().take()
        {
            // The loop is closed, and will not run again.
            error.write_unraisable(py, Some(slf));
        }
        Ok(())
    }

    /// Serves all calls. Returns false when the socket is closed.
    fn serve_all(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.serve_receivers(py)? && self.serve_senders(py)? && self.serve_polls(py)?)
    }

    fn serve_receivers(&self, py: Python<'_>) -> PyResult<bool> {
        loop {
            let Some(call) = self.lock().receivers.pop_front() else {
                return Ok(true);
            };
            if is_done(py, &call.future) || is_abandoned(py, &call.future) {
                self.count_off(1, 0);
                continue;
            }
            match call.form.take(py, &self.core, Patience::Some) {
                Ok(None) => {
                    self.lock().receivers.push_front(call);
                    return Ok(true);
                }
                Ok(Some((value, back))) => {
                    self.count_off(1, 0);
                    self.deliver(py, call, value, back)?;
                }
                Err(error) if self.core.is_closed() => {
                    self.lock().receivers.push_front(call);
                    drop(error);
                    return Ok(false);
                }
                Err(error) => {
                    self.count_off(1, 0);
                    // A message that cannot be given to this call is left for the next one.
                    fail(py, &call.future, error)?;
                }
            }
        }
    }

    fn deliver(
        &self,
        py: Python<'_>,
        call: Receiver,
        value: Bound<'_, PyAny>,
        back: Back,
    ) -> PyResult<()> {
        let original = match call.loads.is_empty() {
            true => value.clone(),
            false => back.original(&value),
        };
        let undo = Bound::new(py, Undo::new(&self.core, back, original))?;
        let mut value = value;
        for load in &call.loads {
            match load.bind(py).call1((value,)) {
                Ok(loaded) => value = loaded,
                Err(error) => {
                    undo.get().keep();
                    return fail(py, &call.future, error);
                }
            }
        }
        let future = call.future.bind(py);
        if self.gives_back {
            future.setattr(intern!(py, "_undo"), &undo)?;
        }
        if let Err(error) = future.call_method1(intern!(py, "set_result"), (value,)) {
            undo.get().give_back(py);
            return Err(error);
        }
        if !self.gives_back {
            undo.get().keep();
        }
        Ok(())
    }

    fn serve_senders(&self, py: Python<'_>) -> PyResult<bool> {
        loop {
            let Some(mut call) = self.lock().senders.pop_front() else {
                return Ok(true);
            };
            if is_done(py, &call.future) {
                self.count_off(0, 1);
                continue;
            }
            match call.outgoing.push(py, &self.core) {
                Ok(Progress::Waiting) => {
                    self.lock().senders.push_front(call);
                    return Ok(true);
                }
                Ok(Progress::Paused) => {
                    let mut queues = self.lock();
                    queues.senders.push_front(call);
                    queues.work = queues.work.next(WorkEvent::Pause);
                    return Ok(true);
                }
                Ok(Progress::Done(result)) => {
                    self.count_off(0, 1);
                    // The iterable may have run any code, which may have cancelled the future.
                    if !is_done(py, &call.future) {
                        succeed(py, &call.future, result.into_bound(py))?;
                    }
                }
                Err(error) if self.core.is_closed() => {
                    self.lock().senders.push_front(call);
                    drop(error);
                    return Ok(false);
                }
                Err(error) => {
                    self.count_off(0, 1);
                    fail(py, &call.future, error)?;
                }
            }
        }
    }

    fn serve_polls(&self, py: Python<'_>) -> PyResult<bool> {
        if self.lock().polls.is_empty() {
            return Ok(true);
        }
        let ready = match py.detach(|| self.core.readiness()) {
            Ok(ready) => ready.bits(),
            Err(_) if self.core.is_closed() => return Ok(false),
            Err(error) => {
                let polls = mem::take(&mut self.lock().polls);
                let mut outcome = Outcome::default();
                for call in polls {
                    if !is_done(py, &call.future) {
                        outcome.note(py, fail(py, &call.future, raise(error.clone())));
                    }
                }
                return outcome.result().map(|()| true);
            }
        };
        let polls = mem::take(&mut self.lock().polls);
        let (hit, mut missed): (Vec<_>, Vec<_>) =
            polls.into_iter().partition(|call| call.mask & ready != 0);
        {
            let mut queues = self.lock();
            missed.append(&mut queues.polls);
            queues.polls = missed;
        }
        let mut outcome = Outcome::default();
        for call in hit {
            if !is_done(py, &call.future) {
                let Ok(events) = (call.mask & ready).into_pyobject(py);
                outcome.note(py, succeed(py, &call.future, events.into_any()));
            }
        }
        outcome.result().map(|()| true)
    }

    // ---- time -------------------------------------------------------------------------------------------------------

    /// Has the loop check for expired calls at `deadline`, or earlier.
    fn wake_at(slf: &Bound<'_, Lane>, deadline: Instant) -> PyResult<()> {
        let (py, lane) = (slf.py(), slf.get());
        let late = {
            let mut queues = lane.lock();
            match &queues.timer {
                Some((at, _)) if *at <= deadline => return Ok(()),
                _ => queues.timer.take(),
            }
        };
        if let Some((_, timer)) = late {
            timer.call_method0(py, "cancel")?;
        }
        let delay = deadline.saturating_duration_since(Instant::now());
        let on_timer = slf.getattr(intern!(py, "_on_timer"))?;
        let timer = lane.event_loop.call_method1(
            py,
            intern!(py, "call_later"),
            (delay.as_secs_f64(), on_timer),
        )?;
        lane.lock().timer = Some((deadline, timer));
        Ok(())
    }

    /// Removes the calls whose time has expired, and returns them.
    fn expired(&self) -> (VecDeque<Receiver>, VecDeque<Sender>, Vec<Poll>) {
        let now = Instant::now() + GRAIN;
        let over = |deadline: Option<Instant>| deadline.is_some_and(|at| at <= now);
        let mut queues = self.lock();
        let (receivers, waiting) = mem::take(&mut queues.receivers)
            .into_iter()
            .partition(|call| over(call.limit.map(|limit| limit.at)));
        queues.receivers = waiting;
        let (senders, waiting) = mem::take(&mut queues.senders)
            .into_iter()
            .partition(|call| over(call.limit.map(|limit| limit.at)));
        queues.senders = waiting;
        let (polls, waiting) = mem::take(&mut queues.polls)
            .into_iter()
            .partition(|call| over(call.deadline));
        queues.polls = waiting;
        (receivers, senders, polls)
    }

    // ---- the end ----------------------------------------------------------------------------------------------------

    /// Cancels the calls that wait in these lanes, and leaves their loops. Any thread may call this. The socket does not
    /// have these lanes any more, so an error in one must not keep the others.
    pub(super) fn abandon_all(py: Python<'_>, lanes: Vec<Py<Lane>>) -> PyResult<()> {
        let mut outcome = Outcome::default();
        for lane in lanes {
            outcome.note(py, Lane::abandon(lane.bind(py)));
        }
        outcome.result()
    }

    fn abandon(slf: &Bound<'_, Lane>) -> PyResult<()> {
        let (py, lane) = (slf.py(), slf.get());
        let event_loop = lane.event_loop.bind(py);
        let elsewhere = !lane.is_closed(py)
            && event_loop.call_method0("is_running")?.is_truthy()?
            && !running_loop(py)?.is(event_loop);
        if !elsewhere {
            lane.forsake(py);
            return Ok(());
        }
        let forsake = slf.getattr("_forsake")?;
        match event_loop.call_method1("call_soon_threadsafe", (forsake,)) {
            // The loop was closed just now.
            Err(error) if error.is_instance_of::<PyRuntimeError>(py) => Ok(()),
            other => other.map(drop),
        }
    }

    fn forsake(&self, py: Python<'_>) {
        let (receivers, senders, polls, timer, joined, holder) = {
            let mut queues = self.lock();
            (
                mem::take(&mut queues.receivers),
                mem::take(&mut queues.senders),
                mem::take(&mut queues.polls),
                queues.timer.take(),
                !matches!(queues.watch, Watch::Apart),
                queues.change_watch(WatchEvent::Leave),
            )
        };
        self.count_off(receivers.len(), senders.len());
        self.watcher.rest();
        // A loop that is being closed may refuse. Then there is no code to report the error to.
        if joined && !self.is_closed(py) {
            let event_loop = self.event_loop.bind(py);
            let _ = event_loop.call_method1("remove_reader", (self.watcher.fd(),));
        }
        if let Some((_, timer)) = timer {
            let _ = timer.call_method0(py, "cancel");
        }
        for call in receivers {
            if matches!(call.form, Form::Each) {
                let _ = fail(py, &call.future, PyStopAsyncIteration::new_err(()));
            } else {
                cancel(py, &call.future);
            }
        }
        for call in senders {
            cancel(py, &call.future);
        }
        for call in polls {
            cancel(py, &call.future);
        }
        drop(holder);
    }
}

#[pymethods]
impl Lane {
    /// Called by the loop after something has happened to the socket.
    fn _on_ready(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().watcher.clear();
        Lane::serve(slf)
    }

    /// Called by the loop after it has turned.
    fn _on_turn(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().lock().called = false;
        Lane::serve(slf)
    }

    /// Called by the loop when the time of some calls may have expired.
    fn _on_timer(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, lane) = (slf.py(), slf.get());
        lane.lock().timer = None;
        let (receivers, senders, polls) = lane.expired();
        lane.count_off(receivers.len(), senders.len());
        let again = |limit: Option<Limit>, direction| match limit {
            Some(limit) => limit.is_over(py, &lane.core, direction),
            None => not_now(py, direction),
        };
        // These calls are in no queue any more, so an error of one must not keep the others from ending.
        let mut outcome = Outcome::default();
        for call in receivers {
            if !is_done(py, &call.future) {
                let over = again(call.limit, Direction::Recv);
                outcome.note(py, fail(py, &call.future, over));
            }
        }
        for call in senders {
            if is_done(py, &call.future) {
                continue;
            }
            let over = || again(call.limit, Direction::Send);
            let ended = match call.outgoing.give_up(py, &lane.core, over) {
                Ok(sent) => succeed(py, &call.future, sent.into_bound(py)),
                Err(error) => fail(py, &call.future, error),
            };
            outcome.note(py, ended);
        }
        for call in polls {
            if !is_done(py, &call.future) {
                let Ok(none) = 0i16.into_pyobject(py);
                outcome.note(py, succeed(py, &call.future, none.into_any()));
            }
        }
        let next = lane.lock().next_deadline();
        if let Some(next) = next {
            outcome.note(py, Lane::wake_at(slf, next));
        }
        outcome.note(py, Lane::serve(slf));
        outcome.result()
    }

    /// Called when a call was cancelled. At most half of the entries in the queues may be cancelled calls.
    fn _on_cancel(&self, py: Python<'_>) {
        let sweep = {
            let mut queues = self.lock();
            queues.cancelled += 1;
            // The thread already serving the queues will find the call.
            queues.work == Work::Idle && queues.cancelled * 2 >= queues.len()
        };
        if sweep {
            self.sweep(py);
            self.rest_if_empty();
        }
    }

    /// Called by the loop after the socket was closed in another thread.
    #[pyo3(name = "_forsake")]
    fn forsake_here(&self, py: Python<'_>) {
        self.forsake(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        visit.call(&self.arguments)?;
        visit.call(&self.receiving)?;
        visit.call(&self.other)?;
        // If the lock is held, the lane is in use, and the objects that it holds must not look like garbage.
        let Ok(queues) = self.queues.try_lock() else {
            return Ok(());
        };
        for call in &queues.receivers {
            visit.call(&call.future)?;
            for load in &call.loads {
                visit.call(load)?;
            }
        }
        for call in &queues.senders {
            visit.call(&call.future)?;
            if let Some(iterable) = call.outgoing.iterable() {
                visit.call(iterable)?;
            }
        }
        for call in &queues.polls {
            visit.call(&call.future)?;
        }
        if let Watch::Waiting(holder) = &queues.watch {
            visit.call(holder)?;
        }
        if let Some((_, timer)) = &queues.timer {
            visit.call(timer)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let garbage = self.queues.try_lock().map(|mut queues| {
            (
                mem::take(&mut queues.receivers),
                mem::take(&mut queues.senders),
                mem::take(&mut queues.polls),
                queues.change_watch(WatchEvent::Rest),
                queues.timer.take(),
            )
        });
        drop(garbage);
    }
}
