//! How a call waits for a message: the thread that waits reads from the connection itself, or leaves that to the I/O
//! thread, and spins for a moment before it sleeps, as [`pace`](crate::pace) decides.

use std::sync::{Arc, Weak};
use std::time::Instant;

use super::core::{Core, State};
use crate::pace::is_soon;
use crate::pipe::{Line, Loan, Look};
use crate::signal::{Beside, Woken};

/// What a thread can do while it waits.
pub(super) struct Outlook {
    /// The connection that it may read from.
    line: Option<Arc<dyn Line>>,
    /// Something was sent that may be answered.
    awaits_answer: bool,
}

impl Core {
    /// To be asked before each wait for a message.
    pub(super) fn outlook(&self, state: &mut State) -> Outlook {
        let rhythm = std::mem::take(&mut state.rhythm);
        let line = match state.pipes.only() {
            Some(pipe) if self.waiting.may_read_now(&rhythm) => pipe.line(),
            _ => None,
        };
        let before = std::mem::replace(&mut state.line, line.as_ref().map(Arc::downgrade));
        if line.is_none()
            && let Some(before) = before.and_then(|line| line.upgrade())
        {
            // This wait goes on without the connection, which no other thread would look at for a while.
            before.release();
        }
        Outlook {
            line,
            awaits_answer: rhythm.awaits_answer(),
        }
    }

    /// Another thread is to hear of new messages: if nobody reads from a lent connection now, the I/O thread takes it back.
    pub(super) fn release_line(&self, state: &State) {
        if let Some(line) = state.line.as_ref().and_then(Weak::upgrade) {
            line.release();
        }
    }

    /// Like [`release_line`](Self::release_line), for a caller that does not wait for the I/O thread. Returns true if it
    /// is worth looking for a message again.
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
        let spins = self.waiting.may_spin_now(outlook.awaits_answer);
        if let Some(line) = &outlook.line
            && let Some(loan) = line.take_over()
        {
            let start = Instant::now();
            let woken = self.drive(&**line, loan, spins, ticket, deadline);
            let soon = woken == Some(Woken::Notified)
                && is_soon(start.elapsed())
                && !self.signal.has_others();
            line.give_back(loan, soon);
            // A thread that began to watch meanwhile found the connection in use, and relies on this.
            if soon && self.signal.has_others() {
                line.release();
            }
            self.waiting.note_read(woken.is_some());
            if let Some(woken) = woken {
                return woken;
            }
        } else if spins && self.waiting.spin(|| self.signal.ticket() != ticket) {
            return Woken::Notified;
        }
        self.signal.wait(ticket, deadline)
    }

    /// Reads from the connection until the ticket is stale. Returns `None` if the wait has to go on without it.
    fn drive(
        &self,
        line: &dyn Line,
        loan: Loan,
        spins: bool,
        ticket: u32,
        deadline: Option<Instant>,
    ) -> Option<Woken> {
        let mut look = Look::Again;
        if spins
            && self.waiting.spin(|| {
                if look == Look::Again {
                    look = line.look(loan, false);
                }
                self.signal.ticket() != ticket
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
            // A peer that sends parts of a message without a pause keeps the descriptor readable all the time.
            if self.signal.ticket() == ticket && deadline.is_some_and(|at| at <= Instant::now()) {
                return Some(Woken::TimedOut);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
