//! [`SubscriberTable`]: the publisher's side.

use std::collections::HashMap;
use std::hash::Hash;

use super::slab::Slab;
use super::tree::{Place, Tree, VALUE_MAX};

/// The peers that subscribed to each prefix: an XPUB or PUB socket's view of its subscribers.
///
/// A peer either has a prefix or not: adding it twice changes nothing, and one [`remove`](Self::remove) removes it.
pub struct SubscriberTable<K> {
    /// The value of a topic encodes its subscribers, see [`Wanted`].
    tree: Tree,
    /// The subscribers of topics with two or more, sorted.
    groups: Slab<Vec<u32>>,
    peers: Vec<Peer<K>>,
    numbers: HashMap<K, u32>,
    vacant: Vec<u32>,
    /// The number of topics of all peers together, and their total length in bytes.
    len: usize,
    bytes: usize,
}

/// The approximate memory of a topic in addition to its bytes.
pub const TOPIC: usize = 100;

/// The result of [`SubscriberTable::add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// No peer had this prefix before.
    FirstOfTopic,
    /// Other peers have it already, but this one did not.
    FirstOfPeer,
    /// This peer has it already.
    Duplicate,
}

/// The result of [`SubscriberTable::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// This peer did not have the prefix.
    Unknown,
    /// Other peers still have it.
    Remaining,
    /// No peer has it any more.
    LastOfTopic,
}

/// A subscriber, with an index in the table while it has any topic.
struct Peer<K> {
    key: K,
    topics: PeerTopics,
}

/// The nodes of the tree that have topics of a peer, for its removal.
///
/// A node without any of its topics stays listed until the list has doubled, because that is much cheaper than finding
/// it. A node may be listed twice.
#[derive(Default)]
struct PeerTopics {
    nodes: Vec<u32>,
    /// The number of the peer's topics, and their total length in bytes.
    len: usize,
    bytes: usize,
}

/// The subscribers of a topic, packed into the tree's values.
#[derive(Clone, Copy)]
enum Wanted {
    By(u32),
    ByGroup(u32),
}

impl<K: Copy + Eq + Hash> SubscriberTable<K> {
    /// No subscribers.
    pub fn new() -> SubscriberTable<K> {
        SubscriberTable {
            tree: Tree::new(),
            groups: Slab::new(),
            peers: Vec::new(),
            numbers: HashMap::new(),
            vacant: Vec::new(),
            len: 0,
            bytes: 0,
        }
    }

    /// Subscribes `peer` to messages that begin with `topic`.
    pub fn add(&mut self, topic: &[u8], peer: K) -> Added {
        let number = self.number(peer);
        let (place, old) = self.tree.insert(topic, Wanted::By(number).pack());
        self.follow();
        let added = match Wanted::unpack(old) {
            None => Added::FirstOfTopic,
            Some(Wanted::By(other)) if other == number => Added::Duplicate,
            Some(Wanted::By(other)) => {
                let both = vec![other.min(number), other.max(number)];
                let group = Wanted::ByGroup(self.groups.insert(both));
                self.tree.set_value(place, group.pack());
                Added::FirstOfPeer
            }
            Some(Wanted::ByGroup(group)) => {
                let group = self.groups.item_mut(group);
                match group.binary_search(&number) {
                    Ok(_) => Added::Duplicate,
                    Err(at) => {
                        group.insert(at, number);
                        Added::FirstOfPeer
                    }
                }
            }
        };
        if added != Added::Duplicate {
            let topics = &mut self.peers[number as usize].topics;
            topics.len += 1;
            topics.bytes += topic.len();
            self.len += 1;
            self.bytes += topic.len();
            self.list(number, place.node);
        }
        added
    }

