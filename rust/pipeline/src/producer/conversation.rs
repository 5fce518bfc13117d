//! The conversation with one collector: what is held, what is in the spool, and what is in the window.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::{Batch, LogError};

use crate::clock::wall;
use crate::link::{Change, Channel, Denial, Link};
use crate::producer::intake::{Content, Sealed};
use crate::producer::notices::Notice;
use crate::producer::shared::{Shared, Standing};
use crate::producer::spool::Spool;
use crate::producer::window::{Event, Numbers, Transmit, Unsent, Welcome, Window};
use crate::producer::{Failure, encoded};
use crate::wire::{Code, Reply, Request};

mod setbacks;

/// The interval at which a full spool is checked for room.
const RETRY: Duration = Duration::from_millis(100);

/// A batch to send.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    /// Its wire form; None while it is only in the spool.
    pub bytes: Option<Bytes>,
    /// The number of bytes that it counts against the producer's limits.
    pub cost: u64,
    /// Its offsets in the spool.
    pub spooled: Option<(u64, u64)>,
}

impl Parcel {
    /// A batch that cannot be read from the spool.
    pub(crate) fn damaged(place: (u64, u64)) -> Parcel {
        Parcel {
            bytes: None,
            cost: 0,
            spooled: Some(place),
        }
    }
}

/// What became of rows.
enum Outcome {
    /// They were delivered.
    Delivered(Notice, Parcel),
    /// They will not be sent.
    Given(Unmoved),
}

impl Outcome {
    #[cfg(zeroxide_disk)]
    fn rows(&self) -> u64 {
        match self {
            Outcome::Delivered(notice, _) => notice.rows,
            Outcome::Given(given) => given.range.end - given.range.start,
        }
    }
}

/// Rows that will not be sent.
struct Unmoved {
    range: Range<u64>,
    why: Unsent,
    parcel: Parcel,
}

/// See the module text.
pub(crate) struct Conversation<L = Link> {
    pub link: L,
    pub window: Window<Parcel>,
    pub spool: Option<Spool>,
    /// Whether a batch, or the numbers, could not be written to the spool. Later batches would get wrong numbers in the
    /// next run.
    spool_failed: bool,
    /// Whether nothing may be sent, because the spool could not save the numbers first.
    is_mute: bool,
    /// The numbers to save, while there is no room for them.
    unkept: Option<Numbers>,
    /// What became of rows, in order, from the first on that the spool's disk does not let move out. Counts of acknowledged
    /// rows, and what the spool may remove, begin with the first row.
    outcomes: VecDeque<Outcome>,
    /// When to try that again.
    move_at: Option<Instant>,
    /// Accepted batches, in order, that are not in the spool for lack of room.
    pub held: VecDeque<Sealed>,
    full: Option<Full>,
    /// The reason why there is no conversation, if it is more than a missing answer.
    trouble: Option<String>,
    denied: Option<Denial>,
    /// When to open a connection again, after the system had no descriptors or memory for one.
    reopen_at: Option<Instant>,
    /// The time since which the collector has answered but accepted nothing.
    blocked: Option<Instant>,
    /// The rows of this turn that were acknowledged or given up, and their cost.
    pub released: (u64, u64),
    renumbered: u64,
    lost: u64,
    set_aside: u64,
    /// Whether the number of rows is known that were ever sent under this name.
    is_counted: bool,
}

/// A spool without room.
pub(crate) struct Full {
    since: Instant,
    retry_at: Instant,
    reason: String,
}

