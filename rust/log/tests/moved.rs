//! Folders that are moved or removed while their log is open.

use std::fs;
use std::path::Path;

use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Origin, Row};

/// Each batch fills a segment.
fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 1,
        ..LogConfig::default()
    }
}

fn batch(value: &[u8]) -> Batch {
    let mut builder = BatchBuilder::new();
    let row = Row {
        value,
        ..Row::default()
    };
    builder.push(row).unwrap();
    builder.finish()
}

/// Appends a row and syncs it.
fn put(log: &mut Log, value: &[u8]) -> Result<u64, LogError> {
    log.append(&Origin::plain(1), &batch(value))?;
    log.sync()
}

fn rows(log: &Log) -> Vec<Vec<u8>> {
    let found = log.reader().fetch(0, log.next(), usize::MAX).unwrap();
    let values = found
        .iter()
        .flat_map(|stored| (0..stored.rows()).map(|row| stored.batch.value(row).to_vec()));
    values.collect()
}

fn gone(result: Result<u64, LogError>, path: &Path, what: &str) {
    let error = result.unwrap_err();
    assert!(matches!(&error, LogError::Gone { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("{} {what}", path.display())),
        "{text}"
    );
}

#[test]
fn a_log_whose_folder_was_moved_leaves_that_of_another_log_alone() {
    let place = tempfile::tempdir().unwrap();
    let (path, moved) = (place.path().join("log"), place.path().join("log.old"));
    let mut first = Log::open(&path, config()).unwrap();
    for value in [b"A0", b"A1"] {
        put(&mut first, value).unwrap();
    }
    let reader = first.reader();
    fs::rename(&path, &moved).unwrap();
    let mut second = Log::open(&path, config()).unwrap();
    for value in [b"B0", b"B1", b"B2", b"B3"] {
        put(&mut second, value).unwrap();
    }

    gone(
        put(&mut first, b"A2"),
        &path,
        "was replaced by another folder",
    );
    gone(first.sync(), &path, "was replaced by another folder");
    let read = reader.fetch(0, 1, 1).map(|_| 0);
    gone(read, &path, "was replaced by another folder");
    first.commit_group("g", 1).unwrap();
    gone(first.save().map(|()| 0), &path, "was replaced");
    gone(first.trim(1).map(|_| 0), &path, "was replaced");
    let id = first.id();
    drop(first);

    second.close().unwrap();
    let again = Log::reopen(&path, config(), id, None).map(|log| log.next());
    gone(again, &path, "was replaced by that of another log");
    let second = Log::open(&path, config()).unwrap();
    assert_eq!(rows(&second), [b"B0", b"B1", b"B2", b"B3"]);
    let first = Log::reopen(&moved, config(), id, None).unwrap();
    assert_eq!(rows(&first)[..2], [b"A0", b"A1"]);
}

#[test]
fn a_log_whose_folder_was_moved_goes_on_when_it_is_back() {
    let place = tempfile::tempdir().unwrap();
    let (path, moved) = (place.path().join("log"), place.path().join("log.old"));
    let mut log = Log::open(&path, LogConfig::default()).unwrap();
    put(&mut log, b"0").unwrap();
    fs::rename(&path, &moved).unwrap();
    gone(put(&mut log, b"1"), &path, "was moved or removed");
    let id = log.id();
    drop(log);
    let again = Log::reopen(&path, config(), id, None).map(|log| log.next());
    gone(again, &path, "was moved or removed");
    assert!(!path.exists(), "no other log is created");
    fs::rename(&moved, &path).unwrap();
    let mut log = Log::reopen(&path, config(), id, None).unwrap();
    put(&mut log, b"2").unwrap();
    assert_eq!(rows(&log), [b"0", b"1", b"2"], "row 1 was written before");
}

#[test]
fn a_segment_that_another_program_created_is_not_replaced() {
    let place = tempfile::tempdir().unwrap();
    let mut log = Log::open(place.path(), config()).unwrap();
    put(&mut log, b"0").unwrap();
    let path = place.path().join(format!("{:020}.zlog", 1));
    fs::write(&path, b"not ours").unwrap();
    for _ in 0..2 {
        gone(put(&mut log, b"1"), &path, "was created by another program");
    }
    assert_eq!(fs::read(&path).unwrap(), b"not ours");
}

#[test]
fn rows_in_files_without_a_name_do_not_count_as_synced() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("log");
    for removes_folder in [true, false] {
        let mut log = Log::open(&path, LogConfig::default()).unwrap();
        put(&mut log, b"0").unwrap();
        let id = log.id();
        if removes_folder {
            fs::remove_dir_all(&path).unwrap();
            gone(put(&mut log, b"1"), &path, "was moved or removed");
        } else {
            for entry in fs::read_dir(&path).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
            let segment = path.join(format!("{:020}.zlog", 0));
            gone(put(&mut log, b"1"), &segment, "was removed");
        }
        assert_eq!(log.durable(), 1);
        drop(log);
        let what = if removes_folder {
            "was moved"
        } else {
            "was emptied"
        };
        let again = Log::reopen(&path, config(), id, None).map(|log| log.next());
        gone(again, &path, what);
    }
}
