//! [`wait`]: waits once for a few descriptors of the application. An [`alarm`] of the calling thread ends it like a
//! signal.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::sync::thread_local;

/// The events to wait for, or those that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ready {
    /// Bytes, or the end of the stream where the system reports it as such. A pipe without a writer has an error.
    pub(crate) readable: bool,
    /// Room.
    pub(crate) writable: bool,
    /// Urgent data.
    pub(crate) priority: bool,
    /// An error, a hang-up, or a number that is not an open descriptor; always reported.
    pub(crate) error: bool,
}

thread_local! {
    /// The descriptor is open as long as it is stored here.
    static ALARM: Cell<Option<RawFd>> = const { Cell::new(None) };
}

/// Runs `work`. Once `fd` is readable, every wait of this thread ends as if a signal handler had run, including a wait
/// that has not begun yet.
pub(crate) fn with_alarm<T>(fd: BorrowedFd<'_>, work: impl FnOnce() -> T) -> T {
    struct Before(Option<RawFd>);
    impl Drop for Before {
        fn drop(&mut self) {
            ALARM.with(|alarm| alarm.set(self.0));
        }
    }
    let _before = Before(ALARM.with(|alarm| alarm.replace(Some(fd.as_raw_fd()))));
    work()
}

/// The descriptor that ends the waits of this thread, if there is one.
pub(crate) fn alarm() -> Option<RawFd> {
    ALARM.with(Cell::get)
}

/// Whether the waits of this thread have to end.
pub(crate) fn is_alarmed() -> bool {
    let at_once = super::timespec(Duration::ZERO);
    polled_alarm().is_some_and(|alarm| poll(&mut [alarm], at_once.as_ref()) == Ok(1))
}

fn polled_alarm<'a>() -> Option<PollFd<'a>> {
    // SAFETY: `with_alarm` borrows the descriptor until it removes it, and no call that polls it lasts longer.
    let fd = alarm().map(|fd| unsafe { BorrowedFd::borrow_raw(fd) });
    fd.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
}

/// Waits until one of the descriptors is ready, and returns the readiness of each, in order; none if the deadline
/// passed.
///
/// # Errors
/// `Interrupted` if a signal handler ran, or if only the alarm is ready; `InvalidInput` for a negative number; and the
/// system's errors.
pub(crate) fn wait(fds: &[(RawFd, Ready)], deadline: Option<Instant>) -> io::Result<Vec<Ready>> {
    if let Some((fd, _)) = fds.iter().find(|(fd, _)| *fd < 0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{fd} is not a file descriptor"),
        ));
    }
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|(fd, wanted)| {
            // SAFETY: the number is not negative (checked above), and it is only passed to poll(2), which returns
            // POLLNVAL for one that is not open; nothing is read, written or closed through it.
            let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
            PollFd::from_borrowed_fd(fd, flags(*wanted))
        })
        .collect();
    polled.extend(polled_alarm());
    super::pause(&polled, deadline);
    let timeout = super::time_until(deadline);
    match poll(&mut polled, timeout.as_ref()) {
        Ok(1) if polled.len() > fds.len() && !polled[fds.len()].revents().is_empty() => {
            Err(Errno::INTR.into())
        }
        Ok(_) => Ok(polled
            .iter()
            .zip(fds)
            .map(|(fd, (_, wanted))| found(fd.revents(), *wanted))
            .collect()),
        Err(errno) => Err(errno.into()),
    }
}

/// The result of a wait for two descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Either {
    /// The first one is readable, or at its end.
    pub(crate) first: bool,
    /// Its peer has closed, even if there are unread bytes, or it broke.
    pub(crate) hung_up: bool,
    /// The other one is readable.
    pub(crate) other: bool,
}

/// Waits until one of two descriptors is readable, or the deadline passes; then neither is.
///
/// # Errors
/// `Interrupted` if a signal handler ran, or if only the alarm is ready; `InvalidInput` if `fd` is not an open descriptor;
/// and the system's errors.
pub(crate) fn either(
    fd: RawFd,
    other: BorrowedFd<'_>,
    deadline: Option<Instant>,
) -> io::Result<Either> {
    if fd < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: as in `wait`.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let over = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let fd = PollFd::from_borrowed_fd(fd, PollFlags::IN | PollFlags::RDHUP);
    let other = PollFd::from_borrowed_fd(other, PollFlags::IN);
    let (alarm, count) = match polled_alarm() {
        Some(alarm) => (alarm, 3),
        None => (other.clone(), 2),
    };
    let mut polled = [fd, other, alarm];
    let polled = &mut polled[..count];
    super::pause(polled, deadline);
    match poll(polled, super::time_until(deadline).as_ref()) {
        Ok(1) if count == 3 && !polled[2].revents().is_empty() => Err(Errno::INTR.into()),
        Ok(_) if polled[0].revents().contains(PollFlags::NVAL) => {
            Err(io::ErrorKind::InvalidInput.into())
        }
        Ok(_) => Ok(Either {
            first: !polled[0].revents().is_empty(),
            hung_up: polled[0].revents().intersects(over),
            other: !polled[1].revents().is_empty(),
        }),
        Err(errno) => Err(errno.into()),
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
        readable: wanted.readable && flags.contains(PollFlags::IN),
        writable: wanted.writable && flags.contains(PollFlags::OUT),
        priority: wanted.priority && flags.contains(PollFlags::PRI),
        error: flags.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL),
    }
}
