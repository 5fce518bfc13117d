//! Access control: ZAP handlers of every kind, and lists without a handler.

mod common;

use std::io::Write;
use std::thread::{self, JoinHandle};

use common::{SocketExt, Watchdog, message, raw, text};
use zeroxide::{
    AllowList, Context, DropReason, EventKind, Frame, Key, Message, Passwords, Socket, SocketType,
    Value, Wait, curve_keypair, ids,
};

const HANDLER: &str = "inproc://zeromq.zap.01";

/// A monitor of a socket, for the outcome of its handshakes.
struct Monitor(Socket);

impl Monitor {
    fn new(context: &Context, socket: &Socket) -> Monitor {
        let endpoint = common::inproc_name();
        let kinds = EventKind::HandshakeSucceeded as u32
            | EventKind::HandshakeFailedAuth as u32
            | EventKind::HandshakeFailedProtocol as u32
            | EventKind::HandshakeFailedNoDetail as u32;
        socket.monitor(&endpoint, kinds).unwrap();
        let pair = context.socket(SocketType::Pair).unwrap();
        pair.connect(&endpoint).unwrap();
        Monitor(pair)
    }

    /// The next event and its value.
    fn next(&self) -> (u16, u32) {
        let event = self.0.recv(Wait::Forever).unwrap();
        let head = event.head();
        (
            u16::from_ne_bytes([head[0], head[1]]),
            u32::from_ne_bytes([head[2], head[3], head[4], head[5]]),
        )
    }

    fn expect(&self, kind: EventKind, value: u32) {
        assert_eq!(self.next(), (kind as u16, value));
    }
}

/// Binds the socket that receives the requests.
fn place(context: &Context, socket_type: SocketType) -> Socket {
    let socket = context.socket(socket_type).unwrap();
    socket.bind(HANDLER).unwrap();
    socket
}

/// A running handler, until it closes or the test ends its context.
struct Handler {
    context: Context,
    thread: Option<JoinHandle<()>>,
}

impl Handler {
    /// Waits until it has gone by itself.
    fn join(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.context.shutdown();
            assert!(thread.join().is_ok() || thread::panicking());
        }
    }
}

/// A handler that answers requests with the result of `answer`, until that returns nothing.
fn handler(
    context: &Context,
    socket_type: SocketType,
    answer: impl Fn(Vec<Frame>) -> Option<Vec<Frame>> + Send + 'static,
) -> Handler {
    let envelope = if socket_type == SocketType::Rep { 0 } else { 2 };
    answer_on(context, place(context, socket_type), envelope, answer)
}

/// The same for this socket, whose requests have an envelope of this many frames.
fn answer_on(
    context: &Context,
    socket: Socket,
    envelope: usize,
    answer: impl Fn(Vec<Frame>) -> Option<Vec<Frame>> + Send + 'static,
) -> Handler {
    let thread = thread::spawn(move || {
        // Ends with the context.
        while let Ok(request) = socket.recv(Wait::Forever) {
            let mut frames: Vec<Frame> = request.into_iter().collect();
            let body = frames.split_off(envelope);
            let Some(reply) = answer(body) else { break };
            frames.extend(reply);
            socket
                .send(Message::from_frames(frames), Wait::Forever)
                .unwrap();
        }
        socket.close(None);
    });
    Handler {
        context: context.clone(),
        thread: Some(thread),
    }
}

/// A handler that accepts every peer.
fn gate(context: &Context) -> Handler {
    handler(context, SocketType::Rep, |request| {
        reply(&request, "200", "", b"")
    })
}

fn reply(request: &[Frame], status: &str, user: &str, metadata: &[u8]) -> Option<Vec<Frame>> {
    let id = request[1].clone();
    let fixed = [Frame::from("1.0"), id, status.into(), "because".into()];
    Some([&fixed[..], &[user.into(), metadata.into()]].concat())
}

