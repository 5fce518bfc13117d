//! A window and a model collector, connected by a network that loses, repeats and delays messages, under random
//! programs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

mod names;
mod runs;
mod sending;
mod unsendable;

/// An arbitrary date, in microseconds since 1970.
const WALL: u64 = 1_800_000_000_000_000;

/// The epoch of an earlier run of the same producer.
const FORMER: u64 = WALL - 1;

/// The numbers left by an earlier run that had sent rows from the number `base` on.
fn left(base: i64) -> Option<Numbers> {
    Some(Numbers {
        base,
        since: 0,
        end: 0,
        last_epoch: None,
        epochs: Some(vec![FORMER]),
        log_id: Some([1; 16]),
    })
}

#[derive(Clone, Debug)]
enum Up {
    Hello {
        id: u64,
        epoch: u64,
        next_seq: u64,
    },
    Append {
        id: u64,
        epoch: u64,
        first_seq: u64,
        rows: Vec<u64>,
    },
}

#[derive(Clone, Debug)]
enum Down {
    Welcome {
        id: u64,
        last: Option<u64>,
    },
    Ack {
        seq: u64,
        offset: Option<u64>,
    },
    Refused {
        id: u64,
        code: Code,
        detail: u64,
    },
    Status {
        epoch: u64,
        last: Option<u64>,
        full: bool,
    },
}

/// A collector according to the documentation of the wire protocol, as simple as possible.
#[derive(Default)]
struct Collector {
    log_id: LogId,
    /// Rows with their sequence numbers; offsets are indices of this list.
    log: Vec<(u64, u64)>,
    durable: usize,
    known: Option<(u64, u64)>,
    /// The run that has sent HELLO to this process: its epoch and the next expected number.
    greeted: Option<(u64, u64)>,
    owed: VecDeque<(usize, u64, Down)>,
    full: bool,
}

const CREDIT: Credit = Credit {
    rows: 20,
    bytes: 100,
};

impl Collector {
    fn credit(&self) -> Credit {
        if self.full { Credit::default() } else { CREDIT }
    }

    fn last(&self) -> Option<u64> {
        self.known.map(|(_, seq)| seq)
    }

    fn hear(&mut self, connection: u64, up: Up) -> Vec<Down> {
        match up {
            Up::Hello {
                id,
                epoch,
                next_seq,
            } => {
                let newest = self.known.map_or(0, |(epoch, _)| epoch);
                let newest = newest.max(self.greeted.map_or(0, |(epoch, _)| epoch));
                if epoch < newest {
                    return vec![Down::Refused {
                        id,
                        code: Code::Fenced,
                        detail: newest,
                    }];
                }
                let expected = self.last().map_or(next_seq, |last| last + 1);
                self.greeted = Some((epoch, expected));
                vec![Down::Welcome {
                    id,
                    last: self.last(),
                }]
            }
            Up::Append {
                id,
                epoch,
                first_seq,
                rows,
            } => {
                let refuse = |code, detail| vec![Down::Refused { id, code, detail }];
                match self.greeted {
                    None => refuse(Code::HelloFirst, 0),
                    Some((newest, _)) if epoch < newest => refuse(Code::Fenced, newest),
                    Some((_, expected)) if first_seq > expected => refuse(Code::Gap, expected),
                    _ if self.full => Vec::new(),
                    Some((_, expected)) => {
                        let seq = first_seq + rows.len() as u64 - 1;
                        let offset = self.log.len() as u64;
                        for (at, row) in rows.iter().enumerate() {
                            if first_seq + at as u64 >= expected {
                                self.log.push((first_seq + at as u64, *row));
                            }
                        }
                        let fresh = self.log.len() as u64 > offset;
                        if fresh {
                            self.known = Some((epoch, seq));
                            self.greeted = Some((epoch, seq + 1));
                        }
                        let ack = Down::Ack {
                            seq,
                            offset: fresh.then_some(offset),
                        };
                        self.owed.push_back((self.log.len(), connection, ack));
                        Vec::new()
                    }
                }
            }
        }
    }

    fn sync(&mut self) -> Vec<(u64, Down)> {
        self.durable = self.log.len();
        let due = self.owed.drain(..);
        due.map(|(_, connection, ack)| (connection, ack)).collect()
    }

    /// kill -9: the process loses its state, and the disk keeps the synced rows and perhaps more.
    fn crash(&mut self, kept: usize) {
        self.log
            .truncate(self.durable.max(kept.min(self.log.len())));
        self.durable = self.log.len();
        let epoch = self.known.map_or(0, |(epoch, _)| epoch);
        self.known = self.log.last().map(|(seq, _)| (epoch, *seq));
        self.greeted = None;
        self.owed.clear();
        self.full = false;
    }
}

