//! [`Run`]: messages encoded once for all the connections that receive them.
//!
//! A message to a hundred subscribers has the same bytes on each unencrypted connection. A run consists of these bytes,
//! and all connections send them from the same memory.

use bytes::{Buf, Bytes};

use crate::frame::{Frame, FrameKind, Load};
use crate::framing::v2::{self, MORE};
use crate::message::Message;

/// Consecutive complete messages, in the framing of ZMTP 2 and later. For short messages: they are copied, and their
/// total must stay below 4 GiB.
#[derive(Debug, Default)]
pub struct Run {
    bytes: Vec<u8>,
    load: Load,
}

impl Run {
    /// Adds a message.
    pub fn push(&mut self, message: &Message) {
        for frame in message.iter() {
            v2::put_header(
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

    /// Whether it has no messages.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.load.messages == 0
    }

    /// Takes everything so far as a frame of [`FrameKind::Run`], which is cheap to clone. The run is then empty.
    pub fn take(&mut self) -> Frame {
        let run = std::mem::take(self);
        Frame::run(Bytes::from(run.bytes), run.load)
    }
}

/// The end of each message of a run, counted from its beginning.
pub(crate) fn ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    std::iter::from_fn(move || {
        loop {
            let header = v2::parse_header(bytes.get(end..)?).ok()??;
            end += header.len + header.size as usize;
            if !header.more {
                return Some(end);
            }
        }
    })
}

/// The frames of a run, for connections with another framing.
pub(crate) fn frames(run: Frame) -> impl Iterator<Item = Frame> {
    debug_assert_eq!(run.kind(), FrameKind::Run);
    let mut rest = run.into_bytes();
    std::iter::from_fn(move || {
        let header = v2::parse_header(&rest).ok()??;
        let end = header.len + header.size as usize;
        let mut frame = Frame::from_bytes(rest.slice(header.len..end));
        frame.set_more(header.more);
        rest.advance(end);
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
        assert_eq!((frame.kind(), frame.load()), (FrameKind::Run, load));
        let ends: Vec<usize> = ends(&frame).collect();
        assert_eq!(ends, [2, 2 + 257 + 265 + 2, len]);
        let frames: Vec<Frame> = frames(frame).collect();
        let expected: Vec<Frame> = messages.into_iter().flatten().collect();
        assert_eq!(frames, expected);
    }
}
