//! The thread that waits for messages drives the connection itself: a message then costs it one wait for the descriptor,
//! and no hand-off from the I/O thread, which sleeps on.
//!
//! [`driver`](super::driver) says who drives when. The waiting thread only reads: timers, replies to the peer and the
//! connection's end are left to the I/O thread.

use std::os::fd::AsRawFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::TryLockError;
use std::sync::atomic::Ordering;
use std::time::Instant;

use zeroxide_proto::error::CloseReason;

use super::driver::Event;
use super::traffic::Input;
use super::{Connection, Link, Session, State};
use crate::pace::{READ_BUDGET, READ_ONCE};
use crate::pipe::{Line, Loan, Look};
use crate::reactor::Token;

impl Line for Session {
    fn take_over(&self) -> Option<Loan> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            // If the descriptor is not watched, a sleep on the futex might never end: block for the lock instead.
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
        let token = Some(*token);
        if up.driver.has_waiter() {
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
            self.change_driver(up, token, Event::Recall);
            return None;
        }
        if !self.change_driver(up, token, Event::TakeOver) {
            return None;
        }
        *loans += 1;
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
        let State {
            token, link, loans, ..
        } = &mut *state;
        let Link::Up(up) = link else { return };
        if !up.is_lent_to(loan, *loans) {
            return;
        }
        let guard = up.driver.poll_timeout();
        let event = if soon {
            Event::GiveBackSoon
        } else {
            Event::GiveBack
        };
        self.change_driver(up, *token, event);
        if up.driver.is_between() && guard.is_none() {
            // The I/O thread sets its timer.
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
        if let Link::Up(up) = link {
            self.change_driver(up, *token, Event::Recall);
        }
    }

    fn take_in(&self) -> bool {
        if !self.lent.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.lock();
        match &state.link {
            Link::Up(up) if up.driver.is_between() => {}
            _ => return false,
        }
        let now = Instant::now();
        self.contain(&mut state, |state| self.read_up(state, now));
        let State { token, link, .. } = &mut *state;
        if let Link::Up(up) = link {
            self.change_driver(up, *token, Event::Recall);
        }
        drop(state);
        // Everything else that follows from these bytes is left to the I/O thread.
        self.wake();
        true
    }
}

impl Session {
    /// Takes a connection back that no thread uses any more. Runs in the I/O thread only.
    pub(super) fn check_driver(&self, state: &mut State, now: Instant) {
        let closing = state.closing.is_some();
        if let Link::Up(up) = &mut state.link {
            let event = if closing && up.driver.is_between() {
                Event::Recall
            } else {
                Event::Timer
            };
            self.change_driver_at(up, state.token, event, || now);
        }
    }

    /// Reads what has arrived before a timer judges a lent connection by its silence: the thread that has the loan may not
    /// have come to it yet.
    pub(super) fn catch_up(&self, state: &mut State, now: Instant) {
        let Link::Up(up) = &state.link else {
            return;
        };
        let is_due = up.engine.poll_timeout().is_some_and(|at| at <= now);
        if is_due && up.driver.is_lent() {
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

    /// Moves a connection's driver to its next state, and tells the I/O thread what to watch for if that changes: it is
    /// told of bytes that have arrived already. False if a thread wanted to take over and the system refuses.
    pub(super) fn change_driver(
        &self,
        up: &mut Connection,
        token: Option<Token>,
        event: Event,
    ) -> bool {
        self.change_driver_at(up, token, event, Instant::now)
    }

    fn change_driver_at(
        &self,
        up: &mut Connection,
        token: Option<Token>,
        event: Event,
        now: impl FnOnce() -> Instant,
    ) -> bool {
        let (before, next) = (up.driver, up.driver.next(event, now));
        if next.interest() != before.interest() {
            // Without a token the I/O thread has not begun to watch, and will begin with everything.
            let Some(token) = token else { return false };
            let told = self.io.watch(token, up.stream.fd(), next.interest());
            if !told && next.is_lent() {
                return false;
            }
            self.lent.store(next.is_lent(), Ordering::Relaxed);
        }
        up.driver = next;
        true
    }

    /// The connection is gone, and with it its driver.
    pub(super) fn forget_driver(&self) {
        self.lent.store(false, Ordering::Relaxed);
    }

    /// Does `work` in a thread of the application. A panic in `work` is a bug of this crate, so it ends the connection and
    /// not the caller's thread. The I/O thread is woken, because nobody reads from the connection any more.
    pub(super) fn contain<T>(
        &self,
        state: &mut State,
        work: impl FnOnce(&mut State) -> T,
    ) -> Option<T> {
        // The state that the panic left half-made ends with the connection, in the I/O thread.
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(state)));
        if result.is_err() {
            if let Link::Up(up) = &mut state.link {
                up.ended = Some(CloseReason::Internal);
            }
            self.wake();
        }
        result.ok()
    }

    fn look_at(&self, state: &mut State, loan: Loan, hung_up: bool) -> Look {
        let now = Instant::now();
        let last_loan = state.loans;
        let Link::Up(up) = &mut state.link else {
            return Look::Elsewhere;
        };
        if !up.is_lent_to(loan, last_loan) || up.ended.is_some() {
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
        // Timers and what the engine has to send are left to the I/O thread.
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

impl Connection {
    /// Whether the thread with `loan` still drives the connection. The last loan is the only one that can be valid, and
    /// it is not if it was recalled, or was one of the connection before.
    fn is_lent_to(&self, loan: Loan, last: u64) -> bool {
        self.driver.has_waiter() && loan.number == last
    }
}

#[cfg(test)]
mod tests;
