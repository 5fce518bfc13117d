//! The scalability protocols: every pair of types over every transport, their bytes, their deadlines, and what they
//! refuse.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::certificates::Authority;
use common::{IpcName, SocketExt, Watchdog, address, inproc_name, socket, until};
use zeroxide::{
    AllowList, Context, DropReason, ErrorKind, EventKind, EventStream, Events, Message, Socket,
    SocketType, Value, Wait, ids, sp,
};

use SocketType::{Dealer, Pair, Pub, Pull, Push, Rep, Req, Sub};

/// The pairs of types of both wire protocols. The left one speaks first.
const OF_BOTH: [(SocketType, SocketType); 4] = [(Pair, Pair), (Push, Pull), (Pub, Sub), (Req, Rep)];

/// A socket that speaks the scalability protocols.
fn speaking(context: &Context, socket_type: SocketType) -> Socket {
    let socket = socket(context, socket_type);
    socket.set_wire_protocol(1).unwrap();
    if socket_type == Sub {
        socket.subscribe("").unwrap();
    }
    socket
}

/// A pair that is connected, over each transport and with either side bound.
fn pairs(context: &Context, left: SocketType, right: SocketType, check: impl Fn(Socket, Socket)) {
    let authority = Authority::new();
    let identity = authority.issue(&["127.0.0.1"]);
    for bound in [0, 1] {
        let ipc = IpcName::new();
        for endpoint in [
            "tcp://127.0.0.1:*".to_owned(),
            ipc.endpoint(),
            inproc_name(),
            "ws://127.0.0.1:*/path".to_owned(),
            "tls+tcp://127.0.0.1:*".to_owned(),
            "wss://127.0.0.1:*".to_owned(),
        ] {
            let pair = [speaking(context, left), speaking(context, right)];
            pair[bound].bytes(ids::WSS_CERT_PEM, identity.certificate.as_bytes());
            pair[bound].bytes(ids::WSS_KEY_PEM, identity.key.as_bytes());
            pair[1 - bound].bytes(ids::WSS_TRUST_PEM, authority.certificate.as_bytes());
            let endpoint = pair[bound].bind(&endpoint).unwrap();
            pair[1 - bound].connect(&endpoint).unwrap();
            for socket in &pair {
                socket.wait_connected(1, Wait::Forever).unwrap();
            }
            let [left, right] = pair;
            check(left, right);
        }
    }
}

fn bodies() -> impl Iterator<Item = Vec<u8>> {
    let sizes = [0, 1, 61, 65, 66, 69, 70, 300, 8191, 8192, 65_537, 1 << 20];
    sizes
        .into_iter()
        .map(|size| (0..size).map(|n| (n % 251) as u8).collect())
}

fn recv(socket: &Socket) -> Message {
    socket.recv(Wait::Forever).unwrap()
}

#[test]
fn every_pair_of_types_talks_over_every_transport() {
    let _watchdog = Watchdog::new("every_pair_of_types_talks_over_every_transport");
    let context = Context::new();
    let own = [(sp::SURVEYOR, sp::RESPONDENT), (sp::BUS, sp::BUS)];
    for (left, right) in OF_BOTH.into_iter().chain(own) {
        pairs(&context, left, right, |left, right| {
            for body in bodies() {
                left.send(&body[..], Wait::Forever).unwrap();
                assert_eq!(recv(&right), Message::from(&body[..]));
                if !matches!(left.socket_type(), Push | Pub) {
                    right.send(&body[..], Wait::Forever).unwrap();
                    assert_eq!(recv(&left), Message::from(&body[..]));
                }
            }
            let error = left.send(["two", "parts"], Wait::Dont).unwrap_err().error;
            assert_eq!(error.kind(), ErrorKind::Invalid);
            let text = format!("a message of a {} socket has one part", left.socket_type());
            assert!(error.to_string().contains(&text), "{error}");
        });
    }
    context.term().unwrap();
}

/// A listening socket of the system, and what connects to it.
fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    (listener, endpoint)
}

