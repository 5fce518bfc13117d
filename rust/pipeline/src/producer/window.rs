//! What one collector has not acknowledged of one producer's rows: a value. Replies and a clock in, requests and events
//! out; no sockets, no threads.
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
//! Rows are counted from 0 as they come in; `base` is the sequence number of row 0, and known as soon as a collector has
//! said what it has of this producer. A run that goes on with what a former one left knows it from the beginning, and which
//! epochs sent rows with these [`Numbers`].
//!
//! What others have sent under this name meanwhile has numbers that were meant for rows here: those of them that never
//! got there get new ones, behind the last that the collector has. Which ones did is known from the last row that one of our
//! own epochs wrote. So it is, too, whether the collector lost rows that it had acknowledged. Rows from before the current
//! numbers are lost if the last of them is not there any more, or another epoch wrote the row with its number.
//!
//! The window has three marks, `acked <= sent <= next`: below `acked` the collector has everything on disk, `sent` is
//! where to go on sending, rows from `next` on have not come in. After every WELCOME `sent` goes back to what the collector has,
//! and one batch more: the last batch that it has is sent again, because only an answer to a batch says that it is on disk.
//!
//! # The calling order
//!
//! One `on_*`, [`push`](Window::push) or [`handle_timeout`](Window::handle_timeout); then all of
//! [`poll_event`](Window::poll_event), which must be obeyed before anything is sent; then all of
//! [`poll_transmit`](Window::poll_transmit); then sleep until [`poll_timeout`](Window::poll_timeout).

mod numbers;
mod unsent;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use zeroxide_log::EPOCH_END;

pub use crate::producer::window::numbers::Numbers;
pub use crate::producer::window::unsent::Unsent;
use crate::wire::{Code, Credit, EPOCH_STEP, LogId};

/// When a collector that owes an answer is called silent.
const SILENCE: Duration = Duration::from_secs(2);

/// How long to wait before another HELLO when the last ones led to nothing: so long after the first, and twice as long
/// after each further one, up to [`SILENCE`].
const PATIENCE: Duration = Duration::from_millis(50);

/// How often to ask a collector that gives no credit whether it has some: it may have forgotten who waits.
const PROBE: Duration = Duration::from_secs(5);

/// No producer gets this far: sums with row numbers do not overflow below it.
const SEQ_MAX: u64 = 1 << 62;

/// A batch that is not acknowledged.
#[derive(Clone, Debug)]
struct Entry<T> {
    first: u64,
    rows: u64,
    size: u64,
    /// The collector may have had a part of it before: what it says about its first new row is not about our first.
    is_cut: bool,
    /// It cannot be read any more.
    is_damaged: bool,
    payload: T,
}

impl<T> Entry<T> {
    fn end(&self) -> u64 {
        self.first + self.rows
    }
}

/// Where the conversation is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// There is no connection.
    Away,
    /// A HELLO is to be said at `due`, or `asked` was said and is not answered.
    Greeting { due: Instant, asked: Option<u64> },
    /// Batches flow.
    Open,
    /// For ever.
    Over(Ending),
}

/// Why nothing can be sent any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// What the collector said, for programs.
    pub code: Code,
    /// For people.
    pub text: String,
}

/// Something to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<T> {
    /// The producer introduces itself.
    Hello {
        /// The number of the request.
        id: u64,
        /// Which run this is.
        epoch: u64,
        /// The first sequence number that is not acknowledged.
        next_seq: u64,
    },
    /// A batch.
    Append {
        /// The number of the request.
        id: u64,
        /// Which run this is.
        epoch: u64,
        /// The sequence number of its first row.
        first_seq: u64,
        /// The batch.
        payload: T,
    },
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// The collector said what it has, so this is how rows are numbered. To be kept, where rows outlive the process, before
    /// anything is sent.
    Numbered(Numbers),
    /// Another producer has sent rows under this name. So many rows here never got there, and have new numbers.
    Foreign {
        /// How many rows.
        rows: u64,
        /// The epoch of the other one.
        epoch: u64,
    },
    /// The collector does not have so many rows any more that it acknowledged: those before row `before`.
    Lost {
        /// How many rows.
        rows: u64,
        /// The row behind the last of them.
        before: u64,
    },
    /// Rows that will not be sent. They are no part of the window any more.
    Given {
        /// The first row.
        first: u64,
        /// How many.
        rows: u64,
        /// Why not.
        why: Unsent,
        /// The batch.
        payload: T,
    },
    /// A batch is on the collector's disk.
    Delivered {
        /// Its first row, counted from 0.
        first: u64,
        /// How many.
        rows: u64,
        /// Its size, as it was pushed.
        size: u64,
        /// The sequence number of its first row.
        first_seq: u64,
        /// The offset of its first row, if the collector told: it does not for what it had before.
        offset: Option<u64>,
        /// The batch.
        payload: T,
    },
    /// The connection seems to be dead: make another one.
    Stale,
}

