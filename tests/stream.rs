//! STREAM against plain TCP connections: data in both directions, and notices of connections.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use common::raw::{self, Random};
use common::{SocketExt, Watchdog, free_tcp_endpoint, rounds, socket, until};
use zeroxide::{Context, ErrorKind, Frame, Message, Socket, SocketType, Value, Wait, ids};

use SocketType::Stream;

fn server(context: &Context) -> (Socket, String) {
    let stream = socket(context, Stream);
    let endpoint = stream.bind("tcp://127.0.0.1:*").unwrap();
    (stream, endpoint)
}

/// The id of a connection, and its data.
fn hear(stream: &Socket) -> (Vec<u8>, Vec<u8>) {
    let message = stream.recv(Wait::Forever).unwrap();
    assert_eq!(message.len(), 2);
    let mut frames = message.into_iter();
    (
        frames.next().unwrap().to_vec(),
        frames.next().unwrap().to_vec(),
    )
}

/// Receives `count` bytes from one connection, in any number of chunks.
fn hear_all(stream: &Socket, from: &[u8], count: usize) -> Vec<u8> {
    let mut heard = Vec::new();
    while heard.len() < count {
        let (id, bytes) = hear(stream);
        assert_eq!(id, from);
        assert!(
            !bytes.is_empty(),
            "the connection ended after {} of {count} bytes",
            heard.len()
        );
        heard.extend(bytes);
    }
    assert_eq!(heard.len(), count);
    heard
}

fn to(id: &[u8], bytes: &[u8]) -> Message {
    Message::from_frames([Frame::copy_from(id), Frame::copy_from(bytes)])
}

#[test]
fn a_connection_begins_sends_data_and_ends() {
    let _watchdog = Watchdog::new("a_connection_begins_sends_data_and_ends");
    let context = Context::new();
    let (stream, endpoint) = server(&context);
    let mut peer = raw::dial(&endpoint);
    let (id, first) = hear(&stream);
    assert_eq!((id.len(), id[0], first.len()), (5, 0, 0));
    peer.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(hear_all(&stream, &id, 18), b"GET / HTTP/1.0\r\n\r\n");
    stream
        .send(to(&id, b"HTTP/1.0 200 OK\r\n\r\nhello"), Wait::Forever)
        .unwrap();
    // An empty message closes.
    stream.send(to(&id, b""), Wait::Forever).unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.0 200 OK\r\n\r\nhello");
    let refused = stream.send(to(&id, b"x"), Wait::Forever).unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::HostUnreachable);
    // A side that closed the connection itself needs no notification.
    drop(peer);
    until(|| stream.stats().unwrap().peers.is_empty());
    assert_eq!(stream.nothing(), ErrorKind::Again);
}

#[test]
fn the_end_of_a_connection_is_reported_once_and_after_its_last_bytes() {
    let _watchdog =
        Watchdog::new("the_end_of_a_connection_is_reported_once_and_after_its_last_bytes");
    let context = Context::new();
    let (stream, endpoint) = server(&context);
    for n in 0..rounds(100, 2_000) {
        let mut peer = raw::dial(&endpoint);
        let (id, first) = hear(&stream);
        assert!(first.is_empty());
        peer.write_all(b"last words").unwrap();
        if n % 2 == 0 {
            drop(peer);
        } else {
            let _ = peer.shutdown(Shutdown::Write);
        }
        assert_eq!(hear_all(&stream, &id, 10), b"last words");
        assert_eq!(hear(&stream), (id.clone(), vec![]));
        until(|| stream.stats().unwrap().peers.is_empty());
        let refused = stream.send(to(&id, b"x"), Wait::Forever).unwrap_err();
        assert_eq!(refused.error.kind(), ErrorKind::HostUnreachable);
        assert_eq!(stream.nothing(), ErrorKind::Again);
    }
}

#[test]
fn without_notices_only_bytes_are_reported() {
    let _watchdog = Watchdog::new("without_notices_only_bytes_are_reported");
    let context = Context::new();
    let (stream, endpoint) = server(&context);
    stream.int(ids::STREAM_NOTIFY, 0);
    for _ in 0..5 {
        drop(raw::dial(&endpoint));
    }
    let mut peer = raw::dial(&endpoint);
    peer.write_all(b"x").unwrap();
    let (id, bytes) = hear(&stream);
    assert_eq!(bytes, b"x");
    stream.send(to(&id, b"y"), Wait::Forever).unwrap();
    peer.read_exact(&mut [0]).unwrap();
    drop(peer);
    until(|| stream.stats().unwrap().peers.is_empty());
    assert_eq!(stream.nothing(), ErrorKind::Again);
}

#[test]
fn many_connections_do_not_mix() {
    let _watchdog = Watchdog::new("many_connections_do_not_mix");
    let context = Context::new();
    let (stream, endpoint) = server(&context);
    let echo = thread::spawn(move || {
        let mut ended = 0;
        let mut alive = std::collections::HashSet::new();
        while ended < 50 {
            let (id, bytes) = hear(&stream);
            if !bytes.is_empty() {
                stream.send(to(&id, &bytes), Wait::Forever).unwrap();
            } else if !alive.insert(id.clone()) {
                alive.remove(&id);
                ended += 1;
            }
        }
        assert!(alive.is_empty());
    });
    common::in_threads(50, move |n| {
        let mut random = Random::new(n as u64);
        let mut peer = raw::dial(&endpoint);
        for _ in 0..rounds(20, 1_000) {
            let length = random.below(3000) + 1;
            let question = random.bytes(length);
            peer.write_all(&question).unwrap();
            let mut answer = vec![0; length];
            peer.read_exact(&mut answer).unwrap();
            assert_eq!(answer, question);
        }
    });
    echo.join().unwrap();
}

