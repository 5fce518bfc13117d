//! Transports: where sockets bind and connect, and what they exchange there.
//!
//! A [`ByteTransport`] knows its addresses and how to listen and connect there. From then on a connection is a
//! [`Stream`], the same for all of them. A [`MessageTransport`] exchanges messages as they are, through pipes. A new
//! transport of either kind is one file and one line in [`TRANSPORTS`].

mod address;
mod datagrams;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod inproc;
mod ip;
mod ipc;
mod layers;
mod machine;
mod messages;
mod multicast;
mod pgm;
mod probing;
mod refusals;
mod sctp;
#[cfg(zeroxide_shuttle)]
mod simulated;
mod socks;
mod stream;
mod tcp;
mod tipc;
mod tls;
mod udp;
mod vsock;
mod worker;
mod ws;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use zeroxide_proto::endpoint::Endpoint;
use zeroxide_proto::socket_type::SocketType;

pub(crate) use self::ipc::{endpoint_of, is_abandoned};
pub use self::messages::{Bound, Hold, MessagePipe, MessagePort, MessageTransport};
use self::refusals::{check_no_descriptor, no_datagrams, no_other_wire, no_plain_bytes, types};
use self::stream::Peer;
pub(crate) use self::stream::Stream;
pub use self::worker::{IoWork, IoWorker, Next};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::resolver::Job;
use crate::sys::stream as kernel;
use crate::sys::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Listening and connecting at one kind of address, for streams of bytes.
pub(crate) trait ByteTransport: Send + Sync {
    /// The scheme before `://`.
    fn scheme(&self) -> &'static str;

    /// Its name among the capabilities of a build, as far as it differs.
    fn capability(&self) -> &'static str {
        self.scheme()
    }

    /// Whether the kernel of this machine makes sockets of its protocol.
    fn is_in_kernel(&self) -> bool {
        true
    }

    /// Checks an address without using it.
    ///
    /// # Errors
    /// `Invalid` syntax, `NoDevice`, `NameTooLong`; `IncompatibleProtocol` if it does not support this socket type;
    /// `NoProtocol` if the kernel cannot connect with it.
    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()>;

    /// Whether it carries bytes as they are, for sockets that speak no ZMTP.
    fn carries_plain_bytes(&self) -> bool {
        true
    }

    /// Binds and listens now. May block to resolve a local host name.
    ///
    /// # Errors
    /// As for `check`, and `AddressInUse`, `AddressNotAvailable`, or the system's error.
    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>>;

    /// The endpoints that a bind to that address may have resulted in, if the address leaves nothing open. May block to
    /// resolve a local host name.
    fn resolved(&self, address: &str, options: &Options) -> Vec<String> {
        let _ = options;
        vec![format!("{}://{address}", self.scheme())]
    }

    /// The addresses to connect to, in the order of attempts. Called again for each round of attempts.
    ///
    /// # Errors
    /// As for `check`.
    fn targets(&self, address: &str, options: &Options) -> Result<Targets>;

    /// Begins to connect to a target of this address, without blocking.
    ///
    /// # Errors
    /// The system's error, if it fails at once.
    fn open(&self, address: &str, target: &Target, options: &Options) -> Result<Opening>;
}

/// A connection that was accepted, or the reason for which it was turned away.
pub(crate) type Arrival = Result<Stream>;

/// A bound address that accepts connections. Dropping it stops listening.
pub(crate) trait Listen: Send {
    /// The next connection; `None` if there is none now.
    ///
    /// # Errors
    /// If [`is_exhausted`](Error::is_exhausted), there is no descriptor or memory for the waiting connection, so pause
    /// the listener. Any other error should concern one connection, which is gone, but the kernel may report it again.
    fn accept(&self) -> Result<Option<Arrival>>;

    /// The resolved endpoint, with wildcards filled in.
    fn endpoint(&self) -> String;

