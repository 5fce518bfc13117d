//! Bodies that are copied when they are sent: [`Copies`] puts them one behind the other into blocks.
//!
//! A heap block for each body would be taken by the thread that sends and given back by the one that writes to the wire:
//! both would want the allocator's lock, and a backlog would leave it with a great many small holes. So bodies share a
//! block, and blocks that nobody uses any more are filled again, because fresh ones cost page faults.
//!
//! A body that outlives the others of its block keeps all of it. So blocks are small as long as what was sent is soon
//! gone, and only grow while there is a backlog.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::frame::{Frame, INLINE_MAX};

/// Longer bodies have a block of their own.
const SHARED_MAX: usize = 4 * 1024;
/// A block has room for at least so many bodies like the one it is made for.
const SHARERS: usize = 4;
const BLOCK_MIN: usize = 4 * 1024;
const BLOCK_MAX: usize = 16 * 1024;
/// How many blocks are kept for filling them again, as many bytes as a thousand messages of 1 KiB that wait, and another
/// thousand.
const SPENT_MAX: usize = 128;

const _: () = assert!(SHARERS * SHARED_MAX <= BLOCK_MAX);

/// Makes frames with copies of bodies.
#[derive(Debug)]
pub struct Copies {
    /// Where the next body goes: what is left of the block, and how much that was.
    block: Block,
    /// How large the next block will be.
    size: usize,
    /// Handles on earlier blocks, oldest first.
    spent: VecDeque<Block>,
}

#[derive(Debug)]
struct Block {
    rest: BytesMut,
    size: usize,
}

impl Copies {
    /// Allocates nothing before it is used.
    pub fn new() -> Copies {
        Copies {
            block: Block::new(0),
            size: BLOCK_MIN,
            spent: VecDeque::new(),
        }
    }

    /// Whether a body of this length shares a block; others lie in the frame itself, or have a block of their own.
    #[inline]
    pub fn takes(len: usize) -> bool {
        len > INLINE_MAX && len <= SHARED_MAX
    }

    /// A data frame with a copy of `body`.
    #[inline]
    pub fn frame(&mut self, body: &[u8]) -> Frame {
        if !Copies::takes(body.len()) {
            return Frame::copy_from(body);
        }
        if self.block.rest.capacity() < body.len() {
            self.next_block(SHARERS * body.len());
        }
        self.block.rest.extend_from_slice(body);
        Frame::shared(self.block.rest.split().freeze())
    }

    /// Goes on to a block of at least this size, an old one if possible.
    #[cold]
    fn next_block(&mut self, least: usize) {
        let full = std::mem::replace(&mut self.block, Block::new(0));
        if full.size > 0 {
            self.spent.push_back(full);
        }
        let old = if self.spent.back_mut().is_some_and(Block::is_free) {
            // Nothing waits: this one will do, and fewer of them.
            self.size = BLOCK_MIN.max(self.size / 2);
            let newest = self.spent.pop_back();
            self.spent.pop_front();
            newest
        } else if self.spent.front_mut().is_some_and(Block::is_free) {
            self.spent.pop_front()
        } else {
            if !self.spent.is_empty() {
                self.size = BLOCK_MAX.min(self.size * 2);
            }
            if self.spent.len() > SPENT_MAX {
                self.spent.pop_front();
            }
            None
        };
        let size = self.size.max(least);
        self.block = old
            .filter(|old| (least..=2 * size).contains(&old.size))
            .unwrap_or_else(|| Block::new(size));
    }
}

impl Default for Copies {
    fn default() -> Copies {
        Copies::new()
    }
}

impl Block {
    fn new(size: usize) -> Block {
        let rest = BytesMut::with_capacity(size);
        Block { rest, size }
    }

    /// Whether all bodies that it held are gone; then it has room for others.
    fn is_free(&mut self) -> bool {
        self.rest.try_reclaim(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: [u8; 1024] = [7; 1024];

    /// Where bodies lie that are sent while `waiting` of them wait.
    fn places(copies: &mut Copies, waiting: usize, count: usize) -> Vec<usize> {
        let mut queue = VecDeque::new();
        let mut send = |_| {
            let frame = copies.frame(&BODY);
            let place = frame.as_ptr() as usize;
            queue.push_back(frame);
            if queue.len() > waiting {
                queue.pop_front();
            }
            place
        };
        (0..count).map(&mut send).collect()
    }

    fn distinct(mut places: Vec<usize>) -> usize {
        places.sort_unstable();
        places.dedup();
        places.len()
    }

    #[test]
    fn bodies_lie_one_behind_the_other() {
        let mut copies = Copies::new();
        let (first, second) = (copies.frame(&[1; 100]), copies.frame(&[2; 200]));
        assert_eq!((&first[..], &second[..]), (&[1; 100][..], &[2; 200][..]));
        assert_eq!(second.as_ptr(), first.as_ptr().wrapping_add(100));
        assert!(copies.frame(&[3; INLINE_MAX]).is_inline());
        let long = copies.frame(&[4; SHARED_MAX + 1]);
        assert_eq!(
            copies.frame(&[5; 70]).as_ptr(),
            second.as_ptr().wrapping_add(200)
        );
        assert_eq!(long[..], [4; SHARED_MAX + 1]);
    }

    #[test]
    fn what_is_gone_is_written_over() {
        let mut copies = Copies::new();
        assert_eq!(distinct(places(&mut copies, 0, 1000)), SHARERS);
        // A thousand wait: the places of another thousand at most are used, again and again.
        let lagging = places(&mut copies, 1000, 100_000);
        assert!(distinct(lagging[10_000..].to_vec()) <= 2100);
        // They are gone, and so are the blocks.
        places(&mut copies, 0, 10_000);
        assert_eq!(copies.spent.len(), 0);
        assert_eq!(
            (copies.size, copies.block.size),
            (BLOCK_MIN, SHARERS * BODY.len())
        );
    }

    #[test]
    fn a_body_that_stays_is_left_alone() {
        let mut copies = Copies::new();
        let kept: Vec<Frame> = (0..10u8).map(|n| copies.frame(&[n; 1000])).collect();
        let kept = kept.into_iter().step_by(3).collect::<Vec<_>>();
        places(&mut copies, 100, 10_000);
        for (frame, n) in kept.iter().zip((0u8..).step_by(3)) {
            assert_eq!(frame[..], [n; 1000]);
        }
    }

    #[test]
    fn blocks_grow_only_while_there_is_a_backlog() {
        let mut copies = Copies::new();
        let sizes = |copies: &Copies| (copies.block.size, copies.spent.len());
        places(&mut copies, 3, 1000);
        assert_eq!(sizes(&copies).0, SHARERS * BODY.len());
        let backlog: Vec<Frame> = (0..10_000).map(|_| copies.frame(&BODY)).collect();
        assert_eq!(sizes(&copies), (BLOCK_MAX, SPENT_MAX));
        drop(backlog);
        // Long ones do not fill blocks that short ones left.
        let long = copies.frame(&[1; SHARED_MAX]);
        assert_eq!(long[..], [1; SHARED_MAX]);
    }
}
