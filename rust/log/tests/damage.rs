//! Flipped bits, truncated files, lost files: acknowledged rows are either there or reported as missing; they are never
//! silently lost, and never wrong.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, fs};

use tempfile::TempDir;
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Origin, Row};

const ROWS: usize = 5;
const FRAMES: u64 = 12;
const TOTAL: u64 = ROWS as u64 * FRAMES;

fn value(offset: u64) -> Vec<u8> {
    format!("the value of row {offset}").into_bytes()
}

fn batch(first: u64) -> Batch {
    let mut builder = BatchBuilder::new();
    for at in 0..ROWS as u64 {
        builder
            .push(Row {
                value: &value(first + at),
                topic: Some("t"),
                ..Row::default()
            })
            .unwrap();
    }
    builder.finish()
}

fn origin(first_seq: u64) -> Origin {
    Origin {
        producer: "p".into(),
        epoch: 1,
        first_seq,
        receive_time: 1000 + first_seq.cast_signed(),
    }
}

/// In memory where that is possible: thousands of copies are made.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn config(segment_bytes: u64) -> LogConfig {
    LogConfig {
        segment_bytes,
        ..LogConfig::default()
    }
}

/// A log of several frames, all of them synced.
fn written(segment_bytes: u64) -> (TempDir, Log) {
    let folder = folder();
    let mut log = Log::open(folder.path(), config(segment_bytes)).unwrap();
    for frame in 0..FRAMES {
        let first = frame * ROWS as u64;
        log.append(&origin(first), &batch(first)).unwrap();
        log.sync().unwrap();
    }
    (folder, log)
}

fn copy(from: &Path) -> TempDir {
    let to = folder();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "zlog"))
        .collect();
    paths.sort();
    paths
}

/// Reads everything, skips damage, and returns the damaged ranges. Rows that can be read must be correct.
fn damaged(log: &Log) -> Vec<Range<u64>> {
    let (reader, mut missing) = (log.reader(), Vec::new());
    let (mut at, end) = reader.bounds();
    while at < end {
        match reader.fetch(at, end, 700) {
            Ok(frames) => {
                assert!(!frames.is_empty(), "nothing at {at} of {end}");
                for frame in frames {
                    for row in frame.rows_within(&(at..end)) {
                        assert_eq!(frame.offset(row), at);
                        assert_eq!(frame.batch.value(row), value(at), "row {at}");
                        at += 1;
                    }
                }
            }
            Err(LogError::Corrupt {
                first,
                end: behind,
                segment,
                ..
            }) => {
                assert_eq!(first, at);
                assert!(
                    behind > first && behind <= end,
                    "{first} to {behind} of {end}"
                );
                assert!(segment.exists());
                missing.push(first..behind);
                at = behind;
            }
            Err(other) => panic!("{other}"),
        }
    }
    missing
}

#[test]
fn a_flipped_bit_costs_the_rows_of_its_frame_at_most() {
    for segment_bytes in [1 << 20, 3000] {
        let (folder, log) = written(segment_bytes);
        log.close().unwrap();
        for file in segments(folder.path()) {
            let bytes = fs::read(&file).unwrap();
            for at in (0..bytes.len()).step_by(if env::var_os("ZEROXIDE_FULL").is_some() {
                3
            } else {
                23
            }) {
                let copy = copy(folder.path());
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << (at % 8);
                fs::write(copy.path().join(file.file_name().unwrap()), bytes).unwrap();
                let mut log = match Log::open(copy.path(), config(segment_bytes)) {
                    Ok(log) => log,
                    Err(other) => panic!("{at}: {other}"),
                };
                assert_eq!(
                    log.next(),
                    TOTAL,
                    "byte {at}: offsets are not given away twice"
                );
                let missing = damaged(&log);
                let rows: u64 = missing.iter().map(|range| range.end - range.start).sum();
                assert!(rows <= ROWS as u64, "byte {at}: {missing:?}");
                assert_eq!(
                    log.append(&origin(TOTAL), &batch(TOTAL)).unwrap().start,
                    TOTAL
                );
                log.sync().unwrap();
                assert_eq!(damaged(&log), missing);
                assert_eq!(log.last_seq("p"), Some((1, TOTAL + ROWS as u64 - 1)));
            }
        }
    }
}