/// A server of its type, and where it is.
fn server(
    context: &Context,
    socket_type: SocketType,
    options: &[(i32, Value)],
) -> (Socket, String) {
    let socket = context.socket(socket_type).unwrap();
    for (id, value) in options {
        socket.set_option(*id, value).unwrap();
    }
    let endpoint = socket.bind("tcp://127.0.0.1:*").unwrap();
    (socket, endpoint)
}

fn client(context: &Context, socket_type: SocketType, endpoint: &str) -> Socket {
    let socket = context.socket(socket_type).unwrap();
    socket.set_option(ids::LINGER, &Value::Int(0)).unwrap();
    socket.connect(endpoint).unwrap();
    socket
}

/// A PULL with these options, the events of its handshakes, and a PUSH that connects to it.
fn meet(context: &Context, options: &[(i32, Value)]) -> (Socket, Monitor, Socket) {
    let (pull, endpoint) = server(context, SocketType::Pull, options);
    let monitor = Monitor::new(context, &pull);
    let push = client(context, SocketType::Push, &endpoint);
    (pull, monitor, push)
}

fn plain_client(context: &Context, endpoint: &str, user: &str, password: &str) -> Socket {
    let socket = context.socket(SocketType::Push).unwrap();
    socket.set_option(ids::LINGER, &Value::Int(0)).unwrap();
    socket.password_client(user, password.as_bytes()).unwrap();
    socket.connect(endpoint).unwrap();
    socket
}

fn domain() -> [(i32, Value); 1] {
    [(ids::ZAP_DOMAIN, Value::from("home"))]
}

#[test]
fn a_handler_of_either_type_lets_a_peer_in_under_a_name() {
    let _dog = Watchdog::new("a_handler_of_either_type_lets_a_peer_in_under_a_name");
    for socket_type in [SocketType::Rep, SocketType::Router] {
        let context = Context::new();
        let _asked = handler(&context, socket_type, |request| {
            let [version, _, domain, address, identity, mechanism] = &request[..] else {
                panic!("{request:?}");
            };
            let fixed = [version, domain, address, identity, mechanism].map(|frame| frame.to_vec());
            assert_eq!(fixed, [&b"1.0"[..], b"home", b"127.0.0.1", b"me", b"NULL"]);
            reply(&request, "200", "alice", b"\x05X-Age\0\0\0\x0242")
        });
        let options = [domain()[0].clone(), (ids::ROUTING_ID, Value::from("me"))];
        let (rep, endpoint) = server(&context, SocketType::Rep, &options);
        let monitor = Monitor::new(&context, &rep);
        let req = client(&context, SocketType::Req, &endpoint);
        req.send(message([b"hello"]), Wait::Forever).unwrap();
        let (hello, peer) = rep.recv_from(Wait::Forever).unwrap();
        assert_eq!(text(&hello), "hello");
        let peer = peer.unwrap();
        assert_eq!(peer.user_id.as_deref(), Some("alice"));
        let find = |name: &str| peer.properties.iter().find(|(known, _)| known == name);
        assert_eq!(find("X-Age").unwrap().1, "42");
        assert_eq!(find("Authenticated").unwrap().1, "no");
        monitor.expect(EventKind::HandshakeSucceeded, 0);
        rep.send(message([b"world"]), Wait::Forever).unwrap();
        assert_eq!(text(&req.recv(Wait::Forever).unwrap()), "world");
    }
}

#[test]
fn the_options_of_a_handler_add_nothing_to_its_answers() {
    let _dog = Watchdog::new("the_options_of_a_handler_add_nothing_to_its_answers");
    let context = Context::new();
    let socket = context.socket(SocketType::Router).unwrap();
    for (id, value) in [
        (ids::PROBE_ROUTER, Value::Int(1)),
        (ids::HELLO_MSG, Value::from("hello")),
        (ids::DISCONNECT_MSG, Value::from("bye")),
    ] {
        socket.set_option(id, &value).unwrap();
    }
    socket.bind(HANDLER).unwrap();
    let _asked = answer_on(&context, socket, 2, |request| {
        reply(&request, "200", "alice", b"")
    });
    let (rep, endpoint) = server(&context, SocketType::Rep, &domain());
    let monitor = Monitor::new(&context, &rep);
    let _req = client(&context, SocketType::Req, &endpoint);
    monitor.expect(EventKind::HandshakeSucceeded, 0);
}

