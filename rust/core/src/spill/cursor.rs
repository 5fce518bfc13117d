//! The file that says how far a kept queue was read. It has two places, which are written in turn, so that a write that
//! is cut short leaves the other one. Both are written when the file is made: a full disk has room for what replaces them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::record::{read_up_to, u32_at, u64_at};
use super::segment::START;
use super::{NUMBER_MAX, damaged, existing_file, new_file};

pub(super) const NAME: &str = "cursor";
const PLACE: usize = 32;

/// The segment, and the offset in it, of the first message that was not read.
pub(super) type Position = (u64, u64);

/// See the module text.
pub(super) struct Cursor {
    /// `None` until the next write.
    file: Option<File>,
    /// The number of the newest place.
    turn: u64,
}

impl Cursor {
    /// Creates the file for a queue of which nothing was read.
    pub(super) fn create(dir: &Path) -> io::Result<Cursor> {
        let file = new_file().open(dir.join(NAME))?;
        let mut bytes = [0; 2 * PLACE];
        bytes[PLACE..].copy_from_slice(&place(1, (0, START)));
        file.write_all_at(&bytes, 0)?;
        Ok(Cursor {
            file: Some(file),
            turn: 1,
        })
    }

    /// Reads the file. The position is `None` if it is empty or has only zeros: the file system had not written it when the
    /// machine stopped. Once a socket has closed, it cannot be so, because it was synced then.
    ///
    /// # Errors
    /// The system's, and `InvalidData` if no position is left in the file.
    pub(super) fn open(dir: &Path) -> io::Result<(Cursor, Option<Position>)> {
        let path = dir.join(NAME);
        let file = existing_file().open(&path)?;
        let mut bytes = [0; 2 * PLACE];
        let length = read_up_to(&file, &mut bytes, 0)?;
        let places = bytes[..length].chunks_exact(PLACE);
        let newest = places
            .filter(|place| {
                crc32c::crc32c(&place[..24]) == u32_at(place, 24) && u64_at(place, 8) <= NUMBER_MAX
            })
            // Turns may wrap around.
            .max_by_key(|place| u64_at(place, 0).wrapping_sub(u64_at(&bytes, 0)) as i64);
        if newest.is_none() && bytes.iter().any(|byte| *byte != 0) {
            let what = "is damaged, so that messages could be sent again";
            return Err(damaged(&path, what));
        }
        let cursor = Cursor {
            file: None,
            turn: newest.map_or(0, |place| u64_at(place, 0)),
        };
        let position = newest.map(|place| (u64_at(place, 8), u64_at(place, 16)));
        Ok((cursor, position))
    }

    /// Records the position. After an error, the next call writes to the same place, because the other one is whole.
    pub(super) fn write(&mut self, dir: &Path, position: Position) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(existing_file().create(true).open(dir.join(NAME))?),
        };
        let turn = self.turn.wrapping_add(1);
        file.write_all_at(&place(turn, position), (turn % 2) * PLACE as u64)?;
        self.turn = turn;
        Ok(())
    }

    /// Whether the next write opens the file.
    pub(super) fn is_resting(&self) -> bool {
        self.file.is_none()
    }

    /// Closes the file until the next write.
    pub(super) fn rest(&mut self) {
        self.file = None;
    }

    /// Writes to this file from now on.
    #[cfg(test)]
    pub(super) fn set_file(&mut self, file: File) {
        self.file = Some(file);
    }
}

fn place(turn: u64, (segment, offset): Position) -> [u8; PLACE] {
    let mut place = [0; PLACE];
    place[..8].copy_from_slice(&turn.to_le_bytes());
    place[8..16].copy_from_slice(&segment.to_le_bytes());
    place[16..24].copy_from_slice(&offset.to_le_bytes());
    let crc = crc32c::crc32c(&place[..24]);
    place[24..28].copy_from_slice(&crc.to_le_bytes());
    place
}
