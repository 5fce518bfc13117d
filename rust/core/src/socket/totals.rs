//! The counters of pipes that are gone.

use crate::patterns::{Counters, DropReason};
use crate::pipe::Pipe;

/// The sums of the counters of pipes that are gone.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    pub(super) connections: u64,
    pub(super) reconnects: u64,
    pub(super) full_out: u64,
    pub(super) full_in: u64,
    pub(super) dropped: Counters,
}

impl Totals {
    /// Adds the counters of a pipe that leaves. Messages that the far end has not read are lost for this `reason`, unless
    /// the far end is still there: a socket can read them, and a session counts them.
    pub(super) fn retire(&mut self, pipe: &Pipe, local: bool, reason: DropReason) {
        let unread = pipe.lost_unread();
        let (sent, sent_bytes) = pipe.written();
        let (received, received_bytes) = pipe.read_so_far();
        self.sent += sent;
        self.sent_bytes += sent_bytes;
        self.received += received;
        self.received_bytes += received_bytes;
        let (full_out, full_in) = pipe.times_full();
        self.connections += pipe.meetings();
        self.reconnects += pipe.meetings().saturating_sub(1);
        self.full_out += full_out;
        self.full_in += full_in;
        let conflated = match local {
            true => pipe.conflated(),
            false => pipe.take_conflated(),
        };
        self.dropped.merge(&counters(pipe, local, conflated));
        self.dropped.add(reason, unread);
    }
}

/// Messages lost in a pipe or beyond it, as opposed to those that the pattern dropped. Messages that another socket of
/// the context replaced or did not get are counted by that socket.
pub(super) fn below(pipe: &Pipe, local: bool) -> Counters {
    counters(pipe, local, pipe.conflated())
}

fn counters(pipe: &Pipe, local: bool, (out, inbound): (u64, u64)) -> Counters {
    let mut counters = Counters::default();
    counters.add(DropReason::Conflated, out);
    if !local {
        counters.add(DropReason::Conflated, inbound);
        counters.add(DropReason::Torn, pipe.torn_in());
        counters.add(DropReason::PeerGone, pipe.lost());
    }
    counters
}
