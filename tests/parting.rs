//! Peers that this socket parts with, and peers that hang up: calls go on, and nothing is kept for them.

mod common;

use std::io::Write;
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use common::raw::{self, frame};
use common::{
    SocketExt, Watchdog, free_tcp_endpoint, inproc_name, message, own_thread, socket, until,
    until_asleep,
};
use zeroxide::{Context, ErrorKind, Message, Socket, SocketType, Wait, ids};

use SocketType::{Dealer, Pull, Push, Req, Router, Stream, Xpub};

/// More than the kernels of both sides keep.
const HUGE: usize = 16 << 20;

/// Starts a call, and returns once its thread waits.
fn waiting<T: Send + 'static>(
    socket: &Socket,
    call: impl FnOnce(Socket) -> T + Send + 'static,
) -> JoinHandle<T> {
    let (tell, told) = mpsc::channel();
    let socket = socket.clone();
    let thread = thread::spawn(move || {
        tell.send(own_thread()).unwrap();
        call(socket)
    });
    until_asleep(&told.recv().unwrap());
    thread
}

/// A bound socket whose messages wait for as long as it takes, and a peer that reads none of them.
fn overfull(socket: &Socket, peer_type: &str) -> (String, std::net::TcpStream) {
    let endpoint = socket.bind("tcp://127.0.0.1:*").unwrap();
    let peer = raw::join(&endpoint, peer_type);
    until(|| socket.peers() == 1);
    (endpoint, peer)
}

#[test]
fn a_flush_does_not_wait_for_an_endpoint_that_was_left_meanwhile() {
    let _watchdog = Watchdog::new("a_flush_does_not_wait_for_an_endpoint_that_was_left_meanwhile");
    let context = Context::new();
    let push = context.socket(Push).unwrap();
    let absent = free_tcp_endpoint();
    push.connect(&absent).unwrap();
    push.put("stays");
    let flush = waiting(&push, |push| push.flush(None));
    push.disconnect(&absent).unwrap();
    flush.join().unwrap().unwrap();
    let (endpoint, _peer) = overfull(&push, "PULL");
    push.send(vec![0u8; HUGE], Wait::Forever).unwrap();
    let flush = waiting(&push, |push| push.flush(None));
    push.unbind(&endpoint).unwrap();
    flush.join().unwrap().unwrap();
}

#[test]
fn a_publisher_does_not_wait_for_a_subscriber_that_it_has_left() {
    let _watchdog = Watchdog::new("a_publisher_does_not_wait_for_a_subscriber_that_it_has_left");
    let context = Context::new();
    let publisher = context.socket(Xpub).unwrap();
    publisher.int(ids::XPUB_NODROP, 1);
    publisher.int(ids::SNDHWM, 1);
    let (endpoint, mut subscriber) = overfull(&publisher, "SUB");
    subscriber.write_all(&frame(0, b"\x01")).unwrap();
    assert_eq!(publisher.take(), "\u{1}");
    let send = waiting(&publisher, |publisher| {
        (0..8).try_for_each(|_| publisher.send(vec![0u8; HUGE], Wait::Forever))
    });
    publisher.unbind(&endpoint).unwrap();
    assert!(send.join().unwrap().is_ok());
}

#[test]
fn a_mandatory_router_reports_a_peer_that_it_has_left() {
    let _watchdog = Watchdog::new("a_mandatory_router_reports_a_peer_that_it_has_left");
    let context = Context::new();
    let router = context.socket(Router).unwrap();
    router.int(ids::ROUTER_MANDATORY, 1);
    router.int(ids::SNDHWM, 1);
    let (endpoint, mut dealer) = overfull(&router, "DEALER");
    dealer.write_all(&frame(0, b"hello")).unwrap();
    let name = router.recv(Wait::Forever).unwrap().pop_front().unwrap();
    let send = waiting(&router, move |router| {
        loop {
            let sent = router.send(message([&name, &vec![0u8; HUGE]]), Wait::Forever);
            if let Err(failed) = sent {
                return failed.error.kind();
            }
        }
    });
    router.unbind(&endpoint).unwrap();
    assert_eq!(send.join().unwrap(), ErrorKind::HostUnreachable);
}

#[test]
fn a_stream_reports_a_connection_that_it_has_closed() {
    let _watchdog = Watchdog::new("a_stream_reports_a_connection_that_it_has_closed");
    let context = Context::new();
    let stream = context.socket(Stream).unwrap();
    stream.int(ids::SNDHWM, 1);
    let endpoint = stream.bind("tcp://127.0.0.1:*").unwrap();
    let _peer = raw::dial(&endpoint);
    let name = stream.recv(Wait::Forever).unwrap().pop_front().unwrap();
    let send = {
        let name = name.clone();
        waiting(&stream, move |stream| {
            loop {
                let sent = stream.send(message([&name, &vec![0u8; HUGE]]), Wait::Forever);
                if let Err(failed) = sent {
                    return failed.error.kind();
                }
            }
        })
    };
    stream.send(message([&name, b""]), Wait::Forever).unwrap();
    assert_eq!(send.join().unwrap(), ErrorKind::HostUnreachable);
}

