//! The folder of queues on disk: what is in it that the socket has not made, what is missing, and what is damaged.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use common::{SocketExt, Watchdog, inproc_name, socket, until};
use tempfile::TempDir;
use zeroxide::{
    Context, DropReason, ErrorKind, Events, Message, Socket, SocketType, Value, Wait, ids,
};

use SocketType::{Dealer, Pub, Pull, Push, Router, Xpub};

/// A socket that keeps two messages per peer in memory, and the others in `dir`.
fn spilling(context: &Context, socket_type: SocketType, dir: &Path, keep: bool) -> Socket {
    let socket = socket(context, socket_type);
    socket.int(ids::SNDHWM, 2);
    socket.bytes(ids::SPILL_DIR, dir.as_os_str().as_encoded_bytes());
    socket.int(ids::SPILL_KEEP, keep.into());
    socket
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn spilled(socket: &Socket) -> u64 {
    socket.stats().unwrap().spilled
}

/// Leaves these messages in a folder, as a socket of an earlier process does.
fn leave(context: &Context, dir: &Path, numbers: std::ops::Range<u32>) {
    let push = spilling(context, Push, dir, true);
    push.bind(&inproc_name()).unwrap();
    for number in numbers {
        push.put(&number.to_string());
    }
    push.close_within(None).unwrap();
}

/// Leaves the folder as a process does that is killed: no mark says that everything was durable when the socket closed.
fn as_if_killed(dir: &Path) {
    for entry in fs::read_dir(dir.join("queue-0")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().contains("synced-") {
            fs::remove_file(path).unwrap();
        }
    }
}

/// Receives everything that a socket has on disk.
fn take_all(context: &Context, push: &Socket, endpoint: &str) -> Vec<String> {
    let pull = socket(context, Pull);
    pull.connect(endpoint).unwrap();
    push.put("end");
    let mut taken = Vec::new();
    loop {
        let text = pull.take();
        if text == "end" {
            return taken;
        }
        taken.push(text);
    }
}

/// The error of a bind, which names this file and says what to do.
fn refused(socket: &Socket, file: &Path) -> String {
    let error = socket.bind(&inproc_name()).unwrap_err().to_string();
    let file = file.file_name().unwrap().to_string_lossy();
    assert!(error.contains(&*file), "{error}");
    assert!(error.contains("move"), "{error}");
    error
}

#[test]
fn files_that_the_socket_has_not_made_stay() {
    let _watchdog = Watchdog::new("files_that_the_socket_has_not_made_stay");
    let context = Context::new();
    for keep in [false, true] {
        let (dir, elsewhere) = (folder(), folder());
        let queue = dir.path().join("queue-1");
        fs::create_dir(&queue).unwrap();
        let precious = queue.join("precious.txt");
        fs::write(&precious, "mine").unwrap();
        let other = elsewhere.path().join("segment-0000000000");
        fs::write(&other, "mine, too").unwrap();
        // As it would be after a queue had been made: only one of the files is strange.
        for known in ["about", "cursor"] {
            fs::write(queue.join(known), "").unwrap();
        }
        refused(&spilling(&context, Push, dir.path(), keep), &precious);
        assert_eq!(fs::read_dir(&queue).unwrap().count(), 3);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
        fs::remove_dir_all(&queue).unwrap();

        let link = dir.path().join("queue-2");
        symlink(elsewhere.path(), &link).unwrap();
        refused(&spilling(&context, Push, dir.path(), keep), &link);
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine, too");
        fs::remove_file(&link).unwrap();

        // The name of one of the files is known, but it leads elsewhere.
        fs::create_dir(&queue).unwrap();
        let link = queue.join("segment-0000000000");
        symlink(&other, &link).unwrap();
        refused(&spilling(&context, Push, dir.path(), keep), &link);
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine, too");
        fs::remove_dir_all(&queue).unwrap();

        let lock = dir.path().join("LOCK");
        fs::remove_file(&lock).unwrap();
        symlink(&other, &lock).unwrap();
        refused(&spilling(&context, Push, dir.path(), keep), &lock);
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine, too");
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "of another program").unwrap();
        refused(&spilling(&context, Push, dir.path(), keep), &lock);
        assert_eq!(fs::read_to_string(&lock).unwrap(), "of another program");
        fs::remove_file(&lock).unwrap();

        // These names are not those of queues, and do not matter.
        for name in ["queue-x", "queue-007", "notes"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let push = spilling(&context, Push, dir.path(), keep);
        push.bind(&inproc_name()).unwrap();
        push.put("1");
        push.close_within(Some(Duration::ZERO)).unwrap();
        for name in ["queue-x", "queue-007", "notes"] {
            assert!(dir.path().join(name).exists(), "{name}");
        }
        // No number would be left for the next queue.
        let last = dir.path().join(format!("queue-{}", u64::MAX));
        fs::create_dir(&last).unwrap();
        refused(&spilling(&context, Push, dir.path(), keep), &last);
    }
}

#[test]
fn a_folder_without_its_description_is_removed_only_if_it_holds_no_messages() {
    let _watchdog =
        Watchdog::new("a_folder_without_its_description_is_removed_only_if_it_holds_no_messages");
    let context = Context::new();
    let dir = folder();
    leave(&context, dir.path(), 0..3);
    let queue = dir.path().join("queue-0");
    let about = queue.join("about");
    let whole = fs::read(&about).unwrap();
    for keep in [true, false] {
        for cut in [0, 3, whole.len() - 1] {
            fs::write(&about, &whole[..cut]).unwrap();
            refused(&spilling(&context, Push, dir.path(), keep), &about);
        }
        fs::remove_file(&about).unwrap();
        refused(&spilling(&context, Push, dir.path(), keep), &about);
    }
    fs::write(&about, "the notes of a user\n").unwrap();
    refused(&spilling(&context, Push, dir.path(), true), &about);
    fs::write(&about, &whole).unwrap();
    let push = spilling(&context, Push, dir.path(), true);
    let endpoint = push.bind(&inproc_name()).unwrap();
    assert_eq!(take_all(&context, &push, &endpoint), ["0", "1", "2"]);
    push.close_within(None).unwrap();
    // The creation of a queue was interrupted.
    fs::create_dir(&queue).unwrap();
    fs::write(&about, &whole[..5]).unwrap();
    let push = spilling(&context, Push, dir.path(), true);
    push.bind(&inproc_name()).unwrap();
    assert!(!queue.exists());
}

#[test]
fn messages_whose_file_was_removed_are_counted_and_the_next_follow() {
    let _watchdog =
        Watchdog::new("messages_whose_file_was_removed_are_counted_and_the_next_follow");
    for keep in [false, true] {
        let (context, dir) = (Context::new(), folder());
        let push = spilling(&context, Push, dir.path(), keep);
        // Files of 64 KiB, each with three messages.
        push.int(ids::SPILL_BYTES, 1 << 18);
        let endpoint = push.bind(&inproc_name()).unwrap();
        let body = "x".repeat(20_000);
        for number in 0..10 {
            push.put(&format!("{number} {body}"));
        }
        let queue = dir.path().join("queue-0");
        assert_eq!(
            fs::read_dir(&queue).unwrap().count(),
            if keep { 6 } else { 5 }
        );
        fs::remove_dir_all(dir.path()).unwrap();
        // The first and the last file are open.
        let pull = socket(&context, Pull);
        pull.int(ids::RCVHWM, 1);
        pull.connect(&endpoint).unwrap();
        for number in [0, 1, 2, 9] {
            assert_eq!(pull.take(), format!("{number} {body}"));
        }
        assert_eq!(push.dropped(DropReason::Disk), 6);
        assert_eq!(spilled(&push), 0);
        // Memory has room for three messages, and the disk has none.
        let error = (0..4)
            .find_map(|_| push.send("next", Wait::Dont).err())
            .expect("an error");
        assert_eq!(error.error.kind(), ErrorKind::NoEntry, "{}", error.error);
    }
}

#[test]
fn a_damaged_cursor_is_an_error_and_sends_nothing_again() {
    let _watchdog = Watchdog::new("a_damaged_cursor_is_an_error_and_sends_nothing_again");
    let (context, dir) = (Context::new(), folder());
    leave(&context, dir.path(), 0..3);
    let cursor = dir.path().join("queue-0/cursor");
    let whole = fs::read(&cursor).unwrap();
    assert_eq!(
        whole.len(),
        64,
        "written when it is made, so that a full disk has room for it"
    );
    for damaged in [vec![0xff; 64], vec![1; 5], vec![], vec![0; 64]] {
        fs::write(&cursor, damaged).unwrap();
        refused(&spilling(&context, Push, dir.path(), true), &cursor);
    }
    fs::remove_file(&cursor).unwrap();
    refused(&spilling(&context, Push, dir.path(), true), &cursor);
    // A power failure leaves this of a file that was not synced.
    for lost in [vec![], vec![0; 64]] {
        fs::write(&cursor, lost).unwrap();
        as_if_killed(dir.path());
        let push = spilling(&context, Push, dir.path(), true);
        push.bind(&inproc_name()).unwrap();
        assert_eq!(spilled(&push), 3);
        push.close_within(None).unwrap();
    }
}

#[test]
fn a_message_above_the_limit_does_not_keep_smaller_ones_waiting() {
    let _watchdog = Watchdog::new("a_message_above_the_limit_does_not_keep_smaller_ones_waiting");
    let (context, dir) = (Context::new(), folder());
    let push = spilling(&context, Push, dir.path(), false);
    push.int(ids::SPILL_BYTES, 1000);
    let endpoint = push.bind(&inproc_name()).unwrap();
    let writable = || push.events().unwrap().contains(Events::WRITABLE);
    let too_large = || Message::from(vec![b'x'; 2000]);
    let again = |message: Message| {
        let error = push.send(message, Wait::Dont).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::Again);
    };
    again(too_large());
    assert!(writable());
    push.send("small", Wait::Dont).unwrap();
    assert!(writable() && spilled(&push) == 1);
    // This one would fit if the first one were gone, so it has to wait for that.
    again(Message::from(vec![b'x'; 960]));
    assert!(!writable());
    push.send("smaller", Wait::Dont).unwrap();
    assert!(writable());
    // A blocked sender waits for memory, behind what is on disk.
    let blocked = push.clone();
    let sender = std::thread::spawn(move || blocked.send(too_large(), Wait::Forever).unwrap());
    let pull = socket(&context, Pull);
    pull.connect(&endpoint).unwrap();
    assert_eq!(
        (pull.take(), pull.take()),
        ("small".into(), "smaller".into())
    );
    assert_eq!(pull.take().len(), 2000);
    sender.join().unwrap();
}

