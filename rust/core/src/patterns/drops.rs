//! The reasons why messages and peers are dropped, and counters for the fate of each message.

use std::fmt;

/// The reason why a message was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum DropReason {
    /// The peer's queue was at its high-water mark, and SPILL_BYTES was reached if the socket has a SPILL_DIR.
    HighWater,
    /// No peer was connected that could take it.
    NoPeer,
    /// No peer of a ROUTER or STREAM has that routing id.
    Unroutable,
    /// A newer message replaced it (CONFLATE).
    Conflated,
    /// No peer had subscribed to it. Counted, but not a loss.
    NoSubscriber,
    /// It arrived without a matching subscription.
    Filtered,
    /// It lacked frames that the pattern requires.
    Malformed,
    /// The connection ended in the middle of it.
    Torn,
    /// The connection was lost before it was sent, or before the peer's machine acknowledged it.
    PeerGone,
    /// The socket was closed and its linger time expired.
    Lingered,
    /// A newer request replaced it (REQ_RELAXED), or it is a reply that is no longer expected.
    Stale,
    /// It was received, but the socket had already rejected the peer (a second PAIR peer), closed the connection before
    /// the message was read (disconnect, or unbind before it was in the queue), or had another peer with that routing id all
    /// the time.
    Refused,
    /// A subscription above MAX_SUBSCRIPTIONS, or one for which MEMORY_BUDGET had no room, which was ignored. Or a packet of epgm or pgm from one sender too many.
    Excess,
    /// It was sent part by part and its last part failed, or its thread ended before that.
    Unfinished,
    /// There was no memory for it, or none left in MEMORY_BUDGET, and its sender was disconnected.
    NoMemory,
    /// It was larger than MAXMSGSIZE, which ended the connection. Or it was a datagram that was larger than that, or than
    /// what a peer may send.
    TooLarge,
    /// It was a datagram for which the kernel had no room, because the socket was at its high-water mark or its thread was
    /// busy.
    Overrun,
    /// It had passed more sockets than MAX_TTL allows, as messages do that travel in a circle.
    Hops,
    /// Its subscriber was too slow, and was disconnected (SLOW_SUBSCRIBER) or skipped what it had missed (MAX_LAG).
    TooSlow,
    /// It was in packets of epgm or pgm that got lost and could not be repaired. The number is that of the packets.
    Gap,
    /// It could not be written to SPILL_DIR, or not be read from there.
    Disk,
}

impl DropReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [DropReason; 21] = [
        DropReason::HighWater,
        DropReason::NoPeer,
        DropReason::Unroutable,
        DropReason::Conflated,
        DropReason::NoSubscriber,
        DropReason::Filtered,
        DropReason::Malformed,
        DropReason::Torn,
        DropReason::PeerGone,
        DropReason::Lingered,
        DropReason::Stale,
        DropReason::Refused,
        DropReason::Excess,
        DropReason::Unfinished,
        DropReason::NoMemory,
        DropReason::TooLarge,
        DropReason::Overrun,
        DropReason::Hops,
        DropReason::TooSlow,
        DropReason::Gap,
        DropReason::Disk,
    ];

    /// The name used in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::HighWater => "high_water",
            DropReason::NoPeer => "no_peer",
            DropReason::Unroutable => "unroutable",
            DropReason::Conflated => "conflated",
            DropReason::NoSubscriber => "no_subscriber",
            DropReason::Filtered => "filtered",
            DropReason::Malformed => "malformed",
            DropReason::Torn => "torn",
            DropReason::PeerGone => "peer_gone",
            DropReason::Lingered => "lingered",
            DropReason::Stale => "stale",
            DropReason::Refused => "refused",
            DropReason::Excess => "excess",
            DropReason::Unfinished => "unfinished",
            DropReason::NoMemory => "no_memory",
            DropReason::TooLarge => "too_large",
            DropReason::Overrun => "overrun",
            DropReason::Hops => "hops",
            DropReason::TooSlow => "too_slow",
            DropReason::Gap => "gap",
            DropReason::Disk => "disk",
        }
    }
}

/// Messages dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Nothing was dropped.
    pub(crate) const NONE: Counters = Counters {
        dropped: [0; DropReason::ALL.len()],
    };

    /// Counts `n` messages dropped for `reason`.
    pub fn add(&mut self, reason: DropReason, n: u64) {
        self.dropped[reason as usize] += n;
    }

    /// The number of messages dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Adds another set of counters to this one.
    pub fn merge(&mut self, other: &Counters) {
        for (mine, theirs) in self.dropped.iter_mut().zip(other.dropped) {
            *mine += theirs;
        }
    }
}

/// The reason why a pattern drops a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DoomReason {
    /// PAIR and CHANNEL serve one peer at a time, and already have one.
    SecondPeer,
    /// Another peer has the same routing id and too many are waiting for one, or the id was reserved.
    DuplicateRoutingId,
    /// A new peer with the same routing id took over (ROUTER_HANDOVER), and too many are waiting for one.
    HandedOver,
    /// The peer announced a routing id that is too long, or that was generated for another peer.
    InvalidRoutingId,
    /// The application closed the connection: on STREAM by an empty message to it, and otherwise by its number.
    Requested,
    /// It is a subscriber that reads too slowly (SLOW_SUBSCRIBER).
    TooSlow,
    /// It is a publisher to which this subscriber reads too slowly (MAX_LAG), and which it joins anew.
    Late,
    /// A reason of a pattern in another crate.
    Refused(&'static str),
}

impl DoomReason {
    /// Whether what waits in the pipe is lost, instead of being delivered before the connection is closed.
    pub(crate) fn loses_queue(self) -> bool {
        matches!(self, DoomReason::TooSlow | DoomReason::Late)
    }

    /// The reason for which messages of the peer count as dropped that the application has not received.
    pub(super) fn fate_of_unread(self) -> DropReason {
        match self {
            DoomReason::Late => DropReason::TooSlow,
            DoomReason::HandedOver | DoomReason::TooSlow => DropReason::PeerGone,
            DoomReason::SecondPeer
            | DoomReason::DuplicateRoutingId
            | DoomReason::InvalidRoutingId
            | DoomReason::Requested
            | DoomReason::Refused(_) => DropReason::Refused,
        }
    }
}

impl fmt::Display for DoomReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DoomReason::SecondPeer => "the socket serves one peer at a time and has one",
            DoomReason::DuplicateRoutingId => "another peer holds the same routing id",
            DoomReason::HandedOver => "a newcomer with the same routing id took over",
            DoomReason::InvalidRoutingId => {
                "the announced routing id is longer than 255 bytes or was generated for another peer"
            }
            DoomReason::Requested => "closed by the application",
            DoomReason::TooSlow => {
                "the subscriber read too slowly: its queue was full (SLOW_SUBSCRIBER)"
            }
            DoomReason::Late => {
                "this socket read too slowly: a message had waited for longer than MAX_LAG"
            }
            DoomReason::Refused(reason) => reason,
        })
    }
}
