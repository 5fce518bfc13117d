//! Sockets over TLS, against each other and against peers that do not play by the rules.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

use common::certificates::{Authority, Identity};
use common::{Monitor, SocketExt, Watchdog, free_tcp_endpoint, message, socket, until};
use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, EventStream, Events, Message, MonitorEvent,
    PollItem, Socket, SocketType, Wait, curve_keypair, has, ids, poll,
};

use SocketType::{Dealer, Pull, Push, Rep, Req, Router, Stream};

const WILDCARD: &str = "tls+tcp://127.0.0.1:*";

/// A context, and who is who in it.
struct World {
    context: Context,
    authority: Authority,
    server: Identity,
}

impl World {
    fn new() -> World {
        let authority = Authority::new();
        World {
            context: Context::new(),
            server: authority.issue(&["127.0.0.1", "localhost"]),
            authority,
        }
    }

    /// A socket that can be bound.
    fn server(&self, socket_type: SocketType) -> Socket {
        let server = socket(&self.context, socket_type);
        identify(&server, &self.server);
        server
    }

    /// A socket that can connect to such a socket.
    fn client(&self, socket_type: SocketType) -> Socket {
        let client = socket(&self.context, socket_type);
        client.set_tls_ca(&self.authority.certificate).unwrap();
        client.int(ids::RECONNECT_IVL, 1);
        client
    }

    /// The one that is bound first.
    fn pair(&self, bound: SocketType, connected: SocketType) -> (Socket, Socket) {
        let server = self.server(bound);
        let client = self.client(connected);
        client.connect(&server.bind(WILDCARD).unwrap()).unwrap();
        (server, client)
    }
}

fn identify(socket: &Socket, identity: &Identity) {
    socket.set_tls_certificate(&identity.certificate).unwrap();
    socket.set_tls_key(&identity.key).unwrap();
}

fn failures(socket: &Socket) -> EventStream {
    let kind = EventKind::HandshakeFailedNoDetail as u32;
    socket.event_stream(kind).unwrap()
}

fn next(events: &EventStream) -> MonitorEvent {
    events.next(Wait::Forever).unwrap().unwrap()
}

fn address(endpoint: &str) -> &str {
    endpoint.strip_prefix("tls+tcp://").unwrap()
}

/// Sends messages of different sizes, of which some need many records and many share one.
fn send_all(push: &Socket, count: usize) {
    for number in 0..count {
        let body = "x".repeat(number * 7919 % 50_000);
        let message = Message::from_iter([number.to_string(), body]);
        push.send(message, Wait::Forever).unwrap();
    }
}

fn check(message: &Message, number: usize) {
    assert_eq!(
        message.get(0).unwrap().as_slice(),
        number.to_string().as_bytes()
    );
    assert_eq!(message.get(1).unwrap().len(), number * 7919 % 50_000);
}

#[test]
fn messages_arrive_in_every_way_of_reading() {
    let _watchdog = Watchdog::new("messages_arrive_in_every_way_of_reading");
    let world = World::new();
    for polls in [false, true] {
        let (pull, push) = world.pair(Pull, Push);
        let sender = thread::spawn(move || {
            send_all(&push, 1000);
            push
        });
        for number in 0..1000 {
            if polls {
                let mut items = [PollItem::socket(&pull, Events::READABLE)];
                assert_eq!(poll(&mut items, None).unwrap(), 1);
                check(&pull.recv(Wait::Dont).unwrap(), number);
            } else {
                check(&pull.recv(Wait::Forever).unwrap(), number);
            }
        }
        drop(sender.join().unwrap());
    }
    assert!(has("tls+tcp"));
}

#[test]
fn round_trips_and_large_messages() {
    let _watchdog = Watchdog::new("round_trips_and_large_messages");
    let world = World::new();
    let (rep, req) = world.pair(Rep, Req);
    for size in [0, 1, 100, 16 << 10, 1 << 20, 20 << 20]
        .into_iter()
        .cycle()
        .take(60)
    {
        let body = "y".repeat(size);
        req.put(&body);
        assert!(rep.take() == body);
        rep.put("thanks");
        assert_eq!(req.take(), "thanks");
    }
}

