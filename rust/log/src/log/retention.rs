//! Retention: which segments are removed, and when.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Log;
use crate::disk;
use crate::error::LogError;
use crate::segment::Segment;

/// An offset from which on retention keeps all rows, whatever its other limits are. Cheap to clone. By default, nothing
/// is held back.
#[derive(Debug, Clone)]
pub struct Hold(Arc<AtomicU64>);

impl Hold {
    /// Holds back rows from this offset on. 0 holds back all of them.
    pub fn set(&self, offset: u64) {
        self.0.store(offset, Ordering::Relaxed);
    }
}

impl Default for Hold {
    fn default() -> Hold {
        Hold(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

/// The segments that were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// The number of segments.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
}

impl Log {
    /// Removes whole segments of rows below `before`. The active segment stays.
    pub fn trim(&mut self, before: u64) -> Result<Trimmed, LogError> {
        self.trim_while(i64::MAX, |segment, _| segment.end <= before)
    }

    /// Removes segments that exceed the limits at the time `now` (microseconds since 1970): the limit of bytes, the
    /// limit of time and, with retention by groups, segments that every group has read, except the last of them. Rows
    /// on [`Hold`] stay.
    pub fn retain(&mut self, now: i64) -> Result<Trimmed, LogError> {
        let config = self.config.clone();
        let oldest = config.retention_time.map(|time| {
            let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
            now.saturating_sub(micros)
        });
        if let Some(oldest) = oldest {
            let active = self.shared.state().segments.back().cloned();
            let is_old = active.is_some_and(|active| {
                let index = active.index();
                index.end > active.first && index.latest.is_some_and(|latest| latest < oldest)
            });
            if is_old {
                self.roll()?;
            }
        }
        let behind = config
            .retention_groups
            .then(|| self.read_by_all())
            .flatten();
        let held = config.hold.0.load(Ordering::Relaxed);
        self.trim_while(now, |segment, bytes| {
            if segment.end > held {
                return false;
            }
            behind.is_some_and(|behind| segment.end <= behind)
                || config.retention_bytes.is_some_and(|most| bytes > most)
                || oldest.is_some_and(|oldest| segment.latest.is_some_and(|latest| latest < oldest))
        })
    }

    /// The offset below which segments are not needed by any group. After a crash, groups continue at their positions on
    /// disk, and rows must still be there.
    fn read_by_all(&mut self) -> Option<u64> {
        let behind = self.behind(self.groups.values().min().copied()?);
        let is_on_disk = |log: &Log| {
            log.saved_group
                .is_some_and(|saved| log.behind(saved) >= behind)
        };
        if !is_on_disk(self) {
            let first = self
                .shared
                .state()
                .segments
                .front()
                .map(|first| first.end());
            if first.is_some_and(|end| end <= behind) {
                // Without room for that, only rows that were read according to the disk are removed.
                let _ = self.save();
            }
        }
        Some(behind.min(self.behind(self.saved_group?)))
    }

    /// Keeps the segment that is being read at `offset` and the one before it, because readers may go back a little.
    fn behind(&self, offset: u64) -> u64 {
        let state = self.shared.state();
        let at = state
            .segments
            .partition_point(|segment| segment.first <= offset);
        at.checked_sub(2).map_or(0, |at| state.segments[at].first)
    }

    /// Removes segments from the front while `is_over` returns true for them, given the bytes of all segments, at the
    /// time `now`.
    fn trim_while(
        &mut self,
        now: i64,
        mut is_over: impl FnMut(&Facts, u64) -> bool,
    ) -> Result<Trimmed, LogError> {
        let mut trimmed = Trimmed::default();
        let mut bytes = self.reader().bytes();
        loop {
            let state = self.shared.state();
            let Some(oldest) = state
                .segments
                .front()
                .filter(|_| state.segments.len() > 1)
                .cloned()
            else {
                break;
            };
            let facts = Facts::of_first(&state.segments, &oldest, now);
            if !is_over(&facts, bytes) {
                break;
            }
            if facts.end > self.saved {
                drop(state);
                // The contents of its frames must be in a snapshot before they are removed. Without room for that, they
                // stay.
                if self.save_sealed().is_err() || facts.end > self.saved {
                    break;
                }
                continue;
            }
            drop(state);
            self.shared.check_place()?;
            self.shared.state().segments.pop_front();
            match disk::remove_file(&oldest.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    // The log still begins there. Removing later files first would leave a gap.
                    let path = oldest.path.clone();
                    self.shared.state().segments.push_front(oldest);
                    return Err(LogError::from_io("remove", &path, error));
                }
                _ => {}
            }
            bytes -= facts.bytes;
            trimmed.segments += 1;
            trimmed.bytes += facts.bytes;
            trimmed.rows += facts.end - oldest.first;
        }
        Ok(trimmed)
    }
}

/// The facts about the first segment on which retention is based.
struct Facts {
    end: u64,
    bytes: u64,
    latest: Option<i64>,
}

impl Facts {
    fn of_first(segments: &VecDeque<Arc<Segment>>, first: &Segment, now: i64) -> Facts {
        // Times of receipt do not fall from row to row. So where none is known, the rows are at least as old as the next
        // known time says. The same holds for a time that is still to come: the clock was wrong then.
        let mut times = segments.iter().filter_map(|segment| segment.index().latest);
        let latest = times.find(|latest| *latest <= now);
        let index = first.index();
        Facts {
            end: index.end,
            bytes: index.bytes,
            latest,
        }
    }
}
