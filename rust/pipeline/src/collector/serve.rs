//! The serving thread: handles requests from the socket and events of other threads.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide::{ErrorKind, Events, Message, PUBLIC_KEY, PeerInfo, PollItem, Socket, Wait};
use zeroxide_log::Reader;

use crate::collector::access::{Access, Client};
use crate::collector::config::Config;
use crate::collector::described::Described;
use crate::collector::door::Door;
use crate::collector::fetch::{self, Fetcher};
use crate::collector::followers::Followers;
use crate::collector::line::Event;
use crate::collector::outbox::{Asked, Outbox};
use crate::collector::plain::{self, Gatherer};
use crate::collector::publishing::Publishing;
use crate::collector::refusal::Refusal;
use crate::collector::routes::routes;
use crate::collector::stage::{BatchOf, StagedPart};
use crate::collector::staging::{self, Staging};
use crate::collector::stats::Stats;
use crate::collector::writer::{Sent, Writer};
use crate::wake::Woken;
use crate::wire::{Attempt, Code, FOLLOW_MAX, Reply, Request, What, Won};

/// The maximum number of messages taken from the socket per turn.
const TURN: usize = 256;

/// The interval at which committed positions are saved. A crash may lose the last ones, which the groups commit again.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// The time that an orderly end continues to accept rows in transit.
const FAREWELL: Duration = Duration::from_millis(500);

/// The maximum time for the last replies to leave.
const LINGER: Duration = Duration::from_secs(2);

pub(super) struct Server {
    pub config: Config,
    pub stats: Arc<Stats>,
    pub router: Socket,
    pub outbox: Outbox,
    pub events: Receiver<Event>,
    pub woken: Woken,
    pub reader: Reader,
    pub writer: Writer,
    pub staging: Staging,
    pub publishing: Publishing,
    pub fetcher: Fetcher,
    pub followers: Followers,
    pub gatherer: Option<Gatherer>,
    /// The access rights; None without keys, because clients cannot be distinguished.
    pub access: Option<Access>,
    pub endpoint: String,
    pub advertise: String,
    pub started: Instant,
    /// Messages of plain peers that were too large to be received.
    pub plain_too_large: u64,
    pub door: Door,
    pub described: Described,
}

/// The stages of ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    NotYet,
    /// Rows in transit are still accepted until this time.
    Until(Instant),
}

impl Server {
    /// Serves until it is told to end or the socket is gone. Returns the result of closing the log.
    pub fn run(mut self) -> Result<(), String> {
        let mut end = End::NotYet;
        let mut retain_at = Instant::now();
        let mut save_at = retain_at;
        loop {
            let got = match self.take_messages() {
                Ok(got) => got,
                Err(error) => break self.end(Some(error)),
            };
            let told = self.take_events(&mut end);
            let gathered = self.take_plain();
            let now = Instant::now();
            if now >= retain_at {
                let is_saved = now >= save_at;
                self.retain(is_saved);
                self.door.look();
                if is_saved
                    && self.followers.len() > 0
                    && let Ok(stats) = self.router.stats()
                {
                    self.forget_gone(&routes(&stats));
                }
                retain_at = now + self.config.retain_every;
                if is_saved {
                    save_at = now + SAVE_EVERY;
                }
            }
            self.advance(now);
            let is_over = match end {
                End::NotYet => false,
                End::Until(until) => {
                    now >= until || !(got || told || gathered || self.gatherer.is_some())
                }
            };
            if is_over {
                break self.end(None);
            }
            if !(got || told || gathered) {
                let until = match end {
                    End::NotYet => None,
                    End::Until(until) => Some(until),
                };
                let due = [
                    self.writer.poll_timeout(),
                    self.followers.poll_timeout(),
                    until,
                ];
                let due = due.into_iter().flatten().fold(retain_at, Instant::min);
                if let Err(error) = self.rest(due) {
                    break self.end(Some(error));
                }
            }
        }
    }

