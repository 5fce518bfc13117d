//! Who wants which topics: prefix matching for the publish-subscribe sockets.
//!
//! [`Subscriptions`] is the subscriber's side: how often each prefix was asked for, and whether a message begins
//! with any of them. [`SubscriberTable`] is the publisher's side: which peers asked for which prefix.
//!
//! Both stand on one compressed prefix tree (`tree`) that keeps up to a hundred topics in a node, as a sorted list in one
//! piece of memory (`block`); nodes live in arrays and name each other by number (`slab`). Of many topics of 20 bytes
//! each takes about 40 bytes in all, half of that where they have most of their text in common; a topic of many
//! megabytes takes little more than itself. What peers can do is bounded by what they sent: no operation recurses, and
//! each costs about the length of its topic, however many others there are. `examples/topics.rs` measures both.

mod block;
mod slab;
mod table;
mod tree;

use tree::{Tree, VALUE_MAX};

pub use table::{Added, Dropped, SubscriberTable};

/// Counted prefixes: what a SUB or XSUB socket has subscribed to.
pub struct Subscriptions {
    /// The value of a topic is how often it was added.
    tree: Tree,
}

/// What [`Subscriptions::remove`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// There was no such subscription.
    Unknown,
    /// It had been added more often than removed, and still matches.
    Remaining,
    /// It was the last one of this prefix.
    Last,
}

impl Subscriptions {
    /// No subscriptions: matches nothing.
    pub fn new() -> Subscriptions {
        Subscriptions { tree: Tree::new() }
    }

    /// Adds a prefix once more; true when it was not there before.
    pub fn add(&mut self, topic: &[u8]) -> bool {
        let (place, count) = self.tree.insert(topic, 1);
        if count != 0 {
            self.tree.set_value(place, VALUE_MAX.min(count + 1));
        }
        count == 0
    }

    /// Takes one of the prefix's subscriptions back.
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

    /// Whether there are none.
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
