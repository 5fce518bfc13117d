//! How long calls may go on whose results are there at once before the loop has to turn.
//!
//! Awaiting a [`Ready`](super::ready) costs no turn of the loop, so a task that makes only such calls would keep all others
//! from running. What tells that the loop has turned is a marker that it was given to call. As long as nothing is wrong this
//! costs a look at the coarse clock with one call in [`CALLS`]; only when that has ticked is there more to do.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rustix::time::{ClockId, clock_gettime};

use super::ready::running_loop;

/// How long it may go on after the tick that the marker was sent at: ticks are 1 to 10 ms apart.
const GRACE: Duration = Duration::from_millis(1);
/// And for how many calls at least: who makes just a few is not the one that keeps the loop busy.
const CALLS: u32 = 4;

/// What this thread's loop is known to have done.
#[derive(Clone, Copy)]
struct Turn {
    /// The tick of the last look, or none while the marker is on its way.
    tick: Option<(i64, i64)>,
    marker: Option<Marker>,
}

/// The marker is on its way.
#[derive(Clone, Copy)]
struct Marker {
    since: Instant,
    /// The loop: where it is, which is only compared.
    place: usize,
    calls: u32,
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn { tick: None, marker: None }) };
    /// How many calls may follow without a look at the clock, after a look at which it had not ticked.
    static UNLOOKED: Cell<u32> = const { Cell::new(0) };
}

fn coarse() -> (i64, i64) {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    (now.tv_sec, now.tv_nsec)
}

/// Whether the next result should cost a turn of the loop. Says so once, then not again for a while: who does not await
/// what it is given is not to pay for every call.
#[inline]
pub(crate) fn is_over(py: Python<'_>) -> bool {
    let unlooked = UNLOOKED.get();
    if unlooked > 0 {
        UNLOOKED.set(unlooked - 1);
        return false;
    }
    let turn = TURN.get();
    let now = coarse();
    if turn.tick == Some(now) {
        UNLOOKED.set(CALLS - 1);
        return false;
    }
    look(py, turn, now)
}

#[cold]
fn look(py: Python<'_>, turn: Turn, now: (i64, i64)) -> bool {
    if let Some(marker) = turn.marker {
        let calls = marker.calls + 1;
        if calls < CALLS || marker.since.elapsed() < GRACE {
            TURN.set(Turn {
                tick: None,
                marker: Some(Marker { calls, ..marker }),
            });
            return false;
        }
    }
    let Ok(running) = running_loop(py) else {
        return false;
    };
    if running.is_none() {
        // Nobody is kept waiting.
        TURN.set(Turn {
            tick: Some(now),
            marker: None,
        });
        return false;
    }
    let place = running.as_ptr() as usize;
    let over = turn.marker.is_some_and(|marker| marker.place == place);
    // Sent again in any case: the one before may have gone down with a loop that was closed.
    let sent = marker(py).and_then(|marker| {
        running.call_method1(intern!(py, "call_soon"), (marker,))?;
        Ok(())
    });
    TURN.set(Turn {
        tick: None,
        marker: sent.is_ok().then(|| Marker {
            since: Instant::now(),
            place,
            calls: 0,
        }),
    });
    over && sent.is_ok()
}

/// What the loop calls when it turns.
#[pyfunction]
fn turned() {
    TURN.set(Turn {
        tick: Some(coarse()),
        marker: None,
    });
}

fn marker(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static MARKER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let marker = MARKER.get_or_try_init(py, || {
        Ok::<_, PyErr>(wrap_pyfunction!(turned, py)?.into_any().unbind())
    })?;
    Ok(marker.bind(py))
}

#[doc = text!(turn_is_over)]
#[pyfunction]
pub(crate) fn turn_is_over(py: Python<'_>) -> bool {
    is_over(py)
}
