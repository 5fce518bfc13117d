//! Priorities of endpoints: which peers go first, on every type that chooses.

mod common;

use common::{SocketExt, Watchdog, free_tcp_endpoint, inproc_name, raw, socket, tcp_pair, until};
use zeroxide::{Context, ErrorKind, Message, Socket, SocketType, Wait, ids};

use SocketType::{
    Client, Dealer, Dish, Gather, Pub, Pull, Push, Radio, Rep, Req, Router, Scatter, Server, Sub,
    Xsub,
};

/// Peers that are bound, each with its endpoint.
fn bound<const N: usize>(context: &Context, socket_type: SocketType) -> [(Socket, String); N] {
    std::array::from_fn(|_| {
        let peer = socket(context, socket_type);
        let endpoint = peer.bind(&inproc_name()).unwrap();
        (peer, endpoint)
    })
}

fn connect(socket: &Socket, endpoint: &str, option: i32, priority: i64) {
    socket.int(option, priority);
    socket.connect(endpoint).unwrap();
}

#[test]
fn the_best_peer_gets_everything_until_it_is_full() {
    let _watchdog = Watchdog::new("the_best_peer_gets_everything_until_it_is_full");
    let context = Context::new();
    for (sends, receives) in [
        (Push, Pull),
        (Dealer, Dealer),
        (Scatter, Gather),
        (Client, Server),
    ] {
        let [(worst, last), (best, first), (like_best, other)] = bound(&context, receives);
        for peer in [&worst, &best, &like_best] {
            peer.int(ids::RCVHWM, 1);
        }
        let sender = socket(&context, sends);
        sender.int(ids::SNDHWM, 1);
        connect(&sender, &last, ids::SNDPRIO, 16);
        connect(&sender, &first, ids::SNDPRIO, 3);
        connect(&sender, &other, ids::SNDPRIO, 3);
        // A queue between two sockets has room for both marks.
        for number in 0..6 {
            sender.send(number.to_string(), Wait::Dont).unwrap();
        }
        assert_eq!(
            sender.send("7", Wait::Dont).unwrap_err().error.kind(),
            ErrorKind::Again
        );
        assert_eq!([best.take(), best.take()], ["0", "2"], "{sends}");
        assert_eq!([like_best.take(), like_best.take()], ["1", "3"], "{sends}");
        assert_eq!([worst.take(), worst.take()], ["4", "5"], "{sends}");
        // As soon as there is room, the best ones go first again.
        sender.put("8");
        sender.put("9");
        assert_eq!(
            (best.take(), like_best.take()),
            ("8".into(), "9".into()),
            "{sends}"
        );
    }
}

#[test]
fn messages_of_the_best_peer_are_received_first() {
    let _watchdog = Watchdog::new("messages_of_the_best_peer_are_received_first");
    let context = Context::new();
    for (receives, sends) in [
        (Pull, Push),
        (Dealer, Dealer),
        (Router, Dealer),
        (Gather, Scatter),
        (Server, Client),
        (Sub, Pub),
        (Xsub, Pub),
        (Dish, Radio),
    ] {
        let [(worst, last), (best, first)] = bound(&context, sends);
        let receiver = socket(&context, receives);
        match receives {
            Sub => receiver.bytes(ids::SUBSCRIBE, b""),
            Dish => receiver.join("group").unwrap(),
            _ => {}
        }
        connect(&receiver, &last, ids::RCVPRIO, 9);
        connect(&receiver, &first, ids::RCVPRIO, 1);
        if receives == Xsub {
            receiver.send(vec![1u8], Wait::Forever).unwrap();
        }
        let message = |text: &str| match sends {
            Radio => Message::from(text).with_group("group"),
            _ => Message::from(text),
        };
        for _ in 0..2 {
            worst.send(message("late"), Wait::Forever).unwrap();
        }
        best.send(message("first"), Wait::Forever).unwrap();
        let next = || {
            let message = receiver.recv(Wait::Forever).unwrap();
            let last = message.iter().last().unwrap();
            String::from_utf8_lossy(last.as_slice()).into_owned()
        };
        assert_eq!(next(), "first", "{receives}");
        assert_eq!(next(), "late", "{receives}");
        best.send(message("second"), Wait::Forever).unwrap();
        assert_eq!([next(), next()], ["second", "late"], "{receives}");
        assert_eq!(receiver.nothing(), ErrorKind::Again);
    }
}

#[test]
fn requests_go_to_the_best_peer_and_are_answered_in_order_of_priority() {
    let _watchdog =
        Watchdog::new("requests_go_to_the_best_peer_and_are_answered_in_order_of_priority");
    let context = Context::new();
    let [(worst, last), (best, first)] = bound(&context, Rep);
    let req = socket(&context, Req);
    connect(&req, &last, ids::SNDPRIO, 8);
    connect(&req, &first, ids::SNDPRIO, 7);
    for _ in 0..3 {
        req.put("request");
        assert_eq!(best.take(), "request");
        best.put("reply");
        assert_eq!(req.take(), "reply");
    }
    assert_eq!(worst.nothing(), ErrorKind::Again);
    let [(unimportant, there), (important, here)] = bound(&context, Req);
    let rep = socket(&context, Rep);
    connect(&rep, &there, ids::RCVPRIO, 8);
    connect(&rep, &here, ids::RCVPRIO, 7);
    unimportant.put("late");
    important.put("first");
    assert_eq!(rep.take(), "first");
    rep.put("reply");
    assert_eq!(rep.take(), "late");
}

