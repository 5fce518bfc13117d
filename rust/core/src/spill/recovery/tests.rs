use std::ops::Range;

use zeroxide_proto::message::Message;

use super::super::tests::{files, fill, message, reopen};
use super::super::{Folder, NUMBER_MAX, size_of};
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

fn large(number: u64) -> Message {
    Message::from(format!("{number} {}", "x".repeat(20_000)))
}

/// A kept queue of ten messages in four files, the last of which has one.
fn four_files() -> (tempfile::TempDir, Queue) {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = fill(dir.path(), 0);
    for number in 0..10 {
        queue.push(&large(number)).unwrap();
    }
    assert_eq!(files(dir.path()).len(), 4);
    (dir, queue)
}

fn take(queue: &mut Queue, numbers: Range<u64>) {
    for number in numbers {
        assert_eq!(queue.take(1000).unwrap(), Some(large(number)));
    }
}

#[test]
fn a_missing_or_shortened_file_is_an_error_that_names_it() {
    for (is_synced, lasts) in [(false, 3), (true, 4)] {
        let (dir, mut queue) = four_files();
        if is_synced {
            queue.sync().unwrap();
        }
        drop(queue);
        let one = START as usize + size_of(&large(0)) as usize;
        for path in files(dir.path()).into_iter().take(lasts) {
            let whole = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            assert!(refused(dir.path(), &path).contains("is missing"));
            for length in [0, START as usize, one - 1, one, whole.len() - 1] {
                fs::write(&path, &whole[..length.min(whole.len() - 1)]).unwrap();
                refused(dir.path(), &path);
            }
            fs::write(&path, &whole).unwrap();
        }
        take(&mut reopen(dir.path()).0, 0..10);
    }
}

#[test]
fn a_missing_file_that_was_read_is_accepted() {
    let (dir, mut queue) = four_files();
    take(&mut queue, 0..1);
    let cursor = queue.dir.join(cursor::NAME);
    let earlier = fs::read(&cursor).unwrap();
    take(&mut queue, 1..4);
    drop(queue);
    assert_eq!(files(dir.path()).len(), 3);
    // A power failure leaves an earlier record of what was read, and the mark.
    fs::write(&cursor, &earlier).unwrap();
    let mut queue = reopen(dir.path()).0;
    take(&mut queue, 3..10);
    assert_eq!(queue.take(1000).unwrap(), None);
    drop(queue);
    assert!(files(dir.path()).is_empty());
    // The process was stopped before the folder was removed.
    fs::write(&cursor, &earlier).unwrap();
    let (_, contents) = Folder::open(dir.path(), "PUSH", true).unwrap();
    assert!(contents.queues.is_empty() && contents.cut == 0);
    assert!(!dir.path().join("queue-0").exists());
    // The record names a file that never was.
    let (dir, queue) = four_files();
    let mut record = Cursor::open(&queue.dir).unwrap().0;
    record.write(&queue.dir, (NUMBER_MAX, 0)).unwrap();
    drop(queue);
    refused(
        dir.path(),
        &dir.path().join(format!("queue-0/segment-{NUMBER_MAX}")),
    );
    // Without the mark, the first file is missing.
    let (dir, mut queue) = four_files();
    take(&mut queue, 0..4);
    drop(queue);
    let mark = dir.path().join("queue-0/first-0000000001");
    fs::remove_file(mark).unwrap();
    fs::remove_file(&files(dir.path())[0]).unwrap();
    refused(dir.path(), &dir.path().join("queue-0/segment-0000000001"));
}

#[test]
fn a_file_whose_creation_was_interrupted_counts_as_one_message() {
    for start in [vec![], vec![7; 15], vec![0; 16], vec![0; 100_000]] {
        let (dir, queue) = four_files();
        let path = queue.path(4);
        drop(queue);
        fs::write(&path, &start).unwrap();
        let (mut queue, is_cut) = reopen(dir.path());
        assert!(is_cut && !path.exists());
        queue.push(&large(10)).unwrap();
        drop(queue);
        assert!(path.exists());
        let (mut queue, is_cut) = reopen(dir.path());
        assert!(!is_cut);
        take(&mut queue, 0..11);
    }
}

#[test]
fn a_last_file_that_ends_before_what_was_read_counts_as_one_message() {
    let (dir, mut queue) = four_files();
    take(&mut queue, 0..9);
    queue.push(&large(10)).unwrap();
    take(&mut queue, 9..10);
    let path = queue.path(3);
    drop(queue);
    fs::write(&path, &fs::read(&path).unwrap()[..1000]).unwrap();
    let (_, contents) = Folder::open(dir.path(), "PUSH", true).unwrap();
    assert!(contents.queues.is_empty());
    assert_eq!(contents.cut, 1);
}

#[test]
fn the_rest_of_a_failed_write_is_not_read() {
    let (dir, queue) = four_files();
    let (last, next) = (queue.path(3), queue.path(4));
    drop(queue);
    let mut bytes = fs::read(&last).unwrap();
    let end = bytes.len() as u64;
    bytes.extend([1; 30]);
    fs::write(&last, bytes).unwrap();
    segment::begin(&fs::File::create(next).unwrap(), 4, end).unwrap();
    let (mut queue, is_cut) = reopen(dir.path());
    assert!(!is_cut);
    take(&mut queue, 0..10);
}

#[test]
fn a_damaged_description_is_an_error_that_names_it() {
    let (dir, path, _) = twenty();
    let about = path.with_file_name(about::NAME);
    let whole = fs::read(&about).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&about, bytes).unwrap();
        let text = refused(dir.path(), &about);
        let is_first_line = at <= "zeroxide spill 3".len();
        assert!(is_first_line || !text.contains("version"), "{text}");
    }
    fs::write(&about, "zeroxide spill 2\nPUSH\nkept\nany peer\n").unwrap();
    let text = refused(dir.path(), &about);
    assert!(text.contains("is of another version"), "{text}");
}

#[test]
fn a_copy_of_a_queue_is_refused_by_name() {
    let (dir, path, _) = twenty();
    let copy = dir.path().join("queue-1");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let text = refused(dir.path(), &copy.join(about::NAME));
    assert!(text.contains("queue-1/about is that of queue-0"), "{text}");
}

#[test]
fn a_queue_whose_cursor_a_power_failure_has_emptied_opens_after_a_close_again() {
    let (dir, path, _) = twenty();
    fs::write(path.with_file_name(cursor::NAME), [0; 64]).unwrap();
    for _ in 0..2 {
        let mut queue = reopen(dir.path()).0;
        assert_eq!(queue.messages(), 20);
        // As a socket does when it closes.
        queue.sync().unwrap();
    }
}

#[test]
fn numbers_after_which_there_is_no_other_are_refused() {
    for name in ["segment", "first"] {
        let (dir, path, _) = twenty();
        let other = path.with_file_name(format!("{name}-{}", u64::MAX));
        fs::write(&other, []).unwrap();
        let error = Folder::open(dir.path(), "PUSH", true).err().unwrap();
        assert!(error.to_string().contains(name), "{error}");
    }
    let (dir, path, _) = twenty();
    fs::rename(
        path.parent().unwrap(),
        dir.path().join(format!("queue-{}", u64::MAX)),
    )
    .unwrap();
    assert!(Folder::open(dir.path(), "PUSH", true).is_err());
}
