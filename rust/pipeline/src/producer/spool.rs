//! Keeps rows on disk until a collector has them: rows left by earlier runs, and rows that do not fit into memory.
//!
//! The spool of one collector is a log of its own. Its offsets count the rows of all runs. Their sequence numbers are
//! recorded in a separate file before the first row is sent. Acknowledgements are recorded only occasionally, because
//! the collector can be asked. Rows that will never be sent are moved to files next to the spool.

mod aside;
mod files;
mod whole;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use zeroxide_log::disk;
use zeroxide_log::{Batch, Log, LogConfig, LogError, Origin};

use crate::clock::wall;
pub(crate) use crate::producer::spool::files::name_of;
use crate::producer::spool::files::{Kept, NUMBERS};
use crate::producer::window::Numbers;
use crate::producer::{Failure, encoded};
use crate::wire::EPOCH_STEP;

/// Whole segments are removed, so small ones free their space earlier.
const SEGMENT_BYTES: u64 = if cfg!(zeroxide_disk) {
    4 << 10
} else {
    16 << 20
};

/// The name of the group that records which rows are acknowledged.
const ACKNOWLEDGED: &str = "acknowledged";

/// The maximum number of acknowledged rows that are not recorded.
const UNNOTED: u64 = if cfg!(zeroxide_disk) { 8 } else { 1 << 16 };

/// The maximum number of characters of an endpoint in the name of its folder.
const READABLE: usize = 100;

/// The number of bytes of a spool that are read at once.
const READ: usize = 4 << 20;

/// See the module text.
pub(crate) struct Spool {
    log: Log,
    dir: PathBuf,
    producer: Arc<str>,
    /// Whether each batch is synced to disk.
    is_synced: bool,
    /// The sequence numbers of the offsets, and the epochs that sent rows.
    numbers: Option<Numbers>,
    /// Whether the numbers could not be read, so that the rows may have been sent under any number.
    has_lost_numbers: bool,
    /// Whether no rows of earlier runs are missing.
    is_whole: bool,
    /// Whether that is so, or a collector has reported since which rows it has.
    is_counted: bool,
    /// The position when it was opened: the offset of the window's row 0.
    start: u64,
    /// The offset below which all rows are acknowledged.
    acknowledged: u64,
    /// The same, as recorded on disk.
    noted: u64,
}

/// A batch of an earlier run.
pub(crate) struct Left {
    /// Its offsets.
    pub place: (u64, u64),
    /// The epoch of the run that put it there; 0 if it cannot be read.
    pub epoch: u64,
    /// None if it cannot be read.
    pub bytes: Option<Bytes>,
}

