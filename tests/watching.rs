//! Events of a socket, and waiting for its peers.

mod common;

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{Watchdog, inproc_name};
use zeroxide::{
    Context, ErrorKind, EventKind, EventStream, Message, MonitorEvent, Proxy, Socket, SocketType,
    Wait,
};

const ALL: u32 = 0xFFFF;

fn soon(millis: u64) -> Wait {
    Wait::Until(Instant::now() + Duration::from_millis(millis))
}

fn until(events: &EventStream, kind: EventKind) -> MonitorEvent {
    loop {
        let event = events.next(Wait::Forever).unwrap().expect("not the end");
        if event.kind == kind {
            return event;
        }
    }
}

fn pair(context: &Context, bound: SocketType, connected: SocketType) -> (Socket, Socket) {
    let (one, two) = (context.socket(bound), context.socket(connected));
    let (one, two) = (one.unwrap(), two.unwrap());
    two.connect(&one.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    (one, two)
}

#[test]
fn events_have_the_peer_and_the_reason() {
    let _watchdog = Watchdog::new("events_have_the_peer_and_the_reason");
    let context = Context::new();
    let pull = context.socket(SocketType::Pull).unwrap();
    let events = pull.event_stream(ALL).unwrap();
    assert_eq!(
        events.next(Wait::Dont).unwrap_err().kind(),
        ErrorKind::Again
    );
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(&endpoint).unwrap();
    let listening = events.next(Wait::Forever).unwrap().unwrap();
    assert_eq!(listening.kind, EventKind::Listening);
    assert_eq!(listening.endpoint, endpoint);
    let accepted = until(&events, EventKind::Accepted);
    assert!(accepted.party.address.starts_with("127.0.0.1:"));
    assert!(accepted.party.peer.is_none());
    let ready = until(&events, EventKind::HandshakeSucceeded);
    assert_eq!(ready.party.address, accepted.party.address);
    assert_eq!(
        ready.party.peer.unwrap().socket_type,
        Some(SocketType::Push)
    );
    push.close(None);
    let gone = until(&events, EventKind::Disconnected);
    assert_eq!(gone.party.address, accepted.party.address);
    assert!(gone.reason.is_some());
    pull.close(None);
    until(&events, EventKind::MonitorStopped);
    assert!(events.next(Wait::Forever).unwrap().is_none());
}

/// How a connection ends in its handshake.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Garbage,
    Close,
    Silence,
    Unbind,
}

#[test]
fn an_accepted_connection_that_ends_in_its_handshake_is_reported() {
    let _watchdog = Watchdog::new("an_accepted_connection_that_ends_in_its_handshake_is_reported");
    let context = Context::new();
    for scheme in ["tcp", "ws"] {
        for end in [End::Garbage, End::Close, End::Silence, End::Unbind] {
            let pull = context.socket(SocketType::Pull).unwrap();
            if end == End::Silence {
                pull.set_handshake_ivl(Some(Duration::from_millis(20)))
                    .unwrap();
            }
            let events = pull.event_stream(ALL).unwrap();
            let endpoint = pull.bind(&format!("{scheme}://127.0.0.1:*")).unwrap();
            let address = endpoint.split('/').nth(2).unwrap();
            let mut peer = TcpStream::connect(address).unwrap();
            let accepted = until(&events, EventKind::Accepted);
            match end {
                End::Garbage => peer.write_all(b"POST / HTTP/1.1\r\n\r\n").unwrap(),
                End::Close => peer.shutdown(Shutdown::Both).unwrap(),
                End::Silence => {}
                End::Unbind => pull.unbind(&endpoint).unwrap(),
            }
            let gone = until(&events, EventKind::Disconnected);
            assert_eq!(gone.value, accepted.value, "{scheme} {end:?}");
            assert_eq!(gone.party.address, accepted.party.address);
            assert!(gone.reason.is_some());
            pull.close(None);
            let after = std::iter::from_fn(|| events.next(Wait::Forever).unwrap());
            assert!(
                after
                    .into_iter()
                    .all(|event| event.kind != EventKind::Disconnected)
            );
        }
    }
}

#[test]
fn a_connection_that_this_side_ends_is_reported() {
    let _watchdog = Watchdog::new("a_connection_that_this_side_ends_is_reported");
    let context = Context::new();
    for linger in [Some(Duration::ZERO), None] {
        let pull = context.socket(SocketType::Pull).unwrap();
        pull.set_linger(linger).unwrap();
        let events = pull.event_stream(ALL).unwrap();
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let push = context.socket(SocketType::Push).unwrap();
        push.connect(&endpoint).unwrap();
        let accepted = until(&events, EventKind::Accepted);
        until(&events, EventKind::HandshakeSucceeded);
        pull.unbind(&endpoint).unwrap();
        // The listener reports its own end, too.
        while until(&events, EventKind::Closed).value != accepted.value {}
    }
}

#[test]
fn a_reader_that_waits_is_woken_by_every_end() {
    let _watchdog = Watchdog::new("a_reader_that_waits_is_woken_by_every_end");
    let context = Context::new();
    let socket = context.socket(SocketType::Pull).unwrap();
    let closed = socket.event_stream(ALL).unwrap();
    let terminated = socket.event_stream(ALL).unwrap();
    thread::scope(|scope| {
        let one = scope.spawn(|| closed.next(Wait::Forever));
        let two = scope.spawn(|| terminated.next(Wait::Forever));
        closed.close();
        assert!(one.join().unwrap().unwrap().is_none());
        context.shutdown();
        let error = two.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Terminated);
    });
}

