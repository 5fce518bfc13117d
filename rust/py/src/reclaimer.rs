//! Lets go of Python objects whose memory is no longer needed, while the program makes no call that would.
//!
//! A thread of its own, started with the first object that is lent: the main thread may compute, or sleep in a library, for
//! hours. It sleeps while nothing is lent, looks from time to time otherwise, and leaves the work to the program as long as
//! that does it. It never waits for Python once the interpreter goes down: that would be the end of it in the middle of
//! this module. So it is ended before.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use pyo3::prelude::*;
use zeroxide::spawn_without_signals;

use crate::buffer::{is_anything_lent, is_anything_spent, reclaim};
use crate::functions::generation;
use crate::parting;

/// How soon it looks after something happened, and how rarely at most.
const SOON: Duration = Duration::from_millis(20);
const LATE: Duration = Duration::from_millis(500);

/// How long the end of the interpreter waits for a destructor that it may be in.
const FAREWELL: Duration = Duration::from_secs(2);

/// There is no thread, it is at work, it sleeps until something is lent, or there shall be none any more.
const NONE: u8 = 0;
const LOOKING: u8 = 1;
const ASLEEP: u8 = 2;
const OVER: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(NONE);

/// How often calls of the program let go of something.
static BY_CALLS: AtomicU32 = AtomicU32::new(0);

/// The thread, the process it is of, and what tells of its end.
static THREAD: Mutex<Option<(u32, Thread, Receiver<()>)>> = Mutex::new(None);

/// Something was lent.
#[inline]
pub(crate) fn note_lent() {
    // Before it sleeps it says so and looks for what is lent; this lent something and looks whether it sleeps.
    if matches!(STATE.load(Ordering::SeqCst), NONE | ASLEEP) {
        rouse();
    }
}

/// A call of the program let go of something.
pub(crate) fn note_reclaimed() {
    BY_CALLS.fetch_add(1, Ordering::Relaxed);
}

/// In a forked child there is no thread.
pub(crate) fn forget() {
    let _ = STATE.compare_exchange(LOOKING, NONE, Ordering::SeqCst, Ordering::SeqCst);
    let _ = STATE.compare_exchange(ASLEEP, NONE, Ordering::SeqCst, Ordering::SeqCst);
}

#[cold]
fn rouse() {
    // Whoever has the lock does the same.
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
        run();
        drop(end);
    });
    match started {
        Ok(started) => *thread = Some((generation(), started.thread().clone(), ended)),
        // Without it the program's next call does the work.
        Err(_) => STATE.store(OVER, Ordering::SeqCst),
    }
}

fn run() {
    let mut pause = SOON;
    let mut by_calls = BY_CALLS.load(Ordering::Relaxed);
    while STATE.load(Ordering::SeqCst) != OVER {
        if !is_anything_lent() && !is_anything_spent() {
            sleep();
            pause = SOON;
            continue;
        }
        thread::park_timeout(pause);
        if !is_anything_spent() {
            pause = (pause * 2).min(LATE);
            continue;
        }
        pause = SOON;
        let now = BY_CALLS.load(Ordering::Relaxed);
        if std::mem::replace(&mut by_calls, now) != now {
            // The program does it.
            continue;
        }
        if STATE.load(Ordering::SeqCst) == OVER || Python::try_attach(|_| reclaim()).is_none() {
            return;
        }
        by_calls = BY_CALLS.load(Ordering::Relaxed);
    }
}

/// Sleeps until something is lent.
fn sleep() {
    let asleep = STATE.compare_exchange(LOOKING, ASLEEP, Ordering::SeqCst, Ordering::SeqCst);
    if asleep.is_err() {
        return;
    }
    while STATE.load(Ordering::SeqCst) == ASLEEP {
        if is_anything_lent() || is_anything_spent() {
            let _ = STATE.compare_exchange(ASLEEP, LOOKING, Ordering::SeqCst, Ordering::SeqCst);
            return;
        }
        thread::park();
    }
}

/// To be called before the interpreter goes down: nobody reclaims any more but calls.
#[pyfunction]
pub(crate) fn stop_reclaiming(py: Python<'_>) {
    parting::note_end();
    STATE.store(OVER, Ordering::SeqCst);
    let thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((process, thread, ended)) = thread
        && process == generation()
    {
        thread.unpark();
        // Nothing is ever sent: it is an error either way.
        let _ = py.detach(move || ended.recv_timeout(FAREWELL));
    }
}
