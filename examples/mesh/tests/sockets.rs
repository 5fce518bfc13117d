//! The pattern in use, through the public interface of `zeroxide` alone.

use std::time::{Duration, Instant};

use zeroxide::patterns::{PatternSpec, TypeFacts};
use zeroxide::{
    AllowList, Context, DropReason, ErrorKind, EventKind, Events, Frame, Message, PollItem, Socket,
    SocketType, Wait, curve_keypair, poll,
};
use zeroxide_mesh::{MESH, NUMBER, PATTERN};

const PATIENCE: Duration = Duration::from_secs(60);

fn context() -> Context {
    let context = Context::new();
    context.add_pattern(&PATTERN).unwrap();
    context
}

fn patience() -> Wait {
    Wait::Until(Instant::now() + PATIENCE)
}

fn endpoints() -> [String; 3] {
    let folder = std::env::temp_dir().join(format!("zeroxide-mesh-{}", std::process::id()));
    [
        "tcp://127.0.0.1:*".to_owned(),
        format!("ipc://{}", folder.display()),
        "inproc://mesh".to_owned(),
    ]
}

/// A socket that is bound, and others that are connected to it.
fn star(context: &Context, endpoint: &str, others: usize) -> (Socket, Vec<Socket>) {
    let hub = context.socket(MESH).unwrap();
    let endpoint = hub.bind(endpoint).unwrap();
    let connected = |_| {
        let socket = context.socket(MESH).unwrap();
        socket.connect(&endpoint).unwrap();
        socket.wait_connected(1, patience()).unwrap();
        socket
    };
    let others = (0..others).map(connected).collect::<Vec<_>>();
    hub.wait_connected(others.len(), patience()).unwrap();
    (hub, others)
}

fn receive(socket: &Socket) -> Message {
    socket.recv(patience()).unwrap()
}

#[test]
fn each_message_reaches_every_peer_on_every_transport() {
    let context = context();
    for endpoint in endpoints() {
        let (hub, others) = star(&context, &endpoint, 3);
        for number in 0..100 {
            let parts = [Frame::from(&*number.to_string()), Frame::from("tail")];
            let message = Message::from_frames(parts);
            hub.send(message.clone(), Wait::Dont).unwrap();
            for other in &others {
                assert_eq!(receive(other), message);
            }
        }
        for other in &others {
            other.send("to the hub", Wait::Dont).unwrap();
        }
        for _ in &others {
            assert_eq!(receive(&hub), Message::from("to the hub"));
        }
        // The hub passes nothing on.
        for other in &others {
            let again = other.recv(Wait::Dont).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::Again);
        }
    }
}

#[test]
fn many_peers_get_long_messages_in_order() {
    let context = context();
    let (hub, others) = star(&context, "tcp://127.0.0.1:*", 20);
    for round in 0..50u8 {
        hub.send(vec![round; 10], Wait::Dont).unwrap();
        hub.send(vec![round; 10_000], Wait::Dont).unwrap();
    }
    for other in &others {
        for round in 0..50u8 {
            assert_eq!(receive(other), Message::from(vec![round; 10]));
            assert_eq!(receive(other), Message::from(vec![round; 10_000]));
        }
    }
}

#[test]
fn sending_never_waits_and_losses_are_counted() {
    let context = context();
    let lonely = context.socket(MESH).unwrap();
    lonely.send("alone", Wait::Dont).unwrap();
    let dropped = lonely.stats().unwrap().dropped;
    assert_eq!(dropped.dropped(DropReason::NoPeer), 1);

    let hub = context.socket(MESH).unwrap();
    hub.set_sndhwm(2).unwrap();
    hub.bind("inproc://slow").unwrap();
    let slow = context.socket(MESH).unwrap();
    slow.set_rcvhwm(2).unwrap();
    slow.connect("inproc://slow").unwrap();
    hub.wait_connected(1, patience()).unwrap();
    for number in 0..100u8 {
        hub.send(vec![number], Wait::Dont).unwrap();
    }
    let stats = hub.stats().unwrap();
    let lost = stats.peers[0].dropped.dropped(DropReason::HighWater);
    assert_eq!(stats.sent + lost, 100);
    assert!(lost > 0 && stats.peers.len() == 1);
    for number in 0..stats.sent {
        assert_eq!(receive(&slow), Message::from(vec![number as u8]));
    }
    assert_eq!(slow.stats().unwrap().received, stats.sent);
    // There is room again.
    hub.send("more", Wait::Dont).unwrap();
    assert_eq!(receive(&slow), Message::from("more"));
}

#[test]
fn messages_are_polled_for() {
    let context = context();
    let (hub, others) = star(&context, "tcp://127.0.0.1:*", 1);
    assert_eq!(hub.events().unwrap(), Events::WRITABLE);
    let mut items = [PollItem::socket(&hub, Events::READABLE)];
    assert_eq!(poll(&mut items, Some(Instant::now())).unwrap(), 0);
    others[0].send("ring", Wait::Dont).unwrap();
    assert_eq!(
        poll(&mut items, Some(Instant::now() + PATIENCE)).unwrap(),
        1
    );
    assert_eq!(items[0].revents, Events::READABLE);
    let (message, peer) = hub.recv_from(Wait::Dont).unwrap();
    assert_eq!(message, Message::from("ring"));
    assert_eq!(peer.unwrap().socket_type, Some(MESH));
}

