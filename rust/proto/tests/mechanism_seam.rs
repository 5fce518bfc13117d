//! The interface for security mechanisms, tested with one that obscures messages with an exclusive or.
//!
//! Its handshake has three steps, so that it is not symmetric: the client sends HELLO, the server WELCOME, and
//! both then know each other.

mod wire;

use bytes::Bytes;
use std::time::Duration;
use wire::{Cut, Pair, config, data, frames, message};
use zeroxide_proto::mechanisms::{
    Cipher, Content, Local, Mechanism, MechanismConfig, MechanismSpec, Opened, Peer, Started,
};
use zeroxide_proto::{
    CloseReason, Credentials, EngineConfig, Event, Frame, FrameKind, ProtocolError, SocketType,
    Verdict,
};

/// The number of frames that a connection can seal.
const FRAMES: u8 = 100;

static XOR: MechanismSpec = MechanismSpec::new("XOR", 200, start);

fn start(config: &MechanismConfig, local: Local<'_>) -> Started {
    let hello = [b"\x05HELLO", local.properties].concat();
    let welcome = [b"\x07WELCOME", local.properties].concat();
    let key = config.parameter("key").ok_or(CloseReason::Misconfigured {
        mechanism: "XOR",
        problem: "no key",
    })?;
    Ok(Box::new(Xor {
        key: key[0],
        server: local.as_server,
        command: (!local.as_server).then_some(hello),
        answer: local.as_server.then_some(welcome),
        asks: local.as_server && local.authenticate,
        peer: None,
    }))
}

struct Xor {
    key: u8,
    server: bool,
    command: Option<Vec<u8>>,
    answer: Option<Vec<u8>>,
    /// A verdict is still wanted.
    asks: bool,
    peer: Option<Vec<(String, Bytes)>>,
}

impl Mechanism for Xor {
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let expected: &[u8] = if self.server {
            b"\x05HELLO"
        } else {
            b"\x07WELCOME"
        };
        if !body.starts_with(expected) {
            return Err(ProtocolError::Cryptographic("the handshake").into());
        }
        let end = body.len() - 4;
        let value = Bytes::copy_from_slice(&body[end..]);
        self.peer = Some(vec![("Socket-Type".to_owned(), value)]);
        if !self.asks {
            self.command = self.answer.take();
        }
        Ok(())
    }

    fn poll_credentials(&mut self) -> Option<Vec<Bytes>> {
        (self.asks && self.peer.is_some()).then(|| vec![Bytes::from("credentials")])
    }

    fn accept(&mut self) {
        self.asks = false;
        self.command = self.answer.take();
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        self.command.take()
    }

    fn poll_peer(&mut self) -> Option<Peer> {
        if self.asks {
            return None;
        }
        Some(Peer {
            properties: self.peer.take()?,
            user_id: Some("alice".to_owned()),
            key: None,
            cipher: Some(Box::new(XorCipher {
                key: self.key,
                left: FRAMES,
            })),
        })
    }
}

/// One byte of flags, then the body, all of it with the key. It seals a limited number of frames.
struct XorCipher {
    key: u8,
    left: u8,
}

impl Cipher for XorCipher {
    fn overhead(&self) -> usize {
        1
    }

    fn seal(&mut self, content: Content<'_>, out: &mut Vec<u8>) -> Result<(), CloseReason> {
        self.left = self.left.checked_sub(1).ok_or(CloseReason::NumbersUsedUp)?;
        let flags = u8::from(content.more) | u8::from(content.command) << 1;
        let parts = [&[flags], content.prefix, content.body];
        out.extend(parts.concat().iter().map(|byte| byte ^ self.key));
        Ok(())
    }

    fn open(&mut self, body: &mut [u8]) -> Result<Opened, ProtocolError> {
        body.iter_mut().for_each(|byte| *byte ^= self.key);
        let Some(flags @ 0..=2) = body.first() else {
            return Err(ProtocolError::Cryptographic("a message"));
        };
        Ok(Opened {
            start: 1,
            more: flags & 1 != 0,
            command: flags & 2 != 0,
        })
    }
}

fn with_key(socket_type: SocketType, as_server: bool, key: u8) -> EngineConfig {
    EngineConfig {
        as_server,
        mechanism: MechanismConfig {
            spec: &XOR,
            parameters: vec![("key", Bytes::copy_from_slice(&[key]))],
        },
        ..config(socket_type)
    }
}

fn pair(client: SocketType, server: SocketType) -> Pair {
    Pair::ready(
        with_key(client, false, 0x5a),
        with_key(server, true, 0x5a),
        Cut::Every(3),
    )
}

