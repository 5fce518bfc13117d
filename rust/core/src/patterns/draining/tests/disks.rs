//! Disks that fail, peers that leave in the meantime, and what is durable after the socket has closed.

use std::fs;

use super::*;
use crate::options::PatternOption;
use crate::patterns::xpub;
use crate::spill::SYNCED;

/// The limit of a queue whose files have room for eight messages of [`SIZE`].
const LIMIT: u64 = 8 * 85_000;
const SIZE: usize = 10_000;

/// A message with its number, for a peer called `to` if the socket is a ROUTER.
fn large(spec: &PatternSpec, to: &str, number: u64) -> Vec<Vec<u8>> {
    let mut parts = vec![number.to_string().into_bytes(), vec![b'x'; SIZE]];
    if is_router(spec) {
        parts.insert(0, to.into());
    }
    parts
}

fn is_router(spec: &PatternSpec) -> bool {
    spec.socket_type == router::ROUTER.socket_type
}

/// Receives what has arrived, and returns the numbers.
fn receive(socket: &mut Socket, peer: PipeId, got: &mut Vec<u64>) {
    while let Some(text) = socket.rig.far_recv(peer) {
        got.push(number(&text));
    }
    socket.rig.settle();
}

#[test]
fn a_message_that_cannot_be_written_is_refused_or_counted() {
    for (spec, is_strict) in [
        (&push::PUSH, false),
        (&dealer::DEALER, false),
        (&router::ROUTER, true),
        (&router::ROUTER, false),
        (&publish::PUB, false),
        (&xpub::XPUB, false),
    ] {
        let name = spec.socket_type;
        let refuses = is_strict || spec.spills == Spills::ForAny;
        let mut socket = Socket::new(spec, LIMIT, false);
        let peer = socket.accept("a");
        if is_strict {
            let option = PatternOption::RouterMandatory(true);
            socket.rig.set(option).unwrap();
        }
        let (dir, aside) = (
            socket.dir.path().to_owned(),
            socket.dir.path().with_extension("aside"),
        );
        let mut accepted = Vec::new();
        for number in 0..30 {
            match number {
                // The first message that does not fit into memory has no folder, and a later one no second file.
                4 => fs::rename(&dir, &aside).unwrap(),
                6 => fs::rename(&aside, &dir).unwrap(),
                10 | 20 => {
                    let queue = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap());
                    let queue = queue.map(|entry| entry.path()).find(|path| path.is_dir());
                    let second = queue.unwrap().join("segment-0000000001");
                    match number {
                        10 => fs::write(second, "").unwrap(),
                        _ => fs::remove_file(second).unwrap(),
                    }
                }
                _ => {}
            }
            let (before, bytes) = (socket.on_disk(), socket.bytes_on_disk());
            let counted = socket.rig.dropped(DropReason::Disk);
            let message = large(spec, "a", number);
            let sent = socket.rig.send(&message);
            let fails = matches!(number, 4 | 5 | 14..20);
            let lost = socket.rig.dropped(DropReason::Disk) - counted;
            let expected = u64::from(fails && !refuses);
            assert_eq!(lost, expected, "{name}, {number}");
            match sent {
                Ok(()) => assert!(!(fails && refuses), "{name}, {number}"),
                Err(rejected) => {
                    assert!(fails && refuses, "{name}, {number}: {}", rejected.error);
                    let said = rejected.error.to_string();
                    assert!(said.contains(&*dir.to_string_lossy()), "{said}");
                    let parts: Vec<_> = rejected.message.iter().map(|part| part.to_vec()).collect();
                    assert_eq!(parts, message, "{name}, {number}");
                }
            }
            if fails {
                assert_eq!((socket.on_disk(), socket.bytes_on_disk()), (before, bytes));
            } else {
                accepted.push(number);
            }
        }
        let mut got = Vec::new();
        while got.len() < accepted.len() && socket.drain().next != Next::Later {
            receive(&mut socket, peer, &mut got);
        }
        assert_eq!(got, accepted, "{name}");
    }
}

