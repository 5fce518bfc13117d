//! Close, term, linger and reconnecting, and the state afterwards.

mod common;

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    IpcName, Monitor, SocketExt, Watchdog, alone, free_tcp_endpoint, in_threads, inproc_name,
    rounds, socket, until,
};
use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, Events, Frame, Message, PollItem, Socket,
    SocketType, Wait, ids,
};

use SocketType::{Dealer, Pull, Push, Rep, Req, Router, Sub};

const FOREVER: i64 = -1;

fn numbered(n: usize, size: usize) -> Message {
    let mut body = vec![n as u8; size.max(8)];
    body[..8].copy_from_slice(&(n as u64).to_le_bytes());
    body.into()
}

fn number(message: &Message) -> usize {
    u64::from_le_bytes(message.head()[..8].try_into().unwrap()) as usize
}

/// A bound endpoint of each transport that leaves the process.
fn wires() -> Vec<(String, Option<IpcName>)> {
    let name = IpcName::new();
    vec![
        ("tcp://127.0.0.1:*".to_owned(), None),
        (name.endpoint(), Some(name)),
    ]
}

// ---- linger --------------------------------------------------------------------------------------------------------

#[test]
fn only_subscriptions_are_not_worth_lingering_for() {
    let context = Context::new();
    for socket_type in SocketType::ALL {
        let socket = context.socket(*socket_type).unwrap();
        let linger = socket.get_int(ids::LINGER).unwrap();
        let subscribes = ["SUB", "XSUB", "DISH"].contains(&socket_type.name());
        assert_eq!(
            linger,
            if subscribes { 0 } else { FOREVER },
            "{socket_type}"
        );
    }
}

#[test]
fn without_linger_nothing_is_waited_for() {
    let _watchdog = Watchdog::new("without_linger_nothing_is_waited_for");
    let context = Context::new();
    for endpoint in [
        free_tcp_endpoint(),
        IpcName::new().endpoint(),
        inproc_name(),
    ] {
        let absent = socket(&context, Push);
        absent.connect(&endpoint).unwrap();
        absent.put("never read");
    }
    // A peer that is there but takes nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = socket(&context, Push);
    silent
        .connect(&format!("tcp://{}", listener.local_addr().unwrap()))
        .unwrap();
    silent.put("never read");
    drop(silent);
    context.term().unwrap();
}

