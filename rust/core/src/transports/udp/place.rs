//! The addresses after `udp://`, and sockets for them: `host:port`, or `interface;group:port` for a multicast group.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use zeroxide_proto::datagram::LARGEST;

use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::resolver::HostPort;
use crate::sys::sync::Arc;
use crate::sys::{datagram, interfaces};
use crate::transports::address::{self, Address, Host};
use crate::transports::datagrams::{Rejoin, Renew};
use crate::transports::ip;
use crate::transports::multicast::{Interface, join, leave, prepare_sending};

/// The size of the headers of IP and UDP.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;

/// An address, as written.
#[derive(Clone)]
pub(super) struct Place {
    /// The network interface for a multicast group.
    interface: Option<Host>,
    address: Address,
}

pub(super) fn parse(text: &str, bind: bool) -> Result<Place> {
    let (interface, rest) = match text.rsplit_once(';') {
        Some((interface, rest)) => (Some(address::host(interface)?), rest),
        None => (None, text),
    };
    let address = match bind {
        true => address::to_bind(rest)?,
        false => address::to_connect(rest)?.1,
    };
    if interface.is_some() && !matches!(&address.host, Host::Ip(ip, _) if ip.is_multicast()) {
        let why = "an interface before ';' is for the address of a multicast group";
        return Err(address::invalid(text, why));
    }
    Ok(Place { interface, address })
}

/// The endpoint of a bound socket, with its port filled in.
pub(super) fn endpoint(text: &str, socket: &Socket) -> Result<String> {
    let place = parse(text, true)?;
    let local = socket.local_addr()?.as_socket();
    let local = local.ok_or_else(|| Error::new(ErrorKind::AddressNotAvailable))?;
    Ok(match place.address.host {
        Host::Ip(ip, _) if ip.is_multicast() => {
            let (before, _) = text.rsplit_once(':').unwrap_or((text, ""));
            format!("udp://{before}:{}", local.port())
        }
        _ => format!("udp://{local}"),
    })
}

/// A socket that is bound to the address, and a member of its group, if it is one. May block to resolve a local host name.
pub(super) fn bound(text: &str, options: &Options) -> Result<(Socket, Option<Rejoin>)> {
    let place = parse(text, true)?;
    let addresses = address::local_addresses(&place.address, options)?;
    address::bind_first(addresses, |local| bind_to(local, &place, options))
}

fn bind_to(
    target: SocketAddr,
    place: &Place,
    options: &Options,
) -> Result<(Socket, Option<Rejoin>)> {
    let socket = new_socket(target, options)?;
    let is_group = target.ip().is_multicast();
    let mut local = target;
    if is_group {
        // A socket that is bound to the group itself could not send.
        local.set_ip(any(target.ip()));
        datagram::share_port(&socket)?;
        // Otherwise it would receive the datagrams of all groups that other sockets of this machine have joined.
        match target.ip() {
            IpAddr::V4(_) => socket.set_multicast_all_v4(false)?,
            IpAddr::V6(_) => socket.set_multicast_all_v6(false)?,
        }
    } else if target.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket
        .bind(&SockAddr::from(local))
        .map_err(|error| cannot_bind(error, &local))?;
    if !is_group {
        return Ok((socket, None));
    }
    let found = Interface::find(place.interface.as_ref(), &target)?;
    join(&socket, target.ip(), &found).map_err(|error| {
        let text = format!("cannot join {}", target.ip());
        Error::from(error).about(text)
    })?;
    prepare_sending(&socket, target.ip(), &found, options)?;
    let rejoin = rejoining(target, place.clone(), found, options.clone());
    Ok((socket, Some(rejoin)))
}

