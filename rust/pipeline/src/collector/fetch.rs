//! Replies to readers on threads of their own, so that reading from disk does not delay producers.
//!
//! Clients take turns, one request at a time, however many each has sent. If a client does not take its replies, its
//! next one is retried later, and no thread waits for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::{LogError, Reader};

use crate::collector::outbox::{Asked, Outbox};
use crate::collector::refusal::Refusal;
use crate::collector::stats::Stats;
use crate::collector::unread::{Room, Unread};
use crate::threads::spawn;
use crate::wire::{Code, FRAMES_MAX, Reply};

#[cfg(test)]
mod tests;

/// The maximum number of requests that are not answered, per client and in total.
const PER_CLIENT: usize = 16;
const ALL: usize = 4096;

const THREADS: usize = 2;

/// The pause before a client without room for a reply is tried again, and the time after which it is given up.
const PAUSE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(30);

/// A request for rows.
#[derive(Debug)]
pub(super) struct Job {
    pub asked: Asked,
    pub what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Fetch {
        start: u64,
        end: u64,
        max_bytes: usize,
        topics: Vec<String>,
        generation: u64,
    },
    OffsetAt {
        timestamp: i64,
    },
    Weigh {
        start: u64,
        bytes: u64,
    },
    Info {
        advertise: String,
    },
}

/// The threads.
#[derive(Debug)]
pub(super) struct Fetcher {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    outbox: Outbox,
    stats: Arc<Stats>,
    unread: Arc<Unread>,
    queue: Mutex<Queue>,
    arrived: Condvar,
    times: Mutex<Times>,
}

/// The times at which rows were received, by offset.
#[derive(Debug, Default)]
struct Times {
    first: Option<(u64, i64)>,
    last: Option<(u64, i64)>,
}

#[derive(Debug)]
struct Queue {
    /// The current reader, because the log may be reopened while this runs.
    reader: Reader,
    by_client: HashMap<Bytes, Client>,
    /// Clients with new requests, in the order of their turns.
    turns: VecDeque<Bytes>,
    /// Clients without room for a reply, and when to retry their first paused request.
    paused: VecDeque<(Instant, Bytes)>,
    /// Whether the last turn went to a paused request.
    was_paused: bool,
    waiting: usize,
    is_over: bool,
}

/// The requests of one client.
#[derive(Debug, Default)]
struct Client {
    new: VecDeque<Job>,
    /// Requests that found no room for a reply, and when to give them up.
    paused: VecDeque<(Instant, Job)>,
    /// Whether the first paused request is being tried again, or a time for that is set.
    is_retried: bool,
    /// All of them, with those that are being answered.
    count: usize,
}

/// A request that is being answered.
struct Turn {
    job: Job,
    /// When to give it up, if it was paused before.
    patience: Option<Instant>,
}

impl Fetcher {
    pub fn start(
        reader: Reader,
        outbox: Outbox,
        stats: Arc<Stats>,
        unread: Arc<Unread>,
    ) -> Result<Fetcher, zeroxide::Error> {
        let mut fetcher = Fetcher::new(reader, outbox, stats, unread);
        for _ in 0..THREADS {
            let shared = fetcher.shared.clone();
            fetcher
                .threads
                .push(spawn("collector-fetch", move || shared.run())?);
        }
        Ok(fetcher)
    }

    /// The same without threads.
    pub fn new(reader: Reader, outbox: Outbox, stats: Arc<Stats>, unread: Arc<Unread>) -> Fetcher {
        let queue = Queue {
            reader,
            by_client: HashMap::new(),
            turns: VecDeque::new(),
            paused: VecDeque::new(),
            was_paused: false,
            waiting: 0,
            is_over: false,
        };
        let shared = Arc::new(Shared {
            outbox,
            stats,
            unread,
            queue: Mutex::new(queue),
            arrived: Condvar::new(),
            times: Mutex::default(),
        });
        Fetcher {
            shared,
            threads: Vec::new(),
        }
    }

    /// Answers the next request, if there is one.
    #[cfg(zeroxide_disk)]
    pub fn step(&self) {
        let mut queue = self.shared.queue();
        if let Some(turn) = queue.take(Instant::now()) {
            let reader = queue.reader.clone();
            queue.finish(&turn);
            drop(queue);
            self.shared.answer(&reader, &turn.job);
        }
    }

    /// Replaces the reader after the log was reopened.
    pub fn read_from(&self, reader: Reader) {
        self.shared.queue().reader = reader;
    }

