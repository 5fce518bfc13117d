//! The cost of a peer is bounded, and every lost message is counted.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use common::{SocketExt, Watchdog, address, alone, free_tcp_endpoint, message, raw, socket, until};
use zeroxide::{Context, DropReason, EventKind, Socket, SocketType, Wait, ids};

use SocketType::{Dealer, Pull, Push};

fn bound(context: &Context, socket_type: SocketType) -> (Socket, String) {
    let socket = socket(context, socket_type);
    let endpoint = socket.bind("tcp://127.0.0.1:*").unwrap();
    (socket, endpoint)
}

/// Greeting and READY of a peer of this type.
fn hello(socket_type: &str) -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
    bytes.extend_from_slice(b"NULL");
    bytes.resize(64, 0);
    let mut ready = b"\x05READY\x0bSocket-Type".to_vec();
    ready.extend_from_slice(&(socket_type.len() as u32).to_be_bytes());
    ready.extend_from_slice(socket_type.as_bytes());
    bytes.extend_from_slice(&[4, ready.len() as u8]);
    bytes.extend_from_slice(&ready);
    bytes
}

#[test]
fn peers_that_never_finish_their_handshake_make_room_for_others() {
    let _watchdog = Watchdog::new("peers_that_never_finish_their_handshake_make_room_for_others");
    let _alone = alone();
    let context = Context::new();
    let pull = socket(&context, Pull);
    pull.int(ids::BACKLOG, 4096);
    // Nothing else ends them.
    pull.int(ids::HANDSHAKE_IVL, 0);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let mut silent: Vec<TcpStream> = (0..2100)
        .map(|_| TcpStream::connect(address(&endpoint)).unwrap())
        .collect();
    let push = socket(&context, Push);
    push.connect(&endpoint).unwrap();
    push.put("served nevertheless");
    assert_eq!(pull.take(), "served nevertheless");
    // The first of them were closed, the last were not.
    let mut rest = Vec::new();
    let _ = silent[0].read_to_end(&mut rest);
    let last = silent.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    assert!(last.read_to_end(&mut rest).is_err());
    drop((silent, push, pull));
    context.term().unwrap();
}

#[test]
fn peers_that_come_and_go_wait_for_the_application_in_the_end() {
    let _watchdog = Watchdog::new("peers_that_come_and_go_wait_for_the_application_in_the_end");
    let _alone = alone();
    let context = Context::new();
    let (pull, endpoint) = bound(&context, Pull);
    const BOUND: usize = 1000;
    const PEERS: usize = BOUND + 300;
    let senders = Context::new();
    let come_and_go = |n: usize| {
        let push = senders.socket(Push).unwrap();
        push.connect(&endpoint).unwrap();
        push.put(&n.to_string());
        push
    };
    let there = || pull.stats().unwrap().peers.len();
    // One after the other, so that none is let in beside another.
    for n in 0..BOUND {
        come_and_go(n).flush(None).unwrap();
    }
    until(|| there() == BOUND && pull.peers() == 0);
    // The next one is not let in, however long it waits.
    let next = come_and_go(BOUND);
    assert!(next.flush(Some(Duration::from_millis(300))).is_err());
    assert_eq!(there(), BOUND);
    for n in BOUND + 1..PEERS {
        come_and_go(n);
    }
    drop(next);
    let mut seen = [false; PEERS];
    for _ in 0..PEERS {
        seen[pull.take().parse::<usize>().unwrap()] = true;
    }
    assert!(seen.iter().all(|seen| *seen));
    until(|| there() == 0);
    senders.term().unwrap();
    drop(pull);
    context.term().unwrap();
}

#[test]
fn complete_messages_do_not_wait_for_incomplete_ones() {
    let _watchdog = Watchdog::new("complete_messages_do_not_wait_for_incomplete_ones");
    let context = Context::new();
    let (pull, endpoint) = bound(&context, Pull);
    let mut peer = TcpStream::connect(address(&endpoint)).unwrap();
    let mut bytes = hello("PUSH");
    bytes.extend_from_slice(b"\x00\x01a\x00\x01b\x01\x01c");
    peer.write_all(&bytes).unwrap();
    assert_eq!(pull.take(), "a");
    assert_eq!(pull.take(), "b");
    drop(peer);
    until(|| pull.dropped(DropReason::Torn) == 1);
    drop(pull);
    context.term().unwrap();
}

