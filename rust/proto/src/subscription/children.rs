//! The children of a node: a map from a byte to a node id, in the smallest of eight shapes.

use super::slab::Slab;

/// Room for this many children, by shape.
const CAPACITY: [usize; SHAPES] = [2, 4, 8, 16, 32, 64, 128, 256];
const SHAPES: usize = 8;

/// Shapes below this one list their bytes in the node; the others keep a bitmap of 256 bits in the map.
const FIRST_BITMAP: usize = 4;
const BITMAP_WORDS: usize = 8;
/// As many bytes as the largest shape without a bitmap has children.
const LISTED: usize = 16;

/// What a node holds of its children. An only child needs no map: its id is kept right here.
#[derive(Clone, Copy, Default)]
pub(super) struct Children {
    /// The children's bytes in order, where they are listed and more than one.
    ///
    /// They are here and not beside the ids because here they share the cache line that a search reads anyway.
    bytes: [u8; LISTED],
    /// The only child, or the map's place among the maps of its shape.
    at: u32,
    len: u16,
    shape: u8,
}

impl Children {
    pub(super) fn only(child: u32) -> Children {
        Children {
            at: child,
            len: 1,
            ..Children::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The child, when there is exactly one.
    pub(super) fn as_only(&self) -> Option<u32> {
        (self.len == 1).then_some(self.at)
    }

    fn len(&self) -> usize {
        usize::from(self.len)
    }

    fn shape(&self) -> usize {
        usize::from(self.shape)
    }

    fn is_listed(&self) -> bool {
        self.shape() < FIRST_BITMAP
    }

    fn listed(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }
}

/// The maps of all nodes of a tree that have two children or more: ids in the order of their bytes, behind a bitmap
/// of the bytes where the node does not list them.
///
/// The byte of an only child is recorded nowhere, as the child's label begins with it: where noted, the caller has
/// to compare.
pub(super) struct ChildMaps {
    shapes: [Slab<u32>; SHAPES],
}

impl ChildMaps {
    pub(super) fn new() -> ChildMaps {
        ChildMaps {
            shapes: std::array::from_fn(|shape| Slab::new(bitmap_words(shape) + CAPACITY[shape])),
        }
    }

    /// The child at `byte`. An only child is returned whatever its byte is.
    #[inline]
    pub(super) fn find(&self, children: &Children, byte: u8) -> Option<u32> {
        if children.len < 2 {
            return children.as_only();
        }
        let map = self.shapes[children.shape()].item(children.at);
        if children.is_listed() {
            let at = position(&children.bytes, byte)?;
            return (at < children.len()).then(|| map[at]);
        }
        let (bitmap, ids) = map.split_at(BITMAP_WORDS);
        has_bit(bitmap, byte).then(|| ids[rank(bitmap, byte)])
    }

    /// The first child whose byte is `from` or above. An only child is returned whatever its byte is.
    pub(super) fn find_from(&self, children: &Children, from: u8) -> Option<u32> {
        if children.len < 2 {
            return children.as_only();
        }
        let at = self.place(children, from);
        (at < children.len()).then(|| self.ids(children)[at])
    }

    /// Adds a child at a byte that has none; `byte_of` tells the byte of an only child, should there be one.
    pub(super) fn insert(
        &mut self,
        children: &mut Children,
        byte: u8,
        child: u32,
        byte_of: impl FnOnce(u32) -> u8,
    ) {
        match children.len() {
            0 => *children = Children::only(child),
            1 => {
                let only = children.at;
                children.at = self.shapes[0].insert();
                children.len = 0;
                self.put(children, byte_of(only), only);
                self.put(children, byte, child);
            }
            len => {
                if len == CAPACITY[children.shape()] {
                    self.reshape(children, children.shape() + 1);
                }
                self.put(children, byte, child);
            }
        }
    }

    /// Removes the child at `byte`, which is there.
    pub(super) fn remove(&mut self, children: &mut Children, byte: u8) {
        if children.len < 2 {
            *children = Children::default();
            return;
        }
        self.take(children, byte);
        let shape = children.shape();
        if children.len == 1 {
            let only = self.ids(children)[0];
            self.shapes[shape].remove(children.at);
            *children = Children::only(only);
        } else if shape > 0 && children.len() <= CAPACITY[shape - 1] * 3 / 4 {
            // Not at once when it would fit: a child that comes and goes must not move the others each time.
            self.reshape(children, shape - 1);
        }
    }

    /// Puts `child` where the child at `byte` is.
    pub(super) fn replace(&mut self, children: &mut Children, byte: u8, child: u32) {
        if children.len < 2 {
            *children = Children::only(child);
            return;
        }
        let at = self.place(children, byte);
        self.ids_mut(children)[at] = child;
    }

    /// Adds an entry to a map with room.
    fn put(&mut self, children: &mut Children, byte: u8, child: u32) {
        let (at, len) = (self.place(children, byte), children.len());
        let ids = self.ids_mut(children);
        ids.copy_within(at..len, at + 1);
        ids[at] = child;
        if children.is_listed() {
            children.bytes.copy_within(at..len, at + 1);
            children.bytes[at] = byte;
        } else {
            self.bitmap_mut(children)[usize::from(byte / 32)] |= 1 << (byte % 32);
        }
        children.len += 1;
    }

    /// Takes the entry of `byte`, which is there, out of a map.
    fn take(&mut self, children: &mut Children, byte: u8) {
        let (at, len) = (self.place(children, byte), children.len());
        self.ids_mut(children).copy_within(at + 1..len, at);
        if children.is_listed() {
            children.bytes.copy_within(at + 1..len, at);
        } else {
            self.bitmap_mut(children)[usize::from(byte / 32)] &= !(1 << (byte % 32));
        }
        children.len -= 1;
    }

    /// Moves a map into another shape, with room for it.
    fn reshape(&mut self, children: &mut Children, shape: usize) {
        let (from, to, len) = (children.shape(), shape, children.len());
        let at = self.shapes[to].insert();
        let [old, new] = self
            .shapes
            .get_disjoint_mut([from, to])
            .expect("a map moves to another shape");
        let (old_bitmap, old_ids) = old.item(children.at).split_at(bitmap_words(from));
        let (new_bitmap, new_ids) = new.item_mut(at).split_at_mut(bitmap_words(to));
        new_ids[..len].copy_from_slice(&old_ids[..len]);
        match (old_bitmap.is_empty(), new_bitmap.is_empty()) {
            (true, true) => {}
            (false, false) => new_bitmap.copy_from_slice(old_bitmap),
            (true, false) => {
                for &byte in children.listed() {
                    new_bitmap[usize::from(byte / 32)] |= 1 << (byte % 32);
                }
            }
            (false, true) => {
                let bytes = (0..=u8::MAX).filter(|&byte| has_bit(old_bitmap, byte));
                for (listed, byte) in children.bytes.iter_mut().zip(bytes) {
                    *listed = byte;
                }
            }
        }
        old.remove(children.at);
        children.at = at;
        children.shape = to as u8; // below SHAPES
    }

    /// How many of the children have a byte below this one: where its id is, or would be.
    fn place(&self, children: &Children, byte: u8) -> usize {
        if children.is_listed() {
            let below = |listed: &&u8| **listed < byte;
            return children.listed().iter().take_while(below).count();
        }
        rank(self.shapes[children.shape()].item(children.at), byte)
    }

    fn ids(&self, children: &Children) -> &[u32] {
        let shape = children.shape();
        &self.shapes[shape].item(children.at)[bitmap_words(shape)..]
    }

    fn ids_mut(&mut self, children: &Children) -> &mut [u32] {
        let shape = children.shape();
        &mut self.shapes[shape].item_mut(children.at)[bitmap_words(shape)..]
    }

    fn bitmap_mut(&mut self, children: &Children) -> &mut [u32] {
        let shape = children.shape();
        &mut self.shapes[shape].item_mut(children.at)[..bitmap_words(shape)]
    }
}

const fn bitmap_words(shape: usize) -> usize {
    if shape < FIRST_BITMAP {
        0
    } else {
        BITMAP_WORDS
    }
}

fn has_bit(bitmap: &[u32], byte: u8) -> bool {
    bitmap[usize::from(byte / 32)] >> (byte % 32) & 1 != 0
}

/// How many bits of a bitmap are set below that of `byte`.
fn rank(bitmap: &[u32], byte: u8) -> usize {
    let word = usize::from(byte / 32);
    let below = bitmap[word] & !(u32::MAX << (byte % 32));
    let whole: u32 = bitmap[..word].iter().map(|word| word.count_ones()).sum();
    (whole + below.count_ones()) as usize
}

/// The first place of `byte`, all at once rather than one after the other.
fn position(bytes: &[u8; LISTED], byte: u8) -> Option<usize> {
    const ONES: u128 = u128::MAX / 255;
    // Equal bytes become zero; the lowest flag of this test for zero bytes is always a true one.
    let differences = u128::from_le_bytes(*bytes) ^ (ONES * u128::from(byte));
    let zeros = differences.wrapping_sub(ONES) & !differences & (ONES << 7);
    (zeros != 0).then(|| zeros.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Every byte comes and goes in a scrambled order, so each shape is entered from both sides.
    #[test]
    fn agrees_with_a_sorted_map() {
        let mut maps = ChildMaps::new();
        let mut children = Children::default();
        let mut model = BTreeMap::new();
        let order = |step: u32| (0..256u32).map(move |i| (i * step % 256) as u8);
        for (byte, adding) in order(77)
            .map(|byte| (byte, true))
            .chain(order(151).map(|byte| (byte, false)))
        {
            if adding {
                let only = model.keys().next().copied();
                maps.insert(&mut children, byte, u32::from(byte) + 1000, |_| {
                    only.unwrap()
                });
                maps.replace(&mut children, byte, u32::from(byte));
                model.insert(byte, u32::from(byte));
            } else {
                maps.remove(&mut children, byte);
                model.remove(&byte);
            }
            assert_eq!(children.len(), model.len());
            if model.len() == 1 {
                assert_eq!(children.as_only(), model.values().next().copied());
                continue;
            }
            for byte in 0..=u8::MAX {
                assert_eq!(maps.find(&children, byte), model.get(&byte).copied());
                let above = model.range(byte..).next().map(|(_, &id)| id);
                assert_eq!(maps.find_from(&children, byte), above);
            }
        }
        assert!(maps.shapes.iter().all(|maps| maps.len() == 0));
    }
}
