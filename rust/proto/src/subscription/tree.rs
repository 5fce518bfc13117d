//! The prefix tree of both tables: topics with a value each.

use std::ops::Range;

use super::block::{Block, ENTRY};
use super::slab::Slab;

const ROOT: u32 = 0;

/// The maximum length of an entry's text; longer topics become chains of nodes.
///
/// Every change of a node moves its texts. If they could be as long as topics, a peer with one huge topic could have
/// all of it moved again and again by adding a few bytes.
const LONGEST: usize = 2048;

/// A node with more entries than this moves those that begin with the same byte to a node of their own, if there are
/// any.
const CROWDED: usize = 128;

/// The same for more than this number of entries with equal heads, which would be slow to search.
const ALIKE: usize = 8;

/// The same for a node whose entries have more bytes than this. Entries for all 256 bytes with long texts would exceed
/// it, but after the split, when they are short, they do not.
const LARGEST: usize = 8192;
const _: () = assert!(256 * (ENTRY + 1) + LONGEST < LARGEST);

/// Marks the number of a text as that of its child node. Otherwise it is the value of a topic.
const NODE: u32 = 1 << 31;

/// The highest value.
pub(super) const VALUE_MAX: u32 = NODE - 1;

/// All topics that begin with one text: the topic that ends here, if there is one, and all longer ones.
#[derive(Default)]
struct Node {
    /// The continuations, up to the end of the topic or to the child node with the rest.
    block: Block,
    parent: u32,
    /// 0 means that no topic ends here.
    value: u32,
}

/// The position of a topic, valid until the tree is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) node: u32,
    /// Its entry there, or `HERE` if it ends at the node.
    at: u32,
}

const HERE: u32 = u32::MAX;

impl Place {
    fn entry(node: u32, at: usize) -> Place {
        let at = at as u32; // of at most 2^16 entries
        Place { node, at }
    }

    fn here(node: u32) -> Place {
        Place { node, at: HERE }
    }
}

/// A compressed prefix tree with many topics per node, like a B-tree.
///
/// A topic that is the beginning of others has a node. The common beginnings of other topics have nodes only where a
/// node would be too crowded otherwise. Nodes refer to each other by number, so nothing recurses, and dropping a tree
/// only drops arrays, however deep the topics nest.
pub(super) struct Tree {
    nodes: Slab<Node>,
    topics: usize,
    /// The values that the last change moved to other nodes, with these nodes.
    moved: Vec<(u32, u32)>,
}

impl Tree {
    pub(super) fn new() -> Tree {
        Tree {
            nodes: Slab::new(),
            topics: 0,
            moved: Vec::new(),
        }
    }

    /// Number of topics.
    pub(super) fn len(&self) -> usize {
        self.topics
    }

    /// The value of the topic at this position, 0 if there is none.
    pub(super) fn value(&self, place: Place) -> u32 {
        let Some(node) = self.nodes.get(place.node) else {
            return 0;
        };
        let at = place.at as usize;
        match place.at {
            HERE => node.value,
            _ if at < node.block.len() => value_of(node.block.number(at)),
            _ => 0,
        }
    }

    /// Sets the value of a topic; neither the old nor the new value is 0.
    pub(super) fn set_value(&mut self, place: Place, value: u32) {
        debug_assert!((1..=VALUE_MAX).contains(&value) && self.value(place) != 0);
        let node = self.node_mut(place.node);
        match place.at {
            HERE => node.value = value,
            at => node.block.set_number(at as usize, value),
        }
    }

    /// The positions of a node, in the order of their topics. Those without a topic have the value 0.
    pub(super) fn places(&self, node: u32) -> impl Iterator<Item = Place> {
        (0..).map_while(move |nth| self.nth_place(node, nth))
    }

    /// One of them.
    pub(super) fn nth_place(&self, node: u32, nth: usize) -> Option<Place> {
        let len = self.nodes.get(node)?.block.len();
        match nth {
            0 => Some(Place::here(node)),
            _ if nth <= len => Some(Place::entry(node, nth - 1)),
            _ => None,
        }
    }

