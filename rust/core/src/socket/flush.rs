//! Waiting until all sent messages have left this process.

use std::ops::ControlFlow;
use std::time::Duration;

use super::Socket;
use super::core::{Core, State};
use crate::error::{Error, ErrorKind, Result};
use crate::signal::Woken;
use crate::sys::clock;

/// The messages that had not left when a flush gave up.
#[derive(Debug)]
pub struct FlushError {
    /// The reason: `Again` when the timeout expired, otherwise as for any call.
    pub error: Error,
    /// Messages that have not left, by endpoint.
    pub remaining: Vec<(String, u64)>,
}

impl Socket {
    /// Waits until every message that was accepted so far has been handed to the kernel, for every peer. A message over
    /// inproc has arrived as soon as it is sent. Messages in SPILL_DIR remain, under the path of the folder. Messages that were lost with a connection are not waited for; `stats`
    /// counts them. Messages of an endpoint that was disconnected are not waited for either, because LINGER applies to
    /// them.
    ///
    /// # Errors
    /// The remaining messages by endpoint, with the reason: `Again` when the timeout expired, `Interrupted` when a
    /// signal handler ran (call again), `Terminated`, `NotSocket`.
    pub fn flush(&self, timeout: Option<Duration>) -> std::result::Result<(), FlushError> {
        let core = self.core();
        let deadline = timeout.and_then(|timeout| clock::now().checked_add(timeout));
        loop {
            let ticket = core.signal.ticket();
            let remaining = match core.remaining() {
                Ok(remaining) if remaining.is_empty() => return Ok(()),
                Ok(remaining) => remaining,
                Err(error) => {
                    return Err(FlushError {
                        error,
                        remaining: Vec::new(),
                    });
                }
            };
            let error = match core.signal.wait(ticket, deadline) {
                Woken::Notified => continue,
                Woken::TimedOut => Error::new(ErrorKind::Again),
                Woken::Interrupted => Error::new(ErrorKind::Interrupted),
            };
            return Err(FlushError { error, remaining });
        }
    }
}

impl Core {
    /// Counts the messages that have not left, by endpoint, and requests a notification when that changes.
    fn remaining(&self) -> Result<Vec<(String, u64)>> {
        let mut state = self.lock_open()?;
        self.process(&mut state);
        self.settle(&mut state);
        let State { pipes, origins, .. } = &*state;
        let mut remaining: Vec<(String, u64)> = Vec::new();
        pipes.for_each(|id, pipe, endpoint, _| {
            if origins.get(&id).is_some_and(|origin| origin.local) {
                return ControlFlow::Continue(());
            }
            pipe.wait_sent();
            let (sent, lost) = pipe.sent_and_lost();
            let left = pipe.written().0.saturating_sub(sent + lost);
            if left > 0 && !pipe.is_far_gone() {
                match remaining.iter_mut().find(|(name, _)| name == endpoint) {
                    Some((_, count)) => *count += left,
                    None => remaining.push((endpoint.to_owned(), left)),
                }
            }
            ControlFlow::Continue(())
        });
        if let Some(overflow) = pipes.overflow() {
            let path = overflow.path().display().to_string();
            let (messages, _) = overflow.size();
            if messages > 0 {
                remaining.push((path, messages));
            }
        }
        Ok(remaining)
    }
}
