//! The small parsers: commands and their properties, Z85, and datagrams.

use zeroxide_proto::command;
use zeroxide_proto::mechanisms::Verdict;
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

/// Properties are the same after encoding and decoding. Names that are not UTF-8 have their bytes as characters.
fn properties(data: &[u8]) {
    let first = Verdict::parse_metadata(data);
    let Ok(properties) = command::parse_properties(data) else {
        return;
    };
    assert_eq!(first.as_ref(), Ok(&properties));
    let mut again = Vec::new();
    let mut rest = data;
    for (name, value) in &properties {
        assert_eq!(command::find_property(&properties, name), Some(value));
        let (len, after) = rest.split_first().expect("a property");
        let (sent, after) = after.split_at(usize::from(*len));
        match std::str::from_utf8(sent) {
            Ok(sent) => assert_eq!(name, sent),
            Err(_) => assert!(name.chars().eq(sent.iter().copied().map(char::from))),
        }
        again.push(*len);
        again.extend_from_slice(sent);
        again.extend_from_slice(&(value.len() as u32).to_be_bytes());
        again.extend_from_slice(value);
        rest = &after[4 + value.len()..];
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
