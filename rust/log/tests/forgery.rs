//! Rows whose values are frames of a log, with right checksums. If the frame around them is damaged, they are not taken for
//! the log's own.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Origin, Row};

/// The row whose value is a frame, and the number of all rows.
const FORGED: u64 = 3;
const ROWS: u64 = 9;

/// Bytes of a header: the length of the frame, its offset, its time of receipt, and the number of its rows.
const FLIPPED: [usize; 5] = [8, 9, 25, 50, 84];

fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn batch(value: &[u8]) -> Batch {
    batch_of(&[value])
}

fn batch_of(values: &[&[u8]]) -> Batch {
    let mut builder = BatchBuilder::new();
    for value in values {
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

/// Changes the length in a header, with a right checksum and a body that adds up.
fn put_length(header: &mut [u8], length: u32) {
    let before = u32::from_le_bytes(header[8..12].try_into().unwrap());
    let metadata = u32::from_le_bytes(header[20..24].try_into().unwrap());
    header[8..12].copy_from_slice(&length.to_le_bytes());
    header[20..24].copy_from_slice(&(metadata + length - before).to_le_bytes());
    let crc = crc32c::crc32c(&header[8..]);
    header[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// A frame of another log, with these offsets.
fn forged(first: u64, durable: u64) -> Vec<u8> {
    forged_by(first, durable, |log| {
        log.append(&origin("victim", 0), &batch(b"forged")).unwrap();
    })
}

/// The same without rows: it says that a producer has begun.
fn forged_epoch(first: u64) -> Vec<u8> {
    forged_by(first, 0, |log| log.begin_epoch("victim", 9, 1).unwrap())
}

fn forged_by(first: u64, durable: u64, write: impl FnOnce(&mut Log)) -> Vec<u8> {
    let folder = folder();
    let mut log = open(folder.path());
    write(&mut log);
    log.close().unwrap();
    let bytes = fs::read(segment(folder.path())).unwrap();
    let mut frame = bytes[positions(&bytes)[0]..].to_vec();
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
    flip_all(folder, |frames| [within(frames)]);
}

fn flip_all<I: IntoIterator<Item = usize>>(folder: &Path, within: impl Fn(&[usize]) -> I) {
    let path = segment(folder);
    let mut bytes = fs::read(&path).unwrap();
    for at in within(&positions(&bytes)) {
        bytes[at] ^= 1;
    }
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
    for first in [
        FORGED,
        FORGED + 1,
        FORGED + 2,
        ROWS,
        50,
        1 << 61,
        (1 << 62) - 1,
    ] {
        for durable in [0, first] {
            let one = forged(first, durable);
            let two = [one.clone(), forged(first + 1, durable)].concat();
            for (value, count) in [(one, 1), (two, 2)] {
                for byte in FLIPPED {
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
fn a_value_that_is_a_frame_without_rows_begins_no_producer() {
    for first in [FORGED, FORGED + 1] {
        let one = forged_epoch(first);
        for value in [one.clone(), [one.clone(), forged(first, 0)].concat()] {
            for byte in FLIPPED {
                let folder = written(&value);
                flip(folder.path(), |frames| frames[FORGED as usize] + byte);
                check(
                    folder.path(),
                    &format!("{} from {first}, byte {byte}", value.len()),
                );
            }
        }
    }
}

#[test]
fn a_value_that_is_a_frame_is_no_row_beside_others() {
    // The frame with the value has several rows, so that one with a later offset fits.
    for (rows, at) in [(2, 0), (2, 1), (4, 0), (4, 3)] {
        for first in FORGED..FORGED + rows + 2 {
            let one = forged(first, 0);
            let two = [one.clone(), forged(first + 1, 0)].concat();
            for value in [one, two] {
                for byte in FLIPPED {
                    let what = format!("row {at} of {rows} from {first}, byte {byte}");
                    let folder = folder();
                    let mut log = open(folder.path());
                    for row in 0..FORGED {
                        log.append(&origin("p", row), &batch(b"before")).unwrap();
                    }
                    let mut values = vec![&b"beside"[..]; rows as usize];
                    values[at] = &value;
                    log.append(&origin("p", FORGED), &batch_of(&values))
                        .unwrap();
                    let end = FORGED + rows;
                    for row in end..end + 3 {
                        log.append(&origin("p", row), &batch(b"behind")).unwrap();
                    }
                    log.close().unwrap();
                    flip(folder.path(), |frames| frames[FORGED as usize] + byte);
                    let log = open(folder.path());
                    assert_eq!(log.recovery().damaged, vec![FORGED..end; 1], "{what}");
                    assert_eq!((log.next(), log.epoch("victim")), (end + 3, None), "{what}");
                    for row in end..end + 3 {
                        let frames = log.reader().fetch(row, row + 1, 1).unwrap();
                        assert_eq!(frames[0].batch.value(0), b"behind", "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_header_that_is_gone_does_not_make_a_value_a_row() {
    // Neither its length nor its number of rows is left. But no frame follows the one inside.
    let folder = folder();
    let mut log = open(folder.path());
    let value = forged(1, 0);
    log.append(&origin("p", 0), &batch_of(&[&value, b"x", b"x", b"x"]))
        .unwrap();
    log.append(&origin("p", 4), &batch(b"behind")).unwrap();
    log.append(&origin("p", 5), &batch(b"behind")).unwrap();
    log.close().unwrap();
    let path = segment(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    let start = positions(&bytes)[0];
    bytes[start..start + 96].fill(0);
    fs::write(&path, bytes).unwrap();
    let log = open(folder.path());
    assert_eq!(log.recovery().damaged, vec![0..4; 1]);
    assert_eq!((log.next(), log.epoch("victim")), (6, None));
}

#[test]
fn many_values_that_begin_like_frames_hide_no_rows() {
    // The checksums of more than a quarter of a gigabyte of announced frames are wrong.
    let mut header = forged(FORGED + 2, 0);
    header.truncate(u32::from_le_bytes(header[12..16].try_into().unwrap()) as usize);
    put_length(&mut header, 1 << 20);
    for byte in FLIPPED {
        let folder = written(&header.repeat(300));
        // So that the announced frames fit into the file.
        let mut log = open(folder.path());
        log.append(&origin("p", ROWS), &batch(&vec![7; 2 << 20]))
            .unwrap();
        log.close().unwrap();
        flip(folder.path(), |frames| frames[FORGED as usize] + byte);
        let log = open(folder.path());
        assert_eq!(log.recovery().damaged, vec![FORGED..FORGED + 1; 1]);
        assert_eq!(log.next(), ROWS + 1);
    }
}

#[test]
fn two_damaged_frames_cost_only_their_own_rows() {
    for value in [forged(FORGED + 1, 0), forged(FORGED + 3, 0)] {
        for byte in FLIPPED {
            // The next one only if the length of the first is right. Otherwise, nothing tells the next one from the value.
            let next = (byte > 9).then_some(FORGED + 1);
            for other in next.into_iter().chain([FORGED + 2, FORGED + 4, ROWS - 1]) {
                let folder = written(&value);
                flip_all(folder.path(), |frames| {
                    [FORGED, other].map(|frame| frames[frame as usize] + byte)
                });
                let log = open(folder.path());
                let lost: Vec<u64> = log.recovery().damaged.iter().cloned().flatten().collect();
                assert_eq!(lost, [FORGED, other], "byte {byte}");
                assert_eq!((log.next(), log.epoch("victim")), (ROWS, None));
            }
        }
    }
}

#[test]
fn the_value_in_the_last_of_several_damaged_frames_is_no_row() {
    for first_damaged in [FORGED - 1, FORGED - 3] {
        for first in FORGED..FORGED + 2 {
            for byte in FLIPPED {
                let folder = written(&forged(first, 0));
                // The lengths of all but the last are right.
                flip_all(folder.path(), |frames| {
                    let earlier = &frames[first_damaged as usize..FORGED as usize];
                    let earlier = earlier.iter().map(|frame| frame + 50);
                    let last = frames[FORGED as usize] + byte;
                    earlier.chain([last]).collect::<Vec<usize>>()
                });
                let log = open(folder.path());
                let lost: Vec<u64> = log.recovery().damaged.iter().cloned().flatten().collect();
                let expected: Vec<u64> = (first_damaged..=FORGED).collect();
                assert_eq!(lost, expected, "{first}, byte {byte}");
                assert_eq!((log.next(), log.epoch("victim")), (ROWS, None));
            }
        }
    }
}

#[test]
fn damage_to_a_frame_without_rows_costs_no_rows() {
    for byte in FLIPPED {
        let folder = folder();
        let mut log = open(folder.path());
        log.append(&origin("p", 0), &batch(b"zero")).unwrap();
        log.begin_epoch("q", 3, 1).unwrap();
        log.append(&origin("p", 1), &batch(b"one")).unwrap();
        log.close().unwrap();
        flip(folder.path(), |frames| frames[1] + byte);
        let log = open(folder.path());
        let known = (log.next(), log.epoch("p"), log.epoch("q"));
        assert_eq!(known, (2, Some(7), None), "{byte}");
        let frames = log.reader().fetch(1, 2, 1).unwrap();
        assert_eq!(frames[0].batch.value(0), b"one", "{byte}");
    }
}

#[test]
fn a_producer_that_began_just_after_damage_is_known() {
    for rows_follow in [true, false] {
        let folder = folder();
        let mut log = open(folder.path());
        log.append(&origin("p", 0), &batch(b"zero")).unwrap();
        log.append(&origin("p", 1), &batch(b"one")).unwrap();
        log.begin_epoch("q", 3, 1).unwrap();
        log.begin_epoch("r", 4, 1).unwrap();
        if rows_follow {
            log.append(&origin("p", 2), &batch(b"two")).unwrap();
        }
        log.close().unwrap();
        flip(folder.path(), |frames| frames[1] + 50);
        let log = open(folder.path());
        assert_eq!(log.recovery().damaged, vec![1..2; 1], "{rows_follow}");
        assert_eq!(log.epoch("q"), Some(3), "{rows_follow}");
        assert_eq!(log.epoch("r"), Some(4), "{rows_follow}");
        assert_eq!(log.next(), 2 + u64::from(rows_follow));
    }
}

#[test]
fn a_sealed_segment_has_no_rows_beyond_its_end() {
    let folder = folder();
    let mut log = open(folder.path());
    log.append(&origin("p", 0), &batch(b"zero")).unwrap();
    log.append(&origin("p", 1), &batch(&forged(2, 0))).unwrap();
    log.seal().unwrap();
    log.append(&origin("p", 2), &batch(b"two")).unwrap();
    log.close().unwrap();
    flip(folder.path(), |frames| frames[1] + 9);
    // Without it, recovery reads the headers of all segments.
    fs::remove_file(folder.path().join("snapshot")).unwrap();
    let log = open(folder.path());
    assert_eq!(log.recovery().damaged, vec![1..2; 1]);
    assert_eq!((log.next(), log.epoch("victim")), (3, None));
    let frames = log.reader().fetch(2, 3, 1).unwrap();
    assert_eq!(frames[0].batch.value(0), b"two");
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
