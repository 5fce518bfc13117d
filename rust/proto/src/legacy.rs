//! ZMTP 1.0 and 2.0: the announcements of an old peer.
//!
//! Old peers have no commands, properties or mechanisms. After the greeting, each side sends one frame with its routing
//! id, then messages. Subscriptions are messages that start with 01 or 00. A peer of ZMTP 1.0 without a signature
//! filters at the subscriber and sends no subscriptions, so a publisher acts as if such a peer had subscribed to
//! everything.

use crate::error::ProtocolError;
use crate::greeting::Peer;
use crate::socket_type::SocketType;

/// The longest routing id a peer may announce.
pub(crate) const MAX_ROUTING_ID: usize = 255;

/// The version of an old peer, and its socket type if it sends one and that type is compatible with ours.
pub(crate) fn introduce(
    peer: &Peer,
    ours: SocketType,
) -> Result<((u8, u8), Option<SocketType>), ProtocolError> {
    let (version, id) = match peer {
        Peer::V2 { socket_id } => ((2, 0), socket_id),
        Peer::V1 { socket_id } => ((1, 0), socket_id),
        Peer::Unversioned | Peer::V3 { .. } => return Ok(((1, 0), None)),
    };
    if let Some(theirs) = ours.peer_numbered(*id) {
        return Ok((version, Some(theirs)));
    }
    let theirs = match SocketType::from_id(i32::from(*id)) {
        Some(theirs) => theirs.name().to_owned(),
        None => format!("number {id}"),
    };
    Err(ProtocolError::SocketType { ours, theirs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_peers_are_checked_as_far_as_they_tell() {
        let ours = SocketType::Rep;
        assert_eq!(introduce(&Peer::Unversioned, ours), Ok(((1, 0), None)));
        let req = Some(SocketType::Req);
        assert_eq!(
            introduce(&Peer::V1 { socket_id: 3 }, ours),
            Ok(((1, 0), req))
        );
        assert_eq!(
            introduce(&Peer::V2 { socket_id: 3 }, ours),
            Ok(((2, 0), req))
        );
        for socket_id in [0, 4, 11, 12, 255] {
            assert!(introduce(&Peer::V2 { socket_id }, ours).is_err());
        }
    }
}
