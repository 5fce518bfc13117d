//! The one who writes: producers' batches, plain peers', this process' own, and what sinks publish.
//!
//! ```text
//!            append fails: no room                            the held batch fits
//!   Fine ───────────────────────────► Stuck, Full ──────────────────────────────────────► Fine
//!     └─────────────────────────────► Stuck, anything else ──► the log is opened anew ───► Fine
//!            append or sync fails                               what it has counts
//! ```
//!
//! While it is stuck, batches of producers are dropped, and each is told once, with a credit of nothing; when it is
//! fine again each is told where to go on. Plain peers are not read from.

mod publish;
mod trouble;

pub(super) use trouble::refusal_of;

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use zeroxide_log::{Batch, Log, LogError, Origin, Written};

use crate::collector::commit::{Commits, Waiting};
use crate::collector::config::Config;
use crate::collector::ingest::{Admission, Hello, Limits, Refusal, Rows, Sessions};
use crate::collector::line::Appended;
use crate::collector::outbox::{Asked, Outbox};
use crate::collector::stage::BatchOf;
use crate::collector::stats::Stats;
use crate::wire::{Code, Credit, Reply};

/// A batch as a producer sent it.
#[derive(Debug)]
pub(super) struct Sent {
    pub asked: Asked,
    pub producer: String,
    pub epoch: u64,
    pub first_seq: u64,
    pub batch: Bytes,
}

/// What stands in the way of writing.
#[derive(Debug)]
struct Stuck {
    code: Code,
    text: String,
    /// When to try again.
    retry_at: Instant,
}

pub(super) struct Writer {
    config: Config,
    stats: Arc<Stats>,
    outbox: Outbox,
    /// None while it cannot be opened.
    log: Option<Log>,
    sessions: Sessions,
    commits: Commits,
    stuck: Option<Stuck>,
    /// The batch that did not fit: appended again, it says whether there is room.
    held: Option<Sent>,
    held_plain: Option<Batch>,
    /// Up to this a log whose sync has failed is to be trusted.
    trusted: Option<Written>,
    /// Rows of plain peers that may not be on disk: nobody has them any more if they are not.
    plain_at_risk: u64,
    /// The last time of receipt: they do not fall, whatever the clock does.
    received: i64,
    advertise: String,
    /// Batches of queries that were published, and need not be staged any longer.
    published: Vec<BatchOf>,
}

impl Writer {
    pub fn new(
        config: Config,
        advertise: String,
        log: Log,
        commits: Commits,
        outbox: Outbox,
        stats: Arc<Stats>,
    ) -> Writer {
        let limits = Limits {
            sessions: config.max_producers,
            per_route: config.max_names_per_connection,
            credit: config.credit,
        };
        Writer {
            config,
            stats,
            outbox,
            log: Some(log),
            sessions: Sessions::new(limits),
            commits,
            stuck: None,
            held: None,
            held_plain: None,
            trusted: None,
            plain_at_risk: 0,
            received: i64::MIN,
            advertise,
            published: Vec::new(),
        }
    }

    /// The log, unless it cannot be opened just now.
    pub fn log(&mut self) -> Option<&mut Log> {
        self.log.as_mut()
    }

    /// What stands in the way of writing, if anything does.
    pub fn obstacle(&self) -> Option<(Code, &str)> {
        self.stuck.as_ref().map(|stuck| (stuck.code, &*stuck.text))
    }

    pub fn producers(&self) -> usize {
        self.sessions.len()
    }

    /// Producers whose sessions had to make room for others.
    pub fn dropped(&self) -> u64 {
        self.sessions.dropped()
    }

    pub fn waiting(&self) -> usize {
        self.commits.waiting()
    }

    pub fn credit(&self) -> Credit {
        match self.stuck {
            Some(_) => Credit::default(),
            None => self.sessions.credit(),
        }
    }

    // ---- producers -------------------------------------------------------------------------------------------------

    pub fn handle_hello(&mut self, asked: Asked, producer: &str, epoch: u64, next_seq: u64) {
        self.stats.hellos.add(1);
        let Some(log) = &self.log else {
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
        // What a producer hears that the log has it may forget: so it must be on disk.
        let producer = producer.into();
        self.tell_when_durable(Waiting::Welcome { asked, producer });
    }

    /// Writes down that older runs of a producer are over: the one that is welcomed counts on it, also when another
    /// process serves this log by the time that an older one sends again.
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
        if sent.batch.len() > self.config.max_batch_bytes {
            let most = self.config.max_batch_bytes;
            let text = format!(
                "a batch of {} bytes came, and {most} is the most that this collector takes (max_batch_bytes)",
                sent.batch.len()
            );
            let refusal = Refusal::new(Code::TooBig, most as u64, text);
            return self.outbox.refuse(&sent.asked, refusal);
        }
        if self.stuck.is_some() {
            return self.turn_back(&sent.producer, sent.epoch);
        }
        self.append(sent);
    }

