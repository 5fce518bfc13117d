//! A connection from its first byte: every mechanism, role, version and type.

use bytes::Bytes;
use zeroxide_proto::EngineConfig;

use super::Parts;
use super::peer::{self, TYPES};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "engine",
    about: "the bytes of a connection, with every mechanism, role, version and socket type",
    run,
    seeds,
    words: WORDS,
    longest: 6000,
};

pub(super) const WORDS: &[&[u8]] = &[
    b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL",
    b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05",
    b"\xff\0\0\0\0\0\0\0\x01\x7f\0\x05",
    b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"NULL",
    b"PLAIN",
    b"CURVE",
    b"\x05READY",
    b"\x05ERROR",
    b"\x05HELLO",
    b"\x07WELCOME",
    b"\x08INITIATE",
    b"\x07MESSAGE",
    b"\x04PING",
    b"\x04PONG",
    b"\x09SUBSCRIBE",
    b"\x06CANCEL",
    b"\x04JOIN",
    b"\x05LEAVE",
    b"\x04\x26\x05READY",
    b"\x0bSocket-Type\0\0\0",
    b"\x08Identity\0\0\0",
    b"\x08Resource\0\0\0",
    b"\x04PAIR",
    b"\x03PUB",
    b"\x03SUB",
    b"\x03REQ",
    b"\x03REP",
    b"\x06DEALER",
    b"\x06ROUTER",
    b"\x04PULL",
    b"\x04PUSH",
    b"\x04XPUB",
    b"\x04XSUB",
    b"\x04DISH",
    b"\x05RADIO",
    b"\x06SERVER",
    b"\x06CLIENT",
    b"\x04\x07\x04PING\0\x01",
    b"\x04\x0b\x09SUBSCRIBEa",
    b"\x00\x02\x01a",
    b"\x00\x02\x00a",
];

/// The settings in the first three bytes of an input.
struct Head {
    config: EngineConfig,
    status: u16,
}

fn head(parts: &mut Parts<'_>) -> Head {
    let socket_type = TYPES[usize::from(parts.byte()) % TYPES.len()];
    let mechanism = parts.byte();
    let flags = parts.byte();
    let mut config = peer::secured(peer::config(socket_type), mechanism);
    config.authenticate = flags & 1 != 0;
    let status = [200, 300, 400, 999][usize::from(flags >> 1 & 3)];
    if flags & 8 != 0 {
        config.max_msg_size = Some(100);
    }
    if flags & 16 != 0 {
        config.max_frames = 5;
    }
    if flags & 32 != 0 {
        config.routing_id = Bytes::from("ours");
    }
    if flags & 64 != 0 {
        config.properties = vec![("X-Ours".to_owned(), Bytes::from("value"))];
    }
    Head { config, status }
}

fn run(input: &[u8]) {
    let mut parts = Parts(input);
    let Head { config, status } = head(&mut parts);
    peer::check(&config, status, parts.0);
}

/// Exchanges of every type with a type that it may talk to, and of every mechanism.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, ours) in TYPES.into_iter().enumerate() {
        let theirs = TYPES.into_iter().find(|theirs| ours.compatible(*theirs));
        let (Some(theirs), false) = (theirs, ours.is_raw()) else {
            continue;
        };
        for mechanism in [0, 3, 2, 5, 4] {
            // The other side has the other role: 2 and 3 are client and server, and so are 4 and 5.
            let flags = u8::from(mechanism == 3);
            let mut parts = [number as u8, mechanism, flags].to_vec();
            let Head { config, .. } = head(&mut Parts(&parts));
            let other = EngineConfig {
                authenticate: mechanism == 2,
                ..peer::secured(peer::config(theirs), mechanism ^ 1)
            };
            parts.extend(peer::exchange(config, other, &peer::samples()));
            seeds.push(parts);
            if number > 0 && mechanism == 0 {
                break;
            }
        }
    }
    seeds
}
