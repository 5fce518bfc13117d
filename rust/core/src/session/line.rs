//! The thread that waits for messages reads them off the wire itself: a message then costs it a wait for the descriptor,
//! and no hand-off from the I/O thread, which sleeps on. What is not reading is left to the I/O thread.
//!
//! Meanwhile the descriptor is *lent*: the I/O thread hears of its end, and of nothing else. Where one short wait follows the other it stays
//! lent in between: an answer may come before the thread that asked gets to wait for it, and the I/O thread would only be
//! in its way. A guard, a timer of the I/O thread's, ends that when no wait has come for [`GUARD`], or for up to
//! [`GUARD_MAX`] where the connection has been lent for longer than that: each look takes a core away from somebody, which
//! may be a thread that has its answer to give.

use std::os::fd::AsRawFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::TryLockError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use zeroxide_proto::error::CloseReason;

use super::traffic::{Input, READ_BUDGET, READ_ONCE};
use super::{Connection, Link, Session, State};
use crate::io_thread::Interest;
use crate::pipe::{Line, Loan, Look};
use crate::reactor::Token;

/// How long nobody may have waited for a lent connection, at first; twice that after each look of the guard that found it
/// used.
const GUARD: Duration = Duration::from_millis(1);
const GUARD_MAX: Duration = Duration::from_millis(16);

/// Who reads from a connection.
#[derive(Default)]
pub(super) struct Lease {
    /// The I/O thread watches for the descriptor's end only.
    lent: bool,
    /// The loan of the thread that waits for it instead.
    waiting: Option<u64>,
    /// One has waited since the guard last looked.
    used: bool,
    /// When the guard looks.
    guard: Option<Instant>,
    /// How long it looked away before.
    away: Duration,
    /// The I/O thread is not told of room to write.
    deaf: bool,
}

impl Lease {
    /// When the guard looks.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.guard
    }
}

impl Line for Session {
    fn take_over(&self) -> Option<Loan> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            // Nobody may wait elsewhere for what nobody watches.
            Err(TryLockError::WouldBlock) if self.lent.load(Ordering::Relaxed) => self.lock(),
            Err(_) => return None,
        };
        let State {
            token: Some(token),
            link: Link::Up(up),
            closing,
            loans,
            ..
        } = &mut *state
        else {
            return None;
        };
        let token = *token;
        if up.lease.waiting.is_some() {
            return None;
        }
        let quiet = closing.is_none()
            && !self.is_revoked()
            && up.engine.is_ready()
            && up.engine.wants_input()
            && !up.engine.has_transmit()
            && up.writable
            && !up.readable
            && !up.hung_up
            && up.ended.is_none();
        if !quiet {
            self.end_lease(up, token);
            return None;
        }
        if !up.lease.lent && !self.io.watch(token, up.stream.fd(), Interest::HangUp) {
            return None;
        }
        self.lent.store(true, Ordering::Relaxed);
        *loans += 1;
        up.lease = Lease {
            lent: true,
            waiting: Some(*loans),
            used: true,
            deaf: true,
            ..up.lease
        };
        Some(Loan {
            fd: up.stream.fd().as_raw_fd(),
            number: *loans,
        })
    }

    fn look(&self, loan: Loan, hung_up: bool) -> Look {
        let mut state = self.lock();
        let look = self
            .contain(&mut state, |state| self.look_at(state, loan, hung_up))
            .unwrap_or(Look::Elsewhere);
        drop(state);
        if look == Look::Elsewhere {
            self.wake();
        }
        look
    }

    fn give_back(&self, loan: Loan, soon: bool) {
        let mut state = self.lock();
        let State { token, link, .. } = &mut *state;
        let (Some(token), Link::Up(up)) = (*token, link) else {
            return;
        };
        if up.lease.waiting.take_if(|it| *it == loan.number).is_none() {
            return;
        }
        if !soon {
            return self.end_lease(up, token);
        }
        if up.lease.lent && up.lease.guard.is_none() {
            up.lease.away = GUARD;
            up.lease.guard = Some(Instant::now() + GUARD);
            drop(state);
            self.wake();
        }
    }

    fn release(&self) {
        if !self.lent.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.lock();
        let State { token, link, .. } = &mut *state;
        if let (Some(token), Link::Up(up)) = (*token, link)
            && up.lease.waiting.is_none()
        {
            self.end_lease(up, token);
        }
    }

    fn take_in(&self) -> bool {
        if !self.lent.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.lock();
        match &state.link {
            Link::Up(up) if up.lease.lent && up.lease.waiting.is_none() => {}
            _ => return false,
        }
        let now = Instant::now();
        self.contain(&mut state, |state| self.read_up(state, now));
        let State { token, link, .. } = &mut *state;
        if let (Some(token), Link::Up(up)) = (*token, link) {
            self.end_lease(up, token);
        }
        drop(state);
        // The rest of what has come of it is the I/O thread's.
        self.wake();
        true
    }
}

