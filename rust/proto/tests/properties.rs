//! Properties that must hold for any messages, any bytes and any way of cutting them.

mod wire;

use proptest::collection::vec;
use proptest::prelude::*;
use std::time::{Duration, Instant};
use wire::{Cut, Pair, config, data, message};
use zeroxide_proto::{Engine, EngineConfig, Event, Frame, Message, SocketType};

const GREETING: &[u8; 64] =
    b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// Bodies around the sizes where something changes.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![
        4 => 0..80usize,
        2 => 240..270usize,
        2 => 4000..9000usize,
        1 => 60_000..70_000usize,
        1 => 130_000..140_000usize,
    ];
    (len, any::<u8>()).prop_map(|(len, byte)| vec![byte; len])
}

fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(body(), 1..5)
}

fn cut() -> impl Strategy<Value = Cut> {
    prop_oneof![
        Just(Cut::Whole),
        (1..20_000usize).prop_map(Cut::Every),
        (1..u64::MAX).prop_map(Cut::Random),
    ]
}

/// Bytes that resemble ZMTP for a while.
fn nearly_zmtp() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        // A frame with any flags and an honest length.
        (0..8u8, vec(any::<u8>(), 0..300)).prop_map(|(flags, body)| {
            let mut bytes = vec![flags & 0x05 | if body.len() > 255 { 2 } else { 0 }];
            match u8::try_from(body.len()) {
                Ok(len) => bytes.push(len),
                Err(_) => bytes.extend((body.len() as u64).to_be_bytes()),
            }
            bytes.extend(body);
            bytes
        }),
        // A command with a known name.
        (0..8usize, vec(any::<u8>(), 0..40)).prop_map(|(name, data)| {
            let names: [&[u8]; 8] = [
                b"\x04PING",
                b"\x04PONG",
                b"\x09SUBSCRIBE",
                b"\x06CANCEL",
                b"\x05READY",
                b"\x05ERROR",
                b"\x04JOIN",
                b"\x05LEAVE",
            ];
            let body = [names[name], &data].concat();
            [&[4, body.len() as u8], &body[..]].concat()
        }),
        // A PING that is right.
        vec(any::<u8>(), 2..=18).prop_map(|data| [
            &[4, 5 + data.len() as u8],
            &b"\x04PING"[..],
            &data
        ]
        .concat()),
        // A large message.
        (70..100_000usize)
            .prop_map(|len| { [&[2][..], &(len as u64).to_be_bytes(), &vec![7; len]].concat() }),
        // Anything.
        vec(any::<u8>(), 0..20),
    ];
    vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

