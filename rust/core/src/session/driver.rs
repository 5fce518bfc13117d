//! The driver of a connection: its states, the events that change them, and one table of both.
//!
//! The I/O thread drives a connection by default. A thread that waits for messages may take over (see `line`). It polls
//! the descriptor and reads, and until it gives the connection back, the I/O thread is notified only of the
//! connection's end. If one short wait follows another, no thread drives the connection between them: a reply may
//! arrive before the thread waits for it, and the I/O thread would be woken for nothing. A guard, which is a timer of
//! the I/O thread, ends that state if no wait follows.
//!
//! Two values hold these states. [`Driver`] belongs to the connection and changes under the session's lock. While it is
//! [`Lent`](Driver::Lent), a [`Lending`](zeroxide_queue::loan::Lending) records whether a thread has the connection or
//! has paused, so that a thread that comes back needs no lock.
//!
//! [`Driver::next`] has no effects. `docs/states.md` shows its table, which a test draws from this code.

use std::time::{Duration, Instant};

use crate::io_thread::Interest;
use crate::pace::{GUARD, GUARD_MAX};

/// See the module text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Driver {
    /// The I/O thread reads and writes.
    Io(Watch),
    /// A thread waits for the descriptor and reads, or has paused. The guard is set when the thread has paused.
    Lent { guard: Option<Guard> },
}

/// The events that the I/O thread watches for while it drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Watch {
    /// Bytes to read and room to write, because a write found no room or the connection is new.
    InputAndRoom,
    /// Bytes to read. Writers have found room since a thread last took over.
    Input,
}

/// When the I/O thread checks whether a lent connection is still in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Guard {
    at: Instant,
    interval: Duration,
}

/// An event that changes [`Driver`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A thread takes over and waits for the descriptor. The connection has nothing else to do.
    Lend,
    /// The thread has a message, and expects to wait again soon.
    Pause,
    /// The loan ends: the thread leaves the rest to the I/O thread, the I/O thread finds the connection unused, the
    /// connection has more to do than to read, the socket closes, or another thread wants to be notified of messages.
    End,
    /// A write found no room.
    NoRoom,
    /// The guard checked and found the connection in use.
    Used,
    /// The guard checked and found that the thread has waited since the last check.
    StillHeld,
}

impl Driver {
    /// The driver of a new connection.
    pub(super) fn new() -> Driver {
        Driver::Io(Watch::InputAndRoom)
    }

    /// Returns the driver after `event`. The clock is read only where a guard is set.
    pub(super) fn next(self, event: Event, now: impl FnOnce() -> Instant) -> Driver {
        use Driver::{Io, Lent};
        match (event, self) {
            (Event::Lend, Io(_)) => Lent { guard: None },
            (Event::Pause, Lent { guard: None }) => Lent {
                guard: Some(Guard::new(now())),
            },
            (Event::End, Lent { .. }) => Io(Watch::Input),
            (Event::NoRoom, _) => Io(Watch::InputAndRoom),
            (Event::Used, Lent { guard: Some(guard) }) => Lent {
                guard: Some(guard.after_look(now())),
            },
            // A thread that waits longer than the guard's interval needs no guard. It sets a new one when it pauses.
            (Event::StillHeld, Lent { .. }) => Lent { guard: None },
            // The loan has ended in the meantime, or already has its guard.
            (Event::Lend | Event::Pause | Event::Used, Lent { .. })
            | (Event::Pause | Event::End | Event::Used | Event::StillHeld, Io(_)) => self,
        }
    }

    /// Returns the events that the I/O thread watches for in this state.
    pub(super) fn interest(self) -> Interest {
        match self {
            Driver::Io(Watch::InputAndRoom) => Interest::Both,
            Driver::Io(Watch::Input) => Interest::Input,
            Driver::Lent { .. } => Interest::HangUp,
        }
    }

    /// Whether the connection is lent, so that the I/O thread is not notified of bytes that arrive.
    pub(super) fn is_lent(self) -> bool {
        matches!(self, Driver::Lent { .. })
    }

