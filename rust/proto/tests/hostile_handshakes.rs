//! Peers that know the mechanism and misuse it: randomly altered commands, in every state of every mechanism, and whole
//! connections of them. Nothing may panic, and only the right commands may lead to admission.

mod wire;

use bytes::Bytes;
use proptest::prelude::*;
use std::time::Instant;
use wire::curve::{alone, client_config, local, not_random, server_config};
use wire::{Cut, Pair, config};
use zeroxide_proto::mechanisms::curve::CURVE;
use zeroxide_proto::mechanisms::null::NULL;
use zeroxide_proto::mechanisms::plain::{PASSWORD, PLAIN, USERNAME};
use zeroxide_proto::mechanisms::{Local, Mechanism};
use zeroxide_proto::{Engine, EngineConfig, Event, MechanismConfig, SocketType, Verdict};

/// The settings of a mechanism for one side.
fn settings(name: &str, as_server: bool) -> MechanismConfig {
    match (name, as_server) {
        ("CURVE", false) => client_config(),
        ("CURVE", true) => server_config(),
        ("PLAIN", _) => MechanismConfig {
            spec: &PLAIN,
            parameters: vec![
                (USERNAME, Bytes::from("user")),
                (PASSWORD, Bytes::from("password")),
            ],
        },
        _ => MechanismConfig::default(),
    }
}

const NAMES: [&str; 3] = ["NULL", "PLAIN", "CURVE"];

fn start(name: &str, as_server: bool) -> Box<dyn Mechanism> {
    let spec = match name {
        "NULL" => &NULL,
        "PLAIN" => &PLAIN,
        _ => &CURVE,
    };
    let local = Local {
        authenticate: as_server,
        random: not_random(if as_server { 1 } else { 100 }),
        ..local(as_server)
    };
    alone(spec, &settings(name, as_server), local)
}

/// The commands of both sides, up to the point where both have met.
fn commands(name: &str) -> [Vec<Vec<u8>>; 2] {
    let (mut client, mut server) = (start(name, false), start(name, true));
    let mut said = [Vec::new(), Vec::new()];
    for _ in 0..4 {
        not_random(1);
        while let Some(command) = client.poll_command() {
            server.handle_command(&command).unwrap();
            said[0].push(command);
        }
        if server.poll_credentials().is_some() {
            server.accept();
        }
        while let Some(command) = server.poll_command() {
            client.handle_command(&command).unwrap();
            said[1].push(command);
        }
    }
    assert!(client.poll_peer().is_some() && server.poll_peer().is_some());
    said
}

/// One side after this many of the other's commands.
fn advanced(name: &str, as_server: bool, heard: &[Vec<u8>]) -> Box<dyn Mechanism> {
    let mut mechanism = start(name, as_server);
    settle(&mut *mechanism);
    for command in heard {
        not_random(1);
        mechanism.handle_command(command).unwrap();
        settle(&mut *mechanism);
    }
    mechanism
}

fn settle(mechanism: &mut dyn Mechanism) {
    while mechanism.poll_command().is_some() {}
    if mechanism.poll_credentials().is_some() {
        mechanism.accept();
    }
    while mechanism.poll_command().is_some() {}
}

/// Alterations of bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Fill(prop::sample::Index, u8),
    Repeat,
    Replace(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), 1..=255u8).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        at().prop_map(Damage::Cut),
        (at(), prop::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Fill(at, byte)),
        Just(Damage::Repeat),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Damage::Replace),
    ]
}

fn damaged(bytes: &[u8], damage: &Damage) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let len = bytes.len().max(1);
    match damage {
        Damage::Flip(at, bits) => bytes[at.index(len)] ^= bits,
        Damage::Cut(at) => bytes.truncate(at.index(len)),
        Damage::Insert(at, more) => {
            let at = at.index(len);
            bytes.splice(at..at, more.iter().copied());
        }
        Damage::Fill(from, byte) => bytes[from.index(len)..].fill(*byte),
        Damage::Repeat => bytes.extend_from_within(..),
        Damage::Replace(other) => bytes = other.clone(),
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_commands_never_lead_to_admission(
        name in prop::sample::select(&NAMES[..]),
        as_server in any::<bool>(),
        state in any::<prop::sample::Index>(),
        damage in damage(),
    ) {
        let commands = commands(name);
        let heard = &commands[usize::from(!as_server)];
        let at = state.index(heard.len());
        let mut mechanism = advanced(name, as_server, &heard[..at]);
        let damaged = damaged(&heard[at], &damage);
        prop_assume!(damaged != heard[at]);
        not_random(1);
        let taken = mechanism.handle_command(&damaged).is_ok();
        if name == "CURVE" {
            prop_assert!(!taken);
            prop_assert!(mechanism.poll_command().is_none());
        }
        if taken {
            settle(&mut *mechanism);
        } else {
            prop_assert!(mechanism.poll_peer().is_none());
        }
    }

    #[test]
    fn damaged_connections_end_or_wait(
        name in prop::sample::select(&NAMES[..]),
        as_server in any::<bool>(),
        damage in damage(),
        cut in 1usize..300,
    ) {
        let now = Instant::now();
        let side = |as_server| EngineConfig {
            mechanism: settings(name, as_server),
            as_server,
            authenticate: as_server,
            ..config(SocketType::Pair)
        };
        // The commands that a good peer sends, recorded with a partner that answers them.
        let mut pair = Pair::new(side(!as_server), side(as_server), Cut::Whole);
        let mut sent = Vec::new();
        for _ in 0..8 {
            let (from_a, from_b) = (pair.a.output(now), pair.b.output(now));
            pair.b.feed(&from_a, now);
            pair.a.feed(&from_b, now);
            sent.extend(from_a);
            for end in [&mut pair.a, &mut pair.b] {
                if matches!(end.events()[..], [Event::Authenticate(_)]) {
                    let status = 200;
                    end.engine.handle_verdict(Verdict { status, ..Verdict::default() }, now);
                }
            }
        }
        prop_assert!(pair.a.engine.is_ready() && pair.b.engine.is_ready());

        let mut engine = Engine::new(side(as_server), now);
        for piece in damaged(&sent, &damage).chunks(cut) {
            engine.input().extend_from_slice(piece);
            engine.handle_input(now);
            while let Some(event) = engine.poll_event() {
                if matches!(event, Event::Authenticate(_)) {
                    let status = 200;
                    engine.handle_verdict(Verdict { status, ..Verdict::default() }, now);
                }
            }
        }
        if name == "CURVE" {
            // The other transient keys alone see to that.
            prop_assert!(!engine.is_ready());
        }
        engine.handle_eof(now);
        while engine.poll_event().is_some() {}
        prop_assert!(!engine.is_ready());
    }
}
