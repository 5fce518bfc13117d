//! Fetches a range of offsets with several concurrent requests, and returns checked rows in order.
//!
//! The number of rows that fit into a reply is not known in advance. The first request is for the whole range, and its
//! reply shows the size of rows. From then on, several requests for pieces of about the right size are in transit. If a
//! reply ends before its piece does, another request fetches the rest.
//!
//! A fetch that follows the log has no end: when it has read everything, the collector keeps its request until there is
//! a row.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use zeroxide::{ErrorKind, Events, PollItem};
use zeroxide_log::Stored;

use crate::client::{Client, ClientError, PAUSE};
use crate::link::{Change, Link};
use crate::wake::{self, Wake, Woken};
use crate::wire::{Code, FOLLOW_MAX, LogId, Reply, Request};

/// The maximum number of requests in transit.
const WINDOW: usize = 3;

/// The range to fetch, and how.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// The offsets.
    pub range: Range<u64>,
    /// Only rows whose topic begins with one of these; empty = all rows.
    pub topics: Vec<String>,
    /// The approximate number of bytes per request.
    pub max_bytes: u64,
    /// The log to which the offsets belong; None = any log.
    pub log_id: Option<LogId>,
    /// The generation of the row before the first offset, if that row was read; otherwise 0.
    pub generation: u64,
    /// Whether to wait for rows that do not exist yet. The range then ends at `u64::MAX`.
    pub follows: bool,
}

/// Interrupts a [`Fetch`] that waits; see [`Fetch::interrupter`]. Clones interrupt the same one.
#[derive(Clone, Debug)]
pub struct Interrupter {
    wake: Wake,
}

impl Interrupter {
    /// Ends the wait of the current call of [`Fetch::advance`], or else of the next one.
    pub fn interrupt(&self) {
        self.wake.wake();
    }
}

/// A fetch in progress.
pub struct Fetch {
    client: Arc<Client>,
    config: FetchConfig,
    link: Option<Link>,
    /// All rows below this offset were returned.
    done: u64,
    /// The generation of the last of them; 0 if unknown.
    generation: u64,
    /// All rows below this offset were requested.
    asked: u64,
    asks: VecDeque<Ask>,
    /// The number of rows per request; None until a reply has shown it.
    stride: Option<u64>,
    /// Batches that arrived and were not returned yet.
    ready: VecDeque<(Stored, Range<u64>)>,
    /// The time of the last progress.
    progress: Instant,
    /// The time at which to ask again on another connection.
    patience: Instant,
    /// The end of the pause before asking a collector that is closing again.
    pause: Option<Instant>,
    /// The end of the log in the collector's last reply.
    latest: u64,
    /// Interrupts a wait.
    woken: Option<Woken>,
    is_closed: bool,
}

/// A requested piece.
struct Ask {
    id: Option<u64>,
    range: Range<u64>,
    reply: Option<Reply>,
}

impl Ask {
    fn is_under_way(&self) -> bool {
        self.id.is_some() && self.reply.is_none()
    }
}

/// The result of [`Fetch::advance`].
#[derive(Debug)]
pub enum Fetched {
    /// A batch, whose rows with these offsets follow the previous ones.
    Batch(Box<Stored>, Range<u64>),
    /// Nothing arrived until the deadline.
    Waiting,
    /// The range is complete.
    End,
}

impl Fetch {
    /// Creates a fetch without sending anything.
    pub fn new(client: Arc<Client>, config: FetchConfig) -> Fetch {
        let now = Instant::now();
        Fetch {
            link: None,
            done: config.range.start,
            generation: config.generation,
            asked: config.range.start,
            asks: VecDeque::new(),
            stride: None,
            ready: VecDeque::new(),
            progress: now,
            patience: now + client.timeout(),
            pause: None,
            latest: 0,
            woken: None,
            is_closed: false,
            client,
            config,
        }
    }

