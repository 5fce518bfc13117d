//! ROUTER from outside: names, their owners, lost peers, and fairness between peers.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    IpcName, Monitor, SocketExt, Watchdog, free_tcp_endpoint, inproc_name, message, rounds, socket,
    text, until,
};
use zeroxide::binding::SocketInternals;
use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, Message, Socket, SocketType, Value, Wait, ids,
};

use SocketType::{Dealer, Pub, Pull, Push, Rep, Req, Router, Sub};

fn named(context: &Context, socket_type: SocketType, name: &str) -> Socket {
    let socket = socket(context, socket_type);
    socket.bytes(ids::ROUTING_ID, name.as_bytes());
    socket
}

fn send_to(router: &Socket, name: &str, body: &str, wait: Wait) -> Result<(), ErrorKind> {
    let message = message([name.as_bytes(), body.as_bytes()]);
    router
        .send(message, wait)
        .map_err(|failed| failed.error.kind())
}

/// A mandatory ROUTER reports when it knows a peer.
fn until_known(router: &Socket, name: &str) {
    until(|| send_to(router, name, "hello", Wait::Dont) != Err(ErrorKind::HostUnreachable));
}

/// Bound endpoints of each transport.
fn endpoints() -> Vec<String> {
    vec![
        "tcp://127.0.0.1:*".to_owned(),
        IpcName::new().endpoint(),
        inproc_name(),
    ]
}

#[test]
fn replies_reach_the_peers_that_asked() {
    let _watchdog = Watchdog::new("replies_reach_the_peers_that_asked");
    let context = Context::new();
    for endpoint in endpoints() {
        let router = socket(&context, Router);
        let endpoint = router.bind(&endpoint).unwrap();
        let clients: Vec<Socket> = (0..20)
            .map(|n| {
                let client = if n % 2 == 0 {
                    socket(&context, Dealer)
                } else {
                    named(&context, Dealer, &format!("client {n}"))
                };
                client.connect(&endpoint).unwrap();
                client
            })
            .collect();
        for round in 0..rounds(50, 1_000) {
            for (n, client) in clients.iter().enumerate() {
                client.put(&format!("{n}.{round}"));
            }
            for _ in &clients {
                let request = router.recv(Wait::Forever).unwrap();
                router.send(request, Wait::Forever).unwrap();
            }
            for (n, client) in clients.iter().enumerate() {
                assert_eq!(client.take(), format!("{n}.{round}"));
            }
        }
    }
}

#[test]
fn an_unknown_name_is_counted_or_an_error() {
    let _watchdog = Watchdog::new("an_unknown_name_is_counted_or_an_error");
    let context = Context::new();
    for endpoint in endpoints() {
        let router = socket(&context, Router);
        let endpoint = router.bind(&endpoint).unwrap();
        assert_eq!(send_to(&router, "nobody", "x", Wait::Forever), Ok(()));
        assert_eq!(router.dropped(DropReason::Unroutable), 1);
        router.int(ids::ROUTER_MANDATORY, 1);
        let refused = router
            .send(message([b"nobody", b"x"]), Wait::Forever)
            .unwrap_err();
        assert_eq!(refused.error.kind(), ErrorKind::HostUnreachable);
        assert_eq!(text(&refused.message), "nobody/x");

        let dealer = named(&context, Dealer, "somebody");
        dealer.connect(&endpoint).unwrap();
        until_known(&router, "somebody");
        assert_eq!(dealer.take(), "hello");
        drop(dealer);
        // A dead peer gets nothing.
        until(|| router.stats().unwrap().peers.is_empty());
        let sent = router.stats().unwrap().sent;
        assert_eq!(
            send_to(&router, "somebody", "x", Wait::Forever),
            Err(ErrorKind::HostUnreachable)
        );
        assert_eq!(router.stats().unwrap().sent, sent);
    }
}

