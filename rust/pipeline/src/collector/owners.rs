//! Records which key owns which producer name.
//!
//! ```text
//! a record    0 crc of the rest    4 length of the name    6 length of the key    8 name, key
//! ```
//!
//! Records are appended, and the last one of a name counts. A record is not synced, because the serving thread would
//! have to wait for the sync, as it does when the file is rewritten. A power cut may therefore free the most recent names for the next client that uses them.
//! A name that changes hands gets another record, so the file is rewritten when most records do not count any more.
//! An incomplete record at the end is cut off. Earlier damage is skipped and reported, and stays in the file, which is not
//! rewritten then.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroxide_log::disk::{self, File, FileExt};
use zeroxide_log::{Place, private};

const NAME: &str = "owners";
const NEW_NAME: &str = "owners.new";

/// The maximum number of owned names, equal to the number of producers that the log remembers.
const NAMES_MAX: usize = 1_000_000;

/// The maximum number of names of one key, so that one client cannot take all of them.
const NAMES_OF_KEY_MAX: usize = 100_000;

/// The number of records for each name from which on the file is rewritten.
const RECORDS_PER_NAME: usize = 4;

/// The number of records below which the file is not worth rewriting.
const RECORDS_MIN: usize = 1024;

/// The word of a note for bytes that are no record.
const DAMAGED: &str = "are damaged";

/// The maximum length of a name and of a key.
const TEXT_MAX: usize = 255;

/// The maximum length of a record.
const RECORD_MAX: usize = 8 + 2 * TEXT_MAX;

/// See the module text.
#[derive(Debug)]
pub(super) struct Owners {
    file: File,
    dir: PathBuf,
    /// The folder itself. Another log may have one of its name by now.
    place: Place,
    /// Irregularities of the file, in words.
    pub notes: Vec<String>,
    /// The position of the next record.
    length: u64,
    /// Whether there are bytes in the file that are no record.
    is_damaged: bool,
    /// The number of records in the file.
    records: usize,
    /// The number of records from which on to rewrite the file.
    rewrite_at: usize,
    by_name: HashMap<Box<str>, Arc<str>>,
    counts: HashMap<Arc<str>, usize>,
}

/// The owner of a name, from the view of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// The client's key.
    Theirs,
    /// Another key.
    Others,
    /// No key, because the limit of names is reached.
    TooMany,
}

impl Owners {
    /// Loads the records of a folder.
    pub fn open(dir: &Path) -> io::Result<Owners> {
        let path = dir.join(NAME);
        let bytes = match disk::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let file = private::new_file().truncate(false).open(&path)?;
        let mut owners = Owners {
            file,
            dir: dir.to_owned(),
            place: Place::of(dir)?,
            notes: Vec::new(),
            length: bytes.len() as u64,
            is_damaged: false,
            records: 0,
            rewrite_at: RECORDS_MIN,
            by_name: HashMap::new(),
            counts: HashMap::new(),
        };
        let mut left = &bytes[..];
        while !left.is_empty() {
            if let Some((name, key, rest)) = parse(left) {
                owners.note(name, key);
                owners.records += 1;
                left = rest;
                continue;
            }
            let at = bytes.len() - left.len();
            let next = (1..left.len()).find(|skip| parse(&left[*skip..]).is_some());
            let (skipped, what) = match next {
                Some(skipped) => (skipped, DAMAGED),
                None if is_cut_off(left) => {
                    owners.length = at as u64;
                    owners.file.set_len(owners.length)?;
                    (left.len(), "were half a record, and are gone")
                }
                None if left.len() <= RECORD_MAX => (left.len(), DAMAGED),
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!(
                            "{}, the list of producer names' owners, is damaged from byte {at} to its end: restore a copy, \
                             or remove it, after which each name belongs to the first key that uses it",
                            path.display()
                        ),
                    ));
                }
            };
            owners.is_damaged |= what == DAMAGED;
            owners.notes.push(format!(
                "{}: {skipped} bytes at {at} {what}: the owners of their names are unknown, and each name belongs to the first key that uses it",
                path.display()
            ));
            left = &left[skipped..];
        }
        Ok(owners)
    }

    /// Gives a name to a key, unless another key owns it and `take_away` is false.
    pub fn take(&mut self, name: &str, key: &str, take_away: bool) -> io::Result<Take> {
        match self.by_name.get(name) {
            Some(owner) if **owner == *key => return Ok(Take::Theirs),
            Some(_) if !take_away => return Ok(Take::Others),
            _ => {}
        }
        let own = self.counts.get(key).copied().unwrap_or_default();
        if self.by_name.len() >= NAMES_MAX || own >= NAMES_OF_KEY_MAX {
            return Ok(Take::TooMany);
        }
        let record = record(name, key)?;
        // At the end of the last record, overwriting the remains of a failed write.
        self.file.write_all_at(&record, self.length)?;
        self.length += record.len() as u64;
        self.records += 1;
        self.note(name, key);
        let most = RECORDS_PER_NAME * self.by_name.len();
        if self.records >= self.rewrite_at.max(most) && !self.is_damaged {
            let before = self.records;
            // If this fails, the file only stays longer. As each attempt takes time, the next one comes late.
            self.rewrite_at = match self.rewrite() {
                Ok(()) => RECORDS_MIN,
                Err(_) => 2 * before,
            };
        }
        Ok(Take::Theirs)
    }

    /// Replaces the file by one with a record for each name. Synced, because a power cut could otherwise leave an empty file.
    fn rewrite(&mut self) -> io::Result<()> {
        self.place.check().map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        for (name, key) in &self.by_name {
            bytes.extend(record(name, key)?);
        }
        let fresh = self.dir.join(NEW_NAME);
        let file = private::new_file().truncate(true).open(&fresh)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_all()?;
        disk::rename(&fresh, self.dir.join(NAME))?;
        self.file = file;
        self.length = bytes.len() as u64;
        self.records = self.by_name.len();
        // Without this sync, a power cut may bring back the old file, which has the earlier owners.
        disk::sync_folder(&self.dir)
    }

    fn note(&mut self, name: &str, key: &str) {
        let known = self.counts.get_key_value(key).map(|(key, _)| key.clone());
        let key: Arc<str> = known.unwrap_or_else(|| key.into());
        *self.counts.entry(key.clone()).or_default() += 1;
        let before = self.by_name.insert(name.into(), key);
        if let Some(count) = before.and_then(|before| self.counts.get_mut(&before)) {
            *count -= 1;
        }
    }
}

