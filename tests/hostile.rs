//! Peers that mean harm, or know no better. Whatever they do: a well-behaved client that was connected before and one
//! that connects afterwards are both served, and in the end nothing is left of it, no descriptor, no memory, no work.

mod common;

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::raw::{self, COMMAND, LONG, MORE, Random};
use common::{
    Monitor, SocketExt, Watchdog, alone, descriptors, mapped, processor_time, resident, rounds,
    socket, until,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use zeroxide::binding::SocketInternals;
use zeroxide::{Context, DropReason, ErrorKind, EventKind, Socket, SocketType, Wait, ids};

use SocketType::{Dealer, Pub, Pull, Router, Sub};

/// How much more memory the process may have afterwards, in KiB.
const MEMORY: usize = 32 << 10;

/// A server that echoes, and a client that has been there all along.
struct Scene {
    context: Context,
    router: Socket,
    server: Option<JoinHandle<()>>,
    endpoint: String,
    client: Socket,
    descriptors: usize,
    resident: usize,
}

impl Scene {
    fn new() -> Scene {
        let context = Context::new();
        let router = socket(&context, Router);
        // A peer that finds no room here tries again after a second.
        router.int(ids::BACKLOG, 4096);
        let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
        let server = {
            let router = router.clone();
            thread::spawn(move || {
                loop {
                    match router.recv(Wait::Forever) {
                        Ok(message) => router.send(message, Wait::Forever).unwrap(),
                        Err(error) => return assert_eq!(error.kind(), ErrorKind::NotSocket),
                    }
                }
            })
        };
        let client = socket(&context, Dealer);
        client.connect(&endpoint).unwrap();
        // Objects that the first use creates exist before anything is counted.
        exchange(&client);
        let scene = Scene {
            context,
            router,
            server: Some(server),
            endpoint,
            client,
            descriptors: 0,
            resident: 0,
        };
        scene.newcomer();
        Scene {
            descriptors: descriptors(),
            resident: resident(),
            ..scene
        }
    }

    /// A client connects, is served, and leaves.
    fn newcomer(&self) {
        let newcomer = socket(&self.context, Dealer);
        newcomer.connect(&self.endpoint).unwrap();
        exchange(&newcomer);
        newcomer.close(None);
        until(|| self.router.peers() == 1);
    }

    /// All other clients are served while the attack continues.
    fn others_are_served(&self) {
        exchange(&self.client);
        let newcomer = socket(&self.context, Dealer);
        newcomer.connect(&self.endpoint).unwrap();
        exchange(&newcomer);
    }

    /// The attack is over: all is as it was.
    fn ends_well(mut self) {
        exchange(&self.client);
        self.newcomer();
        until(|| descriptors() <= self.descriptors);
        until(|| resident() <= self.resident + MEMORY);
        until_idle();
        self.router.close(None);
        self.server.take().unwrap().join().unwrap();
        self.client.close(None);
        self.context.term().unwrap();
    }
}

fn exchange(client: &Socket) {
    for n in 0..1000 {
        let question = n.to_string();
        client.put(&question);
        assert_eq!(client.take(), question);
    }
}

/// Waits until every thread of this process is idle. On a busy machine, this may take some time.
fn until_idle() {
    until(|| {
        let before = processor_time();
        thread::sleep(Duration::from_millis(200));
        processor_time() - before < Duration::from_millis(10)
    });
}

#[test]
fn random_bytes() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("random_bytes"));
    let scene = Scene::new();
    for seed in 0..rounds(300, 20_000) {
        let mut random = Random::new(seed as u64);
        let mut stream = raw::dial(&scene.endpoint);
        // The further the beginning is right, the deeper the rest gets.
        let mut bytes = Vec::new();
        if seed % 4 > 0 {
            bytes.extend(raw::greeting());
        }
        if seed % 4 > 1 {
            bytes.extend(raw::frame(COMMAND, &raw::ready("DEALER")));
        }
        if seed % 4 > 2 {
            let place = random.below(bytes.len());
            bytes[place] ^= 1 << random.below(8);
        }
        let length = random.below(4096);
        bytes.extend(random.bytes(length));
        // The server may hang up in the middle of it.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        raw::wait_for_close(&stream);
    }
    scene.ends_well();
}

