//! The phases of a socket's life.

use crate::sys::sync::atomic::{AtomicU8, Ordering};

/// The phase of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Phase {
    /// The socket can be used.
    Open,
    /// The context was shut down: every call fails, and the owner must still close the socket.
    Terminated,
    /// The owner has closed the socket.
    Closed,
}

/// An event that changes the phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PhaseEvent {
    /// The context is shut down.
    Shutdown,
    /// The socket is closed.
    Close,
}

impl Phase {
    fn next(self, event: PhaseEvent) -> Phase {
        match (self, event) {
            (Phase::Open, PhaseEvent::Shutdown) => Phase::Terminated,
            (Phase::Terminated | Phase::Closed, PhaseEvent::Shutdown) => self,
            (Phase::Open | Phase::Terminated | Phase::Closed, PhaseEvent::Close) => Phase::Closed,
        }
    }

    fn from_stored(stored: u8) -> Phase {
        [Phase::Open, Phase::Terminated]
            .into_iter()
            .find(|phase| *phase as u8 == stored)
            .unwrap_or(Phase::Closed)
    }
}

/// A phase that several threads change.
pub(super) struct PhaseCell(AtomicU8);

impl PhaseCell {
    pub(super) fn new() -> PhaseCell {
        PhaseCell(AtomicU8::new(Phase::Open as u8))
    }

    /// Acquire pairs with the Release in `change`: a call that finds the socket closed also sees everything that
    /// happened before it was closed.
    pub(super) fn get(&self) -> Phase {
        Phase::from_stored(self.0.load(Ordering::Acquire))
    }

    /// Like `get() == Phase::Open`, but cheaper, because every call checks this.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) == Phase::Open as u8
    }

    /// Returns the phase before the event.
    pub(super) fn change(&self, event: PhaseEvent) -> Phase {
        let next = |stored| Some(Phase::from_stored(stored).next(event) as u8);
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        Phase::from_stored(before.unwrap_or_else(|stored| stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;

    drawing::events!(PhaseEvent {
        Shutdown => "the context is shut down",
        Close => "`close()`",
    });

    #[test]
    fn the_page_shows_the_phases() {
        let name = |phase: Phase| format!("`{phase:?}`");
        drawing::check(
            "socket",
            &[Phase::Open],
            EVENTS,
            Phase::next,
            name,
            event_name,
        );
    }

    #[test]
    fn one_caller_closes() {
        let phase = PhaseCell::new();
        assert_eq!(phase.change(PhaseEvent::Shutdown), Phase::Open);
        assert_eq!(phase.change(PhaseEvent::Close), Phase::Terminated);
        assert_eq!(phase.change(PhaseEvent::Close), Phase::Closed);
        assert_eq!(phase.change(PhaseEvent::Shutdown), Phase::Closed);
        assert_eq!((phase.get(), phase.is_open()), (Phase::Closed, false));
    }
}
