//! Publishers and subscribers from outside: matching messages arrive, and lost ones are counted, even while publishers
//! come and go and applications do nothing.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::raw::Random;
use common::{
    IpcName, SocketExt, Watchdog, free_tcp_endpoint, inproc_name, message, rounds, socket, text,
    until,
};
use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, Events, Message, Socket, SocketType, Value, Wait,
    ids,
};

use SocketType::{Pub, Sub, Xpub, Xsub};

fn subscriber(context: &Context, topics: &[&str]) -> Socket {
    let subscriber = socket(context, Sub);
    for topic in topics {
        subscriber.bytes(ids::SUBSCRIBE, topic.as_bytes());
    }
    subscriber
}

/// Waits until a message on `topic` has a subscriber.
fn until_wanted(publisher: &Socket, topic: &str) {
    let unwanted = || publisher.dropped(DropReason::NoSubscriber);
    until(|| {
        let before = unwanted();
        publisher.put(topic);
        unwanted() == before
    });
}

/// Receives up to `count` subscriptions of an XPUB, in any order.
fn told(publisher: &Socket, count: usize) -> Vec<Vec<u8>> {
    let mut told: Vec<Vec<u8>> = (0..count)
        .map(|_| publisher.recv(Wait::Forever).unwrap().head().to_vec())
        .collect();
    told.sort();
    told
}

/// The subscriber's application makes no call from its last subscription on.
#[test]
fn an_idle_subscriber_is_there_again_after_every_restart_of_the_publisher() {
    let watchdog =
        Watchdog::new("an_idle_subscriber_is_there_again_after_every_restart_of_the_publisher");
    for endpoint in [free_tcp_endpoint(), IpcName::new().endpoint()] {
        let context = Context::new();
        let idle = socket(&context, Sub);
        idle.int(ids::RECONNECT_IVL, 1);
        // Far more than the high-water mark, which subscriptions are exempt from.
        let count = rounds(20_000, 100_000);
        let topic = |n: usize| format!("topic {n:06}");
        let mut expected: Vec<Vec<u8>> = (0..count)
            .map(|n| format!("\x01{}", topic(n)).into())
            .collect();
        expected.sort();
        for n in 0..count {
            idle.bytes(ids::SUBSCRIBE, topic(n).as_bytes());
        }
        for gone in ["one", "two"] {
            idle.bytes(ids::SUBSCRIBE, gone.as_bytes());
            idle.bytes(ids::UNSUBSCRIBE, gone.as_bytes());
        }
        // Subscribed twice, reported once.
        idle.bytes(ids::SUBSCRIBE, topic(7).as_bytes());
        idle.connect(&endpoint).unwrap();
        for _ in 0..3 {
            let publisher = socket(&context, Xpub);
            until(|| publisher.bind(&endpoint).is_ok());
            assert!(told(&publisher, count) == expected);
            assert_eq!(publisher.nothing(), ErrorKind::Again);
            publisher.put("unwanted");
            publisher.put(&topic(count - 1));
            drop(publisher);
            watchdog.feed();
        }
        for _ in 0..3 {
            assert_eq!(idle.take(), topic(count - 1));
        }
        assert_eq!(idle.dropped(DropReason::Filtered), 0);
    }
}

