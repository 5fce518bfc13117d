//! Properties of every pattern.

use std::time::Duration;

use bytes::Bytes;
use zeroxide_proto::frame::FrameKind;
use zeroxide_proto::wires;

use super::rig::{Rig, cancel, message, subscribe};
use super::subscribe::SUB;
use super::*;
use crate::options::{OptionRow, SOCKET_OPTIONS, Value};

#[test]
fn every_type_has_its_row() {
    for socket_type in SocketType::ALL {
        assert_eq!(spec(*socket_type).socket_type, *socket_type);
    }
    // BUS, SURVEYOR and RESPONDENT are not ZeroMQ's.
    assert_eq!(PATTERNS.len(), SocketType::ALL.len() + 3);
}

fn spec(socket_type: SocketType) -> &'static PatternSpec {
    Patterns::new().find(socket_type).unwrap()
}

fn row(name: &str) -> &'static OptionRow {
    let all = |row: &&OptionRow| row.name == name || row.aliases.contains(&name);
    SOCKET_OPTIONS.iter().find(all).unwrap()
}

#[test]
fn routing_options_go_to_the_patterns_that_list_them() {
    let option = |socket_type, name, value| spec(socket_type).option(row(name).id, &value);
    assert_eq!(
        option(SocketType::Sub, "SUBSCRIBE", Value::from("news")),
        Some(Ok(PatternOption::Subscribe(Bytes::from_static(b"news"))))
    );
    assert_eq!(
        option(SocketType::Router, "FAIL_UNROUTABLE", Value::Int(1)),
        Some(Ok(PatternOption::RouterMandatory(true)))
    );
    let wrong = option(SocketType::Router, "ROUTER_MANDATORY", Value::Int(-1));
    assert!(wrong.unwrap().is_err());
    assert!(option(SocketType::Sub, "SNDHWM", Value::Int(2)).is_none());
    assert!(option(SocketType::Push, "SUBSCRIBE", Value::from("news")).is_none());
    assert!(SUB.option(12345, &Value::Int(2)).is_none());
}

#[test]
fn an_option_of_other_types_is_refused_with_their_names() {
    let error = publish::PUB.check_option(row("SUBSCRIBE")).unwrap_err();
    assert!(
        error.to_string().contains("of SUB and XPUB, not of PUB"),
        "{error}"
    );
    SUB.check_option(row("SUBSCRIBE")).unwrap();
    for spec in PATTERNS {
        spec.check_option(row("SNDHWM")).unwrap();
    }
}

/// A spec names options by number, so nothing else would notice a wrong one.
#[test]
fn patterns_list_options_that_concern_patterns() {
    for spec in PATTERNS {
        for id in spec.options {
            let row = OptionRow::find(*id).unwrap();
            let stored = ["INVERT_MATCHING"].contains(&row.name);
            assert_ne!(row.of_patterns, stored, "{}", row.name);
        }
    }
    for row in SOCKET_OPTIONS.iter().filter(|row| row.of_patterns) {
        assert!(!row.sockets().is_empty(), "no pattern lists {}", row.name);
    }
}

#[test]
fn matching_can_be_inverted_where_nothing_matches() {
    for spec in PATTERNS.iter().filter(|spec| spec.wire().is_default()) {
        spec.check_option(row("INVERT_MATCHING")).unwrap();
        let told = spec.option(row("INVERT_MATCHING").id, &Value::Int(1));
        let matches = ["PUB", "XPUB", "SUB"].contains(&spec.socket_type.name());
        assert_eq!(told.is_some(), matches, "{}", spec.socket_type);
    }
}

