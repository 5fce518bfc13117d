//! What a lost connection leaves behind: nothing that the next one would be taken for.

mod common;

use common::{
    IpcName, Monitor, SocketExt, Watchdog, free_tcp_endpoint, rounds, socket, tcp_pair, until,
};
use zeroxide::{Context, DropReason, EventKind, Socket, SocketType, ids};

use SocketType::{Pub, Pull, Push, Sub, Xpub};

/// A subscriber that is bound where another one was before.
fn subscriber(context: &Context, topic: &str, endpoint: &str) -> Socket {
    let subscriber = socket(context, Sub);
    subscriber.bytes(ids::SUBSCRIBE, topic.as_bytes());
    until(|| subscriber.bind(endpoint).is_ok());
    subscriber
}

#[test]
fn topics_of_a_subscriber_that_was_replaced_are_not_sent_any_more() {
    let _watchdog = Watchdog::new("topics_of_a_subscriber_that_was_replaced_are_not_sent_any_more");
    for endpoint in [free_tcp_endpoint(), IpcName::new().endpoint()] {
        let context = Context::new();
        let publisher = socket(&context, Pub);
        publisher.int(ids::RECONNECT_IVL, 1);
        let monitor = Monitor::of(&context, &publisher);
        publisher.connect(&endpoint).unwrap();
        let unwanted = || publisher.dropped(DropReason::NoSubscriber);
        let is_wanted = |topic| {
            let before = unwanted();
            publisher.put(topic);
            unwanted() == before
        };
        let first = subscriber(&context, "old", &endpoint);
        until(|| is_wanted("old"));
        drop(first);
        monitor.wait_for(EventKind::Disconnected);
        // The peer may come back and want it still.
        assert!(is_wanted("old, while it is away"));
        let second = subscriber(&context, "new", &endpoint);
        until(|| is_wanted("new"));
        assert!(!is_wanted("old, after it came back"));
        assert_eq!(second.take(), "new");
    }
}

#[test]
fn an_xpub_that_connected_hears_what_its_lost_peer_does_not_want_any_more() {
    let _watchdog =
        Watchdog::new("an_xpub_that_connected_hears_what_its_lost_peer_does_not_want_any_more");
    let context = Context::new();
    let publisher = socket(&context, Xpub);
    publisher.int(ids::RECONNECT_IVL, 1);
    let endpoint = free_tcp_endpoint();
    publisher.connect(&endpoint).unwrap();
    for topic in ["a", "b", "b", "c"] {
        let _subscriber = subscriber(&context, topic, &endpoint);
        assert_eq!(publisher.take(), format!("\x01{topic}"));
        drop(_subscriber);
        assert_eq!(publisher.take(), format!("\0{topic}"));
    }
}

#[test]
fn who_sees_that_a_peer_is_gone_sends_to_another() {
    let _watchdog = Watchdog::new("who_sees_that_a_peer_is_gone_sends_to_another");
    let context = Context::new();
    let (push, stays, endpoint) = tcp_pair(&context, Push, Pull);
    let monitor = Monitor::of(&context, &push);
    until(|| push.peers() == 1);
    for round in 0..rounds(100, 1000) {
        let leaves = socket(&context, Pull);
        leaves.connect(&endpoint).unwrap();
        until(|| push.peers() == 2);
        drop(leaves);
        // Without the time that waking up takes.
        while monitor
            .try_next()
            .is_none_or(|seen| seen.kind != EventKind::Disconnected as u16)
        {}
        for part in ["a", "b"] {
            let text = format!("{round}{part}");
            push.put(&text);
            assert_eq!(stays.take(), text);
        }
    }
    assert_eq!(push.dropped(DropReason::PeerGone), 0);
}
