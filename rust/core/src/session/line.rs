//! Lets the thread that waits for messages drive the connection itself. A message then costs it one wait for the
//! descriptor and no hand-off from the I/O thread, which stays asleep.
//!
//! [`driver`](super::driver) has the states. The waiting thread only reads. Timers, replies to the peer and the
//! connection's end are left to the I/O thread.

use std::os::fd::{AsRawFd, RawFd};
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use zeroxide_proto::error::CloseReason;
use zeroxide_queue::loan::{self, State as Lent};

use super::driver::Event;
use super::life::Closing;
use super::sides::{Inlet, InletEvent, Outlet};
use super::traffic::Input;
use super::{Connection, Link, Session, State};
use crate::pace::{READ_BUDGET, READ_ONCE, is_soon};
use crate::pipe::{FdLoan, Line, Look, Pipe};
use crate::reactor::Token;
use crate::sys::clock;
use crate::sys::sync::{MutexGuard, TryLockError};

impl Line for Session {
    fn take_over(&self) -> Option<FdLoan> {
        if let Some(loan) = self.lending.resume() {
            // If the connection has more to do than to read by now, the first look reports it.
            return Some(of_loan(loan));
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            // If the descriptor is not watched, a sleep might never end: block for the lock instead.
            Err(TryLockError::WouldBlock) if self.lending.state() != Lent::Home => self.lock(),
            Err(_) => return None,
        };
        let State {
            token: Some(token),
            link: Link::Up(up),
            closing: Closing::No,
            ..
        } = &mut *state
        else {
            return None;
        };
        if up.driver.is_lent() {
            // Another thread has the connection, or has paused in the meantime.
            return self.lending.resume().map(of_loan);
        }
        let quiet = !self.is_revoked()
            && up.engine.is_ready()
            && up.engine.wants_input()
            && !up.engine.has_transmit()
            && !up.stream.has_unsent()
            && up.outlet == Outlet::Room
            && up.inlet == Inlet::Empty
            && !up.hung_up
            && up.ended.is_none();
        let token = Some(*token);
        if !quiet || !self.change_driver(up, token, Event::Lend) {
            return None;
        }
        // Descriptors are not negative.
        let tag = u32::try_from(up.stream.fd().as_raw_fd()).unwrap_or_default();
        self.lending.lend(tag).map(of_loan)
    }

    fn look(&self, loan: FdLoan, hung_up: bool, since: Option<Instant>) -> Look {
        let mut state = self.lock();
        if let Some(pipe) = &mut state.pipe {
            pipe.keep_notice();
        }
        let now = clock::now();
        let look = self
            .contain(&mut state, |state| self.look_at(state, loan, hung_up, now))
            .unwrap_or(Look::Elsewhere);
        let came_in = state.pipe.as_mut().is_some_and(Pipe::take_notice);
        if look == Look::Again {
            if !came_in {
                return Look::Again;
            }
            let paused = since.is_some_and(|since| is_soon(now.saturating_duration_since(since)));
            self.end_wait(state, paused, now);
            return Look::CameIn { paused };
        }
        if came_in {
            self.contain(&mut state, |state| {
                state.pipe.as_mut().map(Pipe::tell_readable);
            });
        }
        drop(state);
        self.wake();
        Look::Elsewhere
    }

    fn give_back(&self, loan: FdLoan, soon: bool) {
        let state = self.lock();
        if self.lending.is_held(loan.loan) {
            self.end_wait(state, soon, clock::now());
        }
    }

    fn release(&self) {
        if self.lending.state() != Lent::Home {
            self.recall(&mut self.lock());
        }
    }

    fn take_in(&self) -> bool {
        let is_paused = || matches!(self.lending.state(), Lent::Paused { .. });
        if !is_paused() {
            return false;
        }
        let mut state = self.lock();
        if !is_paused() {
            return false;
        }
        let now = clock::now();
        self.contain(&mut state, |state| self.read_up(state, now));
        self.recall(&mut state);
        drop(state);
        // The I/O thread does everything else that follows from these bytes.
        self.wake();
        true
    }
}

impl Session {
    /// Takes back a connection that no thread uses any more. Runs in the I/O thread only.
    pub(super) fn check_driver(&self, state: &mut State, now: Instant) {
        if state.closing.has_begun() {
            self.recall(state);
        }
        let State {
            link: Link::Up(up),
            token,
            ..
        } = state
        else {
            return;
        };
        if up.driver.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        let event = match self.lending.change(loan::Event::Look) {
            (_, Lent::Home) => Event::End,
            (Lent::Held { used: false }, _) => Event::StillHeld,
            _ => Event::Used,
        };
        self.change_driver_at(up, *token, event, || now);
    }

    /// Ends a paused loan. A thread that has the connection finds out when it looks.
    fn recall(&self, state: &mut State) {
        if let (Lent::Paused { .. }, Lent::Home) = self.lending.change(loan::Event::Recall)
            && let Link::Up(up) = &mut state.link
        {
            self.change_driver(up, state.token, Event::End);
        }
    }

