//! The transport in use, through the public interface of `zeroxide` alone.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zeroxide::{Context, ErrorKind, Frame, Message, Socket, SocketType, Wait, ids};
use zeroxide_udp::Udp;

const PATIENCE: Duration = Duration::from_secs(60);

fn context() -> Context {
    let context = Context::new();
    context.add_transport(Arc::new(Udp)).unwrap();
    context
}

/// A PULL socket, and its endpoint.
fn bound(context: &Context) -> (Socket, String) {
    let pull = context.socket(SocketType::Pull).unwrap();
    let endpoint = pull.bind("datagram://127.0.0.1:0").unwrap();
    assert!(!endpoint.ends_with(":0"), "{endpoint}");
    (pull, endpoint)
}

fn connected(context: &Context, endpoint: &str) -> Socket {
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(endpoint).unwrap();
    push
}

fn receive(pull: &Socket) -> Message {
    pull.recv(Wait::Until(Instant::now() + PATIENCE)).unwrap()
}

#[test]
fn messages_of_several_parts_arrive() {
    let context = context();
    let (pull, endpoint) = bound(&context);
    let push = connected(&context, &endpoint);
    for number in 0..100 {
        let parts = [Frame::from(&*number.to_string()), Frame::from("tail")];
        let message = Message::from_frames(parts);
        push.send(message.clone(), Wait::Forever).unwrap();
        assert_eq!(receive(&pull), message);
    }
    push.flush(Some(PATIENCE)).unwrap();
    let stats = push.stats().unwrap();
    assert_eq!((stats.sent, stats.queued_out), (100, 0));
    assert!(stats.peers[0].connected);
    assert_eq!(pull.stats().unwrap().received, 100);
}

#[test]
fn the_context_ends_after_the_messages_of_closed_sockets_have_left() {
    let context = context();
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let endpoint = format!("datagram://{}", receiver.local_addr().unwrap());
    let push = connected(&context, &endpoint);
    for _ in 0..10 {
        push.send("last", Wait::Forever).unwrap();
    }
    push.close(None);
    context.term().unwrap();
    let mut buffer = [0; 100];
    for _ in 0..10 {
        let count = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"\0\0\0\x04last");
    }
}

#[test]
fn an_address_is_free_after_unbind() {
    let context = context();
    let (pull, endpoint) = bound(&context);
    let other = context.socket(SocketType::Pull).unwrap();
    assert_eq!(
        other.bind(&endpoint).unwrap_err().kind(),
        ErrorKind::AddressInUse
    );
    pull.unbind(&endpoint).unwrap();
    other.bind(&endpoint).unwrap();
    let push = connected(&context, &endpoint);
    push.send("again", Wait::Forever).unwrap();
    assert_eq!(receive(&other).head().as_slice(), b"again");
    drop((pull, other, push));
    context.term().unwrap();
}

#[test]
fn a_disconnected_socket_sends_no_more() {
    let context = context();
    let (_pull, endpoint) = bound(&context);
    let push = connected(&context, &endpoint);
    push.disconnect(&endpoint).unwrap();
    assert_eq!(
        push.send("nowhere", Wait::Dont).unwrap_err().error.kind(),
        ErrorKind::Again
    );
}

#[test]
fn a_receiver_at_its_high_water_mark_loses_messages_and_goes_on() {
    let context = context();
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.set_option(ids::RCVHWM, &zeroxide::Value::Int(5))
        .unwrap();
    let endpoint = pull.bind("datagram://127.0.0.1:0").unwrap();
    let push = connected(&context, &endpoint);
    for _ in 0..200 {
        push.send("many", Wait::Forever).unwrap();
    }
    push.flush(Some(PATIENCE)).unwrap();
    assert_eq!(receive(&pull).head().as_slice(), b"many");
    // Until there is room, even this one may be lost.
    let patience = Instant::now() + PATIENCE;
    loop {
        push.send("one more", Wait::Forever).unwrap();
        let soon = Wait::Until(Instant::now() + Duration::from_millis(10));
        if pull
            .recv(soon)
            .is_ok_and(|message| message.head().as_slice() == b"one more")
        {
            break;
        }
        assert!(Instant::now() < patience);
    }
}

#[test]
fn mistakes_are_reported() {
    let context = context();
    let dealer = context.socket(SocketType::Dealer).unwrap();
    let error = dealer.connect("datagram://127.0.0.1:1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IncompatibleProtocol);
    assert!(
        error.to_string().contains("PUSH sockets connect"),
        "{error}"
    );
    let push = context.socket(SocketType::Push).unwrap();
    let error = push.connect("datagram://somewhere").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let again = context.add_transport(Arc::new(Udp)).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AddressInUse);
    let plain = Context::new().socket(SocketType::Push).unwrap();
    let error = plain.connect("datagram://127.0.0.1:1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoProtocol);
}
