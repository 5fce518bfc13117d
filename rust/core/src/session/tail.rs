//! What was written last, so that it can be told how much of it had not reached the peer's kernel when the connection ended.

/// So many writes are remembered exactly.
const WRITES: usize = 8;

/// How many bytes and whole messages were written, in all and with each of the last writes.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: u64,
    messages: u64,
    /// There once a message was written: many connections only receive.
    last: Option<Box<Last>>,
}

#[derive(Debug, Default)]
struct Last {
    /// Bytes and messages of each.
    writes: [(u32, u32); WRITES],
    newest: usize,
}

impl Tail {
    /// So many more bytes were written, and so many messages in all.
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

    /// How many messages end within the last `bytes` that were written. Of a write of several messages, and of what lies
    /// further back than is remembered, that is an estimate.
    pub(super) fn messages_within(&self, bytes: u64) -> u64 {
        let from = self.bytes.saturating_sub(bytes);
        let (mut end, mut after) = (self.bytes, self.messages);
        let writes = self.last.iter().flat_map(|last| last.backwards());
        // What lies further back counts as one write.
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
    fn the_last_writes_are_told_apart() {
        let mut tail = Tail::default();
        assert_eq!(tail.messages_within(0), 0);
        assert_eq!(tail.messages_within(100), 0);
        // A handshake, then message by message.
        tail.note(64, 0);
        for number in 1..=3 {
            tail.note(10, number);
        }
        assert_eq!(tail.messages_within(0), 0);
        assert_eq!(tail.messages_within(10), 1);
        assert_eq!(tail.messages_within(20), 2);
        assert_eq!(tail.messages_within(94), 3);
        // What is no message counts as none.
        tail.note(7, 3);
        assert_eq!(tail.messages_within(7), 0);
        assert_eq!(tail.messages_within(17), 1);
        // The end of a message that had arrived in part.
        assert_eq!(tail.messages_within(8), 1);
    }

    #[test]
    fn what_is_not_remembered_is_estimated() {
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
