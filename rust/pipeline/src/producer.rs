//! The producer turns rows into acknowledged batches in a collector's log.
//!
//! | module | purpose |
//! | --- | --- |
//! | `intake` | rows become batches; how much may be unacknowledged |
//! | `window` | the rows that one collector has not acknowledged: the protocol, without I/O |
//! | `spool` | the same on disk, for the next run |
//! | `conversation` | what is held for one collector, spooled, sent, and answered |
//! | `worker` | the thread that does the I/O |
//! | `shared` | the state shared between callers and that thread |
//! | `notices`, `failure`, `stats` | reports for the user |
//!
//! Any thread may use a producer. Calls that wait take a deadline, so that callers can handle signals in between.

mod conversation;
mod failure;
mod intake;
mod notices;
mod shared;
#[cfg(zeroxide_disk)]
pub(crate) mod simulated;
pub(crate) mod spool;
mod stats;
pub mod window;
mod worker;

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide::{Context, Socket, SocketType};
use zeroxide_log::{Batch, BatchError, Row};

use crate::clock::wall;
use crate::link::{Link, Security};
use crate::producer::conversation::Conversation;
pub use crate::producer::failure::{Failure, Fate};
use crate::producer::intake::{Bounds, Intake, Taken};
pub use crate::producer::intake::{Place, lane_of};
pub use crate::producer::notices::{Notice, Notices};
use crate::producer::shared::{Shared, Standing, State};
use crate::producer::spool::Spool;
use crate::producer::stats::Counters;
pub use crate::producer::stats::{CollectorStats, ProducerStats};
use crate::producer::worker::Worker;
use crate::threads::spawn;
use crate::wire::{Code, NAME_MAX};

/// The settings of a producer.
#[derive(Clone, Debug)]
pub struct ProducerConfig {
    /// The collectors' endpoints.
    pub endpoints: Vec<String>,
    /// Its name, which must be unique among running producers. Default: a random name.
    pub name: Option<String>,
    /// A folder for unacknowledged rows, so that they survive the process.
    pub spool: Option<PathBuf>,
    /// The maximum number of unacknowledged rows that are not in the spool.
    pub max_rows: u64,
    /// The maximum number of bytes that unacknowledged rows may take in memory.
    pub max_bytes: u64,
    /// The maximum number of bytes that unacknowledged rows may take in the spool.
    pub spool_bytes: u64,
    /// Whether the spool is synced after each batch. Rows then survive a power cut, but each batch waits for the disk.
    pub spool_sync: bool,
    /// The maximum time that a row waits for others.
    pub linger: Duration,
    /// The maximum number of rows of a batch.
    pub batch_rows: usize,
    /// The size at which a batch is full, in bytes.
    pub batch_bytes: usize,
    /// The time that a collector may be gone, or accept nothing, before that is an error; None = no limit.
    pub patience: Option<Duration>,
    /// Keys, if the collectors require them.
    pub security: Option<Security>,
}

impl Default for ProducerConfig {
    fn default() -> ProducerConfig {
        ProducerConfig {
            endpoints: Vec::new(),
            name: None,
            spool: None,
            max_rows: 1_000_000,
            max_bytes: 64 << 20,
            spool_bytes: 1 << 30,
            spool_sync: false,
            linger: Duration::from_millis(5),
            batch_rows: 8192,
            batch_bytes: 512 << 10,
            patience: Some(Duration::from_secs(60)),
            security: None,
        }
    }
}

/// A producer. Closing or dropping it ends it, and unacknowledged rows are lost unless they are in a spool.
pub struct Producer {
    shared: Arc<Shared>,
    context: Context,
    worker: Mutex<Option<JoinHandle<()>>>,
    config: ProducerConfig,
}

/// A point in the stream of rows for which a caller can wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark(Vec<u64>);

impl Mark {
    /// For each collector, the number of rows accepted before the mark.
    pub fn rows(&self) -> &[u64] {
        &self.0
    }
}

