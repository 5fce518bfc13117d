//! Single faults that the simulation has found, each played on purpose.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::disk::simulated::{self, Act, Stop};
use zeroxide_log::{Batch, LogConfig};

use super::model::{Name, batch_of};
use crate::collector::Config;
use crate::collector::simulated::{Answer, Appending, Served, Work};
use crate::link::Change;
use crate::producer::Notice;
use crate::producer::encoded;
use crate::producer::simulated::{Sending, Wire};
use crate::wire::{Attempt, Code, Reply, Request, Won};

mod clocks;

const COLLECTOR: &str = "collector";
const PRODUCER: &str = "producer";
const SEEDS: u64 = 30;

fn begin(seed: u64) -> Served {
    begin_with(seed, LogConfig::default())
}

fn begin_with(seed: u64, log: LogConfig) -> Served {
    let mut config = Config::new(PathBuf::from("/collector/log"));
    config.log = LogConfig {
        segment_bytes: 1500,
        ..log
    };
    begin_as(seed, config)
}

fn begin_as(seed: u64, config: Config) -> Served {
    simulated::begin(seed, false);
    simulated::enter(COLLECTOR);
    simulated::restart(COLLECTOR);
    Served::open(config).unwrap()
}

fn work(served: &mut Served, all: &[Work]) {
    simulated::enter(COLLECTOR);
    all.iter().for_each(|work| served.work(*work));
}

fn append(served: &mut Served, number: u64) -> Appending {
    let value = Name::row("local", number).value(0);
    let appending = served.append(vec![batch_of(&[value])]);
    work(served, &[Work::Serve]);
    appending
}

/// A write fails, and the log cannot be opened again, because the disk is full.
fn lose_the_log(served: &mut Served) {
    // Rows that are not on disk are cut off when the log is opened again, after the lock was written.
    append(served, 99);
    simulated::fail_at(COLLECTOR, Act::Write, 0);
    append(served, 100);
    simulated::fill_at(COLLECTOR, Act::Write, 2);
    work(served, &[Work::Retry]);
    let why = served.obstacle().unwrap();
    assert!(why.contains("os error 28"), "{why}");
}

/// A producer with its connection.
struct Program {
    sending: Sending,
    wire: Wire,
    route: Bytes,
    now: Instant,
}

impl Program {
    fn start(run: u64) -> Program {
        simulated::enter(PRODUCER);
        simulated::restart(PRODUCER);
        let (wire, now) = (Wire::default(), Instant::now());
        let dir = Path::new("/producer/spool");
        let sending = Sending::open("p", Some(dir), false, wire.clone(), now).unwrap();
        Program {
            sending,
            wire,
            route: format!("p/{run}").into(),
            now,
        }
    }

    fn push(&mut self, number: u64) {
        self.push_batch(&batch_of(&[Name::row("p", number).value(0)]));
    }

    fn push_batch(&mut self, batch: &Batch) {
        simulated::enter(PRODUCER);
        self.sending.push(batch);
        assert!(self.sending.keep(self.now));
    }

    fn connect(&mut self) {
        self.wire.ends().changes.push_back(Change::Up);
    }

    fn stop(self, stop: Stop) {
        simulated::stop(PRODUCER, stop);
    }

    /// Carries messages in both directions until nothing has happened for a while. Returns what the producer has learnt.
    fn converse(&mut self, served: &mut Served) -> Vec<Notice> {
        let mut notices = Vec::new();
        for _ in 0..20 {
            self.now += Duration::from_secs(5);
            simulated::enter(PRODUCER);
            notices.extend(self.sending.converse(self.now));
            let mut ends = self.wire.ends();
            if std::mem::take(&mut ends.is_reopened) {
                ends.changes.push_back(Change::Up);
            }
            let requests = std::mem::take(&mut ends.to_collector);
            drop(ends);
            simulated::enter(COLLECTOR);
            for request in requests {
                served.handle(&self.route, request);
            }
            work(served, &[Work::Serve, Work::Sync, Work::Serve]);
            for (route, id, reply) in served.replies() {
                if route == self.route {
                    self.wire.ends().to_producer.push_back(reply.encode(id));
                }
            }
        }
        notices
    }
}

#[test]
fn rows_in_the_place_of_rows_that_were_sent_and_lost_are_sent() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let mut served = begin(seed);
        let mut first = Program::start(1);
        first.connect();
        for number in 0..2 {
            first.push(number);
        }
        first.converse(&mut served);
        assert_eq!(served.reader().bounds().1, 2);
        first.stop(Stop::Power);
        let mut second = Program::start(2);
        if !second.sending.left.is_empty() {
            continue;
        }
        lost += 1;
        for number in 2..4 {
            second.push(number);
        }
        second.stop(Stop::Kill);
        let mut third = Program::start(3);
        assert_eq!(third.sending.left.len(), 2);
        third.connect();
        third.converse(&mut served);
        assert_eq!(third.sending.waiting(), 0);
        assert_eq!(served.reader().bounds().1, 4, "seed {seed}");
    }
    assert!(lost > 0);
}

