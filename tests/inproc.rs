//! Sockets of one context over inproc.

mod common;

use std::thread;

use common::{Monitor, SocketExt, inproc_name, socket};
use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, Frame, Message, Socket, SocketType, Value, Wait, ids,
};

fn text(m: &Message) -> String {
    String::from_utf8_lossy(m.head().as_slice()).into_owned()
}

#[test]
fn a_socket_that_binds_later_does_not_conflate() {
    for binds_first in [false, true] {
        let context = Context::new();
        let (push, pull) = (
            socket(&context, SocketType::Push),
            socket(&context, SocketType::Pull),
        );
        pull.int(ids::CONFLATE, 1);
        if binds_first {
            pull.bind("inproc://newest").unwrap();
        }
        push.connect("inproc://newest").unwrap();
        if !binds_first {
            pull.bind("inproc://newest").unwrap();
        }
        for n in 1..=3 {
            push.put(&format!("{n}"));
        }
        assert_eq!(pull.take(), if binds_first { "3" } else { "1" });
    }
}

#[test]
fn push_pull_in_order() {
    let context = Context::with_options(zeroxide::ContextOptions::default());
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.bind("inproc://a").unwrap();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect("inproc://a").unwrap();
    let sender = thread::spawn(move || {
        for i in 0..100_000u32 {
            push.send(Frame::copy_from(&i.to_le_bytes()), Wait::Forever)
                .unwrap();
        }
    });
    for i in 0..100_000u32 {
        assert_eq!(
            pull.recv(Wait::Forever).unwrap().head().as_slice(),
            i.to_le_bytes()
        );
    }
    sender.join().unwrap();
    drop(pull);
    context.term().unwrap();
}

#[test]
fn connect_before_bind() {
    let context = Context::new();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect("inproc://b").unwrap();
    push.send("early", Wait::Dont).unwrap();
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.bind("inproc://b").unwrap();
    assert_eq!(text(&pull.recv(Wait::Forever).unwrap()), "early");
    let _ = Value::Int(0);
    drop((push, pull));
    context.term().unwrap();
}

/// Sends until it would have to wait.
fn fill(push: &Socket) -> usize {
    let mut count = 0;
    while push.send("0123456789", Wait::Dont).is_ok() {
        count += 1;
    }
    count
}

#[test]
fn high_water_marks_of_both_sides_count_whenever_they_are_set() {
    let context = Context::new();
    for bind_first in [true, false] {
        let endpoint = inproc_name();
        let (push, pull) = (
            socket(&context, SocketType::Push),
            socket(&context, SocketType::Pull),
        );
        push.int(ids::SNDHWM, 2);
        pull.int(ids::RCVHWM, 3);
        if bind_first {
            pull.bind(&endpoint).unwrap();
            push.connect(&endpoint).unwrap();
        } else {
            push.connect(&endpoint).unwrap();
            assert_eq!(fill(&push), 2, "its own, until a peer binds");
            pull.bind(&endpoint).unwrap();
            for _ in 0..2 {
                pull.take();
            }
        }
        assert_eq!(fill(&push), 5);
        push.int(ids::SNDHWM, 12);
        assert_eq!(fill(&push), 10);
        pull.int(ids::RCVHWM, 33);
        assert_eq!(fill(&push), 30);
        push.int(ids::SNDHWM, 0);
        for _ in 0..1000 {
            push.send("x", Wait::Dont).unwrap();
        }
        push.int(ids::SNDHWM, 1);
        assert_eq!(fill(&push), 0);
    }
}

/// Ten bytes of body, and the size of the message that holds them.
const EACH: i64 = 10 + 72;

#[test]
fn bytes_that_wait_can_be_limited() {
    let context = Context::new();
    let endpoint = inproc_name();
    let (push, pull) = (
        socket(&context, SocketType::Push),
        socket(&context, SocketType::Pull),
    );
    pull.int(ids::RCVHWM_BYTES, 10 * EACH);
    pull.bind(&endpoint).unwrap();
    push.connect(&endpoint).unwrap();
    assert_eq!(fill(&push), 10);
    push.int(ids::SNDHWM_BYTES, 5 * EACH);
    assert_eq!(fill(&push), 5);
    pull.int(ids::RCVHWM_BYTES, 0);
    push.int(ids::SNDHWM_BYTES, 0);
    assert_eq!(fill(&push), 2000 - 15);
}

#[test]
fn a_publisher_drops_messages_beyond_the_bytes_of_one_subscriber() {
    let context = Context::new();
    let (publisher, slow, quick) = (
        socket(&context, SocketType::Pub),
        socket(&context, SocketType::Sub),
        socket(&context, SocketType::Sub),
    );
    publisher.int(ids::SNDHWM_BYTES, 50 * EACH);
    let endpoint = inproc_name();
    publisher.bind(&endpoint).unwrap();
    for subscriber in [&slow, &quick] {
        subscriber.subscribe("").unwrap();
        subscriber.connect(&endpoint).unwrap();
    }
    for _ in 0..100 {
        publisher.put("0123456789");
        quick.take();
    }
    assert_eq!(publisher.dropped(DropReason::HighWater), 50);
    for _ in 0..50 {
        slow.take();
    }
    assert_eq!(slow.nothing(), ErrorKind::Again);
}

#[test]
fn a_socket_that_connected_first_gets_an_event_for_an_incompatible_bind() {
    let context = Context::new();
    let endpoint = inproc_name();
    let (push, publisher) = (
        socket(&context, SocketType::Push),
        socket(&context, SocketType::Pub),
    );
    let monitors = [&push, &publisher].map(|socket| Monitor::of(&context, socket));
    push.connect(&endpoint).unwrap();
    push.put("to whom?");
    publisher.bind(&endpoint).unwrap();
    for monitor in monitors {
        let seen = monitor.wait_for(EventKind::HandshakeFailedProtocol);
        assert_eq!((seen.value, seen.endpoint), (0x1000_0018, endpoint.clone()));
    }
    push.put("still waiting");
    let late = socket(&context, SocketType::Push);
    assert_eq!(
        late.connect(&endpoint).unwrap_err().kind(),
        ErrorKind::IncompatibleProtocol
    );

    // The message waits for a peer that can receive it.
    publisher.unbind(&endpoint).unwrap();
    let pull = socket(&context, SocketType::Pull);
    pull.bind(&endpoint).unwrap();
    assert_eq!(pull.take(), "to whom?");
    assert_eq!(pull.take(), "still waiting");
    push.put("and now");
    assert_eq!(pull.take(), "and now");
}

#[test]
fn connections_to_a_name_that_is_never_bound_leave_nothing() {
    let _alone = common::alone();
    let context = Context::new();
    let push = context.socket(SocketType::Push).unwrap();
    let churn = |names: usize| {
        for n in 0..names {
            let name = format!("inproc://nobody-{}", n % 3);
            push.connect(&name).unwrap();
            push.disconnect(&name).unwrap();
        }
    };
    churn(1_000);
    let before = common::resident();
    churn(20_000);
    let grown = common::resident().saturating_sub(before);
    assert!(grown < 2_000, "{grown} KiB");
}