#[test]
fn subscriptions_and_their_ends_reach_every_publisher() {
    let _watchdog = Watchdog::new("subscriptions_and_their_ends_reach_every_publisher");
    let context = Context::new();
    let publishers: Vec<_> = (0..3).map(|_| socket(&context, Xpub)).collect();
    let bound = subscriber(&context, &["early"]);
    let endpoint = bound.bind("tcp://127.0.0.1:*").unwrap();
    for (n, publisher) in publishers.iter().enumerate() {
        match n {
            0 => _ = publisher.connect(&endpoint).unwrap(),
            1 => {
                _ = bound
                    .connect(&publisher.bind("tcp://127.0.0.1:*").unwrap())
                    .unwrap()
            }
            _ => {
                _ = bound
                    .connect(&publisher.bind(&inproc_name()).unwrap())
                    .unwrap()
            }
        }
        assert_eq!(publisher.take(), "\x01early");
    }
    let steps: [(i32, &str, Option<&str>); 6] = [
        (ids::SUBSCRIBE, "late", Some("\x01late")),
        (ids::SUBSCRIBE, "late", None),
        (ids::UNSUBSCRIBE, "late", None),
        (ids::UNSUBSCRIBE, "late", Some("\0late")),
        (ids::UNSUBSCRIBE, "never", None),
        (ids::UNSUBSCRIBE, "early", Some("\0early")),
    ];
    for (option, topic, expected) in steps {
        bound.bytes(option, topic.as_bytes());
        for publisher in publishers.iter().filter(|_| expected.is_some()) {
            assert_eq!(publisher.take(), expected.unwrap());
        }
    }
    for publisher in &publishers {
        assert_eq!(publisher.nothing(), ErrorKind::Again);
        publisher.put("early");
        publisher.put("late");
        assert_eq!(publisher.dropped(DropReason::NoSubscriber), 2);
    }
    assert_eq!(bound.nothing(), ErrorKind::Again);
}

/// Every message is either received or counted as dropped, and in the order it was sent.
#[test]
fn the_counters_of_full_queues_are_exact() {
    let watchdog = Watchdog::new("the_counters_of_full_queues_are_exact");
    for endpoint in [
        "tcp://127.0.0.1:*".to_owned(),
        IpcName::new().endpoint(),
        inproc_name(),
    ] {
        let context = Context::new();
        let publisher = socket(&context, Pub);
        publisher.int(ids::SNDHWM, 7);
        publisher.int(ids::SNDBUF, 4096);
        let endpoint = publisher.bind(&endpoint).unwrap();
        let (slow, fast) = (subscriber(&context, &[""]), subscriber(&context, &[""]));
        slow.int(ids::RCVHWM, 3);
        slow.int(ids::RCVBUF, 4096);
        fast.int(ids::RCVHWM, 0);
        let fast_publisher = socket(&context, Pub);
        fast_publisher.int(ids::SNDHWM, 0);
        let fast_endpoint = fast_publisher.bind("tcp://127.0.0.1:*").unwrap();
        slow.connect(&endpoint).unwrap();
        until_wanted(&publisher, "begin");
        fast.connect(&fast_endpoint).unwrap();
        until_wanted(&fast_publisher, "begin");

        let count = rounds(3_000, 100_000);
        let body = "x".repeat(2000);
        for n in 0..count {
            publisher.put(&format!("{n:08} {body}"));
            fast_publisher.put(&format!("{n:08} {body}"));
        }
        let dropped = publisher.dropped(DropReason::HighWater) as usize;
        assert!(dropped > 0 && dropped < count, "{dropped} of {count}");
        assert_eq!(
            publisher.stats().unwrap().peers[0]
                .dropped
                .dropped(DropReason::HighWater),
            dropped as u64
        );
        let mut seen = Vec::new();
        while seen.len() < count - dropped {
            let number = slow.take();
            if number != "begin" {
                seen.push(number[..8].parse::<usize>().unwrap());
            }
        }
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert_eq!(slow.nothing(), ErrorKind::Again);
        // The other subscriber, which kept up, missed nothing.
        let mut next = 0;
        while next < count {
            let number = fast.take();
            if number != "begin" {
                assert_eq!(number[..8].parse::<usize>().unwrap(), next);
                next += 1;
            }
        }
        assert_eq!(fast_publisher.dropped(DropReason::HighWater), 0);
        watchdog.feed();
    }
}

/// Over inproc there is one queue with the room of both.
#[test]
fn a_full_queue_over_inproc_is_as_long_as_both_marks_say() {
    let context = Context::new();
    let publisher = socket(&context, Pub);
    publisher.int(ids::SNDHWM, 6);
    let endpoint = publisher.bind(&inproc_name()).unwrap();
    let slow = subscriber(&context, &[""]);
    slow.int(ids::RCVHWM, 4);
    slow.connect(&endpoint).unwrap();
    for n in 0..100 {
        publisher.put(&n.to_string());
    }
    assert_eq!(publisher.dropped(DropReason::HighWater), 90);
    // It stays out until it has read half of them.
    for n in 0..4 {
        assert_eq!(slow.take(), n.to_string());
    }
    publisher.put("missed");
    assert_eq!(publisher.dropped(DropReason::HighWater), 91);
    assert_eq!(slow.take(), "4");
    publisher.put("seen");
    for n in 5..10 {
        assert_eq!(slow.take(), n.to_string());
    }
    assert_eq!(slow.take(), "seen");
    assert_eq!(slow.nothing(), ErrorKind::Again);
    assert_eq!(publisher.dropped(DropReason::HighWater), 91);
}

