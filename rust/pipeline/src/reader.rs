//! Fetching a range of offsets: several requests on their way, checked rows in order out of it.
//!
//! How many rows fit into a reply is not known beforehand. The first request is for the whole range, and its reply tells how
//! large rows are; from then on several requests for pieces of about the right size are on their way. A reply that
//! ends before its piece does is followed by a request for the rest.
//!
//! A fetch that follows has no end: where it has read everything, the collector keeps its request until there is a row.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use zeroxide::ErrorKind;
use zeroxide_log::Stored;

use crate::client::{Client, ClientError};
use crate::link::{Change, Link};
use crate::wake::{self, Wake, Woken};
use crate::wire::{Code, FOLLOW_MAX, LogId, Reply, Request};

/// Requests that may be on their way.
const WINDOW: usize = 3;

/// What to fetch, and how.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// Which offsets.
    pub range: Range<u64>,
    /// Only rows whose topic begins with one of these; none = all rows.
    pub topics: Vec<String>,
    /// About how much to ask for at once.
    pub max_bytes: u64,
    /// The log that the offsets belong to, if that matters.
    pub log_id: Option<LogId>,
    /// The generation of the row before the first offset, for whoever has read it; else 0.
    pub generation: u64,
    /// Waits for rows where there are none yet. The range has no end then: `u64::MAX`.
    pub follows: bool,
}

/// Interrupts a [`Fetch`] that waits; see [`Fetch::interrupter`]. Clones interrupt the same one.
#[derive(Clone, Debug)]
pub struct Interrupter {
    wake: Wake,
}

impl Interrupter {
    /// The current call of [`Fetch::advance`], or else the next one, does not wait.
    pub fn interrupt(&self) {
        self.wake.wake();
    }
}

/// A fetch under way.
pub struct Fetch {
    client: Arc<Client>,
    config: FetchConfig,
    link: Option<Link>,
    /// Below this everything was handed out.
    done: u64,
    /// The generation of the last row of that; 0 if it is not known.
    generation: u64,
    /// Below this everything was asked for.
    asked: u64,
    asks: VecDeque<Ask>,
    /// How many rows a request is for; none until a reply has told.
    stride: Option<u64>,
    /// What came in and was not handed out yet.
    ready: VecDeque<(Stored, Range<u64>)>,
    /// When something came last.
    progress: Instant,
    /// When to ask again on another connection.
    patience: Instant,
    /// Where the log ended when the collector said so last.
    latest: u64,
    /// What interrupts a wait.
    woken: Option<Woken>,
    is_closed: bool,
}

/// A piece that was asked for.
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

/// What [`Fetch::advance`] found.
#[derive(Debug)]
pub enum Fetched {
    /// A batch, of which the rows with these offsets follow on those before.
    Batch(Box<Stored>, Range<u64>),
    /// Nothing until the point in time that was given.
    Waiting,
    /// The range is done.
    End,
}

