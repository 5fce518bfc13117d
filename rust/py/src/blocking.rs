//! Waiting without the GIL: the one loop that every blocking call goes through.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use zeroxide::{Direction, Error, ErrorKind, Socket as CoreSocket, Wait};

use crate::alarm::Alarm;
use crate::error::{not_now, raise};
use crate::functions::generation;
use crate::parting;

/// How soon the main thread looks whether Python has signal handlers to run.
const SLICE: Duration = Duration::from_millis(50);
/// How rarely at most.
const SLICE_MAX: Duration = Duration::from_secs(1);

/// Until when a call may wait at a time. Python runs signal handlers in its main thread only: other threads need not look
/// for them.
pub(crate) struct Slices {
    main: bool,
    next: Duration,
    longest: Duration,
}

impl Slices {
    /// For a wait that a signal ends by itself as a rule: the main thread looks more and more rarely.
    fn growing(py: Python<'_>) -> PyResult<Slices> {
        Ok(Slices {
            main: is_main_thread(py)?,
            next: SLICE,
            longest: SLICE_MAX,
        })
    }

    /// For a wait that knows nothing of signals.
    pub(crate) fn equal(py: Python<'_>) -> PyResult<Slices> {
        Ok(Slices {
            longest: SLICE,
            ..Slices::growing(py)?
        })
    }

    /// Until when to wait now; `None` = for ever.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Option<Instant> {
        if !self.main {
            return deadline;
        }
        let end = Instant::now() + self.next;
        self.next = (self.next * 4).min(self.longest);
        Some(deadline.map_or(end, |deadline| deadline.min(end)))
    }
}

/// How a wait without the GIL may go on.
pub(crate) enum Step<T> {
    /// It is over.
    Done(T),
    /// The time given to this step is over, or a signal handler wants to run.
    Again,
}

/// How long a call may wait, and until when that is.
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

    /// The exception of a call on this socket that timed out. This takes the socket's lock, without the GIL.
    #[cold]
    pub(crate) fn is_over(self, py: Python<'_>, core: &CoreSocket, direction: Direction) -> PyErr {
        if self.timeout.is_zero() {
            return not_now(py, direction);
        }
        raise(py.detach(|| core.timed_out(direction, Some(self.timeout))))
    }
}

/// As [`wait`], for a call that moves messages: after a timeout, the error shows the state of the connections.
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

/// Runs `step` without the GIL, again and again until it is done, fails, or the deadline passes, which is `Again`.
/// Python's signal handlers run in between, and what they raise ends the wait. `step` is given the time until which it
/// may wait; `None` = for ever.
///
/// The main thread's first wait is short. If that was not enough it sets an [`Alarm`], which is not worth the while
/// before, and then sleeps until it is woken: a program that waits for hours costs nothing.
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
        // Otherwise it would not hear of the signals that come now.
        alarm = alarm.filter(Alarm::is_set);
    }
}

/// As [`wait`] for a step that is told how long it may wait, and whose error says more than that the time is over.
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

/// Makes a step of a result: what asks for another try is not an error.
pub(crate) fn retry<T>(result: Result<T, Error>) -> Result<Step<T>, Error> {
    match result {
        Ok(value) => Ok(Step::Done(value)),
        Err(error) if matches!(error.kind(), ErrorKind::Again | ErrorKind::Interrupted) => {
            Ok(Step::Again)
        }
        Err(error) => Err(error),
    }
}

/// The point in time that `timeout` milliseconds from now is; negative = never.
pub(crate) fn deadline_in(millis: i64) -> Option<Instant> {
    u64::try_from(millis)
        .ok()
        .and_then(|millis| Instant::now().checked_add(Duration::from_millis(millis)))
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    thread_local! {
        /// The answer, and the process it is about: in a forked child the thread that forked is the main thread.
        static MAIN: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
    }
    let generation = generation();
    if let Some((known_in, main)) = MAIN.get()
        && known_in == generation
    {
        return Ok(main);
    }
    let threading = py.import("threading")?;
    let me: u64 = threading.call_method0("get_ident")?.extract()?;
    let main: u64 = threading
        .call_method0("main_thread")?
        .getattr("ident")?
        .extract()?;
    MAIN.set(Some((generation, me == main)));
    Ok(me == main)
}
