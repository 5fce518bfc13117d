//! CURVE with keys that are known, and random bytes that are not random.

use super::config;
use bytes::Bytes;
use std::cell::Cell;
use zeroxide_proto::mechanisms::curve::{CURVE, KeyPair, SECRET_KEY, SERVER_KEY};
use zeroxide_proto::mechanisms::{Greeted, Local, Mechanism, MechanismSpec, Random, system_random};
use zeroxide_proto::{EngineConfig, MechanismConfig, SocketType};

pub fn server_keys() -> KeyPair {
    KeyPair::from_secret([0x53; 32])
}

pub fn client_keys() -> KeyPair {
    KeyPair::from_secret([0x43; 32])
}

pub fn client_config() -> MechanismConfig {
    MechanismConfig {
        spec: &CURVE,
        parameters: vec![
            (
                SECRET_KEY,
                Bytes::copy_from_slice(&client_keys().secret[..]),
            ),
            (SERVER_KEY, Bytes::copy_from_slice(&server_keys().public)),
        ],
    }
}

pub fn server_config() -> MechanismConfig {
    MechanismConfig {
        spec: &CURVE,
        parameters: vec![(
            SECRET_KEY,
            Bytes::copy_from_slice(&server_keys().secret[..]),
        )],
    }
}

pub fn client(socket_type: SocketType) -> EngineConfig {
    EngineConfig {
        mechanism: client_config(),
        ..config(socket_type)
    }
}

pub fn server(socket_type: SocketType) -> EngineConfig {
    EngineConfig {
        mechanism: server_config(),
        as_server: true,
        ..config(socket_type)
    }
}

thread_local! {
    static NEXT: Cell<u8> = const { Cell::new(0) };
}

/// Random bytes from here on: all of the first buffer is `first`, all of the next one more, and so on.
pub fn not_random(first: u8) -> Random {
    NEXT.set(first);
    |bytes| {
        bytes.fill(NEXT.get());
        NEXT.set(NEXT.get() + 1);
        true
    }
}

/// One side of a mechanism by itself.
pub fn alone(
    spec: &MechanismSpec,
    config: &MechanismConfig,
    local: Local<'_>,
) -> Box<dyn Mechanism> {
    match (spec.start)(config, local) {
        Ok(mechanism) => mechanism,
        Err(reason) => panic!("{reason}"),
    }
}

pub fn local(as_server: bool) -> Local<'static> {
    Local {
        socket_type: if as_server {
            SocketType::Pull
        } else {
            SocketType::Push
        },
        as_server,
        authenticate: false,
        properties: if as_server {
            b"\x0bSocket-Type\0\0\0\x04PULL"
        } else {
            b"\x0bSocket-Type\0\0\0\x04PUSH"
        },
        random: system_random,
        peer: Greeted {
            minor: 1,
            libzmq: true,
        },
    }
}

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}
