//! Waiting for several sockets: the events that wake it, and those that must not keep it busy.

mod common;

use std::io::Read;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use common::{own_thread, until_asleep};
use zeroxide::binding::SocketInternals;
use zeroxide::{
    Context, DropReason, ErrorKind, Events, Frame, Message, PollItem, Proxy, Socket, SocketType,
    Value, Wait, poll,
};

const SNDHWM: i32 = 23;
const RCVHWM: i32 = 24;

fn soon(millis: u64) -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(millis))
}

/// How long this thread has been on a CPU.
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn busy<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = cpu_time();
    let result = work();
    (result, cpu_time() - before)
}

/// A DEALER that cannot send any more and has something to receive, and its peer.
fn full_and_readable(context: &Context, name: &str) -> (Socket, Socket) {
    let (one, two) = (
        context.socket(SocketType::Dealer).unwrap(),
        context.socket(SocketType::Dealer).unwrap(),
    );
    for socket in [&one, &two] {
        socket.set_option(SNDHWM, &Value::Int(1)).unwrap();
        socket.set_option(RCVHWM, &Value::Int(1)).unwrap();
    }
    one.bind(name).unwrap();
    two.connect(name).unwrap();
    while one.send(Message::new(), Wait::Dont).is_ok() {}
    two.send(Message::new(), Wait::Dont).unwrap();
    assert!(one.events().unwrap().is_readable() && !one.events().unwrap().is_writable());
    (one, two)
}

#[test]
fn events_that_are_not_waited_for_do_not_keep_the_wait_busy() {
    let context = Context::new();
    let (one, two) = full_and_readable(&context, "inproc://full");
    let (near, _far) = UnixStream::pair().unwrap();
    for with_descriptor in [false, true] {
        let mut items = vec![PollItem::socket(&one, Events::WRITABLE)];
        if with_descriptor {
            items.push(PollItem::fd(near.as_raw_fd(), Events::READABLE));
        }
        let (ready, spent) = busy(|| poll(&mut items, soon(200)).unwrap());
        assert_eq!(ready, 0);
        assert!(spent < Duration::from_millis(100), "{spent:?}");
    }
    drop((one, two));
    context.term().unwrap();
}

#[test]
fn a_socket_wakes_a_wait_with_and_without_descriptors() {
    let context = Context::new();
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.bind("inproc://wake").unwrap();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect("inproc://wake").unwrap();
    let (near, _far) = UnixStream::pair().unwrap();
    for round in 0..40 {
        let mut items = vec![PollItem::socket(&pull, Events::READABLE)];
        if round % 2 == 1 {
            items.push(PollItem::fd(near.as_raw_fd(), Events::READABLE));
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(round % 5));
                push.send(Message::new(), Wait::Dont).unwrap();
            });
            assert_eq!(poll(&mut items, soon(20_000)).unwrap(), 1);
        });
        assert_eq!(items[0].revents, Events::READABLE);
        pull.recv(Wait::Dont).unwrap();
    }
    drop((push, pull));
    context.term().unwrap();
}

#[test]
fn a_request_sent_by_one_thread_makes_another_see_the_reply() {
    let context = Context::new();
    let rep = context.socket(SocketType::Rep).unwrap();
    rep.bind("inproc://turns").unwrap();
    let req = context.socket(SocketType::Req).unwrap();
    req.connect("inproc://turns").unwrap();
    thread::scope(|scope| {
        let (told, thread) = mpsc::channel();
        let req = &req;
        let waiting = scope.spawn(move || {
            told.send(own_thread()).unwrap();
            poll(&mut [PollItem::socket(req, Events::READABLE)], soon(20_000)).unwrap()
        });
        until_asleep(&thread.recv().unwrap());
        req.send(Message::new(), Wait::Dont).unwrap();
        rep.recv(Wait::Forever).unwrap();
        rep.send(Message::new(), Wait::Dont).unwrap();
        assert_eq!(waiting.join().unwrap(), 1);
    });
    drop((req, rep));
    context.term().unwrap();
}

