//! The connections of a collector that are up.

use std::collections::HashSet;

use bytes::Bytes;
use zeroxide::SocketStats;

/// The routing ids of the connected peers.
pub(super) type Routes<'a> = HashSet<&'a Bytes>;

pub(super) fn routes(router: &SocketStats) -> Routes<'_> {
    let peers = router.peers.iter().filter(|peer| peer.connected);
    peers.map(|peer| &peer.route).collect()
}