impl<L: Channel> Conversation<L> {
    /// Begins with the rows that earlier runs have left in the spool. Passes the number and the size of those of each
    /// batch to `each`. Batches beyond `memory` bytes are read again when they are sent.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn begin(
        link: L,
        spool: Option<Spool>,
        memory: u64,
        now: Instant,
        mut each: impl FnMut(u64, u64),
    ) -> Result<Conversation<L>, Failure> {
        let epoch = spool.as_ref().map_or_else(wall, Spool::next_epoch);
        let numbers = spool.as_ref().and_then(Spool::numbers);
        let epochs = numbers.as_ref().and_then(|numbers| numbers.epochs.as_ref());
        let newest = epochs.and_then(|epochs| epochs.iter().max().copied());
        let mut has_unsent = false;
        let mut window = Window::new(epoch, numbers, now);
        if let Some(spool) = &spool {
            let left = spool.left(|left| {
                let rows = left.place.1 - left.place.0;
                // A later run than any that has sent rows put these into the spool, perhaps at offsets of rows that were
                // sent and lost here. So they are as new as rows of this run.
                if !has_unsent && newest.is_some_and(|newest| left.epoch > newest) {
                    has_unsent = true;
                    window.begin_fresh();
                }
                let Some(bytes) = left.bytes else {
                    window.push_damaged(Parcel::damaged(left.place), rows);
                    each(rows, 0);
                    return;
                };
                let size = bytes.len() as u64;
                let is_kept = window.unacknowledged_size() < memory;
                let parcel = Parcel {
                    bytes: is_kept.then_some(bytes),
                    cost: size,
                    spooled: Some(left.place),
                };
                window.push(parcel, rows, size);
                each(rows, size);
            });
            left.map_err(Failure::spool)?;
            if spool.has_lost_numbers() {
                window.doubt();
            }
        }
        match has_unsent {
            true => window.begin_own(),
            false => window.begin_fresh(),
        }
        Ok(Conversation::new(link, window, spool))
    }

    fn new(link: L, window: Window<Parcel>, spool: Option<Spool>) -> Conversation<L> {
        let is_counted = spool.as_ref().is_none_or(Spool::is_whole);
        Conversation {
            link,
            window,
            spool,
            spool_failed: false,
            is_mute: false,
            unkept: None,
            outcomes: VecDeque::new(),
            move_at: None,
            held: VecDeque::new(),
            full: None,
            trouble: None,
            denied: None,
            reopen_at: None,
            blocked: None,
            released: (0, 0),
            renumbered: 0,
            lost: 0,
            set_aside: 0,
            is_counted,
        }
    }

    /// Puts the held batches into the spool, if there is room, and into the window. Returns their cost.
    pub fn take_held(&mut self, shared: &Shared, now: Instant) -> u64 {
        let mut settled = 0;
        while self.may_spool(now)
            && let Some(sealed) = self.held.pop_front()
        {
            let cost = sealed.cost;
            match self.take(shared, sealed, now) {
                Ok(true) => settled += cost,
                Ok(false) => break,
                Err(failure) => {
                    settled += cost;
                    shared.fail(failure);
                }
            }
        }
        match self.spool.as_mut().map(Spool::settle) {
            Some(Err(error)) if error.is_passing() => self.on_full(&error, now),
            Some(Err(error)) => shared.fail(Failure::spool(error)),
            Some(Ok(_)) | None => {}
        }
        settled
    }

    /// Handles the messages of the collector number `at`, and sends. Returns whether there is more to do at once.
    pub fn converse(
        &mut self,
        shared: &Shared,
        at: usize,
        now: Instant,
        notices: &mut Vec<Notice>,
    ) -> Result<bool, Failure> {
        if self.reopen_at.is_some_and(|due| due <= now) {
            self.reopen(shared, now)?;
        }
        self.listen(shared, at, now)?;
        self.window.handle_timeout(now);
        self.settle(shared, at, now, notices)?;
        while let Some(event) = self.window.poll_event() {
            match event {
                Event::Numbered(numbers) => self.unkept = Some(numbers),
                Event::Foreign { rows, epoch } => {
                    self.on_foreign(shared, rows, epoch);
                }
                Event::Lost { rows, before } => {
                    let notice = self.on_lost(shared, at, rows, before);
                    notices.extend(notice);
                }
                Event::Given {
                    first,
                    rows,
                    why,
                    payload,
                } => {
                    let range = first..first + rows;
                    self.outcomes.push_back(Outcome::Given(Unmoved {
                        range,
                        why,
                        parcel: payload,
                    }));
                    self.settle(shared, at, now, notices)?;
                }
                Event::Stale => self.reopen(shared, now)?,
                Event::Delivered {
                    first,
                    rows,
                    first_seq,
                    offset,
                    payload,
                    ..
                } => {
                    let notice = Notice {
                        collector: at,
                        first_row: first,
                        rows,
                        first_seq: Some(first_seq),
                        offset,
                        lost: None,
                    };
                    self.outcomes.push_back(Outcome::Delivered(notice, payload));
                    self.settle(shared, at, now, notices)?;
                }
            }
        }
        self.keep_numbers(now)?;
        if self.is_mute || self.unkept.is_some() {
            return Ok(false);
        }
        if self.window.is_open()
            && let Some(spool) = &mut self.spool
        {
            spool.on_counted();
        }
        while let Some(transmit) = self.window.poll_transmit(now) {
            self.send(shared, transmit)?;
        }
        if self.see_to_unsendable(shared, now) {
            return Ok(true);
        }
        match self.window.ending() {
            Some(ending) => Err(Failure::of_ending(
                self.link.endpoint(),
                &shared.name,
                ending,
            )),
            None => Ok(false),
        }
    }

    /// Whether to try the spool now, if there is one.
    fn may_spool(&mut self, now: Instant) -> bool {
        let is_due = self.full.as_ref().is_none_or(|full| full.retry_at <= now);
        if is_due
            && self.full.is_some()
            && let Some(spool) = &mut self.spool
        {
            // The next append shows whether this succeeded.
            let _ = spool.make_room();
        }
        is_due
    }

    /// Takes a batch into the window; returns false if the spool is full.
    fn take(&mut self, shared: &Shared, sealed: Sealed, now: Instant) -> Result<bool, Failure> {
        let epoch = self.window.epoch();
        let spool = self.spool.as_mut().filter(|_| !self.spool_failed);
        let spooled = spool.map(|spool| match &sealed.content {
            Content::Columns(batch) => spool.append(batch, epoch),
            Content::Encoded(bytes) => spool.append(&Batch::decode(bytes.clone())?, epoch),
        });
        let (spooled, result) = match spooled {
            None => (None, Ok(true)),
            Some(Ok(place)) => (Some(place), Ok(true)),
            Some(Err(error)) if error.is_passing() => {
                self.held.push_front(sealed);
                self.on_full(&error, now);
                return Ok(false);
            }
            // The batch is still sent. Batches sealed by then follow it, and are not put into the spool at its offsets.
            Some(Err(error)) => {
                self.spool_failed = true;
                (None, Err(Failure::spool(error)))
            }
        };
        let bytes = match sealed.content {
            Content::Columns(batch) => encoded(&batch),
            Content::Encoded(bytes) => bytes,
        };
        let size = bytes.len() as u64;
        shared.counters.batches.fetch_add(1, Ordering::Relaxed);
        shared.counters.bytes.fetch_add(size, Ordering::Relaxed);
        let is_kept = spooled.is_none() || self.window.unacknowledged_size() < shared.memory;
        let parcel = Parcel {
            bytes: is_kept.then_some(bytes),
            cost: sealed.cost,
            spooled,
        };
        self.window.push(parcel, sealed.rows, size);
        if self.unkept.is_none() && self.outcomes.is_empty() {
            self.full = None;
        }
        result
    }

    /// The spool is full, or cannot be written to, so new batches wait, and then callers do.
    fn on_full(&mut self, error: &LogError, now: Instant) {
        let full = self.full.get_or_insert_with(|| Full {
            since: now,
            retry_at: now,
            reason: String::new(),
        });
        full.reason = error.to_string();
        if full.retry_at <= now {
            full.retry_at = now + RETRY;
        }
    }

    /// When there is something to do, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let is_silent = self.is_mute || self.unkept.is_some();
        let window = self.window.poll_timeout().filter(|_| !is_silent);
        let full = self.full.as_ref().map(|full| full.retry_at);
        let due = [window, full, self.move_at, self.reopen_at];
        due.into_iter().flatten().min()
    }

    /// Makes the last attempt to write to the spool due.
    pub fn try_spool_again(&mut self, now: Instant) {
        if let Some(full) = &mut self.full {
            full.retry_at = now;
        }
        self.move_at = self.move_at.map(|_| now);
    }

    /// Something that waited for the spool's disk is done. If it was the last, the disk is as it should be.
    fn on_room(&mut self) {
        if self.held.is_empty() && self.unkept.is_none() && self.outcomes.is_empty() {
            self.full = None;
        }
    }

    /// Saves the sequence numbers in the spool, if a collector has just reported them.
    fn keep_numbers(&mut self, now: Instant) -> Result<(), Failure> {
        let Some(numbers) = self.unkept.as_ref().filter(|_| !self.is_mute) else {
            return Ok(());
        };
        let Some(spool) = &mut self.spool else {
            self.unkept = None;
            return Ok(());
        };
        match spool.set_numbers(numbers) {
            Ok(()) => {
                self.unkept = None;
                self.on_room();
            }
            Err(error) if error.is_passing() => self.on_full(&error, now),
            Err(error) => {
                self.spool_failed = true;
                self.is_mute = true;
                return Err(Failure::spool(error));
            }
        }
        Ok(())
    }

    fn listen(&mut self, shared: &Shared, at: usize, now: Instant) -> Result<(), Failure> {
        while let Some(message) = self.link.poll_message() {
            match Reply::decode(message) {
                Ok((id, reply)) => self.hear(shared, at, (id, reply), now),
                Err(error) => {
                    self.trouble = Some(format!("what answers there is no collector: {error}"));
                }
            }
        }
        while let Some(change) = self.link.poll_change() {
            match change {
                Change::Up => {
                    self.reopen_at = None;
                    self.trouble = None;
                    self.denied = None;
                    self.window.on_connected(now);
                }
                Change::Down => {
                    self.window.on_disconnected(now);
                    self.reopen(shared, now)?;
                }
                Change::Denied(why) => {
                    self.denied = Some(why);
                    self.trouble = Some(format!("it {why}"));
                }
                Change::Away => {
                    if self.denied.take().is_some() {
                        self.trouble = None;
                    }
                }
            }
        }
        Ok(())
    }

    fn hear(&mut self, shared: &Shared, at: usize, (id, reply): (u64, Reply), now: Instant) {
        let obstacle = |code: Code, text: String| (code != Code::Fine).then_some((code, text));
        match reply {
            Reply::Welcome {
                log_id,
                writers,
                is_whole,
                credit,
                max_batch_bytes,
                ..
            } => {
                shared.state().intake.limit(at, max_batch_bytes);
                let welcome = Welcome {
                    log_id,
                    writers,
                    is_whole,
                    credit,
                    max_batch: max_batch_bytes,
                };
                self.window.on_welcome(id, welcome, now);
            }
            Reply::Ack {
                seq,
                offset,
                credit,
            } => self.window.on_ack(seq, offset, credit, now),
            Reply::Refused { code, detail, text } => {
                self.window.on_refused(id, code, detail, text, wall(), now);
            }
            Reply::Status {
                producer,
                epoch,
                code,
                last_seq,
                credit,
                text,
            } if producer == shared.name => {
                let obstacle = obstacle(code, text);
                self.window
                    .on_status(epoch, last_seq, credit, obstacle, now);
            }
            _ => {}
        }
    }

    fn send(&mut self, shared: &Shared, transmit: Transmit<Parcel>) -> Result<(), Failure> {
        let producer = shared.name.clone();
        let (id, request) = match transmit {
            Transmit::Hello {
                id,
                epoch,
                next_seq,
            } => {
                let hello = Request::Hello {
                    producer,
                    epoch,
                    next_seq,
                };
                (id, hello)
            }
            Transmit::Append {
                id,
                epoch,
                first_seq,
                payload,
            } => {
                let batch = match (payload.bytes, payload.spooled, &mut self.spool) {
                    (Some(bytes), ..) => bytes,
                    (None, Some(place), Some(spool)) => match spool.read(place) {
                        Ok(batch) => batch,
                        Err(LogError::Corrupt { .. }) => {
                            self.window.on_damaged();
                            return Ok(());
                        }
                        // The batch gets no reply, and is sent again.
                        Err(error) if error.is_passing() => return Ok(()),
                        Err(error) => return Err(Failure::spool(error)),
                    },
                    _ => return Ok(()),
                };
                let append = Request::Append {
                    producer,
                    epoch,
                    first_seq,
                    batch,
                };
                (id, append)
            }
        };
        // A request that cannot be sent now gets no reply, and is repeated.
        self.link.send(request.encode(id));
        Ok(())
    }

    fn reopen(&mut self, shared: &Shared, now: Instant) -> Result<(), Failure> {
        self.reopen_at = None;
        match self.link.reopen() {
            Ok(()) => {
                shared.counters.reconnects.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.is_exhausted() => {
                self.trouble = Some(format!("no connection can be opened: {error}"));
                self.reopen_at = Some(now + RETRY);
                Ok(())
            }
            Err(error) => Err(Failure::Socket(error)),
        }
    }

    /// The number of rows that are not acknowledged.
    #[cfg(zeroxide_disk)]
    pub fn unacknowledged(&self) -> u64 {
        let held: u64 = self.held.iter().map(|sealed| sealed.rows).sum();
        let outcomes: u64 = self.outcomes.iter().map(Outcome::rows).sum();
        self.window.unacknowledged() + held + outcomes
    }

    /// Describes the state of the conversation.
    pub fn tell(&mut self, standing: &mut Standing, now: Instant) {
        let window = &self.window;
        let takes_nothing = window.takes_nothing() || window.obstacle().is_some();
        let is_blocked = window.unacknowledged() > 0 && takes_nothing;
        self.blocked = is_blocked.then(|| self.blocked.unwrap_or(now));
        standing.gone = window.gone_since();
        let full = self.full.as_ref();
        standing.spool_full = full.map(|full| (full.since, full.reason.clone()));
        standing.unspooled = self.held.iter().map(|sealed| sealed.rows).sum();
        standing.blocked = self.blocked;
        standing.denied = self.denied;
        standing.is_open = window.is_open();
        self.is_counted |= window.is_open();
        standing.is_counted = self.is_counted;
        standing
            .obstacle
            .clone_from(&window.obstacle().map(|(code, _)| *code));
        let reason = window
            .obstacle()
            .map(|(_, text)| text)
            .or(self.trouble.as_ref());
        if standing.reason.as_ref() != reason {
            standing.reason = reason.cloned();
        }
        standing.base = window.base();
        (standing.renumbered, standing.lost) = (self.renumbered, self.lost);
        standing.set_aside = self.set_aside;
        standing.log_id = window.log_id();
        standing.epoch = window.epoch();
        standing.credit = window.credit();
        standing.flying = window.flying();
        standing.resent = window.resent();
        standing.acked = window.acked();
    }
}
