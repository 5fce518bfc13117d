//! Accounts for the messages of a pipe: how many were written, read, handed to the kernel, or lost.

use zeroxide_proto::message::Message;

use super::{End, Pipe, PipeEvent, lock};
use crate::sys::sync::atomic::{Ordering, fence};

impl Pipe {
    /// Complete messages and bytes written at this end so far.
    pub fn written(&self) -> (u64, u64) {
        (self.written, self.bytes_written)
    }

    /// Complete messages and bytes read at this end so far.
    pub fn read_so_far(&self) -> (u64, u64) {
        (self.read, self.bytes_read)
    }

    /// Records that `sent` more of the far end's messages were handed to the kernel.
    pub fn account(&self, sent: u64) {
        self.far().sent.fetch_add(sent, Ordering::Release);
        self.tell_accounts();
    }

    /// Records the loss of a connection: `stranded` of the far end's messages had not been handed to the kernel, and
    /// `unheard` had been but did not reach the peer. `never_arrived` of them, the last ones, certainly never reached the peer.
    /// Returns false if the far end has [settled](Self::settle), so that the caller has to count them.
    #[must_use]
    pub fn account_lost(&self, stranded: u64, unheard: u64, never_arrived: u64) -> bool {
        if !self.far().losses.add(stranded + unheard) {
            return false;
        }
        self.far().sent.fetch_sub(unheard, Ordering::Release);
        if never_arrived > 0 {
            // The last messages that were read here are among them.
            self.far().never_arrived.store(self.read, Ordering::Release);
        }
        self.tell_accounts();
        true
    }

    fn tell_accounts(&self) {
        fence(Ordering::SeqCst);
        if self.far().wants_sent.ring() {
            self.far().notify(PipeEvent::Sent);
        }
    }

    /// Of the messages written here: how many were handed to the kernel, and how many were lost with a connection.
    pub fn sent_and_lost(&self) -> (u64, u64) {
        (
            self.own().sent.load(Ordering::Acquire),
            self.own().losses.count(),
        )
    }

    /// How many messages had been written here up to the last one that certainly never reached its peer; 0 if none was
    /// lost.
    pub fn never_arrived(&self) -> u64 {
        self.own().never_arrived.load(Ordering::Acquire)
    }

    /// Records that a lost message was sent again, so it does not count as lost.
    pub fn count_resent(&mut self) {
        self.resent += 1;
    }

    /// Number of messages written here that were lost with a connection and not sent again.
    pub fn lost(&self) -> u64 {
        self.sent_and_lost().1.saturating_sub(self.resent)
    }

    /// Ends the count of [`lost`](Self::lost), because this end closes. Returns true if the far end has closed before, so that
    /// what it has not read is lost, too. A far end that is open counts from now on what it does not deliver.
    pub fn settle(&self) -> bool {
        self.own().losses.settle()
    }

    /// Number of messages written here that are lost in addition to [`lost`](Self::lost), because the far end has closed
    /// without reading them. Settles the count.
    pub fn lost_unread(&self) -> u64 {
        if !self.settle() {
            return 0;
        }
        let all = self.sent_and_lost().1 + self.queued_out();
        all.saturating_sub(self.resent) - self.lost()
    }

    /// Ends reading at this end, which must be dropped next. Returns true if the far end has [settled](Self::settle), so that
    /// the caller has to count what it has not read.
    pub fn end_reading(&self) -> bool {
        self.far().losses.end_reading()
    }

    /// Whether the far end has ended reading, so that it will not read what is left. Known only before this end
    /// [settles](Self::settle).
    pub fn has_far_ended_reading(&self) -> bool {
        self.own().losses.has_ended()
    }

    /// Requests [`PipeEvent::Sent`] at the next change. Check [`sent_and_lost`](Self::sent_and_lost) afterwards.
    pub fn wait_sent(&self) {
        self.own().wants_sent.arm();
        fence(Ordering::SeqCst);
    }

    /// Number of messages written here that newer ones replaced before they were read, and the same for messages
    /// written at the far end.
    pub fn conflated(&self) -> (u64, u64) {
        let count = |end: &End| end.conflated.load(Ordering::Relaxed);
        (count(self.own()), count(self.far()))
    }

    /// The same when this end closes, for a session at the far end, which counts itself what it [replaces](Self::take_replaced)
    /// later.
    pub fn take_conflated(&self) -> (u64, u64) {
        (
            self.conflated().0,
            self.far().conflated.swap(0, Ordering::AcqRel),
        )
    }

    /// Number of messages that this end has replaced since the far end closed. They are subtracted.
    pub fn take_replaced(&self) -> u64 {
        match self.is_far_closed() {
            true => self.own().conflated.swap(0, Ordering::AcqRel),
            false => 0,
        }
    }

    /// Whether only the newest of the messages that the far end writes is kept.
    pub fn keeps_newest(&self) -> bool {
        self.far().slot.is_some()
    }

    /// Number of messages that the far end began to write and could not complete.
    pub fn torn_in(&self) -> u64 {
        self.far().torn.load(Ordering::Relaxed)
    }

