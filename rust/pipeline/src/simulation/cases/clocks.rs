//! Times of rows, and machines whose clocks differ.

use zeroxide_log::{BatchBuilder, Row, disk};

use super::*;

const SECOND: u64 = 1_000_000;
const DAY: u64 = 24 * 3600 * SECOND;

/// A collector whose clock is this many microseconds behind, and a producer that is connected to it.
fn begin_behind(behind: u64, max_ahead: Duration) -> (Served, Program) {
    simulated::begin(0, false);
    simulated::set_behind(COLLECTOR, behind);
    simulated::enter(COLLECTOR);
    simulated::restart(COLLECTOR);
    let mut config = Config::new(PathBuf::from("/collector/log"));
    config.max_ahead = max_ahead;
    let served = Served::open(config).unwrap();
    let mut program = Program::start(1);
    program.connect();
    (served, program)
}

fn push(program: &mut Program, number: u64, time: Option<u64>) {
    let mut builder = BatchBuilder::new();
    let row = Row {
        value: &Name::row("p", number).value(0),
        timestamp: time.map(u64::cast_signed),
        ..Row::default()
    };
    builder.push(row).unwrap();
    program.push_batch(&builder.finish());
}

/// Lets them talk. Returns how many rows the producer has given up.
fn converse(program: &mut Program, served: &mut Served) -> u64 {
    let notices = program.converse(served);
    let lost = notices.iter().filter(|notice| notice.lost.is_some());
    lost.map(|notice| notice.rows).sum()
}

fn end(served: &Served) -> u64 {
    served.reader().bounds().1
}

#[test]
fn a_run_after_one_that_a_collector_gave_another_epoch_sends_no_row_again() {
    let (mut served, mut program) = begin_behind(5 * DAY, Duration::from_micros(DAY));
    push(&mut program, 0, None);
    program.converse(&mut served);
    program.stop(Stop::Kill);
    let mut program = Program::start(2);
    assert_eq!(program.sending.left.len(), 1, "its end was not noted");
    push(&mut program, 1, None);
    program.connect();
    program.converse(&mut served);
    assert_eq!((end(&served), program.sending.waiting()), (2, 0));
}

#[test]
fn rows_wait_for_a_collector_whose_clock_is_days_behind() {
    let (mut served, mut program) = begin_behind(5 * DAY, Duration::from_micros(DAY));
    let now = simulated::time();
    push(&mut program, 0, None);
    push(&mut program, 1, Some(now));
    // One of a year that no clock has is not given up either, because the limit is in doubt.
    push(&mut program, 2, Some(now * 1000));
    push(&mut program, 3, Some(now));
    assert_eq!(converse(&mut program, &mut served), 0);
    assert_eq!((end(&served), program.sending.waiting()), (1, 3));
    let why = program.sending.obstacle().unwrap();
    assert!(why.contains("max_ahead_hours"), "{why}");
    assert!(why.contains(&now.to_string()), "{why}");
    assert_eq!(program.sending.reports().len(), 1);
    // It survives the producer.
    program.stop(Stop::Kill);
    let mut program = Program::start(2);
    program.connect();
    assert_eq!(converse(&mut program, &mut served), 0);
    assert_eq!((end(&served), program.sending.waiting()), (1, 3));

    simulated::set_behind(COLLECTOR, 0);
    assert_eq!(converse(&mut program, &mut served), 1, "of the year");
    assert_eq!((end(&served), program.sending.waiting()), (3, 0));
    assert_eq!(program.sending.obstacle(), None);
}

#[test]
fn rows_of_a_clock_that_is_days_ahead_are_set_aside_when_it_is_set() {
    let days = 5 * DAY;
    let (mut served, mut program) = begin_behind(days, Duration::from_micros(DAY));
    let now = simulated::time();
    for (number, time) in [Some(now), None].into_iter().enumerate() {
        push(&mut program, number as u64, time);
    }
    assert_eq!(converse(&mut program, &mut served), 0);
    assert_eq!((end(&served), program.sending.waiting()), (0, 2));
    // The clock of the collector was right.
    simulated::set_behind(PRODUCER, days);
    assert_eq!(converse(&mut program, &mut served), 1);
    assert_eq!((end(&served), program.sending.waiting()), (1, 0));
}

#[test]
fn without_tolerance_rows_wait_for_a_clock_that_is_seconds_behind() {
    let (mut served, mut program) = begin_behind(5 * SECOND, Duration::ZERO);
    let now = simulated::time();
    push(&mut program, 0, Some(now));
    assert_eq!(converse(&mut program, &mut served), 0);
    assert_eq!((end(&served), program.sending.waiting()), (0, 1));
    simulated::pass(5 * SECOND);
    assert_eq!(converse(&mut program, &mut served), 0);
    assert_eq!((end(&served), program.sending.waiting()), (1, 0));
    // The clocks hardly differ, so the time is wrong.
    push(&mut program, 1, Some(now + DAY));
    assert_eq!(converse(&mut program, &mut served), 1);
}

#[test]
fn rows_that_cannot_be_set_aside_for_lack_of_descriptors_are_set_aside_later() {
    let (mut served, mut program) = begin_behind(0, Duration::from_micros(DAY));
    push(&mut program, 0, None);
    converse(&mut program, &mut served);
    let year = simulated::time() * 1000;
    push(&mut program, 1, Some(year));
    push(&mut program, 2, None);
    // The new numbers of later rows are written in between.
    for at in std::iter::once(0).chain(3..25) {
        simulated::exhaust_at(PRODUCER, Act::Name, at);
    }
    // The later row arrives meanwhile, but a count of acknowledged rows would include the one before it.
    assert!(program.converse(&mut served).is_empty());
    assert_eq!((end(&served), program.sending.waiting()), (2, 2));
    let notices = program.converse(&mut served);
    let [moved, later] = &notices[..] else {
        panic!("{notices:?}");
    };
    assert!(moved.lost.is_some() && moved.first_row == 1, "{moved:?}");
    assert!(later.lost.is_none() && later.first_row == 2, "{later:?}");
    assert!(program.sending.failure().is_none());
    assert_eq!((end(&served), program.sending.waiting()), (2, 0));
    simulated::enter(PRODUCER);
    let there = disk::read_dir(Path::new("/producer/spool/set-aside")).unwrap();
    assert_eq!(there.count(), 1);
}
