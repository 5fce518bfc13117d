//! PLAIN: both sides word for word, the verdict between them, and everything that may go wrong.

mod wire;

use bytes::Bytes;
use wire::{Cut, Pair, Script, config, data, message};
use zeroxide_proto::mechanisms::plain::{PASSWORD, PLAIN, USERNAME};
use zeroxide_proto::{
    CloseReason, Credentials, EngineConfig, Event, MechanismConfig, SocketType, Verdict,
};

const SIGNATURE: &[u8] = b"\xff\0\0\0\0\0\0\0\x01\x7f";
/// The signature of a peer that is no descendant of libzmq.
const BARE_SIGNATURE: &[u8] = b"\xff\0\0\0\0\0\0\0\0\x7f";
const GREETING: &[u8] = b"\x03\x01PLAIN\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const HELLO: &[u8] = b"\x04\x12\x05HELLO\x05alice\x05crypt";
const WELCOME: &[u8] = b"\x04\x08\x07WELCOME";
const INITIATE: &[u8] = b"\x04\x1d\x08INITIATE\x0bSocket-Type\0\0\0\x04PUSH";
const READY: &[u8] = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PULL";

fn client(username: &str, password: &str) -> EngineConfig {
    EngineConfig {
        mechanism: MechanismConfig {
            spec: &PLAIN,
            parameters: vec![
                (USERNAME, Bytes::copy_from_slice(username.as_bytes())),
                (PASSWORD, Bytes::copy_from_slice(password.as_bytes())),
            ],
        },
        ..config(SocketType::Push)
    }
}

fn alice() -> EngineConfig {
    client("alice", "crypt")
}

fn server() -> EngineConfig {
    EngineConfig {
        mechanism: MechanismConfig {
            spec: &PLAIN,
            parameters: Vec::new(),
        },
        as_server: true,
        authenticate: true,
        ..config(SocketType::Pull)
    }
}

fn verdict(status: u16) -> Verdict {
    Verdict {
        status,
        ..Verdict::default()
    }
}

/// One side after the greetings; the peer has sent this much more.
fn greeted(config: EngineConfig, signature: &[u8], then: &[&[u8]]) -> Script {
    let mut script = Script::new(config);
    script.peer_sends(&[signature, GREETING, &then.concat()].concat());
    script
}

#[test]
fn the_client_word_for_word() {
    let mut script = greeted(alice(), SIGNATURE, &[]);
    script.peer_gets(&[SIGNATURE, GREETING, HELLO].concat());
    script.peer_sends(WELCOME);
    script.peer_gets(INITIATE);
    assert!(!script.engine.is_ready());
    script.peer_sends(READY);
    assert!(script.engine.is_ready());
    assert_eq!(script.engine.peer().unwrap().mechanism, "PLAIN");
    script.peer_gets(b"");
}

#[test]
fn the_server_word_for_word() {
    let mut script = greeted(server(), SIGNATURE, &[HELLO]);
    script.peer_gets(&[SIGNATURE, GREETING].concat());
    let asked = Event::Authenticate(Credentials {
        mechanism: "PLAIN",
        credentials: vec![Bytes::from("alice"), Bytes::from("crypt")],
    });
    assert_eq!(script.events(), [asked]);
    let granted = Verdict {
        user_id: Some("Alice".to_owned()),
        ..verdict(200)
    };
    script.engine.handle_verdict(granted, script.now);
    script.peer_gets(WELCOME);
    script.peer_sends(INITIATE);
    script.peer_gets(READY);
    let peer = script.engine.peer().unwrap();
    assert_eq!(peer.user_id.as_deref(), Some("Alice"));
    assert_eq!(peer.socket_type, Some(SocketType::Push));
}

#[test]
fn messages_pass_in_clear_once_the_verdict_is_good() {
    let mut pair = Pair::new(alice(), server(), Cut::Every(5));
    pair.run();
    assert!(matches!(pair.b.events()[..], [Event::Authenticate(_)]));
    pair.b.engine.handle_verdict(verdict(200), pair.now);
    pair.run();
    assert!(matches!(pair.a.events()[..], [Event::Ready(_)]));
    assert!(matches!(pair.b.events()[..], [Event::Ready(_)]));
    let parts = vec![b"one".to_vec(), vec![2; 1000]];
    pair.send_a(message(&parts));
    pair.run();
    assert_eq!(data(&pair.b.events()), [parts]);
}

#[test]
fn refusals_are_spelled_for_their_readers() {
    for (signature, error) in [
        (SIGNATURE, &b"\x04\x09^RROR\x03400"[..]),
        (BARE_SIGNATURE, b"\x04\x0a\x05ERROR\x03400"),
    ] {
        let mut script = greeted(server(), signature, &[HELLO]);
        script.peer_gets(&[SIGNATURE, GREETING].concat());
        assert_eq!(script.events().len(), 1);
        script.engine.handle_verdict(verdict(400), script.now);
        script.peer_gets(error);
        assert_eq!(script.events(), [Event::Closed(CloseReason::Denied(400))]);
        // A client of ours understands either, before and after the WELCOME.
        for before in [&b""[..], WELCOME] {
            let mut script = greeted(alice(), signature, &[before, error]);
            let refused = Event::Closed(CloseReason::AuthFailed(400));
            assert_eq!(script.events(), [refused]);
        }
    }
}

