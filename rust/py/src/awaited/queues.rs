//! Calls that wait.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use pyo3::prelude::*;

use super::form::{Form, Outgoing};
use super::states::{Watch, WatchEvent, Work};
use crate::blocking::Limit;

/// The number of calls that wait, in all lanes of a socket.
#[derive(Default)]
pub(crate) struct Counts {
    pub(super) receivers: AtomicUsize,
    pub(super) senders: AtomicUsize,
}

/// A call that waits for a message.
pub(super) struct Receiver {
    pub(super) future: Py<PyAny>,
    pub(super) form: Form,
    /// Functions that turn the received value into the result, applied in order.
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
    /// Keeps the socket alive while calls wait.
    pub(super) watch: Watch<Py<PyAny>>,
    /// The next time to check for calls whose time has expired, and the loop's handle for it.
    pub(super) timer: Option<(Instant, Py<PyAny>)>,
    pub(super) work: Work,
    /// The loop has been asked to call `_on_turn`, and has not done so yet.
    pub(super) called: bool,
    /// The number of calls that were cancelled since the last sweep of the queues.
    pub(super) cancelled: usize,
    /// The length at which the queues are swept anyway, because futures of a program's own class do not report that
    /// they are cancelled.
    pub(super) sweep_at: usize,
}

impl Queues {
    pub(super) fn len(&self) -> usize {
        self.receivers.len() + self.senders.len() + self.polls.len()
    }

    /// Changes the watch. Returns the holder that is released. The caller must drop it without the lock.
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
