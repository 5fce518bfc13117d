//! Runs that continue after earlier ones, logs that lost rows or were replaced, and runs that exclude each other.

use super::super::*;
use super::{CREDIT, Collector, FORMER, WALL, left, open, welcome};

#[test]
fn a_name_with_a_history_continues_where_it_ended() {
    let mut window: Window<u8> = Window::new(WALL, None, Instant::now());
    let now = Instant::now();
    window.push(0, 10, 10);
    window.on_connected(now);
    let Some(Transmit::Hello {
        id, next_seq: 0, ..
    }) = window.poll_transmit(now)
    else {
        panic!("a HELLO");
    };
    window.on_welcome(id, welcome(Some(499)), now);
    assert!(matches!(
        window.poll_event(),
        Some(Event::Numbered(Numbers { base: 500, .. }))
    ));
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Append { first_seq: 500, .. })
    ));
}

#[test]
fn an_earlier_run_left_rows_from_the_middle_of_a_batch_on() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, left(100), now);
    window.push(0, 10, 10);
    window.push(1, 10, 10);
    window.push(2, 10, 10);
    window.begin_fresh();
    window.on_connected(now);
    assert!(window.poll_transmit(now).is_some());
    window.on_welcome(1, welcome(Some(114)), now);
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Append {
            first_seq: 110,
            payload: 1,
            ..
        })
    ));
    window.on_ack(119, Some(1000), CREDIT, now);
    assert!(matches!(window.poll_event(), Some(Event::Numbered(_))));
    assert!(matches!(
        window.poll_event(),
        Some(Event::Delivered {
            first_seq: 100,
            offset: None,
            ..
        })
    ));
    // Offset 1000 is that of sequence number 115, not of the batch's first.
    assert!(matches!(
        window.poll_event(),
        Some(Event::Delivered {
            first_seq: 110,
            offset: None,
            ..
        })
    ));
}

#[test]
fn more_rows_than_the_credit_that_the_collector_has_do_not_stop_a_run() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, left(100), now);
    for batch in 0..5 {
        window.push(batch, 10, 10);
    }
    window.begin_fresh();
    window.on_connected(now);
    assert!(window.poll_transmit(now).is_some());
    window.on_welcome(1, welcome(Some(139)), now);
    // The batches before the last one have 30 rows, more than the credit of 20.
    for first in [130, 140] {
        assert!(matches!(
            window.poll_transmit(now),
            Some(Transmit::Append { first_seq, .. }) if first_seq == first
        ));
    }
    assert_eq!(window.flying().rows, 20);
    window.on_ack(139, None, CREDIT, now);
    assert_eq!((window.acked(), window.flying().rows), (40, 10));
    window.on_ack(149, Some(1000), CREDIT, now);
    assert_eq!((window.unacknowledged(), window.flying().rows), (0, 0));
}

#[test]
fn a_spool_that_lost_its_end_continues_after_the_collectors_rows() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, left(100), now);
    window.push(0, 10, 10);
    window.begin_fresh();
    window.push(1, 5, 5);
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(1, welcome(Some(119)), now);
    assert!(matches!(
        window.poll_event(),
        Some(Event::Delivered {
            first_seq: 100,
            rows: 10,
            ..
        })
    ));
    assert!(matches!(
        window.poll_event(),
        Some(Event::Numbered(Numbers { base: 110, .. }))
    ));
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Append {
            first_seq: 120,
            payload: 1,
            ..
        })
    ));
    window.on_ack(124, Some(9), CREDIT, now);
    assert!(matches!(
        window.poll_event(),
        Some(Event::Delivered {
            first: 10,
            first_seq: 120,
            offset: Some(9),
            ..
        })
    ));
}

#[test]
fn rows_that_were_never_sent_are_reported_if_rows_of_others_change_their_numbers() {
    let now = Instant::now();
    let foreign = |begin: fn(&mut Window<u8>)| {
        let mut window: Window<u8> = Window::new(WALL, left(100), now);
        window.push(0, 2, 2);
        begin(&mut window);
        window.push(1, 5, 5);
        window.on_connected(now);
        window.poll_transmit(now);
        let welcome = Welcome {
            writers: vec![(FORMER, 99), (FORMER - 1, 179)],
            ..welcome(None)
        };
        window.on_welcome(1, welcome, now);
        match window.poll_event() {
            Some(Event::Foreign { rows, .. }) => rows,
            _ => 0,
        }
    };
    assert_eq!(foreign(Window::begin_own), 2, "not sent yet");
    assert_eq!(foreign(Window::begin_fresh), 2);
}

#[test]
fn acknowledged_rows_that_a_collector_lost_are_reported_and_the_rest_is_sent() {
    let now = Instant::now();
    let numbers = left(60).map(|numbers| Numbers {
        since: -40,
        ..numbers
    });
    let mut window: Window<u8> = Window::new(WALL, numbers, now);
    window.push(0, 10, 10);
    window.begin_fresh();
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(1, welcome(Some(49)), now);
    let lost = Event::Lost {
        rows: 10,
        before: 0,
    };
    assert_eq!(window.poll_event(), Some(lost));
    assert!(matches!(
        window.poll_event(),
        Some(Event::Numbered(Numbers {
            base: 60,
            since: 0,
            ..
        }))
    ));
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Append { first_seq: 60, .. })
    ));
    // The event occurs once.
    window.on_disconnected(now);
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(3, welcome(Some(49)), now);
    assert_eq!(window.poll_event(), None);
}