    /// Appends what is new of a batch.
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
                let asked = sent.asked;
                return self.tell_when_durable(Waiting::Ack {
                    asked,
                    seq,
                    offset: None,
                });
            }
            Err(refusal) => return self.outbox.refuse(&sent.asked, refusal),
        };
        let batch = match skip {
            0 => batch,
            _ => batch.slice(skip, rows.count - skip),
        };
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

    /// Tells a producer that its batches are dropped, unless it knows.
    fn turn_back(&mut self, producer: &str, epoch: u64) {
        self.stats.turned_back.add(1);
        let Some(stuck) = &self.stuck else { return };
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
        let status = Reply::Status {
            producer: producer.to_owned(),
            epoch,
            code: stuck.code,
            last_seq: session.last(),
            credit: Credit::default(),
            text: stuck.text.clone(),
        };
        self.stats.refuse(stuck.code);
        self.outbox.say(&asked, status);
    }

    // ---- others who write ------------------------------------------------------------------------------------------

    /// Appends a batch of plain peers. Nothing is lost when it cannot be written: [`can_take`](Self::can_take) says
    /// when to bring the next one.
    pub fn handle_plain(&mut self, batch: Batch) {
        let now = Instant::now();
        let origin = Origin::plain(self.receive_time());
        match self.write(&origin, &batch, batch.size(), now) {
            Ok(_) => {
                self.stats.plain_rows.add(batch.rows() as u64);
                self.plain_at_risk += batch.rows() as u64;
            }
            Err(LogError::Batch(_)) => self.stats.plain_lost.add(batch.rows() as u64),
            Err(error) => {
                self.on_failed(&error, now);
                self.held_plain = Some(batch);
            }
        }
    }

    /// Whether a batch can be written as far as is known.
    pub fn can_take(&self) -> bool {
        self.stuck.is_none()
    }

    /// Appends rows of this process, one batch behind the other. When one cannot be written, those before it are in the
    /// log all the same.
    pub fn handle_local(&mut self, batches: &[Batch], answer: SyncSender<Appended>) {
        match self.write_local(batches) {
            Ok(range) => self.tell_when_durable(Waiting::Local { answer, range }),
            Err(refusal) => {
                self.stats.refuse(refusal.code);
                // Who does not wait any more does not want to know.
                let _ = answer.try_send(Err(refusal));
            }
        }
    }

    fn write_local(&mut self, batches: &[Batch]) -> Appended {
        if self.stuck.is_some() {
            return Err(self.refusal());
        }
        let most = self.config.max_batch_bytes;
        // Readers get whole batches: what no producer may send nobody may append.
        let mut pieces = Vec::with_capacity(batches.len());
        batches
            .iter()
            .for_each(|batch| cut(batch, most, &mut pieces));
        if let Some(large) = pieces.iter().find(|batch| batch.size() > most) {
            let text = format!(
                "a row has {} bytes, and {most} is the most that this collector takes (max_batch_bytes)",
                large.size()
            );
            return Err(Refusal::new(Code::TooBig, most as u64, text));
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
                reason: "the log is not open".to_owned(),
            });
        };
        let range = log.append(origin, batch)?;
        let rows = range.end - range.start;
        self.stats.rows.add(rows);
        self.stats.bytes.add(bytes as u64);
        self.commits.on_appended(rows, now);
        Ok(range)
    }

    /// Tells somebody once all that was written so far is on disk, at once if it is.
    fn tell_when_durable(&mut self, who: Waiting) {
        let written = self.written();
        self.commits.wait(written, who);
        if self.log.as_ref().is_some_and(|log| log.synced() >= written) {
            self.tell();
        }
    }

    fn written(&self) -> Written {
        self.log
            .as_ref()
            .map_or_else(Written::default, Log::written)
    }

    /// When something is to be done.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let retry = self.stuck.as_ref().map(|stuck| stuck.retry_at);
        [self.commits.poll_timeout(), retry]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what is due. True when the log was opened anew: those who read it need another reader.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if let Some(log) = &self.log {
            self.commits.begin(now, || log.syncer());
        }
        if self
            .stuck
            .as_ref()
            .is_some_and(|stuck| stuck.retry_at <= now)
        {
            return self.retry(now);
        }
        false
    }

    /// A sync has ended.
    pub fn on_synced(&mut self, result: Result<u64, LogError>, took: Duration) {
        self.commits.on_ended();
        self.stats.syncs.add(1);
        self.stats.sync_times.add(took);
        match result {
            Ok(_) => self.tell(),
            Err(error) => self.on_failed(&error, Instant::now()),
        }
    }

    /// A batch of a query that is on disk.
    pub fn poll_published(&mut self) -> Option<BatchOf> {
        self.published.pop()
    }

    /// Tells everybody whose rows are on disk.
    fn tell(&mut self) {
        let Some(log) = &self.log else { return };
        let synced = log.synced();
        if synced == log.written() {
            self.plain_at_risk = 0;
        }
        let credit = self.credit();
        while let Some(who) = self.commits.poll_told(synced) {
            match who {
                Waiting::Ack { asked, seq, offset } => {
                    let ack = Reply::Ack {
                        seq,
                        offset,
                        credit,
                    };
                    self.outbox.say(&asked, ack);
                }
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
                    // Who does not wait any more does not want to know.
                    let _ = answer.try_send(Ok(range));
                }
            }
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
        // With a credit of nothing it has been told to stop, and hears when to go on.
        if let Some(session) = self.sessions.get_mut(producer) {
            session.stalled = credit.is_nothing();
        }
    }

    /// The clock, which does not go back.
    pub fn receive_time(&mut self) -> i64 {
        let now = i64::try_from(wall()).unwrap_or(i64::MAX);
        self.received = self.received.max(now);
        self.received
    }
}

/// Microseconds since 1970.
fn wall() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Cuts a batch into pieces of at most so many bytes, as far as rows are no larger.
fn cut(batch: &Batch, most: usize, pieces: &mut Vec<Batch>) {
    let rows = batch.rows();
    if rows < 2 || batch.size() <= most {
        pieces.push(batch.clone());
        return;
    }
    // Rows may be of any size, so each half is looked at for itself.
    cut(&batch.slice(0, rows / 2), most, pieces);
    cut(&batch.slice(rows / 2, rows - rows / 2), most, pieces);
}