#[test]
fn rows_cut_off_a_file_that_were_acknowledged_are_missed_and_their_offsets_not_reused() {
    let (folder, log) = written(1 << 20);
    // The state after a kill: without a snapshot of the end, with the mark of the last sync.
    let killed = copy(folder.path());
    drop(log);
    let file = segments(killed.path()).pop().unwrap();
    let whole = fs::read(&file).unwrap();
    let lengths = (0..whole.len()).step_by(11).map(Some);
    for length in lengths.chain([None]) {
        let copy = copy(killed.path());
        let file = segments(copy.path()).pop().unwrap();
        match length {
            Some(length) => fs::write(&file, &whole[..length]).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let mut log = Log::open(copy.path(), config(1 << 20)).unwrap();
        assert_eq!(log.next(), TOTAL, "cut at {length:?}");
        let missing = damaged(&log);
        assert_eq!(log.recovery().damaged, missing, "cut at {length:?}");
        assert_eq!((missing.len(), log.earliest()), (1, 0));
        assert_eq!(missing[0].end, TOTAL);
        assert_eq!(
            log.append(&origin(TOTAL), &batch(TOTAL)).unwrap().start,
            TOTAL
        );
        log.close().unwrap();
        let log = Log::open(copy.path(), config(1 << 20)).unwrap();
        assert_eq!(damaged(&log), missing, "a restart changes nothing");
    }
}

#[test]
fn an_unacknowledged_torn_tail_is_dropped_and_reported() {
    let (folder, mut log) = written(1 << 20);
    let synced = fs::metadata(segments(folder.path()).pop().unwrap())
        .unwrap()
        .len();
    log.append(&origin(TOTAL), &batch(TOTAL)).unwrap();
    let killed = copy(folder.path());
    drop(log);
    let file = segments(killed.path()).pop().unwrap();
    let whole = fs::read(&file).unwrap();
    for length in usize::try_from(synced).unwrap()..=whole.len() {
        let copy = copy(killed.path());
        fs::write(segments(copy.path()).pop().unwrap(), &whole[..length]).unwrap();
        let mut log = Log::open(copy.path(), config(1 << 20)).unwrap();
        let is_whole = length == whole.len();
        assert_eq!(
            log.next(),
            if is_whole { TOTAL + ROWS as u64 } else { TOTAL }
        );
        assert_eq!(
            log.recovery().dropped_bytes,
            if is_whole { 0 } else { length as u64 - synced }
        );
        assert!(log.recovery().damaged.is_empty() && damaged(&log).is_empty());
        let next = log.next();
        assert_eq!(log.append(&origin(next), &batch(next)).unwrap().start, next);
    }
}

#[test]
fn a_lost_segment_is_reported_as_a_gap() {
    let (folder, log) = written(1500);
    log.close().unwrap();
    let files = segments(folder.path());
    assert!(files.len() > 3);
    let firsts: Vec<u64> = files
        .iter()
        .map(|file| file.file_stem().unwrap().to_str().unwrap().parse().unwrap())
        .collect();
    fs::remove_file(&files[1]).unwrap();
    let log = Log::open(folder.path(), config(1500)).unwrap();
    assert_eq!(damaged(&log), std::slice::from_ref(&(firsts[1]..firsts[2])));
    drop(log);
    // The first missing segment looks as if retention had removed it. The last one leaves a gap of offsets.
    fs::remove_file(&files[0]).unwrap();
    fs::remove_file(files.last().unwrap()).unwrap();
    let log = Log::open(folder.path(), config(1500)).unwrap();
    assert_eq!(log.next(), TOTAL);
    assert_eq!(log.earliest(), firsts[2]);
    assert_eq!(damaged(&log).last().unwrap().end, TOTAL);
    drop(log);
    for file in segments(folder.path()) {
        fs::remove_file(file).unwrap();
    }
    let log = Log::open(folder.path(), config(1500)).unwrap();
    assert_eq!(damaged(&log).last().unwrap().end, TOTAL);
    assert_eq!(damaged(&log), log.recovery().damaged);
    assert!(log.earliest() < firsts[firsts.len() - 1]);
}

#[test]
fn a_damaged_snapshot_is_noted_and_done_without() {
    let (folder, mut log) = written(1500);
    log.commit_group("g", 7).unwrap();
    log.close().unwrap();
    let path = folder.path().join("snapshot");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        for damage in [None, Some(at)] {
            let mut bytes = whole.clone();
            match damage {
                None => bytes.truncate(at),
                Some(at) => bytes[at] ^= 0x10,
            }
            fs::write(&path, bytes).unwrap();
            let copy = copy(folder.path());
            let log = Log::open(copy.path(), config(1500)).unwrap();
            assert_eq!(log.recovery().notes.len(), 1, "{at}");
            assert_eq!(
                (log.next(), log.last_seq("p")),
                (TOTAL, Some((1, TOTAL - 1)))
            );
            assert!(damaged(&log).is_empty());
        }
    }
}