#[test]
fn a_log_is_older_than_it_was_if_the_last_row_has_another_epoch() {
    let now = Instant::now();
    let lost = |writers: &[(u64, u64)], is_whole| {
        let numbers = left(10).map(|numbers| Numbers {
            end: 10,
            last_epoch: Some(50),
            ..numbers
        });
        let mut window: Window<u8> = Window::new(WALL, numbers, now);
        window.on_connected(now);
        window.poll_transmit(now);
        let welcome = Welcome {
            writers: writers.to_vec(),
            is_whole,
            ..welcome(None)
        };
        window.on_welcome(1, welcome, now);
        match window.poll_event() {
            Some(Event::Lost { rows, .. }) => rows,
            _ => 0,
        }
    };
    assert_eq!(lost(&[(40, 4), (50, 9)], true), 0, "as it was");
    assert_eq!(lost(&[(40, 4), (50, 12), (60, 20)], true), 0, "longer");
    assert_eq!(lost(&[(40, 4), (60, 20)], true), 5, "without the last run");
    assert_eq!(lost(&[(40, 4), (50, 7), (60, 20)], true), 2, "part of it");
    assert_eq!(lost(&[(60, 9)], true), 10, "without any");
    assert_eq!(lost(&[(45, 9)], true), 1, "a clock was set back");
    assert_eq!(lost(&[], true), 10, "empty");
    // The list begins after the relevant row.
    assert_eq!(lost(&[(60, 20), (70, 30)], false), 0, "unknown");
    assert_eq!(lost(&[(60, 7), (70, 30)], false), 2, "known");
}

#[test]
fn an_empty_collector_gets_the_remaining_rows() {
    let mut world = open();
    world.push(5);
    world.arrive_up(false);
    world.sync();
    world.arrive_down(false);
    world.push(5);
    // Another log replaces it.
    world.collector = Collector {
        log_id: [8; 16],
        ..Collector::default()
    };
    world.disconnect(0);
    world.connect();
    world.arrive_up(false);
    world.arrive_down(false);
    world.arrive_up(false);
    assert_eq!(world.collector.log.first(), Some(&(5, 5)));
}

#[test]
fn a_later_run_wins_and_a_clock_that_was_set_back_does_not_matter() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, None, now);
    window.on_connected(now);
    window.poll_transmit(now);
    // An epoch from a clock that was ahead.
    window.on_refused(1, Code::Fenced, WALL + 500, String::new(), WALL + 1, now);
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Hello { id: 2, epoch, .. }) if epoch == WALL + 501 + WALL % EPOCH_STEP
    ));
    // Started after this one.
    let later = WALL + 2 * EPOCH_STEP;
    window.on_refused(2, Code::Fenced, later, "later".into(), later + 1, now);
    assert_eq!(window.ending().map(|e| e.code), Some(Code::Fenced));
    assert!(window.poll_transmit(now).is_none());
    assert_eq!(window.poll_timeout(), None);
}

/// With a collector whose clock is behind, the order of epochs is that of chance, until the clock is set.
#[test]
fn a_run_with_an_epoch_before_its_beginning_ends_only_for_one_that_began_later() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, None, now);
    let days = 300_000_000_000;
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_refused(1, Code::Fenced, WALL - days, "ahead".into(), WALL, now);
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Hello { id: 2, epoch, .. }) if epoch < WALL - days / 2
    ));
    window.on_welcome(2, welcome(None), now);
    // The HELLO of an earlier run came late, when the clock of the collector was right.
    window.on_refused(0, Code::Fenced, WALL - 1, "earlier".into(), WALL, now);
    assert!(matches!(
        window.poll_transmit(now + SILENCE),
        Some(Transmit::Hello {
            id: 3,
            epoch: WALL,
            ..
        })
    ));
    window.on_refused(3, Code::Fenced, WALL + 1, "later".into(), WALL + 2, now);
    assert_eq!(window.ending().map(|e| e.code), Some(Code::Fenced));
}

#[test]
fn a_clock_that_is_ahead_of_the_collectors_does_not_keep_a_run_out() {
    let now = Instant::now();
    let years = 300_000_000_000_000;
    let follow = |mine: u64, told: u64| {
        let mut window: Window<u8> = Window::new(mine, None, now);
        window.on_connected(now);
        window.poll_transmit(now);
        window.on_refused(1, Code::Fenced, told, "ahead".into(), mine, now);
        match window.poll_transmit(now) {
            Some(Transmit::Hello { epoch, .. }) => epoch - told,
            other => panic!("{other:?}"),
        }
    };
    let steps = [1, 2].map(|late| follow(WALL + years + late, WALL));
    assert!(steps.iter().all(|step| (1..=EPOCH_STEP).contains(step)));
    assert_ne!(steps[0], steps[1], "two runs that get the same answer");

    // A run that was welcomed once is not protected, because another one may have taken over since.
    let mut window: Window<u8> = Window::new(WALL + years, None, now);
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(1, welcome(None), now);
    window.on_disconnected(now);
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_refused(2, Code::Fenced, WALL, "ahead".into(), WALL + years, now);
    assert_eq!(window.ending().map(|e| e.code), Some(Code::Fenced));
}
