//! The memory budget of a context limits the memory that all peers together may take.

mod common;

use std::fs;
use std::io::{ErrorKind as IoErrorKind, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::raw::{self, COMMAND, LONG};
use common::{Monitor, SocketExt, Watchdog, socket, until};
use zeroxide::{Context, DropReason, EventKind, Socket, SocketType, Value, Wait, ids};

use SocketType::{Pub, Pull, Push, Rep, Req, Xpub};

/// The number of MEMORY_BUDGET.
const MEMORY_BUDGET: i32 = 1101;
/// The number of THREAD_NAME_PREFIX.
const THREAD_NAME_PREFIX: i32 = 9;
const MIB: usize = 1 << 20;

fn context(budget: usize) -> Context {
    let context = Context::new();
    let value = Value::Int(budget as i64);
    context.set_option(MEMORY_BUDGET, &value).unwrap();
    assert_eq!(context.get_option(MEMORY_BUDGET).unwrap(), value);
    context
}

fn bound(context: &Context) -> (Socket, String) {
    let pull = socket(context, Pull);
    pull.int(ids::RCVHWM, 0);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    (pull, endpoint)
}

/// A peer in another context.
fn client(endpoint: &str) -> Socket {
    let push = socket(&Context::new(), Push);
    push.int(ids::SNDHWM, 0);
    push.connect(endpoint).unwrap();
    push
}

/// Announces a message of `size` bytes and keeps sending it until the connection ends.
fn begin(mut peer: TcpStream, size: u64) -> JoinHandle<()> {
    thread::spawn(move || {
        announce(&mut peer, size);
        let body = vec![0; MIB];
        while let Err(IoErrorKind::Interrupted) | Ok(()) =
            peer.write_all(&body).map_err(|error| error.kind())
        {}
    })
}

fn announce(peer: &mut TcpStream, size: u64) {
    let mut header = vec![LONG];
    header.extend(size.to_be_bytes());
    peer.write_all(&header).unwrap();
}

/// Whether no byte of this connection waits in the kernel: the other side, in this process, has read everything.
fn is_read(peer: &TcpStream) -> bool {
    let (near, far) = (peer.local_addr().unwrap(), peer.peer_addr().unwrap());
    let port = |field: &str| u16::from_str_radix(field.rsplit(':').next().unwrap(), 16).unwrap();
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let mut ends = 0;
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ports = [port(fields[1]), port(fields[2])];
        if ports == [near.port(), far.port()] || ports == [far.port(), near.port()] {
            if fields[4] != "00000000:00000000" {
                return false;
            }
            ends += 1;
        }
    }
    // A closed one is not there any more.
    ends == 2
}

fn is_closed(peer: &TcpStream) -> bool {
    peer.set_nonblocking(true).unwrap();
    let seen = peer.peek(&mut [0]);
    peer.set_nonblocking(false).unwrap();
    match seen {
        Ok(count) => count == 0,
        Err(error) => error.kind() != IoErrorKind::WouldBlock,
    }
}

#[test]
fn a_default_is_there_and_is_generous() {
    let Value::Int(budget) = Context::new().get_option(MEMORY_BUDGET).unwrap() else {
        panic!("a number");
    };
    assert!(budget > 64 << 20, "{budget}");
    assert!(
        Context::new()
            .set_option(MEMORY_BUDGET, &Value::Int(-1))
            .is_ok()
    );
    assert!(
        Context::new()
            .set_option(MEMORY_BUDGET, &Value::Int(-2))
            .is_err()
    );
}

#[test]
fn a_message_that_can_never_be_completed_is_dropped_and_others_stay() {
    let _watchdog =
        Watchdog::new("a_message_that_can_never_be_completed_is_dropped_and_others_stay");
    const PEERS: usize = 5;
    let context = context(16 * MIB);
    let (pull, endpoint) = bound(&context);
    let monitor = Monitor::of(&context, &pull);
    let before = client(&endpoint);
    before.put("before");
    assert_eq!(pull.take(), "before");
    let peers: Vec<_> = (0..PEERS)
        .map(|_| begin(raw::join(&endpoint, "PUSH"), 1 << 30))
        .collect();
    for n in 0..20 {
        before.put(&format!("meanwhile {n}"));
        assert_eq!(pull.take(), format!("meanwhile {n}"));
    }
    for peer in peers {
        peer.join().unwrap();
    }
    until(|| pull.dropped(DropReason::NoMemory) == PEERS as u64);
    monitor.wait_for(EventKind::Disconnected);
    // A large message that fits is still one.
    let after = client(&endpoint);
    after.send(vec![7u8; 8 * MIB], Wait::Forever).unwrap();
    assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 8 * MIB);
    before.put("after");
    assert_eq!(pull.take(), "after");
}