impl Spool {
    /// Opens the spool for rows of `producer` to the collector at `endpoint`, in its own folder below `dir`.
    pub(crate) fn open(
        dir: &Path,
        producer: &str,
        endpoint: &str,
        is_synced: bool,
    ) -> Result<Spool, LogError> {
        // The program may change its working directory.
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let dir = dir.join(folder_of(endpoint));
        let config = LogConfig {
            segment_bytes: SEGMENT_BYTES,
            ..LogConfig::default()
        };
        let log = Log::open(&dir, config)?;
        let kept = files::read_numbers(&dir)?;
        let is_whole = matches!(kept, Kept::Nothing) || whole::is_whole(&dir);
        match is_whole {
            true => whole::note(&dir, is_synced),
            // It stays uncertain until a collector has answered, whichever run of the program that is.
            false => whole::forget(&dir),
        }
        let since = match &kept {
            Kept::Numbers(numbers) => u64::try_from(numbers.since).unwrap_or(0),
            Kept::Nothing | Kept::Damaged => 0,
        };
        // Earlier rows had other numbers and are settled.
        let acknowledged = acknowledged_in(&log).max(since.min(log.next()));
        let has_lost_numbers = matches!(kept, Kept::Damaged);
        let numbers = match kept {
            // An earlier version, which did not record since when the numbers apply.
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
            is_whole,
            is_counted: is_whole,
            start: acknowledged,
            acknowledged,
            noted: acknowledged,
        })
    }

    /// The sequence numbers of a window that begins with the first unacknowledged row, if a collector has answered
    /// before.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        let start = self.start.cast_signed();
        self.numbers.clone().map(|numbers| Numbers {
            base: numbers.base + start,
            since: numbers.since - start,
            ..numbers
        })
    }

    /// Whether it is unknown which numbers its rows may have been sent under.
    pub(crate) fn has_lost_numbers(&self) -> bool {
        self.has_lost_numbers
    }

    /// Whether the spool has all rows of earlier runs that were not acknowledged. Otherwise, the collector may have more
    /// rows than the spool knows of.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// A collector has reported which rows it has, and the numbers that follow from that are recorded. So rows of earlier runs
    /// that are missing here make no difference any more.
    pub(crate) fn on_counted(&mut self) {
        if !self.is_counted {
            self.is_counted = true;
            whole::note(&self.dir, self.is_synced);
        }
    }

    /// Irregularities found when it was opened, in words.
    pub(crate) fn notes(&self) -> Vec<String> {
        let recovery = self.log.recovery();
        let mut notes = recovery.notes.clone();
        if !self.is_whole {
            notes.push(format!(
                "the spool {} may lack rows that were not synced when the machine stopped; spool_sync keeps all",
                self.dir.display()
            ));
        }
        if recovery.dropped_bytes > 0 {
            notes.push(format!(
                "the spool {} ends with {} bytes that were not written to the end: they are dropped",
                self.dir.display(),
                recovery.dropped_bytes
            ));
        }
        notes
    }

    /// The epoch of a run that begins now: the time, or a later one than any in the spool if the clock is behind it. Two
    /// runs that continue copies of the spool then choose different ones. The collector would take them for one run, and
    /// rows of one for repetitions of the other's.
    pub(crate) fn next_epoch(&self) -> u64 {
        let (now, last) = (wall(), self.epoch());
        if last < now {
            return now;
        }
        let mut random = [0; 8];
        let step = match disk::random(&mut random) {
            Ok(()) => u64::from_le_bytes(random),
            Err(_) => now,
        };
        last.saturating_add(1 + step % EPOCH_STEP)
    }

    /// The greatest epoch in the spool.
    fn epoch(&self) -> u64 {
        let sent = self.numbers.iter().flat_map(|numbers| &numbers.epochs);
        let sent = sent.flatten().copied().max();
        let kept = self.log.last_seq(&self.producer).map(|(epoch, _)| epoch);
        sent.max(kept).unwrap_or(0)
    }

    /// Passes the batches of earlier runs to `each`, in order.
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
                    each(Left {
                        place,
                        epoch: 0,
                        bytes: None,
                    });
                    continue;
                }
                Err(error) => return Err(error),
            };
            if fetched.last().is_none_or(|stored| stored.end <= at) {
                // The log has a place for these rows, but does not find them there.
                each(Left {
                    place: (at, end),
                    epoch: 0,
                    bytes: None,
                });
                return Ok(());
            }
            for stored in fetched {
                let from = at.max(stored.first_offset);
                let skip = usize::try_from(from - stored.first_offset).unwrap_or(0);
                let batch = stored.batch.slice(skip, stored.rows() - skip);
                at = stored.end;
                each(Left {
                    place: (from, at),
                    epoch: stored.origin.epoch,
                    bytes: Some(encoded(&batch)),
                });
            }
        }
        Ok(())
    }

    /// Appends a batch; returns its offsets.
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

    /// Syncs the batches, if the spool is synced.
    pub(crate) fn settle(&mut self) -> Result<(), LogError> {
        if self.is_synced {
            self.log.sync()?;
        }
        Ok(())
    }

    /// Reads the batch with these offsets in its wire form.
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

    /// Records the sequence numbers of this run's window.
    pub(crate) fn set_numbers(&mut self, numbers: &Numbers) -> Result<(), LogError> {
        let start = self.start.cast_signed();
        let numbers = Numbers {
            base: numbers.base - start,
            since: numbers.since + start,
            ..numbers.clone()
        };
        self.log.check_place()?;
        files::write_numbers(&self.dir, &numbers)
            .map_err(|source| of_io(self.dir.join(NUMBERS), source))?;
        self.numbers = Some(numbers);
        Ok(())
    }

    /// Moves rows that will not be sent to a file of their own; returns its path.
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
        self.log.check_place()?;
        match bytes {
            Ok(bytes) => aside::put_rows(&self.dir, at, bytes, place.is_some()),
            Err(LogError::Corrupt { segment, .. }) => aside::put_damaged(&self.dir, at, &segment),
            Err(error) => Err(error),
        }
    }

    /// Records that all rows below this offset are acknowledged.
    pub(crate) fn release(&mut self, end: u64) -> Result<(), LogError> {
        self.acknowledged = self.acknowledged.max(end);
        if self.acknowledged - self.noted < UNNOTED {
            return Ok(());
        }
        match self.note() {
            // Unrecorded acknowledgements are recovered from the collector.
            Err(error) if error.is_passing() => Ok(()),
            noted => noted,
        }
    }

    /// Removes all acknowledged rows because the disk is full. This may fail as well.
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

    /// Closes the spool and leaves its rows to the next run.
    pub(crate) fn close(mut self) {
        // Unrecorded acknowledgements are recovered from the collector.
        let _ = self.note();
        if self.log.close().is_ok() && self.is_counted {
            whole::note(&self.dir, true);
        }
    }
}