#[test]
fn a_limited_linger_ends() {
    let _watchdog = Watchdog::new("a_limited_linger_ends");
    let context = Context::new();
    let absent = socket(&context, Push);
    absent.connect(&free_tcp_endpoint()).unwrap();
    let gone = socket(&context, Push);
    let pull = socket(&context, Pull);
    gone.connect(&pull.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    gone.put("read");
    assert_eq!(pull.take(), "read");
    drop(pull);
    for push in [absent, gone] {
        push.put("never read");
        push.int(ids::LINGER, 20);
    }
    context.term().unwrap();
}

#[test]
fn infinite_linger_waits_for_a_peer_that_comes_late() {
    let _watchdog = Watchdog::new("infinite_linger_waits_for_a_peer_that_comes_late");
    for endpoint in [free_tcp_endpoint(), IpcName::new().endpoint()] {
        let sending = Context::new();
        let push = sending.socket(Push).unwrap();
        push.int(ids::RECONNECT_IVL, 1);
        push.connect(&endpoint).unwrap();
        for n in 0..500 {
            push.send(numbered(n, 100), Wait::Forever).unwrap();
        }
        drop(push);
        let early = sending.term_until(Some(Instant::now() + Duration::from_millis(20)));
        assert_eq!(early.unwrap_err().kind(), ErrorKind::Again);

        let receiving = Context::new();
        let pull = socket(&receiving, Pull);
        pull.bind(&endpoint).unwrap();
        for n in 0..500 {
            assert_eq!(number(&pull.recv(Wait::Forever).unwrap()), n);
        }
        sending.term().unwrap();
        assert_eq!(pull.nothing(), ErrorKind::Again);
    }
}

#[test]
fn close_can_be_given_another_linger() {
    let _watchdog = Watchdog::new("close_can_be_given_another_linger");
    let context = Context::new();
    let push = context.socket(Push).unwrap();
    assert_eq!(push.get_int(ids::LINGER).unwrap(), FOREVER);
    push.connect(&free_tcp_endpoint()).unwrap();
    push.put("never read");
    push.close(Some(Some(Duration::ZERO)));
    assert!(push.is_closed());
    context.term().unwrap();
}

/// Everything that was accepted arrives, although both socket and context are gone before the first byte is read.
#[test]
fn with_infinite_linger_all_bytes_arrive() {
    let watchdog = Watchdog::new("with_infinite_linger_all_bytes_arrive");
    for (endpoint, _name) in wires() {
        for (count, size) in [(1, 1), (20_000, 20), (2_000, 10_000), (3, 8 << 20)] {
            let receiving = Context::new();
            let pull = socket(&receiving, Pull);
            pull.int(ids::RCVHWM, 1);
            pull.int(ids::RCVBUF, 4096);
            let endpoint = pull.bind(&endpoint).unwrap();
            let sending = Context::new();
            let push = sending.socket(Push).unwrap();
            push.int(ids::SNDHWM, 0);
            push.connect(&endpoint).unwrap();
            for n in 0..count {
                push.send(numbered(n, size), Wait::Forever).unwrap();
            }
            drop(push);
            let term = thread::spawn(move || sending.term().unwrap());
            for n in 0..count {
                let message = pull.recv(Wait::Forever).unwrap();
                assert_eq!(number(&message), n);
                assert_eq!(message.size(), size.max(8));
            }
            term.join().unwrap();
            watchdog.feed();
        }
    }
}

/// Closing a descriptor with unread input resets its connection, which discards bytes that the peer has not received
/// yet. A peer that never stops sending must not cause that.
#[test]
fn a_talkative_slow_peer_gets_every_byte() {
    let _watchdog = Watchdog::new("a_talkative_slow_peer_gets_every_byte");
    let context = Context::new();
    let slow = socket(&context, Dealer);
    slow.int(ids::RCVHWM, 1);
    slow.int(ids::RCVBUF, 4096);
    let endpoint = slow.bind("tcp://127.0.0.1:*").unwrap();
    let talking = Arc::new(AtomicBool::new(true));
    let talker = {
        let (slow, talking) = (slow.clone(), talking.clone());
        thread::spawn(move || {
            while talking.load(Ordering::Relaxed) {
                let soon = Wait::Until(Instant::now() + Duration::from_millis(5));
                let _ = slow.send(numbered(0, 5000), soon);
            }
        })
    };
    let sending = Context::new();
    let dealer = sending.socket(Dealer).unwrap();
    dealer.int(ids::SNDHWM, 0);
    dealer.connect(&endpoint).unwrap();
    let count = 150;
    for n in 0..count {
        dealer.send(numbered(n, 20_000), Wait::Forever).unwrap();
    }
    drop(dealer);
    let term = thread::spawn(move || sending.term().unwrap());
    for n in 0..count {
        // This makes the peer slow. A silent peer would be given up after a second.
        thread::sleep(Duration::from_millis(12));
        assert_eq!(number(&slow.recv(Wait::Forever).unwrap()), n);
    }
    term.join().unwrap();
    talking.store(false, Ordering::Relaxed);
    talker.join().unwrap();
}

// ---- blocked calls -------------------------------------------------------------------------------------------------

/// Every call that can block, each on a socket where it does.
fn blocked_calls(context: &Context) -> Vec<(Socket, thread::JoinHandle<ErrorKind>)> {
    let started = Arc::new(AtomicUsize::new(0));
    let mut calls = Vec::new();
    let mut start =
        |socket_type, endpoint: Option<String>, call: fn(&Socket) -> zeroxide::Error| {
            let socket = socket(context, socket_type);
            if let Some(endpoint) = endpoint {
                socket.bind(&endpoint).unwrap();
            }
            let (mine, started) = (socket.clone(), started.clone());
            let thread = thread::spawn(move || {
                started.fetch_add(1, Ordering::Relaxed);
                call(&mine).kind()
            });
            calls.push((socket, thread));
        };
    fn recv(socket: &Socket) -> zeroxide::Error {
        socket.recv(Wait::Forever).unwrap_err()
    }
    fn send(socket: &Socket) -> zeroxide::Error {
        socket.send("x", Wait::Forever).unwrap_err().error
    }
    fn poll(socket: &Socket) -> zeroxide::Error {
        socket
            .poll(Events::READABLE | Events::WRITABLE, None)
            .unwrap_err()
    }
    fn poll_items(socket: &Socket) -> zeroxide::Error {
        let events = Events::READABLE | Events::WRITABLE;
        zeroxide::poll(&mut [PollItem::socket(socket, events)], None).unwrap_err()
    }
    fn recv_batch(socket: &Socket) -> zeroxide::Error {
        socket.recv_batch(10, Wait::Default).unwrap_err()
    }
    fn send_batch(socket: &Socket) -> zeroxide::Error {
        socket
            .send_batch(["x", "y"], Wait::Default)
            .1
            .unwrap()
            .error
    }
    for endpoint in [
        Some("tcp://127.0.0.1:*".to_owned()),
        Some(inproc_name()),
        None,
    ] {
        start(
            Pull,
            endpoint.clone().filter(|e| e.starts_with("tcp")),
            recv,
        );
        start(Sub, None, recv);
        start(
            Router,
            endpoint.clone().filter(|e| e.starts_with("tcp")),
            recv,
        );
        start(Dealer, endpoint.clone(), send);
        start(Push, None, send);
        start(Req, None, send);
        start(Push, None, poll);
        start(Rep, None, poll);
        start(Dealer, None, poll_items);
        start(Pull, None, recv_batch);
        start(Push, None, send_batch);
    }
    let expected = calls.len();
    until(|| started.load(Ordering::Relaxed) == expected);
    calls
}

#[test]
fn term_ends_every_blocked_call() {
    let _watchdog = Watchdog::new("term_ends_every_blocked_call");
    let context = Context::new();
    let calls = blocked_calls(&context);
    let term = {
        let context = context.clone();
        thread::spawn(move || context.term().unwrap())
    };
    let mut sockets = Vec::new();
    for (socket, call) in calls {
        assert_eq!(
            call.join().unwrap(),
            ErrorKind::Terminated,
            "{}",
            socket.socket_type()
        );
        sockets.push(socket);
    }
    // The sockets are their owner's to close, and until then the termination waits.
    assert!(!context.has_ended());
    for socket in &sockets {
        assert_eq!(
            socket.recv(Wait::Dont).unwrap_err().kind(),
            ErrorKind::Terminated
        );
        assert_eq!(
            socket.connect("tcp://127.0.0.1:1").unwrap_err().kind(),
            ErrorKind::Terminated
        );
        socket.close(None);
        assert_eq!(
            socket.recv(Wait::Dont).unwrap_err().kind(),
            ErrorKind::NotSocket
        );
    }
    term.join().unwrap();
    assert!(context.has_ended());
    assert_eq!(
        context.socket(Push).unwrap_err().kind(),
        ErrorKind::Terminated
    );
    context.term().unwrap();
}

#[test]
fn close_ends_every_blocked_call() {
    let _watchdog = Watchdog::new("close_ends_every_blocked_call");
    let context = Context::new();
    for (socket, call) in blocked_calls(&context) {
        socket.close(None);
        assert_eq!(
            call.join().unwrap(),
            ErrorKind::NotSocket,
            "{}",
            socket.socket_type()
        );
    }
    context.term().unwrap();
}

#[test]
fn shutdown_ends_every_blocked_call_and_waits_for_nothing() {
    let _watchdog = Watchdog::new("shutdown_ends_every_blocked_call_and_waits_for_nothing");
    let context = Context::new();
    let calls = blocked_calls(&context);
    context.shutdown();
    for (socket, call) in &calls {
        until(|| call.is_finished());
        assert_eq!(socket.events().unwrap_err().kind(), ErrorKind::Terminated);
    }
    let late = context.term_until(Some(Instant::now()));
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Again);
    drop(calls);
    context.term().unwrap();
}

