//! Encodes frames into batches: [`Encoder`] packs small frames into one reused buffer and keeps large bodies separate.
//!
//! A large body is not copied. The buffer is cut at its position, and the output is a list of slices: the buffer up to
//! the cut, the body, the buffer up to the next cut, and so on. The file is long because a third of it is tests.

use crate::error::CloseReason;
use crate::frame::{Frame, INLINE_MAX};
use crate::framing::v2::{COMMAND, HEADER_MAX, MORE};
use crate::framing::{Framing, v1, v2};
use crate::mechanisms::{Cipher, Content};
use crate::run;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::IoSlice;
use zeroize::Zeroize;

/// Bodies of at least this size are sent from their own memory. Below it, copying costs less than another slice.
pub(crate) const GATHER_MIN: usize = 8 * 1024;

/// Wrapped frames of at least this size get a block of their own, because the buffer would have to grow, and its
/// contents to move.
const WRAPPED_APART: usize = 256 * 1024;

/// The maximum size of the buffer that an idle connection keeps.
const QUIET_MAX: usize = 1024;

/// The maximum number of slices of one system call on Linux.
const SLICES_MAX: usize = 1024;

/// The bytes that wait to be sent.
#[derive(Debug)]
pub(crate) struct Encoder {
    framing: Framing,
    /// Headers and small bodies; sent up to `sent`.
    buffer: Vec<u8>,
    sent: usize,
    /// Large bodies, each with its position in `buffer`. The first may be partly sent.
    bodies: VecDeque<(usize, Bytes)>,
    /// Bytes in `buffer` and `bodies` not sent yet.
    backlog: usize,
    /// All bytes ever sent.
    sent_total: u64,
    /// For each complete message that is not sent yet, the value of `sent_total` at its end.
    ends: VecDeque<u64>,
    messages_sent: u64,
    /// The runs of bytes not sent yet that belong to no message, each with the value of `sent_total` at its end and with
    /// its size.
    others: VecDeque<(u64, u64)>,
    others_sent: u64,
    /// Whether the last data frame announced another one.
    in_message: bool,
    /// The frames before the last one of a message, if the framing joins them.
    joined: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(framing: Framing) -> Encoder {
        Encoder {
            framing,
            buffer: Vec::new(),
            sent: 0,
            bodies: VecDeque::new(),
            backlog: 0,
            sent_total: 0,
            ends: VecDeque::new(),
            messages_sent: 0,
            others: VecDeque::new(),
            others_sent: 0,
            in_message: false,
            joined: Vec::new(),
        }
    }