#[test]
fn without_an_authenticator_no_peer_is_admitted() {
    let config = EngineConfig {
        authenticate: false,
        ..server()
    };
    let mut script = greeted(config, SIGNATURE, &[HELLO]);
    let closed = Event::Closed(CloseReason::NobodyToAsk("PLAIN"));
    assert_eq!(script.events(), [closed]);
}

#[test]
fn names_and_passwords_have_up_to_255_bytes() {
    for len in [0, 255] {
        let long = "x".repeat(len);
        let mut pair = Pair::new(client(&long, &long), server(), Cut::Whole);
        pair.run();
        let [Event::Authenticate(asked)] = &pair.b.events()[..] else {
            panic!("not asked");
        };
        assert_eq!(asked.credentials, [long.clone(), long]);
    }
    let long = "x".repeat(256);
    for config in [client(&long, ""), client("", &long)] {
        let mut pair = Pair::new(config, server(), Cut::Whole);
        pair.run();
        let events = pair.a.events();
        assert!(matches!(
            events[..],
            [Event::Closed(CloseReason::Misconfigured { .. })]
        ));
    }
}

#[test]
fn commands_out_of_form_or_turn_are_refused() {
    let to_server: &[(&[&[u8]], u32)] = &[
        (&[b"\x04\x06\x05HELLO"], 0x1000_0013),
        (&[b"\x04\x07\x05HELLO\x05"], 0x1000_0013),
        (&[b"\x04\x0c\x05HELLO\x01u\x02pw!"], 0x1000_0013),
        (&[b"\x04\x0a\x05HELLO\x01u\x02p"], 0x1000_0013),
        (&[WELCOME], 0x1000_0001),
        (&[INITIATE], 0x1000_0001),
        (&[READY], 0x1000_0001),
        (&[b"\x04\x0a\x05ERROR\x03400"], 0x1000_0001),
        (&[b"\x04\x09^RROR\x03400"], 0x1000_0011),
        (&[b"\0\x05hello"], 0x1000_0001),
    ];
    let to_client: &[(&[&[u8]], u32)] = &[
        (&[HELLO], 0x1000_0001),
        (&[READY], 0x1000_0001),
        (&[b"\x04\x09\x07WELCOME!"], 0x1000_0017),
        (&[WELCOME, WELCOME], 0x1000_0001),
        (&[WELCOME, b"\x04\x0a\x05READY\xff\0\0\0"], 0x1000_0018),
        (&[b"\x04\x07\x05ERROR\x05"], 0x1000_0015),
        (&[b"\x04\x06^RROR\x05"], 0x1000_0015),
    ];
    for (config, cases) in [(server(), to_server), (alice(), to_client)] {
        for (commands, code) in cases {
            let mut script = greeted(config.clone(), SIGNATURE, commands);
            let events = script.events();
            let Some(Event::Closed(CloseReason::Protocol(error))) = events.last() else {
                panic!("{commands:?}: {events:?}");
            };
            assert_eq!(error.code(), *code, "{commands:?}");
        }
    }
}

#[test]
fn impatient_clients_gain_nothing() {
    let ahead = [HELLO, INITIATE, b"\0\x05hello"];
    let mut script = greeted(server(), SIGNATURE, &ahead);
    assert!(matches!(script.events()[..], [Event::Authenticate(_)]));
    assert!(!script.engine.wants_input());
    script.engine.handle_verdict(verdict(500), script.now);
    assert_eq!(script.events(), [Event::Closed(CloseReason::Denied(500))]);
    // Where the verdict is good, being early is no crime.
    let mut script = greeted(server(), SIGNATURE, &ahead);
    assert_eq!(script.events().len(), 1);
    script.engine.handle_verdict(verdict(200), script.now);
    assert!(matches!(
        &script.events()[..],
        [Event::Ready(_), Event::Frame(frame)] if frame[..] == *b"hello"
    ));
}

#[test]
fn another_mechanism_is_refused_by_both_sides() {
    for secure in [alice(), server()] {
        let plain_type = match secure.socket_type {
            SocketType::Push => SocketType::Pull,
            _ => SocketType::Push,
        };
        let mut pair = Pair::new(secure, config(plain_type), Cut::Whole);
        pair.run();
        for end in [&mut pair.a, &mut pair.b] {
            let events = end.events();
            let [Event::Closed(reason)] = &events[..] else {
                panic!("{events:?}");
            };
            let text = reason.to_string();
            assert!(text.contains("NULL") && text.contains("PLAIN"), "{text}");
        }
    }
}

#[test]
fn passwords_are_not_shown() {
    let config = client("alice", "swordfish");
    assert!(!format!("{config:?}").contains("swordfish"));
    let mut pair = Pair::new(config, server(), Cut::Whole);
    pair.run();
    assert!(!format!("{:?}", pair.b.events()).contains("swordfish"));
}
