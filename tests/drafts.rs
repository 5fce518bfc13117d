//! The socket types that are drafts in libzmq: numbers of peers, groups, single parts, and the messages at the
//! beginning and the end of connections.

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use common::raw::{self, COMMAND, MORE};
use common::{Monitor, SocketExt, Watchdog, inproc_name, socket, until};
use zeroxide::{Context, DropReason, ErrorKind, EventKind, Message, Socket, SocketType, Wait, ids};

use SocketType::{
    Channel, Client, Dealer, Dish, Gather, Peer, Pub, Radio, Router, Scatter, Server,
};

/// An endpoint to bind.
fn endpoints() -> [String; 2] {
    ["tcp://127.0.0.1:*".to_owned(), inproc_name()]
}

fn text(message: &Message) -> String {
    message.head().escape_ascii().to_string()
}

fn recv(socket: &Socket) -> Message {
    socket.recv(Wait::Forever).unwrap()
}

#[test]
fn a_server_answers_each_of_many_clients_from_many_threads() {
    let _watchdog = Watchdog::new("a_server_answers_each_of_many_clients_from_many_threads");
    let context = Context::new();
    for endpoint in endpoints() {
        let server = socket(&context, Server);
        let endpoint = Arc::new(server.bind(&endpoint).unwrap());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let server = server.clone();
                thread::spawn(move || {
                    loop {
                        match server.recv(Wait::Forever) {
                            Ok(message) => server.send(message, Wait::Forever).unwrap(),
                            Err(error) => return assert_eq!(error.kind(), ErrorKind::NotSocket),
                        }
                    }
                })
            })
            .collect();
        let clients: Vec<_> = (0..5)
            .map(|n| {
                let (context, endpoint) = (context.clone(), endpoint.clone());
                thread::spawn(move || {
                    let client = socket(&context, Client);
                    client.connect(&endpoint).unwrap();
                    for question in 0..200 {
                        let body = format!("{n} {question}");
                        client.send(body.as_str(), Wait::Forever).unwrap();
                        let answer = recv(&client);
                        assert_eq!((text(&answer), answer.routing_id()), (body, None));
                    }
                })
            })
            .collect();
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        server.close(None);
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
    }
    context.term().unwrap();
}

#[test]
fn a_client_that_has_left_is_unreachable() {
    let _watchdog = Watchdog::new("a_client_that_has_left_is_unreachable");
    let context = Context::new();
    for endpoint in endpoints() {
        let server = socket(&context, Server);
        let client = socket(&context, Client);
        client.connect(&server.bind(&endpoint).unwrap()).unwrap();
        client.send("hello", Wait::Forever).unwrap();
        let hello = recv(&server);
        drop(client);
        until(|| server.peers() == 0);
        let failed = server.send(hello, Wait::Forever).unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::HostUnreachable);
        let failed = server
            .send("without a routing id", Wait::Forever)
            .unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::HostUnreachable);
        assert_eq!(&failed.message.head()[..], b"without a routing id");
    }
}

#[test]
fn a_wait_for_a_full_client_ends_when_it_leaves() {
    let _watchdog = Watchdog::new("a_wait_for_a_full_client_ends_when_it_leaves");
    let context = Context::new();
    let server = socket(&context, Server);
    let client = socket(&context, Client);
    server.int(ids::SNDHWM, 1);
    client.int(ids::RCVHWM, 1);
    client
        .connect(&server.bind(&inproc_name()).unwrap())
        .unwrap();
    client.send("hello", Wait::Forever).unwrap();
    let hello = recv(&server);
    while server.send(hello.clone(), Wait::Dont).is_ok() {}
    let waiting = {
        let server = server.clone();
        thread::spawn(move || server.send(hello, Wait::Forever).unwrap_err().error.kind())
    };
    drop(client);
    assert_eq!(waiting.join().unwrap(), ErrorKind::HostUnreachable);
}