#[test]
fn a_refusal_has_a_status() {
    let _dog = Watchdog::new("a_refusal_has_a_status");
    for (status, number) in [("300", 300), ("400", 400), ("500", 500)] {
        let context = Context::new();
        let _asked = handler(&context, SocketType::Rep, move |request| {
            reply(&request, status, "", b"")
        });
        let (_pull, monitor, _push) = meet(&context, &domain());
        monitor.expect(EventKind::HandshakeFailedAuth, number);
        // It tries again.
        monitor.expect(EventKind::HandshakeFailedAuth, number);
    }
}

#[test]
fn a_peer_that_floods_and_leaves_before_the_answer_is_released() {
    let _dog = Watchdog::new("a_peer_that_floods_and_leaves_before_the_answer_is_released");
    let context = Context::new();
    let silent = place(&context, SocketType::Rep);
    let options = [
        domain()[0].clone(),
        // Nothing else would end it.
        (ids::HANDSHAKE_IVL, Value::Int(0)),
    ];
    let (rep, endpoint) = server(&context, SocketType::Rep, &options);
    let monitor = Monitor::new(&context, &rep);
    let mut peer = raw::dial(&endpoint);
    let ready = raw::frame(raw::COMMAND, &raw::ready("REQ"));
    let said = [&raw::greeting()[..], &ready, b"\0"].concat();
    peer.write_all(&said).unwrap();
    let question = silent.recv(Wait::Forever).unwrap();
    assert_eq!(question.head().as_slice(), b"1.0");
    drop(peer);
    const EPIPE: u32 = 32;
    monitor.expect(EventKind::HandshakeFailedNoDetail, EPIPE);
}

#[test]
fn malformed_answers_are_refused() {
    let _dog = Watchdog::new("malformed_answers_are_refused");
    type Spoil = fn(&mut Vec<Frame>);
    let answers: [(&str, Spoil, u32); 6] = [
        ("short", |reply| drop(reply.pop()), 0x2000_0001),
        ("id", |reply| reply[1] = Frame::from("no"), 0x2000_0002),
        (
            "version",
            |reply| reply[0] = Frame::from("2.0"),
            0x2000_0003,
        ),
        ("status", |reply| reply[2] = Frame::from("999"), 0x2000_0004),
        ("metadata", |reply| reply[5] = Frame::from("x"), 0x2000_0005),
        ("long", |reply| reply.push(Frame::new()), 0x2000_0001),
    ];
    for (what, spoil, code) in answers {
        let context = Context::new();
        let _asked = handler(&context, SocketType::Rep, move |request| {
            let mut reply = reply(&request, "200", "", b"")?;
            spoil(&mut reply);
            Some(reply)
        });
        let (_pull, monitor, _push) = meet(&context, &domain());
        let event = monitor.next();
        assert_eq!(
            event,
            (EventKind::HandshakeFailedProtocol as u16, code),
            "{what}"
        );
    }
}

#[test]
fn a_handler_of_the_wrong_type_admits_no_peer() {
    let _dog = Watchdog::new("a_handler_of_the_wrong_type_admits_no_peer");
    let context = Context::new();
    let _odd = place(&context, SocketType::Pull);
    let (_pull, monitor, _push) = meet(&context, &domain());
    monitor.expect(EventKind::HandshakeFailedProtocol, 0x2000_0000);
}

