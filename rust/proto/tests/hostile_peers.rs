//! Peers that break the protocol: refused with a reason, and never at our expense.

mod wire;

use std::time::{Duration, Instant};
use wire::{config, frames};
use zeroxide_proto::{CloseReason, Engine, EngineConfig, Event, Frame, ProtocolError, SocketType};

const GREETING: &[u8; 64] =
    b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const READY: &[u8] = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PAIR";

/// An engine that was fed these bytes, and its events.
fn fed(config: EngineConfig, bytes: &[u8]) -> (Engine, Vec<Event>) {
    let now = Instant::now();
    let mut engine = Engine::new(config, now);
    engine.input().extend_from_slice(bytes);
    engine.handle_input(now);
    let events = std::iter::from_fn(|| engine.poll_event()).collect();
    (engine, events)
}

fn pair() -> EngineConfig {
    config(SocketType::Pair)
}

/// An engine that a PAIR has greeted.
fn met(bytes: &[u8]) -> (Engine, Vec<Event>) {
    fed(pair(), &[GREETING, READY, bytes].concat())
}

fn reason(events: &[Event]) -> Option<&CloseReason> {
    match events.last() {
        Some(Event::Closed(reason)) => Some(reason),
        _ => None,
    }
}

fn output(engine: &Engine) -> Vec<u8> {
    let mut slices = Vec::new();
    engine.poll_transmit(&mut slices, usize::MAX);
    slices.iter().flat_map(|slice| slice.to_vec()).collect()
}

#[test]
fn flag_bits_without_a_meaning_are_refused() {
    for flags in 0..=255u8 {
        let (_, events) = met(&[flags]);
        let bad = flags & 0xf8 != 0 || flags & 0x05 == 0x05;
        let expected = CloseReason::Protocol(ProtocolError::FrameFlags(flags));
        assert_eq!(reason(&events), bad.then_some(&expected));
    }
}

#[test]
fn lengths_cost_nothing_until_bytes_arrive() {
    for length in [1 << 63, u64::MAX] {
        let (_, events) = met(&[&[2][..], &u64::to_be_bytes(length)].concat());
        let expected = CloseReason::Protocol(ProtocolError::FrameLength(length));
        assert_eq!(reason(&events), Some(&expected));
    }
    for length in [(1 << 63) - 1, 1 << 48, 1 << 40, 1 << 33] {
        let bytes = [&[2][..], &u64::to_be_bytes(length), &[0; 1024]].concat();
        let (mut engine, events) = met(&bytes);
        assert_eq!(reason(&events), None);
        assert!(engine.wants_input());
        let mut received = 1033;
        while received < 4 << 20 {
            let input = engine.input();
            let room = input.capacity() - input.len();
            assert!(room > 0);
            assert!(
                room <= received.max(64 * 1024),
                "{room} bytes of room after {received} received"
            );
            input.extend(std::iter::repeat_n(0, room));
            received += room;
            engine.handle_input(Instant::now());
            assert_eq!(engine.poll_event(), None);
        }
    }
}

#[test]
fn room_ahead_is_earned_by_messages_delivered() {
    let now = Instant::now();
    let mut engine = met(b"").0;
    let feed = |engine: &mut Engine, mut bytes: &[u8]| {
        let mut reads = 0;
        while !bytes.is_empty() {
            let input = engine.input();
            let room = (input.capacity() - input.len()).min(bytes.len());
            input.extend_from_slice(&bytes[..room]);
            bytes = &bytes[room..];
            engine.handle_input(now);
            while engine.poll_event().is_some() {}
            reads += 1;
        }
        reads
    };
    let message = [&[2][..], &200_000u64.to_be_bytes(), &[0; 200_000]].concat();
    assert!(feed(&mut engine, &message) > 1);
    for _ in 0..10 {
        assert_eq!(feed(&mut engine, &message), 1);
    }
    let input = engine.input();
    assert_eq!(input.capacity() - input.len(), message.len());
    // Ten bytes more or less do not end the optimisation permanently.
    assert!(feed(&mut engine, b"\0\x08irregular") <= 2);
    engine.input().clear();
}

#[test]
fn the_largest_frame_is_refused_by_its_header() {
    let limited = EngineConfig {
        max_msg_size: Some(1000),
        ..pair()
    };
    let header = [&[3][..], &1001u64.to_be_bytes()].concat();
    let (_, events) = fed(limited, &[GREETING, READY, &header].concat());
    let (size, limit) = (1001, 1000);
    let expected = CloseReason::MessageTooBig { size, limit };
    assert_eq!(reason(&events), Some(&expected));
}

#[test]
fn a_small_limit_does_not_forbid_the_handshake() {
    let limited = EngineConfig {
        max_msg_size: Some(1),
        ..pair()
    };
    let (engine, _) = fed(limited, &[&GREETING[..], READY].concat());
    assert!(engine.is_ready());
}

