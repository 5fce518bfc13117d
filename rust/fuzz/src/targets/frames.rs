//! Frames after a correct opening, in every framing: ZMTP 1.0, 2.0, 3.0 and 3.1, and the scalability protocols. Decoded
//! messages are encoded and decoded again.

use std::time::Instant;

use zeroxide_proto::wires::{self, Mapping};
use zeroxide_proto::{Engine, EngineConfig, Event, FrameKind, SocketType};

use super::Parts;
use super::engine::WORDS;
use super::peer::{self, SP_TYPES, TYPES};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "frames",
    about: "frames and commands after the opening, in the framings of ZMTP 1.0 to 3.1 and of SP",
    run,
    seeds,
    words: WORDS,
    longest: 6000,
};

/// The settings and the opening of the peer that an input's first three bytes name.
fn opened(parts: &mut Parts<'_>) -> (EngineConfig, Vec<u8>) {
    let (version, number, flags) = (parts.byte() % 7, usize::from(parts.byte()), parts.byte());
    let is_sp = version > 4;
    let ours = match is_sp {
        true => SP_TYPES[number % SP_TYPES.len()],
        false => TYPES[number % TYPES.len()],
    };
    let mut config = peer::config(ours);
    if flags & 1 != 0 {
        config.max_msg_size = Some(100);
    }
    if flags & 2 != 0 {
        config.max_frames = 5;
    }
    if version == 6 {
        config.mapping = Mapping::Typed;
    }
    let known = match is_sp {
        true => &SP_TYPES[..],
        false => &TYPES[..],
    };
    let theirs = known
        .iter()
        .copied()
        .find(|theirs| ours.compatible(*theirs))
        .unwrap_or(ours);
    (config, opening(version, theirs))
}

fn opening(version: u8, theirs: SocketType) -> Vec<u8> {
    let id = theirs.id();
    let signature = [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f];
    match version {
        // An unversioned peer begins with the frame of its routing id.
        0 => vec![3, 0, b'm', b'e'],
        1 => [&signature[..], &[0, id, 3, 0, b'm', b'e']].concat(),
        2 => [&signature[..], &[1, id, 0, 2, b'm', b'e']].concat(),
        5 | 6 => vec![0, b'S', b'P', 0, 0, id, 0, 0],
        minor => {
            let mut greeting = [0; 64];
            greeting[..10].copy_from_slice(&signature);
            greeting[10..16].copy_from_slice(&[3, minor - 3, b'N', b'U', b'L', b'L']);
            let name = theirs.name().as_bytes();
            let head = [4, 22 + name.len() as u8];
            let (body, length) = (b"\x05READY\x0bSocket-Type\0\0\0", [name.len() as u8]);
            [&greeting[..], &head, body, &length, name].concat()
        }
    }
}

fn run(input: &[u8]) {
    let mut parts = Parts(input);
    let (config, mut bytes) = opened(&mut parts);
    bytes.extend_from_slice(parts.0);
    peer::check(&config, 200, &bytes);
    encode_again(&config, &bytes);
}

/// Sends the received messages to another engine, which must receive the same.
fn encode_again(config: &EngineConfig, bytes: &[u8]) {
    if config.raw {
        return;
    }
    let frames = peer::messages(config, bytes);
    let has_controls = frames.iter().any(|frame| frame.kind() != FrameKind::Data);
    let has_form = wires::of(config.socket_type).form.is_some();
    if frames.is_empty() || has_controls && has_form {
        return;
    }
    let (ours, theirs) = match (has_form, has_controls) {
        (true, _) => (config.socket_type, config.socket_type),
        (false, false) => (SocketType::Pair, SocketType::Pair),
        (false, true) if config.socket_type.has_groups() => (SocketType::Radio, SocketType::Dish),
        (false, true) => (SocketType::Xpub, SocketType::Xsub),
    };
    let mapping = config.mapping;
    if !ours.compatible(theirs) {
        return;
    }
    let now = Instant::now();
    let mut sender = Engine::new(
        EngineConfig {
            mapping,
            ..EngineConfig::new(theirs)
        },
        now,
    );
    let mut receiver = Engine::new(
        EngineConfig {
            mapping,
            ..EngineConfig::new(ours)
        },
        now,
    );
    for _ in 0..4 {
        let (there, back) = (
            peer::output(&mut sender, now),
            peer::output(&mut receiver, now),
        );
        for (engine, bytes) in [(&mut receiver, there), (&mut sender, back)] {
            engine.input().extend_from_slice(&bytes);
            engine.handle_input(now);
        }
    }
    assert!(matches!(receiver.poll_event(), Some(Event::Ready(_))));
    assert!(matches!(sender.poll_event(), Some(Event::Ready(_))));
    frames.iter().for_each(|frame| sender.send(frame.clone()));
    receiver
        .input()
        .extend_from_slice(&peer::output(&mut sender, now));
    receiver.handle_input(now);
    for frame in frames {
        assert_eq!(
            receiver.poll_event(),
            Some(Event::Frame(frame)),
            "encoded and decoded again"
        );
    }
    assert_eq!(receiver.poll_event(), None);
}

/// The bytes of a peer of each framing after its opening.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for number in [0, 5, 9, 10, 14, 15] {
        for version in 3..5 {
            let head = [version, number, 0];
            let (ours, opening) = opened(&mut Parts(&head));
            let theirs = TYPES
                .into_iter()
                .find(|theirs| ours.socket_type.compatible(*theirs));
            let theirs = peer::config(theirs.unwrap_or(SocketType::Pair));
            let sent = peer::exchange(ours, theirs, &peer::samples());
            seeds.push([&head[..], &sent[opening.len().min(sent.len())..]].concat());
        }
    }
    for number in 0..SP_TYPES.len() as u8 {
        let head = [5, number, 0];
        let (ours, opening) = opened(&mut Parts(&head));
        let theirs = SP_TYPES
            .into_iter()
            .find(|theirs| ours.socket_type.compatible(*theirs));
        let theirs = peer::config(theirs.unwrap_or(ours.socket_type));
        let sent = peer::exchange(ours, theirs, &peer::samples()[3..]);
        seeds.push([&head[..], &sent[opening.len()..]].concat());
    }
    let controls: [&[u8]; 6] = [
        b"\x04\x0c\x09SUBSCRIBEab",
        b"\x04\x09\x06CANCELab",
        b"\x04\x07\x04JOINab",
        b"\x04\x0a\x04PING\0\x01abc",
        b"\0\x03\x01ab\0\x03\0ab",
        b"\x04\x0a\x05ERROR\x03400",
    ];
    for (version, number) in [(4, 9), (4, 14), (3, 9), (2, 9)] {
        seeds.push([&[version, number, 0][..], &controls.concat()].concat());
    }
    // Floods of one small frame, which recursion would not survive.
    let floods: [&[u8]; 4] = [
        b"\x04\x07\x04PING\0\x01",
        b"\x04\x0b\x09SUBSCRIBEa",
        b"\x01\0",
        b"\0\0",
    ];
    for flood in floods {
        let frames = flood.repeat(5500 / flood.len());
        seeds.push([&[4, 9, 0][..], &frames].concat());
    }
    seeds.push(b"\0\x09\0\x03\0\x01ab\xff\0\0\0\0\0\0\0\x03\0ab".to_vec());
    seeds.push(b"\x06\x06\0\x01\0\0\0\0\0\0\0\x02ab".to_vec());
    seeds
}
