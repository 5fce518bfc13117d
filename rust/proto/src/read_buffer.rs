//! The receive buffer: [`ReadBuffer`] makes room for reads and returns large bodies without copying them.
//!
//! The driver appends to a plain `Vec`. While it has only small bodies, they are copied out and the `Vec` is reused.
//! The first large body turns a well-filled `Vec` into [`Bytes`]. From then on, that read is only sliced, and the
//! incomplete frame at its end moves to the front of the next block. A handle on the sliced block is kept. Once the
//! application has dropped every slice, the block is reused, because fresh blocks cost page faults.
//!
//! Every slice keeps its whole block alive, and a message counts only with its own bytes. So a peer could make a few
//! small bodies between long commands cost many blocks. Each shared block therefore counts as a debt, which its bodies
//! pay back four times. A peer in debt gets copies.
//!
//! The size of a block never depends on what a peer announces. A block has room for the received bytes and one more
//! read. Only for a longer frame does the room grow, by doubling with the bytes that really arrive, or at once up to
//! the size of a message that this peer has completed before ([`TRUST_MAX`] at most).

mod spent;

use self::spent::Spent;
use crate::frame::{Frame, INLINE_MAX};
use bytes::{Buf, Bytes};
use std::collections::TryReserveError;
use zeroize::Zeroize;

/// Room for the first read, which is sufficient for a handshake. It grows while reads fill it, up to the batch size.
const FIRST_READ: usize = 512;
const GROWTH: usize = 4;
/// The minimum room for a read, even if the next block would have more.
const WORTH_A_READ: usize = 8 * 1024;
/// The maximum room made ahead because the peer's last message had that size.
const TRUST_MAX: usize = 4 * 1024 * 1024;

/// How many times a body pays its bytes back. A quarter of a block is enough.
const WORTH: usize = 4;

/// Received bytes that are not decoded yet.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    /// The block to which the driver appends; not decoded from `start` on.
    block: Vec<u8>,
    start: usize,
    /// A read whose bodies are returned as slices. It precedes `block`, which is empty meanwhile.
    frozen: Bytes,
    /// Earlier blocks.
    spent: Spent,
    /// The shared blocks that the bodies since then have not paid for, in bytes.
    debt: usize,
    /// The length of `block` when the driver got it.
    lent: usize,
    /// The total length of the incomplete frame at the front, or zero.
    partial: usize,
    /// Wire bytes of the last complete message. Streams of equal messages are read in multiples of it, so that no body
    /// is split between two blocks.
    message: usize,
    /// Room for the next read, and its upper limit.
    read_size: usize,
    batch: usize,
}

impl ReadBuffer {
    pub(crate) fn new(batch: usize) -> ReadBuffer {
        let batch = batch.max(1);
        ReadBuffer {
            block: Vec::new(),
            start: 0,
            frozen: Bytes::new(),
            spent: Spent::default(),
            debt: 0,
            lent: 0,
            partial: 0,
            message: 0,
            read_size: FIRST_READ.min(batch),
            batch,
        }
    }

    /// The buffer to which the driver appends, with room for a read. An error if there is no memory for that; received
    /// bytes are kept.
    pub(crate) fn input(&mut self) -> Result<&mut Vec<u8>, TryReserveError> {
        if !self.frozen.is_empty() {
            self.thaw()?;
        } else if self.start > 0 {
            self.block.drain(..self.start);
            self.start = 0;
        }
        let have = self.block.len();
        let room = self.room(have);
        let capacity = self.block.capacity();
        if have == 0 {
            // Too small, or it once had a huge frame.
            if capacity < room || capacity > 4 * room {
                self.block = self.empty_block(room)?;
            }
        } else {
            // Growing copies the contents. So use the remaining space first, unless either part is tiny, because equal
            // messages may otherwise leave the same incomplete piece after each read forever.
            let missing = self.partial.saturating_sub(have);
            let enough = if missing > 0 { missing } else { room }.min(WORTH_A_READ);
            if capacity - have < enough || (capacity < room - room / GROWTH && have <= room / 2) {
                self.block.try_reserve_exact(room)?;
            }
        }
        self.lent = have;
        Ok(&mut self.block)
    }

