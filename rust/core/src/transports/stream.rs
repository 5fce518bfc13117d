//! [`Stream`]: a connection of a [`ByteTransport`](super::ByteTransport), with the layers between its descriptor and ZMTP.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use socket2::{SockAddr, SockRef};
use zeroxide_proto::wires::Mapping;

use super::layers::{Layer, Layers};
use super::{descriptor_id, endpoint, probing};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::sys::local;
use crate::sys::stream::{self, Acks};

/// A connected, non-blocking byte stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) fd: OwnedFd,
    pub(super) peer: Peer,
    /// The protocols between the descriptor and ZMTP, if there are any.
    pub(super) layers: Option<Box<Layers>>,
}

/// Where the other end of a stream is.
#[derive(Debug)]
pub(super) enum Peer {
    /// On this machine, over ipc. Also before the stream is connected.
    Here,
    Ip(SocketAddr),
    /// On a machine without an IP address, whose end the kernel notices by itself. The address without the scheme.
    Machine(Box<str>),
}

impl Stream {
    /// Puts a layer between the descriptor and ZMTP, on top of others.
    pub(crate) fn with_layer(mut self, layer: impl Layer + 'static) -> Stream {
        self.layers.get_or_insert_default().push(Box::new(layer));
        self
    }

    /// Appends received bytes to the buffer, up to its capacity. 0 means the end of the stream.
    #[inline]
    pub(crate) fn recv(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        if self.layers.is_some() {
            return self.recv_through_layers(buffer);
        }
        stream::recv(self.fd(), buffer)
    }

