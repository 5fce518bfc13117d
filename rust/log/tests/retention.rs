//! Retention removes only what is certainly old or read by all, whatever happened to the files and to the clock.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, Origin, Row};

/// The time at which the first row was received, in microseconds, and the time for which rows are kept.
const START: i64 = 1_000_000_000;
const KEPT: i64 = 3_600_000_000;

fn batch() -> Batch {
    let mut builder = BatchBuilder::new();
    for _ in 0..10 {
        builder.push(Row::default()).unwrap();
    }
    builder.finish()
}

/// Segments of ten rows each.
fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 1,
        retention_time: Some(Duration::from_micros(KEPT.cast_unsigned())),
        ..LogConfig::default()
    }
}

fn open(folder: &Path, config: LogConfig) -> Log {
    Log::open(folder, config).unwrap()
}

fn written(config: LogConfig, times: &[i64]) -> (TempDir, Log) {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let mut log = open(folder.path(), config);
    for time in times {
        log.append(&Origin::plain(*time), &batch()).unwrap();
    }
    log.sync().unwrap();
    (folder, log)
}

/// Removes all frames from the first segment.
fn cut_first(folder: &Path) {
    let path = folder.join(format!("{:020}.zlog", 0));
    let bytes = fs::read(&path).unwrap();
    let start = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    fs::write(&path, &bytes[..start + 8]).unwrap();
}

#[test]
fn damage_does_not_make_a_segment_old() {
    for has_snapshot in [true, false] {
        let times = [START, START + 100, START + 200];
        let (folder, log) = written(config(), &times);
        log.close().unwrap();
        cut_first(folder.path());
        if !has_snapshot {
            fs::remove_file(folder.path().join("snapshot")).unwrap();
        }
        let mut log = open(folder.path(), config());
        log.reader().fetch(0, 1, 1).unwrap_err();
        log.retain(START + 300).unwrap();
        assert_eq!(log.earliest(), 0, "{has_snapshot}");
        // It goes when the rows after it are old, too: it does not hold back the others.
        log.retain(START + KEPT + 201).unwrap();
        assert_eq!(log.earliest(), log.next(), "{has_snapshot}");
    }
}

#[test]
fn a_clock_that_was_ahead_does_not_keep_rows_until_its_time_comes() {
    let (_folder, mut log) = written(
        config(),
        &[START, START + 90 * KEPT, START + 200, START + 300],
    );
    log.retain(START + KEPT + 150).unwrap();
    assert_eq!(log.earliest(), 10, "the next rows are not old");
    log.retain(START + KEPT + 250).unwrap();
    assert_eq!(log.earliest(), 30);
}

#[test]
fn rows_are_removed_by_positions_of_groups_that_are_on_disk() {
    let config = LogConfig {
        retention_groups: true,
        retention_time: None,
        ..config()
    };
    let (folder, mut log) = written(config.clone(), &[START; 10]);
    log.commit_group("g", 10).unwrap();
    log.save().unwrap();
    log.commit_group("g", 85).unwrap();
    log.retain(START).unwrap();
    assert_eq!(log.earliest(), 70);
    // As a process leaves its files that is killed now.
    let killed = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), killed.path().join(entry.file_name())).unwrap();
    }
    drop(log);
    let log = open(killed.path(), config);
    assert_eq!((log.earliest(), log.groups()["g"]), (70, 85));
}

#[test]
fn without_room_for_positions_of_groups_nothing_is_removed() {
    let config = LogConfig {
        retention_groups: true,
        retention_time: None,
        ..config()
    };
    let (folder, mut log) = written(config, &[START; 10]);
    log.commit_group("g", 85).unwrap();
    // A folder cannot be written like a file.
    let new = folder.path().join("snapshot.new");
    fs::create_dir(&new).unwrap();
    log.retain(START).unwrap();
    assert_eq!(log.earliest(), 0);
    fs::remove_dir(&new).unwrap();
    log.retain(START).unwrap();
    assert_eq!(log.earliest(), 70);
}
