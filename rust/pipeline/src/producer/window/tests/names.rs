//! One name at several hosts, each with a spool. Whatever is killed, and whichever host wrote in between, each row is
//! in the log once. Every loss of an older copy of the log is reported.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use proptest::prelude::*;

use super::super::*;
use super::WALL;

/// A row: its host, and its index among that host's rows.
type Id = (usize, u64);

/// Rows with their epochs and sequence numbers, and the state of the process.
#[derive(Clone, Default)]
struct Log {
    rows: Vec<(u64, u64, Id)>,
    newest: u64,
    session: Option<(u64, u64)>,
}

impl Log {
    fn writers(&self) -> Vec<(u64, u64)> {
        let mut writers: Vec<(u64, u64)> = Vec::new();
        for (epoch, seq, _) in &self.rows {
            match writers.last_mut() {
                Some(last) if last.0 == *epoch => last.1 = *seq,
                _ => writers.push((*epoch, *seq)),
            }
        }
        writers
    }

    fn next(&self) -> u64 {
        self.rows.last().map_or(0, |(_, seq, _)| seq + 1)
    }

    fn hello(&mut self, epoch: u64, next_seq: u64) -> bool {
        if epoch < self.newest {
            return false;
        }
        self.newest = epoch;
        self.session = Some((epoch, self.next().max(next_seq)));
        true
    }

    /// Returns the acknowledged sequence number.
    fn append(&mut self, epoch: u64, first_seq: u64, ids: &[Id]) -> Option<u64> {
        let (welcome, expected) = self.session?;
        assert!(welcome == epoch && first_seq <= expected, "a gap");
        for (seq, id) in (first_seq..).zip(ids) {
            if seq >= expected {
                self.rows.push((epoch, seq, *id));
            }
        }
        let end = first_seq + ids.len() as u64;
        self.session = Some((epoch, expected.max(end)));
        Some(end - 1)
    }
}

/// The contents of a host's disk.
#[derive(Default)]
struct Spool {
    /// The batches' sizes and ends.
    batches: Vec<(u64, u64)>,
    acknowledged: u64,
    noted: u64,
    numbers: Option<Numbers>,
}

impl Spool {
    fn next(&self) -> u64 {
        self.batches.last().map_or(0, |(_, end)| *end)
    }
}

struct Run {
    host: usize,
    /// The row of the spool at which the window begins.
    start: u64,
    window: Window<Vec<Id>>,
    connected: bool,
}

struct World {
    log: Log,
    /// An earlier copy of the log.
    copy: Option<Log>,
    spools: Vec<Spool>,
    run: Option<Run>,
    clock: u64,
    now: Instant,
    delivered: BTreeMap<Id, u32>,
    lost: u64,
    /// Acknowledged rows that are missing in the restored copy.
    missing: u64,
}

impl World {
    fn new() -> World {
        World {
            log: Log::default(),
            copy: None,
            spools: (0..3).map(|_| Spool::default()).collect(),
            run: None,
            clock: WALL,
            now: Instant::now(),
            delivered: BTreeMap::new(),
            lost: 0,
            missing: 0,
        }
    }

    /// Starts a process of this host and ends the previous one.
    fn start(&mut self, host: usize) {
        self.run = None;
        self.clock += 1;
        let spool = &mut self.spools[host];
        let since = spool.numbers.as_ref().map_or(0, |numbers| numbers.since);
        let start = spool.noted.max(since.cast_unsigned());
        spool.acknowledged = start;
        let numbers = spool.numbers.clone().map(|numbers| Numbers {
            base: numbers.base + start.cast_signed(),
            since: numbers.since - start.cast_signed(),
            ..numbers
        });
        let mut window = Window::new(self.clock, numbers, self.now);
        for (rows, end) in &spool.batches {
            let first = (end - rows).max(start);
            if *end > first {
                window.push(
                    (first..*end).map(|row| (host, row)).collect(),
                    end - first,
                    1,
                );
            }
        }
        window.begin_fresh();
        self.run = Some(Run {
            host,
            start,
            window,
            connected: false,
        });
    }

