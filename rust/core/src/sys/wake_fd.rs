//! [`WakeFd`]: a descriptor that any thread can make readable.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, retry_on_intr, write};

/// A counter with a descriptor, which is readable while the counter is above zero.
#[derive(Debug)]
pub(crate) struct WakeFd {
    fd: OwnedFd,
}

impl WakeFd {
    pub(crate) fn new() -> io::Result<WakeFd> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(WakeFd {
            fd: eventfd(0, flags)?,
        })
    }

    /// Makes it readable.
    pub(crate) fn signal(&self) {
        #[cfg(zeroxide_shuttle)]
        super::simulated::stir();
        // A write fails only if the counter is full, and then the descriptor is readable already.
        let _ = retry_on_intr(|| write(&self.fd, &1_u64.to_ne_bytes()));
    }

    /// Makes it unreadable, however often it was signalled. Returns whether it was readable.
    pub(crate) fn drain(&self) -> bool {
        let mut count = [0; 8];
        match retry_on_intr(|| read(&self.fd, &mut count)) {
            Ok(_) => true,
            Err(Errno::AGAIN) => false,
            // Cannot happen to an eventfd; treated as readable, so that the caller checks.
            Err(_) => true,
        }
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_signals_are_one() {
        let event = WakeFd::new().unwrap();
        assert!(!event.drain());
        event.signal();
        event.signal();
        assert!(event.drain());
        assert!(!event.drain());
    }
}
