//! Transports, which provide connections.
//!
//! A transport knows its addresses and how to listen and connect there. From then on a connection is a [`Stream`], the
//! same for all transports. A new transport is one file that ends in a `static` and one line in [`TRANSPORTS`]. inproc
//! is not one of them, because its messages never become bytes.

mod ipc;
mod socks;
mod tcp;

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use socket2::{SockAddr, SockRef};
use zeroxide_proto::socket_type::SocketType;

pub(crate) use self::socks::Socks;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::resolver::Job;
use crate::sys::stream::{self, Acks};

/// Listening and connecting at one kind of address.
pub(crate) trait Transport: Send + Sync {
    /// The scheme before `://`.
    fn scheme(&self) -> &'static str;

    /// Checks an address without using it.
    ///
    /// # Errors
    /// `Invalid` syntax, `NoDevice`, `NameTooLong`; `IncompatibleProtocol` if it does not support this socket type.
    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()>;

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

    /// Begins to connect, without blocking.
    ///
    /// # Errors
    /// The system's error, if it fails at once.
    fn open(&self, target: &Target, options: &Options) -> Result<Opening>;
}

/// A bound address that accepts connections. Dropping it stops listening.
pub(crate) trait Listen: Send {
    /// The next connection; `None` if there is none now.
    ///
    /// # Errors
    /// If [`is_exhausted`](Error::is_exhausted), there is no descriptor or memory for the waiting connection, so pause
    /// the listener. Any other error concerns one connection, which is gone.
    fn accept(&self) -> Result<Option<Stream>>;

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
    /// The conversation with a proxy that must precede the one with the peer.
    pub(crate) proxy: Option<Box<Socks>>,
}

/// A connected, non-blocking byte stream.
#[derive(Debug)]
pub(crate) struct Stream {
    fd: OwnedFd,
    /// None over ipc, and before it is connected.
    peer: Option<SocketAddr>,
}

/// All transports.
pub(crate) static TRANSPORTS: &[&dyn Transport] = &[&tcp::TCP, &ipc::IPC];

/// The transport of a scheme.
///
/// # Errors
/// `NoProtocol` if there is none.
pub(crate) fn find(scheme: &str) -> Result<&'static dyn Transport> {
    let found = TRANSPORTS
        .iter()
        .find(|transport| transport.scheme() == scheme);
    found.copied().ok_or_else(|| {
        let known: Vec<_> = TRANSPORTS
            .iter()
            .map(|transport| transport.scheme())
            .collect();
        let lower = scheme.to_ascii_lowercase();
        let hint = match known.contains(&lower.as_str()) || lower == "inproc" {
            true => format!("; did you mean '{lower}'?"),
            false => String::new(),
        };
        let text = format!(
            "no transport is called '{scheme}'; there are inproc, {}{hint}",
            known.join(", ")
        );
        Error::with(ErrorKind::NoProtocol, text)
    })
}

impl Stream {
    /// Appends received bytes to the buffer, up to its capacity. 0 means the end of the stream.
    pub(crate) fn recv(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        stream::recv(self.fd(), buffer)
    }

    /// Sends as many bytes as the kernel accepts now.
    pub(crate) fn send(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        stream::send(self.fd(), slices, false)
    }

    /// Like [`send`](Self::send), for the last bytes: the end of the stream, which must follow at once, is sent in the
    /// same packet.
    pub(crate) fn send_last(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        stream::send(self.fd(), slices, true)
    }

