//! The cost of a hostile or merely large subscriber: memory in proportion to its topics, and constant stack.

use std::thread;

use zeroxide_proto::subscription::{Added, Dropped, Removal, SubscriberTable, Subscriptions};

const MEGABYTE: usize = 1 << 20;
const FLOOD: usize = 300_000;

/// Both parts measure the whole process, so they are one test, and the first keeps its memory while the second grows.
/// Each is repeated many times, because the memory of one peer must be available to the next.
#[test]
fn memory_follows_the_topics() {
    let Some(before) = resident() else {
        return; // only Linux reports it
    };
    let mut table = SubscriberTable::new();
    table.add(b"before", 0);
    for peer in 1..4 {
        table.remove_peer(peer - 1, |_| {});
        for n in 0..FLOOD as u32 {
            table.add(format!("topic.{n:014}").as_bytes(), peer);
        }
        let each = grown_since(before) / FLOOD;
        assert!(each < 100, "{each} bytes per topic");
        table.add(b"topic.behind", peer + 1);
    }

    let long = vec![b'x'; 64 * MEGABYTE];
    let before = resident().unwrap_or_default();
    for _ in 0..3 {
        let mut table = SubscriberTable::new();
        assert_eq!(table.add(&long, 1), Added::FirstOfTopic);
        assert_eq!(
            table.add(&long[..long.len() / 2 + 7], 2),
            Added::FirstOfTopic
        );
        assert_eq!(table.add(&long, 2), Added::FirstOfPeer);
        table.remove_peer(2, |topic| assert_eq!(topic.len(), long.len() / 2 + 7));
        let times = grown_since(before) as f64 / long.len() as f64;
        assert!(times < 2.0, "{times} times a long topic");
        assert_eq!(table.remove(&long, 1), Dropped::LastOfTopic);
    }
}

/// Every topic is the prefix of the next: a tree as deep as the longest of them.
#[test]
fn depth_does_not_use_the_stack() {
    const DEPTH: usize = 3000;
    const STACK: usize = 48 * 1024;
    let run = || {
        let text = vec![b'x'; DEPTH];
        let (mut subscriptions, mut table) = (Subscriptions::new(), SubscriberTable::new());
        for len in 0..=DEPTH {
            assert!(subscriptions.add(&text[..len]));
            assert_eq!(table.add(&text[..len], len % 2), Added::FirstOfTopic);
        }
        let (mut matched, mut listed, mut unwanted) = (0, 0, 0);
        table.for_each_match(&text, |_| matched += 1);
        table.for_each_topic(|_| listed += 1);
        table.remove_peer(1, |_| unwanted += 1);
        assert_eq!(
            (matched, listed, unwanted),
            (DEPTH + 1, DEPTH + 1, DEPTH / 2)
        );
        for len in 0..DEPTH / 2 {
            assert_eq!(subscriptions.remove(&text[..len]), Removal::Last);
        }
        assert!(subscriptions.matches(&text));
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(run);
    thread.unwrap().join().unwrap();
}

/// A peer that keeps changing its subscriptions leaves no memory.
#[test]
fn coming_and_going_does_not_pile_up() {
    let mut table = SubscriberTable::new();
    table.add(b"stays", 1);
    for n in 0..100_000_u32 {
        table.add(&n.to_be_bytes(), 1);
        table.add(&n.to_be_bytes(), 2);
        table.remove(&n.to_be_bytes(), 1);
        table.remove(&n.to_be_bytes(), 2);
    }
    assert_eq!(
        (table.topics(), table.usage_of(1).0, table.usage_of(2).0),
        (1, 1, 0)
    );
    let mut unwanted = Vec::new();
    table.remove_peer(1, |topic| unwanted.push(topic.to_vec()));
    assert_eq!(unwanted, [b"stays"]);
}

/// The bytes of a peer's topics are known, however they come and go.
#[test]
fn bytes_follow_the_topics_of_each_peer() {
    let mut table = SubscriberTable::new();
    for topic in ["", "a", "abc", "abc", "abd"] {
        table.add(topic.as_bytes(), 1);
    }
    table.add(b"abc", 2);
    assert_eq!(
        (
            table.usage_of(1).1,
            table.usage_of(2).1,
            table.usage_of(3).1
        ),
        (7, 3, 0)
    );
    assert!(table.contains(b"abc", 1) && table.contains(b"abc", 2) && table.contains(b"", 1));
    assert!(!table.contains(b"ab", 1) && !table.contains(b"abd", 2) && !table.contains(b"a", 3));
    table.remove(b"abc", 1);
    table.remove(b"abc", 1);
    table.remove(b"unknown", 1);
    assert_eq!((table.usage_of(1).1, table.usage_of(2).1), (4, 3));
    assert!(!table.contains(b"abc", 1));
    table.remove_peer(1, |_| {});
    assert_eq!((table.usage_of(1).1, table.usage_of(2).1), (0, 3));
    table.add(b"again", 1);
    assert_eq!(table.usage_of(1).1, 5);
}

fn grown_since(before: usize) -> usize {
    resident().unwrap_or_default().saturating_sub(before)
}

/// Resident memory of this process in bytes.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}