impl Session {
    /// Ends a lease that nobody uses. Runs in the I/O thread only.
    pub(super) fn check_lease(&self, state: &mut State, now: Instant) {
        let closing = state.closing.is_some();
        let (Some(token), Link::Up(up)) = (state.token, &mut state.link) else {
            return;
        };
        let lease = &mut up.lease;
        if closing && lease.waiting.is_none() {
            return self.end_lease(up, token);
        }
        if lease.guard.is_none_or(|at| at > now) {
            return;
        }
        if std::mem::take(&mut lease.used) {
            lease.away = (lease.away * 2).min(GUARD_MAX);
            lease.guard = Some(now + lease.away);
        } else if lease.waiting.is_some() {
            // Longer than a guard is worth.
            lease.guard = None;
        } else {
            self.end_lease(up, token);
        }
    }

    /// Before a lent connection is judged by what it has not said: what has come in counts, whoever was to read it.
    pub(super) fn catch_up(&self, state: &mut State, now: Instant) {
        let Link::Up(up) = &state.link else {
            return;
        };
        let is_due = up.engine.poll_timeout().is_some_and(|at| at <= now);
        if is_due && up.lease.lent {
            self.read_up(state, now);
        }
    }

    /// Reads what has come in.
    fn read_up(&self, state: &mut State, now: Instant) {
        let Link::Up(up) = &mut state.link else {
            return;
        };
        if up.ended.is_some() {
            return;
        }
        up.readable = true;
        if let Input::Closed(reason) = self.input(state, now, READ_BUDGET)
            && let Link::Up(up) = &mut state.link
        {
            up.ended = Some(reason);
        }
    }

    /// Writing found no room: the I/O thread is to be told when there is some.
    pub(super) fn heed_room(&self, up: &mut Connection, token: Option<Token>) {
        if up.lease.deaf
            && let Some(token) = token
        {
            self.io.watch(token, up.stream.fd(), Interest::Both);
            (up.lease.deaf, up.lease.lent) = (false, false);
            self.lent.store(false, Ordering::Relaxed);
        }
    }

    /// Does `work` in a thread of the application's. A panic in there ends the connection, and not the thread: that is a
    /// bug, but none of the caller's, and whoever waits must not wait for a connection that nobody reads from any more.
    pub(super) fn contain<T>(
        &self,
        state: &mut State,
        work: impl FnOnce(&mut State) -> T,
    ) -> Option<T> {
        // What it left half-made goes with the connection, and the I/O thread sees to that.
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(state)));
        if result.is_err() {
            if let Link::Up(up) = &mut state.link {
                up.ended = Some(CloseReason::Internal);
            }
            self.wake();
        }
        result.ok()
    }

    /// The I/O thread watches the descriptor again, and is told of what is there already.
    fn end_lease(&self, up: &mut Connection, token: Token) {
        up.lease.guard = None;
        if std::mem::take(&mut up.lease.lent) {
            self.lent.store(false, Ordering::Relaxed);
            self.io.watch(token, up.stream.fd(), Interest::Input);
        }
    }

    fn look_at(&self, state: &mut State, loan: Loan, hung_up: bool) -> Look {
        let now = Instant::now();
        let Link::Up(up) = &mut state.link else {
            return Look::Elsewhere;
        };
        if !up.lease.lent || up.lease.waiting != Some(loan.number) || up.ended.is_some() {
            return Look::Elsewhere;
        }
        let timer = up.engine.poll_timeout();
        up.readable = true;
        up.hung_up |= hung_up;
        let input = self.input(state, now, READ_ONCE);
        let Link::Up(up) = &mut state.link else {
            return Look::Elsewhere;
        };
        if let Input::Closed(reason) = input {
            up.ended = Some(reason);
            return Look::Elsewhere;
        }
        // Its timers are the I/O thread's, and so is what the engine has to say.
        let sooner = match (up.engine.poll_timeout(), timer) {
            (Some(now), Some(before)) => now < before,
            (now, None) => now.is_some(),
            (None, Some(_)) => false,
        };
        if up.readable || up.hung_up || up.engine.has_transmit() || sooner {
            Look::Elsewhere
        } else {
            Look::Again
        }
    }
}

#[cfg(test)]
mod tests;
