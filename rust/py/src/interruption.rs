//! Ending a call that waits in another thread.
//!
//! An event loop that waits for a blocking call has a thread of its own make it. When the one who waited is gone, the call
//! should end, too. A thread may wait for sockets, for a condition or for a moment to pass, so it looks at regular intervals
//! whether its call was interrupted.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyInterruptedError;
use pyo3::prelude::*;

/// How often a call that can be interrupted looks whether it was.
const LOOK: Duration = Duration::from_millis(50);

thread_local! {
    /// What interrupts the call that this thread is in.
    static CURRENT: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

#[doc = text!(Interruption)]
#[pyclass(frozen, module = "zeroxide._native")]
pub(crate) struct Interruption {
    is_over: Arc<AtomicBool>,
}

#[pymethods]
impl Interruption {
    #[new]
    fn new() -> Interruption {
        Interruption {
            is_over: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Makes a call, and returns what it returns.
    fn run<'py>(&self, call: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        struct Restore(Option<Arc<AtomicBool>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.replace(self.0.take());
            }
        }
        let _restore = Restore(CURRENT.replace(Some(self.is_over.clone())));
        check()?;
        call.call0()
    }

    /// From now on, the call does not wait.
    fn interrupt(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Until when to wait at a time.
pub(crate) fn limit(until: Instant) -> Instant {
    next_look().map_or(until, |look| until.min(look))
}

/// When to look next whether the call that this thread is in was interrupted; `None` if it cannot be.
pub(crate) fn next_look() -> Option<Instant> {
    CURRENT
        .with_borrow(Option::is_some)
        .then(|| Instant::now() + LOOK)
}

/// Whether the call that this thread is in was interrupted.
pub(crate) fn is_over() -> bool {
    CURRENT.with_borrow(|current| {
        let current = current.as_ref();
        current.is_some_and(|is_over| is_over.load(Ordering::Acquire))
    })
}

/// Fails if the call that this thread is in was interrupted.
pub(crate) fn check() -> PyResult<()> {
    match is_over() {
        true => Err(PyInterruptedError::new_err("the call was interrupted")),
        false => Ok(()),
    }
}
