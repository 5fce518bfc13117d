//! The life of a session, from its first handshake to its end.
//!
//! Two values describe it, and each combination of them occurs. [`Life`] changes under the session's lock and can be
//! read without it. [`Closing`] says whether the socket wants the session to end. A session without a peer may close,
//! and a session whose peer has left may end without being closed.

use std::time::Instant;

use crate::sys::sync::atomic::{AtomicU8, Ordering};

/// See the module text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Life {
    /// No handshake has succeeded.
    Joining,
    /// A handshake has succeeded. The connection may have been lost since.
    Joined,
    /// The session has ended, and no handshake had succeeded.
    Failed,
    /// The session has ended after a successful handshake.
    Ended,
}

/// An event that changes [`Life`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LifeEvent {
    /// A handshake succeeds.
    Join,
    /// The session ends.
    End,
}

impl Life {
    fn next(self, event: LifeEvent) -> Life {
        match (self, event) {
            (Life::Joining, LifeEvent::Join) => Life::Joined,
            (Life::Joining, LifeEvent::End) => Life::Failed,
            (Life::Joined, LifeEvent::End) => Life::Ended,
            (Life::Joined, LifeEvent::Join) | (Life::Failed | Life::Ended, _) => self,
        }
    }

    pub(super) fn has_joined(self) -> bool {
        matches!(self, Life::Joined | Life::Ended)
    }
}

/// A [`Life`] that can be read without the lock under which it changes.
pub(super) struct LifeCell(AtomicU8);

impl LifeCell {
    pub(super) fn new() -> LifeCell {
        LifeCell(AtomicU8::new(Life::Joining as u8))
    }

    /// Acquire pairs with the Release in `change`: a thread that finds the session ended also sees what the session did
    /// before.
    pub(super) fn get(&self) -> Life {
        let stored = self.0.load(Ordering::Acquire);
        [Life::Joining, Life::Joined, Life::Failed]
            .into_iter()
            .find(|life| *life as u8 == stored)
            .unwrap_or(Life::Ended)
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) >= Life::Failed as u8
    }

    /// Applies `event` and returns whether it changed anything. The caller holds the session's lock.
    pub(super) fn change(&self, event: LifeEvent) -> bool {
        let before = self.get();
        let next = before.next(event);
        self.0.store(next as u8, Ordering::Release);
        next != before
    }
}

/// Whether the session has to end, and until when it delivers what the socket has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closing {
    /// The session does not have to end.
    No,
    /// The session delivers until this time.
    Until(Instant),
    /// The session delivers without a time limit.
    WhenDelivered,
}

impl Closing {
    /// Returns the state after a request to end. There may be several: the socket closes its pipe and then the session
    /// itself, and a report may not wait as long as LINGER allows. The earliest deadline counts.
    pub(super) fn next(self, deadline: Option<Instant>) -> Closing {
        match (self, deadline) {
            (Closing::Until(earlier), Some(at)) => Closing::Until(earlier.min(at)),
            (Closing::No | Closing::WhenDelivered, Some(at)) => Closing::Until(at),
            (Closing::No, None) => Closing::WhenDelivered,
            (Closing::Until(_) | Closing::WhenDelivered, None) => self,
        }
    }

    #[inline]
    pub(super) fn has_begun(self) -> bool {
        self != Closing::No
    }

    /// When delivery ends.
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Closing::Until(at) => Some(at),
            Closing::No | Closing::WhenDelivered => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;

    drawing::events!(LifeEvent {
        Join => "a handshake succeeds",
        End => "it ends",
    });

    fn life_name(life: Life) -> String {
        format!("`{life:?}`")
    }

    #[test]
    fn the_page_shows_the_lives() {
        drawing::check(
            "session",
            &[Life::Joining],
            EVENTS,
            Life::next,
            life_name,
            event_name,
        );
    }

    #[test]
    fn the_page_shows_how_a_session_closes() {
        let name = |closing| match closing {
            Closing::No => "`No`".to_owned(),
            Closing::Until(_) => "`Until`".to_owned(),
            Closing::WhenDelivered => "`WhenDelivered`".to_owned(),
        };
        let event_name = |deadline: Option<Instant>| match deadline {
            Some(_) => "asked to end, with a deadline",
            None => "asked to end, without one",
        };
        let events = [Some(Instant::now()), None];
        drawing::check(
            "closing",
            &[Closing::No],
            &events,
            Closing::next,
            name,
            event_name,
        );
    }

    #[test]
    fn a_cell_shows_each_life() {
        for first in EVENTS {
            let cell = LifeCell::new();
            assert!(cell.change(*first));
            assert!(!cell.is_over() || *first == LifeEvent::End);
            assert_eq!(cell.get(), Life::Joining.next(*first));
            assert_eq!(cell.change(LifeEvent::End), *first == LifeEvent::Join);
            assert!(!cell.change(LifeEvent::Join));
            assert_eq!(cell.get().has_joined(), *first == LifeEvent::Join);
            assert!(cell.is_over());
        }
    }
}
