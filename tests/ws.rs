//! Sockets over WebSocket, against each other and against peers that write bytes.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;

use common::certificates::Authority;
use common::{SocketExt, Watchdog, socket, until};
use zeroxide::{
    Context, ErrorKind, EventKind, Message, Socket, SocketType, Wait, curve_keypair, has, ids,
};

use SocketType::{Dealer, Pub, Pull, Push, Rep, Req, Stream, Sub};

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
    assert!(error.to_string().contains("tcp or tls+tcp"), "{error}");
}