#[test]
fn messages_that_will_never_be_received_are_counted() {
    let _watchdog = Watchdog::new("messages_that_will_never_be_received_are_counted");
    let context = Context::new();
    let (push, endpoint) = bound(&context, Push);
    let pull = socket(&context, Pull);
    pull.connect(&endpoint).unwrap();
    for _ in 0..3 {
        push.send(message([b"unread"]), Wait::Forever).unwrap();
    }
    until(|| pull.stats().unwrap().queued_in == 3);
    pull.disconnect(&endpoint).unwrap();
    assert_eq!(pull.dropped(DropReason::Refused), 3);

    let absent = free_tcp_endpoint();
    let push = socket(&context, Push);
    push.connect(&absent).unwrap();
    for _ in 0..5 {
        push.put("never read");
    }
    push.disconnect(&absent).unwrap();
    until(|| push.dropped(DropReason::Lingered) == 5);

    let push = socket(&context, Push);
    push.int(ids::CONFLATE, 1);
    push.connect(&absent).unwrap();
    for _ in 0..5 {
        push.put("never read");
    }
    assert_eq!(push.dropped(DropReason::Conflated), 4);
    assert_eq!(push.stats().unwrap().queued_out, 1);
    drop((push, pull));
    context.shutdown();
}

#[test]
fn an_endpoint_that_is_not_retried_can_be_connected_again() {
    let _watchdog = Watchdog::new("an_endpoint_that_is_not_retried_can_be_connected_again");
    let context = Context::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    // A type that does not connect twice to the same endpoint.
    let dealer = socket(&context, Dealer);
    dealer.int(ids::RECONNECT_IVL, -1);
    for _ in 0..3 {
        dealer.connect(&endpoint).unwrap();
        dealer.connect(&endpoint).unwrap();
        drop(listener.accept().unwrap());
        until(|| dealer.stats().unwrap().peers.is_empty());
    }
    until(|| dealer.disconnect(&endpoint).is_err());
    drop(dealer);
    context.term().unwrap();
}

#[test]
fn messages_that_wait_to_be_received_can_be_limited_in_bytes() {
    let _watchdog = Watchdog::new("messages_that_wait_to_be_received_can_be_limited_in_bytes");
    const SIZE: usize = 100_000;
    const COUNT: usize = 200;
    let context = Context::new();
    let pull = socket(&context, Pull);
    // Including the overhead of each message.
    pull.int(ids::RCVHWM_BYTES, 10 * (SIZE as i64 + 72));
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let push = socket(&context, Push);
    push.connect(&endpoint).unwrap();
    let sender = thread::spawn(move || {
        for _ in 0..COUNT {
            push.send(vec![0u8; SIZE], Wait::Forever).unwrap();
        }
        push
    });
    let queued = || pull.stats().unwrap().queued_in;
    until(|| queued() == 10);
    for _ in 0..COUNT {
        assert!(queued() <= 10, "{} wait", queued());
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), SIZE);
    }
    drop(sender.join().unwrap());
}

#[test]
fn a_peer_that_falls_silent_within_a_message_is_disconnected() {
    let _watchdog = Watchdog::new("a_peer_that_falls_silent_within_a_message_is_disconnected");
    let context = Context::new();
    let pull = socket(&context, Pull);
    pull.int(ids::STALL_IVL, 20);
    pull.int(ids::RCVHWM, 1);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    // Between messages, every peer may be silent, and so may a peer that is not read from.
    let mut waits = raw::join(&endpoint, "PUSH");
    waits.write_all(b"\0\x01a\0\x01b\0\x01c\0\x05half").unwrap();
    let mut idle = raw::join(&endpoint, "PUSH");
    until(|| pull.peers() == 2 && pull.stats().unwrap().queued_in > 0);
    for half in [
        &b"\x02"[..],
        b"\x02\0\0\0\0\x40\0\0\0announced",
        b"\x01\x01x",
    ] {
        let mut silent = raw::join(&endpoint, "PUSH");
        silent.write_all(half).unwrap();
        let mut rest = Vec::new();
        silent.read_to_end(&mut rest).unwrap();
    }
    until(|| pull.peers() == 2);
    idle.write_all(b"\0\x01i").unwrap();
    waits.write_all(b"!").unwrap();
    let mut received: Vec<_> = (0..5).map(|_| pull.take()).collect();
    received.sort();
    assert_eq!(received, ["a", "b", "c", "half!", "i"]);
}

