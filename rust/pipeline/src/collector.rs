//! The collector: writes what producers send into a log, acknowledges it when it is on disk, and serves it.
//!
//! ```text
//!             ROUTER                         one thread owns the log, and everything that is written
//!  producers ───────►┐                ┌──► sync     fdatasync, while rows are appended behind it
//!  readers   ◄──────►├─► serve ───────┼──► fetch    reads what is on disk, answers by itself
//!  sinks     ◄──────►┘     ▲          ├──► stage    writes rows that nobody may see yet
//!                          │          └──► publish  makes segments of many of them
//!  PUSH, PUB, DEALER ──► plain                      gathers messages into batches
//! ```
//!
//! The serving thread never waits for a peer, and for the disk only now and then: `append` writes to the page cache, but the
//! first one behind a full segment syncs what is left of that and writes a snapshot; the log's tables are saved, and PUBLISH
//! copies the staged rows of a small transaction, or takes over the segment that was made of a large one. What other threads have for it comes down a `line`; what it has for peers, any thread may say
//! through the `outbox`.

mod access;
mod commit;
mod config;
mod door;
mod exposure;
mod fetch;
mod followers;
mod ingest;
mod line;
mod outbox;
mod owners;
mod plain;
mod publishing;
mod serve;
mod stage;
mod staging;
mod stats;
mod unread;
mod writer;

use std::ops::Range;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thiserror::Error;
use zeroxide::{Context, ContextOptions, Socket, SocketType, Value, ids};
use zeroxide_log::{Batch, Log, LogError, LogId, Recovery};

use crate::collector::access::Access;
pub use crate::collector::access::{Grant, Grants, Role};
use crate::collector::commit::Commits;
pub use crate::collector::config::{Config, Framing, Plain, Security};
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
use crate::collector::unread::Unread;
use crate::collector::writer::Writer;
use crate::wake;
use crate::wire::Code;

/// What a peer may have queued here before it is not read from, beside one message.
const RCVHWM_BYTES: i64 = 32 << 20;

/// What a peer may leave unread.
const SNDHWM_BYTES: i64 = 64 << 20;

/// For how many milliseconds a peer may take nothing of what is to be sent to it over tcp.
const UNREAD_FOR: i64 = 60_000;

/// Header, key and padding around a batch.
const AROUND_BATCH: usize = 1 << 20;

/// Who sends a batch that is too large shall hear of it: so it is read, up to so many times what is taken, or this much.
/// A connection that brings more ends, and is counted.
const REFUSED_TIMES: usize = 4;
const REFUSED_BYTES: usize = 64 << 20;