#[test]
fn without_a_handler_the_mechanism_decides() {
    let _dog = Watchdog::new("without_a_handler_the_mechanism_decides");
    let context = Context::new();
    let (_pull, monitor, _push) = meet(&context, &domain());
    monitor.expect(EventKind::HandshakeSucceeded, 0);

    let enforced = [
        domain()[0].clone(),
        (ids::ZAP_ENFORCE_DOMAIN, Value::Int(1)),
    ];
    let (_pull, monitor, _push) = meet(&context, &enforced);
    monitor.expect(EventKind::HandshakeFailedNoDetail, 14);

    let (pull, endpoint) = server(
        &context,
        SocketType::Pull,
        &[(ids::PLAIN_SERVER, Value::Int(1))],
    );
    let monitor = Monitor::new(&context, &pull);
    let _push = plain_client(&context, &endpoint, "user", "password");
    monitor.expect(EventKind::HandshakeFailedNoDetail, 14);
}

#[test]
fn a_handler_that_closes_takes_its_requests_with_it() {
    let _dog = Watchdog::new("a_handler_that_closes_takes_its_requests_with_it");
    let context = Context::new();
    let dying = handler(&context, SocketType::Rep, |_| None);
    let (pull, monitor, push) = meet(&context, &domain());
    monitor.expect(EventKind::HandshakeFailedNoDetail, 14);
    dying.join();
    // The next one is asked when the peer comes again.
    let _asked = gate(&context);
    while monitor.next().0 != EventKind::HandshakeSucceeded as u16 {}
    push.send(message([b"made it"]), Wait::Forever).unwrap();
    assert_eq!(text(&pull.recv(Wait::Forever).unwrap()), "made it");
}

#[test]
fn a_slow_handler_is_waited_for_as_long_as_a_handshake_may_take() {
    let _dog = Watchdog::new("a_slow_handler_is_waited_for_as_long_as_a_handshake_may_take");
    let context = Context::new();
    let slow = place(&context, SocketType::Rep);
    let options = [domain()[0].clone(), (ids::HANDSHAKE_IVL, Value::Int(50))];
    let (_pull, monitor, push) = meet(&context, &options);
    monitor.expect(EventKind::HandshakeFailedNoDetail, 110);
    push.close(None);
    // Requests that no connection waits for are no longer in its queue.
    common::until(|| slow.recv(Wait::Dont).is_err());
    assert_eq!(slow.stats().unwrap().queued_in, 0);
}

#[test]
fn an_answer_that_comes_too_late_does_no_harm() {
    let _dog = Watchdog::new("an_answer_that_comes_too_late_does_no_harm");
    let context = Context::new();
    let slow = place(&context, SocketType::Rep);
    let options = [domain()[0].clone(), (ids::HANDSHAKE_IVL, Value::Int(300))];
    let (pull, monitor, push) = meet(&context, &options);
    let answer = |request: Message| {
        let request: Vec<Frame> = request.into_iter().collect();
        let frames = reply(&request, "200", "", b"").unwrap();
        slow.send(Message::from_frames(frames), Wait::Forever)
            .unwrap();
    };
    let late = slow.recv(Wait::Forever).unwrap();
    monitor.expect(EventKind::HandshakeFailedNoDetail, 110);
    answer(late);
    common::until(|| {
        if let Ok(request) = slow.recv(Wait::Dont) {
            answer(request);
        }
        monitor.0.recv(Wait::Dont).is_ok_and(|event| {
            event.head()[..2] == (EventKind::HandshakeSucceeded as u16).to_ne_bytes()
        })
    });
    push.send(message([b"made it"]), Wait::Forever).unwrap();
    assert_eq!(text(&pull.recv(Wait::Forever).unwrap()), "made it");
}