    fn push(&mut self, rows: u64) {
        let Some(run) = &mut self.run else { return };
        let spool = &mut self.spools[run.host];
        let first = spool.next();
        spool.batches.push((rows, first + rows));
        let ids = (first..first + rows).map(|row| (run.host, row)).collect();
        run.window.push(ids, rows, 1);
    }

    /// Exchanges up to `most` messages. The last one arrives, but its answer may be lost.
    fn talk(&mut self, most: usize, is_answered: bool) {
        if let Some(run) = &mut self.run
            && !run.connected
        {
            run.connected = true;
            run.window.on_connected(self.now);
        }
        let mut sent = VecDeque::new();
        for left in (0..most).rev() {
            let Some(run) = &mut self.run else { return };
            while let Some(transmit) = run.window.poll_transmit(self.now) {
                sent.push_back(transmit);
            }
            let Some(transmit) = sent.pop_front() else {
                break;
            };
            let is_heard = is_answered || left > 0;
            match transmit {
                Transmit::Hello {
                    id,
                    epoch,
                    next_seq,
                } => {
                    if !self.log.hello(epoch, next_seq) {
                        self.run = None; // fenced; another run begins later
                        return;
                    }
                    if is_heard {
                        let welcome = Welcome {
                            log_id: [7; 16],
                            writers: self.log.writers(),
                            is_whole: true,
                            credit: Credit {
                                rows: 1000,
                                bytes: 1000,
                            },
                            max_batch: 100,
                        };
                        run.window.on_welcome(id, welcome, self.now);
                    }
                }
                Transmit::Append {
                    epoch,
                    first_seq,
                    payload,
                    ..
                } => {
                    let acked = self.log.append(epoch, first_seq, &payload);
                    let credit = run.window.credit();
                    if let Some(seq) = acked.filter(|_| is_heard) {
                        run.window.on_ack(seq, None, credit, self.now);
                    }
                }
            }
            self.obey();
        }
        if let Some(run) = &mut self.run {
            run.connected = false;
            run.window.on_disconnected(self.now);
        }
    }

    fn obey(&mut self) {
        let Some(run) = &mut self.run else { return };
        let spool = &mut self.spools[run.host];
        while let Some(event) = run.window.poll_event() {
            match event {
                Event::Numbered(numbers) => {
                    spool.numbers = Some(Numbers {
                        base: numbers.base - run.start.cast_signed(),
                        since: numbers.since + run.start.cast_signed(),
                        ..numbers
                    });
                }
                Event::Delivered { first, rows, .. } => {
                    spool.acknowledged = run.start + first + rows;
                    for row in first..first + rows {
                        *self
                            .delivered
                            .entry((run.host, run.start + row))
                            .or_default() += 1;
                    }
                }
                Event::Lost { rows, .. } => self.lost += rows,
                Event::Foreign { .. } => {}
                event @ (Event::Given { .. } | Event::Stale) => panic!("{event:?}"),
            }
        }
        assert_eq!(run.window.ending(), None);
    }

    fn note(&mut self) {
        if let Some(run) = &self.run {
            let spool = &mut self.spools[run.host];
            spool.noted = spool.acknowledged;
        }
    }

    /// Another process replaces the log with an older copy.
    fn put_back(&mut self) {
        if let Some(copy) = self.copy.take() {
            self.missing += (self.log.rows.len() - copy.rows.len()) as u64;
            self.log = copy;
            self.log.session = None;
            if let Some(run) = &mut self.run {
                run.connected = false;
                run.window.on_disconnected(self.now);
            }
        }
    }

    /// Gives each host a turn, without further faults.
    fn settle(&mut self) {
        for host in 0..self.spools.len() {
            self.start(host);
            self.talk(10_000, true);
            let run = self.run.as_ref().expect("not fenced");
            assert_eq!(run.window.unacknowledged(), 0);
        }
    }

