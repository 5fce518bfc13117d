//! Wakes a thread that waits for sockets, through a descriptor for which it also waits.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The waking end. Clones wake the same thread.
#[derive(Clone, Debug)]
pub(crate) struct Wake {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stream: UnixStream,
    /// Whether a byte is in the stream. Further bytes would be redundant.
    is_rung: AtomicBool,
}

/// The waiting end.
#[derive(Debug)]
pub(crate) struct Woken {
    stream: UnixStream,
    shared: Arc<Shared>,
}

/// Creates both ends.
pub(crate) fn pair() -> io::Result<(Wake, Woken)> {
    let (here, there) = UnixStream::pair()?;
    here.set_nonblocking(true)?;
    there.set_nonblocking(true)?;
    let shared = Arc::new(Shared {
        stream: here,
        is_rung: AtomicBool::new(false),
    });
    let woken = Woken {
        stream: there,
        shared: shared.clone(),
    };
    Ok((Wake { shared }, woken))
}

impl Wake {
    /// Wakes the other end. Its data must be in place before.
    pub fn wake(&self) {
        // Release: the thread that clears the flag sees the data written before.
        if !self.shared.is_rung.swap(true, Ordering::AcqRel) {
            // The stream cannot be full with one byte in it. If the other end is gone, there is no thread to wake.
            let _ = (&self.shared.stream).write(&[1]);
        }
    }
}

impl Woken {
    /// Readable when the thread was woken.
    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Whether it was woken since the last clear.
    pub fn is_rung(&self) -> bool {
        self.shared.is_rung.load(Ordering::Acquire)
    }

    /// Prepares for the next wake. Call it when the descriptor is readable, before looking for data.
    pub fn clear(&self) {
        let mut bytes = [0; 8];
        let _ = (&self.stream).read(&mut bytes);
        // A wake before this line writes no further byte, and its data is visible to the check after it. A later wake
        // writes a byte. A wake in between may cause one unnecessary wakeup.
        self.shared.is_rung.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(woken: &Woken) -> bool {
        let mut items = [zeroxide::PollItem::fd(
            woken.fd(),
            zeroxide::Events::READABLE,
        )];
        zeroxide::poll(&mut items, Some(std::time::Instant::now())).unwrap() == 1
    }

    #[test]
    fn rings_once_until_it_is_cleared() {
        let (wake, woken) = pair().unwrap();
        assert!(!is_readable(&woken));
        wake.wake();
        wake.clone().wake();
        assert!(is_readable(&woken));
        woken.clear();
        assert!(!is_readable(&woken));
        wake.wake();
        assert!(is_readable(&woken));
        drop(woken);
        wake.wake();
    }
}
