use std::ops::Range;

use super::super::tests::{files, fill, message, reopen};
use super::super::{Folder, size_of};
use super::*;

/// A kept queue of 20 messages in one file: its folder, the file, and what is in it.
fn twenty() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    drop(fill(dir.path(), 20));
    let path = files(dir.path()).pop().unwrap();
    let whole = fs::read(&path).unwrap();
    (dir, path, whole)
}

/// Where this message is in a file of this size that ends with message 19.
fn record(number: usize, length: usize) -> Range<usize> {
    let size = |number| size_of(&message(number)) as usize;
    let end = length - (number + 1..20).map(size).sum::<usize>();
    end - size(number)..end
}

/// The error of the folder, in which nothing has changed.
fn refused(dir: &Path, path: &Path) -> String {
    let before = fs::read(path).ok();
    let error = Folder::open(dir, "PUSH", true).err();
    assert!(fs::read(path).ok() == before, "changed");
    let text = error.expect("an error").to_string();
    assert!(text.contains("move the folder away"), "{text}");
    let name = path.file_name().unwrap().to_string_lossy();
    assert!(text.contains(&*name), "{text}");
    text
}

#[test]
fn damage_before_the_end_is_an_error_that_names_the_file() {
    let (dir, path, whole) = twenty();
    for at in (0..record(19, whole.len()).start).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        let text = refused(dir.path(), &path);
        assert!(text.contains("is damaged at byte"), "{text}");
    }
}

#[test]
fn a_header_of_zeros_before_other_messages_is_damage() {
    let (dir, path, whole) = twenty();
    for number in 0..20 {
        let record = record(number, whole.len());
        let mut bytes = whole.clone();
        bytes[record.start..][..record::HEADER].fill(0);
        fs::write(&path, bytes).unwrap();
        let text = refused(dir.path(), &path);
        let place = format!("is damaged at byte {}:", record.start);
        assert!(text.contains(&place), "{text}");
    }
}

#[test]
fn zeros_up_to_the_end_are_an_interrupted_write() {
    let (dir, path, whole) = twenty();
    let third = record(17, whole.len());
    for from in third.start..third.end {
        let mut bytes = whole.clone();
        bytes[from..].fill(0);
        fs::write(&path, bytes).unwrap();
        let (queue, is_cut) = reopen(dir.path());
        assert_eq!((queue.messages(), is_cut), (17, true), "from {from}");
        assert!(fs::read(&path).unwrap() == whole[..third.start]);
    }
}
