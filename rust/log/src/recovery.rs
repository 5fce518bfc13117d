//! Opens a log: finds its segments, incomplete writes of a crash, and damage.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::book::Book;
use crate::disk::{self, File, OpenOptions};
use crate::error::LogError;
use crate::frame::{Header, OFFSET_MAX};
use crate::generations::{GENERATIONS, Generations, random};
use crate::lock::{self, Lock};
use crate::place::MISSING;
use crate::prepared;
use crate::private;
use crate::segment::{LogId, Segment, Step, Walk, begin_segment};
use crate::shared::{DURABLE, Shared, State, Written, mark};
use crate::snapshot::{self, Snapshot};

mod files;
mod tail;

use files::{SegmentFile, segment_files};
use tail::Tail;

/// The state in which a log was found when it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes at the end that were dropped. They were never acknowledged, because a crash interrupted their writing.
    pub dropped_bytes: u64,
    /// The file they were in.
    pub dropped_from: Option<PathBuf>,
    /// Offsets of acknowledged rows that cannot be read: fetching them is an error.
    pub damaged: Vec<Range<u64>>,
    /// Other irregularities, in words.
    pub notes: Vec<String>,
}

/// A log that has been opened.
pub(crate) struct Opened {
    pub shared: Arc<Shared>,
    pub lock: Lock,
    pub recovery: Recovery,
    pub position: u64,
    pub book: Book,
    pub sealed: Book,
    pub groups: BTreeMap<String, u64>,
    pub saved: u64,
}

/// Locks the folder and reads the necessary parts: all headers since the snapshot, and the whole last segment. The
/// contents of the last segment after `trusted` are dropped.
///
/// # Errors
/// Besides others, `Gone` if the folder does not hold the log `expected`.
pub(crate) fn open(
    dir: &Path,
    expected: Option<LogId>,
    trusted: Option<Written>,
) -> Result<Opened, LogError> {
    if expected.is_some() && !disk::exists(dir) {
        return Err(gone(dir, MISSING));
    }
    private::make_folder(dir).map_err(|error| LogError::from_io("create", dir, error))?;
    let (lock, place) = lock::take(dir)?;
    prepared::sweep(dir).map_err(|error| LogError::from_io("clean", dir, error))?;
    let mut recovery = Recovery::default();
    let found = Found::in_folder(dir, expected, &mut recovery)?;
    let id = found.id;
    let mut log = Segments::read(found, trusted, &mut recovery)?;
    let (file, position) = log.open_last(dir, &id, &mut recovery)?;
    let Segments { all, rebuilt, .. } = log;
    // The data of a killed process may be in the page cache only. If a sync of that process failed, the system takes
    // the data for written; `SegmentFile::write_again` has dealt with that case.
    file.sync_data()
        .map_err(|error| LogError::from_io("sync", dir, error))?;
    // The process may also have ended between renaming a file and syncing its name.
    disk::sync_folder(dir).map_err(|error| LogError::from_io("sync", dir, error))?;
    let (active, appended) = all
        .back()
        .map_or((0, 0), |segment| (segment.first, segment.end()));
    let written = Written {
        count: 0,
        segment: active,
        position,
    };
    let state = State {
        segments: all,
        appended,
        durable: appended,
        written,
        synced: written,
        active: Arc::new(file),
        generations: load_generations(dir, &mut recovery)?,
        failure: None,
    };
    let durable_path = dir.join(DURABLE);
    let durable_file = private::new_file().truncate(false).open(&durable_path);
    let durable_file =
        durable_file.map_err(|error| LogError::from_io("open", &durable_path, error))?;
    let shared = Shared::new(dir.to_owned(), id, place, durable_file, state);
    shared.write_durable(appended);
    Ok(Opened {
        shared: Arc::new(shared),
        lock,
        recovery,
        position,
        book: rebuilt.book,
        sealed: rebuilt.sealed_book,
        groups: rebuilt.groups,
        saved: rebuilt.saved,
    })
}

/// The snapshot and the segments of a folder, and the id of their log.
struct Found {
    id: LogId,
    snapshot: Option<Snapshot>,
    files: Vec<SegmentFile>,
    /// The mark of the last process: all rows below it have been on disk.
    synced: u64,
}

