//! Notifies a waiting thread of signals, so that it need not poll for them.
//!
//! A signal interrupts a system call only if it arrives during the call, and only in the thread that handles it. A
//! signal that arrives a microsecond before, one that another Python thread handles, and `_thread.interrupt_main()`,
//! which sends none, would be missed. Python reports all of them by writing a byte to the descriptor of
//! `signal.set_wakeup_fd()`. That setting belongs to the program. However, while the main thread is in a call of ours,
//! no other code can set it, so a call may use it if the program does not.

use std::cell::RefCell;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zeroxide::binding::interrupted_by;

use crate::fork::generation;

/// Whether Python's wakeup descriptor is ours.
static SET: AtomicBool = AtomicBool::new(false);

/// Python's wakeup descriptor while a call of the main thread uses it. Dropping this restores it.
pub(crate) struct Alarm<'py> {
    py: Python<'py>,
    wire: Arc<Wire>,
    /// False if the descriptor belongs to an outer call, within which a signal handler makes this one.
    own: bool,
}

/// The stream to which Python writes, and the end from which the call reads.
struct Wire {
    generation: u32,
    heard: UnixStream,
    written: UnixStream,
}

impl Wire {
    /// The wire of this thread and this process. A forked child needs its own, because its parent would receive the
    /// bytes.
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

    /// Installs the wire as wakeup descriptor, unless the program has its own. Returns the previous one.
    fn lend(&self, py: Python<'_>) -> Option<RawFd> {
        let ours = self.written.as_raw_fd();
        let before = set_wakeup_fd(py, ours).ok()?;
        if before == ours || before == NONE {
            return Some(before);
        }
        let _ = set_wakeup_fd(py, before);
        // Bytes written before were meant for the program, which may use them to identify signals.
        let strays = self.take();
        if !strays.is_empty() {
            let os = py.import(intern!(py, "os")).ok()?;
            let _ = os.call_method1(intern!(py, "write"), (before, strays.as_slice()));
        }
        None
    }

    /// The bytes written since the last call.
    fn take(&self) -> Vec<u8> {
        let mut taken = Vec::new();
        // The read ends with an error, because there is no more data yet.
        let _ = (&self.heard).read_to_end(&mut taken);
        taken
    }
}

impl<'py> Alarm<'py> {
    /// For the main thread. `None` if the program has its own wakeup descriptor, or if none can be created. The caller
    /// must check for signals afterwards, because earlier ones were not reported.
    pub(crate) fn set(py: Python<'py>) -> Option<Alarm<'py>> {
        let wire = Wire::mine().ok()?;
        wire.take();
        let own = wire.lend(py)? == NONE;
        SET.store(true, Ordering::Relaxed);
        Some(Alarm { py, wire, own })
    }

    /// Whether it is still installed; a signal handler may have changed the descriptor.
    pub(crate) fn is_set(&self) -> bool {
        // After a fork, the wire belongs to the parent.
        self.wire.generation == generation()
            && self.wire.lend(self.py) == Some(self.wire.written.as_raw_fd())
    }

    /// Runs without the GIL; a signal ends all waits in `work`.
    pub(crate) fn heard_by<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let wire = &*self.wire;
        self.py.detach(|| interrupted_by(wire.heard.as_fd(), work))
    }

    /// The caller must check for signals afterwards.
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
        // A signal handler may have installed another descriptor permanently.
        if let Ok(now) = set_wakeup_fd(self.py, NONE)
            && now != ours
            && now != NONE
        {
            let _ = set_wakeup_fd(self.py, now);
        }
    }
}

/// In the child after a fork, because the thread that set the alarm may not exist any more.
pub(crate) fn forget(py: Python<'_>) {
    if SET.swap(false, Ordering::Relaxed) {
        let _ = set_wakeup_fd(py, NONE);
    }
}

const NONE: RawFd = -1;

/// Unread bytes already wake the thread, so Python must not warn when there is no room for more. Python does not reveal
/// whether the program wants the warning, so the program's own descriptor is also restored without it.
fn set_wakeup_fd(py: Python<'_>, fd: RawFd) -> PyResult<RawFd> {
    let arguments = PyDict::new(py);
    arguments.set_item(intern!(py, "warn_on_full_buffer"), false)?;
    // The built-in module from which `signal` imports it, so that no Python code runs here. A signal handler within it
    // could raise an exception that would be lost.
    py.import(intern!(py, "_signal"))?
        .call_method(intern!(py, "set_wakeup_fd"), (fd,), Some(&arguments))?
        .extract()
}
