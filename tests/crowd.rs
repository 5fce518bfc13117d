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
fn everybody_gets_through_also_who_was_closed_before_its_turn() {
    let _watchdog = Watchdog::new("everybody_gets_through_also_who_was_closed_before_its_turn");
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
fn a_peer_that_says_nothing_does_not_keep_the_others_waiting_for_ever() {
    let _watchdog =
        Watchdog::new("a_peer_that_says_nothing_does_not_keep_the_others_waiting_for_ever");
    let context = Context::new();
    let (listener, endpoint, crowd) = silence(&context);
    for push in &crowd {
        push.connect(&endpoint).unwrap();
    }
    let accepted: Vec<_> = crowd.iter().map(|_| listener.accept().unwrap()).collect();
    assert_eq!(accepted.len(), CROWD);
}

#[test]
fn who_is_closed_gives_its_turn_or_its_place_to_others() {
    let _watchdog = Watchdog::new("who_is_closed_gives_its_turn_or_its_place_to_others");
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
