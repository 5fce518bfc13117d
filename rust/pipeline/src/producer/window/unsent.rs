//! Rows that will never be sent: too large for the collector, damaged, or perhaps sent long ago. They do not hold up those behind
//! them.

use crate::producer::window::{Entry, Event, State, Window};

/// Why rows are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The collector takes no batch of this size, and it cannot be made smaller.
    TooBig {
        /// The most that it takes.
        limit: u64,
    },
    /// What they are is damaged.
    Damaged,
    /// So many others have used the name since these rows may have been sent that the log does not know any more whether
    /// they were.
    Doubtful,
}

impl<T: Clone> Window<T> {
    /// Takes note of `rows` rows that cannot be read any more: the collector may have them.
    pub fn push_damaged(&mut self, payload: T, rows: u64) {
        self.push(payload, rows, 0);
        if let Some(entry) = self.entries.back_mut() {
            entry.is_damaged = true;
        }
    }

    /// The first batch, if it cannot be sent, and what is there to be done: [`split`](Self::split) or
    /// [`give_up`](Self::give_up).
    pub fn poll_unsendable(&mut self) -> Option<(T, u64, Unsent)> {
        if self.state != State::Open || self.cursor > 0 {
            return None;
        }
        let entry = self.entries.front()?;
        let why = self.unsendable(entry)?;
        if entry.end() <= self.had {
            // It got there when it could be sent.
            self.deliver(entry.end(), None);
            return self.poll_unsendable();
        }
        Some((entry.payload.clone(), entry.rows, why))
    }

    /// The first batch shall go in these parts: their rows and sizes.
    pub fn split(&mut self, parts: Vec<(T, u64, u64)>) {
        let Some(whole) = self.entries.pop_front() else {
            return;
        };
        self.waiting_size -= whole.size;
        let mut end = whole.end();
        for (payload, rows, size) in parts.into_iter().rev() {
            end -= rows;
            self.waiting_size += size;
            self.entries.push_front(Entry {
                first: end,
                rows,
                size,
                is_cut: end < self.had && self.had < end + rows,
                is_damaged: false,
                payload,
            });
        }
    }

    /// The first batch will not be sent. What follows takes over its numbers.
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
                // What was acknowledged with the old numbers is still to be there later.
                let is_of_this_run = acked > self.had.cast_signed();
                numbers.end = had;
                numbers.last_epoch = is_of_this_run.then_some(self.epoch);
            }
            numbers.base -= (end - first).cast_signed();
            numbers.since = end.cast_signed();
            self.number(numbers);
        }
    }

    /// The batch that was sent last, [`poll_transmit`](Self::poll_transmit) said, could not be read: it was not sent.
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

    /// Gives up the batches below row `upto`, which are the first ones.
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

    /// Of what the collector has below row `row`, delivers what cannot be sent again to be acknowledged.
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

    /// Why this cannot be sent, if it cannot.
    pub(super) fn unsendable(&self, entry: &Entry<T>) -> Option<Unsent> {
        let limit = self.max_batch;
        match entry.is_damaged {
            true => Some(Unsent::Damaged),
            false => (entry.size > limit).then_some(Unsent::TooBig { limit }),
        }
    }
}
