//! How a call waits for a message. The waiting thread reads from the connection itself, or leaves that to the I/O
//! thread. It spins for a moment before it sleeps, if [`pace`](crate::pace) allows it.

use std::sync::{Arc, Weak};
use std::time::Instant;

use super::core::{Core, State};
use crate::pace::is_soon;
use crate::pipe::{FdLoan, Line, Look, PipeId};
use crate::signal::{Beside, Woken};
use crate::sys::clock;

/// The options of a thread that waits for a message.
pub(super) struct Outlook {
    /// The connection that the thread may read from, and the pipe that the connection fills.
    line: Option<(Arc<dyn Line>, PipeId)>,
    /// A message was sent that the peer may answer.
    awaits_answer: bool,
}

/// How a wait for a message ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waited {
    /// The thread has read messages into this pipe, and no other code knows of them: call
    /// [`note_came_in`](Core::note_came_in) with the lock.
    CameIn(PipeId),
    /// The wait ended for another reason.
    Woken(Woken),
}

impl Core {
    /// Decides how to wait. Called before each wait for a message.
    pub(super) fn outlook(&self, state: &mut State) -> Outlook {
        let rhythm = std::mem::take(&mut state.rhythm);
        let line = match state.pipes.only() {
            Some((id, pipe)) if self.waiting.may_read_now(&rhythm) => {
                pipe.line().map(|line| (line, id))
            }
            _ => None,
        };
        let weak = line.as_ref().map(|(line, _)| Arc::downgrade(line));
        let before = std::mem::replace(&mut state.line, weak);
        if line.is_none()
            && let Some(before) = before.and_then(|line| line.upgrade())
        {
            // This wait goes on without the connection, which no other thread would read for a while.
            before.release();
        }
        Outlook {
            line,
            awaits_answer: rhythm.awaits_answer(),
        }
    }

    /// Called when another thread must learn of new messages. If no thread is reading from a lent connection, the I/O
    /// thread takes the connection back.
    pub(super) fn release_line(&self, state: &State) {
        if let Some(line) = state.line.as_ref().and_then(Weak::upgrade) {
            line.release();
        }
    }

    /// Like [`release_line`](Self::release_line), for a caller that does not wait for the I/O thread. Returns true if
    /// it is worth trying to receive again.
    pub(super) fn take_in(&self, state: &State) -> bool {
        let line = state.line.as_ref().and_then(Weak::upgrade);
        line.is_some_and(|line| line.take_in())
    }

    /// Notes that messages were read into a pipe without a notification of its reader.
    pub(super) fn note_came_in(&self, state: &mut State, id: PipeId) {
        if state.pipes.get(id).is_some() {
            state.pattern.readable(&mut state.pipes, id);
            self.settle(state);
        }
        // There may be more than one message, and other threads that wait.
        self.signal.wake();
    }

    /// Waits until the ticket is stale or a message was read.
    pub(super) fn wait_for_message(
        &self,
        outlook: &Outlook,
        ticket: u32,
        deadline: Option<Instant>,
    ) -> Waited {
        let spins = self.waiting.may_spin_now(outlook.awaits_answer);
        if let Some((line, id)) = &outlook.line
            && let Some(loan) = line.take_over()
        {
            let start = clock::now();
            let driven = self.drive(&**line, loan, spins, ticket, start, deadline);
            let paused = match driven {
                Driven::CameIn { paused } => paused,
                Driven::Woken(woken) => {
                    let soon = woken == Woken::Notified
                        && is_soon(clock::since(start))
                        && !self.signal.has_others();
                    line.give_back(loan, soon);
                    soon
                }
                Driven::Elsewhere => {
                    line.give_back(loan, false);
                    false
                }
            };
            // A thread that began to watch meanwhile found the connection in use, and relies on this call.
            if paused && self.signal.has_others() {
                line.release();
            }
            self.waiting.note_read(driven != Driven::Elsewhere);
            match driven {
                Driven::CameIn { .. } => return Waited::CameIn(*id),
                Driven::Woken(woken) => return Waited::Woken(woken),
                Driven::Elsewhere => {}
            }
        } else if spins && self.waiting.spin(|| self.signal.ticket() != ticket) {
            return Waited::Woken(Woken::Notified);
        }
        Waited::Woken(self.signal.wait(ticket, deadline))
    }

    /// Reads from the connection until a message was read or the ticket is stale.
    fn drive(
        &self,
        line: &dyn Line,
        loan: FdLoan,
        spins: bool,
        ticket: u32,
        start: Instant,
        deadline: Option<Instant>,
    ) -> Driven {
        // While other threads watch, the connection must not be left unread between two waits.
        let look_now = |hung_up| {
            let since = (!self.signal.has_others()).then_some(start);
            line.look(loan, hung_up, since)
        };
        let mut look = Look::Again;
        if spins
            && self.waiting.spin(|| {
                if look == Look::Again {
                    look = look_now(false);
                }
                matches!(look, Look::CameIn { .. }) || self.signal.ticket() != ticket
            })
            && !matches!(look, Look::CameIn { .. })
        {
            return Driven::Woken(Woken::Notified);
        }
        loop {
            match look {
                Look::Again => {}
                Look::CameIn { paused } => return Driven::CameIn { paused },
                Look::Elsewhere => return Driven::Elsewhere,
            }
            match self.signal.wait_beside(ticket, loan.fd, deadline) {
                Beside::Ready => look = look_now(false),
                Beside::HungUp => look = look_now(true),
                Beside::Woken(woken) => return Driven::Woken(woken),
                Beside::Impossible => return Driven::Elsewhere,
            }
            // A peer that keeps sending parts of one message keeps the descriptor readable all the time.
            if look == Look::Again
                && self.signal.ticket() == ticket
                && deadline.is_some_and(|at| at <= clock::now())
            {
                return Driven::Woken(Woken::TimedOut);
            }
        }
    }
}

/// Why a thread stopped reading from a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Driven {
    /// Messages were read. The loan has ended or is paused.
    CameIn { paused: bool },
    /// The thread was woken for another reason.
    Woken(Woken),
    /// The wait must go on without the connection.
    Elsewhere,
}

#[cfg(test)]
mod tests;
