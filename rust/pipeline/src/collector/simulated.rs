//! A collector on a simulated disk, in one thread and without sockets: the server with everything below it. Its threads
//! are replaced by [`Work`] that the caller orders.

use std::ops::Range;
use std::sync::mpsc::{self, Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide::{Context, Frame, Message, Socket, SocketType};
use zeroxide_log::{Batch, Log, Reader, Syncer};

use crate::collector::CollectorError;
use crate::collector::ahead::Ahead;
use crate::collector::commit::Commits;
use crate::collector::config::Config;
use crate::collector::described::Described;
use crate::collector::door::Door;
use crate::collector::fetch::Fetcher;
use crate::collector::followers::Followers;
use crate::collector::kept::Kept;
use crate::collector::line::{Appended, Event, Line};
use crate::collector::outbox::Outbox;
use crate::collector::publishing::{self, Publishing};
use crate::collector::serve::{End, Server};
use crate::collector::stage::{BatchOf, Stage};
use crate::collector::staging::{self, Staging};
use crate::collector::stats::Stats;
use crate::collector::unread::Unread;
use crate::collector::writer::Writer;
use crate::wake;
use crate::wire::{Attempt, Reply};

/// The interval at which failed writes are retried: longer than a run takes, so that [`Work::Retry`] decides.
const RETRY_EVERY: Duration = Duration::from_secs(3600);

/// The work of the threads of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The serving thread handles events and begins a sync.
    Serve,
    /// The thread that syncs.
    Sync,
    /// The thread that stages.
    Stage,
    /// The thread that prepares large transactions.
    Prepare,
    /// A thread that fetches.
    Fetch,
    /// The serving thread applies retention, and saves the positions of groups.
    Save,
    /// The serving thread tries again what has failed.
    Retry,
}

impl Work {
    pub(crate) const ALL: [Work; 7] = [
        Work::Serve,
        Work::Sync,
        Work::Stage,
        Work::Prepare,
        Work::Fetch,
        Work::Save,
        Work::Retry,
    ];
}

/// Rows that were appended, and may not be on disk.
pub(crate) struct Appending(Receiver<Appended>);

/// The state of such rows.
pub(crate) enum Answer {
    Waiting,
    Appended(Range<u64>),
    /// They were refused, or the collector has ended. They may be in the log.
    Unknown,
}

impl Appending {
    pub(crate) fn poll(&self) -> Answer {
        match self.0.try_recv() {
            Ok(Ok(range)) => Answer::Appended(range),
            Err(TryRecvError::Empty) => Answer::Waiting,
            _ => Answer::Unknown,
        }
    }
}

/// A process of a collector.
pub(crate) struct Served {
    server: Server,
    kept: Kept,
    line: Line,
    syncers: Receiver<Syncer>,
    stager: staging::Worker,
    preparer: publishing::Worker,
    /// The attempts with parts in files that the start could not use.
    aside: Vec<(BatchOf, Attempt)>,
    retries: u32,
}

/// A socket that carries nothing.
fn unused() -> Result<Socket, CollectorError> {
    static UNUSED: OnceLock<(Context, Socket)> = OnceLock::new();
    if let Some((_, socket)) = UNUSED.get() {
        return Ok(socket.clone());
    }
    let context = Context::new();
    let socket = context.socket(SocketType::Router)?;
    Ok(UNUSED.get_or_init(|| (context, socket)).1.clone())
}