// ---- closing under load --------------------------------------------------------------------------------------------

/// Messages that were accepted before the close arrive, and messages that the close refused do not.
#[test]
fn close_while_sending_loses_nothing_that_was_accepted() {
    let watchdog = Watchdog::new("close_while_sending_loses_nothing_that_was_accepted");
    for round in 0..rounds(30, 500) {
        let endpoint = match round % 3 {
            0 => "tcp://127.0.0.1:*".to_owned(),
            1 => IpcName::new().endpoint(),
            _ => inproc_name(),
        };
        let context = Context::new();
        let pull = socket(&context, Pull);
        let endpoint = pull.bind(&endpoint).unwrap();
        let push = context.socket(Push).unwrap();
        push.connect(&endpoint).unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let (push, accepted) = (push.clone(), accepted.clone());
                thread::spawn(move || {
                    loop {
                        match push.send(numbered(0, 50), Wait::Forever) {
                            Ok(()) => accepted.fetch_add(1, Ordering::Relaxed),
                            Err(failed) => return failed.error.kind(),
                        };
                    }
                })
            })
            .collect();
        for _ in 0..100 {
            pull.recv(Wait::Forever).unwrap();
        }
        push.close(None);
        let mut seen = 100;
        for sender in senders {
            assert_eq!(sender.join().unwrap(), ErrorKind::NotSocket);
        }
        while seen < accepted.load(Ordering::Relaxed) {
            pull.recv(Wait::Forever).unwrap();
            seen += 1;
        }
        until(|| pull.stats().unwrap().peers.is_empty());
        assert_eq!(pull.nothing(), ErrorKind::Again);
        drop((push, pull));
        context.term().unwrap();
        watchdog.feed();
    }
}

