//! Sockets over WebSocket, against each other and against peers that write bytes.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::certificates::Authority;
use common::{SocketExt, Watchdog, socket, until};
use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, Message, Socket, SocketType, Wait, curve_keypair,
    has, ids,
};

use SocketType::{Dealer, Dish, Pub, Pull, Push, Radio, Rep, Req, Router, Stream, Sub};

const WILDCARD: &str = "ws://127.0.0.1:*/feed";

/// Two sockets that are connected over ws or wss, the one that was bound first.
fn pair(
    context: &Context,
    secure: bool,
    bound: SocketType,
    connected: SocketType,
) -> (Socket, Socket) {
    let (server, client) = (socket(context, bound), socket(context, connected));
    let mut endpoint = WILDCARD.to_owned();
    if secure {
        let authority = Authority::new();
        let identity = authority.issue(&["127.0.0.1"]);
        server.bytes(ids::WSS_CERT_PEM, identity.certificate.as_bytes());
        server.bytes(ids::WSS_KEY_PEM, identity.key.as_bytes());
        client.bytes(ids::WSS_TRUST_PEM, authority.certificate.as_bytes());
        endpoint = endpoint.replace("ws:", "wss:");
    }
    let endpoint = server.bind(&endpoint).unwrap();
    assert!(
        endpoint.ends_with("/feed") && !endpoint.contains('*'),
        "{endpoint}"
    );
    client.connect(&endpoint).unwrap();
    (server, client)
}

#[test]
fn messages_of_all_sizes_arrive() {
    let _watchdog = Watchdog::new("messages_of_all_sizes_arrive");
    let context = Context::new();
    for secure in [false, true] {
        let (pull, push) = pair(&context, secure, Pull, Push);
        let size = |number: usize| number * 7919 % 70_000;
        let sender = std::thread::spawn(move || {
            for number in 0..500 {
                let message = Message::from_iter([number.to_string(), "x".repeat(size(number))]);
                push.send(message, Wait::Forever).unwrap();
            }
            push
        });
        for number in 0..500 {
            let message = pull.recv(Wait::Forever).unwrap();
            assert_eq!(
                message.get(0).unwrap().as_slice(),
                number.to_string().as_bytes()
            );
            assert_eq!(message.get(1).unwrap().len(), size(number));
        }
        drop(sender.join().unwrap());
    }
    assert!(has("WS") && has("WSS"));
}

#[test]
fn round_trips_subscriptions_and_curve() {
    let _watchdog = Watchdog::new("round_trips_subscriptions_and_curve");
    let context = Context::new();
    let (rep, req) = pair(&context, false, Rep, Req);
    for _ in 0..200 {
        req.put("hello");
        assert_eq!(rep.take(), "hello");
        rep.put("world");
        assert_eq!(req.take(), "world");
    }
    let (publisher, subscriber) = pair(&context, false, Pub, Sub);
    subscriber.bytes(ids::SUBSCRIBE, b"a");
    until(|| {
        publisher.put("b");
        publisher.put("a");
        subscriber
            .recv(Wait::Dont)
            .is_ok_and(|message| message.head().as_slice() == b"a")
    });
    let (public, secret) = curve_keypair().unwrap();
    let (mine, own) = curve_keypair().unwrap();
    let (server, client) = (socket(&context, Dealer), socket(&context, Dealer));
    server.set_curve_server(true).unwrap();
    server.set_curve_secretkey(secret).unwrap();
    client.set_curve_publickey(mine).unwrap();
    client.set_curve_secretkey(own).unwrap();
    client.set_curve_serverkey(public).unwrap();
    client
        .connect(&server.bind("ws://127.0.0.1:*").unwrap())
        .unwrap();
    client.put("inside");
    assert_eq!(server.take(), "inside");
}

#[test]
fn groups_are_joined_and_left() {
    let _watchdog = Watchdog::new("groups_are_joined_and_left");
    let context = Context::new();
    for (secure, radio_binds) in [(false, true), (false, false), (true, true)] {
        let (radio, dish) = match radio_binds {
            true => pair(&context, secure, Radio, Dish),
            false => {
                let (dish, radio) = pair(&context, secure, Dish, Radio);
                (radio, dish)
            }
        };
        dish.join("a").unwrap();
        dish.join("b").unwrap();
        until(|| radio.count_subscribed("b").unwrap() == 1);
        for group in ["c", "a", "b"] {
            let message = Message::from(group).with_group(group);
            radio.send(message, Wait::Forever).unwrap();
        }
        assert_eq!([dish.take(), dish.take()], ["a", "b"]);
        dish.leave("a").unwrap();
        until(|| radio.count_subscribed("a").unwrap() == 0);
    }
}

