//! The file that says whose messages a queue has. Its last line is the CRC-32C of the others.

use std::io::{self, Read, Write};
use std::path::Path;

use super::{damaged, existing_file, new_file, queue_name};

pub(super) const NAME: &str = "about";
const VERSION: &str = "zeroxide spill 3";

/// More than any file of this kind has.
const SIZE_MAX: u64 = 64 << 10;

/// See the module text.
pub(super) struct About {
    /// The socket type and the wire protocol that wrote the messages. It is one line.
    pub(super) owner: String,
    pub(super) is_kept: bool,
    /// Whose messages they are; `None` if they are for any peer.
    pub(super) name: Option<Vec<u8>>,
}

impl About {
    /// Creates the file for the queue with this number.
    pub(super) fn create(&self, dir: &Path, number: u64) -> io::Result<()> {
        let mut file = new_file().open(dir.join(NAME))?;
        file.write_all(self.text(number).as_bytes())
    }

    fn text(&self, number: u64) -> String {
        let fate = if self.is_kept { "kept" } else { "temporary" };
        let name = self.name.as_deref();
        let name = name.map_or("any peer".to_owned(), hex);
        let queue = queue_name(number);
        let text = format!("{VERSION}\n{}\n{fate}\n{name}\n{queue}\n", self.owner);
        format!("{text}{}\n", checksum(&text))
    }

    /// Reads the file of the queue with this number. `None` if its creation was interrupted.
    ///
    /// # Errors
    /// The system's, and `InvalidData` if the file has another content, or is that of another queue.
    pub(super) fn read(dir: &Path, number: u64) -> io::Result<Option<About>> {
        let path = dir.join(NAME);
        let mut text = Vec::new();
        let file = existing_file().open(&path)?;
        file.take(SIZE_MAX).read_to_end(&mut text)?;
        // Zeros are what a file system leaves for what it had not written.
        if text.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let text = String::from_utf8(text).unwrap_or_default();
        let lines: Vec<_> = text.split('\n').collect();
        match lines[..] {
            [part] if !part.is_empty() && VERSION.starts_with(part) => Ok(None),
            [
                VERSION,
                owner,
                fate @ ("kept" | "temporary"),
                name,
                queue,
                crc,
                "",
            ] if crc == checksum(&text[..text.len() - crc.len() - 1]) => {
                // Its messages would be sent twice.
                if queue != queue_name(number) {
                    let what = format!("is that of {queue}, so the folder is a copy");
                    return Err(damaged(&path, &what));
                }
                let name = match name {
                    "any peer" => None,
                    digits => Some(unhex(digits).ok_or_else(|| damaged(&path, "is damaged"))?),
                };
                Ok(Some(About {
                    owner: owner.to_owned(),
                    is_kept: fate == "kept",
                    name,
                }))
            }
            [VERSION, ..] if lines.len() < 7 => Ok(None),
            [VERSION, ..] => Err(damaged(&path, "is damaged")),
            [version, ..] if version.starts_with("zeroxide spill ") => {
                Err(damaged(&path, "is of another version of zeroxide"))
            }
            _ => Err(damaged(&path, "is damaged, or not a file of zeroxide")),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let byte = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
}
