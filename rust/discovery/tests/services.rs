//! Services: which nodes offer one, and sockets that follow its providers.

mod network;

use std::time::Duration;

use network::{Lan, PATIENCE, socket, until};
use zeroxide::{Context, ErrorKind, Socket, SocketType, Wait};

fn pull(context: &Context) -> (Socket, String) {
    let pull = socket(context, SocketType::Pull);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    (pull, endpoint)
}

fn received(pull: &Socket) -> Vec<u8> {
    pull.recv(Wait::Forever).unwrap().head().as_slice().to_vec()
}

#[test]
fn a_socket_follows_the_providers_of_a_service() {
    let (lan, context) = (Lan::new(), Context::new());
    let (first, first_at) = pull(&context);
    let (second, second_at) = pull(&context);
    let (other, other_at) = pull(&context);
    let push = socket(&context, SocketType::Push);
    let own = lan.node("own").start().unwrap();
    let early = lan
        .node("early")
        .offer("work", &first_at)
        .offer("other", &other_at)
        .start()
        .unwrap();
    let follower = own.follow(&push, "work").unwrap();
    assert!(follower.wait(1, Some(PATIENCE)));
    assert_eq!(follower.endpoints(), [first_at.as_str()]);
    let late = lan.node("late").offer("work", &second_at).start().unwrap();
    assert!(follower.wait(2, Some(PATIENCE)));
    (0..2).for_each(|_| push.send("both", Wait::Forever).unwrap());
    assert_eq!(
        (received(&first), received(&second)),
        (b"both".to_vec(), b"both".to_vec())
    );
    drop(early);
    until(|| follower.endpoints() == [second_at.as_str()]);
    push.send("second", Wait::Forever).unwrap();
    assert_eq!(received(&second), b"second");
    drop(late);
    until(|| follower.endpoints().is_empty());
    assert!(other.recv(Wait::Dont).is_err());
}

#[test]
fn two_providers_may_share_an_endpoint() {
    let (lan, context) = (Lan::new(), Context::new());
    let (place, place_at) = pull(&context);
    let push = socket(&context, SocketType::Push);
    let own = lan.node("own").start().unwrap();
    let follower = own.follow(&push, "work").unwrap();
    let [one, two] =
        ["a", "b"].map(|name| lan.node(name).offer("work", &place_at).start().unwrap());
    assert_eq!(own.find("work", 2, PATIENCE).unwrap().len(), 2);
    assert_eq!(follower.endpoints(), [place_at.as_str()]);
    until(|| place.count_connected() == Ok(1));
    drop(one);
    until(|| own.providers("work").len() == 1);
    push.send("still", Wait::Forever).unwrap();
    assert_eq!(received(&place), b"still");
    drop(two);
    until(|| follower.endpoints().is_empty());
}

#[test]
fn a_follower_ends_with_its_node_and_its_socket() {
    let (lan, context) = (Lan::new(), Context::new());
    let own = lan.node("own").start().unwrap();
    let push = socket(&context, SocketType::Push);
    let by_socket = own.follow(&push, "work").unwrap();
    push.close(None);
    let _event = lan.node("event").start().unwrap();
    until(|| by_socket.has_ended());
    let another = socket(&context, SocketType::Push);
    let by_node = own.follow(&another, "work").unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| by_node.wait(1, None));
        own.stop();
        assert!(!waiting.join().unwrap());
    });
    let failed = own.follow(&another, "work").map(drop).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::NotSocket);
}

#[test]
fn a_dropped_follower_keeps_the_connections() {
    let (lan, context) = (Lan::new(), Context::new());
    let (place, place_at) = pull(&context);
    let push = socket(&context, SocketType::Push);
    let own = lan.node("own").start().unwrap();
    let offering = lan
        .node("offering")
        .offer("work", &place_at)
        .start()
        .unwrap();
    let follower = own.follow(&push, "work").unwrap();
    assert!(follower.wait(1, Some(PATIENCE)));
    drop(follower);
    drop(offering);
    until(|| own.peers().is_empty());
    push.send("still", Wait::Forever).unwrap();
    assert_eq!(received(&place), b"still");
}

#[test]
fn providers_are_found() {
    let lan = Lan::new();
    let own = lan.node("own").start().unwrap();
    assert_eq!(own.find("work", 1, Duration::ZERO).unwrap(), []);
    let offering = lan.node("offering").offer("work", "tcp://*:5555");
    let offering = offering.offer("else", "tcp://10.0.0.1:1").start().unwrap();
    let found = own.find("work", 1, PATIENCE).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].peer, found[0].name.as_str()),
        (offering.id(), "offering")
    );
    assert_eq!(found[0].endpoint, "tcp://127.0.0.1:5555");
    assert_eq!(
        own.find("work", usize::MAX, Duration::from_millis(50))
            .unwrap(),
        found
    );
    assert_eq!(own.providers("nothing"), []);
    let peers = own.peers();
    assert_eq!(
        peers[0].headers.get("X-SERVICE-else").map(String::as_str),
        Some("tcp://10.0.0.1:1")
    );
}

#[test]
fn an_endpoint_that_cannot_be_used_is_reported() {
    let (lan, context) = (Lan::new(), Context::new());
    let push = socket(&context, SocketType::Push);
    let own = lan.node("own").start().unwrap();
    let follower = own.follow(&push, "work").unwrap();
    let _liar = lan
        .node("liar")
        .header("X-SERVICE-work", "tcp://a b:-1")
        .start()
        .unwrap();
    until(|| {
        follower
            .error()
            .is_some_and(|error| error.to_string().contains("a b"))
    });
    assert!(follower.endpoints().is_empty());
}
