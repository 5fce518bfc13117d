//! Where rows come in: one open batch per collector, sealed when it is full or old enough, and the bounds of what may be
//! unacknowledged.

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::{Batch, BatchBuilder, BatchError, Row};

/// How much may come in, and when a batch is full.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Rows that may be unacknowledged.
    pub max_rows: u64,
    /// Bytes that may be unacknowledged.
    pub max_bytes: u64,
    /// Bytes that may wait in memory to be taken care of.
    pub max_fresh: u64,
    /// A batch has at most so many rows,
    pub batch_rows: usize,
    /// and at about so many bytes it is full.
    pub batch_bytes: usize,
    /// How long a batch waits for more rows.
    pub linger: Duration,
}

/// What a batch takes besides its rows, at most.
const AROUND_ROWS: u64 = 4096;

/// Where a row went: which collector, and its number there, counted from 0 in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which of the collectors.
    pub collector: usize,
    /// The number of the row among those for this collector.
    pub row: u64,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in a batch; whether whoever sends must be woken for it.
    At(Place, bool),
    /// There is no room before something was acknowledged.
    Full,
}

/// A batch on its way to whoever sends.
#[derive(Debug)]
pub struct Sealed {
    pub rows: u64,
    pub content: Content,
    /// What it takes of the bounds.
    pub cost: u64,
}

/// Rows on their way.
#[derive(Debug)]
pub enum Content {
    /// Still to be encoded.
    Columns(Box<Batch>),
    /// In their wire form.
    Encoded(Bytes),
}

/// What comes in for one collector.
#[derive(Debug, Default)]
pub struct Lane {
    builder: BatchBuilder,
    /// When the open batch got its first row.
    since: Option<Instant>,
    sealed: VecDeque<Sealed>,
    /// How many rows came in.
    pub rows: u64,
    /// How many of them are acknowledged.
    pub acked: u64,
    /// Whether it takes rows now; others get those that may go anywhere.
    pub is_open: bool,
}

/// See the module text.
#[derive(Debug)]
pub struct Intake {
    bounds: Bounds,
    lanes: Vec<Lane>,
    /// Where rows without a key go.
    turn: usize,
    /// What is unacknowledged.
    rows: u64,
    bytes: u64,
    /// What of it the sending thread has not taken care of yet.
    fresh: u64,
    /// The largest row that a collector takes, as far as that is known.
    max_row: u64,
}

impl Intake {
    pub fn new(bounds: Bounds, collectors: usize) -> Intake {
        Intake {
            bounds,
            lanes: (0..collectors).map(|_| Lane::default()).collect(),
            turn: 0,
            rows: 0,
            bytes: 0,
            fresh: 0,
            max_row: u64::MAX,
        }
    }

    /// Takes a row for the collector that its key names, or else for the one whose turn it is.
    ///
    /// # Errors
    /// When the row is too large for any batch.
    pub fn push(&mut self, row: Row<'_>) -> Result<Taken, BatchError> {
        let at = self.lane_for(row.key);
        if !self.has_room() {
            return Ok(Taken::Full);
        }
        let bounds = &self.bounds;
        let lane = &mut self.lanes[at];
        let before = lane.builder.size();
        let size = row_size(&row);
        if size as u64 > self.max_row {
            let (bytes, limit) = (size as u64, self.max_row);
            return Err(BatchError::RowTooLarge { bytes, limit });
        }
        let mut wake = false;
        let before = if before > 0 && before + size > bounds.batch_bytes {
            lane.seal();
            wake = true;
            0
        } else {
            before
        };
        lane.builder.push(row)?;
        self.rows += 1;
        let cost = (lane.builder.size() - before) as u64;
        self.bytes += cost;
        self.fresh += cost;
        let place = Place {
            collector: at,
            row: lane.rows,
        };
        lane.rows += 1;
        if lane.since.is_none() {
            lane.since = Some(Instant::now());
            wake = true;
        }
        if lane.builder.rows() >= bounds.batch_rows || lane.builder.size() >= bounds.batch_bytes {
            lane.seal();
            wake = true;
            if at == self.turn {
                self.next_turn();
            }
        }
        Ok(Taken::At(place, wake))
    }