    /// Whether a connection attempt has succeeded.
    ///
    /// # Errors
    /// `ConnectionRefused` if the socket is connected to itself. That happens when no program listens and the system
    /// chooses the target port as the local one.
    pub(crate) fn is_connected(&mut self) -> io::Result<bool> {
        let socket = SockRef::from(&self.fd);
        let Ok(peer) = socket.peer_addr() else {
            return Ok(false);
        };
        self.peer = peer.as_socket();
        if self.peer.is_some() && self.peer == socket.local_addr()?.as_socket() {
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

    /// Whether the peer may be on another machine, which can fail on its own. Over ipc, it is on this machine.
    pub(crate) fn is_remote(&self) -> bool {
        self.peer.is_some()
    }

    /// Makes the kernel probe the machine of a silent peer from now on.
    pub(crate) fn probe_silent(&self, options: &Options) {
        if self.is_remote() {
            tcp::probe_silent(SockRef::from(&self.fd), options);
        }
    }

    /// The kernel's view of whether the peer's machine responds; `None` over ipc, where it is this machine.
    pub(crate) fn acks(&self) -> Option<Acks> {
        self.peer?;
        stream::acks(self.fd()).ok()
    }

    /// Closes the sending direction.
    pub(crate) fn shutdown_write(&self) {
        // This only fails if the connection is gone.
        let _ = stream::shutdown_write(self.fd());
    }

    /// The number of bytes that a close could lose: those that the kernel has accepted but the peer's kernel has not
    /// acknowledged. None over ipc, where written bytes are available to the peer at once.
    pub(crate) fn unsent(&self) -> usize {
        match self.peer {
            Some(_) => stream::unsent(self.fd()).unwrap_or(0),
            None => 0,
        }
    }

    /// The peer's numeric IP address without port; `:uid:gid:pid` over ipc.
    pub(crate) fn peer_address(&self) -> String {
        match self.peer {
            Some(peer) => plain_ip(peer.ip()).to_string(),
            None => rustix::net::sockopt::socket_peercred(&self.fd)
                .map(|peer| format!(":{}:{}:{}", peer.uid, peer.gid, peer.pid))
                .unwrap_or_default(),
        }
    }

    /// Like [`peer_address`](Self::peer_address), with the port if there is one.
    pub(crate) fn peer_name(&self) -> String {
        match self.peer {
            Some(peer) => SocketAddr::new(plain_ip(peer.ip()), peer.port()).to_string(),
            None => self.peer_address(),
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

impl Target {
    /// The address to connect to first: the proxy's, if there is one.
    pub(crate) fn address(&self) -> &SockAddr {
        &self.address
    }
}

impl From<OwnedFd> for Stream {
    fn from(fd: OwnedFd) -> Stream {
        Stream { fd, peer: None }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&endpoint(&self.address))
    }
}

/// Accepts one connection from a listening descriptor, with its peer's address.
fn accept(fd: BorrowedFd<'_>) -> Result<Option<(OwnedFd, Option<rustix::net::SocketAddrAny>)>> {
    use rustix::io::Errno;
    use rustix::net::SocketFlags;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match rustix::io::retry_on_intr(|| rustix::net::acceptfrom_with(fd, flags)) {
        Ok(accepted) => Ok(Some(accepted)),
        Err(Errno::AGAIN) => Ok(None),
        Err(Errno::MFILE) => Err(Error::with(
            ErrorKind::TooManySockets,
            "no descriptor is left for a new connection",
        )),
        Err(Errno::NFILE) => Err(Error::with(
            ErrorKind::TooManySockets,
            "the system has no descriptor left",
        )),
        Err(Errno::NOBUFS) => Err(Error::with(
            ErrorKind::NoMemory,
            "the system has no buffer left",
        )),
        Err(errno) => Err(errno.into()),
    }
}

/// A socket address as an endpoint.
fn endpoint(address: &SockAddr) -> String {
    match address.as_socket() {
        Some(address) => format!("tcp://{address}"),
        None => ipc::endpoint(address),
    }
}

/// Converts IPv4-mapped IPv6 addresses to IPv4.
fn plain_ip(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn descriptor_id(fd: BorrowedFd<'_>) -> u64 {
    // Descriptors are not negative.
    u64::try_from(fd.as_raw_fd()).unwrap_or_default()
}