/// A peer that writes faster than the application reads is held back by its own kernel, and loses nothing.
#[test]
fn a_flood_waits_outside() {
    let _watchdog = Watchdog::new("a_flood_waits_outside");
    let context = Context::new();
    let (stream, endpoint) = server(&context);
    stream.int(ids::RCVHWM, 10);
    let mut peer = raw::dial(&endpoint);
    let (id, _) = hear(&stream);
    let count = rounds(64 << 20, 1 << 30);
    let flood = thread::spawn(move || {
        let block: Vec<u8> = (0..1 << 16).map(|n| (n % 251) as u8).collect();
        for _ in 0..count >> 16 {
            peer.write_all(&block).unwrap();
        }
    });
    let mut heard = 0;
    while heard < count {
        let (from, bytes) = hear(&stream);
        assert_eq!(from, id);
        for byte in &bytes {
            assert!(*byte == ((heard % (1 << 16)) % 251) as u8, "at {heard}");
            heard += 1;
        }
        assert!(stream.stats().unwrap().queued_in <= 10);
    }
    flood.join().unwrap();
    assert_eq!(hear(&stream), (id, vec![]));
}

#[test]
fn a_peer_that_does_not_read_fills_its_own_queue_only() {
    let _watchdog = Watchdog::new("a_peer_that_does_not_read_fills_its_own_queue_only");
    let context = Context::new();
    let stream = socket(&context, Stream);
    stream.int(ids::SNDHWM, 10);
    let endpoint = stream.bind("tcp://127.0.0.1:*").unwrap();
    let mut lazy = raw::dial(&endpoint);
    let (lazy_id, _) = hear(&stream);
    let mut busy = raw::dial(&endpoint);
    let (busy_id, _) = hear(&stream);
    let block = [7; 10_000];
    let mut sent = 0;
    let full = loop {
        match stream.send(to(&lazy_id, &block), Wait::Dont) {
            Ok(()) => sent += block.len(),
            Err(failed) => break failed.error.kind(),
        }
    };
    assert_eq!(full, ErrorKind::Again);
    stream.send(to(&busy_id, b"fine"), Wait::Dont).unwrap();
    let mut fine = [0; 4];
    busy.read_exact(&mut fine).unwrap();
    assert_eq!(&fine, b"fine");
    // It reads after all: everything is there.
    let sender = {
        let stream = stream.clone();
        thread::spawn(move || {
            stream
                .send(to(&lazy_id, b"the last"), Wait::Forever)
                .unwrap()
        })
    };
    let mut all = vec![0; sent + 8];
    lazy.read_exact(&mut all).unwrap();
    assert_eq!(&all[sent..], b"the last");
    sender.join().unwrap();
}

#[test]
fn a_stream_connects_to_plain_servers() {
    let _watchdog = Watchdog::new("a_stream_connects_to_plain_servers");
    let context = Context::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let stream = socket(&context, Stream);
    stream.int(ids::RECONNECT_IVL, 1);
    stream.bytes(ids::CONNECT_ROUTING_ID, b"server");
    stream.connect(&endpoint).unwrap();
    assert_eq!(
        stream.get_option(ids::ROUTING_ID).unwrap(),
        Value::Bytes(b"server".to_vec())
    );
    let accept = || -> TcpStream { listener.accept().unwrap().0 };
    for round in 0..3 {
        let mut served = accept();
        assert_eq!(hear(&stream), (b"server".to_vec(), vec![]), "round {round}");
        stream
            .send(to(b"server", b"question"), Wait::Forever)
            .unwrap();
        let mut question = [0; 8];
        served.read_exact(&mut question).unwrap();
        assert_eq!(&question, b"question");
        served.write_all(b"answer").unwrap();
        assert_eq!(hear_all(&stream, b"server", 6), b"answer");
        // It closes, and the stream reconnects.
        drop(served);
        assert_eq!(hear(&stream), (b"server".to_vec(), vec![]), "round {round}");
    }
}

#[test]
fn messages_that_a_stream_sends_before_the_server_runs_wait_for_it() {
    let _watchdog =
        Watchdog::new("messages_that_a_stream_sends_before_the_server_runs_wait_for_it");
    let context = Context::new();
    let endpoint = free_tcp_endpoint();
    let stream = socket(&context, Stream);
    stream.int(ids::RECONNECT_IVL, 1);
    stream.connect(&endpoint).unwrap();
    let Value::Bytes(id) = stream.get_option(ids::ROUTING_ID).unwrap() else {
        panic!("no name")
    };
    stream.send(to(&id, b"early"), Wait::Dont).unwrap();
    let listener = TcpListener::bind(common::address(&endpoint)).unwrap();
    let (mut served, _) = listener.accept().unwrap();
    let mut early = [0; 5];
    served.read_exact(&mut early).unwrap();
    assert_eq!(&early, b"early");
}

#[test]
fn malformed_stream_messages_are_refused() {
    let context = Context::new();
    let (stream, _) = server(&context);
    let kind = |message: Message| stream.send(message, Wait::Dont).unwrap_err().error.kind();
    assert_eq!(kind(to(b"nobody", b"x")), ErrorKind::HostUnreachable);
    assert_eq!(
        kind(common::message([b"nobody", b"x", b"y"])),
        ErrorKind::Invalid
    );
}
