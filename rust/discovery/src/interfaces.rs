//! The interfaces of this machine that broadcast, with their IPv4 addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use if_addrs::IfAddr;

/// The discard port: no packet is sent to it.
const ANY_PORT: u16 = 9;

/// An address of an interface that broadcasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    mask: Ipv4Addr,
}

impl Interface {
    /// The address that reaches every host of its network.
    pub(crate) fn broadcast(&self) -> Ipv4Addr {
        self.address | !self.mask
    }

    /// Whether a host is in its network.
    pub(crate) fn reaches(&self, host: Ipv4Addr) -> bool {
        host & self.mask == self.address & self.mask
    }

    fn is(&self, chosen: &str) -> bool {
        self.name == chosen || self.address.to_string() == chosen
    }
}

/// Returns the interfaces, or the one that has a name or address. Without a choice, the loopback interface is left out
/// unless there is no other one.
///
/// # Errors
/// The system's error, for example if there is no descriptor left to ask it with.
pub(crate) fn interfaces(chosen: Option<&str>) -> io::Result<Vec<Interface>> {
    let found = if_addrs::get_if_addrs()?
        .into_iter()
        .filter_map(|interface| {
            let IfAddr::V4(v4) = interface.addr else {
                return None;
            };
            let broadcasts = v4.broadcast.is_some() || v4.ip.is_loopback();
            broadcasts.then_some(Interface {
                name: interface.name,
                address: v4.ip,
                mask: v4.netmask,
            })
        });
    Ok(select(found.collect(), chosen))
}

fn select(mut found: Vec<Interface>, chosen: Option<&str>) -> Vec<Interface> {
    match chosen {
        Some(chosen) => found.retain(|interface| interface.is(chosen)),
        None if found
            .iter()
            .all(|interface| interface.address.is_loopback()) => {}
        None => found.retain(|interface| !interface.address.is_loopback()),
    }
    found
}

/// Returns the address from which this machine reaches a host. No packet is sent.
pub(crate) fn own_address(host: Ipv4Addr) -> Option<Ipv4Addr> {
    let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    probe.connect((host, ANY_PORT)).ok()?;
    match probe.local_addr().ok()?.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: [u8; 4], mask: [u8; 4]) -> Interface {
        Interface {
            name: name.to_owned(),
            address: address.into(),
            mask: mask.into(),
        }
    }

    #[test]
    fn a_network_has_a_broadcast_address_and_hosts() {
        let lan = interface("eth0", [192, 168, 7, 20], [255, 255, 254, 0]);
        assert_eq!(lan.broadcast(), Ipv4Addr::new(192, 168, 7, 255));
        assert!(lan.reaches(Ipv4Addr::new(192, 168, 6, 1)));
        assert!(!lan.reaches(Ipv4Addr::new(192, 168, 8, 1)));
    }

    #[test]
    fn the_loopback_interface_is_the_last_resort() {
        let lo = interface("lo", [127, 0, 0, 1], [255, 0, 0, 0]);
        let lan = interface("eth0", [10, 0, 0, 5], [255, 0, 0, 0]);
        let all = vec![lo.clone(), lan.clone()];
        assert_eq!(select(all.clone(), None), vec![lan.clone()]);
        assert_eq!(select(vec![lo.clone()], None), vec![lo.clone()]);
        for (chosen, expected) in [("lo", vec![lo]), ("10.0.0.5", vec![lan]), ("eth1", vec![])] {
            assert_eq!(select(all.clone(), Some(chosen)), expected);
        }
    }

    #[test]
    fn this_machine_has_a_loopback_interface() {
        let found = interfaces(Some("lo")).unwrap();
        assert_eq!(found[0].address, Ipv4Addr::LOCALHOST);
        assert_eq!(own_address(Ipv4Addr::LOCALHOST), Some(Ipv4Addr::LOCALHOST));
    }
}
