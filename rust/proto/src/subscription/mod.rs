//! Prefix matching of topics for the publish-subscribe sockets.
//!
//! [`Subscriptions`] is the subscriber's side: how many times each prefix was added, and whether a message begins with
//! any of them. [`SubscriberTable`] is the publisher's side: which peers subscribed to which prefix.
//!
//! Both are based on a compressed prefix tree (`tree`) that keeps up to a hundred topics in a node, as a sorted list in
//! one allocation (`block`). Nodes are stored in arrays and refer to each other by number (`slab`). Of many topics of
//! 20 bytes, each takes about 40 bytes in total, and half of that if most of their text is common. A topic of many
//! megabytes takes little more than itself. The effect of a peer is bounded by the bytes it sent: no operation
//! recurses, and each takes time in proportion to the length of its topic, however many others there are.
//! `examples/topics.rs` measures both.

mod block;
mod slab;
mod table;
mod tree;

use tree::{Tree, VALUE_MAX};

pub use table::{Added, Dropped, SubscriberTable, TOPIC};

/// Counted prefixes: the subscriptions of a SUB or XSUB socket.
pub struct Subscriptions {
    /// The value of a topic is the number of times it was added.
    tree: Tree,
}

/// The result of [`Subscriptions::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// There was no such subscription.
    Unknown,
    /// It had been added more often than removed, and still matches.
    Remaining,
    /// It was the last subscription to this prefix.
    Last,
}

impl Subscriptions {
    /// No subscriptions, which match nothing.
    pub fn new() -> Subscriptions {
        Subscriptions { tree: Tree::new() }
    }

    /// Adds a prefix once more; returns whether it is new.
    pub fn add(&mut self, topic: &[u8]) -> bool {
        let (place, count) = self.tree.insert(topic, 1);
        if count != 0 {
            self.tree.set_value(place, VALUE_MAX.min(count + 1));
        }
        count == 0
    }

    /// Removes one subscription to the prefix.
    pub fn remove(&mut self, topic: &[u8]) -> Removal {
        let Some(place) = self.tree.find(topic) else {
            return Removal::Unknown;
        };
        match self.tree.value(place) {
            1 => {
                self.tree.remove(place);
                Removal::Last
            }
            count => {
                self.tree.set_value(place, count - 1);
                Removal::Remaining
            }
        }
    }

    /// Whether `text` begins with any of the prefixes.
    #[inline]
    pub fn matches(&self, text: &[u8]) -> bool {
        let mut matched = false;
        self.tree.walk(text, |_| {
            matched = true;
            false
        });
        matched
    }

    /// Number of different prefixes.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` with each prefix once, in the order of their bytes.
    pub fn for_each(&self, visit: impl FnMut(&[u8])) {
        self.tree.for_each(visit);
    }
}

impl Default for Subscriptions {
    fn default() -> Subscriptions {
        Subscriptions::new()
    }
}