#[test]
fn without_drops_the_publisher_waits() {
    let _watchdog = Watchdog::new("without_drops_the_publisher_waits");
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), inproc_name()] {
        let context = Context::new();
        let publisher = socket(&context, Pub);
        publisher.int(ids::XPUB_NODROP, 1);
        publisher.int(ids::SNDHWM, 2);
        let endpoint = publisher.bind(&endpoint).unwrap();
        let slow = subscriber(&context, &[""]);
        slow.int(ids::RCVHWM, 2);
        slow.connect(&endpoint).unwrap();
        until_wanted(&publisher, "begin");
        let count = rounds(20_000, 500_000);
        let publishing = {
            let publisher = publisher.clone();
            thread::spawn(move || (0..count).for_each(|n| publisher.put(&n.to_string())))
        };
        let mut next = 0;
        while next < count {
            let number = slow.take();
            if number != "begin" {
                assert_eq!(number, next.to_string());
                next += 1;
            }
        }
        publishing.join().unwrap();
        assert_eq!(publisher.dropped(DropReason::HighWater), 0);
    }
}

/// The endpoints of each transport.
fn everywhere() -> (IpcName, [String; 3]) {
    let name = IpcName::new();
    let endpoints = [
        "tcp://127.0.0.1:*".to_owned(),
        name.endpoint(),
        inproc_name(),
    ];
    (name, endpoints)
}

/// A body that fills the buffers on the way after few messages.
fn large(number: usize) -> Vec<u8> {
    let mut body = number.to_string().into_bytes();
    body.resize(100_000, b' ');
    body
}

fn number(message: &Message) -> usize {
    text(message).trim_end().parse().unwrap()
}

#[test]
fn a_subscriber_that_is_too_slow_is_disconnected_and_its_queue_is_counted() {
    let _watchdog =
        Watchdog::new("a_subscriber_that_is_too_slow_is_disconnected_and_its_queue_is_counted");
    let (_name, endpoints) = everywhere();
    for endpoint in endpoints {
        let context = Context::new();
        let publisher = socket(&context, Pub);
        publisher.int(ids::SLOW_SUBSCRIBER, 2);
        publisher.int(ids::SNDHWM, 10);
        publisher.int(ids::SNDBUF, 100_000);
        let events = publisher
            .event_stream(EventKind::Disconnected as u32)
            .unwrap();
        let endpoint = publisher.bind(&endpoint).unwrap();
        let is_local = endpoint.starts_with("inproc");
        let slow = subscriber(&context, &[""]);
        slow.int(ids::RCVHWM, 10);
        slow.int(ids::RCVBUF, 100_000);
        slow.int(ids::RECONNECT_IVL, 1);
        slow.connect(&endpoint).unwrap();
        until_wanted(&publisher, "first");
        let mut sent = 0;
        while publisher.dropped(DropReason::TooSlow) == 0 {
            publisher.send(large(sent), Wait::Forever).unwrap();
            sent += 1;
        }
        let event = events.next(Wait::Forever).unwrap().unwrap();
        assert!(
            event.reason.unwrap().contains("SLOW_SUBSCRIBER"),
            "{endpoint}"
        );
        assert_eq!(publisher.dropped(DropReason::HighWater), 0);
        let lost = publisher.dropped(DropReason::TooSlow);
        if is_local {
            assert_eq!(lost, 1, "the subscriber counts what it had not read");
            assert_eq!(
                slow.recv(Wait::Forever).unwrap_err().kind(),
                ErrorKind::TooSlow
            );
            assert!(slow.dropped(DropReason::TooSlow) >= 20);
            slow.connect(&endpoint).unwrap();
        } else {
            until(|| publisher.dropped(DropReason::TooSlow) > 1);
        }
        // It reads what had arrived, and then it is back.
        until(|| {
            publisher.put("again");
            let soon = Instant::now() + Duration::from_millis(1);
            slow.recv(Wait::Until(soon))
                .is_ok_and(|message| text(&message) == "again")
        });
    }
}

