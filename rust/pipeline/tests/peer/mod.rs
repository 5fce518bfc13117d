//! A client that sends exactly the messages of a test, and rows for them.
#![allow(dead_code, reason = "each test program uses its part of it")]

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide::{Context, Message, Socket, SocketType, Value, Wait, ids};
use zeroxide_log::{Batch, BatchBuilder, Row, Stored};
use zeroxide_pipeline::collector::{Collector, Config};
use zeroxide_pipeline::wire::{Attempt, Code, Reply, Request, Won};

/// Longer than anything takes that works.
pub const LONG: Duration = Duration::from_secs(20);

/// A client of a collector.
pub struct Peer {
    pub socket: Socket,
    context: Context,
    next_id: u64,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.socket.close(Some(Some(Duration::ZERO)));
        self.context.term().unwrap();
    }
}

impl Peer {
    pub fn of(collector: &Collector) -> Peer {
        Peer::connect(collector.endpoint())
    }

    pub fn connect(endpoint: &str) -> Peer {
        let peer = Peer::unconnected();
        peer.socket.connect(endpoint).unwrap();
        peer
    }

    pub fn unconnected() -> Peer {
        let context = Context::new();
        let socket = context.socket(SocketType::Dealer).unwrap();
        socket
            .set_option(ids::RCVHWM, &Value::Int(1_000_000))
            .unwrap();
        Peer {
            socket,
            context,
            next_id: 1,
        }
    }

    /// Sends a request; gives its number.
    pub fn send(&mut self, request: Request) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send_raw(request.encode(id));
        id
    }

    pub fn send_raw(&self, message: Message) {
        self.socket
            .send(message, Wait::Until(Instant::now() + LONG))
            .unwrap();
    }

    pub fn recv(&self) -> (u64, Reply) {
        let message = self
            .socket
            .recv(Wait::Until(Instant::now() + LONG))
            .unwrap();
        Reply::decode(message).unwrap()
    }

    pub fn try_recv(&self, within: Duration) -> Option<(u64, Reply)> {
        let message = self
            .socket
            .recv(Wait::Until(Instant::now() + within))
            .ok()?;
        Some(Reply::decode(message).unwrap())
    }

    /// Asks, and gives the answer.
    pub fn ask(&mut self, request: Request) -> Reply {
        let id = self.send(request);
        let (answered, reply) = self.recv();
        assert_eq!(answered, id, "{reply:?}");
        reply
    }

    /// Makes a request that is refused.
    pub fn refused(&mut self, request: Request) -> (Code, u64) {
        match self.ask(request) {
            Reply::Refused { code, detail, text } => {
                assert!(!text.is_empty());
                (code, detail)
            }
            reply => panic!("not refused: {reply:?}"),
        }
    }

    pub fn hello(&mut self, producer: &str, epoch: u64) -> Option<(u64, u64)> {
        match self.ask(hello(producer, epoch)) {
            Reply::Welcome {
                writers, credit, ..
            } => {
                assert!(!credit.is_nothing());
                writers.last().copied()
            }
            reply => panic!("not welcome: {reply:?}"),
        }
    }

    /// Appends, and gives the sequence number and offset that are acknowledged.
    pub fn append(
        &mut self,
        producer: &str,
        epoch: u64,
        first_seq: u64,
        rows: &[&str],
    ) -> (u64, Option<u64>) {
        match self.ask(append(producer, epoch, first_seq, rows)) {
            Reply::Ack { seq, offset, .. } => (seq, offset),
            reply => panic!("not acknowledged: {reply:?}"),
        }
    }

    /// The first offset and the offset after the last.
    pub fn bounds(&mut self) -> (u64, u64) {
        match self.ask(Request::Info) {
            Reply::Info {
                earliest, durable, ..
            } => (earliest, durable),
            reply => panic!("{reply:?}"),
        }
    }

    /// All rows of a range: offset and value.
    pub fn fetch(&mut self, range: Range<u64>, topics: &[&str]) -> Vec<(u64, String)> {
        let mut rows = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let (next, stored) = self.fetch_some(start, range.end, 1 << 20, topics);
            for stored in stored {
                for row in stored.rows_within(&range) {
                    let value = String::from_utf8(stored.batch.value(row).to_vec()).unwrap();
                    rows.push((stored.offset(row), value));
                }
            }
            assert!(next > start, "nothing between {start} and {}", range.end);
            start = next;
        }
        rows
    }

    pub fn fetch_some(
        &mut self,
        start: u64,
        end: u64,
        max_bytes: u64,
        topics: &[&str],
    ) -> (u64, Vec<Stored>) {
        let topics = topics.iter().map(|topic| topic.to_string()).collect();
        match self.ask(Request::Fetch {
            start,
            end,
            max_bytes,
            topics,
            generation: 0,
        }) {
            Reply::Fetched { next, frames, .. } => (
                next,
                frames
                    .into_iter()
                    .map(|frame| Stored::parse(frame).unwrap())
                    .collect(),
            ),
            reply => panic!("{reply:?}"),
        }
    }

    pub fn values(&mut self) -> Vec<String> {
        let (earliest, durable) = self.bounds();
        self.fetch(earliest..durable, &[])
            .into_iter()
            .map(|(_, value)| value)
            .collect()
    }

    pub fn stats(&mut self) -> String {
        match self.ask(Request::Stats) {
            Reply::Stats { json } => String::from_utf8(json.to_vec()).unwrap(),
            reply => panic!("{reply:?}"),
        }
    }

    /// The number under that name in the counters.
    pub fn stat(&mut self, name: &str) -> u64 {
        number(&self.stats(), name)
    }

    /// Asks until a counter has a value.
    pub fn await_stat(&mut self, name: &str, is_enough: impl Fn(u64) -> bool) {
        let deadline = Instant::now() + LONG;
        while !is_enough(self.stat(name)) {
            assert!(Instant::now() < deadline, "{name}: {}", self.stats());
        }
    }

    /// Waits until something was appended, while nothing is acknowledged.
    pub fn await_stat_quietly(&mut self, name: &str) {
        let deadline = Instant::now() + LONG;
        loop {
            let id = self.send(Request::Stats);
            let (answered, reply) = self.recv();
            assert_eq!(answered, id);
            let Reply::Stats { json } = reply else {
                panic!("{reply:?}");
            };
            if number(str::from_utf8(&json).unwrap(), name) > 0 {
                return;
            }
            assert!(Instant::now() < deadline);
        }
    }
}

