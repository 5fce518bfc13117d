//! Returns memory to the system after a backlog has drained. An allocator keeps freed memory, so after a burst it would
//! keep as much as the burst's largest backlog.

use std::time::Instant;

use crate::pace::{BACKLOG_GONE, BACKLOG_LARGE};

/// Whether `moved` bytes, which have been freed in pieces since, are enough to return memory.
pub(super) fn is_large(moved: usize) -> bool {
    moved as u64 >= BACKLOG_LARGE
}

/// Decides whether and when to return memory.
#[derive(Default)]
pub(super) struct Backlog {
    look_at: Option<Instant>,
}

impl Backlog {
    /// Records that `bytes` are waiting now.
    #[inline]
    pub(super) fn note(&mut self, bytes: u64, now: Instant) {
        if bytes >= BACKLOG_LARGE {
            self.look_at = now.checked_add(BACKLOG_GONE);
        }
    }

    /// The same for what waits at other connections. It does not put the check off, because this connection does not
    /// notice when that becomes less.
    #[inline]
    pub(super) fn note_others(&mut self, bytes: u64, now: Instant) {
        if self.look_at.is_none() {
            self.note(bytes, now);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    /// Handles the timer, with `bytes` waiting now. Returns true if it is time to return memory.
    pub(super) fn handle_timeout(&mut self, bytes: u64, now: Instant) -> bool {
        if self.look_at.is_none_or(|at| at > now) {
            return false;
        }
        self.look_at = None;
        self.note(bytes, now);
        self.look_at.is_none()
    }

    /// Handles the end of the connection. Returns true if there is memory to return.
    pub(super) fn end(&mut self) -> bool {
        self.look_at.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_returned_once_after_the_backlog_has_drained() {
        let start = Instant::now();
        let mut backlog = Backlog::default();
        backlog.note(BACKLOG_LARGE - 1, start);
        assert_eq!(backlog.poll_timeout(), None);
        backlog.note(BACKLOG_LARGE, start);
        assert!(!backlog.handle_timeout(0, start));
        // The backlog is still there, so the timer starts again.
        assert!(!backlog.handle_timeout(BACKLOG_LARGE, start + BACKLOG_GONE));
        assert_eq!(backlog.poll_timeout(), Some(start + 2 * BACKLOG_GONE));
        assert!(backlog.handle_timeout(BACKLOG_LARGE / 2, start + 2 * BACKLOG_GONE));
        assert!(!backlog.handle_timeout(0, start + 3 * BACKLOG_GONE));
        // The messages at other connections are checked after that time, however often this one has something to do.
        backlog.note_others(BACKLOG_LARGE, start);
        backlog.note_others(BACKLOG_LARGE, start + BACKLOG_GONE / 2);
        assert_eq!(backlog.poll_timeout(), Some(start + BACKLOG_GONE));
        assert!(backlog.handle_timeout(0, start + BACKLOG_GONE));
        assert!(!backlog.end());
        backlog.note(BACKLOG_LARGE, start);
        assert!(backlog.end());
    }
}
