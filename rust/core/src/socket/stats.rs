//! Counters per socket and per peer that account for every message.

use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::Socket;
use super::core::{Core, State};
use super::totals::below;
use crate::error::Result;
use crate::patterns::{Counters, DropReason};
use crate::pipe::Pipe;

/// A snapshot of a socket's counters. They count whole messages. Subscriptions and other messages of the pattern itself
/// count as messages of its pipes.
#[derive(Clone, Debug, Default)]
pub struct SocketStats {
    /// Messages written for peers.
    pub sent: u64,
    /// The size of these messages in bytes.
    pub sent_bytes: u64,
    /// Messages read from peers.
    pub received: u64,
    /// The size of these messages in bytes.
    pub received_bytes: u64,
    /// Messages waiting to be sent.
    pub queued_out: u64,
    /// Messages waiting to be received.
    pub queued_in: u64,
    /// Messages that were left to deliver when the socket ended their connection or its attempts to connect, as
    /// [`Socket::disconnect`] and [`Socket::unbind`] do. They wait for LINGER, and `queued_out` does not count them.
    pub lingering: u64,
    /// Messages waiting in SPILL_DIR, which `queued_out` does not count.
    pub spilled: u64,
    /// The size of these messages on disk, in bytes.
    pub spilled_bytes: u64,
    /// Connections that were made, with peers that are gone, too.
    pub connections: u64,
    /// How many of them replaced a lost connection of an endpoint that this socket connected to.
    pub reconnects: u64,
    /// How often a queue to a peer reached its high-water mark.
    pub full_out: u64,
    /// How often a queue from a peer reached its high-water mark.
    pub full_in: u64,
    /// Messages dropped, by reason.
    pub dropped: Counters,
    /// Events that monitors missed because thousands of earlier events had not been read.
    pub missed_events: u64,
    /// The peers connected now, and the endpoints that are still connecting.
    pub peers: Vec<PeerStats>,
}

/// The counters of one pipe.
#[derive(Clone, Debug, Default)]
pub struct PeerStats {
    /// A number that no other peer of the socket has.
    pub id: u64,
    /// The endpoint that this socket bound or connected to.
    pub endpoint: String,
    /// The peer's address, if the transport knows it.
    pub address: String,
    /// The routing id that the peer announced.
    pub routing_id: Bytes,
    /// The routing id that precedes the peer's messages (ROUTER); empty for other types.
    pub route: Bytes,
    /// Whether the connection is up and its handshake finished. Messages of a peer that is gone may still be left to
    /// receive.
    pub connected: bool,
    /// Whether the peer waits for its routing id, which another peer still has. Its messages are not read until then
    /// (ROUTER).
    pub waiting: bool,
    /// Messages written for the peer.
    pub sent: u64,
    /// The size of these messages in bytes.
    pub sent_bytes: u64,
    /// Messages read from the peer.
    pub received: u64,
    /// The size of these messages in bytes.
    pub received_bytes: u64,
    /// Messages waiting to be sent to the peer.
    pub queued_out: u64,
    /// Messages from the peer waiting to be received.
    pub queued_in: u64,
    /// Messages waiting in SPILL_DIR for this peer alone. PUSH and DEALER have none, because any peer may get theirs.
    pub spilled: u64,
    /// The size of these messages on disk, in bytes.
    pub spilled_bytes: u64,
    /// Connections that replaced a lost one.
    pub reconnects: u64,
    /// How often the queue to the peer reached its high-water mark.
    pub full_out: u64,
    /// How often the queue from the peer reached its high-water mark.
    pub full_in: u64,
    /// Messages dropped, by reason.
    pub dropped: Counters,
}

impl Socket {
    /// Returns a snapshot of the counters.
    ///
    /// # Errors
    /// `Terminated`, `NotSocket`.
    pub fn stats(&self) -> Result<SocketStats> {
        let core = self.core();
        let mut state = core.lock_open()?;
        Ok(core.stats(&mut state))
    }