#[test]
fn endless_messages_end() {
    let (_, events) = met(&b"\x01\x01x".repeat(100_000));
    assert_eq!(frames(&events).len(), 64 * 1024);
    let expected = CloseReason::Protocol(ProtocolError::TooManyFrames(64 * 1024));
    assert_eq!(reason(&events), Some(&expected));
}

#[test]
fn every_truncated_or_altered_greeting_is_harmless() {
    for end in 0..64 {
        let (mut engine, events) = fed(pair(), &GREETING[..end]);
        assert_eq!(events, []);
        let deadline = engine.poll_timeout().unwrap();
        engine.handle_timeout(deadline);
        let timeout = Event::Closed(CloseReason::HandshakeTimeout);
        assert_eq!(engine.poll_event(), Some(timeout));
    }
    for index in 0..64 {
        for value in 0..=255 {
            let mut greeting = *GREETING;
            greeting[index] = value;
            let (engine, _) = fed(pair(), &[&greeting[..], READY].concat());
            let meant_for_us = match index {
                // Padding, minor version, as-server and filler are ignored.
                1..=8 | 11 | 32..=63 => true,
                // Without a signature it is ZMTP 1.0, where nearly everything is a message of some sort.
                0 if value != 0xff => continue,
                9 if value & 1 == 0 => continue,
                9 => true,
                10 => value >= 2,
                _ => value == GREETING[index],
            };
            if meant_for_us {
                assert!(engine.is_ready(), "byte {index} = {value}");
            } else {
                assert!(!engine.is_ready(), "byte {index} = {value}");
            }
        }
    }
}

#[test]
fn handshakes_consist_of_one_ready() {
    let cases: &[(&[u8], u32)] = &[
        // A message instead.
        (b"\0\x05hello", 0x1000_0001),
        (b"\x04\x06\x05HELLO", 0x1000_0001),
        (b"\x04\x07\x04PING\0\0", 0x1000_0001),
        (b"\x04\0", 0x1000_0011),
        (b"\x04\x01\0", 0x1000_0011),
        (b"\x04\x03\x05RE", 0x1000_0011),
        (b"\x04\x06\x05READY", 0x1000_0018),
        (b"\x04\x0a\x05READY\xff\0\0\0", 0x1000_0018),
        (b"\x06\0\0\0\0\0\x01\0\x01", 0x1000_0011),
        (b"\x04\x07\x05ERROR\x05", 0x1000_0015),
        (
            b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB",
            0x1000_0018,
        ),
        (
            b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03???",
            0x1000_0018,
        ),
    ];
    for (bytes, code) in cases {
        let (engine, events) = fed(pair(), &[GREETING, *bytes].concat());
        let Some(CloseReason::Protocol(error)) = reason(&events) else {
            panic!("{}: {events:?}", bytes.escape_ascii());
        };
        assert_eq!(error.code(), *code, "{}", bytes.escape_ascii());
        assert!(!engine.wants_input());
    }
}

#[test]
fn the_peer_is_informed_why_its_type_is_wrong() {
    let (engine, _) = fed(
        pair(),
        &[
            &GREETING[..],
            b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB",
        ]
        .concat(),
    );
    let text = b"a PAIR socket cannot talk to a \"PUB\" socket";
    let error = [
        &[4, 7 + text.len() as u8],
        &b"\x05ERROR"[..],
        &[text.len() as u8],
        text,
    ]
    .concat();
    assert!(output(&engine).ends_with(&error));
}

#[test]
fn an_error_from_the_peer_is_passed_on() {
    for (bytes, expected) in [
        (
            &b"\x04\x0a\x05ERROR\x03400"[..],
            CloseReason::AuthFailed(400),
        ),
        (
            b"\x04\x0b\x05ERROR\x04full",
            CloseReason::Refused("full".to_owned()),
        ),
    ] {
        let (_, events) = fed(pair(), &[GREETING, bytes].concat());
        assert_eq!(reason(&events), Some(&expected));
        let (_, events) = met(bytes);
        assert_eq!(reason(&events), Some(&expected));
    }
}

#[test]
fn commands_in_traffic_have_their_form() {
    let bad: &[&[u8]] = &[
        b"\x04\0",
        b"\x04\x05\x04PING",
        b"\x04\x06\x04PING\0",
        READY,
        b"\x04\x06\x05READY",
        b"\x06\0\0\0\0\0\x01\0\x01",
    ];
    for bytes in bad {
        let (_, events) = met(bytes);
        assert!(
            matches!(reason(&events), Some(CloseReason::Protocol(_))),
            "{}",
            bytes.escape_ascii()
        );
    }
    let good: &[&[u8]] = &[
        b"\x04\x07\x04PING\0\0",
        b"\x04\x17\x04PING\xff\xff0123456789abcdef",
        b"\x04\x18\x04PING\xff\xff0123456789abcdef-",
        b"\x04\x05\x04PONG",
        b"\x04\x0a\x04JOINgroup",
        b"\x04\x0b\x05LEAVEgroup",
        b"\x04\x0b\x09SUBSCRIBEx",
        b"\x04\x02\x01?",
    ];
    for bytes in good {
        let (engine, events) = met(bytes);
        assert_eq!(events.len(), 1, "{}", bytes.escape_ascii());
        assert!(engine.is_ready());
    }
}