/// Possible first bytes of a peer.
fn opening() -> impl Strategy<Value = Vec<u8>> {
    let ready = |name: &str| {
        let len = name.len() as u8;
        let head = [4, 22 + len];
        let body = b"\x05READY\x0bSocket-Type\0\0\0";
        [&GREETING[..], &head, body, &[len], name.as_bytes()].concat()
    };
    prop_oneof![
        Just(Vec::new()),
        Just(GREETING.to_vec()),
        Just(ready("PAIR")),
        Just(ready("SUB")),
        Just(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\0\0\0".to_vec()),
        Just(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x02\0\x01x".to_vec()),
        Just(b"\xff\0\0\0\0\0\0\0\x01\x7f\0\0\x01\0".to_vec()),
        Just(b"\x03\0me".to_vec()),
    ]
}

fn socket_type() -> impl Strategy<Value = SocketType> {
    prop_oneof![
        Just(SocketType::Pair),
        Just(SocketType::Xpub),
        Just(SocketType::Stream)
    ]
}

/// Feeds bytes in pieces; takes at most `polls` events after each piece, and all of them at the end.
fn run(config: EngineConfig, bytes: &[u8], mut cut: Cut, polls: usize) -> (Vec<Event>, Vec<u8>) {
    let now = Instant::now();
    let mut engine = Engine::new(config, now);
    let mut events = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(cut.next().min(rest.len()));
        engine.input().extend_from_slice(piece);
        engine.handle_input(now);
        events.extend(std::iter::from_fn(|| engine.poll_event()).take(polls));
        rest = after;
    }
    engine.handle_eof(now);
    events.extend(std::iter::from_fn(|| engine.poll_event()));
    let mut slices = Vec::new();
    engine.poll_transmit(&mut slices, usize::MAX);
    let output = slices.iter().flat_map(|slice| slice.to_vec()).collect();
    (events, output)
}

/// Raw frames depend on how bytes are read, so only their concatenation can be compared.
fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut bytes = Vec::new();
    let mut others = Vec::new();
    for event in events {
        match event {
            Event::Frame(frame) => bytes.extend_from_slice(&frame),
            other => others.push(other),
        }
    }
    others.push(Event::Frame(Frame::from(bytes)));
    others
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_arrive_as_they_were_sent(messages in vec(parts(), 0..10), cut in cut()) {
        let mut pair = Pair::ready(config(SocketType::Pair), config(SocketType::Pair), cut);
        for parts in &messages {
            pair.send_a(message(parts));
            if !pair.a.engine.can_send() {
                pair.run();
            }
        }
        pair.run();
        prop_assert_eq!(data(&pair.b.events()), messages.clone());
        prop_assert_eq!(pair.a.engine.messages_transmitted(), messages.len() as u64);
    }

    #[test]
    fn partial_writes_change_nothing(
        messages in vec(parts(), 1..6),
        writes in vec(1..30_000usize, 1..50),
    ) {
        let now = Instant::now();
        let mut pair = Pair::ready(config(SocketType::Pair), config(SocketType::Pair), Cut::Whole);
        let mut writes = writes.iter().cycle();
        for parts in &messages {
            pair.send_a(message(parts));
            // One write per message: the backlog grows after a half-sent front.
            transfer(&mut pair, *writes.next().unwrap(), now);
        }
        while pair.a.engine.has_transmit() {
            transfer(&mut pair, *writes.next().unwrap(), now);
        }
        prop_assert_eq!(data(&pair.b.events()), messages.clone());
        prop_assert_eq!(pair.a.engine.messages_transmitted(), messages.len() as u64);
    }

    #[test]
    fn cuts_do_not_matter_whatever_the_bytes(
        socket_type in socket_type(),
        opening in opening(),
        bytes in nearly_zmtp(),
        cut in cut(),
        polls in 0..5usize,
        limit in prop_oneof![Just(None), Just(Some(100u64))],
    ) {
        let config = EngineConfig { max_msg_size: limit, in_batch: 10_000, ..config(socket_type) };
        let bytes = [opening, bytes].concat();
        let whole = run(config.clone(), &bytes, Cut::Whole, usize::MAX);
        for polls in [usize::MAX, polls] {
            let mut cut = run(config.clone(), &bytes, cut, polls);
            let mut whole = whole.clone();
            if socket_type == SocketType::Stream {
                cut.0 = joined(cut.0);
                whole.0 = joined(whole.0);
            }
            prop_assert_eq!(&cut, &whole);
        }
    }

    #[test]
    fn noise_is_harmless(bytes in vec(any::<u8>(), 0..2000), cut in cut()) {
        let (events, _) = run(config(SocketType::Router), &bytes, cut, usize::MAX);
        prop_assert!(matches!(events.last(), Some(Event::Closed(_))));
    }

    #[test]
    fn time_is_harmless(steps in vec((0..3u8, 0..5000u64), 0..50)) {
        let mut a = config(SocketType::Pair);
        a.heartbeat_ivl = Some(Duration::from_millis(700));
        a.heartbeat_ttl = Duration::from_millis(900);
        a.heartbeat_timeout = Some(Duration::from_millis(1500));
        let mut pair = Pair::new(a, config(SocketType::Pair), Cut::Every(3));
        for (step, millis) in steps {
            match step {
                0 => pair.advance(Duration::from_millis(millis)),
                1 => pair.run(),
                _ => { pair.step(); }
            }
            let due = [pair.a.engine.poll_timeout(), pair.b.engine.poll_timeout()];
            for at in due.into_iter().flatten() {
                prop_assert!(at >= pair.now - Duration::from_secs(30));
            }
        }
    }

    #[test]
    fn a_message_is_a_list_of_frames(steps in vec((0..3u8, 0..100usize), 0..40)) {
        let mut message = Message::new();
        let mut model = vec![Vec::new()];
        for (step, len) in steps {
            match step {
                0 => {
                    message.push(Frame::from(vec![1; len]));
                    model.push(vec![1; len]);
                }
                1 => {
                    message.push_front(Frame::from(vec![2; len]));
                    model.insert(0, vec![2; len]);
                }
                _ => {
                    let front = message.pop_front().map(|frame| frame.to_vec());
                    let expected = (model.len() > 1).then(|| model.remove(0));
                    prop_assert_eq!(front, expected);
                }
            }
            let bodies: Vec<Vec<u8>> = message.iter().map(|frame| frame.to_vec()).collect();
            prop_assert_eq!(&bodies, &model);
            prop_assert_eq!(message.len(), model.len());
            prop_assert_eq!(message.size(), model.concat().len());
            let more: Vec<bool> = message.iter().map(Frame::more).collect();
            prop_assert!(more.iter().rev().skip(1).all(|more| *more) && !more[more.len() - 1]);
        }
        prop_assert_eq!(Message::from_frames(message.clone()), message);
    }
}

/// Writes at most `count` bytes from a to b.
fn transfer(pair: &mut Pair, count: usize, now: Instant) {
    let mut slices = Vec::new();
    let count = pair.a.engine.poll_transmit(&mut slices, count);
    let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
    pair.a.engine.transmitted(count, now);
    if !bytes.is_empty() {
        pair.b.feed(&bytes, now);
    }
}
