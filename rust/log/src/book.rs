//! The book of writers: the last number of every producer, and the last batch of every query that publishes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::frame::{Origin, Role};

/// The number of a batch that is the only one of its query: a write with a name of its own.
pub const ONLY_BATCH: u64 = i64::MAX as u64;

/// Epochs of producers are below this, because they are microseconds since 1970 or follow one that is. A greater epoch
/// was forged or damaged, and any other may follow it.
pub const EPOCH_END: u64 = 1 << 63;

/// The maximum number of runs remembered for each producer: those that wrote last.
const MAX_WRITERS: usize = 32;

/// A run of a producer that wrote rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// The epoch of the run.
    pub epoch: u64,
    /// The sequence number of the last row that the run wrote.
    pub last_seq: u64,
}

/// The last state of a producer in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Last {
    pub epoch: u64,
    /// The runs that wrote rows, in the order of their writing; empty if the producer has only registered an epoch.
    pub writers: Arc<[Writer]>,
    /// Whether earlier runs were left out.
    pub is_cut: bool,
    /// The last time of receipt; the producers that were silent longest are forgotten first.
    pub seen: i64,
}

impl Last {
    /// The sequence number of its last row.
    pub fn seq(&self) -> Option<u64> {
        self.writers.last().map(|writer| writer.last_seq)
    }

    /// Records that a run has written rows up to this number.
    fn wrote(&mut self, epoch: u64, last_seq: u64) {
        let last_seq = self.seq().map_or(last_seq, |seq| seq.max(last_seq));
        let writer = Writer { epoch, last_seq };
        let same = self.writers.last().is_some_and(|last| last.epoch == epoch);
        if same && let Some(last) = Arc::get_mut(&mut self.writers).and_then(<[_]>::last_mut) {
            *last = writer;
            return;
        }
        let kept = &self.writers[..self.writers.len() - usize::from(same)];
        let surplus = (kept.len() + 1).saturating_sub(MAX_WRITERS);
        self.is_cut |= surplus > 0;
        let kept = kept[surplus..].iter().copied();
        self.writers = kept.chain([writer]).collect();
    }
}

/// The last batch that a query has published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The number of the batch.
    pub batch: u64,
    /// The offsets of its rows.
    pub range: Range<u64>,
    /// The sequence number that the query's next row gets.
    pub next_seq: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Book {
    pub producers: HashMap<Arc<str>, Last>,
    pub queries: HashMap<Arc<str>, Published>,
    /// The offset at which the transaction begins whose frames are being read.
    open: Option<u64>,
}

impl Book {
    /// Records the frame with these offsets.
    pub fn note(&mut self, origin: &Origin, role: Role, offsets: Range<u64>) {
        let rows = offsets.end - offsets.start;
        if role == Role::Single {
            self.open = None;
            if origin.is_numbered() {
                let last_seq = (rows > 0).then(|| origin.first_seq + rows - 1);
                self.note_producer(origin, last_seq);
            }
            return;
        }
        let start = *self.open.get_or_insert(offsets.start);
        if role == Role::Last {
            let published = Published {
                batch: origin.epoch,
                range: start..offsets.end,
                next_seq: origin.first_seq + rows,
            };
            self.queries.insert(origin.producer.clone(), published);
            self.open = None;
        }
    }

    fn note_producer(&mut self, origin: &Origin, last_seq: Option<u64>) {
        let (epoch, seen) = (origin.epoch, origin.receive_time);
        if !self.producers.contains_key(&origin.producer) {
            let last = Last {
                epoch,
                writers: Arc::default(),
                is_cut: false,
                seen,
            };
            self.producers.insert(origin.producer.clone(), last);
        }
        if let Some(known) = self.producers.get_mut(&origin.producer)
            && (epoch >= known.epoch || known.epoch >= EPOCH_END)
        {
            (known.epoch, known.seen) = (epoch, seen);
            if let Some(last_seq) = last_seq {
                known.wrote(epoch, last_seq);
            }
        }
    }

    /// If there are more than `most` producers, forgets those that were silent longest: a tenth of them, so that this
    /// is rare. Returns how many.
    pub fn forget(&mut self, most: usize) -> usize {
        if self.producers.len() <= most {
            return 0;
        }
        let mut seen: Vec<i64> = self.producers.values().map(|last| last.seen).collect();
        let surplus = (seen.len() - most + most / 10).min(seen.len() - 1);
        let (_, limit, _) = seen.select_nth_unstable(surplus);
        let (limit, before) = (*limit, self.producers.len());
        self.producers.retain(|_, last| last.seen >= limit);
        before - self.producers.len()
    }

    /// Whether one more query may publish: there are fewer than `most`, or one of them is finished.
    pub fn has_room(&self, most: usize) -> bool {
        let mut queries = self.queries.values();
        queries.len() < most || queries.any(|last| last.batch == ONLY_BATCH)
    }

    /// While there are more than `most` queries, forgets the oldest of those that are finished, except `newest`.
    pub fn forget_queries(&mut self, most: usize, newest: &str) {
        while self.queries.len() > most {
            let over = self
                .queries
                .iter()
                .filter(|(name, last)| last.batch == ONLY_BATCH && &***name != newest);
            let Some((oldest, _)) = over.min_by_key(|(_, last)| last.range.end) else {
                return;
            };
            let oldest = oldest.clone();
            self.queries.remove(&oldest);
        }
    }
}
