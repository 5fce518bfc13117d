//! The opposite of a packer: the messages in the TSDUs of one sender.

use std::collections::VecDeque;

use crate::frame::Frame;
use crate::framing::v1;
use crate::message::Message;

use super::packer::{HEADER_MAX, NO_START};

/// The most frames of a message, unless it may not be larger than these would be in memory.
const FRAMES_MAX: u64 = 65_536;

/// The memory of a frame in addition to its body.
const FRAME: u64 = 72;

/// Puts the messages of one sender together. It begins with the first message that begins in a TSDU.
#[derive(Default)]
pub(super) struct Unpacker {
    has_joined: bool,
    /// An incomplete header.
    header: Vec<u8>,
    body: Option<Body>,
    /// The complete frames of an incomplete message.
    frames: Vec<Frame>,
    /// The bytes of their bodies.
    size: u64,
}

/// An incomplete frame.
struct Body {
    bytes: Vec<u8>,
    left: u64,
    more: bool,
}

/// Why the rest of a TSDU, and what follows up to the start of another message, is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Malformed,
    TooLarge,
}

impl Unpacker {
    /// Bytes were lost, so a message in progress is, too.
    pub(super) fn tear(&mut self) {
        *self = Unpacker::default();
    }

    /// The bytes of an incomplete message.
    pub(super) fn open_bytes(&self) -> u64 {
        let body = self.body.as_ref().map_or(0, |body| body.bytes.len() as u64);
        body + self.size + FRAME * self.frames.len() as u64
    }

    /// Adds the messages that are complete with this TSDU. No message may be larger than `largest`.
    pub(super) fn unpack(
        &mut self,
        tsdu: &[u8],
        largest: u64,
        out: &mut VecDeque<Message>,
    ) -> Result<(), Refused> {
        let result = self.try_unpack(tsdu, largest, out);
        if result.is_err() {
            self.tear();
        }
        result
    }

    fn try_unpack(
        &mut self,
        tsdu: &[u8],
        largest: u64,
        out: &mut VecDeque<Message>,
    ) -> Result<(), Refused> {
        let (start, mut rest) = tsdu.split_first_chunk().ok_or(Refused::Malformed)?;
        if !self.has_joined {
            let start = u16::from_be_bytes(*start);
            if start == NO_START {
                return Ok(());
            }
            rest = rest.get(usize::from(start)..).ok_or(Refused::Malformed)?;
            self.has_joined = true;
        }
        while !rest.is_empty() {
            rest = match self.body.is_some() {
                true => self.continue_body(rest, out),
                false => self.header(rest, largest, out)?,
            };
        }
        Ok(())
    }