#[test]
fn questions_of_peers_that_went_do_not_pile_up() {
    let _dog = Watchdog::new("questions_of_peers_that_went_do_not_pile_up");
    let context = Context::new();
    let idle = place(&context, SocketType::Rep);
    let options = [domain()[0].clone(), (ids::HANDSHAKE_IVL, Value::Int(20))];
    let (pull, endpoint) = server(&context, SocketType::Pull, &options);
    for _ in 0..200 {
        let mut peer = raw::dial(&endpoint);
        std::io::Write::write_all(&mut peer, &raw::greeting()).unwrap();
    }
    common::until(|| {
        idle.stats().unwrap().queued_in == 0 && idle.stats().unwrap().peers.is_empty()
    });
    drop(pull);
}

#[test]
fn a_handler_that_does_not_answer_has_a_bounded_number_of_questions() {
    let _dog = Watchdog::new("a_handler_that_does_not_answer_has_a_bounded_number_of_questions");
    let _alone = common::alone();
    let context = Context::new();
    let idle = place(&context, SocketType::Rep);
    let options = [
        domain()[0].clone(),
        // No time limit ends the handshakes.
        (ids::HANDSHAKE_IVL, Value::Int(0)),
        (ids::BACKLOG, Value::Int(4096)),
    ];
    let (pull, endpoint) = server(&context, SocketType::Pull, &options);
    let monitor = Monitor::new(&context, &pull);
    const PEERS: usize = 2300;
    const BOUND: usize = 2 * 1024;
    let peers: Vec<_> = (0..PEERS)
        .map(|_| {
            let mut peer = std::net::TcpStream::connect(common::address(&endpoint)).unwrap();
            std::io::Write::write_all(&mut peer, &raw::greeting()).unwrap();
            peer
        })
        .collect();
    // All peers ask in the end: those that have waited longest are disconnected, each with an event.
    monitor.expect(EventKind::HandshakeFailedNoDetail, 103);
    common::until(|| {
        let questions = idle.stats().unwrap().peers.len();
        assert!(questions <= BOUND, "{questions}");
        (1..=BOUND - (PEERS - BOUND)).contains(&questions)
    });
    drop((peers, pull));
    common::until(|| idle.stats().unwrap().peers.is_empty());
}

#[test]
fn passwords_are_checked_without_a_handler() {
    let _dog = Watchdog::new("passwords_are_checked_without_a_handler");
    let context = Context::new();
    let users = Passwords::new();
    users.add("bob", "builder");
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.password_server(&users).unwrap();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    assert!(pull.password_server(&users).is_err());
    let monitor = Monitor::new(&context, &pull);

    let bob = plain_client(&context, &endpoint, "bob", "builder");
    monitor.expect(EventKind::HandshakeSucceeded, 0);
    bob.send(message([b"hello"]), Wait::Forever).unwrap();
    let (_, peer) = pull.recv_from(Wait::Forever).unwrap();
    assert_eq!(peer.unwrap().user_id.as_deref(), Some("bob"));

    let eve = plain_client(&context, &endpoint, "eve", "builder");
    monitor.expect(EventKind::HandshakeFailedAuth, 400);
    // Counts from the next attempt on.
    users.add("eve", "builder");
    while monitor.next().0 != EventKind::HandshakeSucceeded as u16 {}
    eve.close(None);

    users.remove("bob");
    assert!(users.disconnect_strangers() >= 1);
    monitor.expect(EventKind::HandshakeFailedAuth, 400);

    // Without the mechanism there is nothing to check.
    let _null = client(&context, SocketType::Push, &endpoint);
    while monitor.next().0 != EventKind::HandshakeFailedProtocol as u16 {}
}

/// A client with a key of its own.
fn curve_client(context: &Context, endpoint: &str, server: &Key, secret: &Key) -> Socket {
    let socket = context.socket(SocketType::Push).unwrap();
    socket.set_option(ids::LINGER, &Value::Int(0)).unwrap();
    socket.secure_client(server, Some(secret)).unwrap();
    socket.connect(endpoint).unwrap();
    socket
}

