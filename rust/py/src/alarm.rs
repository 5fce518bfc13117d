//! How a thread that waits hears of signals without looking for them.
//!
//! A signal ends a system call only if it comes while the call lasts, and only in the thread that handles it; one that
//! comes a microsecond before, one that another thread of Python's handles, and `_thread.interrupt_main()`, which sends
//! none, would go unnoticed. Python tells of all of them by a byte written to the descriptor of `signal.set_wakeup_fd()`.
//! It belongs to the program; but while the main thread is in a call of ours, nobody else can set it, so that a call may
//! use it where the program does not.

use std::cell::RefCell;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zeroxide::interrupted_by;

use crate::functions::generation;

/// Python's wakeup descriptor is ours.
static SET: AtomicBool = AtomicBool::new(false);

/// Python's wakeup descriptor in the hands of a call of the main thread. Dropping it gives it back.
pub(crate) struct Alarm<'py> {
    py: Python<'py>,
    wire: Arc<Wire>,
    /// Not that of a call further out, within which a signal handler makes this one.
    own: bool,
}

/// What Python writes to, and what it can be heard by.
struct Wire {
    generation: u32,
    heard: UnixStream,
    written: UnixStream,
}

impl Wire {
    /// The one of this thread, and of this process: a forked child would be heard by its parent.
    fn mine() -> io::Result<Arc<Wire>> {
        thread_local! {
            static WIRE: RefCell<Option<Arc<Wire>>> = const { RefCell::new(None) };
        }
        WIRE.with_borrow_mut(|wire| {
            if let Some(wire) = wire
                && wire.generation == generation()
            {
                return Ok(wire.clone());
            }
            let (heard, written) = UnixStream::pair()?;
            heard.set_nonblocking(true)?;
            written.set_nonblocking(true)?;
            let fresh = Arc::new(Wire {
                generation: generation(),
                heard,
                written,
            });
            Ok(wire.insert(fresh).clone())
        })
    }

    /// Has Python write to it, unless the program has a wakeup descriptor of its own. What there was before.
    fn lend(&self, py: Python<'_>) -> Option<RawFd> {
        let ours = self.written.as_raw_fd();
        let before = set_wakeup_fd(py, ours).ok()?;
        if before == ours || before == NONE {
            return Some(before);
        }
        let _ = set_wakeup_fd(py, before);
        // What came in between was meant for the program, which may tell signals by these bytes.
        let strays = self.take();
        if !strays.is_empty() {
            let os = py.import(intern!(py, "os")).ok()?;
            let _ = os.call_method1(intern!(py, "write"), (before, strays.as_slice()));
        }
        None
    }

    /// What was written since the last call.
    fn take(&self) -> Vec<u8> {
        let mut taken = Vec::new();
        // Ends with an error, that there is no more for now.
        let _ = (&self.heard).read_to_end(&mut taken);
        taken
    }
}

impl<'py> Alarm<'py> {
    /// For the main thread. `None` where the program has a wakeup descriptor of its own, or there cannot be one.
    /// To be followed by a look for signals: what came before is not heard.
    pub(crate) fn set(py: Python<'py>) -> Option<Alarm<'py>> {
        let wire = Wire::mine().ok()?;
        wire.take();
        let own = wire.lend(py)? == NONE;
        SET.store(true, Ordering::Relaxed);
        Some(Alarm { py, wire, own })
    }

    /// Whether it still is: a signal handler may have set a descriptor of its own, or none.
    pub(crate) fn is_set(&self) -> bool {
        // Over a fork the wire stays with the parent.
        self.wire.generation == generation()
            && self.wire.lend(self.py) == Some(self.wire.written.as_raw_fd())
    }

    /// Without the GIL; a signal ends all waits in `work`.
    pub(crate) fn heard_by<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let wire = &*self.wire;
        self.py.detach(|| interrupted_by(wire.heard.as_fd(), work))
    }

    /// To be followed by a look for signals.
    pub(crate) fn silence(&self) {
        self.wire.take();
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        SET.store(false, Ordering::Relaxed);
        let ours = self.wire.written.as_raw_fd();
        // A signal handler may have set another one for good.
        if let Ok(now) = set_wakeup_fd(self.py, NONE)
            && now != ours
            && now != NONE
        {
            let _ = set_wakeup_fd(self.py, now);
        }
    }
}

/// In the child after a fork: the one who set the alarm may be a thread that is not there any more.
pub(crate) fn forget(py: Python<'_>) {
    if SET.swap(false, Ordering::Relaxed) {
        let _ = set_wakeup_fd(py, NONE);
    }
}

const NONE: RawFd = -1;

/// Bytes that nobody has read yet are alarm enough: Python shall not complain that there is no room for more. It does not
/// tell whether the program has asked it to, and what belongs to the program is given back like this, too.
fn set_wakeup_fd(py: Python<'_>, fd: RawFd) -> PyResult<RawFd> {
    let arguments = PyDict::new(py);
    arguments.set_item(intern!(py, "warn_on_full_buffer"), false)?;
    // What `signal` takes it from: built in, so that no line of Python runs in here, and no signal handler with it, whose
    // exception would be lost.
    py.import(intern!(py, "_signal"))?
        .call_method(intern!(py, "set_wakeup_fd"), (fd,), Some(&arguments))?
        .extract()
}