/// Joins the group again. The kernel forgets members of an interface that is removed, and one that takes its place is another
/// one, also if it has the same name.
fn rejoining(target: SocketAddr, place: Place, found: Interface, options: Options) -> Rejoin {
    let mut member = chosen(found, &target, &options).ok();
    Box::new(move |socket| {
        // As long as the interface is there, the socket is a member, even if the system would choose another one now.
        if let Some(member) = &member
            && interfaces::exists(member.number)
        {
            return;
        }
        let target = place.now(target, &options);
        let found = Interface::find(place.interface.as_ref(), &target)
            .and_then(|found| chosen(found, &target, &options));
        let Ok(found) = found else {
            return;
        };
        if join(socket, target.ip(), &found).is_err() {
            return;
        }
        if let Some(before) = &member {
            // The old membership has no effect, and counts for the kernel's limit of twenty.
            let _ = leave(socket, target.ip(), before);
        }
        let _ = prepare_sending(socket, target.ip(), &found, &options);
        member = Some(found);
    })
}

/// The interface that the system chooses now, if none is given.
fn chosen(found: Interface, group: &SocketAddr, options: &Options) -> Result<Interface> {
    if found.number != 0 {
        return Ok(found);
    }
    let probe = match group {
        SocketAddr::V6(group) => {
            return default_interface(*group.ip(), options).map(Interface::numbered);
        }
        SocketAddr::V4(_) => new_socket(*group, options)?,
    };
    probe.connect(&SockAddr::from(*group))?;
    let number = match probe.local_addr()?.as_socket() {
        Some(own) => number_of_owner(own.ip())?,
        None => None,
    };
    number
        .map(Interface::numbered)
        .ok_or_else(|| Error::new(ErrorKind::NoDevice))
}

/// The number of the interface that has an address.
fn number_of_owner(own: IpAddr) -> io::Result<Option<u32>> {
    let all = interfaces::addresses()?;
    let mut owners = all.iter().filter(|(_, address)| address.ip() == own);
    Ok(owners.find_map(|(name, _)| interfaces::index(name)))
}

/// Where a connect goes.
pub(super) enum Goal {
    Address(SocketAddr),
    /// A name, which has to be looked up first.
    Name(HostPort),
}

impl Place {
    /// # Errors
    /// If the options exclude the address.
    pub(super) fn goal(&self, options: &Options) -> Result<Goal> {
        let port = self.address.port;
        match &self.address.host {
            Host::Ip(ip, zone) => {
                let address = address::literal(*ip, zone.as_deref(), port, options.ipv6)?;
                Ok(Goal::Address(address))
            }
            // Checked before.
            Host::Any => Err(Error::new(ErrorKind::Invalid)),
            Host::Name(host) => Ok(Goal::Name(HostPort {
                host: host.clone(),
                port,
            })),
        }
    }

    /// The address that was `target` before: an interface that it names may have another number now.
    fn now(&self, target: SocketAddr, options: &Options) -> SocketAddr {
        match self.goal(options) {
            Ok(Goal::Address(target)) => target,
            _ => target,
        }
    }
}

/// The address of a name to send to.
///
/// # Errors
/// `HostUnreachable` if the options exclude all of its addresses.
pub(super) fn choose(found: Vec<SocketAddr>, options: &Options) -> Result<SocketAddr> {
    let mut usable = found
        .into_iter()
        .filter(|address| options.ipv6 || address.is_ipv4());
    usable.next().ok_or_else(|| {
        let text = "no usable address: set IPV6 to 1 to use IPv6 addresses";
        Error::with(ErrorKind::HostUnreachable, text)
    })
}

/// A socket that is connected to the address, the address, and the size of the largest datagram, which is at most
/// `largest`.
pub(super) fn open(
    place: &Place,
    target: SocketAddr,
    options: &Options,
    largest: usize,
) -> Result<(Socket, SocketAddr, usize)> {
    let socket = new_socket(target, options)?;
    let (target, largest) = link(&socket, place, target, options, largest)?;
    Ok((socket, target, largest))
}