#[test]
fn a_raised_high_water_mark_lets_a_blocked_sender_go_on() {
    let context = Context::new();
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.set_option(RCVHWM, &Value::Int(1)).unwrap();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let push = context.socket(SocketType::Push).unwrap();
    push.set_option(SNDHWM, &Value::Int(1)).unwrap();
    push.connect(&endpoint).unwrap();
    let large = || Message::from_frames([vec![0; 1 << 20].into()]);
    while push.send(large(), Wait::Until(soon(300).unwrap())).is_ok() {}
    thread::scope(|scope| {
        let (told, thread) = mpsc::channel();
        let push = &push;
        let blocked = scope.spawn(move || {
            told.send(own_thread()).unwrap();
            push.send(large(), Wait::Until(soon(20_000).unwrap()))
        });
        until_asleep(&thread.recv().unwrap());
        push.set_option(SNDHWM, &Value::Int(10)).unwrap();
        blocked.join().unwrap().unwrap();
    });
    push.close(Some(Some(Duration::ZERO)));
    pull.close(None);
    context.term().unwrap();
}

#[test]
fn a_proxy_whose_far_side_is_full_sleeps() {
    let context = Context::new();
    let (front, source) = (
        context.socket(SocketType::Pull).unwrap(),
        context.socket(SocketType::Push).unwrap(),
    );
    front.bind("inproc://front").unwrap();
    source.connect("inproc://front").unwrap();
    let back = context.socket(SocketType::Push).unwrap();
    back.bind("inproc://back").unwrap();
    for _ in 0..10 {
        source.send(Message::new(), Wait::Dont).unwrap();
    }
    let mut proxy = Proxy::new(front.clone(), back.clone(), None, None);
    let (_, spent) = busy(|| proxy.run_until(soon(200)));
    assert!(spent < Duration::from_millis(100), "{spent:?}");
    drop((proxy, front, source, back));
    context.term().unwrap();
}

#[test]
fn a_proxy_drops_undeliverable_messages_and_continues() {
    let context = Context::new();
    let proxy_to = |back: &Socket, name: &str| {
        let front = context.socket(SocketType::Dealer).unwrap();
        front.bind(name).unwrap();
        let source = context.socket(SocketType::Dealer).unwrap();
        source.connect(name).unwrap();
        (Proxy::new(front, back.clone(), None, None), source)
    };
    let again = |proxy: &mut Proxy| {
        let error = proxy.run_until(soon(100)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Again, "{error}");
    };
    let send = |source: &Socket, frames: &[&[u8]]| {
        let frames = frames.iter().map(|frame| Frame::copy_from(frame));
        source
            .send(Message::from_frames(frames), Wait::Forever)
            .unwrap();
    };

    // To a STREAM go messages of two frames.
    let back = context.socket(SocketType::Stream).unwrap();
    let endpoint = back.bind("tcp://127.0.0.1:*").unwrap();
    let mut peer = TcpStream::connect(endpoint.trim_start_matches("tcp://")).unwrap();
    let (mut proxy, source) = proxy_to(&back, "inproc://to-stream");
    let hello = loop {
        again(&mut proxy);
        if let Ok(hello) = source.recv(Wait::Dont) {
            break hello;
        }
    };
    send(&source, &[b"one", b"too", b"many"]);
    send(&source, &[hello.head(), b"bytes"]);
    again(&mut proxy);
    let mut bytes = [0; 5];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"bytes");
    let dropped = back.stats().unwrap().dropped;
    assert_eq!(dropped.dropped(DropReason::Malformed), 1);

    // A mandatory ROUTER only sends messages to known peers.
    let back = context.socket(SocketType::Router).unwrap();
    back.set_option(33, &Value::Int(1)).unwrap();
    back.bind("inproc://to-somebody").unwrap();
    let peer = context.socket(SocketType::Dealer).unwrap();
    peer.set_option(5, &Value::Bytes(b"somebody".into()))
        .unwrap();
    peer.connect("inproc://to-somebody").unwrap();
    let (mut proxy, source) = proxy_to(&back, "inproc://to-router");
    send(&source, &[b"nobody", b"lost"]);
    send(&source, &[b"somebody", b"kept"]);
    again(&mut proxy);
    assert_eq!(peer.recv(Wait::Dont).unwrap().head().as_slice(), b"kept");
    let dropped = back.stats().unwrap().dropped;
    assert_eq!(dropped.dropped(DropReason::Unroutable), 1);
}

