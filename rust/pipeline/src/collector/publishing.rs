//! Prepares large transactions on a thread of its own. Their rows are written and synced to a separate segment while
//! other writers append, and the serving thread only has to adopt the file.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use zeroxide_log::{LogError, LogId, Prepared};

use crate::collector::line::{Event, Line};
use crate::collector::outbox::{Asked, Outbox};
use crate::collector::refusal::{Refusal, refusal_of};
use crate::collector::stage::{BatchOf, StagedPart};
use crate::collector::topics::Topics;
use crate::threads::spawn;
use crate::wire::{Attempt, Code, Reply};

/// The interval of progress messages to waiting clients.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// The maximum number of requests that wait for one transaction. Another one replaces the oldest.
const ASKERS: usize = 8;

/// A transaction to prepare.
struct Job {
    of: BatchOf,
    number: u64,
    parts: Vec<StagedPart>,
    receive_time: i64,
}

/// A transaction that is being prepared.
struct Pending {
    /// The number of the job that prepares it. After an abort, the same batch may be requested again before the first
    /// job notices.
    number: u64,
    /// The attempts whose rows these are.
    attempts: Vec<Attempt>,
    /// The requests, and whether each joined a transaction that was already being prepared.
    askers: Vec<(Asked, bool)>,
}

/// The requests that wait for each transaction.
type Waiting = Arc<Mutex<HashMap<BatchOf, Pending>>>;

/// Owns the thread while it runs.
pub(super) struct Publishing {
    jobs: Option<Sender<Job>>,
    /// The number of the next job.
    number: u64,
    outbox: Outbox,
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
    ) -> Result<Publishing, zeroxide::Error> {
        let (mut publishing, worker) = Publishing::new(dir, log, line, outbox);
        publishing.thread = Some(spawn("collector-publish", move || {
            worker.run(Worker::prepare)
        })?);
        Ok(publishing)
    }

    /// The same without a thread, which runs the worker.
    pub fn new(dir: PathBuf, log: LogId, line: Line, outbox: Outbox) -> (Publishing, Worker) {
        let (sender, jobs) = mpsc::channel();
        let waiting = Waiting::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            dir,
            log,
            line,
            outbox: outbox.clone(),
            jobs,
            waiting: waiting.clone(),
            is_over: is_over.clone(),
            told: Instant::now(),
        };
        let publishing = Publishing {
            jobs: Some(sender),
            number: 0,
            outbox,
            waiting,
            is_over,
            thread: None,
        };
        (publishing, worker)
    }

    /// Joins a transaction that is being prepared already. It may be one of other attempts, so this request is answered like
    /// one for a batch that was published before. Returns whether there is one.
    pub fn join(&self, of: &BatchOf, asked: &Asked) -> bool {
        let mut waiting = lock(&self.waiting);
        let Some(Pending { askers, .. }) = waiting.get_mut(of) else {
            return false;
        };
        if askers.len() >= ASKERS {
            askers.remove(0);
        }
        askers.push((asked.clone(), true));
        true
    }

    /// Prepares a transaction of these attempts, with this time of receipt. A [`Event::Prepared`] reports the end
    /// through the line.
    pub fn push(
        &mut self,
        asked: Asked,
        of: BatchOf,
        attempts: Vec<Attempt>,
        parts: Vec<StagedPart>,
        receive_time: i64,
    ) {
        if self.join(&of, &asked) {
            return;
        }
        let number = self.number;
        self.number += 1;
        let pending = Pending {
            number,
            attempts,
            askers: vec![(asked, false)],
        };
        lock(&self.waiting).insert(of.clone(), pending);
        let job = Job {
            of: of.clone(),
            number,
            parts,
            receive_time,
        };
        let sent = self
            .jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            let text = "the thread that publishes large batches has ended: restart the collector";
            for (asked, _) in self.settle(&of, number).unwrap_or_default() {
                let refusal = Refusal::new(Code::Failed, 0, text);
                self.outbox.refuse(&asked, refusal);
            }
        }
    }

    /// The requests that wait for the transaction that this job has prepared, and whether each of them joined it; None if
    /// it was cancelled.
    pub fn settle(&self, of: &BatchOf, number: u64) -> Option<Vec<(Asked, bool)>> {
        let mut waiting = lock(&self.waiting);
        waiting.get(of).filter(|pending| pending.number == number)?;
        waiting.remove(of).map(|pending| pending.askers)
    }

    /// Cancels the publishing of these attempts, or of the whole batch if the list is empty, and answers the waiting
    /// requests.
    pub fn cancel(&self, of: &BatchOf, attempts: &[Attempt]) {
        let mut waiting = lock(&self.waiting);
        let attempts: HashSet<&Attempt> = attempts.iter().collect();
        let is_meant = |pending: &Pending| {
            let mut own = pending.attempts.iter();
            attempts.is_empty() || own.any(|attempt| attempts.contains(attempt))
        };
        if !waiting.get(of).is_some_and(is_meant) {
            return;
        }
        let askers = waiting.remove(of).map(|pending| pending.askers);
        drop(waiting);
        for (asked, _) in askers.into_iter().flatten() {
            let text = format!(
                "batch {} of query {:?} was aborted while it was being published: nothing of it is in the log",
                of.batch, of.query
            );
            self.outbox
                .refuse(&asked, Refusal::new(Code::NotStaged, 0, text));
        }
    }

    /// All waiting requests.
    pub fn settle_all(&self) -> Vec<Asked> {
        let mut waiting = lock(&self.waiting);
        let pending = waiting.drain().map(|(_, pending)| pending.askers);
        pending.flatten().map(|(asked, _)| asked).collect()
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been printed and affects nothing else.
            let _ = thread.join();
        }
    }
}

