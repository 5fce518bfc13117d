//! The collector writes the rows of producers to a log, acknowledges them when they are on disk, and serves them to
//! readers.
//!
//! ```text
//!             ROUTER                         one thread owns the log, and everything that is written
//!  producers ───────►┐                ┌──► sync     fdatasync, while further rows are appended
//!  readers   ◄──────►├─► serve ───────┼──► fetch    reads rows on disk and replies itself
//!  sinks     ◄──────►┘     ▲          ├──► stage    writes rows that are not visible yet
//!                          │          └──► publish  makes segments of large transactions
//!  PUSH, PUB, DEALER ──► plain                      gathers messages into batches
//! ```
//!
//! The serving thread never waits for a peer, and only occasionally for the disk. `append` writes to the page cache,
//! but the first append after a full segment syncs the rest of that segment and writes a snapshot. The log's tables are
//! saved regularly. PUBLISH copies the staged rows of a small transaction, or adopts the segment that was made of a
//! large one. Other threads send their events to the serving thread through a `line`, and any thread may reply to peers
//! through the `outbox`.

mod access;
mod age;
mod ahead;
mod commit;
mod config;
mod describe;
mod described;
mod door;
mod exposure;
mod fetch;
mod followers;
mod ingest;
#[cfg(zeroxide_disk)]
mod kept;
mod line;
mod outbox;
mod owners;
mod plain;
mod publishing;
mod refusal;
mod routes;
mod serve;
#[cfg(zeroxide_disk)]
pub(crate) mod simulated;
mod stage;
mod staging;
mod stats;
mod tail;
mod topics;
mod unread;
mod writer;

use std::ops::Range;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thiserror::Error;
use zeroxide::{Context, ContextOptions, Socket, SocketType, Value, ids};
use zeroxide_log::{Batch, Log, LogError, LogId, Recovery};

use crate::collector::access::Access;
pub use crate::collector::access::{Grant, Grants, Role};
use crate::collector::ahead::Ahead;
use crate::collector::commit::Commits;
pub use crate::collector::config::{Config, Framing, Plain, Security};
use crate::collector::described::Described;
use crate::collector::door::Door;
use crate::collector::fetch::Fetcher;
use crate::collector::followers::Followers;
use crate::collector::line::{Appended, Event, Line};
use crate::collector::outbox::Outbox;
use crate::collector::owners::Owners;
use crate::collector::plain::Gatherer;
use crate::collector::publishing::Publishing;
use crate::collector::serve::Server;
use crate::collector::stage::Stage;
use crate::collector::staging::Staging;
use crate::collector::stats::Stats;
pub use crate::collector::tail::Tail;
use crate::collector::unread::Unread;
use crate::collector::writer::Writer;
use crate::threads::spawn;
use crate::wake;
use crate::wire::Code;

/// The maximum number of bytes that a peer may have queued here, in addition to one message, before reading from it
/// stops.
const RCVHWM_BYTES: i64 = 32 << 20;

/// The maximum number of bytes that a peer may leave unread.
const SNDHWM_BYTES: i64 = 64 << 20;

/// The time, in milliseconds, after which a peer that takes none of its replies over tcp is disconnected.
const UNREAD_FOR: i64 = 60_000;

/// The size of header, key and padding around a batch.
const AROUND_BATCH: usize = 1 << 20;

/// The sender of a batch that is too large must receive an error, so messages up to this multiple of the limit, or this
/// size, are received. A larger message ends its connection and is counted.
const REFUSED_TIMES: usize = 4;
const REFUSED_BYTES: usize = 64 << 20;

/// The reason why a collector did not start, or refused an operation.
#[derive(Debug, Error)]
pub enum CollectorError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A socket failed.
    #[error(transparent)]
    Socket(#[from] zeroxide::Error),
    /// The folder of staged rows or a descriptor could not be created.
    #[error("the collector cannot work in its folder: {0}")]
    Io(#[from] std::io::Error),
    /// Every client that reaches the address could write and read.
    #[error(
        "{endpoint} is reachable from other machines, and without keys every client can write and read: give the \
         collector a key and an allow list (--key and --allow; in Python secret_key and allow), or permit this with \
         --open-to-network (open_to_network=True)"
    )]
    Open {
        /// The endpoint to bind.
        endpoint: String,
    },
    /// The collector refused.
    #[error("{text}")]
    Refused {
        /// The reason, for programs.
        code: Code,
        /// The reason, for people.
        text: String,
    },
    /// The collector did not answer in time.
    #[error(
        "the collector did not answer within {0:?}: the disk may be slow, or the rows may still be written"
    )]
    Timeout(Duration),
    /// The collector was closed.
    #[error("the collector is closed")]
    Closed,
    /// The collector ended with an error.
    #[error("{0}")]
    Ended(String),
}

