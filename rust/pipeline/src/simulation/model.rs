//! What must hold: every row that was acknowledged is in the log once, at one offset that never changes.

use std::collections::{BTreeMap, HashMap};

use zeroxide_log::disk::simulated::quietly;
use zeroxide_log::{Batch, BatchBuilder, Row, Stored};

use crate::collector::simulated::Served;

/// A rule that a run broke, in words.
pub(super) type Wrong = String;

/// The name of a row, which is the beginning of its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name {
    /// The producer or the query.
    pub of: String,
    /// The number of the row; of a query, the number of the batch.
    pub number: u64,
    /// The number of the row in a batch of a query, how many the batch has, and the attempt that wrote it.
    pub part: Option<(u64, u64, u64)>,
}

impl Name {
    pub fn row(of: &str, number: u64) -> Name {
        Name {
            of: of.to_owned(),
            number,
            part: None,
        }
    }

    /// A value that begins with this name and has at least `length` bytes.
    pub fn value(&self, length: usize) -> Vec<u8> {
        let mut value = match self.part {
            None => format!("{} {}", self.of, self.number),
            Some((row, all, attempt)) => {
                format!("{} {} {row} {all} {attempt}", self.of, self.number)
            }
        };
        value.push(' ');
        while value.len() < length {
            value.push('.');
        }
        value.into_bytes()
    }

    pub fn parse(value: &[u8]) -> Option<Name> {
        let text = std::str::from_utf8(value).ok()?;
        let mut words = text.split(' ');
        let of = words.next()?.to_owned();
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        match *numbers.as_slice() {
            [number] => Some(Name::row(&of, number)),
            [number, row, all, attempt] => Some(Name {
                part: Some((row, all, attempt)),
                ..Name::row(&of, number)
            }),
            _ => None,
        }
    }
}

/// A batch of these values.
pub(super) fn batch_of(values: &[Vec<u8>]) -> Batch {
    timed_batch_of(values, None)
}

/// The same with a time for all rows.
pub(super) fn timed_batch_of(values: &[Vec<u8>], timestamp: Option<i64>) -> Batch {
    let mut builder = BatchBuilder::new();
    for value in values {
        let row = Row {
            value,
            timestamp,
            ..Row::default()
        };
        builder.push(row).expect("a small row");
    }
    builder.finish()
}

/// A statement of the collector that a row is on disk.
#[derive(Clone, Debug)]
struct Claim {
    row: Name,
    offset: Option<u64>,
    what: &'static str,
}

/// The rows of the log, as all readers have seen them.
#[derive(Default)]
pub(super) struct Model {
    rows: BTreeMap<u64, Name>,
    offsets: HashMap<Name, u64>,
    /// The last number of each producer.
    last: HashMap<String, u64>,
    end: u64,
    /// Rows below this offset may be removed.
    trimmed: u64,
    claims: Vec<Claim>,
    reads: Vec<(u64, Name)>,
}

impl Model {
    /// The collector said that this row is on disk, at this offset if it is known.
    pub fn claim(&mut self, row: Name, offset: Option<u64>, what: &'static str) {
        self.claims.push(Claim { row, offset, what });
    }

    /// A reader got this row from the collector.
    pub fn read(&mut self, offset: u64, row: Name) {
        self.reads.push((offset, row));
    }

    /// Rows below this offset may be removed from now on.
    pub fn trim(&mut self, before: u64) {
        self.trimmed = self.trimmed.max(before);
    }

    /// Where a row is.
    pub fn offset_of(&self, row: &Name) -> Option<u64> {
        let key = Name {
            part: row.part.map(|(row, all, _)| (row, all, 0)),
            ..row.clone()
        };
        self.offsets.get(&key).copied()
    }

    /// The offset after the last row.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Records the rows that have become durable, and checks what was said about them.
    pub fn observe(&mut self, served: &Served) -> Result<(), Wrong> {
        let (earliest, durable) = served.reader().bounds();
        if durable < self.end {
            return Err(format!(
                "the log ends at {durable}, but rows up to {} were on disk",
                self.end
            ));
        }
        self.check_earliest(earliest)?;
        if durable > self.end {
            let from = self.end.max(earliest);
            for (offset, name) in read(served, from, durable)? {
                self.add(offset, name)?;
            }
            self.end = durable;
            let last = self.rows.last_key_value();
            if let Some((
                offset,
                Name {
                    part: Some((row, all, _)),
                    ..
                },
            )) = last
                && row + 1 < *all
            {
                return Err(format!(
                    "the log ends at {durable} within the transaction of the row at {offset}"
                ));
            }
        }
        self.settle()
    }