#[test]
fn a_bound_endpoint_has_a_priority_for_all_its_peers() {
    let _watchdog = Watchdog::new("a_bound_endpoint_has_a_priority_for_all_its_peers");
    let context = Context::new();
    let push = socket(&context, Push);
    push.int(ids::SNDPRIO, 2);
    let reserved = push.bind("tcp://127.0.0.1:*").unwrap();
    push.int(ids::SNDPRIO, 8);
    let usual = push.bind("tcp://127.0.0.1:*").unwrap();
    let mut spare = raw::join(&usual, "PULL");
    let mut peers = [raw::join(&reserved, "PULL"), raw::join(&reserved, "PULL")];
    until(|| push.peers() == 3);
    for text in ["1", "2", "3", "4"] {
        push.put(text);
    }
    let mut read = Vec::new();
    for peer in &mut peers {
        read.extend((0..2).map(|_| raw::read_frame(peer).unwrap().1));
    }
    read.sort();
    assert_eq!(read, [b"1", b"2", b"3", b"4"]);
    // The peers of the other endpoint are the fallback.
    drop(peers);
    until(|| push.peers() == 1);
    push.put("5");
    assert_eq!(raw::read_frame(&mut spare).unwrap().1, b"5");
}

#[test]
fn priorities_change_while_there_are_peers() {
    let _watchdog = Watchdog::new("priorities_change_while_there_are_peers");
    let context = Context::new();
    let [(one, here), (other, there)] = bound(&context, Pull);
    let push = socket(&context, Push);
    push.connect(&here).unwrap();
    push.connect(&there).unwrap();
    push.set_priority(&there, Some(1), None).unwrap();
    push.put("1");
    push.put("2");
    assert_eq!([other.take(), other.take()], ["1", "2"]);
    push.set_priority(&there, Some(16), Some(16)).unwrap();
    push.put("3");
    push.put("4");
    assert_eq!([one.take(), one.take()], ["3", "4"]);
    push.set_priority(&there, Some(8), None).unwrap();
    push.put("5");
    push.put("6");
    let mut both = [one.take(), other.take()];
    both.sort();
    assert_eq!(both, ["5", "6"]);
    // Also for messages that wait.
    let [(quick, quickly), (slow, slowly)] = bound(&context, Push);
    let pull = socket(&context, Pull);
    pull.connect(&quickly).unwrap();
    pull.connect(&slowly).unwrap();
    slow.put("slow");
    quick.put("quick");
    pull.set_priority(&quickly, None, Some(2)).unwrap();
    assert_eq!([pull.take(), pull.take()], ["quick", "slow"]);
}

#[test]
fn mistakes_are_errors() {
    let _watchdog = Watchdog::new("mistakes_are_errors");
    let context = Context::new();
    let (pull, push, endpoint) = tcp_pair(&context, Pull, Push);
    for wrong in [0, 17, 255] {
        let error = push.set_priority(&endpoint, Some(wrong), None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(push.set_sndprio(wrong).is_err() && pull.set_rcvprio(wrong).is_err());
    }
    let error = push.set_priority("tcp://127.0.0.1:1", Some(1), None);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NoEntry);
    assert_eq!((push.sndprio().unwrap(), push.rcvprio().unwrap()), (8, 8));
    push.set_priority(&endpoint, None, None).unwrap();
    push.close(None);
    let error = push.set_priority(&endpoint, Some(1), None);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotSocket);
}

/// With IMMEDIATE, a peer that is away has no queue, and so the next best one gets the messages meanwhile.
#[test]
fn a_peer_that_is_away_is_passed_over_and_goes_first_when_it_is_back() {
    let _watchdog =
        Watchdog::new("a_peer_that_is_away_is_passed_over_and_goes_first_when_it_is_back");
    let context = Context::new();
    let best = free_tcp_endpoint();
    let spare = socket(&context, Pull);
    let push = socket(&context, Push);
    push.int(ids::IMMEDIATE, 1);
    push.int(ids::RECONNECT_IVL, 1);
    connect(&push, &best, ids::SNDPRIO, 1);
    connect(
        &push,
        &spare.bind("tcp://127.0.0.1:*").unwrap(),
        ids::SNDPRIO,
        2,
    );
    push.put("1");
    assert_eq!(spare.take(), "1");
    let back = socket(&context, Pull);
    back.bind(&best).unwrap();
    until(|| push.peers() == 2);
    push.put("2");
    assert_eq!(back.take(), "2");
}
