//! A thread that waits for messages from its only connection reads them directly. This has no visible effect, except for
//! the clock.

mod common;

use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::raw;
use common::{IpcName, Monitor, SocketExt, Watchdog, rounds, socket, until};
use zeroxide::{Context, EventKind, Events, Socket, SocketType, Wait};

use SocketType::{Dealer, Pair, Pull, Push, Rep, Req};

const READABLE: Events = Events::READABLE;

fn endpoints() -> Vec<String> {
    vec!["tcp://127.0.0.1:*".to_owned(), IpcName::new().endpoint()]
}

/// A pair of sockets that have played a while, so that their connection is lent between the calls.
fn warm(context: &Context, endpoint: &str, types: (SocketType, SocketType)) -> (Socket, Socket) {
    let (near, far) = (socket(context, types.0), socket(context, types.1));
    let endpoint = near.bind(endpoint).unwrap();
    far.connect(&endpoint).unwrap();
    let echo = far.clone();
    let echoing = thread::spawn(move || {
        for _ in 0..200 {
            let ball = echo.recv(Wait::Forever).unwrap();
            echo.send(ball, Wait::Forever).unwrap();
        }
    });
    for n in 0..200 {
        near.put(&n.to_string());
        assert_eq!(near.take(), n.to_string());
    }
    echoing.join().unwrap();
    (near, far)
}

#[test]
fn requests_and_replies_alternate() {
    let _watchdog = Watchdog::new("requests_and_replies_alternate");
    for endpoint in endpoints() {
        for types in [(Req, Rep), (Pair, Pair), (Dealer, Dealer)] {
            let context = Context::new();
            for _ in 0..rounds(3, 50) {
                warm(&context, &endpoint, types);
            }
        }
    }
}

#[test]
fn other_calls_see_messages_that_arrive_between_two_waits() {
    let _watchdog = Watchdog::new("other_calls_see_messages_that_arrive_between_two_waits");
    for endpoint in endpoints() {
        let context = Context::new();
        let (near, far) = warm(&context, &endpoint, (Pair, Pair));
        for round in 0..rounds(50, 2000) {
            // One by one until the connection is lent again, then something else than a wait for a message.
            far.put("ball");
            assert_eq!(near.take(), "ball");
            far.put("news");
            match round % 3 {
                0 => assert!(near.poll(READABLE, None).unwrap().is_readable()),
                1 => until(|| near.events().unwrap().is_readable()),
                _ => until(|| near.stats().unwrap().queued_in > 0),
            }
            assert_eq!(near.take(), "news");
        }
    }
}

