//! The only writer of the log: batches of producers, of plain peers and of this process, and published batches of
//! sinks.
//!
//! ```text
//!            append fails: no room                            the held batch fits
//!   Fine ───────────────────────────► Stuck, Full ──────────────────────────────────────► Fine
//!     └─────────────────────────────► Stuck, anything else ──► the log is reopened ──────► Fine
//!            append or sync fails                               what it has counts
//! ```
//!
//! While writing fails, batches of producers are dropped, and each producer is notified once, with a credit of nothing.
//! When writing works again, each receives the number at which to continue. Plain peers are not read from meanwhile.
//! Producers are treated in the same way while a sync takes so long that too many batches wait for it. Plain peers are
//! not, because nothing is kept for a batch of theirs.

mod acks;
mod at_risk;
mod publish;
mod trouble;

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::{Batch, Log, LogError, LogId, Origin, Syncer, Written};

use crate::clock::{since_boot, wall};
use crate::collector::age::{self, Age};
use crate::collector::ahead::Ahead;
use crate::collector::commit::{Commits, Waiting};
use crate::collector::config::Config;
use crate::collector::ingest::{Admission, Hello, Limits, Rows, Sessions};
use crate::collector::line::Appended;
use crate::collector::outbox::{Asked, Outbox};
use crate::collector::refusal::{NOT_OPEN, Refusal};
use crate::collector::stage::BatchOf;
use crate::collector::stats::Stats;
use crate::collector::topics::Topics;
use crate::collector::writer::acks::{Ack, Owed};
use crate::collector::writer::at_risk::AtRisk;
use crate::wire::{Code, Credit, Reply};

/// A batch as sent by a producer.
#[derive(Debug)]
pub(super) struct Sent {
    pub asked: Asked,
    pub producer: String,
    pub epoch: u64,
    pub first_seq: u64,
    pub batch: Bytes,
}

/// The obstacle to writing while too many batches wait for a sync.
const CROWDED: &str = "as many batches and requests wait for the disk as this collector keeps: it is slow, or does not answer";

/// The obstacle to writing.
#[derive(Debug)]
struct Stuck {
    code: Code,
    text: String,
    /// The time of the next attempt.
    retry_at: Instant,
}

pub(super) struct Writer {
    config: Config,
    stats: Arc<Stats>,
    outbox: Outbox,
    /// None while it cannot be opened.
    log: Option<Log>,
    log_id: LogId,
    /// The error since which the log's folder has not been where it was.
    gone: Option<String>,
    sessions: Sessions,
    commits: Commits,
    owed: Owed,
    stuck: Option<Stuck>,
    /// The batch that did not fit. Appending it again shows whether there is room.
    held: Option<Sent>,
    held_plain: Option<Batch>,
    /// How much of the log can be trusted after a failed sync.
    trusted: Option<Written>,
    plain_at_risk: AtRisk,
    /// The last time of receipt. Times never decrease, even if the clock does, also while the collector is not running.
    received: i64,
    advertise: String,
    /// Published batches of queries, whose staged rows can be discarded.
    published: Vec<BatchOf>,
    topics: Topics,
    ahead: Arc<Ahead>,
    age: Age,
}

impl Writer {
    pub fn new(
        config: Config,
        advertise: String,
        log: Log,
        commits: Commits,
        outbox: Outbox,
        stats: Arc<Stats>,
        ahead: Arc<Ahead>,
    ) -> Writer {
        let limits = Limits {
            sessions: config.max_producers,
            per_route: config.max_names_per_connection,
            credit: config.credit,
        };
        let (last, wall) = (log.last_received(), wall());
        let age = Age::start(wall, last, since_boot(), config.log.retention_time);
        let received = age::believed(last, wall).unwrap_or(i64::MIN);
        Writer {
            config,
            stats,
            outbox,
            log_id: log.id(),
            gone: None,
            log: Some(log),
            sessions: Sessions::new(limits),
            commits,
            owed: Owed::default(),
            stuck: None,
            held: None,
            held_plain: None,
            trusted: None,
            plain_at_risk: AtRisk::default(),
            received,
            advertise,
            published: Vec::new(),
            topics: Topics::default(),
            ahead,
            age,
        }
    }

    /// The log, unless it cannot be opened at the moment.
    pub fn log(&mut self) -> Option<&mut Log> {
        self.log.as_mut()
    }

    /// Deletes segments according to retention, if the log is open.
    pub fn retain(&mut self) -> Result<(), LogError> {
        let now = self.age.time(wall(), since_boot());
        match &mut self.log {
            Some(log) => log.retain(now).map(drop),
            None => Ok(()),
        }
    }