#[test]
fn a_ping_is_answered_with_its_context() {
    let (engine, _) = met(b"\x04\x0a\x04PING\0\0abc");
    assert!(output(&engine).ends_with(b"\x04\x08\x04PONGabc"));
    // A context longer than the 16 bytes allowed by RFC 37 is cut, as libzmq does.
    let (engine, _) = met(b"\x04\x18\x04PING\0\x000123456789abcdef-");
    assert!(output(&engine).ends_with(b"\x04\x15\x04PONG0123456789abcdef"));
}

#[test]
fn a_flood_of_pings_does_not_pile_up_answers() {
    let now = Instant::now();
    let mut engine = met(b"").0;
    for _ in 0..100 {
        let flood = b"\x04\x0a\x04PING\0\0abc".repeat(10_000);
        engine.input().extend_from_slice(&flood);
        engine.handle_input(now);
        assert_eq!(engine.poll_event(), None);
    }
    assert!(output(&engine).len() < 70_000);
    // Once the peer reads again, the last one is answered.
    let waiting = output(&engine).len();
    engine.transmitted(waiting, now);
    assert_eq!(output(&engine), b"\x04\x08\x04PONGabc");
}

/// Lets time pass in silence until there is nothing left to wait for; returns when that was.
fn last_timeout(engine: &mut Engine) -> Option<Instant> {
    let mut last = None;
    while let Some(at) = engine.poll_timeout() {
        assert!(engine.is_ready());
        engine.handle_timeout(at);
        last = Some(at);
    }
    last
}

#[test]
fn a_ttl_counts_in_tenths_up_to_the_longest() {
    for (bytes, ttl) in [
        (b"\x04\x07\x04PING\0\x0a", Duration::from_secs(1)),
        (b"\x04\x07\x04PING\x02\x90", Duration::from_millis(65_600)),
        (
            b"\x04\x07\x04PING\xff\xff",
            Duration::from_millis(6_553_500),
        ),
    ] {
        let before = Instant::now();
        let (mut engine, _) = met(bytes);
        let after = Instant::now();
        let deadline = last_timeout(&mut engine).unwrap();
        assert!(deadline >= before + ttl && deadline <= after + ttl);
        assert!(!engine.is_ready());
        let silence = Event::Closed(CloseReason::HeartbeatTimeout);
        assert_eq!(engine.poll_event(), Some(silence));
    }
    let (mut unbounded, _) = met(b"\x04\x07\x04PING\0\0");
    last_timeout(&mut unbounded);
    assert!(unbounded.is_ready());
}

#[test]
fn subscriptions_do_not_cut_into_messages() {
    let publisher = config(SocketType::Xpub);
    let ready = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";
    let bytes = [GREETING, &ready[..], b"\x01\x01x\x04\x0b\x09SUBSCRIBEx"].concat();
    let (_, events) = fed(publisher, &bytes);
    let error = &ProtocolError::UnexpectedCommand {
        expected: "the next frame of a message",
        got: "SUBSCRIBE".to_owned(),
    };
    assert_eq!(reason(&events), Some(&CloseReason::Protocol(error.clone())));
}

#[test]
fn topics_may_be_longer_than_other_commands() {
    let topic = vec![b't'; 1 << 20];
    let command = [
        &[6][..],
        &(10 + topic.len() as u64).to_be_bytes(),
        b"\x09SUBSCRIBE",
        &topic,
    ]
    .concat();
    let ready = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";
    let bytes = [GREETING, &ready[..], &command].concat();
    let (_, events) = fed(config(SocketType::Pub), &bytes);
    assert_eq!(frames(&events)[0][..], topic);
    let limited = EngineConfig {
        max_msg_size: Some(1 << 19),
        ..config(SocketType::Pub)
    };
    let (_, events) = fed(limited, &bytes);
    assert!(matches!(reason(&events), Some(CloseReason::Protocol(_))));
    let (_, events) = met(&command);
    assert!(matches!(reason(&events), Some(CloseReason::Protocol(_))));
}

#[test]
fn nothing_follows_the_end() {
    let (mut engine, _) = met(b"\xf8");
    let now = Instant::now();
    engine.input().extend_from_slice(b"\0\x01x");
    engine.handle_input(now);
    engine.handle_eof(now);
    engine.handle_timeout(now + Duration::from_secs(1000));
    engine.send(Frame::from("x"));
    assert_eq!(engine.poll_event(), None);
    assert_eq!(engine.poll_timeout(), None);
    assert!(!engine.has_transmit() && !engine.can_send() && !engine.wants_input());
}
