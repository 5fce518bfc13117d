//! The last rows of a log, for the collector's page.

use std::ops::Range;

use zeroxide_log::{LogError, Reader, Stored};

/// The most rows and bytes that are searched for rows of a topic.
const ROWS: u64 = 1 << 16;
const BYTES: usize = 8 << 20;

/// The number of rows that are read first.
const FIRST: u64 = 64;

/// The last rows, and the range that was searched for them.
#[derive(Debug, Default)]
pub struct Tail {
    /// Batches and positions in them; the last row comes first.
    pub rows: Vec<(Stored, usize)>,
    /// The start of the range that was searched. Damaged rows in it are left out.
    pub from: u64,
    /// The offset behind the last row on disk.
    pub end: u64,
}

/// Reads the last rows of a topic, or of all, at most `most`.
pub(super) fn read(reader: &Reader, topic: Option<&str>, most: usize) -> Result<Tail, LogError> {
    let (earliest, end) = reader.bounds();
    let floor = earliest.max(end.saturating_sub(ROWS));
    let mut tail = Tail {
        rows: Vec::new(),
        from: end,
        end,
    };
    let (mut step, mut left, mut grows) = (FIRST, BYTES, true);
    while tail.from > floor && tail.rows.len() < most && left > 0 {
        let start = tail.from.saturating_sub(step).max(floor);
        let stored = match reader.fetch(start, tail.from, left) {
            Ok(stored) => stored,
            // Damaged rows are skipped in growing steps. Rows that retention has removed end the search.
            Err(LogError::Corrupt { .. }) => {
                tail.from = start;
                step = step.saturating_mul(4);
                continue;
            }
            Err(LogError::OutOfRange { .. }) => break,
            Err(error) => return Err(error),
        };
        let reached = stored.last().map_or(start, |last| last.end);
        if reached < tail.from && step > 1 {
            // The limit was reached before the last rows, which are the ones that count.
            (step, grows) = ((step / 4).max(1), false);
            continue;
        }
        // The first batch may contain earlier rows.
        let start = stored
            .first()
            .map_or(start, |first| first.first_offset.clamp(earliest, start));
        left = left.saturating_sub(stored.iter().map(|stored| stored.bytes.len()).sum());
        take(&mut tail, &stored, start, topic, most);
        if grows {
            step = step.saturating_mul(4);
        }
    }
    Ok(tail)
}

/// Takes the rows from `start` on that were not searched yet, the last one first.
fn take(tail: &mut Tail, stored: &[Stored], start: u64, topic: Option<&str>, most: usize) {
    let Range { start, end } = start..tail.from;
    for stored in stored.iter().rev() {
        for row in stored.rows_within(&(start..end)).rev() {
            if tail.rows.len() == most {
                return;
            }
            tail.from = stored.offset(row);
            let own = stored.batch.topic(row).unwrap_or_default();
            if topic.is_none_or(|topic| topic == own) {
                tail.rows.push((stored.clone(), row));
            }
        }
    }
    tail.from = start;
}