#[test]
fn a_missing_snapshot_is_noted_and_a_mark_that_cannot_be_read_is_an_error() {
    let (folder, log) = written(1500);
    log.close().unwrap();
    fs::remove_file(folder.path().join("snapshot")).unwrap();
    let log = Log::open(folder.path(), config(1500)).unwrap();
    let notes = log.recovery().notes.clone();
    assert!(
        notes.len() == 1 && notes[0].contains("missing"),
        "{notes:?}"
    );
    log.close().unwrap();
    let mark = folder.path().join("durable");
    fs::remove_file(&mark).unwrap();
    // A folder can be opened like a file, but not read.
    fs::create_dir(&mark).unwrap();
    let opened = Log::open(folder.path(), config(1500));
    assert!(
        matches!(&opened, Err(LogError::Io { what: "read", path, .. }) if *path == mark),
        "{opened:?}"
    );
}

#[test]
fn segments_of_two_logs_are_not_mixed() {
    let (one, log) = written(1500);
    log.close().unwrap();
    let (other, log) = written(1500);
    log.close().unwrap();
    let file = segments(other.path()).pop().unwrap();
    fs::copy(&file, one.path().join(file.file_name().unwrap())).unwrap();
    let error = Log::open(one.path(), config(1500)).unwrap_err().to_string();
    assert!(error.contains("another log"), "{error}");
    fs::write(one.path().join("00000000000000000099.zlog"), [7; 100]).unwrap();
    assert!(matches!(
        Log::open(one.path(), config(1500)),
        Err(LogError::Foreign { .. })
    ));
}

/// Returns which segments are written to when the log is opened. Their contents do not change.
fn written_again(folder: &Path, segment_bytes: u64) -> Vec<bool> {
    let files = segments(folder);
    let before: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for file in &files {
        let file = fs::File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let log = Log::open(folder, config(segment_bytes)).unwrap();
    assert!(log.recovery().damaged.is_empty() && damaged(&log).is_empty());
    let again = files.iter().map(|file| {
        let modified = fs::metadata(file).unwrap().modified().unwrap();
        modified != SystemTime::UNIX_EPOCH
    });
    let again = again.collect();
    let after: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(before == after);
    again
}

#[test]
fn data_that_may_not_be_on_disk_is_rewritten() {
    let (folder, mut log) = written(1 << 20);
    let synced = copy(folder.path());
    assert_eq!(written_again(synced.path(), 1 << 20), [false]);
    fs::remove_file(synced.path().join("durable")).unwrap();
    assert_eq!(written_again(synced.path(), 1 << 20), [true]);
    assert_eq!(written_again(synced.path(), 1 << 20), [false], "once");

    // The state after a process whose sync failed: the mark is below the end of the data.
    log.append(&origin(TOTAL), &batch(TOTAL)).unwrap();
    let killed = copy(folder.path());
    assert_eq!(written_again(killed.path(), 1 << 20), [true]);
    assert_eq!(written_again(killed.path(), 1 << 20), [false], "once");
}

#[test]
fn a_sealed_segment_is_written_again_if_nothing_says_that_it_was_synced() {
    let (folder, log) = written(1500);
    log.close().unwrap();
    let count = segments(folder.path()).len();
    assert!(count > 3);
    assert_eq!(written_again(folder.path(), 1500), vec![false; count]);
    let without_mark = copy(folder.path());
    fs::remove_file(without_mark.path().join("durable")).unwrap();
    let again = written_again(without_mark.path(), 1500);
    assert!(!again[..count - 1].contains(&true), "the snapshot has it");
    fs::remove_file(folder.path().join("durable")).unwrap();
    fs::remove_file(folder.path().join("snapshot")).unwrap();
    assert_eq!(written_again(folder.path(), 1500), vec![true; count]);
}

#[test]
fn a_flipped_bit_before_its_id_makes_a_segment_neither_foreign_nor_unfinished() {
    for segment_bytes in [1 << 20, 1500] {
        let (folder, log) = written(segment_bytes);
        log.close().unwrap();
        for file in segments(folder.path()) {
            let whole = fs::read(&file).unwrap();
            for bit in 0..128 {
                let copy = copy(folder.path());
                let mut bytes = whole.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                fs::write(copy.path().join(file.file_name().unwrap()), bytes).unwrap();
                let mut log = Log::open(copy.path(), config(segment_bytes)).unwrap();
                assert_eq!(log.recovery().notes.len(), 1, "bit {bit}");
                assert_eq!(log.next(), TOTAL);
                assert!(damaged(&log).is_empty(), "all frames are complete");
                log.append(&origin(TOTAL), &batch(TOTAL)).unwrap();
                log.close().unwrap();
                let log = Log::open(copy.path(), config(segment_bytes)).unwrap();
                assert_eq!(log.next(), TOTAL + ROWS as u64);
                assert!(damaged(&log).is_empty());
            }
        }
    }
}

#[test]
fn a_segment_whose_header_did_not_reach_the_disk_is_begun_anew() {
    let folder = folder();
    drop(Log::open(folder.path(), config(1 << 20)).unwrap());
    // After a power cut, a new file may have its length but not its bytes.
    let file = segments(folder.path()).pop().unwrap();
    let length = fs::metadata(&file).unwrap().len();
    fs::write(&file, vec![0; usize::try_from(length).unwrap()]).unwrap();

    let mut log = Log::open(folder.path(), config(1 << 20)).unwrap();
    assert_eq!(log.append(&origin(0), &batch(0)).unwrap(), 0..ROWS as u64);
    log.sync().unwrap();
    drop(log);
    let log = Log::open(folder.path(), config(1 << 20)).unwrap();
    assert_eq!(log.reader().bounds(), (0, ROWS as u64));
    assert!(damaged(&log).is_empty(), "acknowledged rows stay");
    assert_eq!(log.recovery().notes, [""; 0]);
}

#[test]
fn a_segment_of_another_version_or_that_nothing_vouches_for_stays_foreign() {
    let (folder, log) = written(1 << 20);
    log.close().unwrap();
    let file = segments(folder.path()).pop().unwrap();
    let whole = fs::read(&file).unwrap();
    let start = u32::from_le_bytes(whole[12..16].try_into().unwrap()) as usize;
    let is_foreign = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let opened = Log::open(folder.path(), config(1 << 20));
        let is_foreign = matches!(opened, Err(LogError::Foreign { .. }));
        assert!(!is_foreign || fs::read(&file).unwrap() == bytes);
        is_foreign
    };
    let mut later = whole.clone();
    later[8] = 2;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&later[..40]), &later[48..start]);
    later[40..44].copy_from_slice(&crc.to_le_bytes());
    assert!(is_foreign(&later));

    let mut flipped = whole.clone();
    flipped[3] ^= 4;
    assert!(!is_foreign(&flipped), "the snapshot says whose it is");
    // It was not continued, and the new segment says whose it is, too.
    fs::remove_file(segments(folder.path()).pop().unwrap()).unwrap();
    fs::remove_file(folder.path().join("snapshot")).unwrap();
    assert!(is_foreign(&flipped));
    assert!(!is_foreign(&whole));
}

