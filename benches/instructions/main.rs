//! The hot paths, each run so and so often, for `tools/instructions.py` to count their instructions under callgrind:
//! counts do not depend on who else uses the machine. Prints each path's name and how often it ran, in that order.
//!
//! Only what happens within [`counted`] is counted, so each path prepares before it and tidies up after it.

use std::hint::black_box;
use std::io::IoSlice;
use std::time::Instant;

use bytes::Bytes;
use zeroxide::{Context, Message, Socket, SocketType, Value, Wait, ids};
use zeroxide_proto::frame::Frame;
use zeroxide_proto::mechanisms::curve::{CURVE, KeyPair, SECRET_KEY, SERVER_KEY};
use zeroxide_proto::subscription::SubscriberTable;
use zeroxide_proto::{Engine, EngineConfig, Event, MechanismConfig};
use zeroxide_queue::{mpsc, spsc};

/// Below the default high-water mark, so that nothing ever waits.
const EACH: usize = 500;
const ROUNDS: usize = 4;
/// Where other threads may get in the way: turns per try, and tries.
const TURNS: usize = 100;
const TRIES: usize = 12;

fn main() -> zeroxide::Result<()> {
    queues();
    engines();
    matching();
    sockets()
}

/// Runs the counted code. Not generic, so that there is one symbol to look for.
#[inline(never)]
fn counted(path: &mut dyn FnMut()) {
    path();
    black_box(());
}

/// Ends the counts of one path: callgrind writes them down when this function returns.
#[inline(never)]
fn end_of_path(name: &str) {
    println!("{name} {}", EACH * ROUNDS);
}

/// Ends the counts of one of several tries of a path, of which the lower quartile is taken: other threads add to the
/// count of some.
#[inline(never)]
fn end_of_path_try(name: &str, times: usize) {
    println!("{name} {times}");
}

// ---- queues --------------------------------------------------------------------------------------------------------

fn queues() {
    let body = [7; 64];
    let (mut producer, mut consumer) = spsc::channel();
    for _ in 0..ROUNDS {
        counted(&mut || {
            for _ in 0..EACH {
                producer.push(Frame::copy_from(black_box(&body)));
                let _ = producer.flush(); // no thread sleeps here
                black_box(consumer.pop());
            }
        });
    }
    end_of_path("queue: push, flush, pop, 64 B");
    for _ in 0..ROUNDS {
        counted(&mut || {
            for _ in 0..EACH {
                producer.push(Frame::copy_from(black_box(&body)));
            }
            let _ = producer.flush();
            while let Some(frame) = consumer.pop() {
                black_box(frame);
            }
        });
    }
    end_of_path("queue: push and pop in runs, 64 B");
    let mailbox = mpsc::Queue::new();
    for _ in 0..ROUNDS {
        counted(&mut || {
            for item in 0..EACH {
                let _ = mailbox.push(item);
            }
            for item in mailbox.take_all() {
                black_box(item);
            }
        });
    }
    end_of_path("mailbox: push and take");
}

// ---- the protocol --------------------------------------------------------------------------------------------------

fn engines() {
    for size in [64, 1024] {
        let push = EngineConfig::new(SocketType::Push);
        let pull = EngineConfig::new(SocketType::Pull);
        encode_and_decode(&format!("{size} B"), push, pull, size);
    }
    let server = KeyPair::from_secret([1; 32]);
    let secret = (SECRET_KEY, Bytes::from(vec![1; 32]));
    let public = (SERVER_KEY, Bytes::copy_from_slice(&server.public));
    let curve = |parameters| MechanismConfig {
        spec: &CURVE,
        parameters,
    };
    let push = EngineConfig {
        mechanism: curve(vec![secret.clone(), public]),
        ..EngineConfig::new(SocketType::Push)
    };
    let pull = EngineConfig {
        mechanism: curve(vec![secret]),
        as_server: true,
        ..EngineConfig::new(SocketType::Pull)
    };
    encode_and_decode("64 B, CURVE", push, pull, 64);
}

