//! Waits for a word to change. Unlike a condition variable, a futex reports that a signal handler ran, so that a
//! blocked call reacts to Ctrl-C at once.

use std::time::Instant;

#[cfg(not(zeroxide_shuttle))]
use rustix::{
    io::Errno,
    thread::futex::{self, Flags},
};

use crate::sys::sync::atomic::AtomicU32;

/// The result of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Woken, perhaps spuriously, or the word differed from the start: check again.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// A signal handler ran in this thread.
    #[cfg_attr(zeroxide_shuttle, expect(dead_code, reason = "there are no signals"))]
    Interrupted,
}

/// Sleeps while `word` holds `expected`, until woken or until the deadline.
#[cfg(not(zeroxide_shuttle))]
pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Wait {
    let timeout = super::time_until(deadline);
    match futex::wait(word, Flags::PRIVATE, expected, timeout.as_ref()) {
        Ok(()) | Err(Errno::AGAIN) => Wait::Woken,
        Err(Errno::INTR) => Wait::Interrupted,
        Err(Errno::TIMEDOUT) => Wait::TimedOut,
        // There are no other errors with a valid word and time; checking again is right in any case.
        Err(_) => Wait::Woken,
    }
}

/// Wakes all threads that wait for `word`. Change the word first.
#[cfg(not(zeroxide_shuttle))]
pub(crate) fn wake_all(word: &AtomicU32) {
    // Fails only for an invalid address, and this one comes from a reference.
    let _ = futex::wake(word, Flags::PRIVATE, i32::MAX as u32);
}

#[cfg(zeroxide_shuttle)]
pub(crate) use super::simulated::wake as wake_all;

#[cfg(zeroxide_shuttle)]
pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> Wait {
    match super::simulated::sleep_on(word, expected, deadline) {
        true => Wait::Woken,
        false => Wait::TimedOut,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_changed_word_does_not_wait() {
        assert_eq!(wait(&AtomicU32::new(1), 0, None), Wait::Woken);
    }

    #[test]
    fn the_deadline_ends_it() {
        let start = Instant::now();
        let deadline = start + Duration::from_millis(20);
        assert_eq!(wait(&AtomicU32::new(0), 0, Some(deadline)), Wait::TimedOut);
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert_eq!(wait(&AtomicU32::new(0), 0, Some(start)), Wait::TimedOut);
    }

    #[test]
    fn waking_ends_it() {
        let word = Arc::new(AtomicU32::new(0));
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let word = word.clone();
                thread::spawn(move || {
                    while word.load(Ordering::Acquire) == 0 {
                        assert_eq!(wait(&word, 0, None), Wait::Woken);
                    }
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(20));
        word.store(1, Ordering::Release);
        wake_all(&word);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    }
}
