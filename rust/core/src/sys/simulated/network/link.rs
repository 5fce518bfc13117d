//! A connection between two hosts.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use super::flow::{self, Flow, Route, Stream};
use super::pair;
use crate::sys::liveness::Keepalive;

/// See the module text.
pub(super) struct Link {
    pub(super) id: u64,
    pub(super) address: [SocketAddr; 2],
    pub(super) ends: [End; 2],
    /// From each end to the other.
    pub(super) flows: [Flow; 2],
    pub(super) stage: Stage,
    /// After how many bytes it breaks.
    pub(super) fuse: Option<usize>,
    /// The side whose peer has lost its power, or the connection.
    pub(super) bereaved: Option<usize>,
    /// Since when one host could not reach the other.
    pub(super) silent: Option<Instant>,
    pub(super) heard: Instant,
    /// When each end came to its host.
    pub(super) opened: [Instant; 2],
}

/// The values that apply if a program sets none, as in Linux.
const IDLE: Duration = Duration::from_secs(7200);
const INTERVAL: Duration = Duration::from_secs(75);
const COUNT: u32 = 9;
/// The time between the probes of a peer without room. Sockets ask for this limit.
const ROOM_INTERVAL: Duration = Duration::from_secs(3);

/// How far a connection has come.
pub(super) enum Stage {
    /// The request to connect arrives then.
    Asking {
        at: Instant,
        tries: u32,
    },
    /// The answer arrives then.
    Answering {
        at: Instant,
        refused: bool,
    },
    Up,
}

/// The network's side of one end.
#[derive(Default)]
pub(super) struct End {
    pub(super) socket: Option<OwnedFd>,
    /// The program's descriptor, once it is known.
    pub(super) program: Option<RawFd>,
    /// How many bytes the program has read.
    pub(super) read: u64,
    /// The probes that the program has asked for.
    pub(super) keepalive: Option<Keepalive>,
}

impl End {
    /// The connection is over for this end.
    pub(super) fn close(&mut self) {
        *self = End {
            read: self.read,
            ..End::default()
        };
    }
}

impl Link {
    pub(super) fn is_at(&self, host: IpAddr) -> bool {
        self.address.iter().any(|address| address.ip() == host)
    }

    pub(super) fn is_between(&self, a: IpAddr, b: IpAddr) -> bool {
        pair(self.address[0].ip(), self.address[1].ip()) == pair(a, b)
    }

    /// Whether it has been broken for one host only.
    pub(super) fn has_lost_an_end(&self) -> bool {
        let end = self.bereaved.map(|side| &self.ends[1 - side]);
        end.is_some_and(|end| end.socket.is_none())
    }

    pub(super) fn stream(&self, side: usize) -> Stream {
        let ends = [side, 1 - side];
        self.flows[side].stream(Route {
            link: self.id,
            hosts: ends.map(|end| self.address[end].ip()),
            opened: ends.map(|end| self.opened[end]),
            read: self.ends[1 - side].read,
            is_open: self.is_open(),
        })
    }

    /// Whether no program has closed it, and it is not broken.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Up)
            && self.bereaved.is_none()
            && !self.flows.iter().any(Flow::is_gone)
            && self.ends.iter().all(|end| end.socket.is_some())
    }

    /// How many bytes of one end have not reached the other host. The end of the stream counts as one, as in a real kernel.
    pub(super) fn unsent(&self, side: usize) -> usize {
        let written = match (&self.ends[side].socket, &self.stage) {
            (Some(socket), Stage::Up) => {
                let end = flow::has_end(socket.as_fd()) && !self.flows[side].is_over();
                flow::waiting(socket.as_fd()) + usize::from(end)
            }
            _ => 0,
        };
        written + self.flows[side].in_transit()
    }

    /// When one end's kernel has sent this many probes for life to a host that is silent. A kernel that has bytes for the
    /// other host sends those instead.
    pub(super) fn probe(&self, side: usize, number: u32) -> Option<Instant> {
        let keepalive = self.ends[side].keepalive?;
        self.ends[side].socket.as_ref()?;
        if self.unsent(side) > 0 {
            return None;
        }
        let since = self.silent?.max(self.heard);
        let interval = keepalive.interval.unwrap_or(INTERVAL);
        Some(since + keepalive.idle.unwrap_or(IDLE) + interval * number)
    }

    /// When one end's kernel gives up a host that answers no probe.
    pub(super) fn gives_up(&self, side: usize) -> Option<Instant> {
        let count = self.ends[side].keepalive?.count.unwrap_or(COUNT);
        self.probe(side, count)
    }

    /// How many probes in a row the other host has not answered.
    pub(super) fn unanswered(&self, side: usize, now: Instant) -> u8 {
        let Some(silent) = self.silent else {
            return 0;
        };
        let passed = match self.flows[side].is_blocked {
            true => now.saturating_duration_since(silent).as_secs() / ROOM_INTERVAL.as_secs(),
            false => (0..COUNT)
                .take_while(|number| self.probe(side, *number).is_some_and(|at| at <= now))
                .count() as u64,
        };
        u8::try_from(passed).unwrap_or(u8::MAX)
    }

    /// The host of one end has lost its power, and what its kernel had not sent.
    pub(super) fn lose_unsent(&mut self, side: usize) {
        if let Some(socket) = &self.ends[side].socket
            && matches!(self.stage, Stage::Up)
        {
            self.flows[side].note_broken();
            self.flows[side].take_all(socket.as_fd());
        }
    }

    /// The bytes that kept the connecting socket from being writable are read, so it is writable.
    pub(super) fn empty_attempt(&mut self) {
        if let Some(socket) = &self.ends[0].socket {
            flow::discard(socket.as_fd());
        }
    }
}