#[test]
fn a_peer_is_addressed_from_the_connect_on_and_disconnected_by_its_number() {
    let _watchdog =
        Watchdog::new("a_peer_is_addressed_from_the_connect_on_and_disconnected_by_its_number");
    let context = Context::new();
    for endpoint in endpoints() {
        let (one, other) = (socket(&context, Peer), socket(&context, Peer));
        let endpoint = other.bind(&endpoint).unwrap();
        let number = one.connect_peer(&endpoint).unwrap();
        let early = Message::from("early").with_routing_id(number);
        one.send(early, Wait::Forever).unwrap();
        let heard = recv(&other);
        assert_eq!(text(&heard), "early");
        let back = heard.routing_id().unwrap();
        other
            .send(Message::from("back").with_routing_id(back), Wait::Forever)
            .unwrap();
        assert_eq!(recv(&one).routing_id(), Some(number));

        // Each side ends it once.
        other.disconnect_peer(back).unwrap();
        until(|| other.peers() == 0);
        assert_eq!(
            other.disconnect_peer(back).unwrap_err().kind(),
            ErrorKind::HostUnreachable
        );
        let mut number = number;
        if endpoint.starts_with("inproc") {
            // Only streams connect again by themselves.
            one.disconnect(&endpoint).unwrap();
            number = one.connect_peer(&endpoint).unwrap();
        }
        other.wait_connected(1, Wait::Forever).unwrap();
        one.disconnect_peer(number).unwrap();
        assert_eq!(
            one.disconnect(&endpoint).unwrap_err().kind(),
            ErrorKind::NoEntry
        );
        let late = Message::from("late").with_routing_id(number);
        let failed = one.send(late, Wait::Forever).unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::HostUnreachable);
        until(|| other.peers() == 0);
    }
}

#[test]
fn calls_that_a_type_does_not_have_are_refused_with_a_sentence() {
    let context = Context::new();
    let (peer, client) = (socket(&context, Peer), socket(&context, Client));
    let (radio, dish) = (socket(&context, Radio), socket(&context, Dish));
    let nowhere = "tcp://127.0.0.1:1";
    for (result, kind) in [
        (
            client.connect_peer(nowhere).map(drop),
            ErrorKind::NotSupported,
        ),
        (client.disconnect_peer(1), ErrorKind::NotSupported),
        (peer.disconnect_peer(1), ErrorKind::HostUnreachable),
        (radio.join("g"), ErrorKind::NotSupported),
        (radio.leave("g"), ErrorKind::NotSupported),
        (dish.leave("g"), ErrorKind::Invalid),
        (dish.join("a\0b"), ErrorKind::Invalid),
        (dish.join([b'x'; 256]), ErrorKind::Invalid),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.context().is_some());
    }
    peer.int(ids::IMMEDIATE, 1);
    assert_eq!(
        peer.connect_peer(nowhere).unwrap_err().kind(),
        ErrorKind::Fault
    );
    for (kind, option) in [
        (Client, ids::DISCONNECT_MSG),
        (Server, ids::HICCUP_MSG),
        (Pub, ids::HELLO_MSG),
    ] {
        let error = socket(&context, kind)
            .set_option(option, &"x".into())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    for kind in [Server, Client, Radio, Scatter, Peer, Channel] {
        let failed = socket(&context, kind)
            .send_part("a", true, Wait::Dont)
            .unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::Invalid, "{kind}");
        assert!(
            failed.error.to_string().contains("one part"),
            "{}",
            failed.error
        );
    }
    assert_eq!(
        socket(&context, Gather)
            .send("x", Wait::Dont)
            .unwrap_err()
            .error
            .kind(),
        ErrorKind::NotSupported
    );
}

#[test]
fn a_dish_joins_again_after_a_reconnect() {
    let _watchdog = Watchdog::new("a_dish_joins_again_after_a_reconnect");
    let context = Context::new();
    let dish = socket(&context, Dish);
    dish.join("kept").unwrap();
    dish.join("left").unwrap();
    let endpoint = common::free_tcp_endpoint();
    dish.int(ids::RECONNECT_IVL, 1);
    dish.connect(&endpoint).unwrap();
    for round in 0..3 {
        let radio = socket(&context, Radio);
        radio.bind(&endpoint).unwrap();
        radio.wait_subscribed("kept", 1, Wait::Forever).unwrap();
        if round == 0 {
            radio.wait_subscribed("left", 1, Wait::Forever).unwrap();
            dish.leave("left").unwrap();
            until(|| radio.count_subscribed("left").unwrap() == 0);
        }
        assert_eq!(radio.count_subscribed("left").unwrap(), 0);
        let message = Message::from(format!("{round}")).with_group("kept");
        radio.send(message.clone(), Wait::Forever).unwrap();
        assert_eq!(recv(&dish), message);
    }
}