    /// How far the clock is ahead of the time that retention uses.
    pub fn clock_ahead(&self) -> Duration {
        self.age.clock_ahead(wall(), since_boot())
    }

    /// The obstacle to writing, if there is one.
    pub fn obstacle(&self) -> Option<(Code, &str)> {
        match &self.stuck {
            Some(stuck) => Some((stuck.code, &stuck.text)),
            None => self
                .commits
                .is_crowded()
                .then_some((Code::TooMany, CROWDED)),
        }
    }

    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    pub fn commits(&self) -> &Commits {
        &self.commits
    }

    pub fn credit(&self) -> Credit {
        match self.obstacle() {
            Some(_) => Credit::default(),
            None => self.sessions.credit(),
        }
    }

    // ---- producers -------------------------------------------------------------------------------------------------

    pub fn handle_hello(&mut self, asked: Asked, producer: &str, epoch: u64, next_seq: u64) {
        self.stats.hellos.add(1);
        let Some(log) = self.log.as_ref().filter(|_| !self.commits.is_crowded()) else {
            return self.outbox.refuse(&asked, self.refusal());
        };
        let last_seq = log.last_seq(producer).map(|(_, seq)| seq);
        let logged = log.epoch(producer).map(|epoch| (epoch, last_seq));
        let hello = Hello {
            epoch,
            next_seq,
            route: asked.route.clone(),
            key: asked.key.clone(),
        };
        if let Err(refusal) =
            self.sessions
                .handle_hello(producer, hello, logged, wall(), Instant::now())
        {
            return self.outbox.refuse(&asked, refusal);
        }
        if logged.map(|(epoch, _)| epoch) != Some(epoch)
            && let Err(refusal) = self.begin_epoch(producer, epoch)
        {
            return self.outbox.refuse(&asked, refusal);
        }
        // A welcome tells a producer which rows it may discard, so they must be on disk.
        let producer = producer.into();
        self.tell_when_durable(Waiting::Welcome { asked, producer });
    }

    /// Records that older runs of a producer are over. A welcomed producer relies on this, even if another process
    /// serves this log when an older run sends again.
    fn begin_epoch(&mut self, producer: &str, epoch: u64) -> Result<(), Refusal> {
        if self.stuck.is_some() {
            return Err(self.refusal());
        }
        let (now, time) = (Instant::now(), self.receive_time());
        let Some(log) = &mut self.log else {
            return Err(self.refusal());
        };
        match log.begin_epoch(producer, epoch, time) {
            Ok(()) => {
                self.commits.hurry(now);
                Ok(())
            }
            Err(error) => Err(self.refuse_for(&error, now)),
        }
    }

    pub fn handle_append(&mut self, sent: Sent) {
        let most = self.config.max_batch_bytes;
        if sent.batch.len() > most {
            let refusal = Refusal::too_big("batch", sent.batch.len(), most);
            return self.outbox.refuse(&sent.asked, refusal);
        }
        if self.obstacle().is_some() {
            return self.turn_back(&sent.producer, sent.epoch);
        }
        self.append(sent);
    }

    /// Appends the new rows of a batch.
    fn append(&mut self, sent: Sent) {
        let batch = match Batch::decode(sent.batch.clone()) {
            Ok(batch) => batch,
            Err(error) => {
                self.stats.malformed.add(1);
                let refusal = Refusal::new(Code::Malformed, 0, error.to_string());
                return self.outbox.refuse(&sent.asked, refusal);
            }
        };
        let now = Instant::now();
        let rows = Rows {
            first: sent.first_seq,
            count: batch.rows(),
        };
        let epoch = sent.epoch;
        let admitted = self
            .sessions
            .admit(&sent.producer, epoch, rows, &sent.asked, now);
        let (producer, skip) = match admitted {
            Ok(Admission::Fresh { producer, skip }) => (producer, skip),
            Ok(Admission::Duplicate) => {
                self.stats.duplicates.add(1);
                let seq = sent.first_seq + (rows.count as u64 - 1);
                let written = self.written();
                self.commits
                    .wait_again(written, &sent.producer, sent.asked, seq);
                return self.tell_if_durable(written);
            }
            Err(refusal) => return self.outbox.refuse(&sent.asked, refusal),
        };
        let batch = match skip {
            0 => batch,
            _ => batch.slice(skip, rows.count - skip),
        };
        if let Err(refusal) = self.ahead.check(&batch) {
            return self.outbox.refuse(&sent.asked, refusal);
        }
        let origin = Origin {
            producer,
            epoch,
            first_seq: sent.first_seq + skip as u64,
            receive_time: self.receive_time(),
        };
        let end = sent.first_seq + rows.count as u64;
        match self.write(&origin, &batch, sent.batch.len(), now) {
            Ok(range) => {
                self.stats.batches.add(1);
                self.sessions.on_appended(&origin.producer, end);
                let ack = Waiting::Ack {
                    producer: origin.producer,
                    asked: sent.asked,
                    seq: end - 1,
                    offset: Some(range.start),
                };
                self.commits.wait(self.written(), ack);
            }
            Err(LogError::Batch(error)) => {
                let refusal = Refusal::new(Code::Malformed, 0, error.to_string());
                self.outbox.refuse(&sent.asked, refusal);
            }
            Err(error) => {
                self.on_failed(&error, now);
                self.turn_back(&sent.producer, epoch);
                self.held = Some(sent);
            }
        }
    }