    /// Takes `rows` rows in their wire form, as a whole, for the collector that their common key names, or else for the one
    /// whose turn it is.
    pub fn push_batch(&mut self, rows: u64, encoded: Bytes, key: Option<&[u8]>) -> Taken {
        if !self.has_room() {
            return Taken::Full;
        }
        let cost = encoded.len() as u64;
        let at = self.lane_for(key);
        let lane = &mut self.lanes[at];
        // Rows that came in before go first.
        lane.seal();
        let place = Place {
            collector: at,
            row: lane.rows,
        };
        lane.rows += rows;
        lane.sealed.push_back(Sealed {
            rows,
            content: Content::Encoded(encoded),
            cost,
        });
        self.rows += rows;
        self.bytes += cost;
        self.fresh += cost;
        if at == self.turn {
            self.next_turn();
        }
        Taken::At(place, true)
    }

    #[inline]
    fn lane_for(&self, key: Option<&[u8]>) -> usize {
        match key {
            _ if self.lanes.len() == 1 => 0,
            Some(key) => lane_of(key, self.lanes.len()),
            None => self.turn,
        }
    }

    /// The next collector that takes rows; the next one if none does.
    fn next_turn(&mut self) {
        let count = self.lanes.len();
        let others = (1..=count).map(|step| (self.turn + step) % count);
        let mut open = others.clone().filter(|at| self.lanes[*at].is_open);
        self.turn = open.next().unwrap_or((self.turn + 1) % count);
    }

    /// Closes all open batches.
    pub fn seal(&mut self) {
        self.lanes.iter_mut().for_each(Lane::seal);
        if self.lanes.len() > 1 {
            self.next_turn();
        }
    }

