//! Bodies that are copied when they are sent: [`Copies`] puts them one behind the other into blocks.
//!
//! A heap block for each body would be taken by the thread that sends and given back by the one that writes to the wire:
//! both would want the allocator's lock, and a backlog would leave it with a great many small holes. So bodies share a
//! block, and blocks that nobody uses any more are filled again, because fresh ones cost page faults.
//!
//! A body that outlives the others of its block keeps all of it, so blocks are small.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::frame::{Frame, INLINE_MAX};

/// Longer bodies have a block of their own.
const SHARED_MAX: usize = 1024;
const BLOCK: usize = 4 * 1024;
/// How many blocks are kept for filling them again, as many bytes as a thousand messages of 1 KiB that wait, and another
/// thousand.
const SPENT_MAX: usize = 512;

/// Makes frames with copies of bodies.
#[derive(Debug)]
pub struct Copies {
    /// Where the next body goes: what is left of the block, and how much that was.
    block: BytesMut,
    /// Handles on earlier blocks, oldest first.
    spent: VecDeque<BytesMut>,
}

impl Copies {
    /// Begins with one block.
    pub fn new() -> Copies {
        Copies {
            block: BytesMut::with_capacity(BLOCK),
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
        if self.block.capacity() < body.len() {
            self.next_block();
        }
        self.block.extend_from_slice(body);
        Frame::shared(self.block.split().freeze())
    }

    /// Goes on to another block, one that was filled before if possible.
    #[cold]
    fn next_block(&mut self) {
        let mut full = std::mem::take(&mut self.block);
        self.block = if is_free(&mut full) {
            // Nothing waits: this one will do, and fewer of them.
            self.spent.pop_front();
            full
        } else if self.spent.front_mut().is_some_and(is_free) {
            self.spent.push_back(full);
            self.spent.pop_front().unwrap_or_default()
        } else {
            self.keep(full);
            BytesMut::with_capacity(BLOCK)
        };
    }

    /// Keeps a handle on a block in use, if there are not too many yet: then the oldest ones are free the soonest.
    fn keep(&mut self, full: BytesMut) {
        if self.spent.len() == SPENT_MAX {
            if !is_free(&mut self.spent[SPENT_MAX / 2]) {
                return;
            }
            // Somebody keeps the oldest, while others come and go.
            self.spent.pop_front();
        }
        self.spent.push_back(full);
    }
}

impl Default for Copies {
    fn default() -> Copies {
        Copies::new()
    }
}

/// Whether all bodies that a block held are gone; then it has room for others.
fn is_free(block: &mut BytesMut) -> bool {
    block.try_reclaim(BLOCK)
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
        assert_eq!(distinct(places(&mut copies, 0, 1000)), BLOCK / BODY.len());
        // A thousand wait: the places of another thousand at most are used, again and again.
        let lagging = places(&mut copies, 1000, 100_000);
        assert!(distinct(lagging[10_000..].to_vec()) <= 2100);
        // They are gone, and so are the blocks.
        places(&mut copies, 0, 10_000);
        assert_eq!(copies.spent.len(), 0);
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
    fn handles_are_bounded() {
        let mut copies = Copies::new();
        let backlog: Vec<Frame> = (0..10_000).map(|_| copies.frame(&BODY)).collect();
        assert_eq!(copies.spent.len(), SPENT_MAX);
        drop(backlog);
    }
}