/// Connects a socket of [`open`] again.
pub(super) fn renewal(place: &Place, target: SocketAddr, options: &Arc<Options>) -> Renew {
    let (place, options) = (place.clone(), options.clone());
    Box::new(move |socket| {
        let target = place.now(target, &options);
        // The system has also forgotten the device.
        ip::tune(socket, Domain::for_address(target), &options)?;
        link(socket, &place, target, &options, LARGEST).map(drop)
    })
}

/// Connects a socket. Returns the address, and the size of the largest datagram.
fn link(
    socket: &Socket,
    place: &Place,
    target: SocketAddr,
    options: &Options,
    largest: usize,
) -> Result<(SocketAddr, usize)> {
    let mut target = target;
    let mut largest = largest;
    if target.ip().is_multicast() {
        let mut interface = Interface::find(place.interface.as_ref(), &target)?;
        if let IpAddr::V6(group) = target.ip()
            && interface.number == 0
            && needs_interface(group)
        {
            interface.number = default_interface(group, options)?;
        }
        prepare_sending(socket, target.ip(), &interface, options)?;
        if let SocketAddr::V6(target) = &mut target {
            target.set_scope_id(interface.number);
        }
        if let Some(packet) = options.multicast_maxtpdu {
            let headers = match target {
                SocketAddr::V4(_) => HEADERS_V4,
                SocketAddr::V6(_) => HEADERS_V6,
            };
            largest = largest.min((packet as usize).saturating_sub(headers));
        }
    }
    socket.connect(&SockAddr::from(target))?;
    Ok((target, largest))
}

/// Whether the address of a group means another group on each interface, so that the system connects to it on a given
/// one only.
fn needs_interface(group: Ipv6Addr) -> bool {
    matches!(group.octets()[1] & 0xf, 1 | 2)
}

/// The interface to which the system routes multicast, as for datagrams of a socket that is not connected.
fn default_interface(group: Ipv6Addr, options: &Options) -> Result<u32> {
    // The same group in the scope of a site, to which the system connects without an interface.
    let mut segments = group.segments();
    segments[0] = segments[0] & 0xfff0 | 5;
    let wider = SocketAddr::from((segments, 9));
    let probe = new_socket(wider, options)?;
    let own = || -> io::Result<Option<SocketAddr>> {
        probe.connect(&SockAddr::from(wider))?;
        Ok(probe.local_addr()?.as_socket())
    };
    let unknown = |reason: String| {
        let text = format!(
            "there is no default interface for {group} ({reason}); name one, as in udp://eth0;[{group}]:5555"
        );
        Error::with(ErrorKind::NoDevice, text)
    };
    match own().map_err(|error| unknown(error.to_string()))? {
        Some(SocketAddr::V6(own)) if own.scope_id() != 0 => Ok(own.scope_id()),
        Some(own) => number_of_owner(own.ip())?
            .ok_or_else(|| unknown(format!("no interface has {}", own.ip()))),
        None => Err(unknown("no route".to_owned())),
    }
}

fn new_socket(address: SocketAddr, options: &Options) -> Result<Socket> {
    let domain = Domain::for_address(address);
    let kind = Type::DGRAM.nonblocking().cloexec();
    let socket = Socket::new_raw(domain, kind, Some(Protocol::UDP))?;
    ip::tune(&socket, domain, options)?;
    Ok(socket)
}

fn any(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

fn cannot_bind(error: io::Error, address: &SocketAddr) -> Error {
    let error = Error::from(error);
    match error.kind() {
        ErrorKind::AddressInUse => {
            error.about(format_args!("another socket is bound to udp://{address}"))
        }
        ErrorKind::AddressNotAvailable => error.about(format_args!(
            "{address} is not an address of this machine; udp://* binds to all of its addresses"
        )),
        ErrorKind::Access => {
            error.about(format_args!("{address}: ports below 1024 need a privilege"))
        }
        _ => error.about(address),
    }
}