    /// Queues a request until it is its client's turn.
    pub fn push(&self, job: Job) -> Result<(), (Asked, Refusal)> {
        self.shared.queue().push(job)?;
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// How many more requests may wait.
    pub fn room(&self) -> usize {
        ALL.saturating_sub(self.waiting())
    }

    pub fn waiting(&self) -> usize {
        self.shared.queue().waiting
    }

    /// The replies that clients have not taken.
    pub fn unread(&self) -> &Unread {
        &self.shared.unread
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.shared.queue().is_over = true;
        self.shared.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // A panic in the thread has been printed and affects nothing else.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn push(&mut self, job: Job) -> Result<(), (Asked, Refusal)> {
        let own = self.by_client.get(&job.asked.route);
        let own = own.map_or(0, |client| client.count);
        if own >= PER_CLIENT || self.waiting >= ALL {
            let text = format!(
                "too many requests are waiting: {own} of this client, {} of all; ask again when some were answered",
                self.waiting
            );
            return Err((job.asked, Refusal::new(Code::TooMany, 0, text)));
        }
        self.waiting += 1;
        let route = job.asked.route.clone();
        let client = self.by_client.entry(route.clone()).or_default();
        client.count += 1;
        if client.new.is_empty() {
            self.turns.push_back(route);
        }
        client.new.push_back(job);
        Ok(())
    }

    /// Takes the next request.
    fn take(&mut self, now: Instant) -> Option<Turn> {
        // Alternate between paused and new requests, because with many paused ones, some are always due.
        let is_due = self.paused.front().is_some_and(|(due, _)| *due <= now);
        if is_due
            && (!self.was_paused || self.turns.is_empty())
            && let Some((_, client)) = self.paused.pop_front()
        {
            self.was_paused = true;
            let (patience, job) = self.by_client.get_mut(&client)?.paused.pop_front()?;
            return Some(Turn {
                job,
                patience: Some(patience),
            });
        }
        self.was_paused = false;
        let route = self.turns.pop_front()?;
        let client = self.by_client.get_mut(&route)?;
        let job = client.new.pop_front()?;
        if !client.new.is_empty() {
            self.turns.push_back(route);
        }
        Some(Turn {
            job,
            patience: None,
        })
    }

    /// Ends a request, which was answered or given up.
    fn finish(&mut self, turn: &Turn) {
        self.waiting -= 1;
        let route = &turn.job.asked.route;
        let Some(client) = self.by_client.get_mut(route) else {
            return;
        };
        client.count -= 1;
        if client.count == 0 {
            self.by_client.remove(route);
        } else if turn.patience.is_some() {
            // There was room, so there may be some for the next one.
            client.is_retried = !client.paused.is_empty();
            if client.is_retried {
                self.paused.push_front((Instant::now(), route.clone()));
            }
        }
    }

    /// Keeps a request that found no room for a reply, until a later try.
    fn pause(&mut self, turn: Turn, patience: Instant) {
        let route = turn.job.asked.route.clone();
        let Some(client) = self.by_client.get_mut(&route) else {
            return;
        };
        let was_first = turn.patience.is_some();
        match was_first {
            true => client.paused.push_front((patience, turn.job)),
            false => client.paused.push_back((patience, turn.job)),
        }
        if was_first || !client.is_retried {
            client.is_retried = true;
            self.paused.push_back((Instant::now() + PAUSE, route));
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // The queue is changed in single steps, so a panic in another thread leaves it consistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut queue = self.queue();
        while !queue.is_over {
            let now = Instant::now();
            let Some(turn) = queue.take(now) else {
                let due = queue
                    .paused
                    .front()
                    .map(|(due, ..)| due.saturating_duration_since(now));
                queue = match due {
                    None => self
                        .arrived
                        .wait(queue)
                        .unwrap_or_else(PoisonError::into_inner),
                    Some(due) => {
                        let woken = self.arrived.wait_timeout(queue, due);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                };
                continue;
            };
            let reader = queue.reader.clone();
            drop(queue);
            let is_done = self.answer(&reader, &turn.job);
            let patience = turn.patience.unwrap_or(now + PATIENCE);
            let is_over = !is_done && now >= patience;
            if is_over {
                let text = "the replies before it were not read in time: ask again when they were";
                let refusal = Refusal::new(Code::TooMany, 0, text);
                self.outbox.refuse(&turn.job.asked, refusal);
            }
            queue = self.queue();
            if is_done || is_over {
                queue.finish(&turn);
            } else {
                queue.pause(turn, patience);
            }
        }
    }

    /// Replies to a request. Returns false if there is no room: this client, or all of them together, have too much
    /// unread.
    fn answer(&self, reader: &Reader, job: &Job) -> bool {
        let client = &job.asked.route;
        // Check before reading anything. Replies of other kinds are small.
        let mut room = None;
        if let What::Fetch { max_bytes, .. } = &job.what {
            room = self.unread.reserve(client, *max_bytes);
            if room.is_none() {
                self.stats.fetch_waits.add(1);
                return false;
            }
        }
        let most = room.as_ref().map_or(0, Room::size);
        let answer = match &job.what {
            What::OffsetAt { timestamp } => reader
                .offset_at(*timestamp)
                .map(|offset| Reply::Offset { offset }),
            What::Weigh { start, bytes } => reader
                .offset_after(*start, *bytes)
                .map(|offset| Reply::Offset { offset }),
            What::Fetch {
                start,
                end,
                topics,
                generation,
                ..
            } => match reader.generations().check(*start, *generation) {
                Ok(()) => fetch(reader, *start, *end, most, topics),
                Err(others) => Ok(out_of_range(reader, *start, Some(others))),
            },
            What::Info { advertise } => self.info(reader, advertise),
        };
        match answer {
            Ok(mut reply) => {
                let (frames, bytes) = match &mut reply {
                    Reply::Fetched { frames, .. } => {
                        *frames = self.unread.lend(client, std::mem::take(frames));
                        (frames.len(), frames.iter().map(Bytes::len).sum::<usize>())
                    }
                    _ => (0, 0),
                };
                if !self.outbox.try_say(&job.asked, reply) {
                    self.stats.fetch_waits.add(1);
                    return false;
                }
                self.stats.fetches.add(1);
                self.stats.fetched_frames.add(frames as u64);
                self.stats.fetched_bytes.add(bytes as u64);
            }
            Err(error) => self.say_error(reader, job, &error),
        }
        true
    }

    fn info(&self, reader: &Reader, advertise: &str) -> Result<Reply, LogError> {
        let (earliest, durable) = reader.bounds();
        let times = match earliest < durable {
            false => None,
            true => {
                let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
                let first = receive_time(reader, &mut times.first, earliest)?;
                let last = receive_time(reader, &mut times.last, durable - 1)?;
                first.zip(last)
            }
        };
        Ok(Reply::Info {
            log_id: reader.id(),
            earliest,
            durable,
            times,
            bytes: reader.bytes(),
            advertise: advertise.to_owned(),
            generations: reader.generations(),
        })
    }

    fn say_error(&self, reader: &Reader, job: &Job, error: &LogError) {
        let refusal = match error {
            LogError::OutOfRange { asked, .. } => {
                let reply = out_of_range(reader, *asked, None);
                return self.outbox.say(&job.asked, reply);
            }
            LogError::Corrupt { end, .. } => Refusal::new(Code::Corrupt, *end, error.to_string()),
            _ => Refusal::new(Code::Failed, 0, error.to_string()),
        };
        self.stats.failures.add(1);
        self.outbox.refuse(&job.asked, refusal);
    }
}

fn out_of_range(reader: &Reader, asked: u64, others: Option<u64>) -> Reply {
    let (earliest, durable) = reader.bounds();
    Reply::OutOfRange {
        log_id: reader.id(),
        asked,
        earliest,
        durable,
        others,
    }
}

/// The time at which the row at an offset was received, cached if possible. None if it cannot be read any more.
fn receive_time(
    reader: &Reader,
    known: &mut Option<(u64, i64)>,
    offset: u64,
) -> Result<Option<i64>, LogError> {
    if let Some((_, time)) = known.filter(|(at, _)| *at == offset) {
        return Ok(Some(time));
    }
    let time = match reader.fetch(offset, offset + 1, 1) {
        Ok(stored) => stored.first().map(|stored| stored.origin.receive_time),
        // Reading the rows reports this error.
        Err(LogError::OutOfRange { .. } | LogError::Corrupt { .. }) => None,
        Err(error) => return Err(error),
    };
    *known = time.map(|time| (offset, time));
    Ok(time)
}

fn fetch(
    reader: &Reader,
    start: u64,
    end: u64,
    max_bytes: usize,
    topics: &[String],
) -> Result<Reply, LogError> {
    let (next, frames) = if topics.is_empty() {
        let mut packed = reader.frames(start, end, max_bytes)?;
        packed.truncate(FRAMES_MAX);
        let next = packed.last().map(|last| last.end);
        (
            next,
            packed.into_iter().map(|packed| packed.bytes).collect(),
        )
    } else {
        let mut stored = reader.fetch(start, end, max_bytes)?;
        stored.truncate(FRAMES_MAX);
        let prefixes: Vec<&str> = topics.iter().map(String::as_str).collect();
        let picked = stored.iter().map(|stored| stored.pick(&prefixes));
        let picked = picked.filter(|picked| picked.rows() > 0);
        let frames = picked.map(|picked| picked.bytes).collect();
        (stored.last().map(|last| last.end), frames)
    };
    let next = next.map_or(start, |next| next.min(end));
    let (earliest, durable) = reader.bounds();
    Ok(Reply::Fetched {
        log_id: reader.id(),
        earliest,
        durable,
        next,
        generation: reader.generations().before(next),
        frames,
    })
}