#[test]
fn messages_that_a_slow_subscriber_misses_are_counted_once_and_for_one_reason() {
    let _watchdog =
        Watchdog::new("messages_that_a_slow_subscriber_misses_are_counted_once_and_for_one_reason");
    let (_name, endpoints) = everywhere();
    // Over inproc, each side counts its own part.
    for endpoint in endpoints.iter().filter(|name| !name.starts_with("inproc")) {
        for connects in [false, true] {
            let context = Context::new();
            let publisher = socket(&context, Pub);
            publisher.int(ids::SLOW_SUBSCRIBER, 2);
            publisher.int(ids::SNDHWM, 10);
            publisher.int(ids::SNDBUF, 100_000);
            publisher.int(ids::RECONNECT_IVL, 1);
            let slow = subscriber(&context, &[""]);
            slow.int(ids::RCVHWM, 10);
            slow.int(ids::RCVBUF, 100_000);
            slow.int(ids::RECONNECT_IVL, 1);
            if connects {
                publisher.connect(&slow.bind(endpoint).unwrap()).unwrap();
            } else {
                slow.connect(&publisher.bind(endpoint).unwrap()).unwrap();
            }
            until(|| publisher.get_int(ids::TOPICS_COUNT).unwrap() == 1);
            let mut sent = 0;
            while publisher.dropped(DropReason::TooSlow) == 0 {
                publisher.send(large(sent), Wait::Forever).unwrap();
                sent += 1;
            }
            // Messages that had left the publisher still arrive, from a peer that is then gone. Others follow.
            let (mut got, mut has_more) = (0, false);
            until(|| {
                publisher.put("more");
                while let Ok(message) = slow.recv(Wait::Dont) {
                    let is_new = text(&message) == "more";
                    has_more |= is_new;
                    got += usize::from(!is_new);
                }
                has_more && slow.stats().unwrap().peers.len() == 1
            });
            let lost = publisher.dropped(DropReason::TooSlow) as usize;
            assert_eq!(got + lost, sent, "{got} and {lost} at {endpoint}");
            assert_eq!(publisher.dropped(DropReason::PeerGone), 0, "{endpoint}");
        }
    }
}

#[test]
fn a_subscriber_that_reads_too_slowly_gets_an_error_and_then_new_messages() {
    let _watchdog =
        Watchdog::new("a_subscriber_that_reads_too_slowly_gets_an_error_and_then_new_messages");
    let (_name, endpoints) = everywhere();
    for endpoint in endpoints {
        let context = Context::new();
        let publisher = socket(&context, Pub);
        publisher.int(ids::SNDHWM, 100_000);
        let endpoint = publisher.bind(&endpoint).unwrap();
        let slow = subscriber(&context, &[""]);
        slow.int(ids::MAX_LAG, 50);
        slow.int(ids::RCVHWM, 10);
        slow.int(ids::RECONNECT_IVL, 1);
        let events = slow.event_stream(EventKind::Disconnected as u32).unwrap();
        slow.connect(&endpoint).unwrap();
        until_wanted(&publisher, "0");
        // More than the buffers on the way have room for.
        let old = 300;
        for n in 0..old {
            publisher.send(large(n), Wait::Forever).unwrap();
        }
        let error = loop {
            // The socket finds out without a call of the application.
            slow.poll(Events::READABLE, None).unwrap();
            match slow.stats().unwrap().queued_in {
                0 => panic!("{endpoint}: everything was received"),
                _ => thread::sleep(Duration::from_millis(20)),
            }
            match slow.recv_batch(1, Wait::Dont) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::TooSlow, "{error}");
        assert!(slow.dropped(DropReason::TooSlow) > 0);
        if !endpoint.starts_with("inproc") {
            let event = events.next(Wait::Forever).unwrap().unwrap();
            assert!(event.reason.unwrap().contains("MAX_LAG"), "{endpoint}");
        }
        // Nothing of the old is left anywhere.
        let mut next = old;
        let first = loop {
            publisher.send(large(next), Wait::Forever).unwrap();
            next += 1;
            match slow.recv(Wait::Until(Instant::now() + Duration::from_millis(1))) {
                Ok(message) => break number(&message),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Again, "{error}"),
            }
        };
        assert!(first >= old, "{first} at {endpoint}");
    }
}

