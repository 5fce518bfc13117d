//! The addresses after `epgm://` and `pgm://`, `interface;group:port`, and sockets for them.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use zeroxide_proto::pgm::WINDOW_MAX;

use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::sys::{datagram, interfaces};
use crate::transports::address::{self, Host};
use crate::transports::ip;
use crate::transports::multicast::{Interface, join, prepare_sending};

/// The number of PGM among the protocols of IP.
const PGM: i32 = 113;
/// The size of a packet, if the application has not set one.
const PACKET: usize = 1500;
/// The smallest and the largest size of a packet: its headers and a few bytes, and what IP allows.
const PACKET_MIN: usize = 128;
const PACKET_MAX: usize = 65_507;
const HEADERS_V4: usize = 20;
const HEADERS_V6: usize = 40;
const HEADER_UDP: usize = 8;

/// The protocol that carries PGM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carrier {
    Ip,
    Udp,
}

/// An address, as written.
pub(super) struct Place {
    interface: Option<Host>,
    group: IpAddr,
    zone: Option<String>,
    port: u16,
}

/// A group on an interface of this machine.
#[derive(Clone)]
pub(super) struct Meeting {
    carrier: Carrier,
    interface: u32,
    /// The address of this machine on the interface.
    pub(super) own: IpAddr,
    pub(super) group: IpAddr,
    pub(super) port: u16,
    /// The size of the headers that carry a packet of PGM.
    pub(super) headers: usize,
    /// The size of a packet with these headers.
    pub(super) packet: usize,
}

impl Place {
    pub(super) fn parse(text: &str) -> Result<Place> {
        let (interface, rest) = match text.rsplit_once(';') {
            Some(("", rest)) => (None, rest),
            Some((interface, rest)) => (Some(address::host(interface)?), rest),
            None => (None, text),
        };
        match address::to_bind(rest)? {
            address::Address { port: 0, .. } => {
                let why = "a group needs a port from 1 to 65535, the same in all programs";
                Err(address::invalid(text, why))
            }
            address::Address {
                host: Host::Ip(group, zone),
                port,
            } if group.is_multicast() => Ok(Place {
                interface,
                group,
                zone,
                port,
            }),
            _ => {
                let why = "write interface;group:port, with the address of a multicast group";
                Err(address::invalid(text, why))
            }
        }
    }

    /// Finds the interface.
    pub(super) fn find(self, carrier: Carrier, options: &Options) -> Result<Meeting> {
        let group = address::literal(self.group, self.zone.as_deref(), self.port, options.ipv6)?;
        let interface = Interface::find(self.interface.as_ref(), &group)?;
        let own = own_address(self.interface.as_ref(), &interface, group)?;
        let ip = if group.is_ipv4() {
            HEADERS_V4
        } else {
            HEADERS_V6
        };
        let headers = match carrier {
            Carrier::Ip => ip,
            Carrier::Udp => ip + HEADER_UDP,
        };
        let packet = options
            .multicast_maxtpdu
            .map_or(PACKET, |size| size as usize);
        Ok(Meeting {
            carrier,
            interface: interface.number,
            own,
            group: self.group,
            port: self.port,
            headers,
            packet: packet.clamp(PACKET_MIN, PACKET_MAX),
        })
    }
}

/// The address of this machine that senders name on an interface.
fn own_address(given: Option<&Host>, interface: &Interface, group: SocketAddr) -> Result<IpAddr> {
    if let Some(Host::Ip(ip, _)) = given {
        return Ok(*ip);
    }
    if let (Some(address), IpAddr::V4(_)) = (interface.address, group.ip()) {
        return Ok(address.into());
    }
    if interface.number != 0 {
        let all = interfaces::addresses()?;
        let is_own = |name: &str| interfaces::index(name) == Some(interface.number);
        let mut own = all
            .iter()
            .filter(|(name, address)| is_own(name) && address.is_ipv4() == group.is_ipv4());
        if let Some((_, address)) = own.next() {
            return Ok(address.ip());
        }
    }
    routed_from(group).map_err(|_| {
        let text = "no route to the group; write the interface before it: interface;group:port";
        Error::with(ErrorKind::NoDevice, text)
    })
}

