//! What was written last, so that it can be told how much of it had not reached the peer's kernel when the connection ended.

/// So many writes are remembered exactly.
const MARKS: usize = 8;

/// How many bytes and whole messages were written, in all and as it was after each of the last writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    marks: [Mark; MARKS],
    newest: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    bytes: u64,
    messages: u64,
}

impl Tail {
    /// So many more bytes were written, and so many messages in all.
    #[inline]
    pub(super) fn note(&mut self, bytes: usize, messages: u64) {
        let bytes = self.marks[self.newest].bytes + bytes as u64;
        self.newest = (self.newest + 1) % MARKS;
        self.marks[self.newest] = Mark { bytes, messages };
    }

    /// How many messages end within the last `bytes` that were written. Of a write of several messages, and of what lies
    /// further back than is remembered, that is an estimate.
    pub(super) fn messages_within(&self, bytes: u64) -> u64 {
        let newest = self.marks[self.newest];
        let from = newest.bytes.saturating_sub(bytes);
        let mut after = newest;
        for back in 1..=MARKS {
            let before = match back {
                MARKS => Mark::default(),
                _ => self.marks[(self.newest + MARKS - back) % MARKS],
            };
            if before.bytes <= from {
                let (span, messages) =
                    (after.bytes - before.bytes, after.messages - before.messages);
                let within = u128::from(messages) * u128::from(after.bytes - from);
                let share = within.div_ceil(u128::from(span.max(1)));
                let share = u64::try_from(share).unwrap_or(messages);
                return newest.messages - after.messages + share;
            }
            after = before;
        }
        newest.messages
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