    /// Notifies a producer that its batches are dropped, unless it was notified before.
    fn turn_back(&mut self, producer: &str, epoch: u64) {
        self.stats.turned_back.add(1);
        let Some(session) = self.sessions.get_mut(producer) else {
            return;
        };
        if session.epoch != epoch || session.stalled {
            return;
        }
        session.stalled = true;
        let asked = Asked {
            route: session.route.clone(),
            id: 0,
            key: None,
        };
        let last_seq = session.last();
        let Refusal { code, text, .. } = self.refusal();
        let status = Reply::Status {
            producer: producer.to_owned(),
            epoch,
            code,
            last_seq,
            credit: Credit::default(),
            text,
        };
        self.stats.refuse(code);
        self.outbox.say(&asked, status);
    }

    // ---- other writers ----------------------------------------------------------------------------------------------

    /// Appends a batch of plain peers. If it cannot be written, it is kept; [`can_take`](Self::can_take) tells when to
    /// bring the next one.
    pub fn handle_plain(&mut self, batch: Batch) {
        let now = Instant::now();
        let origin = Origin::plain(self.receive_time());
        match self.write(&origin, &batch, batch.size(), now) {
            Ok(_) => {
                self.stats.plain_rows.add(batch.rows() as u64);
                let written = self.written();
                self.plain_at_risk.add(written, batch.rows() as u64);
            }
            Err(LogError::Batch(_)) => self.stats.plain_lost.add(batch.rows() as u64),
            Err(error) => {
                self.on_failed(&error, now);
                self.held_plain = Some(batch);
            }
        }
    }

    /// Whether a batch can be written, as far as is known.
    pub fn can_take(&self) -> bool {
        self.stuck.is_none()
    }

    /// Appends consecutive batches of this process. If one cannot be written, the earlier ones are still in the log.
    pub fn handle_local(&mut self, batches: &[Batch], answer: SyncSender<Appended>) {
        match self.write_local(batches) {
            Ok(range) => self.tell_when_durable(Waiting::Local { answer, range }),
            Err(refusal) => {
                self.stats.refuse(refusal.code);
                // If the caller stopped waiting, it does not need the answer.
                let _ = answer.try_send(Err(refusal));
            }
        }
    }

    fn write_local(&mut self, batches: &[Batch]) -> Appended {
        if self.obstacle().is_some() {
            return Err(self.refusal());
        }
        batches
            .iter()
            .try_for_each(|batch| self.ahead.check(batch))?;
        let most = self.config.max_batch_bytes;
        // Readers receive whole batches, so the limit for producers applies here, too.
        let mut pieces = Vec::with_capacity(batches.len());
        batches
            .iter()
            .for_each(|batch| cut(batch, most, &mut pieces));
        if let Some(large) = pieces.iter().find(|batch| batch.size() > most) {
            return Err(Refusal::too_big("row", large.size(), most));
        }
        let now = Instant::now();
        let origin = Origin::plain(self.receive_time());
        let first = self.log.as_ref().map_or(0, Log::next);
        let mut end = first;
        for batch in &pieces {
            let written = self.write(&origin, batch, batch.size(), now);
            end = written.map_err(|error| self.refuse_for(&error, now))?.end;
            self.stats.local_rows.add(batch.rows() as u64);
        }
        Ok(first..end)
    }

    // ---- writing and syncing ---------------------------------------------------------------------------------------

    fn write(
        &mut self,
        origin: &Origin,
        batch: &Batch,
        bytes: usize,
        now: Instant,
    ) -> Result<Range<u64>, LogError> {
        let Some(log) = &mut self.log else {
            return Err(LogError::Failed {
                what: "opening",
                reason: NOT_OPEN.to_owned(),
            });
        };
        let range = log.append(origin, batch)?;
        let rows = range.end - range.start;
        self.stats.rows.add(rows);
        self.stats.bytes.add(bytes as u64);
        self.topics.add(batch);
        self.commits.on_appended(rows, now);
        Ok(range)
    }

