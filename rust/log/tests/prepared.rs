//! Transactions that are written next to the log and adopted as a whole.

use std::path::Path;

use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, Origin, Prepared, Row};

fn batch(values: &[&str]) -> Batch {
    let mut builder = BatchBuilder::new();
    for value in values {
        let value = value.as_bytes();
        let row = Row {
            value,
            ..Row::default()
        };
        builder.push(row).unwrap();
    }
    builder.finish()
}

fn origin(producer: &str, first_seq: u64) -> Origin {
    Origin {
        producer: producer.into(),
        epoch: 1,
        first_seq,
        receive_time: 5,
    }
}

fn prepared(log: &Log, dir: &Path, batch_id: u64, parts: &[&[&str]]) -> Prepared {
    let mut prepared = Prepared::begin(dir, log.id(), "q", batch_id, 7).unwrap();
    for part in parts {
        prepared.push(&batch(part)).unwrap();
    }
    prepared.sync().unwrap();
    prepared
}

fn values(log: &Log) -> Vec<String> {
    let (mut all, mut at) = (Vec::new(), log.earliest());
    while at < log.durable() {
        for stored in log.reader().fetch(at, log.durable(), 1 << 20).unwrap() {
            assert_eq!(stored.first_offset, at);
            at = stored.end;
            let rows = 0..stored.rows();
            all.extend(
                rows.map(|row| String::from_utf8_lossy(stored.batch.value(row)).into_owned()),
            );
        }
    }
    all
}

fn leftovers(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap();
    entries
        .filter(|entry| {
            let path = entry.as_ref().unwrap().path();
            path.extension().is_some_and(|ending| ending == "preparing")
        })
        .count()
}

#[test]
fn rows_that_were_prepared_follow_those_that_came_in_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut log = Log::open(dir, LogConfig::default()).unwrap();
    log.append(&origin("p", 0), &batch(&["a"])).unwrap();
    let ready = prepared(&log, dir, 3, &[&["x", "y"], &[], &["z"]]);
    log.append(&origin("p", 1), &batch(&["b"])).unwrap();
    assert_eq!(log.durable(), 0);

    let publication = log.adopt(ready).unwrap();
    assert_eq!((publication.range, publication.already), (2..5, false));
    assert_eq!(log.durable(), 5, "those before are on disk as well");
    assert_eq!(values(&log), ["a", "b", "x", "y", "z"]);
    log.append(&origin("p", 2), &batch(&["c"])).unwrap();

    let again = log.adopt(prepared(&log, dir, 3, &[&["twice"]])).unwrap();
    assert_eq!((again.range, again.already), (2..5, true));
    let older = log.adopt(prepared(&log, dir, 2, &[&["older"]])).unwrap();
    assert_eq!((older.range, older.already), (0..0, true));
    let next = log.adopt(prepared(&log, dir, 4, &[&["n"]])).unwrap();
    assert_eq!(next.range, 6..7);
    assert_eq!(leftovers(dir), 0);
    log.close().unwrap();

    let log = Log::open(dir, LogConfig::default()).unwrap();
    assert_eq!(values(&log), ["a", "b", "x", "y", "z", "c", "n"]);
    let published = log.published("q").unwrap();
    assert_eq!((published.batch, published.next_seq), (4, 4));
    assert_eq!(log.last_seq("p"), Some((1, 2)));
    let stored = &log.reader().fetch(6, 7, 1).unwrap()[0];
    assert_eq!((stored.seq(0), stored.origin.epoch), (Some(3), 4));
    assert!(log.recovery().notes.is_empty() && log.recovery().damaged.is_empty());
}

#[test]
fn the_first_rows_of_a_log_may_be_prepared_ones() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut log = Log::open(dir, LogConfig::default()).unwrap();
    log.begin_epoch("p", 9, 1).unwrap();
    let range = log.adopt(prepared(&log, dir, 0, &[&["x"]])).unwrap().range;
    assert_eq!(range, 0..1);
    assert_eq!(log.epoch("p"), Some(9));
    drop(log);
    let mut log = Log::open(dir, LogConfig::default()).unwrap();
    assert_eq!(
        (values(&log), log.epoch("p")),
        (vec!["x".to_owned()], Some(9))
    );
    let range = log.append(&origin("p", 0), &batch(&["y"])).unwrap();
    assert_eq!(range, 1..2);
}

#[test]
fn a_crash_leaves_all_rows_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut log = Log::open(dir, LogConfig::default()).unwrap();
    log.append(&origin("p", 0), &batch(&["a"])).unwrap();
    log.sync().unwrap();
    let ready = prepared(&log, dir, 0, &[&["x"], &["y"]]);
    let image = |what: &str| {
        let image = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let mut name = entry.file_name().into_string().unwrap();
            // Another process uses another name for the files it prepares.
            if name.ends_with("preparing") {
                name = "another-0.preparing".to_owned();
            }
            std::fs::copy(entry.path(), image.path().join(name)).unwrap();
        }
        let log = Log::open(image.path(), LogConfig::default()).unwrap();
        assert!(log.recovery().damaged.is_empty(), "{what}");
        assert_eq!(leftovers(image.path()), 0, "{what}");
        (values(&log), log.published("q").is_some())
    };
    assert_eq!(image("before"), (vec!["a".to_owned()], false));
    log.adopt(ready).unwrap();
    let all = ["a", "x", "y"].map(str::to_owned).to_vec();
    assert_eq!(image("after"), (all, true));
}

#[test]
fn a_segment_that_is_not_adopted_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let log = Log::open(dir, LogConfig::default()).unwrap();
    let ready = prepared(&log, dir, 0, &[&["x"]]);
    assert_eq!(leftovers(dir), 1);
    drop(ready);
    assert_eq!(leftovers(dir), 0);
    assert_eq!(log.next(), 0);
}

#[test]
fn an_empty_transaction_is_one_too() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut log = Log::open(dir, LogConfig::default()).unwrap();
    let publication = log.adopt(prepared(&log, dir, 0, &[])).unwrap();
    assert_eq!((publication.range, publication.already), (0..0, false));
    assert!(log.adopt(prepared(&log, dir, 0, &[])).unwrap().already);
}
