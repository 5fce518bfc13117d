//! Reading what is on disk, from any thread, while the writer goes on.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::error::LogError;
use crate::frame::Stored;
use crate::segment::{LogId, Segment, Step, Walk};
use crate::shared::Shared;

/// The least and the most that a fetch reads from a file at once.
const READ_LEAST: usize = 64 * 1024;
const READ_MOST: usize = 4 << 20;

/// Reads rows that are on disk. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(crate) shared: Arc<Shared>,
}

impl Reader {
    /// The log's id.
    pub fn id(&self) -> LogId {
        self.shared.id
    }

    /// The first offset there is, and the first one that is not on disk yet.
    pub fn bounds(&self) -> (u64, u64) {
        let state = self.shared.state();
        (state.earliest(), state.durable)
    }

    /// The bytes of all segments.
    pub fn bytes(&self) -> u64 {
        let state = self.shared.state();
        state.segments.iter().map(|segment| segment.bytes()).sum()
    }

    /// The frames with rows from `start` up to `end`, in order and without a gap: about `max_bytes` of them, at least
    /// one if there are any. The first and the last may have rows outside; the next fetch starts where the last ends.
    ///
    /// Damaged rows are an error if they come first, and end the answer otherwise.
    pub fn fetch(&self, start: u64, end: u64, max_bytes: usize) -> Result<Vec<Stored>, LogError> {
        let (segments, end) = self.segments(start, end)?;
        let mut found = Found {
            frames: Vec::new(),
            bytes: 0,
            max_bytes,
            next: start,
        };
        for segment in segments {
            let within = found.next..end.min(segment.end());
            match found.read(&segment, within) {
                Ok(true) => {}
                Ok(false) => break,
                // What came before the damage is answered first; asking on meets it again.
                Err(_) if !found.frames.is_empty() => break,
                Err(error) => {
                    // Retention may have removed the file between looking and opening it.
                    self.segments(start, end)?;
                    return Err(error);
                }
            }
        }
        Ok(found.frames)
    }

    /// The first offset received at `timestamp` (microseconds since 1970) or later: everything before it came in
    /// earlier. The end of what is on disk if nothing came in since.
    pub fn offset_at(&self, timestamp: i64) -> Result<u64, LogError> {
        let (segments, durable) = {
            let state = self.shared.state();
            (state.segments.clone(), state.durable)
        };
        for segment in segments {
            match segment.offset_at(timestamp) {
                Ok(Some(offset)) => return Ok(offset.min(durable)),
                Ok(None) => {}
                Err(_) if segment.first < self.bounds().0 => {} // removed meanwhile
                Err(error) => return Err(error),
            }
        }
        Ok(durable)
    }

    /// The segments that have what is between, and the end of what can be had.
    fn segments(&self, start: u64, end: u64) -> Result<(Vec<Arc<Segment>>, u64), LogError> {
        let state = self.shared.state();
        let (earliest, next) = (state.earliest(), state.appended);
        if !(earliest..=next).contains(&start) {
            return Err(LogError::OutOfRange {
                asked: start,
                earliest,
                next,
            });
        }
        let end = end.min(state.durable);
        let after = state
            .segments
            .partition_point(|segment| segment.first <= start);
        let wanted = state.segments.range(after.saturating_sub(1)..);
        let wanted = wanted.take_while(|segment| segment.first < end && start < end);
        Ok((wanted.cloned().collect(), end))
    }
}

/// Frames on their way to whoever asked.
struct Found {
    frames: Vec<Stored>,
    bytes: usize,
    max_bytes: usize,
    /// The offset to go on from.
    next: u64,
}

impl Found {
    /// Adds a segment's frames with rows in `within`; false when that is enough.
    fn read(&mut self, segment: &Segment, within: Range<u64>) -> Result<bool, LogError> {
        let Range { start, end } = within;
        let file = segment.open()?;
        let (position, offset) = segment.locate(&file, start);
        let mut walk = Walk::new(&file, position, offset, segment.bytes());
        let failed = |error: io::Error| LogError::from_io("read", &segment.path, error);
        while self.next < end {
            let most = (self.max_bytes.saturating_sub(self.bytes)).clamp(READ_LEAST, READ_MOST);
            let ahead = segment.stretch(walk.position(), most);
            let step = walk.next_reading(ahead).map_err(failed)?;
            let corrupt = |position, first: u64, end, what: &str| LogError::Corrupt {
                segment: segment.path.clone(),
                position,
                first: first.max(start),
                end,
                what: what.to_owned(),
            };
            match step {
                Some(Step::Frame { header, .. }) if header.end() <= self.next => {}
                Some(Step::Frame { position, header }) => {
                    if !self.frames.is_empty() && self.bytes + header.length > self.max_bytes {
                        return Ok(false);
                    }
                    let bytes = walk.frame(position, &header, ahead).map_err(failed)?;
                    let (first, behind) = (header.first_offset, header.end());
                    if !header.fits(&bytes) {
                        return Err(corrupt(
                            position,
                            first,
                            behind,
                            "the checksum of its rows is wrong",
                        ));
                    }
                    let stored = Stored::from_checked(header, bytes)
                        .map_err(|error| corrupt(position, first, behind, &error.to_string()))?;
                    self.bytes += stored.bytes.len();
                    self.next = behind;
                    self.frames.push(stored);
                }
                Some(Step::Damage {
                    end: Some(behind), ..
                }) if behind <= self.next => {}
                Some(Step::Damage {
                    position,
                    first,
                    end,
                    what,
                }) => {
                    return Err(corrupt(position, first, end.unwrap_or(segment.end()), what));
                }
                None => {
                    let what = "the file ends before its last rows";
                    return Err(corrupt(walk.position(), walk.offset(), segment.end(), what));
                }
            }
        }
        Ok(true)
    }
}