    /// Reads the whole log again, and compares it with what was there before.
    pub fn verify(&mut self, served: &Served) -> Result<(), Wrong> {
        let (earliest, durable) = served.reader().bounds();
        self.check_earliest(earliest)?;
        let known = self.end.min(durable);
        for (offset, name) in read(served, earliest, known)? {
            match self.rows.get(&offset) {
                Some(known) if *known != name => {
                    return Err(format!("offset {offset} has {name:?}, but had {known:?}"));
                }
                _ => {}
            }
        }
        self.observe(served)
    }

    fn check_earliest(&self, earliest: u64) -> Result<(), Wrong> {
        match earliest > self.trimmed {
            true => Err(format!(
                "the log begins at {earliest}, but only rows below {} may be gone",
                self.trimmed
            )),
            false => Ok(()),
        }
    }

    fn add(&mut self, offset: u64, name: Name) -> Result<(), Wrong> {
        let key = Name {
            part: name.part.map(|(row, all, _)| (row, all, 0)),
            ..name.clone()
        };
        if let Some(before) = self.offsets.insert(key, offset) {
            return Err(format!("{name:?} is there twice, at {before} and {offset}"));
        }
        match name.part {
            None => {
                let last = self.last.insert(name.of.clone(), name.number);
                if last.is_some_and(|last| last >= name.number) {
                    return Err(format!("{name:?} at {offset} comes after {last:?}"));
                }
            }
            Some((0, ..)) => {
                let last = self.last.insert(name.of.clone(), name.number);
                if last.is_some_and(|last| last >= name.number) {
                    return Err(format!("batch {name:?} at {offset} comes after {last:?}"));
                }
            }
            Some((row, all, attempt)) => {
                let before = Name {
                    part: Some((row - 1, all, attempt)),
                    ..name.clone()
                };
                let before_it = self.rows.get(&(offset - 1)).filter(|row| {
                    let same = row.part.map(|(row, all, _)| (row, all));
                    row.of == name.of
                        && row.number == name.number
                        && same == before.part.map(|(row, all, _)| (row, all))
                });
                if before_it.is_none() {
                    return Err(format!("{name:?} at {offset} does not follow {before:?}"));
                }
            }
        }
        let within = self
            .rows
            .get(&offset.wrapping_sub(1))
            .and_then(|row| row.part);
        if let Some((row, all, _)) = within
            && row + 1 < all
            && name.part.is_none_or(|(next, ..)| next != row + 1)
        {
            return Err(format!("{name:?} at {offset} is within a transaction"));
        }
        self.rows.insert(offset, name);
        Ok(())
    }

    /// Checks what the collector has said.
    fn settle(&mut self) -> Result<(), Wrong> {
        for claim in std::mem::take(&mut self.claims) {
            let Some(there) = self.offset_of(&claim.row) else {
                return Err(format!(
                    "{:?} was {}, but is not in the log",
                    claim.row, claim.what
                ));
            };
            if claim.offset.is_some_and(|offset| offset != there) {
                return Err(format!(
                    "{:?} was {} at {:?}, but is at {there}",
                    claim.row, claim.what, claim.offset
                ));
            }
            if self.rows.get(&there).map(|row| row.part) != Some(claim.row.part) {
                return Err(format!(
                    "{:?} was {}, but the log has {:?}",
                    claim.row,
                    claim.what,
                    self.rows.get(&there)
                ));
            }
        }
        for (offset, row) in std::mem::take(&mut self.reads) {
            if self.rows.get(&offset) != Some(&row) {
                return Err(format!(
                    "a reader got {row:?} at {offset}, where the log has {:?}",
                    self.rows.get(&offset)
                ));
            }
        }
        Ok(())
    }
}

/// Reads rows directly, without disturbing the run.
fn read(served: &Served, from: u64, end: u64) -> Result<Vec<(u64, Name)>, Wrong> {
    let mut rows = Vec::new();
    let mut at = from;
    while at < end {
        let fetched = quietly(|| served.reader().fetch(at, end, 1 << 20));
        let fetched = fetched.map_err(|error| format!("rows from {at} on: {error}"))?;
        for stored in &fetched {
            rows.extend(
                named(stored)?
                    .into_iter()
                    .filter(|(offset, _)| *offset >= at && *offset < end),
            );
        }
        match fetched.last() {
            Some(last) if last.end > at => at = last.end,
            _ => return Err(format!("no rows from {at} on, and the log ends at {end}")),
        }
    }
    Ok(rows)
}

/// The rows of a frame.
pub(super) fn named(stored: &Stored) -> Result<Vec<(u64, Name)>, Wrong> {
    let rows = (0..stored.batch.rows()).map(|row| {
        let value = stored.batch.value(row);
        let name = Name::parse(value).ok_or_else(|| format!("a row with the value {value:?}"))?;
        Ok((stored.first_offset + row as u64, name))
    });
    rows.collect()
}
