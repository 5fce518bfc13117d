//! A thousand lives and deaths: every call ends with a proper error, and nothing is left, no descriptor, no thread.

mod common;

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    IpcName, Monitor, SocketExt, Watchdog, alone, descriptors, inproc_name, rounds, socket,
    threads, until,
};
use zeroxide::{Context, ErrorKind, Events, Message, Socket, SocketType, Value, Wait, ids};

use SocketType::{Dealer, Pub, Pull, Push, Rep, Req, Router, Sub};

fn numbered(n: usize, size: usize) -> Message {
    vec![n as u8; size].into()
}

/// The loop of one of the racing threads, until a call reports that the socket is closed.
fn pester(n: usize, sockets: &[Socket]) {
    let fine = [
        ErrorKind::Again,
        ErrorKind::Fsm,
        ErrorKind::NotSupported,
        ErrorKind::HostUnreachable,
    ];
    let ends = [ErrorKind::Terminated, ErrorKind::NotSocket];
    let mut ended = vec![false; sockets.len()];
    let mut turn = n;
    while ended.contains(&false) {
        turn += 1;
        let at = turn % sockets.len();
        let socket = &sockets[at];
        let soon = Wait::Until(Instant::now() + Duration::from_micros(200));
        let outcome = match turn % 7 {
            0 | 1 => socket
                .send(numbered(turn, 30), soon)
                .map_err(|failed| failed.error),
            2 | 3 => socket.recv(soon).map(drop),
            4 => socket
                .poll(Events::READABLE, Some(Duration::from_micros(100)))
                .map(drop),
            5 => socket.set_option(ids::SNDHWM, &Value::Int(turn as i64 % 100 + 1)),
            _ => socket.stats().map(drop),
        };
        if let Err(error) = outcome {
            ended[at] |= ends.contains(&error.kind());
            assert!(
                ended[at] || fine.contains(&error.kind()),
                "{}: {error}",
                socket.socket_type()
            );
        }
    }
}

/// The call of threads that wait without a limit: it must return.
fn wait_for_the_end(n: usize, socket: &Socket) {
    loop {
        let outcome = match n % 3 {
            0 => socket.recv(Wait::Forever).map(drop),
            1 => socket
                .send("x", Wait::Forever)
                .map_err(|failed| failed.error),
            _ => socket
                .poll(Events::READABLE | Events::WRITABLE, None)
                .map(drop),
        };
        match outcome.map_err(|error| error.kind()) {
            Ok(()) | Err(ErrorKind::Fsm) => {}
            Err(ErrorKind::NotSupported) => return,
            Err(ErrorKind::Terminated | ErrorKind::NotSocket) => return,
            Err(other) => panic!("{}: {other:?}", socket.socket_type()),
        }
    }
}

/// Meets the others at another point in each round. No sleep and no yield: on a busy machine those last long.
fn dawdle(n: usize) {
    for _ in 0..n * 100 {
        std::hint::spin_loop();
    }
}

#[test]
fn close_and_term_race_with_everything() {
    let _alone = alone();
    let watchdog = Watchdog::new("close_and_term_race_with_everything");
    let pairs = [
        (Push, Pull),
        (Dealer, Dealer),
        (Dealer, Router),
        (Req, Rep),
        (Pub, Sub),
    ];
    let name = IpcName::new();
    let race = |round: usize| {
        let context = Context::new();
        let endpoint = match round % 3 {
            0 => "tcp://127.0.0.1:*".to_owned(),
            1 => name.endpoint(),
            _ => inproc_name(),
        };
        let (left, right) = pairs[round % pairs.len()];
        let (left, right) = (socket(&context, left), socket(&context, right));
        if right.socket_type() == Sub {
            right.bytes(ids::SUBSCRIBE, b"");
        }
        let (binder, connecter) = if round.is_multiple_of(2) {
            (&left, &right)
        } else {
            (&right, &left)
        };
        connecter.connect(&binder.bind(&endpoint).unwrap()).unwrap();
        let sockets = Arc::new([left, right]);
        let start = Arc::new(Barrier::new(8));
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (context, sockets, start) = (context.clone(), sockets.clone(), start.clone());
                thread::spawn(move || {
                    start.wait();
                    match n {
                        0..3 => pester(n + round, &sockets[..]),
                        3..6 => wait_for_the_end(n + round, &sockets[n % 2]),
                        6 => {
                            dawdle(round % 50);
                            sockets[round % 2].close(None);
                            sockets[1 - round % 2].close(None);
                        }
                        _ => {
                            dawdle((round * 7) % 50);
                            context.term().unwrap();
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(context.has_ended());
        watchdog.feed();
    };
    // The first rounds create one-time state of the process.
    (0..20).for_each(race);
    let (fds, running) = (descriptors(), threads());
    (20..rounds(1_000, 20_000)).for_each(race);
    assert_eq!(descriptors(), fds);
    until(|| threads() <= running);
}

#[test]
fn contexts_leak_nothing() {
    let _alone = alone();
    let watchdog = Watchdog::new("contexts_leak_nothing");
    let live = |n: usize| {
        let context = Context::new();
        if n % 5 == 4 {
            return;
        }
        let endpoint = if n.is_multiple_of(2) {
            "tcp://127.0.0.1:*".to_owned()
        } else {
            inproc_name()
        };
        let pull = socket(&context, Pull);
        let endpoint = pull.bind(&endpoint).unwrap();
        let push = socket(&context, Push);
        push.connect(&endpoint).unwrap();
        push.put("x");
        pull.take();
        push.fd().unwrap();
        let lonely = socket(&context, Dealer);
        lonely.connect(&inproc_name()).unwrap();
        lonely.fd().unwrap();
        lonely.put("no peer comes");
        let monitor = Monitor::of(&context, &pull);
        match n % 4 {
            // Sockets first, then the context; the other way round; terminated; terminated by another clone.
            0 => drop((pull, push, lonely, monitor)),
            1 => {
                drop(context);
                push.put("still works");
                pull.take();
            }
            2 => {
                drop((pull, push, lonely, monitor));
                context.term().unwrap();
            }
            _ => {
                let clone = context.clone();
                let term = thread::spawn(move || clone.term().unwrap());
                until(|| context.is_shut_down());
                drop((pull, push, lonely, monitor));
                term.join().unwrap();
            }
        }
    };
    let (fds, running) = (descriptors(), threads());
    // A thread that has waited for a connection keeps one descriptor until it ends.
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..rounds(400, 10_000) {
                live(n);
                watchdog.feed();
            }
        });
    });
    // A context that was dropped ends in the background.
    until(|| descriptors() <= fds && threads() <= running);
}

#[test]
fn a_context_whose_peer_left_first_leaks_nothing() {
    let _alone = alone();
    let _watchdog = Watchdog::new("a_context_whose_peer_left_first_leaks_nothing");
    let fds = descriptors();
    for _ in 0..20 {
        let (context, far_context) = (Context::new(), Context::new());
        let pull = socket(&context, Pull);
        let name = IpcName::new();
        let endpoint = pull.bind(&name.endpoint()).unwrap();
        let push = far_context.socket(Push).unwrap();
        push.connect(&endpoint).unwrap();
        push.put("x");
        push.put("y");
        drop(push);
        far_context.term().unwrap();
        // The connection has ended, and has left a message.
        pull.take();
        until(|| pull.count_connected().unwrap() == 0);
        drop(pull);
        context.term().unwrap();
    }
    assert!(descriptors() <= fds);
}
