//! Peers that speak older ZMTP, played from scripts of raw bytes.

mod wire;

use std::time::Duration;
use wire::{Script, config, data, frames, message};
use zeroxide_proto::mechanisms::{Mechanism, MechanismConfig, MechanismSpec};
use zeroxide_proto::run::Run;
use zeroxide_proto::{
    CloseReason, EngineConfig, Event, Frame, FrameKind, Message, ProtocolError, SocketType,
};

const SIGNATURE: &[u8] = b"\xff\0\0\0\0\0\0\0\x01\x7f";

impl Script {
    #[track_caller]
    fn ready(&mut self, version: (u8, u8), socket_type: Option<SocketType>, routing_id: &str) {
        let Some(Event::Ready(peer)) = self.engine.poll_event() else {
            panic!("not ready");
        };
        assert_eq!(peer.version, version);
        assert_eq!(peer.socket_type, socket_type);
        assert_eq!(peer.routing_id, routing_id);
        assert_eq!(peer.mechanism, "NULL");
    }

    #[track_caller]
    fn closed(&mut self) -> CloseReason {
        match self.events().pop() {
            Some(Event::Closed(reason)) => reason,
            other => panic!("not closed: {other:?}"),
        }
    }
}

fn with_id(socket_type: SocketType, routing_id: &'static str) -> EngineConfig {
    EngineConfig {
        routing_id: routing_id.into(),
        ..config(socket_type)
    }
}