#[test]
fn tasks_wait_for_messages() {
    let context = context();
    let (hub, others) = star(&context, "tcp://127.0.0.1:*", 1);
    let other = &others[0];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let exchange = async {
            hub.send_async("are you there?").await.unwrap();
            let question = other.recv_async().await.unwrap();
            other.send_async(question).await.unwrap();
            hub.recv_async().await.unwrap()
        };
        let answer = tokio::time::timeout(PATIENCE, exchange).await.unwrap();
        assert_eq!(answer, Message::from("are you there?"));
    });
}

#[test]
fn a_peer_that_comes_back_is_sent_to_again() {
    let context = context();
    let (hub, others) = star(&context, "tcp://127.0.0.1:*", 1);
    let endpoint = hub.get_option(zeroxide::ids::LAST_ENDPOINT).unwrap();
    let zeroxide::Value::Bytes(endpoint) = endpoint else {
        panic!("{endpoint:?}");
    };
    let endpoint = String::from_utf8(endpoint).unwrap();
    let events = others[0]
        .event_stream(EventKind::Disconnected as u32)
        .unwrap();
    hub.close(None);
    events.next(patience()).unwrap().unwrap();
    others[0].send("while it is away", Wait::Dont).unwrap();
    let back = context.socket(MESH).unwrap();
    let until = Instant::now() + PATIENCE;
    while back.bind(&endpoint).is_err() {
        assert!(Instant::now() < until, "{endpoint} is not free");
        std::thread::yield_now();
    }
    back.wait_connected(1, patience()).unwrap();
    others[0].wait_connected(1, patience()).unwrap();
    others[0].send("welcome back", Wait::Dont).unwrap();
    assert_eq!(receive(&back), Message::from("welcome back"));
    let dropped = others[0].stats().unwrap().dropped;
    assert_eq!(dropped.dropped(DropReason::NoPeer), 1);
}

#[test]
fn mechanisms_work_as_for_other_types() {
    let context = context();
    let (server_public, server_secret) = curve_keypair().unwrap();
    let (client_public, client_secret) = curve_keypair().unwrap();
    let allowed = AllowList::new();
    allowed.add(client_public, "kitchen");
    let hall = context.socket(MESH).unwrap();
    hall.secure_server(&server_secret, &allowed).unwrap();
    let kitchen = context.socket(MESH).unwrap();
    kitchen
        .secure_client(&server_public, Some(&client_secret))
        .unwrap();
    kitchen
        .connect(&hall.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    kitchen.wait_connected(1, patience()).unwrap();
    kitchen.send("dinner", Wait::Dont).unwrap();
    let (message, peer) = hall.recv_from(patience()).unwrap();
    assert_eq!(message, Message::from("dinner"));
    assert_eq!(peer.unwrap().user_id.as_deref(), Some("kitchen"));
}

#[test]
fn other_types_are_turned_away() {
    let context = context();
    let mesh = context.socket(MESH).unwrap();
    let failed = EventKind::HandshakeFailedProtocol as u32;
    let events = mesh.event_stream(failed).unwrap();
    let endpoint = mesh.bind("tcp://127.0.0.1:*").unwrap();
    let pair = context.socket(SocketType::Pair).unwrap();
    pair.connect(&endpoint).unwrap();
    let reason = events.next(patience()).unwrap().unwrap().reason.unwrap();
    assert!(reason.contains("a MESH socket cannot talk to"), "{reason}");
    mesh.bind("inproc://mesh").unwrap();
    let error = pair.connect("inproc://mesh").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IncompatibleProtocol);
}

#[test]
fn the_type_belongs_to_the_context() {
    let context = context();
    let number = i32::from(NUMBER);
    assert_eq!(context.socket_type(number), Some(MESH));
    assert_eq!(context.socket(MESH).unwrap().socket_type(), MESH);
    let other = Context::new();
    assert_eq!(other.socket_type(number), None);
    let error = other.socket(MESH).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("no pattern for MESH (128)"),
        "{error}"
    );
}

#[test]
fn taken_names_and_numbers_are_refused() {
    static FACTS: TypeFacts = TypeFacts::new("TRAM", NUMBER, || &[]);
    static TRAM: PatternSpec = PatternSpec::new(SocketType::Other(&FACTS), PATTERN.new);
    let context = context();
    for (spec, text) in [
        (&PATTERN, "called MESH already"),
        (&TRAM, "its number 128 is that of MESH"),
    ] {
        let error = context.add_pattern(spec).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressInUse);
        assert!(error.to_string().contains(text), "{error}");
    }
}
