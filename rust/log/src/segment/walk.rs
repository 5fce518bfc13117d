//! Walks from frame to frame of a segment, and past damage.

use std::cmp::Ordering;
use std::io;

use bytes::Bytes;

use crate::disk::{self, File};
use crate::frame::{FIXED, Header, MAGIC, MAX_HEADER, NoHeader};

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

/// The number of bytes after damage in which the next frame is looked for, once there is a frame that may be it.
const SEARCH_MOST: u64 = 64 << 20;

/// The number of bytes of frames whose checksums turn out wrong, after which no more are checked during one search.
const WRONG_MOST: u64 = 256 << 20;

/// Bytes read at once by a walk, which cover several headers of small frames.
const WALK_WINDOW: usize = 8 * 1024;

/// Bytes read at once in search of the next frame after damage.
const SEARCH_WINDOW: usize = 1 << 20;

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
        let (header, what, from) = match self.header_at(position, ahead)? {
            Ok(header) if header.first_offset == self.offset => (Some(header), "", position),
            // The next step returns this frame, unless a later one shows that it is none of the log's.
            Ok(header) if header.first_offset > self.offset => {
                (None, "the frames before it are missing", position)
            }
            Ok(_) => (
                None,
                "a frame stands where a later one should",
                position + 8,
            ),
            Err(NoHeader::Short) => (None, "the file ends within a frame", position + 8),
            Err(NoHeader::Wrong(what)) => (None, what, position + 8),
        };
        if let Some(header) = header {
            self.position = position + header.length as u64;
            self.offset = header.end();
            return Ok(Some(Step::Frame { position, header }));
        }
        let first = self.offset;
        let next = self.search(position, from)?;
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

    /// Searches for the next frame after the damage at `damaged`, from `from` on. Returns its position and its first offset.
    ///
    /// A row's value can be a frame, with any offset and with right checksums. Inside damage, it looks like a frame of the
    /// log. But offsets rise from frame to frame, so what looks like a frame is none if a later frame has an offset below its
    /// end. And damage costs at least one row, except in a frame that says that it has none.
    fn search(&mut self, damaged: u64, from: u64) -> io::Result<Option<(u64, u64)>> {
        let mut end = self.bytes;
        let claims = self.claims(damaged)?;
        let (mut found, mut torn) = (None::<(u64, Header)>, None);
        let mut wrong = 0;
        let mut position = from.next_multiple_of(8);
        while position < end {
            let bytes = self.window.get(
                self.file,
                position,
                SEARCH_WINDOW,
                SEARCH_WINDOW,
                self.bytes,
            )?;
            let mut at = 0;
            while at + MAGIC.len() <= bytes.len() {
                let here = position + at as u64;
                at += 8;
                if !bytes[at - 8..].starts_with(&MAGIC) {
                    continue;
                }
                let Ok(header) = self.header_at(here, MAX_HEADER)? else {
                    continue;
                };
                let first = header.first_offset;
                let may_follow = self.may_follow(claims, here, &header);
                let length = header.length as u64;
                let is_whole = wrong < WRONG_MOST && header.fits(&self.frame(here, &header, 0)?);
                if !is_whole {
                    wrong += length;
                    torn = torn.or(may_follow.then_some((here, first)));
                    continue;
                }
                let is_lower = |found: &(u64, Header)| first < found.1.end();
                if may_follow && first == self.offset {
                    return Ok(Some((here, first)));
                }
                if may_follow && found.as_ref().is_none_or(is_lower) {
                    found = Some((here, header));
                    end = end.min(from.saturating_add(SEARCH_MOST));
                }
                // Values of this frame are not looked at.
                at = at.max(usize::try_from(here + length - position).unwrap_or(usize::MAX));
                at = at.next_multiple_of(8);
            }
            position += at.max(8) as u64;
        }
        Ok(found
            .map(|(here, header)| (here, header.first_offset))
            .or(torn))
    }

    /// Where the damaged frame at `position` says that it ends, and how many rows it says that it has.
    fn claims(&mut self, position: u64) -> io::Result<Option<(u64, u64)>> {
        let window = &mut self.window;
        let fixed = window.get(self.file, position, FIXED, FIXED, self.bytes)?;
        let claims = Header::claims(&fixed);
        Ok(claims.map(|(length, rows)| (position + length, rows)))
    }

    /// Whether a frame can be the next one after a damaged one. If either has no rows, offsets do not tell. Then the frame
    /// must be where the damaged one says that it ends.
    fn may_follow(&self, claims: Option<(u64, u64)>, position: u64, header: &Header) -> bool {
        let rows = claims.and_then(|(end, rows)| (end == position).then_some(rows));
        let has_place = match (header.first_offset.cmp(&self.offset), header.span) {
            (Ordering::Less, _) => false,
            (Ordering::Equal, _) => rows == Some(0),
            (Ordering::Greater, 0) => rows.is_some(),
            (Ordering::Greater, _) => true,
        };
        has_place && header.end() <= self.most
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
