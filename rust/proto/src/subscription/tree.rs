//! The radix tree under both tables: topics in, ids that stay, values of 32 bits beside them.

use super::children::{ChildMaps, Children};
use super::label::{LONGEST, Label, shared_prefix};
use super::slab::Slab;

const ROOT: u32 = 0;

/// One edge of the tree and the topic that ends with it, if any: a cache line, and all that a search has to read of
/// it but the id of the next.
#[derive(Default)]
#[repr(align(64))]
struct Node {
    /// What this node adds to its parent's text. Empty for the root only.
    label: Label,
    parent: u32,
    /// 0: no topic ends here.
    value: u32,
    children: Children,
}

const _: () = assert!(size_of::<Node>() == 64);

/// A compressed prefix tree.
///
/// Nodes are named by ids, not by references, so nothing here recurses and dropping a tree is dropping a few
/// arrays, however deep the topics nest. The node of a topic keeps its id for as long as the topic has a value,
/// whatever happens around it.
///
/// A node without a value exists because it branches, or because its label and its only child's are together
/// longer than [`LONGEST`].
pub(super) struct Tree {
    nodes: Slab<Node>,
    maps: ChildMaps,
    topics: usize,
}

impl Tree {
    pub(super) fn new() -> Tree {
        Tree {
            nodes: Slab::new(1),
            maps: ChildMaps::new(),
            topics: 0,
        }
    }

    /// Number of topics with a value.
    pub(super) fn len(&self) -> usize {
        self.topics
    }

    /// The value of the topic with this id, 0 when there is none (any more).
    pub(super) fn value(&self, id: u32) -> u32 {
        self.nodes.get(id).map_or(0, |node| node[0].value)
    }

    /// Sets the value of a topic; neither the old nor the new one is 0.
    pub(super) fn set_value(&mut self, id: u32, value: u32) {
        debug_assert!(value != 0 && self.value(id) != 0);
        self.node_mut(id).value = value;
    }

    /// The id of a topic and its value; a topic that was not there gets `value`, and 0 is returned as its old one.
    pub(super) fn insert(&mut self, topic: &[u8], value: u32) -> (u32, u32) {
        debug_assert!(value != 0);
        let id = self.place(topic);
        let old = self.value(id);
        if old == 0 {
            self.node_mut(id).value = value;
            self.topics += 1;
        }
        (id, old)
    }

    /// The id of a topic that has a value.
    pub(super) fn find(&self, topic: &[u8]) -> Option<u32> {
        let mut found = None;
        self.walk(topic, |id, rest| {
            found = (rest == 0).then_some(id);
            true
        });
        found
    }

    /// Calls `visit` with the id of every topic that `text` begins with, shortest first, and with how much of the
    /// text is left behind it; until it returns false.
    #[inline]
    pub(super) fn walk(&self, text: &[u8], mut visit: impl FnMut(u32, usize) -> bool) {
        if self.topics == 0 {
            return;
        }
        let (mut id, mut rest) = (ROOT, text);
        loop {
            let node = self.node(id);
            if node.value != 0 && !visit(id, rest.len()) {
                return;
            }
            let Some(&byte) = rest.first() else { return };
            let Some(child) = self.maps.find(&node.children, byte) else {
                return;
            };
            let Some(after) = rest.strip_prefix(self.node(child).label.as_slice()) else {
                return;
            };
            (id, rest) = (child, after);
        }
    }

    /// Takes the value of a topic away, and every node that is no longer needed.
    pub(super) fn remove(&mut self, id: u32) {
        debug_assert!(self.value(id) != 0);
        self.node_mut(id).value = 0;
        self.topics -= 1;
        if self.topics == 0 {
            *self = Tree::new();
            return;
        }
        let mut id = id;
        while self.is_idle(id) && self.node(id).children.is_empty() {
            let (parent, byte) = (self.node(id).parent, self.first_byte(id));
            let mut children = self.node(parent).children;
            self.maps.remove(&mut children, byte);
            self.node_mut(parent).children = children;
            self.nodes.remove(id);
            id = parent;
        }
        // What is above it needs no look: this label has not become shorter.
        self.join_child(id);
    }

