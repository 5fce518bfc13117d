//! The rows of one producer that one collector has not acknowledged. The window takes replies and a clock, and returns
//! requests and events, without sockets and threads.
//!
//! ```text
//!            on_connected            WELCOME
//!   Away ───────────────► Greeting ───────────► Open
//!    ▲                      ▲    │                │ gap, HELLO first: the collector was restarted, or a batch was lost
//!    │ on_disconnected      └────┼────────────────┘
//!    │ silence: Event::Stale     │ fenced, or another refusal that repeating does not change
//!    └───────────────────────────┴──────► Over
//! ```
//!
//! # Numbers
//!
//! Rows are counted from 0 as they are pushed. `base` is the sequence number of row 0, and is known once a collector
//! has reported what it has of this producer. A run that continues after an earlier one knows `base` from the
//! beginning, and the epochs that sent rows with these [`Numbers`].
//!
//! If others have meanwhile sent rows under this name, they used numbers that were meant for rows here. Rows that never
//! arrived get new numbers, after the last one that the collector has. The last row that one of our own epochs wrote
//! shows which rows arrived. It also shows whether the collector lost rows that it had acknowledged. Rows from before
//! the current numbers are lost if the last of them is missing, or if another epoch wrote the row with its number.
//!
//! The window has three marks, `acked <= sent <= next`. The collector has all rows below `acked` on disk, sending
//! continues at `sent`, and rows from `next` on do not exist yet. After every WELCOME, `sent` goes back to the end of
//! what the collector has, and one batch further: the last batch that it has is sent again, because only the reply to a
//! batch confirms that it is on disk.
//!
//! # The calling order
//!
//! One `on_*`, [`push`](Window::push) or [`handle_timeout`](Window::handle_timeout); then all of
//! [`poll_event`](Window::poll_event), which must be handled before anything is sent; then all of
//! [`poll_transmit`](Window::poll_transmit); then sleep until [`poll_timeout`](Window::poll_timeout).

mod numbers;
mod unsent;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use zeroxide_log::EPOCH_END;

pub use crate::producer::window::numbers::Numbers;
pub use crate::producer::window::unsent::{Part, Unsent};
use crate::wire::{Code, Credit, EPOCH_STEP, LogId};

/// The time after which a collector that owes a reply counts as silent.
const SILENCE: Duration = Duration::from_secs(2);

/// The wait before another HELLO when the last ones had no effect: this long after the first, and twice as long after
/// each further one, up to [`SILENCE`].
const PATIENCE: Duration = Duration::from_millis(50);

/// The interval at which a collector that gives no credit is asked again, because it may have forgotten the producer.
const PROBE: Duration = Duration::from_secs(5);

/// A limit that no producer reaches. Below it, sums with row numbers do not overflow.
const SEQ_MAX: u64 = 1 << 62;

/// A batch that is not acknowledged.
#[derive(Clone, Debug)]
struct Entry<T> {
    first: u64,
    rows: u64,
    size: u64,
    /// Whether the collector may have had a part of it, so that the offset of its first new row is not that of our
    /// first.
    is_cut: bool,
    /// Whether it can no longer be read.
    is_damaged: bool,
    /// The latest time that the collector takes, if it refused a later one in this batch.
    time_limit: Option<i64>,
    /// The request that sent it last.
    request: u64,
    payload: T,
}

impl<T> Entry<T> {
    fn end(&self) -> u64 {
        self.first + self.rows
    }
}

/// The state of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// There is no connection.
    Away,
    /// A HELLO will be sent at `due`, or the HELLO `asked` was sent and not answered.
    Greeting { due: Instant, asked: Option<u64> },
    /// Batches are being sent.
    Open,
    /// Permanently ended.
    Over(Ending),
}

/// The reason why nothing can be sent any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The collector's code, for programs.
    pub code: Code,
    /// The text, for people.
    pub text: String,
}

