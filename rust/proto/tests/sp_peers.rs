//! The scalability protocols: what two engines say to each other, and peers that break the rules.

mod wire;

use std::time::{Duration, Instant};

use wire::{Cut, Pair};
use zeroxide_proto::mechanisms::MechanismConfig;
use zeroxide_proto::wires::Mapping;
use zeroxide_proto::{
    CloseReason, Engine, EngineConfig, Event, Frame, ProtocolError, SocketType, sp,
};

/// The opening of a PULL socket.
const OPENING: &[u8; 8] = b"\0SP\0\0\x51\0\0";

fn config(socket_type: SocketType, mapping: Mapping) -> EngineConfig {
    EngineConfig {
        mapping,
        ..EngineConfig::new(socket_type)
    }
}

/// A PULL engine that was fed these bytes, and its events.
fn fed(config: EngineConfig, bytes: &[u8]) -> (Engine, Vec<Event>) {
    let now = Instant::now();
    let mut engine = Engine::new(config, now);
    engine.input().extend_from_slice(bytes);
    engine.handle_input(now);
    let events = std::iter::from_fn(|| engine.poll_event()).collect();
    (engine, events)
}

/// A PULL engine that a PUSH has greeted.
fn met(config: EngineConfig, bytes: &[u8]) -> (Engine, Vec<Event>) {
    fed(config, &[&b"\0SP\0\0\x50\0\0"[..], bytes].concat())
}

fn pull() -> EngineConfig {
    config(sp::PULL, Mapping::Sized)
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
fn messages_arrive_wherever_the_bytes_are_cut() {
    for mapping in [Mapping::Sized, Mapping::Typed, Mapping::Pieces] {
        for cut in [Cut::Whole, Cut::Every(1)] {
            let (push, pull) = (config(sp::PUSH, mapping), config(sp::PULL, mapping));
            let mut pair = Pair::new(push, pull, cut);
            pair.run();
            for (end, expected) in [(&mut pair.a, sp::PULL), (&mut pair.b, sp::PUSH)] {
                let events = end.events();
                let [Event::Ready(peer)] = &events[..] else {
                    panic!("{events:?}");
                };
                assert_eq!(peer.socket_type, Some(expected));
                assert_eq!((peer.version, peer.mechanism), ((0, 0), ""));
            }
            let bodies = [0, 1, 69, 70, 300, 10_000].map(|size| vec![7; size]);
            pair.send_a(bodies.iter().map(|body| Frame::from(&body[..])));
            pair.run();
            let expected = bodies.map(|body| Event::Frame(Frame::from(&body[..])));
            assert_eq!(pair.b.events(), expected);
            assert_eq!(pair.a.engine.messages_transmitted(), 6);
        }
    }
}

#[test]
fn a_header_and_its_body_are_one_message() {
    let (engine, _) = fed(config(sp::REQ, Mapping::Sized), b"");
    assert_eq!(output(&engine), b"\0SP\0\0\x30\0\0");
    let mut pair = Pair::ready(
        config(sp::REQ, Mapping::Typed),
        config(sp::REP, Mapping::Typed),
        Cut::Every(1),
    );
    let mut head = Frame::from("head");
    head.set_more(true);
    pair.send_a([head, Frame::from(&vec![7; 20_000][..])].into_iter());
    pair.run();
    let whole = [&b"head"[..], &[7; 20_000]].concat();
    assert_eq!(pair.b.events(), [Event::Frame(Frame::from(&whole[..]))]);
}

#[test]
fn other_peers_are_refused() {
    for (bytes, text) in [
        (&b"\xff\0\0\0\0\0\0\0\x01\x7f"[..], "the peer speaks ZMTP"),
        (b"GET / HTTP/1.1", "byte 0"),
        (b"\0SP\0\0\x20\0\0", "cannot talk to a \"PUB\""),
        (b"\0SP\0\0\x50\x01\0", "byte 6"),
    ] {
        let (_, events) = fed(pull(), bytes);
        let reason = reason(&events).unwrap().to_string();
        assert!(reason.contains(text), "{reason}");
    }
    let (mut engine, events) = fed(pull(), &OPENING[..5]);
    assert_eq!(events, []);
    engine.handle_eof(Instant::now());
    assert_eq!(
        engine.poll_event(),
        Some(Event::Closed(CloseReason::NotGreeted))
    );
}

/// The greeting goes out nevertheless, so that the peer finds the same.
#[test]
fn an_engine_that_speaks_zmtp_names_the_protocol_of_the_peer() {
    let zmtp = EngineConfig::new(SocketType::Pull);
    let (engine, events) = fed(zmtp, OPENING);
    let reason = reason(&events).unwrap().to_string();
    assert!(reason.contains("the peer speaks SP; give both"), "{reason}");
    assert_eq!(output(&engine), b"\xff\0\0\0\0\0\0\0\x01\x7f");
    let (engine, events) = fed(pull(), &output(&engine));
    assert_eq!(events.len(), 1);
    assert_eq!(output(&engine), OPENING);
}

#[test]
fn a_silent_peer_has_until_the_end_of_the_handshake_interval() {
    let now = Instant::now();
    let mut engine = Engine::new(pull(), now);
    let deadline = engine.poll_timeout().unwrap();
    assert_eq!(deadline, now + Duration::from_secs(30));
    engine.handle_timeout(deadline);
    let expected = Event::Closed(CloseReason::HandshakeTimeout);
    assert_eq!(engine.poll_event(), Some(expected));
}

#[test]
fn messages_over_the_limit_are_refused_by_their_length() {
    let limited = || EngineConfig {
        max_msg_size: Some(4),
        ..pull()
    };
    let (_, events) = met(limited(), b"\0\0\0\0\0\0\0\x04four");
    assert_eq!(events[1..], [Event::Frame(Frame::from("four"))]);
    let (_, events) = met(limited(), b"\0\0\0\0\0\0\0\x05");
    let expected = CloseReason::MessageTooBig { size: 5, limit: 4 };
    assert_eq!(reason(&events), Some(&expected));
}

#[test]
fn lengths_cost_nothing_until_bytes_arrive() {
    let (engine, events) = met(pull(), &u64::to_be_bytes(1 << 62));
    assert_eq!(events.len(), 1, "no event after Ready");
    assert!(engine.held() < 1 << 20, "{} bytes", engine.held());
    let (_, events) = met(pull(), &u64::to_be_bytes(1 << 63));
    let expected = CloseReason::Protocol(ProtocolError::FrameLength(1 << 63));
    assert_eq!(reason(&events), Some(&expected));
    let (_, events) = met(config(sp::PULL, Mapping::Typed), b"\0");
    let expected = CloseReason::Protocol(ProtocolError::MessageType(0));
    assert_eq!(reason(&events), Some(&expected));
}

#[test]
fn nothing_is_admitted_where_security_was_asked_for() {
    let asking = EngineConfig {
        authenticate: true,
        ..pull()
    };
    let plain = EngineConfig {
        mechanism: MechanismConfig {
            spec: zeroxide_proto::mechanisms::MECHANISMS[1],
            parameters: Vec::new(),
        },
        ..pull()
    };
    for config in [asking, plain] {
        let (_, events) = met(config, b"\0\0\0\0\0\0\0\0");
        let reason = reason(&events).unwrap().to_string();
        assert!(reason.contains("no security mechanism"), "{reason}");
        assert_eq!(events.len(), 1);
    }
}
