//! The files of a log, opened after any damage. Checksums of files are corrected first if the input asks for that.

use std::fs;
use std::path::Path;

use zeroxide_log::{Log, LogConfig, LogError, Origin};

use super::{Parts, batch, folder};
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "log",
    about: "recovery of a log from any files",
    run,
    seeds,
    words: &[b"ZXF1", b"ZXLOG\r\n\x01", b"ZXSNAP\x02\0", b"ZXSNAP\x01\0"],
    longest: 12_000,
};

/// The files that an input may hold, besides segments.
const FILES: [&str; 4] = ["snapshot", "durable", "generations", "owners"];
/// Files that an input may hold.
const COUNT_MAX: usize = 8;

/// The positions in a frame of its own checksum, its length, the length of its header, and the checksum of the rest.
const HEADER_CRC: usize = 4;
const LENGTH: usize = 8;
const HEADER_LENGTH: usize = 12;
const BODY_CRC: usize = 16;

/// Writes the files of an input: for each its name, its length in three bytes, and its bytes. The highest bit of a name
/// asks for correct checksums.
pub(super) fn unpack(mut parts: Parts<'_>, dir: &Path) {
    for _ in 0..COUNT_MAX {
        if parts.is_empty() {
            return;
        }
        let kind = parts.byte();
        let name = match usize::from(kind & 0x7f) {
            at if at < FILES.len() => FILES[at].to_owned(),
            at => format!("{:020}.zlog", (at - FILES.len()) * 3),
        };
        let length = parts.short() + (usize::from(parts.byte()) << 16);
        let mut bytes = parts.take(length).to_vec();
        if kind & 0x80 != 0 {
            correct(&name, &mut bytes);
        }
        fs::write(dir.join(name), bytes).expect("written");
    }
}

fn correct(name: &str, bytes: &mut [u8]) {
    match name {
        "snapshot" if bytes.len() >= 16 => {
            let crc = u64::from(crc32c::crc32c(&bytes[16..]));
            bytes[8..16].copy_from_slice(&crc.to_le_bytes());
        }
        name if name.ends_with(".zlog") => {
            let start = number(bytes, 12).min(bytes.len());
            if start >= 48 {
                let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..40]), &bytes[48..start]);
                bytes[40..44].copy_from_slice(&crc.to_le_bytes());
                correct_frames(&mut bytes[start..]);
            }
        }
        _ => {}
    }
}

/// Corrects the checksums of consecutive frames, as far as their lengths make sense.
pub(super) fn correct_frames(mut bytes: &mut [u8]) {
    loop {
        let (length, header) = (number(bytes, LENGTH), number(bytes, HEADER_LENGTH));
        if header < 20 || length < header || length > bytes.len() {
            return;
        }
        let (frame, rest) = bytes.split_at_mut(length);
        let body = crc32c::crc32c(&frame[header..]);
        frame[BODY_CRC..BODY_CRC + 4].copy_from_slice(&body.to_le_bytes());
        let own = crc32c::crc32c(&frame[LENGTH..header]);
        frame[HEADER_CRC..HEADER_CRC + 4].copy_from_slice(&own.to_le_bytes());
        bytes = rest;
    }
}

fn number(bytes: &[u8], at: usize) -> usize {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word) as usize)
}

