//! The protocol between a reader that wants to sleep and writers that should pay for a wake-up only if it sleeps.
//!
//! Waking a thread costs a system call, so a writer must know whether it is needed. The doorbell only keeps that one
//! bit. The caller decides what a wake-up is: an eventfd, a futex, a condition variable.
//!
//! # Why no wake-up is lost
//!
//! Reader and writer each store first and then load what the other one stores:
//!
//! ```text
//!   reader                                writer
//!   R1  armed = true        (arm)         W1  publish the message
//!   R2  fence(SeqCst)       (arm)         W2  fence(SeqCst)           (ring)
//!   R3  anything published? no: sleep     W3  armed? yes: wake        (ring)
//! ```
//!
//! All threads agree on one order of the two fences. If R2 comes first, W3 cannot miss R1: the writer sees the armed
//! bell and wakes the reader. If W2 comes first, R3 cannot miss W1: the reader sees the message and stays awake.
//! Release and acquire alone would allow both loads to see old values (R3 before W1 *and* W3 before R1), because a
//! processor may keep each store in its buffer while a later load already executes. Both fences are needed, and each
//! store must come before its fence.
//!
//! The reader therefore has to look again *after* arming. If it looked, armed and slept, it could sleep next to a full
//! queue.

use crate::primitive::{AtomicBool, Ordering, fence};

/// One bit that tells whether the reader sleeps, with the fences that make it reliable.
///
/// ```
/// use zeroxide_queue::doorbell::Doorbell;
///
/// let bell = Doorbell::new();
/// assert!(!bell.ring()); // the reader is awake: nothing to do
/// bell.arm();
/// assert!(bell.ring()); // the reader sleeps: this writer has to wake it
/// assert!(!bell.ring()); // once is enough
/// ```
#[derive(Debug)]
pub struct Doorbell {
    armed: AtomicBool,
}

impl Doorbell {
    /// A bell that is not armed, because its reader is awake.
    #[cfg(not(zeroxide_loom))]
    pub const fn new() -> Self {
        Self {
            armed: AtomicBool::new(false),
        }
    }

    /// A bell that is not armed, because its reader is awake.
    #[cfg(zeroxide_loom)]
    pub fn new() -> Self {
        Self {
            armed: AtomicBool::new(false),
        }
    }

    /// Reader: announces that it is about to sleep. It must look for messages once more before sleeping. If there are any,
    /// it may [`disarm`](Self::disarm) the bell, unless another thread may sleep because of an earlier look.
    #[inline]
    pub fn arm(&self) {
        // Release pairs with `ring`, for the state that the reader prepared for its wake-up. The rest is up to the
        // fence below. A store would be sufficient, but every other change of the bit is a swap. loom puts swaps in one
        // order, while it allows more reorderings for a store than the language does.
        self.armed.swap(true, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Reader: stays awake. `false` means that a writer has already rung: its wake-up is in transit or has arrived, and
    /// everything it published before ringing is visible now.
    #[inline]
    pub fn disarm(&self) -> bool {
        // Acquire pairs with the fence in `ring`, for the guarantee about `false`.
        self.armed.swap(false, Ordering::Acquire)
    }

    /// Writer: call after publishing. `true` means that the reader sleeps, and that this writer, and no other, has to
    /// wake it. Everything the reader did before it armed the bell is visible now.
    #[inline]
    pub fn ring(&self) -> bool {
        fence(Ordering::SeqCst);
        // A load first: while the reader is awake, writers share the cache line instead of taking it from each other.
        // The swap then selects one of the writers that saw the armed bell. Acquire: see `arm`. The fence above has
        // already ordered the earlier publication.
        self.armed.load(Ordering::Relaxed) && self.armed.swap(false, Ordering::Acquire)
    }

    /// Whether the bell is armed, as a hint for threads that do not ring it.
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