impl Producer {
    /// Begins to connect. The collectors need not be running yet. Rows that an earlier run left in the spool are sent
    /// first.
    ///
    /// # Errors
    /// If an endpoint or a name is invalid; if the spool belongs to another producer, is in use or damaged, or holds
    /// rows for a collector that is not among the endpoints; or if the system has no more threads or sockets.
    pub fn open(config: ProducerConfig) -> Result<Producer, Failure> {
        let name = name_for(&config)?;
        if let Some(dir) = &config.spool {
            spool::check_others(dir, &config.endpoints)?;
        }
        let context = Context::new();
        let (alarm, ears) = alarm(&context)?;
        let now = Instant::now();
        let has_spool = config.spool.is_some();
        let bounds = Bounds {
            max_rows: if has_spool { u64::MAX } else { config.max_rows },
            max_bytes: if has_spool {
                config.spool_bytes
            } else {
                config.max_bytes
            },
            max_fresh: config.max_bytes,
            batch_rows: config.batch_rows.max(1),
            batch_bytes: config.batch_bytes.max(1),
            linger: config.linger,
        };
        let mut intake = Intake::new(bounds, config.endpoints.len());
        let mut conversations = Vec::new();
        let mut reports = Vec::new();
        for (at, endpoint) in config.endpoints.iter().enumerate() {
            let link = Link::open(&context, endpoint, config.security.as_ref())?;
            let spool = match &config.spool {
                Some(dir) => {
                    let spool = Spool::open(dir, &name, endpoint, config.spool_sync);
                    Some(spool.map_err(Failure::spool)?)
                }
                None => None,
            };
            reports.extend(spool.iter().flat_map(Spool::notes));
            conversations.push(Conversation::begin(
                link,
                spool,
                config.max_bytes,
                now,
                |rows, size| intake.adopt(at, rows, size),
            )?);
        }
        let standings = config.endpoints.iter().map(|endpoint| Standing {
            endpoint: endpoint.clone(),
            gone: Some(now),
            ..Standing::default()
        });
        let shared = Arc::new(Shared {
            name,
            memory: config.max_bytes,
            state: Mutex::new(State {
                intake,
                standings: standings.collect(),
                failure: None,
                setback: None,
                reports,
                is_closed: false,
                stop: false,
                is_over: false,
            }),
            changed: Condvar::new(),
            asleep: AtomicBool::new(false),
            alarm,
            notices: Notices::default(),
            counters: Counters::default(),
        });
        let worker = Worker::new(shared.clone(), ears, conversations);
        let thread = spawn("zeroxide/producer", move || worker.run())?;
        Ok(Producer {
            shared,
            context,
            worker: Mutex::new(Some(thread)),
            config,
        })
    }

    /// The producer's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Whether this process created the producer. A forked child must not use it.
    pub fn is_own_process(&self) -> bool {
        self.context.is_own_process()
    }

    /// The notices about rows.
    pub fn notices(&self) -> &Notices {
        &self.shared.notices
    }

    // ---- rows ------------------------------------------------------------------------------------------------------

    /// Accepts a row; `None` if there is no room, see [`wait_room`](Self::wait_room). Never waits.
    ///
    /// # Errors
    /// If the row is too large, or nothing can be sent any more.
    pub fn push(&self, row: Row<'_>) -> Result<Option<Place>, Failure> {
        self.batching().push(row)
    }

