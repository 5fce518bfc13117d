//! The files of queues of messages on disk, opened after any damage. Checksums are corrected first if the input asks for that.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use zeroxide::fuzzing::Queues;
use zeroxide_proto::message::Message;

use super::{Parts, folder};
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "queues",
    about: "a socket's queues on disk, from any files",
    run,
    seeds,
    words: &[
        b"zeroxide spill 3\n",
        b"PUSH\n",
        b"kept\n",
        b"temporary\n",
        b"any peer\n",
        b"queue-0\n",
        b"queue-1\n",
        b"ZXSP",
    ],
    longest: 4000,
};

/// Files that an input may hold.
const COUNT_MAX: usize = 12;
/// Their kinds: a description, a cursor, the two marks, and a segment.
const ABOUT: u8 = 0;
const CURSOR: u8 = 1;
const FIRST: u8 = 2;
const SYNCED: u8 = 3;
const SEGMENT: u8 = 4;
const KINDS: u8 = 5;
/// Added to the kind of a file with right checksums.
const CORRECT: u8 = 0x80;
/// Added to the kind of a file of the second queue.
const SECOND: u8 = 0x40;

const PLACE: usize = 32;
const START: usize = 16;
const HEADER: usize = 16;

fn run(input: &[u8]) {
    let folder = folder();
    let dir = folder.path().join("spill");
    let mut parts = Parts(input);
    let taken = u64::from(parts.byte());
    unpack(parts, &dir);
    let before = files(&dir);
    guard::bounded_files(input.len(), || {
        let Ok(mut queues) = Queues::open(&dir) else {
            assert_eq!(files(&dir), before, "a refused folder has changed");
            return;
        };
        // Every message that was counted can be taken, now or after another opening.
        queues.take(taken).expect("the first messages");
        let message = Message::from(vec![7; 20]);
        queues.push(&message).expect("room for a message");
        let waiting = queues.messages();
        queues.close().expect("synced queues");
        let mut queues = Queues::open(&dir).expect("the folder can be opened again");
        assert_eq!(queues.messages(), waiting);
        queues.take(u64::MAX).expect("the other messages");
        assert_eq!(queues.messages(), 0);
    });
}

/// Writes the files of an input: for each its kind, its number, its length in two bytes, and its bytes.
fn unpack(mut parts: Parts<'_>, dir: &Path) {
    for _ in 0..COUNT_MAX {
        if parts.is_empty() {
            return;
        }
        let (kind, number) = (parts.byte(), number(parts.byte()));
        let length = parts.short();
        let mut bytes = parts.take(length).to_vec();
        let queue = dir.join(if kind & SECOND == 0 {
            "queue-0"
        } else {
            "queue-1"
        });
        fs::create_dir_all(&queue).expect("a folder");
        let what = (kind & !(CORRECT | SECOND)) % KINDS;
        if kind & CORRECT != 0 {
            correct(what, number, &mut bytes);
        }
        let name = match what {
            ABOUT => "about".to_owned(),
            CURSOR => "cursor".to_owned(),
            FIRST => format!("first-{number:010}"),
            SYNCED => format!("synced-{number:010}-{length}"),
            _ => format!("segment-{number:010}"),
        };
        // The marks are empty files.
        let bytes = if matches!(what, FIRST | SYNCED) {
            Vec::new()
        } else {
            bytes
        };
        fs::write(queue.join(name), bytes).expect("written");
    }
}

/// The number of a segment: a small one, or one of the largest.
fn number(byte: u8) -> u64 {
    match byte {
        0..250 => byte.into(),
        _ => u64::MAX - u64::from(u8::MAX - byte),
    }
}

fn correct(what: u8, number: u64, bytes: &mut Vec<u8>) {
    match what {
        ABOUT => bytes.extend(format!("{:08x}\n", crc32c::crc32c(bytes)).into_bytes()),
        CURSOR => bytes
            .chunks_exact_mut(PLACE)
            .for_each(|place| seal(place, 24)),
        SEGMENT if bytes.len() >= START => {
            let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &number.to_le_bytes());
            bytes[12..START].copy_from_slice(&crc.to_le_bytes());
            correct_records(&mut bytes[START..]);
        }
        _ => {}
    }
}

