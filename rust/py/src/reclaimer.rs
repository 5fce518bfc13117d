//! Releases Python objects whose memory is no longer needed, while the program makes no call that would.
//!
//! This needs a thread of its own, started with the first lent object, because the main thread may compute, or sleep in
//! a library, for hours. The thread sleeps while nothing is lent, and otherwise checks at intervals, leaving the work
//! to the program's calls as long as those do it. It must never wait for Python once the interpreter shuts down,
//! because Python would end it in the middle of this module. So it is ended before that.
//!
//! It also returns the memory of a burst to the system. A connection does so when it falls silent, but the objects that
//! it has sent may be released only after that.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use pyo3::prelude::*;
use zeroxide::binding::{BACKLOG_LARGE, give_memory_back, spawn_without_signals};

use crate::fork::generation;
use crate::parting;

/// The initial and maximum interval between its checks.
const SOON: Duration = Duration::from_millis(20);
const LATE: Duration = Duration::from_millis(500);

/// The time that the shutdown of the interpreter waits for a destructor that the thread may be running.
const FAREWELL: Duration = Duration::from_secs(2);

/// The states: there is no thread; it is working; it sleeps until something is lent; it has ended permanently.
const NONE: u8 = 0;
const LOOKING: u8 = 1;
const ASLEEP: u8 = 2;
const OVER: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(NONE);

/// The number of times that calls of the program released something.
static BY_CALLS: AtomicU32 = AtomicU32::new(0);

/// The thread, its process, and the channel that reports its end.
static THREAD: Mutex<Option<(u32, Thread, Receiver<()>)>> = Mutex::new(None);

/// The owner of the objects that the thread releases.
pub(crate) trait Lender: Sync {
    /// Whether the core refers to memory of a Python object.
    fn is_anything_lent(&self) -> bool;
    /// Whether there are objects whose memory is no longer needed.
    fn is_anything_spent(&self) -> bool;
    /// The number of bytes that have ever been lent. It wraps around.
    fn volume(&self) -> usize;
    /// Releases them. Called with the GIL held.
    fn reclaim(&self);
}

/// Must be called when something was lent.
#[inline]
pub(crate) fn note_lent(lender: &'static dyn Lender) {
    // The thread announces its sleep before it checks for lent objects; this thread has lent one before it checks for
    // that sleep.
    if matches!(STATE.load(Ordering::SeqCst), NONE | ASLEEP) {
        rouse(lender);
    }
}

/// Must be called when a call of the program released something.
pub(crate) fn note_reclaimed() {
    BY_CALLS.fetch_add(1, Ordering::Relaxed);
}

/// A forked child has no such thread.
pub(crate) fn forget() {
    let _ = STATE.compare_exchange(LOOKING, NONE, Ordering::SeqCst, Ordering::SeqCst);
    let _ = STATE.compare_exchange(ASLEEP, NONE, Ordering::SeqCst, Ordering::SeqCst);
}

#[cold]
fn rouse(lender: &'static dyn Lender) {
    // Another thread that has the lock does the same.
    let Ok(mut thread) = THREAD.try_lock() else {
        return;
    };
    if let Some((process, thread, _)) = &*thread
        && *process == generation()
    {
        if STATE.compare_exchange(ASLEEP, LOOKING, Ordering::SeqCst, Ordering::SeqCst) == Ok(ASLEEP)
        {
            thread.unpark();
        }
        return;
    }
    if STATE.compare_exchange(NONE, LOOKING, Ordering::SeqCst, Ordering::SeqCst) != Ok(NONE) {
        return;
    }
    let (end, ended) = channel();
    let started = spawn_without_signals("zx-reclaim", move || {
        run(lender);
        drop(end);
    });
    match started {
        Ok(started) => *thread = Some((generation(), started.thread().clone(), ended)),
        // Without the thread, the program's next call does the work.
        Err(_) => STATE.store(OVER, Ordering::SeqCst),
    }
}

fn run(lender: &dyn Lender) {
    let mut pause = SOON;
    let mut by_calls = BY_CALLS.load(Ordering::Relaxed);
    let mut returned = 0;
    while STATE.load(Ordering::SeqCst) != OVER {
        if !lender.is_anything_lent() && !lender.is_anything_spent() {
            pause = SOON;
            let volume = lender.volume();
            if (volume.wrapping_sub(returned) as u64) < BACKLOG_LARGE {
                sleep(lender);
                continue;
            }
            // A burst that follows at once finds the memory still there.
            thread::park_timeout(LATE);
            if lender.volume() == volume && give_memory_back() {
                returned = volume;
            }
            continue;
        }
        thread::park_timeout(pause);
        if !lender.is_anything_spent() {
            pause = (pause * 2).min(LATE);
            continue;
        }
        pause = SOON;
        let now = BY_CALLS.load(Ordering::Relaxed);
        if std::mem::replace(&mut by_calls, now) != now {
            // The program's calls do the work.
            continue;
        }
        if STATE.load(Ordering::SeqCst) == OVER
            || Python::try_attach(|_| lender.reclaim()).is_none()
        {
            return;
        }
        by_calls = BY_CALLS.load(Ordering::Relaxed);
    }
}

/// Sleeps until something is lent.
fn sleep(lender: &dyn Lender) {
    let asleep = STATE.compare_exchange(LOOKING, ASLEEP, Ordering::SeqCst, Ordering::SeqCst);
    if asleep.is_err() {
        return;
    }
    while STATE.load(Ordering::SeqCst) == ASLEEP {
        if lender.is_anything_lent() || lender.is_anything_spent() {
            let _ = STATE.compare_exchange(ASLEEP, LOOKING, Ordering::SeqCst, Ordering::SeqCst);
            return;
        }
        thread::park();
    }
}

/// Must be called before the interpreter shuts down. From then on, only calls release objects.
#[pyfunction]
pub(crate) fn stop_reclaiming(py: Python<'_>) {
    parting::note_end();
    STATE.store(OVER, Ordering::SeqCst);
    let thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((process, thread, ended)) = thread
        && process == generation()
    {
        thread.unpark();
        // Nothing is ever sent, so the result is always an error.
        let _ = py.detach(move || ended.recv_timeout(FAREWELL));
    }
}