#[test]
fn keys_are_checked_without_a_handler() {
    let _dog = Watchdog::new("keys_are_checked_without_a_handler");
    let context = Context::new();
    // It would refuse every peer, but it is not asked.
    let _odd = place(&context, SocketType::Pull);
    let (server_public, server_secret) = curve_keypair().unwrap();
    let (alice_public, alice_secret) = curve_keypair().unwrap();
    let (_, eve_secret) = curve_keypair().unwrap();
    let allowed = AllowList::new();
    allowed.add(alice_public, "alice");
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.secure_server(&server_secret, &allowed).unwrap();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let monitor = Monitor::new(&context, &pull);

    let alice = curve_client(&context, &endpoint, &server_public, &alice_secret);
    monitor.expect(EventKind::HandshakeSucceeded, 0);
    alice.send(message([b"hello"]), Wait::Forever).unwrap();
    let (hello, peer) = pull.recv_from(Wait::Forever).unwrap();
    let peer = peer.unwrap();
    assert_eq!((text(&hello).as_str(), peer.mechanism), ("hello", "CURVE"));
    assert_eq!(peer.user_id.as_deref(), Some("alice"));

    let eve = curve_client(&context, &endpoint, &server_public, &eve_secret);
    monitor.expect(EventKind::HandshakeFailedAuth, 400);
    eve.close(None);
    allowed.replace([]);
    assert_eq!(allowed.disconnect_strangers(), 1);
    monitor.expect(EventKind::HandshakeFailedAuth, 400);
    allowed.add(alice_public, "");
    while monitor.next().0 != EventKind::HandshakeSucceeded as u16 {}
}

#[test]
fn a_server_that_connects_checks_as_well() {
    let _dog = Watchdog::new("a_server_that_connects_checks_as_well");
    let context = Context::new();
    let (server_public, server_secret) = curve_keypair().unwrap();
    let (alice_public, alice_secret) = curve_keypair().unwrap();
    let alice = context.socket(SocketType::Dealer).unwrap();
    alice
        .secure_client(&server_public, Some(&alice_secret))
        .unwrap();
    let endpoint = alice.bind("tcp://127.0.0.1:*").unwrap();

    let allowed = AllowList::new();
    let server = context.socket(SocketType::Dealer).unwrap();
    server.secure_server(&server_secret, &allowed).unwrap();
    let monitor = Monitor::new(&context, &server);
    server.connect(&endpoint).unwrap();
    monitor.expect(EventKind::HandshakeFailedAuth, 400);
    allowed.add(alice_public, "");
    while monitor.next().0 != EventKind::HandshakeSucceeded as u16 {}
    server
        .send(message([b"there you are"]), Wait::Forever)
        .unwrap();
    assert_eq!(text(&alice.recv(Wait::Forever).unwrap()), "there you are");
    // The connection ends, and is retried as long as no peer is accepted.
    allowed.remove(&alice_public);
    assert_eq!(allowed.disconnect_strangers(), 1);
    monitor.expect(EventKind::HandshakeFailedAuth, 400);
}

#[test]
fn nothing_is_sent_to_a_peer_that_was_taken_off_the_list() {
    let _dog = Watchdog::new("nothing_is_sent_to_a_peer_that_was_taken_off_the_list");
    let context = Context::new();
    let (server_public, server_secret) = curve_keypair().unwrap();
    let (alice_public, alice_secret) = curve_keypair().unwrap();
    for _ in 0..common::rounds(50, 500) {
        let allowed = AllowList::new();
        allowed.add(alice_public, "alice");
        let server = context.socket(SocketType::Dealer).unwrap();
        server.set_option(ids::LINGER, &Value::Int(0)).unwrap();
        server.secure_server(&server_secret, &allowed).unwrap();
        let endpoint = server.bind("tcp://127.0.0.1:*").unwrap();
        let monitor = Monitor::new(&context, &server);
        let alice = context.socket(SocketType::Dealer).unwrap();
        for id in [ids::LINGER, ids::RECONNECT_IVL] {
            alice.set_option(id, &Value::Int(1)).unwrap();
        }
        alice
            .secure_client(&server_public, Some(&alice_secret))
            .unwrap();
        alice.connect(&endpoint).unwrap();
        monitor.expect(EventKind::HandshakeSucceeded, 0);
        // The connection is idle, and its peer waits for an answer: the sender would write at once.
        alice.send(message([b"hello"]), Wait::Forever).unwrap();
        assert_eq!(text(&server.recv(Wait::Forever).unwrap()), "hello");
        allowed.remove(&alice_public);
        assert_eq!(allowed.disconnect_strangers(), 1);
        // Its receiver may no longer exist.
        let _ = server.send(message([b"secret"]), Wait::Dont);
        // It has come back, and so has read everything of the connection before.
        monitor.expect(EventKind::HandshakeFailedAuth, 400);
        assert!(alice.recv(Wait::Dont).is_err());
    }
}