impl Fetch {
    /// Begins; nothing is sent yet.
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
            latest: 0,
            woken: None,
            is_closed: false,
            client,
            config,
        }
    }

    /// What interrupts this fetch from another thread, for good.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn interrupter(&mut self) -> std::io::Result<Interrupter> {
        let (wake, woken) = wake::pair()?;
        self.woken = Some(woken);
        Ok(Interrupter { wake })
    }

    /// Ends the fetch and its connection. The position remains; [`advance`](Self::advance) finds nothing but the end.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.link = None;
        self.woken = None;
        self.asks.clear();
    }

    /// Begins another wait: the client's patience counts from now on.
    pub fn resume(&mut self) {
        self.progress = Instant::now();
    }

    /// The offset behind everything that was looked at, and the generation of the row before it; none while there are
    /// batches that were not handed out.
    pub fn position(&self) -> Option<(u64, u64)> {
        self.ready
            .is_empty()
            .then_some((self.done, self.generation))
    }

    /// Descriptors that are readable while there is something to go on with.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn fds(&self) -> Result<Vec<RawFd>, ClientError> {
        Ok(match &self.link {
            Some(link) => link.fds()?.to_vec(),
            None => Vec::new(),
        })
    }

    /// The offsets that are fetched.
    pub fn range(&self) -> Range<u64> {
        self.config.range.clone()
    }

    /// The next batch, waiting for it until a point in time; `None` = as long as it takes.
    ///
    /// # Errors
    /// [`ClientError::DataLoss`] when the log does not have all of the range; [`ClientError::Gone`] when nothing came for
    /// as long as the client's patience lasts; [`ClientError::Foreign`] when what came is not what was asked for.
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

    /// Sends requests up to the window.
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
            // Of what lies ahead nothing is known yet.
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
                    // An answer without rows comes before the client asks elsewhere.
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
                // However long the last rows took their reader.
                self.patience = Instant::now() + self.client.timeout();
            }
        }
        Ok(())
    }

    /// What to ask for next, if there is anything.
    fn next_range(&self) -> Option<Range<u64>> {
        let end = self.config.range.end;
        if self.asked >= end {
            return None;
        }
        if self.config.follows && self.asked >= self.latest {
            // Of rows that were not there yet, only one request waits.
            return self.asks.is_empty().then_some(self.asked..end);
        }
        let end = match self.config.follows {
            true => self.latest,
            false => end,
        };
        let stride = self.stride.unwrap_or(u64::MAX);
        Some(self.asked..self.asked.saturating_add(stride).min(end))
    }

    /// Puts what came where it belongs.
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

    /// What is on its way is lost: asks for it again, on another connection.
    fn forget_link(&mut self) {
        self.link = None;
        self.patience = Instant::now() + self.client.timeout();
        for ask in self.asks.iter_mut().filter(|ask| ask.reply.is_none()) {
            ask.id = None;
        }
    }

    /// Asks again for everything that was not handed out. Replies to earlier requests are ignored when they come: the number
    /// of a request is never used twice.
    fn ask_anew(&mut self) {
        self.asks.clear();
        self.asked = self.done;
    }

    /// Takes the replies that are next in order. Whether there were any.
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
                // With the rest of the range in one request, others beside it would be for nothing.
                if range.end == self.config.range.end && self.asks.len() == 1 {
                    self.ask_anew();
                }
            }
        }
        Ok(any)
    }

    /// Checks a reply to a request for `range`, and returns where to go on.
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
        // Behind the last frame it says itself how far it looked: with topics, nothing may be left of many rows.
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

    /// Checks frames that should follow on each other from the start of `range` on, and returns where they end.
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
                // Batches of which nothing was wanted may be left out.
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
                    "the collector at {} writes log {} now, offset {} belongs to log {}: its folder was replaced. What \
                     log {} has, from offset {earliest} to {latest}, are other rows",
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
                "offset {asked} of log {} was reached before, and what the collector at {} has from offset {others} on are \
                 other rows than those that were read: an older copy of its folder was put in place, and has grown since \
                 (it has offsets {earliest} to {latest}). Put the newer folder back, or read on at {others}",
                hex(&log_id),
                self.client.endpoint(),
            ),
        }
    }

    fn lost(&self, asked: u64, log_id: LogId, earliest: u64, latest: u64) -> ClientError {
        let why = if asked < earliest {
            "retention removed what is below: keep more (retention_bytes, retention_hours), or read on at the earliest"
        } else {
            "what is above was not written yet, or was lost with the disk"
        };
        ClientError::DataLoss {
            asked,
            earliest,
            latest,
            log_id,
            others: None,
            text: format!(
                "offset {asked} was asked for, and the collector at {} has offsets {earliest} to {latest} of log {}; {why}",
                self.client.endpoint(),
                hex(&log_id)
            ),
        }
    }
}

/// A log's id as people see it.
pub fn hex(log_id: &LogId) -> String {
    log_id.iter().map(|byte| format!("{byte:02x}")).collect()
}
