//! What udp and pgm have in common: interfaces for multicast groups, and sockets that are members.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use socket2::{InterfaceIndexOrAddress, Socket};

use super::address::Host;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::sys::interfaces;

/// The interface for multicast, as its address and its number. Without both, the system chooses one.
#[derive(Default)]
pub(super) struct Interface {
    pub(super) address: Option<Ipv4Addr>,
    pub(super) number: u32,
}

impl Interface {
    pub(super) fn numbered(number: u32) -> Interface {
        Interface {
            address: None,
            number,
        }
    }

    pub(super) fn find(host: Option<&Host>, group: &SocketAddr) -> Result<Interface> {
        let scope = match group {
            SocketAddr::V6(group) => group.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let Some(host) = host.filter(|host| **host != Host::Any) else {
            return Ok(Interface {
                address: None,
                number: scope,
            });
        };
        let all = interfaces::addresses()?;
        let (name, given) = match host {
            Host::Name(name) => (Some(name.as_str()), None),
            Host::Ip(ip, _) => {
                let own = all.iter().find(|(_, address)| address.ip() == *ip);
                (own.map(|(name, _)| name.as_str()), Some(*ip))
            }
            Host::Any => (None, None),
        };
        let number = name.and_then(interfaces::index);
        let (Some(name), Some(number)) = (name, number) else {
            let shown = match host {
                Host::Name(name) => name.clone(),
                Host::Ip(ip, _) => ip.to_string(),
                Host::Any => "*".to_owned(),
            };
            let text = format!("no interface has the name or the address {shown}");
            return Err(Error::with(ErrorKind::NoDevice, text));
        };
        let first = || {
            let mut own = all.iter().filter(|(owner, _)| owner == name);
            own.find_map(|(_, address)| ipv4(address.ip()))
        };
        Ok(Interface {
            address: given.and_then(ipv4).or_else(first),
            number,
        })
    }

    fn for_v4(&self) -> InterfaceIndexOrAddress {
        match self.number {
            0 => InterfaceIndexOrAddress::Address(Ipv4Addr::UNSPECIFIED),
            number => InterfaceIndexOrAddress::Index(number),
        }
    }
}

fn ipv4(ip: IpAddr) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

/// Makes a socket a member of a group.
pub(super) fn join(socket: &Socket, group: IpAddr, interface: &Interface) -> io::Result<()> {
    match group {
        IpAddr::V4(group) => socket.join_multicast_v4_n(&group, &interface.for_v4()),
        IpAddr::V6(group) => socket.join_multicast_v6(&group, interface.number),
    }
}

/// Ends a membership.
pub(super) fn leave(socket: &Socket, group: IpAddr, interface: &Interface) -> io::Result<()> {
    match group {
        IpAddr::V4(group) => socket.leave_multicast_v4_n(&group, &interface.for_v4()),
        IpAddr::V6(group) => socket.leave_multicast_v6(&group, interface.number),
    }
}

/// Sets what matters for sending to a group.
pub(super) fn prepare_sending(
    socket: &Socket,
    group: IpAddr,
    interface: &Interface,
    options: &Options,
) -> io::Result<()> {
    let hops = options.multicast_hops;
    match group {
        IpAddr::V4(_) => {
            socket.set_multicast_loop_v4(options.multicast_loop)?;
            socket.set_multicast_ttl_v4(hops)?;
            if let Some(address) = interface.address {
                socket.set_multicast_if_v4(&address)?;
            }
        }
        IpAddr::V6(_) => {
            socket.set_multicast_loop_v6(options.multicast_loop)?;
            socket.set_multicast_hops_v6(hops)?;
            if interface.number != 0 {
                socket.set_multicast_if_v6(interface.number)?;
            }
        }
    }
    Ok(())
}
