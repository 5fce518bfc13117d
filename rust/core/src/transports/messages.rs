//! Transports that carry messages: they join sockets to each other, or to something else, by pipes.
//!
//! A message transport has no engine and no session. It gets a [`MessagePort`] with each bind and connect, and hands
//! pipes to it. inproc is such a transport. One that has descriptors, such as udp, lets the I/O threads of the context
//! serve them ([`IoWorker`]).

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::mechanisms;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use super::worker::IoWorker;
use crate::budget::Budget;
use crate::error::Result;
use crate::io_thread::IoHandle;
use crate::monitor::MonitorEvent;
use crate::options::Options;
use crate::patterns::{DropReason, Side};
use crate::pipe::{Limit, Pipe, PipeConfig, PipeEvent, PipeId, PipeOwner};
use crate::port::{Delivery, Origin, SocketPort};
use crate::resolver::Job;
use crate::undelivered::UndeliveredPeer;

/// A kind of address at which messages are exchanged as they are. Each context has its own.
///
/// Its methods are called by the threads that use the sockets, without any lock of the library.
pub trait MessageTransport: Send + Sync {
    /// The scheme before `://`.
    fn scheme(&self) -> &str;

    /// Checks an address without using it.
    ///
    /// # Errors
    /// `Invalid` syntax; `IncompatibleProtocol` if the transport does not support this socket type.
    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()>;

    /// Binds the socket behind `port` to an address. From now on each peer that connects gets a pipe to the port.
    ///
    /// # Errors
    /// As for `check`, and `AddressInUse`, `AddressNotAvailable`, or the system's error.
    fn bind(&self, address: &str, port: MessagePort) -> Result<Bound>;

    /// Connects the socket behind `port` to an address. Success means that the attempt has begun. A pipe that is handed
    /// to the port before this returns can be used by the socket's next call.
    ///
    /// # Errors
    /// As for `check`, as far as the address itself shows it.
    fn connect(&self, address: &str, port: MessagePort) -> Result<Hold>;

    /// Whether both ends of every pipe are sockets of this context. If not, sockets with a security mechanism, an
    /// allow-list or a proxy cannot bind or connect there: without a handshake, they would not have their effect.
    fn is_local(&self) -> bool {
        false
    }

    /// The port that is bound to an address in this context.
    fn bound_port(&self, address: &str) -> Option<MessagePort> {
        let _ = address;
        None
    }

    /// The context was shut down: nothing will be bound or connected any more.
    fn on_shutdown(&self) {}
}

/// Keeps a bind or connect in effect. A drop takes the call back, and may happen under the socket's lock.
pub type Hold = Box<dyn Any + Send + Sync>;

/// A bound address.
#[derive(Debug)]
pub struct Bound {
    /// The resolved endpoint, with wildcards filled in.
    pub endpoint: String,
    /// See [`Hold`].
    pub hold: Hold,
}

/// A socket, as a message transport sees it in one bind or connect call. Clones are the same port.
#[derive(Clone)]
pub struct MessagePort {
    pub(crate) port: Arc<dyn SocketPort>,
    pub(crate) socket_type: SocketType,
    /// As the application wrote it.
    pub(crate) endpoint: Arc<str>,
    pub(crate) origin: Origin,
    /// The socket's high-water marks, for sending and for receiving.
    pub(crate) limits: (Limit, Limit),
    /// Whether it conflates the messages that it sends, and those that it receives.
    pub(crate) conflate: (bool, bool),
    pub(crate) options: Arc<Options>,
    /// The application's name for the peer of this connect.
    pub(crate) peer_name: Option<Bytes>,
    /// Chooses an I/O thread. The context cannot end before the second value is dropped.
    pub(crate) choose_io: ChooseIo,
    pub(crate) budget: Arc<Budget>,
    pub(crate) look_up: LookUp,
}

/// Looks a name up with the resolver of the context. See [`MessagePort::look_up`].
pub(crate) type LookUp = Arc<dyn Fn(Job<Vec<SocketAddr>>, Found) -> Result<()> + Send + Sync>;
type Found = Box<dyn FnOnce(Result<Vec<SocketAddr>>) + Send>;

/// See [`MessagePort`].
pub(crate) type ChooseIo =
    Arc<dyn Fn() -> Result<(IoHandle, Box<dyn Any + Send + Sync>)> + Send + Sync>;

impl MessagePort {
    /// The type of the socket.
    pub fn socket_type(&self) -> SocketType {
        self.socket_type
    }

    /// The endpoint as the application wrote it.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The socket's ROUTING_ID; empty if it has none.
    pub fn routing_id(&self) -> &[u8] {
        &self.options.routing_id
    }

