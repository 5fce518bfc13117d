//! Rows that will never be sent: too large for the collector, refused for their times, damaged, or perhaps sent long
//! ago. They do not delay later rows.

use std::time::Instant;

use crate::producer::window::{Entry, Event, SILENCE, State, Window};
use crate::wire::Code;

/// The reason why rows are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The collector accepts no batch of this size, and it cannot be split.
    TooBig {
        /// The collector's limit.
        limit: u64,
    },
    /// Rows have times that the collector refused, because they are too far ahead of its clock.
    Ahead {
        /// The latest time that it takes, in microseconds since 1970.
        limit: i64,
    },
    /// The rows are damaged.
    Damaged,
    /// Since these rows may have been sent, so many others have used the name that the log no longer knows whether they
    /// were.
    Doubtful,
}

/// A part of a batch that is sent in parts.
#[derive(Clone, Debug)]
pub struct Part<T> {
    /// The rows.
    pub payload: T,
    /// Their number.
    pub rows: u64,
    /// Their size in bytes.
    pub size: u64,
    /// The latest time that the collector takes, if all rows of this part have later ones.
    pub time_limit: Option<i64>,
}

impl<T: Clone> Window<T> {
    /// Adds `rows` unreadable rows, which the collector may have.
    pub fn push_damaged(&mut self, payload: T, rows: u64) {
        self.push(payload, rows, 0);
        if let Some(entry) = self.entries.back_mut() {
            entry.is_damaged = true;
        }
    }

    /// Returns the first batch if it cannot be sent, so that the caller uses [`split`](Self::split),
    /// [`give_up`](Self::give_up) or [`dispute`](Self::dispute).
    pub fn poll_unsendable(&mut self) -> Option<(T, u64, Unsent)> {
        if self.state != State::Open || self.cursor > 0 {
            return None;
        }
        let entry = self.entries.front()?;
        let why = self.unsendable(entry)?;
        if entry.end() <= self.had {
            // It arrived while it could still be sent.
            self.deliver(entry.end(), None);
            return self.poll_unsendable();
        }
        Some((entry.payload.clone(), entry.rows, why))
    }

    /// Replaces the first batch by these parts.
    pub fn split(&mut self, parts: Vec<Part<T>>) {
        let Some(whole) = self.entries.pop_front() else {
            return;
        };
        self.waiting_size -= whole.size;
        let mut end = whole.end();
        for part in parts.into_iter().rev() {
            let rows = part.rows;
            end -= rows;
            self.waiting_size += part.size;
            self.entries.push_front(Entry {
                first: end,
                rows,
                size: part.size,
                is_cut: end < self.had && self.had < end + rows,
                is_damaged: false,
                time_limit: part.time_limit,
                request: 0,
                payload: part.payload,
            });
        }
    }

    /// Gives up the first batch. Its numbers go to the rows after it.
    pub fn give_up(&mut self, why: Unsent) {
        let Some(front) = self.entries.front() else {
            return;
        };
        let (first, end) = (front.first.max(self.had), front.end());
        let acked = self.acked.cast_signed();
        self.give(end, why);
        if let Some(mut numbers) = self.numbers.clone() {
            let had = numbers.base + acked;
            if acked > numbers.since && had > numbers.end {
                // Rows that were acknowledged with the old numbers must still be in the log later.
                let is_of_this_run = acked > self.had.cast_signed();
                numbers.end = had;
                numbers.last_epoch = is_of_this_run.then_some(self.epoch);
            }
            numbers.base -= (end - first).cast_signed();
            numbers.since = end.cast_signed();
            self.number(numbers);
        }
    }

    /// Keeps the first batch, whose times were refused, and sends it again from time to time. Nothing is sent after it until
    /// the collector takes it.
    pub fn dispute(&mut self, why: String, now: Instant) {
        if let Some(front) = self.entries.front_mut() {
            front.time_limit = None;
            self.is_disputed = true;
            self.obstacle = Some((Code::Invalid, why));
            self.greet_after(SILENCE, now);
        }
    }

    /// Whether that is the case.
    pub fn is_disputed(&self) -> bool {
        self.is_disputed
    }

    /// Records that the batch returned last by [`poll_transmit`](Self::poll_transmit) could not be read, so it was not
    /// sent.
    pub fn on_damaged(&mut self) {
        let Some(at) = self.cursor.checked_sub(1) else {
            return;
        };
        if let Some(entry) = self.entries.get_mut(at) {
            entry.is_damaged = true;
            self.cursor = at;
            self.flying.rows -= entry.rows;
            self.flying.bytes -= entry.size;
        }
    }

    /// Marks the batch of request `id`, which was refused because a row has a later time than `limit`. Returns whether
    /// there is one; other refusals have a limit of 0.
    pub(super) fn mark_ahead(&mut self, id: u64, limit: u64) -> bool {
        let limit = i64::try_from(limit).ok().filter(|limit| *limit > 0);
        let sent = self.entries.iter_mut().take(self.cursor);
        let entry = sent.skip(self.settled).find(|entry| entry.request == id);
        match (entry, limit) {
            (Some(entry), Some(limit)) => {
                entry.time_limit = Some(limit);
                true
            }
            _ => false,
        }
    }

    /// Gives up the batches below row `upto`, which come first.
    pub(super) fn give(&mut self, upto: u64, why: Unsent) {
        while let Some(entry) = self.take_front(upto) {
            self.events.push_back(Event::Given {
                first: entry.first,
                rows: entry.rows,
                why,
                payload: entry.payload,
            });
        }
        self.reached = self.reached.max(self.acked);
    }

    /// Delivers the batches below row `row` that the collector has and that cannot be sent again to be acknowledged.
    pub(super) fn deliver_unsendable(&mut self, row: u64) {
        let entries = self
            .entries
            .iter()
            .rev()
            .skip_while(|entry| entry.first >= row);
        let mut unsendable = entries.filter(|entry| self.unsendable(entry).is_some());
        if let Some(entry) = unsendable.next() {
            let upto = if entry.end() <= row {
                entry.end()
            } else {
                entry.first
            };
            self.deliver(upto, None);
        }
    }

    /// The reason why this batch cannot be sent, if there is one.
    pub(super) fn unsendable(&self, entry: &Entry<T>) -> Option<Unsent> {
        let limit = self.max_batch;
        match (entry.is_damaged, entry.time_limit) {
            (true, _) => Some(Unsent::Damaged),
            (false, Some(limit)) => Some(Unsent::Ahead { limit }),
            (false, None) => (entry.size > limit).then_some(Unsent::TooBig { limit }),
        }
    }
}
