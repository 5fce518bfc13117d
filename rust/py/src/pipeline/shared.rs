//! A fetch that several threads use.

use std::os::fd::RawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use zeroxide_pipeline::client::ClientError;
use zeroxide_pipeline::reader::{Fetch as CoreFetch, Fetched};

/// A fetch that threads use in turn. Unlike with a plain mutex, a thread waits for its turn until a deadline, so that
/// signal handlers run meanwhile.
pub(super) struct Shared {
    fetch: Mutex<CoreFetch>,
    taken: Mutex<bool>,
    free: Condvar,
}

/// Held while it is a thread's turn.
struct Turn<'a>(&'a Shared);

impl Shared {
    pub(super) fn new(fetch: CoreFetch) -> Shared {
        Shared {
            fetch: Mutex::new(fetch),
            taken: Mutex::new(false),
            free: Condvar::new(),
        }
    }

    /// Waits for the next batch; `resume` starts a new wait.
    pub(super) fn step(&self, until: Instant, resume: bool) -> Result<Fetched, ClientError> {
        let Some(_turn) = self.turn(until) else {
            return Ok(Fetched::Waiting);
        };
        let mut fetch = self.fetch.lock().unwrap_or_else(PoisonError::into_inner);
        if resume {
            fetch.resume();
        }
        fetch.advance(Some(until))
    }

    /// Like [`CoreFetch::position`]; None while another thread is waiting.
    pub(super) fn try_position(&self) -> Option<(u64, u64)> {
        self.fetch.try_lock().ok()?.position()
    }

    pub(super) fn fds(&self) -> Result<Vec<RawFd>, ClientError> {
        let fetch = self.fetch.lock().unwrap_or_else(PoisonError::into_inner);
        fetch.fds()
    }

    /// Like [`CoreFetch::close`].
    pub(super) fn close(&self) {
        let mut fetch = self.fetch.lock().unwrap_or_else(PoisonError::into_inner);
        fetch.close();
    }

    /// None if the other threads keep it beyond the deadline.
    fn turn(&self, until: Instant) -> Option<Turn<'_>> {
        let left = until.saturating_duration_since(Instant::now());
        let taken = self.taken();
        let waited = self.free.wait_timeout_while(taken, left, |taken| *taken);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!std::mem::replace(&mut *taken, true)).then(|| Turn(self))
    }

    fn taken(&self) -> MutexGuard<'_, bool> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken() = false;
        self.0.free.notify_one();
    }
}
