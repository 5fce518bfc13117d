//! A lost connection leaves no state that could be mistaken for the next one's.

mod common;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpListener;

use common::raw::{self, COMMAND};
use common::{
    IpcName, Monitor, SocketExt, Watchdog, free_tcp_endpoint, rounds, socket, tcp_pair, until,
};
use socket2::{Domain, SockAddr, Type};
use zeroxide::{Context, DropReason, EventKind, Socket, SocketType, ids};

use SocketType::{Dealer, Pub, Pull, Push, Sub, Xpub};

/// A subscriber that is bound where another one was before.
fn subscriber(context: &Context, topic: &str, endpoint: &str) -> Socket {
    let subscriber = socket(context, Sub);
    subscriber.bytes(ids::SUBSCRIBE, topic.as_bytes());
    until(|| subscriber.bind(endpoint).is_ok());
    subscriber
}

#[test]
fn topics_of_a_subscriber_that_was_replaced_are_not_sent_any_more() {
    let _watchdog = Watchdog::new("topics_of_a_subscriber_that_was_replaced_are_not_sent_any_more");
    for endpoint in [free_tcp_endpoint(), IpcName::new().endpoint()] {
        let context = Context::new();
        let publisher = socket(&context, Pub);
        publisher.int(ids::RECONNECT_IVL, 1);
        let monitor = Monitor::of(&context, &publisher);
        publisher.connect(&endpoint).unwrap();
        let unwanted = || publisher.dropped(DropReason::NoSubscriber);
        let is_wanted = |topic| {
            let before = unwanted();
            publisher.put(topic);
            unwanted() == before
        };
        let first = subscriber(&context, "old", &endpoint);
        until(|| is_wanted("old"));
        drop(first);
        monitor.wait_for(EventKind::Disconnected);
        // The peer may come back and want it still.
        assert!(is_wanted("old, while it is away"));
        let second = subscriber(&context, "new", &endpoint);
        until(|| is_wanted("new"));
        assert!(!is_wanted("old, after it came back"));
        assert_eq!(second.take(), "new");
    }
}

#[test]
fn a_publisher_that_comes_back_gets_only_subscriptions_that_still_exist() {
    let _watchdog =
        Watchdog::new("a_publisher_that_comes_back_gets_only_subscriptions_that_still_exist");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let accept = || {
        let (mut publisher, _) = listener.accept().unwrap();
        publisher.write_all(&raw::greeting()).unwrap();
        let ready = raw::frame(COMMAND, &raw::ready("PUB"));
        publisher.write_all(&ready).unwrap();
        publisher.read_exact(&mut [0; 64]).unwrap();
        raw::read_frame(&mut publisher).unwrap();
        publisher
    };
    let context = Context::new();
    let subscriber = socket(&context, Sub);
    subscriber.int(ids::RECONNECT_IVL, 1);
    let monitor = Monitor::of(&context, &subscriber);
    let address = listener.local_addr().unwrap();
    subscriber.connect(&format!("tcp://{address}")).unwrap();
    let first = accept();
    monitor.wait_for(EventKind::HandshakeSucceeded);
    // More than kernels store for a publisher that does not read.
    let topics: Vec<_> = (0..3000).map(|n| format!("{n:010000}")).collect();
    for topic in &topics {
        subscriber.bytes(ids::SUBSCRIBE, topic.as_bytes());
    }
    drop(first);
    monitor.wait_for(EventKind::Disconnected);
    for topic in &topics {
        subscriber.bytes(ids::UNSUBSCRIBE, topic.as_bytes());
    }
    subscriber.bytes(ids::SUBSCRIBE, b"kept");
    let (flags, body) = raw::read_frame(&mut accept()).unwrap();
    assert_eq!((flags, &body[..]), (COMMAND, &b"\x09SUBSCRIBEkept"[..]));
}

#[test]
fn an_xpub_that_connected_receives_the_unsubscriptions_of_its_lost_peer() {
    let _watchdog =
        Watchdog::new("an_xpub_that_connected_receives_the_unsubscriptions_of_its_lost_peer");
    let context = Context::new();
    let publisher = socket(&context, Xpub);
    publisher.int(ids::RECONNECT_IVL, 1);
    let endpoint = free_tcp_endpoint();
    publisher.connect(&endpoint).unwrap();
    for topic in ["a", "b", "b", "c"] {
        let _subscriber = subscriber(&context, topic, &endpoint);
        assert_eq!(publisher.take(), format!("\x01{topic}"));
        drop(_subscriber);
        assert_eq!(publisher.take(), format!("\0{topic}"));
    }
}