#[test]
fn empty_parts_count_towards_a_mark_in_bytes() {
    let _watchdog = Watchdog::new("empty_parts_count_towards_a_mark_in_bytes");
    const PARTS: usize = 1000;
    let context = Context::new();
    let pull = socket(&context, Pull);
    pull.int(ids::RCVHWM_BYTES, 1 << 20);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let mut peer = raw::join(&endpoint, "PUSH");
    let sender = thread::spawn(move || {
        let mut message = b"\x01\0".repeat(PARTS - 1);
        message.extend(b"\0\0");
        for _ in 0..200 {
            peer.write_all(&message).unwrap();
        }
        peer
    });
    let queued = || pull.stats().unwrap().queued_in;
    until(|| queued() >= 10);
    for _ in 0..200 {
        assert!(queued() <= 15, "{} wait", queued());
        assert_eq!(pull.recv(Wait::Forever).unwrap().len(), PARTS);
    }
    drop(sender.join().unwrap());
}

#[test]
fn a_message_of_empty_parts_is_limited_by_maxmsgsize() {
    let _watchdog = Watchdog::new("a_message_of_empty_parts_is_limited_by_maxmsgsize");
    let context = Context::new();
    let pull = socket(&context, Pull);
    pull.int(ids::MAXMSGSIZE, 1000);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    // The limit does not affect what programs send: messages of the allowed size arrive, in any number of parts.
    let mut peer = raw::join(&endpoint, "PUSH");
    let mut message = b"\x01\x01x".repeat(999);
    message.extend(b"\0\x01x");
    peer.write_all(&message).unwrap();
    assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 1000);
    peer.write_all(&b"\x01\0".repeat(2000)).unwrap();
    let mut rest = Vec::new();
    let _ = peer.read_to_end(&mut rest);
    until(|| pull.peers() == 0);
    drop(pull);
    context.term().unwrap();
}

#[test]
fn events_that_are_not_read_are_counted() {
    let _watchdog = Watchdog::new("events_that_are_not_read_are_counted");
    let _alone = alone();
    let context = Context::new();
    let pull = socket(&context, Pull);
    pull.int(ids::BACKLOG, 4096);
    let all = u32::from(u16::MAX);
    let stream = pull.event_stream(all).unwrap();
    pull.monitor("inproc://events", all).unwrap();
    let reader = socket(&context, SocketType::Pair);
    reader.connect("inproc://events").unwrap();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    const PEERS: u64 = 4000;
    for _ in 0..PEERS {
        drop(TcpStream::connect(address(&endpoint)).unwrap());
    }
    // LISTENING, and for each peer ACCEPTED, a failed handshake and DISCONNECTED.
    let events = 1 + 3 * PEERS;
    const STREAM: u64 = 10_000;
    const PAIR: u64 = 2 * 1000;
    let missed = || pull.stats().unwrap().missed_events;
    until(|| missed() == (events - STREAM) + (events - PAIR));
    for _ in 0..STREAM {
        assert_eq!(stream.next(Wait::Dont).unwrap().unwrap().missed, 0);
    }
    assert!(stream.next(Wait::Dont).is_err());
    // The next event that fits reports the missed ones.
    drop(TcpStream::connect(address(&endpoint)).unwrap());
    let next = stream.next(Wait::Forever).unwrap().unwrap();
    assert_eq!(next.missed, events - STREAM);
    assert_eq!(reader.stats().unwrap().queued_in, PAIR);
}

#[test]
fn an_end_in_the_middle_of_a_message_is_reported_as_such() {
    let _watchdog = Watchdog::new("an_end_in_the_middle_of_a_message_is_reported_as_such");
    let context = Context::new();
    let (pull, endpoint) = bound(&context, SocketType::Pull);
    let ends = pull.event_stream(EventKind::Disconnected as u32).unwrap();
    for (bytes, words) in [
        (&b"\0\x05hel"[..], "in the middle of a message"),
        (b"\x01\x05hello", "in the middle of a message"),
        (b"\0\x05hello", "the peer closed the connection"),
    ] {
        let mut peer = raw::join(&endpoint, "PUSH");
        peer.write_all(bytes).unwrap();
        drop(peer);
        let end = ends.next(Wait::Forever).unwrap().unwrap();
        let reason = end.reason.unwrap();
        assert!(reason.ends_with(words), "{reason}");
    }
    assert_eq!(pull.take(), "hello");
}