#[test]
fn zmtp_3_0_gets_subscriptions_as_messages() {
    let mut script = Script::new(config(SocketType::Sub));
    script.peer_gets(SIGNATURE);
    script.peer_sends(SIGNATURE);
    script.peer_gets(b"\x03");
    script.peer_sends(b"\x03\0NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    script.peer_gets(&[&b"\x01NULL"[..], &[0; 48]].concat());
    script.peer_sends(&[0; 32]);
    script.peer_gets(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB");
    script.peer_sends(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB");
    script.ready((3, 0), Some(SocketType::Pub), "");
    script
        .engine
        .send(Frame::with_kind(FrameKind::Subscribe, b"ab"));
    script.engine.send(Frame::with_kind(FrameKind::Cancel, b""));
    script.peer_gets(b"\0\x03\x01ab\0\x01\0");
    script.peer_sends(b"\0\x02ab");
    assert_eq!(data(&script.events()), [[b"ab"]]);
}

/// libzmq 4.2 has groups and speaks ZMTP 3.0.
#[test]
fn zmtp_3_0_gets_groups_as_commands() {
    let mut script = Script::new(config(SocketType::Dish));
    script.peer_sends(SIGNATURE);
    script.peer_sends(&[&b"\x03\0NULL"[..], &[0; 48]].concat());
    script.peer_sends(b"\x04\x1b\x05READY\x0bSocket-Type\0\0\0\x05RADIO");
    script.ready((3, 0), Some(SocketType::Radio), "");
    let sent = script.engine.poll_transmit(&mut Vec::new(), usize::MAX);
    script.engine.transmitted(sent, script.now);
    for kind in [FrameKind::Join, FrameKind::Leave] {
        script.engine.send(Frame::with_kind(kind, b"ab"));
    }
    script.peer_gets(b"\x04\x07\x04JOINab\x04\x08\x05LEAVEab");
}

#[test]
fn zmtp_3_1_gets_subscriptions_as_commands() {
    let mut script = Script::new(config(SocketType::Xsub));
    script.peer_sends(SIGNATURE);
    script.peer_sends(&[&b"\x03\x01NULL"[..], &[0; 48]].concat());
    script.peer_sends(b"\x04\x1a\x05READY\x0bsocket-type\0\0\0\x04XPUB");
    script.ready((3, 1), Some(SocketType::Xpub), "");
    let sent = script.engine.poll_transmit(&mut Vec::new(), usize::MAX);
    script.engine.transmitted(sent, script.now);
    script
        .engine
        .send(Frame::with_kind(FrameKind::Subscribe, b"ab"));
    script.engine.send(Frame::with_kind(FrameKind::Cancel, b""));
    script.peer_gets(b"\x04\x0c\x09SUBSCRIBEab\x04\x07\x06CANCEL");
}

#[test]
fn publishers_accept_both_forms_of_subscription() {
    let mut script = Script::new(config(SocketType::Pub));
    script.peer_sends(SIGNATURE);
    script.peer_sends(&[&b"\x03\x01NULL"[..], &[0; 48]].concat());
    script.peer_sends(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB");
    script.ready((3, 1), Some(SocketType::Sub), "");
    script.peer_sends(b"\0\x02\x01a\x04\x0b\x09SUBSCRIBEb\0\x02\0a\x04\x08\x06CANCELb");
    // A message of two subscriptions, then one for the application.
    script.peer_sends(b"\x01\x02\x01c\0\x02\x01d\x01\x01x\0\x02\x01y");
    let mut first = Frame::from("x");
    first.set_more(true);
    assert_eq!(
        frames(&script.events()),
        [
            Frame::with_kind(FrameKind::Subscribe, b"a"),
            Frame::with_kind(FrameKind::Subscribe, b"b"),
            Frame::with_kind(FrameKind::Cancel, b"a"),
            Frame::with_kind(FrameKind::Cancel, b"b"),
            Frame::with_kind(FrameKind::Subscribe, b"c"),
            Frame::with_kind(FrameKind::Subscribe, b"d"),
            first,
            Frame::from(b"\x01y"),
        ]
    );
}

#[test]
fn only_publishers_look_for_subscriptions() {
    let mut script = Script::new(config(SocketType::Pull));
    script.peer_sends(SIGNATURE);
    script.peer_sends(&[&b"\x03\x01NULL"[..], &[0; 48]].concat());
    script.peer_sends(b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH");
    script.peer_sends(b"\0\x02\x01a\x04\x0b\x09SUBSCRIBEb\x04\x05\x04NEWS");
    script.ready((3, 1), Some(SocketType::Push), "");
    assert_eq!(data(&script.events()), [[b"\x01a"]]);
}

#[test]
fn zmtp_2_0_speaks_after_socket_types_and_routing_ids() {
    let mut script = Script::new(with_id(SocketType::Dealer, "me"));
    script.peer_gets(b"\xff\0\0\0\0\0\0\0\x03\x7f");
    script.peer_sends(b"\xff\0\0\0\0\0\0\0\x05\x7f");
    script.peer_gets(b"\x03");
    script.peer_sends(b"\x01\x06");
    script.peer_gets(b"\x05\0\x02me");
    assert!(script.events().is_empty());
    assert!(!script.engine.is_ready());
    script.peer_sends(b"\0\x04them");
    script.ready((2, 0), Some(SocketType::Router), "them");
    for frame in message(&[Vec::new(), vec![b'x'; 300]]) {
        script.engine.send(frame);
    }
    let body = [b'x'; 300];
    script.peer_gets(&[b"\x01\0\x02\0\0\0\0\0\0\x01\x2c", &body[..]].concat());
    script.peer_sends(b"\x01\x01a\0\x01b");
    assert_eq!(data(&script.events()), [[b"a", b"b"]]);
    // No commands in this version.
    script.peer_sends(b"\x04\x07\x04PING\0\0");
    assert!(matches!(script.closed(), CloseReason::Protocol(_)));
}

#[test]
fn zmtp_2_0_subscribes_by_message() {
    let mut script = Script::new(config(SocketType::Sub));
    script.peer_sends(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x01\0\0");
    script.ready((2, 0), Some(SocketType::Pub), "");
    script.peer_gets(&[SIGNATURE, b"\x03\x02\0\0"].concat());
    script
        .engine
        .send(Frame::with_kind(FrameKind::Subscribe, b"t"));
    script
        .engine
        .send(Frame::with_kind(FrameKind::Join, b"group"));
    script.peer_gets(b"\0\x02\x01t");

    let mut script = Script::new(config(SocketType::Xpub));
    script.peer_sends(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x02\0\0\0\x02\x01t");
    script.ready((2, 0), Some(SocketType::Sub), "");
    let topic = Frame::with_kind(FrameKind::Subscribe, b"t");
    assert_eq!(script.events(), [Event::Frame(topic)]);
}

#[test]
fn zmtp_1_0_with_a_signature_uses_the_old_framing() {
    let mut script = Script::new(with_id(SocketType::Req, "me"));
    script.peer_sends(b"\xff\0\0\0\0\0\0\0\x01\x7f\0\x04\x01\0");
    script.ready((1, 0), Some(SocketType::Rep), "");
    script.peer_gets(b"\xff\0\0\0\0\0\0\0\x03\x7f\x03\x03\x03\0me");
    script.engine.send(Frame::from("hi"));
    script.peer_gets(b"\x03\0hi");
}

#[test]
fn zmtp_1_0_takes_our_signature_for_a_routing_id() {
    let mut script = Script::new(with_id(SocketType::Dealer, "me"));
    script.peer_gets(b"\xff\0\0\0\0\0\0\0\x03\x7f");
    script.peer_sends(b"\x05\0them");
    script.ready((1, 0), None, "them");
    script.peer_gets(b"me");
    for frame in message(&[vec![b'a'; 253], vec![b'b'; 254]]) {
        script.engine.send(frame);
    }
    let (a, b) = ([b'a'; 253], [b'b'; 254]);
    script.peer_gets(&[b"\xfe\x01", &a[..], b"\xff\0\0\0\0\0\0\0\xff\0", &b[..]].concat());
    script.peer_sends(b"\x02\x01x\x02\0y");
    assert_eq!(data(&script.events()), [[b"x", b"y"]]);
    assert!(!is_pinged(&mut script));
}

#[test]
fn a_long_routing_id_of_zmtp_1_0_is_not_a_signature() {
    let mut script = Script::new(config(SocketType::Router));
    script.peer_sends(b"\xff\0\0\0\0\0\0\x01\0\0");
    script.peer_sends(&[b'i'; 255]);
    script.ready((1, 0), None, &"i".repeat(255));
}

#[test]
fn subscribers_of_zmtp_1_0_get_everything() {
    for (socket_type, expected) in [
        (SocketType::Pub, 1),
        (SocketType::Xpub, 1),
        (SocketType::Pull, 0),
    ] {
        let mut script = Script::new(config(socket_type));
        script.peer_sends(b"\x01\0");
        script.ready((1, 0), None, "");
        let everything = Event::Frame(Frame::with_kind(FrameKind::Subscribe, b""));
        assert_eq!(script.events(), vec![everything; expected]);
        if expected > 0 {
            let _ = script.engine.poll_transmit(&mut Vec::new(), usize::MAX);
            let mut run = Run::default();
            run.push(&Message::from_frames(message(&[vec![b'a'], vec![b'b']])));
            run.push(&Message::from("c"));
            script.peer_gets(b"\xff\0\0\0\0\0\0\0\x01\x7f");
            script.engine.send(run.take());
            script.peer_gets(b"\x02\x01a\x02\0b\x02\0c");
        }
    }
}

#[test]
fn old_peers_of_the_wrong_type_are_refused() {
    for greeting in [b"\x01\x01", b"\0\x01", b"\x01\x63"] {
        let mut script = Script::new(config(SocketType::Push));
        script.peer_sends(SIGNATURE);
        script.peer_sends(greeting);
        let reason = script.closed();
        let wrong_type = matches!(
            reason,
            CloseReason::Protocol(ProtocolError::SocketType { .. })
        );
        assert!(wrong_type, "{reason}");
    }
}

#[test]
fn routing_ids_have_255_bytes_at_most() {
    let mut script = Script::new(config(SocketType::Router));
    script.peer_sends(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05\x02\0\0\0\0\0\0\x01\0");
    let size = 256;
    assert_eq!(
        script.closed(),
        CloseReason::MessageTooBig { size, limit: 255 }
    );
    let mut script = Script::new(config(SocketType::Router));
    script.peer_sends(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05\x01\x01i");
    assert!(matches!(script.closed(), CloseReason::Protocol(_)));
}

/// Whether a peer that sends nothing more receives a PING.
fn is_pinged(script: &mut Script) -> bool {
    let waiting = script.engine.poll_transmit(&mut Vec::new(), usize::MAX);
    script.engine.transmitted(waiting, script.now);
    while let Some(at) = script.engine.poll_timeout() {
        script.engine.handle_timeout(at);
        if script.engine.has_transmit() {
            return true;
        }
    }
    assert!(script.engine.is_ready());
    false
}

#[test]
fn heartbeats_are_for_zmtp_3() {
    for (greeting, beats) in [
        (&b"\x01\0"[..], false),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\0\0\0", false),
        (
            b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
              \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
              \x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PAIR",
            true,
        ),
    ] {
        let mut script = Script::new(EngineConfig {
            heartbeat_ivl: Some(Duration::from_secs(1)),
            ..config(SocketType::Pair)
        });
        script.peer_sends(greeting);
        assert!(script.engine.is_ready());
        assert_eq!(is_pinged(&mut script), beats);
    }
}

#[test]
fn strangers_are_turned_away_at_once() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"\0\0\0\0",
        b"\x16\x03\x01",
    ] {
        let mut script = Script::new(config(SocketType::Rep));
        script.peer_sends(bytes);
        let reason = script.closed();
        assert!(matches!(reason, CloseReason::Protocol(_)), "{reason}");
        assert!(!script.engine.has_transmit());
    }
}

/// A mechanism that takes any command for the end of the handshake.
static SECURE: MechanismSpec = MechanismSpec::new("SECURE", 200, |_, _| Ok(Box::new(Secure)));

struct Secure;

impl Mechanism for Secure {
    fn handle_command(&mut self, _: &[u8]) -> Result<(), CloseReason> {
        Ok(())
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn poll_peer(&mut self) -> Option<zeroxide_proto::mechanisms::Peer> {
        None
    }
}

fn secure() -> EngineConfig {
    EngineConfig {
        mechanism: MechanismConfig {
            spec: &SECURE,
            parameters: Vec::new(),
        },
        ..config(SocketType::Rep)
    }
}

#[test]
fn security_is_not_negotiable() {
    let downgrades: [&[u8]; 6] = [
        b"\x01\0",
        b"\xff\0\0\0\0\0\0\0\x01\x7f\0\x03\x01\0",
        b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x03\0\0",
        &[SIGNATURE, b"\x03\0NULL", &[0; 48]].concat(),
        &[SIGNATURE, b"\x03\x01SECURE2", &[0; 45]].concat(),
        &[
            SIGNATURE,
            b"\x03\x01SECURE\0\0\0\0\0\0\0\0\0\0\0\0\0x",
            &[0; 32],
        ]
        .concat(),
    ];
    for bytes in downgrades {
        let mut script = Script::new(secure());
        script.peer_sends(bytes);
        let reason = script.closed();
        let refused = matches!(
            reason,
            CloseReason::Protocol(
                ProtocolError::VersionTooOld { .. } | ProtocolError::MechanismMismatch { .. }
            )
        );
        assert!(refused, "{reason}");
    }
    let mut script = Script::new(secure());
    script.peer_sends(&[SIGNATURE, b"\x03\x01SECURE", &[0; 46], b"\x04\x02\x01x"].concat());
    assert_eq!(script.events(), []);
    assert!(!script.engine.is_ready());
}