    /// Locks the producer once for many rows.
    pub fn batching(&self) -> Batching<'_> {
        Batching {
            producer: self,
            state: self.shared.state(),
            must_ring: false,
            is_checked: false,
        }
    }

    /// Accepts the rows of a batch from `from` on, by copying; returns how many were accepted. With several collectors,
    /// each row with a key goes to the collector of that key.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn push_batch(&self, batch: &Batch, from: usize) -> Result<usize, Failure> {
        let rows = batch.rows();
        let has_keys = || (from..rows).any(|row| batch.key(row).is_some());
        if self.config.endpoints.len() > 1 && has_keys() {
            return self.push_rows(batch, from);
        }
        self.push_pieces(batch, from, None, self.config.batch_bytes)
    }

    /// Accepts rows of a batch from `from` on, all of which have this key or none, as a batch of their own, limited to
    /// the size that a collector accepts; returns how many were accepted.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn push_run(
        &self,
        batch: &Batch,
        from: usize,
        key: Option<&[u8]>,
    ) -> Result<usize, Failure> {
        self.push_pieces(batch, from, key, usize::MAX)
    }

    fn push_pieces(
        &self,
        batch: &Batch,
        from: usize,
        key: Option<&[u8]>,
        most: usize,
    ) -> Result<usize, Failure> {
        let mut at = from;
        while at < batch.rows() {
            if !self.shared.state().intake.has_room() {
                self.check_now()?;
                break;
            }
            let piece = match self.piece(batch, at, most) {
                // Rows before it were accepted. The error is returned when the row comes first.
                Err(_) if at > from => break,
                piece => piece?,
            };
            let taken = piece.rows();
            // Encoded before the lock is taken, and from memory that may not exist later.
            if !self.push_encoded(taken as u64, encoded(&piece), key)? {
                break;
            }
            at += taken;
        }
        Ok(at - from)
    }

    /// Accepts the rows of a batch one by one, into the open batches; returns how many were accepted.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn push_rows(&self, batch: &Batch, from: usize) -> Result<usize, Failure> {
        let mut batching = self.batching();
        for row in from..batch.rows() {
            let headers = batch.headers(row);
            let taken = batching.push(Row {
                value: batch.value(row),
                key: batch.key(row),
                topic: batch.topic(row),
                timestamp: batch.timestamp(row),
                headers: &headers,
                frames: None,
            })?;
            if taken.is_none() {
                return Ok(row - from);
            }
        }
        Ok(batch.rows() - from)
    }

    /// Accepts `rows` rows in their wire form as a batch of their own, for the collector of their common key. Returns
    /// whether there was room for them.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    fn push_encoded(&self, rows: u64, encoded: Bytes, key: Option<&[u8]>) -> Result<bool, Failure> {
        let mut batching = self.batching();
        batching.check()?;
        let taken = batching.state.intake.push_batch(rows, encoded, key);
        batching.must_ring |= taken != Taken::Full;
        Ok(taken != Taken::Full)
    }

    /// Whether a batch of this many rows and bytes counts as full.
    pub fn is_full_batch(&self, rows: usize, bytes: usize) -> bool {
        rows >= self.config.batch_rows.max(1) || bytes >= self.config.batch_bytes.max(1)
    }

    /// Checks whether a row can be accepted, now or once there is room.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn check_now(&self) -> Result<(), Failure> {
        self.batching().check()
    }

    /// Checks whether the accepted rows can be acknowledged, now or later.
    ///
    /// # Errors
    /// As for [`wait_mark`](Self::wait_mark).
    pub fn check_pending(&self) -> Result<(), Failure> {
        let state = self.shared.state();
        self.check_failure(&state)?;
        self.check_patience(&state, true)
    }

    /// Returns the rows from `at` on that fit into a batch of `most` bytes that a collector accepts.
    fn piece(&self, batch: &Batch, at: usize, most: usize) -> Result<Batch, Failure> {
        let limit = self.shared.state().intake.max_row();
        let most = usize::try_from(limit).unwrap_or(usize::MAX).min(most);
        let mut rows = (batch.rows() - at).min(self.config.batch_rows.max(1));
        let mut piece = batch.slice(at, rows);
        while rows > 1 && piece.size() > most {
            // Rows usually have about the same size; if not, the loop runs again.
            let fitting = rows as u64 * most as u64 / piece.size() as u64;
            rows = usize::try_from(fitting).unwrap_or(1).clamp(1, rows - 1);
            piece = batch.slice(at, rows);
        }
        let bytes = piece.size() as u64;
        if rows == 1 && bytes > limit {
            return Err(BatchError::RowTooLarge { bytes, limit }.into());
        }
        Ok(piece)
    }

    /// Waits until there is room for a row, or until a deadline. Returns whether there is room.
    ///
    /// # Errors
    /// If there will be none, because the collector is gone or accepts nothing for longer than the producer's time
    /// limit, or refuses the rows.
    pub fn wait_room(&self, until: Instant) -> Result<bool, Failure> {
        let mut state = self.shared.state();
        loop {
            self.check(&state)?;
            if state.intake.has_room() {
                return Ok(true);
            }
            self.check_patience(&state, true)?;
            let now = Instant::now();
            if until <= now {
                return Ok(false);
            }
            // No row can be added to an open batch now, so it need not wait any longer.
            state.intake.seal();
            drop(state);
            self.shared.ring();
            state = self.sleep(self.shared.state(), until, now);
        }
    }

    // ---- the end ---------------------------------------------------------------------------------------------------

    /// Seals the open batches, and returns the mark for which to wait.
    pub fn mark(&self) -> Mark {
        let mark = {
            let mut state = self.shared.state();
            state.intake.seal();
            Mark(state.intake.lanes().iter().map(|lane| lane.rows).collect())
        };
        self.shared.ring();
        mark
    }

    /// Waits until all rows before the mark are acknowledged, or until a deadline. Returns whether they are.
    ///
    /// # Errors
    /// If they never will be, or if the collector is gone or accepts nothing for longer than the producer's time limit.
    pub fn wait_mark(&self, mark: &Mark, until: Instant) -> Result<bool, Failure> {
        let mut state = self.shared.state();
        loop {
            let lanes = state.intake.lanes().iter();
            if lanes.zip(&mark.0).all(|(lane, rows)| lane.acked >= *rows) {
                state.take_setback()?;
                return Ok(true);
            }
            self.check_failure(&state)?;
            self.check_patience(&state, true)?;
            let now = Instant::now();
            if until <= now {
                return Ok(false);
            }
            state = self.sleep(state, until, now);
        }
    }

    /// Returns the setback that some rows have met, if it was not returned before.
    ///
    /// # Errors
    /// [`Failure::Setback`].
    pub fn check_setback(&self) -> Result<(), Failure> {
        self.shared.state().take_setback()
    }

    /// Returns further reports in words, each once.
    pub fn take_reports(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.state().reports)
    }

    fn sleep<'a>(
        &self,
        state: MutexGuard<'a, State>,
        until: Instant,
        now: Instant,
    ) -> MutexGuard<'a, State> {
        // The time limit may be reached during the wait.
        let slice = Duration::from_millis(50).min(until.saturating_duration_since(now));
        let waited = self.shared.changed.wait_timeout(state, slice);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The number of unacknowledged rows by endpoint, if there are any.
    pub fn unacknowledged(&self) -> Vec<(String, u64)> {
        let state = self.shared.state();
        let lanes = state.intake.lanes().iter().zip(&state.standings);
        lanes
            .filter(|(lane, _)| lane.acked < lane.rows)
            .map(|(lane, standing)| (standing.endpoint.clone(), lane.rows - lane.acked))
            .collect()
    }

    /// The number of accepted rows that are not in the spool because it is full, by endpoint, if there are any.
    pub fn unspooled(&self) -> Vec<(String, u64)> {
        let state = self.shared.state();
        let standings = state.standings.iter();
        standings
            .filter(|standing| standing.unspooled > 0)
            .map(|standing| (standing.endpoint.clone(), standing.unspooled))
            .collect()
    }

    /// Accepts no more rows. Rows that were accepted are still sent.
    pub fn shut(&self) {
        self.shared.state().is_closed = true;
        self.shared.changed.notify_all();
    }

    /// Whether rows are in a spool, so that unacknowledged ones survive the end.
    pub fn has_spool(&self) -> bool {
        self.config.spool.is_some()
    }

    /// Ends the producer. Unacknowledged rows are lost, unless they are in a spool.
    pub fn end(&self) {
        {
            let mut state = self.shared.state();
            state.is_closed = true;
            state.stop = true;
            state.intake.seal();
        }
        self.shared.ring();
        let thread = {
            let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
            worker.take()
        };
        if let Some(thread) = thread {
            // `Shared::end` has reported a panic of the thread.
            let _ = thread.join();
        }
        self.shared.alarm.close(None);
    }

    /// Whether it accepts no more rows.
    pub fn is_shut(&self) -> bool {
        let state = self.shared.state();
        state.is_closed || state.is_over
    }

    // ---- checks ----------------------------------------------------------------------------------------------------

    fn check(&self, state: &State) -> Result<(), Failure> {
        if state.is_closed || state.is_over {
            return Err(state.failure.clone().unwrap_or(Failure::Closed));
        }
        self.check_failure(state)
    }

    fn check_failure(&self, state: &State) -> Result<(), Failure> {
        match &state.failure {
            Some(failure) => Err(failure.with_unacknowledged(state.intake.unacknowledged().0)),
            None if state.is_over => Err(Failure::Closed),
            None => Ok(()),
        }
    }

    fn fate(&self, state: &State) -> Fate {
        match (state.is_closed, self.has_spool()) {
            (false, _) => Fate::Sent,
            (true, true) => Fate::Spooled,
            (true, false) => Fate::Lost,
        }
    }

    /// With `must`, having room is not sufficient.
    fn check_patience(&self, state: &State, must: bool) -> Result<(), Failure> {
        let patience = self.config.patience.unwrap_or(Duration::MAX);
        let is_waiting = |lane: &intake::Lane| lane.acked < lane.rows;
        let impatient = |since: Option<Instant>| since.filter(|since| since.elapsed() >= patience);
        let lanes = state.intake.lanes().iter().zip(&state.standings);
        for (lane, standing) in lanes {
            let error = if let Some(why) = standing.denied {
                // An error that waiting cannot change is returned at once.
                Failure::Denied {
                    endpoint: standing.endpoint.clone(),
                    why,
                    unacknowledged: state.intake.unacknowledged().0,
                    fate: self.fate(state),
                }
            } else if let Some((since, reason)) = &standing.spool_full {
                // A collector that is gone is an error only after the time limit.
                if since.elapsed() < patience {
                    continue;
                }
                Failure::SpoolFull {
                    seconds: since.elapsed().as_secs_f64(),
                    reason: reason.clone(),
                    rows: standing.unspooled,
                }
            } else if let Some(since) = impatient(standing.gone) {
                Failure::Gone {
                    endpoint: standing.endpoint.clone(),
                    seconds: since.elapsed().as_secs_f64(),
                    unacknowledged: state.intake.unacknowledged().0,
                    reason: standing.reason.clone(),
                    fate: self.fate(state),
                }
            } else if let Some(since) = impatient(standing.blocked).filter(|_| must) {
                Failure::Blocked {
                    endpoint: standing.endpoint.clone(),
                    seconds: since.elapsed().as_secs_f64(),
                    code: standing.obstacle.unwrap_or(Code::Full),
                    reason: standing.reason.clone(),
                }
            } else {
                continue;
            };
            if is_waiting(lane) || state.standings.len() == 1 {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if !self.is_own_process() {
            // In a forked child, the thread does not exist, and locks are in the state that the fork copied.
            std::mem::forget(self.shared.clone());
            let worker = self
                .worker
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(worker.take());
            return;
        }
        self.end();
    }
}

/// The lock of a producer, held while many rows are accepted.
pub struct Batching<'a> {
    producer: &'a Producer,
    state: MutexGuard<'a, State>,
    must_ring: bool,
    is_checked: bool,
}