    /// Records that a write has found the pipe full, unless the write before it found the same.
    pub(super) fn count_full(&self, was_full: bool) {
        if !was_full {
            self.own().full.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often this end's writer has reached the high-water mark, and how often the far end's.
    pub fn times_full(&self) -> (u64, u64) {
        let count = |end: &End| end.full.load(Ordering::Relaxed);
        (count(self.own()), count(self.far()))
    }

    /// Number of messages that the far end wrote and that have not been read here yet.
    pub fn queued_in(&self) -> u64 {
        self.far()
            .counts
            .written
            .load(Ordering::Acquire)
            .saturating_sub(self.read)
    }

    /// Number of messages written here that the far end has not read yet.
    pub fn queued_out(&self) -> u64 {
        self.written
            .saturating_sub(self.far().counts.read.load(Ordering::Acquire))
    }

    /// Number of bytes of the messages that the far end wrote and that have not been read here yet.
    pub fn queued_bytes_in(&self) -> u64 {
        match &self.far().slot {
            Some(slot) => lock(&slot.newest).as_ref().map_or(0, size),
            None => {
                let written = self.far().counts.bytes_written.load(Ordering::Relaxed);
                written.saturating_sub(self.bytes_read)
            }
        }
    }

    /// Number of bytes of the messages written here that the far end has not read yet.
    pub fn queued_bytes_out(&self) -> u64 {
        match &self.own().slot {
            Some(slot) => lock(&slot.newest).as_ref().map_or(0, size),
            None => {
                let read = self.far().counts.bytes_read.load(Ordering::Relaxed);
                self.bytes_written.saturating_sub(read)
            }
        }
    }

    /// Writes a message before those of the application.
    pub fn greet(&mut self, mut greeting: Message) {
        let size = greeting.size() as u64;
        self.write_unchecked(&mut greeting);
        self.flush();
        self.own().greeted.store(self.written, Ordering::Relaxed);
        let earlier = match self.own().slot {
            Some(_) => 0,
            None => self.own().greeted_bytes.load(Ordering::Relaxed),
        };
        self.own()
            .greeted_bytes
            .store(earlier + size, Ordering::Relaxed);
    }

    /// Number of greetings that the far end has not read yet, and their bytes.
    pub fn unread_greetings(&self) -> (u64, u64) {
        let read = self.far().counts.read.load(Ordering::Acquire);
        self.own().greetings_after(read)
    }

    /// Number of messages of this end's application that the far end has not read yet, and their bytes.
    pub fn unread_out(&self) -> (u64, u64) {
        let (greetings, bytes) = self.unread_greetings();
        (
            self.queued_out().saturating_sub(greetings),
            self.queued_bytes_out().saturating_sub(bytes),
        )
    }

    /// The same for messages of the far end's application that have not been read here.
    pub fn unread_in(&self) -> (u64, u64) {
        let (greetings, bytes) = self.far().greetings_after(self.read);
        (
            self.queued_in().saturating_sub(greetings),
            self.queued_bytes_in().saturating_sub(bytes),
        )
    }

    /// Approximate number of bytes that are written and not read, in both directions.
    pub fn queued_bytes(&self) -> u64 {
        self.queued_bytes_in() + self.queued_bytes_out()
    }
}

fn size(message: &Message) -> u64 {
    message.size() as u64
}

impl End {
    /// The greetings among the messages after the first `read` ones, and about how many bytes they have.
    fn greetings_after(&self, read: u64) -> (u64, u64) {
        let greetings = self.greeted.load(Ordering::Relaxed).saturating_sub(read);
        let bytes = match read {
            0 => self.greeted_bytes.load(Ordering::Relaxed),
            _ => 0,
        };
        (greetings, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::PipeConfig;

    /// Two ends, of which the first has written three messages. The second has read one.
    fn pipe() -> (Pipe, Pipe) {
        let (mut near, mut far) = Pipe::pair(PipeConfig::default(), PipeConfig::default());
        for _ in 0..3 {
            near.write(Message::from("x")).unwrap();
        }
        near.flush();
        far.read().unwrap();
        (near, far)
    }

    #[test]
    fn a_writer_counts_what_is_lost_until_it_closes() {
        let (near, far) = pipe();
        assert!(far.account_lost(1, 0, 1));
        assert!(!far.end_reading(), "the writer counts the other two");
        drop(far);
        assert_eq!((near.lost(), near.lost_unread()), (1, 2));
    }

    #[test]
    fn a_reader_counts_what_is_lost_after_the_writer_has_closed() {
        let (near, far) = pipe();
        assert_eq!((near.lost(), near.lost_unread()), (0, 0));
        // The socket has read its counters, and its end is not dropped yet.
        assert!(!far.account_lost(1, 0, 1));
        drop(near);
        assert!(far.end_reading());
        assert_eq!(far.queued_in(), 2);
    }

    #[test]
    fn a_half_closed_end_reads_what_the_other_one_flushes() {
        let (mut near, mut far) = pipe();
        far.write(Message::from("before")).unwrap();
        far.flush();
        far.write(Message::from("meanwhile")).unwrap();
        near.half_close();
        assert!(near.is_far_closed() && far.is_far_closed());
        assert!(!near.check_write() && !far.check_write());
        far.flush();
        for text in ["before", "meanwhile"] {
            assert!(!near.is_finished());
            assert_eq!(&near.read().unwrap().head()[..], text.as_bytes());
        }
        assert!(near.is_finished());
        // Messages written before are still delivered, and the reader counts the others.
        assert_eq!((near.lost(), near.lost_unread()), (0, 0));
        far.read().unwrap();
        assert!(!far.account_lost(1, 0, 1) && far.end_reading());
        assert_eq!(far.queued_in(), 1);
    }

    #[test]
    fn one_end_counts_what_a_half_closed_end_has_not_read() {
        for writer_is_first in [true, false] {
            let (near, mut far) = pipe();
            far.half_close();
            let counted = match writer_is_first {
                true => [
                    near.lost_unread(),
                    u64::from(far.end_reading()) * far.queued_in(),
                ],
                false => [
                    u64::from(far.end_reading()) * far.queued_in(),
                    near.lost_unread(),
                ],
            };
            assert_eq!(counted.iter().sum::<u64>(), 2, "{counted:?}");
        }
    }
}
