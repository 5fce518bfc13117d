//! Lets blocked calls wait for events of a socket, and owns the descriptor that other event loops watch.
//!
//! A waiter takes a [`ticket`](Signal::ticket), checks for work, and waits for the ticket to become stale. All waiters
//! are in one list (`zeroxide_queue::waiters`): threads, the tasks of async programs, and the descriptors of other
//! event loops.
//!
//! There are two ways to park, and each thread has one parker for both. A thread that only waits for a signal parks on
//! a word. A signal handler then ends the wait at once, and a wake-up costs one system call, or none if no thread
//! waits. A thread that also waits for a connection, for the descriptors of a [`Vigil`] or for an alarm parks on
//! descriptors, one of which is its own bell.
//!
//! The signal's own descriptor is created when it is first requested. It is level-triggered: it stays readable while
//! there is something to do.

use std::io;
use std::ops::ControlFlow::{Break, Continue};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use zeroxide_queue::parker::On;
use zeroxide_queue::waiters::{Waiter, Waiters};

use crate::error::Result;
use crate::sys::clock;
use crate::sys::poll::{self, Ready};
use crate::sys::word::{self, Wait};

mod level;
mod tasks;
mod thread;

pub(crate) use level::Level;
pub(crate) use tasks::{is_waking, own_place};
pub use thread::{Wakes, deferring_wakes};
pub(crate) use zeroxide_queue::waiters::Place;

/// See the module text.
pub(crate) struct Signal {
    waiters: Waiters<thread::Sleep, Level>,
    level: Level,
}

/// How a wait for a signal and a descriptor ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beside {
    /// The descriptor can be read from.
    Ready,
    /// The descriptor can be read to its end: its peer has finished, or it broke.
    HungUp,
    Woken(Woken),
    /// No descriptor can be waited for, or none is left for a bell.
    Impossible,
}

/// Maximum length of a wait that does not watch the alarm.
const DEAF: Duration = Duration::from_secs(1);

/// Runs `work`. When `fd` becomes readable, every call in `work` that waits ends with
/// [`Interrupted`](crate::error::ErrorKind::Interrupted), even a call that has not begun yet. This is for programs
/// whose signal handlers write to a descriptor. Nothing is read from `fd`.
pub fn interrupted_by<T>(fd: BorrowedFd<'_>, work: impl FnOnce() -> T) -> T {
    poll::with_alarm(fd, work)
}

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// Something happened since the ticket was taken.
    Notified,
    /// The deadline passed.
    TimedOut,
    /// A signal handler ran in this thread.
    Interrupted,
}

impl Signal {
    pub(crate) fn new() -> Signal {
        Signal {
            waiters: Waiters::new(),
            level: Level::default(),
        }
    }

    /// Returns a ticket, which becomes stale with the next event. Take it before checking for work.
    #[inline]
    pub(crate) fn ticket(&self) -> u32 {
        self.waiters.ticket()
    }

