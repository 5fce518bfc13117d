//! Corpora: a file per target, with one input per line, in which bytes are escaped as in Rust.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder of the committed corpora.
pub fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The inputs in the corpus of a target; none if there is no such file.
///
/// # Errors
/// The system's errors, and a line that is not escaped bytes.
pub fn load(folder: &Path, target: &str) -> io::Result<Vec<Vec<u8>>> {
    let text = match fs::read_to_string(path(folder, target)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the corpus of {target}"),
        )
    };
    text.lines()
        .map(|line| unescape(line).ok_or_else(wrong))
        .collect()
}

/// Replaces the corpus of a target.
///
/// # Errors
/// The system's.
pub fn save(folder: &Path, target: &str, inputs: &[Vec<u8>]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = io::BufWriter::new(fs::File::create(path(folder, target))?);
    inputs
        .iter()
        .try_for_each(|input| writeln!(file, "{}", input.escape_ascii()))?;
    file.flush()
}

fn path(folder: &Path, target: &str) -> PathBuf {
    folder.join(format!("{target}.corpus"))
}

fn unescape(line: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(line.len());
    let mut left = line.bytes();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'\\' => match left.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let digits = [left.next()?, left.next()?];
                    u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
                }
                other => other,
            },
            other => other,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let inputs = vec![Vec::new(), (0..=255).collect(), b"\\x41\"'\n".to_vec()];
        save(folder.path(), "some", &inputs).expect("written");
        assert_eq!(load(folder.path(), "some").expect("read"), inputs);
        assert!(load(folder.path(), "other").expect("read").is_empty());
        assert_eq!(unescape("\\x4"), None);
    }
}