#[test]
fn commands_that_are_nearly_right() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("commands_that_are_nearly_right"));
    let scene = Scene::new();
    let ping = b"\x04PING\x00\x0acontext".to_vec();
    let subscribe = b"\x09SUBSCRIBEtopic".to_vec();
    let error = b"\x05ERROR\x04what".to_vec();
    let good = [raw::ready("DEALER"), ping, subscribe, error];
    for seed in 0..rounds(400, 20_000) {
        let mut random = Random::new(seed as u64);
        let mut stream = raw::join(&scene.endpoint, "DEALER");
        let mut command = good[random.below(good.len())].clone();
        for _ in 0..random.below(4) {
            let place = random.below(command.len());
            match random.below(3) {
                0 => command[place] = random.below(256) as u8,
                1 => command.truncate(place + 1),
                _ => command.insert(place, random.below(256) as u8),
            }
        }
        let _ = stream.write_all(&raw::frame(COMMAND, &command));
        let _ = stream.shutdown(Shutdown::Write);
        raw::wait_for_close(&stream);
    }
    scene.ends_well();
}

#[test]
fn impossible_lengths_cost_nothing() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("impossible_lengths_cost_nothing"));
    let scene = Scene::new();
    let before = mapped();
    let mut held = Vec::new();
    for length in [1 << 63, u64::MAX, (1 << 63) - 1, 1 << 48, 1 << 40, 1 << 33] {
        for flags in [LONG, LONG | MORE, LONG | COMMAND] {
            let mut stream = raw::join(&scene.endpoint, "DEALER");
            let mut header = vec![flags];
            header.extend(u64::to_be_bytes(length));
            // The connection may be closed at the header.
            let _ = stream.write_all(&header);
            let _ = stream.write_all(&[0; 1024]);
            held.push(stream);
        }
    }
    for _ in 0..200 {
        let mut stream = raw::join(&scene.endpoint, "DEALER");
        stream
            .write_all(&[&[LONG][..], &(1u64 << 30).to_be_bytes(), &[7; 100]].concat())
            .unwrap();
        held.push(stream);
    }
    scene.others_are_served();
    let grown = mapped().saturating_sub(before);
    assert!(
        grown < 64 << 10,
        "{grown} KiB of address space for bytes that never came"
    );
    drop(held);
    scene.ends_well();
}

#[test]
fn one_byte_and_silence() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("one_byte_and_silence"));
    let scene = Scene::new();
    let silent: Vec<TcpStream> = (0..300)
        .map(|n| {
            let mut stream = raw::dial(&scene.endpoint);
            stream.write_all(&[0xff, 0, 0][..n % 4 % 3]).unwrap();
            stream
        })
        .collect();
    scene.others_are_served();
    until_idle();
    drop(silent);
    scene.ends_well();
}

#[test]
fn a_handshake_has_limited_time() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("a_handshake_has_limited_time"));
    let context = Context::new();
    let router = socket(&context, Router);
    router.int(ids::HANDSHAKE_IVL, 50);
    let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
    let silent: Vec<TcpStream> = (0..20).map(|_| raw::dial(&endpoint)).collect();
    for mut stream in &silent[10..] {
        stream.write_all(&raw::greeting()[..40]).unwrap();
    }
    silent.iter().for_each(raw::wait_for_close);
}

#[test]
fn half_a_greeting() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("half_a_greeting"));
    let scene = Scene::new();
    let mut held = Vec::new();
    for length in 0..64 {
        let mut stream = raw::dial(&scene.endpoint);
        stream.write_all(&raw::greeting()[..length]).unwrap();
        if length % 2 == 0 {
            held.push(stream);
        } else {
            let _ = stream.shutdown(Shutdown::Write);
            raw::wait_for_close(&stream);
        }
    }
    // Every version there is, and every bit of it wrong.
    for place in 0..64 * 8 {
        let mut stream = raw::dial(&scene.endpoint);
        let mut greeting = raw::greeting();
        greeting[place / 8] ^= 1 << (place % 8);
        let _ = stream.write_all(&greeting);
        let _ = stream.shutdown(Shutdown::Write);
        raw::wait_for_close(&stream);
    }
    for version in 0..=255 {
        let mut stream = raw::dial(&scene.endpoint);
        let mut greeting = raw::greeting();
        greeting[10] = version;
        let _ = stream.write_all(&greeting);
        let _ = stream.shutdown(Shutdown::Write);
        raw::wait_for_close(&stream);
    }
    scene.others_are_served();
    drop(held);
    scene.ends_well();
}

