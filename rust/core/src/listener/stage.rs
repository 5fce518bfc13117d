//! The states of a listener, and what changes them.
//!
//! [`Stage::next`] has no effects. `docs/states.md` shows its table, which a test draws from this code.

use std::time::Instant;

/// See the module text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The descriptor is bound and not watched yet.
    Bound,
    /// The reactor could not watch the descriptor and tries again at this time.
    Unwatched { until: Instant },
    /// The reactor reports new connections.
    Accepting,
    /// No connection is accepted until this time. New connections do not end the pause, because each would need its own
    /// time-out.
    Paused { until: Instant },
    /// `close` has closed the descriptor. The I/O thread still has to forget the listener.
    Closed,
    /// The I/O thread has forgotten the listener.
    Ended,
}

/// An event that changes [`Stage`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The reactor begins to watch the descriptor.
    Watch,
    /// Accepting or watching has failed, or there is no room for more connections.
    Pause { until: Instant },
    /// The pause is over.
    Resume,
    /// The socket closes the listener.
    Close,
    /// The I/O thread forgets the listener.
    End,
}

impl Stage {
    pub(super) fn next(self, event: Event) -> Stage {
        match (self, event) {
            (_, Event::End) | (Stage::Ended, _) => Stage::Ended,
            (_, Event::Close) | (Stage::Closed, _) => Stage::Closed,
            (Stage::Bound | Stage::Unwatched { .. }, Event::Watch) => Stage::Accepting,
            (Stage::Bound | Stage::Unwatched { .. }, Event::Pause { until }) => {
                Stage::Unwatched { until }
            }
            (Stage::Accepting | Stage::Paused { .. }, Event::Pause { until }) => {
                Stage::Paused { until }
            }
            (Stage::Paused { .. }, Event::Resume) => Stage::Accepting,
            // A time-out tries to watch the descriptor again.
            (Stage::Bound | Stage::Unwatched { .. }, Event::Resume)
            | (Stage::Accepting, Event::Watch | Event::Resume)
            | (Stage::Paused { .. }, Event::Watch) => self,
        }
    }

    /// Whether the reactor watches the descriptor.
    pub(super) fn is_watched(self) -> bool {
        matches!(self, Stage::Accepting | Stage::Paused { .. })
    }

    /// The end of the pause.
    pub(super) fn paused_until(self) -> Option<Instant> {
        match self {
            Stage::Unwatched { until } | Stage::Paused { until } => Some(until),
            Stage::Bound | Stage::Accepting | Stage::Closed | Stage::Ended => None,
        }
    }

    /// Whether `close` was called, or the listener has ended without it.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Stage::Closed | Stage::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;

    fn events() -> [Event; 5] {
        let until = Instant::now();
        [
            Event::Watch,
            Event::Pause { until },
            Event::Resume,
            Event::Close,
            Event::End,
        ]
    }

    fn event_name(event: Event) -> &'static str {
        match event {
            Event::Watch => "the reactor watches",
            Event::Pause { .. } => "it fails, or is full",
            Event::Resume => "the pause is over",
            Event::Close => "`close()`",
            Event::End => "the I/O thread ends it",
        }
    }

    fn state_name(stage: Stage) -> String {
        match stage {
            Stage::Unwatched { .. } => "`Unwatched`".to_owned(),
            Stage::Paused { .. } => "`Paused`".to_owned(),
            Stage::Bound | Stage::Accepting | Stage::Closed | Stage::Ended => {
                format!("`{stage:?}`")
            }
        }
    }

    #[test]
    fn the_page_shows_the_listeners() {
        let starts = [Stage::Bound];
        drawing::check(
            "listener",
            &starts,
            &events(),
            Stage::next,
            state_name,
            event_name,
        );
    }

    #[test]
    fn a_listener_that_is_over_never_accepts() {
        for stage in [Stage::Closed, Stage::Ended] {
            assert!(stage.is_over() && !stage.is_watched());
            assert!(
                events()
                    .into_iter()
                    .all(|event| stage.next(event).is_over())
            );
        }
    }
}