/// The local address of packets to a group, if the system chooses.
fn routed_from(group: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = match group {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let probe = UdpSocket::bind(any)?;
    probe.connect(group)?;
    Ok(probe.local_addr()?.ip())
}

impl Meeting {
    /// A socket that sends to the group, and receives what is sent to this machine alone.
    pub(super) fn sending_socket(&self, options: &Options) -> Result<Socket> {
        let socket = self.new_socket(options)?;
        let own = self.reachable(self.own);
        socket.bind(&SockAddr::from(own)).map_err(|error| {
            Error::from(error).about(format_args!("{own} is not an address of this machine"))
        })?;
        prepare_sending(&socket, self.group, &self.device(), options)?;
        Ok(socket)
    }

    /// A socket that receives what is sent to the group alone.
    pub(super) fn receiving_socket(&self, options: &Options) -> Result<Socket> {
        let socket = self.new_socket(options)?;
        match self.group {
            IpAddr::V4(_) => socket.set_multicast_all_v4(false)?,
            IpAddr::V6(_) => socket.set_multicast_all_v6(false)?,
        }
        socket.bind(&SockAddr::from(self.reachable(self.group)))?;
        join(&socket, self.group, &self.device()).map_err(|error| {
            let text = format!("cannot join {}", self.group);
            Error::from(error).about(text)
        })?;
        Ok(socket)
    }

    /// The address of a datagram to a machine or to the group.
    pub(super) fn reachable(&self, ip: IpAddr) -> SocketAddr {
        let port = match self.carrier {
            Carrier::Ip => 0,
            Carrier::Udp => self.port,
        };
        match ip {
            IpAddr::V4(_) => (ip, port).into(),
            // Link-local addresses mean nothing without it.
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, self.interface).into(),
        }
    }

    /// The packet of PGM in a received datagram. Raw sockets of IPv4 also receive its header.
    pub(super) fn packet<'a>(&self, datagram: &'a [u8]) -> &'a [u8] {
        if self.carrier == Carrier::Udp || self.group.is_ipv6() {
            return datagram;
        }
        let header = datagram
            .first()
            .map_or(0, |first| usize::from(first & 15) * 4);
        datagram.get(header..).unwrap_or_default()
    }

    /// The number of packets that fit into the time of RECOVERY_IVL at the rate of RATE.
    pub(super) fn window(&self, options: &Options) -> u32 {
        let bytes = u128::from(options.rate / 8) * options.recovery_ivl.as_millis();
        let packets = bytes / self.packet as u128;
        u32::try_from(packets).map_or(WINDOW_MAX, |packets| packets.clamp(1, WINDOW_MAX))
    }

    fn device(&self) -> Interface {
        Interface {
            address: match self.own {
                IpAddr::V4(own) => Some(own),
                IpAddr::V6(_) => None,
            },
            number: self.interface,
        }
    }

    fn new_socket(&self, options: &Options) -> Result<Socket> {
        let domain = match self.group {
            IpAddr::V4(_) => Domain::IPV4,
            IpAddr::V6(_) => Domain::IPV6,
        };
        let (kind, protocol) = match self.carrier {
            Carrier::Ip => (Type::RAW, Protocol::from(PGM)),
            Carrier::Udp => (Type::DGRAM, Protocol::UDP),
        };
        let socket = Socket::new_raw(domain, kind.nonblocking().cloexec(), Some(protocol));
        let socket = socket.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let text = "pgm needs the capability CAP_NET_RAW; epgm does not";
                Error::with(ErrorKind::Access, text)
            }
            _ => error.into(),
        })?;
        ip::tune(&socket, domain, options)?;
        // Several receivers of one machine, and a sender, have the same port. Those of libzmq share it, too.
        datagram::share_port(&socket)?;
        Ok(socket)
    }
}
