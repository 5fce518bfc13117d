//! Sockets with a small disk against a list of what each peer must get, with random reads, closes and crashes.

mod absent;
mod deserted;
mod disks;

use std::collections::{HashMap, VecDeque};

use tempfile::TempDir;

use super::*;
use crate::error::ErrorKind;
use crate::patterns::pipe_set::{Overflow, Spills};
use crate::patterns::rig::{Rig, subscribe};
use crate::patterns::{PatternSpec, dealer, publish, push, router};
use crate::spill::Folder;

const HWM: usize = 4;

/// A rig with its folder, which outlives it.
struct Socket {
    rig: Rig,
    spec: &'static PatternSpec,
    limit: u64,
    keep: bool,
    dir: TempDir,
}

impl Socket {
    fn new(spec: &'static PatternSpec, limit: u64, keep: bool) -> Socket {
        let dir = tempfile::tempdir().unwrap();
        let rig = Rig::with_hwm(spec, HWM);
        let mut socket = Socket {
            rig,
            spec,
            limit,
            keep,
            dir,
        };
        socket.open();
        socket
    }

    fn open(&mut self) {
        let owner = self.spec.socket_type.name();
        let (folder, contents) = Folder::open(self.dir.path(), owner, self.keep).unwrap();
        assert_eq!(contents.cut, 0);
        let overflow = Overflow::new(folder, contents, self.spec.spills, self.limit).unwrap();
        self.rig.pipes.set_overflow(overflow);
    }

    /// The process ends, and another one takes over the folder. Memory is lost.
    fn restart(&mut self, closes: bool) {
        let overflow = self.rig.pipes.take_overflow().unwrap();
        if closes {
            overflow.close();
        } else {
            drop(overflow);
        }
        self.rig = Rig::with_hwm(self.spec, HWM);
        self.open();
    }

    fn accept(&mut self, name: &str) -> PipeId {
        let id = self.rig.accept(name);
        self.rig.pipes.adopt(id, Some(name.as_bytes()));
        if self.spec.socket_type.publishes() {
            self.rig.far_send_message(id, subscribe(""));
            self.rig.settle();
        }
        id
    }

    fn drain(&mut self) -> Drained {
        let drained = drain(&mut *self.rig.pattern, &mut self.rig.pipes);
        self.rig.pipes.flush();
        self.rig.settle();
        drained
    }

    fn on_disk(&self) -> u64 {
        self.rig.pipes.overflow().unwrap().size().0
    }

