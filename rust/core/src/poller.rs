//! Waits for several sockets and descriptors at once.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::signal::{Signal, Woken};
use crate::socket::Socket;
use crate::sys::poll::{self as sys_poll, Ready};

/// POLLIN: something can be received or read.
pub const POLLIN: i16 = 1;
/// POLLOUT: something can be sent or written.
pub const POLLOUT: i16 = 2;
/// POLLERR: a descriptor is in an error state; never set for sockets.
pub const POLLERR: i16 = 4;
/// POLLPRI: urgent data on a descriptor.
pub const POLLPRI: i16 = 8;

/// A socket or descriptor to wait for.
pub enum Target<'a> {
    /// A socket of this crate.
    Socket(&'a Socket),
    /// Any other descriptor.
    Fd(RawFd),
}

/// An item to wait for, with the result.
pub struct PollItem<'a> {
    /// The socket or descriptor.
    pub target: Target<'a>,
    /// The events to wait for, a sum of [`POLLIN`] and the other constants.
    pub events: i16,
    /// The events found by the last [`poll`].
    pub revents: i16,
}

/// Waits until one of the items is ready, and returns how many are; 0 if the deadline passed (`None` = no limit).
///
/// # Errors
/// `Interrupted` if a signal handler ran, `Terminated`, `NotSocket` for a closed socket, `Invalid` for a number that
/// cannot be a descriptor.
pub fn poll(items: &mut [PollItem<'_>], deadline: Option<Instant>) -> Result<usize> {
    let fds = descriptors(items);
    // Most calls find something at once, and need no watchers.
    let ready = look(items, &fds, Some(Instant::now()))?;
    if ready > 0 || deadline.is_some_and(|at| at <= Instant::now()) {
        return Ok(ready);
    }
    let watch = Watch::begin(items);
    loop {
        let ticket = watch.signal.ticket();
        let ready = if fds.is_empty() {
            ask_sockets(items)?
        } else {
            watch.look(items, &fds, deadline)?
        };
        if ready > 0 || deadline.is_some_and(|at| at <= Instant::now()) {
            return Ok(ready);
        }
        if fds.is_empty() && watch.signal.wait(ticket, deadline) == Woken::Interrupted {
            return Err(Error::new(ErrorKind::Interrupted));
        }
    }
}

/// One signal for all events of the sockets among the items. Their own descriptors are not suitable, because they are
/// readable as long as there is something to receive, even if the caller does not wait for that.
struct Watch<'a> {
    signal: Arc<Signal>,
    sockets: Vec<&'a Socket>,
}

impl<'a> Watch<'a> {
    fn begin(items: &[PollItem<'a>]) -> Watch<'a> {
        let signal = Arc::new(Signal::new());
        let sockets: Vec<&Socket> = items
            .iter()
            .filter_map(|item| match item.target {
                Target::Socket(socket) => Some(socket),
                Target::Fd(_) => None,
            })
            .collect();
        for socket in &sockets {
            socket.signal().watch(signal.clone());
        }
        Watch { signal, sockets }
    }

    /// Checks the sockets, then waits for the descriptors and for events of sockets.
    fn look(
        &self,
        items: &mut [PollItem<'_>],
        fds: &[(RawFd, Ready)],
        deadline: Option<Instant>,
    ) -> Result<usize> {
        let own = self.signal.descriptor()?.as_raw_fd();
        self.signal.lower();
        let mut fds = fds.to_vec();
        fds.push((own, wanted(POLLIN)));
        look(items, &fds, deadline)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        for socket in &self.sockets {
            socket.signal().unwatch(&self.signal);
        }
    }
}

fn descriptors(items: &[PollItem<'_>]) -> Vec<(RawFd, Ready)> {
    items
        .iter()
        .filter_map(|item| match item.target {
            Target::Fd(fd) => Some((fd, wanted(item.events))),
            Target::Socket(_) => None,
        })
        .collect()
}

/// Checks the sockets, then the descriptors, which are in the order of the items; waits for the latter unless a socket
/// is ready. Sets all `revents`. Returns how many items are ready.
fn look(
    items: &mut [PollItem<'_>],
    fds: &[(RawFd, Ready)],
    deadline: Option<Instant>,
) -> Result<usize> {
    let mut ready = ask_sockets(items)?;
    if fds.is_empty() {
        return Ok(ready);
    }
    let until = if ready > 0 {
        Some(Instant::now())
    } else {
        deadline
    };
    let found = sys_poll::wait(fds, until)?;
    let others = items
        .iter_mut()
        .filter(|item| matches!(item.target, Target::Fd(_)));
    for (item, ready_for) in others.zip(&found) {
        item.revents = mask(*ready_for);
        ready += usize::from(item.revents != 0);
    }
    Ok(ready)
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
