//! One direction of a connection.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

/// The bytes of one direction of a connection.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Of the connection. Later ones have higher numbers.
    pub link: u64,
    /// The host that wrote them, and the one that was to read them.
    pub hosts: [IpAddr; 2],
    /// When the connection came to each of these hosts.
    pub opened: [Instant; 2],
    /// Neither program has closed it, and it is not broken.
    pub is_open: bool,
    /// All bytes that were written.
    pub written: Vec<u8>,
    /// How many of them the program at the other end has read.
    pub read: u64,
    /// The writes up to which they had arrived when the program that wrote them last asked: where the first of these began, and where the last one ended. Sockets can only estimate how many messages of one write
    /// had arrived. All and 0 for a program that cannot know.
    pub told_from: u64,
    /// See `told_from`.
    pub told_to: u64,
    /// How many of them may have arrived: all, unless the connection broke.
    pub arrived: u64,
    /// When the program closed it.
    pub gone: Option<Instant>,
}

/// The part of a [`Stream`] that its connection knows.
pub(super) struct Route {
    pub(super) link: u64,
    pub(super) hosts: [IpAddr; 2],
    pub(super) opened: [Instant; 2],
    pub(super) read: u64,
    pub(super) is_open: bool,
}

/// The writes of which a socket knows how many messages each had.
const WRITES: usize = 8;

#[derive(Default)]
pub(super) struct Flow {
    transit: VecDeque<(Instant, Vec<u8>)>,
    /// The sum of the bytes in transit.
    bytes: usize,
    /// All bytes so far.
    written: Vec<u8>,
    /// Where each write of the program ended.
    writes: Vec<u64>,
    /// There may be something to read from the sender.
    is_readable: bool,
    /// The program that sends has closed this direction.
    is_finished: bool,
    /// When it closed its descriptor.
    gone: Option<Instant>,
    /// When the end of the stream arrives.
    end: Option<Instant>,
    is_ended: bool,
    /// The receiver has no room.
    pub(super) is_blocked: bool,
    /// The receiver has closed its descriptor, and there is more for it.
    pub(super) is_refused: bool,
    last: Option<Instant>,
    /// How many bytes had arrived when the program last asked, and the time before: it asks once for its counters, and again
    /// when it closes.
    told: [Option<u64>; 2],
    /// How many had when the connection broke.
    arrived: Option<u64>,
}

impl Flow {
    /// Notes what the kernel says about the sender.
    pub(super) fn note(&mut self, flags: PollFlags, now: Instant) {
        self.is_readable |= flags.intersects(PollFlags::IN | PollFlags::RDHUP | PollFlags::HUP);
        if flags.contains(PollFlags::HUP) {
            self.gone.get_or_insert(now);
        }
    }

    /// Whether the program has closed its descriptor.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    /// Whether the sender has written or closed.
    pub(super) fn has_news(&self) -> bool {
        self.is_readable || self.bytes > 0
    }

    pub(super) fn has_room(&self, window: usize) -> bool {
        self.is_readable && !self.is_finished && self.bytes < window
    }

