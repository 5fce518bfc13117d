//! Handles rows that cannot be delivered or were lost, and reports them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use zeroxide_log::{Batch, LogError};

use super::{Conversation, Outcome, Parcel, RETRY, Unmoved};
use crate::clock::wall;
use crate::link::Channel;
use crate::producer::notices::Notice;
use crate::producer::shared::Shared;
use crate::producer::window::{Part, Unsent};
use crate::producer::{Failure, encoded};
use crate::wire::Code;

/// By how much the clocks of two machines may differ that are set, in microseconds.
const CLOCKS: i64 = 60_000_000;

impl<L: Channel> Conversation<L> {
    /// Others have used the name, and rows got new numbers.
    pub(super) fn on_foreign(&mut self, shared: &Shared, rows: u64, epoch: u64) {
        self.renumbered += rows;
        let text = format!(
            "another producer (epoch {epoch}) has sent rows under the name {:?} to {}: {rows} rows that it did not have \
             are sent after them, with new sequence numbers",
            shared.name,
            self.link.endpoint()
        );
        shared.state().report(text);
    }

    /// The collector has lost acknowledged rows. Those of this run have had a notice.
    pub(super) fn on_lost(
        &mut self,
        shared: &Shared,
        collector: usize,
        rows: u64,
        before: u64,
    ) -> Option<Notice> {
        self.lost += rows;
        let text = format!(
            "the collector at {} has lost {rows} rows that it had acknowledged to {:?}; an older copy of its folder was \
             probably restored. Unacknowledged rows are still sent",
            self.link.endpoint(),
            shared.name
        );
        let first_row = before.saturating_sub(rows);
        let notice = Notice {
            collector,
            first_row,
            rows: before - first_row,
            first_seq: None,
            offset: None,
            lost: Some(text.as_str().into()),
        };
        shared.set_back(Code::OtherRows, text);
        (before > first_row).then_some(notice)
    }

    /// Reports what became of rows, in order. Rows that will not be sent are moved to files before; without a spool, they
    /// are lost. While the disk does not take them, later rows are sent, and their reports wait.
    pub(super) fn settle(
        &mut self,
        shared: &Shared,
        collector: usize,
        now: Instant,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        let mut has_moved = false;
        while let Some(outcome) = self.outcomes.pop_front() {
            let given = match outcome {
                Outcome::Delivered(notice, parcel) => {
                    self.free(&parcel).map_err(Failure::spool)?;
                    self.released.0 += notice.rows;
                    self.released.1 += parcel.cost;
                    notices.push(notice);
                    continue;
                }
                Outcome::Given(given) => given,
            };
            if self.is_mute || self.move_at.is_some_and(|at| now < at) {
                self.outcomes.push_front(Outcome::Given(given));
                return Ok(());
            }
            self.move_at = None;
            match self.put_aside(&given.parcel) {
                Ok(kept) => notices.push(self.on_given(shared, collector, given, &kept)),
                Err(error) => {
                    self.outcomes.push_front(Outcome::Given(given));
                    if error.is_passing() {
                        self.on_full(&error, now);
                        self.move_at = Some(now + RETRY);
                        return Ok(());
                    }
                    // They stay in the spool with their numbers, and nothing is sent after them.
                    self.is_mute = true;
                    return Err(Failure::spool(error));
                }
            }
            has_moved = true;
        }
        if has_moved {
            self.on_room();
        }
        Ok(())
    }

    /// Moves rows out of the spool, if there is one. Returns what became of them.
    fn put_aside(&mut self, parcel: &Parcel) -> Result<String, LogError> {
        let Some(spool) = &mut self.spool else {
            return Ok("they are lost".to_owned());
        };
        let path = spool.set_aside(parcel.spooled, parcel.bytes.clone())?;
        self.free(parcel)?;
        Ok(format!("they are in {} now", path.display()))
    }

    /// Lets the spool remove these rows.
    fn free(&mut self, parcel: &Parcel) -> Result<(), LogError> {
        match (&mut self.spool, parcel.spooled) {
            (Some(spool), Some((_, end))) => spool.release(end),
            _ => Ok(()),
        }
    }

    /// Reports rows that will not be sent.
    fn on_given(
        &mut self,
        shared: &Shared,
        collector: usize,
        given: Unmoved,
        kept: &str,
    ) -> Notice {
        let Unmoved { range, why, parcel } = given;
        let rows = range.end - range.start;
        self.set_aside += rows;
        self.released.0 += rows;
        self.released.1 += parcel.cost;
        let endpoint = self.link.endpoint();
        let (code, text) = match why {
            Unsent::TooBig { limit } => (
                Code::TooBig,
                format!("a row is larger than the collector at {endpoint} takes, {limit} bytes"),
            ),
            Unsent::Ahead { limit } => (
                Code::Invalid,
                format!(
                    "{} a time that is further ahead than the collector at {endpoint} takes (max_ahead_hours); \
                     {limit}, in microseconds since 1970, was the latest that it took",
                    match rows {
                        1 => "1 row has".to_owned(),
                        _ => format!("{rows} rows have"),
                    }
                ),
            ),
            Unsent::Damaged => (
                Code::Corrupt,
                format!("{rows} rows in the spool for {endpoint} are damaged and cannot be read"),
            ),
            Unsent::Doubtful => (
                Code::Gap,
                format!(
                    "whether {rows} rows in the spool got to {endpoint} cannot be told any more, too many others have used the \
                     name since or its numbers are lost"
                ),
            ),
        };
        let text = format!("{text}; {kept}, and the others go on");
        let lost: Arc<str> = text.as_str().into();
        shared.set_back(code, text);
        Notice {
            collector,
            first_row: range.start,
            rows,
            first_seq: None,
            offset: None,
            lost: Some(lost),
        }
    }

