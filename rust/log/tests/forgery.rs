//! Rows whose values are frames of a log, with right checksums. If the frame around them is damaged, they are not taken for
//! the log's own.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Origin, Row};

/// The row whose value is a frame, and the number of all rows.
const FORGED: u64 = 3;
const ROWS: u64 = 9;

fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
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

fn origin(producer: &str, first_seq: u64) -> Origin {
    Origin {
        producer: producer.into(),
        epoch: 7,
        first_seq,
        receive_time: 1,
    }
}

fn open(folder: &Path) -> Log {
    Log::open(folder, LogConfig::default()).unwrap()
}

fn put(frame: &mut [u8], at: usize, number: u64) {
    frame[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// A frame of another log, with these offsets.
fn forged(first: u64, durable: u64) -> Vec<u8> {
    let folder = folder();
    let mut log = open(folder.path());
    log.append(&origin("victim", 0), &batch(b"forged")).unwrap();
    log.sync().unwrap();
    let mut frame = log.reader().fetch(0, 1, 1).unwrap()[0].bytes.to_vec();
    put(&mut frame, 24, first);
    put(&mut frame, 72, durable);
    let header = u32::from_le_bytes(frame[12..16].try_into().unwrap()) as usize;
    let crc = crc32c::crc32c(&frame[8..header]);
    frame[4..8].copy_from_slice(&crc.to_le_bytes());
    frame
}

fn segment(folder: &Path) -> PathBuf {
    folder.join(format!("{:020}.zlog", 0))
}

/// The positions of the frames of a segment, and the end.
fn positions(bytes: &[u8]) -> Vec<usize> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut positions = vec![word(12)];
    while positions.last().is_some_and(|at| *at < bytes.len()) {
        let at = positions[positions.len() - 1];
        positions.push(at + word(at + 8));
    }
    positions
}

/// A log of nine frames, all synced, one of which has this value.
fn written(value: &[u8]) -> TempDir {
    let folder = folder();
    let mut log = open(folder.path());
    for row in 0..ROWS {
        let text = format!("row {row}");
        let own = if row == FORGED {
            value
        } else {
            text.as_bytes()
        };
        log.append(&origin("p", row), &batch(own)).unwrap();
        log.sync().unwrap();
    }
    log.close().unwrap();
    folder
}

fn flip(folder: &Path, within: impl Fn(&[usize]) -> usize) {
    let path = segment(folder);
    let mut bytes = fs::read(&path).unwrap();
    let at = within(&positions(&bytes));
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Only the row with the forged frame is lost, and the log continues.
fn check(folder: &Path, what: &str) {
    let mut log = open(folder);
    let recovery = log.recovery().clone();
    assert_eq!(recovery.dropped_bytes, 0, "{what}: {recovery:?}");
    let lost = FORGED..FORGED + 1;
    assert_eq!(recovery.damaged, vec![lost; 1], "{what}");
    assert_eq!(log.next(), ROWS, "{what}");
    assert_eq!(log.last_seq("p"), Some((7, ROWS - 1)), "{what}");
    assert_eq!(log.epoch("victim"), None, "{what}");
    let reader = log.reader();
    for row in 0..ROWS {
        match reader.fetch(row, row + 1, 1) {
            Ok(frames) => {
                assert_ne!(row, FORGED, "{what}");
                assert_eq!(frames[0].batch.value(0), format!("row {row}").as_bytes());
            }
            Err(LogError::Corrupt { first, end, .. }) => {
                assert_eq!((first, end), (FORGED, FORGED + 1), "{what}: {row}");
            }
            Err(other) => panic!("{what}: {row}: {other}"),
        }
    }
    log.append(&origin("p", ROWS), &batch(b"new")).unwrap();
    log.sync().unwrap();
}

#[test]
fn a_value_that_is_a_frame_does_not_hide_the_rows_after_it() {
    for first in [FORGED + 2, ROWS, 50, 1 << 61, (1 << 62) - 1] {
        for durable in [0, first] {
            let one = forged(first, durable);
            let two = [one.clone(), forged(first + 1, durable)].concat();
            for (value, count) in [(one, 1), (two, 2)] {
                // The length of the frame around it, and the offset of its row.
                for byte in [9, 25, 50] {
                    let folder = written(&value);
                    flip(folder.path(), |frames| frames[FORGED as usize] + byte);
                    check(
                        folder.path(),
                        &format!("{count} from {first}, {durable} durable, byte {byte}"),
                    );
                }
            }
        }
    }
}

#[test]
fn a_value_that_is_a_frame_does_not_make_an_unwritten_tail_acknowledged() {
    for durable in [0, FORGED, FORGED + 1] {
        let value = forged(FORGED + 1, durable);
        let folder = written(&value);
        // The machine stopped while the frame was written: its first bytes did not reach the disk, and the mark, which
        // is not synced, did not either.
        let path = segment(folder.path());
        let mut bytes = fs::read(&path).unwrap();
        let frames = positions(&bytes);
        let (start, end) = (frames[FORGED as usize], frames[FORGED as usize + 1]);
        bytes.truncate(end);
        bytes[start..start + 88].fill(0);
        fs::write(path, bytes).unwrap();
        fs::remove_file(folder.path().join("durable")).unwrap();
        fs::remove_file(folder.path().join("snapshot")).unwrap();
        let log = open(folder.path());
        assert!(log.recovery().damaged.is_empty(), "{durable}");
        assert_eq!(log.next(), FORGED, "{durable}");
        assert_eq!(log.epoch("victim"), None, "{durable}");
    }
}

#[test]
fn a_frame_cannot_say_that_its_own_rows_were_on_disk_before() {
    let folder = written(b"");
    let path = segment(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    let at = positions(&bytes)[FORGED as usize];
    let end = bytes.len();
    bytes.truncate(at);
    bytes.extend(forged(FORGED, FORGED + 1));
    bytes.resize(end, 0);
    fs::write(path, bytes).unwrap();
    fs::remove_file(folder.path().join("durable")).unwrap();
    fs::remove_file(folder.path().join("snapshot")).unwrap();
    let log = open(folder.path());
    assert_eq!((log.next(), log.epoch("victim")), (FORGED, None));
}
