//! Decodes bytes into frames: [`Decoder`] cuts received bytes lazily, one frame per call, and enforces limits.

use crate::command::MAX_COMMAND;
use crate::error::{CloseReason, ProtocolError};
use crate::frame::{Frame, FrameKind, INLINE_MAX};
use crate::framing::v2::MORE;
use crate::framing::{Framing, Header, v1, v2};
use crate::mechanisms::Cipher;
use crate::read_buffer::ReadBuffer;

/// The limits for what a peer may send at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Maximum bytes in a data frame, and in all frames of a message together.
    pub(crate) message: u64,
    /// Maximum frames in a message.
    pub(crate) frames: usize,
    /// Maximum bytes in a command.
    pub(crate) command: u64,
    /// Whether only commands are allowed, because the handshake is not complete.
    pub(crate) commands_only: bool,
}

impl Limits {
    /// Refuses a command of `size` bytes if it is too long.
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

/// The framing, and the state of the current message.
#[derive(Debug)]
pub(crate) struct Decoder {
    framing: Framing,
    limits: Limits,
    input: ReadBuffer,
    /// The maximum size of frames that need no further checks; `None` outside of plain traffic.
    small: Option<u8>,
    /// The current message: its frames, and its bytes with headers.
    meter: Meter,
    wire_bytes: usize,
    /// The transport may pass on a frame in pieces; see [`Mapping::Pieces`](crate::wires::Mapping::Pieces).
    has_pieces: bool,
    /// The bytes of the current frame in the pieces that were joined so far, behind the header of the first one.
    joined: Option<usize>,
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
            has_pieces: false,
            joined: None,
        }
    }

    pub(crate) fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
    }

    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Allows [`decode_small`](Decoder::decode_small) from now on, because small frames need no further checks.
    pub(crate) fn allow_small(&mut self) {
        let plain = self.framing.is_v2() && self.limits.frames > 0;
        let most = self.limits.message.min(INLINE_MAX as u64) as u8;
        self.small = plain.then_some(most);
    }

    /// Expects frames in pieces from now on.
    pub(crate) fn allow_pieces(&mut self) {
        self.has_pieces = true;
    }

    /// The received bytes.
    pub(crate) fn input(&mut self) -> &mut ReadBuffer {
        &mut self.input
    }

    /// Bytes of memory for data that is not decoded yet.
    pub(crate) fn held(&self) -> usize {
        self.input.held()
    }

    /// Whether the buffers of an idle connection are worth releasing.
    pub(crate) fn holds_spare(&self) -> bool {
        self.input.holds_spare()
    }

    /// Whether the frames decoded so far end within a message.
    pub(crate) fn in_message(&self) -> bool {
        self.meter.in_message()
    }

    /// Whether the received bytes end within a message, as far as framing shows.
    #[inline]
    pub(crate) fn is_partial(&self) -> bool {
        self.meter.in_message() || !self.input.bytes().is_empty()
    }

    /// How many bytes at least have to arrive before the message is complete.
    pub(crate) fn missing(&self) -> usize {
        self.input.missing().max(usize::from(self.is_partial()))
    }

    /// Decodes the next frame into `frame` if it is an ordinary one: small, and not at the very end of a read. For
    /// others, returns false, and the caller uses [`decode`](Decoder::decode).
    #[inline(always)]
    pub(crate) fn decode_small(&mut self, frame: &mut Frame) -> bool {
        self.try_small(frame).is_some()
    }

    #[inline(always)]
    fn try_small(&mut self, frame: &mut Frame) -> Option<()> {
        let small = self.small?;
        let data = self.input.bytes();
        // One byte more than the longest, so that this frame does not use up the read.
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

    /// The next frame, or `None` if it is incomplete.
    pub(crate) fn decode(&mut self) -> Result<Option<Frame>, CloseReason> {
        if matches!(self.framing, Framing::Raw) {
            return Ok(self.decode_raw());
        }
        let Some((header, end)) = self.next_header(v2::parse_header)? else {
            return Ok(None);
        };
        let mut frame = if end - header.len <= INLINE_MAX {
            let frame = Frame::copy_from(&self.input.bytes()[header.len..end]);
            self.input.skip(end);
            frame
        } else if header.command {
            self.input.take_command(header.len, end)
        } else {
            self.input.take(header.len, end)
        };
        if header.command {
            frame.set_kind(FrameKind::Command);
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

    /// The next frame without its wrapping, or `None` if it is incomplete.
    pub(crate) fn decode_wrapped(
        &mut self,
        cipher: &mut dyn Cipher,
    ) -> Result<Option<Frame>, CloseReason> {
        let Some((header, end)) = self.next_header(v2::parse_wrapping)? else {
            return Ok(None);
        };
        let opened = cipher.open(self.input.bytes_mut(header.len, end)?)?;
        let start = header.len + opened.start;
        let mut frame = self.input.take_before_more(start, end);
        frame.set_more(opened.more);
        if opened.command {
            frame.set_kind(FrameKind::Command);
        }
        self.input.note_message(end);
        Ok(Some(frame))
    }

    /// The header of the next frame and where the frame ends, if the header is complete. `parse` handles current
    /// framing.
    #[inline]
    fn next_header(
        &mut self,
        parse: impl Fn(&[u8]) -> Result<Option<Header>, ProtocolError>,
    ) -> Result<Option<(Header, usize)>, CloseReason> {
        if self.has_pieces && !self.join(&parse)? {
            return Ok(None);
        }
        let data = self.input.bytes();
        let Some(header) = self.parse(data, &parse)? else {
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

    fn parse(
        &self,
        data: &[u8],
        current: impl Fn(&[u8]) -> Result<Option<Header>, ProtocolError>,
    ) -> Result<Option<Header>, ProtocolError> {
        match self.framing {
            Framing::V1 => v1::parse_header(data),
            Framing::Other(form, mapping) => (form.parse_header)(data, mapping),
            Framing::V2 | Framing::Raw => current(data),
        }
    }

    /// Refuses a frame by its header, before memory is allocated for its body.
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

    /// Joins the pieces of the frame at the front in the buffer: the header of the first one gets their length, and those
    /// between them are removed. Returns false if the frame is incomplete.
    fn join(
        &mut self,
        parse: impl Fn(&[u8]) -> Result<Option<Header>, ProtocolError>,
    ) -> Result<bool, CloseReason> {
        let long = self.framing.long();
        loop {
            let data = self.input.bytes();
            if self.joined.is_none() && !long.is_piece(data) {
                return Ok(true);
            }
            let at = self.joined.map_or(0, |joined| long.header + joined);
            let Some((length, more)) = long.piece(data.get(at..).unwrap_or_default()) else {
                // The room for a long frame grows with it, although its length is not known.
                let end = if at > 0 { at + at / 2 + long.header } else { 0 };
                self.input.wait_for(end)?;
                return Ok(false);
            };
            let joined = self.joined.unwrap_or_default();
            let whole = long.whole(data, length.saturating_add(joined as u64));
            if let Some(header) = self.parse(&whole, &parse)? {
                self.check(&header)?;
            }
            let end = usize::try_from(length)
                .ok()
                .and_then(|length| length.checked_add(at + long.header))
                .ok_or(ProtocolError::FrameLength(length))?;
            if data.len() < end {
                self.input.wait_for(end)?;
                return Ok(false);
            }
            if self.joined.is_some() {
                self.input.remove(at, long.header)?;
            }
            if !more {
                self.joined = None;
                let header = self.input.bytes_mut(0, long.header)?;
                header.copy_from_slice(&whole);
                return Ok(true);
            }
            self.joined = Some(end - at - long.header + joined);
        }
    }

    /// All bytes, as one frame.
    fn decode_raw(&mut self) -> Option<Frame> {
        match self.input.bytes().len() {
            0 => None,
            len => Some(self.input.take(0, len)),
        }
    }
}

impl Limits {
    /// The limits before the peer is known: handshake commands only.
    pub(crate) fn handshake() -> Limits {
        Limits {
            message: 0,
            frames: 1,
            command: MAX_COMMAND,
            commands_only: true,
        }
    }
}

/// Counts the frames of a message, so that the limits apply to the whole message.
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
    use crate::mechanisms::{Content, Opened};
    use crate::wires::{Mapping, sp::SP};

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
        // With further bytes after it, the last frame is an ordinary one.
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

    /// A cipher that adds three bytes.
    struct Marked;

    impl Cipher for Marked {
        fn overhead(&self) -> usize {
            3
        }

        fn seal(&mut self, _: Content<'_>, _: &mut Vec<u8>) -> Result<(), CloseReason> {
            Ok(())
        }

        fn open(&mut self, body: &mut [u8]) -> Result<Opened, ProtocolError> {
            assert!(body.starts_with(b"abc"));
            Ok(Opened {
                start: 3,
                command: false,
                more: false,
            })
        }
    }

    /// The messages in these pieces, read in parts of `cut` bytes.
    fn joined(framing: Framing, bytes: &[u8], cut: usize) -> Result<Vec<Vec<u8>>, CloseReason> {
        let mut decoder = Decoder::new(framing, limits(), 1000);
        decoder.allow_pieces();
        let mut messages = Vec::new();
        for part in bytes.chunks(cut) {
            decoder.input().input().unwrap().extend_from_slice(part);
            while let Some(frame) = decoder.decode()? {
                messages.push(frame.to_vec());
            }
        }
        assert!(!decoder.is_partial());
        Ok(messages)
    }

    #[test]
    fn pieces_are_joined_however_they_are_cut_and_limited_together() {
        for framing in [
            Framing::V1,
            Framing::V2,
            Framing::Other(SP.form.as_ref().unwrap(), Mapping::Pieces),
        ] {
            let piece = |more: u8, body: &[u8]| {
                let (before, after, size) = match framing {
                    Framing::V1 => (&b"\xff"[..], &b"\0"[..], body.len() + 1),
                    Framing::V2 => (&b"\x02"[..], &b""[..], body.len()),
                    _ => (&b""[..], &b""[..], body.len()),
                };
                let length = [more, 0, 0, 0, 0, 0, 0, size as u8];
                [before, &length, after, body].concat()
            };
            let bytes = [
                piece(0x80, b"012"),
                piece(0x80, b""),
                piece(0, b"3456789"),
                piece(0, b""),
                piece(0x80, b"a"),
                piece(0, b""),
                piece(0, b"whole"),
            ]
            .concat();
            for cut in [1, 2, 7, 1000] {
                let messages = joined(framing, &bytes, cut).unwrap();
                assert_eq!(messages, [&b"0123456789"[..], b"", b"a", b"whole"]);
            }
            let bytes = [piece(0x80, b"0123456789"), piece(0, b"a")].concat();
            let size = 11;
            let reason = CloseReason::MessageTooBig { size, limit: 10 };
            assert_eq!(joined(framing, &bytes, 1000), Err(reason));
        }
    }

    #[test]
    fn pieces_of_commands_and_of_wrapped_frames_are_joined() {
        let piece = |flags: u8, more: u8, body: &[u8]| {
            [&[flags, more, 0, 0, 0, 0, 0, 0, body.len() as u8][..], body].concat()
        };
        let mut decoder = Decoder::new(Framing::V2, limits(), 1000);
        decoder.allow_pieces();
        decoder.allow_small();
        let command = [piece(6, 0x80, b"\x04PI"), piece(6, 0, b"NG")].concat();
        let more = [
            piece(3, 0x80, b"12"),
            piece(3, 0, b"3"),
            b"\0\x01x".to_vec(),
        ]
        .concat();
        let input = decoder.input().input().unwrap();
        input.extend([command, more].concat());
        let frame = decoder.decode().unwrap().unwrap();
        assert_eq!(
            (frame.kind(), &*frame),
            (FrameKind::Command, &b"\x04PING"[..])
        );
        let frame = decoder.decode().unwrap().unwrap();
        assert!(frame.more() && *frame == *b"123" && decoder.in_message());
        assert_eq!(*decoder.decode().unwrap().unwrap(), *b"x");
        let wrapped = [piece(6, 0x80, b"ab"), piece(6, 0, b"cdef")].concat();
        decoder.input().input().unwrap().extend(wrapped);
        let frame = decoder.decode_wrapped(&mut Marked).unwrap().unwrap();
        assert_eq!(*frame, *b"def");
        let long = piece(6, 0x80, b"\x05READY");
        decoder.input().input().unwrap().extend(long);
        assert!(decoder.decode().is_err());
    }

    #[test]
    fn the_short_path_decodes_the_same_frames_as_the_long_one() {
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
