//! Who drives a connection: the states, the events that change them, and one table of both.
//!
//! The I/O thread drives a connection by default. A thread that waits for messages may take over (see `line`): it polls
//! the descriptor and reads, and until it gives the connection back the I/O thread hears only of the connection's end.
//! If one short wait follows another, nobody drives the connection between them, because a reply may arrive before the
//! thread waits for it, and the I/O thread would only be woken for nothing. A guard, a timer of the I/O thread, ends that
//! state if no wait follows.
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
    /// A thread has the loan: it waits for the descriptor and reads. A guard is left if the connection was in use before.
    Waiter { guard: Option<Guard> },
    /// The thread got its message and is expected back.
    Between { guard: Guard },
}

/// What the I/O thread watches for while it drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Watch {
    /// Bytes to read, and room to write: a write found no room, or the connection is new.
    InputAndRoom,
    /// Bytes to read. Writers have found room since somebody last took over.
    Input,
}

/// When the I/O thread looks whether a connection between two waits is still in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Guard {
    at: Instant,
    interval: Duration,
    /// A thread has waited since the guard last looked.
    used: bool,
}

/// What happens to a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A thread wants to wait for the descriptor, and the connection has nothing else to do.
    TakeOver,
    /// The thread with the loan has a message, and expects to wait again soon.
    GiveBackSoon,
    /// The thread with the loan leaves the rest to the I/O thread.
    GiveBack,
    /// The connection has more to do than to read, the socket closes, or another thread wants to hear of messages.
    Recall,
    /// A write found no room.
    NoRoom,
    /// The I/O thread's timer fired.
    Timer,
}

impl Driver {
    /// The driver of a new connection.
    pub(super) fn new() -> Driver {
        Driver::Io(Watch::InputAndRoom)
    }

    /// The driver after `event`. The clock is only asked where a guard is set or looks.
    pub(super) fn next(self, event: Event, now: impl FnOnce() -> Instant) -> Driver {
        use Driver::{Between, Io, Waiter};
        match (event, self) {
            (Event::TakeOver, Io(_)) => Waiter { guard: None },
            (Event::TakeOver, Between { guard }) => Waiter {
                guard: Some(guard.used()),
            },
            // The loan is one thread's.
            (Event::TakeOver, Waiter { .. }) => self,

            (Event::GiveBackSoon, Waiter { guard: Some(guard) }) => Between { guard },
            (Event::GiveBackSoon, Waiter { guard: None }) => Between {
                guard: Guard::new(now()),
            },
            (Event::GiveBack, Waiter { .. }) => Io(Watch::Input),
            // The loan was recalled meanwhile.
            (Event::GiveBackSoon | Event::GiveBack, Io(_) | Between { .. }) => self,

            (Event::Recall, Between { .. }) => Io(Watch::Input),
            // A waiter sees for itself when it looks, and there is nothing to recall from the I/O thread.
            (Event::Recall, Io(_) | Waiter { .. }) => self,

            (Event::NoRoom, Io(_) | Waiter { .. } | Between { .. }) => Io(Watch::InputAndRoom),

            // A thread that waits longer than the guard's interval needs none: it sets a new one when it is done.
            (Event::Timer, Waiter { guard: Some(guard) }) => Waiter {
                guard: guard.after_look(now()),
            },
            (Event::Timer, Between { guard }) => match guard.after_look(now()) {
                Some(guard) => Between { guard },
                None => Io(Watch::Input),
            },
            (Event::Timer, Io(_) | Waiter { guard: None }) => self,
        }
    }

    /// What the I/O thread watches for in this state.
    pub(super) fn interest(self) -> Interest {
        match self {
            Driver::Io(Watch::InputAndRoom) => Interest::Both,
            Driver::Io(Watch::Input) => Interest::Input,
            Driver::Waiter { .. } | Driver::Between { .. } => Interest::HangUp,
        }
    }