// ---- contexts ------------------------------------------------------------------------------------------------------

#[test]
fn contexts_know_nothing_of_each_other() {
    let _watchdog = Watchdog::new("contexts_know_nothing_of_each_other");
    let (one, other) = (Context::new(), Context::new());
    let name = inproc_name();
    let (pull, elsewhere) = (socket(&one, Pull), socket(&other, Pull));
    pull.bind(&name).unwrap();
    elsewhere.bind(&name).unwrap();
    let push = socket(&one, Push);
    push.connect(&name).unwrap();
    other.shutdown();
    push.put("here");
    assert_eq!(pull.take(), "here");
    drop(elsewhere);
    other.term().unwrap();
    push.put("still here");
    assert_eq!(pull.take(), "still here");
}

// ---- connections that end and come back ----------------------------------------------------------------------------

#[test]
fn a_peer_that_returns_gets_the_waiting_messages() {
    let watchdog = Watchdog::new("a_peer_that_returns_gets_the_waiting_messages");
    for endpoint in [free_tcp_endpoint(), IpcName::new().endpoint()] {
        let context = Context::new();
        let push = socket(&context, Push);
        push.int(ids::RECONNECT_IVL, 1);
        let events = Monitor::of(&context, &push);
        push.connect(&endpoint).unwrap();
        for round in 0..rounds(20, 500) {
            let early = format!("early {round}");
            push.put(&early);
            let pull = socket(&context, Pull);
            until(|| pull.bind(&endpoint).is_ok());
            assert_eq!(pull.take(), early);
            push.put("late");
            assert_eq!(pull.take(), "late");
            events.wait_for(EventKind::HandshakeSucceeded);
            drop(pull);
            events.wait_for(EventKind::Disconnected);
            watchdog.feed();
        }
    }
}

/// Runs in a child process, see `a_peer_that_is_killed_and_started_again`: echoes its input.
#[test]
fn echo_for_another_process() {
    let Ok(endpoint) = env::var("ZEROXIDE_TEST_ECHO") else {
        return;
    };
    let context = Context::new();
    let rep = socket(&context, Rep);
    until(|| rep.bind(&endpoint).is_ok());
    println!("bound");
    loop {
        let request = rep.recv(Wait::Forever).unwrap();
        rep.send(request, Wait::Forever).unwrap();
    }
}

fn start_echo(endpoint: &str) -> Child {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "echo_for_another_process", "--nocapture"])
        .env("ZEROXIDE_TEST_ECHO", endpoint)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("bound")));
    child
}

#[test]
fn a_peer_that_is_killed_and_started_again() {
    let _alone = alone();
    let watchdog = Watchdog::new("a_peer_that_is_killed_and_started_again");
    for endpoint in [free_tcp_endpoint(), IpcName::new().endpoint()] {
        let context = Context::new();
        let req = socket(&context, Req);
        req.int(ids::RECONNECT_IVL, 1);
        req.int(ids::REQ_RELAXED, 1);
        req.int(ids::REQ_CORRELATE, 1);
        let events = Monitor::of(&context, &req);
        req.connect(&endpoint).unwrap();
        for round in 0..3 {
            let mut child = start_echo(&endpoint);
            events.wait_for(EventKind::HandshakeSucceeded);
            for n in 0..100 {
                let question = format!("{round}.{n}");
                req.put(&question);
                assert_eq!(req.take(), question);
            }
            child.kill().unwrap();
            child.wait().unwrap();
            events.wait_for(EventKind::Disconnected);
            watchdog.feed();
        }
    }
}

