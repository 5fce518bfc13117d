//! Handles threads that the interpreter ends during a call of ours.
//!
//! Up to Python 3.13, a daemon thread that wants to continue while the interpreter shuts down is ended with
//! `pthread_exit`, wherever it is: also in Python code that a call of ours runs, such as a destructor or the
//! constructor of an exception.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zeroxide::binding::{prepare_for_exit, sleep_instead_of_exit};

use crate::interpreter::is_interpreter_up;

/// The maximum time between the interpreter's announcement of the shutdown and the moment at which it counts as no
/// longer initialized.
const MOMENT: Duration = Duration::from_secs(1);

static ENDING: AtomicBool = AtomicBool::new(false);

/// Must be called before any operation that may run Python code.
#[inline]
pub(crate) fn prepare() {
    prepare_for_exit();
}

/// Must be called once, when the module is set up.
pub(crate) fn install() {
    sleep_instead_of_exit(is_over);
}

/// Must be called at the end of the program, before the interpreter shuts down.
pub(crate) fn note_end() {
    ENDING.store(true, Ordering::SeqCst);
}

/// Whether the program has come to its end.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// Whether the interpreter is shutting down. The threads that it ends see this a moment before the public flag changes.
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