    /// The descriptor on which to wait for connections.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Its number in events.
    fn id(&self) -> u64 {
        descriptor_id(self.fd())
    }

    /// Frees the address, as far as dropping does not.
    fn close(&mut self) {}
}

/// The addresses to connect to.
#[derive(Debug)]
pub(crate) enum Targets {
    /// Known addresses.
    Ready(Vec<Target>),
    /// A name must be looked up first.
    Resolve(Job<Vec<Target>>),
    /// None at present, for this reason. Another attempt may find some.
    NotYet(Error),
}

/// One address to connect to, and the local address to use.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    address: SockAddr,
    source: Option<SockAddr>,
    /// The request to a proxy, if the address is a proxy's.
    request: Option<Arc<socks::Request>>,
}

/// A connection attempt.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Its descriptor.
    pub(crate) stream: Stream,
    /// Whether it is established. If not, it is established or has failed once it is writable: call
    /// [`Stream::take_error`].
    pub(crate) connected: bool,
}

/// A row of [`TRANSPORTS`].
enum Row {
    Bytes(&'static dyn ByteTransport),
    /// Each context makes its own.
    Messages(fn() -> Arc<dyn MessageTransport>),
}

/// All transports.
static TRANSPORTS: &[Row] = &[
    Row::Messages(inproc::new),
    #[cfg(not(zeroxide_shuttle))]
    Row::Bytes(&tcp::TCP),
    #[cfg(zeroxide_shuttle)]
    Row::Bytes(&simulated::SIMULATED),
    Row::Bytes(&ipc::IPC),
    Row::Messages(udp::new),
    Row::Messages(pgm::new),
    Row::Messages(pgm::new_in_udp),
    Row::Bytes(&tls::TLS),
    Row::Bytes(&ws::WS),
    Row::Bytes(&ws::WSS),
    Row::Bytes(&vsock::VSOCK),
    Row::Bytes(&tipc::TIPC),
    Row::Bytes(&sctp::SCTP),
];

/// Whether a transport is built in and the kernel has its protocol, by its scheme or its capability's name.
pub(crate) fn is_capability(name: &str) -> bool {
    let is_it = |row: &Row| match row {
        Row::Bytes(transport) => {
            [transport.scheme(), transport.capability()].contains(&name) && transport.is_in_kernel()
        }
        Row::Messages(new) => new().scheme() == name,
    };
    TRANSPORTS.iter().any(is_it)
}

/// A transport, as a context has it.
#[derive(Clone)]
pub(crate) enum Transport {
    Bytes(&'static dyn ByteTransport),
    Messages(Arc<dyn MessageTransport>),
}

/// The transports of one context.
pub(crate) struct Transports {
    all: RwLock<Vec<Transport>>,
}

impl Transports {
    pub(crate) fn new() -> Transports {
        let of = |row: &Row| match row {
            Row::Bytes(transport) => Transport::Bytes(*transport),
            Row::Messages(new) => Transport::Messages(new()),
        };
        Transports {
            all: RwLock::new(TRANSPORTS.iter().map(of).collect()),
        }
    }

    /// The transport of a scheme.
    ///
    /// # Errors
    /// `NoProtocol` if there is none.
    pub(crate) fn find(&self, scheme: &str) -> Result<Transport> {
        let all = self.all();
        let found = all.iter().find(|transport| transport.scheme() == scheme);
        found.cloned().ok_or_else(|| {
            let known: Vec<_> = all.iter().map(Transport::scheme).collect();
            let lower = scheme.to_ascii_lowercase();
            let meant = all.iter().find(|transport| transport.is_called(&lower));
            let hint = meant.map_or_else(String::new, |meant| {
                format!("; did you mean '{}'?", meant.scheme())
            });
            let text = format!(
                "no transport is called '{scheme}'; there are {}{hint}",
                known.join(", ")
            );
            Error::with(ErrorKind::NoProtocol, text)
        })
    }