    /// Unsubscribes `peer` from messages that begin with `topic`.
    pub fn remove(&mut self, topic: &[u8], peer: K) -> Dropped {
        let Some(&number) = self.numbers.get(&peer) else {
            return Dropped::Unknown;
        };
        let Some(place) = self.tree.find(topic) else {
            return Dropped::Unknown;
        };
        let dropped = self.withdraw(place, number);
        match dropped {
            Dropped::Unknown => return dropped,
            Dropped::Remaining => {}
            Dropped::LastOfTopic => {
                self.tree.remove(place);
                self.follow();
            }
        }
        let topics = &mut self.peers[number as usize].topics;
        topics.len -= 1;
        topics.bytes -= topic.len();
        self.len -= 1;
        self.bytes -= topic.len();
        if topics.len == 0 {
            self.forget(peer, number);
        } else {
            topics.tidy(|node| wants_any(&self.tree, &self.groups, node, number));
        }
        dropped
    }

    /// Removes all topics of `peer`, and calls `unwanted` with each topic that no other peer has.
    ///
    /// Takes time in proportion to the peer's own topics, and not to all topics.
    pub fn remove_peer(&mut self, peer: K, mut unwanted: impl FnMut(&[u8])) {
        let Some(&number) = self.numbers.get(&peer) else {
            return;
        };
        let mut topic = Vec::new();
        loop {
            // The rest of a node may move into another one, which is then listed.
            let nodes = std::mem::take(&mut self.peers[number as usize].topics.nodes);
            if nodes.is_empty() {
                break;
            }
            for node in sorted(nodes) {
                self.withdraw_all(node, number, &mut topic, &mut unwanted);
            }
        }
        self.forget(peer, number);
    }

    /// Calls `visit` with each topic of `peer`, in any order.
    pub fn for_each_topic_of(&self, peer: K, mut visit: impl FnMut(&[u8])) {
        let Some(&number) = self.numbers.get(&peer) else {
            return;
        };
        let mut topic = Vec::new();
        for node in sorted(self.peers[number as usize].topics.nodes.clone()) {
            let wanted = |place: &Place| wants(&self.groups, self.tree.value(*place), number);
            let mut places = self.tree.places(node).filter(wanted).peekable();
            if places.peek().is_some() {
                self.tree.spell(node, &mut topic);
            }
            let len = topic.len();
            for place in places {
                topic.extend_from_slice(self.tree.tail(place));
                visit(&topic);
                topic.truncate(len);
            }
        }
    }

    /// Calls `visit` with every peer that should receive `text`; more than once if several of its prefixes match.
    #[inline]
    pub fn for_each_match(&self, text: &[u8], mut visit: impl FnMut(K)) {
        self.tree.walk(text, |value| {
            for_each_member(&self.groups, value, |number| {
                visit(self.peers[number as usize].key);
            });
            true
        });
    }

    /// Calls `visit` with every topic of any peer, in the order of their bytes.
    pub fn for_each_topic(&self, visit: impl FnMut(&[u8])) {
        self.tree.for_each(visit);
    }

    /// Number of different topics.
    pub fn topics(&self) -> usize {
        self.tree.len()
    }

    /// The number of topics of `peer`, and the bytes in all of them.
    pub fn usage_of(&self, peer: K) -> (usize, usize) {
        self.numbers.get(&peer).map_or((0, 0), |&number| {
            let topics = &self.peers[number as usize].topics;
            (topics.len, topics.bytes)
        })
    }

    /// The approximate memory of the topics of all peers in bytes: their length, and [`TOPIC`] for each.
    pub fn size(&self) -> usize {
        self.bytes + self.len * TOPIC
    }

    /// Whether `peer` has exactly this topic.
    pub fn contains(&self, topic: &[u8], peer: K) -> bool {
        let (Some(&number), Some(place)) = (self.numbers.get(&peer), self.tree.find(topic)) else {
            return false;
        };
        wants(&self.groups, self.tree.value(place), number)
    }
}

impl<K: Copy + Eq + Hash> Default for SubscriberTable<K> {
    fn default() -> SubscriberTable<K> {
        SubscriberTable::new()
    }
}

impl<K: Copy + Eq + Hash> SubscriberTable<K> {
    /// The peer's number; a new one if it had no topics.
    fn number(&mut self, key: K) -> u32 {
        let SubscriberTable {
            peers,
            numbers,
            vacant,
            ..
        } = self;
        *numbers.entry(key).or_insert_with(|| {
            let peer = Peer {
                key,
                topics: PeerTopics::default(),
            };
            if let Some(number) = vacant.pop() {
                peers[number as usize] = peer;
                return number;
            }
            peers.push(peer);
            u32::try_from(peers.len() - 1).expect("2^32 peers do not fit in memory")
        })
    }