#[test]
fn a_small_half_message_is_nobodys_harm() {
    let _watchdog = Watchdog::new("a_small_half_message_is_nobodys_harm");
    let context = context(16 * MIB);
    let (pull, endpoint) = bound(&context);
    let half: Vec<_> = (0..200)
        .map(|_| {
            let mut peer = raw::join(&endpoint, "PUSH");
            peer.write_all(b"\x02\0\0\0\0\x40\0\0\0begun").unwrap();
            peer
        })
        .collect();
    until(|| pull.peers() == half.len());
    let client = client(&endpoint);
    for _ in 0..3 {
        client.send(vec![7u8; 4 * MIB], Wait::Forever).unwrap();
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 4 * MIB);
    }
    assert_eq!(pull.peers(), half.len() + 1);
    assert_eq!(pull.dropped(DropReason::NoMemory), 0);
}

#[test]
fn unreceived_messages_make_their_senders_wait_and_are_not_lost() {
    let _watchdog = Watchdog::new("unreceived_messages_make_their_senders_wait_and_are_not_lost");
    const COUNT: usize = 64;
    let context = context(8 * MIB);
    let (pull, endpoint) = bound(&context);
    let clients = [client(&endpoint), client(&endpoint)];
    for client in &clients {
        for _ in 0..COUNT {
            client.send(vec![7u8; MIB], Wait::Forever).unwrap();
        }
    }
    let queued = || pull.stats().unwrap().queued_in;
    until(|| queued() >= 4);
    // A peer with few messages is served in between.
    let modest = client(&endpoint);
    modest.put("little");
    let mut seen = 0;
    for _ in 0..=2 * COUNT {
        assert!(queued() <= 10, "{} wait", queued());
        seen += usize::from(pull.recv(Wait::Forever).unwrap().size() == MIB);
    }
    assert_eq!(seen, 2 * COUNT);
    assert_eq!(pull.dropped(DropReason::NoMemory), 0);
}

#[test]
fn conflated_messages_count_with_their_size() {
    let _watchdog = Watchdog::new("conflated_messages_count_with_their_size");
    const SIZE: usize = 20 * MIB;
    // Three quarters are 48 MiB: room for two of the messages.
    let context = context(64 * MIB);
    let pull = socket(&context, Pull);
    pull.int(ids::CONFLATE, 1);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let clients = [(); 3].map(|()| client(&endpoint));
    let queued = || pull.stats().unwrap().queued_in;
    for (n, client) in (1..).zip(&clients) {
        client.send(vec![7u8; SIZE], Wait::Forever).unwrap();
        if n < clients.len() {
            until(|| queued() == n as u64);
        }
    }
    // Enough time to read the last message, too.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(queued(), 2);
    for _ in &clients {
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), SIZE);
    }
    assert_eq!(pull.dropped(DropReason::NoMemory), 0);
}

#[test]
fn many_small_messages_count_with_their_overhead() {
    let _watchdog = Watchdog::new("many_small_messages_count_with_their_overhead");
    let context = context(4 * MIB);
    let (pull, endpoint) = bound(&context);
    let mut peer = raw::join(&endpoint, "PUSH");
    let flood = thread::spawn(move || {
        for _ in 0..400 {
            peer.write_all(&[0; 2000]).unwrap();
        }
        peer
    });
    let queued = || pull.stats().unwrap().queued_in;
    until(|| queued() >= 30_000);
    let mut received = 0;
    while received < 400 * 1000 {
        assert!(queued() < 100_000, "{} wait", queued());
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 0);
        received += 1;
    }
    drop(flood.join().unwrap());
}