    /// Reads up to `piece` bytes from the sender, which arrive `at` that time or after those before them. Returns whether there
    /// may be more.
    pub(super) fn take(
        &mut self,
        from: BorrowedFd<'_>,
        piece: usize,
        [now, at]: [Instant; 2],
        room: &mut Vec<u8>,
    ) -> bool {
        let at = self.last.map_or(at, |last| last.max(at));
        if room.len() < piece {
            room.resize(piece, 0);
        }
        match recv(from, &mut room[..piece], RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.is_finished = true;
                self.end = Some(at);
            }
            Ok((count, _)) => {
                let bytes = &room[..count];
                self.written.extend_from_slice(bytes);
                self.bytes += count;
                self.transit.push_back((at, bytes.to_vec()));
                self.last = Some(at);
                return true;
            }
            Err(Errno::AGAIN) => self.is_readable = false,
            // The sender has closed without reading everything. The bytes that it wrote before can be read first.
            Err(_) => {
                self.is_finished = true;
                self.gone.get_or_insert(now);
                self.end = Some(at);
            }
        }
        false
    }

    /// Reads everything that the sender has written and that can no longer travel.
    pub(super) fn take_all(&mut self, from: BorrowedFd<'_>) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok((count @ 1.., _)) = recv(from, &mut bytes[..], RecvFlags::DONTWAIT) {
            self.written.extend_from_slice(&bytes[..count]);
        }
    }

    /// The program has written at once.
    pub(super) fn note_written(&mut self, bytes: usize) {
        let before = self.writes.last().copied().unwrap_or_default();
        self.writes.push(before + bytes as u64);
    }

    /// Whether there are bytes for the receiver.
    pub(super) fn has_arrived(&self, now: Instant) -> bool {
        self.transit.front().is_some_and(|(at, _)| *at <= now)
    }

    /// Gives the receiver what has arrived, up to the bytes of the fuse. Returns whether there was something.
    pub(super) fn deliver(
        &mut self,
        to: BorrowedFd<'_>,
        now: Instant,
        fuse: &mut Option<usize>,
    ) -> bool {
        let mut moved = false;
        while let Some((at, bytes)) = self.transit.front_mut()
            && *at <= now
            && !self.is_blocked
            && *fuse != Some(0)
        {
            let most = fuse.map_or(bytes.len(), |fuse| fuse.min(bytes.len()));
            match send(
                to,
                &bytes[..most],
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(count) => {
                    moved = true;
                    self.bytes -= count;
                    *fuse = fuse.map(|fuse| fuse - count);
                    if count == bytes.len() {
                        self.transit.pop_front();
                    } else {
                        bytes.drain(..count);
                    }
                }
                Err(Errno::AGAIN) => self.is_blocked = true,
                Err(_) => {
                    self.is_refused = true;
                    return true;
                }
            }
        }
        if self.transit.is_empty() && !self.is_ended && self.end.is_some_and(|end| end <= now) {
            self.is_ended = true;
            moved = true;
            // Fails only if the receiver has closed.
            let _ = shutdown(to, Shutdown::Write);
        }
        moved
    }

    /// When the next bytes or the end arrive.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.transit.front() {
            Some(_) if self.is_blocked => None,
            Some((at, _)) => Some(*at),
            None if self.is_ended => None,
            None => self.end,
        }
    }

    /// Whether everything has arrived, with the end.
    pub(super) fn is_over(&self) -> bool {
        self.is_ended
    }

    /// The bytes in transit do not arrive.
    pub(super) fn lose_transit(&mut self) {
        self.transit.clear();
        self.bytes = 0;
    }

    pub(super) fn in_transit(&self) -> usize {
        self.bytes
    }

    /// The program learns how much has arrived.
    pub(super) fn note_told(&mut self) {
        self.told = [Some(self.arrived()), self.told[0]];
    }

    /// The connection breaks.
    pub(super) fn note_broken(&mut self) {
        self.arrived = Some(self.arrived());
    }

    fn arrived(&self) -> u64 {
        let now = (self.written.len() - self.bytes) as u64;
        self.arrived.unwrap_or(now)
    }

    pub(super) fn stream(&self, route: Route) -> Stream {
        let told = self.told.into_iter().flatten();
        Stream {
            link: route.link,
            hosts: route.hosts,
            opened: route.opened,
            is_open: route.is_open,
            written: self.written.clone(),
            read: route.read,
            told_from: (told.clone().map(|told| self.start_of_write(told)))
                .min()
                .unwrap_or(self.written.len() as u64),
            told_to: (told.map(|told| self.end_of_write(told)))
                .max()
                .unwrap_or_default(),
            arrived: self.arrived.unwrap_or(self.written.len() as u64),
            gone: self.gone,
        }
    }

    /// Where the write begins in which a byte lies, as far as a socket knows.
    fn start_of_write(&self, byte: u64) -> u64 {
        let before = self.writes.partition_point(|&end| end <= byte);
        match self.writes.len() - before {
            0 => byte,
            1..=WRITES => before.checked_sub(1).map_or(0, |last| self.writes[last]),
            _ => 0,
        }
    }

    /// Where the write ends in which a byte lies, or the last one that a socket does not know.
    fn end_of_write(&self, byte: u64) -> u64 {
        let at = self.writes.partition_point(|&end| end <= byte);
        let unknown = self.writes.len().saturating_sub(WRITES + 1);
        self.writes.get(at.max(unknown)).map_or(byte, |&end| end)
    }
}

/// Writes until there is no room.
pub(super) fn fill(socket: BorrowedFd<'_>) -> io::Result<()> {
    static ZEROS: [u8; 1 << 17] = [0; 1 << 17];
    loop {
        match send(socket, &ZEROS, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads everything.
pub(super) fn discard(socket: BorrowedFd<'_>) {
    let mut bytes = [0; 4096];
    while let Ok((1.., _)) = recv(socket, &mut bytes[..], RecvFlags::DONTWAIT) {}
}

/// How many bytes there are to read.
pub(super) fn waiting(socket: BorrowedFd<'_>) -> usize {
    rustix::io::ioctl_fionread(socket).map_or(0, |bytes| bytes as usize)
}

/// Whether the program writes no more.
pub(super) fn has_end(socket: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
    let at_once = Timespec::default();
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(PollFlags::RDHUP)
}