#[test]
fn options_that_a_wire_protocol_does_not_carry_are_refused() {
    let over_sp = wires::numbered(1).unwrap();
    let over = |socket_type| spec(socket_type).over(over_sp).unwrap();
    for spec in [&sp::SURVEYOR, over(SocketType::Push), over(SocketType::Pub)] {
        for name in ["ROUTING_ID", "METADATA", "INVERT_MATCHING"] {
            let error = spec.check_option(row(name)).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("{name} has no effect")), "{text}");
        }
    }
    over(SocketType::Sub)
        .check_option(row("INVERT_MATCHING"))
        .unwrap();
    let takes = |spec: &PatternSpec| spec.check_option(row("CONFLATE")).is_ok();
    let refusing = PATTERNS.iter().filter(|spec| !takes(spec));
    let names: Vec<_> = refusing.map(|spec| spec.socket_type.name()).collect();
    assert_eq!(names, ["SURVEYOR", "RESPONDENT", "BUS"]);
}

#[test]
fn directions_a_type_does_not_have_are_not_supported() {
    for spec in PATTERNS {
        let mut rig = Rig::new(spec);
        rig.accept("peer");
        if !spec.can_send {
            assert!(!rig.can_send());
            let error = rig.send(["x"]).unwrap_err().error;
            assert_eq!(error.kind(), ErrorKind::NotSupported);
        }
        if !spec.can_recv {
            assert!(!rig.can_recv());
            assert_eq!(rig.recv(), Err(ErrorKind::NotSupported));
        }
    }
}

/// The application makes no call while peers come and go on both sides.
#[test]
fn peers_that_leave_are_forgotten_while_the_application_is_idle() {
    for spec in PATTERNS {
        let mut rig = Rig::new(spec);
        for round in 0..20 {
            let waiting = rig.connect();
            let ready = rig.connect();
            rig.ready(ready, "");
            let accepted = rig.accept("");
            rig.settle();
            if round % 2 == 0 {
                rig.disconnected(ready);
            }
            for id in [ready, accepted, waiting] {
                rig.far_close(id);
            }
            rig.settle();
            assert!(rig.is_empty(), "{} in round {round}", spec.socket_type);
        }
    }
}

/// A small random generator, so that a failure can be reproduced.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        let Dice(state) = self;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 33) % n
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }

    fn message(&mut self) -> Message {
        let frames = 1 + self.below(4);
        let mut bodies = Vec::new();
        for _ in 0..frames {
            bodies.push(self.pick(&["", "a", "ab", "\x00a", "\x01a", "peer 1", "peer 2", "\x01"]));
        }
        match self.below(6) {
            0 => subscribe(bodies[0]),
            1 => cancel(bodies[0]),
            _ => message(bodies),
        }
    }

    /// A message of a peer.
    fn incoming(&mut self, spec: &PatternSpec) -> Message {
        let message = self.message();
        if !spec.socket_type.has_groups() {
            return message;
        }
        let mut group = message.into_head();
        group.set_kind(self.pick(&[FrameKind::Join, FrameKind::Leave, FrameKind::Data]));
        Message::single(group)
    }

    /// A message of the kind that the type sends.
    fn outgoing(&mut self, rig: &Rig, to: PipeId, spec: &PatternSpec) -> Message {
        let mut message = self.message();
        message.head_mut().set_kind(FrameKind::Data);
        if spec.single_part {
            message = Message::single(message.into_head());
            message.set_routing_id(rig.pattern.peer_number(to).unwrap_or(7));
            message.set_group(self.pick(&[&b"a"[..], b"ab", b"\0"]));
        }
        if spec.socket_type == SocketType::Dgram {
            let address = self.pick(&["127.0.0.1:1", "[::1]:2", "nowhere", ""]);
            message = Message::from_frames([address.into(), message.into_head()]);
        }
        message
    }

    fn option(&mut self) -> PatternOption {
        let on = self.below(2) == 0;
        let body = Bytes::from_static(self.pick(&[&b""[..], b"a", b"ab", b"peer 1", b"\0"]));
        match self.below(15) {
            0 => PatternOption::Subscribe(body),
            1 => PatternOption::Unsubscribe(body),
            2 => PatternOption::InvertMatching(on),
            3 => PatternOption::RouterMandatory(on),
            4 => PatternOption::RouterHandover(on),
            5 => PatternOption::ConnectRoutingId(body),
            6 => PatternOption::XpubVerbose(on),
            7 => PatternOption::XpubVerboser(on),
            8 => PatternOption::XpubManual(on),
            9 => PatternOption::SlowSubscriber(self.pick(&[
                SlowSubscriber::Drop,
                SlowSubscriber::Wait,
                SlowSubscriber::Disconnect,
            ])),
            10 => PatternOption::XpubWelcomeMsg(body),
            11 => PatternOption::ReqCorrelate(on),
            12 => PatternOption::ReqRelaxed(on),
            13 => PatternOption::MaxLag(on.then_some(Duration::from_millis(1))),
            _ => PatternOption::StreamNotify(on),
        }
    }
}

