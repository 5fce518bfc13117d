//! Sockets over a transport whose layers hold bytes back, read in every way there is.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use super::late::{HELLO, Late, LateTransport, record};
use super::*;
use crate::context::Context;
use crate::options::{Value, ids};
use crate::socket::{Events, Socket, SocketInternals, Wait};
use crate::transports::Transport;
use crate::transports::socks::{Destination, Request, Socks};
use crate::{EventKind, PollItem, poll};

const PATIENCE: Duration = Duration::from_secs(60);

fn context() -> Context {
    with_transport().0
}

fn with_transport() -> (Context, &'static LateTransport) {
    let context = Context::new();
    let late: &LateTransport = Box::leak(Box::default());
    let transport = Transport::Bytes(late);
    context.registry().transports.add(transport).unwrap();
    (context, late)
}

/// Two sockets that are connected, the one that was bound first.
fn pair(context: &Context, bound: SocketType, connected: SocketType) -> (Socket, Socket) {
    let near = context.socket(bound).unwrap();
    let endpoint = near.bind("late://127.0.0.1:*").unwrap();
    let far = context.socket(connected).unwrap();
    far.connect(&endpoint).unwrap();
    (near, far)
}

fn within() -> Wait {
    Wait::Until(Instant::now() + PATIENCE)
}

fn message(text: &str) -> Message {
    Frame::copy_from(text.as_bytes()).into()
}

fn text(message: &Message) -> String {
    String::from_utf8_lossy(message.head().as_slice()).into_owned()
}

/// Sends messages of different sizes, of which some need many records and many share one.
fn send_all(push: &Socket, count: usize) {
    for number in 0..count {
        let body = format!("{number}:{}", "x".repeat(number * 7919 % 9000));
        push.send(message(&body), Wait::Forever).unwrap();
    }
}

fn check(message: &Message, number: usize) {
    let text = text(message);
    let (head, body) = text.split_once(':').unwrap();
    assert_eq!(head, number.to_string());
    assert_eq!(body.len(), number * 7919 % 9000);
}

const COUNT: usize = 2000;

#[test]
fn a_thread_that_waits_receives_everything() {
    let context = context();
    let (pull, push) = pair(&context, SocketType::Pull, SocketType::Push);
    let sender = thread::spawn(move || send_all(&push, COUNT));
    for number in 0..COUNT {
        check(&pull.recv(within()).unwrap(), number);
    }
    sender.join().unwrap();
}

#[test]
fn a_thread_that_never_waits_receives_everything() {
    let context = context();
    let (pull, push) = pair(&context, SocketType::Pull, SocketType::Push);
    let sender = thread::spawn(move || send_all(&push, COUNT));
    let patience = Instant::now() + PATIENCE;
    for number in 0..COUNT {
        let message = loop {
            match pull.recv(Wait::Dont) {
                Ok(message) => break message,
                Err(_) => assert!(Instant::now() < patience, "{number} does not come"),
            }
            pull.take_in();
            thread::yield_now();
        };
        check(&message, number);
    }
    sender.join().unwrap();
}

#[test]
fn the_io_thread_receives_everything() {
    let context = context();
    let (pull, push) = pair(&context, SocketType::Pull, SocketType::Push);
    let sender = thread::spawn(move || send_all(&push, COUNT));
    for number in 0..COUNT {
        // A poll leaves the connection to the I/O thread.
        let mut items = [PollItem::socket(&pull, Events::READABLE)];
        let patience = Instant::now() + PATIENCE;
        assert_eq!(poll(&mut items, Some(patience)).unwrap(), 1, "{number}");
        check(&pull.recv(Wait::Dont).unwrap(), number);
    }
    sender.join().unwrap();
}

#[test]
fn a_full_pipe_forgets_nothing_that_a_layer_holds() {
    let context = context();
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.set_option(ids::RCVHWM, &Value::Int(2)).unwrap();
    let endpoint = pull.bind("late://127.0.0.1:*").unwrap();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(&endpoint).unwrap();
    send_all(&push, 100);
    for number in 0..100 {
        check(&pull.recv(within()).unwrap(), number);
    }
}

#[test]
fn round_trips_take_over_the_connection() {
    let context = context();
    let (rep, req) = pair(&context, SocketType::Rep, SocketType::Req);
    let server = thread::spawn(move || {
        for _ in 0..500 {
            let request = rep.recv(within()).unwrap();
            rep.send(request, Wait::Forever).unwrap();
        }
        rep
    });
    for number in 0..500 {
        req.send(message(&number.to_string()), Wait::Forever)
            .unwrap();
        let reply = req.recv(within()).unwrap();
        assert_eq!(text(&reply), number.to_string());
    }
    server.join().unwrap();
}

#[test]
fn bytes_of_a_layer_leave_even_if_zmtp_has_none() {
    let (context, late) = with_transport();
    let (pull, push) = pair(&context, SocketType::Pull, SocketType::Push);
    for number in 0..50 {
        push.send("news", Wait::Forever).unwrap();
        assert_eq!(text(&pull.recv(within()).unwrap()), "news");
        let patience = Instant::now() + PATIENCE;
        while late.acknowledged.load(Ordering::Relaxed) <= number {
            assert!(Instant::now() < patience, "{number} is not acknowledged");
            thread::yield_now();
        }
    }
}

#[test]
fn everything_arrives_before_the_end() {
    let context = context();
    let (pull, push) = pair(&context, SocketType::Pull, SocketType::Push);
    send_all(&push, 300);
    push.close(Some(Some(PATIENCE)));
    for number in 0..300 {
        check(&pull.recv(within()).unwrap(), number);
    }
}

