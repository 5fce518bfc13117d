//! One file of the log: its header, and the index of its frames.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::disk::{self, File, FileExt};
use crate::error::LogError;
use crate::frame::{Header, OFFSET_MAX};
use crate::ipc;
use crate::private;

#[cfg(test)]
mod tests;
mod walk;

pub use walk::{ReadAt, next_frame};
pub(crate) use walk::{Step, Walk};

const SEGMENT_MAGIC: [u8; 8] = *b"ZXLOG\r\n\x01";
const VERSION: u32 = 1;

/// Bytes of a segment before Arrow's schema message.
const HEAD: usize = 48;

/// The interval, in bytes, at which positions in a segment are remembered.
const MARK_EVERY: u64 = 64 * 1024;

/// The id of a log: random, and the same in all its files.
pub type LogId = [u8; 16];

/// The first bytes of a segment: the header and the schema.
pub(crate) fn beginning(id: &LogId, first: u64) -> Vec<u8> {
    let schema = ipc::schema_message();
    let start = u32::try_from(HEAD + schema.len()).expect("a schema is short");
    let mut out = Vec::with_capacity(HEAD + schema.len());
    out.extend_from_slice(&SEGMENT_MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(id);
    out.extend_from_slice(&first.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out), &schema);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&schema);
    out
}

/// The number of bytes before the first frame.
pub(crate) fn beginning_len() -> u64 {
    beginning(&LogId::default(), 0).len() as u64
}

/// Creates the file of a new segment. A file of its name is replaced only if `replaces` is true, because it would be
/// that of another writer.
///
/// # Errors
/// The system's errors. Unless the file exists already, a part of it may be left.
pub(crate) fn begin_segment(
    dir: &Path,
    id: &LogId,
    first: u64,
    replaces: bool,
) -> Result<(File, Segment), LogError> {
    let path = path_of(dir, first);
    let bytes = beginning(id, first);
    let mut options = private::new_file();
    options.create_new(!replaces).truncate(replaces);
    let failed = |error| LogError::from_io("create", &path, error);
    // Without descriptors, this fails even if the file is that of another writer.
    let file = options.open(&path).map_err(failed)?;
    let write = || -> io::Result<()> {
        file.write_all_at(&bytes, 0)?;
        file.sync_all()?;
        disk::sync_folder(dir)
    };
    match write() {
        Ok(()) => Ok((file, Segment::new(first, path, bytes.len() as u64))),
        Err(error) => {
            let _ = disk::remove_file(&path); // an incomplete header
            Err(failed(error))
        }
    }
}

/// The name of the segment whose first offset is `first`.
pub(crate) fn file_name(first: u64) -> String {
    format!("{first:020}.zlog")
}

/// The first offset according to a file's name, if it is a segment's.
pub(crate) fn first_of_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".zlog")?;
    let first = (digits.len() == 20).then(|| digits.parse().ok())?;
    first.filter(|first| *first <= OFFSET_MAX)
}

const NOT_COMPLETE: &str = "its header is not complete";
pub(crate) const DAMAGED: &str = "its header is damaged";
const NO_SEGMENT: &str = "it is not a segment of a log";
const OTHER_VERSION: &str = "its format is another version's";

/// The reason why a file's header is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoBeginning {
    NotComplete,
    Damaged,
    /// It is not a header of this version, and its checksum is wrong: damage, if the file belongs to the log at all.
    Unlike(&'static str),
    /// It is a valid header of something else.
    Foreign(&'static str),
}

/// The contents of a segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The log to which it belongs.
    pub log_id: LogId,
    /// The offset of its first row.
    pub first_offset: u64,
    /// The position of the first frame.
    pub start: usize,
}

impl SegmentInfo {
    /// Reads the header of a segment from its first 64 KiB, or from the whole file if it is smaller.
    pub fn read(bytes: &[u8]) -> Result<SegmentInfo, &'static str> {
        let start = SegmentInfo::size(bytes)?;
        let whole = bytes.get(..start).ok_or(NOT_COMPLETE)?;
        if !SegmentInfo::is_right(whole) {
            return Err(DAMAGED);
        }
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let first_offset = number(32);
        if first_offset > OFFSET_MAX {
            return Err(DAMAGED);
        }
        Ok(SegmentInfo {
            log_id: std::array::from_fn(|byte| bytes[16 + byte]),
            first_offset,
            start,
        })
    }

    /// Whether the checksum of a header and its schema is correct.
    fn is_right(whole: &[u8]) -> bool {
        let crc = crc32c::crc32c_append(crc32c::crc32c(&whole[..40]), &whole[HEAD..]);
        u64::from(crc).to_le_bytes() == whole[40..HEAD]
    }

    /// The length of header and schema.
    fn size(bytes: &[u8]) -> Result<usize, &'static str> {
        let head = bytes.first_chunk::<HEAD>().ok_or(NOT_COMPLETE)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        if head[..8] != SEGMENT_MAGIC {
            return Err(NO_SEGMENT);
        }
        if word(8) != VERSION {
            return Err(OTHER_VERSION);
        }
        SegmentInfo::start(head)
    }

    fn start(head: &[u8; HEAD]) -> Result<usize, &'static str> {
        let word = u32::from_le_bytes(std::array::from_fn(|byte| head[12 + byte]));
        match word as usize {
            start @ HEAD..=65536 => Ok(start),
            _ => Err(DAMAGED),
        }
    }
}