#[test]
fn a_radio_that_connects_knows_what_the_new_connection_joined() {
    let _watchdog = Watchdog::new("a_radio_that_connects_knows_what_the_new_connection_joined");
    let context = Context::new();
    let radio = socket(&context, Radio);
    radio.int(ids::RECONNECT_IVL, 1);
    let endpoint = common::free_tcp_endpoint();
    radio.connect(&endpoint).unwrap();
    for group in ["first", "second"] {
        let dish = socket(&context, Dish);
        dish.join(group).unwrap();
        dish.bind(&endpoint).unwrap();
        radio.wait_subscribed(group, 1, Wait::Forever).unwrap();
    }
    until(|| radio.count_subscribed("first").unwrap() == 0);
}

#[test]
fn a_slow_dish_costs_a_radio_no_time_and_the_messages_are_counted() {
    let _watchdog = Watchdog::new("a_slow_dish_costs_a_radio_no_time_and_the_messages_are_counted");
    let context = Context::new();
    let (radio, dish) = (socket(&context, Radio), socket(&context, Dish));
    radio.int(ids::SNDHWM, 3);
    dish.int(ids::RCVHWM, 2);
    dish.join("g").unwrap();
    dish.connect(&radio.bind(&inproc_name()).unwrap()).unwrap();
    radio.wait_subscribed("g", 1, Wait::Forever).unwrap();
    for n in 0..10 {
        radio
            .send(Message::from(format!("{n}")).with_group("g"), Wait::Dont)
            .unwrap();
    }
    assert_eq!(radio.dropped(DropReason::HighWater), 5);
    for n in 0..5 {
        assert_eq!(text(&recv(&dish)), n.to_string());
    }
    assert_eq!(dish.recv(Wait::Dont).unwrap_err().kind(), ErrorKind::Again);
}

#[test]
fn a_channel_has_one_peer() {
    let _watchdog = Watchdog::new("a_channel_has_one_peer");
    let context = Context::new();
    let one = socket(&context, Channel);
    let endpoint = one.bind("tcp://127.0.0.1:*").unwrap();
    let first = socket(&context, Channel);
    first.connect(&endpoint).unwrap();
    first.send("1", Wait::Forever).unwrap();
    assert_eq!(text(&recv(&one)), "1");
    let events = Monitor::of(&context, &one);
    let second = socket(&context, Channel);
    second.int(ids::RECONNECT_IVL, -1);
    second.connect(&endpoint).unwrap();
    events.wait_for(EventKind::Disconnected);
    one.send("still the first", Wait::Forever).unwrap();
    assert_eq!(text(&recv(&first)), "still the first");
}

#[test]
fn each_connection_begins_with_the_hello() {
    let _watchdog = Watchdog::new("each_connection_begins_with_the_hello");
    let context = Context::new();
    for (mine, theirs) in [
        (Dealer, Router),
        (Router, Dealer),
        (Client, Server),
        (Server, Client),
        (Peer, Peer),
    ] {
        for endpoint in endpoints() {
            let (greeter, other) = (socket(&context, mine), socket(&context, theirs));
            greeter.bytes(ids::HELLO_MSG, b"hello");
            other.connect(&greeter.bind(&endpoint).unwrap()).unwrap();
            assert_eq!(
                &recv(&other).last()[..],
                b"hello",
                "{mine} binds {endpoint}"
            );
        }
    }
    // It also comes before what waits for the connection.
    let server = socket(&context, Server);
    let endpoint = common::free_tcp_endpoint();
    let client = socket(&context, Client);
    client.int(ids::RECONNECT_IVL, 1);
    client.bytes(ids::HELLO_MSG, b"hello");
    client.connect(&endpoint).unwrap();
    client.send("early", Wait::Forever).unwrap();
    server.bind(&endpoint).unwrap();
    assert_eq!(
        [recv(&server), recv(&server)].each_ref().map(text),
        ["hello", "early"]
    );
    // Only the application's messages count.
    client.flush(None).unwrap();
    assert_eq!(client.stats().unwrap().sent, 1);
    drop(server);
    until(|| client.peers() == 0);
    let server = socket(&context, Server);
    server.bind(&endpoint).unwrap();
    assert_eq!(text(&recv(&server)), "hello");
    assert_eq!(client.dropped(DropReason::PeerGone), 0);
}