#[test]
fn a_file_named_after_an_impossible_offset_is_no_segment() {
    let (folder, log) = written(1 << 20);
    let next = log.next();
    log.close().unwrap();
    let file = segments(folder.path()).pop().unwrap();
    let last = folder.path().join(format!("{:020}.zlog", 1u64 << 63));
    fs::copy(&file, &last).unwrap();
    let log = Log::open(folder.path(), config(1 << 20)).unwrap();
    assert_eq!(log.next(), next);
    assert!(last.exists(), "it is not ours to remove");
}

#[test]
fn a_header_that_cannot_be_read_is_an_error_and_not_damage() {
    let (folder, log) = written(1500);
    log.close().unwrap();
    let path = segments(folder.path()).remove(0);
    let aside = folder.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    // A folder can be opened like a file, but not read.
    fs::create_dir(&path).unwrap();
    let opened = Log::open(folder.path(), config(1500));
    assert!(
        matches!(&opened, Err(LogError::Io { what: "read", path: named, .. }) if *named == path),
        "{opened:?}"
    );
    fs::remove_dir(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
    let log = Log::open(folder.path(), config(1500)).unwrap();
    assert!(log.recovery().damaged.is_empty() && damaged(&log).is_empty());
}

#[test]
fn the_header_of_a_segment_without_rows_is_rewritten() {
    let folder = folder();
    let log = Log::open(folder.path(), config(1500)).unwrap();
    let killed = copy(folder.path());
    drop(log);
    assert_eq!(written_again(killed.path(), 1500), [true]);
}

#[test]
fn a_frame_that_is_both_a_part_and_the_last_one_is_damage() {
    let (folder, log) = written(1 << 20);
    log.close().unwrap();
    let segment = segments(folder.path()).remove(0);
    let mut bytes = fs::read(&segment).unwrap();
    let begins: Vec<_> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(b"ZXF1"))
        .collect();
    assert_eq!(begins.len() as u64, FRAMES);
    let frame = &mut bytes[begins[1]..begins[2]];
    frame[80] |= 3;
    let header = u32::from_le_bytes(frame[12..16].try_into().unwrap()) as usize;
    let crc = crc32c::crc32c(&frame[8..header]);
    frame[4..8].copy_from_slice(&crc.to_le_bytes());
    fs::write(&segment, bytes).unwrap();
    let log = Log::open(folder.path(), config(1 << 20)).unwrap();
    let lost = ROWS as u64..2 * ROWS as u64;
    assert_eq!(damaged(&log), [lost]);
    assert_eq!(log.next(), TOTAL);
}