#[test]
fn a_full_peer_is_waited_for_or_missed() {
    let _watchdog = Watchdog::new("a_full_peer_is_waited_for_or_missed");
    let context = Context::new();
    for endpoint in endpoints() {
        let router = socket(&context, Router);
        router.int(ids::ROUTER_MANDATORY, 1);
        router.int(ids::SNDHWM, 5);
        router.int(ids::SNDBUF, 4096);
        let endpoint = router.bind(&endpoint).unwrap();
        let (slow, fast) = (
            named(&context, Dealer, "slow"),
            named(&context, Dealer, "fast"),
        );
        for dealer in [&slow, &fast] {
            dealer.int(ids::RCVHWM, 5);
            dealer.int(ids::RCVBUF, 4096);
            dealer.connect(&endpoint).unwrap();
        }
        for name in ["slow", "fast"] {
            until_known(&router, name);
        }
        assert_eq!((slow.take(), fast.take()), ("hello".into(), "hello".into()));
        let body = "x".repeat(5000);
        let mut sent = 0;
        let full = loop {
            match send_to(&router, "slow", &body, Wait::Dont) {
                Ok(()) => sent += 1,
                Err(kind) => break kind,
            }
        };
        assert_eq!(full, ErrorKind::Again);
        // The other peer is not affected, and POLLOUT still reports that sending is possible.
        assert_eq!(send_to(&router, "fast", "x", Wait::Dont), Ok(()));
        assert_eq!(fast.take(), "x");
        assert!(router.events().unwrap().is_writable());
        let sender = {
            let router = router.clone();
            thread::spawn(move || send_to(&router, "slow", "the last", Wait::Forever))
        };
        for _ in 0..sent {
            assert_eq!(slow.take(), body);
        }
        assert_eq!(slow.take(), "the last");
        sender.join().unwrap().unwrap();
        assert_eq!(router.dropped(DropReason::HighWater), 0);

        // Without ROUTER_MANDATORY it is missed, and counted exactly.
        router.int(ids::ROUTER_MANDATORY, 0);
        let count = 500;
        for _ in 0..count {
            send_to(&router, "slow", &body, Wait::Dont).unwrap();
        }
        let missed = router.dropped(DropReason::HighWater);
        assert!(missed > 0 && missed < count);
        for _ in 0..count - missed {
            assert_eq!(slow.take(), body);
        }
        assert_eq!(slow.nothing(), ErrorKind::Again);
    }
}

#[test]
fn a_name_belongs_to_the_peer_that_had_it_first() {
    let _watchdog = Watchdog::new("a_name_belongs_to_the_peer_that_had_it_first");
    let context = Context::new();
    let router = socket(&context, Router);
    router.int(ids::ROUTER_MANDATORY, 1);
    let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
    let first = named(&context, Dealer, "name");
    first.connect(&endpoint).unwrap();
    until_known(&router, "name");
    assert_eq!(first.take(), "hello");
    let second = named(&context, Dealer, "name");
    second.int(ids::RECONNECT_IVL, 1);
    second.connect(&endpoint).unwrap();
    let waits = |router: &Socket| {
        router
            .stats()
            .unwrap()
            .peers
            .iter()
            .any(|peer| peer.waiting)
    };
    until(|| waits(&router));
    send_to(&router, "name", "still the first", Wait::Forever).unwrap();
    assert_eq!(first.take(), "still the first");
    drop(first);
    until(|| !waits(&router));
    send_to(&router, "name", "the second", Wait::Forever).unwrap();
    assert_eq!(second.take(), "the second");
}

/// A connection that ended does not stay because nothing is read from it.
#[test]
fn a_waiting_peer_that_left_is_let_go_however_much_it_sent() {
    let _watchdog = Watchdog::new("a_waiting_peer_that_left_is_let_go_however_much_it_sent");
    let context = Context::new();
    for endpoint in endpoints() {
        let router = socket(&context, Router);
        router.int(ids::RCVHWM, 2);
        let endpoint = router.bind(&endpoint).unwrap();
        let first = named(&context, Dealer, "x");
        first.connect(&endpoint).unwrap();
        first.put("hello");
        assert_eq!(router.take(), "x/hello");
        let second = named(&context, Dealer, "x");
        second.int(ids::SNDHWM, 20);
        second.connect(&endpoint).unwrap();
        until(|| router.peers() == 2);
        for n in 0..20 {
            second.put(&format!("{n}"));
        }
        second.close(None);
        until(|| router.peers() == 1);
        assert_eq!(router.dropped(DropReason::Refused), 20, "{endpoint}");
        first.put("still here");
        assert_eq!(router.take(), "x/still here");
    }
}