/// A peer to which a server connects: a DEALER that announces its name.
fn dealer(context: &Context, name: &str, server: &Key, secret: &Key) -> Socket {
    let socket = context.socket(SocketType::Dealer).unwrap();
    let routing_id = Value::from(name);
    socket.set_option(ids::ROUTING_ID, &routing_id).unwrap();
    socket.secure_client(server, Some(secret)).unwrap();
    socket
}

#[test]
fn a_peer_that_replaces_another_is_not_taken_for_it() {
    let _dog = Watchdog::new("a_peer_that_replaces_another_is_not_taken_for_it");
    let context = Context::new();
    let (server_public, server_secret) = curve_keypair().unwrap();
    let (alice_public, alice_secret) = curve_keypair().unwrap();
    let (eve_public, eve_secret) = curve_keypair().unwrap();
    let allowed = AllowList::new();
    allowed.add(alice_public, "alice");
    allowed.add(eve_public, "eve");
    for server_type in [SocketType::Dealer, SocketType::Router] {
        let name = common::IpcName::new();
        let endpoint = name.endpoint();
        let server = context.socket(server_type).unwrap();
        server
            .set_option(ids::RECONNECT_IVL, &Value::Int(1))
            .unwrap();
        server.secure_server(&server_secret, &allowed).unwrap();
        server.connect(&endpoint).unwrap();
        let is_router = server_type == SocketType::Router;
        let send = |to: &str, body: &str| {
            let body = match is_router {
                true => message([to.as_bytes(), body.as_bytes()]),
                false => message([body.as_bytes()]),
            };
            server.send(body, Wait::Forever).unwrap();
        };
        let alone = || common::until(|| server.count_connected().unwrap() == 0);
        let there = || server.wait_connected(1, Wait::Forever).unwrap();

        // The same peer again is the same peer.
        let alice = dealer(&context, "alice", &server_public, &alice_secret);
        alice.bind(&endpoint).unwrap();
        there();
        alice.send(message([b"1"]), Wait::Forever).unwrap();
        alice.close(None);
        alone();
        send("alice", "still for alice");
        let alice = dealer(&context, "alice", &server_public, &alice_secret);
        alice.bind(&endpoint).unwrap();
        assert_eq!(text(&alice.recv(Wait::Forever).unwrap()), "still for alice");
        alice.send(message([b"2"]), Wait::Forever).unwrap();
        alice.close(None);
        alone();

        // Another one is not.
        send("alice", "for alice only");
        let eve = dealer(&context, "eve", &server_public, &eve_secret);
        eve.bind(&endpoint).unwrap();
        there();
        eve.send(message([b"3"]), Wait::Forever).unwrap();
        let mut got = Vec::new();
        while got.len() < 3 {
            let (body, peer) = server.recv_from(Wait::Forever).unwrap();
            got.push((text(&body), peer.unwrap().user_id.clone().unwrap()));
        }
        let expected = match is_router {
            true => ["alice/1", "alice/2", "eve/3"],
            false => ["1", "2", "3"],
        };
        let whose = ["alice", "alice", "eve"];
        got.sort();
        for ((body, user), (said, who)) in got.iter().zip(expected.iter().zip(whose)) {
            assert_eq!((body.as_str(), user.as_str()), (*said, who));
        }
        send("eve", "for eve");
        assert_eq!(text(&eve.recv(Wait::Forever).unwrap()), "for eve");
        assert_eq!(server.dropped(DropReason::PeerGone), 1);
    }
}

