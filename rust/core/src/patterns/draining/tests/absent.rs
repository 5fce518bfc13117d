//! What messages for peers that do not read cost: descriptors, and kept messages of peers that are gone.

use std::fs;
use std::path::Path;

use super::*;

/// The bounds of the code, which these tests state again. That of peers that are gone is lower in tests.
const PEERS: usize = 300;
const OPEN: usize = 100;

/// The descriptors of this process for files below a folder.
fn descriptors(dir: &Path) -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let paths = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    paths.filter(|path| path.starts_with(dir)).count()
}

/// A peer that gets more messages than its memory holds.
fn accept_slow(socket: &mut Socket, name: &str, count: usize) -> PipeId {
    let id = socket.accept(name);
    for n in 0..count {
        socket.rig.send([name.to_owned(), n.to_string()]).unwrap();
    }
    id
}

#[test]
fn peers_that_leave_messages_have_a_bound_and_cost_no_descriptors() {
    let mut socket = Socket::new(&router::ROUTER, 0, true);
    let (dir, count) = (socket.dir.path().canonicalize().unwrap(), HWM + 1);
    for n in 0..PEERS {
        let id = accept_slow(&mut socket, &format!("peer {n}"), count);
        socket.rig.far_close(id);
        socket.rig.settle();
    }
    assert_eq!(descriptors(&dir), 1, "the lock");
    assert_eq!(socket.on_disk(), PEERS as u64);
    assert_eq!(socket.rig.dropped(DropReason::PeerGone), 0);
    // One more loses its messages when it leaves. One of the others does not, and all of them were written to disk, behind
    // those from before.
    for (name, lost) in [("late", 1), ("peer 7", 0)] {
        let before = socket.rig.dropped(DropReason::PeerGone);
        let id = accept_slow(&mut socket, name, count);
        assert!(descriptors(&dir) > 1);
        socket.rig.far_close(id);
        socket.rig.settle();
        assert_eq!(descriptors(&dir), 1, "{name}");
        let lost = lost as u64;
        assert_eq!(
            socket.rig.dropped(DropReason::PeerGone),
            before + lost,
            "{name}"
        );
    }
    let folders = fs::read_dir(&dir).unwrap().count();
    assert_eq!(folders, PEERS + 1, "and the lock");
    // The next socket has the same messages, and no more descriptors.
    socket.restart(false);
    assert_eq!(descriptors(&dir), 1);
    let id = socket.accept("peer 7");
    let mut got = Vec::new();
    while got.len() < 1 + count {
        socket.drain();
        got.extend(socket.rig.far_recv_all(id));
        socket.rig.settle();
    }
    assert_eq!(got[..2], ["4", "0"]);
}

#[test]
fn many_slow_peers_share_a_bounded_number_of_descriptors() {
    for keep in [false, true] {
        let mut socket = Socket::new(&router::ROUTER, 0, keep);
        let dir = socket.dir.path().canonicalize().unwrap();
        // Three for each, and the lock.
        let most = 3 * OPEN + 1;
        let name = |n: usize| format!("peer {n}");
        let peers: Vec<_> = (0..OPEN + 50).map(|n| socket.accept(&name(n))).collect();
        for number in 0..HWM + 20 {
            for n in 0..peers.len() {
                socket.rig.send([name(n), number.to_string()]).unwrap();
            }
            assert!(descriptors(&dir) <= most);
        }
        let mut got = vec![Vec::new(); peers.len()];
        while socket.on_disk() > 0 {
            socket.drain();
            assert!(descriptors(&dir) <= most);
            for (id, got) in peers.iter().zip(&mut got) {
                got.extend(socket.rig.far_recv_all(*id));
            }
            socket.rig.settle();
        }
        for (id, mut got) in peers.iter().zip(got) {
            got.extend(socket.rig.far_recv_all(*id));
            assert!(
                got.iter()
                    .map(|text| number([text.clone()].as_slice()))
                    .eq(0..HWM as u64 + 20)
            );
        }
        assert_eq!(socket.rig.dropped_in_all(), 0);
    }
}

#[test]
fn queues_of_one_name_stay_in_order_whatever_the_order_of_leaving() {
    let mut socket = Socket::new(&router::ROUTER, 0, true);
    let mut sent = 0;
    let mut fill = |socket: &mut Socket| {
        for _ in 0..HWM + 2 {
            socket.rig.send(["x".to_owned(), sent.to_string()]).unwrap();
            sent += 1;
        }
    };
    let old = socket.accept("x");
    fill(&mut socket);
    // Its last message is unread when it leaves, so that its pipe stays.
    socket.rig.far_send(old, ["unread"]);
    socket.rig.far_close(old);
    socket.rig.settle();
    // Not read from disk before it leaves, too.
    let new = socket.accept("x");
    fill(&mut socket);
    socket.rig.far_close(new);
    socket.rig.settle();
    assert_eq!(socket.rig.recv().unwrap(), ["x", "unread"]);
    socket.rig.settle();
    assert!(socket.rig.is_gone(old) && socket.rig.is_gone(new));
    let last = socket.accept("x");
    let mut got = Vec::new();
    while socket.on_disk() > 0 {
        socket.drain();
        got.extend(socket.rig.far_recv_all(last));
        socket.rig.settle();
    }
    // The new pipe was held, so that nothing was in its memory.
    let expected: Vec<_> = (HWM..2 * HWM + 4).map(|n| n.to_string()).collect();
    assert_eq!(got, expected);
}
