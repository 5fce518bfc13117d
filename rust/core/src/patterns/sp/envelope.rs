//! The header before the body of a request, a survey or an answer.
//!
//! It consists of words of four bytes. Each socket on the way adds one in front, to find the way back. The last word is
//! the number of the request. Only its highest bit is set.

use zeroxide_proto::frame::{Frame, INLINE_MAX};
use zeroxide_proto::message::Message;

use crate::patterns::drops::DropReason;

/// Bytes in a word.
const WORD: usize = 4;

/// The largest number of messages that a pattern reads in one look although the application has not asked for them.
/// Other sockets then have their turn before it looks again.
pub(super) const LOOK_MAX: usize = 256;

/// The highest bit, which only the last word has.
const LAST: u32 = 1 << 31;

/// The numbers of requests.
pub(super) struct Numbers {
    next: u32,
}

impl Numbers {
    /// Numbers that begin at `seed`, which should differ from one run of the program to the next.
    pub(super) fn new(seed: u64) -> Numbers {
        Numbers { next: seed as u32 }
    }

    /// The next number, which is a header by itself.
    pub(super) fn next(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next | LAST
    }
}

/// Puts a header before a message of one part. A small message stays in one frame.
pub(super) fn wrap(header: &[u8], message: &mut Message) {
    let body = message.head().as_slice();
    let end = header.len() + body.len();
    if end > INLINE_MAX {
        return message.push_front(Frame::copy_from(header));
    }
    let mut joined = [0; INLINE_MAX];
    joined[..header.len()].copy_from_slice(header);
    joined[header.len()..end].copy_from_slice(body);
    *message = Message::single(Frame::copy_from(&joined[..end]));
}

/// Removes the header of a message, and returns it. It has at most `most` words.
///
/// A message from the wire is one frame. A message from a socket of this context may still have the header in a frame
/// of its own.
///
/// # Errors
/// `Malformed` if there is no header, `Hops` if it is longer.
pub(super) fn unwrap(message: &mut Message, most: usize) -> Result<Frame, DropReason> {
    if message.len() > 2 {
        return Err(DropReason::Malformed);
    }
    let head = message.head();
    let end = header_end(head, most)?;
    if message.len() == 2 {
        let whole = end == head.len();
        let header = message.pop_front().filter(|_| whole);
        return header.ok_or(DropReason::Malformed);
    }
    let header = Frame::copy_from(&head[..end]);
    let body = match head.is_inline() {
        true => Frame::copy_from(&head[end..]),
        false => Frame::from_bytes(head.to_bytes().slice(end..)),
    };
    *message = Message::single(body);
    Ok(header)
}

/// Removes the header of an answer to our own request, and returns the number of the request.
///
/// # Errors
/// `Malformed` if the header is not a number.
pub(super) fn unwrap_number(message: &mut Message) -> Result<u32, DropReason> {
    let header = unwrap(message, 1).map_err(|_| DropReason::Malformed)?;
    let number = header.first_chunk().ok_or(DropReason::Malformed)?;
    Ok(u32::from_be_bytes(*number))
}

/// Where the header ends.
fn header_end(bytes: &[u8], most: usize) -> Result<usize, DropReason> {
    for (index, word) in bytes.chunks(WORD).enumerate() {
        if index == most {
            return Err(DropReason::Hops);
        }
        let Some(&word) = word.first_chunk() else {
            break;
        };
        if u32::from_be_bytes(word) & LAST != 0 {
            return Ok((index + 1) * WORD);
        }
    }
    Err(DropReason::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"\0\0\0\x01\x80\0\0\x02";

    #[test]
    fn unwrapping_reverses_wrapping() {
        for len in [0, 1, INLINE_MAX - 8, INLINE_MAX - 7, 300, 20_000] {
            let body = vec![7; len];
            let mut message = Message::from(&body[..]);
            wrap(HEADER, &mut message);
            assert_eq!(message.len(), if len + 8 <= INLINE_MAX { 1 } else { 2 });
            // As it comes from the wire.
            let joined: Vec<u8> = message.iter().flat_map(|frame| frame.to_vec()).collect();
            for mut message in [message, Message::from(&joined[..])] {
                let header = unwrap(&mut message, 2).unwrap();
                assert_eq!(&header[..], HEADER);
                assert_eq!(message, Message::from(&body[..]));
            }
        }
    }

    #[test]
    fn large_bodies_are_not_copied() {
        let bytes = [HEADER, &[7; 1000]].concat();
        let frame = Frame::copy_from(&bytes);
        let body = frame[8..].as_ptr();
        let mut message = Message::single(frame);
        unwrap(&mut message, 2).unwrap();
        assert_eq!(message.head().as_ptr(), body);
    }

    #[test]
    fn headers_without_an_end_are_refused() {
        let refused = |bytes: &[u8], most| unwrap(&mut Message::from(bytes), most).unwrap_err();
        for malformed in [&b""[..], b"\x80\0\0", b"\0\0\0\x01", b"\0\0\0\x01\x80\0"] {
            assert_eq!(refused(malformed, 8), DropReason::Malformed);
        }
        assert_eq!(refused(HEADER, 1), DropReason::Hops);
        let mut parts = Message::from_iter(["header", "body"]);
        assert_eq!(unwrap(&mut parts, 8), Err(DropReason::Malformed));
        let mut parts = Message::from_iter([&b"\x80\0\0\x01rest"[..], b"body"]);
        assert_eq!(unwrap(&mut parts, 8), Err(DropReason::Malformed));
        let mut parts = Message::from_iter([&b"\x80\0\0\x01"[..], b"body", b"more"]);
        assert_eq!(unwrap(&mut parts, 8), Err(DropReason::Malformed));
    }

    #[test]
    fn an_answer_has_a_number_and_nothing_before_it() {
        let number = |bytes: &[u8]| unwrap_number(&mut Message::from(bytes));
        assert_eq!(number(b"\x80\0\0\x07x"), Ok(0x8000_0007));
        assert_eq!(number(HEADER), Err(DropReason::Malformed));
        let mut numbers = Numbers::new(u64::MAX);
        assert_eq!((numbers.next(), numbers.next()), (1 << 31, (1 << 31) + 1));
    }
}
