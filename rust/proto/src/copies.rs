//! Bodies that are copied when they are sent. [`Copies`] puts consecutive bodies into shared blocks.
//!
//! A heap block for each body would be allocated by the sending thread and freed by the thread that writes to the
//! network. Both would need the allocator's lock, and a backlog would leave many small holes. So bodies share a block,
//! and unused blocks are reused, because fresh ones cost page faults.
//!
//! A body that outlives the others of its block keeps the whole block alive, so blocks are small.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::frame::{Frame, INLINE_MAX};
use crate::message::Message;

/// The maximum length of a body that shares a block.
const SHARED_MAX: usize = 1024;
const BLOCK: usize = 4 * 1024;
/// The maximum number of blocks kept for reuse: enough for a thousand waiting messages of 1 KiB, and as much again.
const SPENT_MAX: usize = 512;

/// Makes frames with copies of bodies.
#[derive(Debug)]
pub struct Copies {
    /// The rest of the current block, and the block's original size.
    block: BytesMut,
    /// Handles on earlier blocks, oldest first.
    spent: VecDeque<BytesMut>,
}

impl Copies {
    /// Allocates the first block.
    pub fn new() -> Copies {
        Copies {
            block: BytesMut::with_capacity(BLOCK),
            spent: VecDeque::new(),
        }
    }

    /// Whether a body of this length shares a block. Smaller ones are stored in the frame itself, and larger ones have
    /// a block of their own.
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
        Frame::shared(self.bytes(body))
    }

    /// Puts a copy of `body`, which must share a block, into an empty message without moving the frame: a move right
    /// after the frame was written would have to wait for the stores.
    #[inline]
    pub fn fill(&mut self, message: &mut Message, body: &[u8]) {
        debug_assert!(Copies::takes(body.len()), "a body that shares a block");
        *message.head_mut() = Frame::shared(self.bytes(body));
    }

    #[inline]
    fn bytes(&mut self, body: &[u8]) -> Bytes {
        if self.block.capacity() < body.len() {
            self.next_block();
        }
        self.block.extend_from_slice(body);
        self.block.split().freeze()
    }

    /// Moves to another block, and reuses one if possible.
    #[cold]
    fn next_block(&mut self) {
        let mut full = std::mem::take(&mut self.block);
        self.block = if is_free(&mut full) {
            // No body is waiting, so this block is sufficient, and fewer need be kept.
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

    /// Keeps a handle on a block in use, unless there are too many. The oldest ones become free first.
    fn keep(&mut self, full: BytesMut) {
        if self.spent.len() == SPENT_MAX {
            if !is_free(&mut self.spent[SPENT_MAX / 2]) {
                return;
            }
            // The oldest block is still in use while newer ones were freed.
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

/// Whether all bodies of a block are gone, so that it can be reused.
fn is_free(block: &mut BytesMut) -> bool {
    block.try_reclaim(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: [u8; 1024] = [7; 1024];

    /// Returns the addresses of bodies that are sent while `waiting` of them wait.
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
    fn bodies_are_stored_one_after_the_other() {
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
    fn freed_memory_is_reused() {
        let mut copies = Copies::new();
        assert_eq!(distinct(places(&mut copies, 0, 1000)), BLOCK / BODY.len());
        // With a thousand waiting, the addresses of at most another thousand are used, again and again.
        let lagging = places(&mut copies, 1000, 100_000);
        assert!(distinct(lagging[10_000..].to_vec()) <= 2100);
        // The bodies are gone, and so are the blocks.
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