/// Peers and application act in random order. Nothing panics, POLLOUT and POLLIN are correct, and no pipe is left at
/// the end.
#[test]
fn random_events_break_no_pattern() {
    for spec in PATTERNS {
        for seed in 0..40 {
            let mut dice = Dice(seed);
            let mut rig = Rig::with_hwm(spec, dice.pick(&[0, 1, 3, 10]));
            let mut ids = Vec::new();
            for _ in 0..500 {
                step(&mut rig, &mut ids, &mut dice, spec);
            }
            for id in ids {
                if rig.has_far(id) {
                    rig.far_close(id);
                }
            }
            rig.settle();
            drain(&mut rig);
            assert!(rig.is_empty(), "{} with seed {seed}", spec.socket_type);
        }
    }
}

fn step(rig: &mut Rig, ids: &mut Vec<PipeId>, dice: &mut Dice, spec: &PatternSpec) {
    let long = "x".repeat(256);
    let name = dice.pick(&["", "peer 1", "peer 2", "\0peer", &long]);
    ids.retain(|id| rig.has_far(*id));
    let id = match dice.below(3) {
        0 if ids.len() < 8 => {
            let id = match dice.below(3) {
                0 => rig.connect(),
                1 => rig.accept_at_once(name),
                _ => rig.accept(name),
            };
            ids.push(id);
            id
        }
        _ if ids.is_empty() => return,
        _ => dice.pick(ids),
    };
    match dice.below(12) {
        0 => rig.far_close(id),
        1 => rig.ready(id, name),
        2 => rig.disconnected(id),
        3 if spec.socket_type == SocketType::Dish => {
            let group = dice.pick(&[b"a", b"b"]);
            drop(match dice.below(2) {
                0 => rig.pattern.join(&mut rig.pipes, group),
                _ => rig.pattern.leave(&mut rig.pipes, group),
            });
        }
        3 => drop(rig.set(dice.option())),
        4 => drop(rig.far_recv(id)),
        5..8 => {
            let could = rig.can_send();
            // POLLOUT does not know the topic or the addressee, or that a pipe has become full since.
            let exact = !matches!(spec.socket_type, SocketType::Pub | SocketType::Xpub)
                && !matches!(spec.socket_type, SocketType::Router | SocketType::Stream)
                && !matches!(spec.socket_type, SocketType::Radio | SocketType::Dgram)
                && !spec.numbers_peers;
            let message = dice.outgoing(rig, id, spec);
            let size = message.size();
            match rig.send_message(message) {
                Ok(()) => assert!(could || !exact, "{}", spec.socket_type),
                Err(rejected) => {
                    assert!(!could || !exact, "{}", spec.socket_type);
                    assert_eq!(rejected.message.size(), size);
                }
            }
        }
        8..10 => {
            let could = rig.can_recv();
            assert_eq!(rig.recv().is_ok(), could, "{}", spec.socket_type);
        }
        10 => rig.settle(),
        _ => {
            let message = dice.incoming(spec);
            rig.far_try_send(id, message);
        }
    }
}

/// Receives everything; a REP has to reply in between.
fn drain(rig: &mut Rig) {
    for _ in 0..10_000 {
        if rig.recv().is_err() && rig.send(["reply"]).is_err() {
            break;
        }
        rig.settle();
    }
    while rig.recv().is_ok() {}
    rig.settle();
}
