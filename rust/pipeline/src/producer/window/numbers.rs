//! Sequence numbers: which rows here the collector has, and which rows others have sent under the same name.

use crate::producer::window::{Event, Unsent, Welcome, Window};
use crate::wire::LogId;

/// The maximum number of epochs that are kept: the last ones.
const EPOCHS_MAX: usize = 64;

/// The sequence numbers of a window's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// The sequence number of row 0. Row 0 may never have had this number, so it may be negative.
    pub base: i64,
    /// Rows below this one had other numbers. May be before the window.
    pub since: i64,
    /// The number after the last row that the log had of the name when these numbers were assigned.
    pub end: i64,
    /// The epoch that wrote the last row before `end`, if it exists and was recorded.
    pub last_epoch: Option<u64>,
    /// The epochs that may have sent rows with these numbers; None = not recorded, so any epoch may have.
    pub epochs: Option<Vec<u64>>,
    /// The log with which these numbers were last compared.
    pub log_id: Option<LogId>,
}

impl<T: Clone> Window<T> {
    /// Compares the collector's rows with those here. Returns the first row that the collector does not have; None if
    /// its report is impossible.
    pub(super) fn compare(&mut self, welcome: &Welcome) -> Option<u64> {
        let ends = welcome.writers.iter();
        let ends = ends.map(|(epoch, last)| (*epoch, last.cast_signed() + 1));
        let end = ends.clone().map(|(_, end)| end).max();
        let last_epoch = ends.clone().next_back().map(|(epoch, _)| epoch);
        let is_first = self.log_id.is_none();
        let Some(before) = self.numbers.clone() else {
            if self.is_doubted {
                self.give(self.fresh, Unsent::Doubtful);
            }
            // None of the remaining rows was ever sent.
            self.number(Numbers {
                base: end.unwrap_or(0) - self.acked.cast_signed(),
                since: self.acked.cast_signed(),
                end: end.unwrap_or(0),
                last_epoch,
                epochs: Some(self.recorded(Vec::new())),
                log_id: Some(welcome.log_id),
            });
            return Some(self.acked);
        };
        let known = before.epochs.clone().unwrap_or_else(|| {
            // It was not recorded which epochs sent rows with these numbers.
            ends.clone().map(|(epoch, _)| epoch).collect()
        });
        let is_own = |epoch: u64| epoch == self.epoch || known.contains(&epoch);
        let own = ends.clone().filter(|(epoch, _)| is_own(*epoch));
        let own = own.map(|(_, end)| end).max();
        let stranger = ends
            .clone()
            .next_back()
            .filter(|(epoch, _)| !is_own(*epoch));
        let mut numbers = before.clone();
        numbers.log_id = Some(welcome.log_id);
        let acked = self.acked.cast_signed();
        if is_first && self.fresh > self.acked && is_doubtful(&known, welcome) {
            self.give(self.fresh, Unsent::Doubtful);
            numbers.base = end.unwrap_or(0).max(before.base + acked) - self.acked.cast_signed();
            numbers.since = self.acked.cast_signed();
            (numbers.end, numbers.last_epoch) = (end.unwrap_or(0), last_epoch);
            numbers.epochs = Some(self.recorded(Vec::new()));
            self.number(numbers);
            return Some(self.acked);
        }
        let is_same_log = before.log_id == Some(welcome.log_id);
        if let Some(rows) = missing(&before, acked, own, welcome).filter(|_| is_same_log) {
            let before = self.acked;
            self.events.push_back(Event::Lost { rows, before });
            numbers.since = acked.max(numbers.since);
            (numbers.end, numbers.last_epoch) = (end.unwrap_or(0), last_epoch);
        }
        let has = own.map_or(0, |own| u64::try_from(own - before.base).unwrap_or(0));
        // Before anything was sent, this is more than earlier runs left here: their last rows reached the log, but not
        // the disk here.
        let most = if is_first { self.fresh } else { self.reached };
        if has > most && !is_first {
            return None;
        }
        // If new numbers cut a batch, the part before the cut has none of them.
        let since = u64::try_from(before.since).unwrap_or(0);
        let row = has.min(most).max(self.acked).max(since);
        let next = before.base + row.cast_signed();
        if let Some(end) = end.filter(|end| *end > next) {
            // Rows that it has after our last one are not ours, or are not here any more.
            self.deliver(row, None);
            let numbered = if is_first { self.left } else { self.reached };
            let rows = numbered.saturating_sub(row);
            if let Some((epoch, _)) = stranger.filter(|_| rows > 0) {
                self.events.push_back(Event::Foreign { rows, epoch });
            }
            numbers.base += end - next;
            numbers.since = row.cast_signed();
            (numbers.end, numbers.last_epoch) = (end, last_epoch);
            numbers.epochs = Some(Vec::new());
        }
        let epochs = numbers.epochs.take().unwrap_or(known);
        numbers.epochs = Some(self.recorded(epochs));
        if numbers != before {
            self.number(numbers);
        }
        Some(row)
    }