#[test]
fn closing_delivers_everything_first() {
    let _watchdog = Watchdog::new("closing_delivers_everything_first");
    let world = World::new();
    let (pull, push) = world.pair(Pull, Push);
    push.int(ids::SNDHWM, 0);
    send_all(&push, 300);
    push.close(Some(None));
    for number in 0..300 {
        check(&pull.recv(Wait::Forever).unwrap(), number);
    }
    until(|| pull.peers() == 0);
}

#[test]
fn a_full_pipe_holds_the_peer_back_and_loses_nothing() {
    let _watchdog = Watchdog::new("a_full_pipe_holds_the_peer_back_and_loses_nothing");
    let world = World::new();
    let pull = world.server(Pull);
    pull.int(ids::RCVHWM, 2);
    let push = world.client(Push);
    push.int(ids::SNDHWM, 2);
    push.connect(&pull.bind(WILDCARD).unwrap()).unwrap();
    let sender = thread::spawn(move || {
        send_all(&push, 500);
        push
    });
    for number in 0..500 {
        check(&pull.recv(Wait::Forever).unwrap(), number);
    }
    drop(sender.join().unwrap());
}

#[test]
fn a_client_comes_back_to_a_server_that_was_restarted() {
    let _watchdog = Watchdog::new("a_client_comes_back_to_a_server_that_was_restarted");
    let world = World::new();
    let endpoint = free_tcp_endpoint().replace("tcp:", "tls+tcp:");
    let client = world.client(Dealer);
    client.connect(&endpoint).unwrap();
    for _ in 0..3 {
        let server = world.server(Dealer);
        until(|| server.bind(&endpoint).is_ok());
        until(|| server.peers() == 1);
        server.put("hello");
        assert_eq!(client.take(), "hello");
    }
}

#[test]
fn mechanisms_of_zmtp_work_inside() {
    let _watchdog = Watchdog::new("mechanisms_of_zmtp_work_inside");
    let world = World::new();
    let (public, secret) = curve_keypair().unwrap();
    let (rep, req) = (world.server(Rep), world.client(Req));
    rep.set_curve_server(true).unwrap();
    rep.set_curve_secretkey(secret).unwrap();
    let (mine, own) = curve_keypair().unwrap();
    req.set_curve_publickey(mine).unwrap();
    req.set_curve_secretkey(own).unwrap();
    req.set_curve_serverkey(public).unwrap();
    req.connect(&rep.bind(WILDCARD).unwrap()).unwrap();
    req.put("twice encrypted");
    assert_eq!(rep.take(), "twice encrypted");
}

#[test]
fn a_stream_socket_carries_plain_bytes() {
    let _watchdog = Watchdog::new("a_stream_socket_carries_plain_bytes");
    let world = World::new();
    let (server, client) = world.pair(Stream, Stream);
    let name = client
        .recv(Wait::Forever)
        .unwrap()
        .head()
        .as_slice()
        .to_vec();
    assert!(server.take().ends_with('/'));
    client
        .send(message([&name[..], b"GET /"]), Wait::Forever)
        .unwrap();
    assert!(server.take().ends_with("GET /"));
}

#[test]
fn both_sides_report_why_they_do_not_come_together() {
    let _watchdog = Watchdog::new("both_sides_report_why_they_do_not_come_together");
    let world = World::new();
    let rep = world.server(Rep);
    let events = failures(&rep);
    let endpoint = rep.bind(WILDCARD).unwrap();
    let stranger = world.client(Req);
    stranger.set_tls_ca(&Authority::new().certificate).unwrap();
    let own = failures(&stranger);
    stranger.connect(&endpoint).unwrap();
    for _ in 0..2 {
        let event = next(&own);
        let reason = event.reason.unwrap();
        assert!(
            reason.contains("the server 127.0.0.1 is not from a CA"),
            "{reason}"
        );
        assert_eq!(event.value, ErrorKind::Access.errno() as u64);
        assert_eq!(event.endpoint, endpoint);
        let reason = next(&events).reason.unwrap();
        assert!(
            reason.contains("the client does not trust the CA"),
            "{reason}"
        );
    }
    assert_eq!(rep.peers() + stranger.peers(), 0);
}