    /// The values that the last change moved to other nodes, with these nodes.
    pub(super) fn moved(&self) -> &[(u32, u32)] {
        &self.moved
    }

    /// Finds or inserts a topic; returns its position and previous value. A new topic gets `value`, and 0 is returned.
    pub(super) fn insert(&mut self, topic: &[u8], value: u32) -> (Place, u32) {
        debug_assert!((1..=VALUE_MAX).contains(&value));
        self.moved.clear();
        if self.nodes.len() == 0 {
            let root = self.nodes.insert(Node::default());
            debug_assert_eq!(root, ROOT);
        }
        let (mut id, mut rest) = (ROOT, topic);
        while !rest.is_empty() {
            let text = &rest[..rest.len().min(LONGEST)];
            let block = &self.node(id).block;
            let before = block.before(text);
            if let Some((at, len)) = block.prefix(before, text) {
                let (number, after) = (block.number(at), &rest[len..]);
                if number & NODE != 0 {
                    (id, rest) = (number & !NODE, after);
                    continue;
                }
                if after.is_empty() {
                    return (Place::entry(id, at), number);
                }
                // It is no longer the end of all topics that begin with it.
                (id, rest) = (self.grow(id, at), after);
                continue;
            }
            let extensions = block.extensions(before, text);
            if extensions.is_empty() && text.len() == rest.len() {
                self.node_mut(id).block.insert(before, text, value);
                self.topics += 1;
                return (self.settle(Place::entry(id, before), topic), 0);
            }
            let node = self.fold(id, extensions, text);
            self.spread(id);
            (id, rest) = (node, &rest[text.len()..]);
        }
        let node = self.node_mut(id);
        let old = node.value;
        if old == 0 {
            node.value = value;
            self.topics += 1;
        }
        (Place::here(id), old)
    }

    /// The position of a topic.
    pub(super) fn find(&self, topic: &[u8]) -> Option<Place> {
        if self.topics == 0 {
            return None;
        }
        let (mut id, mut rest) = (ROOT, topic);
        while !rest.is_empty() {
            let (at, number, after) = self.step(id, rest)?;
            if number & NODE == 0 {
                return after.is_empty().then(|| Place::entry(id, at));
            }
            (id, rest) = (number & !NODE, after);
        }
        (self.node(id).value != 0).then(|| Place::here(id))
    }

    /// Calls `visit` with the value of every topic with which `text` begins, shortest first, until it returns false.
    #[inline]
    pub(super) fn walk(&self, text: &[u8], mut visit: impl FnMut(u32) -> bool) {
        if self.topics == 0 {
            return;
        }
        let (mut id, mut rest) = (ROOT, text);
        loop {
            let value = self.node(id).value;
            if value != 0 && !visit(value) {
                return;
            }
            let Some((_, number, after)) = self.step(id, rest) else {
                return;
            };
            if number & NODE == 0 {
                // A value, so no topic continues here.
                visit(number);
                return;
            }
            (id, rest) = (number & !NODE, after);
        }
    }