impl Found {
    /// Reads the snapshot and the headers of the segments. A folder without a log gets a new id.
    fn in_folder(
        dir: &Path,
        expected: Option<LogId>,
        recovery: &mut Recovery,
    ) -> Result<Found, LogError> {
        let snapshot = load_snapshot(dir, recovery)?;
        let is_missing = snapshot.is_none() && recovery.notes.is_empty();
        let known = snapshot.as_ref().map(|snapshot| snapshot.id);
        let synced = read_durable(dir)?;
        let acknowledged = snapshot.as_ref().map_or(synced, |snapshot| {
            snapshot.base.max(snapshot.durable).max(synced)
        });
        let files = segment_files(dir, known, acknowledged, recovery)?;
        let known = known.or_else(|| files.iter().find_map(|file| file.id));
        let id = match (known, expected) {
            (Some(id), Some(expected)) if id != expected => {
                return Err(gone(dir, "was replaced by that of another log"));
            }
            (None, Some(_)) => return Err(gone(dir, "was emptied")),
            (Some(id), _) => id,
            (None, None) => random()?,
        };
        if is_missing && !files.is_empty() {
            let path = dir.join(snapshot::NAME);
            recovery
                .notes
                .push(format!("{}: it is missing; {NO_SNAPSHOT}", path.display()));
        }
        Ok(Found {
            id,
            snapshot,
            files,
            synced,
        })
    }
}

fn gone(dir: &Path, what: &'static str) -> LogError {
    LogError::Gone {
        path: dir.to_owned(),
        what,
    }
}

/// The segments, and the state that they and the snapshot record.
struct Segments {
    all: VecDeque<Arc<Segment>>,
    /// The position for the next frame in the last one, if it can be continued.
    position: Option<u64>,
    rebuilt: Rebuilt,
    /// All rows below this offset have been on disk.
    durable: u64,
}

impl Segments {
    /// Reads what the snapshot does not cover, and repairs the end of the last segment.
    fn read(
        found: Found,
        trusted: Option<Written>,
        recovery: &mut Recovery,
    ) -> Result<Segments, LogError> {
        let synced = found.synced;
        let saved = found.snapshot.as_ref();
        let mut durable = saved.map_or(0, |snapshot| snapshot.durable).max(synced);
        // Segments are synced before they are sealed, and the snapshot is written after that.
        let synced_sealed = durable;
        let mut rebuilt = Rebuilt::from(found.snapshot);
        let mut all = VecDeque::new();
        let mut position = None;
        for (at, file) in found.files.iter().enumerate() {
            let next = found.files.get(at + 1).map(|next| next.first);
            let segment = match next {
                Some(end) => {
                    if end > synced_sealed {
                        file.sync_again(synced_sealed)?;
                    }
                    rebuilt.sealed(file, end, recovery)?
                }
                None => {
                    let tail = Tail::read(file, durable, trusted)?;
                    durable = tail.durable;
                    let kept = tail.keep(file, synced, &mut rebuilt, recovery)?;
                    let Some((segment, next)) = kept else {
                        continue;
                    };
                    position = next;
                    segment
                }
            };
            all.push_back(Arc::new(segment));
        }
        Ok(Segments {
            all,
            position,
            rebuilt,
            durable,
        })
    }

    /// Opens the last segment, or begins a new one. Returns its file, and the position for the next frame.
    fn open_last(
        &mut self,
        dir: &Path,
        id: &LogId,
        recovery: &mut Recovery,
    ) -> Result<(File, u64), LogError> {
        if let (Some(position), Some(segment)) = (self.position, self.all.back()) {
            let file = OpenOptions::new().write(true).open(&segment.path);
            let file = file.map_err(|error| LogError::from_io("open", &segment.path, error))?;
            return Ok((file, position));
        }
        let rebuilt = &mut self.rebuilt;
        if self.all.is_empty() && rebuilt.saved == 0 && self.durable == 0 {
            rebuilt.snapshot(*id).save(dir)?;
        }
        // Offsets are never assigned twice, even if their rows are lost.
        let end = self.all.back().map_or(0, |last| last.end());
        let first = end.max(self.durable).max(rebuilt.saved);
        let missing = rebuilt.latest.keys().next().copied();
        let missing = missing.unwrap_or(rebuilt.saved);
        if self.all.is_empty() && missing < first {
            // The files are missing in which these rows were. One without rows takes their place, so that readers get an
            // error.
            let (_, lost) = begin_segment(dir, id, missing, true)?;
            recovery.damaged.push(lost.first..first);
            let start = lost.bytes();
            let sealed = Segment::sealed(lost.first, lost.path, start, first, start, None);
            self.all.push_back(Arc::new(sealed));
        }
        let (file, segment) = begin_segment(dir, id, first, true)?;
        let position = segment.bytes();
        self.all.push_back(Arc::new(segment));
        rebuilt.sealed_book = rebuilt.book.clone();
        Ok((file, position))
    }
}

