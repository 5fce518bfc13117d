//! Syncs on a thread of its own, and keeps the operations that wait for a sync.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use zeroxide_log::{Syncer, Written};

use crate::collector::line::{Appended, Event, Line};
use crate::collector::outbox::Asked;
use crate::collector::stage::BatchOf;
use crate::threads::spawn;

/// A receiver to notify when rows are on disk.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A producer that sent a batch.
    Ack {
        producer: Arc<str>,
        asked: Asked,
        seq: u64,
        offset: Option<u64>,
    },
    /// A producer that waits for its welcome.
    Welcome { asked: Asked, producer: Arc<str> },
    /// A sink that published a batch.
    Published {
        asked: Asked,
        of: BatchOf,
        range: Range<u64>,
        already: bool,
    },
    /// A caller in this process.
    Local {
        answer: SyncSender<Appended>,
        range: Range<u64>,
    },
}

/// When to sync, and the operations that wait for it.
#[derive(Debug)]
pub(super) struct Commits {
    flush_after: Duration,
    flush_rows: u64,
    /// The number of receivers from which on producers and other clients have to wait.
    most: usize,
    /// Whether that number was reached, and more than half of it still wait.
    is_crowded: bool,
    /// How often it was reached.
    crowds: u64,
    /// Ordered by the data that must be on disk.
    waiting: VecDeque<(Written, Waiting)>,
    /// The number of receivers that are not waiting any more.
    told: u64,
    /// The last repetition of each producer that waits: what must be on disk, and its number among all receivers.
    repeated: HashMap<Arc<str>, (Written, u64)>,
    /// The time of the first append since the last sync began, and the rows appended since then.
    since: Option<Instant>,
    rows: u64,
    /// Whether the data written since then must be synced at once.
    is_urgent: bool,
    is_running: bool,
    requests: Option<SyncSender<Syncer>>,
    thread: Option<JoinHandle<()>>,
}

impl Commits {
    /// Starts the thread. Operations have to wait from `most` receivers on.
    pub fn start(
        line: Line,
        flush_after: Duration,
        flush_rows: u64,
        most: usize,
    ) -> Result<Commits, zeroxide::Error> {
        let (requests, syncers) = sync_channel(1);
        let thread = spawn("collector-sync", move || run(&syncers, &line))?;
        let mut commits = Commits::new(requests, flush_after, flush_rows, most);
        commits.thread = Some(thread);
        Ok(commits)
    }

    /// The same with another thread, which takes the requests to sync.
    pub fn new(
        requests: SyncSender<Syncer>,
        flush_after: Duration,
        flush_rows: u64,
        most: usize,
    ) -> Commits {
        Commits {
            flush_after,
            flush_rows,
            most,
            is_crowded: false,
            crowds: 0,
            waiting: VecDeque::new(),
            told: 0,
            repeated: HashMap::new(),
            since: None,
            rows: 0,
            is_urgent: false,
            is_running: false,
            requests: Some(requests),
            thread: None,
        }
    }

    /// Records that `rows` rows were just appended.
    pub fn on_appended(&mut self, rows: u64, now: Instant) {
        self.since.get_or_insert(now);
        self.rows += rows;
    }

    /// Requests an early sync, because other operations cannot begin before it. Data written during the current sync is
    /// synced together.
    pub fn hurry(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.is_urgent = true;
    }

    /// Registers a receiver to be notified when everything up to `end` is on disk.
    pub fn wait(&mut self, end: Written, who: Waiting) {
        debug_assert!(self.waiting.back().is_none_or(|(last, _)| *last <= end));
        self.waiting.push_back((end, who));
        if self.waiting.len() >= self.most && !self.is_crowded {
            self.is_crowded = true;
            self.crowds += 1;
        }
    }

    /// Whether nothing should be added, because too many receivers wait. The last ones that a slow sync has left would fill
    /// the room again at once, so this ends when half of it is free.
    pub fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// How often too many receivers waited.
    pub fn crowds(&self) -> u64 {
        self.crowds
    }

    /// The same for a batch that is in the log already. Repetitions take no room on disk, so a flood of them must not take
    /// any in memory: a producer gets one answer, because an ACK is also for the rows before it.
    pub fn wait_again(&mut self, end: Written, producer: &str, asked: Asked, seq: u64) {
        if let Some((_, number)) = self.repeated.get(producer).filter(|(same, _)| *same == end)
            && let Some(at) = number.checked_sub(self.told)
            && let Some((
                _,
                Waiting::Ack {
                    asked: last,
                    seq: greatest,
                    ..
                },
            )) = usize::try_from(at)
                .ok()
                .and_then(|at| self.waiting.get_mut(at))
        {
            *last = asked;
            *greatest = seq.max(*greatest);
            return;
        }
        let number = self.told + self.waiting.len() as u64;
        let producer: Arc<str> = producer.into();
        self.repeated.insert(producer.clone(), (end, number));
        let ack = Waiting::Ack {
            producer,
            asked,
            seq,
            offset: None,
        };
        self.wait(end, ack);
    }