/// The record that gives a name to a key.
fn record(name: &str, key: &str) -> io::Result<Vec<u8>> {
    let mut rest = Vec::with_capacity(4 + name.len() + key.len());
    for text in [name, key] {
        if text.len() > TEXT_MAX {
            return Err(io::Error::other("a name or a key is too long"));
        }
        let length = u16::try_from(text.len()).map_err(io::Error::other)?;
        rest.write_all(&length.to_le_bytes())?;
    }
    rest.extend_from_slice(name.as_bytes());
    rest.extend_from_slice(key.as_bytes());
    let mut record = crc32c::crc32c(&rest).to_le_bytes().to_vec();
    record.append(&mut rest);
    Ok(record)
}

/// Whether bytes without a record are an incomplete one, or zeros left by a power cut.
fn is_cut_off(bytes: &[u8]) -> bool {
    let is_begun = match bytes.get(4..8) {
        Some(&[a, b, c, d]) => {
            let lengths = [[a, b], [c, d]].map(|length| usize::from(u16::from_le_bytes(length)));
            bytes.len() < 8 + lengths[0] + lengths[1]
        }
        _ => true,
    };
    (is_begun && bytes.len() <= RECORD_MAX) || bytes.iter().all(|byte| *byte == 0)
}

/// Parses the first record of some bytes; returns it with the rest.
fn parse(bytes: &[u8]) -> Option<(&str, &str, &[u8])> {
    let (crc, rest) = bytes.split_first_chunk()?;
    let (name, after) = rest.split_first_chunk()?;
    let (key, after) = after.split_first_chunk()?;
    let lengths = [*name, *key].map(|length| usize::from(u16::from_le_bytes(length)));
    (lengths[0] <= TEXT_MAX && lengths[1] <= TEXT_MAX).then_some(())?;
    let (name, after) = after.split_at_checked(lengths[0])?;
    let (key, after) = after.split_at_checked(lengths[1])?;
    let record = &rest[..rest.len() - after.len()];
    (u32::from_le_bytes(*crc) == crc32c::crc32c(record)).then_some(())?;
    Some((str::from_utf8(name).ok()?, str::from_utf8(key).ok()?, after))
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_record_that_was_cut_off_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(dir.path()).unwrap();
        for name in ["a", "b", "c\n"] {
            assert_eq!(owners.take(name, "A", false).unwrap(), Take::Theirs);
        }
        let path = dir.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut owners = Owners::open(dir.path()).unwrap();
            assert!(owners.by_name.len() < 3);
            assert_eq!(owners.by_name.contains_key("a"), cut >= 10);
            assert_eq!(owners.take("d", "B", false).unwrap(), Take::Theirs);
            let mut again = Owners::open(dir.path()).unwrap();
            assert_eq!(again.take("d", "A", false).unwrap(), Take::Others);
            assert_eq!(again.by_name.len(), owners.by_name.len());
        }
    }

    #[test]
    fn names_that_keep_changing_hands_do_not_make_the_file_grow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let mut owners = Owners::open(dir.path()).unwrap();
        for name in ["a", "b", "c"] {
            owners.take(name, "A", false).unwrap();
        }
        let record = fs::metadata(&path).unwrap().len() / 3;
        for round in 0..10 * RECORDS_MIN {
            let key = ["A", "B"][round % 2];
            assert_eq!(owners.take("b", key, true).unwrap(), Take::Theirs);
            let size = fs::metadata(&path).unwrap().len();
            assert!(size <= record * RECORDS_MIN as u64, "{size} bytes");
        }
        owners.take("d", "C", false).unwrap();
        for mut owners in [owners, Owners::open(dir.path()).unwrap()] {
            assert!(owners.notes.is_empty());
            for (name, key) in [("a", "A"), ("b", "B"), ("c", "A"), ("d", "C")] {
                assert_eq!(owners.take(name, key, false).unwrap(), Take::Theirs);
                assert_eq!(owners.take(name, "E", false).unwrap(), Take::Others);
            }
        }
        assert!(!dir.path().join(NEW_NAME).exists());
    }

    #[test]
    fn a_damaged_file_stays_for_its_user_to_repair() {
        let dir = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(dir.path()).unwrap();
        owners.take("a", "A", false).unwrap();
        owners.take("b", "B", false).unwrap();
        let path = dir.path().join(NAME);
        let mut damaged = fs::read(&path).unwrap();
        damaged[9] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let mut owners = Owners::open(dir.path()).unwrap();
        // The collector reports them.
        owners.notes.clear();
        for round in 0..2 * RECORDS_MIN {
            owners.take("b", ["A", "B"][round % 2], true).unwrap();
        }
        assert!(fs::read(&path).unwrap().starts_with(&damaged));
    }

    #[test]
    fn a_flipped_bit_costs_one_record() {
        let dir = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(dir.path()).unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(owners.take(name, "A", false).unwrap(), Take::Theirs);
        }
        let path = dir.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        let record = whole.len() / 3;
        for byte in 0..2 * record {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[byte] ^= 1 << bit;
                fs::write(&path, &damaged).unwrap();
                let mut owners = Owners::open(dir.path()).unwrap();
                assert_eq!(fs::read(&path).unwrap(), damaged);
                let lost = ["a", "b"][byte / record];
                let known = |name: &str| owners.by_name.contains_key(name);
                assert_eq!(
                    ["a", "b", "c"].map(known),
                    ["a", "b", "c"].map(|name| name != lost)
                );
                assert_eq!(owners.notes.len(), 1);
                assert!(owners.notes[0].contains(path.to_str().unwrap()));
                assert_eq!(owners.take("d", "B", false).unwrap(), Take::Theirs);
                let mut again = Owners::open(dir.path()).unwrap();
                assert_eq!(again.take("d", "A", false).unwrap(), Take::Others);
                assert_eq!(again.take("c", "B", false).unwrap(), Take::Others);
            }
        }
    }

    #[test]
    fn damage_at_the_end_is_not_taken_for_an_incomplete_record() {
        let dir = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(dir.path()).unwrap();
        assert_eq!(owners.take("a", "A", false).unwrap(), Take::Theirs);
        let path = dir.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        // The last record, with an intact length.
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(Owners::open(dir.path()).unwrap().notes.len(), 1);
        assert_eq!(fs::read(&path).unwrap(), damaged);
        // More bytes than one record can have.
        let long = [&whole[..], &vec![0xff; RECORD_MAX + 1]].concat();
        fs::write(&path, &long).unwrap();
        let error = Owners::open(dir.path()).unwrap_err();
        assert!(error.to_string().contains(path.to_str().unwrap()));
        assert_eq!(fs::read(&path).unwrap(), long);
        // The remains of records that were not synced before a power cut.
        fs::write(&path, [&whole[..], &[0; 5000]].concat()).unwrap();
        assert!(Owners::open(dir.path()).unwrap().by_name.contains_key("a"));
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}