/// A browser answers pings, and says nothing else while it has nothing to say.
#[test]
fn heartbeats_are_pings_of_websocket() {
    let _watchdog = Watchdog::new("heartbeats_are_pings_of_websocket");
    let context = Context::new();
    let pull = socket(&context, Pull);
    pull.set_heartbeat_ivl(Some(Duration::from_millis(100)))
        .unwrap();
    pull.set_heartbeat_timeout(Some(Duration::from_millis(2000)))
        .unwrap();
    let events = pull.event_stream(EventKind::Disconnected as u32).unwrap();
    let mut peer = Browser::connect(&pull.bind(WILDCARD).unwrap(), "ZWS2.0");
    peer.send(b"\0");
    assert_eq!(peer.recv(), b"\0");
    // For longer than the timeout.
    for _ in 0..25 {
        let mut ping = [0; 2];
        peer.0.read_exact(&mut ping).unwrap();
        assert_eq!(ping, [0x89, 0]);
        peer.0.write_all(&[0x8a, 0x80, 0, 0, 0, 0]).unwrap();
    }
    peer.send(b"\0still here");
    assert_eq!(pull.take(), "still here");
    // It answers no more.
    let reason = events.next(Wait::Forever).unwrap().unwrap().reason.unwrap();
    assert!(reason.contains("heartbeat"), "{reason}");
}

#[test]
fn closing_delivers_everything_and_says_goodbye() {
    let _watchdog = Watchdog::new("closing_delivers_everything_and_says_goodbye");
    let context = Context::new();
    let (pull, push) = pair(&context, false, Pull, Push);
    for number in 0..300 {
        push.put(&number.to_string());
    }
    push.close(Some(None));
    for number in 0..300 {
        assert_eq!(pull.take(), number.to_string());
    }
    until(|| pull.peers() == 0);
}

#[test]
fn a_wrong_path_or_mechanism_is_reported_by_both_sides() {
    let _watchdog = Watchdog::new("a_wrong_path_or_mechanism_is_reported_by_both_sides");
    let context = Context::new();
    let rep = socket(&context, Rep);
    let kind = EventKind::HandshakeFailedNoDetail as u32;
    let theirs = rep.event_stream(kind).unwrap();
    let endpoint = rep.bind(WILDCARD).unwrap();
    let req = socket(&context, Req);
    let ours = req.event_stream(kind).unwrap();
    req.connect(&endpoint.replace("/feed", "/food")).unwrap();
    let reason = ours.next(Wait::Forever).unwrap().unwrap().reason.unwrap();
    assert!(reason.contains("HTTP status 404"), "{reason}");
    let reason = theirs.next(Wait::Forever).unwrap().unwrap().reason.unwrap();
    assert!(reason.contains("expected \"/feed\""), "{reason}");
}