    /// Reports an event: wakes every waiter and every watcher. The signal's own descriptor does not change.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.waiters.advance() {
            self.wake_waiters();
        }
    }

    #[inline(never)]
    fn wake_waiters(&self) {
        self.waiters.take(Level::raise, |waiter| match waiter {
            Waiter::Thread(thread) => thread::wake(thread),
            Waiter::Task(_, waker) => tasks::wake(waker),
        });
    }

    /// Raises `watcher` with every [`wake`](Self::wake) until [`unwatch`](Self::unwatch). Check for work afterwards.
    pub(crate) fn watch(&self, watcher: Arc<Level>) {
        self.waiters.watch(watcher);
    }

    /// Undoes one [`watch`](Self::watch).
    pub(crate) fn unwatch(&self, watcher: &Arc<Level>) {
        self.waiters.unwatch(watcher);
    }

    /// Registers a task that the next [`wake`](Self::wake) wakes. Returns false if the ticket is stale: check for work
    /// again.
    pub(crate) fn enlist(&self, place: Place, waker: &Waker, ticket: u32) -> bool {
        self.waiters.enlist(place, waker, ticket)
    }

    /// Undoes an [`enlist`](Self::enlist).
    pub(crate) fn delist(&self, place: Place) {
        self.waiters.delist(place);
    }

    /// Whether the next [`wake`](Self::wake) notifies anything besides the calling thread, which is awake.
    pub(crate) fn has_others(&self) -> bool {
        self.waiters.has_any() || self.has_descriptor()
    }

    /// Whether a call has to end that was woken and found nothing. It may be woken again and again, so that its next wait
    /// would end before it looks at the time or the alarm.
    pub(crate) fn must_end(deadline: Option<Instant>) -> Option<Woken> {
        if deadline.is_some_and(|at| at <= clock::now()) {
            return Some(Woken::TimedOut);
        }
        poll::is_alarmed().then_some(Woken::Interrupted)
    }

    /// Waits until the ticket is stale.
    pub(crate) fn wait(&self, ticket: u32, deadline: Option<Instant>) -> Woken {
        let Some(alarm) = poll::alarm() else {
            return self.wait_deaf(ticket, deadline);
        };
        match self.wait_beside(ticket, alarm, deadline) {
            Beside::Ready | Beside::HungUp => Woken::Interrupted,
            Beside::Woken(woken) => woken,
            Beside::Impossible => {
                let until = clock::now() + DEAF;
                let end = deadline.map_or(until, |at| at.min(until));
                match self.wait_deaf(ticket, Some(end)) {
                    Woken::TimedOut if deadline != Some(end) => Woken::Interrupted,
                    woken => woken,
                }
            }
        }
    }

    /// Like [`wait`](Self::wait), but does not watch the alarm.
    fn wait_deaf(&self, ticket: u32, deadline: Option<Instant>) -> Woken {
        self.waiters
            .wait(
                &thread::own(),
                ticket,
                On::Word,
                |word, asleep| match word::wait(word, asleep, deadline) {
                    Wait::Woken => Continue(()),
                    Wait::TimedOut => Break(Woken::TimedOut),
                    Wait::Interrupted => Break(Woken::Interrupted),
                },
            )
            .unwrap_or(Woken::Notified)
    }

    /// Waits until the ticket is stale or `fd` is readable. The alarm also ends the wait.
    pub(crate) fn wait_beside(&self, ticket: u32, fd: RawFd, deadline: Option<Instant>) -> Beside {
        let own = thread::own();
        let Ok(bell) = own.system().bell() else {
            return Beside::Impossible;
        };
        let sleep = |_: &_, _| match poll::either(fd, bell, deadline) {
            Ok(found) => {
                if found.other {
                    own.system().silence_bell();
                }
                match found {
                    _ if found.hung_up => Break(Beside::HungUp),
                    _ if found.first => Break(Beside::Ready),
                    _ if found.other => Continue(()),
                    _ => Break(Beside::Woken(Woken::TimedOut)),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                Break(Beside::Woken(Woken::Interrupted))
            }
            Err(_) => Break(Beside::Impossible),
        };
        self.waiters
            .wait(&own, ticket, On::Descriptors, sleep)
            .unwrap_or(Beside::Woken(Woken::Notified))
    }

    /// Returns the descriptor, which is created by the first call. The caller then sets its level.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        self.level.descriptor()
    }

    /// Whether the descriptor was requested.
    #[inline]
    pub(crate) fn has_descriptor(&self) -> bool {
        self.level.has_descriptor()
    }

    /// Makes the descriptor readable, if there is one.
    pub(crate) fn raise(&self) {
        self.level.raise();
    }

    /// Makes the descriptor unreadable: see [`Level::lower`].
    pub(crate) fn lower(&self) {
        self.level.lower();
    }
}

/// The calling thread while it waits for several signals at once. It enters their lists before it checks for work. It
/// enters them again after each wait, because a wake-up removes it from the list.
pub(crate) struct Vigil {
    own: Arc<thread::ThreadParker>,
}

impl Vigil {
    pub(crate) fn begin() -> Vigil {
        Vigil { own: thread::own() }
    }

    /// Makes the next wait end when `signal` is woken. Check for work afterwards.
    pub(crate) fn enter(&self, signal: &Signal) {
        signal.waiters.enter(&self.own);
    }

    /// Stops waiting for `signal`.
    pub(crate) fn leave(&self, signal: &Signal) {
        signal.waiters.leave(&self.own);
    }

    /// Waits for the signals. A wait may end without an event.
    ///
    /// # Errors
    /// `Interrupted` if a signal handler ran, and the system's errors.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> io::Result<()> {
        if poll::alarm().is_some() {
            return self.wait_beside(&[], deadline).map(drop);
        }
        let slept = self
            .own
            .sleep(On::Word, |word, asleep| word::wait(word, asleep, deadline));
        match slept {
            Some(Wait::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
            _ => Ok(()),
        }
    }