impl Batching<'_> {
    /// As for [`Producer::push`].
    ///
    /// # Errors
    /// As for [`Producer::push`].
    #[inline]
    pub fn push(&mut self, row: Row<'_>) -> Result<Option<Place>, Failure> {
        self.check()?;
        match self.state.intake.push(row).map_err(Failure::from)? {
            Taken::At(place, wake) => {
                self.must_ring |= wake;
                Ok(Some(place))
            }
            Taken::Full => Ok(None),
        }
    }

    /// Checked once, because the state does not change while it is locked.
    #[inline]
    fn check(&mut self) -> Result<(), Failure> {
        if !self.is_checked {
            self.producer.check(&self.state)?;
            // Rows in a spool may wait for a collector that is gone.
            if !self.producer.has_spool() {
                self.producer.check_patience(&self.state, false)?;
            }
            self.is_checked = true;
        }
        Ok(())
    }
}

impl Drop for Batching<'_> {
    fn drop(&mut self) {
        if self.must_ring {
            // The worker needs the lock when it wakes; it is released in a moment.
            self.producer.shared.ring();
        }
    }
}

/// The two ends of the socket pair that wakes the worker.
fn alarm(context: &Context) -> Result<(Socket, Socket), Failure> {
    let (rope, bell) = (
        context.socket(SocketType::Pair)?,
        context.socket(SocketType::Pair)?,
    );
    bell.bind("inproc://alarm")?;
    rope.connect("inproc://alarm")?;
    Ok((rope, bell))
}