    /// Whether a thread has the loan.
    pub(super) fn has_waiter(self) -> bool {
        matches!(self, Driver::Waiter { .. })
    }

    /// Whether nobody reads until the next wait.
    pub(super) fn is_between(self) -> bool {
        matches!(self, Driver::Between { .. })
    }

    /// Whether the I/O thread does not hear of bytes that arrive.
    pub(super) fn is_lent(self) -> bool {
        self.interest() == Interest::HangUp
    }

    /// When the guard looks.
    pub(super) fn poll_timeout(self) -> Option<Instant> {
        match self {
            Driver::Waiter { guard } => guard.map(|guard| guard.at),
            Driver::Between { guard } => Some(guard.at),
            Driver::Io(_) => None,
        }
    }
}

impl Guard {
    fn new(now: Instant) -> Guard {
        Guard {
            at: now + GUARD,
            interval: GUARD,
            used: true,
        }
    }

    fn used(self) -> Guard {
        Guard { used: true, ..self }
    }

    /// The guard after it looked at `now`; `None` if it found the connection unused.
    fn after_look(self, now: Instant) -> Option<Guard> {
        if now < self.at {
            return Some(self);
        }
        let interval = (self.interval * 2).min(GUARD_MAX);
        self.used.then_some(Guard {
            at: now + interval,
            interval,
            used: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing;

    const MS: Duration = Duration::from_millis(1);

    drawing::events!(Event {
        TakeOver => "a thread takes over",
        GiveBackSoon => "it gives back, to be back soon",
        GiveBack => "it gives back",
        Recall => "recall",
        NoRoom => "no room to write",
        Timer => "the guard looks",
    });

    fn state_name(driver: Driver) -> String {
        let guarded = |guard: Guard| if guard.used { "used" } else { "unused" };
        match driver {
            Driver::Io(Watch::InputAndRoom) => "`Io(InputAndRoom)`".to_owned(),
            Driver::Io(Watch::Input) => "`Io(Input)`".to_owned(),
            Driver::Waiter { guard: None } => "`Waiter`".to_owned(),
            Driver::Waiter { guard: Some(it) } => format!("`Waiter`, guard: {}", guarded(it)),
            Driver::Between { guard } => format!("`Between`, guard: {}", guarded(guard)),
        }
    }

    /// The driver after an event. A timer fires when it is due.
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

    #[test]
    fn a_guard_looks_less_often_while_the_connection_is_used() {
        let start = Instant::now();
        let mut driver = Driver::new()
            .next(Event::TakeOver, || start)
            .next(Event::GiveBackSoon, || start);
        let mut at = start;
        for interval in [1, 2, 4, 8, 16, 16, 16] {
            assert_eq!(driver.poll_timeout(), Some(at + interval * MS));
            let early = driver.next(Event::Timer, || at);
            assert_eq!(early, driver);
            at += interval * MS;
            driver = driver
                .next(Event::TakeOver, || at)
                .next(Event::GiveBackSoon, || at)
                .next(Event::Timer, || at);
        }
        // It finds the connection unused.
        driver = driver.next(Event::Timer, || at + 16 * MS);
        assert_eq!(driver, Driver::Io(Watch::Input));
    }

    #[test]
    fn only_a_thread_that_took_over_keeps_the_io_thread_from_reading() {
        for driver in drawing::reachable(&[Driver::new()], EVENTS, after, state_name) {
            let next = |event| after(driver, event);
            // Whatever state it is in, the I/O thread has it back after a recall, or after the thread gave it back.
            assert!(!next(Event::Recall).is_between());
            assert!(!after(next(Event::GiveBack), Event::Recall).is_lent());
            // Whoever writes hears of room.
            assert_eq!(next(Event::NoRoom).interest(), Interest::Both);
            // Without a waiter, a guard ends the loan.
            assert!(!driver.is_between() || driver.poll_timeout().is_some());
        }
    }
}
