//! Endpoints, as programs and peers write them: parsed, and checked by every transport.

use zeroxide::fuzzing;
use zeroxide_proto::endpoint::Endpoint;

use super::Parts;
use super::peer::{SP_TYPES, TYPES};
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "endpoint",
    about: "endpoints and the addresses of every transport",
    run,
    seeds,
    words: &[
        b"tcp://",
        b"ipc://",
        b"inproc://",
        b"udp://",
        b"ws://",
        b"wss://",
        b"tls+tcp://",
        b"*",
        b":*",
        b":0",
        b":65536",
        b"[::1]",
        b"[",
        b"]",
        b"%",
        b"%lo",
        b";",
        b"@",
        b"127.0.0.1",
        b"localhost",
        b"eth0",
        b"239.0.0.1",
        b"/path",
        b"://",
        b"%2f",
        b"?",
        b"#",
    ],
    longest: 500,
};

fn run(input: &[u8]) {
    let mut parts = Parts(input);
    let flags = parts.byte();
    let number = usize::from(flags >> 1);
    let socket_type = match number < 64 {
        true => TYPES[number % TYPES.len()],
        false => SP_TYPES[number % SP_TYPES.len()],
    };
    let Ok(text) = std::str::from_utf8(parts.0) else {
        return;
    };
    guard::bounded(input.len(), || {
        if let Ok(endpoint) = Endpoint::parse(text) {
            assert_eq!(endpoint.to_string(), text);
            assert_eq!(Endpoint::parse(&endpoint.to_string()), Ok(endpoint));
        }
        let checked = fuzzing::check_endpoint(text, socket_type, flags & 1 != 0);
        if let Err(error) = checked {
            assert!(!error.to_string().is_empty());
        }
    });
}

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "tcp://127.0.0.1:5555",
        "tcp://*:*",
        "tcp://[::1%lo]:80",
        "tcp://eth0;10.0.0.1:5555",
        "ipc:///tmp/a b.sock",
        "ipc://@abstract",
        "ipc://*",
        "inproc://a",
        "tls+tcp://host:1",
        "udp://eth0;239.0.0.1:7",
        "udp://239.0.0.1:7",
        "ws://host:80/path?query",
        "wss://[::1]:443",
    ];
    texts
        .into_iter()
        .flat_map(|text| [0, 1].map(|flag| [&[flag | 2], text.as_bytes()].concat()))
        .collect()
}