#[test]
fn immediate_queues_for_connections_that_are_up_only() {
    let _watchdog = Watchdog::new("immediate_queues_for_connections_that_are_up_only");
    let context = Context::new();
    for endpoint in [free_tcp_endpoint(), IpcName::new().endpoint()] {
        let push = socket(&context, Push);
        push.int(ids::IMMEDIATE, 1);
        push.int(ids::RECONNECT_IVL, 1);
        push.connect(&endpoint).unwrap();
        let refused = push.send("no peer there", Wait::Dont).unwrap_err();
        assert_eq!(refused.error.kind(), ErrorKind::Again);
        for _ in 0..3 {
            let pull = socket(&context, Pull);
            pull.bind(&endpoint).unwrap();
            push.put("up");
            assert_eq!(pull.take(), "up");
            drop(pull);
            // The socket learns about the end; until then, the message would go to the dead peer.
            until(|| push.stats().unwrap().peers.is_empty());
            let refused = push.send("no peer there", Wait::Dont).unwrap_err();
            assert_eq!(refused.error.kind(), ErrorKind::Again);
        }
    }
}

#[test]
fn an_unbound_address_is_free_and_its_connections_end() {
    // A child process briefly holds all of this process's descriptors open.
    let _alone = alone();
    let watchdog = Watchdog::new("an_unbound_address_is_free_and_its_connections_end");
    let context = Context::new();
    for endpoint in [
        free_tcp_endpoint(),
        IpcName::new().endpoint(),
        inproc_name(),
    ] {
        let (pull, push) = (socket(&context, Pull), socket(&context, Push));
        push.int(ids::RECONNECT_IVL, 1);
        pull.bind(&endpoint).unwrap();
        push.connect(&endpoint).unwrap();
        push.put("before");
        assert_eq!(pull.take(), "before");
        let second = socket(&context, Pull);
        assert_eq!(
            second.bind(&endpoint).unwrap_err().kind(),
            ErrorKind::AddressInUse
        );
        pull.unbind(&endpoint).unwrap();
        assert_eq!(
            pull.unbind(&endpoint).unwrap_err().kind(),
            ErrorKind::NoEntry
        );
        assert!(pull.stats().unwrap().peers.is_empty());
        second.bind(&endpoint).unwrap();
        if endpoint.starts_with("inproc") {
            // Over inproc there is no automatic reconnection.
            until(|| push.stats().unwrap().peers.is_empty());
            push.connect(&endpoint).unwrap();
        } else {
            until(|| push.send("probe", Wait::Dont).is_ok() && second.peers() == 1);
        }
        push.put("after");
        until(|| second.take() == "after");
        assert_eq!(pull.nothing(), ErrorKind::Again);
        watchdog.feed();
    }
}

/// Types of sockets that receive, with peers that send to them.
const RECEIVERS: [(SocketType, SocketType); 6] = [
    (Pull, Push),
    (Dealer, Dealer),
    (Router, Dealer),
    (Rep, Dealer),
    (SocketType::Pair, SocketType::Pair),
    (Sub, SocketType::Pub),
];

/// A receiver of one of these types, the peer that has sent it five messages, of which it has received the first, and the
/// endpoint of which one has bound.
fn after_five_messages(
    context: &Context,
    (receiver, sender): (SocketType, SocketType),
    endpoint: &str,
    connects: bool,
) -> (Socket, Socket, String) {
    let (near, far) = (socket(context, receiver), socket(context, sender));
    far.bytes(ids::ROUTING_ID, b"far");
    if receiver == Sub {
        near.subscribe(b"").unwrap();
    }
    let [binding, connecting] = match connects {
        true => [&far, &near],
        false => [&near, &far],
    };
    let endpoint = binding.bind(endpoint).unwrap();
    connecting.connect(&endpoint).unwrap();
    if sender == SocketType::Pub {
        far.wait_subscribed(b"", 1, Wait::Forever).unwrap();
    }
    until(|| near.peers() == 1 && far.peers() == 1);
    for number in 0..5 {
        let body = Frame::copy_from(number.to_string().as_bytes());
        let frames = match receiver {
            Rep => vec![Frame::new(), body],
            _ => vec![body],
        };
        far.send(Message::from_frames(frames), Wait::Forever)
            .unwrap();
    }
    until(|| near.stats().unwrap().queued_in == 5);
    check_next(&near, receiver, 0);
    (near, far, endpoint)
}