#[test]
fn conflate_and_a_folder_exclude_each_other() {
    let _watchdog = Watchdog::new("conflate_and_a_folder_exclude_each_other");
    let (context, dir) = (Context::new(), folder());
    let path = Value::from(dir.path().as_os_str().as_encoded_bytes());
    for socket_type in [Push, Dealer, Pub] {
        for folder_first in [false, true] {
            let socket = socket(&context, socket_type);
            let mut settings = [
                (ids::CONFLATE, Value::Int(1)),
                (ids::SPILL_DIR, path.clone()),
            ];
            if folder_first {
                settings.reverse();
            }
            let [(first, value), (second, other)] = settings;
            socket.set_option(first, &value).unwrap();
            let error = socket.set_option(second, &other).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            let text = error.to_string();
            assert!(
                text.contains("CONFLATE") && text.contains("SPILL_DIR"),
                "{text}"
            );
            // Without the first one, the second one is accepted.
            let none = if folder_first {
                Value::from("")
            } else {
                Value::Int(0)
            };
            socket.set_option(first, &none).unwrap();
            socket.set_option(second, &other).unwrap();
        }
    }
    // It has no effect there.
    for socket_type in [Router, Xpub] {
        let socket = socket(&context, socket_type);
        socket.int(ids::CONFLATE, 1);
        socket.set_option(ids::SPILL_DIR, &path).unwrap();
    }
}