/// Each peer has common topics and one of its own, and leaves in the middle of a message.
#[test]
fn however_quickly_peers_follow_each_other_only_the_last_ones_topics_remain() {
    let _watchdog =
        Watchdog::new("however_quickly_peers_follow_each_other_only_the_last_ones_topics_remain");
    let context = Context::new();
    let publisher = socket(&context, Xpub);
    publisher.int(ids::RECONNECT_IVL, 1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    publisher.connect(&endpoint).unwrap();
    let count = rounds(200, 2000);
    let mut last = None;
    for round in 0..=count {
        let (mut peer, _) = listener.accept().unwrap();
        let mut hello = raw::greeting().to_vec();
        hello.extend(raw::frame(COMMAND, &raw::ready("SUB")));
        for topic in [
            format!("{round}"),
            format!("{}", round % 7),
            "all".to_owned(),
        ] {
            let subscribe = format!("\x09SUBSCRIBE{topic}");
            hello.extend(raw::frame(COMMAND, subscribe.as_bytes()));
        }
        hello.extend(b"\x01\x04half");
        peer.write_all(&hello).unwrap();
        if round == count {
            last = Some(peer);
        } else if round % 2 == 0 {
            // With everything read a close is an end; otherwise it is a reset.
            let _ = peer.read(&mut [0; 1024]);
        }
    }
    let mut wanted = HashSet::new();
    let end = format!("\x01{count}");
    loop {
        let told = publisher.take();
        let (what, topic) = told.split_at(1);
        let known = if what == "\x01" {
            wanted.insert(topic.to_owned())
        } else {
            wanted.remove(topic)
        };
        assert!(known, "{told:?} is news");
        if told == end {
            break;
        }
    }
    while wanted.len() < 3 {
        let told = publisher.take();
        assert!(told.starts_with('\x01') && wanted.insert(told[1..].to_owned()));
    }
    let expected = [
        format!("{count}"),
        format!("{}", count % 7),
        "all".to_owned(),
    ];
    assert_eq!(wanted, HashSet::from(expected));
    drop(last);
}

#[test]
fn a_sender_that_sees_that_a_peer_is_gone_sends_to_another() {
    let _watchdog = Watchdog::new("a_sender_that_sees_that_a_peer_is_gone_sends_to_another");
    let context = Context::new();
    let (push, stays, endpoint) = tcp_pair(&context, Push, Pull);
    let monitor = Monitor::of(&context, &push);
    until(|| push.peers() == 1);
    for round in 0..rounds(100, 1000) {
        let leaves = socket(&context, Pull);
        leaves.connect(&endpoint).unwrap();
        until(|| push.peers() == 2);
        drop(leaves);
        // Without the time that waking up takes.
        while monitor
            .try_next()
            .is_none_or(|seen| seen.kind != EventKind::Disconnected as u16)
        {}
        for part in ["a", "b"] {
            let text = format!("{round}{part}");
            push.put(&text);
            assert_eq!(stays.take(), text);
        }
    }
    assert_eq!(push.dropped(DropReason::PeerGone), 0);
}

/// A DEALER that stops for this reason, with its monitor.
fn stopping(context: &Context, stop: i64) -> (Socket, Monitor) {
    let dealer = socket(context, Dealer);
    dealer.int(ids::RECONNECT_IVL, 1);
    dealer.int(ids::RECONNECT_STOP, stop);
    let monitor = Monitor::of(context, &dealer);
    (dealer, monitor)
}

/// A DEALER has one connection to an endpoint: another connect is a new attempt once the old one has ended permanently.
fn until_over(dealer: &Socket, monitor: &Monitor, endpoint: &str, sign: EventKind) {
    monitor.wait_for(sign);
    until(|| {
        dealer.connect(endpoint).unwrap();
        std::iter::from_fn(|| monitor.try_next())
            .inspect(|seen| assert_ne!(seen.kind, EventKind::ConnectRetried as u16))
            .any(|seen| seen.kind == sign as u16)
    });
}

#[test]
fn a_refused_connection_can_be_the_last() {
    let _watchdog = Watchdog::new("a_refused_connection_can_be_the_last");
    let context = Context::new();
    let endpoint = free_tcp_endpoint();
    let (dealer, monitor) = stopping(&context, 1);
    dealer.connect(&endpoint).unwrap();
    until_over(&dealer, &monitor, &endpoint, EventKind::Closed);
}

#[test]
fn a_full_backlog_is_no_refusal() {
    let _watchdog = Watchdog::new("a_full_backlog_is_no_refusal");
    let context = Context::new();
    let name = IpcName::new();
    let endpoint = name.endpoint();
    let address = SockAddr::unix(endpoint.strip_prefix("ipc://").unwrap()).unwrap();
    let stream = || {
        let stream = socket2::Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    let listener = stream();
    listener.bind(&address).unwrap();
    listener.listen(0).unwrap();
    let mut crowd = Vec::new();
    loop {
        let peer = stream();
        if peer.connect(&address).is_err() {
            break;
        }
        crowd.push(peer);
    }
    let (dealer, monitor) = stopping(&context, 1);
    dealer.connect(&endpoint).unwrap();
    monitor.wait_for(EventKind::Closed);
    for _ in crowd {
        listener.accept().unwrap();
    }
    monitor.wait_for(EventKind::Connected);
}

#[test]
fn a_failed_handshake_can_be_the_last() {
    let _watchdog = Watchdog::new("a_failed_handshake_can_be_the_last");
    let context = Context::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let hangs_up = std::thread::spawn(move || {
        for _ in 0..2 {
            let _ = listener.accept().unwrap();
        }
    });
    let (dealer, monitor) = stopping(&context, 2);
    dealer.connect(&endpoint).unwrap();
    until_over(&dealer, &monitor, &endpoint, EventKind::Disconnected);
    hangs_up.join().unwrap();
}

#[test]
fn a_disconnected_peer_can_be_given_up() {
    let _watchdog = Watchdog::new("a_disconnected_peer_can_be_given_up");
    let context = Context::new();
    let (dealer, _monitor) = stopping(&context, 4);
    dealer.int(ids::LINGER, -1);
    let endpoint = free_tcp_endpoint();
    dealer.connect(&endpoint).unwrap();
    dealer.put("lost");
    dealer.disconnect(&endpoint).unwrap();
    until(|| dealer.dropped(DropReason::Lingered) == 1);
    // Connected, it is delivered to as without the option.
    let pull = socket(&context, Dealer);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    dealer.connect(&endpoint).unwrap();
    dealer.wait_connected(1, zeroxide::Wait::Forever).unwrap();
    dealer.put("delivered");
    dealer.disconnect(&endpoint).unwrap();
    assert_eq!(pull.take(), "delivered");
}
