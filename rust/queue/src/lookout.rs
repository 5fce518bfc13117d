//! Lets one thread wait for an event of its own and for news at the same time.
//!
//! A thread that only waits for news sleeps in whatever way the writers wake. A thread that also waits for something
//! else, such as a connection, sleeps on that and on a bell of its own: an eventfd, polled together with the
//! connection. The lookout contains the protocol that makes this safe; the bell and the sleep are up to the caller.
//!
//! ```text
//!   waiter                                         writer
//!   enter: the place is taken, the bell armed      news
//!   are there news? then do not sleep              ring: true = sound the bell
//!   sleep
//!   silence the bell, if it sounded
//!   leave: the bell is disarmed, the place free
//! ```
//!
//! # Why no wake-up is lost
//!
//! For the thread in the lookout, the proof is that of [`doorbell`](crate::doorbell): it arms the bell before it looks
//! for news, and writers ring after they made some.
//!
//! For two threads that are in the lookout one after the other, the order of the last two steps matters. A writer that
//! finds the bell armed by the second thread sounds it for the second. If the first thread had not silenced it yet, it
//! would do so now, and the second would keep sleeping.
//!
//! A writer may be late: it found the bell armed by the first thread, and sounds it while the second sleeps. The second
//! then wakes without news, and looks.

use crate::doorbell::Doorbell;
use crate::primitive::{AtomicBool, Ordering};

/// See the module text.
#[derive(Debug, Default)]
pub struct Lookout {
    taken: AtomicBool,
    bell: Doorbell,
}

/// The occupied lookout. Dropping this leaves it; silence the bell before that.
#[derive(Debug)]
#[must_use = "it is left at once otherwise"]
pub struct Place<'a> {
    lookout: &'a Lookout,
}

impl Lookout {
    /// A lookout that is not occupied.
    pub fn new() -> Lookout {
        Lookout::default()
    }

    /// Enters the lookout, unless another thread is in it. Look for news before sleeping.
    #[inline]
    pub fn enter(&self) -> Option<Place<'_>> {
        // Acquire: everything the previous thread did, in particular silencing the bell, happens before this.
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        self.bell.arm();
        Some(Place { lookout: self })
    }

    /// Writer: call after making news. `true` means that a thread may sleep in the lookout, and that this writer, and
    /// no other, has to sound its bell.
    #[inline]
    pub fn ring(&self) -> bool {
        self.bell.ring()
    }
}

impl Drop for Place<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lookout.bell.disarm();
        self.lookout.taken.store(false, Ordering::Release);
    }
}
