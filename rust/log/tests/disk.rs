//! Logs after a loss of power or a failed operation, on simulated disks. Each seed leaves something else.
#![cfg(zeroxide_disk)]

use std::path::Path;

use zeroxide_log::disk::simulated::{self, Act, Stop};
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, Origin, Prepared, Row};

const MACHINE: &str = "machine";
const DIR: &str = "/machine/a/b/log";
const SEEDS: u64 = 100;

fn open() -> Log {
    open_with(1)
}

fn open_with(segment_bytes: u64) -> Log {
    let config = LogConfig {
        segment_bytes,
        ..LogConfig::default()
    };
    Log::open(Path::new(DIR), config).unwrap()
}

fn batch() -> Batch {
    let mut builder = BatchBuilder::new();
    builder.push(Row::default()).unwrap();
    builder.finish()
}

fn begin(seed: u64) {
    simulated::begin(seed, false);
    simulated::enter(MACHINE);
    simulated::restart(MACHINE);
}

/// Ends the process of a log, and starts another one.
fn stop(log: Log, stop: Stop) -> Log {
    simulated::stop(MACHINE, stop);
    drop(log);
    simulated::restart(MACHINE);
    open()
}

fn check_rows(log: &Log, rows: u64, seed: u64) {
    let recovery = log.recovery();
    assert!(recovery.damaged.is_empty(), "seed {seed}: {recovery:?}");
    assert_eq!(log.next(), rows, "seed {seed}");
    log.sync().unwrap();
    let mut at = 0;
    while at < rows {
        at = log.reader().fetch(at, rows, 1).unwrap()[0].end;
    }
}

#[test]
fn a_failed_close_is_not_repeated_by_the_drop() {
    begin(0);
    let mut log = open();
    log.append(&Origin::plain(1), &batch()).unwrap();
    log.commit_group("g", 1).unwrap();
    simulated::fail_at(MACHINE, Act::Name, 0);
    log.close().unwrap_err();
    let log = open();
    assert!(log.groups().is_empty(), "the caller knows it as not saved");
    check_rows(&log, 1, 0);
}

#[test]
fn a_close_writes_once() {
    begin(0);
    let mut log = open();
    log.append(&Origin::plain(1), &batch()).unwrap();
    log.sync().unwrap();
    let operations = |work: &mut dyn FnMut()| {
        let (before, _) = simulated::digest();
        work();
        simulated::digest().0 - before
    };
    log.commit_group("g", 1).unwrap();
    let saving = operations(&mut || log.save().unwrap());
    let mut log = Some(log);
    let closing = operations(&mut || log.take().unwrap().close().unwrap());
    assert_eq!(closing, saving);
}

#[test]
fn synced_rows_in_new_folders_survive_a_loss_of_power() {
    for seed in 0..SEEDS {
        begin(seed);
        let mut log = open();
        log.append(&Origin::plain(1), &batch()).unwrap();
        log.sync().unwrap();
        check_rows(&stop(log, Stop::Power), 1, seed);
    }
}

#[test]
fn a_header_whose_sync_has_failed_is_rewritten_by_the_next_process() {
    for has_rows in [false, true] {
        for seed in 0..SEEDS {
            begin(seed);
            let mut log = open();
            log.append(&Origin::plain(1), &batch()).unwrap();
            log.sync().unwrap();
            // The next segment is created and written, its sync fails, and it cannot be removed.
            simulated::fail_at(MACHINE, Act::Sync, 0);
            simulated::fail_at(MACHINE, Act::Name, 1);
            log.append(&Origin::plain(1), &batch()).unwrap_err();
            let mut log = stop(log, Stop::Kill);
            if has_rows {
                log.append(&Origin::plain(1), &batch()).unwrap();
                log = stop(log, Stop::Kill);
            }
            let rows = log.next();
            log.append(&Origin::plain(1), &batch()).unwrap();
            log.sync().unwrap();
            check_rows(&stop(log, Stop::Power), rows + 1, seed);
        }
    }
}

#[test]
fn rows_after_a_segment_that_could_not_be_begun_are_in_no_earlier_one() {
    for is_removed in [false, true] {
        for seed in 0..SEEDS {
            begin(seed);
            let mut log = open_with(1 << 20);
            log.append(&Origin::plain(1), &batch()).unwrap();
            simulated::fail_at(MACHINE, Act::Sync, 1);
            if !is_removed {
                simulated::fail_at(MACHINE, Act::Name, 1);
            }
            log.seal().unwrap_err();
            // There is room in the segment before it.
            log.append(&Origin::plain(1), &batch()).unwrap();
            log.sync().unwrap();
            for how in [Stop::Kill, Stop::Power] {
                log = stop(log, how);
                check_rows(&log, 2, seed);
            }
        }
    }
}

#[test]
fn a_transaction_that_a_process_has_found_survives_a_loss_of_power() {
    for after in 0..30 {
        for seed in 0..SEEDS {
            begin(seed);
            let mut log = open();
            log.append(&Origin::plain(1), &batch()).unwrap();
            log.sync().unwrap();
            let mut ready = Prepared::begin(Path::new(DIR), log.id(), "q", 1, 1).unwrap();
            ready.push(&batch()).unwrap();
            ready.sync().unwrap();
            simulated::stop_after(MACHINE, after, Stop::Kill);
            let _ = log.adopt(ready);
            let log = stop(log, Stop::Kill);
            let is_found = log.published("q").is_some();
            let log = stop(log, Stop::Power);
            assert_eq!(log.published("q").is_some(), is_found, "seed {seed}");
            check_rows(&log, 1 + u64::from(is_found), seed);
        }
    }
}
