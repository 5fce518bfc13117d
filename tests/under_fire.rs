//! Contexts that end while eight threads use them: every call ends within a second of its linger, and nothing is left
//! behind.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::deadlines::Deadlines;
use common::raw::Random;
use common::{IpcName, Watchdog, descriptors, rounds, threads, until};
use zeroxide::{Context, ErrorKind, Events, Result, Socket, SocketType, Value, Wait, ids};

const THREADS: usize = 8;
const LINGER: Duration = Duration::from_millis(20);
/// How long a call may take beyond its limit.
const ALLOWED: Duration = Duration::from_secs(1);
/// Longer than any delivery to a peer that is there.
const HOUR: Duration = Duration::from_secs(3600);

/// Pairs of types, the one that binds first.
const PAIRS: [(SocketType, SocketType); 6] = [
    (SocketType::Pull, SocketType::Push),
    (SocketType::Router, SocketType::Dealer),
    (SocketType::Pub, SocketType::Sub),
    (SocketType::Rep, SocketType::Req),
    (SocketType::Dealer, SocketType::Dealer),
    (SocketType::Xpub, SocketType::Xsub),
];

/// A thread's own view of the deadlines.
struct Timed<'a>(&'a Deadlines, usize);

impl Timed<'_> {
    fn call<T>(&self, what: &'static str, limit: Duration, work: impl FnOnce() -> T) -> T {
        self.0.call(self.1, what, limit, work)
    }
}

/// What one thread does until the context ends under it. Returns when a call fails for that reason.
fn fire(
    context: &Context,
    shared: &[Socket],
    random: &mut Random,
    timed: &Timed,
    done: &AtomicUsize,
) {
    let mut own: Vec<Socket> = Vec::new();
    loop {
        done.fetch_add(1, Ordering::Relaxed);
        let some = random.below(10);
        let any = match own.get(random.below(1 + own.len())) {
            Some(socket) => socket,
            None => &shared[random.below(shared.len())],
        };
        let limit = Duration::from_millis(if some.is_multiple_of(2) { 0 } else { 2 });
        let wait = match some % 2 {
            0 => Wait::Dont,
            _ => Wait::Until(Instant::now() + limit),
        };
        let outcome = match some {
            0 | 1 => timed.call("send", limit, || {
                any.send("message", wait).map_err(Into::into)
            }),
            2 | 3 => timed.call("recv", limit, || any.recv(wait).map(drop)),
            4 => timed.call("poll", limit, || {
                any.poll(Events::READABLE, Some(limit)).map(drop)
            }),
            5 | 6 if own.len() < 4 => timed.call("opening", Duration::ZERO, || {
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
            }),
            8 => deliver(context, timed),
            9 => give_up(context, timed),
            _ if !own.is_empty() => match own.swap_remove(random.below(own.len())) {
                socket if some == 7 => timed.call("close_within", LINGER, || {
                    socket.close_within(Some(LINGER)).map(drop)
                }),
                socket => timed.call("close", Duration::ZERO, || {
                    socket.close(None);
                    Ok(())
                }),
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

/// Closes a socket whose peer is there. That ends when the message is delivered, long before its time is up.
fn deliver(context: &Context, timed: &Timed) -> Result<()> {
    let (push, pull) = (
        context.socket(SocketType::Push)?,
        context.socket(SocketType::Pull)?,
    );
    push.connect(&pull.bind("ipc://*")?)?;
    push.send("message", Wait::Dont)?;
    timed.call("close_within of a delivery", Duration::ZERO, || {
        push.close_within(Some(HOUR)).map(drop)
    })
}

/// Closes a socket whose peer never comes. That ends when its time is up, and not much earlier.
fn give_up(context: &Context, timed: &Timed) -> Result<()> {
    let push = context.socket(SocketType::Push)?;
    push.connect(&IpcName::new().endpoint())?;
    push.send("message", Wait::Dont)?;
    let start = Instant::now();
    timed.call("close_within without a peer", LINGER, || {
        push.close_within(Some(LINGER)).map(drop)
    })?;
    assert!(start.elapsed() >= LINGER / 2 || context.is_shut_down());
    Ok(())
}

/// One round.
fn round(number: usize, deadlines: &Arc<Deadlines>) {
    let waits_for_owners = number % 2 == 1;
    let context = Context::new();
    let mut shared: Vec<Socket> = PAIRS
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
    // Its message is never delivered.
    let lost = context.socket(SocketType::Push).unwrap();
    lost.set_option(ids::LINGER, &Value::Int(20)).unwrap();
    lost.connect(&IpcName::new().endpoint()).unwrap();
    lost.send("message", Wait::Dont).unwrap();
    shared.push(lost);
    let (shared, done) = (Arc::new(shared), Arc::new(AtomicUsize::new(0)));
    let begin = Arc::new(Barrier::new(THREADS + 1));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (context, shared) = (context.clone(), shared.clone());
            let (done, begin) = (done.clone(), begin.clone());
            let deadlines = deadlines.clone();
            thread::spawn(move || {
                let timed = Timed(&deadlines, thread);
                let mut random = Random::new((number * THREADS + thread) as u64);
                begin.wait();
                fire(&context, &shared, &mut random, &timed, &done);
                match thread {
                    // Some of them end the context, too.
                    0 | 1 if !waits_for_owners => timed.call("term_within", LINGER, || {
                        drop(context.term_within(Some(LINGER)).unwrap());
                    }),
                    0 => timed.call("close", Duration::ZERO, || {
                        shared.iter().for_each(|socket| socket.close(None));
                    }),
                    _ => {}
                }
            })
        })
        .collect();
    begin.wait();
    let mut random = Random::new(number as u64);
    let after = random.below(200);
    until(|| done.load(Ordering::Relaxed) >= after);
    let timed = Timed(deadlines, THREADS);
    match waits_for_owners {
        // Its limit is that of the sockets.
        true => timed.call("term", LINGER, || context.term().unwrap()),
        false => timed.call("term_within", LINGER, || {
            drop(context.term_within(Some(LINGER)).unwrap());
        }),
    }
    timed.call("the other threads", LINGER, || {
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert!(shared.iter().all(Socket::is_closed));
}

/// `ZEROXIDE_FULL=1` runs ten thousand rounds, and does not forgive a late machine.
#[test]
fn every_call_ends_within_a_second_of_its_linger() {
    let watchdog = Watchdog::with_patience("a round under fire", Duration::from_secs(60));
    let (rounds, forgives) = (rounds(40, 10_000), rounds(1, 0) == 1);
    let deadlines = Arc::new(Deadlines::new(THREADS + 1, ALLOWED, forgives));
    round(0, &deadlines);
    let before = (descriptors(), threads());
    for number in 1..=rounds {
        round(number, &deadlines);
        watchdog.feed();
    }
    println!("{rounds} rounds; the most that calls took beyond their limits:");
    for (what, beyond) in deadlines.longest() {
        println!("  {what}: {beyond:?}");
    }
    // Resolvers and other threads that nothing waits for end by themselves.
    until(|| descriptors() <= before.0 && threads() <= before.1);
}
