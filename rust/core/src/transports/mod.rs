//! Transports: where bytes come from and go to.
//!
//! A transport knows its addresses and how to listen and connect there; from then on a connection is a [`Stream`], the
//! same for all. Adding one is one file that ends in a `static` and one line in [`TRANSPORTS`]. inproc is none of them:
//! its messages never become bytes.

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

/// How to listen and connect at one kind of address.
pub(crate) trait Transport: Send + Sync {
    /// What stands before `://`.
    fn scheme(&self) -> &'static str;

    /// Checks an address without acting on it.
    ///
    /// # Errors
    /// `Invalid` syntax, `NoDevice`, `NameTooLong`; `IncompatibleProtocol` when it does not carry this socket type.
    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()>;

    /// Binds and listens now. May block to resolve a local host name.
    ///
    /// # Errors
    /// As `check`, and `AddressInUse`, `AddressNotAvailable`, or what the system says.
    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>>;

    /// The endpoints that a bind to that address may have come to, where it leaves nothing open. May block to resolve a
    /// local host name.
    fn resolved(&self, address: &str, options: &Options) -> Vec<String> {
        let _ = options;
        vec![format!("{}://{address}", self.scheme())]
    }

    /// Where to connect to, in the order to try. Asked again for each round of attempts.
    ///
    /// # Errors
    /// As `check`.
    fn targets(&self, address: &str, options: &Options) -> Result<Targets>;

    /// Begins to connect, without blocking.
    ///
    /// # Errors
    /// What the system says, if it says so at once.
    fn open(&self, target: &Target, options: &Options) -> Result<Opening>;
}

/// A bound address that takes connections in. Dropped, it stops listening.
pub(crate) trait Listen: Send {
    /// The next connection; `None` when there is none now.
    ///
    /// # Errors
    /// One that [`is_exhausted`](Error::is_exhausted): the connection waits, there is no descriptor or memory for it,
    /// so leave the listener alone for a while. Any other concerns one connection, which is gone.
    fn accept(&self) -> Result<Option<Stream>>;

    /// The resolved endpoint, wildcards filled in.
    fn endpoint(&self) -> String;

    /// To wait for connections.
    fn fd(&self) -> BorrowedFd<'_>;

    /// A number for it in events.
    fn id(&self) -> u64 {
        descriptor_id(self.fd())
    }

    /// Gives the address free, as far as dropping does not.
    fn close(&mut self) {}
}

/// Where to connect to.
#[derive(Debug)]
pub(crate) enum Targets {
    /// Known.
    Ready(Vec<Target>),
    /// A name has to be looked up first.
    Resolve(Job<Vec<Target>>),
}

/// One address to connect to, and the local one to do it from.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    address: SockAddr,
    source: Option<SockAddr>,
    /// It is the address of a proxy, which is to be asked for this.
    request: Option<Arc<socks::Request>>,
}

/// A connection that has been begun.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Its descriptor.
    pub(crate) stream: Stream,
    /// Whether it is up already. If not, it is up or has failed once it is writable: ask
    /// [`Stream::take_error`].
    pub(crate) connected: bool,
    /// What has to be said to a proxy once it is up, before the peer can be talked to.
    pub(crate) proxy: Option<Box<Socks>>,
}

/// A connected byte stream, never blocking.
#[derive(Debug)]
pub(crate) struct Stream {
    fd: OwnedFd,
    /// None over ipc, and as long as it is not connected.
    peer: Option<SocketAddr>,
}

/// Every transport there is.
pub(crate) static TRANSPORTS: &[&dyn Transport] = &[&tcp::TCP, &ipc::IPC];

/// The transport of a scheme.
///
/// # Errors
/// `NoProtocol` when there is none.
pub(crate) fn find(scheme: &str) -> Result<&'static dyn Transport> {
    let found = TRANSPORTS
        .iter()
        .find(|transport| transport.scheme() == scheme);
    found.copied().ok_or_else(|| {
        let known: Vec<_> = TRANSPORTS
            .iter()
            .map(|transport| transport.scheme())
            .collect();
        let text = format!(
            "no transport is called '{scheme}'; there are inproc, {}",
            known.join(", ")
        );
        Error::with(ErrorKind::NoProtocol, text)
    })
}

impl Stream {
    /// Appends what has arrived to the buffer, as much as it has room for. 0 is the end.
    pub(crate) fn recv(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        stream::recv(self.fd(), buffer)
    }

    /// Sends as much as the kernel takes now.
    pub(crate) fn send(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        stream::send(self.fd(), slices, false)
    }

    /// As [`send`](Self::send), for the last bytes: the end, which must follow at once, leaves in the same packet.
    pub(crate) fn send_last(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        stream::send(self.fd(), slices, true)
    }

    /// Whether a connection attempt has succeeded by now.
    ///
    /// # Errors
    /// `ConnectionRefused` when it is connected to itself, which happens when nobody listens and the system picks the
    /// wanted port as the local one.
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

    /// How a connection attempt ended, once the stream became writable.
    ///
    /// # Errors
    /// The system's reason, or as [`is_connected`](Self::is_connected).
    pub(crate) fn take_error(&mut self) -> io::Result<()> {
        if self.is_connected()? {
            return Ok(());
        }
        stream::take_error(self.fd())?;
        // It has been told already, by another event.
        Err(io::ErrorKind::NotConnected.into())
    }

    /// Whether the peer has finished or the connection broke, as far as the kernel knows now.
    pub(crate) fn has_hung_up(&self) -> bool {
        stream::has_hung_up(self.fd())
    }

    /// What the kernel knows about whether the peer's machine is there; `None` over ipc, where it is this one.
    pub(crate) fn acks(&self) -> Option<Acks> {
        self.peer?;
        stream::acks(self.fd()).ok()
    }

    /// Tells the peer that nothing more comes.
    pub(crate) fn shutdown_write(&self) {
        // Fails only when the connection is gone, and then there is nobody to tell.
        let _ = stream::shutdown_write(self.fd());
    }

    /// How many bytes a close could lose: those that the kernel has taken and the peer's has not. None over ipc, where
    /// what is written is the peer's at once.
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

    /// As [`peer_address`](Self::peer_address), with the port where there is one.
    pub(crate) fn peer_name(&self) -> String {
        match self.peer {
            Some(peer) => SocketAddr::new(plain_ip(peer.ip()), peer.port()).to_string(),
            None => self.peer_address(),
        }
    }

    /// To wait for bytes or room.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A number for it in events.
    pub(crate) fn id(&self) -> u64 {
        descriptor_id(self.fd())
    }
}

impl Target {
    /// Whom to connect to first: the proxy, if there is one.
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

/// Takes one connection from a listening descriptor, with its peer's address.
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

/// IPv4 addresses that came over an IPv6 socket, as what they are.
fn plain_ip(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn descriptor_id(fd: BorrowedFd<'_>) -> u64 {
    // A descriptor is not negative.
    u64::try_from(fd.as_raw_fd()).unwrap_or_default()
}
