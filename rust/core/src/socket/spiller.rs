//! The signals between a socket and its thread for messages on disk.

use std::time::{Duration, Instant};

use crate::sys::clock;
use crate::sys::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The socket's side of its thread.
#[derive(Default)]
pub(super) struct Spiller {
    work: Mutex<Work>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Work {
    /// Something has happened since the thread last looked.
    is_due: bool,
    /// The socket is closed, except for the messages on disk, which are delivered until then.
    pub(super) closing: Option<Closing>,
    pub(super) is_over: bool,
}

/// When a socket that has messages on disk is closed at the latest.
#[derive(Clone, Copy)]
pub(super) enum Closing {
    At(Instant),
    WhenDelivered,
}

impl Closing {
    pub(super) fn after(linger: Option<Duration>) -> Closing {
        let at = linger.and_then(|linger| clock::now().checked_add(linger));
        at.map_or(Closing::WhenDelivered, Closing::At)
    }

    pub(super) fn has_passed(self) -> bool {
        matches!(self, Closing::At(at) if at <= clock::now())
    }
}

impl Spiller {
    /// Wakes the thread, which then looks at the socket.
    pub(super) fn ring(&self) {
        self.change(|work| work.is_due = true);
    }

    /// Lets the thread close the socket when its messages are delivered, or at that time.
    pub(super) fn close(&self, closing: Closing) {
        self.change(|work| {
            work.closing = Some(closing);
            work.is_due = true;
        });
    }

    /// Whether the thread will close the socket.
    pub(super) fn is_closing(&self) -> bool {
        self.lock().closing.is_some()
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.change(|work| work.is_over = true);
    }

    fn change(&self, change: impl FnOnce(&mut Work)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }

    /// Waits until there is something to do, or until this time.
    pub(super) fn wait(&self, retry: Option<Instant>) -> Work {
        let mut work = self.lock();
        loop {
            let closing = match work.closing {
                Some(Closing::At(at)) => Some(at),
                _ => None,
            };
            let until = [retry, closing].into_iter().flatten().min();
            let rest = until.map(|at| at.saturating_duration_since(clock::now()));
            if work.is_over || work.is_due || rest == Some(Duration::ZERO) {
                work.is_due = false;
                return *work;
            }
            work = match rest {
                None => self
                    .changed
                    .wait(work)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(rest) => {
                    let waited = self.changed.wait_timeout(work, rest);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
