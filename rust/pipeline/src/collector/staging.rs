//! The thread that writes staged rows, so that syncing them delays neither producers nor readers.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::Batch;

use crate::collector::ahead::Ahead;
use crate::collector::line::{Event, Line};
use crate::collector::outbox::{Asked, Outbox};
use crate::collector::refusal::Refusal;
use crate::collector::stage::{BatchOf, Stage};
use crate::collector::stats::{Count, Stats};
use crate::threads::spawn;
use crate::wire::{Attempt, Code, Reply, Won};

/// The maximum number of bytes that wait for this thread.
const WAITING: u64 = 256 << 20;

/// The bytes that a job counts in addition to its rows and lists: its place in the queue, its names, and the allocations of both.
const JOB: usize = 512;

/// The maximum number of parts that are synced together.
const TOGETHER: usize = 256;

/// The interval of searches for expired batches.
const EXPIRE_EVERY: Duration = Duration::from_secs(10);

/// A job for the thread.
#[derive(Debug)]
pub(super) enum Job {
    /// Stage a part.
    Stage {
        asked: Asked,
        of: BatchOf,
        key: (Attempt, u32),
        rows: Bytes,
    },
    /// Find the parts to publish, and pass them to the serving thread.
    Publish {
        asked: Asked,
        of: BatchOf,
        won: Vec<Won>,
    },
    /// Discard attempts.
    Abort {
        asked: Asked,
        of: BatchOf,
        attempts: Vec<Attempt>,
    },
    /// This batch of a query was published.
    Published(BatchOf),
    /// The log was opened again, perhaps in another folder of the same name.
    Reopened,
}

impl Job {
    /// The bytes that it counts while it waits.
    fn cost(&self) -> u64 {
        let held = match self {
            Job::Stage { rows, .. } => rows.len(),
            Job::Publish { won, .. } => size_of_val(&won[..]),
            Job::Abort { attempts, .. } => size_of_val(&attempts[..]),
            Job::Published(_) | Job::Reopened => 0,
        };
        (JOB + held) as u64
    }

    /// The request to refuse if there is no room.
    fn asked(&self) -> Option<&Asked> {
        match self {
            Job::Stage { asked, .. } | Job::Publish { asked, .. } | Job::Abort { asked, .. } => {
                Some(asked)
            }
            Job::Published(_) | Job::Reopened => None,
        }
    }
}

/// Owns the thread while it runs.
#[derive(Debug)]
pub(super) struct Staging {
    jobs: Option<Sender<Job>>,
    waiting: Arc<Count>,
    taken: Arc<Count>,
    thread: Option<JoinHandle<()>>,
}

impl Staging {
    pub fn start(
        stage: Stage,
        line: Line,
        outbox: Outbox,
        stats: Arc<Stats>,
        ahead: Arc<Ahead>,
        expire_after: Duration,
    ) -> Result<Staging, zeroxide::Error> {
        let (mut staging, mut worker) =
            Staging::new(stage, line, outbox, stats, ahead, expire_after);
        staging.thread = Some(spawn("collector-stage", move || worker.run())?);
        Ok(staging)
    }

    /// The same without a thread, which runs the worker.
    pub fn new(
        stage: Stage,
        line: Line,
        outbox: Outbox,
        stats: Arc<Stats>,
        ahead: Arc<Ahead>,
        expire_after: Duration,
    ) -> (Staging, Worker) {
        let (sender, jobs) = mpsc::channel();
        let taken = Arc::new(Count::default());
        let staging = Staging {
            jobs: Some(sender),
            waiting: Arc::default(),
            taken: taken.clone(),
            thread: None,
        };
        let worker = Worker {
            stage,
            jobs,
            line,
            outbox,
            stats,
            ahead,
            expire_after,
            taken,
            follows: false,
        };
        (staging, worker)
    }

