//! The common parts of the targets around an engine: settings, feeding it in pieces, and recording a real peer.

use std::time::Instant;

use bytes::Bytes;
use zeroxide_proto::mechanisms::curve::{CURVE, KeyPair, SECRET_KEY, SERVER_KEY};
use zeroxide_proto::mechanisms::plain::{PASSWORD, PLAIN, USERNAME};
use zeroxide_proto::{
    Engine, EngineConfig, Event, Frame, FrameKind, MechanismConfig, SocketType, Verdict, sp,
};

use crate::guard;

/// The bytes of one read.
pub(super) const READ: usize = 2048;

/// Every type that speaks ZMTP.
pub(super) const TYPES: [SocketType; 20] = {
    use SocketType::*;
    [
        Pair, Pub, Sub, Req, Rep, Dealer, Router, Pull, Push, Xpub, Xsub, Stream, Server, Client,
        Radio, Dish, Gather, Scatter, Peer, Channel,
    ]
};

/// Every type of the scalability protocols.
pub(super) const SP_TYPES: [SocketType; 10] = [
    sp::PAIR,
    sp::PUB,
    sp::SUB,
    sp::REQ,
    sp::REP,
    sp::PUSH,
    sp::PULL,
    sp::SURVEYOR,
    sp::RESPONDENT,
    sp::BUS,
];

/// Random bytes that are not random, so that what one side recorded fits every run of the other side.
fn not_random<const BYTE: u8>(bytes: &mut [u8]) -> bool {
    bytes.fill(BYTE);
    true
}

/// The defaults of a type, with small buffers, so that those of the engine do not hide what a peer causes.
pub(super) fn config(socket_type: SocketType) -> EngineConfig {
    EngineConfig {
        in_batch: READ,
        out_batch: READ,
        random: not_random::<0xa5>,
        ..EngineConfig::new(socket_type)
    }
}

/// The mechanisms, each with its client and its server: NULL, PLAIN, CURVE.
pub(super) fn secured(config: EngineConfig, number: u8) -> EngineConfig {
    let keys = |byte| KeyPair::from_secret([byte; 32]);
    let (client, server) = (keys(0x43), keys(0x53));
    let copy = |key: &[u8; 32]| Bytes::copy_from_slice(key);
    let (as_server, spec, parameters) = match number % 6 {
        0 | 1 => {
            return EngineConfig {
                as_server: number % 2 == 1,
                ..config
            };
        }
        2 => {
            let user = vec![
                (USERNAME, Bytes::from("user")),
                (PASSWORD, Bytes::from("word")),
            ];
            (false, &PLAIN, user)
        }
        3 => (true, &PLAIN, Vec::new()),
        4 => {
            let keys = vec![
                (SECRET_KEY, copy(&client.secret)),
                (SERVER_KEY, copy(&server.public)),
            ];
            (false, &CURVE, keys)
        }
        _ => (true, &CURVE, vec![(SECRET_KEY, copy(&server.secret))]),
    };
    EngineConfig {
        as_server,
        random: if as_server {
            not_random::<0xb6>
        } else {
            not_random::<0xa5>
        },
        mechanism: MechanismConfig { spec, parameters },
        ..config
    }
}

/// The deeds of an engine with its input, in a form that takes no memory per frame.
#[derive(PartialEq, Debug, Default)]
pub(super) struct Deeds {
    /// All events except frames.
    events: Vec<Event>,
    /// The number of frames. Those of raw connections depend on how bytes are read.
    frames: usize,
    /// A checksum of all frames.
    sum: u32,
    /// The frames and bytes of the current message.
    message: (usize, u64),
    /// A checksum of the output, and its length.
    output: (u32, usize),
}

impl Deeds {
    fn note(&mut self, event: Event, config: &EngineConfig) {
        let is_over = matches!(self.events.last(), Some(Event::Closed(_)));
        assert!(!is_over, "{event:?} after the end");
        match event {
            Event::Frame(frame) => {
                if !config.raw {
                    self.measure(&frame, config);
                    self.frames += 1;
                    let head = [frame.kind() as u8, frame.more().into()];
                    let length = (frame.len() as u64).to_le_bytes();
                    self.sum =
                        crc32c::crc32c_append(crc32c::crc32c_append(self.sum, &head), &length);
                }
                self.sum = crc32c::crc32c_append(self.sum, &frame);
            }
            other => self.events.push(other),
        }
    }
}

impl Deeds {
    /// Checks the limits of messages.
    fn measure(&mut self, frame: &Frame, config: &EngineConfig) {
        if frame.kind() != FrameKind::Data {
            return;
        }
        let (frames, bytes) = (self.message.0 + 1, self.message.1 + frame.len() as u64);
        assert!(frames <= config.max_frames, "a message of {frames} frames");
        let limit = config.max_msg_size.unwrap_or(u64::MAX);
        assert!(bytes <= limit, "a message of {bytes} bytes");
        self.message = if frame.more() {
            (frames, bytes)
        } else {
            (0, 0)
        };
    }
}