#[test]
fn waiting_for_peers() {
    let _watchdog = Watchdog::new("waiting_for_peers");
    let context = Context::new();
    let (pull, push) = pair(&context, SocketType::Pull, SocketType::Push);
    assert_eq!(push.wait_connected(1, Wait::Forever).unwrap(), 1);
    assert_eq!(pull.wait_connected(1, Wait::Forever).unwrap(), 1);
    let error = pull.wait_connected(2, soon(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Again);
    assert!(
        error.to_string().contains("1 of 2 peers are connected"),
        "{error}"
    );
    push.close(None);
    common::until(|| pull.count_connected().unwrap() == 0);
    pull.close(None);
    assert_eq!(
        pull.wait_connected(1, Wait::Forever).unwrap_err().kind(),
        ErrorKind::NotSocket
    );
}

#[test]
fn waiting_for_subscriptions() {
    let _watchdog = Watchdog::new("waiting_for_subscriptions");
    let context = Context::new();
    for kind in [SocketType::Pub, SocketType::Xpub] {
        let (publisher, subscriber) = pair(&context, kind, SocketType::Sub);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| publisher.wait_subscribed(b"ab", 1, Wait::Forever));
            subscriber.subscribe(b"a").unwrap();
            assert_eq!(waiting.join().unwrap().unwrap(), 1);
        });
        assert_eq!(publisher.count_subscribed(b"b").unwrap(), 0);
        assert_eq!(publisher.count_subscribed(b"").unwrap(), 0);
    }
    let (pull, _push) = pair(&context, SocketType::Pull, SocketType::Push);
    let error = pull.count_subscribed(b"").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
}

/// Each locks both sockets, one of them the other way round.
#[test]
fn two_proxies_over_the_same_sockets_do_not_block_each_other() {
    let _watchdog = Watchdog::new("two_proxies_over_the_same_sockets_do_not_block_each_other");
    let context = Context::new();
    let end = |socket: SocketType| {
        let (bound, peer) = (
            context.socket(socket).unwrap(),
            context.socket(socket).unwrap(),
        );
        let name = inproc_name();
        bound.bind(&name).unwrap();
        peer.connect(&name).unwrap();
        (bound, peer)
    };
    let (front, left) = end(SocketType::Dealer);
    let (back, right) = end(SocketType::Dealer);
    const COUNT: usize = 20_000;
    thread::scope(|scope| {
        for (one, other) in [(&front, &back), (&back, &front)] {
            scope.spawn(|| {
                let run = Proxy::new(one.clone(), other.clone(), None, None).run();
                assert_eq!(run.unwrap_err().kind(), ErrorKind::Terminated);
            });
        }
        let talkers: Vec<_> = [&left, &right]
            .into_iter()
            .flat_map(|socket| {
                let send = scope.spawn(move || {
                    for _ in 0..COUNT {
                        socket.send("x", Wait::Forever).unwrap();
                    }
                });
                let receive = scope.spawn(move || {
                    for _ in 0..COUNT {
                        socket.recv(Wait::Forever).unwrap();
                    }
                });
                [send, receive]
            })
            .collect();
        talkers
            .into_iter()
            .for_each(|talker| talker.join().unwrap());
        context.shutdown();
    });
}

#[test]
fn a_monitor_gets_the_direction_of_each_message() {
    let _watchdog = Watchdog::new("a_monitor_gets_the_direction_of_each_message");
    let context = Context::new();
    let names = [inproc_name(), inproc_name(), inproc_name()];
    let kinds = [SocketType::Router, SocketType::Router, SocketType::Pair];
    let ends = [SocketType::Dealer, SocketType::Dealer, SocketType::Pair];
    let mut bound = Vec::new();
    let mut peers = Vec::new();
    for ((kind, end), name) in kinds.into_iter().zip(ends).zip(&names) {
        let (socket, peer) = (context.socket(kind).unwrap(), context.socket(end).unwrap());
        socket.bind(name).unwrap();
        if end == SocketType::Dealer {
            let id = if peers.is_empty() { "alice" } else { "bob" };
            peer.set_option(zeroxide::ids::ROUTING_ID, &id.into())
                .unwrap();
        }
        peer.connect(name).unwrap();
        socket.wait_connected(1, Wait::Forever).unwrap();
        bound.push(socket);
        peers.push(peer);
    }
    let text = |message: Message| -> Vec<String> {
        let frames = message.iter();
        frames
            .map(|frame| String::from_utf8_lossy(frame).into_owned())
            .collect()
    };
    thread::scope(|scope| {
        let [front, back, monitor] = [&bound[0], &bound[1], &bound[2]].map(Clone::clone);
        scope.spawn(|| {
            let mut proxy = Proxy::monitored(front, back, monitor, "in".into(), "out".into());
            proxy.run().unwrap_err()
        });
        let question = Message::from_frames(["bob".into(), "question".into()]);
        peers[0].send(question, Wait::Forever).unwrap();
        let received = peers[1].recv(Wait::Forever).unwrap();
        assert_eq!(text(received), ["alice", "question"]);
        let seen = peers[2].recv(Wait::Forever).unwrap();
        assert_eq!(text(seen), ["in", "bob", "alice", "question"]);
        context.shutdown();
    });
}