    fn bytes_on_disk(&self) -> u64 {
        self.rig.pipes.overflow().unwrap().size().1
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A message that names itself, with one to three parts of random sizes.
fn body(number: u64, random: &mut Random) -> Vec<Vec<u8>> {
    let mut parts = vec![format!("{number}").into_bytes()];
    for _ in 0..random.below(3) {
        parts.push(vec![b'x'; random.below(200) as usize]);
    }
    parts
}

fn number(text: &[String]) -> u64 {
    text[0].parse().unwrap()
}

#[test]
fn one_queue_agrees_with_a_list() {
    for seed in 0..50u64 {
        let mut random = Random(seed);
        let spec = [&push::PUSH, &dealer::DEALER][random.below(2) as usize];
        let keep = seed % 4 != 0;
        let limit = [0, 700, 3000][random.below(3) as usize];
        let mut socket = Socket::new(spec, limit, keep);
        let mut peer = (random.below(2) == 0).then(|| socket.accept("a"));
        // The messages that were accepted and not received, in order.
        let mut model = VecDeque::new();
        let mut next = 0;
        for step in 0..300 {
            let at = format!("seed {seed}, step {step}");
            match random.below(20) {
                0..10 => {
                    let message = body(next, &mut random);
                    let size: usize = message.iter().map(Vec::len).sum();
                    let size = (16 + 8 * message.len() + size) as u64;
                    let before = socket.bytes_on_disk();
                    match socket.rig.send(message) {
                        Ok(()) => {
                            let after = socket.bytes_on_disk();
                            assert!(after == before || after == before + size, "{at}");
                            model.push_back(next);
                            next += 1;
                        }
                        Err(rejected) => {
                            assert_eq!(rejected.error.kind(), ErrorKind::Again, "{at}");
                            assert!(limit != 0 && before + size > limit, "{at}: {before}");
                            assert_eq!(number(&text(&rejected.message)), next, "{at}");
                        }
                    }
                    assert!(limit == 0 || socket.bytes_on_disk() <= limit, "{at}");
                }
                10..15 => {
                    for _ in 0..random.below(6) {
                        let got = peer.and_then(|peer| socket.rig.far_recv(peer));
                        let Some(got) = got else { break };
                        assert_eq!(Some(number(&got)), model.pop_front(), "{at}");
                    }
                }
                15..18 => {
                    socket.rig.settle();
                    socket.drain();
                }
                18 if peer.is_none() => peer = Some(socket.accept("a")),
                19 if random.below(5) == 0 => {
                    let kept = if keep { socket.on_disk() as usize } else { 0 };
                    socket.restart(random.below(2) == 0);
                    // The messages in memory are lost. They are older than those on disk.
                    drop(model.drain(..model.len() - kept));
                    assert_eq!(socket.on_disk(), kept as u64, "{at}");
                    peer = None;
                }
                _ => {}
            }
        }
        let peer = peer.unwrap_or_else(|| socket.accept("a"));
        while !model.is_empty() {
            socket.drain();
            let got = socket.rig.far_recv(peer).expect("a message");
            assert_eq!(Some(number(&got)), model.pop_front(), "seed {seed}");
        }
        socket.drain();
        assert_eq!(socket.rig.far_recv(peer), None, "seed {seed}");
        assert_eq!(socket.bytes_on_disk(), 0, "seed {seed}");
        assert_eq!(socket.rig.dropped_in_all(), 0, "seed {seed}");
        let left = std::fs::read_dir(socket.dir.path()).unwrap().count();
        assert_eq!(left, 1, "the lock, seed {seed}");
    }
}

#[test]
fn each_peer_agrees_with_its_own_list() {
    for seed in 0..50u64 {
        let mut random = Random(seed);
        let specs: [&PatternSpec; 2] = [&router::ROUTER, &publish::PUB];
        let spec = specs[random.below(2) as usize];
        let is_router = spec.spills == Spills::ForEachPeer && !spec.socket_type.publishes();
        let keep = is_router && random.below(3) != 0;
        let limit = [0, 1500, 6000][random.below(3) as usize];
        let mut socket = Socket::new(spec, limit, keep);
        let names = ["a", "b", "c"];
        let mut peers: Vec<_> = names.map(|name| socket.accept(name)).into();
        let mut models: Vec<VecDeque<u64>> = vec![VecDeque::new(); 3];
        let mut next = 0;
        for step in 0..300 {
            let at = format!("seed {seed}, step {step}");
            let who = random.below(3) as usize;
            match random.below(20) {
                0..10 => {
                    let mut message = body(next, &mut random);
                    if is_router {
                        message.insert(0, names[who].into());
                    }
                    let dropped: Vec<_> = peers.iter().map(|id| drops(&socket, *id)).collect();
                    socket.rig.send(message).unwrap();
                    for (n, id) in peers.iter().enumerate() {
                        let lost = drops(&socket, *id) - dropped[n];
                        assert!(lost == 0 || limit != 0, "{at}");
                        if lost == 0 && (!is_router || n == who) {
                            models[n].push_back(next);
                        }
                    }
                    next += 1;
                    assert!(limit == 0 || socket.bytes_on_disk() <= limit, "{at}");
                }
                10..15 => {
                    for _ in 0..random.below(6) {
                        let Some(got) = socket.rig.far_recv(peers[who]) else {
                            break;
                        };
                        assert_eq!(Some(number(&got)), models[who].pop_front(), "{at}");
                    }
                }
                15..18 => {
                    socket.rig.settle();
                    socket.drain();
                }
                18 if random.below(4) == 0 => {
                    // A peer leaves and returns.
                    let overflow = socket.rig.pipes.overflow().unwrap();
                    let spilled = overflow.size_for(peers[who]).0 as usize;
                    let kept = if keep { spilled } else { 0 };
                    socket.rig.far_close(peers[who]);
                    socket.rig.settle();
                    let lost = models[who].len() - kept;
                    drop(models[who].drain(..lost));
                    let before = socket.on_disk();
                    peers[who] = socket.accept(names[who]);
                    assert_eq!(socket.on_disk(), before, "{at}");
                }
                19 if random.below(5) == 0 => {
                    for (n, id) in peers.iter().enumerate() {
                        let overflow = socket.rig.pipes.overflow().unwrap();
                        let spilled = overflow.size_for(*id).0 as usize;
                        let lost = models[n].len() - if keep { spilled } else { 0 };
                        drop(models[n].drain(..lost));
                    }
                    socket.restart(random.below(2) == 0);
                    peers = names.map(|name| socket.accept(name)).into();
                }
                _ => {}
            }
        }
        for (n, id) in peers.iter().enumerate() {
            while !models[n].is_empty() {
                socket.drain();
                let got = socket.rig.far_recv(*id).expect("a message");
                assert_eq!(Some(number(&got)), models[n].pop_front(), "seed {seed}");
            }
            socket.drain();
            assert_eq!(socket.rig.far_recv(*id), None, "seed {seed}");
        }
        assert_eq!(socket.bytes_on_disk(), 0, "seed {seed}");
        let left = std::fs::read_dir(socket.dir.path()).unwrap().count();
        assert_eq!(left, 1, "the lock, seed {seed}");
    }
}

fn drops(socket: &Socket, id: PipeId) -> u64 {
    let mut count = 0;
    socket.rig.pipes.for_each(|other, _, _, counters| {
        if other == id {
            count = counters.dropped(DropReason::HighWater);
        }
        std::ops::ControlFlow::Continue(())
    });
    count
}

fn text(message: &zeroxide_proto::message::Message) -> Vec<String> {
    let frames = message.iter();
    frames
        .map(|frame| frame.escape_ascii().to_string())
        .collect()
}

#[test]
fn messages_on_disk_go_to_the_pullers_that_have_room() {
    let mut socket = Socket::new(&push::PUSH, 0, false);
    let (a, b) = (socket.accept(""), socket.accept(""));
    for n in 0..20 {
        socket.rig.send([format!("{n}")]).unwrap();
    }
    assert_eq!(socket.on_disk(), 12);
    let mut got: HashMap<PipeId, Vec<u64>> = HashMap::new();
    while socket.on_disk() > 0 {
        // One of them is slow.
        for (id, count) in [(a, 4), (b, 1)] {
            for _ in 0..count {
                let Some(text) = socket.rig.far_recv(id) else {
                    break;
                };
                got.entry(id).or_default().push(number(&text));
            }
            socket.rig.settle();
        }
        socket.drain();
    }
    for id in [a, b] {
        for text in socket.rig.far_recv_all(id) {
            got.entry(id).or_default().push(text.parse().unwrap());
        }
        assert!(got[&id].is_sorted(), "{got:?}");
    }
    assert_eq!(got[&a].len() + got[&b].len(), 20);
    assert!(got[&a].len() > got[&b].len(), "{got:?}");
    assert_eq!(socket.rig.dropped_in_all(), 0);
}

#[test]
fn a_puller_that_leaves_takes_nothing_from_disk_with_it() {
    let mut socket = Socket::new(&push::PUSH, 0, false);
    let a = socket.accept("");
    for n in 0..10 {
        socket.rig.send([format!("{n}")]).unwrap();
    }
    socket.rig.far_close(a);
    socket.rig.settle();
    socket.drain();
    assert_eq!(socket.on_disk(), 6);
    let b = socket.accept("");
    socket.drain();
    assert_eq!(socket.rig.far_recv_all(b), ["4", "5", "6", "7"]);
    socket.drain();
    assert_eq!(socket.rig.far_recv_all(b), ["8", "9"]);
}

#[test]
fn a_subscriber_that_leaves_gives_its_room_to_others() {
    let mut socket = Socket::new(&publish::PUB, 1000, false);
    let a = socket.accept("");
    for n in 0..100 {
        socket.rig.send([format!("{n:02}")]).unwrap();
    }
    let on_disk = socket.on_disk();
    assert_eq!(on_disk, socket.bytes_on_disk() / 26);
    assert_eq!(socket.rig.dropped(DropReason::HighWater), 96 - on_disk);
    socket.rig.far_close(a);
    socket.rig.settle();
    assert_eq!((socket.on_disk(), socket.bytes_on_disk()), (0, 0));
    assert_eq!(socket.rig.dropped(DropReason::PeerGone), on_disk);
    socket.accept("");
    for n in 0..100 {
        socket.rig.send([format!("{n:02}")]).unwrap();
    }
    assert_eq!(socket.on_disk(), on_disk);
}

#[test]
fn a_strict_router_waits_when_its_disk_is_full() {
    use crate::options::PatternOption;
    let mut socket = Socket::new(&router::ROUTER, 100, false);
    let a = socket.accept("a");
    socket
        .rig
        .set(PatternOption::RouterMandatory(true))
        .unwrap();
    for _ in 0..HWM + 4 {
        assert!(socket.rig.can_send());
        socket.rig.send(["a", "x"]).unwrap();
    }
    let rejected = socket.rig.send(["a", "last"]).unwrap_err();
    assert_eq!(rejected.error.kind(), ErrorKind::Again);
    assert_eq!(text(&rejected.message), ["a", "last"]);
    assert!(!socket.rig.can_send());
    assert_eq!(socket.rig.far_recv_all(a).len(), HWM);
    socket.drain();
    assert!(socket.rig.can_send());
    assert_eq!(socket.rig.far_recv_all(a).len(), 4);
    assert_eq!(socket.rig.dropped_in_all(), 0);
}

#[test]
fn a_folder_of_another_type_is_refused() {
    let mut socket = Socket::new(&push::PUSH, 0, true);
    socket.rig.send(["x"]).unwrap();
    socket.rig.pipes.take_overflow().unwrap().close();
    let (folder, contents) = Folder::open(socket.dir.path(), "PUSH", true).unwrap();
    let error = Overflow::new(folder, contents, Spills::ForEachPeer, 0)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = Folder::open(socket.dir.path(), "PUSH", false)
        .err()
        .unwrap();
    assert!(error.to_string().contains("holds 1 messages"), "{error}");
}

#[test]
fn a_damaged_file_costs_its_messages_and_no_others() {
    let mut socket = Socket::new(&push::PUSH, 0, false);
    let mut sent = 0;
    // Two files and the beginning of a third.
    while std::fs::read_dir(socket.dir.path().join("queue-0")).map_or(0, Iterator::count) < 4 {
        socket.rig.send([&vec![b'x'; 4 << 20]]).unwrap();
        sent += 1;
    }
    let path = socket.dir.path().join("queue-0/segment-0000000001");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"y", 1000).unwrap();
    let peer = socket.accept("");
    let mut got = 0;
    while socket.on_disk() > 0 {
        socket.drain();
        got += socket.rig.far_recv_all(peer).len() as u64;
    }
    let lost = socket.rig.dropped(DropReason::Disk);
    assert!(lost > 0 && got > 0);
    assert_eq!(got + lost, sent);
    assert_eq!(socket.bytes_on_disk(), 0);
}

#[test]
fn files_go_when_they_are_read_and_a_failing_disk_only_delays() {
    let mut socket = Socket::new(&push::PUSH, 0, false);
    let queue = socket.dir.path().join("queue-0");
    let mut sent = 0;
    // Two files and the beginning of a third.
    while std::fs::read_dir(&queue).map_or(0, Iterator::count) < 4 {
        let number = format!("{sent}").into_bytes();
        socket.rig.send([number, vec![b'x'; 4 << 20]]).unwrap();
        sent += 1;
    }
    let file = |number: u64| queue.join(format!("segment-{number:010}"));
    let aside = socket.dir.path().join("aside");
    std::fs::rename(file(1), &aside).unwrap();
    std::fs::create_dir(file(1)).unwrap();
    let peer = socket.accept("");
    let mut got = Vec::new();
    while socket.drain().next != Next::Later {
        while let Some(text) = socket.rig.far_recv(peer) {
            got.push(number(&text));
        }
        socket.rig.settle();
    }
    assert!(!file(0).exists() && file(2).exists());
    let refused = socket.rig.send(["not sent"]).unwrap_err();
    assert!(refused.error.to_string().contains("Is a directory"));
    std::fs::remove_dir(file(1)).unwrap();
    std::fs::rename(&aside, file(1)).unwrap();
    while socket.on_disk() > 0 {
        socket.drain();
        while let Some(text) = socket.rig.far_recv(peer) {
            got.push(number(&text));
        }
        socket.rig.settle();
    }
    assert_eq!(got, (0..sent).collect::<Vec<_>>());
    assert_eq!(socket.rig.dropped_in_all(), 0);
}

#[test]
fn kept_messages_stay_on_disk_while_the_server_is_away() {
    let mut socket = Socket::new(&push::PUSH, 1 << 20, true);
    let server = socket.rig.connect();
    socket.rig.ready(server, "");
    for number in 0..2 * HWM {
        socket.rig.send([number.to_string()]).unwrap();
    }
    let kept = socket.on_disk();
    assert!(kept > 0);
    socket.rig.far_hang_up(server);
    while socket.rig.far_recv(server).is_some() {}
    socket.drain();
    assert_eq!(socket.on_disk(), kept);
    socket.rig.disconnected(server);
    socket.rig.ready(server, "");
    socket.drain();
    assert!(socket.on_disk() < kept);
}

#[test]
fn kept_messages_are_older_than_those_since_the_peer_came() {
    let mut socket = Socket::new(&router::ROUTER, 0, true);
    socket.accept("a");
    for n in 0..10 {
        socket.rig.send(["a".to_owned(), format!("{n}")]).unwrap();
    }
    socket.restart(true);
    let a = socket.rig.accept("a");
    for n in 10..20 {
        socket.rig.send(["a".to_owned(), format!("{n}")]).unwrap();
    }
    socket.rig.pipes.adopt(a, Some(b"a"));
    let mut got = Vec::new();
    while got.len() < 16 {
        socket.drain();
        got.extend(socket.rig.far_recv_all(a));
        socket.rig.settle();
    }
    let kept = got.iter().map(|text| text.parse::<u64>().unwrap());
    let expected = (10..14).chain(4..10).chain(14..20);
    assert!(kept.eq(expected), "{got:?}");
}