    /// Notifies a receiver once everything written so far is on disk, which may be now.
    fn tell_when_durable(&mut self, who: Waiting) {
        let written = self.written();
        self.commits.wait(written, who);
        self.tell_if_durable(written);
    }

    fn tell_if_durable(&mut self, written: Written) {
        if self.log.as_ref().is_some_and(|log| log.synced() >= written) {
            self.tell();
        }
    }

    fn written(&self) -> Written {
        self.log
            .as_ref()
            .map_or_else(Written::default, Log::written)
    }

    /// The time of the next action.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let retry = self.stuck.as_ref().map(|stuck| stuck.retry_at);
        [self.commits.poll_timeout(), self.owed.poll_timeout(), retry]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does the work that is due. Returns true if the log was reopened, so that its readers need another handle.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if let Some(log) = &self.log {
            self.commits.begin(now, || log.syncer());
        }
        self.send_owed(now);
        if self
            .stuck
            .as_ref()
            .is_some_and(|stuck| stuck.retry_at <= now)
        {
            return self.retry(now);
        }
        false
    }

    /// Handles the end of a sync.
    pub fn on_synced(&mut self, syncer: &Syncer, result: Result<u64, LogError>, took: Duration) {
        self.commits.on_ended();
        self.stats.syncs.add(1);
        self.stats.sync_times.add(took);
        // After a failed write, the log may have been reopened while the sync of the earlier opening was running.
        if !self.log.as_ref().is_some_and(|log| log.has_syncer(syncer)) {
            return;
        }
        match result {
            Ok(_) => self.tell(),
            Err(error) => self.on_failed(&error, Instant::now()),
        }
    }

    /// Returns a batch of a query that is on disk.
    pub fn poll_published(&mut self) -> Option<BatchOf> {
        self.published.pop()
    }

    /// Notifies all receivers whose rows are on disk.
    fn tell(&mut self) {
        let Some(log) = &self.log else { return };
        let synced = log.synced();
        self.plain_at_risk.settle(synced);
        let was_crowded = self.commits.is_crowded();
        while let Some(who) = self.commits.poll_told(synced) {
            match who {
                Waiting::Ack {
                    producer,
                    asked,
                    seq,
                    offset,
                } => self.acknowledge(producer, Ack { asked, seq, offset }),
                Waiting::Welcome { asked, producer } => self.welcome(&asked, &producer),
                Waiting::Published {
                    asked,
                    of,
                    range,
                    already,
                } => {
                    let published = Reply::Published {
                        first: range.start,
                        end: range.end,
                        already,
                    };
                    self.outbox.say(&asked, published);
                    self.published.push(of);
                }
                Waiting::Local { answer, range } => {
                    // If the caller stopped waiting, it does not need the answer.
                    let _ = answer.try_send(Ok(range));
                }
            }
        }
        if was_crowded && self.obstacle().is_none() {
            self.call_back();
        }
    }

    fn welcome(&mut self, asked: &Asked, producer: &str) {
        let Some(log) = &self.log else { return };
        let credit = self.credit();
        let (writers, is_whole) = log.writers(producer);
        let welcome = Reply::Welcome {
            log_id: log.id(),
            writers: writers
                .iter()
                .map(|writer| (writer.epoch, writer.last_seq))
                .collect(),
            is_whole,
            credit,
            max_batch_bytes: self.config.max_batch_bytes as u64,
            advertise: self.advertise.clone(),
        };
        self.outbox.say(asked, welcome);
        // A producer that was told to stop, with a credit of nothing, is notified when it may continue.
        if let Some(session) = self.sessions.get_mut(producer) {
            session.stalled = credit.is_nothing();
        }
    }

    /// The current time, which never decreases.
    pub fn receive_time(&mut self) -> i64 {
        let now = i64::try_from(wall()).unwrap_or(i64::MAX);
        self.received = self.received.max(now);
        self.received
    }
}

/// Cuts a batch into pieces of at most `most` bytes, unless a single row is larger.
fn cut(batch: &Batch, most: usize, pieces: &mut Vec<Batch>) {
    let rows = batch.rows();
    if rows < 2 || batch.size() <= most {
        pieces.push(batch.clone());
        return;
    }
    // Rows differ in size, so each half is checked separately.
    cut(&batch.slice(0, rows / 2), most, pieces);
    cut(&batch.slice(rows / 2, rows - rows / 2), most, pieces);
}