    /// The entry with which `text` begins, its number, and the rest of the text.
    #[inline]
    fn step<'a>(&self, id: u32, text: &'a [u8]) -> Option<(usize, u32, &'a [u8])> {
        let block = &self.node(id).block;
        let (at, len) = block.prefix(block.before(text), text)?;
        Some((at, block.number(at), &text[len..]))
    }

    /// Removes a topic, and every node that is no longer needed.
    pub(super) fn remove(&mut self, place: Place) {
        debug_assert!(self.value(place) != 0);
        self.moved.clear();
        self.topics -= 1;
        if self.topics == 0 {
            *self = Tree::new();
            return;
        }
        let mut id = place.node;
        match place.at {
            HERE => self.node_mut(id).value = 0,
            at => self.node_mut(id).block.remove(at as usize),
        }
        while id != ROOT {
            let Node {
                block,
                parent,
                value,
            } = self.node(id);
            let (parent, value) = (*parent, *value);
            match (block.len(), value) {
                (0, 0) => {
                    let at = self.place_of(id);
                    self.node_mut(parent).block.remove(at);
                    self.nodes.remove(id);
                    id = parent;
                    // The parent may not be needed any more.
                    continue;
                }
                (0, value) => {
                    let at = self.place_of(id);
                    self.node_mut(parent).block.set_number(at, value);
                    self.nodes.remove(id);
                    self.moved.push((value, parent));
                }
                (1, 0) => self.join(id),
                _ => {}
            }
            return;
        }
    }

    /// Replaces `text` by the text that leads to a node.
    pub(super) fn spell(&self, id: u32, text: &mut Vec<u8>) {
        let mut steps = Vec::new();
        let mut id = id;
        while id != ROOT {
            steps.push((self.node(id).parent, self.place_of(id)));
            id = self.node(id).parent;
        }
        text.clear();
        for &(id, at) in steps.iter().rev() {
            text.extend_from_slice(self.node(id).block.text(at));
        }
    }

    /// The part of a topic after the text of its node.
    pub(super) fn tail(&self, place: Place) -> &[u8] {
        match place.at {
            HERE => &[],
            at => self.node(place.node).block.text(at as usize),
        }
    }

    /// Calls `visit` with every topic, in the order of their bytes.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8])) {
        if self.topics == 0 {
            return;
        }
        if self.node(ROOT).value != 0 {
            visit(&[]);
        }
        let mut text = Vec::new();
        // The nodes on the path, with the length of each one's text, and the number of its entries that are done.
        let mut open = vec![(ROOT, 0, 0)];
        while let Some((id, len, done)) = open.last_mut() {
            text.truncate(*len);
            let block = &self.node(*id).block;
            let at = *done;
            if at == block.len() {
                open.pop();
                continue;
            }
            *done += 1;
            text.extend_from_slice(block.text(at));
            let number = block.number(at);
            if number & NODE == 0 {
                visit(&text);
                continue;
            }
            let id = number & !NODE;
            if self.node(id).value != 0 {
                visit(&text);
            }
            open.push((id, text.len(), 0));
        }
    }

    /// Makes a child node of a topic that is an entry.
    fn grow(&mut self, id: u32, at: usize) -> u32 {
        let value = self.node(id).block.number(at);
        let node = self.nodes.insert(Node {
            block: Block::default(),
            parent: id,
            value,
        });
        self.node_mut(id).block.set_number(at, NODE | node);
        self.moved.push((value, node));
        node
    }

    /// Moves the entries that begin with `text` into a new node, which becomes the entry of that text. The range may be
    /// empty; the text is then inserted where they would be.
    fn fold(&mut self, id: u32, entries: Range<usize>, text: &[u8]) -> u32 {
        let node = self.nodes.insert(Node::default());
        let all = &self.node(id).block;
        let upper = all.replaced(entries.clone(), text, NODE | node);
        let lower = Block::new(
            all.entries()
                .take(entries.end)
                .skip(entries.start)
                .map(|(longer, number)| (&longer[text.len()..], number)),
        );
        for number in lower.numbers() {
            if number & NODE == 0 {
                self.moved.push((number, node));
            } else {
                self.nodes.item_mut(number & !NODE).parent = node;
            }
        }
        self.node_mut(id).block = upper;
        *self.node_mut(node) = Node {
            block: lower,
            parent: id,
            value: 0,
        };
        node
    }

    /// Moves entries to new nodes until no node is crowded.
    fn spread(&mut self, id: u32) {
        let mut crowded = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            next = match excess(&self.node(id).block) {
                Some((entries, len)) => {
                    let text = self.node(id).block.text(entries.start)[..len].to_vec();
                    let node = self.fold(id, entries, &text);
                    crowded.push(node);
                    Some(id)
                }
                None => crowded.pop(),
            };
        }
    }

    /// The position of a new topic after its node was split.
    fn settle(&mut self, place: Place, topic: &[u8]) -> Place {
        let block = &self.node(place.node).block;
        let alike = block.alike(place.at as usize);
        if alike.len() > ALIKE {
            let len = shared(block, &alike);
            let text = block.text(alike.start)[..len].to_vec();
            self.fold(place.node, alike, &text);
        } else if excess(block).is_none() {
            return place;
        }
        self.spread(place.node);
        self.find(topic).expect("it was inserted")
    }

    /// Moves the only entry of a node to its parent, unless it would be too long there.
    fn join(&mut self, id: u32) {
        let Node { block, parent, .. } = self.node(id);
        let (parent, at) = (*parent, self.place_of(id));
        let above = &self.node(parent).block;
        let text = [above.text(at), block.text(0)].concat();
        if text.len() > LONGEST || above.size() + block.text(0).len() > LARGEST {
            return;
        }
        let number = block.number(0);
        let above = &mut self.node_mut(parent).block;
        above.remove(at);
        above.insert(at, &text, number);
        self.nodes.remove(id);
        if number & NODE == 0 {
            self.moved.push((number, parent));
        } else {
            self.node_mut(number & !NODE).parent = parent;
        }
    }

    /// The index of a node among its parent's entries.
    fn place_of(&self, id: u32) -> usize {
        let mut numbers = self.node(self.node(id).parent).block.numbers();
        numbers
            .position(|number| number == NODE | id)
            .expect("a node is an entry of its parent")
    }

    fn node(&self, id: u32) -> &Node {
        self.nodes.item(id)
    }

    fn node_mut(&mut self, id: u32) -> &mut Node {
        self.nodes.item_mut(id)
    }
}