/// Sends more messages than a socket keeps, and hangs up.
fn babble_and_leave(mut peer: std::net::TcpStream) {
    peer.write_all(&frame(0, b"babble").repeat(3000)).unwrap();
}

#[test]
fn peers_that_sent_what_is_not_read_go_when_they_hang_up() {
    let _watchdog = Watchdog::new("peers_that_sent_what_is_not_read_go_when_they_hang_up");
    let context = Context::new();
    for (socket_type, peer_type) in [(Push, "PULL"), (Req, "REP")] {
        let bound = socket(&context, socket_type);
        let (endpoint, peer) = overfull(&bound, peer_type);
        babble_and_leave(peer);
        for _ in 0..3 {
            babble_and_leave(raw::join(&endpoint, peer_type));
        }
        until(|| bound.stats().unwrap().peers.is_empty());
    }
}

#[test]
fn a_peer_that_answers_and_babbles_goes_when_it_hangs_up() {
    let _watchdog = Watchdog::new("a_peer_that_answers_and_babbles_goes_when_it_hangs_up");
    let context = Context::new();
    let req = socket(&context, Req);
    let (_, mut rep) = overfull(&req, "REP");
    req.put("question");
    rep.write_all(&[frame(raw::MORE, b""), frame(0, b"answer")].concat())
        .unwrap();
    babble_and_leave(rep);
    // The kernel has all of it, and the socket only what has room.
    until(|| req.stats().unwrap().queued_in >= 1000);
    assert_eq!(req.take(), "answer");
    until(|| req.stats().unwrap().peers.is_empty());
}

#[test]
fn a_push_connects_again_after_a_server_that_babbled() {
    let _watchdog = Watchdog::new("a_push_connects_again_after_a_server_that_babbled");
    let context = Context::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let push = socket(&context, Push);
    push.int(ids::RECONNECT_IVL, 1);
    push.connect(&endpoint).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    drop(listener);
    let hello = [
        &raw::greeting()[..],
        &frame(raw::COMMAND, &raw::ready("PULL")),
    ];
    server.write_all(&hello.concat()).unwrap();
    until(|| push.peers() == 1);
    babble_and_leave(server);
    let pull = socket(&context, Pull);
    until(|| pull.bind(&endpoint).is_ok());
    until(|| pull.peers() == 1);
    push.put("work");
    assert_eq!(pull.take(), "work");
}

#[test]
fn a_flush_does_not_wait_for_a_peer_that_has_hung_up() {
    let _watchdog = Watchdog::new("a_flush_does_not_wait_for_a_peer_that_has_hung_up");
    let context = Context::new();
    let dealer = socket(&context, Dealer);
    dealer.int(ids::RCVHWM, 2);
    let (_, mut peer) = overfull(&dealer, "DEALER");
    peer.write_all(&frame(0, b"unread").repeat(50)).unwrap();
    for _ in 0..40 {
        dealer.send(vec![0u8; 1 << 20], Wait::Forever).unwrap();
    }
    let flush = waiting(&dealer, |dealer| dealer.flush(None));
    drop(peer);
    flush.join().unwrap().unwrap();
    assert_eq!(dealer.take(), "unread");
}

#[test]
fn a_name_that_is_bound_later_hears_no_greeting_of_sockets_that_are_gone() {
    let _watchdog =
        Watchdog::new("a_name_that_is_bound_later_hears_no_greeting_of_sockets_that_are_gone");
    let context = Context::new();
    let name = inproc_name();
    for hello in [&b""[..], b"hello"] {
        let dealer = context.socket(Dealer).unwrap();
        dealer.int(ids::PROBE_ROUTER, 1);
        dealer.bytes(ids::HELLO_MSG, hello);
        dealer.connect(&name).unwrap();
        dealer.close(None);
    }
    let last = context.socket(Dealer).unwrap();
    last.int(ids::PROBE_ROUTER, 1);
    last.connect(&name).unwrap();
    last.put("from a socket that has more to say");
    last.close(None);
    let router = socket(&context, Router);
    router.bind(&name).unwrap();
    let mut ends = Vec::new();
    for _ in 0..2 {
        let received: Message = router.recv(Wait::Forever).unwrap();
        ends.push(received.iter().last().unwrap().to_vec());
    }
    assert_eq!(ends, [&b""[..], b"from a socket that has more to say"]);
    assert_eq!(router.nothing(), ErrorKind::Again);
}