#[test]
fn the_last_message_of_a_peer_says_that_it_left() {
    let _watchdog = Watchdog::new("the_last_message_of_a_peer_says_that_it_left");
    let context = Context::new();
    for (mine, theirs) in [(Router, Dealer), (Server, Client), (Peer, Peer)] {
        for endpoint in endpoints() {
            let (socket_, other) = (socket(&context, mine), socket(&context, theirs));
            socket_.bytes(ids::DISCONNECT_MSG, b"gone");
            let endpoint = socket_.bind(&endpoint).unwrap();
            let mut first = Message::from("last words");
            if theirs == Peer {
                first.set_routing_id(other.connect_peer(&endpoint).unwrap());
            } else {
                other.connect(&endpoint).unwrap();
            }
            other.send(first, Wait::Forever).unwrap();
            let words = recv(&socket_);
            drop(other);
            let gone = recv(&socket_);
            assert_eq!(&words.last()[..], b"last words");
            assert_eq!(&gone.last()[..], b"gone", "{mine} at {endpoint}");
            assert_eq!(gone.routing_id(), words.routing_id());
            assert_eq!(gone.len(), words.len());
            assert_eq!(
                socket_.recv(Wait::Dont).unwrap_err().kind(),
                ErrorKind::Again
            );
        }
    }
    // One that connected before the name was bound.
    let name = inproc_name();
    let (server, client) = (socket(&context, Server), socket(&context, Client));
    client.connect(&name).unwrap();
    server.bytes(ids::DISCONNECT_MSG, b"gone");
    server.bind(&name).unwrap();
    server.wait_connected(1, Wait::Forever).unwrap();
    drop(client);
    assert_eq!(text(&recv(&server)), "gone");
}

#[test]
fn a_lost_connection_is_a_message_before_the_next_one() {
    let _watchdog = Watchdog::new("a_lost_connection_is_a_message_before_the_next_one");
    let context = Context::new();
    for (mine, theirs) in [(Dealer, Router), (Client, Server), (Peer, Peer)] {
        let waiting = socket(&context, mine);
        waiting.int(ids::RECONNECT_IVL, 1);
        waiting.bytes(ids::HICCUP_MSG, b"hiccup");
        waiting.bytes(ids::HELLO_MSG, b"hello");
        let endpoint = common::free_tcp_endpoint();
        waiting.connect(&endpoint).unwrap();
        for _ in 0..2 {
            let other = socket(&context, theirs);
            other.bind(&endpoint).unwrap();
            let hello = recv(&other);
            assert_eq!(&hello.last()[..], b"hello");
            other.send(hello, Wait::Forever).unwrap();
            assert_eq!(&recv(&waiting).last()[..], b"hello");
            drop(other);
            assert_eq!(&recv(&waiting).last()[..], b"hiccup", "{mine}");
        }
    }
}

#[test]
fn a_router_reports_connections_and_their_ends() {
    let _watchdog = Watchdog::new("a_router_reports_connections_and_their_ends");
    let context = Context::new();
    for endpoint in endpoints() {
        let (router, dealer) = (socket(&context, Router), socket(&context, Dealer));
        router.int(ids::ROUTER_NOTIFY, 3);
        dealer.bytes(ids::ROUTING_ID, b"d");
        dealer.connect(&router.bind(&endpoint).unwrap()).unwrap();
        assert_eq!(recv(&router), Message::from(["d", ""]));
        dealer.send("x", Wait::Forever).unwrap();
        assert_eq!(recv(&router), Message::from(["d", "x"]));
        drop(dealer);
        assert_eq!(recv(&router), Message::from(["d", ""]));
    }
}

/// Sends a frame; the other side may have closed the connection.
fn send_frame(peer: &mut TcpStream, flags: u8, body: &[u8]) {
    let _ = peer.write_all(&raw::frame(flags, body));
}

