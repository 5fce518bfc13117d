//! Pipes that conflate: a slot with the newest message takes the place of the queue. A message is there as a whole or not
//! at all, however many parts it has.

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::{IntoIter, Message};
use zeroxide_queue::doorbell::Doorbell;

use super::{Pipe, lock};
use crate::sys::sync::Mutex;
use crate::sys::sync::atomic::Ordering;

/// What one end writes for the other.
pub(super) struct Slot {
    pub(super) newest: Mutex<Option<Message>>,
    pub(super) bell: Doorbell,
}

impl Slot {
    pub(super) fn new() -> Slot {
        Slot {
            newest: Mutex::new(None),
            bell: Doorbell::new(),
        }
    }
}

/// Messages that pass one end part by part.
#[derive(Default)]
pub(super) struct Begun {
    /// The parts so far of the message that is being written.
    written: Option<Message>,
    /// The other parts of the message that is being read.
    read: Option<IntoIter>,
}

impl Pipe {
    /// Like [`write_unchecked`](Self::write_unchecked), for a pipe that conflates.
    #[inline(never)]
    pub(super) fn replace_newest(&mut self, message: &mut Message) {
        self.written += 1;
        self.bytes_written += message.size() as u64;
        let Some(slot) = &self.own().slot else { return };
        let replaced = lock(&slot.newest).replace(std::mem::take(message));
        if replaced.is_some() {
            // The older message was conflated. It is not counted, so that the number of queued messages does not grow.
            self.written -= 1;
            let end = self.own();
            if self.written <= end.greeted.load(Ordering::Relaxed) {
                // It replaces a greeting.
                end.greeted.store(0, Ordering::Relaxed);
                end.greeted_bytes.store(0, Ordering::Relaxed);
            } else {
                end.conflated.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.own()
            .counts
            .written
            .store(self.written, Ordering::Release);
    }

    /// Like [`write_frame_taken`](Self::write_frame_taken), for a pipe that conflates. A message replaces the newest one
    /// with its last part.
    #[inline(never)]
    pub(super) fn write_newest_frame(&mut self, frame: &mut Frame) {
        let more = frame.more();
        let frame = std::mem::take(frame);
        let begun = self.begun.as_mut().and_then(|begun| begun.written.take());
        let mut message = match begun {
            Some(mut message) => {
                message.push(frame);
                message
            }
            None => Message::single(frame),
        };
        if more {
            self.open_frames += 1;
            self.begun.get_or_insert_default().written = Some(message);
        } else {
            self.open_frames = 0;
            self.replace_newest(&mut message);
        }
    }

    /// Drops the parts of a message that will never be completed.
    pub(super) fn forget_begun(&mut self) {
        self.open_frames = 0;
        if let Some(begun) = &mut self.begun {
            begun.written = None;
        }
    }

    /// The weight of the parts so far of the message that is being written.
    pub(super) fn newest_begun(&self) -> u64 {
        let written = self.begun.as_ref().and_then(|begun| begun.written.as_ref());
        written.map_or(0, Message::weight)
    }

    /// Like [`read_to`](Self::read_to), for a pipe that conflates.
    #[inline(never)]
    pub(super) fn read_newest(&mut self, message: &mut Message) -> bool {
        let Some(slot) = &self.shared.ends[1 - self.side].slot else {
            return false;
        };
        let mut newest = lock(&slot.newest);
        let Some(taken) = newest.take() else {
            return false;
        };
        // Counted before the writer can put another one there, so that it never finds two in the queue.
        let counts = &self.shared.ends[self.side].counts;
        counts.read.store(self.read + 1, Ordering::Release);
        drop(newest);
        *message = taken;
        self.bytes_read += message.size() as u64;
        self.count_read(1);
        true
    }

    /// Like [`read_frame`](Self::read_frame), for a pipe that conflates.
    #[inline(never)]
    pub(super) fn read_newest_frame(&mut self) -> Option<Frame> {
        if let Some(begun) = &mut self.begun
            && let Some(rest) = &mut begun.read
        {
            let frame = rest.next();
            if rest.len() == 0 {
                begun.read = None;
            }
            return frame;
        }
        let mut frames = self.read()?.into_iter();
        let first = frames.next();
        if frames.len() > 0 {
            self.begun.get_or_insert_default().read = Some(frames);
        }
        first
    }

    /// Whether a message has been read in part.
    pub(super) fn is_reading_newest(&self) -> bool {
        self.begun
            .as_ref()
            .is_some_and(|begun| begun.read.is_some())
    }
}

#[cfg(test)]
mod tests {
    use zeroxide_proto::message::PART;

    use super::super::PipeConfig;
    use super::*;

    fn conflating() -> (Pipe, Pipe) {
        let config = PipeConfig {
            conflate: true,
            ..PipeConfig::default()
        };
        Pipe::pair(config, PipeConfig::default())
    }

    fn write(pipe: &mut Pipe, parts: &[&'static str]) {
        for frame in Message::from_frames(parts.iter().map(|part| Frame::from(*part))) {
            pipe.write_frame(frame);
        }
        pipe.flush();
    }

    #[test]
    fn a_message_of_several_parts_replaces_as_a_whole() {
        let (mut near, mut far) = conflating();
        write(&mut near, &["a", "b"]);
        write(&mut near, &["c", "d", "e"]);
        assert_eq!(far.read(), Some(Message::from(["c", "d", "e"])));
        assert_eq!(far.read(), None);
        assert_eq!(near.conflated().0, 1);
    }

    #[test]
    fn the_newest_message_counts_with_its_size() {
        let (mut near, mut far) = conflating();
        for size in [1000, 10] {
            near.write(Message::from(vec![0; size])).unwrap();
            near.flush();
            assert_eq!(near.inbound().weight(), (size + PART) as u64);
            let queued = size as u64;
            assert_eq!((near.queued_bytes(), far.queued_bytes()), (queued, queued));
        }
        far.read().unwrap();
        assert_eq!((near.inbound().weight(), far.queued_bytes()), (0, 0));
    }

    #[test]
    fn its_parts_are_read_together_although_a_newer_one_has_come() {
        let (mut near, mut far) = conflating();
        write(&mut near, &["a", "b"]);
        let first = far.read_frame().unwrap();
        assert_eq!((&first[..], first.more()), (&b"a"[..], true));
        write(&mut near, &["c"]);
        assert!(far.check_read());
        let second = far.read_frame().unwrap();
        assert_eq!((&second[..], second.more()), (&b"b"[..], false));
        assert_eq!(far.read(), Some(Message::from("c")));
        assert!(!far.check_read());
    }

    #[test]
    fn one_that_is_never_completed_leaves_the_newest() {
        let (mut near, mut far) = conflating();
        write(&mut near, &["a"]);
        let mut frame = Frame::from("torn");
        frame.set_more(true);
        near.write_frame(frame);
        near.flush();
        assert!(near.in_message());
        assert!(near.weight_begun() >= 4);
        near.tear();
        assert_eq!(near.weight_begun(), 0);
        assert_eq!(far.read(), Some(Message::from("a")));
        assert_eq!(far.torn_in(), 1);
        write(&mut near, &["b", "c"]);
        assert_eq!(far.read(), Some(Message::from(["b", "c"])));
    }
}
