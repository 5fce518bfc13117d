//! [`Selector`]: waits for many descriptors at once.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

/// A set of descriptors, each with a key chosen by the caller.
#[derive(Debug)]
pub(crate) struct Selector {
    fd: OwnedFd,
}

/// The events to report about a descriptor. An error is always reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    /// Bytes, the end of the stream, and room.
    Both,
    /// Bytes and the end of the stream.
    Input,
    /// The end of the stream, even if there are unread bytes before it.
    HangUp,
}

/// The readiness of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Readiness {
    flags: EventFlags,
}

/// One descriptor that became ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// The key with which it was added.
    pub(crate) key: u64,
    /// Its readiness.
    pub(crate) ready: Readiness,
}

/// Space for the result of a wait, reused by the next.
pub(crate) struct Events {
    raw: Vec<epoll::Event>,
}

impl Selector {
    pub(crate) fn new() -> io::Result<Selector> {
        Ok(Selector {
            fd: epoll::create(CreateFlags::CLOEXEC)?,
        })
    }

    /// Watches both directions, edge-triggered: an event occurs when more becomes possible, and once at the start.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        self.add_for(fd, key, Interest::Both)
    }

    /// Like [`add`](Self::add), for fewer events.
    pub(crate) fn add_for(
        &self,
        fd: BorrowedFd<'_>,
        key: u64,
        interest: Interest,
    ) -> io::Result<()> {
        #[cfg(zeroxide_shuttle)]
        super::simulated::stir();
        Ok(epoll::add(
            &self.fd,
            fd,
            EventData::new_u64(key),
            interest.flags(),
        )?)
    }

    /// Changes the events to report. Conditions that already hold are reported again.
    pub(crate) fn modify(
        &self,
        fd: BorrowedFd<'_>,
        key: u64,
        interest: Interest,
    ) -> io::Result<()> {
        #[cfg(zeroxide_shuttle)]
        super::simulated::stir();
        Ok(epoll::modify(
            &self.fd,
            fd,
            EventData::new_u64(key),
            interest.flags(),
        )?)
    }

    /// Stops watching. Must be called before the descriptor is closed, because a duplicate would keep it in the set.
    pub(crate) fn delete(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, fd)?)
    }

    /// The watched descriptors, by the numbers with which they were added. They may be closed meanwhile.
    #[cfg(test)]
    pub(crate) fn watched(&self) -> Vec<i32> {
        use std::os::fd::AsRawFd;
        let info = format!("/proc/self/fdinfo/{}", self.fd.as_raw_fd());
        let info = std::fs::read_to_string(info).unwrap();
        let lines = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
        let numbers = lines.filter_map(|line| line.split_whitespace().next());
        numbers.map(|number| number.parse().unwrap()).collect()
    }

    /// Waits until a descriptor is ready or the deadline passes. A process that was stopped meanwhile finds the descriptors
    /// that have become ready, even if the deadline has passed.
    pub(crate) fn wait(&self, events: &mut Events, deadline: Option<Instant>) -> io::Result<()> {
        events.raw.clear();
        super::pause(&[PollFd::new(&self.fd, PollFlags::IN)], deadline);
        loop {
            let timeout = super::time_until(deadline);
            match epoll::wait(&self.fd, spare_capacity(&mut events.raw), timeout.as_ref()) {
                Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// A descriptor that is readable once another one has an error or has hung up. Event loops watch a descriptor only for
/// reading or writing.
#[derive(Debug)]
pub struct Trouble {
    fd: OwnedFd,
}

impl Trouble {
    /// For a descriptor of the program; with `with_urgent`, urgent data count, too. Returns `None` for a descriptor that can
    /// have no error, such as that of a file.
    ///
    /// # Errors
    /// `InvalidInput` for a negative number, and the system's errors.
    pub fn of(watched: RawFd, with_urgent: bool) -> io::Result<Option<Trouble>> {
        if watched < 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let fd = epoll::create(CreateFlags::CLOEXEC)?;
        // Errors and hang-ups are always reported.
        let flags = match with_urgent {
            true => EventFlags::PRI,
            false => EventFlags::empty(),
        };
        // SAFETY: the number is not negative, and it is only passed to epoll_ctl(2), which refuses one that is not open;
        // nothing is read, written or closed through it.
        let watched = unsafe { BorrowedFd::borrow_raw(watched) };
        match epoll::add(&fd, watched, EventData::new_u64(0), flags) {
            Ok(()) => Ok(Some(Trouble { fd })),
            Err(Errno::PERM) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsRawFd for Trouble {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        let input = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        match self {
            Interest::Both => input | EventFlags::OUT,
            Interest::Input => input,
            Interest::HangUp => EventFlags::RDHUP | EventFlags::ET,
        }
    }
}

impl AsFd for Selector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Readiness {
    /// There are bytes or connections to take, or the end of the stream, or an error that a read will return.
    pub(crate) fn is_readable(self) -> bool {
        self.flags
            .intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
    }

    /// There is room to write, or an error that a write will return.
    pub(crate) fn is_writable(self) -> bool {
        self.flags
            .intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR)
    }

    /// The peer closed its sending direction or the connection broke. There may be unread bytes, so read until the end.
    pub(crate) fn is_hangup(self) -> bool {
        self.flags
            .intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
    }
}

impl Events {
    /// Space for this number of events per wait; further ones are returned by the next wait.
    pub(crate) fn with_capacity(capacity: usize) -> Events {
        Events {
            raw: Vec::with_capacity(capacity.max(1)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        self.raw.iter().map(|raw| Event {
            key: raw.data.u64(),
            ready: Readiness { flags: raw.flags },
        })
    }

    pub(crate) fn clear(&mut self) {
        self.raw.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::sys::wake_fd::WakeFd;

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_millis(20))
    }

    #[test]
    fn an_edge_comes_once() {
        let selector = Selector::new().unwrap();
        let event = WakeFd::new().unwrap();
        selector.add(event.as_fd(), 7).unwrap();
        let mut events = Events::with_capacity(8);
        let mut readable = || {
            selector.wait(&mut events, soon()).unwrap();
            let seen: Vec<_> = events
                .iter()
                .map(|e| (e.key, e.ready.is_readable()))
                .collect();
            seen
        };
        assert_eq!(readable(), [(7, false)]);
        event.signal();
        assert_eq!(readable(), [(7, true)]);
        assert_eq!(readable(), []);
        event.signal();
        assert_eq!(readable(), [(7, true)]);
    }

    #[test]
    fn an_event_that_was_not_requested_is_reported_once_it_is() {
        let selector = Selector::new().unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        selector.add(near.as_fd(), 1).unwrap();
        let mut events = Events::with_capacity(1);
        let mut told = || {
            selector.wait(&mut events, soon()).unwrap();
            let ready = events.iter().next().map(|event| event.ready);
            ready.map(|ready| (ready.is_readable(), ready.is_writable()))
        };
        assert_eq!(told(), Some((false, true)));
        selector.modify(near.as_fd(), 1, Interest::HangUp).unwrap();
        far.write_all(b"meanwhile").unwrap();
        assert_eq!(told(), None);
        selector.modify(near.as_fd(), 1, Interest::Input).unwrap();
        assert!(told().is_some_and(|(readable, _)| readable));
        assert_eq!(told(), None);
        selector.modify(near.as_fd(), 1, Interest::Both).unwrap();
        assert_eq!(told(), Some((true, true)));
    }

    #[test]
    fn the_end_is_reported_whatever_was_requested() {
        let selector = Selector::new().unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        selector.add(near.as_fd(), 1).unwrap();
        let mut events = Events::with_capacity(1);
        selector.wait(&mut events, soon()).unwrap();
        selector.modify(near.as_fd(), 1, Interest::HangUp).unwrap();
        far.write_all(b"last words").unwrap();
        selector.wait(&mut events, soon()).unwrap();
        assert_eq!(events.iter().count(), 0);
        far.shutdown(std::net::Shutdown::Write).unwrap();
        selector.wait(&mut events, soon()).unwrap();
        let ready = events.iter().next().unwrap().ready;
        assert!(ready.is_readable() && ready.is_hangup());
    }

    #[test]
    fn hang_up_is_also_readable() {
        let selector = Selector::new().unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"last words").unwrap();
        drop(far);
        selector.add(near.as_fd(), 1).unwrap();
        let mut events = Events::with_capacity(1);
        selector.wait(&mut events, soon()).unwrap();
        let ready = events.iter().next().unwrap().ready;
        assert!(ready.is_readable() && ready.is_hangup());
        selector.delete(near.as_fd()).unwrap();
        selector.wait(&mut events, soon()).unwrap();
        assert_eq!(events.iter().count(), 0);
    }

    #[test]
    fn waits_until_the_deadline() {
        let selector = Selector::new().unwrap();
        let mut events = Events::with_capacity(1);
        let start = Instant::now();
        selector.wait(&mut events, soon()).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(20));
        selector.wait(&mut events, Some(start)).unwrap();
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
