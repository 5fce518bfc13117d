//! Memory that a backlog took, back to the system once the backlog is gone: an allocator keeps what is freed, and after a
//! burst that is as much as ever waited.

use std::time::{Duration, Instant};

/// Bytes that are worth the milliseconds that giving memory back costs.
const LARGE: u64 = 8 << 20;
/// Whether so many bytes that have moved, and were freed here and there since, are worth it.
pub(super) fn is_large(moved: usize) -> bool {
    moved as u64 >= LARGE
}

/// How long no more than that must have waited. A burst that comes back sooner finds the memory still there.
const AFTER: Duration = Duration::from_millis(100);

/// Whether and when to give memory back.
#[derive(Default)]
pub(super) struct Backlog {
    look_at: Option<Instant>,
}

impl Backlog {
    /// So many bytes wait now.
    #[inline]
    pub(super) fn note(&mut self, bytes: u64, now: Instant) {
        if bytes >= LARGE {
            self.look_at = now.checked_add(AFTER);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    /// Time has passed, and so many bytes wait now. True when it is time to give memory back.
    pub(super) fn handle_timeout(&mut self, bytes: u64, now: Instant) -> bool {
        if self.look_at.is_none_or(|at| at > now) {
            return false;
        }
        self.look_at = None;
        self.note(bytes, now);
        self.look_at.is_none()
    }

    /// The end of it. True when there is memory to give back.
    pub(super) fn end(&mut self) -> bool {
        self.look_at.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_back_once_after_the_backlog_is_gone() {
        let start = Instant::now();
        let mut backlog = Backlog::default();
        backlog.note(LARGE - 1, start);
        assert_eq!(backlog.poll_timeout(), None);
        backlog.note(LARGE, start);
        assert!(!backlog.handle_timeout(0, start));
        // Still there: once more.
        assert!(!backlog.handle_timeout(LARGE, start + AFTER));
        assert_eq!(backlog.poll_timeout(), Some(start + 2 * AFTER));
        assert!(backlog.handle_timeout(LARGE / 2, start + 2 * AFTER));
        assert!(!backlog.handle_timeout(0, start + 3 * AFTER));
        assert!(!backlog.end());
        backlog.note(LARGE, start);
        assert!(backlog.end());
    }
}
