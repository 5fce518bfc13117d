//! Rows on disk until a collector has them: what a producer left when it ended, and what does not fit into memory.
//!
//! The spool of one collector is a log of its own. Its offsets count the rows of all runs; how they are numbered is kept in a
//! file of its own before the first row is sent. Which rows are acknowledged is noted now and then only: a collector knows
//! better, and is asked. What will never be sent is put aside, into files beside it.

mod aside;
mod files;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use zeroxide_log::{Batch, Log, LogConfig, LogError, Origin};

pub(crate) use crate::producer::spool::files::name_of;
use crate::producer::spool::files::{Kept, NUMBERS};
use crate::producer::window::Numbers;
use crate::producer::worker::wall;
use crate::producer::{Failure, encoded};

/// Files are removed as a whole: small ones go earlier.
const SEGMENT_BYTES: u64 = 16 << 20;

/// The name under which the spool notes what is acknowledged.
const ACKNOWLEDGED: &str = "acknowledged";

/// How many acknowledged rows may be unnoted.
const UNNOTED: u64 = 1 << 16;

/// How much of a spool is looked at at once.
const READ: usize = 4 << 20;

/// See the module text.
pub(crate) struct Spool {
    log: Log,
    dir: PathBuf,
    producer: Arc<str>,
    /// Whether rows are brought to the disk as they come, and not when the system likes.
    is_synced: bool,
    /// How offsets are numbered, and the epochs that sent rows.
    numbers: Option<Numbers>,
    /// The numbers could not be read: any row in here may have been sent under any of them.
    has_lost_numbers: bool,
    /// What was acknowledged when it was opened: the offset of the window's row 0.
    start: u64,
    /// Offsets below are acknowledged,
    acknowledged: u64,
    /// and below this one that is noted.
    noted: u64,
}

/// A batch of a former run.
pub(crate) struct Left {
    /// Its offsets.
    pub place: (u64, u64),
    /// None if it cannot be read.
    pub bytes: Option<Bytes>,
}

impl Spool {
    /// Opens the spool for rows of `producer` to the collector at `endpoint`, in a folder of its own below `dir`.
    pub(crate) fn open(
        dir: &Path,
        producer: &str,
        endpoint: &str,
        is_synced: bool,
    ) -> Result<Spool, LogError> {
        let dir = dir.join(folder_of(endpoint));
        let config = LogConfig {
            segment_bytes: SEGMENT_BYTES,
            ..LogConfig::default()
        };
        let log = Log::open(&dir, config)?;
        let kept = files::read_numbers(&dir)?;
        let since = match &kept {
            Kept::Numbers(numbers) => u64::try_from(numbers.since).unwrap_or(0),
            Kept::Nothing | Kept::Damaged => 0,
        };
        // Below that, rows had other numbers, and are seen to.
        let acknowledged = acknowledged_in(&log).max(since.min(log.next()));
        let has_lost_numbers = matches!(kept, Kept::Damaged);
        let numbers = match kept {
            // Nobody noted since when they hold.
            Kept::Numbers(numbers) if numbers.epochs.is_none() => Some(Numbers {
                since: acknowledged.cast_signed(),
                ..numbers
            }),
            Kept::Numbers(numbers) => Some(numbers),
            Kept::Nothing | Kept::Damaged => None,
        };
        Ok(Spool {
            log,
            dir,
            producer: producer.into(),
            is_synced,
            numbers,
            has_lost_numbers,
            start: acknowledged,
            acknowledged,
            noted: acknowledged,
        })
    }