    /// The counters of a socket that may be closed, for a simulation that accounts for every message of its life.
    #[cfg(zeroxide_shuttle)]
    #[doc(hidden)]
    pub fn last_stats(&self) -> SocketStats {
        let core = self.core();
        core.stats(&mut core.lock())
    }
}

impl Core {
    pub(super) fn stats(&self, state: &mut State) -> SocketStats {
        self.process(state);
        state.pipes.find_finished();
        self.settle(state);
        let mut stats = snapshot(state);
        let lost_below = self
            .lost_below
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        stats.dropped.merge(&lost_below);
        let unfinished = self.parts().unfinished();
        stats.dropped.add(DropReason::Unfinished, unfinished);
        stats.lingering = self.lingering.load(Ordering::Relaxed);
        stats.missed_events = self.missed_events.load(Ordering::Relaxed);
        stats
    }
}

fn snapshot(state: &State) -> SocketStats {
    let totals = &state.totals;
    let mut stats = SocketStats {
        sent: totals.sent,
        sent_bytes: totals.sent_bytes,
        received: totals.received,
        received_bytes: totals.received_bytes,
        connections: totals.connections,
        reconnects: totals.reconnects,
        full_out: totals.full_out,
        full_in: totals.full_in,
        dropped: totals.dropped,
        ..SocketStats::default()
    };
    stats.dropped.merge(&state.pipes.counters());
    let overflow = state.pipes.overflow();
    if let Some(overflow) = overflow {
        (stats.spilled, stats.spilled_bytes) = overflow.size();
    }
    state.pipes.for_each(|id, pipe, endpoint, counters| {
        let local = state.origins.get(&id).is_some_and(|origin| origin.local);
        let below = below(pipe, local);
        stats.dropped.merge(&below);
        let mut peer = peer_stats(pipe, endpoint, local);
        peer.id = id.0;
        if let Some(overflow) = overflow {
            (peer.spilled, peer.spilled_bytes) = overflow.size_for(id);
        }
        peer.dropped = *counters;
        peer.dropped.merge(&below);
        peer.waiting = state.pattern.is_waiting(id);
        peer.route = state.pattern.route(id).unwrap_or_default();
        stats.sent += peer.sent;
        stats.sent_bytes += peer.sent_bytes;
        stats.received += peer.received;
        stats.received_bytes += peer.received_bytes;
        stats.queued_out += peer.queued_out;
        stats.queued_in += peer.queued_in;
        stats.connections += pipe.meetings();
        stats.reconnects += peer.reconnects;
        stats.full_out += peer.full_out;
        stats.full_in += peer.full_in;
        stats.peers.push(peer);
        ControlFlow::Continue(())
    });
    stats
}

fn peer_stats(pipe: &Pipe, endpoint: &str, local: bool) -> PeerStats {
    let (sent, sent_bytes) = pipe.written();
    let (received, received_bytes) = pipe.read_so_far();
    let (full_out, full_in) = pipe.times_full();
    let peer = pipe.peer();
    let address = peer.as_ref().and_then(|peer| {
        peer.properties
            .iter()
            .find(|(name, _)| name == "Peer-Address")
    });
    PeerStats {
        id: 0,
        endpoint: endpoint.to_owned(),
        address: address
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
            .unwrap_or_default(),
        routing_id: peer
            .as_ref()
            .map(|peer| peer.routing_id.clone())
            .unwrap_or_default(),
        route: Bytes::new(),
        connected: pipe.is_connected(),
        waiting: false,
        sent,
        sent_bytes,
        received,
        received_bytes,
        // Messages that a peer over inproc has not received yet wait at that peer, and are counted there only. Those that
        // `unbind` has left to deliver are lingering.
        queued_out: match (local && pipe.is_connected()) || pipe.is_half_closed() {
            true => 0,
            false => pipe.queued_out(),
        },
        queued_in: pipe.queued_in(),
        spilled: 0,
        spilled_bytes: 0,
        reconnects: pipe.meetings().saturating_sub(1),
        full_out,
        full_in,
        dropped: Counters::default(),
    }
}
