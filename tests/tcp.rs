use std::thread;
use zeroxide::{Context, SocketType, Wait, Message, Frame};

fn text(m: &Message) -> String { String::from_utf8_lossy(m.head().as_slice()).into_owned() }

#[test]
fn hello() {
    let context = Context::new();
    let pull = context.socket(SocketType::Pull).unwrap();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(&endpoint).unwrap();
    push.send("Hello".into(), Wait::Forever).unwrap();
    assert_eq!(text(&pull.recv(Wait::Forever).unwrap()), "Hello");
    drop((push, pull));
    context.term().unwrap();
}

#[test]
fn many_in_order_with_linger() {
    for size in [1usize, 64, 300, 10_000] {
        let context = Context::new();
        let pull = context.socket(SocketType::Pull).unwrap();
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        let n = if size > 1000 { 20_000u32 } else { 300_000 };
        let sender = thread::spawn(move || {
            let context = Context::new();
            let push = context.socket(SocketType::Push).unwrap();
            push.connect(&endpoint).unwrap();
            let mut body = vec![7u8; size.max(4)];
            let t = std::time::Instant::now();
            for i in 0..n { body[..4].copy_from_slice(&i.to_le_bytes()); push.send(Frame::copy_from(&body).into(), Wait::Forever).unwrap(); }
            eprintln!("send {size}: {:.0}/s", n as f64 / t.elapsed().as_secs_f64());
            drop(push);
            context.term().unwrap();
        });
        for i in 0..n { assert_eq!(&pull.recv(Wait::Forever).unwrap().head().as_slice()[..4], i.to_le_bytes()); }
        sender.join().unwrap();
        drop(pull);
        context.term().unwrap();
    }
}

#[test]
fn req_rep() {
    let context = Context::new();
    let rep = context.socket(SocketType::Rep).unwrap();
    let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
    let server = thread::spawn(move || for _ in 0..20_000 { let m = rep.recv(Wait::Forever).unwrap(); rep.send(m, Wait::Forever).unwrap(); });
    let req = context.socket(SocketType::Req).unwrap();
    req.connect(&endpoint).unwrap();
    let t = std::time::Instant::now();
    for _ in 0..20_000 { req.send("x".into(), Wait::Forever).unwrap(); req.recv(Wait::Forever).unwrap(); }
    eprintln!("req/rep one way {:?}", t.elapsed() / 40_000);
    server.join().unwrap();
    drop(req);
    context.term().unwrap();
}