    /// Does the work that is due, and passes on what has become durable.
    pub fn advance(&mut self, now: Instant) {
        if self.writer.handle_timeout(now) {
            self.on_reopened();
        }
        while let Some(of) = self.writer.poll_published() {
            // A report is never refused.
            let _ = self.staging.push(staging::Job::Published(of));
        }
        // Rows become durable in a sync that an event has reported, or during this turn.
        self.answer_followers(now);
    }

    fn end(mut self, why: Option<zeroxide::Error>) -> Result<(), String> {
        if let Some(gatherer) = self.gatherer.take() {
            // Gathered batches that can no longer be written, because the disk is full and the collector ends.
            let lost: usize = gatherer.batches.try_iter().map(|batch| batch.rows()).sum();
            self.stats.plain_lost.add(lost as u64);
        }
        // These threads write to the folder, so they end before it is unlocked.
        drop(self.staging);
        // Transactions to publish are staged, and will be found at the next start.
        let mut askers = self.publishing.settle_all();
        drop(self.publishing);
        let closed = self.writer.close();
        // Its threads also send replies.
        drop(self.fetcher);
        askers.extend(self.events.try_iter().filter_map(|event| match event {
            Event::Publish { asked, .. } | Event::Abort { asked, .. } => Some(asked),
            _ => None,
        }));
        for asked in askers {
            let text = "the collector is being stopped: publish or abort again once it is back";
            let refusal = Refusal::new(Code::Closing, 0, text);
            self.outbox.refuse(&asked, refusal);
        }
        self.router.close(Some(Some(LINGER)));
        match why {
            Some(error) => Err(format!("the collector's socket failed: {error}")),
            None => closed.map_err(|error| error.to_string()),
        }
    }

