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
    own: Check,
    others: Check,
}

/// When to check whether a backlog is still there.
#[derive(Default)]
struct Check(Option<Instant>);

impl Backlog {
    /// Records that `bytes` are waiting at this connection now.
    #[inline]
    pub(super) fn note(&mut self, bytes: u64, now: Instant) {
        self.own.note(bytes, now);
    }

    /// The same for what waits at other connections. It does not put the check off, because this connection does not
    /// notice when that becomes less.
    #[inline]
    pub(super) fn note_others(&mut self, bytes: u64, now: Instant) {
        if self.others.0.is_none() {
            self.others.note(bytes, now);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.own.0, self.others.0].into_iter().flatten().min()
    }

    /// Handles the timer, with `own` bytes waiting here now and `others` elsewhere. Returns true if it is time to return
    /// memory. The memory freed here is returned even while much waits at other connections.
    pub(super) fn handle_timeout(&mut self, own: u64, others: u64, now: Instant) -> bool {
        let is_gone = self.own.handle_timeout(own, now);
        self.others.handle_timeout(others, now) || is_gone
    }

    /// Handles the end of the connection. Returns true if there is memory to return.
    pub(super) fn end(&mut self) -> bool {
        let own = self.own.0.take();
        own.or(self.others.0.take()).is_some()
    }
}

impl Check {
    #[inline]
    fn note(&mut self, bytes: u64, now: Instant) {
        if bytes >= BACKLOG_LARGE {
            self.0 = now.checked_add(BACKLOG_GONE);
        }
    }

    /// Returns true if the check is due and finds that the backlog is gone.
    fn handle_timeout(&mut self, bytes: u64, now: Instant) -> bool {
        if self.0.is_none_or(|at| at > now) {
            return false;
        }
        self.0 = None;
        self.note(bytes, now);
        self.0.is_none()
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
        assert!(!backlog.handle_timeout(0, 0, start));
        // The backlog is still there, so the timer starts again.
        assert!(!backlog.handle_timeout(BACKLOG_LARGE, 0, start + BACKLOG_GONE));
        assert_eq!(backlog.poll_timeout(), Some(start + 2 * BACKLOG_GONE));
        assert!(backlog.handle_timeout(BACKLOG_LARGE / 2, 0, start + 2 * BACKLOG_GONE));
        assert!(!backlog.handle_timeout(0, 0, start + 3 * BACKLOG_GONE));
        // The messages at other connections are checked after that time, however often this one has something to do.
        backlog.note_others(BACKLOG_LARGE, start);
        backlog.note_others(BACKLOG_LARGE, start + BACKLOG_GONE / 2);
        assert_eq!(backlog.poll_timeout(), Some(start + BACKLOG_GONE));
        assert!(backlog.handle_timeout(0, 0, start + BACKLOG_GONE));
        assert!(!backlog.end());
        backlog.note(BACKLOG_LARGE, start);
        assert!(backlog.end());
        backlog.note_others(BACKLOG_LARGE, start);
        assert!(backlog.end());
    }

    #[test]
    fn memory_freed_here_does_not_wait_for_other_connections() {
        let start = Instant::now();
        let mut backlog = Backlog::default();
        backlog.note(BACKLOG_LARGE, start);
        backlog.note_others(BACKLOG_LARGE, start);
        assert!(backlog.handle_timeout(0, BACKLOG_LARGE, start + BACKLOG_GONE));
        assert!(!backlog.handle_timeout(0, BACKLOG_LARGE, start + 2 * BACKLOG_GONE));
        assert!(backlog.handle_timeout(0, 0, start + 3 * BACKLOG_GONE));
    }
}