#[test]
fn a_greeting_byte_by_byte_is_a_greeting() {
    let _watchdog = Watchdog::new("a_greeting_byte_by_byte_is_a_greeting");
    let context = Context::new();
    let pull = socket(&context, Pull);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let mut stream = raw::dial(&endpoint);
    let message = raw::frame(0, b"here at last");
    let all = [
        &raw::greeting()[..],
        &raw::frame(COMMAND, &raw::ready("PUSH")),
        &message,
    ]
    .concat();
    for byte in all {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(pull.take(), "here at last");
}

#[test]
fn wrong_socket_types() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("wrong_socket_types"));
    let scene = Scene::new();
    let long = "X".repeat(255);
    for name in [
        "PUB", "REP", "STREAM", "", "dealer", "DEALER\0", "XYZZY", &long,
    ] {
        let mut stream = raw::dial(&scene.endpoint);
        stream.write_all(&raw::greeting()).unwrap();
        stream
            .write_all(&raw::frame(COMMAND, &raw::ready(name)))
            .unwrap();
        let mut theirs = [0; 64];
        stream.read_exact(&mut theirs).unwrap();
        // It sends READY before it knows, then the reason, then nothing more.
        let mut said = Vec::new();
        while let Ok((flags, body)) = raw::read_frame(&mut stream) {
            assert_eq!(flags, COMMAND);
            said.push(body);
        }
        let last = said.last().unwrap();
        assert!(
            last.starts_with(b"\x05ERROR"),
            "{name}: {}",
            String::from_utf8_lossy(last)
        );
    }
    scene.ends_well();
}

#[test]
fn endless_parts() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("endless_parts"));
    let scene = Scene::new();
    let mut stream = raw::join(&scene.endpoint, "DEALER");
    let many = raw::frame(MORE, b"x").repeat(10_000);
    let mut sent = 0;
    while stream.write_all(&many).is_ok() {
        sent += 10_000;
        assert!(sent < 10_000_000, "sending is not stopped");
    }
    drop(stream);
    scene.ends_well();
}

#[test]
fn a_limit_for_messages_holds_for_all_parts_together() {
    let _watchdog = Watchdog::new("a_limit_for_messages_holds_for_all_parts_together");
    let context = Context::new();
    let pull = socket(&context, Pull);
    pull.int(ids::MAXMSGSIZE, 1000);
    let events = Monitor::of(&context, &pull);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    for parts in [vec![1000], vec![999], vec![500, 500], vec![0, 0, 1000]] {
        let mut stream = raw::join(&endpoint, "PUSH");
        for (n, size) in parts.iter().enumerate() {
            let more = if n + 1 < parts.len() { MORE } else { 0 };
            stream
                .write_all(&raw::frame(more, &vec![7; *size]))
                .unwrap();
        }
        assert_eq!(pull.recv(Wait::Forever).unwrap().len(), parts.len());
    }
    for parts in [vec![1001], vec![500, 501], vec![1000, 0, 1]] {
        let mut stream = raw::join(&endpoint, "PUSH");
        for (n, size) in parts.iter().enumerate() {
            let more = if n + 1 < parts.len() { MORE } else { 0 };
            let _ = stream.write_all(&raw::frame(more, &vec![7; *size]));
        }
        raw::wait_for_close(&stream);
    }
    for _ in 0..7 {
        events.wait_for(EventKind::Disconnected);
    }
    assert_eq!(pull.nothing(), ErrorKind::Again);
}

#[test]
fn pings_of_a_peer_that_does_not_read() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("pings_of_a_peer_that_does_not_read"));
    let scene = Scene::new();
    let mut stream = raw::join(&scene.endpoint, "DEALER");
    stream
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let ping = raw::frame(COMMAND, b"\x04PING\x00\x000123456789abcdef");
    let many = ping.repeat(1000);
    let size = rounds(32 << 20, 1 << 30);
    // It may be read or not, but nothing of it may be kept.
    let mut sent = 0;
    while sent < size && stream.write_all(&many).is_ok() {
        sent += many.len();
    }
    scene.others_are_served();
    assert!(resident() <= scene.resident + MEMORY);
    drop(stream);
    scene.ends_well();
}

#[test]
fn messages_for_a_peer_that_does_not_read() {
    let (_alone, _watchdog) = (
        alone(),
        Watchdog::new("messages_for_a_peer_that_does_not_read"),
    );
    let scene = Scene::new();
    let mut stream = raw::join(&scene.endpoint, "DEALER");
    stream
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    // Echoed by the server and never read: messages that do not fit are dropped and counted.
    let many = raw::frame(0, &[7; 1000]).repeat(1000);
    let mut sent = 0;
    while sent < 64 << 20 && stream.write_all(&many).is_ok() {
        sent += many.len();
    }
    scene.others_are_served();
    until(|| scene.router.dropped(DropReason::HighWater) > 0);
    assert!(resident() <= scene.resident + MEMORY);
    drop(stream);
    scene.ends_well();
}

