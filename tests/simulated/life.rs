//! The counters of a member's sockets.

use std::time::Instant;

use zeroxide::{DropReason, SocketStats, SocketType, simulation};

use super::history::note;
use super::member::Member;
use super::plan::Role;

/// The reasons for which a socket drops messages that it has accepted itself, or replaces.
const OUTBOUND: [DropReason; 3] = [
    DropReason::PeerGone,
    DropReason::Lingered,
    DropReason::Unfinished,
];
/// The reasons for which a socket drops messages of its peers.
const INBOUND: [DropReason; 4] = [
    DropReason::Filtered,
    DropReason::Malformed,
    DropReason::Stale,
    DropReason::Refused,
];

/// A socket of a run that is closed, or the last one of a member.
pub struct Life {
    pub number: u16,
    pub member: usize,
    pub kind: SocketType,
    pub began: Instant,
    /// Its host lost its power, so the counters are gone.
    pub crashed: bool,
    /// It closed while peers may have had more for it.
    pub left: bool,
    /// Until when it delivers what it has sent, from when it closed.
    pub delivers_until: Option<Instant>,
    /// It disconnected or unbound, so that one peer had several queues.
    pub disturbed: bool,
    /// Its subscriptions have changed while it was connected.
    pub resubscribed: bool,
    /// Written for peers, for sockets that write one message for several.
    pub sent: u64,
    pub dropped_out: u64,
    pub dropped_in: u64,
    /// Waiting to be received.
    pub queued: u64,
    /// Dropped because a peer's queue was full.
    pub full: u64,
    /// Wanted by no peer.
    pub unwanted: u64,
}

impl Member {
    /// The counters, with what must always hold.
    pub fn stats(&mut self) -> SocketStats {
        let stats = self.socket.stats().unwrap();
        let options = self.role.options;
        let (out, inbound) = match self.pattern.conflates {
            true => (1, 1),
            false => (options.sndhwm, options.rcvhwm),
        };
        // Subscriptions have no mark.
        for peer in &stats.peers {
            let is_publisher = self.pattern.spreads && self.sends();
            if !self.wants_topics() {
                assert!(
                    peer.queued_out <= out as u64,
                    "{self} queues {} of {out}",
                    peer.queued_out
                );
            }
            if !is_publisher {
                assert!(
                    peer.queued_in <= inbound as u64,
                    "{self} has {} of {inbound} to receive",
                    peer.queued_in
                );
            }
        }
        stats
    }

    /// Notes the counters of the socket.
    pub fn account(&mut self, stats: &SocketStats) {
        let sum = |reasons: &[DropReason]| -> u64 {
            reasons
                .iter()
                .map(|&reason| stats.dropped.dropped(reason))
                .sum()
        };
        self.life.full = stats.dropped.dropped(DropReason::HighWater);
        self.life.unwanted = stats.dropped.dropped(DropReason::NoSubscriber);
        self.life.dropped_in = sum(&INBOUND);
        self.life.queued = stats.queued_in;
        // Others send only subscriptions.
        if self.sends() {
            self.life.sent = stats.sent;
            self.life.dropped_out = sum(&OUTBOUND);
        }
        // Publishers hand over only messages that a subscriber wants and has room for.
        if !self.pattern.spreads {
            let own = [
                DropReason::HighWater,
                DropReason::NoPeer,
                DropReason::Unroutable,
            ];
            self.life.dropped_out += sum(&own);
        }
        match self.sends() {
            true => self.life.dropped_out += sum(&[DropReason::Conflated]),
            false => self.life.dropped_in += sum(&[DropReason::Conflated]),
        }
        note(format_args!(
            "{self} sent {}, received {}, dropped {:?}",
            stats.sent, stats.received, stats.dropped
        ));
    }

    /// Compares the report of a closed socket with its counters, which also have what was lost before. Lost subscriptions are
    /// counted, but not reported.
    pub fn check_report(&self, stats: &SocketStats, undelivered: u64) {
        let count = |reason| stats.dropped.dropped(reason);
        let lingered = count(DropReason::Lingered);
        let most = lingered + count(DropReason::PeerGone);
        assert!(
            !self.sends() || (lingered..=most).contains(&undelivered),
            "{self} reports {undelivered} undelivered messages, but counts {lingered} to {most}"
        );
    }
}

impl Life {
    /// Of a new socket.
    pub fn new(role: &Role, number: u16) -> Life {
        Life {
            number,
            member: role.index,
            kind: role.kind,
            began: simulation::now(),
            crashed: false,
            left: false,
            delivers_until: None,
            disturbed: false,
            resubscribed: false,
            sent: 0,
            dropped_out: 0,
            dropped_in: 0,
            queued: 0,
            full: 0,
            unwanted: 0,
        }
    }
}
