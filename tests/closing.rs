//! Closing within a time: the report says what was not delivered, and to whom.

mod common;

use std::io::Read;
use std::thread;
use std::time::Duration;

use common::{
    Monitor, SocketExt, Watchdog, address, free_tcp_endpoint, inproc_name, raw, socket, tcp_pair,
    until,
};
use zeroxide::{
    Context, ErrorKind, EventKind, Socket, SocketType, Undelivered, UndeliveredPeer, Wait, ids,
};

use SocketType::{Dealer, Pull, Push, Rep, Req, Router, Sub, Xpub};

/// Enough for everything that is going to happen.
const LONG: Option<Duration> = Some(Duration::from_secs(60));
/// Not enough for what is not going to happen.
const SHORT: Option<Duration> = Some(Duration::from_millis(50));

fn only(report: &Undelivered) -> &UndeliveredPeer {
    assert_eq!(report.peers.len(), 1, "{report}");
    &report.peers[0]
}

/// A PUSH socket with more for a peer than two kernels keep, and the peer, which reads nothing.
fn overfull(context: &Context) -> (Socket, std::net::TcpStream, String) {
    let push = context.socket(Push).unwrap();
    let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
    let peer = raw::join(&endpoint, "PULL");
    until(|| push.peers() == 1);
    for _ in 0..3 {
        push.send(vec![7u8; 16 << 20], Wait::Forever).unwrap();
    }
    (push, peer, endpoint)
}

#[test]
fn a_report_is_empty_if_all_was_delivered() {
    let _watchdog = Watchdog::new("a_report_is_empty_if_all_was_delivered");
    let context = Context::new();
    let (pull, push, _) = tcp_pair(&context, Pull, Push);
    for number in 0..1000 {
        push.put(&number.to_string());
    }
    let reader = thread::spawn(move || {
        for number in 0..1000 {
            assert_eq!(pull.take(), number.to_string());
        }
    });
    let report = push.close_within(LONG).unwrap();
    assert!(report.is_empty(), "{report}");
    assert!(push.is_closed());
    reader.join().unwrap();
    let report = context.term_within(LONG).unwrap();
    assert_eq!(report, Undelivered::default());
}

#[test]
fn messages_to_a_peer_that_never_came_are_reported() {
    let _watchdog = Watchdog::new("messages_to_a_peer_that_never_came_are_reported");
    let context = Context::new();
    let (here, there) = (free_tcp_endpoint(), free_tcp_endpoint());
    let dealer = context.socket(Dealer).unwrap();
    dealer.connect(&here).unwrap();
    dealer.connect(&there).unwrap();
    for _ in 0..3 {
        dealer.send(["four", "six six"], Wait::Dont).unwrap();
    }
    let report = dealer.close_within(SHORT).unwrap();
    assert_eq!((report.messages(), report.bytes()), (3, 33), "{report}");
    for (endpoint, most) in [(&here, 2), (&there, 2)] {
        let peer = report.peers.iter().find(|peer| peer.endpoint == *endpoint);
        let peer = peer.expect("both are reported");
        assert!(peer.messages >= 1 && peer.messages <= most, "{report}");
        assert_eq!(peer.address, "");
    }
    // The same report again, and in that of the context.
    assert_eq!(dealer.close_within(SHORT).unwrap(), report);
    assert_eq!(context.term_within(LONG).unwrap(), report);
    assert_eq!(context.term_within(LONG).unwrap(), report);
}

#[test]
fn a_peer_that_does_not_read_is_reported_with_its_address() {
    let _watchdog = Watchdog::new("a_peer_that_does_not_read_is_reported_with_its_address");
    let context = Context::new();
    let (push, peer, endpoint) = overfull(&context);
    let report = push.close_within(SHORT).unwrap();
    let left = only(&report);
    assert_eq!(left.endpoint, endpoint);
    assert_eq!(left.address, peer.local_addr().unwrap().to_string());
    assert!(left.messages >= 2, "{report}");
    assert!(left.bytes >= 16 << 20 && left.bytes <= (48 << 20) + 100);
}

#[test]
fn a_report_waits_for_a_slow_peer() {
    let _watchdog = Watchdog::new("a_report_waits_for_a_slow_peer");
    let context = Context::new();
    let (push, mut peer, _) = overfull(&context);
    let reader = thread::spawn(move || {
        let mut some = vec![0; 1 << 20];
        let mut sum = 0;
        while let Ok(count) = peer.read(&mut some)
            && count > 0
        {
            sum += count;
        }
        sum
    });
    // Not limited by LINGER, which is shorter.
    push.int(ids::LINGER, 0);
    let report = push.close_within(None).unwrap();
    assert!(report.is_empty(), "{report}");
    assert!(reader.join().unwrap() >= 48 << 20);
}

