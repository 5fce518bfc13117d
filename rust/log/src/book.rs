//! Who has written what: the last number of every producer, the last batch of every query that publishes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::frame::{Origin, Role};

/// The number of a batch that no other of its query follows: a write that has a name of its own.
pub const ONLY_BATCH: u64 = i64::MAX as u64;

/// Epochs of producers end below this: they are microseconds since 1970, or follow one that is. A greater one was never
/// earned, and any other follows it.
pub const EPOCH_END: u64 = 1 << 63;

/// The last that a producer has in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Last {
    pub epoch: u64,
    /// None if it has said that it is there, and sent no row.
    pub seq: Option<u64>,
    /// When it came in; those that were silent longest are forgotten first.
    pub seen: i64,
}

/// The last that a query has published.
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
    /// Where the transaction begins whose frames are being read.
    open: Option<u64>,
}

impl Book {
    /// Notes the frame with these offsets.
    pub fn note(&mut self, origin: &Origin, role: Role, offsets: Range<u64>) {
        let rows = offsets.end - offsets.start;
        if role == Role::Single {
            self.open = None;
            if origin.is_numbered() {
                let last = Last {
                    epoch: origin.epoch,
                    seq: (rows > 0).then(|| origin.first_seq + rows - 1),
                    seen: origin.receive_time,
                };
                self.note_producer(&origin.producer, last);
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

    fn note_producer(&mut self, name: &Arc<str>, last: Last) {
        match self.producers.get_mut(name) {
            Some(known) if last.epoch < known.epoch && known.epoch < EPOCH_END => {}
            Some(known) => {
                let seq = last.seq.max(known.seq);
                *known = Last { seq, ..last };
            }
            None => {
                self.producers.insert(name.clone(), last);
            }
        }
    }

    /// Forgets those that were silent longest if there are more than `most` producers: a tenth, so that it is rare.
    /// Gives how many.
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

    /// Whether one more query may publish: there are fewer than `most`, or one of them has nothing more to say.
    pub fn has_room(&self, most: usize) -> bool {
        let mut queries = self.queries.values();
        queries.len() < most || queries.any(|last| last.batch == ONLY_BATCH)
    }

    /// Forgets the oldest of the queries that published all they ever will, but `newest`, while there are more than
    /// `most` queries.
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