/// Replies reach the connection that the peer has now.
#[test]
fn a_peer_that_returns_has_its_name_while_earlier_messages_wait_for_room() {
    let _watchdog =
        Watchdog::new("a_peer_that_returns_has_its_name_while_earlier_messages_wait_for_room");
    let context = Context::new();
    let router = socket(&context, Router);
    router.int(ids::RCVHWM, 2);
    router.int(ids::ROUTER_MANDATORY, 1);
    let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
    let before = named(&context, Dealer, "x");
    before.connect(&endpoint).unwrap();
    for n in 0..20 {
        before.put(&format!("{n}"));
    }
    until_known(&router, "x");
    before.close(None);
    let now = named(&context, Dealer, "x");
    now.connect(&endpoint).unwrap();
    // Greetings from before the return may reach the earlier connection, or get lost.
    until(|| {
        let _ = send_to(&router, "x", "hello", Wait::Dont);
        now.recv(Wait::Dont).is_ok()
    });
    for n in 0..20 {
        assert_eq!(router.take(), format!("x/{n}"));
    }
}

#[test]
fn with_handover_a_name_belongs_to_the_latest_peer() {
    let _watchdog = Watchdog::new("with_handover_a_name_belongs_to_the_latest_peer");
    let context = Context::new();
    let router = socket(&context, Router);
    router.int(ids::ROUTER_MANDATORY, 1);
    router.int(ids::ROUTER_HANDOVER, 1);
    let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
    let mut last = None;
    for n in 0..rounds(20, 200) {
        let next = named(&context, Dealer, "name");
        next.int(ids::RECONNECT_IVL, -1);
        next.connect(&endpoint).unwrap();
        next.put(&format!("here is {n}"));
        assert_eq!(router.take(), format!("name/here is {n}"));
        send_to(&router, "name", &format!("welcome {n}"), Wait::Forever).unwrap();
        assert_eq!(next.take(), format!("welcome {n}"));
        if let Some(before) = last.replace(next) {
            let before: Socket = before;
            assert_eq!(before.nothing(), ErrorKind::Again);
        }
        until(|| router.stats().unwrap().peers.len() == 1);
    }
}

#[test]
fn a_name_is_known_again_after_the_router_was_away() {
    let watchdog = Watchdog::new("a_name_is_known_again_after_the_router_was_away");
    for endpoint in [free_tcp_endpoint(), IpcName::new().endpoint()] {
        let context = Context::new();
        let dealers: Vec<Socket> = (0..5)
            .map(|n| {
                let dealer = named(&context, Dealer, &format!("dealer {n}"));
                dealer.int(ids::RECONNECT_IVL, 1);
                dealer.connect(&endpoint).unwrap();
                dealer
            })
            .collect();
        for _ in 0..rounds(5, 100) {
            let router = socket(&context, Router);
            router.int(ids::ROUTER_MANDATORY, 1);
            until(|| router.bind(&endpoint).is_ok());
            for (n, dealer) in dealers.iter().enumerate() {
                until_known(&router, &format!("dealer {n}"));
                assert_eq!(dealer.take(), "hello");
            }
            watchdog.feed();
        }
    }
}

/// The other way round: the ROUTER connects, and its peers come and go under other names.
#[test]
fn a_router_that_connects_learns_the_names_of_returning_peers() {
    let _watchdog = Watchdog::new("a_router_that_connects_learns_the_names_of_returning_peers");
    let context = Context::new();
    let endpoint = free_tcp_endpoint();
    let router = socket(&context, Router);
    router.int(ids::ROUTER_MANDATORY, 1);
    router.int(ids::RECONNECT_IVL, 1);
    router.connect(&endpoint).unwrap();
    for name in ["one", "two", "two", "three"] {
        let dealer = named(&context, Dealer, name);
        until(|| dealer.bind(&endpoint).is_ok());
        dealer.put("my name");
        assert_eq!(router.take(), format!("{name}/my name"));
        send_to(&router, name, "heard", Wait::Forever).unwrap();
        assert_eq!(dealer.take(), "heard");
    }
    assert_eq!(
        send_to(&router, "one", "x", Wait::Dont),
        Err(ErrorKind::HostUnreachable)
    );
}

#[test]
fn a_chosen_name_can_be_used_before_its_peer_is_connected() {
    let _watchdog = Watchdog::new("a_chosen_name_can_be_used_before_its_peer_is_connected");
    let context = Context::new();
    for endpoint in [free_tcp_endpoint(), inproc_name()] {
        let router = socket(&context, Router);
        router.int(ids::ROUTER_MANDATORY, 1);
        router.int(ids::RECONNECT_IVL, 1);
        router.bytes(ids::CONNECT_ROUTING_ID, b"chosen");
        router.connect(&endpoint).unwrap();
        send_to(&router, "chosen", "early", Wait::Dont).unwrap();
        let taken = router.set_option(ids::CONNECT_ROUTING_ID, &Value::Bytes(b"chosen".to_vec()));
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::AddressInUse);
        let dealer = named(&context, Dealer, "another");
        dealer.bind(&endpoint).unwrap();
        assert_eq!(dealer.take(), "early");
        dealer.put("x");
        assert_eq!(router.take(), "chosen/x");
    }
}

