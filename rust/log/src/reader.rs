//! Reads the rows that are on disk, from any thread, while the writer continues.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::LogError;
use crate::frame::{Header, Stored};
use crate::generations::Generations;
use crate::segment::{LogId, Segment, Step};
use crate::shared::Shared;

/// The minimum and maximum number of bytes that a fetch reads from a file at once.
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

    /// The first offset in the log, and the first one that is not on disk yet.
    pub fn bounds(&self) -> (u64, u64) {
        let state = self.shared.state();
        (state.earliest(), state.durable)
    }

    /// Returns which openings wrote the rows.
    pub fn generations(&self) -> Generations {
        self.shared.state().generations.clone()
    }

    /// The number of bytes of all segments.
    pub fn bytes(&self) -> u64 {
        let state = self.shared.state();
        state.segments.iter().map(|segment| segment.bytes()).sum()
    }

    /// Returns the frames with rows from `start` up to `end`, in order and without a gap: about `max_bytes` of them,
    /// and at least one if there are any. The first and the last may have rows outside the range; the next fetch starts
    /// where the last ends.
    ///
    /// Damaged rows are an error if they come first; otherwise the result ends before them.
    pub fn fetch(&self, start: u64, end: u64, max_bytes: usize) -> Result<Vec<Stored>, LogError> {
        let mut fetched = Vec::new();
        for frame in self.find(start, end, max_bytes)? {
            match frame.open(start) {
                Ok(stored) => fetched.push(stored),
                Err(_) if !fetched.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(fetched)
    }

    /// The same frames, to be sent unchanged. Their checksums have been checked, but not their rows.
    pub fn frames(&self, start: u64, end: u64, max_bytes: usize) -> Result<Vec<Packed>, LogError> {
        let found = self.find(start, end, max_bytes)?.into_iter();
        let packed = found.map(|frame| Packed {
            end: frame.header.end(),
            bytes: frame.bytes,
        });
        Ok(packed.collect())
    }

    fn find(&self, start: u64, end: u64, max_bytes: usize) -> Result<Vec<Frame>, LogError> {
        let found = self.find_by_path(start, end, max_bytes);
        // Files of the same names may be those of another log.
        self.shared.see_place()?;
        found
    }

    fn find_by_path(&self, start: u64, end: u64, max_bytes: usize) -> Result<Vec<Frame>, LogError> {
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
                // Return the frames before the damage first. The next call meets it again.
                Err(_) if !found.frames.is_empty() => break,
                Err(error) => {
                    // Retention may have removed the file between the lookup and the open.
                    self.segments(start, end)?;
                    return Err(error);
                }
            }
        }
        Ok(found.frames)
    }

    /// The first offset received at `timestamp` (microseconds since 1970) or later, so all rows before it were received
    /// earlier. If there is none, the end of the rows on disk.
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

    /// The end of a range of rows from `start` on that takes about `bytes` bytes. It is greater than `start` if there
    /// are any rows.
    pub fn offset_after(&self, start: u64, bytes: u64) -> Result<u64, LogError> {
        let (segments, durable) = self.segments(start, u64::MAX)?;
        let mut left = bytes;
        for segment in segments {
            let weigh = || -> Result<Result<u64, u64>, LogError> {
                let file = segment.open()?;
                let failed = |error| LogError::from_io("read", &segment.path, error);
                let from = segment
                    .position_of(&file, start.max(segment.first))
                    .map_err(failed)?;
                let within = segment.bytes().saturating_sub(from);
                if within <= left {
                    return Ok(Err(within));
                }
                segment.row_at(&file, from + left).map(Ok).map_err(failed)
            };
            match weigh() {
                Ok(Ok(offset)) => return Ok(offset.max(start + 1).min(durable)),
                Ok(Err(within)) => left -= within,
                Err(_) if segment.first < self.bounds().0 => {} // removed meanwhile
                Err(error) => return Err(error),
            }
        }
        Ok(durable.max(start))
    }

    /// The segments with rows in the range, and the end of the rows that can be read.
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

/// A frame whose checksum was verified, but whose contents were not parsed.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The offset after its last row.
    pub end: u64,
    /// The frame, which [`Stored::parse`] reads.
    pub bytes: Bytes,
}

/// A frame whose checksums are correct.
struct Frame {
    segment: Arc<Segment>,
    position: u64,
    header: Header,
    bytes: Bytes,
}

impl Frame {
    /// Its rows, for a reader that wants those from `start` on.
    fn open(self, start: u64) -> Result<Stored, LogError> {
        let (first, end) = (self.header.first_offset.max(start), self.header.end());
        Stored::from_checked(self.header, self.bytes).map_err(|error| LogError::Corrupt {
            segment: self.segment.path.clone(),
            position: self.position,
            first,
            end,
            what: error.to_string(),
        })
    }
}

/// The frames collected for a caller.
struct Found {
    frames: Vec<Frame>,
    bytes: usize,
    max_bytes: usize,
    /// The offset to continue from.
    next: u64,
}

impl Found {
    /// Adds a segment's frames with rows in `within`. Returns false when there are enough.
    fn read(&mut self, segment: &Arc<Segment>, within: Range<u64>) -> Result<bool, LogError> {
        let Range { start, end } = within;
        let file = segment.open()?;
        let (position, offset) = segment.locate(&file, start);
        let mut walk = segment.walk(&file, position, offset);
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
                    self.bytes += bytes.len();
                    self.next = behind;
                    self.frames.push(Frame {
                        segment: segment.clone(),
                        position,
                        header,
                        bytes,
                    });
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