    /// Connects the socket with a peer: the socket gets one end of a new pipe, and the transport the other. `address` is
    /// the peer's in statistics and events.
    ///
    /// `on_change` is called when the pipe has messages for the transport, room again, or was closed by the socket. The
    /// calling thread may be one that sends, with locks held, so only wake another thread or an [`IoWorker`] there. It is called at the
    /// next change only after [`try_recv`](MessagePipe::try_recv) has returned `None`, or
    /// [`try_send`](MessagePipe::try_send) its message.
    pub fn open(&self, address: &str, on_change: impl Fn() + Send + Sync + 'static) -> MessagePipe {
        let (pipe, theirs) = self.join(address, on_change);
        pipe.pipe.set_far_peer(at(address));
        self.attach(theirs);
        pipe
    }

    /// Like [`open`](Self::open), for a transport that sends each message as one datagram of up to `largest` bytes.
    /// Nothing but the application's messages is exchanged. A peer whose address is not known yet is
    /// [announced](MessagePipe::announce) later.
    pub(super) fn open_for_datagrams(
        &self,
        address: Option<&str>,
        largest: usize,
        on_change: impl Fn() + Send + Sync + 'static,
    ) -> MessagePipe {
        let (pipe, mut theirs) = self.join(address.unwrap_or_default(), on_change);
        if let Some(address) = address {
            pipe.pipe.set_far_peer(at(address));
        }
        theirs.set_largest(largest);
        self.port.attach(theirs, &self.endpoint, self.origin);
        pipe
    }

    /// Like [`open`](Self::open), for a transport that sends every message of the socket to peers that it does not know.
    /// A publisher acts as if a peer had subscribed to everything.
    pub(super) fn open_for_all(&self, on_change: impl Fn() + Send + Sync + 'static) -> MessagePipe {
        let (mut pipe, theirs) = self.join("", on_change);
        pipe.pipe.set_far_peer(at(""));
        if self.socket_type.publishes() {
            let everything = Frame::with_kind(FrameKind::Subscribe, b"");
            pipe.pipe.write_unchecked(&mut Message::single(everything));
            pipe.pipe.flush();
        }
        self.port.attach(theirs, &self.endpoint, self.origin);
        pipe
    }

    /// A new pipe: the end of the transport, and that of the socket.
    fn join(
        &self,
        address: &str,
        on_change: impl Fn() + Send + Sync + 'static,
    ) -> (MessagePipe, Pipe) {
        let own = PipeConfig {
            conflate: self.conflate.1,
            ..PipeConfig::default()
        };
        let (theirs, pipe) = Pipe::pair(self.pipe_config(), own);
        pipe.set_owner(Arc::new(Owner(on_change)), PipeId(0));
        let pipe = MessagePipe {
            pipe,
            port: self.clone(),
            address: address.to_owned(),
            held: (0, 0),
            _delivery: Delivery::begin(&self.port),
            _context: self.port.hold_context(),
        };
        (pipe, theirs)
    }

    /// A place in an I/O thread of the context, according to the socket's AFFINITY.
    ///
    /// # Errors
    /// `NoThread` if there is none.
    pub fn io_worker(&self) -> Result<IoWorker> {
        let (io, guard) = (self.choose_io)()?;
        Ok(IoWorker::new(io, guard))
    }

    /// Looks a name up, and calls `done` with its addresses, from another thread. See [`Resolver::submit`].
    ///
    /// [`Resolver::submit`]: crate::resolver::Resolver::submit
    ///
    /// # Errors
    /// As there.
    pub(super) fn look_up(
        &self,
        job: Job<Vec<SocketAddr>>,
        done: impl FnOnce(Result<Vec<SocketAddr>>) + Send + 'static,
    ) -> Result<()> {
        (self.look_up)(job, Box::new(done))
    }

    /// The socket's description for a peer.
    pub(crate) fn info(&self) -> Arc<PeerInfo> {
        Arc::new(PeerInfo {
            socket_type: Some(self.socket_type),
            routing_id: self.options.routing_id.clone(),
            version: (3, 1),
            mechanism: mechanisms::none().name,
            user_id: None,
            key: None,
            properties: vec![
                (
                    "Socket-Type".to_owned(),
                    Bytes::from_static(self.socket_type.name().as_bytes()),
                ),
                ("Identity".to_owned(), self.options.routing_id.clone()),
            ],
        })
    }

    /// The socket's part of the settings of a new pipe.
    pub(crate) fn pipe_config(&self) -> PipeConfig {
        PipeConfig {
            limit_out: Some(self.limits.0),
            limit_in: Some(self.limits.1),
            conflate: self.conflate.0,
        }
    }

    /// Hands one end of a pipe to the socket, which is not to greet the peer, nor to be sent last words.
    pub(crate) fn attach_plain(&self, pipe: Pipe) {
        self.port.attach(pipe, &self.endpoint, self.origin);
    }

