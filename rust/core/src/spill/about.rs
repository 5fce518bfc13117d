//! The file that says whose messages a queue has.

use std::io::{self, Read, Write};
use std::path::Path;

use super::{damaged, existing_file, new_file};

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
    /// Creates the file.
    pub(super) fn create(&self, dir: &Path) -> io::Result<()> {
        let mut file = new_file().open(dir.join(NAME))?;
        file.write_all(self.text().as_bytes())
    }

    fn text(&self) -> String {
        let fate = if self.is_kept { "kept" } else { "temporary" };
        let name = self.name.as_deref();
        let name = name.map_or("any peer".to_owned(), hex);
        format!("{VERSION}\n{}\n{fate}\n{name}\n", self.owner)
    }

    /// Reads the file. `None` if its creation was interrupted.
    ///
    /// # Errors
    /// The system's, and `InvalidData` if the file has another content.
    pub(super) fn read(dir: &Path) -> io::Result<Option<About>> {
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
            [VERSION, owner, fate @ ("kept" | "temporary"), name, ""] => {
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
            [VERSION, ..] if lines.len() < 5 => Ok(None),
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
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}
