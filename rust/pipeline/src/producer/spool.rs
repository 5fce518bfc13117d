//! Rows on disk until a collector has them: what a producer left when it ended, and what does not fit into memory.
//!
//! The spool of one collector is a log of its own. Its offsets count the rows of all runs; `base` is the sequence number of
//! offset 0, kept in a file of its own before the first row is sent. Which rows are acknowledged is noted now and then only:
//! a collector knows better, and is asked.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use zeroxide_log::{Batch, Log, LogConfig, LogError, Origin, private};

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
    base: Option<u64>,
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
    pub bytes: Bytes,
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
        let base = read_base(&dir)?;
        let acknowledged = acknowledged_in(&log);
        Ok(Spool {
            log,
            dir,
            producer: producer.into(),
            is_synced,
            base,
            start: acknowledged,
            acknowledged,
            noted: acknowledged,
        })
    }

    /// The sequence number of the first row that is not acknowledged, once a collector was spoken to.
    pub(crate) fn first_seq(&self) -> Option<u64> {
        self.base.map(|base| base + self.acknowledged)
    }

    /// The greatest epoch in here.
    pub(crate) fn epoch(&self) -> u64 {
        self.log
            .last_seq(&self.producer)
            .map_or(0, |(epoch, _)| epoch)
    }

    /// What former runs left, in order.
    pub(crate) fn left(&self, mut each: impl FnMut(Left)) -> Result<(), LogError> {
        self.log.sync()?;
        let reader = self.log.reader();
        let (mut at, end) = (self.acknowledged, self.log.next());
        while at < end {
            for stored in reader.fetch(at, end, READ)? {
                let from = at.max(stored.first_offset);
                let skip = usize::try_from(from - stored.first_offset).unwrap_or(0);
                let batch = stored.batch.slice(skip, stored.rows() - skip);
                at = stored.end;
                each(Left {
                    place: (from, at),
                    bytes: encoded(&batch),
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

    /// A collector said which sequence number the first row of this run's window has.
    pub(crate) fn set_base(&mut self, base: u64) -> Result<(), LogError> {
        let base = base.saturating_sub(self.start);
        write_base(&self.dir, base).map_err(|source| {
            let path = self.dir.join(BASE);
            match source.kind() {
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::FileTooLarge => LogError::Full {
                    path,
                    reason: source.to_string(),
                },
                _ => LogError::Io {
                    what: "writing",
                    path,
                    source,
                },
            }
        })?;
        self.base = Some(base);
        Ok(())
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

const BASE: &str = "base";

fn read_base(dir: &Path) -> Result<Option<u64>, LogError> {
    let path = dir.join(BASE);
    match fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse() {
            Ok(base) => Ok(Some(base)),
            Err(_) => Err(LogError::Foreign {
                path,
                what: "it should hold a number".into(),
            }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LogError::Io {
            what: "reading",
            path,
            source,
        }),
    }
}

fn write_base(dir: &Path, base: u64) -> io::Result<()> {
    write_whole(&dir.join(BASE), &format!("{base}\n"))
}

/// Writes a small file so that there is either all of it or what was there before.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = private::new_file().truncate(true).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    match path.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

const NAME: &str = "producer";

/// The name that a spool's rows have: that of its first producer. Fails if it is another.
pub(crate) fn name_of(dir: &Path, wanted: Option<&str>, fresh: &str) -> io::Result<String> {
    private::make_folder(dir)?;
    let path = dir.join(NAME);
    match fs::read_to_string(&path) {
        Ok(kept) => {
            let kept = kept.trim_end_matches('\n');
            match wanted {
                Some(wanted) if wanted != kept => Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!(
                        "the spool {} belongs to producer {kept:?}, not {wanted:?}: use another folder, or that name",
                        dir.display()
                    ),
                )),
                _ => Ok(kept.to_owned()),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = wanted.unwrap_or(fresh);
            write_whole(&path, &format!("{name}\n"))?;
            Ok(name.to_owned())
        }
        Err(error) => Err(error),
    }
}