    /// The time at which to call [`begin`](Self::begin).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let since = self.since.filter(|_| !self.is_running)?;
        Some(match self.is_urgent || self.rows >= self.flush_rows {
            true => since,
            false => since + self.flush_after,
        })
    }

    /// Begins a sync with `syncer` if one is due. The result arrives through the line.
    pub fn begin(&mut self, now: Instant, syncer: impl FnOnce() -> Syncer) -> bool {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return false;
        }
        self.since = None;
        self.rows = 0;
        self.is_urgent = false;
        if let Some(requests) = &self.requests {
            // The channel has room, because only one sync runs at a time.
            self.is_running = requests.send(syncer()).is_ok();
        }
        self.is_running
    }

    /// Records that a sync has ended.
    pub fn on_ended(&mut self) {
        self.is_running = false;
    }

    /// Returns a receiver whose data is on disk, given that everything up to `synced` is.
    pub fn poll_told(&mut self, synced: Written) -> Option<Waiting> {
        self.waiting.front().filter(|(end, _)| *end <= synced)?;
        let (_, who) = self.waiting.pop_front()?;
        // Under load there is always a receiver that waits, and names may be many.
        if let Waiting::Ack { producer, .. } = &who
            && let Entry::Occupied(last) = self.repeated.entry(producer.clone())
            && last.get().1 == self.told
        {
            last.remove();
        }
        self.told += 1;
        self.is_crowded &= self.waiting.len() > self.most / 2;
        Some(who)
    }

    /// Removes all receivers, because their data will not reach the disk.
    pub fn give_up(&mut self) -> impl Iterator<Item = Waiting> + use<> {
        self.since = None;
        self.rows = 0;
        self.is_urgent = false;
        self.is_crowded = false;
        self.repeated.clear();
        self.told += self.waiting.len() as u64;
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
            // A panic in the thread has been printed and affects nothing else.
            let _ = thread.join();
        }
    }
}

fn run(syncers: &Receiver<Syncer>, line: &Line) {
    for syncer in syncers {
        let start = Instant::now();
        let result = syncer.sync();
        let took = start.elapsed();
        line.tell(Event::Synced {
            syncer,
            result,
            took,
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn asked(id: u64) -> Asked {
        Asked {
            route: Bytes::from_static(b"r"),
            id,
            key: None,
        }
    }

    #[test]
    fn a_flood_of_repetitions_waits_for_one_answer_per_producer() {
        let (requests, _syncers) = sync_channel(1);
        let mut commits = Commits::new(requests, Duration::ZERO, 1, 100);
        let end = Written::default();
        let fresh = Waiting::Ack {
            producer: "p".into(),
            asked: asked(0),
            seq: 9,
            offset: Some(0),
        };
        commits.wait(end, fresh);
        for id in 1..=1000 {
            commits.wait_again(end, "p", asked(id), id % 7);
            commits.wait_again(end, "q", asked(id), 3);
        }
        assert_eq!(commits.waiting(), 3);
        let mut told = std::iter::from_fn(|| match commits.poll_told(end)? {
            Waiting::Ack {
                asked, seq, offset, ..
            } => Some((asked.id, seq, offset)),
            _ => None,
        });
        assert_eq!(told.next(), Some((0, 9, Some(0))));
        assert_eq!(
            told.next(),
            Some((1000, 6, None)),
            "of the last one, for all"
        );
        assert_eq!(told.next(), Some((1000, 3, None)));
        assert_eq!(told.next(), None);
        commits.wait_again(end, "p", asked(2000), 4);
        assert_eq!(commits.waiting(), 1, "after an answer, the next one waits");
    }

    #[test]
    fn repetitions_that_were_answered_are_forgotten_under_load() {
        let (requests, _syncers) = sync_channel(1);
        let mut commits = Commits::new(requests, Duration::ZERO, 1, 10_000);
        let end = Written::default();
        for count in 0..1000 {
            for name in [format!("p{count}"), "steady".to_owned()] {
                commits.wait_again(end, &name, asked(count), count);
            }
            // One receiver always waits.
            while commits.waiting() > 1 {
                commits.poll_told(end).unwrap();
            }
        }
        assert_eq!(commits.repeated.len(), 1);
        commits.poll_told(end).unwrap();
        assert!(commits.repeated.is_empty());
    }

    #[test]
    fn a_crowd_ends_when_half_of_it_is_gone() {
        let (requests, _syncers) = sync_channel(1);
        let mut commits = Commits::new(requests, Duration::ZERO, 1, 10);
        let end = Written::default();
        let wait = |commits: &mut Commits| {
            let welcome = Waiting::Welcome {
                asked: asked(0),
                producer: "p".into(),
            };
            commits.wait(end, welcome);
            commits.is_crowded()
        };
        let begins = (0..12).position(|_| wait(&mut commits));
        assert_eq!(begins, Some(9));
        wait(&mut commits);
        let tell = |commits: &mut Commits| {
            commits.poll_told(end);
            commits.is_crowded()
        };
        let ends = (0..11).position(|_| !tell(&mut commits));
        assert_eq!((ends, commits.waiting()), (Some(5), 5));
        assert!(!wait(&mut commits), "half of it is free");
        assert_eq!(commits.crowds(), 1);
        for _ in 0..10 {
            wait(&mut commits);
        }
        assert_eq!((commits.give_up().count(), commits.crowds()), (16, 2));
        assert!(!commits.is_crowded());
    }
}
