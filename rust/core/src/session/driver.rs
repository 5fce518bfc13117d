//! Who drives a connection: the states, the events that change them, and one table of both.
//!
//! The I/O thread drives a connection by default. A thread that waits for messages may take over (see `line`): it polls
//! the descriptor and reads, and until it gives the connection back the I/O thread hears only of the connection's end.
//! If one short wait follows another, nobody drives the connection between them, because a reply may arrive before the
//! thread waits for it, and the I/O thread would only be woken for nothing. A guard, a timer of the I/O thread, ends that
//! state if no wait follows.
//!
//! Two values say all this. [`Driver`] belongs to the connection and changes under the session's lock. While it is
//! [`Lent`](Driver::Lent), a [`Lending`](zeroxide_queue::loan::Lending) says whether a thread has the connection or has
//! paused, so that a thread that comes back needs no lock.
//!
//! [`Driver::next`] has no effects. `docs/states.md` holds its table, drawn from this code by a test.

use std::time::{Duration, Instant};

use crate::io_thread::Interest;
use crate::pace::{GUARD, GUARD_MAX};

/// See the module text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Driver {
    /// The I/O thread reads and writes.
    Io(Watch),
    /// A thread waits for the descriptor and reads, or has paused. A guard is set once it has paused.
    Lent { guard: Option<Guard> },
}

/// What the I/O thread watches for while it drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Watch {
    /// Bytes to read, and room to write: a write found no room, or the connection is new.
    InputAndRoom,
    /// Bytes to read. Writers have found room since somebody last took over.
    Input,
}

/// When the I/O thread looks whether a lent connection is still in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Guard {
    at: Instant,
    interval: Duration,
}

/// What happens to a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A thread takes over: it waits for the descriptor, and the connection has nothing else to do.
    Lend,
    /// The thread has a message, and expects to wait again soon.
    Pause,
    /// The thread leaves the rest to the I/O thread, or the I/O thread has found nobody who uses the connection, or the
    /// connection has more to do than to read, the socket closes, or another thread wants to hear of messages.
    End,
    /// A write found no room.
    NoRoom,
    /// The guard looked and found the connection in use.
    Used,
    /// The guard looked and found a thread that has waited since it last looked.
    StillHeld,
}

impl Driver {
    /// The driver of a new connection.
    pub(super) fn new() -> Driver {
        Driver::Io(Watch::InputAndRoom)
    }

    /// The driver after `event`. The clock is only asked where a guard is set.
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
            // A thread that waits longer than the guard's interval needs none: it sets a new one when it is done.
            (Event::StillHeld, Lent { .. }) => Lent { guard: None },
            // The loan ended meanwhile, or has its guard already.
            (Event::Lend | Event::Pause | Event::Used, Lent { .. })
            | (Event::Pause | Event::End | Event::Used | Event::StillHeld, Io(_)) => self,
        }
    }

    /// What the I/O thread watches for in this state.
    pub(super) fn interest(self) -> Interest {
        match self {
            Driver::Io(Watch::InputAndRoom) => Interest::Both,
            Driver::Io(Watch::Input) => Interest::Input,
            Driver::Lent { .. } => Interest::HangUp,
        }
    }

    /// Whether the I/O thread does not hear of bytes that arrive.
    pub(super) fn is_lent(self) -> bool {
        matches!(self, Driver::Lent { .. })
    }

    /// When the guard looks.
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

    /// The guard after it looked at `now` and found the connection in use: it looks less often.
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
    fn a_guard_looks_less_often_while_the_connection_is_used() {
        let start = Instant::now();
        let mut driver = Driver::new()
            .next(Event::Lend, || start)
            .next(Event::Pause, || start);
        let mut at = start;
        for interval in [1, 2, 4, 8, 16, 16, 16] {
            assert_eq!(driver.poll_timeout(), Some(at + interval * MS));
            at += interval * MS;
            // A later pause does not put the look off.
            driver = driver.next(Event::Pause, || at).next(Event::Used, || at);
        }
    }

    #[test]
    fn only_a_loan_keeps_the_io_thread_from_reading() {
        for driver in drawing::reachable(&[Driver::new()], EVENTS, after, state_name) {
            let next = |event| after(driver, event);
            assert!(!next(Event::End).is_lent() && !next(Event::NoRoom).is_lent());
            // Whoever writes hears of room.
            assert_eq!(next(Event::NoRoom).interest(), Interest::Both);
            // Without a thread that waits, a guard ends the loan.
            assert!(!driver.is_lent() || next(Event::Pause).poll_timeout().is_some());
            let paused = loan::State::Paused { used: false };
            assert_eq!(paused.next(loan::Event::Look), loan::State::Home);
        }
    }
}
