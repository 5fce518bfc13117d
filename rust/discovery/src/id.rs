//! The identity of a node.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

const SIZE: usize = 16;

/// Precedes the identity in a routing ID, which could otherwise begin with a zero, and ZeroMQ reserves those.
const MARK: u8 = 1;

/// The identity of a node: a UUID, which is new each time the node starts.
///
/// Source: RFC 36, ZRE.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId([u8; SIZE]);

impl NodeId {
    /// Returns the identity that consists of these bytes.
    pub const fn from_bytes(bytes: [u8; SIZE]) -> NodeId {
        NodeId(bytes)
    }

    /// Returns the bytes of the UUID.
    pub const fn as_bytes(&self) -> &[u8; SIZE] {
        &self.0
    }

    /// Returns a new identity: a random UUID, which is version 4 of RFC 9562.
    pub(crate) fn random() -> io::Result<NodeId> {
        let mut bytes = [0; SIZE];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(NodeId(bytes))
    }

    /// Returns the identity in hexadecimal digits of either case, with or without hyphens.
    pub(crate) fn parse(text: &[u8]) -> Option<NodeId> {
        let mut digits = text.iter().filter(|byte| **byte != b'-');
        let mut bytes = [0; SIZE];
        for byte in &mut bytes {
            for _ in 0..2 {
                let digit = char::from(*digits.next()?).to_digit(16)?;
                *byte = *byte << 4 | digit as u8;
            }
        }
        digits.next().is_none().then_some(NodeId(bytes))
    }

    /// Returns the 32 digits that Zyre sends.
    pub(crate) fn digits(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02X}")).collect()
    }

    /// Returns the routing ID of the node.
    pub(crate) fn routing_id(&self) -> Vec<u8> {
        [&[MARK], self.0.as_slice()].concat()
    }

    /// Returns the node that has a routing ID, if it is the one of a node.
    pub(crate) fn of_routing_id(routing_id: &[u8]) -> Option<NodeId> {
        let bytes = routing_id.strip_prefix(&[MARK])?;
        Some(NodeId(bytes.try_into().ok()?))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(place, 4 | 6 | 8 | 10) {
                "-"
            } else {
                ""
            };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_have_the_usual_form() {
        let id = NodeId::parse(b"5B7F6C3941B549DCACC735ACC01E0424").unwrap();
        assert_eq!(id.to_string(), "5b7f6c39-41b5-49dc-acc7-35acc01e0424");
        assert_eq!(id.digits(), "5B7F6C3941B549DCACC735ACC01E0424");
        assert_eq!(NodeId::parse(id.to_string().as_bytes()), Some(id));
        for wrong in [
            &b""[..],
            b"5B",
            b"5B7F6C3941B549DCACC735ACC01E0424FF",
            b"zz",
        ] {
            assert_eq!(NodeId::parse(wrong), None);
        }
    }

    #[test]
    fn random_identities_are_of_version_4() {
        let (one, other) = (NodeId::random().unwrap(), NodeId::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.to_string().as_bytes()[14], b'4');
    }

    #[test]
    fn routing_ids_are_those_of_nodes() {
        let id = NodeId::from_bytes([7; SIZE]);
        assert_eq!(NodeId::of_routing_id(&id.routing_id()), Some(id));
        for wrong in [&b""[..], b"\x01", &[2; 17], &[1; 18], &[1; 16]] {
            assert_eq!(NodeId::of_routing_id(wrong), None);
        }
    }
}