    /// Queues a job, unless too much is waiting already. A report that a batch was published is dropped then. Its staged
    /// rows are discarded with the next batch of its query, or when they expire.
    pub fn push(&self, job: Job) -> Result<(), (Asked, Refusal)> {
        let waiting = self.waiting.get() - self.taken.get();
        if waiting > WAITING && !matches!(job, Job::Reopened) {
            let Some(asked) = job.asked() else {
                return Ok(());
            };
            let text = format!(
                "{waiting} bytes of requests wait for the thread that stages rows already: try again when some were \
                 handled"
            );
            return Err((asked.clone(), Refusal::new(Code::TooMany, 0, text)));
        }
        self.waiting.add(job.cost());
        if let Some(jobs) = &self.jobs {
            // If the receiver is gone, the collector is about to end.
            let _ = jobs.send(job);
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been printed and affects nothing else.
            let _ = thread.join();
        }
    }
}

/// The work of the thread.
pub(super) struct Worker {
    stage: Stage,
    jobs: Receiver<Job>,
    line: Line,
    outbox: Outbox,
    stats: Arc<Stats>,
    ahead: Arc<Ahead>,
    expire_after: Duration,
    /// The bytes of the jobs that were taken.
    taken: Arc<Count>,
    /// Whether the log was opened again, and the staged rows have not followed it yet.
    follows: bool,
}