#[test]
fn a_peer_that_waits_in_the_middle_of_decoding_costs_no_time() {
    let _watchdog = Watchdog::new("a_peer_that_waits_in_the_middle_of_decoding_costs_no_time");
    let context = context(MIB);
    let prefix = Value::from("held");
    context.set_option(THREAD_NAME_PREFIX, &prefix).unwrap();
    let (pull, endpoint) = bound(&context);
    let mut peer = raw::join(&endpoint, "PUSH");
    // More than three quarters of the budget, including the overhead of each, in a single read.
    const COUNT: usize = 12_000;
    peer.write_all(&[0; 2 * COUNT]).unwrap();
    let queued = || pull.stats().unwrap().queued_in;
    until(|| queued() == COUNT as u64);
    let before = io_time("held/ZMQbg/IO/");
    thread::sleep(Duration::from_millis(500));
    let spent = io_time("held/ZMQbg/IO/") - before;
    assert!(spent < Duration::from_millis(100), "{spent:?} of 500 ms");
    for _ in 0..COUNT {
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 0);
    }
    peer.write_all(&raw::frame(0, b"after")).unwrap();
    assert_eq!(pull.take(), "after");
}

/// How long the thread of this name has been on a CPU.
fn io_time(name: &str) -> Duration {
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        // Threads of other tests end meanwhile.
        let comm = fs::read_to_string(task.join("comm")).unwrap_or_default();
        if comm.trim_end().starts_with(name) {
            let text = fs::read_to_string(task.join("schedstat")).unwrap();
            return Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap());
        }
    }
    panic!("there is no thread {name}");
}

#[test]
fn a_silent_peer_that_holds_most_makes_room_for_another_message() {
    let _watchdog = Watchdog::new("a_silent_peer_that_holds_most_makes_room_for_another_message");
    // Three quarters are 24 MiB: room for each of the two, and not for both.
    let context = context(32 * MIB);
    let (pull, endpoint) = bound(&context);
    const LARGER: usize = 13 * MIB;
    const SMALLER: usize = 12 * MIB;
    let begin = |size: usize| {
        let mut peer = raw::join(&endpoint, "PUSH");
        announce(&mut peer, size as u64);
        peer.write_all(&vec![7; size - 1]).unwrap();
        peer
    };
    let silent = begin(LARGER);
    until(|| is_read(&silent));
    let mut other = begin(SMALLER);
    // At the latest now there is no room to read on.
    until(|| is_closed(&silent) || is_read(&other));
    other.write_all(&[7]).unwrap();
    raw::wait_for_close(&silent);
    assert_eq!(pull.recv(Wait::Forever).unwrap().size(), SMALLER);
    assert_eq!(pull.dropped(DropReason::NoMemory), 1);
}

#[test]
fn a_completed_message_is_not_held_against_its_peer() {
    let _watchdog = Watchdog::new("a_completed_message_is_not_held_against_its_peer");
    let context = context(32 * MIB);
    let (pull, endpoint) = bound(&context);
    let mut first = raw::join(&endpoint, "PUSH");
    let send = |peer: &mut TcpStream, size: usize| {
        announce(peer, size as u64);
        peer.write_all(&vec![7; size - 1]).unwrap();
        until(|| is_read(peer));
        peer.write_all(&[7]).unwrap();
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), size);
    };
    send(&mut first, 20 * MIB);
    // Together they are too much.
    let mut second = raw::join(&endpoint, "PUSH");
    send(&mut second, 16 * MIB);
    send(&mut first, 1000);
    send(&mut first, 20 * MIB);
    assert_eq!(pull.dropped(DropReason::NoMemory), 0);
}

#[test]
fn a_greedy_peer_does_not_silence_the_other_sockets() {
    let _watchdog = Watchdog::new("a_greedy_peer_does_not_silence_the_other_sockets");
    let context = context(16 * MIB);
    let (pull, endpoint) = bound(&context);
    let rep = socket(&context, Rep);
    let question = "x".repeat(100);
    let addresses: Vec<String> = ["tcp://127.0.0.1:*", "ipc://*"]
        .iter()
        .map(|endpoint| rep.bind(endpoint).unwrap())
        .collect();
    let ask = |req: &Socket, times: usize| {
        for _ in 0..times {
            req.put(&question);
            rep.put(&rep.take());
            assert_eq!(req.take(), question);
        }
    };
    let asking = || -> Vec<Socket> {
        addresses
            .iter()
            .map(|address| {
                let req = socket(&Context::new(), Req);
                req.connect(address).unwrap();
                ask(&req, 1);
                req
            })
            .collect()
    };
    let before = asking();
    let greedy = client(&endpoint);
    for _ in 0..8 {
        greedy.send(vec![7u8; MIB], Wait::Forever).unwrap();
    }
    until(|| pull.stats().unwrap().queued_in == 8);
    // From now on it is twice what all may hold.
    context
        .set_option(MEMORY_BUDGET, &Value::Int(4 * MIB as i64))
        .unwrap();
    // Each brings more than it may before it looks at the budget.
    for req in before.into_iter().chain(asking()) {
        ask(&req, 2000);
    }
    assert_eq!(pull.stats().unwrap().queued_in, 8);
}

