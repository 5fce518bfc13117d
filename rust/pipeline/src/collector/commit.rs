//! Syncing on a thread of its own, and what waits for it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zeroxide_log::{Syncer, Written};

use crate::collector::line::{Appended, Event, Line};
use crate::collector::outbox::Asked;
use crate::collector::stage::BatchOf;

/// Who is to be told that rows are on disk.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A producer, of a batch.
    Ack {
        asked: Asked,
        seq: u64,
        offset: Option<u64>,
    },
    /// A producer, of what it is told that the log has.
    Welcome { asked: Asked, producer: Arc<str> },
    /// A sink, of a batch.
    Published {
        asked: Asked,
        of: BatchOf,
        range: Range<u64>,
        already: bool,
    },
    /// This process.
    Local {
        answer: SyncSender<Appended>,
        range: Range<u64>,
    },
}

/// When to sync, and who waits for it.
#[derive(Debug)]
pub(super) struct Commits {
    flush_after: Duration,
    flush_rows: u64,
    /// In the order of what must be on disk.
    waiting: VecDeque<(Written, Waiting)>,
    /// The first append since the last sync began, and the rows since then.
    since: Option<Instant>,
    rows: u64,
    /// What was written then is not to wait for more.
    is_urgent: bool,
    is_running: bool,
    requests: Option<SyncSender<Syncer>>,
    thread: Option<JoinHandle<()>>,
}

impl Commits {
    pub fn start(line: Line, flush_after: Duration, flush_rows: u64) -> std::io::Result<Commits> {
        let (requests, syncers) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("collector-sync".to_owned())
            .spawn(move || run(&syncers, &line))?;
        Ok(Commits {
            flush_after,
            flush_rows,
            waiting: VecDeque::new(),
            since: None,
            rows: 0,
            is_urgent: false,
            is_running: false,
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    /// These many rows were appended just now.
    pub fn on_appended(&mut self, rows: u64, now: Instant) {
        self.since.get_or_insert(now);
        self.rows += rows;
    }

    /// Something was written that others wait for to begin: what comes in while the next sync runs goes together, too.
    pub fn hurry(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.is_urgent = true;
    }

    /// Tells this one as soon as all up to `end` is on disk.
    pub fn wait(&mut self, end: Written, who: Waiting) {
        debug_assert!(self.waiting.back().is_none_or(|(last, _)| *last <= end));
        self.waiting.push_back((end, who));
    }

    /// When to call [`begin`](Self::begin).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let since = self.since.filter(|_| !self.is_running)?;
        Some(match self.is_urgent || self.rows >= self.flush_rows {
            true => since,
            false => since + self.flush_after,
        })
    }

    /// Begins to sync if it is time, and tells with what: an answer comes down the line.
    pub fn begin(&mut self, now: Instant, syncer: impl FnOnce() -> Syncer) -> bool {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return false;
        }
        self.since = None;
        self.rows = 0;
        self.is_urgent = false;
        if let Some(requests) = &self.requests {
            // There is room: one sync runs at a time.
            self.is_running = requests.send(syncer()).is_ok();
        }
        self.is_running
    }

    /// A sync has ended.
    pub fn on_ended(&mut self) {
        self.is_running = false;
    }

    /// One that can be told now that all up to `synced` is on disk.
    pub fn poll_told(&mut self, synced: Written) -> Option<Waiting> {
        self.waiting.front().filter(|(end, _)| *end <= synced)?;
        self.waiting.pop_front().map(|(_, who)| who)
    }

    /// Everybody who waits; what they wait for will not come.
    pub fn give_up(&mut self) -> impl Iterator<Item = Waiting> + use<> {
        self.since = None;
        self.rows = 0;
        self.is_urgent = false;
        std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|(_, who)| who)
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl Drop for Commits {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed, and ends nothing else.
            let _ = thread.join();
        }
    }
}

fn run(syncers: &Receiver<Syncer>, line: &Line) {
    for syncer in syncers {
        let start = Instant::now();
        let result = syncer.sync();
        let took = start.elapsed();
        line.tell(Event::Synced { result, took });
    }
}
