//! The turn of a connecter. The number of simultaneous attempts at one address is limited by
//! [`Turn`](crate::reactor::Turn)s.

use std::time::Instant;

/// An attempt to connect, and the turn that it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Attempt<T> {
    /// No attempt needs a turn: there is none, or the current one has taken too long.
    #[default]
    None,
    /// Other sessions connect to the address first.
    Queued(T),
    /// It is this connecter's turn, until the handshake has succeeded, the attempt has failed, or `patience` has
    /// passed.
    UnderWay { turn: T, patience: Option<Instant> },
}

/// An event that changes [`Attempt`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AttemptEvent<T> {
    /// The connecter asks for a turn.
    Ask(T),
    /// Its turn has come.
    Begin { patience: Option<Instant> },
    /// It gives its turn back.
    End,
}

impl<T> Attempt<T> {
    /// Returns the next state, and the turn to give back.
    pub(super) fn next(self, event: AttemptEvent<T>) -> (Attempt<T>, Option<T>) {
        match (self, event) {
            (Attempt::None, AttemptEvent::Ask(turn)) => (Attempt::Queued(turn), None),
            // One turn is enough.
            (Attempt::Queued(turn), AttemptEvent::Ask(another)) => {
                (Attempt::Queued(turn), Some(another))
            }
            (Attempt::UnderWay { turn, patience }, AttemptEvent::Ask(another)) => {
                (Attempt::UnderWay { turn, patience }, Some(another))
            }
            (
                Attempt::Queued(turn) | Attempt::UnderWay { turn, .. },
                AttemptEvent::Begin { patience },
            ) => (Attempt::UnderWay { turn, patience }, None),
            (Attempt::Queued(turn) | Attempt::UnderWay { turn, .. }, AttemptEvent::End) => {
                (Attempt::None, Some(turn))
            }
            (Attempt::None, AttemptEvent::Begin { .. } | AttemptEvent::End) => {
                (Attempt::None, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;

    const BEGIN: AttemptEvent<()> = AttemptEvent::Begin { patience: None };

    #[test]
    fn the_page_shows_the_attempts() {
        let events = [AttemptEvent::Ask(()), BEGIN, AttemptEvent::End];
        let event_name = |event| match event {
            AttemptEvent::Ask(()) => "it asks for a turn",
            AttemptEvent::Begin { .. } => "its turn has come",
            AttemptEvent::End => "it gives the turn back",
        };
        let name = |attempt| match attempt {
            Attempt::None => "`None`".to_owned(),
            Attempt::Queued(()) => "`Queued`".to_owned(),
            Attempt::UnderWay { .. } => "`UnderWay`".to_owned(),
        };
        let next = |attempt: Attempt<()>, event| attempt.next(event).0;
        drawing::check(
            "connecter",
            &[Attempt::None],
            &events,
            next,
            name,
            event_name,
        );
    }

    #[test]
    fn each_turn_is_given_back_once() {
        let begin = AttemptEvent::Begin { patience: None };
        let (queued, none) = Attempt::None.next(AttemptEvent::Ask(1));
        assert_eq!((queued.next(AttemptEvent::Ask(2)).1, none), (Some(2), None));
        let (under_way, none) = queued.next(begin);
        assert_eq!(
            (under_way.next(AttemptEvent::Ask(2)).1, none),
            (Some(2), None)
        );
        for attempt in [queued, under_way] {
            let (over, turn) = attempt.next(AttemptEvent::End);
            assert_eq!(
                (turn, over.next(AttemptEvent::End)),
                (Some(1), (Attempt::None, None))
            );
        }
    }
}
