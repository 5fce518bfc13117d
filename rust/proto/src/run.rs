//! [`Run`]: messages encoded once for all the connections that get them.
//!
//! What goes to a hundred subscribers has the same bytes on each connection, as long as nobody encrypts it. A run is made of
//! these bytes; each connection sends them from where they are.

use bytes::{Buf, Bytes};

use crate::encoder::{LONG, MORE, put_header};
use crate::frame::{Frame, Kind, Load};
use crate::message::Message;

/// Whole messages one behind the other, in the framing of ZMTP 2 and later. For short ones: they are copied, and less than
/// 4 GiB of them may come together.
#[derive(Debug, Default)]
pub struct Run {
    bytes: Vec<u8>,
    load: Load,
}

impl Run {
    /// Adds a message.
    pub fn push(&mut self, message: &Message) {
        for frame in message.iter() {
            put_header(
                &mut self.bytes,
                if frame.more() { MORE } else { 0 },
                frame.len(),
            );
            self.bytes.extend_from_slice(frame);
            self.load.bytes += frame.len() as u32;
        }
        self.load.messages += 1;
    }

    /// Bytes so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no message in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.load.messages == 0
    }

    /// Everything so far as a frame of [`Kind::Run`], which is cheap to clone. The run is empty then.
    pub fn take(&mut self) -> Frame {
        let run = std::mem::take(self);
        Frame::run(Bytes::from(run.bytes), run.load)
    }
}

/// A header in a run: where the body begins and ends, and whether the message goes on.
struct Header {
    at: usize,
    end: usize,
    more: bool,
}

fn header(bytes: &[u8]) -> Option<Header> {
    let (flags, at, size) = match *bytes {
        [flags, size, ..] if flags & LONG == 0 => (flags, 2, usize::from(size)),
        [flags, ..] => {
            let size = u64::from_be_bytes(*bytes.get(1..)?.first_chunk()?);
            (flags, 9, usize::try_from(size).ok()?)
        }
        [] => return None,
    };
    Some(Header {
        at,
        end: at + size,
        more: flags & MORE != 0,
    })
}

/// Where each message of a run ends, counted from its beginning.
pub(crate) fn ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    std::iter::from_fn(move || {
        loop {
            let header = header(bytes.get(end..)?)?;
            end += header.end;
            if !header.more {
                return Some(end);
            }
        }
    })
}

/// The frames of a run, for connections that send them in another way.
pub(crate) fn frames(run: Frame) -> impl Iterator<Item = Frame> {
    debug_assert_eq!(run.kind(), Kind::Run);
    let mut rest = run.into_bytes();
    std::iter::from_fn(move || {
        let header = header(&rest)?;
        let mut frame = Frame::from_bytes(rest.slice(header.at..header.end));
        frame.set_more(header.more);
        rest.advance(header.end);
        Some(frame)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in() {
        let messages = [
            Message::from(""),
            Message::from_frames([vec![1; 255].into(), vec![2; 256].into(), "".into()]),
            Message::from(vec![3; 70_000]),
        ];
        let mut run = Run::default();
        assert!(run.is_empty());
        messages.iter().for_each(|message| run.push(message));
        let len = run.len();
        let frame = run.take();
        assert!(run.is_empty());
        let load = Load {
            messages: 3,
            bytes: 255 + 256 + 70_000,
        };
        assert_eq!((frame.kind(), frame.load()), (Kind::Run, load));
        let ends: Vec<usize> = ends(&frame).collect();
        assert_eq!(ends, [2, 2 + 257 + 265 + 2, len]);
        let frames: Vec<Frame> = frames(frame).collect();
        let expected: Vec<Frame> = messages.into_iter().flatten().collect();
        assert_eq!(frames, expected);
    }
}