    /// Updates the lists of nodes after the tree has moved topics.
    fn follow(&mut self) {
        let SubscriberTable {
            tree,
            groups,
            peers,
            ..
        } = self;
        for &(value, node) in tree.moved() {
            for_each_member(groups, value, |number| {
                let topics = &mut peers[number as usize].topics;
                topics.list(node, |node| wants_any(tree, groups, node, number));
            });
        }
    }

    /// Lists a node for a peer.
    fn list(&mut self, number: u32, node: u32) {
        let SubscriberTable {
            tree,
            groups,
            peers,
            ..
        } = self;
        let topics = &mut peers[number as usize].topics;
        topics.list(node, |node| wants_any(tree, groups, node, number));
    }

    /// Frees the number of a peer that has no topics any more.
    fn forget(&mut self, key: K, number: u32) {
        let topics = std::mem::take(&mut self.peers[number as usize].topics);
        self.len -= topics.len;
        self.bytes -= topics.bytes;
        self.numbers.remove(&key);
        self.vacant.push(number);
        if self.numbers.is_empty() {
            (self.peers, self.numbers, self.vacant) = Default::default();
        }
    }

    /// Removes a peer from all topics of a node, and calls `unwanted` with those that no other peer has.
    fn withdraw_all(
        &mut self,
        node: u32,
        number: u32,
        topic: &mut Vec<u8>,
        unwanted: &mut impl FnMut(&[u8]),
    ) {
        let mut prefix = None;
        let mut nth = 0;
        while let Some(place) = self.tree.nth_place(node, nth) {
            if self.withdraw(place, number) != Dropped::LastOfTopic {
                nth += 1;
                continue;
            }
            let prefix = *prefix.get_or_insert_with(|| {
                self.tree.spell(node, topic);
                topic.len()
            });
            topic.truncate(prefix);
            topic.extend_from_slice(self.tree.tail(place));
            self.tree.remove(place);
            self.follow();
            unwanted(topic);
        }
    }

    /// Removes a peer from a topic. The last one stays recorded, because the topic itself is removed then.
    fn withdraw(&mut self, place: Place, number: u32) -> Dropped {
        match Wanted::unpack(self.tree.value(place)) {
            Some(Wanted::By(only)) if only == number => Dropped::LastOfTopic,
            Some(Wanted::ByGroup(at)) => {
                let group = self.groups.item_mut(at);
                let Ok(which) = group.binary_search(&number) else {
                    return Dropped::Unknown;
                };
                group.remove(which);
                if let [only] = group[..] {
                    self.groups.remove(at);
                    self.tree.set_value(place, Wanted::By(only).pack());
                } else if group.capacity() > 4 * group.len() {
                    group.shrink_to(2 * group.len());
                }
                Dropped::Remaining
            }
            _ => Dropped::Unknown,
        }
    }
}

#[inline]
fn for_each_member(groups: &Slab<Vec<u32>>, value: u32, mut visit: impl FnMut(u32)) {
    match Wanted::unpack(value) {
        None => {}
        Some(Wanted::By(number)) => visit(number),
        Some(Wanted::ByGroup(group)) => groups.item(group).iter().for_each(|&number| visit(number)),
    }
}

/// Whether a peer has the topic with this value.
fn wants(groups: &Slab<Vec<u32>>, value: u32, number: u32) -> bool {
    match Wanted::unpack(value) {
        None => false,
        Some(Wanted::By(only)) => only == number,
        Some(Wanted::ByGroup(group)) => groups.item(group).binary_search(&number).is_ok(),
    }
}

/// Whether a peer has any topic in this node, if the node exists.
fn wants_any(tree: &Tree, groups: &Slab<Vec<u32>>, node: u32, number: u32) -> bool {
    tree.places(node)
        .any(|place| wants(groups, tree.value(place), number))
}