fn name_for(config: &ProducerConfig) -> Result<String, Failure> {
    let invalid = |text: &str| Err(Failure::Invalid(text.to_owned()));
    if config.endpoints.is_empty() {
        return invalid("a producer needs the endpoint of a collector");
    }
    let mut endpoints = config.endpoints.clone();
    endpoints.sort();
    endpoints.dedup();
    if endpoints.len() != config.endpoints.len() {
        return invalid("the same endpoint twice is not two collectors");
    }
    if let Some(name) = &config.name
        && (name.is_empty() || name.len() > NAME_MAX)
    {
        return invalid("a producer's name has 1 to 255 bytes");
    }
    let fresh = random_name();
    match &config.spool {
        Some(dir) => spool::name_of(dir, config.name.as_deref(), &fresh)
            .map_err(|error| Failure::Spool(error.to_string())),
        None => Ok(config.name.clone().unwrap_or(fresh)),
    }
}

/// A unique name: 128 random bits.
fn random_name() -> String {
    let number = || RandomState::new().hash_one((wall(), std::process::id()));
    format!("{:016x}{:016x}", number(), number())
}

/// The wire form of a batch.
pub fn encoded(batch: &Batch) -> Bytes {
    let mut bytes = Vec::with_capacity(batch.size());
    batch.encode(&mut bytes);
    bytes.into()
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use super::*;
    use zeroxide_log::{Log, LogConfig};

    #[test]
    fn after_a_batch_that_is_not_spooled_none_is() {
        let dir = tempfile::tempdir().expect("a folder");
        let producer = Producer::open(ProducerConfig {
            endpoints: vec!["tcp://127.0.0.1:9".to_owned()],
            spool: Some(dir.path().to_owned()),
            batch_rows: 1,
            ..ProducerConfig::default()
        })
        .expect("a producer");
        let row = Row {
            value: b"a row",
            ..Row::default()
        };
        {
            // In one turn of the worker: a row, a row that cannot be spooled, and another row.
            let mut batching = producer.batching();
            assert!(batching.push(row).expect("taken").is_some());
            let broken = Bytes::from_static(b"no batch");
            assert!(batching.state.intake.push_batch(2, broken, None) != Taken::Full);
            assert!(batching.push(row).expect("taken").is_some());
        }
        producer.end();
        assert!(matches!(producer.check_now(), Err(Failure::Spool(_))));
        drop(producer);

        let spool = dir.path().join("tcp___127.0.0.1_9");
        let log = Log::open(&spool, LogConfig::default()).expect("the spool");
        assert_eq!(log.next(), 1, "the row before");
    }
}
