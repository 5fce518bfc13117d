//! Many that connect to one address at once: they come in turns, and each has its own.

mod common;

use std::net::TcpListener;

use common::{IpcName, SocketExt, Watchdog, socket, until};
use zeroxide::{Context, Socket, SocketType, ids};

use SocketType::{Pull, Push};

/// More than have their turn at once.
const CROWD: usize = 90;

/// A listener that speaks no ZMTP, and as many that want to talk to it.
fn silence(context: &Context) -> (TcpListener, String, Vec<Socket>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let crowd = (0..CROWD).map(|_| socket(context, Push)).collect();
    (listener, endpoint, crowd)
}

#[test]
fn all_connects_complete_even_after_others_were_closed_before_their_turn() {
    let _watchdog =
        Watchdog::new("all_connects_complete_even_after_others_were_closed_before_their_turn");
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), IpcName::new().endpoint()] {
        let context = Context::new();
        let pull = socket(&context, Pull);
        let endpoint = pull.bind(&endpoint).unwrap();
        let mut sent = Vec::new();
        for n in 0..4 * CROWD {
            let push = socket(&context, Push);
            push.int(ids::LINGER, -1);
            push.connect(&endpoint).unwrap();
            sent.push(n.to_string());
            push.put(&sent[n]);
        }
        let mut received: Vec<_> = sent.iter().map(|_| pull.take()).collect();
        received.sort_unstable();
        sent.sort_unstable();
        assert_eq!(received, sent);
    }
}

#[test]
fn a_silent_peer_does_not_block_the_others() {
    let _watchdog = Watchdog::new("a_silent_peer_does_not_block_the_others");
    let context = Context::new();
    let (listener, endpoint, crowd) = silence(&context);
    for push in &crowd {
        push.connect(&endpoint).unwrap();
    }
    let accepted: Vec<_> = crowd.iter().map(|_| listener.accept().unwrap()).collect();
    assert_eq!(accepted.len(), CROWD);
}

#[test]
fn a_closed_socket_gives_its_turn_to_others() {
    let _watchdog = Watchdog::new("a_closed_socket_gives_its_turn_to_others");
    let context = Context::new();
    let (listener, endpoint, crowd) = silence(&context);
    for push in &crowd {
        push.connect(&endpoint).unwrap();
    }
    drop(crowd);
    let last = socket(&context, Push);
    last.int(ids::RECONNECT_IVL, 1);
    last.connect(&endpoint).unwrap();
    last.int(ids::LINGER, -1);
    last.put("x");
    drop(listener);
    let pull = socket(&context, Pull);
    until(|| pull.bind(&endpoint).is_ok());
    assert_eq!(pull.take(), "x");
    drop((last, pull));
    context.term().unwrap();
}
