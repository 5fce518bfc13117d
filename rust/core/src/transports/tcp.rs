//! TCP.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use zeroxide_proto::socket_type::SocketType;

use super::address::{self, Address, Host};
use super::ip;
use super::probing::{is_probed_later, probe};
use super::socks::{Destination, Request, Socks};
use super::{Arrival, ByteTransport, Listen, Opening, Peer, Stream, Target, Targets};
use crate::error::{Error, ErrorKind, Result};
use crate::options::{AddressFilter, Options};
use crate::resolver::{HostPort, Job};
use crate::sys::stream;

/// See the module text.
pub(super) struct Tcp;

pub(super) static TCP: Tcp = Tcp;

impl ByteTransport for Tcp {
    fn scheme(&self) -> &'static str {
        "tcp"
    }

    fn check(&self, address: &str, _: SocketType, bind: bool) -> Result<()> {
        if bind {
            return address::to_bind(address).map(drop);
        }
        address::to_connect(address).map(drop)
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        listen(address, options, Protocol::TCP)
    }

    fn resolved(&self, address: &str, options: &Options) -> Vec<String> {
        let Ok(address) = address::to_bind(address) else {
            return Vec::new();
        };
        if address.host == Host::Any || address.port == 0 {
            return Vec::new();
        }
        let addresses = address::local_addresses(&address, options).unwrap_or_default();
        let endpoint = |address| super::endpoint(&SockAddr::from(address));
        addresses.into_iter().map(endpoint).collect()
    }

    fn targets(&self, address: &str, options: &Options) -> Result<Targets> {
        let (source, target) = address::to_connect(address)?;
        let ipv6 = options.ipv6;
        let (target, request) = if options.socks_proxy.is_empty() {
            (target, None)
        } else {
            through_proxy(target, options)?
        };
        match target.host {
            Host::Ip(ip, ref zone) => {
                let address = match address::literal(ip, zone.as_deref(), target.port, ipv6) {
                    Ok(address) => address,
                    Err(error)
                        if zone.is_some()
                            && (ipv6 || ip.is_ipv4())
                            && error.kind() == ErrorKind::NoDevice =>
                    {
                        return Ok(Targets::NotYet(error));
                    }
                    Err(error) => return Err(error),
                };
                Ok(
                    match targets_of(vec![address], source.as_ref(), request, ipv6) {
                        Ok(targets) => Targets::Ready(targets),
                        Err(error) if may_appear(source.as_ref(), ipv6) => Targets::NotYet(error),
                        Err(error) => return Err(error),
                    },
                )
            }
            Host::Any => Err(Error::with(ErrorKind::Invalid, "'*' is for binding")),
            Host::Name(host) => {
                let name = HostPort {
                    host,
                    port: target.port,
                };
                let convert =
                    move |addresses| targets_of(addresses, source.as_ref(), request, ipv6);
                Ok(Targets::Resolve(Job::new(name, convert)))
            }
        }
    }

    fn open(&self, _: &str, target: &Target, options: &Options) -> Result<Opening> {
        open(target, options, Protocol::TCP)
    }
}

/// Listens at an address, with TCP or a protocol that has the same addresses.
pub(super) fn listen(
    address: &str,
    options: &Options,
    protocol: Protocol,
) -> Result<Box<dyn Listen>> {
    let address = address::to_bind(address)?;
    let socket = match options.use_fd {
        Some(fd) => adopted(fd, options, protocol)?,
        None => bound(&address, options, protocol)?,
    };
    let local = socket.local_addr()?;
    Ok(Box::new(TcpListener {
        endpoint: super::endpoint(&local),
        filters: options.tcp_accept_filters.clone(),
        socket,
    }))
}

/// Begins to connect to a target, with TCP or a protocol that has the same addresses.
pub(super) fn open(target: &Target, options: &Options, protocol: Protocol) -> Result<Opening> {
    let socket = new_socket(target.address.domain(), options, protocol)?;
    if !is_probed_later(options) {
        probe(socket.as_fd(), options, protocol)?;
    }
    if let Some(source) = &target.source {
        socket.set_reuse_address(true)?;
        socket
            .bind(source)
            .map_err(|error| cannot_bind(error, source, protocol))?;
    }
    let mut opening = super::open(socket, target)?;
    if let Some(request) = &target.request {
        opening.stream = opening.stream.with_layer(Socks::new(request.clone()));
    }
    Ok(opening)
}

/// A bound address. Accepted sockets inherit the options of its socket.
struct TcpListener {
    socket: Socket,
    endpoint: String,
    filters: Vec<AddressFilter>,
}

impl Listen for TcpListener {
    fn accept(&self) -> Result<Option<Arrival>> {
        let Some((fd, peer)) = super::accept(self.fd())? else {
            return Ok(None);
        };
        if !self.filters.is_empty() {
            let admitted = peer
                .is_some_and(|peer| self.filters.iter().any(|filter| filter.contains(peer.ip())));
            if !admitted {
                let peer = peer.map_or_else(String::new, |peer| peer.to_string());
                let text = format!("TCP_ACCEPT_FILTER does not admit {peer}");
                return Ok(Some(Err(Error::with(ErrorKind::Access, text))));
            }
        }
        Ok(Some(Ok(Stream {
            peer: peer.map_or(Peer::Here, Peer::Ip),
            ..Stream::from(fd)
        })))
    }

    fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Creates a socket that listens at the address.
fn bound(address: &Address, options: &Options, protocol: Protocol) -> Result<Socket> {
    let addresses = address::local_addresses(address, options)?;
    address::bind_first(addresses, |local| listen_at(local, options, protocol))
}

fn listen_at(local: SocketAddr, options: &Options, protocol: Protocol) -> Result<Socket> {
    let address = SockAddr::from(local);
    let socket = new_socket(address.domain(), options, protocol)?;
    probe(socket.as_fd(), options, protocol)?;
    socket.set_reuse_address(true)?;
    if local.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket
        .bind(&address)
        .map_err(|error| cannot_bind(error, &address, protocol))?;
    socket
        .listen(options.backlog)
        .map_err(|error| cannot_bind(error, &address, protocol))?;
    Ok(socket)
}

/// A listening socket created by other code.
fn adopted(fd: i32, options: &Options, protocol: Protocol) -> Result<Socket> {
    let name = match protocol {
        Protocol::TCP => "TCP",
        _ => "SCTP",
    };
    let prepare = |socket: &Socket| {
        tune(socket, socket.domain()?, options, protocol)?;
        Ok(probe(socket.as_fd(), options, protocol)?)
    };
    let is_ip = |local: &SockAddr| local.is_ipv4() || local.is_ipv6();
    super::adopted(fd, name, is_ip, prepare)
}

/// The address of the proxy, and the request for a connection to `target`. The proxy resolves names, because often only
/// it can.
fn through_proxy(target: Address, options: &Options) -> Result<(Address, Option<Arc<Request>>)> {
    let destination = match target.host {
        Host::Ip(ip, None) => Destination::Ip(ip),
        Host::Name(name) => Destination::Name(name),
        Host::Ip(_, Some(zone)) => {
            let text = format!("%{zone}: interfaces of this machine mean nothing to a proxy");
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        Host::Any => return Err(Error::with(ErrorKind::Invalid, "'*' is for binding")),
    };
    let request = Request::new(
        destination,
        target.port,
        &options.socks_username,
        &options.socks_password,
    )?;
    let (source, proxy) =
        address::to_connect(&options.socks_proxy).map_err(|error| error.about("SOCKS_PROXY"))?;
    if source.is_some() {
        let text = "SOCKS_PROXY: put the source address into the endpoint";
        return Err(Error::with(ErrorKind::Invalid, text));
    }
    Ok((proxy, Some(Arc::new(request))))
}

/// The addresses to connect to, each with the local address to use.
pub(super) fn targets_of(
    addresses: Vec<SocketAddr>,
    source: Option<&Address>,
    request: Option<Arc<Request>>,
    ipv6: bool,
) -> Result<Vec<Target>> {
    let usable = addresses
        .into_iter()
        .filter(|address| ipv6 || address.is_ipv4());
    let mut targets = Vec::new();
    let mut failure = None;
    for address in usable {
        let found = match source {
            Some(Address { host, port }) => match host.source(*port, address, ipv6) {
                Ok(Some(found)) => Some(found),
                Ok(None) => continue,
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            },
            None => None,
        };
        targets.push(Target {
            address: address.into(),
            source: found.map(SockAddr::from),
            request: request.clone(),
        });
    }
    if targets.is_empty() {
        if let Some(error) = failure {
            return Err(error);
        }
        let hint = if ipv6 {
            "the source is of another family"
        } else {
            "set IPV6 to 1 to use IPv6 addresses"
        };
        return Err(Error::with(
            ErrorKind::HostUnreachable,
            format!("no usable address: {hint}"),
        ));
    }
    Ok(targets)
}

/// Whether the interface of the local address to connect from may appear later.
fn may_appear(source: Option<&Address>, ipv6: bool) -> bool {
    source.is_some_and(|Address { host, .. }| {
        matches!(host, Host::Name(_)) || host.lacks_interface(ipv6)
    })
}

fn new_socket(domain: Domain, options: &Options, protocol: Protocol) -> Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new_raw(domain, kind, Some(protocol))
        .map_err(|error| super::without_family(error, "SCTP"))?;
    tune(&socket, domain, options, protocol)?;
    Ok(socket)
}

/// Sets the options of a socket before it connects or listens, because buffer sizes must be known when the connection
/// is negotiated.
fn tune(socket: &Socket, domain: Domain, options: &Options, protocol: Protocol) -> Result<()> {
    // Batching happens above; holding back the last small segment would only add delay.
    if protocol == Protocol::TCP {
        socket.set_tcp_nodelay(true)?;
        if options.tcp_maxrt.is_some() {
            stream::limit_silence(SockRef::from(socket), options.tcp_maxrt)?;
        }
    } else {
        stream::set_sctp_nodelay(socket.as_fd())?;
    }
    ip::tune(socket, domain, options)
}

/// An endpoint of TCP under the scheme of a transport on top of it.
pub(super) fn renamed(endpoint: &str, scheme: &str) -> String {
    let address = endpoint.strip_prefix("tcp://").unwrap_or(endpoint);
    format!("{scheme}://{address}")
}

fn cannot_bind(error: io::Error, address: &SockAddr, protocol: Protocol) -> Error {
    let scheme = match protocol {
        Protocol::TCP => "tcp",
        _ => "sctp",
    };
    let address = renamed(&super::endpoint(address), scheme);
    let error = Error::from(error);
    match error.kind() {
        ErrorKind::AddressInUse => {
            error.about(format_args!("another socket is bound to {address}"))
        }
        ErrorKind::AddressNotAvailable => error.about(format_args!(
            "{address} is not an address of this machine; {scheme}://* binds to all of its addresses"
        )),
        ErrorKind::Access => {
            error.about(format_args!("{address}: ports below 1024 need a privilege"))
        }
        _ => error.about(address),
    }
}

#[cfg(test)]
mod tests;
