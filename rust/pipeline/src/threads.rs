//! Starts threads.

use std::io;
use std::thread::{Builder, JoinHandle};

use zeroxide::{Error, ErrorKind};

/// Starts a thread.
///
/// # Errors
/// `NoThread` if the system has no more, and its other errors.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    let started = Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(|error| match error.kind() {
        // By itself, this error reads as a message that is not there yet.
        io::ErrorKind::WouldBlock => {
            let text = format!(
                "the thread {name} cannot be started: raise the limit of threads (RLIMIT_NPROC, pids.max), or free memory"
            );
            Error::with(ErrorKind::NoThread, text)
        }
        _ => Error::from(error),
    })
}
