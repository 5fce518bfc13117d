//! The messages of one end that were lost behind the other, and which of the two ends counts the next ones.
//!
//! An end that closes takes its counters with it, and the two ends close independently. Both facts and the count are one
//! value, so whatever the order, exactly one of them counts each message.

use crate::sys::sync::atomic::{AtomicU64, Ordering};

/// The writer has counted what was lost, and counts nothing more.
const SETTLED: u64 = 1 << 63;
/// The reader had left by then, so what it has not read is lost, too.
const LEFT: u64 = 1 << 62;

/// See the module text.
pub(super) struct Losses(AtomicU64);

impl Losses {
    pub(super) fn new() -> Losses {
        Losses(AtomicU64::new(0))
    }

    /// The number of messages that the reader has reported.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire) & !(SETTLED | LEFT)
    }

    /// The reader reports lost messages. Returns false if the writer does not count them any more.
    pub(super) fn add(&self, messages: u64) -> bool {
        let sum = |now: u64| (now & SETTLED == 0).then(|| now + messages);
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, sum)
            .is_ok()
    }

    /// The writer counts what was lost until now. Returns true if the reader left before, so that the writer counts what
    /// was not read, too. Every call returns the same.
    pub(super) fn settle(&self) -> bool {
        self.0.fetch_or(SETTLED, Ordering::AcqRel) & LEFT != 0
    }

    /// Whether the reader left before the writer settled.
    pub(super) fn has_left(&self) -> bool {
        self.0.load(Ordering::Acquire) & LEFT != 0
    }

    /// The reader leaves. Returns true if the writer settled before, so that the reader counts what it has not read. Every
    /// call returns the same.
    pub(super) fn leave(&self) -> bool {
        let leave = |now: u64| (now & SETTLED == 0).then_some(now | LEFT);
        let left = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, leave);
        left.is_err_and(|now| now & LEFT == 0)
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
        assert!(losses.leave(), "the reader counts what it has not read");
        assert!(!losses.settle() && losses.leave());

        let losses = Losses::new();
        assert!(!losses.leave());
        assert!(losses.add(4));
        assert!(losses.settle(), "the writer counts what was not read");
        assert!(losses.settle() && !losses.leave());
        assert_eq!(losses.count(), 4);
    }
}
