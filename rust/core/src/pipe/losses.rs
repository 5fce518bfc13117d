//! The messages of one end that were lost behind the other, and which of the two ends counts the next ones.
//!
//! An end that closes takes its counters with it, and the two ends close independently. Both facts and the count are one
//! value, so whatever the order, exactly one of them counts each message.

use crate::sys::sync::atomic::{AtomicU64, Ordering};

/// The writer has counted what was lost, and counts nothing more.
const SETTLED: u64 = 1 << 63;
/// The reader had ended by then, so what it has not read is lost, too.
const READ_ENDED: u64 = 1 << 62;

/// See the module text.
pub(super) struct Losses(AtomicU64);

impl Losses {
    pub(super) fn new() -> Losses {
        Losses(AtomicU64::new(0))
    }

    /// The number of messages that the reader has reported.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire) & !(SETTLED | READ_ENDED)
    }

    /// The reader reports lost messages. Returns false if the writer does not count them any more.
    pub(super) fn add(&self, messages: u64) -> bool {
        let sum = |now: u64| (now & SETTLED == 0).then(|| now + messages);
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, sum)
            .is_ok()
    }

    /// The writer counts what was lost until now. Returns true if the reader ended before, so that the writer counts what
    /// was not read, too. Every call returns the same.
    pub(super) fn settle(&self) -> bool {
        self.0.fetch_or(SETTLED, Ordering::AcqRel) & READ_ENDED != 0
    }

    /// Whether the reader ended before the writer settled.
    pub(super) fn has_ended(&self) -> bool {
        self.0.load(Ordering::Acquire) & READ_ENDED != 0
    }

    /// The reader ends. Returns true if the writer settled before, so that the reader counts what it has not read. Every
    /// call returns the same.
    pub(super) fn end_reading(&self) -> bool {
        let end = |now: u64| (now & SETTLED == 0).then_some(now | READ_ENDED);
        let ended = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, end);
        ended.is_err_and(|now| now & READ_ENDED == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_counts_each_loss() {
        let losses = Losses::new();
        assert!(losses.add(2) && losses.add(3));
        assert!(!losses.settle());
        assert!(!losses.add(1), "the writer does not look any more");
        assert_eq!(losses.count(), 5);
        assert!(
            losses.end_reading(),
            "the reader counts what it has not read"
        );
        assert!(!losses.settle() && losses.end_reading());

        let losses = Losses::new();
        assert!(!losses.end_reading());
        assert!(losses.add(4));
        assert!(losses.settle(), "the writer counts what was not read");
        assert!(losses.settle() && !losses.end_reading());
        assert_eq!(losses.count(), 4);
    }
}