impl Served {
    /// Opens the log and the staged rows, as a collector does when it starts.
    pub(crate) fn open(mut config: Config) -> Result<Served, CollectorError> {
        config.flush_after = Duration::ZERO;
        config.retry_every = RETRY_EVERY;
        let log = Log::open(&config.dir, config.log.clone())?;
        let mut stage = Stage::open(&config.dir, config.max_staged_bytes)?;
        stage.forget_published(|query| log.published(query).map(|last| last.batch));
        let aside = stage.attempts_aside();
        let stats = Arc::new(Stats::default());
        let kept = Kept::default();
        let outbox = Outbox::keeping(kept.clone(), stats.clone());
        let (wake, woken) = wake::pair()?;
        let (events, incoming) = mpsc::channel();
        let line = Line::new(events, wake);
        let reader = log.reader();
        let ahead = Ahead::new(config.max_ahead, log.last_received(), stats.clone());
        let (staging, stager) = Staging::new(
            stage,
            line.clone(),
            outbox.clone(),
            stats.clone(),
            ahead.clone(),
            config.staged_for,
        );
        let (publishing, preparer) =
            Publishing::new(config.dir.clone(), log.id(), line.clone(), outbox.clone());
        let (requests, syncers) = sync_channel(1);
        let commits = Commits::new(
            requests,
            config.flush_after,
            config.flush_rows,
            config.max_waiting,
        );
        let unread = Unread::new(config.max_unread_bytes);
        let fetcher = Fetcher::new(reader.clone(), outbox.clone(), stats.clone(), unread);
        let server = Server {
            writer: Writer::new(
                config.clone(),
                String::new(),
                log,
                commits,
                outbox.clone(),
                stats.clone(),
                ahead,
            ),
            config,
            stats,
            router: unused()?,
            outbox,
            events: incoming,
            woken,
            reader,
            staging,
            publishing,
            fetcher,
            followers: Followers::default(),
            gatherer: None,
            access: None,
            endpoint: String::new(),
            advertise: String::new(),
            started: Instant::now(),
            plain_too_large: 0,
            door: Door::new([].into_iter())?,
            described: Described::new(Instant::now()),
        };
        Ok(Served {
            server,
            kept,
            line,
            syncers,
            stager,
            preparer,
            aside,
            retries: 0,
        })
    }

    /// Handles a message that came over a connection.
    pub(crate) fn handle(&mut self, route: &Bytes, mut message: Message) {
        message.push_front(Frame::from_bytes(route.clone()));
        self.server.handle_message(message, None);
    }

    /// Appends rows of this process. The answer comes when they are on disk.
    pub(crate) fn append(&mut self, batches: Vec<Batch>) -> Appending {
        let (answer, answers) = sync_channel(1);
        self.line.tell(Event::Append { batches, answer });
        Appending(answers)
    }

    /// Does a piece of work.
    pub(crate) fn work(&mut self, work: Work) {
        match work {
            Work::Serve => {
                self.server.take_events(&mut End::NotYet);
                self.server.advance(Instant::now());
            }
            Work::Sync => {
                if let Ok(syncer) = self.syncers.try_recv() {
                    let result = syncer.sync();
                    self.line.tell(Event::Synced {
                        syncer,
                        result,
                        took: Duration::ZERO,
                    });
                }
            }
            Work::Stage => self.stager.step(),
            Work::Prepare => self.preparer.step(),
            Work::Fetch => self.server.fetcher.step(),
            Work::Save => self.server.retain(true),
            Work::Retry => {
                self.retries += 1;
                let later = RETRY_EVERY * 2 * self.retries;
                self.server.advance(Instant::now() + later);
            }
        }
    }

    /// Removes segments of rows below this offset.
    pub(crate) fn trim(&mut self, before: u64) {
        if let Some(log) = self.server.writer.log() {
            // Rows that cannot be removed now stay.
            let _ = log.trim(before);
        }
    }

    /// Takes the replies that were sent.
    pub(crate) fn replies(&self) -> Vec<(Bytes, u64, Reply)> {
        self.kept.take()
    }

    /// The rows on disk.
    pub(crate) fn reader(&self) -> &Reader {
        &self.server.reader
    }

    /// The rows that could not be read when the log was opened. A damaged header of a file without rows is reported, too.
    pub(crate) fn damage(&mut self) -> Option<String> {
        let log = self.server.writer.log()?;
        let recovery = log.recovery();
        let is_whole = recovery.damaged.iter().all(Range::is_empty);
        (!is_whole).then(|| format!("{recovery:?}"))
    }

    /// Whether parts of this attempt are in a file that could not be used.
    pub(crate) fn is_aside(&self, query: &str, batch: u64, attempt: Attempt) -> bool {
        let mut aside = self.aside.iter();
        aside.any(|(of, other)| of.query == query && of.batch == batch && *other == attempt)
    }

    /// The position of a group.
    pub(crate) fn position(&mut self, group: &str) -> Option<u64> {
        self.server.writer.log()?.groups().get(group).copied()
    }

    /// What keeps it from writing.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let (_, text) = self.server.writer.obstacle()?;
        Some(text.to_owned())
    }

    /// Ends in an orderly way.
    pub(crate) fn close(mut self) {
        // The next start recovers what could not be written.
        let _ = self.server.writer.close();
    }
}