/// A request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<T> {
    /// The producer introduces itself.
    Hello {
        /// The number of the request.
        id: u64,
        /// The epoch of this run.
        epoch: u64,
        /// The first sequence number that is not acknowledged.
        next_seq: u64,
    },
    /// A batch.
    Append {
        /// The number of the request.
        id: u64,
        /// The epoch of this run.
        epoch: u64,
        /// The sequence number of its first row.
        first_seq: u64,
        /// The batch.
        payload: T,
    },
}

/// An event of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// The collector has reported what it has, which determines the sequence numbers of rows. If rows outlive the
    /// process, this must be saved before anything is sent.
    Numbered(Numbers),
    /// Another producer has sent rows under this name. This many rows here never arrived and got new numbers.
    Foreign {
        /// The number of rows.
        rows: u64,
        /// The epoch of the other producer.
        epoch: u64,
    },
    /// The collector has lost this many acknowledged rows: those before row `before`.
    Lost {
        /// The number of rows.
        rows: u64,
        /// The row after the last of them.
        before: u64,
    },
    /// Rows that will not be sent, and are no longer in the window.
    Given {
        /// The first row.
        first: u64,
        /// The number of rows.
        rows: u64,
        /// The reason.
        why: Unsent,
        /// The batch.
        payload: T,
    },
    /// A batch is on the collector's disk.
    Delivered {
        /// Its first row, counted from 0.
        first: u64,
        /// The number of rows.
        rows: u64,
        /// Its size, as it was pushed.
        size: u64,
        /// The sequence number of its first row.
        first_seq: u64,
        /// The offset of its first row; None if the collector had the batch before, or acknowledged it with a later one.
        offset: Option<u64>,
        /// The batch.
        payload: T,
    },
    /// The connection seems to be dead and should be replaced.
    Stale,
}

/// The relevant contents of a WELCOME.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// The id of the collector's log.
    pub log_id: LogId,
    /// The runs that wrote its rows, in the order of their writing: epoch and last sequence number of each.
    pub writers: Vec<(u64, u64)>,
    /// Whether the list is complete.
    pub is_whole: bool,
    /// The maximum rows and bytes that may be unacknowledged.
    pub credit: Credit,
    /// The maximum number of bytes of a batch.
    pub max_batch: u64,
}

/// The window. `T` is a batch as it is sent, which must be cheap to clone.
pub struct Window<T> {
    epoch: u64,
    /// The epoch with which it began. The collector may have demanded a later or an earlier one.
    begun: u64,
    state: State,
    entries: VecDeque<Entry<T>>,
    /// None before the first report of a collector.
    numbers: Option<Numbers>,
    /// Whether there were numbers that were lost.
    is_doubted: bool,
    acked: u64,
    /// Entries below this index have been sent.
    cursor: usize,
    /// Entries below this index were in the log when the conversation began or was resumed, and are not in transit.
    settled: usize,
    /// The rows and bytes of the entries that were sent since then.
    flying: Credit,
    /// The row up to which anything was ever sent.
    reached: u64,
    /// The row up to which the collector had everything in its last report.
    had: u64,
    next: u64,
    /// Earlier runs may have sent the rows below this one.
    fresh: u64,
    /// Rows below this one are from earlier runs.
    left: u64,
    waiting_rows: u64,
    waiting_size: u64,
    credit: Credit,
    max_batch: u64,
    /// The obstacle that the collector reported.
    obstacle: Option<(Code, String)>,
    /// Whether a collector that gave no credit is being asked again.
    is_asking: bool,
    /// Whether the collector refused the times of a batch that are right by the clock here.
    is_disputed: bool,
    log_id: Option<LogId>,
    request: u64,
    /// Requests before this one belong to an earlier conversation.
    greeted: u64,
    /// The number of HELLOs sent since the last acknowledgement.
    vain: u32,
    /// The time of the collector's last relevant message; initially, of the window's creation.
    heard: Instant,
    /// While batches are not being sent: the time since which the collector has been gone.
    away: Instant,
    /// The time since which it owes a reply, and whether it has already counted as silent.
    owing: Option<Instant>,
    resent_rows: u64,
    events: VecDeque<Event<T>>,
}

