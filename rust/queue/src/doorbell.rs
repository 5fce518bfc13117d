//! "Wake me only if I sleep": the agreement between a reader that wants to sleep and writers that
//! do not want to pay for waking it.
//!
//! Waking a thread costs a system call, so a writer must know whether it is needed. The bell only
//! keeps that one bit; what a wake-up is (an eventfd, a futex, a condition variable) is the
//! business of the caller.
//!
//! # Why no wake-up is lost
//!
//! Reader and writer both store first and look second, each at what the other one stores:
//!
//! ```text
//!   reader                                writer
//!   R1  armed = true        (arm)         W1  publish the message
//!   R2  fence(SeqCst)       (arm)         W2  fence(SeqCst)           (ring)
//!   R3  anything published? no: sleep     W3  armed? yes: wake        (ring)
//! ```
//!
//! The two fences have one order that all threads agree on. If R2 comes first, W3 cannot miss R1:
//! the writer sees the bell armed and wakes the reader. If W2 comes first, R3 cannot miss W1: the
//! reader sees the message and stays awake. Release and acquire alone would allow both to look at
//! the past (R3 before W1 *and* W3 before R1): a processor may keep each store in its buffer while
//! the load behind it already executes. Both fences are needed, and both stores must come before
//! their fence.
//!
//! The reader therefore has to look again *after* arming. A reader that looks, arms and sleeps can
//! sleep next to a full queue.

use crate::primitive::{AtomicBool, Ordering, fence};

/// One bit that says whether the reader sleeps, and the fences that make it trustworthy.
///
/// ```
/// use zeroxide_queue::doorbell::Doorbell;
///
/// let bell = Doorbell::new();
/// assert!(!bell.ring()); // nobody sleeps: nothing to do
/// bell.arm();
/// assert!(bell.ring()); // the reader sleeps: this writer has to wake it
/// assert!(!bell.ring()); // once is enough
/// ```
#[derive(Debug)]
pub struct Doorbell {
    armed: AtomicBool,
}

impl Doorbell {
    /// A bell that is not armed: its reader is awake.
    #[cfg(not(zeroxide_loom))]
    pub const fn new() -> Self {
        Self {
            armed: AtomicBool::new(false),
        }
    }

    /// A bell that is not armed: its reader is awake.
    #[cfg(zeroxide_loom)]
    pub fn new() -> Self {
        Self {
            armed: AtomicBool::new(false),
        }
    }

    /// Reader: announces the intention to sleep. Look for messages once more before sleeping, and
    /// [`disarm`](Self::disarm) when there are any.
    #[inline]
    pub fn arm(&self) {
        // Release pairs with `ring`, for what the reader made ready to be woken by. Otherwise the fence
        // behind it does the work. A store would do, too; but every other change of the bit is a swap,
        // and loom puts swaps in one order, where it allows more for a store than the language does.
        self.armed.swap(true, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Reader: stays awake after all. `false` means that a writer has already rung: its wake-up is
    /// on the way, or has arrived, and what it published before ringing is visible now.
    #[inline]
    pub fn disarm(&self) -> bool {
        // Acquire pairs with the fence in `ring`, for the promise about `false`.
        self.armed.swap(false, Ordering::Acquire)
    }

    /// Writer: call after publishing. `true` means that the reader sleeps, and that of all writers
    /// this one has to wake it; what the reader did before it armed the bell is visible now.
    #[inline]
    pub fn ring(&self) -> bool {
        fence(Ordering::SeqCst);
        // A load first: while the reader is awake, writers share the line instead of taking it from
        // each other. The swap then picks one of the writers who saw the bell armed. Acquire: see
        // `arm`; the fence above has already ordered what was published before it.
        self.armed.load(Ordering::Relaxed) && self.armed.swap(false, Ordering::Acquire)
    }

    /// Whether the bell is armed, as far as anybody can tell who does not ring it.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}