#[test]
fn a_flood_of_subscriptions() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("a_flood_of_subscriptions"));
    let context = Context::new();
    let publisher = socket(&context, Pub);
    let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
    let before = socket(&context, Sub);
    before.bytes(ids::SUBSCRIBE, b"");
    before.connect(&endpoint).unwrap();
    let publish = |subscriber: &Socket| {
        // The first may come before the subscription; the rest must all arrive.
        until(|| {
            publisher.put("begin");
            subscriber
                .recv(Wait::Until(
                    std::time::Instant::now() + Duration::from_millis(1),
                ))
                .is_ok()
        });
        publisher.put("end");
        while subscriber.take() != "end" {}
        for n in 0..1000 {
            publisher.put(&n.to_string());
            assert_eq!(subscriber.take(), n.to_string());
        }
    };
    publish(&before);
    let start = resident();
    let topics = rounds(200_000, 1_000_000);
    let mut stream = raw::join(&endpoint, "SUB");
    let mut flood = Vec::new();
    for n in 0..topics {
        flood.extend(raw::frame(
            COMMAND,
            format!("\x09SUBSCRIBE{n:020}").as_bytes(),
        ));
    }
    stream.write_all(&flood).unwrap();
    drop(flood);
    // The last one has arrived when its message does.
    let last = format!("{:020}", topics - 1);
    stream.set_nonblocking(true).unwrap();
    until(|| {
        publisher.put(&last);
        stream.read(&mut [0; 64]).is_ok()
    });
    let each = (resident().saturating_sub(start) << 10) / topics;
    assert!(each <= 200, "{each} bytes of memory for a topic of 20");
    while before.recv(Wait::Dont).is_ok() {}
    publish(&before);
    drop(stream);
    until(|| publisher.peers() == 1);
    until(|| resident() <= start + MEMORY);
    let after = socket(&context, Sub);
    after.bytes(ids::SUBSCRIBE, b"");
    after.connect(&endpoint).unwrap();
    publish(&after);
    until_idle();
}

#[test]
fn long_topics_and_cancels_of_nothing() {
    let _alone = alone();
    let _watchdog = Watchdog::new("long_topics_and_cancels_of_nothing");
    let context = Context::new();
    let publisher = socket(&context, Pub);
    let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
    let topic = vec![7u8; rounds(8 << 20, 64 << 20)];
    let named = |name: &[u8], topic: &[u8]| raw::frame(COMMAND, &[name, topic].concat());
    let attack = || {
        let mut stream = raw::join(&endpoint, "SUB");
        for _ in 0..3 {
            stream
                .write_all(&named(b"\x06CANCEL", b"never wanted"))
                .unwrap();
            stream.write_all(&named(b"\x06CANCEL", &topic)).unwrap();
        }
        stream.write_all(&named(b"\x09SUBSCRIBE", &topic)).unwrap();
        stream.write_all(&named(b"\x09SUBSCRIBE", b"x")).unwrap();
        stream.set_nonblocking(true).unwrap();
        until(|| {
            publisher.put("x");
            stream.read(&mut [0; 3]).is_ok()
        });
        stream.set_nonblocking(false).unwrap();
        stream.write_all(&named(b"\x06CANCEL", &topic)).unwrap();
        stream.write_all(&named(b"\x06CANCEL", &topic)).unwrap();
        drop(stream);
        until(|| publisher.peers() == 0);
    };
    // The first ones show the allocator how large things are here, which it keeps.
    (0..2).for_each(|_| attack());
    let start = resident();
    (0..5).for_each(|_| attack());
    until(|| resident() <= start + MEMORY);
}

#[test]
fn ten_thousand_connections_in_a_row() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("ten_thousand_connections_in_a_row"));
    let scene = Scene::new();
    for n in 0..10_000 {
        let mut stream = raw::dial(&scene.endpoint);
        match n % 4 {
            0 => {}
            1 => stream.write_all(&raw::greeting()).unwrap(),
            2 => stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap(),
            // As fast as it can: closing resets.
            _ => rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap(),
        }
    }
    scene.ends_well();
}