#[test]
fn properties_of_peers_count() {
    let _watchdog = Watchdog::new("properties_of_peers_count");
    let context = context(4 * MIB);
    let (pull, endpoint) = bound(&context);
    let failures = pull.event_stream(EventKind::AcceptFailed as u32).unwrap();
    let mut ready = raw::ready("PUSH");
    ready.extend(b"\x01X");
    ready.extend(60_000_u32.to_be_bytes());
    ready.resize(ready.len() + 60_000, b'x');
    let ready = raw::frame(COMMAND, &ready);
    let (mut peers, mut failure) = (Vec::new(), None);
    while failure.is_none() {
        let mut peer = raw::dial(&endpoint);
        peer.write_all(&raw::greeting()).unwrap();
        peer.write_all(&ready).unwrap();
        peers.push(peer);
        // The properties count once the handshake has succeeded.
        until(|| {
            failure = failures.next(Wait::Dont).ok().flatten();
            failure.is_some() || pull.peers() == peers.len()
        });
        assert!(peers.len() < 400, "nothing limits the properties");
    }
    let failure = failure.unwrap();
    assert!(failure.reason.unwrap().contains("MEMORY_BUDGET"));
    assert!(pull.peers() < 90, "{}", pull.peers());
}

/// The subscriptions to `count` topics of 20 digits, of which `first` is the first.
fn subscriptions(first: usize, count: usize) -> Vec<u8> {
    let topics = first..first + count;
    let frames =
        topics.map(|topic| raw::frame(COMMAND, format!("\x09SUBSCRIBE{topic:020}").as_bytes()));
    frames.collect::<Vec<_>>().concat()
}

#[test]
fn topics_of_many_subscribers_have_a_limit_together() {
    let _watchdog = Watchdog::new("topics_of_many_subscribers_have_a_limit_together");
    const BUDGET: usize = 8 * MIB;
    const PEERS: usize = 40;
    const EACH: usize = 2000;
    for socket_type in [Pub, Xpub] {
        let publisher = socket(&context(BUDGET), socket_type);
        let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
        let topics = || publisher.get_int(ids::TOPICS_COUNT).unwrap() as usize;
        let refused = || publisher.dropped(DropReason::Excess) as usize;
        let mut late = raw::join(&endpoint, "SUB");
        let mut peers: Vec<TcpStream> = (0..PEERS).map(|_| raw::join(&endpoint, "SUB")).collect();
        for (n, peer) in peers.iter_mut().enumerate() {
            peer.write_all(&subscriptions(n * EACH, EACH)).unwrap();
        }
        until(|| topics() + refused() == PEERS * EACH);
        // A quarter of the budget for the first peers, and of another quarter an equal share for each. A topic counts
        // as its bytes and 100.
        assert!(120 * topics() <= BUDGET / 2 + BUDGET / 100);
        assert!(120 * topics() >= BUDGET / 4);
        // All peers stay, and are sent what they could subscribe to.
        assert_eq!(publisher.peers(), PEERS + 1);
        for (n, peer) in peers.iter_mut().enumerate() {
            let topic = format!("{:020}", n * EACH);
            publisher.put(&topic);
            assert_eq!(raw::read_frame(peer).unwrap(), (0, topic.into_bytes()));
        }
        let before = refused();
        late.write_all(&raw::frame(COMMAND, b"\x09SUBSCRIBEnews"))
            .unwrap();
        until(|| topics() + before == PEERS * EACH + 1);
        publisher.put("news");
        assert_eq!(raw::read_frame(&mut late).unwrap().1, b"news");
        drop(peers);
        until(|| topics() == 1);
        late.write_all(&subscriptions(0, 8 * EACH)).unwrap();
        until(|| topics() + refused() == 8 * EACH + 1 + before);
        assert_eq!(refused(), before, "the others made room");
    }
}
