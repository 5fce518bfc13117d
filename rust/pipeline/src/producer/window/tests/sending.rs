//! Limits of the rows in transit, silent collectors and full disks, and replies that change nothing.

use super::super::*;
use super::{CREDIT, Up, WALL, open, welcome};

#[test]
fn no_more_flies_than_the_credit_allows() {
    let mut world = open();
    for _ in 0..9 {
        world.push(5);
    }
    assert_eq!(world.window.flying().rows, 20);
    assert_eq!(world.up.len(), 4);
    world.arrive_up(false);
    world.sync();
    world.arrive_down(false);
    assert_eq!(world.delivered, 5);
    assert_eq!(world.up.len(), 4);
}

#[test]
fn one_batch_may_fly_however_large_it_is() {
    let mut world = open();
    world.push(1000);
    world.push(1);
    assert_eq!(world.up.len(), 1);
}

#[test]
fn silence_makes_the_connection_stale_and_idleness_does_not() {
    let mut world = open();
    world.sleep(Duration::from_secs(3600));
    assert!(world.connected && world.window.gone_since().is_none());
    world.push(1);
    world.sleep(SILENCE);
    assert!(!world.connected);
    let gone = world.window.gone_since().expect("gone");
    assert!(
        world.now - gone <= Duration::from_secs(3600) + SILENCE,
        "since the last word"
    );
    world.settle();
}

#[test]
fn an_acknowledgement_does_not_stand_for_the_reply_to_a_hello() {
    let mut world = open();
    world.push(1);
    world.arrive_up(false);
    let refusal = world.collector.hear(
        world.connection,
        Up::Append {
            id: 9,
            epoch: WALL,
            first_seq: 5,
            rows: vec![5],
        },
    );
    world.reply(refusal.into_iter().map(|down| (1, down)));
    world.arrive_down(false);
    assert!(!world.window.is_open(), "it greets again");
    world.sync();
    world.arrive_down(false);
    assert_eq!(world.delivered, 1);
    world.up.clear();
    world.sleep(SILENCE);
    assert!(!world.connected, "the HELLO remains without reply");
    world.settle();
}

#[test]
fn a_full_disk_is_not_silence() {
    let mut world = open();
    world.push(5);
    world.fill(true);
    world.arrive_up(false);
    world.arrive_down(false);
    assert_eq!(
        world.window.obstacle().map(|(code, _)| *code),
        Some(Code::Full)
    );
    world.sleep(SILENCE + Duration::from_millis(1));
    assert!(
        world.connected && world.window.is_open(),
        "it waits for room"
    );
    world.fill(false);
    world.arrive_down(false);
    assert!(world.window.obstacle().is_none());
    assert_eq!(
        world.up.len(),
        1,
        "what was dropped meanwhile is sent again"
    );
    world.settle();
}

#[test]
fn a_collector_that_is_asked_again_and_still_has_no_room_keeps_its_reason() {
    let mut world = open();
    world.push(5);
    world.fill(true);
    world.arrive_up(false);
    world.arrive_down(false);
    let full = world.window.obstacle().cloned();
    assert!(full.is_some() && world.window.takes_nothing());
    for _ in 0..3 {
        world.sleep(PROBE + Duration::from_millis(1));
        assert!(!world.window.is_open(), "it is asked again");
        assert_eq!(world.window.obstacle().cloned(), full);
        assert!(world.window.takes_nothing());
        assert_eq!(world.window.gone_since(), None);
        world.arrive_up(false);
        world.sync();
        world.arrive_down(false);
        assert!(world.window.is_open() && world.window.takes_nothing());
        assert_eq!(world.window.obstacle().cloned(), full);
    }
    world.fill(false);
    world.arrive_down(false);
    assert!(world.window.obstacle().is_none() && !world.window.takes_nothing());
    world.settle();
}

#[test]
fn unrequested_replies_change_nothing() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, None, now);
    window.on_ack(5, Some(1), CREDIT, now);
    window.on_welcome(9, welcome(Some(7)), now);
    window.on_status(WALL, Some(u64::MAX), CREDIT, None, now);
    window.push(0, 10, 10);
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(2, welcome(None), now);
    assert!(!window.is_open());
    window.on_welcome(1, welcome(Some(u64::MAX)), now);
    assert_eq!(window.ending().map(|e| e.code), Some(Code::Invalid));

    let mut world = open();
    world.push(5);
    world.window.on_ack(u64::MAX, Some(0), CREDIT, world.now);
    world.window.on_ack(100, Some(0), CREDIT, world.now);
    assert_eq!(world.window.unacknowledged(), 5);
    world
        .window
        .on_status(WALL, Some(u64::MAX), CREDIT, None, world.now);
    world.settle();
}
