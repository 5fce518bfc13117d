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
    /// The subscribers of topics with two or more.
    groups: Slab<Group>,
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

/// The places of a peer's topics, for its removal: the nodes of the tree that have topics of this peer alone, and its groups.
///
/// A group knows its node. So when a topic with many subscribers moves to another node, which one topic more can cause,
/// no list changes.
///
/// A place without any of its topics stays listed until the list has doubled, because that is much cheaper than finding
/// it. A place may be listed twice.
#[derive(Default)]
struct PeerTopics {
    /// Packed [`Listed`] places.
    places: Vec<u32>,
    /// The number of the peer's topics, and their total length in bytes.
    len: usize,
    bytes: usize,
}

/// The subscribers of a topic with two or more.
#[derive(Default)]
struct Group {
    /// Their numbers, sorted.
    members: Vec<u32>,
    /// The node of the tree that has the topic.
    node: u32,
}

/// Where topics of a peer are.
#[derive(Clone, Copy)]
enum Listed {
    Node(u32),
    Group(u32),
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
        let mut listed = Listed::Node(place.node);
        let added = match Wanted::unpack(old) {
            None => Added::FirstOfTopic,
            Some(Wanted::By(other)) if other == number => Added::Duplicate,
            Some(Wanted::By(other)) => {
                let group = self.groups.insert(Group {
                    members: vec![other.min(number), other.max(number)],
                    node: place.node,
                });
                self.tree.set_value(place, Wanted::ByGroup(group).pack());
                listed = Listed::Group(group);
                self.list(other, listed);
                Added::FirstOfPeer
            }
            Some(Wanted::ByGroup(id)) => {
                listed = Listed::Group(id);
                let members = &mut self.groups.item_mut(id).members;
                match members.binary_search(&number) {
                    Ok(_) => Added::Duplicate,
                    Err(at) => {
                        members.insert(at, number);
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
            self.list(number, listed);
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
            topics.tidy(|place| is_at(&self.tree, &self.groups, place, number));
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
            let places = std::mem::take(&mut self.peers[number as usize].topics.places);
            if places.is_empty() {
                break;
            }
            for place in sorted(places) {
                match Listed::unpack(place) {
                    Listed::Node(node) => {
                        self.withdraw_all(node, number, &mut topic, &mut unwanted);
                    }
                    // Its topic may move to another node while those before it are removed.
                    Listed::Group(id) => {
                        while let Some(group) = self.groups.get(id).filter(|it| it.has(number)) {
                            self.withdraw_all(group.node, number, &mut topic, &mut unwanted);
                        }
                    }
                }
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
        let places = self.peers[number as usize].topics.places.iter();
        let nodes = places.filter_map(|&place| match Listed::unpack(place) {
            Listed::Node(node) => Some(node),
            Listed::Group(group) => self.groups.get(group).map(|group| group.node),
        });
        for node in sorted(nodes.collect()) {
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
            match Wanted::unpack(value) {
                None => {}
                Some(Wanted::ByGroup(group)) => groups.item_mut(group).node = node,
                Some(Wanted::By(number)) => {
                    let topics = &mut peers[number as usize].topics;
                    topics.list(Listed::Node(node), |place| {
                        is_at(tree, groups, place, number)
                    });
                }
            }
        }
    }

    /// Lists a place for a peer.
    fn list(&mut self, number: u32, listed: Listed) {
        let SubscriberTable {
            tree,
            groups,
            peers,
            ..
        } = self;
        let topics = &mut peers[number as usize].topics;
        topics.list(listed, |place| is_at(tree, groups, place, number));
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
                let members = &mut self.groups.item_mut(at).members;
                let Ok(which) = members.binary_search(&number) else {
                    return Dropped::Unknown;
                };
                members.remove(which);
                if let [only] = members[..] {
                    self.groups.remove(at);
                    self.tree.set_value(place, Wanted::By(only).pack());
                    self.list(only, Listed::Node(place.node));
                } else if members.capacity() > 4 * members.len() {
                    members.shrink_to(2 * members.len());
                }
                Dropped::Remaining
            }
            _ => Dropped::Unknown,
        }
    }
}

#[inline]
fn for_each_member(groups: &Slab<Group>, value: u32, mut visit: impl FnMut(u32)) {
    match Wanted::unpack(value) {
        None => {}
        Some(Wanted::By(number)) => visit(number),
        Some(Wanted::ByGroup(group)) => {
            let members = groups.item(group).members.iter();
            members.for_each(|&number| visit(number));
        }
    }
}

/// Whether a peer has the topic with this value.
fn wants(groups: &Slab<Group>, value: u32, number: u32) -> bool {
    match Wanted::unpack(value) {
        None => false,
        Some(Wanted::By(only)) => only == number,
        Some(Wanted::ByGroup(group)) => groups.item(group).has(number),
    }
}

/// Whether a listed place has any topic of a peer, if it still exists.
fn is_at(tree: &Tree, groups: &Slab<Group>, place: u32, number: u32) -> bool {
    match Listed::unpack(place) {
        Listed::Group(group) => groups.get(group).is_some_and(|group| group.has(number)),
        Listed::Node(node) => tree
            .places(node)
            .any(|place| tree.value(place) == Wanted::By(number).pack()),
    }
}

fn sorted(mut places: Vec<u32>) -> Vec<u32> {
    places.sort_unstable();
    places.dedup();
    places
}

impl Group {
    fn has(&self, number: u32) -> bool {
        self.members.binary_search(&number).is_ok()
    }
}

impl Listed {
    /// Packs it. Nodes and groups have less than 2^31 numbers, because their values are packed as well.
    fn pack(self) -> u32 {
        match self {
            Listed::Node(node) => node * 2,
            Listed::Group(group) => group * 2 + 1,
        }
    }

    fn unpack(place: u32) -> Listed {
        match place % 2 {
            0 => Listed::Node(place / 2),
            _ => Listed::Group(place / 2),
        }
    }
}

impl PeerTopics {
    /// Lists a place. `wanted` tells whether the peer has a topic at a place.
    fn list(&mut self, listed: Listed, wanted: impl Fn(u32) -> bool) {
        let place = listed.pack();
        // Topics usually arrive in some order.
        if self.places.last() != Some(&place) {
            self.tidy(wanted);
            self.places.push(place);
        }
    }

    /// Before more memory is allocated, removes duplicates, and places without topics of the peer if they are the
    /// majority.
    fn tidy(&mut self, wanted: impl Fn(u32) -> bool) {
        let most = 2 * self.len + 16;
        if self.places.len() < self.places.capacity() && self.places.len() <= most {
            return;
        }
        self.places = sorted(std::mem::take(&mut self.places));
        if self.places.len() > most {
            self.places.retain(|&place| wanted(place));
            self.places.shrink_to(most);
        }
        if self.places.len() > self.places.capacity() / 2 {
            self.places.reserve(self.places.len());
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
    fn tidying_leaves_each_wanted_place_once() {
        let mut topics = PeerTopics {
            places: [1, 2, 3].repeat(20),
            len: 20,
            bytes: 20,
        };
        topics.tidy(|_| unreachable!("there are few once each is there once"));
        assert_eq!(topics.places, [1, 2, 3]);
        topics.places = (0..30).collect();
        topics.len = 2;
        topics.tidy(|place| place % 10 == 7);
        assert_eq!(topics.places, [7, 17, 27]);
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
        assert!(table.peers[0].topics.places.len() < 32);
        assert_eq!(table.remove(b"stays/5", 1), Dropped::LastOfTopic);
    }

    /// A topic moves to a node of its own when a longer one comes, and back when that one leaves. Lists of many peers
    /// would make that slow.
    #[test]
    fn a_topic_of_many_peers_moves_without_them() {
        let mut table = SubscriberTable::new();
        for peer in 0..1000 {
            table.add(b"news", peer);
        }
        let listed = |table: &SubscriberTable<i32>| -> usize {
            let peers = table.peers.iter();
            peers.map(|peer| peer.topics.places.len()).sum()
        };
        let before = listed(&table);
        for topic in [&b"newsX"[..], b"new"] {
            for _ in 0..3 {
                assert_eq!(table.add(topic, 1000), Added::FirstOfTopic);
                assert_eq!(table.remove(topic, 1000), Dropped::LastOfTopic);
            }
        }
        assert_eq!(listed(&table), before);
        table.add(b"newsX", 1000);
        for peer in 0..1000 {
            let mut topics = Vec::new();
            table.for_each_topic_of(peer, |topic| topics.push(topic.to_vec()));
            assert_eq!(topics, [b"news"]);
            let mut unwanted = Vec::new();
            table.remove_peer(peer, |topic| unwanted.push(topic.to_vec()));
            assert_eq!(unwanted.len(), usize::from(peer == 999));
        }
        assert_eq!(table.topics(), 1);
    }

    /// The node of both topics goes with the first one, and the second one is elsewhere then.
    #[test]
    fn a_topic_that_moves_while_its_peer_leaves_is_found() {
        let mut table = SubscriberTable::new();
        table.add(b"a", 3);
        table.add(b"aX", 1);
        table.add(b"aY", 1);
        table.add(b"aY", 2);
        table.remove(b"a", 3);
        let mut unwanted = Vec::new();
        table.remove_peer(1, |topic| unwanted.push(topic.to_vec()));
        assert_eq!(unwanted, [b"aX"]);
        assert!(!table.contains(b"aY", 1));
        assert_eq!(table.remove(b"aY", 2), Dropped::LastOfTopic);
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
