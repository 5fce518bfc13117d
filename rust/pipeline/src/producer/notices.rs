//! Notices for a producer's user: which rows are on disk, and which never will be.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Consecutive rows with the same outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The index of their collector.
    pub collector: usize,
    /// The first row, counted from 0 in this run.
    pub first_row: u64,
    /// The number of rows.
    pub rows: u64,
    /// The sequence number of the first row, if it got one.
    pub first_seq: Option<u64>,
    /// The offset of the first row. None if the collector acknowledged the rows together with later ones, because it had no
    /// room for each reply, or if it had some of them already when they were sent again.
    pub offset: Option<u64>,
    /// The reason why they are lost; None = they are on the collector's disk.
    pub lost: Option<Arc<str>>,
}

impl Notice {
    /// Whether `next` has the same outcome for the following rows.
    fn goes_on_with(&self, next: &Notice) -> bool {
        let follows = |first: Option<u64>, next: Option<u64>| match (first, next) {
            (Some(first), Some(next)) => first + self.rows == next,
            (first, next) => first == next,
        };
        self.collector == next.collector
            && self.first_row + self.rows == next.first_row
            && follows(self.first_seq, next.first_seq)
            && follows(self.offset, next.offset)
            && self.lost == next.lost
    }
}

/// Notices that the user has not taken. Consecutive rows share a notice, so a user that takes them rarely needs little
/// memory.
#[derive(Default)]
pub struct Notices {
    wanted: AtomicBool,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    notices: VecDeque<Notice>,
    is_over: bool,
    /// A stream whose second end gets a byte when there are notices for the reader of the first.
    bell: Option<(UnixStream, UnixStream)>,
    rung: bool,
}

impl Queue {
    fn ring(&mut self) {
        if let Some((_, bell)) = &mut self.bell
            && !self.rung
        {
            // A full stream is readable already.
            let _ = bell.write(&[1]);
            self.rung = true;
        }
    }
}

impl Notices {
    /// Enables notices.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    /// Whether notices are enabled.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// The number of notices that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.queue().notices.len()
    }

    /// Adds notices.
    pub fn add(&self, notices: impl IntoIterator<Item = Notice>) {
        if !self.is_wanted() {
            return;
        }
        let mut queue = self.queue();
        for notice in notices {
            match queue.notices.back_mut() {
                Some(last) if last.goes_on_with(&notice) => last.rows += notice.rows,
                _ => queue.notices.push_back(notice),
            }
        }
        queue.ring();
        drop(queue);
        self.arrived.notify_all();
    }

    /// Wakes the reader for another reason.
    pub fn nudge(&self) {
        if self.is_wanted() {
            self.queue().ring();
        }
    }

    /// Ends the notices.
    pub fn end(&self) {
        let mut queue = self.queue();
        queue.is_over = true;
        queue.ring();
        drop(queue);
        self.arrived.notify_all();
    }

    /// Takes all notices.
    pub fn take(&self) -> Vec<Notice> {
        let mut queue = self.queue();
        if queue.rung {
            queue.rung = false;
            if let Some((bell, _)) = &mut queue.bell {
                let _ = bell.read(&mut [0; 16]);
            }
        }
        queue.notices.drain(..).collect()
    }

    /// Waits for notices until a deadline. Returns whether there are any; `None` after the end.
    pub fn wait(&self, until: Instant) -> Option<bool> {
        let mut queue = self.queue();
        while queue.notices.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if queue.is_over {
                return None;
            }
            if left.is_zero() {
                return Some(false);
            }
            let waited = self.arrived.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(true)
    }

    /// A descriptor that becomes readable when there are notices.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn fd(&self) -> std::io::Result<RawFd> {
        let mut queue = self.queue();
        if let Some((bell, _)) = &queue.bell {
            return Ok(bell.as_raw_fd());
        }
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let fd = ours.as_raw_fd();
        queue.bell = Some((ours, theirs));
        if !queue.notices.is_empty() || queue.is_over {
            queue.ring();
        }
        Ok(fd)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(first_row: u64, rows: u64, offset: Option<u64>) -> Notice {
        Notice {
            collector: 0,
            first_row,
            rows,
            first_seq: Some(first_row),
            offset,
            lost: None,
        }
    }

    #[test]
    fn notices_are_kept_only_if_they_are_wanted() {
        let notices = Notices::default();
        notices.add([notice(0, 1, None)]);
        assert!(notices.take().is_empty());
    }

    #[test]
    fn rows_that_follow_each_other_are_one_notice() {
        let notices = Notices::default();
        notices.want();
        notices.add([notice(0, 5, Some(100)), notice(5, 5, Some(105))]);
        notices.add([notice(10, 5, Some(200)), notice(15, 5, None)]);
        let taken = notices.take();
        assert_eq!(
            taken,
            [
                notice(0, 10, Some(100)),
                notice(10, 5, Some(200)),
                notice(15, 5, None)
            ]
        );
        assert_eq!(notices.wait(Instant::now()), Some(false));
        notices.end();
        assert_eq!(notices.wait(Instant::now()), None);
    }

    #[test]
    fn the_bell_rings_once_and_falls_silent() {
        let notices = Notices::default();
        notices.want();
        assert_eq!(
            notices.fd().expect("a bell"),
            notices.fd().expect("the same")
        );
        let rung = || notices.queue().rung;
        notices.add([notice(0, 1, None)]);
        notices.add([notice(1, 1, None)]);
        assert!(rung());
        assert_eq!(notices.take().len(), 1);
        assert!(!rung());
    }
}
