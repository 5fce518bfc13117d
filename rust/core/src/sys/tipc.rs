//! Addresses of TIPC, which the standard library does not have. From `linux/tipc.h`.

use std::mem::size_of;

use libc::sa_family_t;
use socket2::{Domain, SockAddr, SockAddrStorage};

/// An address of TIPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TipcAddress {
    /// Instances of a service, to bind to.
    Range { kind: u32, lower: u32, upper: u32 },
    /// An instance of a service, to connect to, within a domain (0: anywhere).
    Name {
        kind: u32,
        instance: u32,
        domain: u32,
    },
    /// A socket of a node.
    Id { reference: u32, node: u32 },
}

/// The domain of its sockets.
pub(crate) fn domain() -> Domain {
    Domain::from(libc::AF_TIPC)
}

/// `struct sockaddr_tipc`
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    family: sa_family_t,
    kind: u8,
    scope: i8,
    words: [u32; 3],
}

const RANGE: u8 = 1;
const NAME: u8 = 2;
const ID: u8 = 3;
/// The whole cluster.
const CLUSTER_SCOPE: i8 = 2;

impl From<TipcAddress> for SockAddr {
    fn from(address: TipcAddress) -> SockAddr {
        let (kind, words) = match address {
            TipcAddress::Range { kind, lower, upper } => (RANGE, [kind, lower, upper]),
            TipcAddress::Name {
                kind,
                instance,
                domain,
            } => (NAME, [kind, instance, domain]),
            TipcAddress::Id { reference, node } => (ID, [reference, node, 0]),
        };
        let mut storage = SockAddrStorage::zeroed();
        // SAFETY: `Raw` is plain data of the size and alignment of a socket address, and any bytes are valid for it.
        let raw = unsafe { storage.view_as::<Raw>() };
        *raw = Raw {
            family: libc::AF_TIPC as sa_family_t,
            kind,
            scope: CLUSTER_SCOPE,
            words,
        };
        // SAFETY: the storage holds an initialized address of this size.
        unsafe { SockAddr::new(storage, size_of::<Raw>() as libc::socklen_t) }
    }
}

/// The address of a socket or service, if it is one of TIPC.
pub(crate) fn read(address: &SockAddr) -> Option<TipcAddress> {
    if address.family() != libc::AF_TIPC as sa_family_t
        || (address.len() as usize) < size_of::<Raw>()
    {
        return None;
    }
    // SAFETY: the family and the length say that the address is one of these, and its storage is aligned for all
    // families.
    let raw = unsafe { *address.as_ptr().cast::<Raw>() };
    let [first, second, third] = raw.words;
    match raw.kind {
        RANGE => Some(TipcAddress::Range {
            kind: first,
            lower: second,
            upper: third,
        }),
        NAME => Some(TipcAddress::Name {
            kind: first,
            instance: second,
            domain: third,
        }),
        ID => Some(TipcAddress::Id {
            reference: first,
            node: second,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back() {
        for address in [
            TipcAddress::Range {
                kind: 1000,
                lower: 1,
                upper: 9,
            },
            TipcAddress::Name {
                kind: 1000,
                instance: 5,
                domain: 0,
            },
            TipcAddress::Id {
                reference: 77,
                node: 0x0100_1001,
            },
        ] {
            assert_eq!(read(&SockAddr::from(address)), Some(address));
        }
        assert_eq!(read(&SockAddr::unix("/a").unwrap()), None);
    }
}
