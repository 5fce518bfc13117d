//! The endpoints that a socket is bound or connected to.

use std::collections::HashMap;
use std::sync::Arc;

use crate::listener::Listener;
use crate::patterns::Priority;
use crate::session::Session;
use crate::transports::Hold;

/// The endpoints that a socket is bound or connected to.
#[derive(Default)]
pub(super) struct Endpoints {
    pub(super) entries: Vec<Entry>,
    /// Calls that have not returned yet, but may already get pipes.
    pub(super) pending: Vec<Pending>,
    /// The endpoint that was bound or connected last.
    pub(super) last: String,
    pub(super) next_source: u64,
    /// The priorities of binds and connects that have others than the default.
    priorities: HashMap<u64, Priority>,
}

/// A bind or connect call in progress.
pub(super) struct Pending {
    pub(super) source: u64,
    /// The endpoint of a connect call.
    pub(super) connects_to: Option<String>,
}

pub(super) struct Entry {
    pub(super) source: u64,
    /// The endpoint as the application wrote it, and as it was resolved.
    pub(super) given: String,
    pub(super) resolved: String,
    pub(super) what: What,
}

pub(super) enum What {
    Listener(Arc<Listener>),
    Session(Arc<Session>),
    /// Bound by a message transport.
    Bound(Hold),
    /// Connected by a message transport, which may be local to the context.
    Connected {
        hold: Hold,
        is_local: bool,
    },
}

/// An endpoint that the application has bound or connected to, and its state.
pub(super) struct Place<'a> {
    /// The number of the call, as in [`Origin`].
    pub(super) source: u64,
    pub(super) endpoint: &'a str,
    pub(super) attached: Attached,
}

/// How a socket is attached to an endpoint.
#[derive(PartialEq, Eq)]
pub(super) enum Attached {
    Bound,
    /// Connected; the pipe knows whether the connection is up.
    Connected,
    /// Connected through a transport that only reaches sockets of this context.
    ConnectedHere,
    /// The connection has ended, and is not retried (RECONNECT_IVL).
    Ended,
}

impl Endpoints {
    /// All endpoints that are bound or connected.
    pub(super) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        self.entries.iter().map(|entry| Place {
            source: entry.source,
            endpoint: &entry.resolved,
            attached: match &entry.what {
                What::Listener(_) | What::Bound(_) => Attached::Bound,
                What::Session(session) if session.has_ended() => Attached::Ended,
                What::Session(_) => Attached::Connected,
                What::Connected {
                    is_local: false, ..
                } => Attached::Connected,
                What::Connected { is_local: true, .. } => Attached::ConnectedHere,
            },
        })
    }

    /// The numbers of the binds and connects of this endpoint.
    pub(super) fn sources(&self, endpoint: &str) -> Vec<u64> {
        let is_it = |entry: &&Entry| entry.resolved == endpoint || entry.given == endpoint;
        let entries = self.entries.iter().filter(is_it);
        entries.map(|entry| entry.source).collect()
    }

    /// The priorities of the peers of a bind or connect.
    pub(super) fn priority(&self, source: u64) -> Priority {
        self.priorities.get(&source).copied().unwrap_or_default()
    }

    /// Changes the priorities of the peers of a bind or connect that exists or is about to.
    pub(super) fn set_priority(&mut self, source: u64, priority: Priority) {
        if priority == self.priority(source) {
            return;
        }
        let mut priorities = std::mem::take(&mut self.priorities);
        priorities.retain(|other, _| *other != source && self.has(*other));
        if priority != Priority::default() {
            priorities.insert(source, priority);
        }
        self.priorities = priorities;
    }

    pub(super) fn source(&mut self) -> u64 {
        self.next_source += 1;
        self.next_source
    }

    /// The endpoint that was bound or connected last, with wildcards resolved; empty before the first.
    pub(super) fn last(&self) -> &str {
        &self.last
    }

    /// Whether the socket is neither bound nor connected, and no such call is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.pending.is_empty()
    }

    /// Whether the bind or connect call with this number is still in effect.
    pub(super) fn has(&self, source: u64) -> bool {
        let is_pending = self.pending.iter().any(|call| call.source == source);
        is_pending || self.entries.iter().any(|entry| entry.source == source)
    }

    /// Removes the connects that have ended and are not retried (RECONNECT_IVL).
    pub(super) fn forget_ended(&mut self) {
        self.entries.retain(|entry| match &entry.what {
            What::Session(session) => !session.has_ended(),
            _ => true,
        });
    }

    /// Removes the connects to a socket of this context that has left: they are not retried.
    pub(super) fn take_left(
        &mut self,
        endpoint: &str,
        mut has_pipe: impl FnMut(u64) -> bool,
    ) -> Vec<Entry> {
        let has_left = |entry: &mut Entry| {
            entry.given == endpoint
                && matches!(entry.what, What::Connected { is_local: true, .. })
                && !has_pipe(entry.source)
        };
        self.entries.extract_if(.., has_left).collect()
    }

    pub(super) fn is_connected(&self, endpoint: &str) -> bool {
        let connects = |call: &Pending| call.connects_to.as_deref() == Some(endpoint);
        let is_connected = |entry: &Entry| entry.is_connect() && entry.given == endpoint;
        self.pending.iter().any(connects) || self.entries.iter().any(is_connected)
    }

    /// Begins a call that may get pipes before it returns. Returns its number.
    pub(super) fn begin(&mut self, connects_to: Option<String>) -> u64 {
        let source = self.source();
        self.pending.push(Pending {
            source,
            connects_to,
        });
        source
    }

    /// Ends the call with this number.
    pub(super) fn settle(&mut self, source: u64) {
        self.pending.retain(|call| call.source != source);
    }

    /// Removes the binds and connects of this endpoint. If a message transport has bound it, only that bind is removed.
    pub(super) fn take(&mut self, endpoint: &str) -> Vec<Entry> {
        let bound =
            |entry: &mut Entry| matches!(entry.what, What::Bound(_)) && entry.resolved == endpoint;
        let name = self.entries.extract_if(.., bound).next();
        match name {
            Some(name) => vec![name],
            None => self
                .entries
                .extract_if(.., |entry| entry.resolved == endpoint)
                .collect(),
        }
    }

    /// Removes the connect with this number.
    pub(super) fn take_connect(&mut self, source: u64) -> Option<Entry> {
        let is_it = |entry: &mut Entry| entry.source == source && entry.is_connect();
        self.entries.extract_if(.., is_it).next()
    }

    /// The resolved endpoint of a bind, for a caller that names the wildcard.
    pub(super) fn came_of(&self, endpoint: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.given == endpoint)?;
        Some(&entry.resolved)
    }
}

impl Entry {
    pub(super) fn is_connect(&self) -> bool {
        matches!(self.what, What::Session(_) | What::Connected { .. })
    }
}