#[test]
fn a_chosen_name_is_that_of_every_later_connection() {
    let _watchdog = Watchdog::new("a_chosen_name_is_that_of_every_later_connection");
    let context = Context::new();
    let router = socket(&context, Router);
    router.int(ids::ROUTER_MANDATORY, 1);
    router.int(ids::RECONNECT_IVL, 1);
    // A pipe for each connection: none keeps the name in between.
    router.int(ids::IMMEDIATE, 1);
    let endpoints = [free_tcp_endpoint(), IpcName::new().endpoint()];
    for (endpoint, name) in endpoints.iter().zip(["one", "two"]) {
        router.bytes(ids::CONNECT_ROUTING_ID, name.as_bytes());
        router.connect(endpoint).unwrap();
    }
    let monitor = Monitor::of(&context, &router);
    for round in ["first", "second"] {
        let dealers: Vec<_> = endpoints
            .iter()
            .map(|endpoint| {
                let dealer = named(&context, Dealer, "its own idea");
                until(|| dealer.bind(endpoint).is_ok());
                dealer
            })
            .collect();
        for (dealer, name) in dealers.iter().zip(["one", "two"]) {
            until_known(&router, name);
            assert_eq!(dealer.take(), "hello");
            dealer.put(round);
            assert_eq!(router.take(), format!("{name}/{round}"));
        }
        drop(dealers);
        for _ in &endpoints {
            monitor.wait_for(EventKind::Disconnected);
        }
    }
}

#[test]
fn the_first_part_shows_what_would_stop_the_message() {
    let _watchdog = Watchdog::new("the_first_part_shows_what_would_stop_the_message");
    let context = Context::new();
    let begin = |socket: &Socket, head: &str| {
        let begun = socket.send_part(head, true, Wait::Dont);
        begun.map_err(|failed| failed.error.kind())
    };
    let name = inproc_name();
    let router = socket(&context, Router);
    router.int(ids::ROUTER_MANDATORY, 1);
    router.int(ids::SNDHWM, 1);
    router.bind(&name).unwrap();
    assert_eq!(begin(&router, "me"), Err(ErrorKind::HostUnreachable));
    let req = named(&context, Req, "me");
    req.int(ids::RCVHWM, 1);
    assert_eq!(begin(&req, "1"), Err(ErrorKind::Again));
    req.connect(&name).unwrap();
    assert_eq!(begin(&req, "1"), Ok(()));
    req.send_part("2", false, Wait::Dont).unwrap();
    assert_eq!(begin(&req, "3"), Err(ErrorKind::Fsm));
    assert_eq!(router.take(), "me//1/2");
    let send = || send_to(&router, "me", "x", Wait::Dont);
    while send() == Ok(()) {}
    assert_eq!(begin(&router, "me"), Err(ErrorKind::Again));
    assert!(!router.is_sending_parts());
    assert_eq!(begin(&socket(&context, Rep), "x"), Err(ErrorKind::Fsm));
    let stream = socket(&context, SocketType::Stream);
    assert_eq!(begin(&stream, "x"), Err(ErrorKind::HostUnreachable));
    assert_eq!(
        begin(&socket(&context, Pull), "x"),
        Err(ErrorKind::NotSupported)
    );
    // A call that waits with the first part continues when there is room.
    let waits = {
        let router = router.clone();
        thread::spawn(move || {
            router.send_part("me", true, Wait::Forever).unwrap();
            router.send_part("waited", false, Wait::Forever).unwrap();
        })
    };
    // A REQ discards messages that it has not requested: it must ask again, and so drops the waiting ones.
    req.int(ids::REQ_RELAXED, 1);
    until(|| {
        let _ = req.send("again", Wait::Dont);
        waits.is_finished()
    });
    waits.join().unwrap();
}

