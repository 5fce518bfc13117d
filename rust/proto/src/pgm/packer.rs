//! [`Packer`]: messages as a stream of bytes, cut into packets.
//!
//! Each TSDU begins with two bytes: the position of the first message that begins in it, counted from the third byte. A
//! TSDU in which none begins has 0xffff there. The frames of messages are those of ZMTP 1.0.

use crate::frame::Frame;
use crate::framing::v1;
use crate::message::Message;

/// In place of a position.
pub(super) const NO_START: u16 = 0xffff;

/// The largest header of a frame.
pub(super) const HEADER_MAX: usize = 10;

/// Cuts messages into TSDUs.
#[derive(Default)]
pub struct Packer {
    /// The frames of a message that were not begun yet.
    frames: std::vec::IntoIter<Frame>,
    frame: Option<Part>,
}

/// A frame that was begun.
struct Part {
    header: Vec<u8>,
    body: Frame,
    /// The bytes of both that were packed.
    done: usize,
}

/// The bytes of one packet.
#[derive(Debug)]
pub struct Packed {
    /// Room for a header, then the TSDU.
    pub bytes: Vec<u8>,
    /// The messages that end in it.
    pub messages: u64,
}

impl Packer {
    /// Whether the rest of a message waits.
    pub fn has_more(&self) -> bool {
        self.frame.is_some() || self.frames.len() > 0
    }

    /// Fills a TSDU of up to `size` bytes from the message in progress and from `next`, after `head` bytes of room.
    /// Returns `None` if there is no message.
    pub fn pack(
        &mut self,
        head: usize,
        size: usize,
        mut next: impl FnMut() -> Option<Message>,
    ) -> Option<Packed> {
        let mut bytes = Vec::new();
        let mut start = NO_START;
        let mut messages = 0;
        let full = head + size;
        let begin = head + 2;
        while bytes.len() < full {
            if !self.has_more() {
                let Some(message) = next() else { break };
                if start == NO_START {
                    let at = bytes.len().saturating_sub(begin);
                    start = u16::try_from(at).unwrap_or(NO_START);
                }
                if bytes.is_empty() {
                    bytes.reserve(full.min(begin + HEADER_MAX * message.len() + message.size()));
                    bytes.resize(begin, 0);
                }
                if message.len() == 1 && HEADER_MAX + message.size() <= full - bytes.len() {
                    v1::put_header(&mut bytes, false, message.size());
                    bytes.extend_from_slice(message.head());
                    messages += 1;
                    continue;
                }
                self.begin(message);
            }
            if bytes.is_empty() {
                bytes.reserve(full.min(begin + self.left()));
                bytes.resize(begin, 0);
            }
            if self.fill(&mut bytes, full) {
                messages += 1;
            }
        }
        if bytes.is_empty() {
            return None;
        }
        bytes[head..begin].copy_from_slice(&start.to_be_bytes());
        Some(Packed { bytes, messages })
    }

    fn begin(&mut self, mut message: Message) {
        let mut frames: Vec<Frame> = Vec::with_capacity(message.len());
        message.take_frames(|frame| frames.push(std::mem::take(frame)));
        self.frames = frames.into_iter();
    }

    /// The bytes of the message in progress, without the headers of its frames.
    fn left(&self) -> usize {
        let begun = self
            .frame
            .as_ref()
            .map_or(0, |part| part.header.len() + part.body.len() - part.done);
        let whole = self.frames.as_slice().iter();
        begun + whole.map(|frame| HEADER_MAX + frame.len()).sum::<usize>()
    }

    /// Adds bytes up to the end of a frame. Returns true if a message ends with it.
    fn fill(&mut self, bytes: &mut Vec<u8>, full: usize) -> bool {
        let Some(mut part) = self.frame.take().or_else(|| self.next_part()) else {
            return false;
        };
        let mut room = full - bytes.len();
        if let Some(header) = part.header.get(part.done..) {
            let taken = &header[..header.len().min(room)];
            bytes.extend_from_slice(taken);
            part.done += taken.len();
            room -= taken.len();
        }
        if let Some(at) = part.done.checked_sub(part.header.len()) {
            let body = &part.body.as_slice()[at..];
            let taken = &body[..body.len().min(room)];
            bytes.extend_from_slice(taken);
            part.done += taken.len();
        }
        if part.done == part.header.len() + part.body.len() {
            return self.frames.len() == 0;
        }
        self.frame = Some(part);
        false
    }

    fn next_part(&mut self) -> Option<Part> {
        let body = self.frames.next()?;
        let mut header = Vec::with_capacity(HEADER_MAX);
        v1::put_header(&mut header, self.frames.len() > 0, body.len());
        Some(Part {
            header,
            body,
            done: 0,
        })
    }
}
