//! Large transactions on their way into the log, on a thread of its own: their rows are written and synced beside the log, so
//! that others go on appending, and the serving thread has only to take the file over.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zeroxide_log::{Batch, LogError, LogId, Prepared};

use crate::collector::ingest::Refusal;
use crate::collector::line::{Event, Line};
use crate::collector::outbox::{Asked, Outbox};
use crate::collector::stage::{BatchOf, StagedPart};
use crate::collector::writer::refusal_of;
use crate::wire::{Code, Reply};

/// How often those who wait are told that it goes on.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// How many may wait for one transaction: one who asks again takes the place of the one who asked first.
const ASKERS: usize = 8;

/// A transaction to be prepared.
struct Job {
    of: BatchOf,
    parts: Vec<StagedPart>,
    receive_time: i64,
}

/// Who waits for which.
type Waiting = Arc<Mutex<HashMap<BatchOf, Vec<Asked>>>>;

/// The thread, as long as it runs.
pub(super) struct Publishing {
    jobs: Option<Sender<Job>>,
    waiting: Waiting,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Publishing {
    pub fn start(
        dir: PathBuf,
        log: LogId,
        line: Line,
        outbox: Outbox,
    ) -> std::io::Result<Publishing> {
        let (sender, jobs) = mpsc::channel();
        let waiting = Waiting::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            dir,
            log,
            line,
            outbox,
            jobs,
            waiting: waiting.clone(),
            is_over: is_over.clone(),
            told: Instant::now(),
        };
        let thread = thread::Builder::new()
            .name("collector-publish".to_owned())
            .spawn(move || worker.run())?;
        Ok(Publishing {
            jobs: Some(sender),
            waiting,
            is_over,
            thread: Some(thread),
        })
    }

    /// Whether this transaction is being prepared already: then this one waits for it, too.
    pub fn join(&self, of: &BatchOf, asked: &Asked) -> bool {
        let mut waiting = lock(&self.waiting);
        let Some(askers) = waiting.get_mut(of) else {
            return false;
        };
        if askers.len() >= ASKERS {
            askers.remove(0);
        }
        askers.push(asked.clone());
        true
    }

    /// Prepares a transaction, whose rows were received at this time: a [`Event::Prepared`] comes down the line.
    pub fn push(&self, asked: Asked, of: BatchOf, parts: Vec<StagedPart>, receive_time: i64) {
        if self.join(&of, &asked) {
            return;
        }
        lock(&self.waiting).insert(of.clone(), vec![asked]);
        if let Some(jobs) = &self.jobs {
            // Without its other end the collector is about to end.
            let _ = jobs.send(Job {
                of,
                parts,
                receive_time,
            });
        }
    }

    /// Those who wait for a transaction that does not need to be waited for any more.
    pub fn settle(&self, of: &BatchOf) -> Vec<Asked> {
        lock(&self.waiting).remove(of).unwrap_or_default()
    }

    /// The same for all of them.
    pub fn settle_all(&self) -> Vec<Asked> {
        let mut waiting = lock(&self.waiting);
        waiting.drain().flat_map(|(_, askers)| askers).collect()
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed, and ends nothing else.
            let _ = thread.join();
        }
    }
}

struct Worker {
    dir: PathBuf,
    log: LogId,
    line: Line,
    outbox: Outbox,
    jobs: Receiver<Job>,
    waiting: Waiting,
    is_over: Arc<AtomicBool>,
    told: Instant,
}

impl Worker {
    fn run(mut self) {
        loop {
            match self.jobs.recv_timeout(TELL_EVERY) {
                Ok(job) => {
                    let prepared = self.prepare(&job);
                    if self.is_over.load(Ordering::Acquire) {
                        break;
                    }
                    let of = job.of;
                    self.line.tell(Event::Prepared { of, prepared });
                }
                Err(RecvTimeoutError::Timeout) => self.tell(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    /// One part is in memory at a time.
    fn prepare(&mut self, job: &Job) -> Result<Prepared, Refusal> {
        let BatchOf { query, batch } = &job.of;
        let refused = |error: LogError| refusal_of(&error);
        let begun = Prepared::begin(&self.dir, self.log, query, *batch, job.receive_time);
        let mut prepared = begun.map_err(refused)?;
        for part in &job.parts {
            if self.is_over.load(Ordering::Acquire) {
                return Err(Refusal::new(
                    Code::Closing,
                    0,
                    "the collector is being stopped",
                ));
            }
            prepared.push(&read(part)?).map_err(refused)?;
            if self.told.elapsed() >= TELL_EVERY {
                self.tell();
            }
        }
        prepared.sync().map_err(refused)?;
        Ok(prepared)
    }

    /// Tells everybody that it goes on.
    fn tell(&mut self) {
        self.told = Instant::now();
        for asked in lock(&self.waiting).values().flatten() {
            self.outbox.say(asked, Reply::Publishing);
        }
    }
}

/// The rows of a part, which are what they were when they were staged.
pub(super) fn read(part: &StagedPart) -> Result<Batch, Refusal> {
    let corrupt = |text: String| Refusal::new(Code::Corrupt, 0, text);
    let rows = part.read().map_err(|error| corrupt(error.to_string()))?;
    Batch::decode(rows).map_err(|error| corrupt(error.to_string()))
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, HashMap<BatchOf, Vec<Asked>>> {
    // Everything in it is changed in single steps: a panic elsewhere leaves nothing half done.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