    /// Whether [`recv`](Self::recv) may return something of which the kernel will not notify, because a layer holds it.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.layers.as_ref().is_some_and(|layers| layers.has_more())
    }

    /// Sends as many bytes as the kernel accepts now. With `is_last`, the end of the stream must follow at once, and is
    /// sent in the same packet.
    #[inline]
    pub(crate) fn send(&mut self, slices: &[IoSlice<'_>], is_last: bool) -> io::Result<usize> {
        match &mut self.layers {
            None => stream::send(self.fd(), slices, is_last),
            Some(layers) => layers.send(self.fd.as_fd(), slices, is_last),
        }
    }

    /// Whether a layer holds bytes that [`send`](Self::send) sends when the kernel has room.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.layers
            .as_ref()
            .is_some_and(|layers| layers.has_unsent())
    }

    /// The memory that its layers usually take.
    pub(crate) fn layers_size(&self) -> u64 {
        self.layers.as_ref().map_or(0, |layers| layers.size())
    }

    /// Whether a layer has to shake hands before the stream can be used.
    pub(crate) fn is_opening(&self) -> bool {
        self.layers
            .as_ref()
            .is_some_and(|layers| layers.is_opening())
    }

    /// Whether the layer that shakes hands does so with the peer, and not with a proxy on the way.
    pub(crate) fn is_at_peer(&self) -> bool {
        let layers = self.layers.as_ref();
        layers.is_some_and(|layers| layers.are_at_peer())
    }

    /// Whether no program on the way can read what is sent.
    pub(crate) fn is_private(&self) -> bool {
        let layers = self.layers.as_ref();
        layers.is_some_and(|layers| layers.are_private())
    }

    /// Why a layer has ended the connection, if one has.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.layers.as_ref()?.failure()
    }

    /// Goes on with the handshakes of the layers. Returns whether they are complete. If not,
    /// [`is_unread`](Self::is_unread) tells whether to go on after others had their turn.
    ///
    /// # Errors
    /// The reason why they will never be complete.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match &mut self.layers {
            None => Ok(true),
            Some(layers) => layers.advance(self.fd.as_fd()),
        }
    }

    /// Whether the kernel may have bytes for the layers of which it will not notify.
    pub(crate) fn is_unread(&self) -> bool {
        let layers = self.layers.as_ref();
        layers.is_some_and(|layers| layers.is_unread())
    }

    #[cold]
    fn recv_through_layers(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.layers {
            Some(layers) if !layers.are_over() => layers.recv(self.fd.as_fd(), buffer),
            _ => {
                self.layers = None;
                stream::recv(self.fd(), buffer)
            }
        }
    }

    /// Whether a connection attempt has succeeded.
    ///
    /// # Errors
    /// `ConnectionRefused` if the socket is connected to itself. That happens when no program listens and the system
    /// chooses the target port as the local one.
    pub(crate) fn is_connected(&mut self) -> io::Result<bool> {
        let Ok(peer) = stream::peer(self.fd()) else {
            return Ok(false);
        };
        self.peer = Peer::at(&peer);
        let socket = SockRef::from(&self.fd);
        if let Peer::Ip(peer) = self.peer
            && Some(peer) == socket.local_addr()?.as_socket()
        {
            // A reset leaves nothing of the connection. Otherwise the kernel would hold the port for a minute, and the
            // program that is meant to listen there could not bind to it.
            let _ = socket.set_linger(Some(Duration::ZERO));
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(true)
    }

    /// The result of a connection attempt, once the stream is writable.
    ///
    /// # Errors
    /// The system's error, or as for [`is_connected`](Self::is_connected).
    pub(crate) fn take_error(&mut self) -> io::Result<()> {
        if self.is_connected()? {
            return Ok(());
        }
        stream::take_error(self.fd())?;
        // Another event has already reported it.
        Err(io::ErrorKind::NotConnected.into())
    }

    /// Whether the peer has closed or the connection is broken, according to the kernel.
    pub(crate) fn has_hung_up(&self) -> bool {
        stream::has_hung_up(self.fd())
    }

    /// Whether the stream is one of ipc.
    pub(crate) fn is_ipc(&self) -> bool {
        matches!(self.peer, Peer::Here)
    }

    /// Whether the peer may be on another machine, which can fail without any notice.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.peer, Peer::Ip(_))
    }

    /// How messages are carried here.
    pub(crate) fn mapping(&self) -> Mapping {
        match &self.layers {
            Some(layers) if layers.send_pieces() => Mapping::Pieces,
            _ if self.is_ipc() => Mapping::Typed,
            _ => Mapping::Sized,
        }
    }

    /// Whether a layer has pings of its own.
    pub(crate) fn has_pings(&self) -> bool {
        self.layers
            .as_ref()
            .is_some_and(|layers| layers.have_pings())
    }

    /// Whether such a ping waits to be sent.
    pub(crate) fn owes_ping(&self) -> bool {
        self.layers.as_ref().is_some_and(|layers| layers.owe_ping())
    }

    /// Sends a ping of a layer, once there is room.
    pub(crate) fn ping(&mut self) {
        if let Some(layers) = &mut self.layers {
            layers.ping();
        }
    }

    /// Whether the peer has sent something for that layer only since the last call or the last bytes for above.
    pub(crate) fn take_sign_of_life(&mut self) -> bool {
        self.layers
            .as_mut()
            .is_some_and(|layers| layers.take_sign_of_life())
    }

    /// Makes the kernel probe the machine of a silent peer from now on.
    pub(crate) fn probe_silent(&self, options: &Options) {
        if self.is_remote() {
            probing::probe_silent(self.fd(), options);
        }
    }

    /// The kernel's view of whether the peer's machine responds; `None` if only TCP could tell.
    pub(crate) fn acks(&self) -> Option<Acks> {
        if !self.is_remote() {
            return None;
        }
        stream::acks(self.fd()).ok()
    }

    /// Closes the sending direction.
    pub(crate) fn shutdown_write(&mut self) {
        if let Some(layers) = &mut self.layers {
            layers.finish(self.fd.as_fd());
        }
        // This only fails if the connection is gone.
        let _ = stream::shutdown_write(self.fd());
    }

    /// Closes the connection, although a forked child may have its descriptor. Such a child must not call this. The bytes
    /// that were written before still arrive, as after a drop.
    pub(crate) fn close(self) {
        if self.is_remote() && self.unacknowledged() > 0 {
            probing::leave_to_kernel(self.fd());
        }
        stream::end(self.fd());
    }

    /// Resets a connection of TCP. Bytes that the peer's kernel does not have yet never arrive there.
    pub(crate) fn reset(&self) {
        if self.is_remote() {
            stream::reset(self.fd());
        }
    }

    /// The number of bytes that the kernel has and that were not read. Those of layers may become fewer.
    pub(crate) fn unread(&self) -> usize {
        stream::unread(self.fd()).unwrap_or(usize::MAX)
    }

    /// The number of bytes that the layers hold, because the kernel has not taken them yet.
    pub(crate) fn held(&self) -> usize {
        self.layers.as_ref().map_or(0, |layers| layers.held())
    }

    /// The number of bytes that a close could lose: those that the layers hold, and the
    /// [unacknowledged](Self::unacknowledged) ones.
    pub(crate) fn unsent(&self) -> usize {
        self.held() + self.unacknowledged()
    }

    /// The number of bytes that the kernel has accepted but the peer's kernel has not acknowledged. None over ipc, where
    /// written bytes are available to the peer at once.
    pub(crate) fn unacknowledged(&self) -> usize {
        match self.peer {
            Peer::Here => 0,
            Peer::Ip(_) | Peer::Machine(_) => stream::unsent(self.fd()).unwrap_or(0),
        }
    }

    /// The peer's numeric IP address without port; `:uid:gid:pid` over ipc; elsewhere, the address as it is written.
    pub(crate) fn peer_address(&self) -> String {
        match &self.peer {
            Peer::Ip(peer) => plain_ip(peer.ip()).to_string(),
            Peer::Machine(name) => name.to_string(),
            Peer::Here => local::peer_credentials(&self.fd)
                .map(|peer| format!(":{}:{}:{}", peer.user, peer.group, peer.process))
                .unwrap_or_default(),
        }
    }

    /// Like [`peer_address`](Self::peer_address), with the port if there is one.
    pub(crate) fn peer_name(&self) -> String {
        match self.peer {
            Peer::Ip(peer) => SocketAddr::new(plain_ip(peer.ip()), peer.port()).to_string(),
            Peer::Here | Peer::Machine(_) => self.peer_address(),
        }
    }

    /// The descriptor on which to wait for bytes or room.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Its number in events.
    pub(crate) fn id(&self) -> u64 {
        descriptor_id(self.fd())
    }
}

impl From<OwnedFd> for Stream {
    fn from(fd: OwnedFd) -> Stream {
        Stream {
            fd,
            peer: Peer::Here,
            layers: None,
        }
    }
}

impl Peer {
    fn at(address: &SockAddr) -> Peer {
        match address.as_socket() {
            Some(address) => Peer::Ip(address),
            None if address.is_unix() => Peer::Here,
            None => {
                let endpoint = endpoint(address);
                let name = endpoint.split_once("://").map_or("", |(_, name)| name);
                Peer::Machine(name.into())
            }
        }
    }
}

/// Converts IPv4-mapped IPv6 addresses to IPv4.
fn plain_ip(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
