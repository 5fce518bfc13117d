//! The limit on consecutive calls with immediate results, after which the loop must turn.
//!
//! Awaiting a [`Ready`](super::ready) does not turn the loop, so a task that only makes such calls would keep all other
//! tasks from running. A marker, which the loop was given to call, shows whether the loop has turned. As long as it
//! turns, the cost is one reading of the coarse clock for every [`CALLS`] calls. There is more to do only when the
//! clock has ticked.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rustix::time::{ClockId, clock_gettime};

use super::ready::running_loop;

/// How long calls may continue after the tick at which the marker was sent. Ticks are 1 to 10 ms apart.
const GRACE: Duration = Duration::from_millis(1);
/// The minimum number of calls before the loop must turn. A task that makes fewer is not the one that keeps the loop
/// busy.
const CALLS: u32 = 4;

/// The last known turn of this thread's loop.
#[derive(Clone, Copy)]
struct Turn {
    /// The tick at the last reading of the clock, or `None` while the marker has not been called.
    tick: Option<(i64, i64)>,
    marker: Option<Marker>,
}

/// A marker that the loop has not called yet.
#[derive(Clone, Copy)]
struct Marker {
    since: Instant,
    /// The address of the loop, which is only compared.
    place: usize,
    calls: u32,
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn { tick: None, marker: None }) };
    /// The number of calls that need not read the clock, because it had not ticked at the last reading.
    static UNLOOKED: Cell<u32> = const { Cell::new(0) };
}

fn coarse() -> (i64, i64) {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    (now.tv_sec, now.tv_nsec)
}

/// Whether the loop should turn before the next result. After one `true`, the answer is `false` for a while, so that a
/// program that does not await its results does not pay for every call.
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
        // Without a running loop, no other task has to wait.
        TURN.set(Turn {
            tick: Some(now),
            marker: None,
        });
        return false;
    }
    let place = running.as_ptr() as usize;
    let over = turn.marker.is_some_and(|marker| marker.place == place);
    // A new marker is sent in any case, because the previous one may have been lost with a loop that was closed.
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

/// The marker: the loop calls this when it turns.
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