    /// Waits for a message, an event of another thread, or the next deadline.
    fn rest(&self, due: Instant) -> zeroxide::Result<()> {
        let mut items = [
            PollItem::socket(&self.router, Events::READABLE),
            PollItem::fd(self.woken.fd(), Events::READABLE),
        ];
        match zeroxide::poll(&mut items, Some(due)) {
            Ok(_) => {
                if !items[1].revents.is_empty() {
                    self.woken.clear();
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Handles messages. Returns whether there were any.
    fn take_messages(&mut self) -> zeroxide::Result<bool> {
        match self.router.recv_batch_from(TURN, Wait::Dont) {
            Ok(messages) => {
                for (message, peer) in messages {
                    self.handle_message(message, peer.as_deref());
                }
                Ok(true)
            }
            Err(error) => match error.kind() {
                ErrorKind::Again | ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Handles events. Returns whether there were any.
    pub fn take_events(&mut self, end: &mut End) -> bool {
        let mut told = false;
        while let Ok(event) = self.events.try_recv() {
            told = true;
            match event {
                Event::Synced {
                    syncer,
                    result,
                    took,
                } => self.writer.on_synced(&syncer, result, took),
                Event::Append { batches, answer } => self.writer.handle_local(&batches, answer),
                Event::Publish {
                    asked,
                    of,
                    attempts,
                    parts,
                } => self.publish(asked, of, attempts, parts),
                Event::Abort {
                    asked,
                    of,
                    attempts,
                } => self.abort(&asked, &of, &attempts),
                Event::Prepared {
                    of,
                    number,
                    prepared,
                } => {
                    // If it was aborted meanwhile, it is dropped with its file.
                    if let Some(askers) = self.publishing.settle(&of, number) {
                        self.writer.handle_prepared(askers, &of, prepared);
                    }
                }
                Event::Stats { answer } => {
                    // If the caller stopped waiting, it does not need the answer.
                    let _ = answer.try_send(self.describe());
                }
                Event::Read { answer } => {
                    let _ = answer.try_send(self.reader.clone());
                }
                Event::DropGroup { group, answer } => {
                    // If the caller stopped waiting, it does not need the answer.
                    let _ = answer.try_send(self.drop_group(&group));
                }
                Event::Close => {
                    *end = End::Until(Instant::now() + FAREWELL);
                    if let Some(gatherer) = &self.gatherer {
                        gatherer.stop();
                    }
                }
            }
        }
        told
    }

    /// Takes some batches of plain peers, because more come in while these are written. If nothing can be written, they have
    /// to wait. Returns whether there were any.
    fn take_plain(&mut self) -> bool {
        let mut got = false;
        for _ in 0..plain::QUEUE {
            let Some(gatherer) = self.gatherer.as_ref().filter(|_| self.writer.can_take()) else {
                break;
            };
            match gatherer.batches.try_recv() {
                Ok(batch) => {
                    got = true;
                    self.writer.handle_plain(batch);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.gatherer = None,
            }
        }
        got
    }

    /// Deletes segments according to retention, and saves the positions of groups if requested.
    pub fn retain(&mut self, and_save: bool) {
        // Neither is urgent, and both are retried. If the log cannot be written to, the next rows report it.
        let retained = self.writer.retain().is_ok();
        let Some(log) = self.writer.log() else { return };
        let saved = !and_save || log.save().is_ok();
        self.stats
            .failures
            .add(u64::from(!retained) + u64::from(!saved));
    }

    fn on_reopened(&mut self) {
        if let Some(log) = self.writer.log() {
            self.reader = log.reader();
            self.fetcher.read_from(self.reader.clone());
            // This is never refused.
            let _ = self.staging.push(staging::Job::Reopened);
        }
    }

    // ---- requests --------------------------------------------------------------------------------------------------

    pub fn handle_message(&mut self, mut message: Message, peer: Option<&PeerInfo>) {
        let Some(route) = message.pop_front() else {
            self.stats.malformed.add(1);
            return;
        };
        let route = route.into_bytes();
        let client = peer.and_then(client_of);
        let key = client.as_ref().map(|client| client.key.clone());
        match Request::decode(message) {
            Ok((id, request)) => {
                let asked = Asked { route, id, key };
                match self.admit(client.as_ref(), &request) {
                    Ok(()) => self.handle_request(asked, request),
                    Err(refusal) => self.outbox.refuse(&asked, refusal),
                }
            }
            Err(error) => {
                self.stats.malformed.add(1);
                let code = match error.what {
                    What::Version(_) => Code::Version,
                    _ => Code::Malformed,
                };
                let asked = Asked {
                    route,
                    id: error.id.unwrap_or_default(),
                    key,
                };
                let refusal = Refusal::new(code, 0, error.to_string());
                self.outbox.refuse(&asked, refusal);
            }
        }
    }

    /// Whether a client may make a request.
    fn admit(&mut self, client: Option<&Client>, request: &Request) -> Result<(), Refusal> {
        let Some(access) = &mut self.access else {
            return Ok(());
        };
        let Some(client) = client else {
            let text = "the connection that this came over is gone: ask again";
            return Err(Refusal::new(Code::HelloFirst, 0, text));
        };
        access.check(client, request)?;
        match request {
            Request::Hello { producer, .. } => access.take(client, producer),
            _ => Ok(()),
        }
    }

    fn handle_request(&mut self, asked: Asked, request: Request) {
        match request {
            Request::Hello {
                producer,
                epoch,
                next_seq,
            } => self.writer.handle_hello(asked, &producer, epoch, next_seq),
            Request::Append {
                producer,
                epoch,
                first_seq,
                batch,
            } => self.writer.handle_append(Sent {
                asked,
                producer,
                epoch,
                first_seq,
                batch,
            }),
            Request::Info => {
                let advertise = self.advertise.clone();
                self.read(asked, fetch::What::Info { advertise });
            }
            Request::OffsetAt { timestamp } => {
                self.read(asked, fetch::What::OffsetAt { timestamp })
            }
            Request::Weigh { start, bytes } => {
                self.read(asked, fetch::What::Weigh { start, bytes });
            }
            Request::Fetch {
                start,
                end,
                max_bytes,
                topics,
                generation,
            } => self.read(asked, self.fetch(start, end, max_bytes, topics, generation)),
            Request::Follow {
                start,
                max_bytes,
                topics,
                generation,
                wait,
            } => {
                let what = self.fetch(start, u64::MAX, max_bytes, topics, generation);
                self.follow(asked, what, start, wait);
            }
            Request::Position { group } => self.handle_position(&asked, &group),
            Request::Commit {
                group,
                offset,
                generation,
            } => self.handle_commit(&asked, &group, offset, generation),
            Request::DropGroup { group } => self.handle_drop_group(&asked, &group),
            Request::Stage {
                query,
                batch,
                attempt,
                part,
                rows,
            } => self.handle_stage(asked, BatchOf { query, batch }, (attempt, part), rows),
            Request::Publish { query, batch, won } => {
                self.handle_publish(asked, BatchOf { query, batch }, won);
            }
            Request::Abort {
                query,
                batch,
                attempts,
            } => self.stage(staging::Job::Abort {
                asked,
                of: BatchOf { query, batch },
                attempts,
            }),
            Request::Limits => {
                let max_batch_bytes = self.config.max_batch_bytes as u64;
                self.outbox.say(&asked, Reply::Limits { max_batch_bytes });
            }
            Request::Stats => {
                let json = self.description();
                self.outbox.say(&asked, Reply::Stats { json });
            }
        }
    }

    fn read(&self, asked: Asked, what: fetch::What) {
        if let Err((asked, refusal)) = self.fetcher.push(fetch::Job { asked, what }) {
            self.outbox.refuse(&asked, refusal);
        }
    }

    fn fetch(
        &self,
        start: u64,
        end: u64,
        max_bytes: u64,
        topics: Vec<String>,
        generation: u64,
    ) -> fetch::What {
        let most = self.config.max_fetch_bytes;
        fetch::What::Fetch {
            start,
            end,
            max_bytes: usize::try_from(max_bytes).unwrap_or(most).min(most),
            topics,
            generation,
        }
    }

    /// Answers at once if there is a row, otherwise when there is one.
    fn follow(&mut self, asked: Asked, what: fetch::What, start: u64, wait: u32) {
        let (_, durable) = self.reader.bounds();
        if start != durable {
            return self.read(asked, what);
        }
        // Earlier followers may wait for an earlier row.
        self.answer_followers(Instant::now());
        let until = Instant::now() + Duration::from_millis(u64::from(wait.min(FOLLOW_MAX)));
        let job = fetch::Job { asked, what };
        if let Err((asked, refusal)) = self.followers.push(job, start, until) {
            self.outbox.refuse(&asked, refusal);
        }
    }

    /// Answers followers for which there is a row, and those whose time is over.
    fn answer_followers(&mut self, now: Instant) {
        if self.followers.len() > 0 {
            let (_, durable) = self.reader.bounds();
            let most = self.fetcher.room();
            for job in self.followers.take(durable, now, most) {
                self.read(job.asked, job.what);
            }
        }
    }

    fn handle_position(&mut self, asked: &Asked, group: &str) {
        match self.writer.log() {
            Some(log) => {
                let offset = log.groups().get(group).copied();
                self.outbox.say(asked, Reply::Position { offset });
            }
            None => {
                let refusal = Refusal::not_open();
                self.outbox.refuse(asked, refusal);
            }
        }
    }

    fn handle_drop_group(&mut self, asked: &Asked, group: &str) {
        match self.drop_group(group) {
            Ok(existed) => self.outbox.say(asked, Reply::Dropped { existed }),
            Err(refusal) => self.outbox.refuse(asked, refusal),
        }
    }

    /// Drops a group. Returns whether it existed.
    fn drop_group(&mut self, group: &str) -> Result<bool, Refusal> {
        let Some(log) = self.writer.log() else {
            return Err(Refusal::not_open());
        };
        let existed = log.drop_group(group);
        // Saved at once, because a crash would otherwise bring the group back unnoticed.
        let saved = log.save();
        saved.map_err(|error| Refusal::new(Code::Failed, 0, error.to_string()))?;
        Ok(existed)
    }

    fn handle_commit(&mut self, asked: &Asked, group: &str, offset: u64, generation: u64) {
        let Some(log) = self.writer.log() else {
            let refusal = Refusal::not_open();
            return self.outbox.refuse(asked, refusal);
        };
        if offset > log.next() {
            let text = format!(
                "group {group:?} cannot have read up to {offset}: the log ends at {}",
                log.next()
            );
            return self
                .outbox
                .refuse(asked, Refusal::new(Code::Invalid, log.next(), text));
        }
        if let Err(others) = log.reader().generations().check(offset, generation) {
            let text = format!(
                "group {group:?} has not read this log up to {offset}: from offset {others} on, the log holds different rows; \
                 an older copy of its folder was probably restored"
            );
            let refusal = Refusal::new(Code::OtherRows, others, text);
            return self.outbox.refuse(asked, refusal);
        }
        match log.commit_group(group, offset) {
            Ok(()) => self.outbox.say(asked, Reply::Committed),
            Err(error) => {
                let refusal = Refusal::new(Code::TooMany, 0, error.to_string());
                self.outbox.refuse(asked, refusal);
            }
        }
    }

    fn handle_stage(&mut self, asked: Asked, of: BatchOf, key: (Attempt, u32), rows: Bytes) {
        let most = self.config.max_batch_bytes;
        if rows.len() > most {
            let refusal = Refusal::too_big("part", rows.len(), most);
            return self.outbox.refuse(&asked, refusal);
        }
        self.stage(staging::Job::Stage {
            asked,
            of,
            key,
            rows,
        });
    }

    fn handle_publish(&mut self, asked: Asked, of: BatchOf, won: Vec<Won>) {
        // Without a log, it is not known whether the batch is published, and the writer refuses.
        let needs_parts = self.writer.log().is_some_and(|log| {
            let last = log.published(&of.query);
            last.is_none_or(|last| of.batch > last.batch)
        });
        if !needs_parts {
            // Its staged rows were discarded after it was published, or it was staged again needlessly.
            return self.writer.handle_publish(asked, of, &[]);
        }
        if !self.publishing.join(&of, &asked) {
            self.stage(staging::Job::Publish { asked, of, won });
        }
    }

    /// Publishes the parts that were found.
    fn publish(
        &mut self,
        asked: Asked,
        of: BatchOf,
        attempts: Vec<Attempt>,
        parts: Vec<StagedPart>,
    ) {
        let size: u64 = parts.iter().map(|part| part.size() as u64).sum();
        if size <= self.config.publish_beside {
            return self.writer.handle_publish(asked, of, &parts);
        }
        let time = self.writer.receive_time();
        self.publishing.push(asked, of, attempts, parts, time);
    }

    /// The staged rows were discarded, so they are not published either, unless they already were.
    fn abort(&mut self, asked: &Asked, of: &BatchOf, attempts: &[Attempt]) {
        let Some(log) = self.writer.log() else {
            let refusal = Refusal::not_open();
            return self.outbox.refuse(asked, refusal);
        };
        let last = log.published(&of.query).map(|last| last.batch);
        if last.is_some_and(|last| of.batch <= last) {
            let text = format!(
                "batch {} of query {:?} cannot be aborted: it was published, or a later one was",
                of.batch, of.query
            );
            return self
                .outbox
                .refuse(asked, Refusal::new(Code::Invalid, 0, text));
        }
        self.publishing.cancel(of, attempts);
        self.outbox.say(asked, Reply::Aborted);
    }

    fn stage(&self, job: staging::Job) {
        if let Err((asked, refusal)) = self.staging.push(job) {
            self.outbox.refuse(&asked, refusal);
        }
    }
}

/// The peer's identity according to the allow-list.
fn client_of(peer: &PeerInfo) -> Option<Client> {
    let key = peer.properties.iter().find(|(name, _)| name == PUBLIC_KEY);
    let key: Arc<str> = String::from_utf8_lossy(&key?.1).into();
    let user = peer
        .user_id
        .as_deref()
        .filter(|user| !user.is_empty())
        .map_or_else(|| key.clone(), Arc::from);
    Some(Client { user, key })
}