#[test]
fn a_probe_makes_a_router_known() {
    let _watchdog = Watchdog::new("a_probe_makes_a_router_known");
    let context = Context::new();
    for prober in [Dealer, Req, Router] {
        for endpoint in endpoints() {
            let router = named(&context, Router, "server");
            let endpoint = router.bind(&endpoint).unwrap();
            let probing = named(&context, prober, "prober");
            probing.int(ids::PROBE_ROUTER, 1);
            probing.connect(&endpoint).unwrap();
            assert_eq!(router.take(), "prober/");
        }
    }
}

#[test]
fn a_probe_comes_before_everything_else() {
    let _watchdog = Watchdog::new("a_probe_comes_before_everything_else");
    let context = Context::new();
    for prober in [Dealer, Req] {
        for endpoint in endpoints() {
            // The endpoint is free again, and nothing listens there yet.
            let endpoint = socket(&context, Router).bind(&endpoint).unwrap();
            let probing = named(&context, prober, "prober");
            probing.int(ids::RECONNECT_IVL, 1);
            probing.int(ids::PROBE_ROUTER, 1);
            probing.connect(&endpoint).unwrap();
            probing.put("early");
            let router = named(&context, Router, "server");
            until(|| router.bind(&endpoint).is_ok());
            assert_eq!(router.take(), "prober/");
            let early = router.take();
            assert!(early.ends_with("/early"), "{early}");
        }
    }
}

#[test]
fn a_bound_socket_probes_from_when_it_is_asked_to() {
    let _watchdog = Watchdog::new("a_bound_socket_probes_from_when_it_is_asked_to");
    let context = Context::new();
    for endpoint in endpoints() {
        let router = named(&context, Router, "server");
        let endpoint = router.bind(&endpoint).unwrap();
        router.int(ids::PROBE_ROUTER, 1);
        let dealer = named(&context, Dealer, "client");
        dealer.connect(&endpoint).unwrap();
        assert_eq!(dealer.take(), "");
    }
}

#[test]
fn a_conflated_message_is_reported_although_a_probe_was_before_it() {
    let _watchdog = Watchdog::new("a_conflated_message_is_reported_although_a_probe_was_before_it");
    let context = Context::new();
    let dealer = named(&context, Dealer, "prober");
    dealer.int(ids::CONFLATE, 1);
    dealer.int(ids::PROBE_ROUTER, 1);
    dealer.bytes(ids::HELLO_MSG, b"hello");
    dealer.connect(&inproc_name()).unwrap();
    dealer.put("abc");
    let report = dealer.close_within(Some(Duration::from_millis(1))).unwrap();
    assert_eq!((report.messages(), report.bytes()), (1, 3), "{report}");
}

#[test]
fn a_probe_that_no_router_gets_does_not_count_as_undelivered() {
    let _watchdog = Watchdog::new("a_probe_that_no_router_gets_does_not_count_as_undelivered");
    let context = Context::new();
    for endpoint in [
        free_tcp_endpoint(),
        IpcName::new().endpoint(),
        inproc_name(),
    ] {
        let probing = named(&context, Dealer, "prober");
        probing.int(ids::PROBE_ROUTER, 1);
        probing.connect(&endpoint).unwrap();
        let report = probing.close_within(Some(Duration::from_secs(10))).unwrap();
        assert!(report.is_empty(), "{report}");
    }
}

#[test]
fn routers_talk_to_each_other_by_name() {
    let _watchdog = Watchdog::new("routers_talk_to_each_other_by_name");
    let context = Context::new();
    for endpoint in endpoints() {
        let routers = [
            named(&context, Router, "left"),
            named(&context, Router, "right"),
        ];
        routers
            .iter()
            .for_each(|router| router.int(ids::ROUTER_MANDATORY, 1));
        let endpoint = routers[0].bind(&endpoint).unwrap();
        routers[1].connect(&endpoint).unwrap();
        until_known(&routers[0], "right");
        until_known(&routers[1], "left");
        assert_eq!(routers[0].take(), "right/hello");
        assert_eq!(routers[1].take(), "left/hello");
    }
}

// ---- fairness ------------------------------------------------------------------------------------------------------