fn run(input: &[u8]) {
    let folder = folder();
    unpack(Parts(input), folder.path());
    let config = LogConfig {
        segment_bytes: 2000,
        retention_bytes: Some(1 << 20),
        ..LogConfig::default()
    };
    let opened = guard::bounded_files(input.len(), || {
        let log = Log::open(folder.path(), config.clone())?;
        read(&log);
        Ok::<_, LogError>(log)
    });
    let Ok(mut log) = opened else { return };
    let (earliest, next) = (log.earliest(), log.next());
    assert!(earliest <= next);
    let _ = (
        log.groups(),
        log.last_seq("p"),
        log.writers("p"),
        log.published("q"),
    );
    let rows = &batch::samples()[1];
    let appended = log.append(&Origin::plain(7), rows);
    if let Ok(range) = &appended {
        assert!(range.start >= next, "an offset that was assigned before");
        let is_synced = log.sync().is_ok();
        let _ = log.save();
        drop(log);
        // What one opening has written, the next one can read.
        let log = Log::open(folder.path(), config).expect("the log can be opened again");
        if is_synced {
            assert!(log.next() >= range.end);
            let fetched = log
                .reader()
                .fetch(range.start, range.end, 1 << 20)
                .expect("synced rows");
            let values = fetched.iter().map(|stored| stored.rows()).sum::<usize>();
            assert_eq!(values, rows.rows());
        }
    }
}

/// Reads all rows, and skips damage.
fn read(log: &Log) {
    let reader = log.reader();
    let (mut at, end) = reader.bounds();
    let _ = (
        reader.offset_at(3),
        reader.offset_after(at, 100),
        reader.generations(),
    );
    for _ in 0..64 {
        if at >= end {
            return;
        }
        match reader.fetch(at, end, 700) {
            Ok(frames) => {
                assert!(!frames.is_empty(), "nothing at {at} of {end}");
                for stored in frames {
                    assert!(stored.end > at, "no progress at {at}");
                    batch::touch(&stored.batch);
                    at = stored.end;
                }
            }
            Err(LogError::Corrupt { end: behind, .. }) => {
                assert!(behind > at, "no progress at {at}");
                at = behind;
            }
            Err(_) => return,
        }
    }
}

/// The files of a log with several segments, a snapshot, a group and a transaction.
pub(super) fn written() -> Vec<(String, Vec<u8>)> {
    let folder = folder();
    let config = LogConfig {
        segment_bytes: 2000,
        ..LogConfig::default()
    };
    let mut log = Log::open(folder.path(), config).expect("a new log");
    for (at, rows) in batch::samples()[..3].iter().enumerate() {
        let origin = Origin {
            producer: "p".into(),
            epoch: 1,
            first_seq: at as u64 * 10,
            receive_time: 1000,
        };
        log.append(&origin, rows).expect("appended");
        log.sync().expect("synced");
    }
    log.append_published("q", 1, 7, &batch::samples()[..2])
        .expect("published");
    log.commit_group("g", 2).expect("committed");
    log.save().expect("saved");
    log.append(&Origin::plain(9), &batch::samples()[0])
        .expect("appended");
    log.sync().expect("synced");
    drop(log);
    files(folder.path())
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir).expect("a folder");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().expect("a name in ASCII");
            let bytes = fs::read(entry.path()).expect("a file");
            (name, bytes)
        })
        .collect();
    files.sort();
    files
}

/// Packs files as [`unpack`] reads them, and leaves out others.
pub(super) fn pack(files: &[(String, Vec<u8>)], flag: u8) -> Vec<u8> {
    let mut packed = Vec::new();
    for (name, bytes) in files {
        let kind = match FILES.iter().position(|known| known == name) {
            Some(at) => at,
            None => match name
                .strip_suffix(".zlog")
                .and_then(|digits| digits.parse::<usize>().ok())
            {
                Some(first) if first % 3 == 0 && first < 360 => FILES.len() + first / 3,
                _ => continue,
            },
        };
        packed.push(kind as u8 | flag);
        packed.extend_from_slice(&(bytes.len() as u32).to_le_bytes()[..3]);
        packed.extend_from_slice(bytes);
    }
    packed
}

fn seeds() -> Vec<Vec<u8>> {
    let files = written();
    let segments: Vec<_> = files
        .iter()
        .filter(|(name, _)| name.ends_with("zlog"))
        .cloned()
        .collect();
    vec![
        pack(&files, 0),
        pack(&files, 0x80),
        pack(&segments, 0x80),
        pack(&segments[..1], 0x80),
    ]
}