/// The window, the collector, and the messages in between. Rows are consecutive numbers.
struct World {
    window: Window<Vec<u64>>,
    collector: Collector,
    now: Instant,
    connection: u64,
    connected: bool,
    up: VecDeque<(u64, Up)>,
    down: VecDeque<(u64, Down)>,
    pushed: u64,
    delivered: u64,
    base: Option<u64>,
}

impl World {
    fn new() -> World {
        let now = Instant::now();
        World {
            window: Window::new(WALL, None, now),
            collector: Collector::default(),
            now,
            connection: 0,
            connected: false,
            up: VecDeque::new(),
            down: VecDeque::new(),
            pushed: 0,
            delivered: 0,
            base: None,
        }
    }

    fn push(&mut self, rows: u64) {
        let batch: Vec<u64> = (self.pushed..self.pushed + rows).collect();
        self.pushed += rows;
        let size = rows * 5;
        self.window.push(batch, rows, size);
        self.drain();
    }

    fn connect(&mut self) {
        self.connection += 1;
        self.connected = true;
        self.window.on_connected(self.now);
        self.drain();
    }

    /// Ends the connection. Requests in transit arrive later or never, replies never.
    fn disconnect(&mut self, arrives: usize) {
        self.connected = false;
        self.up.truncate(arrives);
        self.down.clear();
        self.window.on_disconnected(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        let mut is_stale = false;
        while let Some(event) = self.window.poll_event() {
            match event {
                Event::Numbered(numbers) => {
                    let base = u64::try_from(numbers.base).ok();
                    assert!(self.base.is_none() || self.base == base, "numbered once");
                    self.base = base;
                }
                event @ (Event::Foreign { .. } | Event::Lost { .. } | Event::Given { .. }) => {
                    panic!("{event:?}")
                }
                Event::Stale => is_stale = true,
                Event::Delivered {
                    first,
                    rows,
                    first_seq,
                    offset,
                    payload,
                    ..
                } => {
                    assert_eq!(first, self.delivered, "delivered in order, once");
                    self.delivered += rows;
                    for (at, row) in payload.iter().enumerate() {
                        let seq = first_seq + at as u64;
                        let durable = &self.collector.log[..self.collector.durable];
                        assert!(
                            durable.contains(&(seq, *row)),
                            "row {row} is on disk as {seq}"
                        );
                        if let Some(offset) = offset {
                            let there = self.collector.log[offset as usize + at];
                            assert_eq!(there, (seq, *row), "at the reported offset");
                        }
                    }
                }
            }
        }
        if is_stale {
            self.disconnect(usize::MAX);
        }
        while let Some(transmit) = self.window.poll_transmit(self.now) {
            assert!(
                self.connected,
                "nothing is sent where there is no connection"
            );
            let up = match transmit {
                Transmit::Hello {
                    id,
                    epoch,
                    next_seq,
                } => Up::Hello {
                    id,
                    epoch,
                    next_seq,
                },
                Transmit::Append {
                    id,
                    epoch,
                    first_seq,
                    payload,
                } => {
                    let flying = self.window.flying();
                    let credit = self.window.credit();
                    let is_alone = flying.rows == payload.len() as u64;
                    assert!(
                        is_alone || (flying.rows <= credit.rows && flying.bytes <= credit.bytes)
                    );
                    Up::Append {
                        id,
                        epoch,
                        first_seq,
                        rows: payload,
                    }
                }
            };
            self.up.push_back((self.connection, up));
        }
    }

    fn arrive_up(&mut self, twice: bool) {
        let Some((connection, up)) = self.up.pop_front() else {
            return;
        };
        for _ in 0..1 + usize::from(twice) {
            let replies = self.collector.hear(connection, up.clone());
            self.reply(replies.into_iter().map(|down| (connection, down)));
        }
    }

    fn reply(&mut self, replies: impl IntoIterator<Item = (u64, Down)>) {
        let (connected, connection) = (self.connected, self.connection);
        let replies = replies.into_iter();
        self.down
            .extend(replies.filter(|(to, _)| connected && *to == connection));
    }

    fn arrive_down(&mut self, twice: bool) {
        let Some((_, down)) = self.down.pop_front() else {
            return;
        };
        for _ in 0..1 + usize::from(twice) {
            let credit = self.collector.credit();
            match down.clone() {
                Down::Welcome { id, last } => {
                    let welcome = Welcome {
                        log_id: self.collector.log_id,
                        writers: last.map(|last| (WALL, last)).into_iter().collect(),
                        is_whole: true,
                        credit,
                        max_batch: 1 << 20,
                    };
                    self.window.on_welcome(id, welcome, self.now);
                }
                Down::Ack { seq, offset } => self.window.on_ack(seq, offset, credit, self.now),
                Down::Refused { id, code, detail } => {
                    self.window
                        .on_refused(id, code, detail, String::new(), WALL, self.now);
                }
                Down::Status { epoch, last, full } => {
                    let obstacle = full.then(|| (Code::Full, "full".to_owned()));
                    self.window
                        .on_status(epoch, last, credit, obstacle, self.now);
                }
            }
            self.drain();
        }
    }

    fn fill(&mut self, full: bool) {
        self.collector.full = full;
        let status = Down::Status {
            epoch: WALL,
            last: self.collector.last(),
            full,
        };
        if self.collector.greeted.is_some() {
            self.reply([(self.connection, status)]);
        }
    }

    fn sync(&mut self) {
        let acks = self.collector.sync();
        self.reply(acks);
    }

    fn sleep(&mut self, span: Duration) {
        self.now += span;
        self.window.handle_timeout(self.now);
        self.drain();
    }

    /// Runs without faults: everything arrives in a bounded number of steps.
    fn settle(&mut self) {
        self.fill(false);
        for _ in 0..10_000 {
            if self.window.unacknowledged() == 0 {
                break;
            }
            if !self.connected {
                self.connect();
            }
            while !self.up.is_empty() || !self.down.is_empty() {
                self.arrive_up(false);
                self.sync();
                self.arrive_down(false);
            }
            if let Some(due) = self.window.poll_timeout() {
                self.sleep(due.saturating_duration_since(self.now));
            }
        }
        assert_eq!(self.window.ending(), None);
        assert_eq!(self.delivered, self.pushed, "everything is acknowledged");
        let rows: Vec<u64> = self.collector.log.iter().map(|(_, row)| *row).collect();
        assert_eq!(rows, (0..self.pushed).collect::<Vec<_>>(), "once, in order");
        let base = self.base.unwrap_or_default();
        assert!(
            self.collector
                .log
                .iter()
                .all(|(seq, row)| *seq == base + row)
        );
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u64),
    Connect,
    Disconnect(usize),
    Up(bool),
    Down(bool),
    Drop(bool),
    Sync,
    Crash(usize),
    Full(bool),
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..9u64).prop_map(Step::Push),
        3 => Just(Step::Connect),
        1 => (0..4usize).prop_map(Step::Disconnect),
        9 => prop::bool::weighted(0.1).prop_map(Step::Up),
        9 => prop::bool::weighted(0.1).prop_map(Step::Down),
        1 => any::<bool>().prop_map(Step::Drop),
        4 => Just(Step::Sync),
        1 => (0..99usize).prop_map(Step::Crash),
        1 => any::<bool>().prop_map(Step::Full),
        2 => (1..3000u64).prop_map(Step::Sleep),
    ]
}

