//! The file that says how far a kept queue was read. It has two places, which are written in turn, so that a write that
//! is cut short leaves the other one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::new_file;
use super::record::{u32_at, u64_at};

pub(super) const NAME: &str = "cursor";
const PLACE: usize = 32;

/// See the module text.
pub(super) struct Cursor {
    file: File,
    /// The number of times it was written.
    turn: u64,
}

impl Cursor {
    /// Opens or creates the file. Returns the segment and the offset in it of the first message that was not read.
    pub(super) fn open(dir: &Path) -> io::Result<(Cursor, Option<(u64, u64)>)> {
        let file = new_file().truncate(false).open(dir.join(NAME))?;
        let mut bytes = [0; 2 * PLACE];
        let length = read_up_to(&file, &mut bytes, 0)?;
        let places = bytes[..length].chunks_exact(PLACE);
        let newest = places
            .filter(|place| {
                crc32c::crc32c(&place[..24]) == u32_at(place, 24) && u64_at(place, 0) > 0
            })
            .max_by_key(|place| u64_at(place, 0));
        let turn = newest.map_or(0, |place| u64_at(place, 0));
        let position = newest.map(|place| (u64_at(place, 8), u64_at(place, 16)));
        Ok((Cursor { file, turn }, position))
    }

    /// Records the position.
    pub(super) fn write(&mut self, segment: u64, offset: u64) -> io::Result<()> {
        self.turn += 1;
        let mut place = [0; PLACE];
        place[..8].copy_from_slice(&self.turn.to_le_bytes());
        place[8..16].copy_from_slice(&segment.to_le_bytes());
        place[16..24].copy_from_slice(&offset.to_le_bytes());
        let crc = crc32c::crc32c(&place[..24]);
        place[24..28].copy_from_slice(&crc.to_le_bytes());
        let at = (self.turn % 2) * PLACE as u64;
        self.file.write_all_at(&place, at)
    }
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_up_to(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], at + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
