//! Rows that are appended can be fetched: offsets, origins, restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tempfile::TempDir;
use zeroxide_log::{
    Batch, BatchBuilder, Hold, Log, LogConfig, LogError, MAX_NAMES, ONLY_BATCH, Origin, Row,
};

fn batch(from: usize, rows: usize) -> Batch {
    let mut builder = BatchBuilder::new();
    for row in from..from + rows {
        let value = format!("value {row}");
        let key = (row % 3 == 0).then(|| format!("key {row}"));
        let topic = (row % 2 == 0).then(|| format!("topic/{}", row % 5));
        let headers = [("name", value.as_bytes()), ("other", b"".as_slice())];
        let frames = [b"first".as_slice(), value.as_bytes()];
        builder
            .push(Row {
                value: value.as_bytes(),
                key: key.as_deref().map(str::as_bytes),
                topic: topic.as_deref(),
                timestamp: (row % 4 == 0).then_some(row as i64 * 1000),
                headers: if row % 7 == 0 { &headers } else { &[] },
                frames: (row % 11 == 0).then_some(&frames),
            })
            .unwrap();
    }
    builder.finish()
}

fn origin(first_seq: u64) -> Origin {
    Origin {
        producer: "sensor".into(),
        epoch: 3,
        first_seq,
        receive_time: 1_000_000 + first_seq as i64,
    }
}

fn opened() -> (TempDir, Log) {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), LogConfig::default()).unwrap();
    (folder, log)
}

fn segments_of(bytes: u64) -> LogConfig {
    LogConfig {
        segment_bytes: bytes,
        ..LogConfig::default()
    }
}

/// For tests of many syncs.
fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

#[test]
fn rows_come_back_with_everything_they_had() {
    let (_folder, mut log) = opened();
    let rows = batch(0, 100);
    assert_eq!(log.append(&origin(7), &rows).unwrap(), 0..100);
    assert!(
        log.reader().fetch(0, 100, 1 << 20).unwrap().is_empty(),
        "nothing is on disk yet"
    );
    assert_eq!(log.syncer().sync().unwrap(), 100);
    let stored = log.reader().fetch(0, 100, 1 << 20).unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].batch, rows);
    assert_eq!(stored[0].origin, origin(7));
    assert_eq!(stored[0].seq(3), Some(10));
    let table = stored[0].to_record_batch(10..20, 2, true, true);
    assert_eq!(table.num_rows(), 10);
    assert_eq!(table.schema(), zeroxide_log::fetched_schema(true, true));
    let again = zeroxide_log::Stored::parse(stored[0].bytes.clone()).unwrap();
    assert_eq!(again.batch, rows);
}

#[test]
fn the_wire_form_comes_back() {
    for rows in [0, 1, 7, 8, 9, 1000] {
        let rows = batch(0, rows);
        let mut bytes = Vec::new();
        rows.encode(&mut bytes);
        assert_eq!(bytes.len(), rows.size());
        assert_eq!(Batch::decode(bytes.into()).unwrap(), rows);
        let part = rows.slice(rows.rows() / 3, rows.rows() / 2);
        let mut bytes = Vec::new();
        part.encode(&mut bytes);
        assert_eq!(Batch::decode(bytes.into()).unwrap(), part);
    }
}

#[test]
fn a_restart_continues_after_the_last_row() {
    let (folder, mut log) = opened();
    log.append(&origin(0), &batch(0, 10)).unwrap();
    assert!(matches!(
        Log::open(folder.path(), LogConfig::default()),
        Err(LogError::Locked { by, .. }) if by.contains(&std::process::id().to_string())
    ));
    let id = log.id();
    log.commit_group("spark", 5).unwrap();
    drop(log);
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    assert_eq!((log.id(), log.next(), log.durable()), (id, 10, 10));
    assert_eq!(log.last_seq("sensor"), Some((3, 9)));
    assert_eq!(log.groups()["spark"], 5);
    assert_eq!(log.append(&origin(10), &batch(10, 5)).unwrap(), 10..15);
    log.sync().unwrap();
    assert_eq!(log.reader().fetch(8, 12, 1 << 20).unwrap().len(), 2);
}

