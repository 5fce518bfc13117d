//! Nodes over UDP and TCP: they find each other, talk, die and return.

mod network;

use std::time::Duration;

use network::{Lan, PATIENCE, find, next, socket};
use zeroxide::{
    AllowList, Context, ErrorKind, Frame, Message, Socket, SocketType, Wait, curve_keypair,
};
use zeroxide_discovery::{Event, ExitReason, Node};

#[test]
fn nodes_find_each_other_and_talk() {
    let lan = Lan::new();
    let one = lan.node("one").header("room", "1").start().unwrap();
    let other = lan.node("other").start().unwrap();
    let Event::Enter {
        peer,
        name,
        endpoint,
        headers,
    } = next(&other)
    else {
        panic!("no Enter");
    };
    assert_eq!(
        (peer, &*name, endpoint.as_str()),
        (one.id(), "one", one.endpoint())
    );
    assert_eq!(headers.get("room").map(String::as_str), Some("1"));
    assert!(matches!(next(&one), Event::Enter { .. }));
    one.join("chat").unwrap();
    let (peer, name) = (one.id(), "one".into());
    assert_eq!(
        next(&other),
        Event::Join {
            peer,
            name,
            group: "chat".to_owned()
        }
    );
    assert_eq!(one.groups(), ["chat"]);
    let peers = other.peers();
    assert!(peers.len() == 1 && peers[0].groups.contains("chat") && !peers[0].is_evasive);
    assert_eq!(other.peer(one.id()), Some(peers[0].clone()));
    assert_eq!(other.shout("chat", "all"), Ok(1));
    assert_eq!(other.whisper(one.id(), ["only", "you"]), Ok(true));
    let (peer, name) = (other.id(), std::sync::Arc::<str>::from("other"));
    let (content, group) = (Message::from("all"), "chat".to_owned());
    assert_eq!(
        next(&one),
        Event::Shout {
            peer,
            name: name.clone(),
            group,
            content
        }
    );
    let content = Message::from(["only", "you"]);
    assert_eq!(
        next(&one),
        Event::Whisper {
            peer,
            name,
            content
        }
    );
    other.stop();
    assert_eq!(exit(&one), ExitReason::Goodbye);
    assert!(one.peers().is_empty());
}

fn exit(node: &Node) -> ExitReason {
    find(node, |event| match event {
        Event::Exit { reason, .. } => Some(*reason),
        _ => None,
    })
}

fn entered(node: &Node) -> String {
    find(node, |event| match event {
        Event::Enter { name, .. } => Some(name.as_ref().to_owned()),
        _ => None,
    })
}

#[test]
fn a_group_elects_a_leader() {
    let lan = Lan::new();
    let (one, other) = (
        lan.node("one").start().unwrap(),
        lan.node("other").start().unwrap(),
    );
    entered(&one);
    entered(&other);
    one.join("chat").unwrap();
    find(&other, |event| {
        matches!(event, Event::Join { .. }).then_some(())
    });
    other.contest("chat").unwrap();
    let leader = |node: &Node| {
        find(node, |event| match event {
            Event::Leader { peer, .. } => Some(*peer),
            _ => None,
        })
    };
    assert_eq!((leader(&one), leader(&other)), (other.id(), other.id()));
}

#[test]
fn a_silent_peer_is_evasive_and_then_gone_and_its_successor_is_found() {
    let lan = Lan::new();
    let one = lan.hasty("one").start().unwrap();
    // A peer that says hello and nothing more, as one that was killed.
    let context = Context::new();
    let dealer = socket(&context, SocketType::Dealer);
    let identity = [&[1; 1], [7; 16].as_slice()].concat();
    dealer.set_routing_id(identity).unwrap();
    dealer.connect(one.endpoint()).unwrap();
    let hello = b"\xaa\xa1\x01\x02\x00\x01\x11tcp://127.0.0.1:1\0\0\0\0\0\x06silent\0\0\0\0";
    dealer.send(hello, Wait::Forever).unwrap();
    assert_eq!(entered(&one), "silent");
    find(&one, |event| {
        matches!(event, Event::Evasive { .. }).then_some(())
    });
    assert!(one.peers().iter().all(|peer| peer.is_evasive));
    assert_eq!(exit(&one), ExitReason::Expired);
    let _successor = lan.hasty("successor").start().unwrap();
    assert_eq!(entered(&one), "successor");
}

#[test]
fn gossip_reaches_nodes_that_are_not_connected() {
    let gossiping = |name: &str| Node::builder(name).interface("lo");
    let first = gossiping("first")
        .gossip_bind("tcp://127.0.0.1:*")
        .start()
        .unwrap();
    let second = gossiping("second")
        .gossip(first.gossip_endpoint().unwrap())
        .gossip_bind("tcp://127.0.0.1:*")
        .start()
        .unwrap();
    let third = gossiping("third")
        .gossip(second.gossip_endpoint().unwrap())
        .start()
        .unwrap();
    for (node, others) in [(&first, ["second", "third"]), (&third, ["first", "second"])] {
        let mut names = [entered(node), entered(node)];
        names.sort();
        assert_eq!(names, others);
    }
    first.stop();
    assert_eq!(exit(&third), ExitReason::Goodbye);
}

#[test]
fn a_hub_of_the_gossip_network_may_start_last() {
    let endpoint = network::free_tcp_endpoint();
    let gossiping = |name: &str| Node::builder(name).interface("lo");
    let one = gossiping("one").gossip(&endpoint).start().unwrap();
    let other = gossiping("other").gossip(&endpoint).start().unwrap();
    let _hub = gossiping("hub").gossip_bind(&endpoint).start().unwrap();
    for (node, others) in [(&one, ["hub", "other"]), (&other, ["hub", "one"])] {
        let mut names = [entered(node), entered(node)];
        names.sort();
        assert_eq!(names, others);
    }
}

