//! Remembers the last writes. When the connection ends, this tells how many of their messages had not reached the
//! peer's kernel.

/// Number of writes that are remembered exactly.
const WRITES: usize = 8;

/// Number of bytes and complete messages that were written, in total and by each of the last writes.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: u64,
    messages: u64,
    /// Some after a message was written. Many connections only receive.
    last: Option<Box<Last>>,
}

#[derive(Debug, Default)]
struct Last {
    /// Bytes and messages of each write.
    writes: [(u32, u32); WRITES],
    newest: usize,
}

impl Tail {
    /// Records a write of `bytes`, after which `messages` have been written in total.
    #[inline]
    pub(super) fn note(&mut self, bytes: usize, messages: u64) {
        let more = messages - self.messages;
        self.bytes += bytes as u64;
        self.messages = messages;
        match &mut self.last {
            Some(last) => last.note(bytes, more),
            None if messages > 0 => self.last.insert(Box::default()).note(bytes, more),
            None => {}
        }
    }

    /// Returns how many messages end within the last `bytes` that were written. The result is an estimate for a write
    /// of several messages, and for writes that are not remembered any more.
    pub(super) fn messages_within(&self, bytes: u64) -> u64 {
        let from = self.bytes.saturating_sub(bytes);
        let (mut end, mut after) = (self.bytes, self.messages);
        let writes = self.last.iter().flat_map(|last| last.backwards());
        // All earlier writes count as one.
        let rest = std::iter::once((u64::MAX, u64::MAX));
        for (span, messages) in writes.chain(rest) {
            let (span, messages) = (span.min(end), messages.min(after));
            if end - span <= from {
                let within = u128::from(messages) * u128::from(end - from);
                let share = within.div_ceil(u128::from(span.max(1)));
                let share = u64::try_from(share).unwrap_or(messages);
                return self.messages - after + share;
            }
            (end, after) = (end - span, after - messages);
        }
        self.messages
    }
}

impl Last {
    #[inline]
    fn note(&mut self, bytes: usize, messages: u64) {
        self.newest = (self.newest + 1) % WRITES;
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        self.writes[self.newest] = (short(bytes as u64), short(messages));
    }

    fn backwards(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..WRITES).map(|back| {
            let (bytes, messages) = self.writes[(self.newest + WRITES - back) % WRITES];
            (bytes.into(), messages.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writes_are_remembered_exactly() {
        let mut tail = Tail::default();
        assert_eq!(tail.messages_within(0), 0);
        assert_eq!(tail.messages_within(100), 0);
        // A handshake, then one write per message.
        tail.note(64, 0);
        for number in 1..=3 {
            tail.note(10, number);
        }
        assert_eq!(tail.messages_within(0), 0);
        assert_eq!(tail.messages_within(10), 1);
        assert_eq!(tail.messages_within(20), 2);
        assert_eq!(tail.messages_within(94), 3);
        // Bytes that are not part of a message count as no message.
        tail.note(7, 3);
        assert_eq!(tail.messages_within(7), 0);
        assert_eq!(tail.messages_within(17), 1);
        // The end of a message that had arrived in part.
        assert_eq!(tail.messages_within(8), 1);
    }

    #[test]
    fn messages_of_earlier_writes_are_estimated() {
        let mut tail = Tail::default();
        for number in 1..=100 {
            tail.note(1000, number * 100);
        }
        assert_eq!(tail.messages_within(1000), 100);
        assert_eq!(tail.messages_within(500), 50);
        assert_eq!(tail.messages_within(50_000), 5000);
        assert_eq!(tail.messages_within(100_000), 10_000);
        assert_eq!(tail.messages_within(u64::MAX), 10_000);
    }
}