    /// Returns a handle that interrupts this fetch from another thread, any number of times.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn interrupter(&mut self) -> std::io::Result<Interrupter> {
        let (wake, woken) = wake::pair()?;
        self.woken = Some(woken);
        Ok(Interrupter { wake })
    }

    /// Ends the fetch and its connection. The position remains; [`advance`](Self::advance) returns only the end.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.link = None;
        self.woken = None;
        self.asks.clear();
    }

    /// Restarts the time limit of the client.
    pub fn resume(&mut self) {
        self.progress = Instant::now();
    }

    /// The offset after the rows that were considered, and the generation of the row before it; None while there are
    /// batches that were not returned.
    pub fn position(&self) -> Option<(u64, u64)> {
        self.ready
            .is_empty()
            .then_some((self.done, self.generation))
    }

    /// Descriptors that become readable when there is something to process.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn fds(&self) -> Result<Vec<RawFd>, ClientError> {
        Ok(match &self.link {
            Some(link) => link.fds()?.to_vec(),
            None => Vec::new(),
        })
    }

    /// The requested offsets.
    pub fn range(&self) -> Range<u64> {
        self.config.range.clone()
    }

    /// Returns the next batch, and waits for it until a deadline; `None` = no limit.
    ///
    /// # Errors
    /// [`ClientError::DataLoss`] if the log does not have all of the range; [`ClientError::Gone`] if nothing arrived
    /// within the client's time limit; [`ClientError::Foreign`] if a reply does not match its request.
    pub fn advance(&mut self, until: Option<Instant>) -> Result<Fetched, ClientError> {
        if self.is_closed {
            return Ok(Fetched::End);
        }
        loop {
            if let Some((stored, range)) = self.ready.pop_front() {
                return Ok(Fetched::Batch(Box::new(stored), range));
            }
            if self.done >= self.config.range.end {
                if let Some(link) = self.link.take() {
                    self.client.give_link(link);
                }
                return Ok(Fetched::End);
            }
            if let Some(pause) = self.pause {
                if self.rest(pause, until)? {
                    return Ok(Fetched::Waiting);
                }
                continue;
            }
            self.ask()?;
            self.listen()?;
            if !self.ready.is_empty() || self.take_replies()? {
                continue;
            }
            let now = Instant::now();
            if now.saturating_duration_since(self.progress) >= self.client.patience() {
                return Err(self.client.gone(self.progress));
            }
            if now >= self.patience {
                self.forget_link();
                continue;
            }
            if until.is_some_and(|until| until <= now) {
                return Ok(Fetched::Waiting);
            }
            let Some(link) = &self.link else { continue };
            let wake = until.map_or(self.patience, |until| until.min(self.patience));
            let waited = match &self.woken {
                Some(woken) => link.wait_or_woken(Some(wake), woken),
                None => link.wait(Some(wake)),
            };
            match waited {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    return Ok(Fetched::Waiting);
                }
                other => other?,
            }
            if self.woken.as_ref().is_some_and(Woken::is_rung) {
                return Ok(Fetched::Waiting);
            }
        }
    }

    /// Waits until a pause ends. Returns true if `until` came first, or if the wait was interrupted.
    fn rest(&mut self, pause: Instant, until: Option<Instant>) -> Result<bool, ClientError> {
        let wake = until.map_or(pause, |until| until.min(pause));
        let now = Instant::now();
        match &self.woken {
            _ if wake <= now => {}
            Some(woken) => {
                let mut items = [PollItem::fd(woken.fd(), Events::READABLE)];
                match zeroxide::poll(&mut items, Some(wake)) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
                    other => other?,
                };
                if woken.is_rung() {
                    return Ok(true);
                }
            }
            None => std::thread::sleep(wake - now),
        }
        if Instant::now() < pause {
            return Ok(true);
        }
        self.pause = None;
        Ok(false)
    }

    /// Sends requests up to the window's size.
    fn ask(&mut self) -> Result<(), ClientError> {
        let window = if self.stride.is_some() { WINDOW } else { 1 };
        while self.asks.len() < window
            && let Some(range) = self.next_range()
        {
            self.asked = range.end;
            self.asks.push_back(Ask {
                id: None,
                range,
                reply: None,
            });
        }
        if self.link.is_none() {
            self.link = Some(self.client.take_link()?);
        }
        let Some(link) = &self.link else {
            return Ok(());
        };
        let is_idle = !self.asks.iter().any(Ask::is_under_way);
        for ask in self.asks.iter_mut().filter(|ask| ask.id.is_none()) {
            let id = self.client.next_id();
            let (start, end) = (ask.range.start, ask.range.end);
            // The rows ahead are unknown.
            let generation = match start == self.done {
                true => self.generation,
                false => 0,
            };
            let (max_bytes, topics) = (self.config.max_bytes, self.config.topics.clone());
            let request = match self.config.follows && end == u64::MAX {
                true => Request::Follow {
                    start,
                    max_bytes,
                    topics,
                    generation,
                    // An empty reply must arrive before the client asks again.
                    wait: u32::try_from(self.client.timeout().as_millis() / 2)
                        .unwrap_or(FOLLOW_MAX)
                        .min(FOLLOW_MAX),
                },
                false => Request::Fetch {
                    start,
                    end,
                    max_bytes,
                    topics,
                    generation,
                },
            };
            link.send(request.encode(id));
            ask.id = Some(id);
            if is_idle {
                // The time that the caller needed for the last rows does not count.
                self.patience = Instant::now() + self.client.timeout();
            }
        }
        Ok(())
    }

    /// The next range to request, if there is one.
    fn next_range(&self) -> Option<Range<u64>> {
        let end = self.config.range.end;
        if self.asked >= end {
            return None;
        }
        if self.config.follows && self.asked >= self.latest {
            // Only one request waits for rows that do not exist yet.
            return self.asks.is_empty().then_some(self.asked..end);
        }
        let end = match self.config.follows {
            true => self.latest,
            false => end,
        };
        let stride = self.stride.unwrap_or(u64::MAX);
        Some(self.asked..self.asked.saturating_add(stride).min(end))
    }

    /// Assigns replies to their requests.
    fn listen(&mut self) -> Result<(), ClientError> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        while let Some(message) = link.poll_message() {
            let (id, reply) = self.client.decode(message)?;
            let asks = &mut self.asks;
            if let Some(ask) = asks.iter_mut().find(|ask| ask.id == Some(id)) {
                ask.reply = Some(reply);
                self.progress = Instant::now();
                self.patience = self.progress + self.client.timeout();
            }
        }
        match link.poll_change() {
            Some(Change::Denied(why)) => return Err(self.client.denied(why)),
            Some(Change::Down) => self.forget_link(),
            Some(Change::Up | Change::Away) | None => {}
        }
        Ok(())
    }

    /// Discards the connection and its replies, and requests them again on another one.
    fn forget_link(&mut self) {
        self.link = None;
        self.patience = Instant::now() + self.client.timeout();
        for ask in self.asks.iter_mut().filter(|ask| ask.reply.is_none()) {
            ask.id = None;
        }
    }

    /// Requests everything again that was not returned. Late replies to earlier requests are ignored, because request
    /// numbers are never reused.
    fn ask_anew(&mut self) {
        self.asks.clear();
        self.asked = self.done;
    }

    /// Processes the replies that are next in order. Returns whether there were any.
    fn take_replies(&mut self) -> Result<bool, ClientError> {
        let mut any = false;
        while let Some(Ask { reply: Some(_), .. }) = self.asks.front()
            && let Some(Ask {
                range,
                reply: Some(reply),
                ..
            }) = self.asks.pop_front()
        {
            any = true;
            let held = self.ready.len();
            let next = match self.take_reply(&range, reply) {
                Ok(next) => next,
                Err(error) => {
                    self.ready.truncate(held);
                    self.ask_anew();
                    if held > 0 {
                        // The rows before it come first; the next request gets the same answer.
                        return Ok(true);
                    }
                    return Err(error);
                }
            };
            self.done = next;
            if next < range.end {
                self.asks.push_front(Ask {
                    id: None,
                    range: next..range.end,
                    reply: None,
                });
                // One request has the rest of the range, so further ones would be useless.
                if range.end == self.config.range.end && self.asks.len() == 1 {
                    self.ask_anew();
                }
            }
        }
        Ok(any)
    }

    /// Checks a reply to a request for `range`, and returns where to continue.
    fn take_reply(&mut self, range: &Range<u64>, reply: Reply) -> Result<u64, ClientError> {
        let (log_id, earliest, latest, next, generation, frames) = match reply {
            Reply::Fetched {
                log_id,
                earliest,
                durable,
                next,
                generation,
                frames,
            } => (log_id, earliest, durable, next, generation, frames),
            Reply::OutOfRange {
                log_id,
                asked,
                earliest,
                durable,
                others,
            } => {
                self.check_log(log_id, earliest, durable)?;
                return Err(match others {
                    Some(others) => self.others(asked, others, log_id, earliest, durable),
                    None => self.lost(asked, log_id, earliest, durable),
                });
            }
            Reply::Refused {
                code: Code::Closing,
                ..
            } => {
                self.forget_link();
                self.pause = Some(Instant::now() + PAUSE);
                return Ok(range.start);
            }
            other => {
                self.client.check(other)?;
                return Err(self.client.foreign("the reply is not to a fetch"));
            }
        };
        self.check_log(log_id, earliest, latest)?;
        let bytes: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
        let end = self.take_frames(range, frames)?;
        // The reply itself tells how far the collector looked after the last frame, because with topics many rows may
        // be left out.
        let next = next.min(range.end).max(range.start);
        if next < end.min(range.end) || (next > end && self.config.topics.is_empty()) {
            let text = format!("rows up to {next} were announced, and came up to {end}");
            return Err(self.client.foreign(text));
        }
        self.latest = latest;
        if next == range.start && self.config.follows && next == latest {
            return Ok(next);
        }
        if next == range.start {
            return Err(self.lost(next, log_id, earliest, latest));
        }
        self.generation = generation;
        let rows = next - range.start;
        let per_row = (bytes / rows).max(1);
        self.stride = Some((self.config.max_bytes / per_row).max(1));
        Ok(next)
    }

    /// Checks that frames are consecutive from the start of `range` on, and returns where they end.
    fn take_frames(&mut self, range: &Range<u64>, frames: Vec<Bytes>) -> Result<u64, ClientError> {
        let mut at = range.start;
        for (number, bytes) in frames.into_iter().enumerate() {
            let stored = Stored::parse(bytes).map_err(|error| {
                self.client.foreign(format!(
                    "what should be the rows from offset {at} on: {error}"
                ))
            })?;
            let follows = match number {
                0 if self.config.topics.is_empty() => stored.first_offset <= at && at < stored.end,
                0 => at <= stored.end,
                // Batches without matching rows may be left out.
                _ if !self.config.topics.is_empty() => stored.first_offset >= at,
                _ => stored.first_offset == at,
            };
            if !follows || stored.end < at {
                return Err(self.client.foreign(format!(
                    "offset {at} was due, and rows with offsets {} to {} came",
                    stored.first_offset, stored.end
                )));
            }
            at = stored.end;
            if !stored.batch.is_empty() {
                self.ready.push_back((stored, range.clone()));
            }
        }
        Ok(at)
    }

    fn check_log(&self, log_id: LogId, earliest: u64, latest: u64) -> Result<(), ClientError> {
        match self.config.log_id {
            Some(wanted) if wanted != log_id => Err(ClientError::DataLoss {
                asked: self.done,
                earliest,
                latest,
                log_id,
                others: None,
                text: format!(
                    "the collector at {} writes log {} now, offset {} belongs to log {}: its folder was replaced. The \
                    rows of log {}, from offset {earliest} to {latest}, are different ones",
                    self.client.endpoint(),
                    hex(&log_id),
                    self.done,
                    hex(&wanted),
                    hex(&log_id),
                ),
            }),
            _ => Ok(()),
        }
    }

    fn others(
        &self,
        asked: u64,
        others: u64,
        log_id: LogId,
        earliest: u64,
        latest: u64,
    ) -> ClientError {
        ClientError::DataLoss {
            asked,
            earliest,
            latest,
            log_id,
            others: Some(others),
            text: format!(
                "offset {asked} of log {} was reached before, but from offset {others} on, the collector at {} now holds \
                 different rows (it has offsets {earliest} to {latest}): an older copy of its folder was probably restored, \
                 and has grown since. Put the newer folder back, or read on at {others}",
                hex(&log_id),
                self.client.endpoint(),
            ),
        }
    }

    fn lost(&self, asked: u64, log_id: LogId, earliest: u64, latest: u64) -> ClientError {
        let why = if asked < earliest {
            "retention removed earlier rows: keep more (retention_bytes, retention_hours), or read on at the earliest"
        } else {
            "later rows were not written yet, or were lost with the disk"
        };
        let has = match earliest == latest {
            true => format!("no rows (the next one gets offset {latest}) in"),
            false => format!("offsets {earliest} to {latest} of"),
        };
        ClientError::DataLoss {
            asked,
            earliest,
            latest,
            log_id,
            others: None,
            text: format!(
                "offset {asked} was asked for, and the collector at {} has {has} log {}; {why}",
                self.client.endpoint(),
                hex(&log_id)
            ),
        }
    }
}

/// The usual text of a log's id.
pub fn hex(log_id: &LogId) -> String {
    log_id.iter().map(|byte| format!("{byte:02x}")).collect()
}
