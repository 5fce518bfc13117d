//! Hearing of everything that happens to a socket, for whoever waits in another event loop.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use super::Socket;
use crate::error::Result;
use crate::signal::Signal;

/// A descriptor that tells that something happened to a socket: a peer came or went, subscribed, sent something. What,
/// the socket knows.
///
/// Whoever waits for something calls [`clear`](Self::clear), looks whether it is there, and otherwise waits until the
/// descriptor is readable.
pub struct Changes {
    socket: Socket,
    signal: Arc<Signal>,
}

impl Changes {
    /// Readable once something happened after the last [`clear`](Self::clear). For other event loops; do not read, write
    /// or close it.
    ///
    /// # Errors
    /// What the system says when it cannot be made.
    pub fn fd(&self) -> Result<RawFd> {
        Ok(self.signal.descriptor()?.as_raw_fd())
    }

    /// Forgets what happened.
    pub fn clear(&self) {
        self.signal.lower();
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.socket.signal().unwatch(&self.signal);
    }
}

impl Socket {
    /// Hears of everything that happens from now on.
    pub fn changes(&self) -> Changes {
        let signal = Arc::new(Signal::new());
        self.signal().watch(signal.clone());
        Changes {
            socket: self.clone(),
            signal,
        }
    }
}
