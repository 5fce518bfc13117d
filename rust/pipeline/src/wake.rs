//! Waking a thread that waits for sockets: it also waits for a descriptor of this.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The end that wakes. Clones wake the same thread.
#[derive(Clone, Debug)]
pub(crate) struct Wake {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stream: UnixStream,
    /// A byte is in the stream: more of them would say nothing new.
    is_rung: AtomicBool,
}

/// The end that is woken.
#[derive(Debug)]
pub(crate) struct Woken {
    stream: UnixStream,
    shared: Arc<Shared>,
}

/// Both ends.
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
    /// Wakes the other end, after what it shall find was put in its place.
    pub fn wake(&self) {
        // Release: who takes the flag back sees what was put in its place before.
        if !self.shared.is_rung.swap(true, Ordering::AcqRel) {
            // It cannot be full with one byte in it, and without the other end nobody needs to be woken.
            let _ = (&self.shared.stream).write(&[1]);
        }
    }
}

impl Woken {
    /// Readable when somebody has something to tell.
    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Whether somebody has woken it since it was cleared.
    pub fn is_rung(&self) -> bool {
        self.shared.is_rung.load(Ordering::Acquire)
    }

    /// Gets ready to be woken again. To be called when the descriptor is readable, before looking for what there is.
    pub fn clear(&self) {
        let mut bytes = [0; 8];
        let _ = (&self.stream).read(&mut bytes);
        // Who rings before this line writes nothing more, and what it put down is seen by whoever looks after it. Who
        // rings later writes. One who was between ringing and writing causes a wake-up too many.
        self.shared.is_rung.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(woken: &Woken) -> bool {
        let mut items = [zeroxide::PollItem {
            target: zeroxide::Target::Fd(woken.fd()),
            events: zeroxide::POLLIN,
            revents: 0,
        }];
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
