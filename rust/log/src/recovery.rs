//! Opens a log: finds its segments, incomplete writes of a crash, and damage.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::book::Book;
use crate::disk::{self, File, FileExt, OpenOptions};
use crate::error::LogError;
use crate::frame::{Header, OFFSET_MAX, Role};
use crate::generations::{GENERATIONS, Generations, random};
use crate::lock::{self, Lock};
use crate::place::MISSING;
use crate::prepared;
use crate::private;
use crate::segment::{
    DAMAGED, LogId, NoBeginning, Segment, Step, Walk, begin_segment, beginning_len, first_of_name,
    path_of,
};
use crate::shared::{DURABLE, Shared, State, Written, mark};
use crate::snapshot::{self, Snapshot};

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
    let gone = |what| LogError::Gone {
        path: dir.to_owned(),
        what,
    };
    if expected.is_some() && !disk::exists(dir) {
        return Err(gone(MISSING));
    }
    private::make_folder(dir).map_err(|error| LogError::from_io("create", dir, error))?;
    let (lock, place) = lock::take(dir)?;
    prepared::sweep(dir).map_err(|error| LogError::from_io("clean", dir, error))?;
    let mut recovery = Recovery::default();
    let snapshot = load_snapshot(dir, &mut recovery)?;
    let is_missing = snapshot.is_none() && recovery.notes.is_empty();
    let files = segment_files(
        dir,
        snapshot.as_ref().map(|snapshot| snapshot.id),
        &mut recovery,
    )?;
    let known = snapshot.as_ref().map(|snapshot| snapshot.id);
    let known = known.or_else(|| files.iter().find_map(|file| file.id));
    let id = match (known, expected) {
        (Some(id), Some(expected)) if id != expected => {
            return Err(gone("was replaced by that of another log"));
        }
        (None, Some(_)) => return Err(gone("was emptied")),
        (Some(id), _) => id,
        (None, None) => random()?,
    };
    if is_missing && !files.is_empty() {
        let path = dir.join(snapshot::NAME);
        recovery
            .notes
            .push(format!("{}: it is missing; {NO_SNAPSHOT}", path.display()));
    }
    let synced = read_durable(dir)?;
    let mut durable = snapshot
        .as_ref()
        .map_or(0, |snapshot| snapshot.durable)
        .max(synced);
    // Segments are synced before they are sealed, and the snapshot is written after that.
    let synced_sealed = durable;
    let mut rebuilt = Rebuilt::from(snapshot);
    let mut segments = VecDeque::new();
    let mut active = None;
    for (at, file) in files.iter().enumerate() {
        let next = files.get(at + 1).map(|next| next.first);
        let segment = match next {
            Some(end) => {
                if end > synced_sealed {
                    file.sync_again(synced_sealed)?;
                }
                rebuilt.sealed(file, end, &mut recovery)?
            }
            None => {
                let tail = Tail::read(file, durable, trusted)?;
                durable = tail.durable;
                let kept = tail.keep(file, synced, &mut rebuilt, &mut recovery)?;
                let Some((segment, position)) = kept else {
                    continue;
                };
                active = position;
                segment
            }
        };
        segments.push_back(Arc::new(segment));
    }
    let is_new = segments.is_empty() && rebuilt.saved == 0 && durable == 0;
    let (file, position) = match (active, segments.back()) {
        (Some(position), Some(segment)) => {
            let file = OpenOptions::new().write(true).open(&segment.path);
            (
                file.map_err(|error| LogError::from_io("open", &segment.path, error))?,
                position,
            )
        }
        _ => {
            // Offsets are never assigned twice, even if their rows are lost.
            let first = segments
                .back()
                .map_or(0, |last| last.end())
                .max(durable)
                .max(rebuilt.saved);
            if is_new {
                rebuilt.snapshot(id).save(dir)?;
            }
            let (file, segment) = begin_segment(dir, &id, first, true)?;
            let position = segment.bytes();
            segments.push_back(Arc::new(segment));
            rebuilt.sealed_book = rebuilt.book.clone();
            (file, position)
        }
    };
    // The data of a killed process may be in the page cache only. If a sync of that process failed, the system takes
    // the data for written; `SegmentFile::write_again` has dealt with that case.
    file.sync_data()
        .map_err(|error| LogError::from_io("sync", dir, error))?;
    // The process may also have ended between renaming a file and syncing its name.
    disk::sync_folder(dir).map_err(|error| LogError::from_io("sync", dir, error))?;
    let (active, appended) = segments
        .back()
        .map_or((0, 0), |segment| (segment.first, segment.end()));
    let written = Written {
        count: 0,
        segment: active,
        position,
    };
    let state = State {
        segments,
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

/// A segment's file.
struct SegmentFile {
    first: u64,
    path: PathBuf,
    file: File,
    bytes: u64,
    /// The id in its header; None if that cannot be read.
    id: Option<LogId>,
    start: u64,
}

impl SegmentFile {
    /// Rewrites data in place that may not be on disk, and syncs it. An earlier process may have seen a sync fail. The
    /// page cache then has the data marked as written, so another sync alone would not write it.
    fn write_again(&self, bytes: Range<u64>) -> Result<(), LogError> {
        let failed = |what| move |error| LogError::from_io(what, &self.path, error);
        let writable = OpenOptions::new().write(true).open(&self.path);
        let writable = writable.map_err(failed("open"))?;
        let mut chunk = vec![0; AT_ONCE];
        let mut position = bytes.start;
        while position < bytes.end {
            let length =
                usize::try_from(bytes.end - position).map_or(AT_ONCE, |rest| rest.min(AT_ONCE));
            let chunk = &mut chunk[..length];
            self.file
                .read_exact_at(chunk, position)
                .map_err(failed("read"))?;
            writable
                .write_all_at(chunk, position)
                .map_err(failed("write"))?;
            position += length as u64;
        }
        writable.sync_data().map_err(failed("sync"))
    }

    /// The same for a sealed segment with rows that are not below `synced`.
    fn sync_again(&self, synced: u64) -> Result<(), LogError> {
        let mut walk = Walk::new(&self.file, self.start, self.first, self.bytes);
        let failed = |error| LogError::from_io("read", &self.path, error);
        while let Some(step) = walk.next_frame().map_err(failed)? {
            let (position, first, end) = match step {
                Step::Frame { position, header } => {
                    (position, header.first_offset, Some(header.end()))
                }
                Step::Damage {
                    position,
                    first,
                    end,
                    ..
                } => (position, first, end),
            };
            if !is_below(first, end, synced) {
                return self.write_again(position..self.bytes);
            }
        }
        Ok(())
    }
}

/// The number of bytes per write when a tail is rewritten.
const AT_ONCE: usize = 1 << 20;

/// Whether rows were on disk once everything below `synced` was. A frame without rows at the mark may not have been.
fn is_below(first: u64, end: Option<u64>, synced: u64) -> bool {
    first < synced && end.is_some_and(|end| end <= synced)
}

/// The segments of a folder in order; all must belong to one log.
fn segment_files(
    dir: &Path,
    id: Option<LogId>,
    recovery: &mut Recovery,
) -> Result<Vec<SegmentFile>, LogError> {
    let failed = |error: io::Error| LogError::from_io("read", dir, error);
    let mut firsts = Vec::new();
    for entry in disk::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        firsts.extend(name.to_str().and_then(first_of_name));
    }
    firsts.sort_unstable();
    let mut files: Vec<SegmentFile> = Vec::with_capacity(firsts.len());
    let mut unlike = None;
    for (at, first) in firsts.iter().enumerate() {
        let path = path_of(dir, *first);
        let failed = |error: io::Error| LogError::from_io("open", &path, error);
        let file = File::open(&path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let foreign = |what: &str| LogError::Foreign {
            path: path.clone(),
            what: what.to_owned(),
        };
        let beginning = Segment::read_beginning(&file, *first)
            .map_err(|error| LogError::from_io("read", &path, error))?;
        let (own, start) = match beginning {
            Ok((own, start)) => (Some(own), start),
            Err(NoBeginning::NotComplete) if at + 1 == firsts.len() && bytes < beginning_len() => {
                // A crash came between creating the file and writing its header, so no row was in it.
                recovery.dropped_bytes += bytes;
                recovery.dropped_from = Some(path.clone());
                disk::remove_file(&path)
                    .map_err(|error| LogError::from_io("remove", &path, error))?;
                continue;
            }
            Err(NoBeginning::Foreign(what)) => return Err(foreign(what)),
            Err(why) => {
                if let NoBeginning::Unlike(what) = why {
                    unlike = unlike.or_else(|| Some(foreign(what)));
                }
                recovery
                    .notes
                    .push(format!("{}: {DAMAGED}", path.display()));
                (None, beginning_len())
            }
        };
        let known = id.or_else(|| files.iter().find_map(|file| file.id));
        if let (Some(own), Some(known)) = (own, known)
            && own != known
        {
            return Err(foreign(
                "it belongs to another log; a folder holds one log only",
            ));
        }
        files.push(SegmentFile {
            first: *first,
            path,
            file,
            bytes,
            id: own,
            start,
        });
    }
    let is_known = id.is_some() || files.iter().any(|file| file.id.is_some());
    match unlike {
        Some(foreign) if !is_known => Err(foreign),
        _ => Ok(files),
    }
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
        if let Some(latest) = self.latest.get(&file.first)
            && end <= self.saved
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

/// The last segment, read completely.
struct Tail {
    items: Vec<Item>,
    /// Rows below this offset have been on disk, because later frames record it.
    durable: u64,
    /// Data from this position of the file on may be in the page cache only.
    trusted: u64,
    end: u64,
}

/// A frame, or damage in its place.
struct Item {
    position: u64,
    first: u64,
    frame: Option<TailFrame>,
    /// The offset after the frame or the damage, if it is known.
    end: Option<u64>,
}

struct TailFrame {
    header: Header,
    /// Whether its rows match their checksum.
    is_whole: bool,
}

impl Tail {
    fn read(file: &SegmentFile, durable: u64, trusted: Option<Written>) -> Result<Tail, LogError> {
        let failed = |error: io::Error| LogError::from_io("read", &file.path, error);
        let mut walk = Walk::new(&file.file, file.start, file.first, file.bytes);
        let (mut items, mut durable) = (Vec::new(), durable);
        let mut is_found = false;
        while let Some(step) = walk.next_reading(1 << 20).map_err(failed)? {
            items.push(match step {
                Step::Frame { position, header } => {
                    // The first frame after damage may be a value that looks like one.
                    if !std::mem::take(&mut is_found) {
                        durable = durable.max(header.durable);
                    }
                    let bytes = walk.frame(position, &header, 1 << 20).map_err(failed)?;
                    let is_whole = header.fits(&bytes);
                    Item {
                        position,
                        first: header.first_offset,
                        end: Some(header.end()),
                        frame: Some(TailFrame { header, is_whole }),
                    }
                }
                Step::Damage {
                    position,
                    first,
                    end,
                    ..
                } => {
                    is_found = true;
                    Item {
                        position,
                        first,
                        end,
                        frame: None,
                    }
                }
            });
        }
        let end = walk.offset();
        Ok(Tail {
            items,
            durable,
            trusted: match trusted {
                Some(trusted) if trusted.segment == file.first => trusted.position,
                Some(trusted) if trusted.segment < file.first => 0,
                _ => u64::MAX,
            },
            end,
        })
    }

    /// Drops rows that were never acknowledged. Returns the segment, with the position for the next frame if it can be
    /// continued. It cannot if its header is damaged: the next opening could take it for a file that never had rows.
    /// Nor can it if acknowledged rows are missing at its end; it then stays unchanged, for inspection. Returns None if
    /// its header is damaged and it has no rows, because it is then written anew. Data that stays and is not below
    /// `synced` is rewritten.
    fn keep(
        mut self,
        file: &SegmentFile,
        synced: u64,
        rebuilt: &mut Rebuilt,
        recovery: &mut Recovery,
    ) -> Result<Option<(Segment, Option<u64>)>, LogError> {
        let cut = self.cut();
        let mut kept = file.bytes;
        if let Some(cut) = cut {
            let item = &self.items[cut];
            let (position, first) = (item.position, item.first);
            let writable = OpenOptions::new().write(true).open(&file.path);
            let cut_off = writable.and_then(|writable| writable.set_len(position));
            cut_off.map_err(|error| LogError::from_io("truncate", &file.path, error))?;
            recovery.dropped_bytes += file.bytes - position;
            recovery.dropped_from = Some(file.path.clone());
            self.items.truncate(cut);
            self.end = first;
            kept = position;
        }
        let mut items = self.items.iter();
        let from = match items.position(|item| !is_below(item.first, item.end, synced)) {
            // If no row of the file was on disk, its header may not have been either.
            Some(0) => Some(0),
            None if self.items.is_empty() => Some(0),
            unproven => unproven.map(|at| self.items[at].position),
        };
        if let Some(from) = from {
            file.write_again(from..kept)?;
        }
        let segment = Segment::new(file.first, file.path.clone(), file.start);
        let mut index = segment.index();
        for item in &self.items {
            match &item.frame {
                Some(TailFrame { header, is_whole }) => {
                    index.add(item.position, header);
                    rebuilt.note(header);
                    if !is_whole {
                        recovery.damaged.push(header.first_offset..header.end());
                    }
                }
                None => recovery
                    .damaged
                    .push(item.first..item.end.unwrap_or(self.durable)),
            }
        }
        let position = index.bytes;
        let is_lost =
            index.end < self.durable || self.items.last().is_some_and(|item| item.frame.is_none());
        let latest = index.latest;
        drop(index);
        let is_damaged = file.id.is_none();
        if !is_lost && !is_damaged {
            return Ok(Some((segment, Some(position))));
        }
        let end = self.end.max(self.durable);
        if is_damaged && end == file.first {
            return Ok(None);
        }
        if is_lost
            && recovery
                .damaged
                .last()
                .is_none_or(|damaged| damaged.end < end)
        {
            recovery.damaged.push(self.end..end);
        }
        let bytes = if cut.is_some() { position } else { file.bytes };
        let sealed = Segment::sealed(
            file.first,
            file.path.clone(),
            file.start,
            end,
            bytes,
            latest,
        );
        Ok(Some((sealed, None)))
    }

    /// The first item that was never acknowledged and is incomplete, or begins an incomplete transaction.
    fn cut(&self) -> Option<usize> {
        let mut open = None;
        for (at, item) in self.items.iter().enumerate() {
            if item.position >= self.trusted {
                return open.or(Some(at));
            }
            let is_acknowledged = item.first < self.durable;
            match &item.frame {
                Some(frame) if frame.is_whole => match frame.header.role {
                    Role::Part => open = open.or(Some(at)),
                    Role::Last | Role::Single => open = None,
                },
                _ if is_acknowledged => open = None,
                _ => return open.or(Some(at)),
            }
        }
        open
    }
}