proptest! {
    #[test]
    fn every_row_arrives_once_and_in_order(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Push(rows) => world.push(rows),
                Step::Connect if !world.connected => world.connect(),
                Step::Connect => {}
                Step::Disconnect(arrives) => world.disconnect(arrives),
                Step::Up(twice) => world.arrive_up(twice),
                Step::Down(twice) => world.arrive_down(twice),
                Step::Drop(true) => drop(world.up.pop_front()),
                Step::Drop(false) => drop(world.down.pop_front()),
                Step::Sync => world.sync(),
                Step::Crash(kept) => {
                    world.collector.crash(kept);
                    world.disconnect(0);
                }
                Step::Full(full) => world.fill(full),
                Step::Sleep(millis) => world.sleep(Duration::from_millis(millis)),
            }
        }
        world.settle();
    }
}

fn open() -> World {
    let mut world = World::new();
    world.connect();
    world.arrive_up(false);
    world.arrive_down(false);
    assert!(world.window.is_open());
    world
}

fn welcome(last_seq: Option<u64>) -> Welcome {
    Welcome {
        log_id: [1; 16],
        writers: last_seq.map(|last| (FORMER, last)).into_iter().collect(),
        is_whole: true,
        credit: CREDIT,
        max_batch: 1 << 20,
    }
}
