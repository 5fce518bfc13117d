//! The test bench: two engines, a virtual clock, and a wire between them.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod curve;

use std::time::{Duration, Instant};
use zeroxide_proto::{Engine, EngineConfig, Event, Frame, FrameKind, SocketType};

/// How the wire cuts the bytes.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// Not at all.
    Whole,
    /// Into pieces of this size.
    Every(usize),
    /// Into pieces of 1 to 300 bytes, by this seed.
    Random(u64),
}

impl Cut {
    pub fn next(&mut self) -> usize {
        match self {
            Cut::Whole => usize::MAX,
            Cut::Every(size) => *size,
            Cut::Random(state) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                1 + (*state % 300) as usize
            }
        }
    }
}

/// One end of the wire.
pub struct End {
    pub engine: Engine,
    /// Whether the application takes events.
    pub polls: bool,
    events: Vec<Event>,
}

impl End {
    /// The events since the last call, but for those left in the engine.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Polls the engine dry; all events since the last call.
    pub fn drain(&mut self) -> Vec<Event> {
        while let Some(event) = self.engine.poll_event() {
            self.events.push(event);
        }
        self.events()
    }

    /// Feeds bytes as a driver does, and polls unless the application is stalled.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) {
        self.engine.input().extend_from_slice(bytes);
        self.engine.handle_input(now);
        if self.polls {
            while let Some(event) = self.engine.poll_event() {
                self.events.push(event);
            }
        }
    }

    /// Everything the engine wants to send.
    pub fn output(&mut self, now: Instant) -> Vec<u8> {
        let mut slices = Vec::new();
        let count = self.engine.poll_transmit(&mut slices, usize::MAX);
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(bytes.len(), count);
        self.engine.transmitted(count, now);
        bytes
    }
}

/// Two engines and the wire between them.
pub struct Pair {
    pub a: End,
    pub b: End,
    pub now: Instant,
    /// While false, sent bytes are lost.
    pub connected: bool,
    cut: Cut,
}

impl Pair {
    pub fn new(a: EngineConfig, b: EngineConfig, cut: Cut) -> Pair {
        let now = Instant::now();
        Pair {
            a: end(a, now),
            b: end(b, now),
            now,
            connected: true,
            cut,
        }
    }

    /// A pair whose handshake is over and whose Ready events are taken.
    pub fn ready(a: EngineConfig, b: EngineConfig, cut: Cut) -> Pair {
        let mut pair = Pair::new(a, b, cut);
        pair.run();
        assert!(matches!(&pair.a.events()[..], [Event::Ready(_)]));
        assert!(matches!(&pair.b.events()[..], [Event::Ready(_)]));
        pair
    }

    pub fn send_a(&mut self, frames: impl Iterator<Item = Frame>) {
        frames.for_each(|frame| self.a.engine.send(frame));
    }

    pub fn send_b(&mut self, frames: impl Iterator<Item = Frame>) {
        frames.for_each(|frame| self.b.engine.send(frame));
    }

    /// Carries bytes both ways once; false when there were none.
    pub fn step(&mut self) -> bool {
        let (from_a, from_b) = (self.a.output(self.now), self.b.output(self.now));
        let moved = !from_a.is_empty() || !from_b.is_empty();
        if self.connected {
            carry(&from_a, &mut self.b, &mut self.cut, self.now);
            carry(&from_b, &mut self.a, &mut self.cut, self.now);
        }
        moved
    }

    /// Carries bytes until nothing moves.
    pub fn run(&mut self) {
        while self.step() {}
    }

    /// Advances the clock in one step, and notifies the engines.
    pub fn advance(&mut self, by: Duration) {
        self.now += by;
        self.a.engine.handle_timeout(self.now);
        self.b.engine.handle_timeout(self.now);
    }
}

fn end(config: EngineConfig, now: Instant) -> End {
    End {
        engine: Engine::new(config, now),
        polls: true,
        events: Vec::new(),
    }
}

fn carry(mut bytes: &[u8], to: &mut End, cut: &mut Cut, now: Instant) {
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(cut.next().min(bytes.len()));
        to.feed(piece, now);
        bytes = rest;
    }
}

pub fn config(socket_type: SocketType) -> EngineConfig {
    EngineConfig::new(socket_type)
}

/// The positions of frames in the bytes sent after the greeting.
pub fn frame_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        starts.push(at);
        at += match bytes[at] & 0x02 {
            0 => 2 + usize::from(bytes[at + 1]),
            _ => {
                let size = bytes[at + 1..at + 9].try_into().unwrap();
                9 + usize::try_from(u64::from_be_bytes(size)).unwrap()
            }
        };
    }
    assert_eq!(at, bytes.len());
    starts
}

/// The frames of a message with these bodies.
pub fn message(parts: &[Vec<u8>]) -> impl Iterator<Item = Frame> + use<> {
    let frames: Vec<Frame> = parts.iter().map(|part| Frame::from(&part[..])).collect();
    zeroxide_proto::Message::from_frames(frames).into_iter()
}

/// The frames among the events.
pub fn frames(events: &[Event]) -> Vec<Frame> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Frame(frame) => Some(frame.clone()),
            _ => None,
        })
        .collect()
}

/// The messages among the events, as bodies.
pub fn data(events: &[Event]) -> Vec<Vec<Vec<u8>>> {
    let mut messages = Vec::new();
    let mut parts = Vec::new();
    for frame in frames(events) {
        assert_eq!(frame.kind(), FrameKind::Data);
        parts.push(frame.to_vec());
        if !frame.more() {
            messages.push(std::mem::take(&mut parts));
        }
    }
    assert!(parts.is_empty(), "a message without an end");
    messages
}

/// One engine against a script.
pub struct Script {
    pub engine: Engine,
    pub now: Instant,
}

impl Script {
    pub fn new(config: EngineConfig) -> Script {
        let now = Instant::now();
        let engine = Engine::new(config, now);
        Script { engine, now }
    }

    /// The peer sends, one byte at a time, which must not matter.
    pub fn peer_sends(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.engine.input().push(*byte);
            self.engine.handle_input(self.now);
        }
    }

    /// The peer receives exactly this.
    #[track_caller]
    pub fn peer_gets(&mut self, expected: &[u8]) {
        let mut slices = Vec::new();
        let count = self.engine.poll_transmit(&mut slices, usize::MAX);
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(
            bytes.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
        self.engine.transmitted(count, self.now);
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.engine.poll_event()).collect()
    }
}