    pub(crate) fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
    }

    /// Bytes not sent yet.
    #[inline]
    pub(crate) fn backlog(&self) -> usize {
        self.backlog
    }

    /// Whether a message has begun but not ended, so that no command may be sent now.
    #[inline]
    pub(crate) fn in_message(&self) -> bool {
        self.in_message
    }

    /// Complete messages that were sent to their last byte.
    pub(crate) fn messages_sent(&self) -> u64 {
        self.messages_sent
    }

    /// How many of the bytes not sent yet belong to messages.
    pub(crate) fn messages_backlog(&self) -> usize {
        let others: u64 = self.others.iter().map(|(_, size)| size).sum();
        self.backlog - others as usize
    }

    /// How many of the bytes sent belong to no message: greetings, commands and subscriptions.
    #[inline]
    pub(crate) fn others_sent(&self) -> u64 {
        self.others_sent
    }

    /// Adds bytes unchanged: greetings.
    pub(crate) fn put_raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.backlog += bytes.len();
        self.note_others(bytes.len());
    }

    /// Notes that the last bytes belong to no message.
    fn note_others(&mut self, size: usize) {
        let (end, size) = (self.sent_total + self.backlog as u64, size as u64);
        match self.others.back_mut() {
            Some((last, run)) if *last + size == end => (*last, *run) = (end, *run + size),
            _ => self.others.push_back((end, size)),
        }
    }

    fn note_others_sent(&mut self) {
        while let Some((end, size)) = self.others.front_mut() {
            let left = end.saturating_sub(self.sent_total).min(*size);
            self.others_sent += *size - left;
            *size = left;
            if left > 0 {
                return;
            }
            self.others.pop_front();
        }
    }

    /// Adds a frame of a message.
    #[inline]
    pub(crate) fn put_data(&mut self, frame: Frame) {
        if let Framing::Other(form, _) = self.framing
            && !form.has_parts
        {
            return self.put_joined(frame);
        }
        let more = frame.more();
        self.put(if more { MORE } else { 0 }, &[], frame);
        self.note_frame(more);
    }

    /// Adds a frame of a message that has no frames on the wire: the header that a pattern has put before the body, or
    /// the body, which comes last.
    fn put_joined(&mut self, frame: Frame) {
        let more = frame.more();
        if more {
            self.joined.extend_from_slice(&frame);
        } else {
            let mut joined = std::mem::take(&mut self.joined);
            self.put(0, &joined, frame);
            joined.clear();
            self.joined = joined;
        }
        self.note_frame(more);
    }

    /// Like [`put_data`](Self::put_data), for an ordinary, small frame.
    #[inline]
    pub(crate) fn put_small(&mut self, frame: &Frame) -> bool {
        if !self.framing.is_v2() {
            return false;
        }
        let Some(bytes) = frame.as_array() else {
            return false;
        };
        let more = frame.more();
        let flags = if more { MORE } else { 0 };
        let end = self.buffer.len() + 2 + frame.len();
        self.buffer.reserve(2 + INLINE_MAX);
        self.buffer.extend_from_slice(&[flags, frame.len() as u8]);
        self.buffer.extend_from_slice(bytes);
        self.buffer.truncate(end);
        self.backlog += 2 + frame.len();
        self.note_frame(more);
        true
    }

    #[inline]
    fn note_frame(&mut self, more: bool) {
        self.in_message = more;
        if !more {
            self.ends.push_back(self.sent_total + self.backlog as u64);
        }
    }

    /// Adds a wrapped frame of a message. The wrapping hides whether the message continues.
    pub(crate) fn put_wrapped_data(
        &mut self,
        cipher: &mut dyn Cipher,
        frame: &Frame,
    ) -> Result<(), CloseReason> {
        self.wrap(
            cipher,
            Content {
                command: false,
                more: frame.more(),
                prefix: &[],
                body: frame,
            },
        )?;
        self.note_frame(frame.more());
        Ok(())
    }

    /// Adds a wrapped frame that does not belong to a message of the application.
    pub(crate) fn put_wrapped(
        &mut self,
        cipher: &mut dyn Cipher,
        content: Content<'_>,
    ) -> Result<(), CloseReason> {
        let before = self.backlog;
        self.wrap(cipher, content)?;
        self.note_others(self.backlog - before);
        Ok(())
    }

    fn wrap(&mut self, cipher: &mut dyn Cipher, content: Content<'_>) -> Result<(), CloseReason> {
        let size = cipher.overhead() + content.prefix.len() + content.body.len();
        let before = self.buffer.len();
        if size < WRAPPED_APART {
            self.buffer.try_reserve(HEADER_MAX + size)?;
            self.put_header(0, size);
            if let Err(reason) = cipher.seal(content, &mut self.buffer) {
                self.buffer.truncate(before);
                return Err(reason);
            }
        } else {
            let mut wrapped = Vec::new();
            wrapped.try_reserve_exact(size)?;
            cipher.seal(content, &mut wrapped)?;
            self.put_header(0, size);
            self.backlog += wrapped.len();
            self.bodies.push_back((self.buffer.len(), wrapped.into()));
        }
        self.backlog += self.buffer.len() - before;
        Ok(())
    }

    /// Adds the bytes of a run. Returns false if its framing is not this connection's.
    pub(crate) fn put_run(&mut self, run: &Frame) -> bool {
        if !self.framing.is_v2() {
            return false;
        }
        let before = self.sent_total + self.backlog as u64;
        self.ends
            .extend(run::ends(run).map(|end| before + end as u64));
        self.backlog += run.len();
        if run.len() < GATHER_MIN {
            self.buffer.extend_from_slice(run);
        } else {
            self.bodies.push_back((self.buffer.len(), run.to_bytes()));
        }
        true
    }

    /// Adds a command: `name` with its length byte, then the body of `data`.
    pub(crate) fn put_command(&mut self, name: &[u8], data: Frame) {
        self.put_other(COMMAND, name, data);
    }

    /// Adds a message that is not the application's: `prefix`, then the body of `data`.
    pub(crate) fn put_control(&mut self, prefix: &[u8], data: Frame) {
        self.put_other(0, prefix, data);
    }

    fn put_other(&mut self, flags: u8, prefix: &[u8], body: Frame) {
        let before = self.backlog;
        self.put(flags, prefix, body);
        self.note_others(self.backlog - before);
    }

    #[inline]
    fn put(&mut self, flags: u8, prefix: &[u8], body: Frame) {
        let before = self.buffer.len();
        self.put_header(flags, prefix.len() + body.len());
        self.buffer.extend_from_slice(prefix);
        if body.len() < GATHER_MIN {
            self.buffer.extend_from_slice(&body);
        } else {
            self.backlog += body.len();
            self.bodies
                .push_back((self.buffer.len(), body.into_bytes()));
        }
        self.backlog += self.buffer.len() - before;
    }

    #[inline]
    fn put_header(&mut self, flags: u8, size: usize) {
        match self.framing {
            Framing::V2 => v2::put_header(&mut self.buffer, flags, size),
            Framing::V1 => v1::put_header(&mut self.buffer, flags & MORE != 0, size),
            Framing::Other(form, mapping) => {
                (form.put_header)(&mut self.buffer, mapping, flags & MORE != 0, size);
            }
            Framing::Raw => {}
        }
    }

    /// Adds the next slices to send, up to `max` bytes and [`SLICES_MAX`] slices, and returns their total size.
    pub(crate) fn poll_transmit<'a>(&'a self, slices: &mut Vec<IoSlice<'a>>, max: usize) -> usize {
        let mut bytes = 0;
        let mut from = self.sent;
        let cuts = self.bodies.iter().map(|(cut, body)| (*cut, &body[..]));
        for (cut, body) in cuts.chain([(self.buffer.len(), &[][..])]) {
            for part in [&self.buffer[from..cut], body] {
                let part = &part[..part.len().min(max - bytes)];
                if part.is_empty() {
                    continue;
                }
                if slices.len() == SLICES_MAX {
                    return bytes;
                }
                slices.push(IoSlice::new(part));
                bytes += part.len();
            }
            from = cut;
        }
        bytes
    }

    /// Removes the first `count` bytes, which have been sent.
    pub(crate) fn transmitted(&mut self, count: usize) {
        debug_assert!(count <= self.backlog, "sent more than there was");
        let count = count.min(self.backlog);
        self.sent_total += count as u64;
        self.backlog -= count;
        if !self.others.is_empty() {
            self.note_others_sent();
        }
        if self.backlog == 0 {
            self.messages_sent += self.ends.len() as u64;
            self.ends.clear();
            self.buffer.clear();
            self.sent = 0;
            self.bodies.clear();
            return;
        }
        while self.ends.front().is_some_and(|end| *end <= self.sent_total) {
            self.ends.pop_front();
            self.messages_sent += 1;
        }
        self.advance(count);
        self.compact();
    }

    /// Overwrites sent bytes, once none are waiting.
    pub(crate) fn wipe_sent(&mut self) {
        if self.backlog == 0 {
            self.buffer.zeroize();
        }
    }

    fn advance(&mut self, mut count: usize) {
        while count > 0 {
            let Some((cut, body)) = self.bodies.front_mut() else {
                self.sent += count;
                return;
            };
            let before_cut = *cut - self.sent;
            if count < before_cut {
                self.sent += count;
                return;
            }
            self.sent = *cut;
            count -= before_cut;
            if count < body.len() {
                body.advance(count);
                return;
            }
            count -= body.len();
            self.bodies.pop_front();
        }
    }

    /// Moves the unsent bytes to the front when more bytes are sent than unsent. Otherwise a peer that never takes
    /// everything would make the buffer grow. No byte is moved too often.
    fn compact(&mut self) {
        let unsent = self.buffer.len() - self.sent;
        if self.sent < 4096 || self.sent < unsent {
            return;
        }
        self.buffer.copy_within(self.sent.., 0);
        self.buffer.truncate(unsent);
        for (cut, _) in &mut self.bodies {
            *cut -= self.sent;
        }
        self.sent = 0;
    }

    /// Whether the buffers of an idle connection are worth releasing.
    pub(crate) fn holds_spare(&self) -> bool {
        self.buffer.capacity() > QUIET_MAX
    }

    /// Releases memory, if no bytes are waiting.
    pub(crate) fn trim(&mut self) {
        if self.backlog == 0 {
            self.buffer = Vec::new();
            self.bodies = VecDeque::new();
            self.ends = VecDeque::new();
            self.others = VecDeque::new();
            self.joined.shrink_to_fit();
        }
    }

    /// Drops the unsent bytes.
    pub(crate) fn clear(&mut self) {
        self.backlog = 0;
        self.buffer = Vec::new();
        self.sent = 0;
        self.bodies.clear();
        self.ends.clear();
        self.others.clear();
        self.joined = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use crate::wires::{Form, Mapping, sp::SP};

    use super::*;

    fn sent(encoder: &Encoder) -> Vec<u8> {
        let mut slices = Vec::new();
        encoder.poll_transmit(&mut slices, usize::MAX);
        slices.iter().flat_map(|slice| slice.to_vec()).collect()
    }

    fn put(encoder: &mut Encoder, body: &[u8], more: bool) {
        let mut frame = Frame::from(body);
        frame.set_more(more);
        encoder.put_data(frame);
    }

    #[test]
    fn frames_are_those_of_rfc_37() {
        let mut encoder = Encoder::new(Framing::V2);
        put(&mut encoder, b"", true);
        put(&mut encoder, b"hello", false);
        encoder.put_command(b"\x04PING", Frame::from(b"\0\x0a"));
        encoder.put_control(&[1], Frame::from("topic"));
        assert_eq!(
            sent(&encoder),
            b"\x01\0\0\x05hello\x04\x07\x04PING\0\x0a\0\x06\x01topic"
        );
    }

    #[test]
    fn bytes_of_no_message_are_counted_apart() {
        let mut encoder = Encoder::new(Framing::V2);
        let command = |encoder: &mut Encoder| encoder.put_command(b"\x04PONG", Frame::from("!"));
        command(&mut encoder);
        command(&mut encoder);
        put(&mut encoder, b"hello", false);
        command(&mut encoder);
        assert_eq!((encoder.backlog(), encoder.messages_backlog()), (31, 7));
        // The end of the second command, and some of the message, remain.
        for (count, messages, others) in [(15, 7, 15), (3, 5, 16), (6, 0, 17), (7, 0, 24)] {
            encoder.transmitted(count);
            assert_eq!(encoder.messages_backlog(), messages);
            assert_eq!(encoder.others_sent(), others);
        }
        assert_eq!(encoder.backlog(), 0);
    }

    #[test]
    fn small_frames_are_the_same_on_the_short_way() {
        for more in [false, true] {
            let (mut short, mut long) = (Encoder::new(Framing::V2), Encoder::new(Framing::V2));
            for len in [0, 1, INLINE_MAX, INLINE_MAX + 1, 3] {
                // The part of a frame after its body is not sent.
                let mut frame =
                    Frame::from_array(&[7; INLINE_MAX], len.min(INLINE_MAX) as u8, more);
                if len > INLINE_MAX {
                    frame = Frame::copy_from(&vec![7; len]);
                    frame.set_more(more);
                }
                let small = short.put_small(&frame);
                assert_eq!(small, len <= INLINE_MAX);
                if !small {
                    short.put_data(frame.clone());
                }
                long.put_data(frame);
                assert_eq!(short.backlog(), long.backlog());
                assert_eq!(short.in_message(), more);
            }
            assert_eq!(sent(&short), sent(&long));
            let all = short.backlog();
            short.transmitted(all);
            assert_eq!(short.messages_sent(), if more { 0 } else { 5 });
        }
        for framing in [Framing::V1, Framing::Raw] {
            assert!(!Encoder::new(framing).put_small(&Frame::new()));
        }
    }

    #[test]
    fn frames_of_the_scalability_protocols_are_joined() {
        for (mapping, kind) in [(Mapping::Sized, &b""[..]), (Mapping::Typed, b"\x01")] {
            let mut encoder = Encoder::new(Framing::Other(SP.form.as_ref().unwrap(), mapping));
            put(&mut encoder, b"head", true);
            assert!(encoder.in_message() && encoder.backlog() == 0);
            put(&mut encoder, b"er", true);
            put(&mut encoder, b"body", false);
            put(&mut encoder, b"", false);
            let expected = [
                kind,
                b"\0\0\0\0\0\0\0\x0aheaderbody",
                kind,
                b"\0\0\0\0\0\0\0\0",
            ];
            assert_eq!(sent(&encoder), expected.concat());
            let all = encoder.backlog();
            encoder.transmitted(all);
            assert_eq!(encoder.messages_sent(), 2);
        }
        let mut encoder = Encoder::new(Framing::Other(SP.form.as_ref().unwrap(), Mapping::Sized));
        let body = Bytes::from(vec![7; GATHER_MIN]);
        put(&mut encoder, b"head", true);
        encoder.put_data(Frame::from_bytes(body.clone()));
        let mut slices = Vec::new();
        encoder.poll_transmit(&mut slices, usize::MAX);
        assert_eq!(slices[1].as_ptr(), body.as_ptr());
    }

    #[test]
    fn lengths_beyond_255_take_the_long_form() {
        for (len, header) in [
            (255, &b"\0\xff"[..]),
            (256, b"\x02\0\0\0\0\0\0\x01\0"),
            (70_000, b"\x02\0\0\0\0\0\x01\x11\x70"),
        ] {
            let mut encoder = Encoder::new(Framing::V2);
            put(&mut encoder, &vec![7; len], false);
            assert_eq!(sent(&encoder), [header, &vec![7; len]].concat());
        }
        // The length of a command includes its name.
        for (len, header) in [(245, &b"\x04\xff"[..]), (246, b"\x06\0\0\0\0\0\0\x01\0")] {
            let mut encoder = Encoder::new(Framing::V2);
            encoder.put_command(b"\x09SUBSCRIBE", Frame::from(vec![7; len]));
            assert!(sent(&encoder).starts_with(header));
        }
    }

    #[test]
    fn large_bodies_stay_where_they_are() {
        let mut encoder = Encoder::new(Framing::V2);
        let body = Bytes::from(vec![7; GATHER_MIN]);
        put(&mut encoder, b"a", true);
        encoder.put_data(Frame::from_bytes(body.clone()));
        encoder.put_data(Frame::from_bytes(body.clone()));
        put(&mut encoder, b"z", false);
        let mut slices = Vec::new();
        let count = encoder.poll_transmit(&mut slices, usize::MAX);
        assert_eq!(count, encoder.backlog());
        let lens: Vec<usize> = slices.iter().map(|slice| slice.len()).collect();
        assert_eq!(lens, [3 + 9, GATHER_MIN, 9, GATHER_MIN, 3]);
        assert_eq!(slices[1].as_ptr(), body.as_ptr());
    }

    #[test]
    fn the_buffer_does_not_grow_for_a_slow_peer() {
        let mut encoder = Encoder::new(Framing::V2);
        let mut expected = 0;
        for round in 0..2_000u32 {
            put(&mut encoder, &round.to_be_bytes(), false);
            put(&mut encoder, &[7; 94], false);
            if encoder.backlog() > 10_000 {
                // Never all of it, so a backlog remains.
                let first = sent(&encoder);
                encoder.transmitted(102);
                assert_eq!(first[2..6], u32::to_be_bytes(expected));
                expected += 1;
            }
        }
        assert!(encoder.buffer.capacity() < 64 * 1024);
        assert_eq!(encoder.messages_sent(), 2 * u64::from(expected));
    }

    #[test]
    fn large_bodies_keep_their_place_when_the_buffer_moves_up() {
        let mut encoder = Encoder::new(Framing::V2);
        let (mut expected, mut got) = (Vec::new(), Vec::new());
        for round in 0..300usize {
            let len = if round % 20 == 19 { GATHER_MIN } else { 200 };
            let body = vec![round as u8; len];
            let mut plain = Encoder::new(Framing::V2);
            put(&mut plain, &body, false);
            expected.extend(sent(&plain));
            put(&mut encoder, &body, false);
            // The backlog almost disappears, but never completely.
            let count = encoder.backlog().saturating_sub(round % 7 * 100 + 1);
            let mut slices = Vec::new();
            let count = encoder.poll_transmit(&mut slices, count);
            got.extend(slices.iter().flat_map(|slice| slice.to_vec()));
            encoder.transmitted(count);
        }
        got.extend(sent(&encoder));
        assert!(got == expected);
        assert!(encoder.buffer.capacity() < 32 * 1024);
    }

    #[test]
    fn sent_bytes_are_removed_wherever_they_end() {
        let mut bytes = Vec::new();
        for step in [1, 2, 7, 11, GATHER_MIN, 3 * GATHER_MIN] {
            let mut encoder = Encoder::new(Framing::V2);
            for len in [3, GATHER_MIN + 1, 0, GATHER_MIN] {
                put(&mut encoder, &vec![len as u8; len], false);
            }
            let whole = sent(&encoder);
            bytes.clear();
            while encoder.backlog() > 0 {
                let mut slices = Vec::new();
                let count = encoder.poll_transmit(&mut slices, step);
                bytes.extend(slices.iter().flat_map(|slice| slice.to_vec()));
                encoder.transmitted(count);
            }
            assert_eq!(bytes, whole);
            assert_eq!(encoder.messages_sent(), 4);
        }
    }

    #[test]
    fn parts_stay_apart_if_the_wire_protocol_has_parts() {
        static FORM: Form = Form {
            has_parts: true,
            begins: b"\0",
            opening: |_| Vec::new(),
            parse_opening: |_, _| Ok(None),
            parse_header: |_, _| Ok(None),
            put_header: |output, _, more, size| output.extend([u8::from(more), size as u8]),
            over_ws: None,
        };
        let mut encoder = Encoder::new(Framing::Other(&FORM, Mapping::Sized));
        put(&mut encoder, b"a", true);
        assert!(encoder.in_message());
        put(&mut encoder, b"bc", false);
        assert!(!encoder.in_message());
        assert_eq!(sent(&encoder), b"\x01\x01a\0\x02bc");
        encoder.transmitted(7);
        assert_eq!(encoder.messages_sent(), 1);
    }
}
