//! Sockets of one context over inproc.

use std::thread;
use zeroxide::{Context, Frame, Message, SocketType, Value, Wait};

fn text(m: &Message) -> String {
    String::from_utf8_lossy(m.head().as_slice()).into_owned()
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
            push.send(Frame::copy_from(&i.to_le_bytes()).into(), Wait::Forever)
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
    push.send("early".into(), Wait::Dont).unwrap();
    let pull = context.socket(SocketType::Pull).unwrap();
    pull.bind("inproc://b").unwrap();
    assert_eq!(text(&pull.recv(Wait::Forever).unwrap()), "early");
    let _ = Value::Int(0);
    drop((push, pull));
    context.term().unwrap();
}
