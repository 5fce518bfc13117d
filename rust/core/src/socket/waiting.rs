//! How a call waits for a message.
//!
//! Where messages come one at a time, from one connection, waiting for the I/O thread to bring them would cost two
//! hand-offs between threads for each: the waiting thread reads itself. And who has just asked or answered can expect to
//! hear more soon: it looks for a moment before it sleeps, as long as that pays off.
//!
//! The same goes for messages that come several at a time, as long as the thread that waits does nothing but receive, and
//! keeps up with them: each wait costs one wake-up less, on a machine that may have no core to spare for a thread in
//! between. A thread that finds more than one read can hold does not keep up, and is better off with the I/O thread reading
//! while it works. While it sends as well, the I/O thread is at work on the connection anyway.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::core::{Core, State};
use crate::pipe::{Line, Loan, Look};
use crate::signal::{Beside, Woken};

/// How long a thread looks before it sleeps. Going to sleep and being woken costs about as much.
const LOOKING: Duration = Duration::from_micros(20);
/// After a wait no longer than that the next one is expected to be as short.
const SOON: Duration = Duration::from_micros(500);

/// What a wait can do beside waiting.
pub(super) struct Outlook {
    line: Option<Arc<dyn Line>>,
    /// Something was said to which there may be an answer.
    answers: bool,
}

impl Core {
    /// To be asked before each wait for a message.
    pub(super) fn outlook(&self, state: &mut State) -> Outlook {
        let rhythm = std::mem::take(&mut state.rhythm);
        let one_by_one = rhythm.received <= 1;
        let reads = one_by_one || !rhythm.sent && self.keeping_up.is_worth_it();
        let line = match state.pipes.only() {
            Some(pipe) if reads => pipe.line(),
            _ => None,
        };
        let before = std::mem::replace(&mut state.line, line.as_ref().map(Arc::downgrade));
        if line.is_none()
            && let Some(before) = before.and_then(|line| line.upgrade())
        {
            // This wait goes on without it, and nobody else would look at it for a while.
            before.release();
        }
        Outlook {
            line,
            answers: one_by_one && rhythm.sent,
        }
    }

    /// Somebody else is to hear of what comes in: if nobody reads from a lent connection now, it looks after itself.
    pub(super) fn release_line(&self, state: &State) {
        if let Some(line) = state.line.as_ref().and_then(Weak::upgrade) {
            line.release();
        }
    }

    /// As [`release_line`](Self::release_line), for who does not wait for that: true if it is worth looking again.
    pub(super) fn take_in(&self, state: &State) -> bool {
        let line = state.line.as_ref().and_then(Weak::upgrade);
        line.is_some_and(|line| line.take_in())
    }

    /// Waits until the ticket is stale.
    pub(super) fn wait_for_message(
        &self,
        outlook: &Outlook,
        ticket: u32,
        deadline: Option<Instant>,
    ) -> Woken {
        let looks = outlook.answers && self.patience.is_worth_it();
        if let Some(line) = &outlook.line
            && let Some(loan) = line.take_over()
        {
            let start = Instant::now();
            let woken = self.drive(&**line, loan, looks, ticket, deadline);
            let soon = woken == Some(Woken::Notified)
                && start.elapsed() < SOON
                && !self.signal.has_others();
            line.give_back(loan, soon);
            // Whoever came to watch meanwhile found the connection in use, and left it at that.
            if soon && self.signal.has_others() {
                line.release();
            }
            match woken {
                Some(_) => self.keeping_up.went_well(),
                None => self.keeping_up.was_in_vain(),
            }
            if let Some(woken) = woken {
                return woken;
            }
        } else if looks && self.look_for_a_moment(ticket, || {}) {
            return Woken::Notified;
        }
        self.signal.wait(ticket, deadline)
    }

    /// `None`: the wait has to go on without the line.
    fn drive(
        &self,
        line: &dyn Line,
        loan: Loan,
        looks: bool,
        ticket: u32,
        deadline: Option<Instant>,
    ) -> Option<Woken> {
        let mut look = Look::Again;
        if looks
            && self.look_for_a_moment(ticket, || {
                if look == Look::Again {
                    look = line.look(loan, false);
                }
            })
        {
            return Some(Woken::Notified);
        }
        while look == Look::Again {
            match self.signal.wait_beside(ticket, loan.fd, deadline) {
                Beside::Ready => look = line.look(loan, false),
                Beside::HungUp => look = line.look(loan, true),
                Beside::Woken(woken) => return Some(woken),
                Beside::Impossible => break,
            }
            // A peer that sends parts of a message without a pause leaves nothing to wait for.
            if self.signal.ticket() == ticket && deadline.is_some_and(|at| at <= Instant::now()) {
                return Some(Woken::TimedOut);
            }
        }
        None
    }

    /// True when the ticket became stale.
    fn look_for_a_moment(&self, ticket: u32, mut look: impl FnMut()) -> bool {
        look();
        // What is there already would not have made the thread sleep, either: that says nothing for looking longer. Where
        // the peer runs on the same core it is often so, and looking longer is what keeps the peer from answering.
        if self.signal.ticket() != ticket {
            return true;
        }
        let start = Instant::now();
        while start.elapsed() < LOOKING {
            std::hint::spin_loop();
            look();
            if self.signal.ticket() != ticket {
                self.patience.paid_off();
                return true;
            }
        }
        self.patience.was_in_vain();
        false
    }
}

#[cfg(test)]
mod tests;
