//! Filters for clients: [`AddressFilter`] for TCP, [`CredentialFilter`] for Unix sockets.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// A network in CIDR notation, `10.0.0.0/8`; without a length, a single address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressFilter {
    network: IpAddr,
    bits: u8,
}

impl AddressFilter {
    /// Whether the address belongs to the network. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => leading_bits(
                network.to_bits().into(),
                address.to_bits().into(),
                96 + self.bits,
            ),
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                leading_bits(network.to_bits(), address.to_bits(), self.bits)
            }
            _ => false,
        }
    }
}

/// Whether the first `bits` of 128 are the same.
fn leading_bits(a: u128, b: u128, bits: u8) -> bool {
    (a ^ b).leading_zeros() >= u32::from(bits)
}

impl FromStr for AddressFilter {
    type Err = Error;

    fn from_str(text: &str) -> Result<AddressFilter> {
        let wrong = || {
            let hint = format!("'{text}' is no network: write it like 10.0.0.0/8 or fd00::/8");
            Error::with(ErrorKind::Invalid, hint)
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_| wrong())?;
        let width: u8 = if network.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => width,
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|&bits| bits <= width)
                .ok_or_else(wrong)?,
            Some(_) => return Err(wrong()),
        };
        Ok(AddressFilter { network, bits })
    }
}

impl fmt::Display for AddressFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

/// Users, groups and processes that may connect. If nothing is listed, all may.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct CredentialFilter {
    /// User ids.
    pub uids: Vec<u32>,
    /// Primary group ids.
    pub gids: Vec<u32>,
    /// Process ids.
    pub pids: Vec<i32>,
}

impl CredentialFilter {
    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.uids.is_empty() && self.gids.is_empty() && self.pids.is_empty()
    }

    /// Whether a peer with these credentials may connect: one matching entry is sufficient.
    pub fn admits(&self, uid: u32, gid: u32, pid: i32) -> bool {
        self.is_empty()
            || self.uids.contains(&uid)
            || self.gids.contains(&gid)
            || self.pids.contains(&pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(network: &str, address: &str) -> bool {
        let filter: AddressFilter = network.parse().unwrap();
        filter.contains(address.parse().unwrap())
    }

    #[test]
    fn networks_contain_their_addresses() {
        assert!(inside("10.0.0.0/8", "10.255.1.2"));
        assert!(!inside("10.0.0.0/8", "11.0.0.0"));
        assert!(inside("127.0.0.1", "127.0.0.1") && !inside("127.0.0.1", "127.0.0.2"));
        assert!(inside("0.0.0.0/0", "1.2.3.4") && !inside("0.0.0.0/0", "::1"));
        assert!(inside("fd00::/8", "fdff::1") && !inside("fd00::/8", "fe80::1"));
        assert!(inside("::/0", "::1") && inside("10.0.0.0/8", "::ffff:10.1.1.1"));
    }

    #[test]
    fn junk_is_refused() {
        for text in [
            "",
            "/8",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/-1",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "host/8",
        ] {
            assert!(text.parse::<AddressFilter>().is_err(), "{text}");
        }
        assert_eq!(
            "10.0.0.0/8".parse::<AddressFilter>().unwrap().to_string(),
            "10.0.0.0/8"
        );
    }

    #[test]
    fn one_matching_credential_is_enough() {
        let mut filter = CredentialFilter::default();
        assert!(filter.admits(1, 2, 3));
        filter.gids.push(2);
        filter.pids.push(9);
        assert!(filter.admits(1, 2, 3) && filter.admits(0, 0, 9) && !filter.admits(2, 9, 3));
    }
}
