use std::os::unix::fs::FileExt;

use super::*;
use crate::error::ErrorKind;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

pub(super) fn message(number: usize) -> Message {
    let parts = [
        format!("{number}"),
        String::new(),
        "x".repeat(number * 37 % 500),
    ];
    Message::from_frames(
        parts[..1 + number % 3]
            .iter()
            .map(|part| Frame::copy_from(part.as_bytes())),
    )
}

pub(super) fn open(dir: &Path) -> Queue {
    reopen(dir).0
}

/// The queue, and whether an incomplete message was cut off.
pub(super) fn reopen(dir: &Path) -> (Queue, bool) {
    let (_, mut contents) = Folder::open(dir, "PUSH", true).unwrap();
    assert_eq!(contents.queues.len(), 1);
    (contents.queues.remove(0).queue, contents.cut == 1)
}

pub(super) fn fill(dir: &Path, count: usize) -> Queue {
    let (mut folder, contents) = Folder::open(dir, "PUSH", true).unwrap();
    assert!(contents.queues.is_empty());
    let mut queue = folder.create(None, 1).unwrap();
    for number in 0..count {
        queue.push(&message(number)).unwrap();
    }
    queue
}

pub(super) fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("queue-0")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().contains("segment-"));
    paths.sort();
    paths
}

#[test]
fn a_queue_survives_any_number_of_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = fill(dir.path(), 2000);
    assert!(files(dir.path()).len() > 2);
    for number in 0..2000 {
        assert_eq!(queue.messages(), 2000 - number as u64);
        if number % 7 == 0 {
            drop(queue);
            queue = open(dir.path());
            assert_eq!(queue.messages(), 2000 - number as u64);
        }
        if number % 501 == 500 {
            // A message that is added after a restart comes last.
            queue.push(&message(number)).unwrap();
            let queued = queue.messages();
            drop(queue);
            queue = open(dir.path());
            assert_eq!(queue.messages(), queued);
            return;
        }
        assert_eq!(queue.take(1000).unwrap(), Some(message(number)));
    }
}

#[test]
fn the_cut_end_of_a_file_loses_one_message() {
    let dir = tempfile::tempdir().unwrap();
    drop(fill(dir.path(), 20));
    let path = files(dir.path()).pop().unwrap();
    let whole = fs::read(&path).unwrap();
    let last = size_of(&message(19)) as usize;
    for cut in 1..=last {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let (mut queue, is_cut) = reopen(dir.path());
        assert_eq!(queue.messages(), 19, "{cut}");
        assert_eq!(is_cut, cut < last, "{cut}");
        // The next message takes its place.
        queue.push(&message(5)).unwrap();
        drop(queue);
        assert_eq!(open(dir.path()).messages(), 20, "{cut}");
        let extra = files(dir.path()).pop().unwrap();
        assert_ne!(extra, path);
        fs::remove_file(extra).unwrap();
    }
}

/// A limit on the size of files makes writing fail in the middle of a message. It applies to a process, so this test has one
/// of its own. The shell ignores the signal that would come with it.
#[test]
fn a_failed_write_is_reported_and_leaves_nothing_in_the_file() {
    const CHILD: &str = "ZEROXIDE_TEST_SHORT_FILES";
    if std::env::var_os(CHILD).is_none() {
        let name = std::thread::current().name().unwrap().to_owned();
        let script = "trap '' XFSZ; ulimit -f 20; exec \"$0\" --exact --nocapture \"$1\"";
        let mut child = std::process::Command::new("sh");
        child.args(["-c", script]);
        child.arg(std::env::current_exe().unwrap()).arg(name);
        // Through pipes, because the limit holds for the file to which this test may write, too.
        let ended = child.env(CHILD, "1").output().unwrap();
        let text = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{text}");
        return;
    }
    // The parts of a large message are written one by one, and in a file of its own. A shorter one has room.
    for (too_large, shorter) in [(3000, None), (3000, Some("short")), (200_000, None)] {
        let dir = tempfile::tempdir().unwrap();
        let mut queue = fill(dir.path(), 0);
        let mut accepted = Vec::new();
        let error = loop {
            let message = Message::from(vec![accepted.len() as u8; 2500]);
            match queue.push(&message) {
                Ok(()) => accepted.push(message),
                Err(error) => break error,
            }
            assert!(accepted.len() < 10);
        };
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(queue.push(&Message::from(vec![0; too_large])).is_err());
        if let Some(shorter) = shorter {
            accepted.push(Message::from(shorter));
            queue.push(&Message::from(shorter)).unwrap();
        }
        let size = (accepted.len() as u64, accepted.iter().map(size_of).sum());
        assert_eq!((queue.messages(), queue.bytes()), size);
        drop(queue);
        let (mut queue, is_cut) = reopen(dir.path());
        assert!(!is_cut);
        assert_eq!((queue.messages(), queue.bytes()), size);
        for message in accepted {
            assert_eq!(queue.take(1000).unwrap(), Some(message));
        }
        assert_eq!(queue.take(1000).unwrap(), None);
    }
}

#[test]
fn a_cursor_that_is_written_halfway_leaves_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = fill(dir.path(), 5);
    for number in 0..3 {
        assert_eq!(queue.take(1000).unwrap(), Some(message(number)));
    }
    drop(queue);
    let path = dir.path().join("queue-0/cursor");
    // The first write was that of the creation, so the fourth one is in the first place.
    let file = existing_file().open(path).unwrap();
    file.write_all_at(&[0xff; 9], 8).unwrap();
    assert_eq!(open(dir.path()).take(1000).unwrap(), Some(message(2)));
}

#[test]
fn a_folder_has_one_socket_at_a_time_and_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("a/b");
    let (folder, _) = Folder::open(&dir, "PUSH", false).unwrap();
    let error = Folder::open(&dir, "PUSH", false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AddressInUse);
    let pid = std::process::id().to_string();
    assert!(error.to_string().contains(&pid), "{error}");
    assert!(
        error.to_string().contains(&*dir.to_string_lossy()),
        "{error}"
    );
    drop(folder);
    let (mut folder, _) = Folder::open(&dir, "PUSH", false).unwrap();
    folder.create(None, 0).unwrap().push(&message(1)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("queue-0")), 0o700);
    assert_eq!(mode(&dir.join("queue-0/segment-0000000000")), 0o600);
    // Left by a process that was killed, and not to be kept.
    drop(folder);
    let (_folder, contents) = Folder::open(&dir, "PUSH", false).unwrap();
    assert!(contents.queues.is_empty() && !dir.join("queue-0").exists());
}

#[test]
fn large_messages_are_written_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = fill(dir.path(), 0);
    let part = |size: usize| Frame::copy_from(&vec![size as u8; size]);
    for sizes in [
        vec![300_000],
        vec![10, 100_000, 0, 70_000, 5],
        vec![65_520, 1],
    ] {
        let message = Message::from_frames(sizes.iter().map(|size| part(*size)));
        queue.push(&message).unwrap();
        queue.push(&message).unwrap();
        assert_eq!(queue.bytes(), 2 * size_of(&message));
        assert_eq!(queue.take(1000).unwrap(), Some(message.clone()));
        drop(queue);
        queue = open(dir.path());
        assert_eq!(queue.take(1000).unwrap(), Some(message));
        assert_eq!(queue.bytes(), 0);
        queue.push(&Message::from("keeps the queue")).unwrap();
        assert!(queue.take(1000).unwrap().is_some());
    }
    assert_eq!(queue.take(1000).unwrap(), None);
    queue.remove().unwrap();
    assert!(!dir.path().join("queue-0").exists());
}