#[test]
fn messages_that_a_broken_connection_had_taken_were_not_delivered() {
    let _watchdog = Watchdog::new("messages_that_a_broken_connection_had_taken_were_not_delivered");
    let context = Context::new();
    let (push, peer, endpoint) = overfull(&context);
    let monitor = Monitor::of(&context, &push);
    let closer = push.clone();
    let closing = thread::spawn(move || closer.close_within(LONG).unwrap());
    // Messages that were lost before the socket left its connections would not be in the report.
    monitor.wait_for(EventKind::MonitorStopped);
    drop(peer);
    let report = closing.join().unwrap();
    assert!(report.peers.iter().all(|peer| peer.endpoint == endpoint));
    assert_eq!(report.messages(), 3, "{report}");
}

#[test]
fn a_router_names_its_peers() {
    let _watchdog = Watchdog::new("a_router_names_its_peers");
    let context = Context::new();
    let router = socket(&context, Router);
    router.int(ids::SNDHWM, 0);
    let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
    let dealers: Vec<_> = ["quick", "slow"]
        .into_iter()
        .map(|name| {
            let dealer = socket(&context, Dealer);
            dealer.bytes(ids::ROUTING_ID, name.as_bytes());
            dealer.int(ids::RCVHWM, 1);
            dealer.connect(&endpoint).unwrap();
            dealer
        })
        .collect();
    until(|| router.peers() == 2);
    let large = vec![0u8; 16 << 20];
    for name in ["quick", "slow", "slow", "slow"] {
        let message = vec![name.as_bytes().to_vec(), large.clone()];
        router.send(message, Wait::Forever).unwrap();
    }
    dealers[0].recv(Wait::Forever).unwrap();
    let report = router.close_within(SHORT).unwrap();
    let left = only(&report);
    assert_eq!(left.routing_id, "slow");
    assert!(left.messages >= 1, "{report}");
}

#[test]
fn a_name_that_is_bound_in_time_gets_its_messages() {
    let _watchdog = Watchdog::new("a_name_that_is_bound_in_time_gets_its_messages");
    let context = Context::new();
    let name = inproc_name();
    let push = context.socket(Push).unwrap();
    push.connect(&name).unwrap();
    push.put("early");
    let closer = push.clone();
    let closing = thread::spawn(move || closer.close_within(LONG).unwrap());
    until(|| push.is_closed());
    assert_eq!(push.nothing(), ErrorKind::NotSocket);
    let pull = socket(&context, Pull);
    pull.bind(&name).unwrap();
    let report = closing.join().unwrap();
    assert!(report.is_empty(), "{report}");
    assert_eq!(pull.take(), "early");
}

#[test]
fn messages_to_a_name_that_is_not_bound_are_reported() {
    let _watchdog = Watchdog::new("messages_to_a_name_that_is_not_bound_are_reported");
    let context = Context::new();
    let names = [inproc_name(), inproc_name(), inproc_name(), inproc_name()];
    let pushes: Vec<_> = names
        .iter()
        .map(|name| {
            let push = context.socket(Push).unwrap();
            push.connect(name).unwrap();
            push.put("lost");
            push
        })
        .collect();
    let report = pushes[0].close_within(SHORT).unwrap();
    assert_eq!(only(&report).endpoint, names[0]);
    // It is gone, so a later bind does not get it.
    let pull = socket(&context, Pull);
    pull.bind(&names[0]).unwrap();
    assert_eq!(pull.nothing(), ErrorKind::Again);
    pull.close(None);
    // A close waits for nothing, and leaves them to a later bind, unless there is no time for one.
    pushes[1].close(None);
    pushes[2].close(Some(Some(Duration::ZERO)));
    // The last one is open until the end.
    let report = context.term_within(SHORT).unwrap();
    let endpoints: Vec<_> = report.peers.iter().map(|peer| &peer.endpoint).collect();
    let mut all: Vec<_> = names.iter().collect();
    all.sort();
    assert_eq!(endpoints, all);
    assert_eq!((report.messages(), report.bytes()), (4, 16));
    assert!(pushes[3].is_closed());
}

#[test]
fn a_message_in_the_queue_of_another_socket_was_delivered() {
    let _watchdog = Watchdog::new("a_message_in_the_queue_of_another_socket_was_delivered");
    let context = Context::new();
    let (pull, push, name) = (
        socket(&context, Pull),
        socket(&context, Push),
        inproc_name(),
    );
    pull.bind(&name).unwrap();
    push.connect(&name).unwrap();
    push.put("there");
    let report = push.close_within(SHORT).unwrap();
    assert!(report.is_empty(), "{report}");
    assert_eq!(pull.take(), "there");
}

