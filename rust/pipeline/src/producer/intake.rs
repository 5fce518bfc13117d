//! Accepts rows into one open batch per collector, which is sealed when it is full or old enough, and limits the number
//! of unacknowledged rows.

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::{Batch, BatchBuilder, BatchError, Row};

/// The limits, and the size of a full batch.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The maximum number of unacknowledged rows.
    pub max_rows: u64,
    /// The maximum number of unacknowledged bytes.
    pub max_bytes: u64,
    /// The maximum number of bytes in memory that the sending thread has not handled.
    pub max_fresh: u64,
    /// The maximum number of rows of a batch.
    pub batch_rows: usize,
    /// The size at which a batch is full, in bytes.
    pub batch_bytes: usize,
    /// The time that a batch waits for more rows.
    pub linger: Duration,
}

/// The maximum overhead of a batch in addition to its rows.
const AROUND_ROWS: u64 = 4096;

/// The position of a row: its collector, and its number there, counted from 0 in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of the collector.
    pub collector: usize,
    /// The number of the row among those for this collector.
    pub row: u64,
}

/// The result of accepting a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The row is in a batch; the flag tells whether the sending thread must be woken.
    At(Place, bool),
    /// There is no room until rows are acknowledged.
    Full,
}

/// A sealed batch for the sending thread.
#[derive(Debug)]
pub struct Sealed {
    pub rows: u64,
    pub content: Content,
    /// The number of bytes that it counts against the limits.
    pub cost: u64,
}

/// The rows of a sealed batch.
#[derive(Debug)]
pub enum Content {
    /// Not encoded yet.
    Columns(Box<Batch>),
    /// In their wire form.
    Encoded(Bytes),
}

/// The rows accepted for one collector.
#[derive(Debug, Default)]
pub struct Lane {
    builder: BatchBuilder,
    /// The time of the first row in the open batch.
    since: Option<Instant>,
    sealed: VecDeque<Sealed>,
    /// The number of accepted rows.
    pub rows: u64,
    /// The number of acknowledged rows.
    pub acked: u64,
    /// Whether the collector accepts rows now. Others get the rows without a key.
    pub is_open: bool,
    /// The largest batch that the collector accepts, without what surrounds its rows; None while it has not said that.
    limit: Option<u64>,
}

/// See the module text.
#[derive(Debug)]
pub struct Intake {
    bounds: Bounds,
    lanes: Vec<Lane>,
    /// The collector that gets the next rows without a key.
    turn: usize,
    /// The number of unacknowledged rows.
    rows: u64,
    bytes: u64,
    /// The part that the sending thread has not handled yet.
    fresh: u64,
    /// The largest row that every collector accepts, as far as it is known.
    max_row: u64,
    /// The size of a full batch: as configured, or what every collector accepts.
    full: usize,
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
            full: bounds.batch_bytes,
        }
    }

    /// Accepts a row for the collector of its key, or else for the next one in turn.
    ///
    /// # Errors
    /// If the row is too large for any batch.
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
        let before = if before > 0 && before + size > self.full {
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
        if lane.builder.rows() >= bounds.batch_rows || lane.builder.size() >= self.full {
            lane.seal();
            wake = true;
            if at == self.turn {
                self.next_turn();
            }
        }
        Ok(Taken::At(place, wake))
    }

    /// Accepts `rows` rows in their wire form as one batch, for the collector of their common key, or else for the next
    /// one in turn.
    pub fn push_batch(&mut self, rows: u64, encoded: Bytes, key: Option<&[u8]>) -> Taken {
        if !self.has_room() {
            return Taken::Full;
        }
        let cost = encoded.len() as u64;
        let at = self.lane_for(key);
        let lane = &mut self.lanes[at];
        // Earlier rows go first.
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

    /// Moves to the next collector that accepts rows, or to the next one if none does.
    fn next_turn(&mut self) {
        let count = self.lanes.len();
        let others = (1..=count).map(|step| (self.turn + step) % count);
        let mut open = others.clone().filter(|at| self.lanes[*at].is_open);
        self.turn = open.next().unwrap_or((self.turn + 1) % count);
    }

    /// Seals all open batches.
    pub fn seal(&mut self) {
        self.lanes.iter_mut().for_each(Lane::seal);
        if self.lanes.len() > 1 {
            self.next_turn();
        }
    }

    /// Seals the batches that have waited long enough, and returns the time at which the next one has.
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

    /// Takes the next sealed batch for a collector.
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

    /// Records that the sending thread has handled rows of this cost.
    pub fn settle(&mut self, cost: u64) {
        self.fresh -= cost;
    }

    /// Removes acknowledged rows from the totals.
    pub fn release(&mut self, rows: u64, cost: u64) {
        self.rows -= rows;
        self.bytes -= cost;
    }

    /// Adds rows that an earlier run left to the totals.
    pub fn adopt(&mut self, collector: usize, rows: u64, cost: u64) {
        self.lanes[collector].rows += rows;
        self.rows += rows;
        self.bytes += cost;
    }

    /// Limits the size of batches to what a collector accepts, which may have changed since it was started last. Rows of one
    /// size are accepted for all collectors or for none.
    pub fn limit(&mut self, collector: usize, bytes: u64) {
        self.lanes[collector].limit = Some(bytes.saturating_sub(AROUND_ROWS));
        let limits = self.lanes.iter().filter_map(|lane| lane.limit);
        self.max_row = limits.min().unwrap_or(u64::MAX);
        let most = usize::try_from(self.max_row).unwrap_or(usize::MAX);
        self.full = self.bounds.batch_bytes.min(most);
    }

    /// The largest row that every collector accepts, as far as it is known.
    pub fn max_row(&self) -> u64 {
        self.max_row
    }

    /// Whether the limits allow another row.
    pub fn has_room(&self) -> bool {
        let bounds = &self.bounds;
        self.rows == 0
            || (self.rows < bounds.max_rows
                && self.bytes < bounds.max_bytes
                && self.fresh < bounds.max_fresh)
    }

    /// The number of unacknowledged rows and bytes.
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

/// The collector of the rows with this key: FNV-1a, so that other programs can compute it, too.
pub fn lane_of(key: &[u8], collectors: usize) -> usize {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    usize::try_from(hash % collectors as u64).unwrap_or(0)
}

/// The approximate size of a row in a batch.
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
    fn rows_that_the_sending_thread_has_not_handled_are_bounded_too() {
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
        intake.limit(0, 4096 + 200);
        assert!(intake.push(row(&[0; 300])).is_err());
        push(&mut intake, &[0; 100]);
        push(&mut intake, &[0; 100]);
        assert_eq!(rows(&mut intake, 0), [1]);
    }

    #[test]
    fn the_smallest_of_the_collectors_limits_holds_until_it_is_raised() {
        let mut intake = Intake::new(BOUNDS, 2);
        assert_eq!(intake.max_row(), u64::MAX);
        for (collector, limit, smallest) in [
            (0, 500, 500),
            (1, 200, 200),
            (0, 100, 100),
            (0, 400, 200),
            (1, 3000, 400),
        ] {
            intake.limit(collector, 4096 + limit);
            assert_eq!(intake.max_row(), smallest);
        }
        intake.limit(0, 1 << 30);
        assert!(intake.push(row(&[0; 2500])).is_ok());
        assert_eq!(rows(&mut intake, 0), [1]);
        // Batches are full at the configured size again.
        intake.next_turn();
        push(&mut intake, &[0; 400]);
        push(&mut intake, &[0; 400]);
        assert_eq!(rows(&mut intake, 0), []);
    }

    #[test]
    fn turns_skip_collectors_that_accept_nothing() {
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