impl<T: Clone> Window<T> {
    /// A window for a run with this epoch, with the numbers of its rows if an earlier run left them.
    pub fn new(epoch: u64, numbers: Option<Numbers>, now: Instant) -> Window<T> {
        Window {
            epoch,
            begun: epoch,
            state: State::Away,
            entries: VecDeque::new(),
            numbers,
            is_doubted: false,
            acked: 0,
            cursor: 0,
            settled: 0,
            flying: Credit::default(),
            reached: 0,
            had: 0,
            next: 0,
            fresh: 0,
            left: 0,
            waiting_rows: 0,
            waiting_size: 0,
            credit: Credit::default(),
            max_batch: u64::MAX,
            obstacle: None,
            is_asking: false,
            is_disputed: false,
            log_id: None,
            request: 0,
            greeted: 0,
            vain: 0,
            heard: now,
            away: now,
            owing: None,
            resent_rows: 0,
            events: VecDeque::new(),
        }
    }

    // ---- input
    // --------------------------------------------------------------------------------------------------------

    /// Takes a batch of `rows` rows that is `size` bytes long, and returns the number of its first row.
    pub fn push(&mut self, payload: T, rows: u64, size: u64) -> u64 {
        let first = self.next;
        self.next += rows;
        self.waiting_rows += rows;
        self.waiting_size += size;
        self.entries.push_back(Entry {
            first,
            rows,
            size,
            is_cut: false,
            is_damaged: false,
            time_limit: None,
            request: 0,
            payload,
        });
        first
    }

    /// Marks the batches pushed so far as those that earlier runs may have sent.
    pub fn begin_fresh(&mut self) {
        self.fresh = self.next;
        self.begin_own();
    }

    /// Marks the batches pushed so far as those of earlier runs.
    pub fn begin_own(&mut self) {
        self.left = self.next;
    }

    /// A connection was established. Nothing sent before is in transit any more.
    pub fn on_connected(&mut self, now: Instant) {
        if !self.is_over() {
            self.greet(now);
        }
    }

    /// The connection has ended.
    pub fn on_disconnected(&mut self, now: Instant) {
        if !self.is_over() {
            self.leave(State::Away, now);
        }
    }

    /// The collector replied to the HELLO `id`.
    pub fn on_welcome(&mut self, id: u64, welcome: Welcome, now: Instant) {
        if !matches!(self.state, State::Greeting { asked: Some(asked), .. } if asked == id) {
            return;
        }
        if let Some((_, last)) = welcome.writers.iter().find(|(_, last)| *last >= SEQ_MAX) {
            let text = format!("no sequence number is as high as {last}");
            return self.end(Code::Invalid, text, now);
        }
        let Some(row) = self.compare(&welcome) else {
            let text = "the collector has rows of this run that were never sent: another producer uses the name; use \
                        another one to go on";
            return self.end(Code::Gap, text.to_owned(), now);
        };
        self.heard = now;
        self.state = State::Open;
        self.log_id = Some(welcome.log_id);
        self.max_batch = welcome.max_batch;
        // A collector that still cannot write gives no credit, and does not repeat the reason.
        if !self.is_disputed && !welcome.credit.is_nothing() {
            self.obstacle = None;
        }
        self.had = row;
        self.deliver_unsendable(row);
        self.go_back_to(row);
        self.take_credit(welcome.credit, now);
    }

    /// All rows up to `seq` are on disk. `offset` is that of the first new row in the batch that ends there.
    pub fn on_ack(&mut self, seq: u64, offset: Option<u64>, credit: Credit, now: Instant) {
        // An honest collector does not acknowledge a number that was never sent.
        let Some(upto) = self.row_behind(seq).filter(|upto| *upto <= self.reached) else {
            return;
        };
        if self.is_over() {
            return;
        }
        self.heard = now;
        self.deliver(upto, offset);
        if std::mem::take(&mut self.is_disputed) {
            self.obstacle = None;
        }
        self.take_credit(credit, now);
    }