    /// How the rows of a window are numbered that begins with the first one that is not acknowledged, once a collector was
    /// spoken to.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        let start = self.start.cast_signed();
        self.numbers.clone().map(|numbers| Numbers {
            base: numbers.base + start,
            since: numbers.since - start,
            ..numbers
        })
    }

    /// Whether nobody knows which numbers its rows may have been sent under.
    pub(crate) fn has_lost_numbers(&self) -> bool {
        self.has_lost_numbers
    }

    /// What was wrong with it when it was opened, in words.
    pub(crate) fn notes(&self) -> Vec<String> {
        let recovery = self.log.recovery();
        let mut notes = recovery.notes.clone();
        if recovery.dropped_bytes > 0 {
            notes.push(format!(
                "the spool {} ends with {} bytes that were not written to the end: they are dropped",
                self.dir.display(),
                recovery.dropped_bytes
            ));
        }
        notes
    }

    /// The greatest epoch in here.
    pub(crate) fn epoch(&self) -> u64 {
        let sent = self.numbers.iter().flat_map(|numbers| &numbers.epochs);
        let sent = sent.flatten().copied().max();
        let kept = self.log.last_seq(&self.producer).map(|(epoch, _)| epoch);
        sent.max(kept).unwrap_or(0)
    }

    /// What former runs left, in order.
    pub(crate) fn left(&self, mut each: impl FnMut(Left)) -> Result<(), LogError> {
        self.log.sync()?;
        let reader = self.log.reader();
        let (mut at, end) = (self.acknowledged, self.log.next());
        while at < end {
            let fetched = match reader.fetch(at, end, READ) {
                Ok(fetched) => fetched,
                Err(LogError::Corrupt { end: behind, .. }) if behind > at => {
                    let place = (at, behind.min(end));
                    at = place.1;
                    each(Left { place, bytes: None });
                    continue;
                }
                Err(error) => return Err(error),
            };
            for stored in fetched {
                let from = at.max(stored.first_offset);
                let skip = usize::try_from(from - stored.first_offset).unwrap_or(0);
                let batch = stored.batch.slice(skip, stored.rows() - skip);
                at = stored.end;
                each(Left {
                    place: (from, at),
                    bytes: Some(encoded(&batch)),
                });
            }
        }
        Ok(())
    }

    /// Keeps a batch; returns its offsets.
    pub(crate) fn append(&mut self, batch: &Batch, epoch: u64) -> Result<(u64, u64), LogError> {
        let origin = Origin {
            producer: self.producer.clone(),
            epoch,
            first_seq: self.log.next(),
            receive_time: wall().cast_signed(),
        };
        let range = self.log.append(&origin, batch)?;
        Ok((range.start, range.end))
    }

    /// What was kept so far survives a power cut from now on, if that was asked for.
    pub(crate) fn settle(&mut self) -> Result<(), LogError> {
        if self.is_synced {
            self.log.sync()?;
        }
        Ok(())
    }

    /// The wire form of the batch with these offsets.
    pub(crate) fn read(&mut self, place: (u64, u64)) -> Result<Bytes, LogError> {
        if self.log.durable() < place.1 {
            self.log.sync()?;
        }
        let found = self.log.reader().fetch(place.0, place.1, 1)?;
        let Some(stored) = found.first() else {
            return Err(LogError::OutOfRange {
                asked: place.0,
                earliest: self.log.earliest(),
                next: self.log.next(),
            });
        };
        let skip = usize::try_from(place.0 - stored.first_offset).unwrap_or(0);
        Ok(encoded(&stored.batch.slice(skip, stored.rows() - skip)))
    }

    /// Keeps how the rows of this run's window are numbered.
    pub(crate) fn set_numbers(&mut self, numbers: &Numbers) -> Result<(), LogError> {
        let start = self.start.cast_signed();
        let numbers = Numbers {
            base: numbers.base - start,
            since: numbers.since + start,
            ..numbers.clone()
        };
        files::write_numbers(&self.dir, &numbers)
            .map_err(|source| of_io(self.dir.join(NUMBERS), source))?;
        self.numbers = Some(numbers);
        Ok(())
    }

    /// Puts rows that will not be sent into a file of their own, which this returns.
    pub(crate) fn set_aside(
        &mut self,
        place: Option<(u64, u64)>,
        bytes: Option<Bytes>,
    ) -> Result<PathBuf, LogError> {
        let bytes = match (bytes, place) {
            (Some(bytes), _) => Ok(bytes),
            (None, Some(place)) => self.read(place),
            (None, None) => Err(LogError::from(zeroxide_log::BatchError::Malformed(
                "nothing",
            ))),
        };
        let at = place.map_or(self.log.next(), |(first, _)| first);
        match bytes {
            Ok(bytes) => aside::put_rows(&self.dir, at, bytes),
            Err(LogError::Corrupt { segment, .. }) => aside::put_damaged(&self.dir, at, &segment),
            Err(error) => Err(error),
        }
    }

    /// Everything below this offset is acknowledged.
    pub(crate) fn release(&mut self, end: u64) -> Result<(), LogError> {
        self.acknowledged = self.acknowledged.max(end);
        if self.acknowledged - self.noted < UNNOTED {
            return Ok(());
        }
        match self.note() {
            // What is not noted is found out from the collector.
            Err(error) if error.is_full() => Ok(()),
            noted => noted,
        }
    }

    /// Removes what is acknowledged, down to the last row: the disk is full. That this works is not certain either.
    pub(crate) fn make_room(&mut self) -> Result<(), LogError> {
        if self.acknowledged == self.log.next() {
            self.log.seal()?;
        }
        self.note()
    }

    fn note(&mut self) -> Result<(), LogError> {
        self.log.commit_group(ACKNOWLEDGED, self.acknowledged)?;
        self.log.trim(self.acknowledged)?;
        self.log.save()?;
        self.noted = self.acknowledged;
        Ok(())
    }

    /// Leaves everything to the next run.
    pub(crate) fn close(mut self) {
        // What cannot be noted is found out from the collector.
        let _ = self.note();
        let _ = self.log.close();
    }
}

