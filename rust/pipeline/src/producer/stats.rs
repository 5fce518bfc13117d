//! How a producer stands, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::producer::Producer;
use crate::wire::{Code, Credit, LogId};

/// What the worker counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub batches: AtomicU64,
    pub bytes: AtomicU64,
    pub reconnects: AtomicU64,
}

/// How it stands with all collectors together.
#[derive(Clone, Debug)]
pub struct ProducerStats {
    /// Rows that came in, those that a former run left included.
    pub rows: u64,
    /// Rows that are acknowledged; not those that were set aside, which will never be.
    pub acknowledged: u64,
    /// Rows that are not.
    pub unacknowledged: u64,
    /// What those take.
    pub unacknowledged_bytes: u64,
    /// Batches made, and the bytes in them.
    pub batches: u64,
    /// Bytes of these batches.
    pub bytes: u64,
    /// Rows that were sent more than once, for each time.
    pub resent: u64,
    /// Connections that had to be made anew.
    pub reconnects: u64,
    /// Notices that nobody has taken yet.
    pub notices: usize,
    /// The collectors, in the order in which they were given.
    pub collectors: Vec<CollectorStats>,
}

/// How it stands with one collector.
#[derive(Clone, Debug)]
pub struct CollectorStats {
    /// Where it is.
    pub endpoint: String,
    /// Whether batches flow.
    pub is_connected: bool,
    /// Why not, as far as that is known.
    pub reason: Option<String>,
    /// What stands in the way, as it told.
    pub obstacle: Option<Code>,
    /// Which log it writes, once it said so.
    pub log_id: Option<LogId>,
    /// The run's number there.
    pub epoch: u64,
    /// The sequence number that the next row gets, once that is known.
    pub next_seq: Option<u64>,
    /// The sequence number of the first row that is not acknowledged.
    pub acknowledged_seq: Option<u64>,
    /// Rows that got new sequence numbers, because another producer had used the name.
    pub renumbered: u64,
    /// Rows that the collector had acknowledged and lost.
    pub lost: u64,
    /// Rows that will never be sent: too large, damaged, or doubtful.
    pub set_aside: u64,
    /// Rows and bytes that may be on their way, and are.
    pub credit: Credit,
    /// What is on its way.
    pub flying: Credit,
}

impl Producer {
    /// How it stands.
    pub fn stats(&self) -> ProducerStats {
        let shared = &self.shared;
        let state = shared.state();
        let lanes = || state.intake.lanes().iter();
        let (unacknowledged, unacknowledged_bytes) = state.intake.unacknowledged();
        // A lane is done with rows that were set aside, too.
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
                next_seq: standing.seq_of(lane.rows),
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