    /// Hands one end of a pipe to the socket.
    pub(crate) fn attach(&self, mut pipe: Pipe) {
        if self.peer_name.is_some() {
            pipe.set_peer_name(self.peer_name.clone());
        }
        for greeting in self.options.greetings() {
            pipe.greet(greeting);
        }
        if self.origin.side == Side::Accepting {
            pipe.expect_last_words(self.options.on_left());
        }
        self.attach_plain(pipe);
    }

    /// Reports the messages that the socket, which has closed its end of the pipe, had sent and that no peer will read:
    /// their number and their bytes.
    pub(crate) fn give_up(&self, address: &str, (messages, bytes): (u64, u64)) {
        let left = UndeliveredPeer {
            endpoint: self.endpoint.to_string(),
            address: address.to_owned(),
            routing_id: Bytes::new(),
            messages,
            bytes,
        };
        if left.messages > 0 {
            self.port.give_up(DropReason::Lingered, left);
        }
    }

    /// Reports an event to the monitors of the socket.
    pub(crate) fn emit(&self, event: MonitorEvent) {
        self.port.emit(event);
    }
}

impl fmt::Debug for MessagePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagePort")
            .field("socket_type", &self.socket_type)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// The transport's end of a pipe to a socket. A drop disconnects the socket from this peer: it can still receive what
/// was sent before. The context's `term()` waits until all of its pipes were dropped.
pub struct MessagePipe {
    pub(super) pipe: Pipe,
    port: MessagePort,
    address: String,
    /// The messages that the transport has taken out and will not deliver, and their bytes.
    held: (u64, u64),
    _delivery: Delivery,
    _context: Box<dyn Any + Send + Sync>,
}

impl MessagePipe {
    /// The next message that the socket has sent to this peer. It counts as delivered from then on.
    pub fn try_recv(&mut self) -> Option<Message> {
        if !self.pipe.check_read() {
            return None;
        }
        let message = self.pipe.read()?;
        self.pipe.account(1);
        Some(message)
    }

    /// Hands a message of the peer to the socket.
    ///
    /// # Errors
    /// Returns the message if the socket has reached its high-water mark for this peer, or has closed the pipe.
    pub fn try_send(&mut self, mut message: Message) -> std::result::Result<(), Message> {
        if !self.pipe.check_write() {
            return Err(message);
        }
        self.pipe.write_unchecked(&mut message);
        self.pipe.flush();
        Ok(())
    }

    /// Makes the peer's address known, which it was not when the pipe was opened. Returns the description of the peer.
    pub(super) fn announce(&mut self, address: &str) -> Arc<PeerInfo> {
        let peer = at(address);
        address.clone_into(&mut self.address);
        self.pipe.announce_ready(peer.clone());
        peer
    }

    /// Records messages that the transport has taken out of the pipe and will not deliver. The pipe must be dropped next.
    pub(super) fn abandon(&mut self, messages: u64, bytes: u64) {
        self.held = (messages, bytes);
    }

    /// Whether the socket has closed its end. Messages that it sent before can still be received.
    pub fn is_closed(&self) -> bool {
        self.pipe.is_far_closed()
    }

    /// After the socket has closed its end: for how long to go on delivering, from then on. `None` means forever.
    pub fn linger(&self) -> Option<Duration> {
        self.pipe.far_linger()
    }
}

impl Drop for MessagePipe {
    fn drop(&mut self) {
        let (messages, _) = self.held;
        let held = match self.pipe.account_lost(messages, 0, messages) {
            true => (0, 0),
            false => self.held,
        };
        // A socket that is open counts those that are still in the pipe.
        if self.pipe.end_reading() {
            let (messages, bytes) = self.pipe.unread_in();
            let left = (messages + held.0, bytes + held.1);
            self.port.give_up(&self.address, left);
        }
    }
}

/// The description of a peer of which only the address is known, or not even that.
fn at(address: &str) -> Arc<PeerInfo> {
    let property = (!address.is_empty()).then(|| {
        let address = Bytes::copy_from_slice(address.as_bytes());
        ("Peer-Address".to_owned(), address)
    });
    Arc::new(PeerInfo {
        properties: property.into_iter().collect(),
        ..PeerInfo::default()
    })
}

impl fmt::Debug for MessagePipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagePipe").finish_non_exhaustive()
    }
}

/// Passes the events of a pipe on to its transport.
struct Owner<F>(F);

impl<F: Fn() + Send + Sync> PipeOwner for Owner<F> {
    fn on_pipe(&self, _: PipeId, event: PipeEvent) {
        match event {
            PipeEvent::Readable | PipeEvent::Writable | PipeEvent::Closed => (self.0)(),
            // Of the other end, and of pipes with connections behind them.
            PipeEvent::Ready
            | PipeEvent::Disconnected
            | PipeEvent::HungUp
            | PipeEvent::Sent
            | PipeEvent::Gathering
            | PipeEvent::Asked => {}
        }
    }
}