#[test]
fn several_threads_may_wait() {
    let _watchdog = Watchdog::new("several_threads_may_wait");
    let context = Context::new();
    let (near, far) = warm(&context, "tcp://127.0.0.1:*", (Pair, Pair));
    const EACH: usize = 500;
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let near = near.clone();
            thread::spawn(move || {
                for _ in 0..EACH {
                    near.recv(Wait::Forever).unwrap();
                }
            })
        })
        .collect();
    for n in 0..3 * EACH {
        far.put(&n.to_string());
        if n % 7 == 0 {
            thread::yield_now();
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn threads_share_what_one_of_them_reads() {
    let _watchdog = Watchdog::new("threads_share_what_one_of_them_reads");
    let context = Context::new();
    let (near, far) = warm(&context, "tcp://127.0.0.1:*", (Pair, Pair));
    for _ in 0..rounds(100, 2000) {
        let threads = [(); 2].map(|()| {
            let near = near.clone();
            thread::spawn(move || near.recv(Wait::Forever).unwrap())
        });
        // Both messages come in with one read, and each thread takes one.
        let (sent, failed) = far.send_batch(["one", "two"], Wait::Forever);
        assert!(sent == 2 && failed.is_none());
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_receiver_that_keeps_up_reads_bursts_too() {
    let _watchdog = Watchdog::new("a_receiver_that_keeps_up_reads_bursts_too");
    let context = Context::new();
    let pull = socket(&context, Pull);
    let monitor = Monitor::of(&context, &pull);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let mut peer = raw::join(&endpoint, "PUSH");
    let fd = monitor.wait_for(EventKind::Accepted).value;
    const EACH: usize = 10;
    let taken = Arc::new(AtomicUsize::new(0));
    let receiver = {
        let (pull, taken) = (pull.clone(), taken.clone());
        thread::spawn(move || {
            for n in 0.. {
                let message = pull.take();
                if message == "end" {
                    return;
                }
                assert_eq!(message, n.to_string());
                taken.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    // Now and then the I/O thread is just at work on the connection, and the wait that follows is left to it.
    let mut bursts = 0;
    until(|| {
        if taken.load(Ordering::Relaxed) == bursts * EACH {
            let burst = bursts * EACH..(bursts + 1) * EACH;
            let burst = burst.flat_map(|n| raw::frame(0, n.to_string().as_bytes()));
            peer.write_all(&burst.collect::<Vec<u8>>()).unwrap();
            bursts += 1;
        }
        !is_watched(fd)
    });
    peer.write_all(&raw::frame(0, b"end")).unwrap();
    receiver.join().unwrap();
}

/// Whether an epoll of this process watches the descriptor for input.
fn is_watched(fd: u32) -> bool {
    const INPUT: u32 = 1;
    let infos = fs::read_dir("/proc/self/fdinfo").unwrap();
    // A descriptor may be closed between the two looks.
    let infos = infos.filter_map(|info| fs::read_to_string(info.ok()?.path()).ok());
    infos
        .flat_map(|info| info.lines().map(str::to_owned).collect::<Vec<_>>())
        .any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["tfd:", watched, "events:", events, ..] => {
                    watched.parse() == Ok(fd)
                        && u32::from_str_radix(events, 16).unwrap() & INPUT != 0
                }
                _ => false,
            }
        })
}

#[test]
fn a_message_may_come_in_pieces() {
    let _watchdog = Watchdog::new("a_message_may_come_in_pieces");
    let context = Context::new();
    let pull = socket(&context, Pull);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let mut peer = raw::join(&endpoint, "PUSH");
    let receiver = {
        let pull = pull.clone();
        thread::spawn(move || [pull.take(), pull.take(), pull.take()])
    };
    let mut stream = raw::frame(0, b"whole");
    stream.extend(raw::frame(0, &[b'x'; 3000]));
    stream.extend(raw::frame(0, b"end"));
    for piece in stream.chunks(7) {
        peer.write_all(piece).unwrap();
        thread::yield_now();
    }
    let [whole, long, end] = receiver.join().unwrap();
    assert_eq!((&*whole, long.len(), &*end), ("whole", 3000, "end"));
}

#[test]
fn a_waiting_receiver_survives_the_loss_of_its_peer() {
    let _watchdog = Watchdog::new("a_waiting_receiver_survives_the_loss_of_its_peer");
    let context = Context::new();
    let pull = socket(&context, Pull);
    let monitor = Monitor::of(&context, &pull);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    for round in 0..3 {
        let mut peer = raw::join(&endpoint, "PUSH");
        let receiver = {
            let pull = pull.clone();
            thread::spawn(move || [pull.take(), pull.take()])
        };
        peer.write_all(&raw::frame(0, b"first")).unwrap();
        if round == 1 {
            // Half a message, which is lost.
            peer.write_all(b"\0\x05las").unwrap();
        }
        peer.shutdown(Shutdown::Both).unwrap();
        monitor.wait_for(EventKind::Disconnected);
        let push = socket(&context, Push);
        push.connect(&endpoint).unwrap();
        push.put("second");
        assert_eq!(receiver.join().unwrap(), ["first", "second"]);
        drop(push);
        monitor.wait_for(EventKind::Disconnected);
    }
}

#[test]
fn the_end_ends_the_wait() {
    let _watchdog = Watchdog::new("the_end_ends_the_wait");
    for shut_down in [true, false] {
        let context = Context::new();
        let (near, _far) = warm(&context, "tcp://127.0.0.1:*", (Pair, Pair));
        let waiter = {
            let near = near.clone();
            thread::spawn(move || near.recv(Wait::Forever).unwrap_err())
        };
        thread::sleep(Duration::from_millis(2));
        if shut_down {
            context.shutdown();
        } else {
            near.close(None);
        }
        waiter.join().unwrap();
    }
}