#[test]
fn a_proxy_keeps_messages_that_it_could_not_deliver_in_time() {
    let context = Context::new();
    let (front, source) = (
        context.socket(SocketType::Dealer).unwrap(),
        context.socket(SocketType::Dealer).unwrap(),
    );
    front.bind("inproc://source").unwrap();
    source.connect("inproc://source").unwrap();
    // A ROUTER that minds full peers has room for one of them, but not for the other one.
    let back = context.socket(SocketType::Router).unwrap();
    back.set_option(33, &Value::Int(1)).unwrap();
    back.set_option(SNDHWM, &Value::Int(1)).unwrap();
    back.bind("inproc://router").unwrap();
    let peers: Vec<Socket> = ["full", "free"]
        .map(|name| {
            let peer = context.socket(SocketType::Dealer).unwrap();
            peer.set_option(5, &Value::Bytes(name.into())).unwrap();
            peer.set_option(RCVHWM, &Value::Int(1)).unwrap();
            peer.connect("inproc://router").unwrap();
            peer
        })
        .into();
    for n in 0..3u8 {
        let message = Message::from_frames(["full".into(), (&[n]).into()]);
        source.send(message, Wait::Dont).unwrap();
    }
    let mut proxy = Proxy::new(front.clone(), back.clone(), None, None);
    assert!(proxy.run_until(soon(200)).is_err());
    for n in 0..3u8 {
        assert!(proxy.run_until(soon(50)).is_err());
        let message = peers[0].recv(Wait::Dont).unwrap();
        assert_eq!(message.head().as_slice(), [n]);
    }
    assert_eq!(proxy.stats().1.sent, 3);
    // Ended with a message in its hands, it puts that back.
    for n in 3..7u8 {
        let message = Message::from_frames(["full".into(), (&[n]).into()]);
        source.send(message, Wait::Dont).unwrap();
        let _ = proxy.run_until(soon(20));
    }
    let delivered = proxy.stats().1.sent;
    assert!(delivered < 7);
    drop(proxy);
    let (next, peer) = front.recv_from(Wait::Dont).unwrap();
    assert_eq!(u64::from(next.get(1).unwrap().as_slice()[0]), delivered);
    // The sender is not forgotten either.
    assert_eq!(peer.unwrap().socket_type, Some(SocketType::Dealer));
    drop((front, source, back, peers));
    context.term().unwrap();
}

#[test]
fn messages_that_are_given_back_keep_their_places() {
    let context = Context::new();
    let (pull, push) = (
        context.socket(SocketType::Pull).unwrap(),
        context.socket(SocketType::Push).unwrap(),
    );
    pull.bind("inproc://places").unwrap();
    push.connect("inproc://places").unwrap();
    for n in 0..6u8 {
        push.send(Message::from_frames([(&[n]).into()]), Wait::Dont)
            .unwrap();
    }
    let one = |named| match pull.try_recv_with_receipt(named) {
        zeroxide::binding::Attempt::Done(received) => received,
        _ => panic!("no message"),
    };
    let (first, second) = (one(false), one(true));
    let (batch, receipts) = pull.recv_batch_with_receipts(3, Wait::Dont).unwrap();
    assert!(first.1.peer().is_none() && second.1.peer().is_some());
    pull.give_back_received(vec![second]);
    // Received again, it is as old as before; and so is a batch of which it is the first.
    pull.give_back_received(batch.into_iter().zip(receipts.each()).collect());
    let (batch, receipts) = pull.recv_batch_with_receipts(2, Wait::Dont).unwrap();
    pull.give_back_received(vec![first]);
    pull.give_back_received(batch.into_iter().zip(receipts.each()).collect());
    for n in 0..6u8 {
        let (message, peer) = pull.recv_from(Wait::Dont).unwrap();
        assert_eq!(message.head().as_slice(), [n]);
        assert_eq!(peer.unwrap().socket_type, Some(SocketType::Push));
    }
    drop((pull, push));
    context.term().unwrap();
}

