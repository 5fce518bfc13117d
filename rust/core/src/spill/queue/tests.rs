use std::fs::OpenOptions;

use super::super::{Contents, Folder};
use super::*;

const OWNER: &str = "PUSH";

fn message(number: u64) -> Message {
    Message::from(format!("{number} {}", "x".repeat(20_000)))
}

/// A kept queue with three messages in each file.
fn fill(dir: &Path, count: u64) -> (Folder, Queue) {
    let (mut folder, _) = Folder::open(dir, OWNER, true).unwrap();
    let mut queue = folder.create(None, 1).unwrap();
    for number in 0..count {
        queue.push(&message(number)).unwrap();
    }
    (folder, queue)
}

fn reopen(dir: &Path) -> Queue {
    let (_, Contents { mut queues, .. }) = Folder::open(dir, OWNER, true).unwrap();
    assert_eq!(queues.len(), 1);
    queues.remove(0).queue
}

fn taken(queue: &mut Queue) -> Vec<Message> {
    std::iter::from_fn(|| queue.take(1000).unwrap()).collect()
}

#[test]
fn a_message_is_taken_although_a_full_disk_cannot_record_it() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, mut queue) = fill(dir.path(), 5);
    assert!(queue.take(1000).unwrap().is_some());
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    queue.cursor.as_mut().unwrap().set_file(full);
    for number in 1..4 {
        assert_eq!(queue.take(1000).unwrap(), Some(message(number)));
    }
    // Another end of the process: what could not be recorded in the second file is sent again.
    drop((folder, queue));
    let mut queue = reopen(dir.path());
    assert_eq!(queue.take(1000).unwrap(), Some(message(3)));
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    queue.cursor.as_mut().unwrap().set_file(full);
    assert_eq!(queue.messages(), 1);
    queue.push(&message(5)).unwrap();
    assert_eq!(queue.take(1000).unwrap(), Some(message(4)));
    // The disk has room when the socket closes.
    queue.cursor.as_mut().unwrap().rest();
    queue.sync().unwrap();
    drop(queue);
    assert_eq!(taken(&mut reopen(dir.path())), [message(5)]);
}

#[test]
fn nothing_is_written_into_a_folder_that_is_found_to_be_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (_folder, mut queue) = fill(dir.path(), 7);
    fs::remove_dir_all(dir.path()).unwrap();
    for number in 0..3 {
        assert_eq!(queue.take(1000).unwrap(), Some(message(number)));
    }
    let error = queue.take(1000).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(
        error.to_string().contains("segment-0000000001 is gone"),
        "{error}"
    );
    // The last file has room, but no socket would find a message there after a restart.
    let error = queue.push(&message(7)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert_eq!((queue.skip_file(), queue.messages()), (3, 1));
    assert_eq!(taken(&mut queue), [message(6)]);
    assert_eq!(queue.bytes(), 0);
}

#[test]
fn a_resting_queue_has_no_descriptors_and_continues_in_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let (_folder, mut queue) = fill(dir.path(), 4);
    let open = || {
        let files = fs::read_dir("/proc/self/fd").unwrap();
        let paths = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
        paths
            .filter(|path| path.starts_with(dir.path().join("queue-0")))
            .count()
    };
    for number in 4..10 {
        assert_eq!(queue.take(1000).unwrap(), Some(message(number - 4)));
        assert!(open() > 0);
        queue.rest();
        assert_eq!(
            (open(), queue.block.capacity(), queue.buffer.capacity()),
            (0, 0, 0)
        );
        queue.push(&message(number)).unwrap();
    }
    assert_eq!(queue.next, 4, "files");
    queue.rest();
    drop(queue);
    drop(_folder);
    assert_eq!(taken(&mut reopen(dir.path())), [6, 7, 8, 9].map(message));
}

#[test]
fn a_file_that_cannot_be_removed_goes_with_the_next_one_or_with_the_queue() {
    for is_late in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (folder, mut queue) = fill(dir.path(), 9);
        assert_eq!(queue.take(1000).unwrap(), Some(message(0)));
        let (path, aside) = (queue.path(0), dir.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        let restore = || {
            fs::remove_dir(&path).unwrap();
            fs::rename(&aside, &path).unwrap();
        };
        for number in 1..6 {
            assert_eq!(queue.take(1000).unwrap(), Some(message(number)));
        }
        assert!(path.exists());
        if is_late {
            assert_eq!(taken(&mut queue), [6, 7, 8].map(message));
            restore();
        } else {
            restore();
            assert_eq!(queue.take(1000).unwrap(), Some(message(6)));
            assert!(!path.exists() && !queue.path(1).exists());
        }
        queue.remove().unwrap();
        drop(folder);
        let (_, contents) = Folder::open(dir.path(), OWNER, true).unwrap();
        assert!(contents.queues.is_empty());
    }
}

#[test]
fn a_read_that_fails_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let (_folder, mut queue) = fill(dir.path(), 4);
    let path = segment::path(&queue.dir, queue.segments[0].number);
    for number in 0..3 {
        // The system refuses to read from a file that is open for writing only.
        let sound = queue.segments[0].file.take();
        queue.segments[0].file = Some(OpenOptions::new().write(true).open(&path).unwrap());
        queue.block = Vec::new();
        queue.take(1000).unwrap_err();
        queue.segments[0].file = sound;
        assert_eq!(queue.take(1000).unwrap(), Some(message(number)));
    }
}
