//! The limit of what may wait in one direction of a pipe, and which end sets it.

use crate::options::Options;
use crate::sys::sync::atomic::{AtomicUsize, Ordering};
use crate::sys::sync::{Mutex, PoisonError};

/// A high-water mark in complete messages and in bytes; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Complete messages.
    pub messages: usize,
    /// Bytes of their bodies, plus [`PART`](zeroxide_proto::message::PART) for each part. A message of any size is
    /// accepted if no other message waits.
    pub bytes: usize,
}

impl Limit {
    /// Returns the limit that a socket with these options sets for what it sends.
    pub(crate) fn outbound(options: &Options) -> Limit {
        Limit {
            messages: options.sndhwm,
            bytes: options.sndhwm_bytes,
        }
    }

    /// Returns the limit that a socket with these options sets for what it receives.
    pub(crate) fn inbound(options: &Options) -> Limit {
        Limit {
            messages: options.rcvhwm,
            bytes: options.rcvhwm_bytes,
        }
    }

    /// Returns the limit of an inproc pipe. It has one queue where other transports have two, so both limits are added.
    /// If either side has no limit of messages, there is none, as with libzmq. A limit of bytes always counts, because
    /// it only exists if it was requested.
    fn and(self, other: Limit) -> Limit {
        let messages = if self.messages == 0 || other.messages == 0 {
            0
        } else {
            self.messages.saturating_add(other.messages)
        };
        Limit {
            messages,
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// The limit of one direction that is in force.
pub(super) struct InForce {
    /// The limits that the writing end and the reading end have set. The end of a session sets none.
    wanted: Mutex<[Option<Limit>; 2]>,
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

/// Which end of a direction.
#[derive(Clone, Copy)]
pub(super) enum End {
    Writer,
    Reader,
}

impl InForce {
    pub(super) fn new(writer: Option<Limit>, reader: Option<Limit>) -> InForce {
        let limit = InForce {
            wanted: Mutex::new([writer, reader]),
            messages: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        };
        limit.change(|_| {});
        limit
    }

    /// Changes the limit that one end sets.
    pub(super) fn set(&self, end: End, limit: Limit) {
        self.change(|wanted| wanted[end as usize] = Some(limit));
    }

    fn change(&self, change: impl FnOnce(&mut [Option<Limit>; 2])) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut wanted);
        let now = match *wanted {
            [Some(writer), Some(reader)] => writer.and(reader),
            [limit, None] | [None, limit] => limit.unwrap_or_default(),
        };
        self.messages.store(now.messages, Ordering::Relaxed);
        self.bytes.store(now.bytes, Ordering::Relaxed);
    }

    /// The limit in messages; 0 means no limit.
    #[inline]
    pub(super) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed) as u64
    }

    /// The limit in bytes; 0 means no limit.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pipe, PipeConfig, PipeEvent, PipeId, PipeOwner, ROOM_BYTES};
    use super::*;
    use std::sync::Arc;
    use zeroxide_proto::message::{Message, PART};

    /// The weight of `messages` messages of ten bytes.
    const fn of(messages: usize) -> usize {
        messages * (10 + PART)
    }

    fn limit(messages: usize, bytes: usize) -> Option<Limit> {
        Some(Limit { messages, bytes })
    }

    /// Creates a pipe with limits from both ends for one of its directions.
    fn pair(writer: Option<Limit>, reader: Option<Limit>) -> (Pipe, Pipe) {
        let near = PipeConfig {
            limit_out: writer,
            ..PipeConfig::default()
        };
        let far = PipeConfig {
            limit_in: reader,
            ..PipeConfig::default()
        };
        Pipe::pair(near, far)
    }

    /// Writes messages of `size` bytes until the pipe is full, and returns how many it took.
    fn fill(pipe: &mut Pipe, size: usize) -> usize {
        let mut count = 0;
        while count < 10_000 && pipe.write(Message::from(vec![0; size])).is_ok() {
            count += 1;
        }
        pipe.flush();
        count
    }

    fn read(pipe: &mut Pipe, count: usize) {
        for _ in 0..count {
            assert!(pipe.check_read());
            pipe.read().unwrap();
        }
    }