fn encode_and_decode(name: &str, push: EngineConfig, pull: EngineConfig, size: usize) {
    let (mut push, mut pull) = connected(push, pull);
    let (frame, mut wire) = (Frame::from(vec![7; size]), Vec::with_capacity(1 << 20));
    for what in ["encode", "decode"] {
        for _ in 0..ROUNDS {
            let mut encode = || send_all(&mut push, &frame, &mut wire);
            if what == "encode" {
                counted(&mut encode);
            } else {
                encode();
            }
            let mut decode = || assert_eq!(receive_all(&mut pull, &wire), EACH);
            if what == "decode" {
                counted(&mut decode);
            } else {
                decode();
            }
            wire.clear();
        }
        end_of_path(&format!("{what} {name}"));
    }
}

fn send_all(push: &mut Engine, frame: &Frame, wire: &mut Vec<u8>) {
    let mut left = EACH;
    while left > 0 || push.has_transmit() {
        while left > 0 && push.can_send() {
            // As a session does.
            if !push.send_copy(frame) {
                push.send(frame.clone());
            }
            left -= 1;
        }
        transmit(push, wire);
    }
}

fn transmit(from: &mut Engine, wire: &mut Vec<u8>) {
    let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(64);
    let count = from.poll_transmit(&mut slices, 64 * 1024);
    slices
        .iter()
        .for_each(|slice| wire.extend_from_slice(slice));
    drop(slices);
    from.transmitted(count, Instant::now());
}

fn receive_all(pull: &mut Engine, wire: &[u8]) -> usize {
    let mut arrived = 0;
    for run in wire.chunks(64 * 1024) {
        pull.input().extend_from_slice(run);
        pull.handle_input(Instant::now());
        arrived += frames(pull);
    }
    arrived
}

fn frames(engine: &mut Engine) -> usize {
    let mut count = 0;
    // As a session does.
    let mut frame = Frame::new();
    loop {
        if !engine.poll_small(&mut frame) {
            match engine.poll_any_event() {
                None => return count,
                Some(Event::Frame(next)) => frame = next,
                Some(_) => continue,
            }
        }
        black_box(&frame);
        count += 1;
    }
}

/// Two engines that have shaken hands.
fn connected(one: EngineConfig, other: EngineConfig) -> (Engine, Engine) {
    let now = Instant::now();
    let (mut one, mut other) = (Engine::new(one, now), Engine::new(other, now));
    let mut wire = Vec::new();
    while !(one.is_ready() && other.is_ready()) {
        carry(&mut one, &mut other, &mut wire);
        carry(&mut other, &mut one, &mut wire);
    }
    (one, other)
}

fn carry(from: &mut Engine, to: &mut Engine, wire: &mut Vec<u8>) {
    wire.clear();
    while from.has_transmit() {
        transmit(from, wire);
    }
    receive_all(to, wire);
}

// ---- who wants what ------------------------------------------------------------------------------------------------

fn matching() {
    for topics in [10, 1000, 100_000] {
        let mut table = SubscriberTable::new();
        for topic in 0..topics {
            table.add(format!("topic {topic} ").as_bytes(), topic % 10);
        }
        let texts: Vec<String> = (0..EACH)
            .map(|text| format!("topic {} and a message's body", text * 7919 % topics))
            .collect();
        for _ in 0..ROUNDS {
            counted(&mut || {
                for text in &texts {
                    table.for_each_match(black_box(text.as_bytes()), |peer| {
                        black_box(peer);
                    });
                }
            });
        }
        end_of_path(&format!("match one of {topics} topics"));
    }
    let mut table = SubscriberTable::new();
    for peer in 0..4000 {
        table.add(b"popular", peer);
    }
    for _ in 0..ROUNDS {
        counted(&mut || {
            for _ in 0..EACH {
                // Each of the two moves the popular topic to another node.
                table.add(black_box(b"popu"), 7);
                table.remove(black_box(b"popu"), 7);
            }
        });
    }
    end_of_path("subscribe and unsubscribe beside 4000 peers");
}