    /// Replaces what is in `topic` by the text of a topic.
    pub(super) fn topic(&self, id: u32, topic: &mut Vec<u8>) {
        // Labels come last to first: make room for all, then fill from the back.
        let mut len = 0;
        for id in self.ancestry(id) {
            len += self.node(id).label.as_slice().len();
        }
        topic.clear();
        topic.resize(len, 0);
        let mut end = len;
        for id in self.ancestry(id) {
            let label = self.node(id).label.as_slice();
            topic[end - label.len()..end].copy_from_slice(label);
            end -= label.len();
        }
    }

    /// Calls `visit` with every topic, in the order of their bytes.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8])) {
        if self.topics == 0 {
            return;
        }
        let mut text = Vec::new();
        let mut id = ROOT;
        loop {
            let node = self.node(id);
            text.extend_from_slice(node.label.as_slice());
            if node.value != 0 {
                visit(&text);
            }
            if let Some(child) = self.maps.find_from(&node.children, 0) {
                id = child;
                continue;
            }
            // Nothing below: up to the nearest node with a child further on.
            id = loop {
                if id == ROOT {
                    return;
                }
                let node = self.node(id);
                text.truncate(text.len() - node.label.as_slice().len());
                if let Some(next) = self.next_sibling(id) {
                    break next;
                }
                id = node.parent;
            };
        }
    }

    /// The node where `topic` ends, made if need be.
    fn place(&mut self, topic: &[u8]) -> u32 {
        if self.nodes.len() == 0 {
            let root = self.nodes.insert();
            debug_assert_eq!(root, ROOT);
        }
        let (mut id, mut rest) = (ROOT, topic);
        while let Some(&byte) = rest.first() {
            let child = self.maps.find(&self.node(id).children, byte);
            let label = child.map_or(&[][..], |child| self.node(child).label.as_slice());
            let shared = shared_prefix(label, rest);
            (id, rest) = match child {
                Some(child) if shared == label.len() => (child, &rest[shared..]),
                Some(child) if shared > 0 => {
                    let upper = self.split(child, shared);
                    // Now that they are shorter, either may fit together with a neighbour.
                    self.join_child(child);
                    self.join_child(id);
                    (upper, &rest[shared..])
                }
                // No child, or an only child at another byte.
                _ => {
                    let (label, after) = rest.split_at(rest.len().min(LONGEST));
                    (self.append(id, label), after)
                }
            };
        }
        id
    }

    /// A new child of `parent` at a byte that has none.
    fn append(&mut self, parent: u32, label: &[u8]) -> u32 {
        let id = self.nodes.insert();
        *self.node_mut(id) = Node {
            label: label.into(),
            parent,
            ..Node::default()
        };
        let mut children = self.node(parent).children;
        let nodes = &self.nodes;
        self.maps.insert(&mut children, label[0], id, |only| {
            nodes.item(only)[0].label.as_slice()[0]
        });
        self.node_mut(parent).children = children;
        id
    }

    /// Puts a new node into the edge to `lower`, `at` bytes down; `lower` keeps its id.
    fn split(&mut self, lower: u32, at: usize) -> u32 {
        let upper = self.nodes.insert();
        let node = self.node_mut(lower);
        let parent = std::mem::replace(&mut node.parent, upper);
        let (head, tail) = node.label.as_slice().split_at(at);
        let (head, tail) = (Label::from(head), Label::from(tail));
        node.label = tail;
        *self.node_mut(upper) = Node {
            label: head,
            parent,
            value: 0,
            children: Children::only(lower),
        };
        self.replace_child(parent, upper);
        upper
    }

    /// Joins a node with its only child when the node is there for nothing else; the child keeps its id.
    fn join_child(&mut self, upper: u32) {
        let Some(lower) = self.node(upper).children.as_only() else {
            return;
        };
        let head = self.node(upper).label.as_slice();
        let tail = self.node(lower).label.as_slice();
        if !self.is_idle(upper) || head.len() + tail.len() > LONGEST {
            return;
        }
        let label = Label::joined(head, tail);
        let parent = self.node(upper).parent;
        let node = self.node_mut(lower);
        (node.label, node.parent) = (label, parent);
        self.replace_child(parent, lower);
        self.nodes.remove(upper);
    }

    /// Makes `child` the child of `parent` in place of the one that began with the same byte.
    fn replace_child(&mut self, parent: u32, child: u32) {
        let byte = self.first_byte(child);
        let mut children = self.node(parent).children;
        self.maps.replace(&mut children, byte, child);
        self.node_mut(parent).children = children;
    }

    /// The child of the same parent with the next higher byte.
    fn next_sibling(&self, id: u32) -> Option<u32> {
        let siblings = &self.node(self.node(id).parent).children;
        let from = self.first_byte(id).checked_add(1)?;
        self.maps
            .find_from(siblings, from)
            .filter(|&next| next != id) // an only child
    }

    /// The node and those above it, the root left out.
    fn ancestry(&self, id: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(id), |&id| Some(self.node(id).parent))
            .take_while(|&id| id != ROOT)
    }

    /// Whether no topic ends here; the root always has its place.
    fn is_idle(&self, id: u32) -> bool {
        id != ROOT && self.node(id).value == 0
    }

    fn first_byte(&self, id: u32) -> u8 {
        self.node(id).label.as_slice()[0]
    }

    fn node(&self, id: u32) -> &Node {
        &self.nodes.item(id)[0]
    }

    fn node_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes.item_mut(id)[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every node is there for a reason, knows its parent, and is counted.
    fn check(tree: &Tree) {
        let (mut pending, mut seen) = (vec![ROOT], 0);
        while let Some(id) = pending.pop() {
            let node = tree.node(id);
            let children: BTreeSet<u32> = (0..=u8::MAX)
                .filter_map(|byte| tree.maps.find(&node.children, byte))
                .collect();
            for &child in &children {
                assert_eq!(tree.node(child).parent, id);
            }
            assert!(node.label.as_slice().len() <= LONGEST);
            if tree.is_idle(id) {
                assert!(!children.is_empty());
                if let Some(only) = node.children.as_only() {
                    let lengths = [id, only].map(|id| tree.node(id).label.as_slice().len());
                    assert!(lengths[0] + lengths[1] > LONGEST, "{lengths:?}");
                }
            }
            seen += 1;
            pending.extend(children);
        }
        assert_eq!(seen, tree.nodes.len());
    }

    /// Topics cut out of one long text anywhere, with one of three endings, in a scrambled order.
    #[test]
    fn no_node_outlives_its_reason() {
        let text: Vec<u8> = (0..20_000_u32).map(|n| (n * n / 7) as u8).collect();
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (random >> 33) as usize % below
        };
        let mut tree = Tree::new();
        let mut topics: Vec<Vec<u8>> = Vec::new();
        for round in 0..2000 {
            let growing = round / 250 % 2 == 0;
            if growing || topics.is_empty() {
                let mut topic = text[..next(text.len())].to_vec();
                topic.extend(&b"abc"[..next(3)]);
                if tree.insert(&topic, 1).1 == 0 {
                    topics.push(topic);
                }
            } else {
                let topic = topics.swap_remove(next(topics.len()));
                let id = tree.find(&topic).unwrap();
                let mut spelled = Vec::new();
                tree.topic(id, &mut spelled);
                assert_eq!(spelled, topic);
                tree.remove(id);
            }
            if !topics.is_empty() {
                check(&tree);
            }
        }
    }
}