    fn header<'a>(
        &mut self,
        data: &'a [u8],
        largest: u64,
        out: &mut VecDeque<Message>,
    ) -> Result<&'a [u8], Refused> {
        let before = self.header.len();
        let found = if before == 0 {
            v1::parse_header(data)
        } else {
            let room = HEADER_MAX - before;
            self.header.extend_from_slice(&data[..data.len().min(room)]);
            v1::parse_header(&self.header)
        };
        let Some(header) = found.map_err(|_| Refused::Malformed)? else {
            if before == 0 {
                self.header.extend_from_slice(data);
            }
            return Ok(&[]);
        };
        self.header.clear();
        let rest = &data[header.len - before..];
        let frames_max = FRAMES_MAX.min((largest / FRAME).max(1024));
        if self.size.saturating_add(header.size) > largest || self.frames.len() as u64 >= frames_max
        {
            return Err(Refused::TooLarge);
        }
        if let Some((body, rest)) = usize::try_from(header.size)
            .ok()
            .and_then(|size| rest.split_at_checked(size))
        {
            self.add(Frame::copy_from(body), header.more, out);
            return Ok(rest);
        }
        self.body = Some(Body {
            bytes: Vec::new(),
            left: header.size,
            more: header.more,
        });
        Ok(rest)
    }

    fn continue_body<'a>(&mut self, data: &'a [u8], out: &mut VecDeque<Message>) -> &'a [u8] {
        let Some(mut body) = self.body.take() else {
            return data;
        };
        let count = usize::try_from(body.left).map_or(data.len(), |left| left.min(data.len()));
        let (more, rest) = data.split_at(count);
        body.bytes.extend_from_slice(more);
        body.left -= count as u64;
        if body.left > 0 {
            self.body = Some(body);
        } else {
            self.add(Frame::from(body.bytes), body.more, out);
        }
        rest
    }

    fn add(&mut self, frame: Frame, more: bool, out: &mut VecDeque<Message>) {
        if !more && self.frames.is_empty() {
            return out.push_back(Message::single(frame));
        }
        self.size += frame.len() as u64;
        self.frames.push(frame);
        if !more {
            self.size = 0;
            out.push_back(Message::from_vec(std::mem::take(&mut self.frames)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgm::packer::Packer;

    fn message(parts: &[usize]) -> Message {
        let frames = parts.iter().enumerate();
        Message::from_frames(frames.map(|(n, size)| Frame::from(vec![n as u8; *size])))
    }

    /// Some messages, around the sizes where something changes.
    fn messages() -> Vec<Message> {
        let sizes: [&[usize]; 8] = [
            &[0],
            &[5],
            &[0, 0],
            &[253, 254, 255],
            &[1000],
            &[3, 2000, 4],
            &[1],
            &[70_000],
        ];
        sizes.iter().map(|parts| message(parts)).collect()
    }

    fn pack(messages: &[Message], size: usize) -> Vec<Vec<u8>> {
        let mut packer = Packer::default();
        let mut next = messages.iter().cloned();
        let mut ended = 0;
        let mut tsdus = Vec::new();
        while let Some(packed) = packer.pack(3, size, || next.next()) {
            assert!(packed.bytes.len() <= size + 3);
            ended += packed.messages;
            tsdus.push(packed.bytes[3..].to_vec());
        }
        assert!(!packer.has_more());
        assert_eq!(ended, messages.len() as u64);
        tsdus
    }

    fn unpack(tsdus: &[Vec<u8>]) -> Vec<Message> {
        let mut unpacker = Unpacker::default();
        let mut out = VecDeque::new();
        for tsdu in tsdus {
            unpacker.unpack(tsdu, u64::MAX, &mut out).unwrap();
        }
        assert_eq!(unpacker.open_bytes(), 0);
        out.into()
    }

    #[test]
    fn messages_survive_any_size_of_packets() {
        let messages = messages();
        for size in [3, 4, 11, 12, 13, 100, 257, 1452, 65_000] {
            assert_eq!(unpack(&pack(&messages, size)), messages, "{size}");
        }
    }

    #[test]
    fn the_bytes_are_those_of_libzmq() {
        let message = |text: &str| Message::single(Frame::copy_from(text.as_bytes()));
        let messages = [message("ab"), message("c")];
        assert_eq!(pack(&messages, 100), [b"\0\0\x03\0ab\x02\0c"]);
        // The second message begins in the middle of the second packet.
        assert_eq!(
            pack(&messages, 5),
            [&b"\0\0\x03\0a"[..], b"\0\x01b\x02\0", b"\xff\xffc"]
        );
        let parts = Message::from_frames([Frame::copy_from(b"x"), Frame::copy_from(b"y")]);
        assert_eq!(
            pack(&[parts], 5),
            [&b"\0\0\x02\x01x"[..], b"\xff\xff\x02\0y"]
        );
    }

    #[test]
    fn the_first_message_that_begins_after_a_gap_is_found() {
        let messages: Vec<_> = (0..50).map(|n| message(&[n % 7, n])).collect();
        let tsdus = pack(&messages, 37);
        for from in 0..tsdus.len() {
            let heard = unpack(&tsdus[from..]);
            assert_eq!(heard, messages[messages.len() - heard.len()..]);
            assert!(from > 0 || heard.len() == messages.len());
        }
        let mut unpacker = Unpacker::default();
        let mut out = VecDeque::new();
        for (n, tsdu) in tsdus.iter().enumerate() {
            match n {
                10 => unpacker.tear(),
                _ => unpacker.unpack(tsdu, 100, &mut out).unwrap(),
            }
        }
        assert!(out.len() < messages.len() && out.len() > messages.len() - 5);
        assert!(out.iter().all(|message| messages.contains(message)));
    }

    #[test]
    fn bytes_that_are_too_many_or_wrong_are_refused_up_to_the_next_message() {
        let mut unpacker = Unpacker::default();
        let mut out = VecDeque::new();
        let mut feed = |tsdu: &[u8]| unpacker.unpack(tsdu, 10, &mut out);
        assert_eq!(feed(b""), Err(Refused::Malformed));
        assert_eq!(feed(b"\0"), Err(Refused::Malformed));
        assert_eq!(feed(b"\0\x03ab"), Err(Refused::Malformed));
        assert_eq!(feed(b"\0\0\0\0"), Err(Refused::Malformed));
        assert_eq!(feed(b"\0\0\x02\x08a"), Err(Refused::Malformed));
        let huge = b"\0\0\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0";
        assert_eq!(feed(huge), Err(Refused::TooLarge));
        assert_eq!(feed(b"\0\0\x0c\0"), Err(Refused::TooLarge));
        assert_eq!(
            feed(b"\xff\xff\x02\0a"),
            Ok(()),
            "not the start of a message"
        );
        // Parts count together.
        assert_eq!(
            feed(b"\0\0\x07\x01123456\x06\x0012345"),
            Err(Refused::TooLarge)
        );
        assert_eq!(feed(b"\0\x01?\x02\0b"), Ok(()));
        assert_eq!(out, [Message::single(Frame::copy_from(b"b"))]);
    }

    #[test]
    fn a_message_has_a_limited_number_of_frames() {
        let mut unpacker = Unpacker::default();
        let mut out = VecDeque::new();
        let tsdu = [&b"\0\0"[..], &b"\x01\x01".repeat(500)].concat();
        let mut results = (0..200).map(|_| unpacker.unpack(&tsdu, u64::MAX, &mut out));
        assert_eq!(results.position(|result| result.is_err()), Some(131));
        assert!(out.is_empty());
    }
}
