//! One waiting thread: how it falls asleep, and how another thread wakes it.
//!
//! A thread sleeps in one of two ways: on a word, or on descriptors, of which one is a bell of its own. Which of the two
//! is decided by the thread before each sleep, and recorded in the word for the thread that wakes it. The system calls
//! belong to the caller, who implements [`System`].
//!
//! ```text
//!   thread                                         notifier
//!   it is in a list, and has nothing to do         an event; it finds the thread in the list
//!   S1  AWAKE -> asleep, or return (sleep)         N1  swap(NOTIFIED): was it asleep?   (notify)
//!   S2  sleep                                      N2  then the system wakes it         (rouse)
//!   S3  swap(AWAKE)
//! ```
//!
//! # Why no notice is lost
//!
//! The word is only changed by swaps and exchanges, which happen one after the other. If N1 comes before S1, the thread
//! does not fall asleep. If it comes between S1 and S3, N1 finds the thread asleep, and N2 ends the sleep: on the word,
//! because the system compares it with what S1 wrote before it lets the thread sleep; on descriptors, because a bell
//! stays readable until its thread silences it, after the sleep. If N1 comes after S3, the next sleep ends at once.
//!
//! N2 may be late, so it may end a later sleep for no reason. A thread therefore checks after each sleep whether anything
//! has happened, and sleeps again if not. For the same reason only one of several notifiers has to call the system.

use crate::primitive::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const ON_WORD: u32 = 1;
const ON_DESCRIPTORS: u32 = 2;
const NOTIFIED: u32 = 3;

/// Where a thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// On the word of its parker.
    Word,
    /// On descriptors, and on a bell that is one of them.
    Descriptors,
}

impl On {
    fn asleep(self) -> u32 {
        match self {
            On::Word => ON_WORD,
            On::Descriptors => ON_DESCRIPTORS,
        }
    }
}

/// How the system wakes a thread.
pub trait System {
    /// Ends the sleep on a word that no longer holds what the sleeper expects.
    fn wake_word(&self, word: &AtomicU32);

    /// Sounds the bell of the thread.
    fn sound_bell(&self);
}

/// A thread that can wait. See the module text.
#[derive(Debug)]
pub struct Parker<S> {
    word: AtomicU32,
    system: S,
}

impl<S: System> Parker<S> {
    /// A thread that is awake.
    pub fn new(system: S) -> Self {
        Self {
            word: AtomicU32::new(AWAKE),
            system,
        }
    }

    /// The system's part, with the bell of the thread.
    pub fn system(&self) -> &S {
        &self.system
    }

    /// The thread: sleeps by `sleep`, on the word while it holds the given number, or on descriptors. `None` if it was
    /// notified already. Check afterwards whether anything has happened.
    #[inline]
    pub fn sleep<T>(&self, on: On, sleep: impl FnOnce(&AtomicU32, u32) -> T) -> Option<T> {
        let asleep = on.asleep();
        // Acquire here and below pairs with `notify`: what was done before a notice is visible to the thread that got it.
        let fell_asleep =
            self.word
                .compare_exchange(AWAKE, asleep, Ordering::AcqRel, Ordering::Acquire);
        let slept = fell_asleep.ok().map(|_| sleep(&self.word, asleep));
        self.word.swap(AWAKE, Ordering::Acquire);
        slept
    }

    /// Another thread, after an event: ends the sleep. Returns where the thread may be asleep; the caller, and no other,
    /// then has to [`rouse`](Self::rouse) it.
    #[inline]
    pub fn notify(&self) -> Option<On> {
        match self.word.swap(NOTIFIED, Ordering::AcqRel) {
            ON_WORD => Some(On::Word),
            ON_DESCRIPTORS => Some(On::Descriptors),
            _ => None,
        }
    }

    /// Has the system wake the thread.
    pub fn rouse(&self, on: On) {
        match on {
            On::Word => self.system.wake_word(&self.word),
            On::Descriptors => self.system.sound_bell(),
        }
    }
}