#[test]
fn a_mechanism_vouches_for_the_peer_and_wraps_messages() {
    let mut pair = pair(SocketType::Push, SocketType::Pull);
    let peer = pair.b.engine.peer().unwrap();
    assert_eq!(peer.mechanism, "XOR");
    assert_eq!(peer.user_id.as_deref(), Some("alice"));
    let messages = [
        vec![b"secret".to_vec(), Vec::new(), vec![7; 20_000]],
        vec![b"single".to_vec()],
    ];
    for parts in &messages {
        pair.send_a(message(parts));
    }
    let mut slices = Vec::new();
    pair.a.engine.poll_transmit(&mut slices, usize::MAX);
    let sent: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
    assert!(!sent.windows(6).any(|window| window == b"secret"));
    pair.run();
    assert_eq!(data(&pair.b.events()), messages);
    assert_eq!(pair.a.engine.messages_transmitted(), 2);
}

#[test]
fn wrapped_subscriptions_and_heartbeats_work() {
    let mut client = with_key(SocketType::Xsub, false, 1);
    client.heartbeat_ivl = Some(Duration::from_secs(1));
    let server = with_key(SocketType::Xpub, true, 1);
    let mut pair = Pair::ready(client, server, Cut::Whole);
    let topic = Frame::with_kind(FrameKind::Subscribe, b"topic");
    pair.send_a([topic.clone()].into_iter());
    for _ in 0..5 {
        pair.run();
        pair.advance(Duration::from_secs(1));
    }
    assert_eq!(frames(&pair.b.events()), [topic]);
    assert!(pair.a.engine.is_ready() && pair.b.engine.is_ready());
}

#[test]
fn limits_apply_to_the_content() {
    let mut server = with_key(SocketType::Pull, true, 9);
    server.max_msg_size = Some(100);
    let client = with_key(SocketType::Push, false, 9);
    let mut pair = Pair::ready(client, server, Cut::Whole);
    let fits = [vec![vec![1; 100]], vec![vec![1; 60], vec![2; 40]]];
    for parts in &fits {
        pair.send_a(message(parts));
    }
    pair.run();
    assert_eq!(data(&pair.b.events()), fits);
    pair.send_a(message(&[vec![1; 60], vec![2; 60]]));
    pair.run();
    let events = pair.b.events();
    let (size, limit) = (120, 100);
    let closed = Event::Closed(CloseReason::MessageTooBig { size, limit });
    assert_eq!(events.last(), Some(&closed));
}

#[test]
fn a_cipher_that_seals_nothing_more_ends_the_connection() {
    for size in [1, 20_000] {
        let mut pair = pair(SocketType::Push, SocketType::Pull);
        for _ in 0..FRAMES {
            pair.send_a(message(&[vec![1; size]]));
        }
        pair.run();
        assert_eq!(data(&pair.b.events()).len(), usize::from(FRAMES));
        assert_eq!(pair.a.engine.send_failure(), None);
        pair.send_a(message(&[vec![2; size], vec![3; size]]));
        let reason = CloseReason::NumbersUsedUp;
        assert_eq!(pair.a.engine.send_failure(), Some(&reason));
        assert!(!pair.a.engine.has_transmit(), "not even a header");
        assert_eq!(pair.a.drain(), [Event::Closed(reason)]);
    }
}

#[test]
fn a_wrong_key_ends_the_connection() {
    let client = with_key(SocketType::Push, false, 1);
    let server = with_key(SocketType::Pull, true, 0xf0);
    let mut pair = Pair::ready(client, server, Cut::Whole);
    pair.send_a(message(&[vec![0; 10]]));
    pair.run();
    let error = ProtocolError::Cryptographic("a message");
    assert_eq!(error.code(), 0x1100_0001);
    assert_eq!(pair.b.events(), [Event::Closed(error.into())]);
}

#[test]
fn messages_wait_for_the_mechanism() {
    let client = with_key(SocketType::Push, false, 1);
    let server = with_key(SocketType::Pull, false, 1);
    let mut pair = Pair::new(client, server, Cut::Whole);
    pair.run();
    // Two clients: each gets a HELLO where it expects a WELCOME.
    let events = pair.a.events();
    assert!(matches!(
        &events[..],
        [Event::Closed(CloseReason::Protocol(_))]
    ));
    assert!(!pair.b.engine.is_ready());
}

/// A pair whose server has asked about the client, and the credentials.
fn asked() -> (Pair, Credentials) {
    let client = with_key(SocketType::Push, false, 1);
    let mut server = with_key(SocketType::Pull, true, 1);
    server.authenticate = true;
    let mut pair = Pair::new(client, server, Cut::Whole);
    pair.run();
    assert_eq!(pair.a.events(), []);
    match &pair.b.events()[..] {
        [Event::Authenticate(credentials)] => (pair, credentials.clone()),
        other => panic!("{other:?}"),
    }
}

fn verdict(status: u16) -> Verdict {
    Verdict {
        status,
        ..Verdict::default()
    }
}

