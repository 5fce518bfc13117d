//! The events that a node reports about its peers, under Zyre's names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use zeroxide::Message;

use crate::id::NodeId;

/// The properties of a node, by their names.
pub type Headers = BTreeMap<String, String>;

/// Another node, as it was when this value was made.
///
/// Source: RFC 36, ZRE.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// The identity of the node, which is new each time it starts.
    pub id: NodeId,
    /// The name that it has chosen.
    pub name: Arc<str>,
    /// Where it receives messages, as this node reaches it: `tcp://192.168.1.7:49152`.
    pub endpoint: String,
    /// Its headers, which do not change while it runs.
    pub headers: Arc<Headers>,
    /// The groups that it is in.
    pub groups: BTreeSet<String>,
    /// Whether it has been silent for longer than [`Builder::evasive`](crate::Builder::evasive).
    pub is_evasive: bool,
}

/// Something that a peer did, or that happened to it. In each event, `peer` is the peer and `name` the name that it has
/// chosen.
///
/// Between the `Enter` and the `Exit` of a peer, its messages arrive in order, and none is missing.
///
/// Source: zyre_event(3).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A peer is there: it has said hello.
    Enter {
        /// The peer.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
        /// Where it receives messages.
        endpoint: String,
        /// Its headers.
        headers: Arc<Headers>,
    },
    /// A peer has been silent for a while, and has not answered a ping yet. Reported once per silence.
    Evasive {
        /// The peer.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
    },
    /// An evasive peer has not answered for another second. Reported once per silence.
    Silent {
        /// The peer.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
    },
    /// A peer is gone, and with it its groups.
    Exit {
        /// The peer.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
        /// Why it is gone.
        reason: ExitReason,
    },
    /// A peer has joined a group.
    Join {
        /// The peer.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
        /// The group.
        group: String,
    },
    /// A peer has left a group.
    Leave {
        /// The peer.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
        /// The group.
        group: String,
    },
    /// A peer has sent a message to this node.
    Whisper {
        /// The peer.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
        /// The message.
        content: Message,
    },
    /// A peer has sent a message to a group that this node is in.
    Shout {
        /// The peer.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
        /// The group.
        group: String,
        /// The message.
        content: Message,
    },
    /// A group has elected a leader, which may be this node.
    Leader {
        /// The leader.
        peer: NodeId,
        /// Its name.
        name: Arc<str>,
        /// The group.
        group: String,
    },
}

impl Event {
    /// Returns the peer.
    pub fn peer(&self) -> NodeId {
        *self.subject().0
    }

    /// Returns the name of the peer.
    pub fn name(&self) -> &str {
        self.subject().1
    }

    /// The bytes of its message.
    pub(crate) fn size(&self) -> usize {
        match self {
            Event::Whisper { content, .. } | Event::Shout { content, .. } => content.size(),
            _ => 0,
        }
    }

    fn subject(&self) -> (&NodeId, &str) {
        match self {
            Event::Enter { peer, name, .. }
            | Event::Evasive { peer, name }
            | Event::Silent { peer, name }
            | Event::Exit { peer, name, .. }
            | Event::Join { peer, name, .. }
            | Event::Leave { peer, name, .. }
            | Event::Whisper { peer, name, .. }
            | Event::Shout { peer, name, .. }
            | Event::Leader { peer, name, .. } => (peer, name),
        }
    }
}

/// Why a peer is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitReason {
    /// It has said goodbye.
    Goodbye,
    /// It has been silent for too long.
    Expired,
    /// A message of it is missing, because a connection broke.
    MessagesLost,
    /// Another node has taken its endpoint.
    Restarted,
    /// It does not read, and too many messages wait for it.
    NotReading,
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExitReason::Goodbye => "goodbye",
            ExitReason::Expired => "expired",
            ExitReason::MessagesLost => "messages lost",
            ExitReason::Restarted => "restarted",
            ExitReason::NotReading => "not reading",
        })
    }
}