#[test]
fn a_spool_that_could_not_create_a_file_continues_when_it_can() {
    let mut served = begin(1);
    let mut program = Program::start(1);
    simulated::exhaust_at(PRODUCER, Act::Name, 0);
    let batch = batch_of(&[Name::row("p", 0).value(0)]);
    program.sending.push(&batch);
    assert!(!program.sending.keep(program.now), "it waits in memory");
    assert!(program.sending.failure().is_none());
    program.now += Duration::from_secs(1);
    program.push(1);
    program.connect();
    let notices = program.converse(&mut served);
    let rows: Vec<_> = notices.iter().map(|notice| notice.first_seq).collect();
    assert_eq!(rows, [Some(0), Some(1)]);
}

#[test]
fn the_end_of_an_earlier_openings_sync_does_not_count() {
    let mut served = begin(0);
    // A sync begins, a write fails meanwhile, and the log is opened again before the sync has ended.
    append(&mut served, 0);
    simulated::fail_at(COLLECTOR, Act::Write, 0);
    append(&mut served, 1);
    assert!(served.obstacle().is_some());
    work(&mut served, &[Work::Retry]);
    assert_eq!(served.obstacle(), None);
    let later = append(&mut served, 2);
    work(&mut served, &[Work::Sync, Work::Serve]);
    assert_eq!(served.obstacle(), None);
    work(&mut served, &[Work::Sync, Work::Serve]);
    assert!(matches!(later.poll(), Answer::Appended(_)));
}

#[test]
fn requests_that_come_while_the_log_has_failed_hold_up_no_later_ones() {
    let mut served = begin(0);
    let hello = || Request::Hello {
        producer: "p".to_owned(),
        epoch: simulated::time(),
        next_seq: 0,
    };
    let route = Bytes::from_static(b"p");
    served.handle(&route, hello().encode(1));
    for number in 0..10 {
        append(&mut served, number);
    }
    simulated::fail_at(COLLECTOR, Act::Write, 0);
    append(&mut served, 10);
    work(&mut served, &[Work::Sync, Work::Serve]);
    // It says hello again, and the log knows its epoch.
    served.handle(&route, hello().encode(2));
    work(&mut served, &[Work::Retry]);
    assert_eq!(served.obstacle(), None);
    let later = append(&mut served, 11);
    for _ in 0..2 {
        work(&mut served, &[Work::Sync, Work::Serve]);
    }
    assert!(matches!(later.poll(), Answer::Appended(_)));
}

#[test]
fn a_log_that_could_not_be_opened_on_a_full_disk_is_opened_later() {
    let mut served = begin(0);
    lose_the_log(&mut served);
    work(&mut served, &[Work::Retry]);
    assert_eq!(served.obstacle(), None);
    let later = append(&mut served, 1);
    for _ in 0..2 {
        work(&mut served, &[Work::Sync, Work::Serve]);
    }
    assert!(matches!(later.poll(), Answer::Appended(_)));
}

#[test]
fn a_published_batch_does_not_count_as_missing_while_the_log_is_not_open() {
    let mut served = begin(0);
    let attempt = Attempt {
        partition: 0,
        attempt: 1,
    };
    let stage = Request::Stage {
        query: "q".to_owned(),
        batch: 1,
        attempt,
        part: 0,
        rows: encoded(&batch_of(&[Name::row("q", 1).value(0)])),
    };
    let publish = || Request::Publish {
        query: "q".to_owned(),
        batch: 1,
        won: vec![Won { attempt, parts: 1 }],
    };
    let route = Bytes::from_static(b"q");
    let ask = |served: &mut Served, request: Request| {
        simulated::enter(COLLECTOR);
        served.handle(&route, request.encode(1));
        for _ in 0..3 {
            work(
                served,
                &[
                    Work::Stage,
                    Work::Prepare,
                    Work::Serve,
                    Work::Sync,
                    Work::Serve,
                ],
            );
        }
        let (_, _, reply) = served.replies().pop().unwrap();
        reply
    };
    assert!(matches!(ask(&mut served, stage), Reply::Staged));
    assert!(matches!(
        ask(&mut served, publish()),
        Reply::Published { already: false, .. }
    ));
    lose_the_log(&mut served);
    let refused = ask(&mut served, publish());
    assert!(
        matches!(
            refused,
            Reply::Refused {
                code: Code::Full,
                ..
            }
        ),
        "{refused:?}"
    );
    work(&mut served, &[Work::Retry]);
    assert!(matches!(
        ask(&mut served, publish()),
        Reply::Published { already: true, .. }
    ));
}

