//! Beacons: the datagrams by which nodes announce themselves.

use crate::id::NodeId;

/// The port of beacons, which IANA has assigned to ZRE.
pub(crate) const BEACON_PORT: u16 = 5670;

pub(crate) const BEACON_SIZE: usize = 22;

const HEADER: &[u8; 4] = b"ZRE\x01";

/// Returns a beacon. A port of 0 says that the node is leaving.
pub(crate) fn write_beacon(node: NodeId, port: u16) -> [u8; BEACON_SIZE] {
    let mut beacon = [0; BEACON_SIZE];
    beacon[..4].copy_from_slice(HEADER);
    beacon[4..20].copy_from_slice(node.as_bytes());
    beacon[20..].copy_from_slice(&port.to_be_bytes());
    beacon
}

/// Returns the node and its port, or `None` if the datagram is no beacon of this version.
pub(crate) fn read_beacon(datagram: &[u8]) -> Option<(NodeId, u16)> {
    let (node, port) = datagram.strip_prefix(HEADER)?.split_at_checked(16)?;
    let node = NodeId::from_bytes(node.try_into().ok()?);
    Some((node, u16::from_be_bytes(port.try_into().ok()?)))
}