#[test]
fn a_transaction_is_published_once() {
    let (folder, mut log) = opened();
    let parts = [batch(0, 10), batch(10, 5)];
    let done = log.append_published("query", 4, 77, &parts).unwrap();
    assert_eq!((done.range, done.already), (0..15, false));
    let again = log.append_published("query", 4, 78, &parts).unwrap();
    assert_eq!((again.range, again.already), (0..15, true));
    drop(log);
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    assert_eq!(log.published("query").unwrap().batch, 4);
    assert!(
        log.append_published("query", 4, 78, &parts)
            .unwrap()
            .already
    );
    assert_eq!(
        log.append_published("query", 5, 78, &[]).unwrap().range,
        15..15
    );
    drop(log);
    let log = Log::open(folder.path(), LogConfig::default()).unwrap();
    assert_eq!(log.published("query").unwrap().batch, 5);
    assert_eq!(log.published("query").unwrap().next_seq, 15);
}

/// A log of many small segments, ten rows each.
fn many_segments(config: LogConfig) -> (TempDir, Log) {
    let folder = in_memory();
    let mut log = Log::open(
        folder.path(),
        LogConfig {
            segment_bytes: 1,
            ..config
        },
    )
    .unwrap();
    for at in 0..10 {
        log.append(&origin(at * 10), &batch(0, 10)).unwrap();
    }
    (folder, log)
}

#[test]
fn rows_that_groups_have_read_stay_unless_retention_is_by_groups() {
    let (_folder, mut log) = many_segments(LogConfig::default());
    log.commit_group("all", 100).unwrap();
    assert_eq!(log.retain(0).unwrap().segments, 0);
}

#[test]
fn retention_by_groups_keeps_one_segment_before_the_slowest() {
    let (_folder, mut log) = many_segments(LogConfig {
        retention_groups: true,
        ..LogConfig::default()
    });
    assert_eq!(
        log.retain(0).unwrap().segments,
        0,
        "no group has read anything"
    );
    log.commit_group("fast", 95).unwrap();
    log.commit_group("slow", 45).unwrap();
    let trimmed = log.retain(0).unwrap();
    assert_eq!(
        (trimmed.segments, trimmed.rows, log.earliest()),
        (3, 30, 30)
    );
    assert!(trimmed.bytes > 0);
    log.drop_group("slow");
    log.retain(0).unwrap();
    assert_eq!(log.earliest(), 80);
}

#[test]
fn removing_segments_stops_at_one_that_cannot_be_removed() {
    let (folder, mut log) = many_segments(LogConfig::default());
    // A folder cannot be removed like a file.
    let first = folder.path().join(format!("{:020}.zlog", 0));
    std::fs::remove_file(&first).unwrap();
    std::fs::create_dir(&first).unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let before = files();
    for _ in 0..2 {
        let trimmed = log.trim(50);
        assert!(
            matches!(trimmed, Err(LogError::Io { what: "remove", .. })),
            "{trimmed:?}"
        );
        assert_eq!((log.earliest(), files()), (0, before));
    }
    std::fs::remove_dir(&first).unwrap();
    log.trim(50).unwrap();
    assert_eq!((log.earliest(), files()), (50, before - 5));
}

#[test]
fn retention_by_bytes_and_by_time_does_not_wait_for_groups() {
    let (_folder, log) = many_segments(LogConfig::default());
    let bytes = log.reader().bytes();
    drop(log);
    let config = LogConfig {
        retention_bytes: Some(bytes / 2),
        ..LogConfig::default()
    };
    let (_folder, mut log) = many_segments(config);
    log.commit_group("slow", 5).unwrap();
    log.retain(0).unwrap();
    assert!(log.reader().bytes() <= bytes / 2);
    assert!((40..80).contains(&log.earliest()), "{}", log.earliest());

    // Rows were received at 1,000,000 and a few microseconds.
    let hour = std::time::Duration::from_secs(3600);
    let config = LogConfig {
        retention_time: Some(hour),
        ..LogConfig::default()
    };
    let (_folder, mut log) = many_segments(config);
    let later = |micros: i64| 1_000_000 + micros + 3_600_000_000;
    log.retain(later(45)).unwrap();
    assert_eq!(
        log.earliest(),
        50,
        "whole segments whose last rows are too old"
    );
    log.retain(later(1000)).unwrap();
    assert_eq!(
        (log.earliest(), log.next()),
        (100, 100),
        "the last one is sealed for it"
    );
    assert_eq!(log.append(&origin(100), &batch(0, 1)).unwrap(), 100..101);
    assert_eq!(log.last_seq("sensor"), Some((3, 100)));
}

