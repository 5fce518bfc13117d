//! Closing a socket, and the report of what it could not deliver.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Socket;
use super::core::{Core, State};
use super::entries::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::patterns::DropReason;
use crate::pipe::PipeId;
use crate::port::SocketPort;
use crate::registry::SocketKey;
use crate::signal::Woken;
use crate::sys::clock;
use crate::sys::sync::MutexGuard;
use crate::sys::sync::atomic::Ordering;
use crate::undelivered::{self, Tally, Undelivered, UndeliveredPeer};

/// How long a report waits for connections that have to end at once, because their time is up.
const GRACE: Duration = Duration::from_millis(500);

impl Socket {
    /// Closes the socket for all its handles. Messages that were sent are still delivered for LINGER, or for `linger`
    /// if given (`Some(None)` means forever). The termination of the context waits for that; this call does not. Calls
    /// that are blocked in the socket fail with `NotSocket`.
    pub fn close(&self, linger: Option<Option<Duration>>) {
        self.core().close(linger);
    }

    /// Closes the socket, waits up to `timeout` (`None` = no limit) until its messages are delivered, and returns what
    /// was not delivered, and to whom. The time replaces LINGER: what is left when it is up is given up.
    ///
    /// A message is delivered when the peer's kernel has it (TCP), when the kernel has taken it (other transports between
    /// processes), or when it is in the queue of the other socket (inproc). The report also has what earlier calls of
    /// `disconnect` and `unbind` gave up, but not what was lost with connections before: [`stats`](Self::stats) counts
    /// that. Types that only send subscriptions have nothing to deliver. A later call returns the same report, also
    /// after [`close`](Self::close).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use zeroxide::{Context, SocketType, Wait};
    /// # fn main() -> zeroxide::Result<()> {
    /// # let context = Context::new();
    /// let push = context.socket(SocketType::Push)?;
    /// push.connect("tcp://127.0.0.1:9")?;
    /// push.send("lost", Wait::Forever)?;
    /// let undelivered = push.close_within(Some(Duration::from_millis(10)))?;
    /// assert_eq!(undelivered.messages(), 1);
    /// assert_eq!(undelivered.peers[0].endpoint, "tcp://127.0.0.1:9");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Interrupted` if a signal handler ran: call again with the rest of the time. `Forked`.
    pub fn close_within(&self, timeout: Option<Duration>) -> Result<Undelivered> {
        let deadline = timeout.and_then(|timeout| clock::now().checked_add(timeout));
        self.core().close_by(deadline, None)
    }
}

impl Core {
    pub(super) fn close(&self, linger: Option<Option<Duration>>) {
        if !self.registry.is_own_process() {
            return;
        }
        let begins = self.begin_close();
        if begins && let Some(linger) = linger {
            set_linger(&mut self.lock(), linger);
        }
        if self.closes_later(linger, begins) {
            return;
        }
        if begins || self.is_leaving() {
            self.complete_close();
        }
        let linger = match begins {
            true => self.lock().options.linger,
            false => linger.flatten(),
        };
        if let Some(at) = linger.and_then(|linger| clock::now().checked_add(linger)) {
            self.end_deliveries_by(at);
        }
    }

    /// Connections that were left earlier may have been given more time than the socket has.
    pub(super) fn end_deliveries_by(&self, at: Instant) {
        self.registry.end_deliveries_by(at, self.socket_key());
    }

    /// See [`Socket::close_within`]. If `until` passes before the report is complete, the call fails with `Again`, and
    /// the next one continues.
    pub(super) fn close_by(
        &self,
        deadline: Option<Instant>,
        until: Option<Instant>,
    ) -> Result<Undelivered> {
        if !self.registry.is_own_process() {
            let pid = self.registry.pid();
            return Err(Error::with(
                ErrorKind::Forked,
                format!("this socket belongs to process {pid}"),
            ));
        }
        self.awaited.store(true, Ordering::Release);
        if self.begin_close() {
            let rest = deadline.map(|at| at.saturating_duration_since(clock::now()));
            let rest = match self.spec.lingers {
                true => rest,
                false => Some(Duration::ZERO),
            };
            set_linger(&mut self.lock(), rest);
            self.begin_leaving();
            self.ring_spiller();
        }
        let mut is_limited = false;
        loop {
            let ticket = self.signal.ticket();
            let now = clock::now();
            let has_passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            // From the first look on, because the time may pass at once, while the machine or the program is stopped.
            let end = match has_passed(deadline) {
                true => Some(*self.overdue.get_or_init(|| now) + GRACE),
                false => deadline,
            };
            if self.is_leaving() && self.end_reached(has_passed(deadline)) {
                self.complete_close();
            }
            if !self.is_leaving() {
                if !is_limited && let Some(at) = deadline {
                    self.end_deliveries_by(at);
                    is_limited = true;
                }
                if self.deliveries.load(Ordering::SeqCst) == 0 {
                    return Ok(self.tally().report());
                }
                if has_passed(deadline) && has_passed(end) {
                    return Ok(self.report_early());
                }
            }
            if has_passed(until) {
                return Err(Error::new(ErrorKind::Again));
            }
            let next = if self.is_leaving() { deadline } else { end };
            let next = [next, until].into_iter().flatten().min();
            if self.signal.wait(ticket, next) == Woken::Interrupted {
                return Err(Error::new(ErrorKind::Interrupted));
            }
        }
    }