#[test]
fn a_subscriber_that_keeps_up_never_lags() {
    let _watchdog = Watchdog::new("a_subscriber_that_keeps_up_never_lags");
    let context = Context::new();
    let publisher = socket(&context, Pub);
    publisher.int(ids::SLOW_SUBSCRIBER, 1);
    let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
    let prompt = subscriber(&context, &["m"]);
    prompt.int(ids::MAX_LAG, 60_000);
    prompt.connect(&endpoint).unwrap();
    until_wanted(&publisher, "m");
    for n in 0..rounds(20_000, 500_000) {
        publisher.put(&format!("m{n}"));
        while prompt.take() != format!("m{n}") {}
    }
    assert_eq!(prompt.dropped(DropReason::TooSlow), 0);
}

#[test]
fn a_dead_subscriber_gets_nothing() {
    let _watchdog = Watchdog::new("a_dead_subscriber_gets_nothing");
    let context = Context::new();
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), inproc_name()] {
        let publisher = socket(&context, Xpub);
        let endpoint = publisher.bind(&endpoint).unwrap();
        let dead = subscriber(&context, &["a", "b"]);
        let alive = subscriber(&context, &["b", "c"]);
        dead.connect(&endpoint).unwrap();
        told(&publisher, 2);
        alive.connect(&endpoint).unwrap();
        assert_eq!(publisher.take(), "\x01c");
        drop(dead);
        // A topic without subscribers is reported, without a call of the dead peer.
        assert_eq!(publisher.take(), "\0a");
        let sent = publisher.stats().unwrap().sent;
        publisher.put("a");
        publisher.put("b");
        assert_eq!(alive.take(), "b");
        let stats = publisher.stats().unwrap();
        assert_eq!(stats.sent - sent, 1);
        assert_eq!(stats.peers.len(), 1);
        assert_eq!(publisher.dropped(DropReason::NoSubscriber), 1);
    }
}

/// Only the newest message waits; the others are counted.
#[test]
fn a_conflating_subscriber_gets_the_newest() {
    let _watchdog = Watchdog::new("a_conflating_subscriber_gets_the_newest");
    let count = rounds(20_000, 1_000_000);
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), inproc_name()] {
        let context = Context::new();
        let publisher = socket(&context, Pub);
        publisher.int(ids::SNDHWM, 0);
        let endpoint = publisher.bind(&endpoint).unwrap();
        let last_only = socket(&context, Sub);
        last_only.int(ids::CONFLATE, 1);
        last_only.bytes(ids::SUBSCRIBE, b"");
        last_only.connect(&endpoint).unwrap();
        until_wanted(&publisher, "begin");
        let publishing = {
            let publisher = publisher.clone();
            thread::spawn(move || (0..count).for_each(|n| publisher.put(&format!("{n:08}"))))
        };
        let mut seen = Vec::new();
        while seen.last() != Some(&(count - 1)) {
            let number = last_only.take();
            if number != "begin" {
                seen.push(number.parse::<usize>().unwrap());
            }
        }
        publishing.join().unwrap();
        assert!(seen.is_sorted_by(|a, b| a < b));
        assert_eq!(last_only.nothing(), ErrorKind::Again);
        // Whatever was not received was replaced: here, or over inproc on the other side of the only queue there is.
        let replaced = DropReason::Conflated;
        let (sent, got) = (publisher.stats().unwrap(), last_only.stats().unwrap());
        let published = sent.sent + sent.dropped.dropped(replaced);
        let gone = sent.dropped.dropped(replaced) + got.dropped.dropped(replaced);
        assert_eq!(got.received + gone, published);
    }
}