#[test]
fn a_file_of_one_peer_that_cannot_be_read_delays_its_messages_only() {
    for spec in [&router::ROUTER, &publish::PUB] {
        let name = spec.socket_type;
        let mut socket = Socket::new(spec, LIMIT, false);
        let peers = [socket.accept("a"), socket.accept("b")];
        let send = |socket: &mut Socket, number| {
            for to in ["a", "b"] {
                socket.rig.send(large(spec, to, number)).unwrap();
                if !is_router(spec) {
                    break;
                }
            }
        };
        // Two files and the beginning of a third, for each.
        for number in 0..24 {
            send(&mut socket, number);
        }
        let file = socket.dir.path().join("queue-0/segment-0000000001");
        let aside = socket.dir.path().join("aside");
        fs::rename(&file, &aside).unwrap();
        fs::create_dir(&file).unwrap();
        let mut got = [Vec::new(), Vec::new()];
        let receive_all = |socket: &mut Socket, got: &mut [Vec<u64>; 2]| {
            for (peer, got) in peers.iter().zip(got) {
                receive(socket, *peer, got);
            }
        };
        while got[1].len() < 24 {
            socket.drain();
            receive_all(&mut socket, &mut got);
        }
        assert_eq!(got[0], (0..12).collect::<Vec<_>>(), "{name}");
        // A new message waits behind those that cannot be read.
        send(&mut socket, 24);
        assert_eq!(socket.drain().next, Next::Later, "{name}");
        receive_all(&mut socket, &mut got);
        assert_eq!((got[0].len(), got[1].len()), (12, 25), "{name}");
        fs::remove_dir(&file).unwrap();
        fs::rename(&aside, &file).unwrap();
        while socket.on_disk() > 0 {
            socket.drain();
            receive_all(&mut socket, &mut got);
        }
        for got in got {
            assert_eq!(got, (0..25).collect::<Vec<_>>(), "{name}");
        }
        assert_eq!(socket.rig.dropped_in_all(), 0, "{name}");
    }
}

#[test]
fn a_message_for_a_subscriber_that_has_just_left_is_counted() {
    for spec in [&publish::PUB, &xpub::XPUB] {
        let mut socket = Socket::new(spec, 0, false);
        let a = socket.accept("");
        for n in 0..HWM + 3 {
            socket.rig.send([format!("{n}")]).unwrap();
        }
        assert_eq!(socket.on_disk(), 3);
        // The socket does not know yet.
        socket.rig.far_close(a);
        socket.rig.send(["last"]).unwrap();
        assert_eq!(socket.rig.dropped(DropReason::PeerGone), 1);
        assert_eq!(socket.on_disk(), 3);
        socket.rig.settle();
        assert_eq!(socket.rig.dropped(DropReason::PeerGone), 4);
        assert_eq!(socket.on_disk(), 0);
    }
}

#[test]
fn kept_messages_are_durable_when_the_socket_has_closed() {
    for (spec, has_left) in [
        (&push::PUSH, false),
        (&router::ROUTER, false),
        (&router::ROUTER, true),
    ] {
        let mut socket = Socket::new(spec, LIMIT, true);
        let a = socket.accept("a");
        for number in 0..20 {
            socket.rig.send(large(spec, "a", number)).unwrap();
        }
        if has_left {
            socket.rig.far_close(a);
            socket.rig.settle();
        }
        SYNCED.take();
        socket.rig.pipes.take_overflow().unwrap().close();
        let synced = SYNCED.take();
        let dir = socket.dir.path().canonicalize().unwrap();
        let queue = dir.join("queue-0");
        let names = [
            "about",
            "cursor",
            "segment-0000000000",
            "segment-0000000001",
        ];
        let files = names.map(|name| queue.join(name));
        for path in files.iter().chain([&queue, &dir]) {
            assert!(synced.contains(path), "{}: {synced:?}", path.display());
        }
        // And the mark of the close.
        assert_eq!(fs::read_dir(queue).unwrap().count(), files.len() + 1);
    }
}
