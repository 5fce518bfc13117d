//! Machines whose clocks differ.

use zeroxide_log::{BatchBuilder, Row};

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