    /// Adds a transport.
    ///
    /// # Errors
    /// `AddressInUse` if another one has its scheme.
    pub(crate) fn add(&self, transport: Transport) -> Result<()> {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let scheme = transport.scheme();
        if all.iter().any(|known| known.scheme() == scheme) {
            let text = format!("a transport is called '{scheme}' already");
            return Err(Error::with(ErrorKind::AddressInUse, text));
        }
        all.push(transport);
        Ok(())
    }

    /// Whether a transport was added.
    pub(crate) fn is_added(&self, scheme: &str) -> bool {
        let all = self.all();
        let mut added = all.iter().skip(TRANSPORTS.len());
        added.any(|transport| transport.scheme() == scheme)
    }

    /// Whether an endpoint can only be reached within this context.
    pub(crate) fn is_local(&self, endpoint: &str) -> bool {
        let messages = self.find_messages(endpoint);
        messages.is_some_and(|(transport, _)| transport.is_local())
    }

    /// The port of this context that is bound to an endpoint.
    pub(crate) fn bound_port(&self, endpoint: &str) -> Option<MessagePort> {
        let (transport, address) = self.find_messages(endpoint)?;
        transport.bound_port(&address)
    }

    /// The context was shut down.
    pub(crate) fn on_shutdown(&self) {
        let all = self.all().clone();
        for transport in all {
            if let Transport::Messages(transport) = transport {
                transport.on_shutdown();
            }
        }
    }

    fn find_messages(&self, endpoint: &str) -> Option<(Arc<dyn MessageTransport>, String)> {
        let endpoint = Endpoint::parse(endpoint).ok()?;
        match self.find(&endpoint.scheme) {
            Ok(Transport::Messages(transport)) => Some((transport, endpoint.address)),
            _ => None,
        }
    }

    fn all(&self) -> RwLockReadGuard<'_, Vec<Transport>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport {
    fn scheme(&self) -> &str {
        match self {
            Transport::Bytes(transport) => transport.scheme(),
            Transport::Messages(transport) => transport.scheme(),
        }
    }

    /// Whether it has this scheme, or its capability has this name, in small letters.
    fn is_called(&self, name: &str) -> bool {
        let capability = match self {
            Transport::Bytes(transport) => transport.capability(),
            Transport::Messages(transport) => transport.scheme(),
        };
        self.scheme() == name || capability.eq_ignore_ascii_case(name)
    }

    /// Checks an address without using it.
    ///
    /// # Errors
    /// As the transport's own `check`.
    pub(crate) fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        match self {
            Transport::Bytes(_) if socket.is_datagram() => Err(no_datagrams(socket)),
            Transport::Bytes(transport) => transport.check(address, socket, bind),
            Transport::Messages(transport) => transport.check(address, socket, bind),
        }
    }
}

/// The byte transport of a scheme.
#[cfg(test)]
pub(crate) fn find(scheme: &str) -> Result<&'static dyn ByteTransport> {
    let bytes = TRANSPORTS.iter().filter_map(|row| match row {
        Row::Bytes(transport) => Some(*transport),
        Row::Messages(_) => None,
    });
    let mut bytes = bytes.filter(|transport| transport.scheme() == scheme);
    bytes.next().ok_or(Error::new(ErrorKind::NoProtocol))
}

impl Target {
    /// The address to connect to first: the proxy's, if there is one.
    pub(crate) fn address(&self) -> &SockAddr {
        &self.address
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&endpoint(&self.address))
    }
}