#[test]
fn a_clock_that_jumps_ahead_deletes_no_rows() {
    let hour = Duration::from_secs(3600);
    let log = LogConfig {
        retention_time: Some(hour),
        ..LogConfig::default()
    };
    let mut served = begin_with(0, log);
    for number in 0..50 {
        append(&mut served, number);
        work(&mut served, &[Work::Sync, Work::Serve]);
    }
    let (_, durable) = served.reader().bounds();
    assert_eq!(durable, 50);
    simulated::pass(365 * 24 * 3_600_000_000);
    work(&mut served, &[Work::Save]);
    assert_eq!(served.reader().bounds(), (0, durable));
    // A row after the jump changes nothing.
    append(&mut served, 50);
    work(&mut served, &[Work::Sync, Work::Serve, Work::Save]);
    assert_eq!(served.reader().bounds(), (0, durable + 1));
}

/// The number under a name in the statistics.
fn stat(served: &mut Served, name: &str) -> u64 {
    served.handle(&Bytes::from_static(b"stats"), Request::Stats.encode(1));
    let replies = served.replies();
    let Some((.., Reply::Stats { json })) = replies.last() else {
        panic!("{replies:?}");
    };
    let json = std::str::from_utf8(json).unwrap();
    let (_, value) = json.split_once(&format!("\"{name}\":")).unwrap();
    let digits = value.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

#[test]
fn a_disk_that_does_not_answer_makes_a_bounded_number_of_requests_wait() {
    const MOST: u64 = 10;
    let mut config = Config::new(PathBuf::from("/collector/log"));
    config.max_waiting = MOST as usize;
    let mut served = begin_as(0, config);
    let route = Bytes::from_static(b"p");
    let hello = |producer: &str| Request::Hello {
        producer: producer.to_owned(),
        epoch: 1,
        next_seq: 0,
    };
    let row = |number| encoded(&batch_of(&[Name::row("p", number).value(0)]));
    let send = |served: &mut Served, number| {
        let append = Request::Append {
            producer: "p".to_owned(),
            epoch: 1,
            first_seq: number,
            batch: row(number),
        };
        served.handle(&route, append.encode(number + 10));
    };
    served.handle(&route, hello("p").encode(1));
    for _ in 0..2 {
        work(&mut served, &[Work::Serve, Work::Sync, Work::Serve]);
    }
    assert_eq!(stat(&mut served, "waiting_for_sync"), 0);
    served.replies();

    // Nothing is synced from here on. It ignores its credit.
    for number in 0..100 {
        send(&mut served, number);
    }
    let replies = served.replies();
    assert!(
        matches!(
            replies[..],
            [(
                ..,
                Reply::Status {
                    code: Code::TooMany,
                    last_seq: Some(9),
                    ..
                }
            )]
        ),
        "{replies:?}"
    );
    assert!(served.obstacle().unwrap().contains("wait for the disk"));
    let publish = Request::Publish {
        query: "q".to_owned(),
        batch: 1,
        won: Vec::new(),
    };
    for request in [hello("p"), hello("q"), publish] {
        for _ in 0..100 {
            served.handle(&route, request.clone().encode(2));
            work(&mut served, &[Work::Stage, Work::Serve]);
        }
        let replies = served.replies();
        assert_eq!(replies.len(), 100);
        let is_refused = |(.., reply): &(Bytes, u64, Reply)| {
            matches!(
                reply,
                Reply::Refused {
                    code: Code::TooMany,
                    ..
                }
            )
        };
        assert!(replies.iter().all(is_refused), "{replies:?}");
    }
    let local = append(&mut served, 0);
    assert!(matches!(local.poll(), Answer::Unknown));
    assert_eq!(stat(&mut served, "waiting_for_sync"), MOST);
    assert_eq!(stat(&mut served, "sync_crowds"), 1);
    assert_eq!(stat(&mut served, "turned_back"), 100 - MOST);

    // The disk answers. Every row that it has is acknowledged, and the producer learns where to continue.
    work(&mut served, &[Work::Sync, Work::Serve]);
    work(&mut served, &[Work::Sync, Work::Serve]);
    let replies = served.replies();
    let acks = replies
        .iter()
        .filter(|(.., reply)| matches!(reply, Reply::Ack { .. }));
    assert_eq!(acks.count() as u64, MOST, "{replies:?}");
    assert!(
        replies.iter().any(|(.., reply)| matches!(
            reply,
            Reply::Status {
                code: Code::Fine,
                last_seq: Some(9),
                credit,
                ..
            } if !credit.is_nothing()
        )),
        "{replies:?}"
    );
    assert_eq!(served.obstacle(), None);
    for number in 10..15 {
        send(&mut served, number);
    }
    work(&mut served, &[Work::Serve, Work::Sync, Work::Serve]);
    assert_eq!(served.reader().bounds().1, 15);
}
