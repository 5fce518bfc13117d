//! [`SubscriberTable`]: the publisher's side.

use std::collections::HashMap;
use std::hash::Hash;

use super::slab::Slab;
use super::tree::Tree;

/// Which peers want which prefixes: what an XPUB or PUB socket knows of its subscribers.
///
/// A peer either wants a prefix or not: asking twice changes nothing, and one [`remove`](Self::remove) undoes both.
pub struct SubscriberTable<K> {
    /// The value of a topic says who wants it, see [`Wanted`].
    tree: Tree,
    /// The subscribers of topics with two or more, sorted.
    groups: Slab<Vec<u32>>,
    peers: Vec<Peer<K>>,
    numbers: HashMap<K, u32>,
    vacant: Vec<u32>,
}

/// What [`SubscriberTable::add`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// Nobody wanted this prefix before.
    FirstOfTopic,
    /// Others want it already, this peer did not.
    FirstOfPeer,
    /// This peer wants it already.
    Duplicate,
}

/// What [`SubscriberTable::remove`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// This peer did not want the prefix.
    Unknown,
    /// Others still want it.
    Remaining,
    /// Nobody wants it any more.
    LastOfTopic,
}

/// A subscriber, known by its place in the table while it wants anything.
struct Peer<K> {
    key: K,
    topics: PeerTopics,
}

/// What leaving has to undo: ids of nodes.
///
/// A topic the peer no longer wants stays listed until the list has doubled, which is cheaper by far than finding
/// it; so ids may be listed that mean nothing any more, or meanwhile another topic, or the same one twice.
#[derive(Default)]
struct PeerTopics {
    ids: Vec<u32>,
    /// How many topics the peer wants.
    len: usize,
}

/// Who wants a topic, packed into the tree's values.
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
            groups: Slab::new(1),
            peers: Vec::new(),
            numbers: HashMap::new(),
            vacant: Vec::new(),
        }
    }

    /// Notes that `peer` wants what begins with `topic`.
    pub fn add(&mut self, topic: &[u8], peer: K) -> Added {
        let number = self.number(peer);
        let (id, old) = self.tree.insert(topic, Wanted::By(number).pack());
        let added = match Wanted::unpack(old) {
            None => Added::FirstOfTopic,
            Some(Wanted::By(other)) if other == number => Added::Duplicate,
            Some(Wanted::By(other)) => {
                let group = self.groups.insert();
                self.groups.item_mut(group)[0] = vec![other.min(number), other.max(number)];
                self.tree.set_value(id, Wanted::ByGroup(group).pack());
                Added::FirstOfPeer
            }
            Some(Wanted::ByGroup(group)) => {
                let group = &mut self.groups.item_mut(group)[0];
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
            topics.ids.push(id);
            topics.len += 1;
            topics.tidy(|id| wants(&self.tree, &self.groups, id, number));
        }
        added
    }

    /// Notes that `peer` no longer wants what begins with `topic`.
    pub fn remove(&mut self, topic: &[u8], peer: K) -> Dropped {
        let Some(&number) = self.numbers.get(&peer) else {
            return Dropped::Unknown;
        };
        let Some(id) = self.tree.find(topic) else {
            return Dropped::Unknown;
        };
        let dropped = self.withdraw(id, number);
        match dropped {
            Dropped::Unknown => return dropped,
            Dropped::Remaining => {}
            Dropped::LastOfTopic => self.tree.remove(id),
        }
        let topics = &mut self.peers[number as usize].topics;
        topics.len -= 1;
        if topics.len == 0 {
            self.forget(peer, number);
        } else {
            topics.tidy(|id| wants(&self.tree, &self.groups, id, number));
        }
        dropped
    }

    /// Notes that `peer` wants nothing any more, and calls `unwanted` with each topic that it was the last to want.
    ///
    /// Costs what the peer's own topics cost, not what all do.
    pub fn remove_peer(&mut self, peer: K, mut unwanted: impl FnMut(&[u8])) {
        let Some(&number) = self.numbers.get(&peer) else {
            return;
        };
        let topics = self.forget(peer, number);
        let mut topic = Vec::new();
        for id in topics.ids {
            if self.withdraw(id, number) == Dropped::LastOfTopic {
                self.tree.topic(id, &mut topic);
                self.tree.remove(id);
                unwanted(&topic);
            }
        }
    }

    /// Calls `visit` with each topic that `peer` wants, in no order.
    pub fn for_each_topic_of(&self, peer: K, mut visit: impl FnMut(&[u8])) {
        let Some(&number) = self.numbers.get(&peer) else {
            return;
        };
        let mut ids = self.peers[number as usize].topics.ids.clone();
        ids.sort_unstable();
        ids.dedup();
        let mut topic = Vec::new();
        for id in ids {
            if wants(&self.tree, &self.groups, id, number) {
                self.tree.topic(id, &mut topic);
                visit(&topic);
            }
        }
    }

    /// Calls `visit` with every peer that wants `text`; more than once when it wants several prefixes of it.
    pub fn for_each_match(&self, text: &[u8], mut visit: impl FnMut(K)) {
        self.tree.walk(text, |id, _| {
            match Wanted::unpack(self.tree.value(id)) {
                None => {}
                Some(Wanted::By(number)) => visit(self.peers[number as usize].key),
                Some(Wanted::ByGroup(group)) => {
                    for &number in &self.groups.item(group)[0] {
                        visit(self.peers[number as usize].key);
                    }
                }
            }
            true
        });
    }

    /// Calls `visit` with every topic that somebody wants, in the order of their bytes.
    pub fn for_each_topic(&self, visit: impl FnMut(&[u8])) {
        self.tree.for_each(visit);
    }

    /// Number of different topics.
    pub fn topics(&self) -> usize {
        self.tree.len()
    }

    /// Number of topics that `peer` wants.
    pub fn topics_of(&self, peer: K) -> usize {
        let number = self.numbers.get(&peer);
        number.map_or(0, |&number| self.peers[number as usize].topics.len)
    }
}

