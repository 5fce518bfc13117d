//! The bytes that the tests of the nodes in Python use, too.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use zeroxide::{Frame, Message};

use super::{Body, Gossip, Hello, Packet, read_beacon, write_beacon};
use crate::id::NodeId;

struct Line {
    kind: String,
    frames: Vec<Vec<u8>>,
    fields: HashMap<String, String>,
}

impl Line {
    fn field(&self, name: &str) -> String {
        self.fields.get(name).cloned().unwrap_or_default()
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> T {
        let text = self.field(name);
        text.parse().unwrap_or_else(|_| panic!("{name}={text}"))
    }

    fn message(&self) -> Message {
        self.frames
            .iter()
            .map(|frame| Frame::from(frame.clone()))
            .collect()
    }

    fn content(&self) -> Message {
        self.frames[1..]
            .iter()
            .map(|frame| Frame::from(frame.clone()))
            .collect()
    }
}

fn lines(kind: &str) -> Vec<Line> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/zre.txt");
    let text = fs::read_to_string(path).expect("the vectors of the repository");
    let lines: Vec<Line> = text.lines().filter_map(parsed).collect();
    let found: Vec<Line> = lines.into_iter().filter(|line| line.kind == kind).collect();
    assert!(!found.is_empty(), "no {kind}");
    found
}

fn parsed(line: &str) -> Option<Line> {
    let (left, right) = line.split_once(" = ").unwrap_or((line, ""));
    let mut words = left.split_whitespace();
    let kind = words.next().filter(|word| !word.starts_with('#'))?;
    let fields = right.split_whitespace().map(|field| {
        let (name, value) = field.split_once('=').expect("name=value");
        (name.to_owned(), value.to_owned())
    });
    Some(Line {
        kind: kind.to_owned(),
        frames: words.map(bytes).collect(),
        fields: fields.collect(),
    })
}

fn bytes(digits: &str) -> Vec<u8> {
    let digits = digits.trim_matches('-').as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn body(line: &Line) -> Body {
    let (group, member) = (line.field("group"), line.field("member"));
    match line.field("kind").as_str() {
        "HELLO" => Body::Hello(Hello {
            endpoint: line.field("endpoint"),
            groups: line.field("groups").split(',').map(str::to_owned).collect(),
            status: line.number("status"),
            name: line.field("name"),
            headers: BTreeMap::from_iter([headers(line)]),
        }),
        "WHISPER" => Body::Whisper(line.content()),
        "SHOUT" => Body::Shout {
            group,
            content: line.content(),
        },
        "JOIN" => Body::Join {
            group,
            status: line.number("status"),
        },
        "LEAVE" => Body::Leave {
            group,
            status: line.number("status"),
        },
        "PING" => Body::Ping,
        "PING_OK" => Body::PingOk,
        "ELECT" => Body::Elect { group, member },
        "LEADER" => Body::Leader { group, member },
        "GOODBYE" => Body::Goodbye,
        other => panic!("{other}"),
    }
}

fn headers(line: &Line) -> (String, String) {
    let text = line.field("headers");
    let (key, value) = text.split_once(':').expect("a header");
    (key.to_owned(), value.to_owned())
}

#[test]
fn messages_are_those_of_zyre() {
    for line in lines("zre") {
        let packet = Packet {
            sequence: line.number("sequence"),
            body: body(&line),
        };
        assert_eq!(packet.clone().write(), line.message());
        assert_eq!(Packet::read(line.message()), Some(packet));
    }
}

#[test]
fn other_messages_are_refused() {
    for line in lines("not-zre") {
        assert_eq!(Packet::read(line.message()), None, "{:?}", line.frames);
    }
    let mut hello = b"\xaa\xa1\x06\x02\x00\x01".to_vec();
    hello.resize(super::MAX_HELLO, 0);
    assert!(Packet::read(hello.clone().into()).is_some());
    hello.push(0);
    assert!(Packet::read(hello.into()).is_none());
}

#[test]
fn beacons_are_those_of_zyre() {
    for line in lines("beacon") {
        let node = NodeId::parse(line.field("node").as_bytes()).unwrap();
        let port = line.number("port");
        assert_eq!(write_beacon(node, port).as_slice(), line.frames[0]);
        assert_eq!(read_beacon(&line.frames[0]), Some((node, port)));
    }
    for line in lines("not-beacon") {
        assert_eq!(read_beacon(&line.frames[0]), None);
    }
}

#[test]
fn gossip_is_that_of_czmq() {
    for line in lines("gossip") {
        let message = match line.field("kind").as_str() {
            "HELLO" => Gossip::Hello,
            "PUBLISH" => Gossip::Publish {
                key: line.field("key").into_bytes(),
                value: line.field("value").into_bytes(),
            },
            "PING" => Gossip::Ping,
            "PONG" => Gossip::Pong,
            "INVALID" => Gossip::Invalid,
            other => panic!("{other}"),
        };
        assert_eq!(message.write(), line.frames[0]);
        assert_eq!(Gossip::read(&line.frames[0]), Some(message));
    }
    for line in lines("not-gossip") {
        assert_eq!(Gossip::read(&line.frames[0]), None, "{:?}", line.frames);
    }
}

#[test]
fn gossip_of_others_passes_through_unchanged() {
    let message = Gossip::Publish {
        key: b"\xff\0".to_vec(),
        value: vec![0xfe; 1000],
    };
    assert_eq!(Gossip::read(&message.write()), Some(message));
}
