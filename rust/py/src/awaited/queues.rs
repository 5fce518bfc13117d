//! Calls that wait.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use pyo3::prelude::*;

use super::form::{Form, Outgoing};
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
    /// The socket, which lives for as long as somebody waits.
    pub(super) holder: Option<Py<PyAny>>,
    /// The next time to look for calls that waited long enough.
    pub(super) timer: Option<(Instant, Py<PyAny>)>,
    /// The loop watches the descriptor.
    pub(super) joined: bool,
    /// A call wants to go on when the loop has turned.
    pub(super) paused: bool,
    /// The loop will call when it has turned.
    pub(super) called: bool,
    /// Somebody is at work on the queues, and whether there is more to do by now.
    pub(super) serving: bool,
    pub(super) again: bool,
    /// How many calls were cancelled since the queues were searched for such.
    pub(super) cancelled: usize,
    /// Futures of a program's own do not tell: at this length the queues are searched anyway.
    pub(super) sweep_at: usize,
}

impl Queues {
    pub(super) fn len(&self) -> usize {
        self.receivers.len() + self.senders.len() + self.polls.len()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let receivers = self.receivers.iter().filter_map(|call| call.limit);
        let senders = self.senders.iter().filter_map(|call| call.limit);
        let polls = self.polls.iter().filter_map(|call| call.deadline);
        let calls = receivers.chain(senders).map(|limit| limit.at);
        calls.chain(polls).min()
    }
}