/// Receives the next message of that peer.
fn check_next(near: &Socket, receiver: SocketType, number: usize) {
    let expected = match receiver {
        Router => format!("far/{number}"),
        _ => number.to_string(),
    };
    assert_eq!(near.take(), expected, "{receiver}");
    if receiver == Rep {
        near.put("a reply");
    }
}

#[test]
fn messages_that_arrived_before_an_unbind_can_be_received() {
    // A child process briefly holds all of this process's descriptors open.
    let _alone = alone();
    let watchdog = Watchdog::new("messages_that_arrived_before_an_unbind_can_be_received");
    let context = Context::new();
    for (receiver, sender) in RECEIVERS {
        for endpoint in [
            free_tcp_endpoint(),
            IpcName::new().endpoint(),
            inproc_name(),
        ] {
            let pair = (receiver, sender);
            let (near, far, endpoint) = after_five_messages(&context, pair, &endpoint, false);
            near.unbind(&endpoint).unwrap();
            assert_eq!(near.peers(), 0);
            // Nothing can be sent to the peer any more, and its name is free.
            let successor = socket(&context, sender);
            successor.bytes(ids::ROUTING_ID, b"far");
            match receiver {
                Router => {
                    near.int(ids::ROUTER_MANDATORY, 1);
                    let frames = [&b"far"[..], b"too late"].map(Frame::copy_from);
                    let error = near.send(Message::from_frames(frames), Wait::Dont);
                    assert_eq!(error.unwrap_err().error.kind(), ErrorKind::HostUnreachable);
                }
                Dealer | SocketType::Pair => {
                    let error = near.send("too late", Wait::Dont).unwrap_err().error;
                    assert_eq!(error.kind(), ErrorKind::Again);
                }
                _ => {}
            }
            drop(far);
            near.bind(&endpoint).unwrap();
            successor.connect(&endpoint).unwrap();
            until(|| near.peers() == 1);
            for number in 1..5 {
                assert!(near.events().unwrap().contains(Events::READABLE));
                check_next(&near, receiver, number);
            }
            let replies = if receiver == Rep { 4 } else { 0 };
            assert_eq!(near.dropped(DropReason::PeerGone), replies);
            assert!(!near.events().unwrap().contains(Events::READABLE));
            assert_eq!(
                near.stats().unwrap().peers.len(),
                1,
                "{receiver} {endpoint}"
            );
            assert_eq!(
                near.dropped(DropReason::Refused),
                0,
                "{receiver} {endpoint}"
            );
            watchdog.feed();
        }
    }
}

#[test]
fn messages_that_arrived_before_a_disconnect_are_refused() {
    let watchdog = Watchdog::new("messages_that_arrived_before_a_disconnect_are_refused");
    let context = Context::new();
    for (receiver, sender) in RECEIVERS {
        for endpoint in [
            "tcp://127.0.0.1:*".to_owned(),
            IpcName::new().endpoint(),
            inproc_name(),
        ] {
            let pair = (receiver, sender);
            let (near, _far, endpoint) = after_five_messages(&context, pair, &endpoint, true);
            near.disconnect(&endpoint).unwrap();
            assert!(!near.events().unwrap().contains(Events::READABLE));
            assert_eq!(near.nothing(), ErrorKind::Again);
            assert_eq!(
                near.dropped(DropReason::Refused),
                4,
                "{receiver} {endpoint}"
            );
            watchdog.feed();
        }
    }
}

#[test]
fn a_request_that_can_be_received_after_an_unbind_is_not_sent_again() {
    let _watchdog = Watchdog::new("a_request_that_can_be_received_after_an_unbind");
    let context = Context::new();
    let (first, second) = (socket(&context, Rep), socket(&context, Rep));
    let req = socket(&context, Req);
    let endpoints = [&first, &second].map(|rep| rep.bind(&inproc_name()).unwrap());
    for endpoint in &endpoints {
        req.connect(endpoint).unwrap();
    }
    req.put("a request");
    until(|| first.stats().unwrap().queued_in == 1);
    first.unbind(&endpoints[0]).unwrap();
    until(|| req.peers() == 1);
    assert_eq!(second.nothing(), ErrorKind::Again);
    assert_eq!(first.take(), "a request");
}