    #[test]
    fn limits_add_up_unless_an_end_has_no_limit_of_messages() {
        for (writer, reader, expected) in [
            (limit(2, 0), None, 2),
            (None, limit(3, 0), 3),
            (limit(2, 0), limit(3, 0), 5),
            (limit(0, 0), limit(3, 0), 10_000),
            (limit(2, 0), limit(0, 0), 10_000),
            (None, None, 10_000),
            (limit(0, of(4)), limit(0, 0), 4),
            (limit(9, 0), limit(9, of(4)), 4),
            (limit(9, of(2)), limit(9, of(4)), 6),
            (limit(3, of(4)), None, 3),
        ] {
            let (mut near, _far) = pair(writer, reader);
            assert_eq!(fill(&mut near, 10), expected, "{writer:?} {reader:?}");
        }
    }

    #[test]
    fn one_message_of_any_size_fits() {
        let (mut near, mut far) = pair(limit(0, 100), None);
        assert_eq!(fill(&mut near, 1000), 1);
        assert!(!near.check_write());
        read(&mut far, 1);
        assert_eq!(fill(&mut near, 1), 100usize.div_ceil(1 + PART));
    }

    #[test]
    fn a_full_pipe_opens_again_at_half_of_its_bytes() {
        let (mut near, mut far) = pair(limit(0, of(10)), None);
        assert_eq!(fill(&mut near, 10), 10);
        for _ in 0..5 {
            assert!(!near.check_write());
            read(&mut far, 1);
        }
        assert_eq!(fill(&mut near, 10), 5);
        // A reader that then sleeps also reports its last read.
        read(&mut far, 10);
        assert!(!far.check_read());
        assert_eq!(fill(&mut near, 10), 10);
    }

    #[test]
    fn a_full_pipe_opens_again_when_many_bytes_were_read() {
        struct Told(AtomicUsize);
        impl PipeOwner for Told {
            fn on_pipe(&self, _: PipeId, event: PipeEvent) {
                let room = usize::from(event == PipeEvent::Writable);
                self.0.fetch_add(room, Ordering::Relaxed);
            }
        }
        let size = ROOM_BYTES as usize / 4;
        let (mut near, mut far) = pair(limit(100, 0), None);
        let owner = Arc::new(Told(AtomicUsize::new(0)));
        near.set_owner(owner.clone(), PipeId(0));
        assert_eq!(fill(&mut near, size), 100);
        for round in 1..30 {
            read(&mut far, 3);
            assert_eq!(fill(&mut near, size), 0);
            read(&mut far, 1);
            assert_eq!(owner.0.load(Ordering::Relaxed), round);
            assert_eq!(fill(&mut near, size), 4);
        }
    }

    #[test]
    fn a_limit_raised_while_the_writer_falls_asleep_takes_effect() {
        for messages in [0, 100] {
            let (mut near, far) = pair(limit(2, 0), None);
            assert_eq!(fill(&mut near, 10), 2);
            let bytes = 0;
            // As if this happened between the check of the limit and arming the bell.
            far.set_limit_in(Limit { messages, bytes });
            assert!(near.wait_for_room());
        }
    }

    #[test]
    fn a_limit_may_change_while_messages_wait() {
        let (mut near, mut far) = pair(limit(0, 0), None);
        assert_eq!(fill(&mut near, 10), 10_000);
        read(&mut far, 9_990);
        for bytes in [of(20), of(30)] {
            let messages = 0;
            near.set_limit_out(Limit { messages, bytes });
            assert_eq!(fill(&mut near, 10), 10, "room for ten more");
        }
        let tight = Limit {
            messages: 1,
            bytes: 1,
        };
        near.set_limit_out(tight);
        far.set_limit_in(tight);
        assert_eq!(fill(&mut near, 10), 0);
        near.set_limit_out(Limit::default());
        far.set_limit_in(Limit::default());
        assert_eq!(fill(&mut near, 10), 10_000);
    }

    #[test]
    fn empty_parts_count() {
        let parts = |count: usize| Message::from_frames((0..count).map(|_| "".into()));
        let (mut near, mut far) = pair(limit(0, 100 * PART), None);
        for round in 0..3 {
            let mut sent = 0;
            while near.write(parts(10)).is_ok() {
                sent += 1;
            }
            assert_eq!(sent, 10, "{round}");
            near.flush();
            assert_eq!(near.inbound().weight(), 100 * PART as u64);
            read(&mut far, 10);
            assert!(!far.check_read());
            assert_eq!(near.inbound().weight(), 0);
        }
        // They also count if they are written one by one, and if the message is never completed.
        for _ in 0..9 {
            let mut part = zeroxide_proto::frame::Frame::new();
            part.set_more(true);
            near.write_frame(part);
        }
        assert_eq!(near.weight_begun(), 9 * PART as u64);
        near.rollback();
        assert_eq!(near.weight_begun(), 0);
        assert_eq!(fill(&mut near, 0), 100);
    }
}
