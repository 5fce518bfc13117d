//! No call lasts as long as a peer sends.

use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::socket_type::SocketType;

use super::*;
use crate::error::ErrorKind;
use crate::options::PatternOption;
use crate::patterns::rig::{Rig, cancel, message, subscribe};
use crate::patterns::{
    PATTERNS, PatternSpec, channel, client, dish, gather, peer, publish, radio, rep, req, server,
    sp, subscribe, xpub,
};

/// More than two calls drop, and no multiple of what one drops.
const FLOOD: usize = 3 * MOST_PARTS + 10;

/// What some types read before the application asks, at most.
const READ_EARLY: usize = 256;

/// Types that return every message that they read.
const RETURNING: &[&str] = &[
    "PULL", "DEALER", "ROUTER", "PAIR", "DGRAM", "STREAM", "XSUB", "XPUB",
];

/// A pattern, and what makes it expect messages. Returns one that it drops, and one that it does not.
type Case = (
    &'static PatternSpec,
    fn(&mut Rig, PipeId) -> (Message, Message),
);

fn parts(_: &mut Rig, _: PipeId) -> (Message, Message) {
    (message(["two", "parts"]), message(["good"]))
}

/// The header of the question that the socket has just sent.
fn header(rig: &mut Rig, id: PipeId) -> Vec<u8> {
    rig.send(["?"]).unwrap();
    rig.far_recv_message(id).unwrap().head()[..4].to_vec()
}

fn late(rig: &mut Rig, id: PipeId) -> (Message, Message) {
    let good = [&header(rig, id)[..], b"good"].concat();
    (message([b"\xff\xff\xff\xff late"]), message([good]))
}

fn news(rig: &mut Rig, _: PipeId) -> (Message, Message) {
    rig.set(PatternOption::Subscribe("good".into())).unwrap();
    (message(["bad"]), message(["good"]))
}

const CASES: &[Case] = &[
    (&rep::REP, |_, _| (message(["x"]), message(["", "good"]))),
    (&req::REQ, |rig, _| {
        rig.send(["?"]).unwrap();
        (message(["x"]), message(["", "good"]))
    }),
    (&subscribe::SUB, news),
    (&dish::DISH, |rig, _| {
        rig.pattern.join(&mut rig.pipes, b"here").unwrap();
        (message(["there", "bad"]), message(["here", "good"]))
    }),
    (&gather::GATHER, parts),
    (&client::CLIENT, parts),
    (&server::SERVER, parts),
    (&peer::PEER, parts),
    (&channel::CHANNEL, parts),
    (&sp::BUS, parts),
    (&sp::SUB, news),
    (&sp::REP, |_, _| {
        (message(["x"]), message([b"\x80\0\0\x01good"]))
    }),
    (&sp::RESPONDENT, |_, _| {
        (message(["x"]), message([b"\x80\0\0\x01good"]))
    }),
    (&sp::REQ, late),
    (&sp::SURVEYOR, late),
];

#[test]
fn every_type_that_drops_what_it_reads_is_tested() {
    for spec in PATTERNS.iter().filter(|spec| spec.can_recv) {
        let name = spec.socket_type.name();
        let tested = CASES
            .iter()
            .any(|(tested, _)| tested.socket_type.name() == name);
        assert_ne!(tested, RETURNING.contains(&name), "{name}");
    }
}

#[test]
fn a_call_drops_a_limited_number_of_messages_and_the_next_ones_continue() {
    for (spec, expect) in CASES {
        let mut rig = Rig::new(spec);
        let id = rig.accept("");
        let (bad, good) = expect(&mut rig, id);
        (0..FLOOD).for_each(|_| rig.far_send_message(id, bad.clone()));
        rig.far_send_message(id, good);
        let name = spec.socket_type;
        let mut dropped = 0;
        let mut check = |rig: &Rig, call: &str| {
            let before = dropped;
            dropped = rig.dropped_in_all();
            let range = 1..=(MOST_PARTS + READ_EARLY) as u64;
            assert!(range.contains(&(dropped - before)), "{name}: {call}");
        };
        rig.pattern.readable(&mut rig.pipes, id);
        assert_eq!(rig.recv_message().unwrap_err(), ErrorKind::Again, "{name}");
        check(&rig, "recv");
        rig.finish_call();
        assert!(!rig.pattern.can_recv(&mut rig.pipes), "{name}");
        check(&rig, "can_recv");
        rig.finish_call();
        let (received, from) = rig.recv_from().unwrap();
        assert!(received.concat().contains("good"), "{name}: {received:?}");
        assert_eq!(
            (from, rig.dropped_in_all()),
            (Some(id), FLOOD as u64),
            "{name}"
        );
    }
}