    fn all(&self) -> Vec<Id> {
        let hosts = self.spools.iter().enumerate();
        hosts
            .flat_map(|(host, spool)| (0..spool.next()).map(move |row| (host, row)))
            .collect()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start(usize),
    Push(u64),
    Talk(usize, bool),
    Note,
    Kill,
    Restart,
    Copy,
    PutBack,
}

fn step(is_restored: bool) -> impl Strategy<Value = Step> {
    let restore = u32::from(is_restored);
    prop_oneof![
        3 => (0..3usize).prop_map(Step::Start),
        6 => (1..9u64).prop_map(Step::Push),
        6 => ((1..7usize), prop::bool::weighted(0.6)).prop_map(|(most, is)| Step::Talk(most, is)),
        1 => Just(Step::Note),
        1 => Just(Step::Kill),
        1 => Just(Step::Restart),
        2 * restore => Just(Step::Copy),
        restore => Just(Step::PutBack),
    ]
}

fn play(steps: Vec<Step>) -> World {
    let mut world = World::new();
    for step in steps {
        match step {
            Step::Start(host) => world.start(host),
            Step::Push(rows) => world.push(rows),
            Step::Talk(most, is_answered) => world.talk(most, is_answered),
            Step::Note => world.note(),
            Step::Kill => world.run = None,
            Step::Restart => world.log.session = None,
            Step::Copy => world.copy = Some(world.log.clone()),
            Step::PutBack => world.put_back(),
        }
        if world.log.session.is_none()
            && let Some(run) = &mut world.run
        {
            run.connected = false;
            run.window.on_disconnected(world.now);
        }
    }
    world.settle();
    world
}

/// Two other hosts write between the row's arrival and its loss, and the second writes as many rows as were lost.
#[test]
fn a_lost_row_is_reported_although_other_rows_have_its_number() {
    use Step::{Copy, Push, PutBack, Start, Talk};
    let world = play(vec![
        Copy,
        Start(0),
        Push(1),
        Talk(2, false),
        Start(1),
        Push(1),
        Talk(2, false),
        Start(0),
        Talk(1, true),
        PutBack,
        Start(2),
        Push(2),
        Talk(2, false),
    ]);
    assert!(world.delivered.contains_key(&(0, 0)));
    assert!(!world.log.rows.iter().any(|(_, _, id)| *id == (0, 0)));
    assert_eq!(world.lost, 2 + 1, "what host 0 knew of, and host 1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn each_row_of_each_host_is_in_the_log_once(steps in prop::collection::vec(step(false), 1..60)) {
        let world = play(steps);
        let mut rows: Vec<Id> = world.log.rows.iter().map(|(_, _, id)| *id).collect();
        for host in 0..3 {
            let own: Vec<u64> = rows.iter().filter(|id| id.0 == host).map(|id| id.1).collect();
            prop_assert!(own.is_sorted(), "in order");
        }
        rows.sort_unstable();
        prop_assert_eq!(&rows, &world.all(), "once");
        let seqs: Vec<u64> = world.log.rows.iter().map(|(_, seq, _)| *seq).collect();
        prop_assert_eq!(seqs, (0..rows.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(world.lost, 0);
        prop_assert!(world.all().iter().all(|id| world.delivered.contains_key(id)));
    }

    #[test]
    fn rows_lost_by_an_older_copy_of_the_log_are_reported(
        steps in prop::collection::vec(step(true), 1..60)
    ) {
        let world = play(steps);
        let mut rows: Vec<Id> = world.log.rows.iter().map(|(_, _, id)| *id).collect();
        rows.sort_unstable();
        let before = rows.len();
        rows.dedup();
        prop_assert_eq!(rows.len(), before, "none twice");
        let gone = world.all().len() - rows.len();
        prop_assert!(gone as u64 <= world.missing);
        prop_assert!(gone as u64 <= world.lost, "{} are gone, {} reported", gone, world.lost);
        prop_assert!(world.missing > 0 || world.lost == 0, "nothing was lost, {} reported", world.lost);
    }
}