/// What a WELCOME says, as far as it matters here.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// Which log the collector writes.
    pub log_id: LogId,
    /// Who wrote the rows that it has, in the order in which they did: epoch and last sequence number of each.
    pub writers: Vec<(u64, u64)>,
    /// Whether that is all of them.
    pub is_whole: bool,
    /// What may be unacknowledged.
    pub credit: Credit,
    /// The most bytes of a batch.
    pub max_batch: u64,
}

/// The window. `T` is a batch as it is sent, cheap to clone.
pub struct Window<T> {
    epoch: u64,
    state: State,
    entries: VecDeque<Entry<T>>,
    /// None before a collector has said anything.
    numbers: Option<Numbers>,
    /// There were numbers, and they are lost.
    is_doubted: bool,
    acked: u64,
    /// Entries below this index have been sent.
    cursor: usize,
    /// What of them is unacknowledged.
    flying: Credit,
    /// Up to which row anything was ever sent.
    reached: u64,
    /// Up to which row the collector had everything when it said so last.
    had: u64,
    next: u64,
    /// Rows below are from former runs.
    fresh: u64,
    waiting_rows: u64,
    waiting_size: u64,
    credit: Credit,
    max_batch: u64,
    /// What stands in the way, as the collector told.
    obstacle: Option<(Code, String)>,
    log_id: Option<LogId>,
    request: u64,
    /// Requests before this one belong to a conversation that is over.
    greeted: u64,
    /// How many HELLOs were said since something was acknowledged.
    vain: u32,
    /// When the collector last said something that was to the point; before that, the beginning.
    heard: Instant,
    /// While batches do not flow: since when the collector has been gone.
    away: Instant,
    /// Since when it owes an answer, and whether it was called silent for it.
    owing: Option<Instant>,
    resent_rows: u64,
    events: VecDeque<Event<T>>,
}