fn read(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_request_and_its_reply_have_the_bytes_of_nanomsg() {
    let _watchdog = Watchdog::new("a_request_and_its_reply_have_the_bytes_of_nanomsg");
    let context = Context::new();
    let (listener, endpoint) = listen();
    let req = speaking(&context, Req);
    req.connect(&endpoint).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(b"\0SP\0\0\x31\0\0").unwrap();
    assert_eq!(read(&mut stream, 8), b"\0SP\0\0\x30\0\0");
    req.send("question", Wait::Forever).unwrap();
    let request = read(&mut stream, 8 + 12);
    assert_eq!(request[..8], 12u64.to_be_bytes());
    assert_ne!(request[8] & 0x80, 0);
    assert_eq!(request[12..], *b"question");
    let reply = [&10u64.to_be_bytes()[..], &request[8..12], b"answer"].concat();
    stream.write_all(&reply).unwrap();
    assert_eq!(recv(&req), Message::from("answer"));

    let rep = speaking(&context, Rep);
    let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
    let mut stream = TcpStream::connect(address(&endpoint)).unwrap();
    stream.write_all(b"\0SP\0\0\x30\0\0").unwrap();
    let asked = b"\0\0\0\0\0\0\0\x09\0\0\0\x07\x80\0\0\x01?";
    stream.write_all(asked).unwrap();
    assert_eq!(recv(&rep), Message::from("?"));
    rep.send("!", Wait::Forever).unwrap();
    let answered = b"\0SP\0\0\x31\0\0\0\0\0\0\0\0\0\x09\0\0\0\x07\x80\0\0\x01!";
    assert_eq!(read(&mut stream, answered.len()), answered);
}

#[test]
fn a_subscriber_filters_what_it_gets() {
    let _watchdog = Watchdog::new("a_subscriber_filters_what_it_gets");
    let context = Context::new();
    pairs(&context, Pub, Sub, |publisher, subscriber| {
        subscriber.unsubscribe("").unwrap();
        subscriber.subscribe("a").unwrap();
        for body in ["a1", "b1", "a2"] {
            publisher.send(body, Wait::Forever).unwrap();
        }
        assert_eq!(recv(&subscriber), Message::from("a1"));
        assert_eq!(recv(&subscriber), Message::from("a2"));
        assert_eq!(subscriber.dropped(DropReason::Filtered), 1);
    });
}

#[test]
fn a_survey_ends_at_its_deadline() {
    let _watchdog = Watchdog::new("a_survey_ends_at_its_deadline");
    let context = Context::new();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    surveyor
        .set_survey_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let endpoint = surveyor.bind("tcp://127.0.0.1:*").unwrap();
    let respondents: Vec<_> = (0..3)
        .map(|_| {
            let respondent = context.socket(sp::RESPONDENT).unwrap();
            respondent.connect(&endpoint).unwrap();
            respondent
        })
        .collect();
    surveyor.wait_connected(3, Wait::Forever).unwrap();
    for _ in 0..2 {
        surveyor.send("who?", Wait::Forever).unwrap();
        for respondent in &respondents {
            assert_eq!(recv(respondent), Message::from("who?"));
        }
        respondents[0].send("me", Wait::Forever).unwrap();
        assert_eq!(recv(&surveyor), Message::from("me"));
        let error = surveyor.recv(Wait::Forever).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(
            error.to_string().contains("SURVEY_TIMEOUT is 50 ms"),
            "{error}"
        );
        let error = surveyor.recv(Wait::Forever).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fsm);
    }
    respondents[1].send("late", Wait::Forever).unwrap();
    surveyor.send("again?", Wait::Forever).unwrap();
    until(|| {
        let _ = surveyor.recv(Wait::Dont);
        surveyor.dropped(DropReason::Stale) == 1
    });
    surveyor.close(None);
    drop(respondents);
    context.term().unwrap();
}