/// Feeds bytes to a new engine in pieces of the sizes that `cut` gives. Takes at most `polls` events after each piece, and
/// all of them at the end.
pub(super) fn drive(
    config: &EngineConfig,
    status: u16,
    bytes: &[u8],
    mut cut: impl FnMut() -> usize,
    polls: usize,
) -> Deeds {
    let now = Instant::now();
    let mut engine = Engine::new(config.clone(), now);
    let mut deeds = Deeds::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(cut().clamp(1, READ).min(rest.len()));
        engine.input().extend_from_slice(piece);
        engine.handle_input(now);
        take_events(&mut engine, &mut deeds, config, status, polls, now);
        rest = after;
    }
    take_events(&mut engine, &mut deeds, config, status, usize::MAX, now);
    engine.handle_eof(now);
    take_events(&mut engine, &mut deeds, config, status, usize::MAX, now);
    let ends = deeds
        .events
        .iter()
        .filter(|event| matches!(event, Event::Closed(_)));
    assert_eq!(ends.count(), 1, "a connection ends once");
    let mut slices = Vec::new();
    engine.poll_transmit(&mut slices, usize::MAX);
    for slice in &slices {
        deeds.output.0 = crc32c::crc32c_append(deeds.output.0, slice);
        deeds.output.1 += slice.len();
    }
    deeds
}

fn take_events(
    engine: &mut Engine,
    deeds: &mut Deeds,
    config: &EngineConfig,
    status: u16,
    polls: usize,
    now: Instant,
) {
    for _ in 0..polls {
        let Some(event) = engine.poll_event() else {
            return;
        };
        if let Event::Authenticate(_) = event {
            let verdict = Verdict {
                status,
                ..Verdict::default()
            };
            engine.handle_verdict(verdict, now);
        }
        deeds.note(event, config);
    }
}

/// Checks what must hold for any bytes and settings: bounded memory, and the same deeds however the bytes are cut and
/// however late events are taken.
pub(super) fn check(config: &EngineConfig, status: u16, bytes: &[u8]) {
    let whole = guard::bounded(bytes.len(), || {
        drive(config, status, bytes, || READ, usize::MAX)
    });
    let single = drive(config, status, bytes, || 1, usize::MAX);
    assert_eq!(whole, single, "one byte at a time");
    let mut sizes = crate::mutate::Chance::new(u64::from(crc32c::crc32c(bytes)));
    let polls = sizes.below(3);
    let most = 1 << sizes.below(9);
    let late = guard::bounded(bytes.len(), || {
        drive(config, status, bytes, || 1 + sizes.below(most), polls)
    });
    assert_eq!(
        whole, late,
        "in pieces of up to {most} bytes, with {polls} events after each"
    );
}

/// The frames of the complete messages that an engine receives from these bytes.
pub(super) fn messages(config: &EngineConfig, bytes: &[u8]) -> Vec<Frame> {
    let now = Instant::now();
    let mut engine = Engine::new(config.clone(), now);
    engine.input().extend_from_slice(bytes);
    engine.handle_input(now);
    let mut frames: Vec<Frame> = std::iter::from_fn(|| engine.poll_event())
        .filter_map(|event| match event {
            Event::Frame(frame) => Some(frame),
            _ => None,
        })
        .collect();
    let complete = frames
        .iter()
        .rposition(|frame| !frame.more())
        .map_or(0, |last| last + 1);
    frames.truncate(complete);
    frames
}

/// The bytes of a peer in an exchange with our side: its greeting, its handshake, and these frames.
pub(super) fn exchange(ours: EngineConfig, theirs: EngineConfig, frames: &[Frame]) -> Vec<u8> {
    let now = Instant::now();
    let configs = [&theirs, &ours].map(Clone::clone);
    let mut ours = Engine::new(ours, now);
    let mut theirs = Engine::new(theirs, now);
    let mut sent = Vec::new();
    loop {
        let (to_them, to_us) = (output(&mut ours, now), output(&mut theirs, now));
        if to_them.is_empty() && to_us.is_empty() {
            break;
        }
        sent.extend_from_slice(&to_us);
        let sides = [(&mut theirs, to_them), (&mut ours, to_us)];
        for ((engine, bytes), config) in sides.into_iter().zip(&configs) {
            engine.input().extend_from_slice(&bytes);
            engine.handle_input(now);
            take_events(engine, &mut Deeds::default(), config, 200, usize::MAX, now);
        }
    }
    frames.iter().for_each(|frame| theirs.send(frame.clone()));
    sent.extend(output(&mut theirs, now));
    sent
}

/// Everything that an engine has to send.
pub(super) fn output(engine: &mut Engine, now: Instant) -> Vec<u8> {
    let mut slices = Vec::new();
    let count = engine.poll_transmit(&mut slices, usize::MAX);
    let bytes = slices.iter().flat_map(|slice| slice.to_vec()).collect();
    engine.transmitted(count, now);
    bytes
}

/// Frames of several sizes: a message of three parts, one of one part, and a large one.
pub(super) fn samples() -> Vec<Frame> {
    let mut frames: Vec<Frame> = [&b"first"[..], b"", b"last"]
        .into_iter()
        .map(Frame::copy_from)
        .collect();
    frames[0].set_more(true);
    frames[1].set_more(true);
    frames.push(Frame::from("alone"));
    frames.push(Frame::from(vec![7; 300]));
    frames
}
