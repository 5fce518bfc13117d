//! Walks from frame to frame of a segment, and past damage.

use std::io;

use bytes::Bytes;

use crate::disk::{self, File};
use crate::frame::{FIXED, Header, MAX_HEADER, NoHeader};

use search::Start;

mod search;

/// The item at a position of a segment.
#[derive(Debug)]
pub(crate) enum Step {
    /// A frame whose header is correct.
    Frame { position: u64, header: Header },
    /// Damaged bytes, up to the next frame or the end: offsets from `first` on are missing.
    Damage {
        position: u64,
        first: u64,
        /// The offset of the next frame; None at the end.
        end: Option<u64>,
        what: &'static str,
    },
}

/// The bytes of a segment: its file, or another place that has them.
pub trait ReadAt {
    /// Up to `length` bytes from `position` on; fewer only if the segment ends earlier.
    ///
    /// # Errors
    /// The system's errors.
    fn bytes_at(&self, position: u64, length: usize) -> io::Result<Bytes>;
}

/// Walks from header to header.
pub(crate) struct Walk<'a> {
    file: &'a dyn ReadAt,
    position: u64,
    /// The expected next offset.
    offset: u64,
    /// The number of valid bytes.
    bytes: u64,
    /// No frame has later offsets: even without values, the rows before it would not have fitted into the file.
    most: u64,
    window: Window,
}

/// The least number of bytes of a row: its position among the values.
const ROW_LEAST: u64 = 4;

/// Bytes read at once by a walk, which cover several headers of small frames.
const WALK_WINDOW: usize = 8 * 1024;

impl<'a> Walk<'a> {
    /// Walks from the frame at `position`, which begins with `offset`, to the end of `bytes`.
    pub fn new(file: &'a dyn ReadAt, position: u64, offset: u64, bytes: u64) -> Walk<'a> {
        Walk {
            file,
            position,
            offset,
            bytes,
            most: offset.saturating_add(bytes.saturating_sub(position) / ROW_LEAST),
            window: Window::default(),
        }
    }

    /// The same, in a segment whose rows end before the offset `end`.
    pub fn until(mut self, end: u64) -> Walk<'a> {
        self.most = self.most.min(end);
        self
    }

    /// The expected next offset.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// The bytes of a frame that was found.
    pub fn frame(&mut self, position: u64, header: &Header, ahead: usize) -> io::Result<Bytes> {
        let frame = self
            .window
            .get(self.file, position, header.length, ahead, self.bytes)?;
        Ok(frame.slice(..header.length.min(frame.len())))
    }

    /// The next header, or the damage in its place; None at the end.
    pub fn next_frame(&mut self) -> io::Result<Option<Step>> {
        self.next_reading(WALK_WINDOW)
    }

    /// The same, reading `ahead` bytes at once.
    pub fn next_reading(&mut self, ahead: usize) -> io::Result<Option<Step>> {
        if self.position >= self.bytes {
            return Ok(None);
        }
        let position = self.position;
        let (what, from) = match self.header_at(position, ahead)? {
            Ok(header) if header.first_offset == self.offset => {
                self.position = position + header.length as u64;
                self.offset = header.end();
                return Ok(Some(Step::Frame { position, header }));
            }
            // The next step returns this frame, unless a later one shows that it is none of the log's.
            Ok(header) if header.first_offset > self.offset => {
                ("the frames before it are missing", Start::Here(position))
            }
            Ok(_) => (
                "a frame stands where a later one should",
                Start::Behind(position),
            ),
            Err(NoHeader::Short) => ("the file ends within a frame", Start::Behind(position)),
            Err(NoHeader::Wrong(what)) => (what, Start::Behind(position)),
        };
        let first = self.offset;
        let next = self.search(from)?;
        self.position = next.map_or(self.bytes, |(next, _)| next);
        let end = next.map(|(_, offset)| offset);
        self.offset = end.unwrap_or(first);
        Ok(Some(Step::Damage {
            position,
            first,
            end,
            what,
        }))
    }

    /// The header at a position, if it is correct and its frame ends within the file.
    fn header_at(&mut self, position: u64, ahead: usize) -> io::Result<Result<Header, NoHeader>> {
        let mut get = |length| {
            let window = &mut self.window;
            window.get(self.file, position, length, ahead, self.bytes)
        };
        // The last frame of a window may be shorter than a header can be.
        let mut header = Header::read(&get(FIXED)?);
        if header == Err(NoHeader::Short) {
            header = Header::read(&get(MAX_HEADER)?);
        }
        Ok(match header {
            Ok(header) if header.is_picked => {
                Err(NoHeader::Wrong("rows that were picked for a reader"))
            }
            Ok(header) if position + header.length as u64 > self.bytes => Err(NoHeader::Short),
            other => other,
        })
    }
}

/// A section of a file in memory.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    /// The bytes from `position` on: at least `length`, or all up to `end` if there are fewer. If they have to be read,
    /// reads `ahead` bytes at once.
    fn get(
        &mut self,
        file: &dyn ReadAt,
        position: u64,
        length: usize,
        ahead: usize,
        end: u64,
    ) -> io::Result<Bytes> {
        let there = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX);
        let length = length.min(there);
        let offset = position
            .checked_sub(self.start)
            .and_then(|at| usize::try_from(at).ok());
        if let Some(offset) = offset
            && offset <= self.bytes.len()
            && self.bytes.len() - offset >= length
        {
            return Ok(self.bytes.slice(offset..));
        }
        self.bytes = file.bytes_at(position, length.max(ahead.min(there)))?;
        self.start = position;
        Ok(self.bytes.clone())
    }
}

impl ReadAt for File {
    fn bytes_at(&self, position: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = position + bytes.len() as u64;
            match disk::read_more(self, &mut bytes, at) {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        bytes.truncate(length);
        Ok(Bytes::from(bytes))
    }
}

/// The position and the first offset of the next frame in the first `bytes` bytes of a segment, whose rows end before the
/// offset `end`. It is the frame at `position` if that one is in order and begins with `offset`, and otherwise the next one
/// after damage; None if there is none.
///
/// # Errors
/// The errors of `segment`.
pub fn next_frame(
    segment: &dyn ReadAt,
    position: u64,
    offset: u64,
    bytes: u64,
    end: u64,
) -> io::Result<Option<(u64, u64)>> {
    let mut walk = Walk::new(segment, position, offset, bytes).until(end);
    Ok(match walk.next_frame()? {
        Some(Step::Frame { position, header }) => Some((position, header.first_offset)),
        Some(Step::Damage { end, .. }) => end.map(|end| (walk.position(), end)),
        None => None,
    })
}
