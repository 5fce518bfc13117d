//! Blocks that were read and handed out: [`Spent`] finds those that the application has let go of.

use std::collections::VecDeque;

use bytes::Bytes;

/// How many blocks that nobody uses are kept in the long run, and how many bytes they may have together: as much as an
/// application that lags a thousand messages of 1 KiB behind has in its hands, and as much again.
const FREE_MAX: usize = 32;
const FREE_BYTES: usize = 2 * 1024 * 1024;
/// On how many bytes there are handles. Those of a backlog cost nothing: its blocks are in use anyway.
const HELD_BYTES: usize = 64 * 1024 * 1024;

/// Handles on blocks, oldest first. An application lets go of them in about that order.
#[derive(Debug, Default)]
pub(super) struct Spent {
    blocks: VecDeque<Block>,
    bytes: usize,
}

/// One byte of a block, because an empty slice would not hold it, and how many it has.
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

    /// A block of `size` bytes is in somebody's hands.
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
            // Somebody keeps the oldest, while others come and go.
            while !self.blocks.front()?.is_free() {
                self.forget_oldest();
            }
        }
        let oldest = self.forget_oldest()?;
        // What a backlog has left goes bit by bit: it may come back.
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

    /// Keeps no more than is kept in the long run.
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

    /// What an application holds, and the handles on that.
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
    fn what_a_backlog_leaves_goes_bit_by_bit() {
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
        // Whichever ones are in use.
        let (mut bodies, mut spent) = held(500);
        let kept = [bodies[0].clone(), bodies[FREE_MAX].clone()];
        bodies.clear();
        spent.shed();
        assert_eq!(spent.blocks.len(), FREE_MAX + kept.len());
        assert_eq!(spent.bytes, spent.blocks.len() * SIZE);
    }

    #[test]
    fn what_is_kept_for_ever_is_not_waited_for() {
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