pub fn number(json: &str, name: &str) -> u64 {
    let (_, rest) = json
        .split_once(&format!("\"{name}\":"))
        .unwrap_or_else(|| panic!("{name} in {json}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

pub fn config(dir: &Path) -> Config {
    Config::new(dir)
}

/// A collector on a folder that vanishes with the test.
pub fn collector() -> (tempfile::TempDir, Collector) {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(config(dir.path())).unwrap();
    (dir, collector)
}

/// Acknowledges nothing before it has this many rows, or is closed.
pub fn syncing_late(flush_rows: u64) -> (tempfile::TempDir, Collector) {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        flush_after: Duration::from_secs(3600),
        flush_rows,
        ..config(dir.path())
    };
    let collector = Collector::start(config).unwrap();
    (dir, collector)
}

pub fn hello(producer: &str, epoch: u64) -> Request {
    Request::Hello {
        producer: producer.to_owned(),
        epoch,
        next_seq: 0,
    }
}

pub fn append(producer: &str, epoch: u64, first_seq: u64, rows: &[&str]) -> Request {
    Request::Append {
        producer: producer.to_owned(),
        epoch,
        first_seq,
        batch: encode(&batch(rows)),
    }
}

/// A batch of these values; `topic:value` has a topic.
pub fn batch(rows: &[&str]) -> Batch {
    let mut builder = BatchBuilder::new();
    for row in rows {
        let (topic, value) = match row.split_once(':') {
            Some((topic, value)) => (Some(topic), value),
            None => (None, *row),
        };
        let row = Row {
            value: value.as_bytes(),
            topic,
            ..Row::default()
        };
        builder.push(row).unwrap();
    }
    builder.finish()
}

pub fn encode(batch: &Batch) -> Bytes {
    let mut bytes = Vec::new();
    batch.encode(&mut bytes);
    bytes.into()
}

pub fn stage(
    query: &str,
    batch_id: u64,
    partition: u32,
    attempt: u64,
    part: u32,
    rows: &[&str],
) -> Request {
    Request::Stage {
        query: query.to_owned(),
        batch: batch_id,
        attempt: Attempt { partition, attempt },
        part,
        rows: encode(&batch(rows)),
    }
}

pub fn publish(query: &str, batch: u64, won: &[(u32, u64, u32)]) -> Request {
    let won = won.iter().map(|(partition, attempt, parts)| Won {
        attempt: Attempt {
            partition: *partition,
            attempt: *attempt,
        },
        parts: *parts,
    });
    Request::Publish {
        query: query.to_owned(),
        batch,
        won: won.collect(),
    }
}

/// Copies the folder in the state that a process which dies now would leave.
pub fn crash_image(dir: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => {
                    std::fs::create_dir(&target).unwrap();
                    copy(&entry.path(), &target);
                }
                false => drop(std::fs::copy(entry.path(), target).unwrap()),
            }
        }
    }
    let image = tempfile::tempdir().unwrap();
    copy(dir, image.path());
    image
}
