//! CURVE between two engines: who gets in, what is on the wire, and what a third party between them can do.

mod wire;

use bytes::Bytes;
use wire::{Cut, Pair, config, data, message};
use zeroxide_proto::mechanisms::curve::{CURVE, KeyPair, SECRET_KEY, SERVER_KEY};
use zeroxide_proto::{EngineConfig, MechanismConfig, SocketType};

fn server_keys() -> KeyPair {
    KeyPair::from_secret([0x53; 32])
}

fn client_keys() -> KeyPair {
    KeyPair::from_secret([0x43; 32])
}

fn client(socket_type: SocketType) -> EngineConfig {
    EngineConfig {
        mechanism: MechanismConfig {
            spec: &CURVE,
            parameters: vec![
                (
                    SECRET_KEY,
                    Bytes::copy_from_slice(&client_keys().secret[..]),
                ),
                (SERVER_KEY, Bytes::copy_from_slice(&server_keys().public)),
            ],
        },
        ..config(socket_type)
    }
}

fn server(socket_type: SocketType) -> EngineConfig {
    EngineConfig {
        mechanism: MechanismConfig {
            spec: &CURVE,
            parameters: vec![(
                SECRET_KEY,
                Bytes::copy_from_slice(&server_keys().secret[..]),
            )],
        },
        as_server: true,
        ..config(socket_type)
    }
}

#[test]
fn messages_arrive_and_nobody_else_can_read_them() {
    let mut pair = Pair::ready(
        client(SocketType::Dealer),
        server(SocketType::Router),
        Cut::Every(11),
    );
    let messages = [
        vec![b"secret".to_vec()],
        vec![Vec::new()],
        vec![vec![1; 69], vec![2; 70], vec![3; 223], vec![4; 224]],
        vec![vec![5; 225], vec![6; 1000], vec![7; 100_000], Vec::new()],
        vec![vec![8; 300_000]],
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
    assert_eq!(pair.a.engine.messages_transmitted(), 5);
}