#[test]
fn calls_of_a_stopped_node_fail() {
    let lan = Lan::new();
    let one = lan.node("one").start().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| one.events(None).count());
        one.stop();
        one.stop();
        assert_eq!(waiting.join().unwrap(), 0);
    });
    for error in [
        one.recv(Wait::Dont).unwrap_err(),
        one.join("chat").unwrap_err(),
        one.shout("chat", "").unwrap_err(),
        one.whisper(one.id(), "").unwrap_err(),
        one.find("work", 1, PATIENCE).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotSocket);
    }
    assert!(one.peers().is_empty());
}

#[test]
fn a_terminated_context_ends_a_node() {
    let lan = Lan::new();
    let context = Context::new();
    let one = lan.node("one").context(&context).start().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| one.events(None).count());
        context.term().unwrap();
        assert_eq!(waiting.join().unwrap(), 0);
    });
    assert_eq!(
        one.recv(Wait::Dont).unwrap_err().kind(),
        ErrorKind::Terminated
    );
}

#[test]
fn a_dropped_node_says_goodbye() {
    let lan = Lan::new();
    let one = lan.node("one").start().unwrap();
    drop(
        lan.node("short")
            .start()
            .map(|short| entered(&short))
            .unwrap(),
    );
    assert_eq!(exit(&one), ExitReason::Goodbye);
}

#[test]
fn a_peer_may_name_any_endpoint() {
    for endpoint in ["tcp://127.0.0.1:1", "tcp://a b:-1", "tcp://\u{7f}:1"] {
        let lan = Lan::new();
        let context = Context::new();
        let one = lan.node("one").context(&context).start().unwrap();
        let other = Context::new();
        let dealer = socket(&other, SocketType::Dealer);
        dealer
            .set_routing_id([&[1; 1], [7; 16].as_slice()].concat())
            .unwrap();
        dealer.connect(one.endpoint()).unwrap();
        let mut hello = b"\xaa\xa1\x01\x02\x00\x01".to_vec();
        hello.push(endpoint.len() as u8);
        hello.extend(endpoint.as_bytes());
        hello.extend(b"\0\0\0\0\0\x08stranger\0\0\0\0");
        dealer
            .send(Message::from(Frame::from(hello)), Wait::Forever)
            .unwrap();
        let two = lan.node("two").start().unwrap();
        while entered(&one) != "two" {}
        assert_eq!(entered(&two), "one");
        drop(one);
        // A peer that cannot be reached does not keep the context.
        context.term().unwrap();
    }
}

#[test]
fn nodes_with_keys_admit_no_others() {
    let lan = Lan::new();
    let (public, secret) = curve_keypair().unwrap();
    let allowed = AllowList::new();
    allowed.add(public, "a node");
    let secure = move |socket: &Socket| match socket.socket_type() {
        SocketType::Router => socket.secure_server(&secret, &allowed),
        _ => socket.secure_client(&public, Some(&secret)),
    };
    let one = lan.node("one").configure(secure.clone()).start().unwrap();
    let stranger = lan.node("stranger").start().unwrap();
    let other = lan.node("other").configure(secure).start().unwrap();
    assert_eq!(entered(&one), "other");
    assert_eq!(entered(&other), "one");
    assert_eq!(
        stranger.recv(Wait::Dont).unwrap_err().kind(),
        ErrorKind::Again
    );
}

#[test]
fn mistakes_are_reported() {
    let builder = || Node::builder("one").interface("lo");
    let many = (0..300).fold(builder(), |builder, number| {
        builder.header(number.to_string(), "")
    });
    for (wrong, kind, text) in [
        (
            Node::builder("x".repeat(256)),
            ErrorKind::Invalid,
            "the name of a node has 1 to 255",
        ),
        (many, ErrorKind::Invalid, "up to 256 headers"),
        (
            builder().header("a", "b".repeat(50_000)),
            ErrorKind::Invalid,
            "32768 bytes",
        ),
        (
            builder().header("", "b"),
            ErrorKind::Invalid,
            "the name of a header",
        ),
        (
            Node::builder("one").interface("none"),
            ErrorKind::NoDevice,
            "no interface",
        ),
        (builder().port(0), ErrorKind::Invalid, "at least 1"),
        (builder().max_peers(0), ErrorKind::Invalid, "at least 1"),
        (
            builder().endpoint("inproc://unused"),
            ErrorKind::Invalid,
            "beacons announce a tcp port",
        ),
        (
            builder().interval(Duration::ZERO),
            ErrorKind::Invalid,
            "interval is 1 ms to a year",
        ),
        (
            builder().offer("work", "ipc:///tmp/x"),
            ErrorKind::Invalid,
            "a service has a tcp endpoint",
        ),
    ] {
        let error = wrong.start().map(drop).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    let lan = Lan::new();
    let one = lan.node("one").start().unwrap();
    assert_eq!(
        one.join(&"x".repeat(256)).unwrap_err().kind(),
        ErrorKind::Invalid
    );
    (0..256).for_each(|number| one.join(&number.to_string()).unwrap());
    one.join("0").unwrap();
    let error = one.join("another").unwrap_err();
    assert!(error.to_string().contains("256 groups at most"), "{error}");
    assert_eq!(
        one.contest("another").unwrap_err().kind(),
        ErrorKind::Invalid
    );
}
