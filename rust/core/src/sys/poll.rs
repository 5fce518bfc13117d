//! [`wait`]: a few descriptors of the application's, once.

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};

/// What to look for, and what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ready {
    /// Bytes or the end of the stream.
    pub(crate) readable: bool,
    /// Room.
    pub(crate) writable: bool,
    /// Urgent data.
    pub(crate) priority: bool,
    /// An error, or a number that is no open descriptor; always looked for.
    pub(crate) error: bool,
}

/// Waits until one of the descriptors is ready for what is asked of it, and returns what each is ready for, in order;
/// nothing when the deadline passed.
///
/// # Errors
/// `Interrupted` when a signal handler ran, `Invalid` for a negative number, and what the system says.
pub(crate) fn wait(fds: &[(RawFd, Ready)], deadline: Option<Instant>) -> Result<Vec<Ready>> {
    if let Some((fd, _)) = fds.iter().find(|(fd, _)| *fd < 0) {
        return Err(Error::with(
            ErrorKind::Invalid,
            format!("{fd} is not a file descriptor"),
        ));
    }
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|(fd, wanted)| {
            // SAFETY: the number is not negative (checked above), and it is only handed to poll(2), which answers
            // POLLNVAL for one that is not open; nothing is read, written or closed through it.
            let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
            PollFd::from_borrowed_fd(fd, flags(*wanted))
        })
        .collect();
    let timeout = super::time_until(deadline);
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled
            .iter()
            .zip(fds)
            .map(|(fd, (_, wanted))| found(fd.revents(), *wanted))
            .collect()),
        Err(Errno::INTR) => Err(Error::new(ErrorKind::Interrupted)),
        Err(errno) => Err(Error::from(std::io::Error::from(errno))),
    }
}

/// Waits until there is something to read from one of two descriptors, or the deadline passes: then from neither.
///
/// # Errors
/// `Interrupted` when a signal handler ran, `Invalid` when `fd` is no open descriptor, and what the system says.
pub(crate) fn either(
    fd: RawFd,
    other: BorrowedFd<'_>,
    deadline: Option<Instant>,
) -> Result<(bool, bool)> {
    if fd < 0 {
        return Err(Error::new(ErrorKind::Invalid));
    }
    // SAFETY: as in `wait`.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let mut polled = [fd, other.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut polled, super::time_until(deadline).as_ref()) {
        Ok(_) if polled[0].revents().contains(PollFlags::NVAL) => {
            Err(Error::new(ErrorKind::Invalid))
        }
        Ok(_) => Ok((
            !polled[0].revents().is_empty(),
            !polled[1].revents().is_empty(),
        )),
        Err(Errno::INTR) => Err(Error::new(ErrorKind::Interrupted)),
        Err(errno) => Err(Error::from(std::io::Error::from(errno))),
    }
}

fn flags(wanted: Ready) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, wanted.readable);
    flags.set(PollFlags::OUT, wanted.writable);
    flags.set(PollFlags::PRI, wanted.priority);
    flags
}

fn found(flags: PollFlags, wanted: Ready) -> Ready {
    Ready {
        readable: wanted.readable && flags.intersects(PollFlags::IN | PollFlags::HUP),
        writable: wanted.writable && flags.contains(PollFlags::OUT),
        priority: wanted.priority && flags.contains(PollFlags::PRI),
        error: flags.intersects(PollFlags::ERR | PollFlags::NVAL),
    }
}
