//! Whether the peer behind the other end of a pipe is there.

use crate::sys::sync::atomic::{AtomicU8, Ordering};

/// The state of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Presence {
    /// It has not hung up.
    There,
    /// It has hung up, and the next connection uses the same pipe.
    Away,
    /// It has hung up, and the pipe ends with the connection.
    Gone,
}

/// A [`Presence`] that the other end changes.
pub(super) struct PresenceCell(AtomicU8);

impl PresenceCell {
    pub(super) fn new() -> PresenceCell {
        PresenceCell(AtomicU8::new(Presence::There as u8))
    }

    pub(super) fn get(&self) -> Presence {
        Presence::of(self.0.load(Ordering::Acquire))
    }

    /// Returns the state before.
    pub(super) fn set(&self, presence: Presence) -> Presence {
        Presence::of(self.0.swap(presence as u8, Ordering::AcqRel))
    }
}

impl Presence {
    fn of(number: u8) -> Presence {
        [Presence::There, Presence::Away]
            .into_iter()
            .find(|presence| *presence as u8 == number)
            .unwrap_or(Presence::Gone)
    }
}