    /// The credit has changed. The log has all rows up to `last_seq`, and later ones must be sent again.
    pub fn on_status(
        &mut self,
        epoch: u64,
        last_seq: Option<u64>,
        credit: Credit,
        obstacle: Option<(Code, String)>,
        now: Instant,
    ) {
        if self.state != State::Open || epoch != self.epoch {
            return;
        }
        self.heard = now;
        self.obstacle = obstacle;
        let has = last_seq.map_or(Some(0), |last| self.row_behind(last));
        let Some(has) = has.filter(|has| *has <= self.reached) else {
            return self.greet_later(now);
        };
        self.go_back_to(has.max(self.acked));
        self.take_credit(credit, now);
    }

    /// The collector refused the request `id`. `wall` is the time in microseconds since 1970.
    pub fn on_refused(
        &mut self,
        id: u64,
        code: Code,
        detail: u64,
        text: String,
        wall: u64,
        now: Instant,
    ) {
        if self.is_over() || self.state == State::Away || (id != 0 && id < self.greeted) {
            return;
        }
        self.heard = now;
        match code {
            Code::Gap | Code::HelloFirst => self.greet_later(now),
            // This run has got an epoch that is earlier than its beginning, because the collector's clock is behind. An earlier
            // run has got a later one by chance, or its HELLO came when the clock had been set.
            Code::Fenced if self.epoch < detail && detail <= self.begun => {
                self.epoch = self.begun;
                self.greet_later(now);
            }
            // An epoch in the future comes from a clock that was set back since, and not from a later run. An epoch
            // below ours means that our clock is ahead.
            Code::Fenced
                if self.log_id.is_none()
                    && detail < EPOCH_END
                    && (detail > wall || detail < self.epoch) =>
            {
                // Two runs that get the same answer at the same time must not choose the same epoch.
                self.epoch = detail + 1 + self.epoch % EPOCH_STEP;
                self.greet_later(now);
            }
            Code::Full | Code::ReadOnly | Code::Failed | Code::TooMany | Code::Closing => {
                self.obstacle = Some((code, text));
                if self.is_stuck() {
                    self.away = now;
                }
                self.greet_after(SILENCE, now);
            }
            Code::Invalid if self.mark_ahead(id, detail) => self.greet_later(now),
            _ => self.end(code, text, now),
        }
    }

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        match self.state {
            State::Greeting { asked: None, .. } | State::Away | State::Over(_) => {}
            State::Open if self.owing.is_none() => {
                self.greet(now);
                self.is_asking = true;
            }
            State::Greeting { .. } | State::Open => {
                self.leave(State::Away, now);
                self.events.push_back(Event::Stale);
            }
        }
    }

    // ---- output
    // -------------------------------------------------------------------------------------------------------

    /// Returns the oldest event.
    pub fn poll_event(&mut self) -> Option<Event<T>> {
        self.events.pop_front()
    }

    /// Returns the next request to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<T>> {
        match self.state {
            State::Greeting { due, asked: None } if due <= now => {
                self.request += 1;
                self.greeted = self.request;
                self.vain = self.vain.saturating_add(1);
                self.owing = Some(now);
                self.state = State::Greeting {
                    due,
                    asked: Some(self.request),
                };
                Some(Transmit::Hello {
                    id: self.request,
                    epoch: self.epoch,
                    next_seq: self.first_unacked_seq(),
                })
            }
            State::Open => self.next_append(now),
            _ => None,
        }
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) or [`poll_transmit`](Self::poll_transmit) will have
    /// work.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Away | State::Over(_) => None,
            State::Greeting { due, asked: None } => Some(due),
            State::Greeting { .. } | State::Open => match self.owing {
                Some(since) => Some(since.max(self.heard) + SILENCE),
                None if self.credit.is_nothing() => Some(self.heard + PROBE),
                None => None,
            },
        }
    }

    // ---- state
    // --------------------------------------------------------------------------------------------------------

    /// The number of unacknowledged rows.
    pub fn unacknowledged(&self) -> u64 {
        self.waiting_rows
    }

    /// The number of bytes in unacknowledged batches.
    pub fn unacknowledged_size(&self) -> u64 {
        self.waiting_size
    }

    /// The rows and bytes that were sent and are not acknowledged, without those that the log already had.
    pub fn flying(&self) -> Credit {
        self.flying
    }

    /// The maximum rows and bytes in transit.
    pub fn credit(&self) -> Credit {
        self.credit
    }

    /// The row below which everything is acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// The sequence number of row 0, once it is known. It may be negative, in which case row 0 no longer has one.
    pub fn base(&self) -> Option<i64> {
        Some(self.numbers.as_ref()?.base)
    }

    fn seq_of(&self, row: u64) -> Option<u64> {
        u64::try_from(self.base()? + row.cast_signed()).ok()
    }

    /// The id of the collector's log, once it has reported it.
    pub fn log_id(&self) -> Option<LogId> {
        self.log_id
    }

    /// The epoch of this run.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Rows that were sent again, counted once per repetition.
    pub fn resent(&self) -> u64 {
        self.resent_rows
    }

    /// The obstacle that the collector reported.
    pub fn obstacle(&self) -> Option<&(Code, String)> {
        self.obstacle.as_ref()
    }

    /// The reason why the conversation has ended, if it has.
    pub fn ending(&self) -> Option<&Ending> {
        match &self.state {
            State::Over(ending) => Some(ending),
            _ => None,
        }
    }

    /// The time since which the collector has been gone; `None` while it is there.
    pub fn gone_since(&self) -> Option<Instant> {
        match self.state {
            State::Open => None,
            // The collector answers, and reports why it cannot write.
            State::Greeting { .. } if self.is_stuck() => None,
            _ => Some(self.away),
        }
    }

    /// Whether the collector takes nothing, as far as it has answered. While it is asked whether that has changed, it counts
    /// as before.
    pub fn takes_nothing(&self) -> bool {
        let is_known = self.is_open() || self.is_asking;
        is_known && self.credit.is_nothing()
    }

    /// Whether batches are being sent.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    // ---- internals
    // ----------------------------------------------------------------------------------------------------

    /// Whether the collector reported that it cannot write.
    fn is_stuck(&self) -> bool {
        let code = self.obstacle.as_ref().map(|(code, _)| code);
        matches!(code, Some(Code::Full | Code::ReadOnly | Code::Failed))
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    fn first_unacked_seq(&self) -> u64 {
        self.seq_of(self.acked).unwrap_or_default()
    }

    /// The row after the one with this sequence number; 0 if that is before the window.
    fn row_behind(&self, seq: u64) -> Option<u64> {
        let base = self.numbers.as_ref()?.base;
        let end = i64::try_from(seq).ok()?.checked_add(1)?;
        Some(u64::try_from(end.checked_sub(base)?).unwrap_or(0))
    }

    /// Removes the first batch if it ends at row `upto` or before.
    fn take_front(&mut self, upto: u64) -> Option<Entry<T>> {
        self.entries.front().filter(|entry| entry.end() <= upto)?;
        let entry = self.entries.pop_front()?;
        if self.settled > 0 {
            self.settled -= 1;
            self.cursor -= 1;
        } else if self.cursor > 0 {
            self.cursor -= 1;
            self.flying.rows -= entry.rows;
            self.flying.bytes -= entry.size;
        }
        self.acked = entry.end();
        self.waiting_rows -= entry.rows;
        self.waiting_size -= entry.size;
        self.vain = 0;
        Some(entry)
    }

    /// Delivers the batches below row `upto`, which are on disk; `offset` belongs to the one that ends there.
    fn deliver(&mut self, upto: u64, offset: Option<u64>) {
        while let Some(entry) = self.take_front(upto) {
            let is_known = entry.end() == upto && !entry.is_cut;
            self.events.push_back(Event::Delivered {
                first: entry.first,
                rows: entry.rows,
                size: entry.size,
                first_seq: self.seq_of(entry.first).unwrap_or_default(),
                offset: offset.filter(|_| is_known),
                payload: entry.payload,
            });
        }
    }

    fn next_append(&mut self, now: Instant) -> Option<Transmit<T>> {
        let request = self.request + 1;
        let entry = self.entries.get(self.cursor)?;
        let fits = !self.is_disputed
            && self.flying.rows + entry.rows <= self.credit.rows
            && self.flying.bytes + entry.size <= self.credit.bytes;
        // One batch may always be in transit, however large it is.
        if self.credit.is_nothing() || !(fits || self.cursor == self.settled) {
            return None;
        }
        // It is handled when the batches before it are acknowledged.
        if self.unsendable(entry).is_some() {
            return None;
        }
        self.cursor += 1;
        self.flying.rows += entry.rows;
        self.flying.bytes += entry.size;
        let first = entry.first;
        if first < self.reached {
            self.resent_rows += entry.rows;
        }
        self.reached = self.reached.max(entry.end());
        self.owing.get_or_insert(now);
        self.request = request;
        let payload = entry.payload.clone();
        if let Some(entry) = self.entries.get_mut(self.cursor - 1) {
            entry.request = request;
        }
        Some(Transmit::Append {
            id: request,
            epoch: self.epoch,
            first_seq: self.seq_of(first).unwrap_or_default(),
            payload,
        })
    }

    /// Continues after the rows below `row`, which the collector has. The batch that ends there is sent again, to be
    /// acknowledged.
    fn go_back_to(&mut self, row: u64) {
        self.reached = self.reached.max(row);
        self.cursor = 0;
        for entry in &mut self.entries {
            if entry.end() >= row {
                entry.is_cut |= entry.first < row && row < entry.end();
                break;
            }
            self.cursor += 1;
        }
        // Counting these would leave no credit for the batch whose reply acknowledges them.
        self.settled = self.cursor;
        self.flying = Credit::default();
    }

    fn take_credit(&mut self, credit: Credit, now: Instant) {
        self.credit = credit;
        // It owes one to a HELLO, even if it has acknowledged earlier batches in the meantime. Without credit it owes
        // none to the batches, because it waits for room itself.
        let is_asked = matches!(self.state, State::Greeting { asked: Some(_), .. });
        let is_waiting = self.cursor > 0 && !credit.is_nothing();
        self.owing = (is_asked || is_waiting).then_some(now);
    }

    fn greet(&mut self, now: Instant) {
        self.greet_after(Duration::ZERO, now);
    }

    /// At once the first time, and later after each HELLO without effect.
    fn greet_later(&mut self, now: Instant) {
        let delay = match self.vain {
            0 | 1 => Duration::ZERO,
            vain => (PATIENCE * (1 << (vain - 2).min(8))).min(SILENCE),
        };
        self.greet_after(delay, now);
    }

    fn greet_after(&mut self, delay: Duration, now: Instant) {
        // Replies to earlier requests belong to the previous conversation.
        self.greeted = self.request + 1;
        let due = now + delay;
        self.leave(State::Greeting { due, asked: None }, now);
    }

    fn end(&mut self, code: Code, text: String, now: Instant) {
        self.leave(State::Over(Ending { code, text }), now);
    }

    fn leave(&mut self, state: State, now: Instant) {
        if self.state == State::Open {
            // A collector that owed no reply counts as present until now, however long it has been silent.
            self.away = self.owing.map_or(now, |_| self.heard);
        }
        self.owing = None;
        self.is_asking = false;
        self.state = state;
    }
}

#[cfg(test)]
mod tests;