/// Random subscriptions and messages against the plain definition of a prefix.
#[test]
fn every_subscriber_gets_its_topics_and_nothing_else() {
    let watchdog = Watchdog::new("every_subscriber_gets_its_topics_and_nothing_else");
    let mut random = Random::new(1);
    let mut word = move || -> String {
        (0..random.below(5))
            .map(|_| ['a', 'b', 'c'][random.below(3)])
            .collect()
    };
    for round in 0..rounds(6, 100) {
        let endpoint = if round % 2 == 0 {
            "tcp://127.0.0.1:*".to_owned()
        } else {
            inproc_name()
        };
        let context = Context::new();
        let publisher = socket(&context, Xpub);
        publisher.int(ids::XPUB_VERBOSER, 1);
        publisher.int(ids::SNDHWM, 0);
        let endpoint = publisher.bind(&endpoint).unwrap();
        let subscribers: Vec<(Socket, Vec<String>)> = (0..10)
            .map(|n| {
                let topics: Vec<String> = (0..n % 4).map(|_| word()).collect();
                let mut distinct = topics.clone();
                distinct.sort();
                distinct.dedup();
                let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
                let subscriber = subscriber(&context, &topics);
                subscriber.bytes(ids::SUBSCRIBE, b"!");
                subscriber.int(ids::RCVHWM, 0);
                subscriber.connect(&endpoint).unwrap();
                told(&publisher, distinct.len() + 1);
                (subscriber, distinct)
            })
            .collect();
        let sent: Vec<String> = (0..500).map(|_| word()).collect();
        for topic in &sent {
            publisher
                .send(message([topic.as_bytes(), b"body"]), Wait::Forever)
                .unwrap();
        }
        publisher.put("!");
        for (subscriber, topics) in &subscribers {
            let wants = |text: &&String| topics.iter().any(|topic| text.starts_with(topic));
            for topic in sent.iter().filter(wants) {
                assert_eq!(subscriber.take(), format!("{topic}/body"));
            }
            assert_eq!(subscriber.take(), "!");
        }
        watchdog.feed();
    }
}

/// A publisher that makes no further call must still send all messages, however many it has gathered.
#[test]
fn a_burst_arrives_at_all_although_the_publisher_does_nothing_more() {
    let watchdog = Watchdog::new("a_burst_arrives_at_all_although_the_publisher_does_nothing_more");
    let mut random = Random::new(1);
    for publisher_type in [Pub, Xpub] {
        let context = Context::new();
        let publisher = socket(&context, publisher_type);
        publisher.int(ids::SNDHWM, 0);
        let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
        let inproc = publisher.bind(&inproc_name()).unwrap();
        let subscribers: Vec<Socket> = (0..8)
            .map(|n| {
                // The last one is in this process, and wants less than the others.
                let local = n == 7;
                let wanted: &[&str] = if local { &["b", "hello", "go"] } else { &[""] };
                let subscriber = subscriber(&context, wanted);
                subscriber.int(ids::RCVHWM, 0);
                subscriber
                    .connect(if local { &inproc } else { &endpoint })
                    .unwrap();
                subscriber
            })
            .collect();
        for subscriber in &subscribers {
            until(|| {
                publisher.put("hello?");
                subscriber.recv(Wait::Dont).is_ok()
            });
        }
        publisher.put("go");
        for subscriber in &subscribers {
            while subscriber.take() != "go" {}
        }
        for round in 0..rounds(50, 5000) {
            let count = 1 + random.below(if round % 10 == 0 { 3000 } else { 60 });
            let text = |n: usize| {
                let topic = if n % 50 == 49 { "b" } else { "a" };
                format!("{topic}.{round}.{n}.{}", "x".repeat(n * 97 % 700))
            };
            for n in 0..count {
                let (text, last) = (text(n), n.to_string());
                let message = if n % 5 == 0 {
                    message([text.as_bytes(), b"", last.as_bytes()])
                } else {
                    message([text.as_bytes()])
                };
                publisher.send(message, Wait::Forever).unwrap();
            }
            for (at, subscriber) in subscribers.iter().enumerate() {
                for n in (0..count).filter(|n| at < 7 || n % 50 == 49) {
                    let text = text(n);
                    let parts = if n % 5 == 0 {
                        format!("{text}//{n}")
                    } else {
                        text
                    };
                    assert_eq!(subscriber.take(), parts);
                }
            }
            watchdog.feed();
        }
        let stats = publisher.stats().unwrap();
        assert_eq!(stats.queued_out, 0);
        assert_eq!(stats.dropped, zeroxide::Counters::default());
        publisher.flush(None).unwrap();
    }
}