impl Worker {
    fn run(&mut self) {
        let mut expire_at = Instant::now();
        loop {
            let now = Instant::now();
            if now >= expire_at {
                let expired = self.stage.expire(now, self.expire_after);
                self.stats.staged_expired.add(expired as u64);
                expire_at = now + EXPIRE_EVERY;
            }
            let (bytes, batches) = self.stage.size();
            self.stats.staged_bytes.set(bytes);
            self.stats.staged_batches.set(batches as u64);
            match self.jobs.recv_timeout(expire_at - now) {
                Ok(job) => self.work(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    /// Does the next jobs, if there are any.
    #[cfg(zeroxide_disk)]
    pub fn step(&mut self) {
        if let Ok(job) = self.jobs.try_recv() {
            self.work(job);
        }
    }

    /// Does this job. If it stages a part, also stages the parts of the following jobs, with one sync for all of them.
    fn work(&mut self, job: Job) {
        let mut next = Some(job);
        let mut written: Vec<(Asked, BatchOf)> = Vec::new();
        while let Some(job) = next.take() {
            self.taken.add(job.cost());
            if self.follows {
                // These parts are in the folder that the stage has now.
                self.settle(&mut written);
                self.follow();
            }
            match job {
                Job::Stage {
                    asked,
                    of,
                    key,
                    rows,
                } => {
                    match self.write(&of, key, rows) {
                        Ok(()) => written.push((asked, of)),
                        Err(refusal) => self.outbox.refuse(&asked, refusal),
                    }
                    if written.len() < TOGETHER {
                        next = self.jobs.try_recv().ok();
                    }
                }
                other => {
                    self.settle(&mut written);
                    self.work_alone(other);
                }
            }
        }
        self.settle(&mut written);
    }

    /// If this fails, parts are refused with the state of the folder as the reason, and the next job tries again.
    fn follow(&mut self) {
        if let Ok(lost) = self.stage.follow() {
            self.follows = false;
            self.stats.staged_lost.add(lost);
        }
    }

    fn write(&mut self, of: &BatchOf, key: (Attempt, u32), rows: Bytes) -> Result<(), Refusal> {
        // Rows that cannot be published must not be staged.
        match Batch::decode(rows.clone()) {
            Ok(batch) => self.ahead.check(&batch)?,
            Err(error) => {
                self.stats.malformed.add(1);
                return Err(Refusal::new(Code::Malformed, 0, error.to_string()));
            }
        }
        self.stage.write(of, key, &rows, Instant::now())
    }

    fn settle(&mut self, written: &mut Vec<(Asked, BatchOf)>) {
        for (asked, of) in written.drain(..) {
            match self.stage.sync(&of) {
                Ok(()) => {
                    self.stats.staged_parts.add(1);
                    self.outbox.say(&asked, Reply::Staged);
                }
                Err(refusal) => self.outbox.refuse(&asked, refusal),
            }
        }
    }

    fn work_alone(&mut self, job: Job) {
        match job {
            Job::Stage { .. } => {}
            Job::Publish { asked, of, won } => match self.stage.find(&of, &won) {
                Ok(parts) => self.line.tell(Event::Publish {
                    asked,
                    of,
                    attempts: won.iter().map(|won| won.attempt).collect(),
                    parts,
                }),
                Err(refusal) => self.outbox.refuse(&asked, refusal),
            },
            Job::Abort {
                asked,
                of,
                attempts,
            } => {
                self.stage.abort(&of, &attempts);
                // Earlier results are already in the line; the serving thread knows their state.
                self.line.tell(Event::Abort {
                    asked,
                    of,
                    attempts,
                });
            }
            Job::Published(of) => self.stage.on_published(&of),
            Job::Reopened => {
                self.follows = true;
                self.follow();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue whose jobs no thread takes.
    fn never_taking() -> (Staging, mpsc::Receiver<Job>) {
        let (jobs, never_taken) = mpsc::channel();
        let staging = Staging {
            jobs: Some(jobs),
            waiting: Arc::default(),
            taken: Arc::default(),
            thread: None,
        };
        (staging, never_taken)
    }

    #[test]
    fn waiting_jobs_are_bounded() {
        let (staging, never_taken) = never_taking();
        // Untouched zero pages take no memory.
        let rows = Bytes::from(vec![0; WAITING as usize + 1]);
        let push = |rows: &Bytes| {
            let asked = Asked {
                route: Bytes::new(),
                id: 1,
                key: None,
            };
            let of = BatchOf {
                query: "q".to_owned(),
                batch: 0,
            };
            let attempt = Attempt {
                partition: 0,
                attempt: 0,
            };
            let rows = rows.clone();
            let key = (attempt, 0);
            staging.push(Job::Stage {
                asked,
                of,
                key,
                rows,
            })
        };
        push(&rows).unwrap();
        let (_, refusal) = push(&Bytes::from_static(b"x")).unwrap_err();
        assert_eq!(refusal.code, Code::TooMany);
        assert_eq!(never_taken.try_iter().count(), 1);
        staging.taken.add((JOB + rows.len()) as u64);
        push(&rows).unwrap();
    }

    #[test]
    fn waiting_jobs_without_rows_are_bounded_too() {
        let (staging, _never_taken) = never_taking();
        let asked = Asked {
            route: Bytes::new(),
            id: 1,
            key: None,
        };
        let of = BatchOf {
            query: "q".to_owned(),
            batch: 0,
        };
        let attempt = Attempt {
            partition: 0,
            attempt: 0,
        };
        let publish = |count| Job::Publish {
            asked: asked.clone(),
            of: of.clone(),
            won: vec![Won { attempt, parts: 1 }; count],
        };
        let abort = |count| Job::Abort {
            asked: asked.clone(),
            of: of.clone(),
            attempts: vec![attempt; count],
        };
        assert!(publish(1000).cost() >= 16_000 && abort(1000).cost() >= 12_000);
        let waiting = || staging.waiting.get();
        for job in [publish(0), abort(0), Job::Published(of.clone())] {
            let before = waiting();
            staging.push(job).unwrap();
            assert_eq!(waiting() - before, JOB as u64);
        }
        staging.waiting.set(WAITING + 1);
        for job in [publish(1), abort(1)] {
            let (_, refusal) = staging.push(job).unwrap_err();
            assert_eq!(refusal.code, Code::TooMany);
        }
        staging.push(Job::Published(of.clone())).unwrap();
        assert_eq!(waiting(), WAITING + 1);
    }
}
