//! A file with messages. Its first 16 bytes say where the file before it ends (8), that it is such a file (4), and have the
//! CRC-32C of both and of its number (4), all little-endian. So a file that is cut short between two messages is noticed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::NUMBER_MAX;
use super::record::{read_up_to, u64_at};

/// Where the first message is.
pub(super) const START: u64 = 16;

const NAME: &str = "segment-";
const KIND: &[u8; 4] = b"ZXSP";

/// See the module text.
pub(super) struct Segment {
    pub(super) number: u64,
    /// Open while it is the first or the last.
    pub(super) file: Option<File>,
    pub(super) end: u64,
    pub(super) messages: u64,
    /// Nothing more may be written there.
    pub(super) is_sealed: bool,
}

impl Segment {
    /// A new file.
    pub(super) fn open(number: u64, file: File) -> Segment {
        Segment {
            file: Some(file),
            is_sealed: false,
            ..Segment::closed(number)
        }
    }

    /// A file of an earlier socket.
    pub(super) fn closed(number: u64) -> Segment {
        Segment {
            number,
            file: None,
            end: START,
            messages: 0,
            is_sealed: true,
        }
    }
}

/// The finding at the start of a file.
pub(super) enum Start {
    /// Where the file before it ends.
    After(u64),
    /// Nothing was written.
    Unwritten,
    Damaged,
}

/// Begins the file with this number. `before` is where the one before it ends.
pub(super) fn begin(file: &File, number: u64, before: u64) -> io::Result<()> {
    file.write_all_at(&start(number, before), 0)
}

/// Reads the start of the file with this number.
pub(super) fn read_start(file: &File, number: u64) -> io::Result<Start> {
    let mut bytes = [0; START as usize];
    let length = read_up_to(file, &mut bytes, 0)?;
    let before = u64_at(&bytes, 0);
    if bytes == start(number, before) {
        return Ok(Start::After(before));
    }
    // Zeros are what a file system leaves for what it had not written.
    Ok(match length < bytes.len() || bytes == [0; START as usize] {
        true => Start::Unwritten,
        false => Start::Damaged,
    })
}

fn start(number: u64, before: u64) -> [u8; START as usize] {
    let mut bytes = [0; START as usize];
    bytes[..8].copy_from_slice(&before.to_le_bytes());
    bytes[8..12].copy_from_slice(KIND);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &number.to_le_bytes());
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(name(number))
}

fn name(number: u64) -> String {
    format!("{NAME}{number:010}")
}

/// The number of the segment with this name.
pub(super) fn number(name_given: &str) -> Option<u64> {
    let number = name_given.strip_prefix(NAME)?.parse().ok()?;
    (number <= NUMBER_MAX && name_given == name(number)).then_some(number)
}