#[test]
fn a_proxy_that_cannot_continue_returns_its_messages() {
    let context = Context::new();
    let (pull, push) = (
        context.socket(SocketType::Pull).unwrap(),
        context.socket(SocketType::Push).unwrap(),
    );
    pull.bind("inproc://one-way").unwrap();
    push.connect("inproc://one-way").unwrap();
    let failure = |proxy: &mut Proxy| proxy.run_until(soon(60_000)).unwrap_err().kind();
    // A socket that only receives cannot send anything.
    push.send("first", Wait::Dont).unwrap();
    let mut proxy = Proxy::new(pull.clone(), pull.clone(), None, None);
    assert_eq!(failure(&mut proxy), ErrorKind::NotSupported);
    drop(proxy);
    let (first, peer) = pull.recv_from(Wait::Dont).unwrap();
    assert_eq!(first.head().as_slice(), b"first");
    assert!(peer.is_some());
    // The receiver is closed while a message waits for it.
    let back = context.socket(SocketType::Router).unwrap();
    back.set_option(33, &Value::Int(1)).unwrap();
    back.set_option(SNDHWM, &Value::Int(1)).unwrap();
    back.bind("inproc://closing").unwrap();
    let peers = ["full", "free"].map(|name| {
        let peer = context.socket(SocketType::Dealer).unwrap();
        peer.set_option(5, &Value::Bytes(name.into())).unwrap();
        peer.set_option(RCVHWM, &Value::Int(1)).unwrap();
        peer.connect("inproc://closing").unwrap();
        peer
    });
    for n in 0..3u8 {
        let message = Message::from_frames(["full".into(), (&[n]).into()]);
        push.send(message, Wait::Dont).unwrap();
    }
    let mut proxy = Proxy::new(pull.clone(), back.clone(), None, None);
    assert!(proxy.run_until(soon(100)).is_err());
    assert_eq!(proxy.stats().1.sent, 2);
    back.close(None);
    assert_eq!(failure(&mut proxy), ErrorKind::NotSocket);
    drop(proxy);
    let last = pull.recv(Wait::Dont).unwrap();
    assert_eq!(last.get(1).unwrap().as_slice(), [2]);
    drop((pull, push, peers));
    context.term().unwrap();
}

#[test]
fn parts_of_a_message_that_cannot_be_sent_are_not_kept() {
    let context = Context::new();
    let router = context.socket(SocketType::Router).unwrap();
    router.set_option(33, &Value::Int(1)).unwrap();
    router.bind("inproc://mandatory").unwrap();
    let dealer = context.socket(SocketType::Dealer).unwrap();
    dealer.set_option(5, &Value::Bytes(b"me".to_vec())).unwrap();
    dealer.connect("inproc://mandatory").unwrap();
    let failed = router.send_part("nobody", true, Wait::Dont);
    assert_eq!(failed.unwrap_err().error.kind(), ErrorKind::HostUnreachable);
    assert!(!router.is_sending_parts());
    router.send_part("me", true, Wait::Dont).unwrap();
    drop(dealer);
    let dealer = context.socket(SocketType::Dealer).unwrap();
    // Gone between the first part and the last.
    let failed = router.send_part("lost", false, Wait::Dont);
    assert_eq!(failed.unwrap_err().message.len(), 2);
    assert!(!router.is_sending_parts());
    dealer.set_option(5, &Value::Bytes(b"me".to_vec())).unwrap();
    dealer.connect("inproc://mandatory").unwrap();
    router.send_part("me", true, Wait::Dont).unwrap();
    router.send_part("found", false, Wait::Dont).unwrap();
    assert_eq!(dealer.recv(Wait::Dont).unwrap().head().as_slice(), b"found");
    drop((router, dealer));
    context.term().unwrap();
}