    /// Records what the driver has appended. Returns the number of bytes.
    pub(crate) fn note_read(&mut self) -> usize {
        if self.block.len() == self.block.capacity() {
            self.read_size = self.batch.min(self.read_size * GROWTH);
        }
        let read = self.block.len().saturating_sub(self.lent);
        self.lent = self.block.len();
        read
    }

    /// Records the wire bytes of each complete message.
    #[inline]
    pub(crate) fn note_message(&mut self, bytes: usize) {
        self.message = bytes;
    }

    /// Overwrites decoded bytes, unless they are shared.
    pub(crate) fn wipe_taken(&mut self) {
        self.block[..self.start].zeroize();
        if self.start == self.block.len() {
            // All of it, including bytes after the end that were removed before.
            self.block.zeroize();
            self.start = 0;
        }
    }

    /// Everything not decoded yet.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.frozen.is_empty() {
            &self.block[self.start..]
        } else {
            &self.frozen
        }
    }

    /// Some of these bytes, for changes before they are taken.
    #[inline]
    pub(crate) fn bytes_mut(
        &mut self,
        start: usize,
        end: usize,
    ) -> Result<&mut [u8], TryReserveError> {
        if !self.frozen.is_empty() {
            self.thaw()?;
        }
        Ok(&mut self.block[self.start + start..self.start + end])
    }

    /// Removes bytes in the middle.
    pub(crate) fn remove(&mut self, at: usize, count: usize) -> Result<(), TryReserveError> {
        if !self.frozen.is_empty() {
            self.thaw()?;
        }
        let at = self.start + at;
        self.block.drain(at..at + count);
        self.lent = self.block.len();
        Ok(())
    }

    /// Removes some of the bytes at the front, but not all of them.
    #[inline]
    pub(crate) fn skip_some(&mut self, count: usize) {
        if self.frozen.is_empty() {
            self.start += count;
        } else {
            self.frozen.advance(count);
        }
    }

    /// Removes bytes at the front.
    pub(crate) fn skip(&mut self, count: usize) {
        self.skip_some(count);
        self.partial = 0;
        if self.frozen.is_empty() {
            // An empty slice would keep its block alive.
            self.frozen = Bytes::new();
            if self.start == self.block.len() {
                self.block.clear();
                self.start = 0;
            }
        }
    }

    /// Removes the frame at the front, which ends at `end`, and returns its body, which starts at `start`.
    pub(crate) fn take(&mut self, start: usize, end: usize) -> Frame {
        if self.frozen.is_empty() {
            // A body that outlives the others of its read keeps the whole block alive, so share only reasonably full
            // blocks. The cost of copying the others is small compared with the system call.
            if !self.is_worth_sharing(end - start)
                && let Ok(frame) = Frame::try_copy_from(&self.bytes()[start..end])
            {
                self.debt = self.debt.saturating_sub(WORTH * (end - start));
                self.skip(end);
                return frame;
            }
            self.freeze();
        }
        self.debt = self.debt.saturating_sub(WORTH * (end - start));
        let mut body = self.frozen.split_to(end);
        self.skip(0);
        body.advance(start);
        Frame::from_bytes(body)
    }

    /// Like [`take`](ReadBuffer::take), for a command. The connection uses and drops it at once, so it is not worth a shared
    /// block, and pays for none.
    pub(crate) fn take_command(&mut self, start: usize, end: usize) -> Frame {
        if self.frozen.is_empty()
            && let Ok(frame) = Frame::try_copy_from(&self.bytes()[start..end])
        {
            self.skip(end);
            return frame;
        }
        let debt = self.debt;
        let frame = self.take(start, end);
        self.debt = self.debt.max(debt);
        frame
    }

    /// Whether the block may be shared for this body, and those after it.
    fn is_worth_sharing(&self, body: usize) -> bool {
        let size = self.block.capacity();
        let is_full = self.block.len() >= size / WORTH;
        let limit = (2 * self.batch).saturating_add(body.saturating_mul(WORTH));
        is_full && self.debt.saturating_add(size) <= limit
    }

    /// Like [`take`](ReadBuffer::take), if the following bytes will be changed. They must then be in the block, and
    /// would have to move from a shared one. So the block is only shared for a body that is longer than the bytes to
    /// move.
    pub(crate) fn take_before_more(&mut self, start: usize, end: usize) -> Frame {
        let (size, rest) = (end - start, self.bytes().len() - end);
        if size > INLINE_MAX && size >= rest {
            return self.take(start, end);
        }
        let Ok(frame) = Frame::try_copy_from(&self.bytes()[start..end]) else {
            return self.take(start, end);
        };
        self.skip(end);
        frame
    }

    /// Records that the frame at the front is incomplete. It will have `len` bytes, or zero if that is unknown.
    #[cold]
    pub(crate) fn wait_for(&mut self, len: usize) -> Result<(), TryReserveError> {
        self.partial = len;
        if !self.frozen.is_empty() {
            self.thaw()?;
        }
        Ok(())
    }

    /// How many bytes of the incomplete frame at the front have not been received, as far as it is known.
    pub(crate) fn missing(&self) -> usize {
        self.partial.saturating_sub(self.bytes().len())
    }

    /// Bytes of memory for data that is not decoded yet.
    pub(crate) fn held(&self) -> usize {
        self.block.capacity() + self.frozen.len()
    }

    /// Whether it has memory that an idle connection does not need.
    pub(crate) fn holds_spare(&self) -> bool {
        self.block.capacity() > FIRST_READ || !self.spent.is_empty()
    }

    /// Releases memory that has no undecoded bytes.
    pub(crate) fn trim(&mut self) {
        self.spent = Spent::default();
        if self.block.is_empty() {
            self.block = Vec::new();
            self.read_size = FIRST_READ.min(self.batch);
        }
    }

    /// Releases memory that only a backlog needs.
    pub(crate) fn shed(&mut self) {
        self.spent.shed();
    }

    /// Releases everything.
    pub(crate) fn clear(&mut self) {
        *self = ReadBuffer::new(self.batch);
    }

    /// Turns the block into a sliced one, and keeps a handle on it.
    fn freeze(&mut self) {
        let size = self.block.capacity();
        self.debt = self.debt.saturating_add(size);
        self.frozen = Bytes::from(std::mem::take(&mut self.block));
        self.frozen.advance(self.start);
        self.start = 0;
        self.spent.push(&self.frozen, size);
    }

    /// Moves the rest of a sliced block to the front of a new one.
    fn thaw(&mut self) -> Result<(), TryReserveError> {
        let room = self.room(self.frozen.len());
        let mut block = self.empty_block(self.frozen.len() + room)?;
        block.extend_from_slice(&self.frozen);
        self.block = block;
        self.frozen = Bytes::new();
        Ok(())
    }

    /// A block of at least this capacity, a used one if possible.
    fn empty_block(&mut self, capacity: usize) -> Result<Vec<u8>, TryReserveError> {
        if let Some(old) = self.spent.take(capacity) {
            return Ok(old);
        }
        let mut block = Vec::new();
        block.try_reserve_exact(capacity)?;
        Ok(block)
    }

    /// The room to make after `have` undecoded bytes.
    fn room(&self, have: usize) -> usize {
        let missing = self.partial.saturating_sub(have);
        if missing > self.read_size / 2 {
            // Read up to the end of this frame and not beyond it, so that the next one starts a block.
            let trusted = self.message.min(TRUST_MAX);
            return missing.min(self.read_size.max(have).max(trusted));
        }
        let whole_messages = if self.message <= self.read_size / 8 {
            // A small piece that must be copied does not justify a smaller read.
            self.read_size
        } else if self.message <= self.read_size {
            (self.read_size - missing) / self.message * self.message
        } else {
            self.message.min(TRUST_MAX)
        };
        match whole_messages {
            0 => missing + self.read_size,
            bytes => missing + bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const BATCH: usize = 64 * 1024;

    /// Reads as much as there is room for, `len` bytes at most.
    fn read(buffer: &mut ReadBuffer, len: usize) -> usize {
        let block = buffer.input().unwrap();
        let count = len.min(block.capacity() - block.len());
        block.extend(std::iter::repeat_n(7, count));
        buffer.note_read();
        count
    }

    fn grown() -> ReadBuffer {
        let mut buffer = ReadBuffer::new(BATCH);
        while buffer.read_size < BATCH {
            read(&mut buffer, usize::MAX);
            let len = buffer.bytes().len();
            buffer.skip(len);
        }
        buffer
    }

    #[test]
    fn a_block_is_only_shared_for_the_sake_of_most_of_it() {
        let mut buffer = ReadBuffer::new(BATCH);
        let body = |frame: &Frame| frame.as_ptr();
        while buffer.bytes().len() < 6000 {
            read(&mut buffer, 6000);
        }
        let block = buffer.bytes().as_ptr();
        buffer.bytes_mut(0, 3).unwrap().fill(9);
        assert_eq!(buffer.bytes()[..4], [9, 9, 9, 7]);
        assert_ne!(
            body(&buffer.take_before_more(10, 1010)),
            block.wrapping_add(10)
        );
        // Nothing has moved.
        assert_eq!(buffer.bytes().as_ptr(), block.wrapping_add(1010));
        assert_eq!(
            body(&buffer.take_before_more(10, 4010)),
            block.wrapping_add(1020)
        );
        // Changes apply to a copy, and the body stays unchanged.
        buffer.bytes_mut(0, 10).unwrap().fill(9);
        assert_ne!(buffer.bytes().as_ptr(), block.wrapping_add(5020));
    }

    #[test]
    fn reads_grow_while_they_are_filled() {
        let mut buffer = ReadBuffer::new(BATCH);
        let mut sizes = Vec::new();
        for _ in 0..5 {
            sizes.push(read(&mut buffer, usize::MAX));
            let len = buffer.bytes().len();
            buffer.skip(len);
        }
        assert_eq!(sizes, [512, 2048, 8192, 32768, 65536]);
        assert_eq!(ReadBuffer::new(100).input().unwrap().capacity(), 100);
        assert!(ReadBuffer::new(0).input().unwrap().capacity() > 0);
    }

    #[test]
    fn reads_grow_although_each_leaves_a_piece_of_a_message() {
        let mut buffer = ReadBuffer::new(BATCH);
        let mut sizes = Vec::new();
        for _ in 0..6 {
            sizes.push(read(&mut buffer, usize::MAX));
            let whole = buffer.bytes().len() / 66 * 66;
            buffer.note_message(66);
            buffer.skip(whole);
            buffer.wait_for(66).unwrap();
        }
        assert_eq!(sizes[0], 512);
        assert!(sizes[5] >= BATCH, "{sizes:?}");
    }

    #[test]
    fn a_block_of_small_bodies_is_read_into_again() {
        let mut buffer = grown();
        read(&mut buffer, usize::MAX);
        let block = buffer.bytes().as_ptr();
        buffer.skip(65_500);
        read(&mut buffer, 100);
        assert_eq!(buffer.bytes().as_ptr(), block);
        assert_eq!(buffer.bytes().len(), 136);
    }

    #[test]
    fn large_bodies_are_slices_and_their_block_comes_back() {
        let mut buffer = grown();
        read(&mut buffer, usize::MAX);
        let block = buffer.bytes().as_ptr();
        let first = buffer.take(9, 1009);
        assert_eq!(first.as_ptr(), block.wrapping_add(9));
        let second = buffer.take(2, 200);
        assert_eq!(second.as_ptr(), block.wrapping_add(1011));
        let len = buffer.bytes().len();
        buffer.skip(len);

        read(&mut buffer, usize::MAX);
        assert_ne!(buffer.bytes().as_ptr(), block, "still in use");
        let third = buffer.take(0, 65_536);
        drop((first, second));
        read(&mut buffer, usize::MAX);
        assert_eq!(buffer.bytes().as_ptr(), block, "free again");
        assert_eq!(third[..], [7; 65_536]);
    }

    #[test]
    fn blocks_come_back_from_a_slow_application() {
        let mut buffer = grown();
        let mut bodies = VecDeque::new();
        let mut next = |bodies: &mut VecDeque<Frame>| {
            read(&mut buffer, usize::MAX);
            bodies.push_back(buffer.take(0, 65_536));
        };
        (0..16).for_each(|_| next(&mut bodies));
        for _ in 0..40 {
            let oldest = bodies.pop_front().unwrap().as_ptr();
            next(&mut bodies);
            assert_eq!(bodies.back().unwrap().as_ptr(), oldest);
        }
    }

    #[test]
    fn a_nearly_empty_block_is_not_kept_alive_by_a_body() {
        let mut buffer = grown();
        read(&mut buffer, 1000);
        let block = buffer.bytes().as_ptr();
        let body = buffer.take(0, 1000);
        assert_ne!(body.as_ptr(), block);
        read(&mut buffer, 1000);
        assert_eq!(buffer.bytes().as_ptr(), block);
    }

    #[test]
    fn small_bodies_between_commands_keep_few_blocks_alive() {
        for batch in [BATCH, 8192] {
            let mut buffer = ReadBuffer::new(batch);
            let mut bodies = Vec::new();
            let mut kept = 0;
            for _ in 0..200 {
                while buffer.bytes().len() < batch / 2 {
                    read(&mut buffer, usize::MAX);
                }
                let (block, size) = (buffer.bytes().as_ptr(), buffer.block.capacity());
                bodies.push(buffer.take(2, 82));
                if bodies[bodies.len() - 1].as_ptr() == block.wrapping_add(2) {
                    kept += size;
                }
                let rest = buffer.bytes().len();
                buffer.take_command(0, rest);
            }
            let paid = WORTH * 80 * bodies.len();
            assert!(kept <= 2 * batch + paid, "{kept} of {batch}");
        }
    }

    #[test]
    fn one_small_body_keeps_no_large_block_alive() {
        let mut buffer = grown();
        let message = TRUST_MAX;
        read(&mut buffer, 10);
        buffer.note_message(message);
        buffer.skip(10);
        buffer.block = Vec::new();
        assert_eq!(read(&mut buffer, usize::MAX), message);
        let block = buffer.bytes().as_ptr();
        assert_ne!(buffer.take(2, 82).as_ptr(), block.wrapping_add(2));
        // One that fills the rest of it may.
        let body = buffer.take(9, message - 82);
        assert_eq!(body.as_ptr(), block.wrapping_add(91));
    }

    #[test]
    fn a_peer_that_has_sent_large_bodies_is_out_of_debt() {
        let mut buffer = grown();
        for (size, shared) in [80, 80, 80, 65_000, 80]
            .into_iter()
            .zip([true, true, false, true, true])
        {
            read(&mut buffer, usize::MAX);
            let block = buffer.bytes().as_ptr();
            let body = buffer.take(2, 2 + size);
            assert_eq!(body.as_ptr() == block.wrapping_add(2), shared, "{size}");
            let rest = buffer.bytes().len();
            buffer.skip(rest);
        }
    }

    #[test]
    fn blocks_end_where_equal_messages_end() {
        let mut buffer = grown();
        for message in [10_000, 30_000, 65_545, 200_000, 1_048_585] {
            read(&mut buffer, 10);
            buffer.note_message(message);
            buffer.skip(10);
            buffer.block = Vec::new();
            let room = buffer.input().unwrap().capacity();
            assert_eq!(room % message, 0, "{message}");
            assert!(room > BATCH / 2, "{message}");
        }
    }

    #[test]
    fn a_dripping_frame_is_not_copied_again_and_again() {
        let mut buffer = grown();
        let (mut moves, mut capacity) = (0, 0);
        read(&mut buffer, 9);
        buffer.wait_for(1 << 30).unwrap();
        for _ in 0..40_000 {
            read(&mut buffer, 50);
            if buffer.block.capacity() != capacity {
                moves += 1;
                capacity = buffer.block.capacity();
            }
        }
        assert!(capacity < 5_000_000);
        assert!(moves <= 7, "{moves}");
    }

    #[test]
    fn spent_blocks_are_released() {
        let mut buffer = grown();
        let mut bodies = Vec::new();
        for _ in 0..20 {
            read(&mut buffer, usize::MAX);
            bodies.push(buffer.take(0, 65_536));
        }
        assert!(buffer.holds_spare());
        buffer.trim();
        assert!(!buffer.holds_spare());
        assert_eq!(buffer.input().unwrap().capacity(), FIRST_READ);
    }
}