#[test]
fn the_handshake_waits_for_the_verdict() {
    let (mut pair, asked) = asked();
    assert_eq!(asked.mechanism, "XOR");
    assert_eq!(asked.credentials, ["credentials"]);
    assert!(!format!("{asked:?}").contains("\"credentials\""));
    assert!(!pair.a.engine.is_ready() && !pair.b.engine.is_ready());
    assert!(pair.b.engine.poll_timeout().is_some());
    let granted = Verdict {
        status: 200,
        user_id: Some("bob".to_owned()),
        metadata: vec![("Role".to_owned(), Bytes::from("admin"))],
    };
    pair.b.engine.handle_verdict(granted.clone(), pair.now);
    pair.run();
    let peer = pair.b.engine.peer().unwrap();
    assert_eq!(peer.user_id.as_deref(), Some("bob"));
    assert_eq!(peer.properties[0], granted.metadata[0]);
    assert!(pair.a.engine.is_ready());
    // A second verdict, and an unrequested one, change nothing.
    pair.b.engine.handle_verdict(verdict(400), pair.now);
    pair.a.engine.handle_verdict(verdict(400), pair.now);
    pair.run();
    assert!(pair.a.engine.is_ready() && pair.b.engine.is_ready());
}

#[test]
fn a_refusal_is_reported_unless_it_is_temporary() {
    for (status, told) in [(400, true), (500, true), (300, false)] {
        let (mut pair, _) = asked();
        pair.b.engine.handle_verdict(verdict(status), pair.now);
        let denied = Event::Closed(CloseReason::Denied(status));
        assert_eq!(pair.b.drain(), [denied]);
        let expected = format!("\x04\x0a\x05ERROR\x03{status}");
        let expected = if told { expected.as_bytes() } else { b"" };
        assert_eq!(pair.b.output(pair.now), expected);
        assert!(!pair.b.engine.is_ready() && !pair.b.engine.wants_input());
    }
}

#[test]
fn nothing_piles_up_while_a_verdict_is_awaited() {
    let (mut pair, _) = asked();
    assert!(pair.b.engine.wants_input());
    pair.b.feed(&[0; 1000], pair.now);
    assert!(!pair.b.engine.wants_input());
    assert_eq!(pair.b.events(), []);
    pair.b.engine.handle_eof(pair.now);
    assert_eq!(pair.b.drain(), [Event::Closed(CloseReason::PeerClosed)]);
    pair.b.engine.handle_verdict(verdict(200), pair.now);
    assert!(!pair.b.engine.is_ready());
    assert_eq!(pair.b.drain(), []);
}

#[test]
fn the_handshake_interval_covers_the_verdict() {
    let (mut pair, _) = asked();
    pair.now = pair.b.engine.poll_timeout().unwrap();
    pair.b.engine.handle_timeout(pair.now);
    let closed = Event::Closed(CloseReason::HandshakeTimeout);
    assert_eq!(pair.b.drain(), [closed]);
}

#[test]
fn a_driver_may_give_up_on_a_peer() {
    let (mut pair, _) = asked();
    let reason = CloseReason::NobodyToAsk("XOR");
    pair.b.engine.abort(reason.clone(), pair.now);
    assert_eq!(pair.b.drain(), [Event::Closed(reason)]);
    assert!(!pair.b.engine.has_transmit());
}

#[test]
fn null_asks_on_either_side_before_it_sends_anything() {
    let asking = |socket_type| EngineConfig {
        authenticate: true,
        ..config(socket_type)
    };
    let mut client = asking(SocketType::Dealer);
    // A peer cannot set properties that only we can know.
    client.properties = [("User-Id", "root"), ("role", "admin"), ("X-Plain", "x")]
        .map(|(name, value)| (name.to_owned(), Bytes::from(value)))
        .to_vec();
    let mut pair = Pair::new(client, asking(SocketType::Router), Cut::Every(7));
    pair.run();
    let question = Event::Authenticate(Credentials {
        mechanism: "NULL",
        credentials: Vec::new(),
    });
    assert_eq!(pair.a.events(), std::slice::from_ref(&question));
    assert_eq!(pair.b.events(), [question]);
    pair.a.engine.handle_verdict(verdict(200), pair.now);
    pair.run();
    assert!(!pair.a.engine.is_ready());
    let granted = Verdict {
        metadata: vec![("Role".to_owned(), Bytes::from("guest"))],
        ..verdict(200)
    };
    pair.b.engine.handle_verdict(granted, pair.now);
    pair.run();
    assert!(pair.a.engine.is_ready());
    let peer = pair.b.engine.peer().unwrap();
    assert_eq!(peer.user_id, None);
    let names: Vec<&str> = peer.properties.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["Role", "Socket-Type", "Identity", "X-Plain"]);
    assert_eq!(peer.properties[0].1, "guest");
}

#[test]
fn a_side_that_authenticates_refuses_peers_that_cannot_answer() {
    let server = EngineConfig {
        authenticate: true,
        ..config(SocketType::Pull)
    };
    for greeting in [&b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x08"[..], b"\x01\0"] {
        let mut pair = Pair::new(config(SocketType::Push), server.clone(), Cut::Whole);
        pair.b.feed(greeting, pair.now);
        let events = pair.b.events();
        let [Event::Closed(CloseReason::Protocol(error))] = &events[..] else {
            panic!("{events:?}");
        };
        assert!(matches!(error, ProtocolError::VersionTooOld { .. }));
    }
}
