//! Blocks that were read and passed on: [`Spent`] finds those that the application has dropped.

use std::collections::VecDeque;

use bytes::Bytes;

/// The number of unused blocks that are kept permanently, and their maximum total size: as much as an application holds
/// that is a thousand messages of 1 KiB behind, and as much again.
const FREE_MAX: usize = 32;
const FREE_BYTES: usize = 2 * 1024 * 1024;
/// The maximum size of all blocks with a handle. Handles on a backlog's blocks cost nothing, because the blocks are in
/// use anyway.
const HELD_BYTES: usize = 64 * 1024 * 1024;

/// Handles on blocks, oldest first. An application drops them in about that order.
#[derive(Debug, Default)]
pub(super) struct Spent {
    blocks: VecDeque<Block>,
    bytes: usize,
}

/// One byte of a block, because an empty slice would not keep the block, and the block's size.
#[derive(Debug)]
struct Block {
    handle: Bytes,
    size: usize,
}

impl Block {
    fn is_free(&self) -> bool {
        self.handle.is_unique()
    }
}

impl Spent {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Adds a block of `size` bytes that is in use.
    pub(super) fn push(&mut self, block: &Bytes, size: usize) {
        if size > FREE_BYTES {
            return;
        }
        while self.bytes + size > HELD_BYTES {
            self.forget_oldest();
        }
        self.bytes += size;
        let handle = block.slice(..1);
        self.blocks.push_back(Block { handle, size });
    }

    /// An empty block of at least this capacity, and not many times that.
    pub(super) fn take(&mut self, capacity: usize) -> Option<Vec<u8>> {
        let middle = self.blocks.len() / 2;
        if !self.blocks.front()?.is_free() {
            if !self.blocks[middle].is_free() {
                return None;
            }
            // The oldest block is still in use while newer ones were freed.
            while !self.blocks.front()?.is_free() {
                self.forget_oldest();
            }
        }
        let oldest = self.forget_oldest()?;
        // The remains of a backlog are released gradually, because the backlog may return.
        if self.has_too_many() {
            self.forget_oldest();
        }
        if oldest.size < capacity || oldest.size > 4 * capacity {
            return None;
        }
        let mut block = Vec::from(oldest.handle);
        block.clear();
        Some(block)
    }

    /// Releases all blocks beyond the permanent ones.
    pub(super) fn shed(&mut self) {
        let (mut free, mut free_bytes, mut bytes) = (0, 0, 0);
        self.blocks.retain(|block| {
            let mut stays = true;
            if block.is_free() {
                free += 1;
                free_bytes += block.size;
                stays = free <= FREE_MAX && free_bytes <= FREE_BYTES;
            }
            bytes += if stays { block.size } else { 0 };
            stays
        });
        self.bytes = bytes;
        self.blocks.shrink_to(2 * FREE_MAX);
    }

    fn has_too_many(&self) -> bool {
        let Some(oldest) = self.blocks.front() else {
            return false;
        };
        let most = FREE_MAX.min(FREE_BYTES / oldest.size.max(1));
        self.blocks.get(most).is_some_and(Block::is_free)
    }

    fn forget_oldest(&mut self) -> Option<Block> {
        let oldest = self.blocks.pop_front()?;
        self.bytes -= oldest.size;
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 64 * 1024;

    /// Bodies that an application holds, and the handles on their blocks.
    fn held(count: usize) -> (VecDeque<Bytes>, Spent) {
        let (mut bodies, mut spent) = (VecDeque::new(), Spent::default());
        for _ in 0..count {
            bodies.push_back(read(&mut spent));
        }
        (bodies, spent)
    }

    fn read(spent: &mut Spent) -> Bytes {
        let mut block = spent.take(SIZE).unwrap_or_else(|| Vec::with_capacity(SIZE));
        block.push(7);
        let body = Bytes::from(block);
        spent.push(&body, SIZE);
        body
    }

    #[test]
    fn blocks_of_a_backlog_come_back() {
        let (mut bodies, mut spent) = held(500);
        for _ in 0..2000 {
            let oldest = bodies.pop_front().map(|body| body.as_ptr());
            bodies.push_back(read(&mut spent));
            assert_eq!(bodies.back().map(|body| body.as_ptr()), oldest);
        }
        assert!(spent.take(1).is_none(), "none is free");
        bodies.pop_front();
        assert!(spent.take(SIZE / 5).is_none(), "much too large");
        bodies.pop_front();
        assert!(spent.take(SIZE + 1).is_none(), "too small");
    }

    #[test]
    fn blocks_of_a_backlog_are_released_gradually() {
        let (mut bodies, mut spent) = held(500);
        bodies.clear();
        for _ in 0..100 {
            read(&mut spent);
        }
        assert_eq!(spent.blocks.len(), 400);
        for _ in 0..1000 {
            read(&mut spent);
        }
        assert_eq!(spent.blocks.len(), FREE_MAX + 1);
        let (bodies, mut spent) = held(500);
        spent.shed();
        assert_eq!(spent.blocks.len(), 500, "they are in use");
        drop(bodies);
        spent.shed();
        assert_eq!(spent.blocks.len(), FREE_MAX);
        // Whichever blocks are in use.
        let (mut bodies, mut spent) = held(500);
        let kept = [bodies[0].clone(), bodies[FREE_MAX].clone()];
        bodies.clear();
        spent.shed();
        assert_eq!(spent.blocks.len(), FREE_MAX + kept.len());
        assert_eq!(spent.bytes, spent.blocks.len() * SIZE);
    }

    #[test]
    fn blocks_that_stay_in_use_are_not_waited_for() {
        let (mut bodies, mut spent) = held(100);
        bodies.truncate(30);
        let before: Vec<_> = spent
            .blocks
            .iter()
            .map(|block| block.handle.as_ptr())
            .collect();
        assert!(before.contains(&read(&mut spent).as_ptr()));
        assert!(spent.blocks.len() <= 70);
    }

    #[test]
    fn handles_are_bounded() {
        let (bodies, spent) = held(HELD_BYTES / SIZE + 10);
        assert_eq!(spent.blocks.len(), HELD_BYTES / SIZE);
        assert_eq!(spent.bytes, HELD_BYTES);
        let mut spent = Spent::default();
        spent.push(&bodies[0], FREE_BYTES + 1);
        assert!(spent.is_empty());
    }
}