#[test]
fn rows_on_hold_stay() {
    let hold = Hold::default();
    let config = LogConfig {
        hold: hold.clone(),
        retention_bytes: Some(1),
        ..LogConfig::default()
    };
    let (_folder, mut log) = many_segments(config);
    hold.set(0);
    assert_eq!(log.retain(0).unwrap().segments, 0);
    hold.set(35);
    log.retain(0).unwrap();
    assert_eq!(log.earliest(), 30);
    hold.set(1000);
    log.retain(0).unwrap();
    assert_eq!(
        log.earliest(),
        90,
        "but for the one that is being written to"
    );
}

#[test]
fn each_opening_that_writes_has_a_generation() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Log::open(folder.path(), LogConfig::default()).unwrap();
    let generations = |log: &Log| log.reader().generations();
    let mut log = open();
    assert_eq!(generations(&log).iter().len(), 0, "nothing was written");
    log.append(&origin(0), &batch(0, 10)).unwrap();
    let first = generations(&log);
    log.close().unwrap();
    // One that only reads changes nothing.
    assert_eq!(generations(&open()), first);
    let mut log = open();
    log.append(&origin(10), &batch(0, 10)).unwrap();
    let both = generations(&log);
    let firsts: Vec<u64> = both.iter().map(|one| one.first).collect();
    assert_eq!(firsts, [0, 10]);
    assert_eq!(both.before(10), first.before(10));
    assert_ne!(both.before(11), both.before(10));
    drop(log);
    // Without the file nothing is known of the rows before.
    std::fs::write(folder.path().join("generations"), "damaged").unwrap();
    let mut log = open();
    assert_eq!(log.recovery().notes.len(), 1);
    log.append(&origin(20), &batch(0, 10)).unwrap();
    assert_eq!(generations(&log).before(20), 0);
    assert_ne!(generations(&log).before(21), 0);
}

#[test]
fn offsets_are_found_by_time() {
    let (_folder, mut log) = many_segments(LogConfig::default());
    log.sync().unwrap();
    let reader = log.reader();
    for (time, offset) in [
        (0, 0),
        (1_000_000, 0),
        (1_000_001, 10),
        (1_000_050, 50),
        (1_000_090, 90),
        (1_000_091, 100),
    ] {
        assert_eq!(reader.offset_at(time).unwrap(), offset, "{time}");
    }
    // A clock that goes back does not hide rows received earlier.
    log.append(&Origin::plain(5), &batch(0, 1)).unwrap();
    log.append(&Origin::plain(2_000_000), &batch(0, 1)).unwrap();
    assert_eq!(
        reader.offset_at(2_000_000).unwrap(),
        101,
        "not on disk yet: the end"
    );
    log.sync().unwrap();
    assert_eq!(reader.offset_at(2_000_000).unwrap(), 101);
    assert_eq!(reader.offset_at(6).unwrap(), 0);
}

#[test]
fn producers_that_were_silent_longest_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let config = LogConfig {
        max_producers: 20,
        segment_bytes: 1,
        ..LogConfig::default()
    };
    let mut log = Log::open(folder.path(), config).unwrap();
    for at in 0..60 {
        let origin = Origin {
            producer: format!("p{at}").into(),
            receive_time: at,
            ..origin(0)
        };
        log.append(&origin, &batch(0, 1)).unwrap();
    }
    let (known, forgotten) = log.producers();
    assert!(
        known <= 21 && known + forgotten == 60,
        "{known} and {forgotten}"
    );
    assert_eq!(log.last_seq("p0"), None);
    assert_eq!(log.last_seq("p59"), Some((3, 0)));
}

#[test]
fn readers_read_while_the_writer_writes() {
    let folder = in_memory();
    let config = segments_of(20_000);
    let mut log = Log::open(folder.path(), config).unwrap();
    let (reader, syncer) = (log.reader(), log.syncer());
    let batches = 300;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut synced = 0;
            while synced < batches * 10 {
                synced = syncer.sync().unwrap();
            }
        });
        scope.spawn(|| {
            let mut at = 0;
            while at < batches * 10 {
                for frame in reader.fetch(at, u64::MAX, 5000).unwrap() {
                    assert_eq!(frame.first_offset, at);
                    at = frame.end;
                }
            }
        });
        for at in 0..batches {
            log.append(&origin(at * 10), &batch(0, 10)).unwrap();
        }
    });
}