impl<T: Clone> Window<T> {
    /// A window for a run with this epoch, with the numbers of its rows, if a former run left them.
    pub fn new(epoch: u64, numbers: Option<Numbers>, now: Instant) -> Window<T> {
        Window {
            epoch,
            state: State::Away,
            entries: VecDeque::new(),
            numbers,
            is_doubted: false,
            acked: 0,
            cursor: 0,
            flying: Credit::default(),
            reached: 0,
            had: 0,
            next: 0,
            fresh: 0,
            waiting_rows: 0,
            waiting_size: 0,
            credit: Credit::default(),
            max_batch: u64::MAX,
            obstacle: None,
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

    // ---- what happens ----------------------------------------------------------------------------------------------

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
            payload,
        });
        first
    }

    /// What was pushed so far is from former runs of the producer.
    pub fn begin_fresh(&mut self) {
        self.fresh = self.next;
    }

    /// There is a connection: nothing of what was sent before is on its way any more.
    pub fn on_connected(&mut self, now: Instant) {
        if !self.is_over() {
            self.greet(now);
        }
    }

    /// There is none any more.
    pub fn on_disconnected(&mut self, now: Instant) {
        if !self.is_over() {
            self.leave(State::Away, now);
        }
    }

    /// The collector answered the HELLO `id`.
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
        self.obstacle = None;
        self.had = row;
        self.deliver_unsendable(row);
        self.go_back_to(row);
        self.take_credit(welcome.credit, now);
    }

    /// Everything up to `seq` is on disk; `offset` is that of the first row that was new in the batch that ends there.
    pub fn on_ack(&mut self, seq: u64, offset: Option<u64>, credit: Credit, now: Instant) {
        // A number that was never sent does not come from an honest collector.
        let Some(upto) = self.row_behind(seq).filter(|upto| *upto <= self.reached) else {
            return;
        };
        if self.is_over() {
            return;
        }
        self.heard = now;
        self.deliver(upto, offset);
        self.take_credit(credit, now);
    }

    /// What may be sent has changed; the log has everything up to `last_seq`, and what was sent after it is lost.
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
            // An epoch that lies in the future was made by a clock that was set back since, not by a later run. One that
            // lies below ours means that it is our clock which is ahead.
            Code::Fenced
                if self.log_id.is_none()
                    && detail < EPOCH_END
                    && (detail > wall || detail < self.epoch) =>
            {
                // Two runs that are told the same at the same time must not take the same epoch.
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
            _ => self.end(code, text, now),
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        match self.state {
            State::Greeting { asked: None, .. } | State::Away | State::Over(_) => {}
            State::Open if self.owing.is_none() => self.greet(now),
            State::Greeting { .. } | State::Open => {
                self.leave(State::Away, now);
                self.events.push_back(Event::Stale);
            }
        }
    }

    // ---- what is to be done ----------------------------------------------------------------------------------------

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event<T>> {
        self.events.pop_front()
    }

    /// What is to be sent now.
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

    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_transmit`](Self::poll_transmit) will have something to do.
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

    // ---- how it stands ---------------------------------------------------------------------------------------------

    /// Rows that are not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.waiting_rows
    }

    /// Bytes of batches that are not acknowledged.
    pub fn unacknowledged_size(&self) -> u64 {
        self.waiting_size
    }

    /// Rows that were sent and are not acknowledged, and their bytes.
    pub fn flying(&self) -> Credit {
        self.flying
    }

    /// What may fly.
    pub fn credit(&self) -> Credit {
        self.credit
    }

    /// Below this row everything is acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// The sequence number of row 0, once it is known. It may be below 0: then row 0 has none any more.
    pub fn base(&self) -> Option<i64> {
        Some(self.numbers.as_ref()?.base)
    }

    fn seq_of(&self, row: u64) -> Option<u64> {
        u64::try_from(self.base()? + row.cast_signed()).ok()
    }

    /// The log that the collector writes, once it has said so.
    pub fn log_id(&self) -> Option<LogId> {
        self.log_id
    }

    /// Which run this is.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Rows that were sent more than once, for each time.
    pub fn resent(&self) -> u64 {
        self.resent_rows
    }

    /// What keeps the collector from taking rows, as it told.
    pub fn obstacle(&self) -> Option<&(Code, String)> {
        self.obstacle.as_ref()
    }

    /// Why it is over, if it is.
    pub fn ending(&self) -> Option<&Ending> {
        match &self.state {
            State::Over(ending) => Some(ending),
            _ => None,
        }
    }

    /// Since when the collector has been gone; `None` while it is there.
    pub fn gone_since(&self) -> Option<Instant> {
        match self.state {
            State::Open => None,
            // It answers, and says why it lets nobody in.
            State::Greeting { .. } if self.is_stuck() => None,
            _ => Some(self.away),
        }
    }

    /// Whether batches flow.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    // ---- inside ----------------------------------------------------------------------------------------------------

    /// The collector told that it cannot write.
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

    /// The row behind the one with this sequence number; 0 if that is before the window.
    fn row_behind(&self, seq: u64) -> Option<u64> {
        let base = self.numbers.as_ref()?.base;
        let end = i64::try_from(seq).ok()?.checked_add(1)?;
        Some(u64::try_from(end.checked_sub(base)?).unwrap_or(0))
    }

    /// Takes the first batch out, if it ends at row `upto` or before.
    fn take_front(&mut self, upto: u64) -> Option<Entry<T>> {
        self.entries.front().filter(|entry| entry.end() <= upto)?;
        let entry = self.entries.pop_front()?;
        if self.cursor > 0 {
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

    /// The batches below row `upto` are on disk; `offset` belongs to the one that ends there.
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
        let entry = self.entries.get(self.cursor)?;
        let fits = self.flying.rows + entry.rows <= self.credit.rows
            && self.flying.bytes + entry.size <= self.credit.bytes;
        // However large it is, one batch may fly.
        if self.credit.is_nothing() || !(fits || self.cursor == 0) {
            return None;
        }
        // Those before it are still to be acknowledged; then it is seen to.
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
        self.request += 1;
        Some(Transmit::Append {
            id: self.request,
            epoch: self.epoch,
            first_seq: self.seq_of(first).unwrap_or_default(),
            payload: entry.payload.clone(),
        })
    }

    /// The collector has the rows below `row`. The batch that ends there is sent again, to be acknowledged.
    fn go_back_to(&mut self, row: u64) {
        self.reached = self.reached.max(row);
        self.cursor = 0;
        self.flying = Credit::default();
        for entry in &mut self.entries {
            if entry.end() >= row {
                entry.is_cut |= entry.first < row && row < entry.end();
                break;
            }
            self.cursor += 1;
            self.flying.rows += entry.rows;
            self.flying.bytes += entry.size;
        }
    }

    fn take_credit(&mut self, credit: Credit, now: Instant) {
        self.credit = credit;
        // While it has nothing to give it owes nothing: it waits for room itself.
        self.owing = (self.cursor > 0 && !credit.is_nothing()).then_some(now);
    }

    fn greet(&mut self, now: Instant) {
        self.greet_after(Duration::ZERO, now);
    }

    /// At once the first time, and later each time that it led to nothing.
    fn greet_later(&mut self, now: Instant) {
        let delay = match self.vain {
            0 | 1 => Duration::ZERO,
            vain => (PATIENCE * (1 << (vain - 2).min(8))).min(SILENCE),
        };
        self.greet_after(delay, now);
    }

    fn greet_after(&mut self, delay: Duration, now: Instant) {
        // What comes back for requests of before is about a conversation that is over.
        self.greeted = self.request + 1;
        let due = now + delay;
        self.leave(State::Greeting { due, asked: None }, now);
    }

    fn end(&mut self, code: Code, text: String, now: Instant) {
        self.leave(State::Over(Ending { code, text }), now);
    }

    fn leave(&mut self, state: State, now: Instant) {
        if self.state == State::Open {
            // A collector that owes nothing was there until now, however long it has not said anything.
            self.away = self.owing.map_or(now, |_| self.heard);
        }
        self.owing = None;
        self.state = state;
    }
}

#[cfg(test)]
mod tests;
