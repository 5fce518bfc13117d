//! Bytes in, frames out: [`Decoder`] owns the receive buffer and cuts it lazily, one frame per call.
//!
//! The driver appends to a plain `Vec`. Small bodies are copied into their frames and the `Vec` is used again.
//! The first large body turns a well-filled `Vec` into [`Bytes`]; from then on that read is only sliced, and
//! what is left at its end, part of a frame, moves to the front of the next `Vec`. A handle on the sliced block
//! stays behind: once the application has let go of every slice, the block is read into again, because fresh
//! blocks cost page faults.
//!
//! A buffer is never sized by what a peer announces. It holds what has come and room for one more read; only
//! for a frame that is longer than that does the room grow, doubling with the bytes that really arrive, or at
//! once as far as this peer has already completed a message of that size ([`TRUST_MAX`] at most).

use crate::command::MAX_COMMAND;
use crate::encoder::SMALL_BUFFER;
use crate::error::{CloseReason, ProtocolError};
use crate::frame::{Frame, INLINE_MAX, Kind};
use crate::legacy;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;

/// Room for the first read; it doubles while reads fill it, up to the batch size.
const FIRST_READ: usize = SMALL_BUFFER / 2;
/// The most room made ahead because the peer's last message was that large.
const TRUST_MAX: usize = 4 * 1024 * 1024;
/// How many blocks are kept for reading into them again, and how many bytes they may have together.
const SPENT_MAX: usize = 4;
const SPENT_BYTES: usize = 2 * 1024 * 1024;

const MORE: u8 = 0x01;
const LONG: u8 = 0x02;
const COMMAND: u8 = 0x04;

/// How frames are told apart on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// ZMTP 1.0: the length comes first and counts the flags.
    V1,
    /// ZMTP 2.0 and later: flags, then the length.
    V2,
    /// No frames at all: what was read is a frame.
    Raw,
}

/// What a peer may send at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes in a data frame, and in the frames of a message together.
    pub(crate) message: u64,
    /// Frames in a message.
    pub(crate) frames: usize,
    /// Bytes in a command.
    pub(crate) command: u64,
    /// Only commands, because the handshake is not over.
    pub(crate) commands_only: bool,
}

/// The start of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of the header itself.
    pub(crate) len: usize,
    /// Bytes of the body.
    pub(crate) size: u64,
    pub(crate) more: bool,
    pub(crate) command: bool,
}

/// The receive buffer and what is known about the frame at its front.
#[derive(Debug)]
pub(crate) struct Decoder {
    framing: Framing,
    limits: Limits,
    /// What the driver appends to; undecoded from `start`.
    buffer: Vec<u8>,
    start: usize,
    /// A read whose bodies are handed out as slices. Comes before `buffer`, which is empty meanwhile.
    frozen: Bytes,
    /// Handles on earlier blocks, oldest first, with their sizes.
    spent: VecDeque<(Bytes, usize)>,
    /// Frames of at most this many bytes need no check against a limit; `None` outside of plain traffic.
    small: Option<u8>,
    /// Whole length of the incomplete frame at the front, once its header is there.
    partial: usize,
    /// Room for the next read, and the most it may become.
    read_size: usize,
    batch: usize,
    /// The message under way, and its bytes with headers.
    meter: Meter,
    wire_bytes: usize,
    /// Wire bytes of the last whole message: streams of equal messages are read in multiples of it, so that
    /// no body is split between two buffers.
    last_message: usize,
}

impl Decoder {
    pub(crate) fn new(framing: Framing, limits: Limits, batch: usize) -> Decoder {
        let batch = batch.max(1);
        Decoder {
            framing,
            limits,
            buffer: Vec::new(),
            start: 0,
            frozen: Bytes::new(),
            spent: VecDeque::new(),
            small: None,
            partial: 0,
            read_size: FIRST_READ.min(batch),
            batch,
            meter: Meter::default(),
            wire_bytes: 0,
            last_message: 0,
        }
    }