fn sorted(mut nodes: Vec<u32>) -> Vec<u32> {
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

impl PeerTopics {
    /// Lists a node. `wanted` tells whether the peer has a topic in a node.
    fn list(&mut self, node: u32, wanted: impl Fn(u32) -> bool) {
        // Topics usually arrive in some order.
        if self.nodes.last() != Some(&node) {
            self.tidy(wanted);
            self.nodes.push(node);
        }
    }

    /// Before more memory is allocated, removes duplicates, and nodes without topics of the peer if they are the
    /// majority.
    fn tidy(&mut self, wanted: impl Fn(u32) -> bool) {
        let most = 2 * self.len + 16;
        if self.nodes.len() < self.nodes.capacity() && self.nodes.len() <= most {
            return;
        }
        self.nodes = sorted(std::mem::take(&mut self.nodes));
        if self.nodes.len() > most {
            self.nodes.retain(|&node| wanted(node));
            self.nodes.shrink_to(most);
        }
        if self.nodes.len() > self.nodes.capacity() / 2 {
            self.nodes.reserve(self.nodes.len());
        }
    }
}

impl Wanted {
    /// Packs it as the value of a topic: never 0, which means no subscribers.
    fn pack(self) -> u32 {
        let (Wanted::By(number) | Wanted::ByGroup(number)) = self;
        assert!(number < VALUE_MAX / 2, "2^30 of them do not fit in memory");
        match self {
            Wanted::By(number) => number * 2 + 1,
            Wanted::ByGroup(group) => (group + 1) * 2,
        }
    }

    fn unpack(value: u32) -> Option<Wanted> {
        match value {
            0 => None,
            odd if odd % 2 == 1 => Some(Wanted::By(odd / 2)),
            even => Some(Wanted::ByGroup(even / 2 - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes come and go, so one may be listed several times and still be needed.
    #[test]
    fn tidying_leaves_each_wanted_node_once() {
        let mut topics = PeerTopics {
            nodes: [1, 2, 3].repeat(20),
            len: 20,
            bytes: 20,
        };
        topics.tidy(|_| unreachable!("there are few once each is there once"));
        assert_eq!(topics.nodes, [1, 2, 3]);
        topics.nodes = (0..30).collect();
        topics.len = 2;
        topics.tidy(|node| node % 10 == 7);
        assert_eq!(topics.nodes, [7, 17, 27]);
    }

    /// The memory for a peer's removal does not grow when the tree is rebuilt around its topics.
    #[test]
    fn the_topics_of_others_leave_no_memory() {
        let mut table = SubscriberTable::new();
        table.add(b"stays/5", 1);
        for _ in 0..100 {
            for n in 0..1000 {
                table.add(format!("stays/5{n:03}").as_bytes(), 2);
                table.add(format!("stays/{n:03}").as_bytes(), 2);
            }
            table.remove_peer(2, |_| {});
        }
        assert!(table.peers[0].topics.nodes.len() < 32);
        assert_eq!(table.remove(b"stays/5", 1), Dropped::LastOfTopic);
    }

    /// The total is that of all peers, whatever way a topic leaves.
    #[test]
    fn the_size_follows_every_change() {
        let mut table = SubscriberTable::new();
        for n in 0..1000 {
            let topic = format!("{n:04}");
            table.add(topic.as_bytes(), n % 3);
            table.add(topic.as_bytes(), (n + 1) % 3);
            table.add(topic.as_bytes(), n % 3);
        }
        assert_eq!(table.size(), 2000 * (4 + TOPIC));
        for n in (0..1000).filter(|n| n % 3 == 1) {
            table.remove(format!("{n:04}").as_bytes(), 1);
            table.remove(b"unknown", 1);
        }
        let rest =
            |table: &SubscriberTable<i32>| (0..3).map(|peer| table.usage_of(peer).0).sum::<usize>();
        assert_eq!(table.size(), rest(&table) * (4 + TOPIC));
        table.remove_peer(0, |_| {});
        table.remove_peer(0, |_| {});
        assert_eq!(table.size(), rest(&table) * (4 + TOPIC));
        table.remove_peer(1, |_| {});
        table.remove_peer(2, |_| {});
        assert_eq!(table.size(), 0);
    }
}
