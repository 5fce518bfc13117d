//! The endpoints that a socket is bound to and connected with.

use std::sync::Arc;

use crate::listener::Listener;
use crate::session::Session;
use crate::transports::Hold;

/// What a socket is bound to and connected with.
#[derive(Default)]
pub(super) struct Endpoints {
    pub(super) entries: Vec<Entry>,
    /// Calls that are not over, and may get pipes already.
    pub(super) pending: Vec<Pending>,
    /// What was bound or connected last.
    pub(super) last: String,
    pub(super) next_source: u64,
}

/// A bind or connect call that is under way.
pub(super) struct Pending {
    pub(super) source: u64,
    /// Where it connects.
    pub(super) connects_to: Option<String>,
}

pub(super) struct Entry {
    pub(super) source: u64,
    /// As the application wrote it, and as it was resolved.
    pub(super) given: String,
    pub(super) resolved: String,
    pub(super) what: What,
}

pub(super) enum What {
    Listener(Arc<Listener>),
    Session(Arc<Session>),
    /// Bound by a transport of messages.
    Bound(Hold),
    /// Connected by a transport of messages, which may be local to the context.
    Connected {
        hold: Hold,
        is_local: bool,
    },
}

/// An endpoint that the application has bound or connected, and its state.
pub(super) struct Place<'a> {
    /// Numbers the call, as in [`Origin`].
    pub(super) source: u64,
    pub(super) endpoint: &'a str,
    pub(super) attached: Attached,
}

/// How a socket is attached to an endpoint.
#[derive(PartialEq, Eq)]
pub(super) enum Attached {
    Bound,
    /// The pipe knows whether the connection is up.
    Connected,
    /// The same, if only a socket of this context can be there.
    ConnectedHere,
    /// The connection ended, and is not retried (RECONNECT_IVL).
    Ended,
}

impl Endpoints {
    /// Everything that is bound and connected.
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

    pub(super) fn source(&mut self) -> u64 {
        self.next_source += 1;
        self.next_source
    }

    /// What was bound or connected last, wildcards filled in; empty at first.
    pub(super) fn last(&self) -> &str {
        &self.last
    }

    /// Whether nothing was bound or connected, or all of it was taken back.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.pending.is_empty()
    }

    /// Whether the bind or connect call of that number still stands.
    pub(super) fn has(&self, source: u64) -> bool {
        let is_pending = self.pending.iter().any(|call| call.source == source);
        is_pending || self.entries.iter().any(|entry| entry.source == source)
    }

    /// Forgets the connects that are over, because nothing connects them again (RECONNECT_IVL).
    pub(super) fn forget_ended(&mut self) {
        self.entries.retain(|entry| match &entry.what {
            What::Session(session) => !session.has_ended(),
            _ => true,
        });
    }

    pub(super) fn is_connected(&self, endpoint: &str) -> bool {
        let connects = |call: &Pending| call.connects_to.as_deref() == Some(endpoint);
        let is_connected = |entry: &Entry| entry.is_connect() && entry.given == endpoint;
        self.pending.iter().any(connects) || self.entries.iter().any(is_connected)
    }

    /// Begins a call that may get pipes before it is over. Returns its number.
    pub(super) fn begin(&mut self, connects_to: Option<String>) -> u64 {
        let source = self.source();
        self.pending.push(Pending {
            source,
            connects_to,
        });
        source
    }

    /// The call of that number is over.
    pub(super) fn settle(&mut self, source: u64) {
        self.pending.retain(|call| call.source != source);
    }

    /// Takes out what stands under that endpoint, binds and connects alike: of a transport of messages the bind alone,
    /// if there is one.
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

    /// Takes out the connect with that number.
    pub(super) fn take_connect(&mut self, source: u64) -> Option<Entry> {
        let is_it = |entry: &mut Entry| entry.source == source && entry.is_connect();
        self.entries.extract_if(.., is_it).next()
    }

    /// The endpoint that a bind to a wildcard came to, for who names the wildcard.
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