#[test]
fn late_answers_are_dropped_without_another_survey() {
    let _watchdog = Watchdog::new("late_answers_are_dropped_without_another_survey");
    let context = Context::new();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    surveyor
        .set_survey_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let respondent = context.socket(sp::RESPONDENT).unwrap();
    respondent
        .connect(&surveyor.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    surveyor.wait_connected(1, Wait::Forever).unwrap();
    surveyor.send("who?", Wait::Forever).unwrap();
    assert_eq!(recv(&respondent), Message::from("who?"));
    let error = surveyor.recv(Wait::Forever).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    respondent.send("late", Wait::Forever).unwrap();
    until(|| surveyor.dropped(DropReason::Stale) == 1);
    assert_eq!(surveyor.stats().unwrap().queued_in, 0);
}

/// The surveyor makes no call, and reads nevertheless.
#[test]
fn answers_for_closed_contexts_take_no_room() {
    let _watchdog = Watchdog::new("answers_for_closed_contexts_take_no_room");
    let context = Context::new();
    let endpoint = inproc_name();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    let respondent = context.socket(sp::RESPONDENT).unwrap();
    for socket in [&surveyor, &respondent] {
        socket.set_sndhwm(1).unwrap();
        socket.set_rcvhwm(1).unwrap();
    }
    surveyor.bind(&endpoint).unwrap();
    respondent.connect(&endpoint).unwrap();
    let ask = |_| {
        let asking = surveyor.open_context().unwrap();
        asking.send("who?", Wait::Forever).unwrap();
        let answering = respondent.open_context().unwrap();
        assert_eq!(
            answering.recv(Wait::Forever).unwrap(),
            Message::from("who?")
        );
        (asking, answering)
    };
    let (asking, answering): (Vec<_>, Vec<_>) = (0..10).map(ask).unzip();
    drop(asking);
    for one in answering {
        one.send("late", Wait::Forever).unwrap();
    }
    assert_eq!(respondent.dropped(DropReason::HighWater), 0);
    assert_eq!(surveyor.dropped(DropReason::Stale), 10);
}

#[test]
fn replies_to_replaced_requests_are_dropped_without_another_request() {
    let name = "replies_to_replaced_requests_are_dropped_without_another_request";
    let _watchdog = Watchdog::new(name);
    let context = Context::new();
    let (req, rep) = (speaking(&context, Req), speaking(&context, Rep));
    req.connect(&rep.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    let (replaced, current) = (rep.open_context().unwrap(), rep.open_context().unwrap());
    for one in [&replaced, &current] {
        req.send("?", Wait::Forever).unwrap();
        assert_eq!(one.recv(Wait::Forever).unwrap(), Message::from("?"));
    }
    current.send("!", Wait::Forever).unwrap();
    assert_eq!(recv(&req), Message::from("!"));
    // The request that was replaced counts, too.
    assert_eq!(req.dropped(DropReason::Stale), 1);
    replaced.send("late", Wait::Forever).unwrap();
    until(|| req.dropped(DropReason::Stale) == 2);
    assert_eq!(req.stats().unwrap().queued_in, 0);
}

/// A peer that has connected, and writes bytes of its own.
fn raw_peer(endpoint: &str, opening: &[u8; 8]) -> TcpStream {
    let mut peer = TcpStream::connect(address(endpoint)).unwrap();
    peer.write_all(opening).unwrap();
    peer.read_exact(&mut [0; 8]).unwrap();
    peer
}

/// This many bodies, which are only a header.
fn bodies_of(header: &[u8], count: usize) -> Vec<u8> {
    let length = u64::try_from(header.len()).unwrap();
    [&length.to_be_bytes(), header].concat().repeat(count)
}

/// They arrive together, and one look takes only some of them.
#[test]
fn many_unasked_messages_are_dropped_to_the_last() {
    let _watchdog = Watchdog::new("many_unasked_messages_are_dropped_to_the_last");
    let context = Context::new();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    let req = speaking(&context, Req);
    for (asking, opening) in [
        (&surveyor, b"\0SP\0\0\x63\0\0"),
        (&req, b"\0SP\0\0\x31\0\0"),
    ] {
        let mut peer = raw_peer(&asking.bind("tcp://127.0.0.1:*").unwrap(), opening);
        peer.write_all(&bodies_of(b"\x80\0\0\x01", 1000)).unwrap();
        until(|| asking.dropped(DropReason::Stale) == 1000);
    }
}

#[test]
fn the_end_of_a_context_drops_all_its_answers() {
    let _watchdog = Watchdog::new("the_end_of_a_context_drops_all_its_answers");
    let context = Context::new();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    // A deadline would set an alarm, too.
    surveyor.set_survey_timeout(None).unwrap();
    let endpoint = surveyor.bind("tcp://127.0.0.1:*").unwrap();
    let mut peer = raw_peer(&endpoint, b"\0SP\0\0\x63\0\0");
    surveyor.wait_connected(1, Wait::Forever).unwrap();
    let asking = surveyor.open_context().unwrap();
    asking.send("?", Wait::Forever).unwrap();
    let mut survey = [0; 13];
    peer.read_exact(&mut survey).unwrap();
    peer.write_all(&bodies_of(&survey[8..12], 600)).unwrap();
    until(|| surveyor.stats().unwrap().queued_in == 600);
    asking.close();
    until(|| surveyor.dropped(DropReason::Stale) == 600);
}

#[test]
fn a_poll_reports_the_end_of_a_survey() {
    let _watchdog = Watchdog::new("a_poll_reports_the_end_of_a_survey");
    let context = Context::new();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    surveyor
        .set_survey_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    surveyor.bind(&inproc_name()).unwrap();
    surveyor.send("anyone?", Wait::Forever).unwrap();
    let events = surveyor.poll(Events::READABLE, None).unwrap();
    assert_eq!(events, Events::READABLE);
    let error = surveyor.recv(Wait::Dont).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_request_that_is_not_answered_goes_to_the_next_peer() {
    let _watchdog = Watchdog::new("a_request_that_is_not_answered_goes_to_the_next_peer");
    let context = Context::new();
    let req = speaking(&context, Req);
    req.set_resend_ivl(Some(Duration::from_millis(20))).unwrap();
    let (silent, answering) = (speaking(&context, Rep), speaking(&context, Rep));
    for rep in [&silent, &answering] {
        req.connect(&rep.bind("tcp://127.0.0.1:*").unwrap())
            .unwrap();
    }
    req.wait_connected(2, Wait::Forever).unwrap();
    let replier = answering.clone();
    let thread = thread::spawn(move || {
        assert_eq!(recv(&replier), Message::from("?"));
        replier.send("!", Wait::Forever).unwrap();
    });
    req.send("?", Wait::Forever).unwrap();
    assert_eq!(recv(&silent), Message::from("?"));
    assert_eq!(recv(&req), Message::from("!"));
    thread.join().unwrap();
}

#[test]
fn a_request_moves_on_when_its_peer_leaves() {
    let _watchdog = Watchdog::new("a_request_moves_on_when_its_peer_leaves");
    let context = Context::new();
    let req = speaking(&context, Req);
    let (leaving, staying) = (speaking(&context, Rep), speaking(&context, Rep));
    let endpoint = req.bind("tcp://127.0.0.1:*").unwrap();
    leaving.connect(&endpoint).unwrap();
    req.send("?", Wait::Forever).unwrap();
    assert_eq!(recv(&leaving), Message::from("?"));
    leaving.close(None);
    staying.connect(&endpoint).unwrap();
    assert_eq!(recv(&staying), Message::from("?"));
    staying.send("!", Wait::Forever).unwrap();
    assert_eq!(recv(&req), Message::from("!"));
}

/// The reason of the next failed handshake.
fn failure(events: &EventStream) -> String {
    let event = events.next(Wait::Forever).unwrap().unwrap();
    event.reason.unwrap()
}

/// Connects two sockets that do not fit, and returns the reason that each side gives.
fn refusals(transport: &str, binding: &Socket, connecting: &Socket) -> [String; 2] {
    let kinds =
        EventKind::HandshakeFailedProtocol as u32 | EventKind::HandshakeFailedNoDetail as u32;
    let events = [binding, connecting].map(|socket| socket.event_stream(kinds).unwrap());
    let endpoint = binding.bind(&format!("{transport}://127.0.0.1:*")).unwrap();
    connecting.connect(&endpoint).unwrap();
    events.map(|events| failure(&events))
}

#[test]
fn both_sides_name_the_wire_protocol_as_the_mistake() {
    let _watchdog = Watchdog::new("both_sides_name_the_wire_protocol_as_the_mistake");
    for transport in ["tcp", "ws"] {
        for binder_speaks_sp in [true, false] {
            let context = Context::new();
            let (binding, connecting) = match binder_speaks_sp {
                true => (speaking(&context, Rep), socket(&context, Req)),
                false => (socket(&context, Rep), speaking(&context, Req)),
            };
            for reason in refusals(transport, &binding, &connecting) {
                assert!(
                    reason.contains("give both sockets the same WIRE_PROTOCOL"),
                    "{transport}: {reason}"
                );
            }
        }
    }
}

#[test]
fn both_sides_name_a_type_that_does_not_fit() {
    let _watchdog = Watchdog::new("both_sides_name_a_type_that_does_not_fit");
    let context = Context::new();
    let (binding, connecting) = (speaking(&context, Rep), speaking(&context, Sub));
    let [bound, connected] = refusals("tcp", &binding, &connecting);
    assert!(bound.contains("\"SUB\""), "{bound}");
    assert!(connected.contains("\"REP\""), "{connected}");
    let (binding, connecting) = (speaking(&context, Rep), speaking(&context, Sub));
    for reason in refusals("ws", &binding, &connecting) {
        assert!(
            reason.contains("give the peer a type that fits"),
            "{reason}"
        );
    }
}

#[test]
fn peers_of_the_other_wire_protocol_are_refused() {
    let _watchdog = Watchdog::new("peers_of_the_other_wire_protocol_are_refused");
    let context = Context::new();
    let (one, other) = (speaking(&context, Rep), socket(&context, Req));
    let events = one
        .event_stream(EventKind::HandshakeFailedProtocol as u32)
        .unwrap();
    other
        .connect(&one.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    assert!(failure(&events).contains("the peer speaks ZMTP; give both sockets the same"));
    let inproc = inproc_name();
    one.bind(&inproc).unwrap();
    let error = other.connect(&inproc).unwrap_err();
    let text = "this REQ socket speaks ZMTP (WIRE_PROTOCOL 0), and the REP socket there speaks the scalability protocols";
    assert!(error.to_string().contains(text), "{error}");
    // The endpoint of a type that is the wrong one.
    let (one, other) = (speaking(&context, Rep), speaking(&context, Sub));
    let events = one
        .event_stream(EventKind::HandshakeFailedProtocol as u32)
        .unwrap();
    other
        .connect(&one.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    assert!(failure(&events).contains("\"SUB\""));
}

#[test]
fn the_wire_protocol_is_chosen_once_and_first() {
    let _watchdog = Watchdog::new("the_wire_protocol_is_chosen_once_and_first");
    let context = Context::new();
    let refused = |socket: &Socket, id, value: i64, text: &str| {
        let error = socket.set_option(id, &Value::Int(value)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(text), "{error}");
    };
    let bound = socket(&context, Rep);
    bound.bind(&inproc_name()).unwrap();
    refused(&bound, ids::WIRE_PROTOCOL, 1, "before the first bind");
    let subscribed = socket(&context, Sub);
    subscribed.subscribe("x").unwrap();
    refused(&subscribed, ids::WIRE_PROTOCOL, 1, "before the first bind");
    refused(
        &socket(&context, Dealer),
        ids::WIRE_PROTOCOL,
        1,
        "no DEALER socket",
    );
    let req = socket(&context, Req);
    req.set_resend_ivl(None).unwrap_err();
    refused(
        &req,
        ids::RESEND_IVL,
        5,
        "with WIRE_PROTOCOL 1, set before it",
    );
    refused(&req, ids::WIRE_PROTOCOL, 2, "takes 0 to 1");
    req.set_wire_protocol(0).unwrap();
    req.set_wire_protocol(1).unwrap();
    req.set_wire_protocol(1).unwrap();
    assert_eq!(req.wire_protocol().unwrap(), 1);
    assert_eq!(req.socket_type(), Req);
    assert_eq!(req.get_int(ids::TYPE).unwrap(), 3);
    for (id, name, value) in [
        (ids::ROUTING_ID, "ROUTING_ID", "name"),
        (ids::METADATA, "METADATA", "X-a:b"),
    ] {
        let named = socket(&context, Req);
        named.set_option(id, &Value::from(value)).unwrap();
        let text = format!("{name} has no effect");
        refused(&named, ids::WIRE_PROTOCOL, 1, &text);
        assert_eq!(named.wire_protocol().unwrap(), 0);
    }
    let inverted = socket(&context, Sub);
    inverted.set_invert_matching(true).unwrap();
    inverted.set_wire_protocol(1).unwrap();
    refused(&req, ids::WIRE_PROTOCOL, 0, "cannot return to ZMTP");
    refused(
        &req,
        ids::REQ_RELAXED,
        1,
        "over ZMTP, but WIRE_PROTOCOL is 1",
    );
    refused(&req, ids::MAX_TTL, 5, "is an option of REP");
    req.set_resend_ivl(None).unwrap();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    assert_eq!(surveyor.wire_protocol().unwrap(), 1);
    refused(&surveyor, ids::WIRE_PROTOCOL, 0, "cannot return to ZMTP");
}

#[test]
fn security_that_peers_would_ignore_is_refused() {
    let _watchdog = Watchdog::new("security_that_peers_would_ignore_is_refused");
    let context = Context::new();
    let refused = |socket: &Socket, text: &str| {
        let error = socket.bind("tcp://127.0.0.1:*").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(text), "{error}");
        let error = socket.connect("tcp://127.0.0.1:1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    };
    let plain = speaking(&context, Pull);
    plain.int(ids::PLAIN_SERVER, 1);
    refused(&plain, "PLAIN");
    let domain = speaking(&context, Pull);
    domain.bytes(ids::ZAP_DOMAIN, b"global");
    refused(&domain, "ZAP_DOMAIN");
    let (_, secret) = zeroxide::curve_keypair().unwrap();
    let listed = speaking(&context, Pull);
    listed.secure_server(&secret, &AllowList::new()).unwrap();
    refused(&listed, "CURVE");
}

#[test]
fn contexts_have_requests_of_their_own() {
    let _watchdog = Watchdog::new("contexts_have_requests_of_their_own");
    let context = Context::new();
    pairs(&context, Req, Rep, |req, rep| {
        let answering: Vec<_> = (0..2)
            .map(|_| {
                let questions = rep.open_context().unwrap();
                thread::spawn(move || {
                    loop {
                        match questions.recv(Wait::Forever) {
                            Ok(question) => questions.send(question, Wait::Forever).unwrap(),
                            Err(error) => return assert_eq!(error.kind(), ErrorKind::NotSocket),
                        }
                    }
                })
            })
            .collect();
        let asking: Vec<_> = (0..4)
            .map(|name| {
                let requests = req.open_context().unwrap();
                thread::spawn(move || {
                    for number in 0..100 {
                        let body = format!("{name} {number}");
                        requests.send(body.as_str(), Wait::Forever).unwrap();
                        let reply = requests.recv(Wait::Forever).unwrap();
                        assert_eq!(reply, Message::from(body.as_str()));
                    }
                })
            })
            .collect();
        for thread in asking {
            thread.join().unwrap();
        }
        rep.close(None);
        for thread in answering {
            thread.join().unwrap();
        }
    });
    let none = socket(&context, Dealer).open_context();
    assert!(none.is_err_and(|error| error.kind() == ErrorKind::NotSupported));
    context.term().unwrap();
}

#[test]
fn a_context_that_ends_forgets_its_request() {
    let _watchdog = Watchdog::new("a_context_that_ends_forgets_its_request");
    let context = Context::new();
    pairs(&context, Req, Rep, |req, rep| {
        let one = req.open_context().unwrap();
        one.send("?", Wait::Forever).unwrap();
        assert_eq!(one.recv(Wait::Dont).unwrap_err().kind(), ErrorKind::Again);
        drop(one);
        assert_eq!(req.dropped(DropReason::Stale), 1);
        rep.send(recv(&rep), Wait::Forever).unwrap();
        assert_eq!(req.recv(Wait::Dont).unwrap_err().kind(), ErrorKind::Fsm);
    });
}

#[test]
fn closing_a_context_ends_what_waits_in_it() {
    let _watchdog = Watchdog::new("closing_a_context_ends_what_waits_in_it");
    let context = Context::new();
    pairs(&context, Req, Rep, |req, rep| {
        let closed = Arc::new(rep.open_context().unwrap());
        let waiting = closed.clone();
        let thread = thread::spawn(move || waiting.recv(Wait::Forever).unwrap_err());
        closed.close();
        let error = thread.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotSocket);
        assert!(error.to_string().contains("context"), "{error}");
        assert!(closed.is_closed());
        let error = closed.send("!", Wait::Dont).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::NotSocket);
        // The message goes to a context that is open.
        req.send("?", Wait::Forever).unwrap();
        let open = rep.open_context().unwrap();
        assert_eq!(open.recv(Wait::Forever).unwrap(), Message::from("?"));
        open.send("!", Wait::Forever).unwrap();
        assert_eq!(recv(&req), Message::from("!"));
    });
}

#[test]
fn a_request_for_a_peer_that_never_comes_goes_to_another() {
    let _watchdog = Watchdog::new("a_request_for_a_peer_that_never_comes_goes_to_another");
    let context = Context::new();
    let (req, rep) = (speaking(&context, Req), speaking(&context, Rep));
    let ipc = IpcName::new();
    req.connect(&ipc.endpoint()).unwrap();
    for first in [true, false] {
        req.send("?", Wait::Forever).unwrap();
        if first {
            req.connect(&rep.bind("tcp://127.0.0.1:*").unwrap())
                .unwrap();
        }
        assert_eq!(recv(&rep), Message::from("?"));
        rep.send("!", Wait::Forever).unwrap();
        assert_eq!(recv(&req), Message::from("!"));
    }
    req.close(Some(Some(Duration::ZERO)));
    rep.close(None);
    context.term().unwrap();
}

/// A context that does not receive its answers must not make the socket hold more than RCVHWM, or stop another one.
#[test]
fn answers_for_a_context_that_does_not_receive_are_bounded() {
    let _watchdog = Watchdog::new("answers_for_a_context_that_does_not_receive_are_bounded");
    let context = Context::new();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    surveyor.set_survey_timeout(None).unwrap();
    surveyor.set_rcvhwm(10).unwrap();
    let endpoint = surveyor.bind("tcp://127.0.0.1:*").unwrap();
    let mut peer = TcpStream::connect(address(&endpoint)).unwrap();
    peer.write_all(b"\0SP\0\0\x63\0\0").unwrap();
    assert_eq!(read(&mut peer, 8), b"\0SP\0\0\x62\0\0");
    surveyor.wait_connected(1, Wait::Forever).unwrap();
    let (idle, active) = (
        surveyor.open_context().unwrap(),
        surveyor.open_context().unwrap(),
    );
    let mut ask = |surveys: &zeroxide::SocketContext| {
        surveys.send("?", Wait::Forever).unwrap();
        read(&mut peer, 8 + 5)[8..12].to_vec()
    };
    let (first, second) = (ask(&idle), ask(&active));
    for round in 0..50 {
        for number in [&first, &second] {
            let answer = [&5u64.to_be_bytes()[..], number, &[round]].concat();
            peer.write_all(&answer).unwrap();
        }
        assert_eq!(
            active.recv(Wait::Forever).unwrap(),
            Message::from(&[round][..])
        );
    }
    assert_eq!(surveyor.dropped(DropReason::HighWater), 45);
    assert_eq!(surveyor.stats().unwrap().queued_in, 5);
    for round in 0..5 {
        assert_eq!(
            idle.recv(Wait::Forever).unwrap(),
            Message::from(&[round][..])
        );
    }
    assert_eq!(surveyor.stats().unwrap().queued_in, 0);
}

/// Messages for many peers are encoded once, with their headers.
#[test]
fn many_respondents_get_each_survey() {
    let _watchdog = Watchdog::new("many_respondents_get_each_survey");
    let context = Context::new();
    let surveyor = context.socket(sp::SURVEYOR).unwrap();
    surveyor.set_survey_timeout(None).unwrap();
    let endpoint = surveyor.bind("tcp://127.0.0.1:*").unwrap();
    let respondents: Vec<_> = (0..20)
        .map(|_| {
            let respondent = context.socket(sp::RESPONDENT).unwrap();
            respondent.connect(&endpoint).unwrap();
            respondent
        })
        .collect();
    surveyor.wait_connected(20, Wait::Forever).unwrap();
    for round in 0..20 {
        let question = vec![round; if round % 2 == 0 { 10 } else { 10_000 }];
        surveyor.send(&question[..], Wait::Forever).unwrap();
        for respondent in &respondents {
            assert_eq!(recv(respondent), Message::from(&question[..]));
            respondent.send(&question[..], Wait::Forever).unwrap();
        }
        for _ in &respondents {
            assert_eq!(recv(&surveyor), Message::from(&question[..]));
        }
    }
    assert_eq!(surveyor.dropped(DropReason::Malformed), 0);
    context.shutdown();
}