/// A running collector. Dropping it closes it.
#[derive(Debug)]
pub struct Collector {
    context: Context,
    line: Line,
    endpoint: String,
    plain_endpoints: Vec<String>,
    log_id: LogId,
    recovery: Recovery,
    thread: Mutex<Option<JoinHandle<Result<(), String>>>>,
}

impl Collector {
    /// Opens the log, binds the sockets and starts serving.
    ///
    /// # Errors
    /// If the log or the list of name owners is in use or irreparably damaged, if an address cannot be bound, or if the
    /// folder cannot be written to. Also if other machines could connect without keys and the configuration does not
    /// allow that.
    pub fn start(config: Config) -> Result<Collector, CollectorError> {
        exposure::check(&config)?;
        let log = Log::open(&config.dir, config.log.clone())?;
        let mut stage = Stage::open(&config.dir, config.max_staged_bytes)?;
        stage.forget_published(|query| log.published(query).map(|last| last.batch));

        let mut recovery = log.recovery().clone();
        recovery.notes.append(&mut stage.notes);
        let access = match &config.security {
            Some(security) => {
                let mut owners = Owners::open(&config.dir)?;
                recovery.notes.append(&mut owners.notes);
                Some(Access::new(security.grants.clone(), owners))
            }
            None => None,
        };
        let context = Context::with_options(ContextOptions::default());
        let router = open_router(&context, &config)?;
        let endpoint = router.bind(&config.bind)?;
        // The bound address may not be valid on other machines. Without `advertise`, clients keep the address with
        // which they connected.
        let advertise = config.advertise.clone().unwrap_or_default();

        let stats = Arc::new(Stats::default());
        stats.staged_lost.set(stage.lost);
        let unread = Unread::new(config.max_unread_bytes);
        let outbox = Outbox::new(router.clone(), stats.clone(), unread.clone());
        let (wake, woken) = wake::pair()?;
        let (events, incoming) = mpsc::channel();
        let line = Line::new(events, wake.clone());
        let reader = log.reader();
        let log_id = log.id();
        let fetcher = Fetcher::start(reader.clone(), outbox.clone(), stats.clone(), unread)?;
        let ahead = Ahead::new(config.max_ahead, log.last_received(), stats.clone());
        let staging = Staging::start(
            stage,
            line.clone(),
            outbox.clone(),
            stats.clone(),
            ahead.clone(),
            config.staged_for,
        )?;
        let publishing =
            Publishing::start(config.dir.clone(), log_id, line.clone(), outbox.clone())?;
        let commits = Commits::start(
            line.clone(),
            config.flush_after,
            config.flush_rows,
            config.max_waiting,
        )?;
        let gatherer = match config.plain.is_empty() {
            true => None,
            false => Some(Gatherer::start(&context, &config, &stats, wake)?),
        };
        let plain_endpoints = gatherer
            .iter()
            .flat_map(|gatherer| gatherer.endpoints.clone())
            .collect();
        let plain_sockets = gatherer.iter().flat_map(|gatherer| &gatherer.sockets);
        let door = Door::new(plain_sockets.chain([&router]))?;
        let server = Server {
            writer: Writer::new(
                config.clone(),
                advertise.clone(),
                log,
                commits,
                outbox.clone(),
                stats.clone(),
                ahead,
            ),
            config,
            stats,
            router,
            outbox,
            events: incoming,
            woken,
            reader,
            staging,
            publishing,
            fetcher,
            followers: Followers::default(),
            gatherer,
            access,
            endpoint: endpoint.clone(),
            advertise,
            started: Instant::now(),
            plain_too_large: 0,
            door,
            described: Described::new(Instant::now()),
        };
        let thread = spawn("collector", move || server.run())?;
        Ok(Collector {
            context,
            line,
            endpoint,
            plain_endpoints,
            log_id,
            recovery,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The address that was bound.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The addresses of the sockets for plain peers: PULL, SUB and DEALER, in the order of the configuration.
    pub fn plain_endpoints(&self) -> &[String] {
        &self.plain_endpoints
    }

    /// The id of the log.
    pub fn log_id(&self) -> LogId {
        self.log_id
    }

    /// The state in which the log was found when it was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Whether the collector is running. If it is not, and was not closed, it has failed, and [`close`](Self::close)
    /// returns the error.
    pub fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Appends consecutive batches. [`Appending::wait`] reports when they are on disk.
    pub fn begin_append(&self, batches: Vec<Batch>) -> Appending {
        let (answer, answers) = sync_channel(1);
        self.line.tell(Event::Append { batches, answer });
        Appending { answers }
    }

    /// Appends rows and waits until they are on disk. Returns their offsets.
    ///
    /// # Errors
    /// `Refused` if they cannot be written, `Timeout`, `Closed`.
    pub fn append(&self, batch: Batch, timeout: Duration) -> Result<Range<u64>, CollectorError> {
        let mut appending = self.begin_append(vec![batch]);
        appending
            .wait(timeout)?
            .ok_or(CollectorError::Timeout(timeout))
    }

    /// All counters, as a JSON object.
    ///
    /// # Errors
    /// `Timeout`, `Closed`.
    pub fn stats(&self, timeout: Duration) -> Result<String, CollectorError> {
        let (answer, answers) = sync_channel(1);
        self.line.tell(Event::Stats { answer });
        answers.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => CollectorError::Timeout(timeout),
            RecvTimeoutError::Disconnected => CollectorError::Closed,
        })
    }

    /// Reads the last rows of a topic, or of all, on the calling thread. At most 65,536 rows and 8 MiB of the log are
    /// searched for them.
    ///
    /// # Errors
    /// `Log` when they cannot be read, `Timeout`, `Closed`.
    pub fn tail(
        &self,
        topic: Option<&str>,
        most: usize,
        timeout: Duration,
    ) -> Result<Tail, CollectorError> {
        let (answer, answers) = sync_channel(1);
        self.line.tell(Event::Read { answer });
        let reader = answers.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => CollectorError::Timeout(timeout),
            RecvTimeoutError::Disconnected => CollectorError::Closed,
        })?;
        Ok(tail::read(&reader, topic, most)?)
    }

    /// Drops a group of consumers. Returns whether it existed.
    ///
    /// # Errors
    /// `Refused` if the change cannot be saved, `Timeout`, `Closed`.
    pub fn drop_group(&self, group: &str, timeout: Duration) -> Result<bool, CollectorError> {
        let (answer, answers) = sync_channel(1);
        let group = group.to_owned();
        self.line.tell(Event::DropGroup { group, answer });
        match answers.recv_timeout(timeout) {
            Ok(Ok(existed)) => Ok(existed),
            Ok(Err(refusal)) => Err(CollectorError::Refused {
                code: refusal.code,
                text: refusal.text,
            }),
            Err(RecvTimeoutError::Timeout) => Err(CollectorError::Timeout(timeout)),
            Err(RecvTimeoutError::Disconnected) => Err(CollectorError::Closed),
        }
    }

    /// Accepts the rows in transit, syncs them to disk, replies, and ends. Closing again does nothing.
    ///
    /// # Errors
    /// `Ended` if something could not be written, or if the collector had failed before.
    pub fn close(&self) -> Result<(), CollectorError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = thread.take() else {
            return Ok(());
        };
        self.line.tell(Event::Close);
        let result = thread
            .join()
            .unwrap_or_else(|_| Err("the collector's thread panicked".to_owned()));
        // The last replies have their linger time. Clients that do not receive them ask again.
        let _ = self
            .context
            .term_until(Some(Instant::now() + Duration::from_secs(5)));
        result.map_err(CollectorError::Ended)
    }
}