    /// When the guard checks the connection.
    pub(super) fn poll_timeout(self) -> Option<Instant> {
        match self {
            Driver::Lent { guard } => guard.map(|guard| guard.at),
            Driver::Io(_) => None,
        }
    }
}

impl Guard {
    fn new(now: Instant) -> Guard {
        Guard {
            at: now + GUARD,
            interval: GUARD,
        }
    }

    /// Returns the guard after it found the connection in use at `now`: the next check comes later.
    fn after_look(self, now: Instant) -> Guard {
        let interval = (self.interval * 2).min(GUARD_MAX);
        Guard {
            at: now + interval,
            interval,
        }
    }
}

#[cfg(test)]
mod tests {
    use zeroxide_queue::loan;

    use super::*;
    use crate::drawing;

    const MS: Duration = Duration::from_millis(1);

    drawing::events!(Event {
        Lend => "a thread takes over",
        Pause => "it pauses",
        End => "the loan ends",
        NoRoom => "no room to write",
        Used => "the guard looks: used",
        StillHeld => "the guard looks: held all the time",
    });

    fn state_name(driver: Driver) -> String {
        match driver {
            Driver::Io(Watch::InputAndRoom) => "`Io(InputAndRoom)`".to_owned(),
            Driver::Io(Watch::Input) => "`Io(Input)`".to_owned(),
            Driver::Lent { guard: None } => "`Lent`".to_owned(),
            Driver::Lent { guard: Some(_) } => "`Lent`, guarded".to_owned(),
        }
    }

    fn after(driver: Driver, event: Event) -> Driver {
        let due = driver.poll_timeout();
        driver.next(event, || due.unwrap_or_else(Instant::now))
    }

    #[test]
    fn the_page_shows_the_drivers() {
        drawing::check(
            "driver",
            &[Driver::new()],
            EVENTS,
            after,
            state_name,
            event_name,
        );
    }

    mod lending {
        use zeroxide_queue::loan::{Event, State};

        use crate::drawing;

        drawing::events!(Event {
            Lend => "a thread takes over",
            Pause => "it pauses",
            Resume => "a thread comes back",
            Return => "it gives back",
            Recall => "recall",
            Revoke => "no room to write, or the end",
            Look => "the guard looks",
        });

        #[test]
        fn the_page_shows_the_loans() {
            let name = |state| {
                let used = |used: bool| if used { "used" } else { "unused" };
                match state {
                    State::Home => "`Home`".to_owned(),
                    State::Held { used: it } => format!("`Held`, {}", used(it)),
                    State::Paused { used: it } => format!("`Paused`, {}", used(it)),
                }
            };
            drawing::check(
                "loan",
                &[State::Home],
                EVENTS,
                State::next,
                name,
                event_name,
            );
        }
    }

    #[test]
    fn a_guard_checks_less_often_while_the_connection_is_used() {
        let start = Instant::now();
        let mut driver = Driver::new()
            .next(Event::Lend, || start)
            .next(Event::Pause, || start);
        let mut at = start;
        for interval in [1, 2, 4, 8, 16, 16, 16] {
            assert_eq!(driver.poll_timeout(), Some(at + interval * MS));
            at += interval * MS;
            // A later pause does not postpone the check.
            driver = driver.next(Event::Pause, || at).next(Event::Used, || at);
        }
    }

    #[test]
    fn only_a_loan_keeps_the_io_thread_from_reading() {
        for driver in drawing::reachable(&[Driver::new()], EVENTS, after, state_name) {
            let next = |event| after(driver, event);
            assert!(!next(Event::End).is_lent() && !next(Event::NoRoom).is_lent());
            // The I/O thread watches for room, so writers are notified.
            assert_eq!(next(Event::NoRoom).interest(), Interest::Both);
            // If no thread waits, a guard ends the loan.
            assert!(!driver.is_lent() || next(Event::Pause).poll_timeout().is_some());
            let paused = loan::State::Paused { used: false };
            assert_eq!(paused.next(loan::Event::Look), loan::State::Home);
        }
    }
}
