//! The small parsers: commands and their properties, Z85, and datagrams.

use zeroxide_proto::command;
use zeroxide_proto::{datagram, z85};

use super::engine::WORDS;
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "commands",
    about: "commands, their properties, Z85, and datagrams",
    run,
    seeds,
    words: WORDS,
    longest: 4000,
};

fn run(input: &[u8]) {
    guard::bounded(input.len(), || {
        if let Ok((name, data)) = command::split(input) {
            assert_eq!([name, data].concat(), input);
            let _ = command::refusal(data);
            properties(data);
        }
        properties(input);
    });
    if let Ok(bytes) = z85::decode(input) {
        let text = z85::encode(&bytes).expect("a length that was decoded");
        assert_eq!(text.as_bytes(), input);
    }
    if let Ok(text) = z85::encode(input) {
        assert_eq!(z85::decode(text.as_bytes()).expect("encoded text"), input);
    }
    if let Some((group, body)) = datagram::split(input) {
        let head = datagram::head(group).expect("a group that was split off");
        assert_eq!([&head, body].concat(), input);
    }
}

/// Properties are the same after encoding and decoding.
fn properties(data: &[u8]) {
    let Ok(properties) = command::parse_properties(data) else {
        return;
    };
    let mut again = Vec::new();
    for (name, value) in &properties {
        command::put_property(&mut again, name, value);
        assert_eq!(command::find_property(&properties, name), Some(value));
    }
    assert_eq!(again, data);
}

fn seeds() -> Vec<Vec<u8>> {
    let mut ready = command::READY.to_vec();
    command::put_property(&mut ready, "Socket-Type", b"DEALER");
    command::put_property(&mut ready, "Identity", b"me");
    command::put_property(&mut ready, "X-More", &[1; 300]);
    let error = [command::ERROR, &command::error_data("400")].concat();
    let key = z85::encode(&[0x53; 32]).expect("a key").into_bytes();
    vec![ready, error, key, b"\x05groupbody".to_vec()]
}
