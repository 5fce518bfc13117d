//! The children of a node: a map from a byte to a node id, in the smallest of eight shapes.

use super::slab::Slab;

/// Room for this many children, by shape.
const CAPACITY: [usize; SHAPES] = [2, 4, 8, 16, 32, 64, 128, 256];
const SHAPES: usize = 8;

/// Shapes below this one list their bytes, four to a word; the others keep a bitmap of 256 bits.
const FIRST_BITMAP: usize = 4;
const BITMAP_WORDS: usize = 8;

/// Where a node's children are. An only child needs no map: its id is kept right here.
#[derive(Clone, Copy, Default)]
pub(super) struct Children {
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
            shape: 0,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The child, when there is exactly one.
    pub(super) fn as_only(self) -> Option<u32> {
        (self.len == 1).then_some(self.at)
    }

    fn len(self) -> usize {
        usize::from(self.len)
    }

    fn shape(self) -> usize {
        usize::from(self.shape)
    }
}

/// The maps of all nodes of a tree that have two children or more.
///
/// A map is a row of words: the bytes first, then the ids in the order of their bytes. An only child's byte is not
/// recorded anywhere here, it starts the child's label; so [`ChildMaps`] is asked about it only where noted.
pub(super) struct ChildMaps {
    shapes: [Slab<u32>; SHAPES],
}

impl ChildMaps {
    pub(super) fn new() -> ChildMaps {
        ChildMaps {
            shapes: std::array::from_fn(|shape| Slab::new(key_words(shape) + CAPACITY[shape])),
        }
    }

    /// The child at `byte`. An only child is returned whatever its byte is: the caller compares its label anyway.
    pub(super) fn find(&self, children: Children, byte: u8) -> Option<u32> {
        if children.len < 2 {
            return children.as_only();
        }
        let (keys, ids) = self.map(children);
        if children.shape() < FIRST_BITMAP {
            Some(ids[position(keys, byte).filter(|&at| at < children.len())?])
        } else {
            has_bit(keys, byte).then(|| ids[rank(children, keys, byte)])
        }
    }

    /// The first child whose byte is `from` or above. An only child is returned whatever its byte is.
    pub(super) fn find_from(&self, children: Children, from: u8) -> Option<u32> {
        if children.len < 2 {
            return children.as_only();
        }
        let (keys, ids) = self.map(children);
        let at = rank(children, keys, from);
        (at < children.len()).then(|| ids[at])
    }

