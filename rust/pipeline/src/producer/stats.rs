//! The counters of a producer.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::producer::Producer;
use crate::wire::{Code, Credit, LogId};

/// The counters of the worker.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub batches: AtomicU64,
    pub bytes: AtomicU64,
    pub reconnects: AtomicU64,
}

/// The state at all collectors together.
#[derive(Clone, Debug)]
pub struct ProducerStats {
    /// Rows that were accepted, including those left by earlier runs.
    pub rows: u64,
    /// Rows that are acknowledged, without those that were set aside, which never will be.
    pub acknowledged: u64,
    /// Rows that are not acknowledged.
    pub unacknowledged: u64,
    /// The bytes of these rows.
    pub unacknowledged_bytes: u64,
    /// Batches made, and the bytes in them.
    pub batches: u64,
    /// Bytes of these batches.
    pub bytes: u64,
    /// Rows that were sent again, counted once per repetition.
    pub resent: u64,
    /// Reconnections.
    pub reconnects: u64,
    /// Notices that were not taken yet.
    pub notices: usize,
    /// The collectors, in the order in which they were given.
    pub collectors: Vec<CollectorStats>,
}

/// The state at one collector.
#[derive(Clone, Debug)]
pub struct CollectorStats {
    /// The collector's endpoint.
    pub endpoint: String,
    /// Whether batches are being sent.
    pub is_connected: bool,
    /// The reason why not, as far as it is known.
    pub reason: Option<String>,
    /// The obstacle that the collector reported.
    pub obstacle: Option<Code>,
    /// The id of its log, once it has answered.
    pub log_id: Option<LogId>,
    /// The epoch of this run there.
    pub epoch: u64,
    /// The sequence number of the next row, once it is known.
    pub next_seq: Option<u64>,
    /// The sequence number of the first row that is not acknowledged.
    pub acknowledged_seq: Option<u64>,
    /// Rows that got new sequence numbers, because another producer had used the name.
    pub renumbered: u64,
    /// Rows that the collector had acknowledged and lost.
    pub lost: u64,
    /// Rows that will never be sent: too large, damaged, or doubtful.
    pub set_aside: u64,
    /// The maximum rows and bytes in transit.
    pub credit: Credit,
    /// The rows and bytes in transit.
    pub flying: Credit,
}

impl Producer {
    /// The producer's counters.
    pub fn stats(&self) -> ProducerStats {
        let shared = &self.shared;
        let state = shared.state();
        let lanes = || state.intake.lanes().iter();
        let (unacknowledged, unacknowledged_bytes) = state.intake.unacknowledged();
        // A lane also counts rows that were set aside.
        let acked: u64 = lanes().map(|lane| lane.acked).sum();
        let set_aside: u64 = state
            .standings
            .iter()
            .map(|standing| standing.set_aside)
            .sum();
        let collectors = lanes()
            .zip(&state.standings)
            .map(|(lane, standing)| CollectorStats {
                endpoint: standing.endpoint.clone(),
                is_connected: standing.is_open,
                reason: standing.reason.clone(),
                obstacle: standing.obstacle,
                log_id: standing.log_id,
                epoch: standing.epoch,
                next_seq: standing.seq_of(lane.rows).filter(|_| standing.is_counted),
                acknowledged_seq: standing.seq_of(lane.acked),
                renumbered: standing.renumbered,
                lost: standing.lost,
                set_aside: standing.set_aside,
                credit: standing.credit,
                flying: standing.flying,
            });
        ProducerStats {
            rows: lanes().map(|lane| lane.rows).sum(),
            acknowledged: acked.saturating_sub(set_aside),
            unacknowledged,
            unacknowledged_bytes,
            batches: shared.counters.batches.load(Ordering::Relaxed),
            bytes: shared.counters.bytes.load(Ordering::Relaxed),
            resent: state.standings.iter().map(|standing| standing.resent).sum(),
            reconnects: shared.counters.reconnects.load(Ordering::Relaxed),
            notices: shared.notices.waiting(),
            collectors: collectors.collect(),
        }
    }
}