#[test]
fn large_messages_and_those_of_many_parts_count_for_more() {
    let many: Vec<_> = (0..1000).map(|_| "part").collect();
    let large = message(["x".repeat(1 << 20)]);
    let cost = 1 + (1 << 20) / PART_BYTES;
    for (bad, cost) in [(message(many), 1000), (large, cost)] {
        let mut rig = Rig::new(&rep::REP);
        let id = rig.accept("");
        (0..100).for_each(|_| rig.far_send_message(id, bad.clone()));
        rig.pattern.readable(&mut rig.pipes, id);
        rig.recv_message().unwrap_err();
        assert_eq!(rig.dropped_in_all(), MOST_PARTS.div_ceil(cost) as u64);
    }
}

fn join(kind: FrameKind, group: &str) -> Message {
    Message::single(Frame::with_kind(kind, group.as_bytes()))
}

#[test]
fn a_publisher_processes_a_limited_number_of_requests_per_call() {
    type Requests = fn(&str) -> [Message; 2];
    let topics: Requests = |topic| [subscribe(topic), cancel(topic)];
    let groups: Requests =
        |group| [FrameKind::Join, FrameKind::Leave].map(|kind| join(kind, group));
    for (spec, requests) in [
        (&publish::PUB, topics),
        (&xpub::XPUB, topics),
        (&radio::RADIO, groups),
    ] {
        let mut rig = Rig::new(spec);
        let ids = [rig.accept(""), rig.accept("")];
        for id in ids {
            for number in 0..FLOOD {
                rig.far_send_message(id, requests("x")[number % 2].clone());
            }
            rig.far_send_message(id, requests("last")[0].clone());
        }
        let left = |rig: &mut Rig| ids.map(|id| rig.pipes.queued_in(id)).iter().sum::<u64>();
        let all = left(&mut rig);
        for id in ids {
            rig.pattern.readable(&mut rig.pipes, id);
        }
        assert_eq!(
            left(&mut rig),
            all - MOST_PARTS as u64,
            "{}",
            spec.socket_type
        );
        let calls = all as usize / MOST_PARTS;
        for _ in 0..calls {
            rig.finish_call();
            rig.pattern.go_on(&mut rig.pipes);
        }
        assert_eq!(left(&mut rig), 0, "{}", spec.socket_type);
        rig.finish_call();
        let news = match spec.socket_type {
            SocketType::Radio => Message::from("news").with_group("last"),
            _ => Message::from("last"),
        };
        rig.send_message(news).unwrap();
        for id in ids {
            assert_eq!(rig.far_recv_all(id).len(), 1, "{}", spec.socket_type);
        }
    }
}

#[test]
fn a_flood_before_a_reconnect_does_not_keep_the_topics_of_the_lost_connection() {
    let mut rig = Rig::new(&publish::PUB);
    let id = rig.accept("");
    rig.far_send_message(id, subscribe("kept"));
    rig.settle();
    (0..FLOOD).for_each(|_| rig.far_send_message(id, cancel("unknown")));
    rig.far_lapse(id);
    rig.ready(id, "");
    rig.send(["kept"]).unwrap();
    assert!(rig.far_recv_all(id).is_empty());
}

#[test]
fn a_peer_that_leaves_during_a_flood_is_forgotten() {
    for spec in [&publish::PUB, &radio::RADIO, &xpub::XPUB] {
        let mut rig = Rig::new(spec);
        let id = rig.accept("");
        (0..FLOOD).for_each(|_| rig.far_send_message(id, cancel("unknown")));
        rig.far_close(id);
        rig.settle();
        assert!(rig.is_gone(id), "{}", spec.socket_type);
    }
}

#[test]
fn a_req_reads_a_peer_that_has_left_to_its_end() {
    let mut rig = Rig::new(&req::REQ);
    let (asked, other) = (rig.accept(""), rig.accept(""));
    rig.send(["?"]).unwrap();
    (0..FLOOD).for_each(|_| rig.far_send(asked, ["no", "envelope"]));
    rig.far_send(asked, ["", "good"]);
    rig.far_close(asked);
    rig.pattern.far_closed(&mut rig.pipes, asked);
    assert_eq!(rig.pipes.queued_in(asked), 0);
    rig.settle();
    assert!(rig.is_gone(asked));
    assert!(rig.far_recv_message(other).is_none(), "asked again");
    assert_eq!(rig.recv().unwrap(), ["good"]);
}
