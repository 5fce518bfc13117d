//! Staged parts after a killed process and a loss of power, on simulated disks. Each seed leaves something else.

use std::path::Path;
use std::time::Instant;

use zeroxide_log::disk::simulated::{self, Act, Stop};

use super::*;

const MACHINE: &str = "machine";

fn open() -> Stage {
    Stage::open(Path::new("/machine/log"), 1 << 20).unwrap()
}

fn begin(seed: u64) -> Stage {
    simulated::begin(seed, false);
    simulated::enter(MACHINE);
    simulated::restart(MACHINE);
    open()
}

fn stop(stage: Stage, stop: Stop) -> Stage {
    simulated::stop(MACHINE, stop);
    drop(stage);
    simulated::restart(MACHINE);
    open()
}

fn of() -> BatchOf {
    BatchOf {
        query: "q".to_owned(),
        batch: 1,
    }
}

fn write(stage: &mut Stage, partition: u32) {
    let key = (
        Attempt {
            partition,
            attempt: 1,
        },
        0,
    );
    stage.write(&of(), key, b"rows", Instant::now()).unwrap();
}

fn has(stage: &Stage, partition: u32) -> bool {
    let attempt = Attempt {
        partition,
        attempt: 1,
    };
    stage.find(&of(), &[Won { attempt, parts: 1 }]).is_ok()
}

/// A process is killed with a part that it has not synced, and the next one stages another part.
fn continues_after(fails: bool) {
    for seed in 0..100 {
        let mut stage = begin(seed);
        write(&mut stage, 0);
        if fails {
            simulated::fail_at(MACHINE, Act::Sync, 0);
            assert!(stage.sync(&of()).is_err());
        }
        let mut stage = stop(stage, Stop::Kill);
        let is_found = has(&stage, 0);
        write(&mut stage, 1);
        stage.sync(&of()).unwrap();
        let stage = stop(stage, Stop::Power);
        assert!(has(&stage, 1), "seed {seed}");
        assert_eq!(has(&stage, 0), is_found, "seed {seed}");
    }
}

#[test]
fn the_name_of_a_file_that_was_found_survives_a_loss_of_power() {
    continues_after(false);
}

#[test]
fn data_whose_sync_has_failed_is_written_again() {
    continues_after(true);
}

#[test]
fn parts_that_are_staged_after_a_failed_sync_survive_a_loss_of_power() {
    for seed in 0..100 {
        let mut stage = begin(seed);
        let is_first = seed % 2 == 0;
        if !is_first {
            write(&mut stage, 0);
            stage.sync(&of()).unwrap();
        }
        write(&mut stage, 1);
        simulated::fail_at(MACHINE, Act::Sync, 0);
        assert!(stage.sync(&of()).is_err());
        write(&mut stage, 2);
        stage.sync(&of()).unwrap();
        let stage = stop(stage, Stop::Power);
        assert!(has(&stage, 2), "seed {seed}");
        assert_eq!(has(&stage, 0), !is_first, "seed {seed}");
        assert!(stage.notes.is_empty(), "seed {seed}: {:?}", stage.notes);
    }
}

#[test]
fn the_newer_of_two_files_of_a_batch_counts() {
    let mut stage = begin(0);
    write(&mut stage, 0);
    stage.sync(&of()).unwrap();
    // The batch is discarded, its file cannot be removed, and the batch is staged anew.
    simulated::fail_at(MACHINE, Act::Name, 0);
    stage.abort(&of(), &[]);
    write(&mut stage, 1);
    stage.sync(&of()).unwrap();
    let stage = stop(stage, Stop::Kill);
    assert!(has(&stage, 1) && !has(&stage, 0));
    let files = disk::read_dir(Path::new("/machine/log/staged")).unwrap();
    assert_eq!(files.count(), 1);
}

#[test]
fn a_file_that_fails_to_be_read_once_is_read_again() {
    let mut stage = begin(0);
    write(&mut stage, 0);
    stage.sync(&of()).unwrap();
    simulated::stop(MACHINE, Stop::Kill);
    drop(stage);
    let mut started = 0;
    for after in 0..8 {
        simulated::restart(MACHINE);
        simulated::fail_at(MACHINE, Act::Read, after);
        // It ends the start if it is one of the folder, or comes after the parts were found.
        if let Ok(stage) = Stage::open(Path::new("/machine/log"), 1 << 20) {
            assert!(has(&stage, 0) && stage.notes.is_empty(), "{after}");
            started += 1;
        }
        simulated::stop(MACHINE, Stop::Kill);
    }
    assert!(started >= 4, "{started}");
}