    /// Closes the batches that have waited long enough, and says when the next one has.
    pub fn seal_old(&mut self, now: Instant) -> Option<Instant> {
        let linger = self.bounds.linger;
        let mut next: Option<Instant> = None;
        for at in 0..self.lanes.len() {
            let Some(due) = self.lanes[at].since.map(|since| since + linger) else {
                continue;
            };
            if due <= now {
                self.lanes[at].seal();
                if at == self.turn {
                    self.next_turn();
                }
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        next
    }

    /// The next sealed batch for a collector.
    pub fn take(&mut self, collector: usize) -> Option<Sealed> {
        self.lanes[collector].sealed.pop_front()
    }

    /// Whether there is a sealed batch.
    pub fn has_sealed(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.sealed.is_empty())
    }

    /// Whether there is a sealed batch, or an open one that is due before `known_due`.
    pub fn has_work(&self, known_due: Option<Instant>) -> bool {
        let due = self.lanes.iter().filter_map(|lane| lane.since).min();
        let is_new =
            due.is_some_and(|since| known_due.is_none_or(|due| due > since + self.bounds.linger));
        is_new || self.has_sealed()
    }

    /// The sending thread has taken care of rows that took this of the bounds.
    pub fn settle(&mut self, cost: u64) {
        self.fresh -= cost;
    }

    /// Rows that are acknowledged count no more.
    pub fn release(&mut self, rows: u64, cost: u64) {
        self.rows -= rows;
        self.bytes -= cost;
    }

    /// Rows that a former run left count, too.
    pub fn adopt(&mut self, collector: usize, rows: u64, cost: u64) {
        self.lanes[collector].rows += rows;
        self.rows += rows;
        self.bytes += cost;
    }

    /// No batch may be larger than this.
    pub fn limit(&mut self, bytes: u64) {
        let bytes = bytes.saturating_sub(AROUND_ROWS);
        self.max_row = self.max_row.min(bytes);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.bounds.batch_bytes = self.bounds.batch_bytes.min(bytes);
    }

    /// The largest row that a collector takes, as far as that is known.
    pub fn max_row(&self) -> u64 {
        self.max_row
    }

    /// Whether the bounds let another row in.
    pub fn has_room(&self) -> bool {
        let bounds = &self.bounds;
        self.rows == 0
            || (self.rows < bounds.max_rows
                && self.bytes < bounds.max_bytes
                && self.fresh < bounds.max_fresh)
    }

    /// Rows and bytes that are not acknowledged.
    pub fn unacknowledged(&self) -> (u64, u64) {
        (self.rows, self.bytes)
    }

    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    pub fn lanes_mut(&mut self) -> &mut [Lane] {
        &mut self.lanes
    }
}

impl Lane {
    fn seal(&mut self) {
        self.since = None;
        if self.builder.is_empty() {
            return;
        }
        let mut full = mem::take(&mut self.builder);
        self.sealed.push_back(Sealed {
            rows: full.rows() as u64,
            cost: full.size() as u64,
            content: Content::Columns(Box::new(full.finish())),
        });
    }
}

/// Which of so many collectors has the rows with this key: FNV-1a, so that other programs can find it, too.
pub fn lane_of(key: &[u8], collectors: usize) -> usize {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    usize::try_from(hash % collectors as u64).unwrap_or(0)
}

/// About what a row takes in a batch.
fn row_size(row: &Row<'_>) -> usize {
    let headers = row
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 8);
    32 + row.value.len()
        + row.key.map_or(0, <[u8]>::len)
        + row.topic.map_or(0, str::len)
        + headers.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        max_rows: 10,
        max_bytes: 1 << 20,
        max_fresh: 1 << 20,
        batch_rows: 4,
        batch_bytes: 1000,
        linger: Duration::from_millis(5),
    };

    fn row(value: &[u8]) -> Row<'_> {
        Row {
            value,
            ..Row::default()
        }
    }

    fn push(intake: &mut Intake, value: &[u8]) -> Taken {
        intake.push(row(value)).expect("not too large")
    }

    fn rows(intake: &mut Intake, collector: usize) -> Vec<u64> {
        std::iter::from_fn(|| intake.take(collector))
            .map(|sealed| sealed.rows)
            .collect()
    }

    #[test]
    fn a_batch_is_sealed_by_rows_bytes_and_time() {
        let mut intake = Intake::new(BOUNDS, 1);
        for _ in 0..5 {
            push(&mut intake, b"x");
        }
        assert_eq!(rows(&mut intake, 0), [4]);
        push(&mut intake, &[0; 990]);
        assert_eq!(
            rows(&mut intake, 0),
            [1, 1],
            "what would make it too large begins another"
        );
        push(&mut intake, b"x");
        let due = intake.seal_old(Instant::now()).expect("one that waits");
        assert!(rows(&mut intake, 0).is_empty());
        assert_eq!(intake.seal_old(due), None);
        assert_eq!(rows(&mut intake, 0), [1]);
    }

    #[test]
    fn rows_count_until_they_are_released() {
        let mut intake = Intake::new(BOUNDS, 1);
        for _ in 0..10 {
            assert_ne!(push(&mut intake, b"x"), Taken::Full);
        }
        assert_eq!(push(&mut intake, b"x"), Taken::Full);
        assert_eq!(
            intake.push_batch(3, Bytes::from_static(b"batch"), None),
            Taken::Full
        );
        let (_, bytes) = intake.unacknowledged();
        intake.release(4, bytes / 10 * 4);
        assert!(matches!(
            push(&mut intake, b"x"),
            Taken::At(Place { row: 10, .. }, _)
        ));
    }

    #[test]
    fn what_nobody_has_taken_care_of_is_bounded_too() {
        let mut intake = Intake::new(
            Bounds {
                max_fresh: 100,
                ..BOUNDS
            },
            1,
        );
        push(&mut intake, &[0; 100]);
        assert_eq!(push(&mut intake, b"x"), Taken::Full);
        intake.seal();
        let cost = intake.take(0).expect("a batch").cost;
        intake.settle(cost);
        assert_ne!(push(&mut intake, b"x"), Taken::Full);
    }

    #[test]
    fn a_limit_holds_for_rows_and_batches() {
        let mut intake = Intake::new(BOUNDS, 1);
        intake.limit(4096 + 200);
        assert!(intake.push(row(&[0; 300])).is_err());
        push(&mut intake, &[0; 100]);
        push(&mut intake, &[0; 100]);
        assert_eq!(rows(&mut intake, 0), [1]);
    }

    #[test]
    fn turns_pass_by_who_takes_nothing() {
        let mut intake = Intake::new(
            Bounds {
                max_rows: 100,
                ..BOUNDS
            },
            3,
        );
        intake.lanes_mut()[2].is_open = true;
        for _ in 0..12 {
            push(&mut intake, b"x");
        }
        let taken = [0, 1, 2].map(|at| rows(&mut intake, at).iter().sum::<u64>());
        assert_eq!(taken, [4, 0, 8]);
    }

    #[test]
    fn the_hash_of_a_key_is_fnv() {
        // 0xaf63dc4c8601ec8c is the hash of "a".
        assert_eq!(
            lane_of(b"a", 1000),
            (0xaf63_dc4c_8601_ec8c_u64 % 1000) as usize
        );
    }
}