// ---- sockets, within one thread ------------------------------------------------------------------------------------

fn sockets() -> zeroxide::Result<()> {
    send_and_recv("PUSH", SocketType::Push, SocketType::Pull, &[64])?;
    send_and_recv("PUSH", SocketType::Push, SocketType::Pull, &[1024])?;
    send_and_recv("PUSH", SocketType::Push, SocketType::Pull, &[64; 5])?;
    send_and_recv("DEALER", SocketType::Dealer, SocketType::Router, &[64])?;
    send_in_parts()?;
    publish()?;
    route()?;
    ask()?;
    take_turns()?;
    fan_out()
}

/// A bound socket and several connected to it.
fn joined(
    bound: SocketType,
    connected: SocketType,
    count: usize,
) -> zeroxide::Result<(Socket, Vec<Socket>)> {
    let context = Context::new();
    let one = context.socket(bound)?;
    one.bind("inproc://instructions")?;
    let others = (0..count)
        .map(|_| {
            let other = context.socket(connected)?;
            other.connect("inproc://instructions")?;
            Ok(other)
        })
        .collect::<zeroxide::Result<_>>()?;
    Ok((one, others))
}

fn message(sizes: &[usize]) -> Message {
    if let [size] = sizes {
        return Message::single(Frame::copy_from(&[7; 1024][..*size]));
    }
    Message::from_frames(
        sizes
            .iter()
            .map(|size| Frame::copy_from(&[7; 1024][..*size])),
    )
}

fn send(socket: &Socket, message: Message) {
    socket.send(message, Wait::Dont).expect("room in the pipe");
}

fn recv(socket: &Socket) -> Message {
    socket.recv(Wait::Dont).expect("a message")
}

fn send_and_recv(
    name: &str,
    sends: SocketType,
    receives: SocketType,
    sizes: &[usize],
) -> zeroxide::Result<()> {
    let text = sizes
        .iter()
        .map(|size| format!("{size} B"))
        .collect::<Vec<_>>()
        .join(" + ");
    for what in ["send", "recv"] {
        let (receiver, senders) = joined(receives, sends, 1)?;
        for _ in 0..ROUNDS {
            let mut sending = || (0..EACH).for_each(|_| send(&senders[0], message(sizes)));
            if what == "send" {
                counted(&mut sending);
            } else {
                sending();
            }
            let mut receiving = || {
                (0..EACH).for_each(|_| {
                    black_box(recv(&receiver));
                })
            };
            if what == "recv" {
                counted(&mut receiving);
            } else {
                receiving();
            }
        }
        end_of_path(&format!("{what} {text}, {name} inproc"));
    }
    Ok(())
}

/// A message of five parts, each with a call of its own.
fn send_in_parts() -> zeroxide::Result<()> {
    let (receiver, senders) = joined(SocketType::Pull, SocketType::Push, 1)?;
    for _ in 0..ROUNDS {
        counted(&mut || {
            for _ in 0..EACH {
                for left in (0..5).rev() {
                    let part = Frame::copy_from(&[7; 64]);
                    let sent = senders[0].send_part(part, left > 0, Wait::Dont);
                    sent.expect("room in the pipe");
                }
            }
        });
        (0..EACH).for_each(|_| drop(recv(&receiver)));
    }
    end_of_path("send 64 B + 64 B + 64 B + 64 B + 64 B one by one, PUSH inproc");
    Ok(())
}

/// To ten subscribers that want everything.
fn publish() -> zeroxide::Result<()> {
    let (publisher, subscribers) = joined(SocketType::Pub, SocketType::Sub, 10)?;
    for subscriber in &subscribers {
        subscriber.subscribe("")?;
    }
    for _ in 0..ROUNDS {
        counted(&mut || (0..EACH).for_each(|_| send(&publisher, message(&[64]))));
        for subscriber in &subscribers {
            (0..EACH).for_each(|_| drop(recv(subscriber)));
        }
    }
    end_of_path("send 64 B, PUB to 10 SUB inproc");
    Ok(())
}