#[test]
fn an_unbind_leaves_what_was_sent_to_linger() {
    let _watchdog = Watchdog::new("an_unbind_leaves_what_was_sent_to_linger");
    let context = Context::new();
    for (endpoint, _name) in wires() {
        let (near, far) = (context.socket(Dealer).unwrap(), socket(&context, Dealer));
        for socket in [&near, &far] {
            socket.int(ids::SNDHWM, 0);
        }
        far.int(ids::RCVHWM, 1);
        let endpoint = near.bind(&endpoint).unwrap();
        far.connect(&endpoint).unwrap();
        until(|| near.peers() == 1);
        far.put("arrived");
        until(|| near.stats().unwrap().queued_in == 1);
        for n in 0..1000 {
            near.send(numbered(n, 10_000), Wait::Forever).unwrap();
        }
        near.unbind(&endpoint).unwrap();
        until(|| near.stats().unwrap().lingering > 0);
        assert_eq!(near.stats().unwrap().queued_out, 0);
        // A message that arrives now is refused.
        far.put("too late");
        assert_eq!(near.take(), "arrived");
        for n in 0..1000 {
            assert_eq!(number(&far.recv(Wait::Forever).unwrap()), n);
        }
        until(|| near.stats().unwrap().lingering == 0);
        assert_eq!(near.nothing(), ErrorKind::Again);
        let stats = near.stats().unwrap();
        assert_eq!((stats.sent, stats.received), (1000, 1));
        assert_eq!(near.dropped(DropReason::PeerGone), 0);
    }
}

#[test]
fn messages_sent_before_a_disconnect_arrive() {
    let _watchdog = Watchdog::new("messages_sent_before_a_disconnect_arrive");
    let context = Context::new();
    for endpoint in [
        "tcp://127.0.0.1:*".to_owned(),
        IpcName::new().endpoint(),
        inproc_name(),
    ] {
        let pull = socket(&context, Pull);
        let endpoint = pull.bind(&endpoint).unwrap();
        let push = context.socket(Push).unwrap();
        push.connect(&endpoint).unwrap();
        for n in 0..300 {
            push.send(numbered(n, 1000), Wait::Forever).unwrap();
        }
        push.disconnect(&endpoint).unwrap();
        assert_eq!(
            push.disconnect(&endpoint).unwrap_err().kind(),
            ErrorKind::NoEntry
        );
        let refused = push.send("x", Wait::Dont).unwrap_err();
        assert_eq!(refused.error.kind(), ErrorKind::Again);
        for n in 0..300 {
            assert_eq!(number(&pull.recv(Wait::Forever).unwrap()), n);
        }
        until(|| pull.stats().unwrap().peers.is_empty());
    }
}

#[test]
fn a_peer_that_leaves_is_counted_with_its_messages() {
    let _watchdog = Watchdog::new("a_peer_that_leaves_is_counted_with_its_messages");
    let context = Context::new();
    let push = socket(&context, Push);
    let endpoint = push.bind(&inproc_name()).unwrap();
    let pull = socket(&context, Pull);
    pull.connect(&endpoint).unwrap();
    for _ in 0..10 {
        push.put("unread");
    }
    pull.take();
    drop(pull);
    until(|| push.stats().unwrap().peers.is_empty());
    assert_eq!(push.dropped(DropReason::PeerGone), 9);
    assert_eq!(push.stats().unwrap().sent, 10);
}

// ---- events --------------------------------------------------------------------------------------------------------

/// The kinds of the events so far, up to `last`.
fn story(events: &Monitor, last: EventKind) -> Vec<u16> {
    let mut kinds = Vec::new();
    while kinds.last() != Some(&(last as u16)) {
        kinds.push(events.next().kind);
    }
    // The number of attempts depends on time.
    kinds.dedup();
    kinds
}

