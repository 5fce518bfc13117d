//! The peers that have not said hello, and the announced nodes that wait for a place among them.

use std::collections::BTreeMap;

use crate::id::NodeId;

/// Peers from beacons that have not said hello, at most, and as many from gossip. Both are easy to forge, and each costs a
/// socket.
pub(super) const STRANGERS_MAX: usize = 100;

/// How this node has learned about a stranger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    Beacon,
    Gossip,
}

/// The peers that have not said hello, by their place in the order of arrival.
#[derive(Default)]
pub(super) struct Strangers {
    from_beacons: BTreeMap<u64, NodeId>,
    from_gossip: BTreeMap<u64, NodeId>,
}

impl Strangers {
    pub(super) fn insert(&mut self, source: Source, entered: u64, node: NodeId) {
        self.of_mut(source).insert(entered, node);
    }

    pub(super) fn remove(&mut self, entered: u64) {
        self.from_beacons.remove(&entered);
        self.from_gossip.remove(&entered);
    }

    /// Whether there may be no further one from this source.
    pub(super) fn are_many(&self, source: Source) -> bool {
        self.of(source).len() >= STRANGERS_MAX
    }

    /// The oldest one from this source.
    pub(super) fn oldest_of(&self, source: Source) -> Option<NodeId> {
        let oldest = self.of(source).first_key_value();
        oldest.map(|(_, node)| *node)
    }

    /// The oldest one.
    pub(super) fn oldest(&self) -> Option<NodeId> {
        let both = [&self.from_beacons, &self.from_gossip];
        let oldest = both.iter().filter_map(|each| each.first_key_value()).min();
        oldest.map(|(_, node)| *node)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = NodeId> {
        let both = self.from_beacons.values().chain(self.from_gossip.values());
        both.copied()
    }

    fn of(&self, source: Source) -> &BTreeMap<u64, NodeId> {
        match source {
            Source::Beacon => &self.from_beacons,
            Source::Gossip => &self.from_gossip,
        }
    }

    fn of_mut(&mut self, source: Source) -> &mut BTreeMap<u64, NodeId> {
        match source {
            Source::Beacon => &mut self.from_beacons,
            Source::Gossip => &mut self.from_gossip,
        }
    }
}

/// The announced nodes that wait for a place.
#[derive(Default)]
pub(super) struct Waiting {
    /// The highest rank has its turn next.
    order: BTreeMap<i64, NodeId>,
    ranks: BTreeMap<NodeId, i64>,
}

impl Waiting {
    /// Adds a node, or moves it, so that its turn is next.
    pub(super) fn push_first(&mut self, node: NodeId) {
        self.remove(node);
        let last = self.order.last_key_value();
        self.insert(last.map_or(0, |(rank, _)| rank + 1), node);
    }

    /// Adds a node, or moves it, so that its turn is after the others.
    pub(super) fn push_last(&mut self, node: NodeId) {
        self.remove(node);
        let first = self.order.first_key_value();
        self.insert(first.map_or(0, |(rank, _)| rank - 1), node);
    }

    pub(super) fn remove(&mut self, node: NodeId) {
        if let Some(rank) = self.ranks.remove(&node) {
            self.order.remove(&rank);
        }
    }

    /// The node whose turn is next.
    pub(super) fn first(&self) -> Option<NodeId> {
        self.order.last_key_value().map(|(_, node)| *node)
    }

    /// The node whose turn is after the others.
    pub(super) fn last(&self) -> Option<NodeId> {
        self.order.first_key_value().map(|(_, node)| *node)
    }

    fn insert(&mut self, rank: i64, node: NodeId) {
        self.order.insert(rank, node);
        self.ranks.insert(node, rank);
    }
}
