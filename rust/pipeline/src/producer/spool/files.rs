//! The small files of a spool: the name of its producer, and the sequence numbers of its rows. Each contains its text
//! twice, with checksums, so that a flipped bit changes nothing.

use std::io::{self, Write};
use std::path::Path;

use zeroxide_log::{LogError, disk, private};

use crate::producer::window::Numbers;
use crate::wire::LogId;

/// The file of sequence numbers.
pub(super) const NUMBERS: &str = "base";
const NAME: &str = "producer";

/// The contents of the file of numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Nothing,
    Numbers(Numbers),
    Damaged,
}

pub(super) fn read_numbers(dir: &Path) -> Result<Kept, LogError> {
    let path = dir.join(NUMBERS);
    match disk::read(&path) {
        Ok(bytes) => Ok(match parse_numbers(&bytes) {
            Some(numbers) => Kept::Numbers(numbers),
            None => Kept::Damaged,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept::Nothing),
        Err(source) => Err(LogError::Io {
            what: "read",
            path,
            source,
        }),
    }
}

pub(super) fn write_numbers(dir: &Path, numbers: &Numbers) -> io::Result<()> {
    let epochs = numbers.epochs.iter().flatten();
    let epochs: String = epochs.map(|epoch| format!(" {epoch}")).collect();
    let hex = |id: LogId| format!("{:032x}", u128::from_be_bytes(id));
    let log_id = numbers.log_id.map_or("-".to_owned(), hex);
    let Numbers {
        base, since, end, ..
    } = numbers;
    let last_epoch = numbers.last_epoch.map(|epoch| format!("/{epoch}"));
    let last_epoch = last_epoch.unwrap_or_default();
    let text = format!("{base} {since} {end}{last_epoch} {log_id}{epochs}");
    write_twice(&dir.join(NUMBERS), &text)
}

fn parse_numbers(bytes: &[u8]) -> Option<Numbers> {
    let Some(text) = read_twice(bytes) else {
        // The format of an earlier version, without epochs.
        let base = str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
        return Some(Numbers {
            base: base.parse().ok()?,
            ..Numbers::default()
        });
    };
    let mut words = text.split(' ');
    let (base, since) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    // Earlier versions did not record the epoch.
    let end = words.next()?;
    let (end, last_epoch) = match end.split_once('/') {
        Some((end, epoch)) => (end, Some(epoch.parse().ok()?)),
        None => (end, None),
    };
    let end = end.parse().ok()?;
    let log_id = match words.next()? {
        "-" => None,
        digits => Some(u128::from_str_radix(digits, 16).ok()?.to_be_bytes() as LogId),
    };
    let epochs: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    Some(Numbers {
        base,
        since,
        end,
        last_epoch,
        log_id,
        epochs: Some(epochs?),
    })
}

/// The producer's name for the spool's rows, which its first producer has recorded. Fails if `wanted` is another name.
pub(crate) fn name_of(dir: &Path, wanted: Option<&str>, fresh: &str) -> io::Result<String> {
    private::make_folder(dir)?;
    let path = dir.join(NAME);
    let bytes = match disk::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = wanted.unwrap_or(fresh);
            write_twice(&path, name)?;
            return Ok(name.to_owned());
        }
        Err(error) => return Err(error),
    };
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
    // The format of an earlier version: the name alone.
    let alone = || Some(str::from_utf8(&bytes).ok()?.strip_suffix('\n')?.to_owned());
    let kept = read_twice(&bytes).or_else(|| alone().filter(|name| !name.contains('\n')));
    match (kept, wanted) {
        (Some(kept), Some(wanted)) if wanted != kept => Err(invalid(format!(
            "the spool {} belongs to producer {kept:?}, not {wanted:?}: use another folder, or that name",
            dir.display()
        ))),
        (Some(kept), _) => Ok(kept),
        (None, _) => Err(invalid(format!(
            "{} is damaged: write the name of the producer into it, and nothing else",
            path.display()
        ))),
    }
}

/// Reads the text of a file that [`write_twice`] wrote.
pub(super) fn read_twice(bytes: &[u8]) -> Option<String> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.into_iter().find_map(|line| {
        let text = str::from_utf8(line).ok()?;
        let (crc, text) = text.split_at_checked(9)?;
        let is_right = crc == format!("{:08x} ", crc32c::crc32c(text.as_bytes()));
        is_right.then(|| text.to_owned())
    })
}

/// Replaces a file atomically with a line, written twice.
pub(super) fn write_twice(path: &Path, text: &str) -> io::Result<()> {
    let line = format!("{:08x} {text}\n", crc32c::crc32c(text.as_bytes()));
    // The empty line separates the copies even if the line end of the first one is damaged.
    write_whole(path, format!("{line}\n{line}").as_bytes())
}

/// Replaces a file atomically.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let mut file = private::new_file().truncate(true).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    disk::rename(&fresh, path)?;
    match path.parent() {
        Some(parent) => disk::sync_folder(parent),
        None => Ok(()),
    }
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_bit_that_flips_changes_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let numbers = Numbers {
            base: -5,
            since: 7,
            end: 2,
            last_epoch: Some(1_780_000_000_000_000),
            epochs: Some(vec![1_790_000_000_000_000, 3]),
            log_id: Some([7; 16]),
        };
        write_numbers(dir.path(), &numbers).expect("written");
        name_of(dir.path(), Some("p"), "").expect("written");
        for name in [NUMBERS, NAME] {
            let whole = fs::read(dir.path().join(name)).expect("there");
            for bit in 0..whole.len() * 8 {
                let mut bytes = whole.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                fs::write(dir.path().join(name), bytes).expect("written");
                let kept = read_numbers(dir.path()).expect("readable");
                assert_eq!(kept, Kept::Numbers(numbers.clone()), "bit {bit} of {name}");
                assert_eq!(name_of(dir.path(), None, "").expect("readable"), "p");
            }
            fs::write(dir.path().join(name), whole).expect("written");
        }
    }

    #[test]
    fn files_of_earlier_versions_can_be_read() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(read_numbers(dir.path()).expect("readable"), Kept::Nothing);
        fs::write(dir.path().join(NUMBERS), "42\n").expect("written");
        let numbers = Numbers {
            base: 42,
            ..Numbers::default()
        };
        assert_eq!(
            read_numbers(dir.path()).expect("readable"),
            Kept::Numbers(numbers)
        );
        write_twice(&dir.path().join(NUMBERS), "-5 7 2 - 3 4").expect("written");
        let numbers = Numbers {
            base: -5,
            since: 7,
            end: 2,
            epochs: Some(vec![3, 4]),
            ..Numbers::default()
        };
        assert_eq!(
            read_numbers(dir.path()).expect("readable"),
            Kept::Numbers(numbers)
        );
        fs::write(dir.path().join(NAME), "sensor 7\n").expect("written");
        assert_eq!(name_of(dir.path(), None, "").expect("readable"), "sensor 7");
        fs::write(dir.path().join(NUMBERS), "4x\n").expect("written");
        assert_eq!(read_numbers(dir.path()).expect("readable"), Kept::Damaged);
    }
}