/// Rows that wait for the disk.
#[derive(Debug)]
pub struct Appending {
    answers: Receiver<Appended>,
}

impl Appending {
    /// Returns the offsets of the rows once they are on disk; None if that takes longer than `timeout`.
    ///
    /// # Errors
    /// `Refused` if they cannot be written; some batches may be in the log then, and later ones not. `Closed`.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Range<u64>>, CollectorError> {
        match self.answers.recv_timeout(timeout) {
            Ok(Ok(range)) => Ok(Some(range)),
            Ok(Err(refusal)) => Err(CollectorError::Refused {
                code: refusal.code,
                text: refusal.text,
            }),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(CollectorError::Closed),
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if !self.context.is_own_process() {
            // In a forked child, the thread does not exist, and locks are in the state that the fork copied.
            std::mem::forget(self.line.clone());
            let thread = self
                .thread
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(thread.take());
            return;
        }
        // Callers that need the result call close; the next start recovers by itself.
        let _ = self.close();
    }
}

fn open_router(context: &Context, config: &Config) -> Result<Socket, CollectorError> {
    let router = context.socket(SocketType::Router)?;
    let read = config.max_batch_bytes.saturating_mul(REFUSED_TIMES);
    let largest = read.max(REFUSED_BYTES).saturating_add(AROUND_BATCH);
    let largest = i64::try_from(largest).unwrap_or(i64::MAX);
    // Mandatory, so that a reply without room or without a peer is reported instead of dropped.
    let options = [
        (ids::ROUTER_MANDATORY, Value::from(true)),
        (ids::MAXMSGSIZE, Value::Int(largest)),
        (ids::RCVHWM_BYTES, Value::Int(RCVHWM_BYTES)),
        (ids::SNDHWM_BYTES, Value::Int(SNDHWM_BYTES)),
        (ids::SNDHWM, Value::Int(100_000)),
        // A peer that takes nothing for this long is disconnected, and its unread replies are dropped. Over tcp only,
        // because the kernel enforces it.
        (ids::TCP_MAXRT, Value::Int(UNREAD_FOR)),
    ];
    for (option, value) in options {
        router.set_option(option, &value)?;
    }
    if let Some(security) = &config.security {
        router.secure_server(&security.secret_key, &security.allow)?;
    }
    Ok(router)
}