    /// Splits or gives up the first batch if it cannot be sent, or keeps it for later. Returns whether there was one.
    pub(super) fn see_to_unsendable(&mut self, shared: &Shared, now: Instant) -> bool {
        let Some((parcel, rows, why)) = self.window.poll_unsendable() else {
            return false;
        };
        if let Unsent::Ahead { limit } = why
            && self.dispute(shared, &parcel, limit, now)
        {
            return true;
        }
        let parts = match why {
            Unsent::TooBig { limit } => self.cut(&parcel, rows, limit),
            Unsent::Ahead { limit } => self.part_by_time(&parcel, limit),
            Unsent::Damaged | Unsent::Doubtful => None,
        };
        match parts {
            Some(parts) => {
                let more = parts.len() as u64 - 1;
                shared.counters.batches.fetch_add(more, Ordering::Relaxed);
                self.window.split(parts);
            }
            None => self.window.give_up(why),
        }
        true
    }

    /// Keeps rows that the collector refused for their times if that may be the fault of a clock: if times are not in the
    /// future here, or if the collector would not even take the present time. Setting them aside could not be undone, and
    /// when the clocks agree, the collector takes them or refuses them again.
    fn dispute(&mut self, shared: &Shared, parcel: &Parcel, limit: i64, now: Instant) -> bool {
        let wall = i64::try_from(wall()).unwrap_or(i64::MAX);
        let is_due = |time: i64| limit < time && time <= wall;
        let differ = limit.saturating_add(CLOCKS) < wall;
        let Some(batch) = self.rows_of(parcel) else {
            return false;
        };
        let mut times = (0..batch.rows()).filter_map(|row| batch.timestamp(row));
        if !(differ || times.any(is_due)) {
            return false;
        }
        let text = format!(
            "it takes no time after {limit} (max_ahead_hours), and the clock of this machine is at {wall}, in microseconds since \
             1970: set the clock that is wrong; rows wait until then"
        );
        if !self.window.is_disputed() {
            let endpoint = self.link.endpoint();
            let report =
                format!("the collector at {endpoint} has refused rows for their times: {text}");
            shared.state().report(report);
        }
        self.window.dispute(text, now);
        true
    }

    /// Splits the parcel into parts of at most `limit` bytes, unless a single row is larger; None if it is one row.
    fn cut(&mut self, parcel: &Parcel, rows: u64, limit: u64) -> Option<Vec<Part<Parcel>>> {
        if rows < 2 {
            return None;
        }
        let batch = self.rows_of(parcel)?;
        let mut ranges = Vec::new();
        let all = 0..batch.rows();
        let mut left = vec![all];
        while let Some(range) = left.pop() {
            let part = batch.slice(range.start, range.len());
            if range.len() > 1 && part.size() as u64 > limit {
                let middle = range.start + range.len() / 2;
                left.extend([middle..range.end, range.start..middle]);
                continue;
            }
            ranges.push((range, None));
        }
        Some(parts_of(parcel, &batch, ranges))
    }

    /// Separates the rows with times after `limit` from the others; None if all rows have such times.
    fn part_by_time(&mut self, parcel: &Parcel, limit: i64) -> Option<Vec<Part<Parcel>>> {
        let batch = self.rows_of(parcel)?;
        let is_ahead = |row| batch.timestamp(row).is_some_and(|time| time > limit);
        let mut ranges: Vec<(Range<usize>, Option<i64>)> = Vec::new();
        for row in 0..batch.rows() {
            let time_limit = is_ahead(row).then_some(limit);
            match ranges.last_mut() {
                Some((range, same)) if *same == time_limit => range.end = row + 1,
                _ => ranges.push((row..row + 1, time_limit)),
            }
        }
        match ranges[..] {
            [(_, Some(_))] => None,
            _ => Some(parts_of(parcel, &batch, ranges)),
        }
    }

    fn rows_of(&mut self, parcel: &Parcel) -> Option<Batch> {
        let bytes = match (&parcel.bytes, parcel.spooled, &mut self.spool) {
            (Some(bytes), ..) => bytes.clone(),
            (None, Some(place), Some(spool)) => spool.read(place).ok()?,
            _ => return None,
        };
        Batch::decode(bytes).ok()
    }
}

/// The parts of a parcel with these rows.
fn parts_of(
    parcel: &Parcel,
    batch: &Batch,
    ranges: Vec<(Range<usize>, Option<i64>)>,
) -> Vec<Part<Parcel>> {
    let mut cost = parcel.cost;
    let parts = ranges.into_iter().map(|(range, time_limit)| {
        let part = batch.slice(range.start, range.len());
        let bytes = encoded(&part);
        let size = bytes.len() as u64;
        let spooled = parcel
            .spooled
            .map(|(first, _)| (first + range.start as u64, first + range.end as u64));
        let part = Parcel {
            bytes: Some(bytes),
            cost: if range.end == batch.rows() {
                cost
            } else {
                size.min(cost)
            },
            spooled,
        };
        cost -= part.cost;
        Part {
            payload: part,
            rows: range.len() as u64,
            size,
            time_limit,
        }
    });
    parts.collect()
}