#[test]
fn a_peer_that_writes_bytes_is_understood() {
    let _watchdog = Watchdog::new("a_peer_that_writes_bytes_is_understood");
    let context = Context::new();
    let pull = socket(&context, Pull);
    let endpoint = pull.bind(WILDCARD).unwrap();
    let address = endpoint
        .strip_prefix("ws://")
        .unwrap()
        .strip_suffix("/feed")
        .unwrap();
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(b"GET /feed HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ZWS2.0/NULL,ZWS2.0\r\nSec-WebSocket-Version: 13\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(String::from_utf8_lossy(&head).contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    // READY as a command, masked with zeros, and a message.
    let ready = b"\x05READY\x0bSocket-Type\0\0\0\x04PUSH";
    let mut frames = vec![0x82, 0x80 | (ready.len() + 1) as u8, 0, 0, 0, 0, 2];
    frames.extend(ready);
    frames.extend([
        0x82,
        0x85,
        1,
        1,
        1,
        1,
        1,
        b'n' ^ 1,
        b'e' ^ 1,
        b'w' ^ 1,
        b's' ^ 1,
    ]);
    peer.write_all(&frames).unwrap();
    // The server's READY.
    let mut start = [0; 3];
    peer.read_exact(&mut start).unwrap();
    assert_eq!((start[0], start[2]), (0x82, 2));
    assert_eq!(pull.take(), "news");
}

/// A client that offers plain ZWS 2.0, as browsers do: it sends a routing id, and no handshake of a mechanism.
struct Browser(TcpStream);

impl Browser {
    fn connect(endpoint: &str, protocol: &str) -> Browser {
        let address = endpoint.strip_prefix("ws://").unwrap();
        let (address, path) = address.split_once('/').unwrap();
        let mut peer = TcpStream::connect(address).unwrap();
        let request = format!(
            "GET /{path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocol}\r\nSec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        peer.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            peer.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(
            head.contains(&format!("Sec-WebSocket-Protocol: {protocol}\r\n")),
            "{head}"
        );
        Browser(peer)
    }

    fn send(&mut self, payload: &[u8]) {
        let mut frame = vec![0x82, 0x80 | payload.len() as u8, 0, 0, 0, 0];
        frame.extend(payload);
        self.0.write_all(&frame).unwrap();
    }

    fn recv(&mut self) -> Vec<u8> {
        let mut start = [0; 2];
        self.0.read_exact(&mut start).unwrap();
        assert_eq!(start[0], 0x82);
        let mut payload = vec![0; start[1].into()];
        self.0.read_exact(&mut payload).unwrap();
        payload
    }
}

#[test]
fn a_client_without_a_mechanism_is_served() {
    let _watchdog = Watchdog::new("a_client_without_a_mechanism_is_served");
    let context = Context::new();
    let (router, publisher) = (socket(&context, Router), socket(&context, Pub));
    router.bytes(ids::ROUTING_ID, b"us");
    let mut asking = Browser::connect(&router.bind(WILDCARD).unwrap(), "ZWS2.0");
    asking.send(b"\0you");
    assert_eq!(asking.recv(), b"\0us");
    asking.send(b"\x01");
    asking.send(b"\0question");
    let request = router.recv(Wait::Forever).unwrap();
    assert_eq!(request, Message::from_iter(["you", "", "question"]));
    router.send(["you", "", "answer"], Wait::Forever).unwrap();
    assert_eq!(asking.recv(), b"\x01");
    assert_eq!(asking.recv(), b"\0answer");

    let mut listening = Browser::connect(&publisher.bind(WILDCARD).unwrap(), "ZWS2.0");
    assert_eq!(listening.recv(), b"\0");
    listening.send(b"\0");
    listening.send(b"\0\x01a");
    until(|| publisher.count_subscribed("a").unwrap() == 1);
    publisher.put("b");
    publisher.put("a news");
    assert_eq!(listening.recv(), b"\0a news");
}

#[test]
fn a_client_cannot_avoid_the_mechanism() {
    let _watchdog = Watchdog::new("a_client_cannot_avoid_the_mechanism");
    let context = Context::new();
    let pull = socket(&context, Pull);
    let kind =
        EventKind::HandshakeFailedProtocol as u32 | EventKind::HandshakeFailedNoDetail as u32;
    let events = pull.event_stream(kind).unwrap();
    pull.bytes(ids::ZAP_DOMAIN, b"global");
    let mut peer = Browser::connect(&pull.bind(WILDCARD).unwrap(), "ZWS2.0");
    peer.send(b"\0");
    let reason = events.next(Wait::Forever).unwrap().unwrap().reason.unwrap();
    assert!(reason.contains("ZMTP 1"), "{reason}");
}

#[test]
fn a_client_of_sp_needs_nothing_but_the_name_of_the_type() {
    let _watchdog = Watchdog::new("a_client_of_sp_needs_nothing_but_the_name_of_the_type");
    let context = Context::new();
    let rep = socket(&context, Rep);
    rep.set_wire_protocol(1).unwrap();
    let mut peer = Browser::connect(&rep.bind(WILDCARD).unwrap(), "rep.sp.nanomsg.org");
    peer.send(b"\x80\0\0\x07question");
    assert_eq!(rep.take(), "question");
    rep.put("answer");
    assert_eq!(peer.recv(), b"\x80\0\0\x07answer");
}

/// A message that a browser sends in several frames of WebSocket, as Chromium does from 128 KiB on.
#[test]
fn a_message_in_fragments_arrives_whole() {
    let _watchdog = Watchdog::new("a_message_in_fragments_arrives_whole");
    let context = Context::new();
    let router = socket(&context, Router);
    let mut peer = Browser::connect(&router.bind(WILDCARD).unwrap(), "ZWS2.0");
    peer.send(b"\0me");
    let body: Vec<u8> = (0..300_000).map(|n| (n % 251) as u8).collect();
    for part in 0..2_u8 {
        let whole = [&[1 - part], &body[..]].concat();
        let mut first = 2;
        for fragment in whole.chunks(60_001) {
            let mut frame = vec![first, 0x80 | 126];
            frame.extend((fragment.len() as u16).to_be_bytes());
            frame.extend([0; 4]);
            frame.extend(fragment);
            // A ping may come between two fragments.
            frame.extend([0x89, 0x80, 0, 0, 0, 0]);
            peer.0.write_all(&frame).unwrap();
            first = 0;
        }
        peer.0.write_all(&[0x80, 0x80, 0, 0, 0, 0]).unwrap();
    }
    let message = router.recv(Wait::Forever).unwrap();
    assert_eq!(message.len(), 3);
    assert_eq!(message.head().as_slice(), b"me");
    for part in 1..3 {
        assert!(message.get(part).unwrap().as_slice() == body);
    }
}

#[test]
fn a_peer_that_leaves_within_a_message_leaves_nothing_of_it() {
    let _watchdog = Watchdog::new("a_peer_that_leaves_within_a_message_leaves_nothing_of_it");
    let context = Context::new();
    let pull = socket(&context, Pull);
    let events = pull.event_stream(EventKind::Disconnected as u32).unwrap();
    let endpoint = pull.bind(WILDCARD).unwrap();
    // A frame that is not complete, and a fragment that is.
    for begun in [&b"\x82\x88\0\0\0\0\0hel"[..], b"\x02\x84\0\0\0\0\0hel"] {
        for is_reset in [false, true] {
            let mut peer = Browser::connect(&endpoint, "ZWS2.0");
            // A reset discards what was not sent yet.
            peer.0.set_nodelay(true).unwrap();
            peer.send(b"\0");
            assert_eq!(peer.recv(), b"\0");
            peer.0.write_all(begun).unwrap();
            if is_reset {
                socket2::SockRef::from(&peer.0)
                    .set_linger(Some(Duration::ZERO))
                    .unwrap();
            }
            drop(peer);
            let reason = events.next(Wait::Forever).unwrap().unwrap().reason.unwrap();
            assert!(reason.contains("in the middle of a message"), "{reason}");
        }
    }
    let mut peer = Browser::connect(&endpoint, "ZWS2.0");
    peer.send(b"\0");
    peer.send(b"\0whole");
    assert_eq!(pull.take(), "whole");
}

/// A peer may send a message in pieces without ever completing it.
#[test]
fn a_message_of_endless_pieces_is_limited() {
    let _watchdog = Watchdog::new("a_message_of_endless_pieces_is_limited");
    let context = Context::new();
    for (sp, protocol) in [(1, "pull.sp.nanomsg.org"), (0, "ZWS2.0")] {
        let pull = socket(&context, Pull);
        pull.set_wire_protocol(sp).unwrap();
        pull.set_maxmsgsize(Some(100_000)).unwrap();
        let mut peer = Browser::connect(&pull.bind(WILDCARD).unwrap(), protocol);
        if sp == 0 {
            peer.send(b"\0");
        }
        let mut first = 2;
        // Until the connection ends.
        while peer
            .0
            .write_all(&[&[first, 0x80 | 125, 0, 0, 0, 0], &[0; 125][..]].concat())
            .is_ok()
        {
            first = 0;
        }
        until(|| pull.dropped(DropReason::TooLarge) == 1);
    }
}

#[test]
fn fragments_that_are_always_empty_end_the_connection() {
    let _watchdog = Watchdog::new("fragments_that_are_always_empty_end_the_connection");
    let context = Context::new();
    let pull = socket(&context, Pull);
    let events = pull.event_stream(EventKind::Disconnected as u32).unwrap();
    let mut peer = Browser::connect(&pull.bind(WILDCARD).unwrap(), "ZWS2.0");
    peer.send(b"\0");
    peer.0.write_all(&[2, 0x80, 0, 0, 0, 0]).unwrap();
    let empty = [0, 0x80, 0, 0, 0, 0].repeat(100);
    while peer.0.write_all(&empty).is_ok() {}
    let reason = events.next(Wait::Forever).unwrap().unwrap().reason.unwrap();
    assert!(reason.contains("too many empty fragments"), "{reason}");
}

#[test]
fn mistakes_are_errors_of_bind_and_connect() {
    let context = Context::new();
    let rep = socket(&context, Rep);
    for endpoint in [
        "ws://127.0.0.1",
        "ws://127.0.0.1:*/a b",
        "wss://127.0.0.1:*",
    ] {
        assert_eq!(
            rep.bind(endpoint).unwrap_err().kind(),
            ErrorKind::Invalid,
            "{endpoint}"
        );
    }
    let stream = socket(&context, Stream);
    let error = stream.connect("ws://127.0.0.1:80").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IncompatibleProtocol);
    assert!(
        error.to_string().contains("use tcp, ipc, tls+tcp"),
        "{error}"
    );
}