/// A ROUTER's answers to a hundred peers in turns, by their routing ids.
fn route() -> zeroxide::Result<()> {
    let (router, dealers) = joined(SocketType::Router, SocketType::Dealer, 100)?;
    let mut ids = Vec::new();
    for dealer in &dealers {
        send(dealer, message(&[1]));
        ids.push(recv(&router).pop_front().expect("a routing id"));
    }
    for _ in 0..ROUNDS {
        counted(&mut || {
            for turn in 0..EACH {
                let id = ids[turn % ids.len()].clone();
                send(
                    &router,
                    Message::from_frames([id, Frame::copy_from(&[7; 64])]),
                );
            }
        });
        for dealer in &dealers {
            (0..EACH / dealers.len()).for_each(|_| drop(recv(dealer)));
        }
    }
    end_of_path("send 64 B, ROUTER to one of 100 inproc");
    Ok(())
}

/// The questions of a program that does not want to wait.
fn ask() -> zeroxide::Result<()> {
    let (empty, _senders) = joined(SocketType::Pull, SocketType::Push, 1)?;
    for _ in 0..ROUNDS {
        counted(&mut || {
            for _ in 0..EACH {
                black_box(empty.events().is_ok());
            }
        });
    }
    end_of_path("events, nothing there");
    for _ in 0..ROUNDS {
        counted(&mut || {
            for _ in 0..EACH {
                black_box(empty.recv(Wait::Dont).is_err());
            }
        });
    }
    end_of_path("recv, nothing there");
    Ok(())
}

/// A request and its reply over tcp: the threads that send write to the wire themselves, and those that wait read from
/// it. One thread plays both, so that nothing depends on when another one runs.
fn take_turns() -> zeroxide::Result<()> {
    for what in ["send", "recv"] {
        let context = Context::new();
        let (rep, req) = (
            context.socket(SocketType::Rep)?,
            context.socket(SocketType::Req)?,
        );
        req.connect(&rep.bind("tcp://127.0.0.1:*")?)?;
        let half = |from: &Socket, to: &Socket| {
            let mut sending = || send_waiting(from, message(&[64]));
            let mut receiving = || drop(black_box(to.recv(Wait::Forever)));
            let halves: [(&str, &mut dyn FnMut()); 2] =
                [("send", &mut sending), ("recv", &mut receiving)];
            for (name, half) in halves {
                if name == what {
                    counted(half);
                } else {
                    half();
                }
            }
        };
        for turn in 1..=TURNS * TRIES {
            half(&req, &rep);
            half(&rep, &req);
            if turn % TURNS == 0 {
                end_of_path_try(&format!("{what} 64 B, REQ/REP tcp in turns"), 2 * TURNS);
            }
        }
    }
    Ok(())
}

fn send_waiting(socket: &Socket, message: Message) {
    socket.send(message, Wait::Forever).expect("a peer");
}

/// To ten subscribers over tcp: their messages are gathered, and the I/O thread writes one run to each.
fn fan_out() -> zeroxide::Result<()> {
    let context = Context::new();
    let publisher = context.socket(SocketType::Xpub)?;
    // So that each subscription can be awaited, though all are the same.
    publisher.set_option(ids::XPUB_VERBOSE, &Value::Int(1))?;
    let endpoint = publisher.bind("tcp://127.0.0.1:*")?;
    let subscribers = (0..10)
        .map(|_| {
            let subscriber = context.socket(SocketType::Sub)?;
            subscriber.subscribe("")?;
            subscriber.connect(&endpoint)?;
            publisher.recv(Wait::Forever)?;
            Ok(subscriber)
        })
        .collect::<zeroxide::Result<Vec<_>>>()?;
    for _ in 0..TRIES {
        counted(&mut || (0..EACH).for_each(|_| send(&publisher, message(&[64]))));
        end_of_path_try("send 64 B, XPUB to 10 SUB tcp", EACH);
        for subscriber in &subscribers {
            (0..EACH).for_each(|_| drop(subscriber.recv(Wait::Forever)));
        }
    }
    Ok(())
}