fn value_of(number: u32) -> u32 {
    if number & NODE == 0 { number } else { 0 }
}

/// The part that a crowded node should move to a child: a range of entries, and the length of their common text that
/// stays.
fn excess(block: &Block) -> Option<(Range<usize>, usize)> {
    if block.len() <= CROWDED && block.size() <= LARGEST {
        return None;
    }
    let is_large = block.size() > LARGEST;
    let (mut most, mut group) = (0, 0..0);
    let mut start = 0;
    for end in 1..=block.len() {
        if end < block.len() && block.first_byte(end) == block.first_byte(start) {
            continue;
        }
        let gain = if is_large {
            let bytes = |at| ENTRY + block.text(at).len();
            (start..end).map(bytes).sum()
        } else {
            end - start
        };
        if gain > most {
            (most, group) = (gain, start..end);
        }
        start = end;
    }
    if group.len() == 1 {
        // There cannot be fewer, because all begin with different bytes, but they can be shorter.
        let is_long = is_large && most > ENTRY + 1;
        return is_long.then_some((group, 1));
    }
    let len = shared(block, &group);
    Some((group, len))
}

/// The length of the common beginning of some texts. They are sorted, so that of the first and the last is sufficient.
fn shared(block: &Block, group: &Range<usize>) -> usize {
    let (first, last) = (block.text(group.start), block.text(group.end - 1));
    first.iter().zip(last).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashMap};

    /// Topics with distinct values, and the nodes in which they are expected.
    struct Rig {
        tree: Tree,
        topics: BTreeMap<Vec<u8>, u32>,
        nodes: HashMap<u32, u32>,
        next: u32,
        /// Whether no node exists because its only entry would be too long elsewhere.
        are_short: bool,
    }

    impl Rig {
        fn new(are_short: bool) -> Rig {
            Rig {
                tree: Tree::new(),
                topics: BTreeMap::new(),
                nodes: HashMap::new(),
                next: 1,
                are_short,
            }
        }

        fn insert(&mut self, topic: Vec<u8>) {
            let (place, old) = self.tree.insert(&topic, self.next);
            assert_eq!(old, self.topics.get(&topic).copied().unwrap_or(0));
            self.follow();
            if old == 0 {
                self.topics.insert(topic, self.next);
                self.nodes.insert(self.next, place.node);
                assert_eq!(self.tree.value(place), self.next);
                self.next += 1;
            }
        }

        fn remove(&mut self, topic: &[u8]) {
            let place = self.tree.find(topic).unwrap();
            self.tree.remove(place);
            self.follow();
            let value = self.topics.remove(topic).unwrap();
            self.nodes.remove(&value);
        }

        fn follow(&mut self) {
            for &(value, node) in self.tree.moved() {
                self.nodes.insert(value, node);
            }
        }

        /// Checks that every node is needed, within its limits, knows its parent, and is counted.
        fn check(&self) {
            let (mut pending, mut seen) = (vec![ROOT], 0);
            while let Some(id) = pending.pop() {
                let Node { block, value, .. } = self.tree.node(id);
                assert!(excess(block).is_none());
                if id != ROOT {
                    assert!(block.len() > 0);
                    assert!(!self.are_short || (block.len(), *value) != (1, 0));
                }
                for pair in 1..block.len() {
                    let (text, next) = (block.text(pair - 1), block.text(pair));
                    assert!(text < next && !next.starts_with(text) && next.len() <= LONGEST);
                }
                for number in block.numbers().filter(|number| number & NODE != 0) {
                    assert_eq!(self.tree.node(number & !NODE).parent, id);
                    pending.push(number & !NODE);
                }
                seen += 1;
            }
            assert_eq!(seen, self.tree.nodes.len());
            let mut spelled = Vec::new();
            for (topic, &value) in &self.topics {
                let place = self.tree.find(topic).unwrap();
                assert_eq!(self.tree.value(place), value);
                assert_eq!(self.nodes[&value], place.node);
                self.tree.spell(place.node, &mut spelled);
                spelled.extend_from_slice(self.tree.tail(place));
                assert_eq!(&spelled, topic);
            }
        }
    }

    /// A number less than `below`.
    fn random(seed: &mut u64, below: usize) -> usize {
        *seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (*seed >> 33) as usize % below
    }

    /// Grows and shrinks a tree of such topics repeatedly.
    fn come_and_go(rounds: usize, are_short: bool, mut topic: impl FnMut(&mut u64) -> Vec<u8>) {
        let mut rig = Rig::new(are_short);
        let mut seed = 1;
        for round in 0..rounds {
            let growing = (round / (rounds / 6)).is_multiple_of(2);
            if growing || rig.topics.is_empty() {
                rig.insert(topic(&mut seed));
            } else {
                let at = random(&mut seed, rig.topics.len());
                let topic = rig.topics.keys().nth(at).unwrap().clone();
                rig.remove(&topic);
            }
            if round % 32 == 0 && !rig.topics.is_empty() {
                rig.check();
            }
        }
        while let Some(topic) = rig.topics.keys().next().cloned() {
            rig.remove(&topic);
        }
        assert_eq!(rig.tree.nodes.len(), 0);
    }

    #[test]
    fn parts_of_one_long_text_with_three_endings() {
        let text: Vec<u8> = (0..20_000_u32).map(|n| (n * n / 7) as u8).collect();
        come_and_go(900, false, |seed| {
            let mut topic = text[..random(seed, text.len())].to_vec();
            topic.extend(&b"abc"[..random(seed, 3)]);
            topic
        });
    }

    #[test]
    fn numbers_of_few_digits() {
        come_and_go(3000, true, |seed| {
            format!("topic/{:04}/", random(seed, 2500)).into_bytes()
        });
        come_and_go(3000, true, |seed| {
            random(seed, 1500).to_string().into_bytes()
        });
    }

    #[test]
    fn long_texts_of_all_first_bytes() {
        come_and_go(900, false, |seed| {
            let mut topic = vec![random(seed, 256) as u8; 1 + random(seed, 100)];
            topic.resize(topic.len() + random(seed, 3000), 0);
            topic
        });
    }
}
