//! Items with stable `u32` ids, in chunks that are freed when they are empty.

/// Items in one chunk. Small enough that a single item costs little, large enough that the table of chunks stays in the
/// nearest cache with a million topics.
const CHUNK: usize = 512;
const WORDS: usize = CHUNK / 64;

/// An arena.
///
/// Unlike with a `Vec`, growing it copies nothing and leaves no half of its capacity unused, and a chunk without items
/// costs nothing: memory used by one peer is freed after it left, although ids of other peers are higher.
pub(super) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    used: Vec<[u64; WORDS]>,
    /// Chunks with room, in any order; a chunk is listed at most once.
    open: Vec<u32>,
    len: usize,
}

impl<T: Default> Slab<T> {
    pub(super) const fn new() -> Slab<T> {
        Slab {
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

    /// Inserts an item at the lowest free slot of its chunk.
    pub(super) fn insert(&mut self, item: T) -> u32 {
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

        // The lowest free slot is at most one after the last item ever inserted into this chunk.
        let place = word * 64 + bit;
        let chunk = &mut self.chunks[index];
        if chunk.len() > place {
            chunk[place] = item;
        } else {
            if chunk.capacity() == chunk.len() {
                // The first chunk doubles, because most tables never hold more than a few items. Later ones are
                // allocated in full, because growing them would leave holes of every size in the heap.
                let room = if index == 0 { place.max(1) } else { CHUNK };
                chunk.reserve_exact(room);
            }
            chunk.push(item);
        }
        id(index * CHUNK + place)
    }

    /// Removes an item; its id may be reused.
    pub(super) fn remove(&mut self, freed: u32) -> T {
        let (index, place) = (freed as usize / CHUNK, freed as usize % CHUNK);
        let used = &mut self.used[index];
        let was_full = used.iter().all(|&bits| bits == u64::MAX);
        debug_assert!(used[place / 64] & 1 << (place % 64) != 0, "freed twice");
        used[place / 64] &= !(1 << (place % 64));
        let is_empty = used.iter().all(|&bits| bits == 0);
        let item = std::mem::take(&mut self.chunks[index][place]);
        self.len -= 1;
        if self.len == 0 {
            // The tables too, because a few remaining bytes can keep an allocator from returning the memory around
            // them.
            *self = Slab::new();
            return item;
        }
        if was_full {
            self.open.push(id(index));
        }
        if is_empty {
            self.chunks[index] = Vec::new();
        }
        item
    }

    /// An item; `None` if there is none with this id.
    pub(super) fn get(&self, id: u32) -> Option<&T> {
        self.chunks
            .get(id as usize / CHUNK)?
            .get(id as usize % CHUNK)
    }

    /// An existing item.
    pub(super) fn item(&self, id: u32) -> &T {
        &self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }

    /// An existing item.
    pub(super) fn item_mut(&mut self, id: u32) -> &mut T {
        &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK]
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
        let mut slab = Slab::<u32>::new();
        let ids: Vec<u32> = (0..2000).map(|n| slab.insert(n)).collect();
        assert!(ids.iter().all(|&id| *slab.item(id) == id));
        assert_eq!(slab.remove(700), 700);
        assert_eq!(slab.get(700), Some(&0));
        assert_eq!(slab.insert(5), 700);
        assert_eq!(*slab.item(700), 5);
        assert_eq!(slab.len(), 2000);
    }

    #[test]
    fn an_emptied_chunk_is_given_back() {
        let mut slab = Slab::<u32>::new();
        let ids: Vec<u32> = (0..CHUNK as u32 * 3).map(|n| slab.insert(n)).collect();
        for &id in &ids[CHUNK..2 * CHUNK] {
            slab.remove(id);
        }
        let capacities: Vec<usize> = slab.chunks.iter().map(Vec::capacity).collect();
        assert_eq!(capacities, [CHUNK, 0, CHUNK]);
        assert_eq!(slab.insert(1) as usize / CHUNK, 1);
    }

    #[test]
    fn removed_items_are_gone() {
        let mut slab = Slab::<Vec<u8>>::new();
        slab.insert(vec![0]);
        let id = slab.insert(vec![1]);
        assert_eq!(slab.remove(id), [1]);
        assert!(slab.get(id).is_some_and(Vec::is_empty));
        assert_eq!(slab.get(5000), None);
    }
}
