//! Contexts that end while eight threads use them: every call ends, and nothing is left behind.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::raw::Random;
use common::{Watchdog, descriptors, rounds, threads, until};
use zeroxide::{Context, ErrorKind, Events, Socket, SocketType, Value, Wait, ids};

const THREADS: usize = 8;
const LINGER: Duration = Duration::from_millis(20);

/// Pairs of types, the one that binds first.
const PAIRS: [(SocketType, SocketType); 6] = [
    (SocketType::Pull, SocketType::Push),
    (SocketType::Router, SocketType::Dealer),
    (SocketType::Pub, SocketType::Sub),
    (SocketType::Rep, SocketType::Req),
    (SocketType::Dealer, SocketType::Dealer),
    (SocketType::Xpub, SocketType::Xsub),
];

/// What one thread does until the context ends under it. Returns when a call fails for that reason.
fn fire(context: &Context, shared: &[Socket], random: &mut Random, done: &AtomicUsize) {
    let mut own: Vec<Socket> = Vec::new();
    loop {
        done.fetch_add(1, Ordering::Relaxed);
        let some = random.below(8);
        let any = match own.get(random.below(1 + own.len())) {
            Some(socket) => socket,
            None => &shared[random.below(shared.len())],
        };
        let wait = match some % 2 {
            0 => Wait::Dont,
            _ => Wait::Until(Instant::now() + Duration::from_millis(2)),
        };
        let outcome = match some {
            0 | 1 => any.send("message", wait).map_err(Into::into),
            2 | 3 => any.recv(wait).map(drop),
            4 => any
                .poll(Events::READABLE, Some(Duration::from_millis(1)))
                .map(drop),
            5 | 6 if own.len() < 4 => (|| {
                let (bound, connected) = PAIRS[random.below(PAIRS.len())];
                let endpoints = ["tcp://127.0.0.1:*", "ipc://*"];
                let (bound, connected) = (context.socket(bound)?, context.socket(connected)?);
                for socket in [&bound, &connected] {
                    let linger = LINGER.as_millis() as i64;
                    socket.set_option(ids::LINGER, &Value::Int(linger))?;
                }
                connected.connect(&bound.bind(endpoints[random.below(endpoints.len())])?)?;
                own.extend([bound, connected]);
                Ok(())
            })(),
            _ if !own.is_empty() => match own.swap_remove(random.below(own.len())) {
                socket if some == 7 => socket.close_within(Some(LINGER)).map(drop),
                socket => {
                    socket.close(None);
                    Ok(())
                }
            },
            _ => Ok(()),
        };
        match outcome {
            Err(error) if error.kind() == ErrorKind::Terminated => return,
            // A shared socket is closed when the time of the termination is up, or by another thread.
            Err(error) if error.kind() == ErrorKind::NotSocket && context.is_shut_down() => return,
            _ => {}
        }
    }
}

/// One round. Returns how long the termination took beyond its limit.
fn round(number: usize) -> Duration {
    let waits_for_owners = number % 2 == 1;
    let context = Context::new();
    let shared: Vec<Socket> = PAIRS
        .iter()
        .flat_map(|(bound, connected)| [*bound, *connected])
        .map(|socket_type| context.socket(socket_type).unwrap())
        .collect();
    for pair in shared.chunks(2) {
        for socket in pair {
            socket.set_option(ids::LINGER, &Value::Int(20)).unwrap();
        }
        pair[1]
            .connect(&pair[0].bind("tcp://127.0.0.1:*").unwrap())
            .unwrap();
    }
    let (shared, done) = (Arc::new(shared), Arc::new(AtomicUsize::new(0)));
    let begin = Arc::new(Barrier::new(THREADS + 1));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (context, shared) = (context.clone(), shared.clone());
            let (done, begin) = (done.clone(), begin.clone());
            thread::spawn(move || {
                let mut random = Random::new((number * THREADS + thread) as u64);
                begin.wait();
                fire(&context, &shared, &mut random, &done);
                match thread {
                    // Some of them end the context, too.
                    0 | 1 if !waits_for_owners => drop(context.term_within(Some(LINGER)).unwrap()),
                    0 => shared.iter().for_each(|socket| socket.close(None)),
                    _ => {}
                }
            })
        })
        .collect();
    begin.wait();
    let mut random = Random::new(number as u64);
    let after = random.below(200);
    until(|| done.load(Ordering::Relaxed) >= after);
    let start = Instant::now();
    match waits_for_owners {
        true => context.term().unwrap(),
        false => drop(context.term_within(Some(LINGER)).unwrap()),
    }
    let beyond = start.elapsed().saturating_sub(LINGER);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(shared.iter().all(Socket::is_closed));
    beyond
}

/// `ZEROXIDE_FULL=1` runs ten thousand rounds.
#[test]
fn a_context_ends_in_time_under_fire() {
    let watchdog = Watchdog::with_patience("a round under fire", Duration::from_secs(60));
    round(0);
    let before = (descriptors(), threads());
    let mut longest = Duration::ZERO;
    let rounds = rounds(40, 10_000);
    for number in 1..=rounds {
        longest = longest.max(round(number));
        watchdog.feed();
    }
    println!("{rounds} rounds, and none took longer than its limit and {longest:?}");
    // Resolvers and other threads that nothing waits for end by themselves.
    until(|| descriptors() <= before.0 && threads() <= before.1);
}