/// The variant for what the system said about a small file of a spool.
fn of_io(path: PathBuf, source: io::Error) -> LogError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            LogError::Full {
                path,
                reason: source.to_string(),
            }
        }
        _ => LogError::Io {
            what: "write",
            path,
            source,
        },
    }
}

/// The folder of the rows for an endpoint.
fn folder_of(endpoint: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    endpoint
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

/// Below which offset everything was acknowledged, as far as was noted.
fn acknowledged_in(log: &Log) -> u64 {
    let noted = log.groups().get(ACKNOWLEDGED).copied().unwrap_or(0);
    noted.clamp(log.earliest(), log.next())
}

/// Fails if there are rows below `dir` for a collector that is not at one of the endpoints: nobody would send them, and once
/// this name has sent others there, they would count as delivered. To be called before the spools are opened.
pub(crate) fn check_others(dir: &Path, endpoints: &[String]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Spool(format!("{}: {error}", dir.display()));
    let own: Vec<String> = endpoints.iter().map(|one| folder_of(one)).collect();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let folder = entry.file_name().to_string_lossy().into_owned();
        if own.contains(&folder) || !is_log(&entry.path()) {
            continue;
        }
        let rows = match Log::open(&entry.path(), LogConfig::default()) {
            Ok(log) => log.next() - acknowledged_in(&log),
            // Another producer is about to send them.
            Err(LogError::Locked { .. }) => 0,
            Err(error) => return Err(Failure::spool(error)),
        };
        if rows > 0 {
            let mut text = format!(
                "the spool {} holds {rows} rows for {folder}: start once with that endpoint",
                dir.display()
            );
            for (endpoint, own) in endpoints.iter().zip(&own) {
                if !dir.join(own).exists() {
                    text += &format!(
                        ", or, if that collector is now at {endpoint}, rename the folder to {own}"
                    );
                }
            }
            return Err(Failure::Spool(text));
        }
    }
    Ok(())
}

/// Whether there are segments in a folder.
fn is_log(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "zlog"))
        })
    })
}