    /// Keeps what a pipe that is about to be closed will not deliver, if the socket has to end.
    pub(super) fn note_left(&self, state: &mut State, id: PipeId) {
        let is_local = state.origins.get(&id).is_some_and(|origin| origin.local);
        let lingers = state.options.linger != Some(Duration::ZERO);
        let Some((pipe, endpoint)) = state.pipes.get_named(id) else {
            return;
        };
        let waits_for_name = is_local && !pipe.is_connected() && !pipe.is_far_closed();
        let is_left = pipe.settle();
        if !is_left && (!waits_for_name || lingers) {
            return;
        }
        // A request that another peer has got meanwhile is still in the queue, but is not lost.
        let messages = match is_left {
            true => pipe.lost_unread(),
            false => pipe.queued_out(),
        };
        let peer = pipe.peer();
        let (greetings, greeting_bytes) = pipe.unread_greetings();
        let messages = messages.saturating_sub(greetings);
        let bytes = pipe.queued_bytes_out().saturating_sub(greeting_bytes);
        self.note_given_up(&UndeliveredPeer::new(
            endpoint,
            peer.as_deref(),
            messages,
            bytes,
        ));
    }

    /// Keeps what was given up since the socket began to close its pipes.
    pub(super) fn note_given_up(&self, left: &UndeliveredPeer) {
        // Subscriptions are not worth a report.
        if self.spec.lingers {
            self.tally().add(left);
            self.registry.note_given_up(left);
        }
    }

    /// Keeps what a connection lost with its peer, for the end of the program, unless a call reports it.
    pub(super) fn note_lost(&self, left: &UndeliveredPeer) {
        if self.spec.lingers && self.is_closed() && !self.awaited.load(Ordering::Acquire) {
            self.registry.note_lost(left);
        }
    }

    /// Calls on the socket fail from now on, but its connections and its messages stay.
    pub(super) fn begin_leaving(&self) {
        self.leaving.store(true, Ordering::Release);
        self.signal.wake();
        self.signal.raise();
    }

    pub(super) fn complete_close(&self) {
        let guard = {
            let mut state = self.lock();
            let Some(guard) = state.guard.take() else {
                return;
            };
            self.process(&mut state);
            self.end_spill(&mut state);
            self.leave_all(&mut state);
            if let Some(left) = state.pattern.abandon() {
                self.give_up(DropReason::Lingered, left);
            }
            state.returned.clear();
            // The remaining pipes do not belong to an endpoint, such as a pipe of a context that has been shut down.
            for id in state.pipes.ids() {
                let linger = state.options.linger;
                if let Some(pipe) = state.pipes.get(id) {
                    pipe.set_linger(linger);
                }
                self.detach_now(&mut state, id);
            }
            self.level(&mut state);
            self.end_alarm(&mut state);
            guard
        };
        // After the listeners, so that a monitor gets the events of their end.
        self.end_monitors();
        self.parts().clear();
        if let Some(key) = self.key.get() {
            self.registry.remove_socket(*key);
        }
        self.leaving.store(false, Ordering::Release);
        self.signal.wake();
        self.signal.raise();
        drop(guard);
    }

    /// Ends the binds and connects that need not wait for a name to be bound. Returns true if no other is left, or if it
    /// `is_late`.
    fn end_reached(&self, is_late: bool) -> bool {
        let mut state = self.lock();
        self.process(&mut state);
        if is_late {
            set_linger(&mut state, Some(Duration::ZERO));
            return true;
        }
        if state
            .pipes
            .overflow()
            .is_some_and(|some| some.fleeting() > 0)
        {
            return false;
        }
        let mut waiting = HashSet::new();
        let State { pipes, origins, .. } = &*state;
        pipes.for_each(|id, pipe, _, _| {
            if let Some(origin) = origins.get(&id)
                && origin.local
                && !pipe.is_connected()
                && !pipe.is_far_closed()
                && pipe.unread_out().0 > 0
                && self.spec.lingers
            {
                waiting.insert(origin.source);
            }
            ControlFlow::Continue(())
        });
        let entries = &mut state.endpoints.entries;
        let can_leave = |entry: &mut Entry| !waiting.contains(&entry.source);
        let leaving: Vec<_> = entries.extract_if(.., can_leave).collect();
        for entry in leaving {
            self.release_entry(&mut state, entry);
        }
        waiting.is_empty()
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// The report while connections have not ended although their time is up.
    fn report_early(&self) -> Undelivered {
        undelivered::together(
            || self.tally().report(),
            || self.registry.undelivered(self.socket_key()),
        )
    }

    fn socket_key(&self) -> Option<SocketKey> {
        let port: Arc<dyn SocketPort> = self.arc()?;
        Some(SocketKey::of(&port))
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn set_linger(state: &mut State, linger: Option<Duration>) {
    Arc::make_mut(&mut state.options).linger = linger;
}
