//! A descriptor that shows other event loops whether there is something to do.

use std::os::fd::{AsFd, BorrowedFd};

use crate::error::Result;
use crate::sys::sync::atomic::{AtomicBool, Ordering, fence};
use crate::sys::sync::{Mutex, OnceLock, PoisonError};
use crate::sys::wake_fd::WakeFd;

/// The descriptor and its level.
#[derive(Default)]
pub(crate) struct Level {
    fd: OnceLock<WakeFd>,
    raised: AtomicBool,
    /// Held while the descriptor and `raised` change from one level to the other. If two threads do this in opposite
    /// directions, the later one must win for both.
    turn: Mutex<()>,
}

impl Level {
    /// Returns the descriptor, which is created by the first call. The caller then sets its level.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        if let Some(fd) = self.fd.get() {
            return Ok(fd.as_fd());
        }
        let fresh = WakeFd::new()?;
        let fd = self.fd.get_or_init(|| fresh).as_fd();
        // A thread that publishes work fences, too, before it checks whether there is a descriptor. So either it finds
        // the descriptor, or the thread that created the descriptor finds the work.
        fence(Ordering::SeqCst);
        Ok(fd)
    }

    /// Whether there is a descriptor.
    #[inline]
    pub(crate) fn has_descriptor(&self) -> bool {
        self.fd.get().is_some()
    }

    /// Makes the descriptor readable, if there is one.
    pub(crate) fn raise(&self) {
        let Some(fd) = self.fd.get() else { return };
        // Pairs with the fence in `lower`: either that thread sees what was done before this call, or this call sees
        // that the descriptor was lowered.
        fence(Ordering::SeqCst);
        if self.raised.load(Ordering::Acquire) {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.raised.load(Ordering::Relaxed) {
            fd.signal();
            // Only after `signal`: a thread that finds `raised` set takes the descriptor for readable.
            self.raised.store(true, Ordering::Release);
        }
    }

    /// Makes the descriptor unreadable. The caller must check for work afterwards, and raise the descriptor again if
    /// there is some. Otherwise, a notification just before this call would be lost.
    pub(crate) fn lower(&self) {
        let Some(fd) = self.fd.get() else { return };
        if self.raised.load(Ordering::Relaxed) {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            if self.raised.swap(false, Ordering::Relaxed) {
                fd.drain();
            }
        }
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys::poll::{self, Ready};

    fn is_readable(level: &Level) -> bool {
        let fd = level.descriptor().unwrap().as_raw_fd();
        let readable = Ready {
            readable: true,
            ..Ready::default()
        };
        let found = poll::wait(&[(fd, readable)], Some(Instant::now())).unwrap();
        found[0].readable
    }

    #[test]
    fn the_descriptor_has_the_level_that_the_last_call_set() {
        let level = Level::default();
        level.raise();
        assert!(!is_readable(&level));
        level.raise();
        level.raise();
        assert!(is_readable(&level));
        level.lower();
        level.lower();
        assert!(!is_readable(&level));
    }

    /// A poster counts its work and raises the level. A worker that finds no work lowers the level and checks again.
    #[test]
    fn raising_during_lowering_loses_no_work() {
        let level = Arc::new(Level::default());
        level.descriptor().unwrap();
        let work = Arc::new(AtomicUsize::new(0));
        const POSTS: usize = 100_000;
        let poster = {
            let (level, work) = (level.clone(), work.clone());
            thread::spawn(move || {
                for _ in 0..POSTS {
                    work.fetch_add(1, Ordering::Relaxed);
                    level.raise();
                }
            })
        };
        let mut done = 0;
        while done < POSTS {
            let found = work.swap(0, Ordering::Relaxed);
            done += found;
            if found == 0 {
                level.lower();
                if work.load(Ordering::Relaxed) > 0 {
                    level.raise();
                    // The poster may be about to raise the level. If so, the worker's `raise` leaves it to the poster.
                    let patience = Instant::now() + Duration::from_secs(20);
                    while !is_readable(&level) {
                        assert!(Instant::now() < patience, "the work was forgotten");
                        thread::yield_now();
                    }
                }
            }
        }
        poster.join().unwrap();
        level.lower();
        assert!(!is_readable(&level));
    }
}