const NO_SNAPSHOT: &str = "all frames were read instead; groups, and the numbers of producers whose rows were all removed, are lost";

fn load_snapshot(dir: &Path, recovery: &mut Recovery) -> Result<Option<Snapshot>, LogError> {
    let loaded = Snapshot::load(dir).map_err(|error| LogError::from_io("read", dir, error))?;
    Ok(loaded.unwrap_or_else(|what| {
        let path = dir.join(snapshot::NAME);
        recovery
            .notes
            .push(format!("{}: {what}; {NO_SNAPSHOT}", path.display()));
        None
    }))
}

fn load_generations(dir: &Path, recovery: &mut Recovery) -> Result<Generations, LogError> {
    let loaded = Generations::load(dir).map_err(|error| LogError::from_io("read", dir, error))?;
    Ok(loaded.unwrap_or_else(|what| {
        let path = dir.join(GENERATIONS);
        let note = "whether a reader has read this log or another copy of it cannot be told";
        let note = format!("{}: {what}; {note}", path.display());
        recovery.notes.push(note);
        Generations::default()
    }))
}

/// The mark that the last process wrote; 0 if it is missing or damaged. One that cannot be read now is neither: without
/// it, acknowledged rows would count as an incomplete tail.
fn read_durable(dir: &Path) -> Result<u64, LogError> {
    let path = dir.join(DURABLE);
    let text = match disk::read_to_string(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {
            return Ok(0);
        }
        read => read.map_err(|error| LogError::from_io("read", &path, error))?,
    };
    let offset = text
        .split(' ')
        .next()
        .and_then(|digits| digits.parse().ok());
    Ok(offset
        .filter(|offset| mark(*offset) == text && *offset <= OFFSET_MAX)
        .unwrap_or(0))
}

/// The state recorded by frames and the snapshot together.
struct Rebuilt {
    book: Book,
    /// The book at the start of the last segment.
    sealed_book: Book,
    groups: BTreeMap<String, u64>,
    /// The snapshot covers everything below this offset.
    saved: u64,
    /// Greatest times of receipt, by first offset.
    latest: BTreeMap<u64, i64>,
}

impl From<Option<Snapshot>> for Rebuilt {
    fn from(snapshot: Option<Snapshot>) -> Rebuilt {
        let Some(snapshot) = snapshot else {
            return Rebuilt {
                book: Book::default(),
                sealed_book: Book::default(),
                groups: BTreeMap::new(),
                saved: 0,
                latest: BTreeMap::new(),
            };
        };
        Rebuilt {
            book: snapshot.book.clone(),
            sealed_book: snapshot.book,
            groups: snapshot.groups,
            saved: snapshot.base,
            latest: snapshot.segments.into_iter().collect(),
        }
    }
}

impl Rebuilt {
    fn snapshot(&self, id: LogId) -> Snapshot {
        Snapshot {
            id,
            base: 0,
            durable: 0,
            book: Book::default(),
            groups: self.groups.clone(),
            segments: Vec::new(),
        }
    }

    /// A sealed segment. Its headers are read only if the snapshot does not cover them.
    fn sealed(
        &mut self,
        file: &SegmentFile,
        end: u64,
        recovery: &mut Recovery,
    ) -> Result<Segment, LogError> {
        let make = |latest| {
            Segment::sealed(
                file.first,
                file.path.clone(),
                file.start,
                end,
                file.bytes,
                latest,
            )
        };
        // One without rows takes the place of files that are missing.
        if let Some(latest) = self.latest.get(&file.first)
            && end <= self.saved
            && file.bytes > file.start
        {
            return Ok(make(Some(*latest)));
        }
        let mut latest = None;
        let mut walk = Walk::new(&file.file, file.start, file.first, file.bytes).until(end);
        while let Some(step) = walk
            .next_frame()
            .map_err(|error| LogError::from_io("read", &file.path, error))?
        {
            match step {
                Step::Frame { header, .. } => {
                    latest = latest.max(Some(header.origin.receive_time));
                    self.note(&header);
                }
                Step::Damage {
                    first, end: behind, ..
                } => {
                    recovery.damaged.push(first..behind.unwrap_or(end));
                }
            }
        }
        if walk.offset() < end
            && recovery
                .damaged
                .last()
                .is_none_or(|damaged| damaged.end < end)
        {
            recovery.damaged.push(walk.offset()..end);
        }
        self.sealed_book = self.book.clone();
        Ok(make(latest))
    }

    fn note(&mut self, header: &Header) {
        if header.first_offset >= self.saved {
            self.book.note(
                &header.origin,
                header.role,
                header.first_offset..header.end(),
            );
        }
    }
}