#[test]
fn hostile_dishes_harm_only_themselves() {
    let _watchdog = Watchdog::new("hostile_dishes_harm_only_themselves");
    let context = Context::new();
    let radio = socket(&context, Radio);
    radio.int(ids::MAX_SUBSCRIPTIONS, 10);
    let events = Monitor::of(&context, &radio);
    let endpoint = radio.bind("tcp://127.0.0.1:*").unwrap();
    let good = socket(&context, Dish);
    good.join("g").unwrap();
    good.connect(&endpoint).unwrap();
    radio.wait_subscribed("g", 1, Wait::Forever).unwrap();

    // An invalid group ends the connection.
    for command in [
        [b"\x04JOIN".as_slice(), &[b'x'; 256]].concat(),
        b"\x04JOINa\0b".to_vec(),
        [b"\x05LEAVE".as_slice(), &[b'x'; 300]].concat(),
        [b"\x04JOIN".as_slice(), &vec![b'x'; 70_000]].concat(),
    ] {
        let mut peer = raw::join(&endpoint, "DISH");
        send_frame(&mut peer, COMMAND, &command);
        events.wait_for(EventKind::Disconnected);
        raw::wait_for_close(&peer);
    }
    // A JOIN inside of a message, too.
    let mut peer = raw::join(&endpoint, "DISH");
    send_frame(&mut peer, MORE, b"begun");
    send_frame(&mut peer, COMMAND, b"\x04JOINg");
    events.wait_for(EventKind::Disconnected);

    // Groups above the limit are ignored and counted, unknown commands are ignored, and messages are dropped.
    let mut peer = raw::join(&endpoint, "DISH");
    for n in 0..1000 {
        send_frame(&mut peer, COMMAND, format!("\x04JOINgroup {n}").as_bytes());
    }
    send_frame(&mut peer, COMMAND, b"\x09SUBSCRIBEg");
    send_frame(&mut peer, COMMAND, b"\x07UNKNOWN");
    send_frame(&mut peer, 0, b"\x01g");
    send_frame(&mut peer, COMMAND, b"\x05LEAVEgroup 0");
    send_frame(&mut peer, COMMAND, b"\x04JOINlast");
    until(|| radio.count_subscribed("last").unwrap() == 1);
    assert_eq!(radio.dropped(DropReason::Excess), 990);
    assert_eq!(radio.dropped(DropReason::Filtered), 1);
    assert_eq!(radio.count_subscribed("group 10").unwrap(), 0);
    assert_eq!(radio.count_subscribed("g").unwrap(), 1);

    radio
        .send(Message::from("x").with_group("g"), Wait::Forever)
        .unwrap();
    assert_eq!(text(&recv(&good)), "x");
}

#[test]
fn messages_that_break_the_form_are_dropped_and_counted() {
    let _watchdog = Watchdog::new("messages_that_break_the_form_are_dropped_and_counted");
    let context = Context::new();
    for (mine, theirs) in [
        (Server, "CLIENT"),
        (Client, "SERVER"),
        (Gather, "SCATTER"),
        (Peer, "PEER"),
        (Channel, "CHANNEL"),
    ] {
        let receiver = socket(&context, mine);
        let endpoint = receiver.bind("tcp://127.0.0.1:*").unwrap();
        let mut peer = raw::join(&endpoint, theirs);
        send_frame(&mut peer, MORE, b"1");
        send_frame(&mut peer, 0, b"2");
        // No command for these types: ignored, as one of a later version.
        send_frame(&mut peer, COMMAND, b"\x04JOINg");
        send_frame(&mut peer, 0, b"good");
        assert_eq!(text(&recv(&receiver)), "good", "{mine}");
        assert_eq!(receiver.dropped(DropReason::Malformed), 1, "{mine}");
    }
    let dish = socket(&context, Dish);
    dish.join("g").unwrap();
    let endpoint = dish.bind("tcp://127.0.0.1:*").unwrap();
    let mut peer = raw::join(&endpoint, "RADIO");
    for frames in [
        &["g"][..],
        &["g", "1", "2"],
        &["other", "1"],
        &["g", "good"],
    ] {
        for (index, frame) in frames.iter().enumerate() {
            let more = if index + 1 < frames.len() { MORE } else { 0 };
            send_frame(&mut peer, more, frame.as_bytes());
        }
    }
    assert_eq!(text(&recv(&dish)), "good");
    assert_eq!(dish.dropped(DropReason::Malformed), 2);
    assert_eq!(dish.dropped(DropReason::Filtered), 1);
}