/// Accepts one connection from a listening descriptor, with its peer's address.
fn accept(fd: BorrowedFd<'_>) -> Result<Option<(OwnedFd, Option<SocketAddr>)>> {
    let (kind, text) = match kernel::accept(fd) {
        Ok(accepted) => return Ok(Some(accepted)),
        Err(kernel::NotAccepted::NoneWaits) => return Ok(None),
        Err(kernel::NotAccepted::OwnLimit) => (
            ErrorKind::TooManySockets,
            "no descriptor is left for a new connection",
        ),
        Err(kernel::NotAccepted::SystemLimit) => (
            ErrorKind::TooManySockets,
            "the system has no descriptor left",
        ),
        Err(kernel::NotAccepted::NoBuffer) => {
            (ErrorKind::NoMemory, "the system has no buffer left")
        }
        Err(kernel::NotAccepted::Other(error)) => return Err(error.into()),
    };
    Err(Error::with(kind, text))
}

/// Begins to connect a socket to a target.
fn open(socket: Socket, target: &Target) -> Result<Opening> {
    let connected = match socket.connect(&target.address) {
        Ok(()) => true,
        Err(error) if kernel::is_under_way(&error) => false,
        Err(error) => return Err(Error::from(error).about(target)),
    };
    let mut stream = Stream::from(OwnedFd::from(socket));
    if connected {
        stream.take_error()?;
    }
    Ok(Opening { stream, connected })
}

/// A listening socket that other code has opened, that has an address of the right kind, and that can be prepared. If
/// there is an error, the descriptor stays with that code.
fn adopted(
    fd: i32,
    kind: &str,
    fits: impl Fn(&SockAddr) -> bool,
    prepare: impl FnOnce(&Socket) -> Result<()>,
) -> Result<Socket> {
    let unfit = |why: &str| Error::with(ErrorKind::Invalid, format!("USE_FD {fd} {why}"));
    let adopted = kernel::adopt(fd, |fd| {
        let socket = SockRef::from(&fd);
        let is_it = socket.local_addr().is_ok_and(|local| fits(&local));
        if !is_it || !socket.is_listener().unwrap_or(false) {
            return Err(unfit(&format!("is no listening {kind} socket")));
        }
        prepare(&socket)
    });
    let adopted = adopted.map_err(|error| unfit(&format!("is no open descriptor ({error})")))?;
    adopted.map(Socket::from)
}

/// Sets the sizes of the kernel's buffers. Do this before the socket binds or connects.
fn set_buffers(socket: &Socket, options: &Options) -> io::Result<()> {
    if let Some(size) = options.sndbuf {
        socket.set_send_buffer_size(size)?;
    }
    if let Some(size) = options.rcvbuf {
        socket.set_recv_buffer_size(size)?;
    }
    Ok(())
}

/// Checks that the kernel can make stream sockets of a protocol, so that a connect without it fails at once. An attempt
/// would be repeated forever.
///
/// # Errors
/// `NoProtocol` if the kernel lacks it, or the system's error, as in a sandbox that forbids it.
fn check_family(domain: Domain, protocol: Option<Protocol>, name: &str) -> Result<()> {
    let made = Socket::new_raw(domain, Type::STREAM.cloexec(), protocol);
    match made.map_err(|error| without_family(error, name)) {
        // The kernel has looked for the protocol before, and the lack may be over before the first attempt.
        Err(error) if error.is_exhausted() => Ok(()),
        made => made.map(drop),
    }
}

/// The error for a socket of a protocol that the kernel may lack.
fn without_family(error: io::Error, name: &str) -> Error {
    match kernel::is_unknown_family(&error) {
        true => {
            let text = format!("the kernel has no {name}; load its module, or use tcp");
            Error::with(ErrorKind::NoProtocol, text)
        }
        false => error.into(),
    }
}

/// A socket address as an endpoint.
fn endpoint(address: &SockAddr) -> String {
    match address.as_socket() {
        Some(address) => format!("tcp://{address}"),
        None => vsock::endpoint(address)
            .or_else(|| tipc::endpoint(address))
            .unwrap_or_else(|| ipc::endpoint(address)),
    }
}

fn descriptor_id(fd: BorrowedFd<'_>) -> u64 {
    // Descriptors are not negative.
    u64::try_from(fd.as_raw_fd()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