    /// Makes the calling thread, which has the connection, pause or give it back.
    fn end_wait(&self, mut state: MutexGuard<'_, State>, pauses: bool, now: Instant) {
        let State { token, link, .. } = &mut *state;
        let Link::Up(up) = link else { return };
        if !pauses {
            self.lending.change(loan::Event::Return);
            self.change_driver_at(up, *token, Event::End, || now);
            return;
        }
        let is_guarded = up.driver.poll_timeout().is_some();
        self.change_driver_at(up, *token, Event::Pause, || now);
        self.lending.change(loan::Event::Pause);
        if !is_guarded {
            // Wake the I/O thread, so that it sets its timer.
            drop(state);
            self.wake();
        }
    }

    /// Reads what has arrived, before a timer judges a connection by its silence. After the process was stopped, the timer
    /// may come first. A thread that has the connection as a loan may not have read either.
    pub(super) fn catch_up(&self, state: &mut State, now: Instant) {
        let Link::Up(up) = &state.link else {
            return;
        };
        let is_due = up.engine.poll_timeout().is_some_and(|at| at <= now);
        if is_due && (up.driver.is_lent() || up.engine.judges(now)) {
            self.read_up(state, now);
        }
    }

    /// Reads what has arrived.
    fn read_up(&self, state: &mut State, now: Instant) {
        let Link::Up(up) = &mut state.link else {
            return;
        };
        if up.ended.is_some() {
            return;
        }
        up.inlet = up.inlet.next(InletEvent::Arrive);
        if let Input::Closed(reason) = self.input(state, now, READ_BUDGET)
            && let Link::Up(up) = &mut state.link
        {
            up.ended = Some(reason);
        }
    }

    /// Makes the I/O thread the driver, because a write found no room.
    pub(super) fn note_no_room(&self, up: &mut Connection, token: Option<Token>) {
        self.lending.change(loan::Event::Revoke);
        self.change_driver(up, token, Event::NoRoom);
    }

    /// Moves a connection's driver to its next state. If the new state watches for something else, tells the I/O
    /// thread, which is then also notified of bytes that have already arrived. Returns false if a thread wanted to take
    /// over and the system refused.
    fn change_driver(&self, up: &mut Connection, token: Option<Token>, event: Event) -> bool {
        self.change_driver_at(up, token, event, clock::now)
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
            // Without a token, the I/O thread does not watch yet. When it begins, it watches for everything.
            let Some(token) = token else { return false };
            let told = self.io.watch(token, up.stream.fd(), next.interest());
            if !told && next.is_lent() {
                return false;
            }
        }
        up.driver = next;
        true
    }

    /// Ends any loan, because the connection is gone.
    pub(super) fn forget_driver(&self) {
        self.lending.change(loan::Event::Revoke);
    }

    /// Runs `work` in a thread of the application. A panic in `work` is a bug of this crate, so it ends the connection
    /// and not the caller's thread. The I/O thread is woken, because no other thread reads from the connection any
    /// more.
    pub(super) fn contain<T>(
        &self,
        state: &mut State,
        work: impl FnOnce(&mut State) -> T,
    ) -> Option<T> {
        // The state that the panic left incomplete ends with the connection, in the I/O thread.
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(state)));
        if result.is_err() {
            if let Link::Up(up) = &mut state.link {
                up.ended = Some(CloseReason::Internal);
            }
            self.wake();
        }
        result.ok()
    }

    fn look_at(&self, state: &mut State, loan: FdLoan, hung_up: bool, now: Instant) -> Look {
        let Link::Up(up) = &mut state.link else {
            return Look::Elsewhere;
        };
        if !self.lending.is_held(loan.loan) || up.ended.is_some() {
            return Look::Elsewhere;
        }
        let timer = up.engine.poll_timeout();
        up.inlet = up.inlet.next(InletEvent::Arrive);
        up.hung_up |= hung_up;
        let input = self.input(state, now, READ_ONCE);
        let Link::Up(up) = &mut state.link else {
            return Look::Elsewhere;
        };
        if let Input::Closed(reason) = input {
            up.ended = Some(reason);
            return Look::Elsewhere;
        }
        // Timers and the engine's output are left to the I/O thread.
        let sooner = match (up.engine.poll_timeout(), timer) {
            (Some(now), Some(before)) => now < before,
            (now, None) => now.is_some(),
            (None, Some(_)) => false,
        };
        let has_output = up.engine.has_transmit() || up.stream.has_unsent();
        if up.inlet != Inlet::Empty || up.hung_up || has_output || sooner {
            Look::Elsewhere
        } else {
            Look::Again
        }
    }
}

fn of_loan(loan: loan::Loan) -> FdLoan {
    FdLoan {
        // The descriptor that was given to `lend`.
        fd: RawFd::try_from(loan.tag()).unwrap_or(-1),
        loan,
    }
}

#[cfg(test)]
mod tests;