#[test]
fn events_come_in_the_order_of_their_causes() {
    use EventKind::{
        Accepted, Closed, ConnectDelayed, ConnectRetried, Connected, Disconnected,
        HandshakeSucceeded, Listening, MonitorStopped,
    };
    let _watchdog = Watchdog::new("events_come_in_the_order_of_their_causes");
    let kinds = |events: &[EventKind]| events.iter().map(|kind| *kind as u16).collect::<Vec<_>>();
    let context = Context::new();
    let endpoint = free_tcp_endpoint();
    let client = socket(&context, Dealer);
    client.int(ids::RECONNECT_IVL, 1);
    let client_events = Monitor::of(&context, &client);
    client.connect(&endpoint).unwrap();
    // No socket listens yet.
    assert_eq!(
        story(&client_events, ConnectRetried),
        kinds(&[ConnectDelayed, Closed, ConnectRetried])
    );

    let server = socket(&context, Dealer);
    let server_events = Monitor::of(&context, &server);
    server.bind(&endpoint).unwrap();
    assert_eq!(
        story(&server_events, HandshakeSucceeded),
        kinds(&[Listening, Accepted, HandshakeSucceeded])
    );
    let connecting = story(&client_events, HandshakeSucceeded);
    assert!(
        connecting.ends_with(&kinds(&[ConnectDelayed, Connected, HandshakeSucceeded])),
        "{connecting:x?}"
    );

    // The server closes: its descriptor is closed, and its monitor ends with an event.
    drop(server);
    let last = story(&server_events, MonitorStopped);
    assert!(last.ends_with(&kinds(&[MonitorStopped])), "{last:x?}");
    let retrying = story(&client_events, ConnectRetried);
    assert!(
        retrying.starts_with(&kinds(&[Disconnected, ConnectRetried])),
        "{retrying:x?}"
    );

    // And so does the client, in the middle of trying.
    client.stop_monitor();
    assert_eq!(
        story(&client_events, MonitorStopped).last(),
        Some(&(MonitorStopped as u16))
    );
    assert_eq!(client_events.try_next(), None);
}

#[test]
fn a_monitor_gets_only_the_requested_events() {
    let _watchdog = Watchdog::new("a_monitor_gets_only_the_requested_events");
    let context = Context::new();
    let server = socket(&context, Dealer);
    let name = inproc_name();
    server
        .monitor(
            &name,
            EventKind::HandshakeSucceeded as u32 | EventKind::Disconnected as u32,
        )
        .unwrap();
    let events = socket(&context, SocketType::Pair);
    events.connect(&name).unwrap();
    let endpoint = server.bind("tcp://127.0.0.1:*").unwrap();
    let client = socket(&context, Dealer);
    client.connect(&endpoint).unwrap();
    let kind = |message: Message| u16::from_ne_bytes(message.head()[..2].try_into().unwrap());
    assert_eq!(
        kind(events.recv(Wait::Forever).unwrap()),
        EventKind::HandshakeSucceeded as u16
    );
    drop(client);
    assert_eq!(
        kind(events.recv(Wait::Forever).unwrap()),
        EventKind::Disconnected as u16
    );
    let refused = server.monitor("tcp://127.0.0.1:*", 0xffff).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoProtocol);
}

// ---- many threads on one socket ------------------------------------------------------------------------------------

/// Parts gather per thread: whatever the threads do, no message comes in another's parts.
#[test]
fn messages_of_many_threads_do_not_mix() {
    let _watchdog = Watchdog::new("messages_of_many_threads_do_not_mix");
    let context = Context::new();
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), inproc_name()] {
        let pull = socket(&context, Pull);
        let push = socket(&context, Push);
        push.connect(&pull.bind(&endpoint).unwrap()).unwrap();
        let (senders, each) = (4, rounds(2_000, 50_000));
        let sending = thread::spawn(move || {
            in_threads(senders, move |n| {
                for i in 0..each {
                    for (part, more) in [(n, true), (i, true), (n ^ i, false)] {
                        let frame = Frame::copy_from(&(part as u64).to_le_bytes());
                        push.send_part(frame, more, Wait::Forever).unwrap();
                    }
                }
            });
        });
        let left = Arc::new(AtomicUsize::new(senders * each));
        in_threads(2, move |_| {
            let part = |frame: Frame| u64::from_le_bytes(frame[..].try_into().unwrap());
            while left
                .try_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
            {
                let a = part(pull.recv_part(Wait::Forever).unwrap());
                assert!(pull.rcvmore());
                let b = part(pull.recv_part(Wait::Forever).unwrap());
                assert!(pull.rcvmore());
                let c = part(pull.recv_part(Wait::Forever).unwrap());
                assert!(!pull.rcvmore());
                assert_eq!(a ^ b, c);
            }
        });
        sending.join().unwrap();
    }
}