#[test]
fn a_client_without_the_certificate_hears_why_after_its_own_handshake() {
    let _watchdog =
        Watchdog::new("a_client_without_the_certificate_hears_why_after_its_own_handshake");
    let world = World::new();
    let rep = world.server(Rep);
    rep.set_tls_ca(&world.authority.certificate).unwrap();
    let events = failures(&rep);
    let endpoint = rep.bind(WILDCARD).unwrap();
    let req = world.client(Req);
    let own = failures(&req);
    req.connect(&endpoint).unwrap();
    let reason = next(&own).reason.unwrap();
    assert!(reason.contains("set TLS_CERTIFICATE"), "{reason}");
    let reason = next(&events).reason.unwrap();
    assert!(reason.contains("has no certificate"), "{reason}");
    // With one, it is served.
    let req = world.client(Req);
    identify(&req, &world.authority.issue(&["alice"]));
    req.connect(&endpoint).unwrap();
    req.put("hello");
    assert_eq!(rep.take(), "hello");
}

#[test]
fn a_failed_handshake_can_end_the_attempts() {
    let _watchdog = Watchdog::new("a_failed_handshake_can_end_the_attempts");
    let world = World::new();
    let rep = world.server(Rep);
    let endpoint = rep.bind(WILDCARD).unwrap();
    let req = world.client(Req);
    req.int(ids::RECONNECT_STOP, 2);
    req.set_tls_hostname("another.example").unwrap();
    let monitor = Monitor::of(&world.context, &req);
    req.connect(&endpoint).unwrap();
    monitor.wait_for(EventKind::HandshakeFailedNoDetail);
    monitor.wait_for(EventKind::Closed);
    until(|| monitor.try_next().is_none() && req.disconnect(&endpoint).is_err());
}

#[test]
fn peers_without_tls_are_refused_and_silent_ones_dropped() {
    let _watchdog = Watchdog::new("peers_without_tls_are_refused_and_silent_ones_dropped");
    let world = World::new();
    for (said, words) in [
        (
            &b"\xff\0\0\0\0\0\0\0\x01\x7f"[..],
            "speaks ZMTP without TLS",
        ),
        (b"GET / HTTP/1.1\r\n\r\n", "does not speak TLS"),
        (b"", "took too long"),
        (b"\x16\x03\x01", "took too long"),
    ] {
        let rep = world.server(Rep);
        rep.int(
            ids::HANDSHAKE_IVL,
            if words == "took too long" { 30 } else { 30_000 },
        );
        let events = failures(&rep);
        let endpoint = rep.bind(WILDCARD).unwrap();
        let mut peer = TcpStream::connect(address(&endpoint)).unwrap();
        peer.write_all(said).unwrap();
        let reason = next(&events).reason.unwrap();
        assert!(reason.contains(words), "{reason}");
        // At most an alert.
        let mut heard = Vec::new();
        let _ = peer.read_to_end(&mut heard);
        assert!(heard.is_empty() || heard[0] == 21, "{heard:?}");
    }
}

#[test]
fn a_client_of_a_server_without_tls_hears_what_to_do() {
    let _watchdog = Watchdog::new("a_client_of_a_server_without_tls_hears_what_to_do");
    let world = World::new();
    let rep = socket(&world.context, Rep);
    let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
    let req = world.client(Req);
    let events = failures(&req);
    req.connect(&endpoint.replace("tcp:", "tls+tcp:")).unwrap();
    let reason = next(&events).reason.unwrap();
    assert!(reason.contains("tcp://, connect to that"), "{reason}");
}