/// A segment, sealed or being written to.
#[derive(Debug)]
pub(crate) struct Segment {
    pub first: u64,
    pub path: PathBuf,
    /// The position of the first frame.
    start: u64,
    index: Mutex<Index>,
}

/// The index of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    /// The offset after its last row.
    pub end: u64,
    /// The bytes of complete frames, and of the header before them.
    pub bytes: u64,
    /// The greatest known time of receipt; None if no frame has been seen and no snapshot has it.
    pub latest: Option<i64>,
    /// Positions to start from; None if the segment has not been walked.
    marks: Option<Vec<Mark>>,
}

/// A frame to start from.
#[derive(Debug, Clone, Copy)]
struct Mark {
    offset: u64,
    position: u64,
    /// The greatest time of receipt before it.
    latest: i64,
}

impl Segment {
    /// A segment that has just been created.
    pub fn new(first: u64, path: PathBuf, start: u64) -> Segment {
        let index = Index {
            end: first,
            bytes: start,
            latest: None,
            marks: Some(Vec::new()),
        };
        Segment {
            first,
            path,
            start,
            index: Mutex::new(index),
        }
    }

    /// The same segment without its frames.
    pub fn emptied(&self) -> Segment {
        Segment::new(self.first, self.path.clone(), self.start)
    }

    /// A sealed segment that has not been walked yet.
    pub fn sealed(
        first: u64,
        path: PathBuf,
        start: u64,
        end: u64,
        bytes: u64,
        latest: Option<i64>,
    ) -> Segment {
        let index = Index {
            end,
            bytes,
            latest,
            marks: None,
        };
        Segment {
            first,
            path,
            start,
            index: Mutex::new(index),
        }
    }

    /// Reads the id in the file's header and the position of the first frame.
    ///
    /// # Errors
    /// The system's errors. A header that cannot be read now is not a damaged one.
    pub fn read_beginning(
        file: &File,
        first: u64,
    ) -> io::Result<Result<(LogId, u64), NoBeginning>> {
        let Some(head) = read_start(file, HEAD)? else {
            return Ok(Err(NoBeginning::NotComplete));
        };
        let start = match SegmentInfo::size(&head) {
            Ok(start) => start,
            Err(what @ (NO_SEGMENT | OTHER_VERSION)) => {
                let start = head.first_chunk().map(SegmentInfo::start);
                let bytes = match start {
                    Some(Ok(start)) => read_start(file, start)?,
                    _ => None,
                };
                let is_meant = bytes.is_some_and(|bytes| SegmentInfo::is_right(&bytes));
                return Ok(Err(match is_meant {
                    true => NoBeginning::Foreign(what),
                    false => NoBeginning::Unlike(what),
                }));
            }
            Err(_) => return Ok(Err(NoBeginning::Damaged)),
        };
        let Some(bytes) = read_start(file, start)? else {
            return Ok(Err(NoBeginning::NotComplete));
        };
        let Ok(info) = SegmentInfo::read(&bytes) else {
            return Ok(Err(NoBeginning::Damaged));
        };
        if info.first_offset != first {
            let what = "its name says another offset than its header";
            return Ok(Err(NoBeginning::Foreign(what)));
        }
        Ok(Ok((info.log_id, info.start as u64)))
    }

    pub fn open(&self) -> Result<File, LogError> {
        File::open(&self.path).map_err(|error| LogError::from_io("open", &self.path, error))
    }

