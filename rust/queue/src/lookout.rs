//! A place for one thread that sleeps until something of its own happens, and is to hear of news as well.
//!
//! Who waits for news only sleeps by whatever means the writers wake. Who waits for something else, say a connection,
//! sleeps with an eye on that and an ear for a bell of its own: an eventfd, polled beside the connection. The place keeps
//! what makes that safe; the bell and the sleep are the business of the caller.
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
//! For the one in the place it is the proof of [`doorbell`](crate::doorbell): it arms before it looks for news, writers
//! ring after they made some.
//!
//! Between two that are in it one after the other, the order of the last two steps counts. A writer that finds the bell
//! armed by the second sounds it for the second; were the first still about to silence it, the second would sleep on.
//!
//! A writer may be late: it found the bell armed by the first, and sounds it when the second sleeps. The second wakes for
//! nothing, and looks.

use crate::doorbell::Doorbell;
use crate::primitive::{AtomicBool, Ordering};

/// See the module text.
#[derive(Debug, Default)]
pub struct Lookout {
    taken: AtomicBool,
    bell: Doorbell,
}

/// The place, taken. Dropping it leaves it: silence the bell before.
#[derive(Debug)]
#[must_use = "it is left at once otherwise"]
pub struct Place<'a> {
    lookout: &'a Lookout,
}

impl Lookout {
    /// A free place.
    pub fn new() -> Lookout {
        Lookout::default()
    }

    /// Takes the place, unless somebody else has it. Look for news before sleeping.
    #[inline]
    pub fn enter(&self) -> Option<Place<'_>> {
        // Acquire: what the last one did, silencing the bell above all, lies behind us.
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        self.bell.arm();
        Some(Place { lookout: self })
    }

    /// Writer: call after making news. `true` means that somebody may sleep in the place, and that of all writers this one
    /// has to sound its bell.
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