    pub(crate) fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// From now on [`decode_small`](Decoder::decode_small) is allowed: its frames need no second look.
    pub(crate) fn allow_small(&mut self) {
        let plain = self.framing == Framing::V2 && self.limits.frames > 0;
        let most = self.limits.message.min(INLINE_MAX as u64) as u8;
        self.small = plain.then_some(most);
    }

    /// Where the driver appends; there is room for a read.
    pub(crate) fn input(&mut self) -> &mut Vec<u8> {
        if !self.frozen.is_empty() {
            self.thaw();
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let have = self.buffer.len();
        let room = self.room(have);
        let capacity = self.buffer.capacity();
        // A new block rather than a resized one: either there is nothing to keep, or a block that once held a
        // huge frame is too large for what comes now.
        if have == 0 && (capacity < room || capacity > 4 * room) {
            self.buffer = self.block(room);
        } else if capacity - have < room {
            self.buffer.reserve_exact(room);
        }
        &mut self.buffer
    }

    /// To be called when the driver has appended.
    pub(crate) fn note_read(&mut self) {
        if self.buffer.len() == self.buffer.capacity() {
            self.read_size = self.batch.min(self.read_size * 2);
        }
    }

    /// Everything not decoded yet.
    pub(crate) fn undecoded(&self) -> &[u8] {
        if self.frozen.is_empty() {
            &self.buffer[self.start..]
        } else {
            &self.frozen
        }
    }

    /// Forgets bytes at the front of [`undecoded`](Decoder::undecoded).
    pub(crate) fn skip(&mut self, count: usize) {
        if self.frozen.is_empty() {
            self.start += count;
            if self.start == self.buffer.len() {
                self.buffer.clear();
                self.start = 0;
            }
        } else {
            self.frozen.advance(count);
            if self.frozen.is_empty() {
                // An empty slice would still hold the block.
                self.frozen = Bytes::new();
            }
        }
    }

    /// Whether an idle connection holds on to memory worth releasing.
    pub(crate) fn holds_spare(&self) -> bool {
        self.buffer.capacity() > SMALL_BUFFER || !self.spent.is_empty()
    }

    /// Releases memory that holds nothing undecoded.
    pub(crate) fn trim(&mut self) {
        self.spent = VecDeque::new();
        if self.buffer.is_empty() {
            self.buffer = Vec::new();
            self.read_size = FIRST_READ.min(self.batch);
        }
    }

    /// Releases everything; nothing more will be decoded.
    pub(crate) fn clear(&mut self) {
        self.frozen = Bytes::new();
        self.spent = VecDeque::new();
        self.buffer = Vec::new();
        self.start = 0;
    }

    /// Whether the frames decoded so far end within a message.
    pub(crate) fn in_message(&self) -> bool {
        self.meter.in_message()
    }

    /// The next frame if it is the usual one: small, and not at the very end of a read. Otherwise `None`, and
    /// it is up to [`decode`](Decoder::decode).
    #[inline(always)]
    pub(crate) fn decode_small(&mut self) -> Option<Frame> {
        let small = self.small?;
        let data = self.undecoded();
        // One byte beyond the longest, so that the read is not used up by this frame.
        let (&[flags, size], body) = data.split_first_chunk()?;
        let (bytes, _) = body.split_first_chunk::<{ INLINE_MAX + 1 }>()?;
        if flags > MORE || size > small {
            return None;
        }
        let more = flags == MORE;
        let end = 2 + usize::from(size);
        let part = more || self.meter.in_message();
        if part && !self.meter.fits(u64::from(size), &self.limits) {
            return None;
        }
        let frame = Frame::from_array(bytes.first_chunk()?, size, more);
        if self.frozen.is_empty() {
            self.start += end;
        } else {
            self.frozen.advance(end);
        }
        if part {
            self.count_part(u64::from(size), more, end);
        } else {
            self.last_message = end;
        }
        Some(frame)
    }

    /// The next frame, or `None` when it is not complete.
    pub(crate) fn decode(&mut self) -> Result<Option<Frame>, CloseReason> {
        let data = self.undecoded();
        let header = match self.framing {
            Framing::V2 => parse_header(data)?,
            Framing::V1 => legacy::parse_header(data)?,
            Framing::Raw => return Ok(self.decode_raw()),
        };
        let Some(header) = header else {
            self.wait_for(0);
            return Ok(None);
        };
        self.check(&header)?;
        let Some(end) = usize::try_from(header.size)
            .ok()
            .and_then(|size| size.checked_add(header.len))
        else {
            return Err(ProtocolError::FrameLength(header.size).into());
        };
        let Some(body) = data.get(header.len..end) else {
            self.wait_for(end);
            return Ok(None);
        };
        let mut frame = if body.len() <= INLINE_MAX {
            let frame = Frame::copy_from(body);
            self.skip(end);
            frame
        } else {
            self.take_large(header.len, end)
        };
        if header.command {
            frame.set_kind(Kind::Command);
        } else if header.more || self.meter.in_message() {
            frame.set_more(header.more);
            self.count_part(header.size, header.more, end);
        } else {
            self.last_message = end;
        }
        Ok(Some(frame))
    }

    /// Refuses a frame by its header, before room is made for its body.
    #[inline]
    fn check(&self, header: &Header) -> Result<(), CloseReason> {
        let limits = &self.limits;
        if header.command {
            if header.size > limits.command {
                return Err(ProtocolError::CommandTooBig {
                    size: header.size,
                    limit: limits.command,
                }
                .into());
            }
            return Ok(());
        }
        if limits.commands_only {
            return Err(ProtocolError::UnexpectedCommand {
                expected: "a handshake command",
                got: "a message".to_owned(),
            }
            .into());
        }
        self.meter.check(header.size, limits)
    }

    fn count_part(&mut self, size: u64, more: bool, end: usize) {
        self.meter.count(size, more);
        self.wire_bytes = self.wire_bytes.saturating_add(end);
        if !more {
            self.last_message = self.wire_bytes;
            self.wire_bytes = 0;
        }
    }

    /// The complete frame at the front, its body being too large for inline storage.
    fn take_large(&mut self, header_len: usize, end: usize) -> Frame {
        if self.frozen.is_empty() {
            // A body that outlives the others of its read keeps the whole block alive. So share only blocks
            // that are reasonably full; the copy that costs elsewhere is small beside the system call.
            if self.buffer.len() < self.buffer.capacity() / 4 {
                let body = &self.buffer[self.start + header_len..self.start + end];
                let frame = Frame::copy_from(body);
                self.skip(end);
                return frame;
            }
            self.freeze();
        }
        let mut body = self.frozen.split_to(end);
        if self.frozen.is_empty() {
            self.frozen = Bytes::new();
        }
        body.advance(header_len);
        Frame::from_bytes(body)
    }

    fn decode_raw(&mut self) -> Option<Frame> {
        let len = self.undecoded().len();
        if len == 0 {
            return None;
        }
        if len > INLINE_MAX {
            return Some(self.take_large(0, len));
        }
        let frame = Frame::copy_from(self.undecoded());
        self.skip(len);
        Some(frame)
    }

    fn freeze(&mut self) {
        let size = self.buffer.capacity();
        self.frozen = Bytes::from(std::mem::take(&mut self.buffer));
        self.frozen.advance(self.start);
        self.start = 0;
        if size <= SPENT_BYTES {
            let held = |spent: &VecDeque<(Bytes, usize)>| {
                spent.iter().map(|(_, size)| size).sum::<usize>()
            };
            while self.spent.len() >= SPENT_MAX || held(&self.spent) + size > SPENT_BYTES {
                self.spent.pop_front();
            }
            // An empty slice would not hold the block.
            self.spent.push_back((self.frozen.slice(..1), size));
        }
    }

    /// An empty buffer of at least this capacity.
    fn block(&mut self, capacity: usize) -> Vec<u8> {
        if let Some((oldest, size)) = self.spent.front()
            && oldest.is_unique()
        {
            let fits = (capacity..=4 * capacity).contains(size);
            if let Some((oldest, _)) = self.spent.pop_front()
                && fits
            {
                let mut block = Vec::from(oldest);
                block.clear();
                return block;
            }
        }
        Vec::with_capacity(capacity)
    }

    /// Moves what is left of a read to the front of a new buffer.
    fn thaw(&mut self) {
        let rest = std::mem::take(&mut self.frozen);
        let room = self.room(rest.len());
        let mut block = self.block(rest.len() + room);
        block.extend_from_slice(&rest);
        self.buffer = block;
        self.start = 0;
    }

    #[cold]
    fn wait_for(&mut self, end: usize) {
        self.partial = end;
        if !self.frozen.is_empty() {
            self.thaw();
        }
    }

    /// Room to make behind `have` undecoded bytes.
    fn room(&self, have: usize) -> usize {
        let missing = self.partial.saturating_sub(have);
        if missing > self.read_size / 2 {
            // Read to the end of this frame and not beyond, so that the next one starts a buffer.
            let trusted = self.last_message.min(TRUST_MAX);
            return missing.min(self.read_size.max(have).max(trusted));
        }
        let message = self.last_message;
        let aligned = if message <= self.read_size / 8 {
            // The piece of a small message that gets copied is not worth a smaller read.
            self.read_size
        } else if message <= self.read_size {
            (self.read_size - missing) / message * message
        } else {
            message.min(TRUST_MAX)
        };
        missing
            + if aligned == 0 {
                self.read_size
            } else {
                aligned
            }
    }
}

/// The header at the front of `data` in the framing of ZMTP 2.0 and later; `None` when it is incomplete.
#[inline]
fn parse_header(data: &[u8]) -> Result<Option<Header>, ProtocolError> {
    let Some(&flags) = data.first() else {
        return Ok(None);
    };
    // A command never has more frames; the other bits are reserved.
    if flags & !(MORE | LONG | COMMAND) != 0 || flags & (MORE | COMMAND) == MORE | COMMAND {
        return Err(ProtocolError::FrameFlags(flags));
    }
    let (len, size) = if flags & LONG == 0 {
        let Some(&size) = data.get(1) else {
            return Ok(None);
        };
        (2, u64::from(size))
    } else {
        let Some(size) = data[1..].first_chunk() else {
            return Ok(None);
        };
        (9, long_length(*size)?)
    };
    Ok(Some(Header {
        len,
        size,
        more: flags & MORE != 0,
        command: flags & COMMAND != 0,
    }))
}

/// A long length; the highest bit must be clear.
pub(crate) fn long_length(bytes: [u8; 8]) -> Result<u64, ProtocolError> {
    let length = u64::from_be_bytes(bytes);
    if length >> 63 != 0 {
        return Err(ProtocolError::FrameLength(length));
    }
    Ok(length)
}

impl Limits {
    /// For the time before the peer is known: handshake commands only.
    pub(crate) fn handshake() -> Limits {
        Limits {
            message: 0,
            frames: 1,
            command: MAX_COMMAND,
            commands_only: true,
        }
    }
}

/// Counts what belongs to one message, so that a message is limited as a whole.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    frames: usize,
    bytes: u64,
}

impl Meter {
    /// Whether the next frame continues a message.
    #[inline]
    pub(crate) fn in_message(&self) -> bool {
        self.frames != 0
    }

    /// Whether the message may have another frame of `size` bytes.
    #[inline]
    pub(crate) fn fits(&self, size: u64, limits: &Limits) -> bool {
        self.bytes.saturating_add(size) <= limits.message && self.frames < limits.frames
    }

    /// Refuses a frame of `size` bytes that would make the message too large.
    #[inline]
    pub(crate) fn check(&self, size: u64, limits: &Limits) -> Result<(), CloseReason> {
        if self.fits(size, limits) {
            return Ok(());
        }
        let size = self.bytes.saturating_add(size);
        if size > limits.message {
            return Err(CloseReason::MessageTooBig {
                size,
                limit: limits.message,
            });
        }
        Err(ProtocolError::TooManyFrames(limits.frames).into())
    }

    /// Takes a frame into account.
    pub(crate) fn count(&mut self, size: u64, more: bool) {
        if more {
            self.frames += 1;
            self.bytes = self.bytes.saturating_add(size);
        } else {
            *self = Meter::default();
        }
    }
}