    /// Waits for the signals and for descriptors, and returns the readiness of each descriptor, in order. A wait may
    /// end without an event.
    ///
    /// # Errors
    /// Those of [`poll::wait`], and an error if no descriptor is left for a bell.
    pub(crate) fn wait_beside(
        &self,
        fds: &[(RawFd, Ready)],
        deadline: Option<Instant>,
    ) -> io::Result<Vec<Ready>> {
        let system = self.own.system();
        let bell = system.bell()?;
        let readable = Ready {
            readable: true,
            ..Ready::default()
        };
        let mut all = fds.to_vec();
        all.push((bell.as_raw_fd(), readable));
        let slept = self
            .own
            .sleep(On::Descriptors, |_, _| poll::wait(&all, deadline));
        let mut found = match slept {
            Some(found) => found?,
            None => poll::wait(&all, Some(clock::now()))?,
        };
        if found.pop().is_some_and(|bell| bell.readable) {
            system.silence_bell();
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;
    use crate::sys::wake_fd::WakeFd;

    #[test]
    fn a_call_that_is_woken_all_the_time_must_end_by_its_deadline_or_the_alarm() {
        let soon = clock::now() + Duration::from_secs(1000);
        assert_eq!(Signal::must_end(None), None);
        assert_eq!(Signal::must_end(Some(soon)), None);
        assert_eq!(Signal::must_end(Some(clock::now())), Some(Woken::TimedOut));
        let alarm = WakeFd::new().unwrap();
        interrupted_by(alarm.as_fd(), || {
            assert_eq!(Signal::must_end(Some(soon)), None);
            alarm.signal();
            assert_eq!(Signal::must_end(Some(soon)), Some(Woken::Interrupted));
        });
        assert_eq!(Signal::must_end(None), None);
    }

    #[test]
    fn deferred_wake_ups_are_delivered_once() {
        let signal = Arc::new(Signal::new());
        let waiter = {
            let (signal, ticket) = (signal.clone(), signal.ticket());
            thread::spawn(move || signal.wait(ticket, None))
        };
        while !signal.has_others() {
            thread::yield_now();
        }
        let ((), wakes) = deferring_wakes(|| (0..5).for_each(|_| signal.wake()));
        assert!(!signal.has_others());
        drop(wakes);
        assert_eq!(waiter.join().unwrap(), Woken::Notified);
    }

    #[test]
    fn a_watcher_is_woken_until_it_leaves() {
        let signal = Signal::new();
        let watcher = Arc::new(Level::default());
        let fd = watcher.descriptor().unwrap().as_raw_fd();
        let is_readable = || {
            let readable = Ready {
                readable: true,
                ..Ready::default()
            };
            poll::wait(&[(fd, readable)], Some(Instant::now())).unwrap()[0].readable
        };
        signal.watch(watcher.clone());
        signal.wake();
        assert!(is_readable());
        signal.unwatch(&watcher);
        watcher.lower();
        signal.wake();
        assert!(!is_readable());
    }

    #[test]
    fn an_alarm_ends_every_kind_of_wait() {
        let (heard, written) = UnixStream::pair().unwrap();
        let signal = Signal::new();
        let other = WakeFd::new().unwrap();
        let other = || std::os::fd::AsRawFd::as_raw_fd(&other.as_fd());
        let ticket = signal.ticket();
        (&written).write_all(b"!").unwrap();
        interrupted_by(heard.as_fd(), || {
            assert_eq!(signal.wait(ticket, None), Woken::Interrupted);
            let beside = signal.wait_beside(ticket, other(), None);
            assert_eq!(beside, Beside::Woken(Woken::Interrupted));
            let polled = poll::wait(&[(other(), Ready::default())], None);
            assert_eq!(polled.unwrap_err().kind(), io::ErrorKind::Interrupted);
            let vigil = Vigil::begin();
            vigil.enter(&signal);
            let waited = vigil.wait(None);
            assert_eq!(waited.unwrap_err().kind(), io::ErrorKind::Interrupted);
            vigil.leave(&signal);
            // An event takes precedence over the alarm.
            signal.wake();
            assert_eq!(signal.wait(ticket, None), Woken::Notified);
        });
        assert_eq!(
            signal.wait(signal.ticket(), Some(Instant::now())),
            Woken::TimedOut
        );
    }
}