/// Ten senders, one of them never stops. As soon as something of each slow one is there, a few receives bring it.
fn all_peers_are_served(receiver: SocketType, sender: SocketType, endpoint: &str) {
    let context = Context::new();
    let sink = socket(&context, receiver);
    if receiver == Sub {
        sink.bytes(ids::SUBSCRIBE, b"");
    }
    let endpoint = sink.bind(endpoint).unwrap();
    let connected = || {
        let source = socket(&context, sender);
        source.connect(&endpoint).unwrap();
        source
    };
    let slow: Vec<Socket> = (0..9).map(|_| connected()).collect();
    let shouting = connected();
    if sender == Pub {
        slow.iter().chain([&shouting]).for_each(|publisher| {
            until(|| {
                let before = publisher.dropped(DropReason::NoSubscriber);
                publisher.put("begin");
                publisher.dropped(DropReason::NoSubscriber) == before
            });
        });
    }
    let quiet = Arc::new(AtomicBool::new(false));
    let shouter = {
        let (shouting, quiet) = (shouting.clone(), quiet.clone());
        thread::spawn(move || {
            while !quiet.load(Ordering::Relaxed) {
                let soon = Wait::Until(Instant::now() + Duration::from_millis(1));
                let _ = shouting.send("loud", soon);
            }
        })
    };
    let last =
        |message: &Message| String::from_utf8_lossy(message.iter().last().unwrap()).into_owned();
    let waiting = || {
        let peers = sink.stats().unwrap().peers;
        peers.iter().filter(|peer| peer.queued_in > 0).count()
    };
    // Messages left from the start: one from each sender that has begun.
    let mut left = if sender == Pub { 10 } else { 0 };
    while left > 0 {
        left -= usize::from(last(&sink.recv(Wait::Forever).unwrap()) == "begin");
    }
    for round in 0..rounds(20, 1_000) {
        for (n, source) in slow.iter().enumerate() {
            source.put(&format!("{round}.{n}"));
        }
        until(|| waiting() == 10);
        // A message counts as queued just before the receiver learns about it. Meanwhile, the busy peer may have one
        // more turn, or two.
        let (mut seen, mut received) = (Vec::new(), 0);
        while seen.len() < 9 && received < 12 {
            let text = last(&sink.recv(Wait::Forever).unwrap());
            received += 1;
            if text != "loud" {
                seen.push(text);
            }
        }
        seen.sort();
        let expected: Vec<String> = (0..9).map(|n| format!("{round}.{n}")).collect();
        assert_eq!(seen, expected, "{receiver} over {endpoint}");
    }
    quiet.store(true, Ordering::Relaxed);
    shouter.join().unwrap();
}

#[test]
fn a_busy_peer_does_not_starve_the_others() {
    let watchdog = Watchdog::new("a_busy_peer_does_not_starve_the_others");
    for (receiver, sender) in [(Pull, Push), (Router, Dealer), (Dealer, Dealer), (Sub, Pub)] {
        for endpoint in ["tcp://127.0.0.1:*".to_owned(), inproc_name()] {
            all_peers_are_served(receiver, sender, &endpoint);
            watchdog.feed();
        }
    }
}

/// Load is distributed among the workers that can take it, and a dead one gets nothing.
#[test]
fn work_is_distributed_among_the_connected_workers() {
    let _watchdog = Watchdog::new("work_is_distributed_among_the_connected_workers");
    let context = Context::new();
    for (sender, receiver) in [(Push, Pull), (Dealer, Dealer), (Dealer, Rep)] {
        for endpoint in endpoints() {
            let source = socket(&context, sender);
            let endpoint = source.bind(&endpoint).unwrap();
            let workers: Vec<Socket> = (0..4)
                .map(|_| {
                    let worker = socket(&context, receiver);
                    worker.connect(&endpoint).unwrap();
                    worker
                })
                .collect();
            until(|| source.peers() == 4);
            let work = || source.send(message([b"", b"work"]), Wait::Forever).unwrap();
            (0..40).for_each(|_| work());
            let share = |worker: &Socket| {
                (0..10).for_each(|_| {
                    assert!(
                        worker
                            .recv(Wait::Forever)
                            .unwrap()
                            .iter()
                            .any(|frame| **frame == *b"work")
                    );
                    if receiver == Rep {
                        worker.put("done");
                    }
                });
                assert_eq!(worker.nothing(), ErrorKind::Again);
            };
            workers.iter().for_each(share);
            if receiver == Rep {
                // Earlier messages of a dead peer can still be received. Its entry stays until they are.
                (0..40).for_each(|_| assert_eq!(source.take(), "/done"));
            }
            let mut workers = workers;
            drop(workers.pop());
            until(|| source.stats().unwrap().peers.len() == 3);
            (0..30).for_each(|_| work());
            workers.iter().for_each(share);
            assert_eq!(source.dropped(DropReason::PeerGone), 0);
        }
    }
}
