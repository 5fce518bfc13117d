//! What transports of datagrams share: RADIO sends to groups, DISH receives, and DGRAM exchanges plain datagrams.
//!
//! Such a transport parses its addresses and makes a socket of the system for them. The rest is the same for all: a
//! [`Flow`] on an I/O thread, the events, and the form of the datagrams.

mod flow;

use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use socket2::Socket;
use zeroxide_proto::datagram::LARGEST;
use zeroxide_proto::socket_type::SocketType;

use self::flow::{Flow, Sorting};
use super::messages::{Bound, Hold, MessagePipe, MessagePort};
use super::worker::IoWorker;
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::options::Options;

/// Connects a socket that is not connected any more to its receiver, from the present address of this machine.
pub(super) type Renew = Box<dyn Fn(&Socket) -> Result<()> + Send>;

/// Joins a multicast group again if the socket is not a member any more.
pub(super) type Rejoin = Box<dyn FnMut(&Socket) + Send>;

/// The largest payload of a datagram, over IPv4. Over IPv6, it could be a little larger.
const PAYLOAD_MAX: usize = 65_507;

/// Checks that a type of socket binds to addresses of this scheme, or connects there.
///
/// # Errors
/// `IncompatibleProtocol` if it does not.
pub(super) fn check(scheme: &str, socket: SocketType, bind: bool) -> Result<()> {
    let fits = match bind {
        true => socket.is_datagram() || receives_groups(socket),
        false => socket.has_groups(),
    };
    if fits {
        return Ok(());
    }
    let verb = if bind { "bind" } else { "connect" };
    let connecting = super::types(SocketType::has_groups);
    let binding = super::types(|socket| socket.is_datagram() || receives_groups(socket));
    let text = format!(
        "over {scheme}, {connecting} connects, and {binding} bind; a {socket} socket cannot {verb}"
    );
    Err(Error::with(ErrorKind::IncompatibleProtocol, text))
}

/// Receives on a socket that `open` binds, and sends there if the type does. A socket of a multicast group joins it again
/// after its interface was removed and made again. `endpoint` is that of the bound socket.
///
/// # Errors
/// `Invalid` if the options hold a descriptor, `NoThread`, and those of the two functions.
pub(super) fn bind(
    scheme: &str,
    port: MessagePort,
    open: impl FnOnce(&Options) -> Result<(Socket, Option<Rejoin>)>,
    endpoint: impl FnOnce(&Socket) -> Result<String>,
) -> Result<Bound> {
    super::check_no_descriptor(scheme, &port.options)?;
    let worker = port.io_worker()?;
    let (socket, rejoin) = match open(&port.options) {
        Ok(opened) => opened,
        Err(error) => {
            let failed =
                MonitorEvent::new(EventKind::BindFailed, error.errno() as u64, port.endpoint());
            port.emit(failed.because(&error));
            return Err(error);
        }
    };
    let endpoint = endpoint(&socket)?;
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
    worker.start(Flow::receiving(socket, pipe, port, sorting, rejoin));
    Ok(Bound {
        endpoint,
        hold: Box::new(hold),
    })
}

/// Sends on a socket that `open` connects, whose address and largest datagram it returns, too. `renew` connects it again.
///
/// # Errors
/// `NoThread`, and those of `open`.
pub(super) fn connect(
    port: MessagePort,
    open: impl FnOnce(&Options) -> Result<(Socket, SocketAddr, usize)>,
    renew: Renew,
) -> Result<Hold> {
    let worker = port.io_worker()?;
    let (socket, address, largest) = open(&port.options)?;
    let pipe = port.open_for_datagrams(Some(&address.to_string()), largest, worker.waker());
    let party = Party::of(pipe.pipe.far_peer());
    send(&worker, socket, pipe, port, (party, renew));
    // The work ends after the socket has closed its end of the pipe and everything was sent.
    Ok(Box::new(()))
}

/// A pipe to a receiver whose address is not known yet. [`announce_and_send`] makes it known.
pub(super) fn open_early(
    port: &MessagePort,
    on_change: impl Fn() + Send + Sync + 'static,
) -> MessagePipe {
    port.open_for_datagrams(None, LARGEST, on_change)
}

/// Sends what is in the pipe on a connected socket, whose address is now known.
pub(super) fn announce_and_send(
    worker: &IoWorker,
    socket: Socket,
    mut pipe: MessagePipe,
    port: MessagePort,
    address: SocketAddr,
    renew: Renew,
) {
    let party = Party::of(Some(pipe.announce(&address.to_string())));
    send(worker, socket, pipe, port, (party, renew));
}

fn send(
    worker: &IoWorker,
    socket: Socket,
    pipe: MessagePipe,
    port: MessagePort,
    receiver: (Party, Renew),
) {
    let event = MonitorEvent::new(EventKind::Connected, id(&socket), port.endpoint());
    port.emit(event.about(&receiver.0));
    worker.start(Flow::sending(socket, pipe, port, receiver));
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
