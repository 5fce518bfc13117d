//! Threads that the interpreter ends while they are in a call of ours.
//!
//! Up to Python 3.13 a daemon thread that wants to go on once the interpreter goes down is ended with `pthread_exit`,
//! wherever it is: also in Python code that a call of ours runs, such as the constructor of an exception, or a destructor.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zeroxide::{prepare_for_exit, sleep_instead_of_exit};

use crate::buffer::is_interpreter_up;

/// How long the interpreter may take from saying that it goes down to being no longer initialized.
const MOMENT: Duration = Duration::from_secs(1);

static ENDING: AtomicBool = AtomicBool::new(false);

/// To be called by whatever may run Python code, before it does.
#[inline]
pub(crate) fn prepare() {
    prepare_for_exit();
}

/// To be called once, when the module is set up.
pub(crate) fn install() {
    sleep_instead_of_exit(is_over);
}

/// To be called at the end of the program, before the interpreter goes down.
pub(crate) fn note_end() {
    ENDING.store(true, Ordering::SeqCst);
}

/// Whether the interpreter goes down. It says so to the threads that it ends a moment before it says so to us.
fn is_over() -> bool {
    let since = Instant::now();
    while ENDING.load(Ordering::SeqCst) {
        if !is_interpreter_up() {
            return true;
        }
        if since.elapsed() > MOMENT {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}