/// Why a collector did not start, or did not do what it was asked to.
#[derive(Debug, Error)]
pub enum CollectorError {
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A socket.
    #[error(transparent)]
    Socket(#[from] zeroxide::Error),
    /// The folder of staged rows, or a thread.
    #[error("the collector cannot work in its folder: {0}")]
    Io(#[from] std::io::Error),
    /// Whoever reaches the address could write and read.
    #[error(
        "{endpoint} is reachable from other machines, and without keys every client can write and read: give the \
         collector a key and an allow list (--key and --allow; in Python secret_key and allow), or permit this with \
         --open-to-network (open_to_network=True)"
    )]
    Open {
        /// What was to be bound.
        endpoint: String,
    },
    /// It said no.
    #[error("{text}")]
    Refused {
        /// Why, for programs.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// It did not answer in time.
    #[error(
        "the collector did not answer within {0:?}: the disk may be slow, or the rows may still be written"
    )]
    Timeout(Duration),
    /// It was closed.
    #[error("the collector is closed")]
    Closed,
    /// It ended badly.
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
    /// Opens the log, binds the sockets and serves from now on.
    ///
    /// # Errors
    /// When the log, or the list of names' owners, is in use or damaged beyond recovery, an address cannot be bound, or the folder cannot be written to;
    /// when other machines could connect without keys, and nobody said that they may.
    pub fn start(config: Config) -> Result<Collector, CollectorError> {
        exposure::check(&config)?;
        let log = Log::open(&config.dir, config.log.clone())?;
        let mut stage = Stage::open(&config.dir, config.max_staged_bytes)?;
        stage.forget_published(|query| log.published(query).map(|last| last.batch));

        let mut recovery = log.recovery().clone();
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
        // What is bound may mean something else to others, or nothing: they keep the address that brought them here.
        let advertise = config.advertise.clone().unwrap_or_default();

        let stats = Arc::new(Stats::default());
        let outbox = Outbox::new(router.clone(), stats.clone());
        let (wake, woken) = wake::pair()?;
        let (events, incoming) = mpsc::channel();
        let line = Line::new(events, wake.clone());
        let reader = log.reader();
        let log_id = log.id();
        let unread = Unread::new(config.max_unread_bytes);
        let fetcher = Fetcher::start(reader.clone(), outbox.clone(), stats.clone(), unread)?;
        let staging = Staging::start(
            stage,
            line.clone(),
            outbox.clone(),
            stats.clone(),
            config.staged_for,
        )?;
        let publishing =
            Publishing::start(config.dir.clone(), log_id, line.clone(), outbox.clone())?;
        let commits = Commits::start(line.clone(), config.flush_after, config.flush_rows)?;
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
        };
        let thread = thread::Builder::new().name("collector".to_owned());
        let thread = thread.spawn(move || server.run())?;
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

    /// The addresses of plain peers' sockets: PULL, SUB and DEALER's, in the order of the configuration.
    pub fn plain_endpoints(&self) -> &[String] {
        &self.plain_endpoints
    }

    /// Which log it is.
    pub fn log_id(&self) -> LogId {
        self.log_id
    }

    /// What was found when the log was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Whether it runs. One that does not and was not closed has failed: [`close`](Self::close) says how.
    pub fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Appends rows, one batch behind the other with nothing in between; [`Appending::wait`] says when they are on disk.
    pub fn begin_append(&self, batches: Vec<Batch>) -> Appending {
        let (answer, answers) = sync_channel(1);
        self.line.tell(Event::Append { batches, answer });
        Appending { answers }
    }

    /// Appends rows and waits until they are on disk. Gives their offsets.
    ///
    /// # Errors
    /// `Refused` when they cannot be written, `Timeout`, `Closed`.
    pub fn append(&self, batch: Batch, timeout: Duration) -> Result<Range<u64>, CollectorError> {
        let mut appending = self.begin_append(vec![batch]);
        appending
            .wait(timeout)?
            .ok_or(CollectorError::Timeout(timeout))
    }

    /// Everything that can be counted, as a JSON object.
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

    /// Forgets a group of consumers; whether there was one.
    ///
    /// # Errors
    /// `Refused` when that cannot be written down, `Timeout`, `Closed`.
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

    /// Takes what is on its way, brings everything to the disk, answers, and ends. Closing again does nothing.
    ///
    /// # Errors
    /// `Ended` when something could not be written, or the collector had failed before.
    pub fn close(&self) -> Result<(), CollectorError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = thread.take() else {
            return Ok(());
        };
        self.line.tell(Event::Close);
        let result = thread
            .join()
            .unwrap_or_else(|_| Err("the collector's thread panicked".to_owned()));
        // The last answers have their linger; whoever did not take them asks again.
        let _ = self
            .context
            .term_until(Some(Instant::now() + Duration::from_secs(5)));
        result.map_err(CollectorError::Ended)
    }
}

/// Rows on their way to the disk.
#[derive(Debug)]
pub struct Appending {
    answers: Receiver<Appended>,
}

impl Appending {
    /// The offsets of the rows once they are on disk; None when that takes longer.
    ///
    /// # Errors
    /// `Refused` when they cannot be written: then some batches may be in the log, and later ones not. `Closed`.
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
            // Its thread is not there, and its locks are as the fork met them.
            std::mem::forget(self.line.clone());
            let thread = self
                .thread
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(thread.take());
            return;
        }
        // Whoever wants to know calls close; the next start finds out by itself.
        let _ = self.close();
    }
}

fn open_router(context: &Context, config: &Config) -> Result<Socket, CollectorError> {
    let router = context.socket(SocketType::Router)?;
    let read = config.max_batch_bytes.saturating_mul(REFUSED_TIMES);
    let largest = read.max(REFUSED_BYTES).saturating_add(AROUND_BATCH);
    let largest = i64::try_from(largest).unwrap_or(i64::MAX);
    // Mandatory: an answer that finds no room, or nobody, is not dropped in silence.
    let options = [
        (ids::ROUTER_MANDATORY, Value::from(true)),
        (ids::MAXMSGSIZE, Value::Int(largest)),
        (ids::RCVHWM_BYTES, Value::Int(RCVHWM_BYTES)),
        (ids::SNDHWM_BYTES, Value::Int(SNDHWM_BYTES)),
        (ids::SNDHWM, Value::Int(100_000)),
        // Whoever takes nothing for so long has to go, and what it left unread with it: over tcp alone, as the kernel does it.
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