/// The error variant for the system's error about a small file of a spool.
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

/// The folder of the rows for an endpoint. No two endpoints have the same one: a name in which an underscore may stand for
/// different characters, or that is too long for a folder, ends with a checksum of the endpoint.
fn folder_of(endpoint: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let readable = endpoint
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .take(READABLE);
    let mut folder: String = readable.collect();
    let address = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, address)| address);
    let is_host_and_port = |c: char| plain(c) || matches!(c, ':' | '[' | ']');
    if endpoint.len() > READABLE || !address.chars().all(is_host_and_port) {
        folder += &format!("-{:08x}", crc32c::crc32c(endpoint.as_bytes()));
    }
    folder
}

/// The recorded offset below which all rows were acknowledged.
fn acknowledged_in(log: &Log) -> u64 {
    let noted = log.groups().get(ACKNOWLEDGED).copied().unwrap_or(0);
    noted.clamp(log.earliest(), log.next())
}

/// Fails if there are rows below `dir` for a collector that is not among the endpoints. No producer would send them,
/// and once this name has sent other rows there, they would count as delivered. Call this before opening the spools.
pub(crate) fn check_others(dir: &Path, endpoints: &[String]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Spool(format!("{}: {error}", dir.display()));
    let own: Vec<String> = endpoints.iter().map(|one| folder_of(one)).collect();
    for entry in disk::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let folder = entry.file_name().to_string_lossy().into_owned();
        if own.contains(&folder) || !is_log(&entry.path()) {
            continue;
        }
        let rows = match Log::open(&entry.path(), LogConfig::default()) {
            Ok(log) => log.next() - acknowledged_in(&log),
            // Another producer has the spool open and will send them.
            Err(LogError::Locked { .. }) => 0,
            Err(error) => return Err(Failure::spool(error)),
        };
        if rows > 0 {
            let mut text = format!(
                "the spool {} holds {rows} rows for {folder}: start once with that endpoint",
                dir.display()
            );
            for (endpoint, own) in endpoints.iter().zip(&own) {
                if !disk::exists(&dir.join(own)) {
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

/// Whether a folder has segments.
fn is_log(dir: &Path) -> bool {
    disk::read_dir(dir).is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "zlog"))
        })
    })
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use std::fs;

    use zeroxide_log::{BatchBuilder, Row};

    use super::*;

    const ENDPOINT: &str = "tcp://127.0.0.1:9";

    fn open(dir: &Path) -> Spool {
        Spool::open(dir, "p", ENDPOINT, false).expect("a spool")
    }

    #[test]
    fn copies_of_a_spool_choose_different_epochs_even_if_the_clock_is_behind() {
        let dir = tempfile::tempdir().expect("a folder");
        let future = wall() + 3_600_000_000;
        let mut builder = BatchBuilder::new();
        builder.push(Row::default()).expect("a row");
        let mut spool = open(dir.path());
        spool.append(&builder.finish(), future).expect("appended");
        spool.close();
        let copy = tempfile::tempdir().expect("a folder");
        let name = folder_of(ENDPOINT);
        fs::create_dir(copy.path().join(&name)).expect("a folder");
        for entry in fs::read_dir(dir.path().join(&name)).expect("a folder") {
            let entry = entry.expect("a file");
            let to = copy.path().join(&name).join(entry.file_name());
            fs::copy(entry.path(), to).expect("copied");
        }
        let epochs = [&dir, &copy].map(|dir| open(dir.path()).next_epoch());
        assert_ne!(epochs[0], epochs[1]);
        for epoch in epochs {
            assert!((future + 1..=future + EPOCH_STEP).contains(&epoch));
        }
    }

    #[test]
    fn rows_that_are_set_aside_replace_no_others() {
        let dir = tempfile::tempdir().expect("a folder");
        let rows = |value: &[u8]| {
            let mut builder = BatchBuilder::new();
            let row = Row {
                value,
                ..Row::default()
            };
            builder.push(row).expect("a row");
            builder.finish()
        };
        let mut kept = Vec::new();
        // Spools that were removed, whose offsets begin anew. The last run repeats what the one before it did.
        for value in ["one", "two", "three", "three"] {
            let mut spool = open(dir.path());
            let batch = rows(value.as_bytes());
            let place = spool.append(&batch, 1).expect("appended");
            let path = spool.set_aside(Some(place), None).expect("set aside");
            kept.push((path, batch.to_stream().expect("a stream")));
            spool.close();
            fs::remove_dir_all(dir.path().join(folder_of(ENDPOINT))).expect("removed");
        }
        for (path, stream) in &kept {
            assert_eq!(&fs::read(path).expect("a file"), stream);
        }
        kept.dedup();
        let files = fs::read_dir(dir.path().join("set-aside")).expect("a folder");
        assert_eq!((files.count(), kept.len()), (3, 3));

        // Without a place in the spool, as after a write to it has failed.
        let mut spool = open(dir.path());
        let mut paths = ["four", "five", "five"].map(|value| {
            let bytes = Some(encoded(&rows(value.as_bytes())));
            spool.set_aside(None, bytes).expect("set aside")
        });
        paths.sort();
        assert!(paths[0] != paths[1] && paths[1] != paths[2]);
    }

    #[test]
    fn each_endpoint_has_a_folder_of_its_own() {
        let long = format!("ipc:///{}", "a".repeat(300));
        let endpoints = [
            "tcp://127.0.0.1:9",
            "tcp://[::1]:9",
            "tls+tcp://127.0.0.1:9",
            "ipc:///run/a/b",
            "ipc:///run/a_b",
            "ipc://@a/b",
            &long,
            &format!("{long}b"),
        ];
        let mut folders: Vec<String> = endpoints.into_iter().map(folder_of).collect();
        assert_eq!(folders[0], "tcp___127.0.0.1_9");
        assert!(folders.iter().all(|folder| folder.len() < 255));
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), endpoints.len());
    }

    #[test]
    fn an_epoch_is_the_time_if_the_clock_is_right() {
        let dir = tempfile::tempdir().expect("a folder");
        let before = wall();
        let epoch = open(dir.path()).next_epoch();
        assert!((before..=wall()).contains(&epoch));
    }
}