#[test]
fn transactions_without_rows_survive_in_small_segments() {
    let folder = tempfile::tempdir().unwrap();
    let config = segments_of(1);
    let mut log = Log::open(folder.path(), config.clone()).unwrap();
    for batch_id in 0..20 {
        assert!(
            !log.append_published("query", batch_id, 1, &[])
                .unwrap()
                .already
        );
    }
    log.append_published("query", 20, 1, &[batch(0, 3)])
        .unwrap();
    log.append_published("other", 7, 1, &[]).unwrap();
    drop(log);
    std::fs::remove_file(folder.path().join("snapshot")).unwrap();
    let log = Log::open(folder.path(), config).unwrap();
    assert_eq!(log.published("query").unwrap().batch, 20);
    assert_eq!(log.published("other").unwrap().batch, 7);
    assert_eq!(log.next(), 3);
}

#[test]
fn writes_of_one_batch_make_room_for_queries_and_nothing_else_does() {
    let (folder, mut log) = opened();
    let publish = |log: &mut Log, query: &str, batch_id| {
        log.append_published(query, batch_id, 1, &[batch(0, 1)])
            .map(|done| done.already)
    };
    for at in 0..MAX_NAMES - 3 {
        publish(&mut log, &format!("query {at}"), 0).unwrap();
    }
    for at in 0..5 {
        let name = format!("write {at}");
        assert!(!publish(&mut log, &name, ONLY_BATCH).unwrap());
        assert!(publish(&mut log, &name, ONLY_BATCH).unwrap(), "once");
    }
    let writes = |log: &Log| -> Vec<usize> {
        (0..5)
            .filter(|at| log.published(&format!("write {at}")).is_some())
            .collect()
    };
    assert_eq!(writes(&log), [2, 3, 4]);
    // A restart reads the frames of those that were forgotten: they go again with the next.
    log.close().unwrap();
    let mut log = Log::open(folder.path(), LogConfig::default()).unwrap();
    for at in 0..3 {
        assert!(!publish(&mut log, &format!("new {at}"), 0).unwrap());
    }
    assert_eq!(writes(&log), []);
    let next = log.next();
    for batch_id in [0, ONLY_BATCH] {
        let refused = publish(&mut log, "one more", batch_id).unwrap_err();
        assert!(matches!(refused, LogError::TooMany { .. }));
        // Only groups can be removed.
        let text = refused.to_string();
        assert!(
            text.contains("queryName") && !text.contains("drop"),
            "{text}"
        );
    }
    assert_eq!(log.next(), next);
    assert!(publish(&mut log, "query 0", 0).unwrap(), "not forgotten");
    assert!(!publish(&mut log, "query 0", 1).unwrap());
}

#[test]
fn frames_without_rows_are_synced_too() {
    let (_folder, mut log) = opened();
    assert_eq!(log.synced(), log.written());
    log.append_published("q", 1, 1, &[]).unwrap();
    assert!(log.synced() < log.written());
    assert_eq!(log.sync().unwrap(), 0);
    assert_eq!(log.synced(), log.written());
    log.begin_epoch("p", 7, 1).unwrap();
    assert!(log.synced() < log.written());
    log.sync().unwrap();
    log.begin_epoch("p", 7, 1).unwrap();
    log.begin_epoch("p", 6, 1).unwrap();
    assert_eq!(log.synced(), log.written(), "it is known");
}

#[test]
fn an_epoch_outlives_the_process_and_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let config = segments_of(1000);
    let mut log = Log::open(folder.path(), config.clone()).unwrap();
    let of = |epoch, first_seq| Origin {
        producer: "p".into(),
        epoch,
        ..origin(first_seq)
    };
    log.begin_epoch("silent", 3, 1).unwrap();
    log.append(&of(1, 0), &batch(0, 5)).unwrap();
    log.begin_epoch("p", 2, 1).unwrap();
    let known = |log: &Log| (log.epoch("silent"), log.epoch("p"), log.last_seq("p"));
    let expected = (Some(3), Some(2), Some((2, 4)));
    assert_eq!(known(&log), expected);
    assert_eq!(log.last_seq("silent"), None);
    // As a crash leaves it, and then an orderly end.
    let image = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), image.path().join(entry.file_name())).unwrap();
    }
    assert_eq!(
        known(&Log::open(image.path(), config.clone()).unwrap()),
        expected
    );
    for first in 0..50 {
        log.append(&Origin::plain(1), &batch(first, 5)).unwrap();
    }
    assert!(log.trim(log.next()).unwrap().segments > 0);
    log.close().unwrap();
    let mut log = Log::open(folder.path(), config).unwrap();
    assert_eq!(known(&log), expected);
    assert_eq!(log.last_seq("silent"), None);
    log.append(&of(2, 5), &batch(5, 1)).unwrap();
    assert_eq!(log.last_seq("p"), Some((2, 5)));
}

