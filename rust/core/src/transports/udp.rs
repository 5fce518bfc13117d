//! udp: one message per datagram. RADIO connects and DISH binds, and their datagrams are those of libzmq. DGRAM binds,
//! and exchanges plain datagrams with any program.
//!
//! A datagram may get lost, arrive twice, or overtake another one. A multicast group is an address of a datagram like
//! any other; a socket that binds to it joins it.

mod flow;
mod place;
mod seeker;

use std::os::fd::AsRawFd;
use std::sync::Arc;

use socket2::Socket;
use zeroxide_proto::datagram;
use zeroxide_proto::socket_type::SocketType;

use self::flow::{Flow, Sorting};
use self::place::Goal;
use super::messages::{Bound, Hold, MessagePort, MessageTransport};
use super::worker::IoWorker;
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::sys::clock;

/// The largest payload of a datagram, over IPv4. Over IPv6, it could be a little larger.
const PAYLOAD_MAX: usize = 65_507;

/// See the module text.
struct Udp;

pub(super) fn new() -> Arc<dyn MessageTransport> {
    Arc::new(Udp)
}

impl MessageTransport for Udp {
    fn scheme(&self) -> &str {
        "udp"
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        let fits = match bind {
            true => socket.is_datagram() || receives_groups(socket),
            false => socket.has_groups(),
        };
        if !fits {
            let verb = if bind { "bind" } else { "connect" };
            let text = format!(
                "over udp, RADIO connects, and DISH and DGRAM bind; a {socket} socket cannot {verb}"
            );
            return Err(Error::with(ErrorKind::IncompatibleProtocol, text));
        }
        place::parse(address, bind).map(drop)
    }

    fn bind(&self, address: &str, port: MessagePort) -> Result<Bound> {
        if port.options.use_fd.is_some() {
            let text = "USE_FD is for tcp and ipc; a udp socket makes its own descriptor";
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        let worker = port.io_worker()?;
        let socket = match place::bound(address, &port.options) {
            Ok(socket) => socket,
            Err(error) => {
                let failed =
                    MonitorEvent::new(EventKind::BindFailed, error.errno() as u64, port.endpoint());
                port.emit(failed.because(&error));
                return Err(error);
            }
        };
        let endpoint = place::endpoint(address, &socket)?;
        let pipe = port.open_for_datagrams(Some(""), PAYLOAD_MAX, worker.waker());
        let sorting = match port.socket_type().is_datagram() {
            true => Sorting::Addresses,
            false => Sorting::Groups(Default::default()),
        };
        let hold = Held {
            worker: worker.clone(),
            port: port.clone(),
            endpoint: endpoint.clone(),
            id: id(&socket),
        };
        hold.emit(EventKind::Listening);
        worker.start(Flow::receiving(socket, pipe, port, sorting));
        Ok(Bound {
            endpoint,
            hold: Box::new(hold),
        })
    }

    fn connect(&self, address: &str, port: MessagePort) -> Result<Hold> {
        let place = place::parse(address, false)?;
        let target = match place.goal(&port.options)? {
            Goal::Address(target) => target,
            Goal::Name(name) => {
                seeker::start(name, place, port, clock::now())?;
                return Ok(Box::new(()));
            }
        };
        let worker = port.io_worker()?;
        let (socket, target, largest) =
            place::open(&place, target, &port.options, datagram::LARGEST)?;
        let address = target.to_string();
        let pipe = port.open_for_datagrams(Some(&address), largest, worker.waker());
        let party = Party::of(pipe.pipe.far_peer());
        let event = MonitorEvent::new(EventKind::Connected, id(&socket), port.endpoint());
        port.emit(event.about(&party));
        worker.start(Flow::sending(socket, pipe, port, party));
        // The work ends after the socket has closed its end of the pipe and everything was sent.
        Ok(Box::new(()))
    }
}

/// Whether a type joins groups.
fn receives_groups(socket: SocketType) -> bool {
    socket.peers().iter().any(|peer| peer.has_groups())
}

/// The number of a descriptor in events.
fn id(socket: &Socket) -> u64 {
    u64::try_from(socket.as_raw_fd()).unwrap_or_default()
}

/// A bound address. A drop frees it.
struct Held {
    worker: IoWorker,
    port: MessagePort,
    endpoint: String,
    id: u64,
}

impl Held {
    fn emit(&self, kind: EventKind) {
        self.port
            .emit(MonitorEvent::new(kind, self.id, &self.endpoint));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.worker.stop();
        self.emit(EventKind::Closed);
    }
}

#[cfg(test)]
mod tests;
