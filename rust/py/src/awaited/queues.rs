//! Calls that wait.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use pyo3::prelude::*;

use super::form::{Form, Outgoing};
use super::states::{Watch, WatchEvent, Work};
use crate::blocking::Limit;

/// How many calls wait, in all lanes of a socket.
#[derive(Default)]
pub(crate) struct Counts {
    pub(super) receivers: AtomicUsize,
    pub(super) senders: AtomicUsize,
}

/// A call that waits for a message.
pub(super) struct Receiver {
    pub(super) future: Py<PyAny>,
    pub(super) form: Form,
    /// What makes the result of what was received, one after the other.
    pub(super) loads: Vec<Py<PyAny>>,
    pub(super) limit: Option<Limit>,
}

/// A call that waits to send.
pub(super) struct Sender {
    pub(super) future: Py<PyAny>,
    pub(super) outgoing: Outgoing,
    pub(super) limit: Option<Limit>,
}

/// A call that waits for events.
pub(super) struct Poll {
    pub(super) future: Py<PyAny>,
    pub(super) mask: i16,
    pub(super) deadline: Option<Instant>,
}

#[derive(Default)]
pub(super) struct Queues {
    pub(super) receivers: VecDeque<Receiver>,
    pub(super) senders: VecDeque<Sender>,
    pub(super) polls: Vec<Poll>,
    /// It holds the socket while calls wait.
    pub(super) watch: Watch<Py<PyAny>>,
    /// The next time to look for calls that waited long enough.
    pub(super) timer: Option<(Instant, Py<PyAny>)>,
    pub(super) work: Work,
    /// The loop will call when it has turned.
    pub(super) called: bool,
    /// How many calls were cancelled since the queues were searched for such.
    pub(super) cancelled: usize,
    /// Futures of a program's own do not tell: at this length the queues are searched anyway.
    pub(super) sweep_at: usize,
}

impl Queues {
    pub(super) fn len(&self) -> usize {
        self.receivers.len() + self.senders.len() + self.polls.len()
    }

    /// Returns the holder that is let go, which must be dropped without the lock.
    pub(super) fn change_watch(&mut self, event: WatchEvent<Py<PyAny>>) -> Option<Py<PyAny>> {
        let (next, holder) = mem::take(&mut self.watch).next(event);
        self.watch = next;
        holder
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let receivers = self.receivers.iter().filter_map(|call| call.limit);
        let senders = self.senders.iter().filter_map(|call| call.limit);
        let polls = self.polls.iter().filter_map(|call| call.deadline);
        let calls = receivers.chain(senders).map(|limit| limit.at);
        calls.chain(polls).min()
    }
}
