//! Waits for several sockets and descriptors at once.

use std::io;
use std::os::fd::RawFd;
use std::time::Instant;

use crate::error::{ErrorKind, Result};
use crate::signal::Vigil;
use crate::socket::{Events, Socket};
use crate::sys::clock;
use crate::sys::poll::{self as sys_poll, Ready};

/// A socket or descriptor to wait for.
pub enum PollTarget<'a> {
    /// A socket of this crate.
    Socket(&'a Socket),
    /// Any other descriptor.
    Fd(RawFd),
}

/// An item to wait for, with the result.
pub struct PollItem<'a> {
    /// The socket or descriptor.
    pub target: PollTarget<'a>,
    /// The events to wait for.
    pub events: Events,
    /// The events found by the last [`poll`].
    pub revents: Events,
}

impl<'a> PollItem<'a> {
    /// Waits for events of a socket.
    pub fn socket(socket: &'a Socket, events: Events) -> PollItem<'a> {
        PollItem {
            target: PollTarget::Socket(socket),
            events,
            revents: Events::NONE,
        }
    }

    /// Waits for events of a descriptor.
    pub fn fd(fd: RawFd, events: Events) -> PollItem<'a> {
        PollItem {
            target: PollTarget::Fd(fd),
            events,
            revents: Events::NONE,
        }
    }
}

/// Waits until one of the items is ready, and returns how many are; 0 if the deadline passed (`None` = no limit).
///
/// # Errors
/// `Interrupted` if a signal handler ran, `Terminated`, `NotSocket` for a closed socket, `Invalid` for a number that
/// cannot be a descriptor.
pub fn poll(items: &mut [PollItem<'_>], deadline: Option<Instant>) -> Result<usize> {
    let fds = descriptors(items);
    // Most calls find something at once, and need not wait.
    let now = Some(clock::now());
    let ready = look(items, &fds, now, |_| sys_poll::wait(&fds, now))?;
    if ready > 0 || deadline.is_some_and(|at| at <= clock::now()) {
        return Ok(ready);
    }
    let watch = Watch::begin(items);
    loop {
        watch.enter();
        let vigil = &watch.vigil;
        let ready = look(items, &fds, deadline, |until| {
            vigil.wait_beside(&fds, until)
        })?;
        if ready > 0 || deadline.is_some_and(|at| at <= clock::now()) {
            return Ok(ready);
        }
        if sys_poll::is_alarmed() {
            return Err(ErrorKind::Interrupted.into());
        }
        if fds.is_empty() {
            vigil.wait(deadline)?;
        }
    }
}

/// The thread, in the lists of all sockets among the items. Their own descriptors are not suitable, because they are
/// readable as long as there is something to receive, even if the caller does not wait for that.
struct Watch<'a> {
    vigil: Vigil,
    sockets: Vec<&'a Socket>,
}

impl<'a> Watch<'a> {
    fn begin(items: &[PollItem<'a>]) -> Watch<'a> {
        let sockets = items.iter().filter_map(|item| match item.target {
            PollTarget::Socket(socket) => Some(socket),
            PollTarget::Fd(_) => None,
        });
        Watch {
            vigil: Vigil::begin(),
            sockets: sockets.collect(),
        }
    }

    fn enter(&self) {
        for socket in &self.sockets {
            self.vigil.enter(socket.signal());
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        for socket in &self.sockets {
            self.vigil.leave(socket.signal());
        }
    }
}

fn descriptors(items: &[PollItem<'_>]) -> Vec<(RawFd, Ready)> {
    items
        .iter()
        .filter_map(|item| match item.target {
            PollTarget::Fd(fd) => Some((fd, wanted(item.events))),
            PollTarget::Socket(_) => None,
        })
        .collect()
}

/// Checks the sockets, then the descriptors, which are in the order of the items; `wait` waits for the latter, not at all
/// if a socket is ready. Sets all `revents`. Returns how many items are ready.
fn look(
    items: &mut [PollItem<'_>],
    fds: &[(RawFd, Ready)],
    deadline: Option<Instant>,
    wait: impl FnOnce(Option<Instant>) -> io::Result<Vec<Ready>>,
) -> Result<usize> {
    let mut ready = ask_sockets(items)?;
    if fds.is_empty() {
        return Ok(ready);
    }
    let until = if ready > 0 {
        Some(clock::now())
    } else {
        deadline
    };
    let all = wait(until)?;
    let others = items
        .iter_mut()
        .filter(|item| matches!(item.target, PollTarget::Fd(_)));
    for (item, ready_for) in others.zip(&all) {
        item.revents = found(*ready_for);
        ready += usize::from(!item.revents.is_empty());
    }
    Ok(ready)
}

fn wanted(events: Events) -> Ready {
    Ready {
        readable: events.is_readable(),
        writable: events.is_writable(),
        priority: events.contains(Events::PRIORITY),
        error: false,
    }
}

fn found(ready: Ready) -> Events {
    Events::READABLE.only_if(ready.readable)
        | Events::WRITABLE.only_if(ready.writable)
        | Events::PRIORITY.only_if(ready.priority)
        | Events::ERROR.only_if(ready.error)
}

fn ask_sockets(items: &mut [PollItem<'_>]) -> Result<usize> {
    let mut ready = 0;
    for item in items.iter_mut() {
        if let PollTarget::Socket(socket) = item.target {
            item.revents = socket.events()? & item.events;
            ready += usize::from(!item.revents.is_empty());
        }
    }
    Ok(ready)
}