    /// Locks the index.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn end(&self) -> u64 {
        self.index().end
    }

    pub fn bytes(&self) -> u64 {
        self.index().bytes
    }

    /// Walks over the complete frames, from the one at `position`, which begins with `offset`.
    pub fn walk<'a>(&self, file: &'a File, position: u64, offset: u64) -> Walk<'a> {
        let (bytes, end) = {
            let index = self.index();
            (index.bytes, index.end)
        };
        Walk::new(file, position, offset, bytes).until(end)
    }

    /// The position to start from in search of `offset`, and the offset there.
    pub fn locate(&self, file: &File, offset: u64) -> (u64, u64) {
        self.walk_once(file);
        let index = self.index();
        let marks = index.marks.as_deref().unwrap_or_default();
        let behind = marks.partition_point(|mark| mark.offset <= offset);
        match behind.checked_sub(1) {
            Some(at) => (marks[at].position, marks[at].offset),
            None => (self.start, self.first),
        }
    }

    /// How many bytes to read at once from the frame at `position` on: whole frames of about `most` bytes, as far as
    /// the positions of frames are known, and at least one.
    pub fn stretch(&self, position: u64, most: usize) -> usize {
        let index = self.index();
        let marks = index.marks.as_deref().unwrap_or_default();
        let beyond = marks.partition_point(|mark| mark.position <= position + most as u64);
        let within = marks[..beyond].last().map(|mark| mark.position);
        let end = match (within, marks.get(beyond)) {
            (_, None) => index.bytes.min(position + most as u64),
            (Some(within), _) if within > position => within,
            (_, Some(next)) => next.position,
        };
        usize::try_from(end.saturating_sub(position)).unwrap_or(most)
    }

    /// The position of the row with this offset: interpolated within its frame, as if all its rows had the same size.
    pub fn position_of(&self, file: &File, offset: u64) -> io::Result<u64> {
        let (position, first) = self.locate(file, offset);
        let mut walk = self.walk(file, position, first);
        while let Some(step) = walk.next_frame()? {
            if let Step::Frame { position, header } = step
                && header.end() > offset
            {
                let rows = offset.saturating_sub(header.first_offset);
                return Ok(position + share(header.length as u64, rows, header.span));
            }
        }
        Ok(self.bytes())
    }

    /// The row at a position, by the same interpolation.
    pub fn row_at(&self, file: &File, position: u64) -> io::Result<u64> {
        self.walk_once(file);
        let (start, first, bytes, end) = {
            let index = self.index();
            let marks = index.marks.as_deref().unwrap_or_default();
            let behind = marks.partition_point(|mark| mark.position <= position);
            let mark = behind.checked_sub(1).map(|at| marks[at]);
            let (start, first) = mark.map_or((self.start, self.first), |mark| {
                (mark.position, mark.offset)
            });
            (start, first, index.bytes, index.end)
        };
        let mut walk = Walk::new(file, start, first, bytes).until(end);
        while let Some(step) = walk.next_frame()? {
            if let Step::Frame {
                position: at,
                header,
            } = step
                && at + header.length as u64 > position
            {
                let within = position.saturating_sub(at);
                let rows = share(header.span, within, header.length as u64);
                return Ok(header.first_offset + rows);
            }
        }
        Ok(end)
    }

    /// The first offset received at `time` or later; None if all rows were received earlier.
    pub fn offset_at(&self, time: i64) -> Result<Option<u64>, LogError> {
        if self.index().latest.is_some_and(|latest| latest < time) {
            return Ok(None);
        }
        let file = self.open()?;
        self.walk_once(&file);
        let (position, offset) = {
            let index = self.index();
            let marks = index.marks.as_deref().unwrap_or_default();
            let behind = marks.partition_point(|mark| mark.latest < time);
            match behind.checked_sub(1) {
                Some(at) => (marks[at].position, marks[at].offset),
                None => (self.start, self.first),
            }
        };
        let mut walk = self.walk(&file, position, offset);
        while let Some(step) = walk
            .next_frame()
            .map_err(|error| LogError::from_io("read", &self.path, error))?
        {
            if let Step::Frame { header, .. } = step
                && header.origin.receive_time >= time
                && header.span > 0
            {
                return Ok(Some(header.first_offset));
            }
        }
        Ok(None)
    }

    /// Builds the index of a sealed segment. Damaged frames are left out; fetching them reports the error. If a read
    /// fails, no index is kept, and the next call reads again: one failure must not hide the rows after it.
    fn walk_once(&self, file: &File) {
        let (end, bytes) = {
            let index = self.index();
            if index.marks.is_some() {
                return;
            }
            (index.end, index.bytes)
        };
        let mut found = Index {
            end,
            bytes: self.start,
            latest: None,
            marks: Some(Vec::new()),
        };
        let mut walk = Walk::new(file, self.start, self.first, bytes).until(end);
        loop {
            match walk.next_frame() {
                Ok(Some(Step::Frame { position, header })) => found.add(position, &header),
                Ok(Some(Step::Damage { .. })) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        let mut index = self.index();
        if index.marks.is_none() {
            // The snapshot also knows the times of rows that are damaged now.
            index.latest = index.latest.max(found.latest);
            index.marks = found.marks;
        }
    }
}

impl Index {
    /// Adds a frame to the index.
    pub fn add(&mut self, position: u64, header: &Header) {
        self.count(
            position,
            header.first_offset,
            header.end(),
            header.length as u64,
            header.origin.receive_time,
        );
    }

    /// The same, for a writer that has just written the frame.
    pub fn count(&mut self, position: u64, first: u64, end: u64, length: u64, receive_time: i64) {
        if let Some(marks) = &mut self.marks {
            let last = marks.last().map(|mark| mark.position);
            if last.is_none_or(|last| position - last >= MARK_EVERY) {
                marks.push(Mark {
                    offset: first,
                    position,
                    latest: self.latest.unwrap_or(i64::MIN),
                });
            }
        }
        self.latest = self.latest.max(Some(receive_time));
        (self.end, self.bytes) = (end, position + length);
    }
}

/// Reads the first bytes of a file; None if it has fewer.
fn read_start(file: &File, length: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; length];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// `whole` × `part` / `of`, without overflow.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    let share = u128::from(whole) * u128::from(part) / u128::from(of.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The path of a segment in a folder.
pub(crate) fn path_of(dir: &Path, first: u64) -> PathBuf {
    dir.join(file_name(first))
}
