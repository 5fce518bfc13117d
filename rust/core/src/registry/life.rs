//! The life of a context.

use crate::sys::sync::atomic::{AtomicU8, Ordering};

/// See the module text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Life {
    /// The context has had no socket, so it has no threads.
    New,
    /// Its I/O threads have started.
    Running,
    /// Every call on its sockets fails. Their owners close them, and `term` waits for that.
    ShutDown,
    /// Its I/O threads were asked to end.
    Ended,
}

/// An event that changes [`Life`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LifeEvent {
    /// The I/O threads start, with the first socket.
    Start,
    /// The context is shut down.
    ShutDown,
    /// The context ends: a termination succeeded or gave up, or its last handle and its last socket were dropped.
    End,
}

impl Life {
    fn next(self, event: LifeEvent) -> Life {
        match (self, event) {
            (_, LifeEvent::End) => Life::Ended,
            (Life::New, LifeEvent::Start) => Life::Running,
            (Life::New | Life::Running, LifeEvent::ShutDown) => Life::ShutDown,
            (Life::Running, LifeEvent::Start) | (Life::ShutDown | Life::Ended, _) => self,
        }
    }

    /// Whether every call on its sockets fails.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Life::ShutDown | Life::Ended)
    }

    fn from_stored(stored: u8) -> Life {
        [Life::New, Life::Running, Life::ShutDown]
            .into_iter()
            .find(|life| *life as u8 == stored)
            .unwrap_or(Life::Ended)
    }
}

/// A [`Life`] that several threads change.
pub(super) struct LifeCell(AtomicU8);

impl LifeCell {
    pub(super) fn new() -> LifeCell {
        LifeCell(AtomicU8::new(Life::New as u8))
    }

    /// Acquire pairs with the Release in `change`: a call that finds the context shut down also sees what led to it.
    pub(super) fn get(&self) -> Life {
        Life::from_stored(self.0.load(Ordering::Acquire))
    }

    /// Returns the life before the event.
    pub(super) fn change(&self, event: LifeEvent) -> Life {
        let next = |stored| Some(Life::from_stored(stored).next(event) as u8);
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        Life::from_stored(before.unwrap_or_else(|stored| stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;

    drawing::events!(LifeEvent {
        Start => "the first socket",
        ShutDown => "`shutdown()` or `term()`",
        End => "nothing is left, or a termination gives up",
    });

    #[test]
    fn the_page_shows_the_lives() {
        let name = |life: Life| format!("`{life:?}`");
        drawing::check(
            "context",
            &[Life::New],
            EVENTS,
            Life::next,
            name,
            event_name,
        );
    }

    #[test]
    fn a_cell_shows_each_life() {
        let cell = LifeCell::new();
        for (event, before, after) in [
            (LifeEvent::Start, Life::New, Life::Running),
            (LifeEvent::ShutDown, Life::Running, Life::ShutDown),
            (LifeEvent::Start, Life::ShutDown, Life::ShutDown),
            (LifeEvent::End, Life::ShutDown, Life::Ended),
            (LifeEvent::ShutDown, Life::Ended, Life::Ended),
        ] {
            assert_eq!(cell.change(event), before);
            assert_eq!(cell.get(), after);
        }
    }
}