#[test]
fn frames_without_rows_do_not_fill_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let config = LogConfig {
        segment_bytes: 1 << 16,
        max_producers: 100,
        ..LogConfig::default()
    };
    let bytes = || -> u64 {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    };
    let known = |log: &Log, epoch| {
        assert_eq!(
            (log.epoch("p"), log.last_seq("p")),
            (Some(epoch), Some((epoch, 4)))
        );
        assert_eq!(log.published("q").unwrap().batch, epoch);
        assert_eq!(log.next(), 5);
        assert!(log.producers().0 <= 400, "the rest are forgotten");
    };
    let mut log = Log::open(folder.path(), config.clone()).unwrap();
    let of = |epoch, first_seq| Origin {
        producer: "p".into(),
        epoch,
        ..origin(first_seq)
    };
    log.append(&of(1, 0), &batch(0, 5)).unwrap();
    log.seal().unwrap();
    let active = folder.path().join("00000000000000000005.zlog");
    let mut crashes = 0;
    for epoch in 2..2000 {
        let before = std::fs::read(&active).unwrap();
        log.begin_epoch("p", epoch, epoch as i64).unwrap();
        log.begin_epoch(&format!("p{epoch}"), 1, epoch as i64)
            .unwrap();
        log.append_published("q", epoch, 1, &[]).unwrap();
        assert!(bytes() < 3 << 16, "{} at epoch {epoch}", bytes());
        let after = std::fs::read(&active).unwrap();
        if crashes < 3 && after.len() < before.len() {
            // A crash between the snapshot and the segment, and one after both.
            crashes += 1;
            for left in [before, after] {
                let image = tempfile::tempdir().unwrap();
                for name in ["00000000000000000000.zlog", "snapshot", "durable"] {
                    std::fs::copy(folder.path().join(name), image.path().join(name)).unwrap();
                }
                std::fs::write(image.path().join(active.file_name().unwrap()), left).unwrap();
                let log = Log::open(image.path(), config.clone()).unwrap();
                assert!(log.epoch("p") >= Some(epoch - 1) && log.next() == 5);
                assert_eq!(log.epoch(&format!("p{}", epoch - 1)), Some(1));
                assert!(log.published("q").unwrap().batch >= epoch - 1);
            }
        }
        if epoch % 500 == 0 {
            // Later rows are synced and read as before.
            log.sync().unwrap();
            assert_eq!(log.synced(), log.written());
            known(&log, epoch);
        }
    }
    known(&log, 1999);
    assert_eq!(crashes, 3);
    log.close().unwrap();
    let mut log = Log::open(folder.path(), config).unwrap();
    known(&log, 1999);
    assert!(log.recovery().notes.is_empty() && log.recovery().dropped_bytes == 0);
    log.append(&of(1999, 5), &batch(5, 3)).unwrap();
    log.sync().unwrap();
    let rows: usize = log
        .reader()
        .fetch(0, 8, 1 << 20)
        .unwrap()
        .iter()
        .map(|frame| frame.batch.rows())
        .sum();
    assert_eq!(rows, 8);
}

#[test]
fn a_transaction_whose_rows_cannot_be_had_is_not_there() {
    let (folder, mut log) = opened();
    log.append(&Origin::plain(1), &batch(0, 2)).unwrap();
    let parts = [
        Ok(batch(0, 3)),
        Ok(batch(3, 3)),
        Err(LogError::OutOfRange {
            asked: 7,
            earliest: 0,
            next: 0,
        }),
    ];
    let error = log.append_published_from("q", 1, 1, parts).unwrap_err();
    assert!(matches!(error, LogError::OutOfRange { asked: 7, .. }));
    assert_eq!((log.next(), log.published("q")), (2, None));
    assert_eq!(log.append(&Origin::plain(1), &batch(2, 2)).unwrap(), 2..4);
    log.close().unwrap();
    let log = Log::open(folder.path(), LogConfig::default()).unwrap();
    assert_eq!((log.next(), log.recovery().dropped_bytes), (4, 0));
}