    /// Adds a child at a byte that has none; `only_byte` tells the byte of an only child, should there be one.
    pub(super) fn insert(
        &mut self,
        children: &mut Children,
        byte: u8,
        child: u32,
        only_byte: impl FnOnce(u32) -> u8,
    ) {
        match children.len() {
            0 => *children = Children::only(child),
            1 => {
                let only = children.at;
                children.at = self.shapes[0].insert();
                children.len = 0;
                self.put(children, only_byte(only), only);
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
            let (_, ids) = self.map(*children);
            let only = ids[0];
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
        let at = rank(*children, self.map(*children).0, byte);
        let (_, ids) = self.map_mut(*children);
        ids[at] = child;
    }

    /// Adds an entry to a map with room.
    fn put(&mut self, children: &mut Children, byte: u8, child: u32) {
        let at = rank(*children, self.map(*children).0, byte);
        let len = children.len();
        let (keys, ids) = self.map_mut(*children);
        ids.copy_within(at..len, at + 1);
        ids[at] = child;
        if children.shape() < FIRST_BITMAP {
            for place in (at..len).rev() {
                set_key(keys, place + 1, key(keys, place));
            }
            set_key(keys, at, byte);
        } else {
            keys[usize::from(byte / 32)] |= 1 << (byte % 32);
        }
        children.len += 1;
    }

    /// Takes the entry of `byte`, which is there, out of a map.
    fn take(&mut self, children: &mut Children, byte: u8) {
        let at = rank(*children, self.map(*children).0, byte);
        let len = children.len();
        let (keys, ids) = self.map_mut(*children);
        ids.copy_within(at + 1..len, at);
        if children.shape() < FIRST_BITMAP {
            for place in at + 1..len {
                set_key(keys, place - 1, key(keys, place));
            }
        } else {
            keys[usize::from(byte / 32)] &= !(1 << (byte % 32));
        }
        children.len -= 1;
    }

    /// Moves a map into another shape, with room for it.
    fn reshape(&mut self, children: &mut Children, shape: usize) {
        let (from, to) = (children.shape(), shape);
        let len = children.len();
        let at = self.shapes[to].insert();
        let [old, new] = self
            .shapes
            .get_disjoint_mut([from, to])
            .expect("a map moves to another shape");
        let (old_keys, old_ids) = old.item(children.at).split_at(key_words(from));
        let (new_keys, new_ids) = new.item_mut(at).split_at_mut(key_words(to));
        new_ids[..len].copy_from_slice(&old_ids[..len]);
        match (from < FIRST_BITMAP, to < FIRST_BITMAP) {
            (true, false) => {
                for byte in (0..len).map(|place| key(old_keys, place)) {
                    new_keys[usize::from(byte / 32)] |= 1 << (byte % 32);
                }
            }
            (false, true) => {
                let bytes = (0..=u8::MAX).filter(|&byte| has_bit(old_keys, byte));
                for (place, byte) in bytes.enumerate() {
                    set_key(new_keys, place, byte);
                }
            }
            _ => {
                let words = old_keys.len().min(new_keys.len());
                new_keys[..words].copy_from_slice(&old_keys[..words]);
            }
        }
        old.remove(children.at);
        children.at = at;
        children.shape = to as u8; // below SHAPES
    }

    fn map(&self, children: Children) -> (&[u32], &[u32]) {
        self.shapes[children.shape()]
            .item(children.at)
            .split_at(key_words(children.shape()))
    }

    fn map_mut(&mut self, children: Children) -> (&mut [u32], &mut [u32]) {
        self.shapes[children.shape()]
            .item_mut(children.at)
            .split_at_mut(key_words(children.shape()))
    }
}

const fn key_words(shape: usize) -> usize {
    if shape < FIRST_BITMAP {
        CAPACITY[shape].div_ceil(4)
    } else {
        BITMAP_WORDS
    }
}

fn key(keys: &[u32], place: usize) -> u8 {
    (keys[place / 4] >> (place % 4 * 8)) as u8 // the low byte
}

fn set_key(keys: &mut [u32], place: usize, byte: u8) {
    let shift = place % 4 * 8;
    let word = &mut keys[place / 4];
    *word = *word & !(0xFF << shift) | u32::from(byte) << shift;
}

fn has_bit(keys: &[u32], byte: u8) -> bool {
    keys[usize::from(byte / 32)] >> (byte % 32) & 1 != 0
}

/// The first place of `byte` in a list of bytes; places behind the list's end may be named too.
fn position(keys: &[u32], byte: u8) -> Option<usize> {
    const ONES: u32 = 0x0101_0101;
    keys.iter().enumerate().find_map(|(index, word)| {
        // Equal bytes become zero; the lowest flag of this test for zero bytes is always a true one.
        let differences = word ^ (ONES * u32::from(byte));
        let zeros = differences.wrapping_sub(ONES) & !differences & (ONES << 7);
        (zeros != 0).then(|| index * 4 + zeros.trailing_zeros() as usize / 8)
    })
}

/// How many of a map's bytes are below `byte`.
fn rank(children: Children, keys: &[u32], byte: u8) -> usize {
    if children.shape() < FIRST_BITMAP {
        return (0..children.len())
            .take_while(|&place| key(keys, place) < byte)
            .count();
    }
    let word = usize::from(byte / 32);
    let below = keys[word] & !(u32::MAX << (byte % 32));
    let whole: u32 = keys[..word].iter().map(|word| word.count_ones()).sum();
    (whole + below.count_ones()) as usize
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
                assert_eq!(maps.find(children, byte), model.get(&byte).copied());
                let above = model.range(byte..).next().map(|(_, &id)| id);
                assert_eq!(maps.find_from(children, byte), above);
            }
        }
        assert!(maps.shapes.iter().all(|maps| maps.len() == 0));
    }
}
