//! Bytes in, frames out: [`Decoder`] cuts what was received lazily, one frame per call, and within limits.

use crate::command::MAX_COMMAND;
use crate::error::{CloseReason, ProtocolError};
use crate::frame::{Frame, INLINE_MAX, Kind};
use crate::legacy;
use crate::mechanisms::Cipher;
use crate::read_buffer::ReadBuffer;

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

impl Limits {
    /// Refuses a command of `size` bytes that is too long.
    pub(crate) fn check_command(&self, size: u64) -> Result<(), ProtocolError> {
        if size <= self.command {
            return Ok(());
        }
        Err(ProtocolError::CommandTooBig {
            size,
            limit: self.command,
        })
    }
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

/// What tells frames apart, and what is known about the message under way.
#[derive(Debug)]
pub(crate) struct Decoder {
    framing: Framing,
    limits: Limits,
    input: ReadBuffer,
    /// Frames of at most this many bytes need no second look; `None` outside of plain traffic.
    small: Option<u8>,
    /// The message under way, and its bytes with headers.
    meter: Meter,
    wire_bytes: usize,
}

impl Decoder {
    pub(crate) fn new(framing: Framing, limits: Limits, batch: usize) -> Decoder {
        Decoder {
            framing,
            limits,
            input: ReadBuffer::new(batch),
            small: None,
            meter: Meter::default(),
            wire_bytes: 0,
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

    /// The received bytes.
    pub(crate) fn input(&mut self) -> &mut ReadBuffer {
        &mut self.input
    }

    /// Bytes of memory for what is not decoded yet.
    pub(crate) fn held(&self) -> usize {
        self.input.held()
    }

    /// Whether an idle connection holds on to memory worth releasing.
    pub(crate) fn holds_spare(&self) -> bool {
        self.input.holds_spare()
    }

    /// Whether the frames decoded so far end within a message.
    pub(crate) fn in_message(&self) -> bool {
        self.meter.in_message()
    }

    /// Whether what was received ends within a message, as far as frames tell.
    #[inline]
    pub(crate) fn is_partial(&self) -> bool {
        self.meter.in_message() || !self.input.bytes().is_empty()
    }

    /// Puts the next frame into `frame` if it is the usual one: small, and not at the very end of a read. Otherwise it is
    /// up to [`decode`](Decoder::decode).
    #[inline(always)]
    pub(crate) fn decode_small(&mut self, frame: &mut Frame) -> bool {
        self.try_small(frame).is_some()
    }

    #[inline(always)]
    fn try_small(&mut self, frame: &mut Frame) -> Option<()> {
        let small = self.small?;
        let data = self.input.bytes();
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
        *frame = Frame::from_array(bytes.first_chunk()?, size, more);
        self.input.skip_some(end);
        if part {
            self.count_part(u64::from(size), more, end);
        } else {
            self.input.note_message(end);
        }
        Some(())
    }

    /// The next frame, or `None` when it is not complete.
    pub(crate) fn decode(&mut self) -> Result<Option<Frame>, CloseReason> {
        if self.framing == Framing::Raw {
            return Ok(self.decode_raw());
        }
        let Some((header, end)) = self.next_header(parse_header)? else {
            return Ok(None);
        };
        let mut frame = if end - header.len <= INLINE_MAX {
            let frame = Frame::copy_from(&self.input.bytes()[header.len..end]);
            self.input.skip(end);
            frame
        } else {
            self.input.take(header.len, end)
        };
        if header.command {
            frame.set_kind(Kind::Command);
        } else {
            frame.set_more(header.more);
            if header.more || self.meter.in_message() {
                self.count_part(header.size, header.more, end);
            } else {
                self.input.note_message(end);
            }
        }
        Ok(Some(frame))
    }

    /// The next frame out of its wrapping, or `None` when it is not complete.
    pub(crate) fn decode_wrapped(
        &mut self,
        cipher: &mut dyn Cipher,
    ) -> Result<Option<Frame>, CloseReason> {
        let Some((header, end)) = self.next_header(parse_wrapping)? else {
            return Ok(None);
        };
        let opened = cipher.open(self.input.bytes_mut(header.len, end)?)?;
        let start = header.len + opened.start;
        let mut frame = self.input.take_before_more(start, end);
        frame.set_more(opened.more);
        if opened.command {
            frame.set_kind(Kind::Command);
        }
        self.input.note_message(end);
        Ok(Some(frame))
    }

    /// The header of the next frame and where it ends, once it is complete. `parse` reads those of today.
    #[inline]
    fn next_header(
        &mut self,
        parse: impl Fn(&[u8]) -> Result<Option<Header>, ProtocolError>,
    ) -> Result<Option<(Header, usize)>, CloseReason> {
        let data = self.input.bytes();
        let header = match self.framing {
            Framing::V1 => legacy::parse_header(data)?,
            Framing::V2 | Framing::Raw => parse(data)?,
        };
        let Some(header) = header else {
            self.input.wait_for(0)?;
            return Ok(None);
        };
        self.check(&header)?;
        let Some(end) = usize::try_from(header.size)
            .ok()
            .and_then(|size| size.checked_add(header.len))
        else {
            return Err(ProtocolError::FrameLength(header.size).into());
        };
        if data.len() < end {
            self.input.wait_for(end)?;
            return Ok(None);
        }
        Ok(Some((header, end)))
    }

    /// Refuses a frame by its header, before room is made for its body.
    #[inline]
    fn check(&self, header: &Header) -> Result<(), CloseReason> {
        let limits = &self.limits;
        if header.command {
            return Ok(limits.check_command(header.size)?);
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
            self.input.note_message(self.wire_bytes);
            self.wire_bytes = 0;
        }
    }

    /// Everything there is, as one frame.
    fn decode_raw(&mut self) -> Option<Frame> {
        match self.input.bytes().len() {
            0 => None,
            len => Some(self.input.take(0, len)),
        }
    }
}

/// The header at the front of `data` in the framing of ZMTP 2.0 and later; `None` when it is incomplete.
#[inline]
fn parse_header(data: &[u8]) -> Result<Option<Header>, ProtocolError> {
    let Some(&flags) = data.first() else {
        return Ok(None);
    };
    // A command never has more frames.
    if flags & (MORE | COMMAND) == MORE | COMMAND {
        return Err(ProtocolError::FrameFlags(flags));
    }
    parse_any_header(flags, data)
}

/// As [`parse_header`], for a frame that wraps another. What it is says the inside; what the flags outside say of it,
/// peers do not agree on, and nobody has vouched for it.
fn parse_wrapping(data: &[u8]) -> Result<Option<Header>, ProtocolError> {
    let Some(&flags) = data.first() else {
        return Ok(None);
    };
    let header = parse_any_header(flags, data)?;
    Ok(header.map(|header| Header {
        more: false,
        command: false,
        ..header
    }))
}

#[inline]
fn parse_any_header(flags: u8, data: &[u8]) -> Result<Option<Header>, ProtocolError> {
    // The other bits are reserved.
    if flags & !(MORE | LONG | COMMAND) != 0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: usize, size: u64, more: bool, command: bool) -> Option<Header> {
        Some(Header {
            len,
            size,
            more,
            command,
        })
    }

    fn limits() -> Limits {
        Limits {
            message: 10,
            frames: 3,
            command: 5,
            commands_only: false,
        }
    }

    fn decoded(bytes: &[u8], small: bool) -> (Vec<Frame>, Option<CloseReason>) {
        let mut decoder = Decoder::new(Framing::V2, limits(), 1000);
        if small {
            decoder.allow_small();
        }
        // What follows lets the last frame be one of the usual.
        decoder.input().input().unwrap().extend_from_slice(bytes);
        decoder
            .input()
            .input()
            .unwrap()
            .extend_from_slice(&[0xff; 100]);
        let mut frames = Vec::new();
        loop {
            let mut frame = Frame::new();
            if decoder.decode_small(&mut frame) {
                frames.push(frame);
                continue;
            }
            match decoder.decode() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return (frames, None),
                Err(CloseReason::Protocol(ProtocolError::FrameFlags(0xff))) => {
                    return (frames, None);
                }
                Err(reason) => return (frames, Some(reason)),
            }
        }
    }

