//! The bytes of an authenticated peer of CURVE: its properties in INITIATE or READY, then boxes with any content.
//!
//! The peer's side of the mechanism runs here, so that every box can be opened. Changes of encrypted bytes, which almost
//! always fail, belong to the target `engine`.

use std::time::Instant;

use zeroxide_proto::mechanisms::{Content, Greeted, Local};
use zeroxide_proto::{Engine, EngineConfig, SocketType};

use super::Parts;
use super::engine::WORDS;
use super::peer;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "curve",
    about: "the properties and messages of an authenticated peer of CURVE",
    run,
    seeds,
    words: WORDS,
    longest: 2000,
};

const SERVER: u8 = 5;
const CLIENT: u8 = 4;

/// Our settings, and the peer's, by an input's first byte.
fn sides(flags: u8) -> (EngineConfig, EngineConfig) {
    let (ours, theirs) = match flags >> 1 & 3 {
        0 => (SocketType::Pull, SocketType::Push),
        1 => (SocketType::Xpub, SocketType::Sub),
        2 => (SocketType::Router, SocketType::Dealer),
        _ => (SocketType::Radio, SocketType::Dish),
    };
    let (our_role, their_role) = match flags & 1 {
        0 => (SERVER, CLIENT),
        _ => (CLIENT, SERVER),
    };
    let mut ours = peer::secured(peer::config(ours), our_role);
    if flags & 8 != 0 {
        ours.max_msg_size = Some(100);
    }
    (ours, peer::secured(peer::config(theirs), their_role))
}

fn run(input: &[u8]) {
    let mut parts = Parts(input);
    let (ours, theirs) = sides(parts.byte());
    let length = parts.short() % 1024;
    let properties = parts.take(length);
    let bytes = conversation(&ours, &theirs, properties, &mut parts);
    peer::check(&ours, 200, &bytes);
}

/// The bytes of the peer, given the answers of our side.
fn conversation(
    ours: &EngineConfig,
    theirs: &EngineConfig,
    properties: &[u8],
    parts: &mut Parts<'_>,
) -> Vec<u8> {
    let now = Instant::now();
    let mut engine = Engine::new(ours.clone(), now);
    let local = Local {
        socket_type: theirs.socket_type,
        as_server: theirs.as_server,
        authenticate: false,
        properties,
        random: theirs.random,
        peer: Greeted {
            minor: 1,
            libzmq: true,
        },
    };
    let spec = theirs.mechanism.spec;
    let Ok(mut mechanism) = (spec.start)(&theirs.mechanism, local) else {
        panic!("the peer's own settings are complete");
    };
    let mut greeting = [0; 64];
    greeting[..17].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01CURVE");
    greeting[32] = theirs.as_server.into();
    let mut sent = greeting.to_vec();
    feed(&mut engine, &greeting, now);
    let mut received = peer::output(&mut engine, now);
    received.drain(..64);
    let mut cipher = None;
    for _ in 0..4 {
        for command in commands(&received) {
            if mechanism.handle_command(command).is_err() {
                return sent;
            }
        }
        while let Some(body) = mechanism.poll_command() {
            let frame = framed(4, &body);
            sent.extend_from_slice(&frame);
            feed(&mut engine, &frame, now);
        }
        received = peer::output(&mut engine, now);
        if let Some(peer) = mechanism.poll_peer() {
            cipher = peer.cipher;
            break;
        }
    }
    let Some(mut cipher) = cipher else {
        return sent;
    };
    while !parts.is_empty() {
        let (flags, length) = (parts.byte(), usize::from(parts.byte()));
        let content = Content {
            command: flags & 1 != 0,
            more: flags & 2 != 0,
            prefix: &[],
            body: parts.take(length),
        };
        let mut body = Vec::new();
        cipher
            .seal(content, &mut body)
            .expect("a number for the frame");
        // The flags outside the box should be those of a message of one part, but are the peer's choice.
        sent.extend_from_slice(&framed(flags >> 4 & 5, &body));
    }
    sent
}

fn feed(engine: &mut Engine, bytes: &[u8], now: Instant) {
    engine.input().extend_from_slice(bytes);
    engine.handle_input(now);
    while engine.poll_event().is_some() {}
}

/// The bodies of the frames in the bytes after a greeting.
fn commands(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some((flags, rest)) = bytes.split_first() {
        let (length, rest) = match flags & 2 {
            0 => (usize::from(rest[0]), &rest[1..]),
            _ => {
                let (length, rest) = rest.split_first_chunk().expect("a header of an engine");
                (u64::from_be_bytes(*length) as usize, rest)
            }
        };
        let (body, rest) = rest.split_at(length);
        found.push(body);
        bytes = rest;
    }
    found
}

fn framed(flags: u8, body: &[u8]) -> Vec<u8> {
    match u8::try_from(body.len()) {
        Ok(length) => [&[flags, length], body].concat(),
        Err(_) => [&[flags | 2], &(body.len() as u64).to_be_bytes()[..], body].concat(),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (pattern, name) in ["PUSH", "SUB", "DEALER", "DISH"].into_iter().enumerate() {
        for role in 0..2 {
            let mut properties = Vec::new();
            zeroxide_proto::command::put_property(&mut properties, "Socket-Type", name.as_bytes());
            let mut input = vec![role | (pattern as u8) << 1, properties.len() as u8, 0];
            input.extend(properties);
            for (flags, body) in [
                (2, &b"first"[..]),
                (0, b"last"),
                (1, b"\x04PING\0\x01abc"),
                (1, b"\x09SUBSCRIBEab"),
                (1, b"\x06CANCELab"),
                (1, b"\x04JOINab"),
                (0, b"\x01ab"),
            ] {
                input.extend([flags, body.len() as u8]);
                input.extend(body);
            }
            seeds.push(input);
        }
    }
    seeds
}