/// XSUB and XPUB back to back, as a forwarder has them: subscriptions go up, messages come down.
#[test]
fn a_forwarder_passes_on_messages_and_subscriptions() {
    let _watchdog = Watchdog::new("a_forwarder_passes_on_messages_and_subscriptions");
    let context = Context::new();
    let (front, back) = (socket(&context, Xsub), socket(&context, Xpub));
    let (up, down) = (
        front.bind("tcp://127.0.0.1:*").unwrap(),
        back.bind(&inproc_name()).unwrap(),
    );
    let forwarding = thread::spawn(move || zeroxide::Proxy::new(front, back, None, None).run());
    let publisher = socket(&context, Xpub);
    publisher.connect(&up).unwrap();
    let subscriber = subscriber(&context, &["news"]);
    subscriber.connect(&down).unwrap();
    assert_eq!(publisher.take(), "\x01news");
    publisher.put("other");
    publisher.put("news at ten");
    assert_eq!(subscriber.take(), "news at ten");
    subscriber.bytes(ids::UNSUBSCRIBE, b"news");
    assert_eq!(publisher.take(), "\0news");
    let xsub = socket(&context, Xsub);
    xsub.connect(&down).unwrap();
    xsub.send(Message::from(&b"\x01sports"[..]), Wait::Forever)
        .unwrap();
    assert_eq!(publisher.take(), "\x01sports");
    xsub.put("hello upstream");
    assert_eq!(
        text(&publisher.recv(Wait::Forever).unwrap()),
        "hello upstream"
    );
    context.shutdown();
    assert_eq!(
        forwarding.join().unwrap().unwrap_err().kind(),
        ErrorKind::Terminated
    );
}

#[test]
fn options_of_publishers_are_refused_elsewhere() {
    let context = Context::new();
    let subscriber = socket(&context, Sub);
    let refused = |id| {
        subscriber
            .set_option(id, &Value::Int(1))
            .unwrap_err()
            .kind()
    };
    assert_eq!(refused(ids::XPUB_NODROP), ErrorKind::Invalid);
    assert_eq!(refused(ids::XPUB_VERBOSE), ErrorKind::Invalid);
    assert_eq!(
        subscriber.send("x", Wait::Dont).unwrap_err().error.kind(),
        ErrorKind::NotSupported
    );
    let publisher = socket(&context, Pub);
    assert_eq!(publisher.nothing(), ErrorKind::NotSupported);
}

#[test]
fn topics_are_counted_on_either_side() {
    let _watchdog = Watchdog::new("topics_are_counted_on_either_side");
    let context = Context::new();
    for (publisher, subscriber) in [(Pub, Sub), (Xpub, Xsub)] {
        let publisher = socket(&context, publisher);
        let endpoint = publisher.bind("tcp://127.0.0.1:*").unwrap();
        let count = |socket: &Socket| socket.get_int(ids::TOPICS_COUNT).unwrap();
        let want = |socket: &Socket, wanted: bool, topic: &str| {
            let option = if wanted {
                ids::SUBSCRIBE
            } else {
                ids::UNSUBSCRIBE
            };
            if subscriber == Sub {
                socket.bytes(option, topic.as_bytes());
            } else {
                socket.put(&format!("{}{topic}", char::from(u8::from(wanted))));
            }
        };
        let subscribers = [0, 1].map(|_| socket(&context, subscriber));
        for socket in &subscribers {
            assert_eq!(count(socket), 0);
            for topic in ["a", "b", "a"] {
                want(socket, true, topic);
            }
            want(socket, false, "unknown");
            assert_eq!(count(socket), 2);
            socket.connect(&endpoint).unwrap();
        }
        until(|| count(&publisher) == 2);
        want(&subscribers[0], false, "b");
        want(&subscribers[1], false, "b");
        until(|| count(&publisher) == 1);
    }
    let push = socket(&context, SocketType::Push);
    let refused = push.get_int(ids::TOPICS_COUNT).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}
