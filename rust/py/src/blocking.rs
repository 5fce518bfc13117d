//! Waiting without the GIL: the one loop of all blocking calls.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use zeroxide::binding::{Direction, SocketInternals};
use zeroxide::{Error, ErrorKind, Socket as CoreSocket, Wait};

use crate::alarm::Alarm;
use crate::error::{not_now, raise};
use crate::main_thread;
use crate::parting;

/// The initial interval at which the main thread checks for pending signal handlers.
const SLICE: Duration = Duration::from_millis(50);
/// The maximum interval.
const SLICE_MAX: Duration = Duration::from_secs(1);

/// The time limits of successive waits. Python runs signal handlers in its main thread only, so other threads need not
/// check for them.
pub(crate) struct Slices {
    main: bool,
    next: Duration,
    longest: Duration,
}

impl Slices {
    /// For a wait that a signal usually ends by itself: the interval of the main thread grows.
    fn growing(py: Python<'_>) -> PyResult<Slices> {
        Ok(Slices {
            main: main_thread::is_current(py)?,
            next: SLICE,
            longest: SLICE_MAX,
        })
    }

    /// For a wait that signals do not end.
    pub(crate) fn equal(py: Python<'_>) -> PyResult<Slices> {
        Ok(Slices {
            longest: SLICE,
            ..Slices::growing(py)?
        })
    }

    /// The deadline of the next wait; `None` = no limit.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Option<Instant> {
        if !self.main {
            return deadline;
        }
        let end = Instant::now() + self.next;
        self.next = (self.next * 4).min(self.longest);
        Some(deadline.map_or(end, |deadline| deadline.min(end)))
    }
}

/// The outcome of a step without the GIL.
pub(crate) enum Step<T> {
    /// The call is complete.
    Done(T),
    /// The step's time is up, or a signal handler must run.
    Again,
}

/// The time limit of a call, and its deadline.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) at: Instant,
    timeout: Duration,
}

impl Limit {
    /// `millis` milliseconds from now; negative = no limit.
    pub(crate) fn of(millis: i64) -> Option<Limit> {
        let timeout = Duration::from_millis(u64::try_from(millis).ok()?);
        let at = Instant::now().checked_add(timeout)?;
        Some(Limit { at, timeout })
    }

    /// The exception of a call on this socket that timed out. Takes the socket's lock, without the GIL.
    #[cold]
    pub(crate) fn is_over(self, py: Python<'_>, core: &CoreSocket, direction: Direction) -> PyErr {
        if self.timeout.is_zero() {
            return not_now(py, direction);
        }
        raise(py.detach(|| core.timed_out(direction, Some(self.timeout))))
    }
}

/// Like [`wait`], for a call that transfers messages: after a timeout, the error shows the state of the connections.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    core: &CoreSocket,
    direction: Direction,
    limit: Option<Limit>,
    step: impl FnMut(Option<Instant>) -> Result<Step<T>, Error> + Send,
) -> PyResult<T> {
    let over = |limit: Limit| limit.is_over(py, core, direction);
    wait_or(py, limit.map(|limit| limit.at), step, || {
        limit.map_or_else(|| raise(Error::new(ErrorKind::Again)), over)
    })
}

/// Repeats `step` without the GIL until it is done, fails, or the deadline passes, which raises `Again`. Python's
/// signal handlers run in between, and an exception from one ends the wait. `step` gets the time until which it may
/// wait; `None` = no limit.
///
/// The main thread's first wait is short. If that is not sufficient, it installs an [`Alarm`], which would cost too
/// much for a short wait, and then sleeps until it is woken, so that a program that waits for hours uses no CPU.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    deadline: Option<Instant>,
    step: impl FnMut(Option<Instant>) -> Result<Step<T>, Error> + Send,
) -> PyResult<T> {
    let over = || raise(Error::new(ErrorKind::Again));
    wait_or(py, deadline, step, over)
}

fn wait_or<T: Send>(
    py: Python<'_>,
    deadline: Option<Instant>,
    mut step: impl FnMut(Option<Instant>) -> Result<Step<T>, Error> + Send,
    over: impl FnOnce() -> PyErr,
) -> PyResult<T> {
    parting::prepare();
    let mut slices = Slices::growing(py)?;
    let mut alarm: Option<Alarm<'_>> = None;
    loop {
        let result = match &alarm {
            Some(alarm) => alarm.heard_by(|| step(deadline)),
            None => {
                let until = slices.next(deadline);
                py.detach(|| step(until))
            }
        };
        match result {
            Ok(Step::Done(value)) => return Ok(value),
            Err(error) => return Err(raise(error)),
            Ok(Step::Again) => {}
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            py.check_signals()?;
            return Err(over());
        }
        match &alarm {
            Some(alarm) => alarm.silence(),
            None if slices.main => alarm = Alarm::set(py),
            None => {}
        }
        py.check_signals()?;
        // Signals that arrive now would be missed otherwise.
        alarm = alarm.filter(Alarm::is_set);
    }
}

/// Like [`wait`], for a step that gets the remaining time, and whose timeout has an error text of its own.
pub(crate) fn wait_saying<T: Send>(
    py: Python<'_>,
    deadline: Option<Instant>,
    mut step: impl FnMut(Wait) -> Result<T, Error> + Send,
) -> PyResult<T> {
    wait(py, None, |until| {
        let until = match (until, deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        match step(until.map_or(Wait::Forever, Wait::Until)) {
            Err(error)
                if error.kind() == ErrorKind::Again
                    && deadline.is_some_and(|deadline| deadline <= Instant::now()) =>
            {
                Err(error)
            }
            result => retry(result),
        }
    })
}

/// Makes a step of a result: errors that ask for a retry are not failures.
pub(crate) fn retry<T>(result: Result<T, Error>) -> Result<Step<T>, Error> {
    match result {
        Ok(value) => Ok(Step::Done(value)),
        Err(error) if matches!(error.kind(), ErrorKind::Again | ErrorKind::Interrupted) => {
            Ok(Step::Again)
        }
        Err(error) => Err(error),
    }
}

/// A timeout from Python in whole milliseconds; None = no limit, which is negative.
pub(crate) fn millis(timeout: Option<f64>) -> i64 {
    timeout.map_or(-1, |millis| millis as i64)
}

/// The point in time `millis` milliseconds from now; negative = never.
pub(crate) fn deadline_in(millis: i64) -> Option<Instant> {
    u64::try_from(millis)
        .ok()
        .and_then(|millis| Instant::now().checked_add(Duration::from_millis(millis)))
}