#[test]
fn a_folder_of_another_type_or_wire_protocol_is_refused_by_name() {
    let _watchdog = Watchdog::new("a_folder_of_another_type_or_wire_protocol_is_refused_by_name");
    let context = Context::new();
    let speaking = |socket_type, dir: &Path, wire: i64| {
        let socket = socket(&context, socket_type);
        socket.int(ids::WIRE_PROTOCOL, wire);
        socket.int(ids::SNDHWM, 2);
        socket.bytes(ids::SPILL_DIR, dir.as_os_str().as_encoded_bytes());
        socket.int(ids::SPILL_KEEP, 1);
        socket
    };
    let dir = folder();
    let dealer = speaking(Dealer, dir.path(), 0);
    dealer.bind(&inproc_name()).unwrap();
    dealer.send(["1", "2"], Wait::Dont).unwrap();
    dealer.close_within(None).unwrap();
    for (socket_type, wire) in [(Push, 0), (Push, 1), (Pub, 0), (Router, 0)] {
        let socket = speaking(socket_type, dir.path(), wire);
        let error = socket.bind(&inproc_name()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        for part in ["DEALER", socket_type.name(), &*dir.path().to_string_lossy()] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(text.contains("WIRE_PROTOCOL"), wire != 0, "{text}");
    }
    let dealer = speaking(Dealer, dir.path(), 0);
    let name = dealer.bind(&inproc_name()).unwrap();
    let peer = socket(&context, Dealer);
    peer.connect(&name).unwrap();
    assert_eq!(peer.take(), "1/2");
    until(|| spilled(&dealer) == 0);
    dealer.close_within(None).unwrap();
    // No messages are left, so that the folder is free.
    speaking(Router, dir.path(), 0)
        .bind(&inproc_name())
        .unwrap();
}

#[test]
fn the_only_message_was_cut_off_and_counts_with_and_without_keep() {
    let _watchdog = Watchdog::new("the_only_message_was_cut_off_and_counts_with_and_without_keep");
    for keep in [false, true] {
        let (context, dir) = (Context::new(), folder());
        leave(&context, dir.path(), 0..1);
        as_if_killed(dir.path());
        let path = dir.path().join("queue-0/segment-0000000000");
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        let push = spilling(&context, Push, dir.path(), keep);
        push.bind(&inproc_name()).unwrap();
        assert_eq!((push.dropped(DropReason::Disk), spilled(&push)), (1, 0));
        assert!(!dir.path().join("queue-0").exists());
    }
}

#[test]
fn a_refused_folder_is_unchanged_and_the_next_socket_counts_what_was_cut_off() {
    let _watchdog =
        Watchdog::new("a_refused_folder_is_unchanged_and_the_next_socket_counts_what_was_cut_off");
    let (context, dir) = (Context::new(), folder());
    leave(&context, dir.path(), 0..3);
    as_if_killed(dir.path());
    let path = dir.path().join("queue-0/segment-0000000000");
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len() - 1;
    file.set_len(length).unwrap();
    let error = spilling(&context, Push, dir.path(), false)
        .bind(&inproc_name())
        .unwrap_err();
    assert!(error.to_string().contains("holds 2 messages"), "{error}");
    assert_eq!(file.metadata().unwrap().len(), length);
    let push = spilling(&context, Push, dir.path(), true);
    push.bind(&inproc_name()).unwrap();
    assert_eq!((push.dropped(DropReason::Disk), spilled(&push)), (1, 2));
}