/// Corrects the checksums of consecutive records, as far as their lengths make sense.
fn correct_records(mut bytes: &mut [u8]) {
    while bytes.len() >= HEADER {
        let (header, rest) = bytes.split_at_mut(HEADER);
        let length = u64::from_le_bytes(header[..8].try_into().expect("eight bytes"));
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= rest.len());
        if let Some(length) = length {
            let crc = crc32c::crc32c(&rest[..length]);
            header[8..12].copy_from_slice(&crc.to_le_bytes());
        }
        seal(header, 12);
        let Some(length) = length else { return };
        bytes = &mut rest[length..];
    }
}

/// Sets the checksum of the bytes before it.
fn seal(bytes: &mut [u8], at: usize) {
    let crc = crc32c::crc32c(&bytes[..at]);
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// All files below a folder, without the one that says who has it.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = fs::read_dir(dir) else {
        return found;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.ends_with("LOCK") {
            let bytes = fs::read(&path).expect("a file");
            found.insert(path, bytes);
        }
    }
    found
}

/// Two queues with messages in two files, and one of which everything before the second file was read.
fn seeds() -> Vec<Vec<u8>> {
    let about = |queue: u8| {
        file(
            ABOUT,
            queue,
            0,
            format!("zeroxide spill 3\nPUSH\nkept\nany peer\nqueue-{queue}\n").as_bytes(),
        )
    };
    let place = |turn: u64, segment: u64, offset: u64| {
        [turn, segment, offset, 0].map(u64::to_le_bytes).concat()
    };
    let segment = |queue: u8, number: u8, before: u64| {
        let records = [record(&[b"one", b""]), record(&[b"two"])].concat();
        let start = [&before.to_le_bytes()[..], b"ZXSP\0\0\0\0", &records];
        file(SEGMENT, queue, number, &start.concat())
    };
    let end = (START + 2 * HEADER + 3 * 8 + 6) as u64;
    let whole = |queue: u8| {
        [
            about(queue),
            file(CURSOR, queue, 0, &place(1, 0, 16)),
            segment(queue, 0, 0),
            segment(queue, 1, end),
        ]
        .concat()
    };
    let read = [
        about(0),
        file(CURSOR, 0, 0, &place(2, 1, 16)),
        file(FIRST, 0, 1, b""),
        segment(0, 1, end),
    ]
    .concat();
    let synced = [whole(0), file(SYNCED, 0, 1, &vec![0; end as usize])].concat();
    let last = [
        about(0),
        file(CURSOR, 0, 0, &place(u64::MAX, u64::MAX - 1, 16)),
        file(FIRST, 0, 254, b""),
        segment(0, 254, end),
    ]
    .concat();
    let seeds = [whole(0), [whole(0), whole(1)].concat(), read, synced, last];
    let counts = seeds.iter().flat_map(|seed| [(0, seed), (3, seed)]);
    counts
        .map(|(taken, seed)| [&[taken][..], seed].concat())
        .collect()
}

/// A file as [`unpack`] reads it, whose checksums it corrects.
fn file(kind: u8, queue: u8, number: u8, bytes: &[u8]) -> Vec<u8> {
    let kind = kind | CORRECT | if queue == 0 { 0 } else { SECOND };
    let length = (bytes.len() as u16).to_le_bytes();
    [&[kind, number][..], &length, bytes].concat()
}

/// A record without its checksums.
fn record(parts: &[&[u8]]) -> Vec<u8> {
    let body: Vec<u8> = parts
        .iter()
        .flat_map(|part| [&(part.len() as u64).to_le_bytes()[..], part].concat())
        .collect();
    [&(body.len() as u64).to_le_bytes()[..], &[0; 8], &body].concat()
}