/// The work of the thread.
pub(super) struct Worker {
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
    fn run(
        mut self,
        prepare: impl Fn(&mut Worker, &Job) -> Result<Option<(Prepared, Topics)>, Refusal>,
    ) {
        loop {
            match self.jobs.recv_timeout(TELL_EVERY) {
                Ok(job) => {
                    // A panic over one batch must not leave other batches, or the requests for this one, waiting
                    // forever. Its incomplete state is dropped with the job.
                    let prepared = catch_unwind(AssertUnwindSafe(|| prepare(&mut self, &job)));
                    let prepared = prepared.unwrap_or_else(|_| {
                        let text = "an internal error (a panic, printed by the collector) came while the batch was being prepared";
                        Err(Refusal::new(Code::Failed, 0, text))
                    });
                    if self.is_over.load(Ordering::Acquire) {
                        break;
                    }
                    self.report(job, prepared);
                }
                Err(RecvTimeoutError::Timeout) => self.tell(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    /// Does the next job, if there is one.
    #[cfg(zeroxide_disk)]
    pub fn step(&mut self) {
        if let Ok(job) = self.jobs.try_recv() {
            let prepared = self.prepare(&job);
            self.report(job, prepared);
        }
    }

    /// Reports the end of a job, unless it was cancelled.
    fn report(&self, job: Job, prepared: Result<Option<(Prepared, Topics)>, Refusal>) {
        if let Some(prepared) = prepared.transpose() {
            let (of, number) = (job.of, job.number);
            self.line.tell(Event::Prepared {
                of,
                number,
                prepared,
            });
        }
    }

    /// Prepares the segment, with one part in memory at a time. None if it was cancelled.
    fn prepare(&mut self, job: &Job) -> Result<Option<(Prepared, Topics)>, Refusal> {
        let BatchOf { query, batch } = &job.of;
        let refused = |error: LogError| refusal_of(&error);
        let begun = Prepared::begin(&self.dir, self.log, query, *batch, job.receive_time);
        let mut prepared = begun.map_err(refused)?;
        let mut topics = Topics::default();
        for part in &job.parts {
            if self.is_over.load(Ordering::Acquire) {
                return Err(Refusal::new(
                    Code::Closing,
                    0,
                    "the collector is being stopped",
                ));
            }
            if !self.is_wanted(job) {
                return Ok(None);
            }
            let batch = part.decode()?;
            topics.add(&batch);
            prepared.push(&batch).map_err(refused)?;
            if self.told.elapsed() >= TELL_EVERY {
                self.tell();
            }
        }
        prepared.sync().map_err(refused)?;
        Ok(Some((prepared, topics)))
    }

    fn is_wanted(&self, job: &Job) -> bool {
        let waiting = lock(&self.waiting);
        let pending = waiting.get(&job.of);
        pending.is_some_and(|pending| pending.number == job.number)
    }

    /// Sends a progress message to all waiting requests.
    fn tell(&mut self) {
        self.told = Instant::now();
        for pending in lock(&self.waiting).values() {
            for (asked, _) in &pending.askers {
                self.outbox.say(asked, Reply::Publishing);
            }
        }
    }
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, HashMap<BatchOf, Pending>> {
    // The map is changed in single steps, so a panic in another thread leaves it consistent.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::collector::stats::Stats;
    use crate::collector::unread::Unread;
    use crate::wake;
    use zeroxide::{Context, Socket, SocketType};

    fn asked() -> Asked {
        Asked {
            route: "nobody".into(),
            id: 1,
            key: None,
        }
    }

    fn of(batch: u64) -> BatchOf {
        BatchOf {
            query: "q".to_owned(),
            batch,
        }
    }

    fn outbox(context: &Context) -> (Socket, Outbox, Arc<Stats>) {
        let router = context.socket(SocketType::Router).unwrap();
        let stats = Arc::new(Stats::default());
        let outbox = Outbox::new(router.clone(), stats.clone(), Unread::new(1 << 20));
        (router, outbox, stats)
    }

    #[test]
    fn after_a_panic_others_are_prepared() {
        let context = Context::new();
        let (router, outbox, _) = outbox(&context);
        let (events, incoming) = mpsc::channel();
        let (wake, _woken) = wake::pair().unwrap();
        let (sender, jobs) = mpsc::channel();
        let waiting = Waiting::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            dir: PathBuf::new(),
            log: LogId::default(),
            line: Line::new(events, wake),
            outbox: outbox.clone(),
            jobs,
            waiting: waiting.clone(),
            is_over: is_over.clone(),
            told: Instant::now(),
        };
        let thread = thread::spawn(move || {
            worker.run(|_, job| match job.of.batch {
                0 => panic!("on purpose"),
                _ => Err(Refusal::new(Code::Corrupt, 0, "no panic")),
            });
        });
        let mut publishing = Publishing {
            jobs: Some(sender),
            number: 0,
            outbox,
            waiting,
            is_over,
            thread: Some(thread),
        };
        for (batch, code) in [(0, Code::Failed), (1, Code::Corrupt)] {
            publishing.push(asked(), of(batch), Vec::new(), Vec::new(), 0);
            let event = incoming.recv_timeout(Duration::from_secs(20)).unwrap();
            let Event::Prepared {
                of: told,
                number,
                prepared,
            } = event
            else {
                panic!("{event:?}");
            };
            assert_eq!((told, number), (of(batch), batch));
            assert_eq!(prepared.unwrap_err().code, code);
            assert_eq!(publishing.settle(&of(batch), number).unwrap().len(), 1);
        }
        drop(publishing);
        router.close(Some(Some(Duration::ZERO)));
        context.term().unwrap();
    }

    #[test]
    fn without_its_thread_requests_do_not_wait() {
        let context = Context::new();
        let (router, outbox, stats) = outbox(&context);
        let mut publishing = Publishing {
            jobs: Some(mpsc::channel().0),
            number: 0,
            outbox,
            waiting: Waiting::default(),
            is_over: Arc::default(),
            thread: None,
        };
        publishing.push(asked(), of(0), Vec::new(), Vec::new(), 0);
        assert!(!publishing.join(&of(0), &asked()));
        assert_eq!(
            stats.refused.iter().map(|count| count.get()).sum::<u64>(),
            1
        );
        drop(publishing);
        router.close(Some(Some(Duration::ZERO)));
        context.term().unwrap();
    }
}