#[test]
fn a_handshake_has_one_limit_for_tls_and_zmtp() {
    let _watchdog = Watchdog::new("a_handshake_has_one_limit_for_tls_and_zmtp");
    let world = World::new();
    let router = world.server(Router);
    router.int(ids::HANDSHAKE_IVL, 100);
    let events = failures(&router);
    let endpoint = router.bind(WILDCARD).unwrap();
    // A STREAM socket shakes hands over TLS, and says nothing then.
    let silent = world.client(Stream);
    silent.connect(&endpoint).unwrap();
    let reason = next(&events).reason.unwrap();
    assert!(reason.contains("within the handshake interval"), "{reason}");
    assert_eq!(router.dropped(DropReason::PeerGone), 0);
}

#[test]
fn mistakes_are_errors_of_bind_and_connect() {
    let world = World::new();
    let rep = socket(&world.context, Rep);
    let error = rep.bind(WILDCARD).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(
        text.contains(WILDCARD) && text.contains("TLS_CERTIFICATE"),
        "{text}"
    );
    rep.set_tls_certificate("/no/such/file.pem").unwrap();
    let error = rep.connect("tls+tcp://localhost:5555").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEntry);
    assert!(error.to_string().contains("/no/such/file.pem"), "{error}");
    // The address is free, although the certificate was wrong.
    identify(&rep, &world.server);
    let endpoint = rep.bind(WILDCARD).unwrap();
    rep.unbind(&endpoint).unwrap();
    assert_eq!(rep.bind(&endpoint).unwrap(), endpoint);
    let folder = std::env::temp_dir().join(format!("zeroxide-tls-{}.pem", std::process::id()));
    std::fs::write(
        &folder,
        format!("{}{}", world.server.key, world.server.certificate),
    )
    .unwrap();
    let rep = socket(&world.context, Rep);
    rep.set_tls_certificate(folder.to_str().unwrap()).unwrap();
    rep.bind(WILDCARD).unwrap();
    std::fs::remove_file(folder).unwrap();
}

/// A program on the way between a client and a server. The function cuts both connections, as any program on the way can.
fn relay(endpoint: &str) -> (String, impl FnOnce()) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = format!("tls+tcp://{}", listener.local_addr().unwrap());
    let there = address(endpoint).to_owned();
    let (tell, connected) = channel();
    thread::spawn(move || {
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect(there).unwrap();
        let copy = |from: &TcpStream, to: &TcpStream| {
            let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            // The end of the test ends it.
            thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
        };
        copy(&near, &far);
        copy(&far, &near);
        tell.send([near, far]).unwrap();
    });
    let cut = move || {
        for stream in connected.recv().unwrap() {
            stream.shutdown(Shutdown::Both).unwrap();
        }
    };
    (here, cut)
}

#[test]
fn a_cut_connection_differs_from_one_that_its_peer_has_ended() {
    let _watchdog = Watchdog::new("a_cut_connection_differs_from_one_that_its_peer_has_ended");
    let world = World::new();
    let pull = world.server(Pull);
    let ends = pull.event_stream(EventKind::Disconnected as u32).unwrap();
    let endpoint = pull.bind(WILDCARD).unwrap();
    let (through, cut) = relay(&endpoint);
    let push = world.client(Push);
    push.int(ids::RECONNECT_IVL, -1);
    push.connect(&through).unwrap();
    push.put("before");
    assert_eq!(pull.take(), "before");
    cut();
    let reason = next(&ends).reason.unwrap();
    assert!(reason.contains("the connection was cut"), "{reason}");
    let push = world.client(Push);
    push.connect(&endpoint).unwrap();
    push.put("all");
    push.close(Some(None));
    assert_eq!(pull.take(), "all");
    let reason = next(&ends).reason.unwrap();
    assert_eq!(reason, "the peer closed the connection");
}