#[test]
fn a_peer_without_the_layer_is_refused_and_one_that_says_nothing_is_dropped() {
    for (says, why) in [(&b"GET /"[..], "not late"), (b"", "took too long")] {
        let context = context();
        let pull = context.socket(SocketType::Pull).unwrap();
        pull.set_option(ids::HANDSHAKE_IVL, &Value::Int(200))
            .unwrap();
        let events = pull
            .event_stream(EventKind::HandshakeFailedNoDetail as u32)
            .unwrap();
        let endpoint = pull.bind("late://127.0.0.1:*").unwrap();
        let address = endpoint.strip_prefix("late://").unwrap();
        let mut peer = std::net::TcpStream::connect(address).unwrap();
        peer.write_all(says).unwrap();
        let event = events.next(within()).unwrap().unwrap();
        let reason = event.reason.unwrap();
        assert!(reason.contains(why), "{reason}");
        let mut heard = [0; HELLO.len()];
        peer.read_exact(&mut heard).unwrap();
        assert_eq!(heard, HELLO);
    }
}

#[test]
fn a_layer_on_top_of_a_proxy_begins_when_the_proxy_has_connected() {
    let (near, mut proxy) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let request = Request::new(Destination::Name("there".to_owned()), 80, "", "").unwrap();
    let mut layers = Layers::default();
    layers.push(Box::new(Socks::new(std::sync::Arc::new(request))));
    layers.push(Box::new(Late::new()));
    let (tell, done) = mpsc::channel();
    let other = thread::spawn(move || {
        let mut said = [0; 3];
        proxy.read_exact(&mut said).unwrap();
        proxy.write_all(&[5, 0]).unwrap();
        let mut request = [0; 12];
        proxy.read_exact(&mut request).unwrap();
        assert_eq!(&request[5..10], b"there");
        // The proxy's reply, the layer's handshake and two records in one piece.
        let reply = [5, 0, 0, 1, 127, 0, 0, 1, 0, 80];
        let all = [&reply[..], HELLO, &record(b"first"), &record(b"second")].concat();
        proxy.write_all(&all).unwrap();
        let mut hello = [0; HELLO.len()];
        proxy.read_exact(&mut hello).unwrap();
        assert_eq!(hello, HELLO);
        // Two acknowledgements come first.
        let expected = [&[0; 4][..], &record(b"answer")].concat();
        let mut answer = vec![0; expected.len()];
        proxy.read_exact(&mut answer).unwrap();
        assert_eq!(answer, expected);
        tell.send(()).unwrap();
    });
    let fd = near.as_fd();
    let patience = Instant::now() + PATIENCE;
    while !layers.advance(fd).unwrap() {
        assert!(Instant::now() < patience);
        thread::yield_now();
    }
    let mut buffer = Vec::with_capacity(100);
    assert_eq!(layers.recv(fd, &mut buffer).unwrap(), 5);
    assert!(layers.has_more());
    assert_eq!(layers.recv(fd, &mut buffer).unwrap(), 6);
    assert_eq!(buffer, b"firstsecond");
    let dry = layers.recv(fd, &mut buffer).unwrap_err();
    assert_eq!(dry.kind(), ErrorKind::WouldBlock);
    assert!(!layers.has_more());
    assert_eq!(
        layers.send(fd, &[IoSlice::new(b"answer")], false).unwrap(),
        6
    );
    assert!(!layers.has_unsent());
    done.recv_timeout(PATIENCE).unwrap();
    other.join().unwrap();
    assert_eq!(layers.recv(fd, &mut buffer).unwrap(), 0);
}

#[test]
fn a_peer_that_sends_nothing_for_above_is_not_read_without_end() {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let mut layers = Layers::default();
    layers.push(Box::new(Late::new()));
    let (fd, mut far) = (near.as_fd(), &far);
    far.write_all(HELLO).unwrap();
    assert!(layers.advance(fd).unwrap());
    // Empty records, as many as the kernel takes.
    let mut written = 0;
    while let Ok(count) = far.write(&[0; 2 * READ_SIZE]) {
        written += count;
    }
    assert!(written > FRUITLESS_READS * READ_SIZE, "{written}");
    let mut buffer = Vec::with_capacity(100);
    let pause = layers.recv(fd, &mut buffer).unwrap_err();
    assert_eq!(pause.kind(), ErrorKind::WouldBlock);
    assert!(layers.has_more());
    while layers.has_more() {
        assert!(layers.recv(fd, &mut buffer).is_err());
    }
    far.write_all(&record(b"at last")).unwrap();
    assert_eq!(layers.recv(fd, &mut buffer).unwrap(), 7);
}

/// A layer whose handshake never ends.
#[derive(Debug)]
struct Endless;

impl Layer for Endless {
    fn phase(&self) -> Phase {
        Phase::Opening
    }

    fn handle_input(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn handle_end(&mut self, _: Option<io::Error>) -> Result<()> {
        Ok(())
    }

    fn has_input(&self) -> bool {
        false
    }

    fn poll_input(&mut self, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn handle_output(&mut self, _: &[IoSlice<'_>]) -> usize {
        0
    }

    fn poll_transmit(&self) -> &[u8] {
        &[]
    }

    fn transmitted(&mut self, _: usize) {}
}

#[test]
fn a_peer_whose_handshake_does_not_end_is_not_read_without_end() {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let mut layers = Layers::default();
    layers.push(Box::new(Endless));
    let (fd, mut far) = (near.as_fd(), &far);
    let mut written = 0;
    while let Ok(count) = far.write(&[0; 2 * READ_SIZE]) {
        written += count;
    }
    assert!(written > FRUITLESS_READS * READ_SIZE, "{written}");
    assert!(!layers.advance(fd).unwrap());
    assert!(layers.is_unread());
    while layers.is_unread() {
        assert!(!layers.advance(fd).unwrap());
    }
}
