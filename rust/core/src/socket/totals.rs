//! The counters of pipes that are gone.

use crate::patterns::{Counters, DropReason};
use crate::pipe::Pipe;

/// What is left of pipes that are gone.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    pub(super) dropped: Counters,
}

impl Totals {
    /// Takes over the counters of a pipe that leaves. What the far end has not read of it is lost, unless the far end
    /// is a socket that can still read it.
    pub(super) fn retire(&mut self, pipe: &Pipe, local: bool) {
        let (sent, sent_bytes) = pipe.written();
        let (received, received_bytes) = pipe.read_so_far();
        self.sent += sent;
        self.sent_bytes += sent_bytes;
        self.received += received;
        self.received_bytes += received_bytes;
        self.dropped.merge(&below(pipe, local));
        let unread = pipe.lost(true) - pipe.lost(false);
        self.dropped.add(DropReason::PeerGone, unread);
    }
}

/// What was lost in a pipe and behind it, rather than by the pattern. What another socket of the context replaced or did
/// not get is its own to count.
pub(super) fn below(pipe: &Pipe, local: bool) -> Counters {
    let mut counters = Counters::default();
    let (out, inbound) = pipe.conflated();
    counters.add(DropReason::Conflated, out);
    if !local {
        counters.add(DropReason::Conflated, inbound);
        counters.add(DropReason::Torn, pipe.torn_in());
        counters.add(DropReason::PeerGone, pipe.lost(false));
    }
    counters
}
