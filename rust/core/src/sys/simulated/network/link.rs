//! A connection between two hosts.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::time::Instant;

use super::flow::{self, Flow, Stream};
use super::pair;

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
}

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
        let hosts = [self.address[side].ip(), self.address[1 - side].ip()];
        self.flows[side].stream(self.id, side, hosts, self.ends[1 - side].read)
    }

    /// How many bytes of one end have not reached the other host.
    pub(super) fn unsent(&self, side: usize) -> usize {
        let written = match (&self.ends[side].socket, &self.stage) {
            (Some(socket), Stage::Up) => flow::waiting(socket.as_fd()),
            _ => 0,
        };
        written + self.flows[side].in_transit()
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
