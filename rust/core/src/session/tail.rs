//! Remembers the last writes. When the connection ends, this tells how many of their messages had not reached the
//! peer's kernel.

/// Number of writes that are remembered exactly.
const WRITES: usize = 8;

/// Number of bytes and complete messages that were written, in total and by each of the last writes.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: u64,
    /// How many of the bytes belong to no message.
    others: u64,
    messages: u64,
    /// The bytes before the first message: a handshake.
    head: u64,
    /// Some after a message was written. Many connections only receive.
    last: Option<Box<Last>>,
}

#[derive(Debug, Default)]
struct Last {
    /// Bytes, those that belong to messages, and messages of each write.
    writes: [(u32, u32, u32); WRITES],
    newest: usize,
}

impl Tail {
    /// Records a write of `bytes`, after which `messages` and `others`, bytes that belong to none, have been written in total.
    #[inline]
    pub(super) fn note(&mut self, bytes: usize, others: u64, messages: u64) {
        let own = bytes as u64 - (others - self.others);
        let more = messages - self.messages;
        if self.messages == 0 {
            self.head = others;
        }
        self.bytes += bytes as u64;
        (self.others, self.messages) = (others, messages);
        match &mut self.last {
            Some(last) => last.note(bytes as u64, own, more),
            None if messages > 0 => self
                .last
                .insert(Box::default())
                .note(bytes as u64, own, more),
            None => {}
        }
    }

    /// Returns how many messages end within the last `bytes` that were written, and how many of these bytes belong to
    /// messages. The result is an estimate for a write of several messages, and for writes that are not remembered any more.
    pub(super) fn within(&self, bytes: u64) -> (u64, u64) {
        let from = self.bytes.saturating_sub(bytes);
        let all = (self.messages, self.bytes - self.others);
        let (mut end, mut before) = (self.bytes, all);
        let writes = self.last.iter().flat_map(|last| last.backwards());
        // All earlier writes count as one, after the handshake.
        let remembered: u64 = writes.clone().map(|(span, ..)| span).sum();
        let rest = self.bytes.saturating_sub(self.head + remembered);
        let earlier = [(rest, u64::MAX, u64::MAX), (u64::MAX, 0, 0)];
        for (span, own, messages) in writes.chain(earlier) {
            let span = span.min(end);
            let (messages, own) = (messages.min(before.0), own.min(before.1));
            if end - span <= from {
                let share = |of: u64| {
                    let share = u128::from(of) * u128::from(end - from);
                    let share = share.div_ceil(u128::from(span.max(1)));
                    u64::try_from(share).unwrap_or(of)
                };
                let after = (all.0 - before.0, all.1 - before.1);
                return (after.0 + share(messages), after.1 + share(own));
            }
            (end, before) = (end - span, (before.0 - messages, before.1 - own));
        }
        all
    }
}

impl Last {
    #[inline]
    fn note(&mut self, bytes: u64, own: u64, messages: u64) {
        self.newest = (self.newest + 1) % WRITES;
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        self.writes[self.newest] = (short(bytes), short(own), short(messages));
    }

    fn backwards(&self) -> impl Iterator<Item = (u64, u64, u64)> + Clone {
        (0..WRITES).map(|back| {
            let (bytes, own, messages) = self.writes[(self.newest + WRITES - back) % WRITES];
            (bytes.into(), own.into(), messages.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writes_are_remembered_exactly() {
        let mut tail = Tail::default();
        assert_eq!(tail.within(0), (0, 0));
        assert_eq!(tail.within(100), (0, 0));
        // A handshake, then one write per message.
        tail.note(64, 64, 0);
        for number in 1..=3 {
            tail.note(10, 64, number);
        }
        assert_eq!(tail.within(0), (0, 0));
        assert_eq!(tail.within(10), (1, 10));
        assert_eq!(tail.within(20), (2, 20));
        assert_eq!(tail.within(94), (3, 30));
        // Bytes that are not part of a message count as no message.
        tail.note(7, 71, 3);
        assert_eq!(tail.within(7), (0, 0));
        assert_eq!(tail.within(17), (1, 10));
        // The end of a message that had arrived in part.
        assert_eq!(tail.within(8), (1, 1));
    }

    #[test]
    fn messages_of_earlier_writes_are_estimated() {
        let mut tail = Tail::default();
        for number in 1..=100 {
            tail.note(1000, 0, number * 100);
        }
        assert_eq!(tail.within(1000), (100, 1000));
        assert_eq!(tail.within(500), (50, 500));
        assert_eq!(tail.within(50_000), (5000, 50_000));
        assert_eq!(tail.within(100_000), (10_000, 100_000));
        assert_eq!(tail.within(u64::MAX), (10_000, 100_000));
    }

    #[test]
    fn a_handshake_does_not_dilute_small_messages() {
        let mut tail = Tail::default();
        tail.note(200, 200, 0);
        for number in 1..=60 {
            tail.note(4, 200, number);
        }
        for number in 0..=60 {
            assert_eq!(tail.within(4 * number), (number, 4 * number));
        }
        assert_eq!(tail.within(300), (60, 240));
        assert_eq!(tail.within(440), (60, 240));
    }

    #[test]
    fn a_message_among_many_other_bytes_keeps_its_size() {
        let mut tail = Tail::default();
        tail.note(1000, 987, 1);
        assert_eq!(tail.within(500), (1, 7));
        for number in 2..=20 {
            tail.note(1000, 987 + 1000 * (number - 1), 1);
        }
        assert_eq!(tail.within(20_000), (1, 13));
        assert_eq!(tail.within(1000), (0, 0));
    }
}
