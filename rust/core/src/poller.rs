//! Waiting for several sockets and descriptors at once.

use std::os::fd::RawFd;
use std::time::Instant;

use crate::error::Result;
use crate::socket::Socket;
use crate::sys::poll::{self as sys_poll, Ready};

/// POLLIN: something can be received or read.
pub const POLLIN: i16 = 1;
/// POLLOUT: something can be sent or written.
pub const POLLOUT: i16 = 2;
/// POLLERR: a descriptor is in error; sockets never are.
pub const POLLERR: i16 = 4;
/// POLLPRI: urgent data on a descriptor.
pub const POLLPRI: i16 = 8;

/// What to wait for.
pub enum Target<'a> {
    /// One of our sockets.
    Socket(&'a Socket),
    /// Any other descriptor.
    Fd(RawFd),
}

/// One thing to wait for, and what it turned out to be ready for.
pub struct PollItem<'a> {
    /// What to wait for.
    pub target: Target<'a>,
    /// A mask of [`POLLIN`] and its sisters.
    pub events: i16,
    /// What the last [`poll`] found.
    pub revents: i16,
}

/// Waits until one of the items is ready, and returns how many are; 0 when the deadline passed (`None` = never).
///
/// # Errors
/// `Interrupted` when a signal handler ran, `Terminated`, `NotSocket` for a closed socket, `Invalid` for a number that
/// cannot be a descriptor.
pub fn poll(items: &mut [PollItem<'_>], deadline: Option<Instant>) -> Result<usize> {
    // The descriptors are made before the first look: from then on they are level-true.
    let mut fds = Vec::with_capacity(items.len());
    for item in items.iter() {
        fds.push(match item.target {
            Target::Socket(socket) => (socket.fd()?, wanted(POLLIN)),
            Target::Fd(fd) => (fd, wanted(item.events)),
        });
    }
    let mut waited = false;
    loop {
        let mut ready = ask_sockets(items)?;
        let last = deadline.is_some_and(|at| at <= Instant::now());
        // Descriptors are asked without waiting when a socket is ready, and at first: `revents` shall be complete.
        let until = if ready > 0 || last || !waited {
            Some(Instant::now())
        } else {
            deadline
        };
        let found = sys_poll::wait(&fds, until)?;
        waited = true;
        for (item, ready_for) in items.iter_mut().zip(&found) {
            if let Target::Fd(_) = item.target {
                item.revents = mask(*ready_for);
                ready += usize::from(item.revents != 0);
            }
        }
        if ready > 0 || last {
            return Ok(ready);
        }
    }
}

fn wanted(mask: i16) -> Ready {
    Ready {
        readable: mask & POLLIN != 0,
        writable: mask & POLLOUT != 0,
        priority: mask & POLLPRI != 0,
        error: false,
    }
}

fn mask(ready: Ready) -> i16 {
    let bit = |set: bool, bit: i16| if set { bit } else { 0 };
    bit(ready.readable, POLLIN)
        | bit(ready.writable, POLLOUT)
        | bit(ready.priority, POLLPRI)
        | bit(ready.error, POLLERR)
}

fn ask_sockets(items: &mut [PollItem<'_>]) -> Result<usize> {
    let mut ready = 0;
    for item in items.iter_mut() {
        if let Target::Socket(socket) = item.target {
            let events = socket.events()?;
            let mut revents = 0;
            if events.readable {
                revents |= POLLIN;
            }
            if events.writable {
                revents |= POLLOUT;
            }
            item.revents = revents & item.events;
            ready += usize::from(item.revents != 0);
        }
    }
    Ok(ready)
}
