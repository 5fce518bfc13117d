//! CURVE between two engines: which clients are admitted, the bytes on the wire, and the limits of an attacker in
//! between.

mod wire;

use bytes::Bytes;
use proptest::prelude::*;
use std::time::Duration;
use wire::curve::{client, client_keys, server, server_keys};
use wire::{Cut, Pair, Script, config, data, frame_starts, frames, message};
use zeroxide_proto::mechanisms::curve::{KeyPair, PUBLIC_KEY, SECRET_KEY, SERVER_KEY};
use zeroxide_proto::mechanisms::plain::PLAIN;
use zeroxide_proto::{
    CloseReason, Credentials, EngineConfig, Event, Frame, FrameKind, MechanismConfig,
    ProtocolError, SocketType, Verdict,
};

fn push_pull() -> Pair {
    Pair::ready(
        client(SocketType::Push),
        server(SocketType::Pull),
        Cut::Whole,
    )
}

/// Why a connection has ended.
#[track_caller]
fn reason(events: &[Event]) -> &CloseReason {
    match events {
        [Event::Closed(reason)] => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_arrive_and_cannot_be_read_without_the_keys() {
    let mut pair = Pair::ready(
        client(SocketType::Dealer),
        server(SocketType::Router),
        Cut::Every(11),
    );
    let messages = [
        vec![b"secret".to_vec()],
        vec![Vec::new()],
        vec![vec![1; 69], vec![2; 70], vec![3; 223], vec![4; 224]],
        vec![vec![5; 225], vec![6; 1000], vec![7; 20_000], Vec::new()],
    ];
    for parts in &messages {
        pair.send_a(message(parts));
        pair.send_b(message(parts));
    }
    let mut slices = Vec::new();
    pair.a.engine.poll_transmit(&mut slices, usize::MAX);
    let sent: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
    assert!(!sent.windows(6).any(|window| window == b"secret"));
    assert!(!sent.windows(9).any(|window| window == [7; 9]));
    pair.run();
    assert_eq!(data(&pair.b.events()), messages);
    assert_eq!(data(&pair.a.events()), messages);
    assert_eq!(pair.a.engine.messages_transmitted(), 4);
}

#[test]
fn large_messages_keep_their_place_among_small_ones() {
    let mut pair = push_pull();
    let messages: Vec<_> = [10, 300_000, 0, 262_144, 262_000, 1]
        .map(|size| vec![vec![size as u8; size]])
        .to_vec();
    for parts in &messages {
        pair.send_a(message(parts));
    }
    pair.run();
    assert_eq!(data(&pair.b.events()), messages);
}

#[test]
fn the_authenticator_gets_the_clients_key() {
    let mut asking = server(SocketType::Pull);
    asking.authenticate = true;
    for status in [200, 400] {
        let mut pair = Pair::new(client(SocketType::Push), asking.clone(), Cut::Whole);
        pair.run();
        let asked = Event::Authenticate(Credentials {
            mechanism: "CURVE",
            credentials: vec![Bytes::copy_from_slice(&client_keys().public)],
        });
        assert_eq!(pair.b.events(), [asked]);
        assert_eq!(pair.a.events(), []);
        let verdict = Verdict {
            status,
            user_id: Some("alice".to_owned()),
            metadata: Vec::new(),
        };
        pair.b.engine.handle_verdict(verdict, pair.now);
        let at_server = pair.b.drain();
        pair.run();
        if status == 200 {
            let peer = pair.b.engine.peer().unwrap();
            assert_eq!(peer.user_id.as_deref(), Some("alice"));
            assert_eq!(peer.mechanism, "CURVE");
            assert!(pair.a.engine.is_ready());
        } else {
            assert_eq!(at_server, [Event::Closed(CloseReason::Denied(400))]);
            let refused = CloseReason::AuthFailed(400);
            assert_eq!(pair.a.events(), [Event::Closed(refused)]);
        }
    }
}

#[test]
fn without_an_authenticator_a_client_with_the_servers_key_is_admitted() {
    let mut pair = push_pull();
    assert_eq!(pair.b.engine.peer().unwrap().user_id, None);
    pair.send_a(message(&[b"hello".to_vec()]));
    pair.run();
    assert_eq!(frames(&pair.b.events()), [Frame::from("hello")]);
}

#[test]
fn a_client_without_the_servers_key_is_refused() {
    let mut stranger = client(SocketType::Push);
    let wrong = KeyPair::from_secret([1; 32]);
    stranger.mechanism.parameters[1] = (SERVER_KEY, Bytes::copy_from_slice(&wrong.public));
    let mut pair = Pair::new(stranger, server(SocketType::Pull), Cut::Whole);
    pair.run();
    let expected = ProtocolError::Cryptographic("HELLO");
    assert_eq!(
        *reason(&pair.b.events()),
        CloseReason::Protocol(expected.clone())
    );
    assert_eq!(expected.code(), 0x1100_0001);
    assert!(!pair.a.engine.is_ready());
}

#[test]
fn a_server_without_its_secret_key_is_refused() {
    let mut impostor = server(SocketType::Pull);
    impostor.mechanism.parameters[0] = (SECRET_KEY, Bytes::from(vec![9; 32]));
    let mut pair = Pair::new(client(SocketType::Push), impostor, Cut::Whole);
    pair.run();
    assert!(!pair.a.engine.is_ready() && !pair.b.engine.is_ready());
}

#[test]
fn two_of_a_kind_get_nowhere() {
    let mut pair = Pair::new(
        client(SocketType::Pair),
        client(SocketType::Pair),
        Cut::Whole,
    );
    pair.run();
    for events in [pair.a.events(), pair.b.events()] {
        let text = reason(&events).to_string();
        assert_eq!(text, "expected WELCOME, got HELLO");
    }
    let mut pair = Pair::new(
        server(SocketType::Pair),
        server(SocketType::Pair),
        Cut::Whole,
    );
    pair.run();
    pair.advance(Duration::from_secs(30));
    let events = pair.a.drain();
    assert_eq!(*reason(&events), CloseReason::HandshakeTimeout);
}

#[test]
fn nothing_less_than_curve_is_spoken() {
    let plain = EngineConfig {
        mechanism: MechanismConfig {
            spec: &PLAIN,
            parameters: Vec::new(),
        },
        ..config(SocketType::Pair)
    };
    for other in [config(SocketType::Pair), plain] {
        let name = other.mechanism.spec.name;
        for secure in [client(SocketType::Pair), server(SocketType::Pair)] {
            let mut pair = Pair::new(secure, other.clone(), Cut::Whole);
            pair.send_b(message(&[b"in clear".to_vec()]));
            pair.run();
            let events = pair.a.events();
            let expected = ProtocolError::MechanismMismatch {
                ours: "CURVE",
                theirs: name.to_owned(),
            };
            assert_eq!(*reason(&events), CloseReason::Protocol(expected));
        }
    }
    for old in [
        &b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\0\0\0\0\x05hello"[..],
        b"\xff\0\0\0\0\0\0\0\x01\x7f\0\0",
        b"\x01\0\x06\0hello",
    ] {
        let mut script = Script::new(server(SocketType::Pair));
        script.peer_sends(old);
        let events = script.events();
        let CloseReason::Protocol(error) = reason(&events) else {
            panic!("{events:?}");
        };
        assert!(matches!(error, ProtocolError::VersionTooOld { .. }));
    }
}

#[test]
fn unencrypted_frames_after_the_handshake_are_refused() {
    for (bytes, code) in [
        (&b"\0\x05hello"[..], 0x1000_0011),
        (b"\x04\x07\x04PING\0\0", 0x1000_0001),
        (b"\x04\x0a\x05ERROR\x03400", 0x1000_0001),
        (b"\x04\x0b\x09SUBSCRIBEa", 0x1000_0001),
        (b"\0\0", 0x1000_0011),
    ] {
        let mut pair = push_pull();
        pair.b.feed(bytes, pair.now);
        let events = pair.b.events();
        let CloseReason::Protocol(error) = reason(&events) else {
            panic!("{events:?}");
        };
        assert_eq!(error.code(), code, "{}", bytes.escape_ascii());
    }
}

#[test]
fn whatever_a_third_party_does_to_a_message_ends_the_connection() {
    let start = || {
        let mut pair = push_pull();
        for body in [&b"first"[..], b"second", b"third"] {
            pair.send_a(message(&[body.to_vec()]));
        }
        let bytes = pair.a.output(pair.now);
        (pair, bytes)
    };
    // Header, overhead, body.
    let ends = [2 + 33 + 5, 2 + 33 + 6, 2 + 33 + 5];
    let cut = |bytes: &[u8]| {
        let (first, rest) = bytes.split_at(ends[0]);
        let (second, third) = rest.split_at(ends[1]);
        [first.to_vec(), second.to_vec(), third.to_vec()]
    };
    // Which command is repeated, lost or swapped, and how many messages arrived before.
    for (order, through) in [
        (&[0, 0, 1, 2][..], 1),
        (&[0, 2], 1),
        (&[1], 0),
        (&[1, 0, 2], 0),
        (&[0, 1, 0], 2),
    ] {
        let (mut pair, bytes) = start();
        let parts = cut(&bytes);
        let bytes: Vec<u8> = order.iter().flat_map(|at| parts[*at].clone()).collect();
        pair.b.feed(&bytes, pair.now);
        let events = pair.b.events();
        assert_eq!(frames(&events).len(), through);
        let closed = reason(&events[through..]);
        assert!(
            matches!(
                closed,
                CloseReason::Protocol(ProtocolError::Sequence { .. })
            ),
            "{closed}"
        );
    }
    // Every bit of the header of the second message and of the following bytes; the rest has a test of its own.
    for bit in 0..8 * 12 {
        let (mut pair, mut bytes) = start();
        bytes[ends[0] + bit / 8] ^= 1 << (bit % 8);
        pair.b.feed(&bytes, pair.now);
        pair.b.engine.handle_eof(pair.now);
        let events = pair.b.drain();
        if matches!(bit, 0 | 2) {
            // The flags outside mean nothing.
            assert_eq!(frames(&events).len(), 3);
            continue;
        }
        assert_eq!(frames(&events), [Frame::from("first")]);
        let closed = reason(&events[1..]);
        // A longer length, or a length of more bytes, makes us wait for bytes that never arrive.
        assert!(
            matches!(closed, CloseReason::Protocol(_)) || bit / 8 == 1 || bit == 1,
            "{bit}: {closed}"
        );
    }
}

#[test]
fn subscriptions_and_heartbeats_travel_inside() {
    // Between peers of ZMTP 3.1, and where one greets with 3.0.
    for minor in [1, 0] {
        let mut sub = client(SocketType::Xsub);
        sub.heartbeat_ivl = Some(Duration::from_secs(1));
        let mut pair = Pair::new(sub, server(SocketType::Xpub), Cut::Whole);
        let now = pair.now;
        let (mut to_b, mut to_a) = (pair.a.output(now), pair.b.output(now));
        pair.b.feed(&to_b, now);
        pair.a.feed(&to_a, now);
        (to_b, to_a) = (pair.a.output(now), pair.b.output(now));
        // The signature is out; this is the major version.
        assert_eq!((&to_b[..], &to_a[..]), (&[3][..], &[3][..]));
        pair.b.feed(&to_b, now);
        pair.a.feed(&to_a, now);
        (to_b, to_a) = (pair.a.output(now), pair.b.output(now));
        (to_b[0], to_a[0]) = (minor, minor);
        pair.b.feed(&to_b, now);
        pair.a.feed(&to_a, now);
        pair.run();
        assert!(matches!(pair.a.events()[..], [Event::Ready(_)]));
        let peer = pair.b.engine.peer().unwrap();
        assert_eq!(peer.version, (3, minor));
        assert!(matches!(pair.b.events()[..], [Event::Ready(_)]));

        let topic = Frame::with_kind(FrameKind::Subscribe, b"topic");
        let cancel = Frame::with_kind(FrameKind::Cancel, &[b'x'; 300]);
        pair.send_a([topic.clone(), cancel.clone()].into_iter());
        let sent = pair.a.output(now);
        // 33 bytes of wrapping; the name of the command, or one byte.
        let name = if minor == 1 { 10 } else { 1 };
        assert_eq!(sent[1], 33 + name + 5);
        assert!(!sent.windows(5).any(|window| window == b"topic"));
        pair.b.feed(&sent, now);
        for _ in 0..5 {
            pair.run();
            pair.advance(Duration::from_secs(1));
        }
        assert_eq!(frames(&pair.b.events()), [topic, cancel]);
        assert!(pair.a.engine.is_ready() && pair.b.engine.is_ready());
    }
}

#[test]
fn limits_apply_to_the_content() {
    let mut small = server(SocketType::Pull);
    small.max_msg_size = Some(100);
    let mut pair = Pair::ready(client(SocketType::Push), small, Cut::Whole);
    pair.send_a(message(&[vec![1; 100]]));
    pair.run();
    assert_eq!(frames(&pair.b.events()).len(), 1);
    pair.send_a(message(&[vec![1; 101]]));
    pair.run();
    let events = pair.b.events();
    assert!(matches!(reason(&events), CloseReason::MessageTooBig { .. }));
}

#[test]
fn commands_inside_are_not_measured_as_messages() {
    // A heartbeat is longer than any message here.
    let mut small = server(SocketType::Pull);
    small.max_msg_size = Some(4);
    let mut push = client(SocketType::Push);
    push.heartbeat_ivl = Some(Duration::from_secs(1));
    let mut pair = Pair::ready(push, small, Cut::Whole);
    for _ in 0..5 {
        pair.advance(Duration::from_secs(1));
        pair.run();
    }
    pair.send_a(message(&[vec![1; 4]]));
    pair.run();
    assert_eq!(frames(&pair.b.events()).len(), 1);
    assert!(pair.a.engine.is_ready() && pair.b.engine.is_ready());

    // Subscriptions may be as long as a message, and no command is longer than one may be.
    for (limit, length, fits) in [
        (64, 64, true),
        (100_000, 100_000, true),
        (100_000, 100_001, false),
    ] {
        let mut publisher = server(SocketType::Xpub);
        publisher.max_msg_size = Some(limit);
        let mut pair = Pair::ready(client(SocketType::Xsub), publisher, Cut::Whole);
        let topic = Frame::with_kind(FrameKind::Subscribe, &vec![b't'; length]);
        pair.send_a([topic.clone()].into_iter());
        pair.run();
        let events = pair.b.events();
        match fits {
            true => assert_eq!(frames(&events), [topic]),
            false => assert!(matches!(reason(&events), CloseReason::MessageTooBig { .. })),
        }
    }
    let any_size = server(SocketType::Pull);
    let mut pair = Pair::ready(client(SocketType::Push), any_size, Cut::Whole);
    let command = [&b"\x04PONG"[..], &[0; 70_000]].concat();
    pair.send_a([Frame::with_kind(FrameKind::Command, &command)].into_iter());
    pair.run();
    let too_big = CloseReason::Protocol(ProtocolError::CommandTooBig {
        size: 70_005,
        limit: 65_536,
    });
    assert_eq!(reason(&pair.b.events()), &too_big);
}

#[test]
fn keys_that_do_not_match_are_found_before_anything_is_sent() {
    let bytes = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    let own = (SECRET_KEY, bytes(&client_keys().secret[..]));
    let theirs = (SERVER_KEY, bytes(&server_keys().public));
    let cases = [
        (vec![own.clone()], false),
        (vec![theirs.clone()], false),
        (Vec::new(), true),
        (vec![own.clone(), (SERVER_KEY, bytes(&[0; 31]))], false),
        (vec![own.clone(), (SERVER_KEY, bytes(&[0; 32]))], false),
        (vec![(SECRET_KEY, bytes(&[1; 40])), theirs.clone()], false),
        (
            vec![own.clone(), theirs.clone(), (PUBLIC_KEY, bytes(&[1; 32]))],
            false,
        ),
    ];
    for (parameters, as_server) in cases {
        let mut broken = client(SocketType::Pair);
        broken.as_server = as_server;
        broken.mechanism.parameters = parameters;
        let mut pair = Pair::new(broken, server(SocketType::Pair), Cut::Whole);
        pair.run();
        let events = pair.a.events();
        assert!(matches!(reason(&events), CloseReason::Misconfigured { .. }));
    }
    let mut whole = client(SocketType::Pair);
    let public = (PUBLIC_KEY, bytes(&client_keys().public));
    whole.mechanism.parameters.push(public);
    Pair::ready(whole, server(SocketType::Pair), Cut::Whole);
}

#[test]
fn without_random_bytes_there_is_no_connection() {
    for (broken, other) in [
        (client(SocketType::Pair), server(SocketType::Pair)),
        (server(SocketType::Pair), client(SocketType::Pair)),
    ] {
        let broken = EngineConfig {
            random: |_| false,
            ..broken
        };
        let mut pair = Pair::new(broken, other, Cut::Whole);
        pair.run();
        let events = pair.a.events();
        assert!(matches!(reason(&events), CloseReason::Misconfigured { .. }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_messages_arrive_however_they_are_cut(
        messages in prop::collection::vec(prop::collection::vec(0usize..1500, 1..5), 1..12),
        seed in 1u64..,
        stalls in any::<bool>(),
    ) {
        let mut pair = Pair::ready(
            client(SocketType::Push),
            server(SocketType::Pull),
            Cut::Random(seed),
        );
        let messages: Vec<Vec<Vec<u8>>> = messages
            .iter()
            .map(|sizes| sizes.iter().map(|size| vec![*size as u8; *size]).collect())
            .collect();
        pair.b.polls = !stalls;
        for parts in &messages {
            pair.send_a(message(parts));
            pair.step();
        }
        pair.run();
        prop_assert_eq!(data(&pair.b.drain()), messages);
    }

    #[test]
    fn a_damaged_stream_delivers_only_its_beginning(
        sizes in prop::collection::vec(0usize..400, 1..10),
        at in any::<prop::sample::Index>(),
        flipped in 1u8..,
        inserted in prop::collection::vec(any::<u8>(), 0..50),
        dropped in 0usize..200,
        cut in 1usize..500,
    ) {
        let mut pair = push_pull();
        let messages: Vec<Vec<u8>> = sizes.iter().map(|size| vec![*size as u8; *size]).collect();
        for body in &messages {
            pair.send_a(message(std::slice::from_ref(body)));
        }
        let mut bytes = pair.a.output(pair.now);
        let at = at.index(bytes.len());
        let means_nothing = frame_starts(&bytes).contains(&at) && flipped & !0x05 == 0;
        let harmless = means_nothing && inserted.is_empty() && dropped == 0;
        bytes[at] ^= flipped;
        let end = bytes.len().min(at + 1 + dropped);
        bytes.splice(at + 1..end, inserted);
        for piece in bytes.chunks(cut) {
            pair.b.feed(piece, pair.now);
        }
        let arrived: Vec<Vec<u8>> = frames(&pair.b.drain()).iter().map(|frame| frame.to_vec()).collect();
        prop_assert!(harmless || arrived.len() < messages.len());
        prop_assert_eq!(&arrived[..], &messages[..arrived.len()]);
    }
}
