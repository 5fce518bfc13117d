//! Offsets and numbers that no log reaches, with right checksums: they count as damage, and a log never gives its rows any.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Origin, Row};

const ROWS: u64 = 5;
/// The offset after the last row that a log can have.
const END: u64 = 1 << 62;
const TOO_HIGH: [u64; 4] = [END + 1, i64::MAX as u64, 1 << 63, u64::MAX];

fn batch(rows: u64) -> Batch {
    let mut builder = BatchBuilder::new();
    for _ in 0..rows {
        builder.push(Row::default()).unwrap();
    }
    builder.finish()
}

/// In memory where that is possible: a thousand copies are made.
fn folder_in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn open(folder: &Path) -> Log {
    Log::open(folder, LogConfig::default()).unwrap()
}

fn origin(first_seq: u64) -> Origin {
    Origin {
        producer: "p".into(),
        epoch: 1,
        first_seq,
        receive_time: 1,
    }
}

/// A log of two frames, both synced, with a snapshot.
fn written() -> TempDir {
    let folder = folder_in_memory();
    let mut log = open(folder.path());
    log.append_published("q", 1, 1, &[batch(ROWS)]).unwrap();
    log.append(&origin(0), &batch(ROWS)).unwrap();
    log.commit_group("g", 1).unwrap();
    log.sync().unwrap();
    log.close().unwrap();
    folder
}

fn segment(folder: &Path) -> PathBuf {
    folder.join(format!("{:020}.zlog", 0))
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// The rows that are appended now, of producers and queries, can be read by the next process.
fn check_new_rows(folder: &Path, what: &str) {
    let mut log = open(folder);
    let start = log.next();
    let seq = log.last_seq("p").map_or(0, |(_, seq)| seq + 1);
    log.append(&origin(seq), &batch(ROWS)).unwrap();
    let batch_id = log
        .published("q")
        .map_or(0, |last| last.batch.saturating_add(1));
    let rows = [batch(ROWS)];
    log.append_published("q", batch_id, 1, &rows).unwrap();
    log.sync().unwrap();
    let end = log.next();
    drop(log);
    let log = open(folder);
    assert_eq!(log.next(), end, "{what}");
    let fetched = log.reader().fetch(start, end, 1 << 20);
    let fetched = fetched.unwrap_or_else(|error| panic!("{what}: {error}"));
    let rows: usize = fetched.iter().map(|stored| stored.rows()).sum();
    assert_eq!(rows as u64, end - start, "{what}");
}

#[test]
fn a_mark_of_durable_rows_that_is_too_high_is_ignored() {
    for high in TOO_HIGH {
        let folder = written();
        let digits = format!("{high:020}");
        let text = format!("{digits} {:08x}\n", crc32c::crc32c(digits.as_bytes()));
        fs::write(folder.path().join("durable"), text).unwrap();
        assert_eq!(open(folder.path()).next(), 2 * ROWS, "{high}");
        check_new_rows(folder.path(), &format!("durable {high}"));
    }
}

#[test]
fn a_snapshot_with_a_number_that_is_too_high_is_damaged() {
    let folder = written();
    let path = folder.path().join("snapshot");
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    // Whatever the eight bytes are, a number or not.
    for at in 32..whole.len() - 7 {
        for high in TOO_HIGH {
            let mut bytes = whole.clone();
            put(&mut bytes, at, high);
            let crc = u64::from(crc32c::crc32c(&bytes[16..]));
            put(&mut bytes, 8, crc);
            fs::write(&path, bytes).unwrap();
            let log = open(folder.path());
            assert!(log.next() <= END, "byte {at}: {high}");
            refused += log.recovery().notes.len();
            drop(log);
            let copy = folder_in_memory();
            for entry in fs::read_dir(folder.path()).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
            check_new_rows(copy.path(), &format!("byte {at}: {high}"));
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_frame_with_an_offset_that_is_too_high_is_damaged() {
    // The offset of its first row, the sequence number of that row, and how many rows were on disk when it was written.
    for at in [24, 40, 72] {
        for high in TOO_HIGH {
            let folder = written();
            fs::remove_file(folder.path().join("snapshot")).unwrap();
            let path = segment(folder.path());
            let mut bytes = fs::read(&path).unwrap();
            let magic = |window: &[u8]| window == b"ZXF1";
            let frame = bytes.windows(4).rposition(magic).unwrap();
            if at == 40 && high <= i64::MAX as u64 - ROWS {
                continue;
            }
            put(&mut bytes, frame + at, high);
            let length = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let header = frame + length(frame + 12) as usize;
            let crc = crc32c::crc32c(&bytes[frame + 8..header]);
            bytes[frame + 4..frame + 8].copy_from_slice(&crc.to_le_bytes());
            fs::write(&path, bytes).unwrap();
            let log = open(folder.path());
            let damaged = &log.recovery().damaged;
            assert_eq!(damaged.len(), 1, "{at}, {high}: {damaged:?}");
            assert_eq!(damaged[0], ROWS..2 * ROWS, "{at}, {high}");
            assert_eq!(log.next(), 2 * ROWS, "{at}, {high}");
            drop(log);
            check_new_rows(folder.path(), &format!("byte {at} of a frame: {high}"));
        }
    }
}

#[test]
fn the_last_offset_is_not_passed() {
    let folder = written();
    let first = END - ROWS;
    let mut bytes = fs::read(segment(folder.path())).unwrap();
    let start = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    bytes.truncate(start);
    put(&mut bytes, 32, first);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..40]), &bytes[48..]);
    put(&mut bytes, 40, crc.into());
    let folder = folder_in_memory();
    fs::write(folder.path().join(format!("{first:020}.zlog")), bytes).unwrap();
    let mut log = open(folder.path());
    let refused = |result: Result<_, LogError>| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("use another folder"), "{text}");
        assert!(text.contains(&*folder.path().to_string_lossy()), "{text}");
    };
    refused(log.append(&origin(0), &batch(ROWS + 1)));
    let parts = [batch(1), batch(ROWS)];
    refused(
        log.append_published("q", 1, 1, &parts)
            .map(|done| done.range),
    );
    assert_eq!(log.next(), first, "no row of the two is in the log");
    log.append(&origin(0), &batch(ROWS)).unwrap();
    refused(log.append(&origin(ROWS), &batch(1)));
    log.sync().unwrap();
    drop(log);
    let log = open(folder.path());
    assert_eq!(log.reader().bounds(), (first, END));
    let fetched = log.reader().fetch(first, END, 1 << 20).unwrap();
    assert_eq!(fetched.len(), 1);
}

#[test]
fn the_last_sequence_number_is_not_passed() {
    let folder = written();
    let mut log = open(folder.path());
    let last = i64::MAX as u64;
    let error = log.append(&origin(last), &batch(1)).unwrap_err();
    assert!(error.to_string().contains("sequence numbers"), "{error}");
    log.append(&origin(last - 1), &batch(1)).unwrap();
}