/// A REQ keeps such a request for the next peer.
#[test]
fn a_request_whose_peer_left_before_it_read_it_is_reported() {
    let _watchdog = Watchdog::new("a_request_whose_peer_left_before_it_read_it");
    let context = Context::new();
    let (req, rep) = (socket(&context, Req), socket(&context, Rep));
    let name = inproc_name();
    req.bind(&name).unwrap();
    rep.connect(&name).unwrap();
    req.put("question");
    rep.close(None);
    until(|| req.peers() == 0);
    let report = req.close_within(LONG).unwrap();
    let peer = only(&report);
    assert_eq!((&*peer.endpoint, peer.messages, peer.bytes), (&*name, 1, 8));
}

#[test]
fn subscriptions_are_not_worth_a_report() {
    let _watchdog = Watchdog::new("subscriptions_are_not_worth_a_report");
    let context = Context::new();
    for endpoint in [free_tcp_endpoint(), inproc_name()] {
        let sub = context.socket(Sub).unwrap();
        sub.connect(&endpoint).unwrap();
        sub.bytes(ids::SUBSCRIBE, b"topic");
        let report = sub.close_within(LONG).unwrap();
        assert!(report.is_empty(), "{report}");
    }
    let xpub = context.socket(Xpub).unwrap();
    xpub.bind("tcp://127.0.0.1:*").unwrap();
    assert!(xpub.close_within(LONG).unwrap().is_empty());
    assert!(context.term_within(LONG).unwrap().is_empty());
}

/// LINGER may be without a limit, but the report is not.
#[test]
fn earlier_disconnects_end_in_time_too() {
    let _watchdog = Watchdog::new("earlier_disconnects_end_in_time_too");
    let context = Context::new();
    let nobody = free_tcp_endpoint();
    let push = context.socket(Push).unwrap();
    push.connect(&nobody).unwrap();
    push.put("lost");
    push.disconnect(&nobody).unwrap();
    let report = push.close_within(SHORT).unwrap();
    assert_eq!((&only(&report).endpoint, report.messages()), (&nobody, 1));
}

#[test]
fn a_report_of_a_socket_that_was_closed_before() {
    let _watchdog = Watchdog::new("a_report_of_a_socket_that_was_closed_before");
    let context = Context::new();
    let nobody = free_tcp_endpoint();
    for linger in [Some(Duration::ZERO), None] {
        let push = context.socket(Push).unwrap();
        push.connect(&nobody).unwrap();
        push.put("lost");
        push.close(Some(linger));
        assert_eq!(push.close_within(SHORT).unwrap().messages(), 1);
    }
    let report = context.term_within(LONG).unwrap();
    assert_eq!((report.messages(), report.bytes()), (2, 8));
}

#[test]
fn a_termination_in_time_closes_what_is_open() {
    let _watchdog = Watchdog::new("a_termination_in_time_closes_what_is_open");
    let context = Context::new();
    let (push, _peer, endpoint) = overfull(&context);
    let (pull, other) = (socket(&context, Pull), push.clone());
    let blocked = thread::spawn(move || (pull.recv(Wait::Forever).unwrap_err().kind(), pull));
    // Sockets stay open until the time is up, so that their owners find out why.
    let end = context.clone();
    let ending = thread::spawn(move || end.term_within(Some(Duration::from_millis(300))).unwrap());
    let (kind, pull) = blocked.join().unwrap();
    assert_eq!(kind, ErrorKind::Terminated);
    let report = ending.join().unwrap();
    assert_eq!(only(&report).endpoint, endpoint);
    assert!(report.messages() >= 2, "{report}");
    assert!(push.is_closed() && other.is_closed() && pull.is_closed());
    assert!(context.has_ended());
    assert_eq!(push.close_within(SHORT).unwrap(), report);
}

#[test]
fn a_termination_without_a_limit_waits_for_the_owners() {
    let _watchdog = Watchdog::new("a_termination_without_a_limit_waits_for_the_owners");
    let context = Context::new();
    let push = context.socket(Push).unwrap();
    let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
    let peer = std::net::TcpStream::connect(address(&endpoint)).unwrap();
    let end = context.clone();
    let ending = thread::spawn(move || end.term_within(None).unwrap());
    until(|| context.is_shut_down());
    push.close(None);
    assert!(ending.join().unwrap().is_empty());
    drop(peer);
}