#[test]
fn a_thousand_clients_at_once_that_leave_at_once() {
    let (_alone, _watchdog) = (
        alone(),
        Watchdog::new("a_thousand_clients_at_once_that_leave_at_once"),
    );
    let scene = Scene::new();
    // Both ends are in this process.
    let room = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) as usize;
    let count = 1000.min((room - scene.descriptors) / 2 - 50);
    for _ in 0..3 {
        let peers: Vec<TcpStream> = (0..count)
            .map(|_| raw::join(&scene.endpoint, "DEALER"))
            .collect();
        until(|| scene.router.peers() == count + 1);
        exchange(&scene.client);
        drop(peers);
        until(|| scene.router.peers() == 1);
    }
    scene.ends_well();
}

/// Runs in a child process, see `out_of_descriptors`: connects on request, and holds the connections until its input
/// ends.
#[test]
fn dials_for_another_process() {
    let Ok(endpoint) = env::var("ZEROXIDE_TEST_DIAL") else {
        return;
    };
    let mut told = std::io::stdin();
    told.read_exact(&mut [0]).unwrap();
    let held: Vec<TcpStream> = (0..80).map(|_| raw::dial(&endpoint)).collect();
    println!("dialled");
    let _ = told.read(&mut [0]);
    drop(held);
}

/// The process gets twenty more descriptors at most, for as long as this lives.
struct FewDescriptors {
    usual: Rlimit,
}

impl FewDescriptors {
    fn new() -> FewDescriptors {
        let usual = getrlimit(Resource::Nofile);
        let current = Some(descriptors() as u64 + 20);
        setrlimit(Resource::Nofile, Rlimit { current, ..usual }).unwrap();
        FewDescriptors { usual }
    }
}

impl Drop for FewDescriptors {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Nofile, self.usual);
    }
}

#[test]
fn connections_to_what_peers_name_leave_descriptors_to_the_program() {
    let _alone = alone();
    let _watchdog = Watchdog::new("connections_to_what_peers_name");
    let context = Context::new();
    // The kernel answers for a listener that does not accept, so only one side takes descriptors.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", silent.local_addr().unwrap());
    let open = || {
        let mailbox = socket(&context, Dealer);
        mailbox.leave_descriptors().unwrap();
        mailbox
    };
    let newcomer = open();
    let events = Monitor::of(&context, &newcomer);
    let few = FewDescriptors::new();
    let mailboxes: Vec<Socket> = (0..20).map(|_| open()).collect();
    for mailbox in &mailboxes {
        mailbox.connect(&endpoint).unwrap();
    }
    newcomer.connect(&endpoint).unwrap();
    assert_eq!(events.wait_for(EventKind::Closed).value, 24, "EMFILE");
    // The program has descriptors of its own left.
    let opened: Vec<File> = (0..2)
        .map(|_| File::open("/proc/self/stat").unwrap())
        .collect();
    // When others leave, it connects.
    drop((opened, mailboxes));
    events.wait_for(EventKind::Connected);
    drop((few, events));
    newcomer.stop_monitor();
    newcomer.close(Some(Some(Duration::ZERO)));
    context.term().unwrap();
}

#[test]
fn out_of_descriptors() {
    let (_alone, _watchdog) = (alone(), Watchdog::new("out_of_descriptors"));
    let scene = Scene::new();
    let events = Monitor::of(&scene.context, &scene.router);
    let mut dialler = Command::new(env::current_exe().unwrap())
        .args(["--exact", "dials_for_another_process", "--nocapture"])
        .env("ZEROXIDE_TEST_DIAL", &scene.endpoint)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Read to its end, so that the child does not write to a closed pipe.
    let mut said = BufReader::new(dialler.stdout.take().unwrap()).lines();
    let few = FewDescriptors::new();
    let mut tell = dialler.stdin.take().unwrap();
    tell.write_all(b"!").unwrap();
    assert!(said.any(|line| line.unwrap().ends_with("dialled")));
    let failed = events.wait_for(EventKind::AcceptFailed);
    assert_eq!(failed.value, 24, "EMFILE");
    // The program has descriptors of its own left.
    let opened: Vec<File> = (0..4)
        .map(|_| File::open("/proc/self/stat").unwrap())
        .collect();
    drop(opened);
    // Connected peers are served, and waiting ones cost nothing.
    exchange(&scene.client);
    until_idle();
    assert!(
        scene.context.socket(Pull).is_ok(),
        "a socket needs no descriptor until it is used"
    );
    drop(tell);
    assert!(said.all(|line| line.is_ok()));
    dialler.wait().unwrap();
    let newcomer = socket(&scene.context, Dealer);
    newcomer.connect(&scene.endpoint).unwrap();
    exchange(&newcomer);
    drop((few, newcomer, events, said));
    scene.router.stop_monitor();
    scene.ends_well();
}
