//! The protocol without a network: the cost of a message from one engine's `send` to the other's event. Copying the
//! bytes from one engine to the other stands in for the kernel.

use std::hint::black_box;
use std::io::IoSlice;
use std::time::Instant;

use bytes::Bytes;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::mechanisms::curve::{CURVE, KeyPair, SECRET_KEY, SERVER_KEY};
use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::{Engine, EngineConfig, Event, MechanismConfig};

mod timing;

use timing::{Rows, measure};

fn main() {
    timing::run("codec", |rows| {
        engines(rows);
        encrypted(rows);
    });
}

fn engines(rows: &mut Rows<'_>) {
    for (size, count) in [
        (8, 1000),
        (64, 1000),
        (1024, 200),
        (16 * 1024, 50),
        (256 * 1024, 5),
    ] {
        let one = EngineConfig::new(SocketType::Push);
        let other = EngineConfig::new(SocketType::Pull);
        engine_to_engine(rows, "engine to engine", [one, other], size, count);
    }
}

/// The same with encryption: sealed by one engine, opened by the other. Its cost is the difference from the rows above.
fn encrypted(rows: &mut Rows<'_>) {
    let server = KeyPair::from_secret([1; 32]);
    let secret = (SECRET_KEY, Bytes::from(vec![1; 32]));
    let public = (SERVER_KEY, Bytes::copy_from_slice(&server.public));
    let curve = |parameters| MechanismConfig {
        spec: &CURVE,
        parameters,
    };
    for (size, count) in [(64, 1000), (1024, 200), (64 * 1024, 10)] {
        let one = EngineConfig {
            mechanism: curve(vec![secret.clone(), public.clone()]),
            ..EngineConfig::new(SocketType::Push)
        };
        let other = EngineConfig {
            mechanism: curve(vec![secret.clone()]),
            as_server: true,
            ..EngineConfig::new(SocketType::Pull)
        };
        engine_to_engine(rows, "engine to engine, CURVE", [one, other], size, count);
    }
}

fn engine_to_engine(
    rows: &mut Rows<'_>,
    name: &str,
    ends: [EngineConfig; 2],
    size: usize,
    count: usize,
) {
    let [one, other] = ends;
    let (mut push, mut pull) = connected(one, other);
    let frame = Frame::from(vec![7; size]);
    measure(rows, &format!("{name}, {size} B"), count, || {
        let mut sent = 0;
        let mut arrived = 0;
        while arrived < count {
            while sent < count && push.can_send() {
                push.send(frame.clone());
                sent += 1;
            }
            carry(&mut push, &mut pull);
            arrived += frames(&mut pull);
        }
    });
}

/// Two engines that have shaken hands.
fn connected(one: EngineConfig, other: EngineConfig) -> (Engine, Engine) {
    let now = Instant::now();
    let (mut one, mut other) = (Engine::new(one, now), Engine::new(other, now));
    while !(one.is_ready() && other.is_ready()) {
        carry(&mut one, &mut other);
        frames(&mut other);
        carry(&mut other, &mut one);
        frames(&mut one);
    }
    (one, other)
}

/// Moves what one engine has to send into the other.
fn carry(from: &mut Engine, to: &mut Engine) {
    let now = Instant::now();
    while from.has_transmit() && to.wants_input() {
        let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(64);
        let count = from.poll_transmit(&mut slices, 256 * 1024);
        slices
            .iter()
            .for_each(|slice| to.input().extend_from_slice(slice));
        drop(slices);
        from.transmitted(count, now);
        to.handle_input(now);
    }
}

fn frames(engine: &mut Engine) -> usize {
    let mut count = 0;
    while let Some(event) = engine.poll_event() {
        match event {
            Event::Frame(frame) => {
                black_box(frame);
                count += 1;
            }
            Event::Closed(reason) => panic!("{reason}"),
            Event::Ready(_) | Event::Authenticate(_) => {}
        }
    }
    count
}
