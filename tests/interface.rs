//! The interface for Rust users: what can be sent, and which names there are.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{SocketExt, inproc_name, socket};
use zeroxide::{Context, Error, ErrorKind, Frame, Message, Socket, SocketType, Value, Wait, ids};
use zeroxide_proto::wires::{WIRES, standard};

fn pipeline(context: &Context) -> (Socket, Socket) {
    let pull = context.socket(SocketType::Pull).unwrap();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(&pull.bind(&inproc_name()).unwrap()).unwrap();
    (pull, push)
}

#[test]
fn whatever_can_be_a_message_can_be_sent() {
    let context = Context::new();
    let (pull, push) = pipeline(&context);
    push.send("body", Wait::Forever).unwrap();
    push.send("body".to_owned(), Wait::Forever).unwrap();
    push.send(b"body", Wait::Forever).unwrap();
    push.send(b"body".as_slice(), Wait::Forever).unwrap();
    push.send(b"body".to_vec(), Wait::Forever).unwrap();
    push.send(Bytes::from("body"), Wait::Forever).unwrap();
    push.send(Frame::from("body"), Wait::Forever).unwrap();
    push.send(Message::from("body"), Wait::Forever).unwrap();
    push.send_part("body", false, Wait::Forever).unwrap();
    let (sent, failed) = push.send_batch(["body", "body"], Wait::Forever);
    assert!(sent == 2 && failed.is_none());
    for _ in 0..11 {
        assert_eq!(pull.recv(Wait::Forever).unwrap(), Message::from("body"));
    }
    push.send(["two", "parts"], Wait::Forever).unwrap();
    push.send(vec![b"two".to_vec(), b"parts".to_vec()], Wait::Forever)
        .unwrap();
    push.send([Frame::from("two"), "parts".into()], Wait::Forever)
        .unwrap();
    for _ in 0..3 {
        let expected = Message::from_iter(["two", "parts"]);
        assert_eq!(pull.recv(Wait::Forever).unwrap(), expected);
    }
}

#[test]
fn a_message_that_is_not_sent_comes_back_as_an_error_with_the_reason() {
    let context = Context::new();
    let push = context.socket(SocketType::Push).unwrap();
    let failed = push.send(["a", "b"], Wait::Dont).unwrap_err();
    assert_eq!(failed.message, Message::from(["a", "b"]));
    assert_eq!(failed.error.kind(), ErrorKind::Again);
    let error: Box<dyn std::error::Error> = Box::new(failed);
    assert!(error.downcast_ref::<zeroxide::SendError>().is_some());
}

#[test]
fn options_have_the_types_of_their_values() {
    const MOMENT: Duration = Duration::from_millis(250);
    let context = Context::new();
    let dealer = context.socket(SocketType::Dealer).unwrap();

    dealer.set_sndhwm(10).unwrap();
    assert_eq!(dealer.sndhwm().unwrap(), 10);
    assert_eq!(dealer.get_option(ids::SNDHWM).unwrap(), Value::Int(10));
    let error = dealer.set_sndhwm(usize::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);

    // A missing time is -1 for one option and 0 for another.
    for time in [Some(MOMENT), None, Some(Duration::ZERO)] {
        dealer.set_linger(time).unwrap();
        assert_eq!(dealer.linger().unwrap(), time);
    }
    for time in [Some(MOMENT), None] {
        dealer.set_connect_timeout(time).unwrap();
        assert_eq!(dealer.connect_timeout().unwrap(), time);
    }
    dealer.set_rcvtimeo(Some(Duration::from_nanos(1))).unwrap();
    let shortest = Some(Duration::from_millis(1));
    assert_eq!(dealer.rcvtimeo().unwrap(), shortest, "rounded up");
    assert!(dealer.set_linger(Some(Duration::MAX)).is_err());
    dealer
        .set_tcp_keepalive_idle(Some(Duration::from_secs(7)))
        .unwrap();
    let seconds = dealer.get_option(ids::TCP_KEEPALIVE_IDLE).unwrap();
    assert_eq!(seconds, Value::Int(7));

    dealer.set_tcp_keepalive(Some(false)).unwrap();
    assert_eq!(dealer.tcp_keepalive().unwrap(), Some(false));
    dealer.set_tcp_keepalive(None).unwrap();
    assert_eq!(dealer.tcp_keepalive().unwrap(), None);
    assert_eq!(dealer.sndbuf().unwrap(), None);
    dealer.set_sndbuf(Some(65_536)).unwrap();
    assert_eq!(dealer.sndbuf().unwrap(), Some(65_536));
    dealer.set_affinity(u64::MAX).unwrap();
    assert_eq!(dealer.affinity().unwrap(), u64::MAX);

    dealer.set_immediate(true).unwrap();
    assert!(dealer.immediate().unwrap());
    dealer.set_probe_router(true).unwrap();
    dealer.set_routing_id("me").unwrap();
    assert_eq!(dealer.routing_id().unwrap(), b"me");
    dealer.set_zap_domain("global").unwrap();
    assert_eq!(dealer.zap_domain().unwrap(), "global");
    let public = zeroxide::curve_keypair().unwrap().0;
    dealer.set_curve_serverkey(public).unwrap();
    assert_eq!(dealer.curve_serverkey().unwrap().len(), 40);
    let endpoint = dealer.bind(&inproc_name()).unwrap();
    assert_eq!(dealer.last_endpoint().unwrap(), endpoint);

    context.set_max_sockets(2).unwrap();
    context.set_blocky(false).unwrap();
    context.set_thread_name_prefix("app").unwrap();
    context.set_memory_budget(1 << 30).unwrap();
    assert_eq!(context.max_sockets().unwrap(), 2);
    assert!(!context.blocky().unwrap());
    assert_eq!(context.thread_name_prefix().unwrap(), "app");
    assert_eq!(context.memory_budget().unwrap(), 1 << 30);
    let publisher = context.socket(SocketType::Pub).unwrap();
    assert_eq!(publisher.linger().unwrap(), Some(Duration::ZERO));
    assert_eq!(publisher.topics_count().unwrap(), 0);
    assert!(publisher.set_req_relaxed(true).is_err(), "an option of REQ");
}

#[test]
fn errors_read_well_whether_the_name_of_a_wire_protocol_is_a_singular_or_a_plural() {
    let context = Context::new();
    let mut seen = [0; 3];
    let mut is = |at: usize, error: Error, text: String| {
        seen[at] += 1;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().ends_with(&text), "{error}, not {text}");
    };
    for wire in WIRES.iter().filter(|wire| !wire.is_default()) {
        let (title, number) = (wire.title, wire.number);
        for socket_type in SocketType::ALL {
            let socket = socket(&context, *socket_type);
            if let Err(error) = socket.set_wire_protocol(number) {
                let text = format!(
                    "there is no {socket_type} socket over {title} (WIRE_PROTOCOL {number})"
                );
                is(0, error, text);
                continue;
            }
            let error = socket.set_wire_protocol(0).unwrap_err();
            let zmtp = standard().title;
            let text =
                format!("this {socket_type} socket speaks {title}, and cannot return to {zmtp}");
            is(1, error, text);
            socket.bytes(ids::PLAIN_USERNAME, b"user");
            let error = socket.connect("tcp://127.0.0.1:9").unwrap_err();
            let text = format!(
                "there is no security mechanism over {title} (WIRE_PROTOCOL {number}), but this socket has PLAIN"
            );
            is(2, error, text);
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}
