use zeroxide_proto::message::Message;

use super::super::Queue;
use super::super::tests::{files, message};
use super::*;

/// A folder with a kept queue of this many messages in several files.
fn filled(dir: &Path, messages: usize) -> (Folder, Queue) {
    let (mut folder, contents) = Folder::open(dir, "PUSH", true).unwrap();
    assert!(contents.queues.is_empty());
    let mut queue = folder.create(None, 1).unwrap();
    for number in 0..messages {
        queue.push(&message(number)).unwrap();
    }
    (folder, queue)
}

fn take(queue: &mut Queue) -> Vec<Message> {
    std::iter::from_fn(|| queue.take(1000).unwrap()).collect()
}

#[test]
fn a_socket_whose_folder_has_left_its_name_leaves_another_ones_alone() {
    for is_removed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("queues");
        let (_folder, mut queue) = filled(&name, 2000);
        if is_removed {
            fs::remove_dir_all(&name).unwrap();
        } else {
            fs::rename(&name, dir.path().join("moved")).unwrap();
        }
        let (folder, other) = filled(&name, 1000);
        // Reading, writing, giving up a file and removing: all of them open or remove files by name.
        let mut lost = 0;
        while queue.messages() > 0 {
            match queue.take(1000) {
                Ok(message) => assert!(message.is_some()),
                Err(error) => {
                    assert!(error.to_string().contains("gone"), "{error}");
                    lost += queue.skip_file();
                }
            }
        }
        assert!(lost > 0 && lost < 2000, "{lost} messages");
        let pushed = (0..2000).find_map(|number| queue.push(&message(number)).err());
        assert_eq!(
            pushed.map(|error| error.kind()),
            Some(io::ErrorKind::NotFound)
        );
        queue.rest();
        queue.sync().unwrap_err();
        queue.remove().unwrap();
        assert!(files(&name).len() > 1);
        drop((folder, other));
        let (_folder, mut contents) = Folder::open(&name, "PUSH", true).unwrap();
        let taken = take(&mut contents.queues[0].queue);
        assert!(taken.into_iter().eq((0..1000).map(message)));
    }
}

#[test]
fn a_folder_without_its_lock_file_is_still_that_of_its_socket() {
    let dir = tempfile::tempdir().unwrap();
    let (_folder, mut queue) = filled(dir.path(), 2000);
    fs::remove_file(dir.path().join(NAME)).unwrap();
    queue.rest();
    assert_eq!(take(&mut queue).len(), 2000);
    queue.remove().unwrap();
    assert!(!dir.path().join("queue-0").exists());
}