impl<K: Copy + Eq + Hash> Default for SubscriberTable<K> {
    fn default() -> SubscriberTable<K> {
        SubscriberTable::new()
    }
}

impl<K: Copy + Eq + Hash> SubscriberTable<K> {
    /// The peer's number, a new one when it wanted nothing so far.
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

    /// Takes the peer's number back; returns what it had to undo.
    fn forget(&mut self, key: K, number: u32) -> PeerTopics {
        let topics = std::mem::take(&mut self.peers[number as usize].topics);
        self.numbers.remove(&key);
        self.vacant.push(number);
        if self.numbers.is_empty() {
            (self.peers, self.numbers, self.vacant) = Default::default();
        }
        topics
    }

    /// Takes a peer off a topic; the last one stays noted, as the topic itself is to be removed then.
    fn withdraw(&mut self, id: u32, number: u32) -> Dropped {
        match Wanted::unpack(self.tree.value(id)) {
            Some(Wanted::By(only)) if only == number => Dropped::LastOfTopic,
            Some(Wanted::ByGroup(at)) => {
                let group = &mut self.groups.item_mut(at)[0];
                let Ok(place) = group.binary_search(&number) else {
                    return Dropped::Unknown;
                };
                group.remove(place);
                if let [only] = group[..] {
                    self.groups.remove(at);
                    self.tree.set_value(id, Wanted::By(only).pack());
                } else if group.capacity() > 4 * group.len() {
                    group.shrink_to(2 * group.len());
                }
                Dropped::Remaining
            }
            _ => Dropped::Unknown,
        }
    }
}

/// Whether a peer wants the topic that has this id now, if there is one.
fn wants(tree: &Tree, groups: &Slab<Vec<u32>>, id: u32, number: u32) -> bool {
    match Wanted::unpack(tree.value(id)) {
        None => false,
        Some(Wanted::By(only)) => only == number,
        Some(Wanted::ByGroup(group)) => groups.item(group)[0].binary_search(&number).is_ok(),
    }
}

impl PeerTopics {
    /// Forgets the ids that mean nothing any more, once they are the most.
    fn tidy(&mut self, wanted: impl Fn(u32) -> bool) {
        if self.ids.len() <= 2 * self.len + 16 {
            return;
        }
        self.ids.retain(|&id| wanted(id));
        self.ids.sort_unstable();
        self.ids.dedup();
        self.ids.shrink_to(2 * self.len);
    }
}

impl Wanted {
    /// As the value of a topic: never 0, which means that nobody wants it.
    fn pack(self) -> u32 {
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

    /// Ids are given out again, so one may be listed often and still be wanted.
    #[test]
    fn tidying_leaves_each_wanted_id_once() {
        let mut topics = PeerTopics {
            ids: [1, 2, 3].repeat(20),
            len: 2,
        };
        topics.tidy(|id| id != 2);
        assert_eq!(topics.ids, [1, 3]);
    }
}
