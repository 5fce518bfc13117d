//! The events of a run, and the trace that a failure prints.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use zeroxide::{PeerInfo, simulation};

use super::dice::mix;
use super::letter::Letter;

/// The lines of a trace that a failure prints: the last ones.
const TRACE: usize = 400;

thread_local! {
    /// The programs of a run are coroutines of one thread of the system.
    static HISTORY: RefCell<History> = RefCell::default();
    /// The digests of the runs that have ended, by seed.
    static DIGESTS: RefCell<BTreeMap<u64, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// See the module text.
#[derive(Default)]
pub struct History {
    start: Option<Instant>,
    pub trace: Vec<String>,
    /// The number of letters that each socket has tried to send, and those that were accepted.
    pub tried: BTreeMap<u16, u32>,
    pub accepted: BTreeSet<(u16, u32)>,
    /// The members to which letters were addressed.
    pub addressed: BTreeMap<(u16, u32), usize>,
    /// The letters that each socket received, in this order.
    pub received: BTreeMap<u16, Vec<Receipt>>,
}

/// A letter that arrived.
pub struct Receipt {
    pub letter: Letter,
    /// The peer, as the socket knows it. Each connection has its own.
    pub peer: Option<Arc<PeerInfo>>,
}

impl History {
    /// The number of letters that each socket has received.
    pub fn counts(&self) -> BTreeMap<u16, usize> {
        let received = self.received.iter();
        received.map(|(&number, all)| (number, all.len())).collect()
    }
}

impl Receipt {
    /// A number for its connection.
    pub fn connection(&self) -> usize {
        self.peer
            .as_ref()
            .map_or(0, |peer| Arc::as_ptr(peer).addr())
    }
}

/// Forgets everything.
pub fn begin() {
    let start = Some(simulation::now());
    HISTORY.set(History {
        start,
        ..History::default()
    });
}

/// A run has ended: its digest covers the order of all threads, and every line of the trace with its time.
pub fn end() {
    let digest = with(|history| {
        let bytes = history.trace.iter().flat_map(|line| line.bytes());
        bytes.fold(simulation::digest(), |digest, byte| {
            mix(digest ^ u64::from(byte))
        })
    });
    DIGESTS.with_borrow_mut(|digests| digests.insert(simulation::seed(), digest));
}

/// The digests of the runs that have ended, by seed.
pub fn digests() -> BTreeMap<u64, u64> {
    DIGESTS.with_borrow(Clone::clone)
}

/// Looks at the history, or changes it.
pub fn with<T>(work: impl FnOnce(&mut History) -> T) -> T {
    HISTORY.with_borrow_mut(work)
}

/// Adds a line to the trace.
pub fn note(what: impl Display) {
    let now = simulation::now();
    with(|history| {
        let start = history.start.unwrap_or(now);
        let millis = now.saturating_duration_since(start).as_secs_f64() * 1e3;
        history.trace.push(format!("{millis:10.3} ms  {what}"));
    });
}

/// The end of the trace.
pub fn trace() -> String {
    with(|history| {
        let from = history.trace.len().saturating_sub(TRACE);
        history.trace[from..].join("\n")
    })
}
