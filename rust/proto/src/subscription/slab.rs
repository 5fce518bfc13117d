//! Fixed-width items under stable `u32` ids, in chunks that are given back when they empty.

/// Items in one chunk. Small enough that a lone topic costs little, large enough that the table of
/// chunks stays in the nearest cache with a million topics.
const CHUNK: usize = 512;
const WORDS: usize = CHUNK / 64;

/// An arena whose items are `width` consecutive `T`.
///
/// Unlike a `Vec`, growing it never copies what is there nor keeps half its capacity idle, and a
/// chunk without items costs nothing: what one peer filled is free again after it left, although
/// ids of other peers live further up.
pub(super) struct Slab<T> {
    width: usize,
    chunks: Vec<Vec<T>>,
    used: Vec<[u64; WORDS]>,
    /// Chunks with room, in no order; a chunk is listed at most once.
    open: Vec<u32>,
    len: usize,
}

impl<T: Default> Slab<T> {
    pub(super) const fn new(width: usize) -> Slab<T> {
        Slab {
            width,
            chunks: Vec::new(),
            used: Vec::new(),
            open: Vec::new(),
            len: 0,
        }
    }

    /// Number of items.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A new item of defaults; the lowest free place of its chunk.
    pub(super) fn insert(&mut self) -> u32 {
        let index = match self.open.last() {
            Some(&index) => index as usize,
            None => {
                self.chunks.push(Vec::new());
                self.used.push([0; WORDS]);
                let index = self.chunks.len() - 1;
                self.open.push(id(index));
                index
            }
        };
        let used = &mut self.used[index];
        let word = used
            .iter()
            .position(|&bits| bits != u64::MAX)
            .expect("an open chunk has room");
        let bit = used[word].trailing_ones() as usize;
        used[word] |= 1 << bit;
        if used.iter().all(|&bits| bits == u64::MAX) {
            self.open.pop();
        }
        self.len += 1;

        // The lowest free place is at most one behind the last item ever placed in this chunk.
        let place = word * 64 + bit;
        let chunk = &mut self.chunks[index];
        if chunk.len() == place * self.width {
            if chunk.capacity() == chunk.len() {
                // The first chunk doubles, as few items are all that most tables ever hold. Later ones are made
                // whole: growing them would leave holes of every size in the heap.
                let room = if index == 0 { place.max(1) } else { CHUNK };
                chunk.reserve_exact(room * self.width);
            }
            chunk.extend(std::iter::repeat_with(T::default).take(self.width));
        }
        id(index * CHUNK + place)
    }

    /// Frees an item; its id may be given out again.
    pub(super) fn remove(&mut self, freed: u32) {
        let (index, place) = (freed as usize / CHUNK, freed as usize % CHUNK);
        let used = &mut self.used[index];
        let was_full = used.iter().all(|&bits| bits == u64::MAX);
        debug_assert!(used[place / 64] & 1 << (place % 64) != 0, "freed twice");
        used[place / 64] &= !(1 << (place % 64));
        let is_empty = used.iter().all(|&bits| bits == 0);
        self.len -= 1;
        if self.len == 0 {
            // The tables too: a few bytes that stay behind can keep an allocator from returning what is around them.
            *self = Slab::new(self.width);
            return;
        }
        if was_full {
            self.open.push(id(index));
        }
        if is_empty {
            self.chunks[index] = Vec::new();
        } else {
            self.item_mut(freed).fill_with(T::default);
        }
    }

    /// An item; `None` or defaults when there is none with this id.
    pub(super) fn get(&self, id: u32) -> Option<&[T]> {
        let at = id as usize % CHUNK * self.width;
        let chunk = self.chunks.get(id as usize / CHUNK)?;
        chunk.get(at..at + self.width)
    }

    /// The `width` values of an item.
    pub(super) fn item(&self, id: u32) -> &[T] {
        let at = id as usize % CHUNK * self.width;
        &self.chunks[id as usize / CHUNK][at..at + self.width]
    }

    /// The `width` values of an item.
    pub(super) fn item_mut(&mut self, id: u32) -> &mut [T] {
        let at = id as usize % CHUNK * self.width;
        &mut self.chunks[id as usize / CHUNK][at..at + self.width]
    }
}

fn id(index: usize) -> u32 {
    u32::try_from(index).expect("2^32 items of a tree do not fit in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_and_reused() {
        let mut slab = Slab::<u32>::new(3);
        let ids: Vec<u32> = (0..2000).map(|_| slab.insert()).collect();
        for &id in &ids {
            slab.item_mut(id).fill(id + 1);
        }
        assert!(ids.iter().all(|&id| slab.item(id) == [id + 1; 3]));
        slab.remove(700);
        assert_eq!(slab.insert(), 700);
        assert_eq!(slab.item(700), [0; 3]);
        assert_eq!(slab.len(), 2000);
    }

    #[test]
    fn an_emptied_chunk_is_given_back() {
        let mut slab = Slab::<u32>::new(1);
        let ids: Vec<u32> = (0..CHUNK as u32 * 3).map(|_| slab.insert()).collect();
        for &id in &ids[CHUNK..2 * CHUNK] {
            slab.remove(id);
        }
        let capacities: Vec<usize> = slab.chunks.iter().map(Vec::capacity).collect();
        assert_eq!(capacities, [CHUNK, 0, CHUNK]);
        assert_eq!(slab.insert() as usize / CHUNK, 1);
    }

    #[test]
    fn an_item_holds_defaults_again_after_it_was_freed() {
        let mut slab = Slab::<Vec<u8>>::new(1);
        slab.insert();
        let id = slab.insert();
        slab.item_mut(id)[0] = vec![1];
        slab.remove(id);
        let id = slab.insert();
        assert!(slab.item(id)[0].is_empty());
    }
}
