//! When memory that many connections have freed is worth returning to the system. Each of them may have too little for that.

use std::time::{Duration, Instant};

use crate::pace::BACKLOG_LARGE;
use crate::sys::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// For how long connections may keep memory for the next burst.
const KEPT: Duration = Duration::from_secs(3);

/// See the module text.
#[derive(Default)]
pub(super) struct Returns {
    /// What incomplete messages of ended connections have freed since memory was last returned.
    freed: AtomicU64,
    /// A connection has a [`Watch`].
    is_watched: AtomicBool,
}

/// One connection waits for the end of what waits at all of them.
#[derive(Default)]
pub(super) struct Watch {
    little_since: Option<Instant>,
}

impl Returns {
    /// Records that this many bytes were freed. Returns whether it is time to return memory.
    pub(super) fn have_freed(&self, bytes: u64) -> bool {
        let freed = self.freed.fetch_add(bytes, Relaxed) + bytes;
        freed >= BACKLOG_LARGE && self.freed.swap(0, Relaxed) >= BACKLOG_LARGE
    }

    /// Some if the connection that asks has to watch, with this many bytes waiting.
    pub(super) fn watch(&self, waiting: u64) -> Option<Watch> {
        (self.is_needed(waiting) && !self.is_watched.swap(true, Relaxed)).then(Watch::default)
    }

    /// Whether some connection has to watch, with this many bytes waiting.
    #[inline]
    pub(super) fn is_needed(&self, waiting: u64) -> bool {
        waiting >= BACKLOG_LARGE && !self.is_watched.load(Relaxed)
    }

    /// The watch is over.
    pub(super) fn stop_watching(&self) {
        self.is_watched.store(false, Relaxed);
    }
}

impl Watch {
    /// Records what waits now. Returns 0 once it has been little for so long that no connection keeps memory, and at least
    /// [`BACKLOG_LARGE`] before.
    pub(super) fn note(&mut self, waiting: u64, now: Instant) -> u64 {
        if waiting >= BACKLOG_LARGE {
            self.little_since = None;
            return waiting;
        }
        let since = *self.little_since.get_or_insert(now);
        match now.saturating_duration_since(since) < KEPT {
            true => BACKLOG_LARGE,
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_returned_when_ended_connections_have_freed_enough_together() {
        let returns = Returns::default();
        let returned = (0..100).filter(|_| returns.have_freed(BACKLOG_LARGE.div_ceil(10)));
        assert_eq!(returned.count(), 10);
    }

    #[test]
    fn one_connection_watches_until_little_has_waited_for_a_while() {
        let returns = Returns::default();
        let start = Instant::now();
        assert!(returns.watch(BACKLOG_LARGE - 1).is_none());
        let mut watch = returns.watch(BACKLOG_LARGE).expect("a watch");
        assert!(returns.watch(BACKLOG_LARGE).is_none());
        assert!(watch.note(0, start) > 0);
        // There is a backlog again.
        assert!(watch.note(BACKLOG_LARGE, start + KEPT) > 0);
        assert!(watch.note(0, start + 2 * KEPT) > 0);
        assert!(watch.note(100, start + 3 * KEPT - Duration::from_millis(1)) > 0);
        assert_eq!(watch.note(0, start + 3 * KEPT), 0);
        returns.stop_watching();
        assert!(returns.watch(BACKLOG_LARGE).is_some());
    }
}
