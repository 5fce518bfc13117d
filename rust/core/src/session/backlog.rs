//! Returns the memory of a backlog to the system once the backlog is gone: an allocator keeps what is freed, and after a
//! burst that is as much as ever waited.

use std::time::Instant;

use crate::pace::{BACKLOG_GONE, BACKLOG_LARGE};

/// Whether `moved` bytes, which were freed here and there since, are worth it.
pub(super) fn is_large(moved: usize) -> bool {
    moved as u64 >= BACKLOG_LARGE
}

/// Whether and when to return memory.
#[derive(Default)]
pub(super) struct Backlog {
    look_at: Option<Instant>,
}

impl Backlog {
    /// `bytes` wait now.
    #[inline]
    pub(super) fn note(&mut self, bytes: u64, now: Instant) {
        if bytes >= BACKLOG_LARGE {
            self.look_at = now.checked_add(BACKLOG_GONE);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    /// Time has passed, and `bytes` wait now. Returns true if it is time to return memory.
    pub(super) fn handle_timeout(&mut self, bytes: u64, now: Instant) -> bool {
        if self.look_at.is_none_or(|at| at > now) {
            return false;
        }
        self.look_at = None;
        self.note(bytes, now);
        self.look_at.is_none()
    }

    /// The connection ends. Returns true if there is memory to return.
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
        backlog.note(BACKLOG_LARGE - 1, start);
        assert_eq!(backlog.poll_timeout(), None);
        backlog.note(BACKLOG_LARGE, start);
        assert!(!backlog.handle_timeout(0, start));
        // Still there: once more.
        assert!(!backlog.handle_timeout(BACKLOG_LARGE, start + BACKLOG_GONE));
        assert_eq!(backlog.poll_timeout(), Some(start + 2 * BACKLOG_GONE));
        assert!(backlog.handle_timeout(BACKLOG_LARGE / 2, start + 2 * BACKLOG_GONE));
        assert!(!backlog.handle_timeout(0, start + 3 * BACKLOG_GONE));
        assert!(!backlog.end());
        backlog.note(BACKLOG_LARGE, start);
        assert!(backlog.end());
    }
}
