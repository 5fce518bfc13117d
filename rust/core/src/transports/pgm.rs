//! epgm and pgm: PUB and XPUB send to a multicast group, SUB and XSUB receive, and what gets lost is repaired
//! (RFC 3208). pgm is a protocol of its own beside UDP, and epgm is the same inside of UDP.
//!
//! The packets and their contents are those of libzmq with OpenPGM. All subscribers get all messages, and filter them.

mod place;
mod receiving;
mod sending;

use std::os::fd::AsRawFd;
use std::sync::Arc;

use socket2::Socket;
use zeroxide_proto::socket_type::SocketType;

use self::place::{Carrier, Place};
use self::receiving::Receiving;
use self::sending::Sending;
use super::messages::{Bound, Hold, MessagePort, MessageTransport};
use super::worker::IoWorker;
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventKind, MonitorEvent};

/// See the module text.
struct Pgm {
    carrier: Carrier,
}

pub(super) fn new() -> Arc<dyn MessageTransport> {
    Arc::new(Pgm {
        carrier: Carrier::Ip,
    })
}

pub(super) fn new_in_udp() -> Arc<dyn MessageTransport> {
    Arc::new(Pgm {
        carrier: Carrier::Udp,
    })
}

impl MessageTransport for Pgm {
    fn scheme(&self) -> &str {
        match self.carrier {
            Carrier::Ip => "pgm",
            Carrier::Udp => "epgm",
        }
    }

    fn check(&self, address: &str, socket: SocketType, _: bool) -> Result<()> {
        if publishes(socket) || subscribes(socket) {
            return Place::parse(address).map(drop);
        }
        let mut all = SocketType::ALL.iter().copied();
        let namesake = all.find(|own| own.name() == socket.name());
        if namesake.is_some_and(|own| publishes(own) || subscribes(own)) {
            return Err(super::no_other_wire(socket, self.scheme()));
        }
        let text = format!(
            "{} carries messages from {} to {}; a {socket} socket cannot use it",
            self.scheme(),
            super::types(publishes),
            super::types(subscribes)
        );
        Err(Error::with(ErrorKind::IncompatibleProtocol, text))
    }

    fn bind(&self, address: &str, port: MessagePort) -> Result<Bound> {
        let hold = self.begin(address, port, EventKind::Listening)?;
        Ok(Bound {
            endpoint: format!("{}://{address}", self.scheme()),
            hold,
        })
    }

    fn connect(&self, address: &str, port: MessagePort) -> Result<Hold> {
        self.begin(address, port, EventKind::Connected)
    }
}

impl Pgm {
    /// Bind and connect are the same: all programs meet at the group.
    fn begin(&self, address: &str, port: MessagePort, event: EventKind) -> Result<Hold> {
        super::check_no_descriptor(self.scheme(), &port.options)?;
        let place = Place::parse(address)?.find(self.carrier, &port.options)?;
        let worker = port.io_worker()?;
        let is_sender = publishes(port.socket_type());
        let socket = match is_sender {
            true => place.sending_socket(&port.options)?,
            false => place.receiving_socket(&port.options)?,
        };
        let id = id(&socket);
        let pipe = port.open_for_all(worker.waker());
        port.emit(MonitorEvent::new(event, id, port.endpoint()));
        if is_sender {
            worker.start(Sending::new(socket, pipe, port, place));
            // The work ends after the socket has closed its end of the pipe and everything was sent.
            return Ok(Box::new(()));
        }
        worker.start(Receiving::new(socket, pipe, port.clone(), place));
        Ok(Box::new(Held { worker, port, id }))
    }
}

/// A receiver. A drop ends it.
struct Held {
    worker: IoWorker,
    port: MessagePort,
    id: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.worker.stop();
        let event = MonitorEvent::new(EventKind::Closed, self.id, self.port.endpoint());
        self.port.emit(event);
    }
}

fn publishes(socket: SocketType) -> bool {
    socket.publishes() && !socket.has_groups()
}

fn subscribes(socket: SocketType) -> bool {
    socket.peers().iter().any(|peer| publishes(*peer))
}

/// The number of a descriptor in events.
fn id(socket: &Socket) -> u64 {
    u64::try_from(socket.as_raw_fd()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
