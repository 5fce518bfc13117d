//! Messages that a pattern has read but keeps, because the application has to ask for them in another way. They count as
//! unread, so the high-water mark and the budget include them.

use std::sync::atomic::Ordering;

use zeroxide_proto::message::{Message, PART};

use super::Pipe;

/// The messages of one pipe that are kept.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    messages: u64,
    bytes: u64,
}

impl Pipe {
    /// Keeps a message of one part that was just read. Unless the application can receive it now (`is_next`), returns
    /// false if the kept ones would exceed half of the high-water mark. The other half is for messages that the
    /// application can receive. One message is always accepted.
    pub fn hold(&mut self, message: &Message, is_next: bool) -> bool {
        let limit = &self.far().limit;
        let bytes = message.size() as u64;
        let fits = |mark: u64, held: u64| mark == 0 || held <= mark / 2;
        let messages = self.held.messages + 1;
        let weight = self.held.bytes + bytes + messages * PART as u64;
        let is_small = fits(limit.messages(), messages) && fits(limit.bytes(), weight);
        if messages > 1 && !is_next && !is_small {
            return false;
        }
        self.held.messages = messages;
        self.held.bytes += bytes;
        self.read -= 1;
        self.bytes_read -= bytes;
        self.read_checked = self.read_checked.min(self.read);
        self.bytes_checked = self.bytes_checked.min(self.bytes_read);
        let counts = &self.own().counts;
        counts.bytes_read.store(self.bytes_read, Ordering::Relaxed);
        counts.read.store(self.read, Ordering::Release);
        true
    }

    /// The application takes a message that was kept, or it is dropped.
    pub fn release(&mut self, message: &Message) {
        let bytes = message.size() as u64;
        self.held.messages -= 1;
        self.held.bytes -= bytes;
        self.bytes_read += bytes;
        self.count_read(1);
        // The reader may be asleep, and the far writer waits for this message.
        self.publish_read();
    }

    /// The messages that were read, with those that are kept.
    pub(super) fn read_and_held(&self) -> u64 {
        self.read + self.held.messages
    }

    /// Whether a message is kept.
    pub(super) fn is_holding(&self) -> bool {
        self.held.messages > 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limit, PipeConfig, PipeEvent, PipeId, PipeOwner};
    use super::*;
    use crate::sys::sync::Arc;
    use crate::sys::sync::atomic::AtomicUsize;

    fn pair(messages: usize, bytes: usize) -> (Pipe, Pipe) {
        let config = PipeConfig {
            limit_out: Some(Limit { messages, bytes }),
            ..PipeConfig::default()
        };
        Pipe::pair(config, PipeConfig::default())
    }

    fn fill(pipe: &mut Pipe) -> usize {
        let sent = (0..1000).take_while(|_| pipe.write(Message::from("0123456789")).is_ok());
        let sent = sent.count();
        pipe.flush();
        sent
    }

    #[test]
    fn kept_messages_count_as_unread_up_to_half_of_the_mark() {
        for (messages, bytes) in [(10, 0), (0, 10 * (10 + PART))] {
            let (mut writer, mut reader) = pair(messages, bytes);
            assert_eq!(fill(&mut writer), 10);
            let read: Vec<_> = (0..10).map(|_| reader.read().unwrap()).collect();
            let kept = read
                .iter()
                .take_while(|message| reader.hold(message, false));
            assert_eq!(kept.count(), 5);
            assert!(!reader.check_read());
            assert_eq!((reader.queued_in(), reader.queued_bytes_in()), (5, 50));
            assert_eq!(writer.inbound().weight(), 5 * (10 + PART) as u64);
            assert_eq!(fill(&mut writer), 5);
            for message in &read[..5] {
                reader.release(message);
            }
            assert_eq!((reader.queued_in(), reader.queued_bytes_in()), (5, 50));
            assert_eq!(fill(&mut writer), 5);
        }
    }

    #[test]
    fn one_message_of_any_size_can_be_kept_and_its_release_makes_room() {
        for (messages, bytes) in [(1, 0), (0, 5)] {
            let (mut writer, mut reader) = pair(messages, bytes);
            assert_eq!(fill(&mut writer), 1);
            let message = reader.read().unwrap();
            assert!(reader.hold(&message, false));
            assert!(!reader.check_read());
            assert_eq!(fill(&mut writer), 0);
            drop(writer);
            assert!(!reader.is_finished());
            reader.release(&message);
            assert!(reader.is_finished());
        }
    }

    #[test]
    fn a_writer_that_waits_for_kept_messages_is_notified() {
        struct Told(AtomicUsize);
        impl PipeOwner for Told {
            fn on_pipe(&self, _: PipeId, event: PipeEvent) {
                let room = usize::from(event == PipeEvent::Writable);
                self.0.fetch_add(room, Ordering::Relaxed);
            }
        }
        // Half of the mark is for a context that does not receive. Another one has found two messages.
        let (mut writer, mut reader) = pair(10, 0);
        let owner = Arc::new(Told(AtomicUsize::new(0)));
        writer.set_owner(owner.clone(), PipeId(0));
        fill(&mut writer);
        let read: Vec<_> = (0..10).map(|_| reader.read().unwrap()).collect();
        for (at, message) in read[..7].iter().enumerate() {
            assert!(reader.hold(message, at >= 5));
        }
        assert!(!reader.check_read());
        fill(&mut writer);
        let before = owner.0.load(Ordering::Relaxed);
        for message in &read[5..7] {
            reader.release(message);
        }
        assert_eq!(owner.0.load(Ordering::Relaxed), before + 1);
    }

    #[test]
    fn a_full_writer_does_not_take_a_kept_message_for_many_that_were_read() {
        let (mut writer, mut reader) = pair(10, 0);
        writer.write(Message::from(vec![0; 1000])).unwrap();
        for _ in 1..10 {
            writer.write(Message::from("0123456789")).unwrap();
        }
        writer.flush();
        let large = reader.read().unwrap();
        // The writer finds the pipe full after this read, and before the message is kept.
        assert_eq!(fill(&mut writer), 1);
        assert!(reader.hold(&large, false));
        reader.read().unwrap();
        reader.read().unwrap();
        assert!(!writer.check_write(), "more than half of the mark waits");
    }
}