    /// The epochs with those of this run. Rows may be in a spool under the one with which it began, although another one
    /// sends them; without both, the next run would take them for rows that were never sent.
    fn recorded(&self, mut epochs: Vec<u64>) -> Vec<u64> {
        for epoch in [self.begun, self.epoch] {
            if !epochs.contains(&epoch) {
                epochs.push(epoch);
            }
        }
        epochs.drain(..epochs.len().saturating_sub(EPOCHS_MAX));
        epochs
    }

    /// Records that the numbers under which the present rows may have been sent are unknown.
    pub fn doubt(&mut self) {
        self.is_doubted = true;
    }

    pub(super) fn number(&mut self, numbers: Numbers) {
        self.events.push_back(Event::Numbered(numbers.clone()));
        self.numbers = Some(numbers);
    }
}

/// The number of rows that a log has lost: of those acknowledged below row `acked` with these numbers, if ours end at
/// `own` in it; or, if it goes back before these numbers, of all that it had of the name.
fn missing(numbers: &Numbers, acked: i64, own: Option<i64>, welcome: &Welcome) -> Option<u64> {
    if let Some(kept) = kept(numbers, welcome) {
        let had = numbers.end.max(numbers.base + acked);
        return Some((had - kept).cast_unsigned());
    }
    let there = own.unwrap_or(i64::MIN).max(numbers.base + numbers.since);
    let is_missing = acked > numbers.since && there < numbers.base + acked;
    is_missing.then(|| (numbers.base + acked - there).cast_unsigned())
}

/// If a log has lost rows below `numbers.end`, returns the upper bound of the remaining rows. Other rows may have their
/// numbers by now, so the epoch of the last row shows the loss, and not only the end of the log.
fn kept(numbers: &Numbers, welcome: &Welcome) -> Option<i64> {
    let ends = welcome.writers.iter();
    let ends = ends.map(|(epoch, last)| (*epoch, last.cast_signed() + 1));
    let end = ends.clone().map(|(_, end)| end).max().unwrap_or(0);
    let Some(last_epoch) = numbers.last_epoch else {
        return (end < numbers.end).then_some(end);
    };
    let mut same = ends.clone().filter(|(epoch, _)| *epoch == last_epoch);
    // If the list was cut, only the runs before its first one are missing.
    let is_cut_off = !welcome.is_whole && ends.clone().all(|(_, end)| end > numbers.end);
    if end >= numbers.end && (is_cut_off || same.any(|(_, end)| end >= numbers.end)) {
        return None;
    }
    let earlier = ends.clone().filter(|(epoch, _)| *epoch <= last_epoch);
    let unknown = ends.clone().next().filter(|_| !welcome.is_whole);
    let kept = earlier.chain(unknown).map(|(_, end)| end).max();
    Some(kept.unwrap_or(0).min(numbers.end - 1))
}

/// Whether the log may have forgotten that these epochs wrote rows, because too many others wrote later.
fn is_doubtful(epochs: &[u64], welcome: &Welcome) -> bool {
    let oldest = welcome.writers.iter().map(|(epoch, _)| *epoch).min();
    // An epoch with which a run only began may be later.
    let newest = epochs.last().copied();
    let is_before = newest
        .zip(oldest)
        .is_some_and(|(newest, oldest)| newest < oldest);
    is_before && !welcome.is_whole
}