/// Memory that is counted until its last reference is dropped.
struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn two_batches_of_a_transaction_are_in_memory_at_a_time() {
    let (_folder, mut log) = opened();
    let (here, mut most) = (Arc::new(AtomicUsize::new(0)), 0);
    let mut bytes = Vec::new();
    batch(0, 100).encode(&mut bytes);
    let batches = (0..50).map(|_| {
        let counted = Counted(bytes.clone(), here.clone());
        most = most.max(here.fetch_add(1, Ordering::Relaxed) + 1);
        Ok::<_, LogError>(Batch::decode(Bytes::from_owner(counted)).unwrap())
    });
    let published = log.append_published_from("q", 1, 1, batches).unwrap();
    assert_eq!(published.range, 0..5000);
    assert_eq!((most, here.load(Ordering::Relaxed)), (2, 0));
}

#[test]
fn bytes_are_weighed_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let config = segments_of(200_000);
    let mut log = Log::open(folder.path(), config.clone()).unwrap();
    // Small rows, then large ones: the mean says nothing of either.
    for (rows, size) in [(10_000, 10), (1000, 1000)] {
        for _ in 0..rows / 100 {
            let mut builder = BatchBuilder::new();
            for _ in 0..100 {
                let value = vec![7; size];
                builder
                    .push(Row {
                        value: &value,
                        ..Row::default()
                    })
                    .unwrap();
            }
            log.append(&Origin::plain(1), &builder.finish()).unwrap();
        }
    }
    log.sync().unwrap();
    let check = |log: &Log| {
        let reader = log.reader();
        let after = |start, bytes| reader.offset_after(start, bytes).unwrap();
        let small = after(0, 100_000);
        assert!((4000..=6500).contains(&small), "{small}");
        assert!((4000..=6500).contains(&(after(50, 100_000) - 50)));
        let large = after(10_000, 100_000) - 10_000;
        assert!((90..=101).contains(&large), "{large}");
        let over_segments = after(10_000, 500_000) - 10_000;
        assert!((450..=505).contains(&over_segments), "{over_segments}");
        assert_eq!(after(10_007, 1), 10_008, "at least one");
        assert_eq!(after(10_999, 0), 11_000);
        assert_eq!(after(11_000, 5), 11_000, "there is none");
        assert_eq!(after(5, u64::MAX), 11_000);
        // Pieces of this size add up to the whole.
        let (mut at, mut pieces) = (0, 0);
        while at < 11_000 {
            at = after(at, 50_000);
            pieces += 1;
        }
        let whole = reader.bytes() / 50_000;
        assert!(
            (whole - 2..=whole + 8).contains(&pieces),
            "{pieces} of {whole}"
        );
        assert!(matches!(
            reader.offset_after(11_001, 1),
            Err(LogError::OutOfRange { .. })
        ));
    };
    check(&log);
    log.close().unwrap();
    // From files that have not been walked yet.
    let mut log = Log::open(folder.path(), config).unwrap();
    check(&log);
    log.append(&Origin::plain(1), &batch(0, 1000)).unwrap();
    let after = log.reader().offset_after(10_990, 30_000).unwrap();
    assert_eq!(after, 11_000, "rows that are not on disk do not count");
}

#[test]
fn retention_writes_nothing_while_nothing_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let config = LogConfig {
        retention_groups: true,
        ..segments_of(1000)
    };
    let mut log = Log::open(folder.path(), config).unwrap();
    for first in 0..10 {
        log.append(&Origin::plain(1), &batch(first, 5)).unwrap();
    }
    let snapshot = || std::fs::read(folder.path().join("snapshot")).unwrap();
    let before = snapshot();
    log.commit_group("g", 1).unwrap();
    assert_eq!(log.retain(2).unwrap().segments, 0);
    assert!(snapshot() == before, "two syncs for nothing");
    log.commit_group("g", log.next()).unwrap();
    assert!(log.retain(3).unwrap().segments > 0);
    log.save().unwrap();
    assert!(snapshot() != before);
}