    #[test]
    fn headers_are_those_of_rfc_37() {
        let cases: &[(&[u8], _)] = &[
            (b"\0\0", header(2, 0, false, false)),
            (b"\x01\xff", header(2, 255, true, false)),
            (b"\x04\x1a\x05READY", header(2, 26, false, true)),
            (b"\x02\0\0\0\0\0\0\x01\0", header(9, 256, false, false)),
            (b"\x03\0\0\0\0\0\0\0\0", header(9, 0, true, false)),
            (
                b"\x06\x7f\xff\xff\xff\xff\xff\xff\xff",
                header(9, u64::MAX >> 1, false, true),
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(parse_header(bytes).as_ref(), Ok(expected));
            let len = if bytes[0] & LONG == 0 { 2 } else { 9 };
            for end in 0..len {
                assert_eq!(parse_header(&bytes[..end]), Ok(None));
            }
        }
    }

    #[test]
    fn impossible_headers_are_refused_by_their_first_wrong_byte() {
        for flags in [0x08, 0x10, 0x80, 0x05, 0x07] {
            assert_eq!(
                parse_header(&[flags]),
                Err(ProtocolError::FrameFlags(flags))
            );
        }
        let long = b"\x02\x80\0\0\0\0\0\0\0";
        assert_eq!(parse_header(long), Err(ProtocolError::FrameLength(1 << 63)));
    }

    #[test]
    fn the_short_way_decodes_what_the_long_way_does() {
        let too_big = |size| CloseReason::MessageTooBig { size, limit: 10 };
        let cases: &[(&[u8], usize, Option<CloseReason>)] = &[
            (b"\0\x0501234\0\x0b", 1, Some(too_big(11))),
            (b"\0\x0a0123456789\0\0", 2, None),
            (b"\0\x0b0123456789a", 0, Some(too_big(11))),
            (b"\x01\x0501234\0\x0556789", 2, None),
            (b"\x01\x0501234\0\x06567890", 1, Some(too_big(11))),
            (b"\x01\0\x01\0\0\0\0\x01x", 4, None),
            (
                b"\x01\0\x01\0\x01\0\0\0",
                3,
                Some(ProtocolError::TooManyFrames(3).into()),
            ),
            (b"\x04\x05\x04PING\0\x01x", 2, None),
        ];
        for (bytes, count, reason) in cases {
            let short = decoded(bytes, true);
            assert_eq!(short, decoded(bytes, false), "{}", bytes.escape_ascii());
            assert_eq!(short.0.len(), *count, "{}", bytes.escape_ascii());
            assert_eq!(short.1, *reason, "{}", bytes.escape_ascii());
        }
    }
}