#[test]
fn messages_of_a_closed_socket_for_one_peer_do_not_go_to_another() {
    let _dog = Watchdog::new("messages_of_a_closed_socket_for_one_peer_do_not_go_to_another");
    let context = Context::new();
    let (server_public, server_secret) = curve_keypair().unwrap();
    let (alice_public, alice_secret) = curve_keypair().unwrap();
    let (eve_public, eve_secret) = curve_keypair().unwrap();
    let allowed = AllowList::new();
    allowed.add(alice_public, "alice");
    allowed.add(eve_public, "eve");
    let name = common::IpcName::new();
    let endpoint = name.endpoint();
    let server = context.socket(SocketType::Dealer).unwrap();
    server
        .set_option(ids::RECONNECT_IVL, &Value::Int(1))
        .unwrap();
    server.secure_server(&server_secret, &allowed).unwrap();
    server.connect(&endpoint).unwrap();
    let alice = dealer(&context, "alice", &server_public, &alice_secret);
    alice.bind(&endpoint).unwrap();
    server.wait_connected(1, Wait::Forever).unwrap();
    alice.close(None);
    common::until(|| server.count_connected().unwrap() == 0);
    server
        .send(message([b"for alice only"]), Wait::Forever)
        .unwrap();
    server.close(None);
    let eve = dealer(&context, "eve", &server_public, &eve_secret);
    let monitor = common::Monitor::of(&context, &eve);
    eve.bind(&endpoint).unwrap();
    // It connected, was refused, and disconnected permanently.
    monitor.wait_for(EventKind::Disconnected);
    assert!(eve.recv(Wait::Dont).is_err());
}

#[test]
fn a_peer_cannot_set_properties_that_only_we_know() {
    let _dog = Watchdog::new("a_peer_cannot_set_properties_that_only_we_know");
    let context = Context::new();
    let (pull, endpoint) = server(&context, SocketType::Pull, &[]);
    let mut peer = raw::dial(&endpoint);
    let mut ready = raw::ready("PUSH");
    for (name, value) in [
        ("authenticated", "yes"),
        ("Mechanism", "CURVE"),
        ("User-Id", "root"),
        ("Peer-Address", "10.0.0.1"),
        ("__fd", "peer's"),
    ] {
        ready.push(name.len() as u8);
        ready.extend(name.as_bytes());
        ready.extend((value.len() as u32).to_be_bytes());
        ready.extend(value.as_bytes());
    }
    let said = [
        &raw::greeting()[..],
        &raw::frame(raw::COMMAND, &ready),
        &raw::frame(0, b"trust me"),
    ];
    std::io::Write::write_all(&mut peer, &said.concat()).unwrap();
    let (_, info) = pull.recv_from(Wait::Forever).unwrap();
    let info = info.unwrap();
    assert_eq!(info.user_id, None);
    let properties = &info.properties[1..];
    let descriptors = properties.iter().filter(|(name, _)| name == "__fd");
    let descriptors: Vec<_> = descriptors.map(|(_, value)| &value[..]).collect();
    assert!(matches!(descriptors[..], [number] if number.iter().all(u8::is_ascii_digit)));
    let known: Vec<_> = properties
        .iter()
        .filter(|(name, _)| name != "__fd")
        .map(|(name, value)| (name.as_str(), &value[..]))
        .collect();
    assert_eq!(
        known,
        [
            ("Peer-Address", &b"127.0.0.1"[..]),
            ("Mechanism", b"NULL"),
            ("Authenticated", b"no"),
        ]
    );
}
