//! Batches that cannot be sent because they are too large or damaged, and the batches after them.

use super::super::*;
use super::{CREDIT, WALL, left, welcome};

#[test]
fn a_batch_that_is_too_large_is_given_up_and_later_ones_are_sent() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, None, now);
    window.push(0, 1, 10);
    window.push(1, 1, 1 << 21);
    window.push(2, 1, 10);
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(1, welcome(None), now);
    assert!(matches!(window.poll_event(), Some(Event::Numbered(_))));
    let sent = |transmit| match transmit {
        Some(Transmit::Append {
            first_seq, payload, ..
        }) => Some((payload, first_seq)),
        None => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(sent(window.poll_transmit(now)), Some((0, 0)));
    assert_eq!(sent(window.poll_transmit(now)), None);
    assert_eq!(
        window.poll_unsendable(),
        None,
        "what is before it is on its way"
    );
    window.on_ack(0, Some(7), CREDIT, now);
    assert!(matches!(window.poll_event(), Some(Event::Delivered { .. })));
    let why = Unsent::TooBig { limit: 1 << 20 };
    assert_eq!(window.poll_unsendable(), Some((1, 1, why)));
    window.give_up(why);
    assert!(matches!(
        window.poll_event(),
        Some(Event::Given {
            first: 1,
            rows: 1,
            payload: 1,
            ..
        })
    ));
    assert!(matches!(
        window.poll_event(),
        Some(Event::Numbered(Numbers {
            base: -1,
            since: 2,
            ..
        }))
    ));
    assert_eq!(
        sent(window.poll_transmit(now)),
        Some((2, 1)),
        "without a gap"
    );
    window.on_ack(1, Some(8), CREDIT, now);
    assert_eq!(window.unacknowledged(), 0);
}

#[test]
fn a_batch_that_is_too_large_may_go_in_parts() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, None, now);
    window.push(0, 4, 1 << 21);
    window.push(1, 1, 10);
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(1, welcome(None), now);
    assert_eq!(window.poll_transmit(now), None);
    assert!(window.poll_unsendable().is_some());
    let part = |payload, rows, size| Part {
        payload,
        rows,
        size,
        time_limit: None,
    };
    window.split(vec![part(10, 3, 50), part(11, 1, 40)]);
    assert_eq!(window.unacknowledged_size(), 100);
    let mut sent = Vec::new();
    while let Some(Transmit::Append {
        first_seq, payload, ..
    }) = window.poll_transmit(now)
    {
        sent.push((payload, first_seq));
    }
    assert_eq!(sent, [(10, 0), (11, 3), (1, 4)]);
}

#[test]
fn unreadable_batches_do_not_delay_others() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, left(100), now);
    window.push(0, 10, 10);
    window.push_damaged(1, 10);
    window.push(2, 10, 10);
    window.begin_fresh();
    window.on_connected(now);
    window.poll_transmit(now);
    // The collector has half of the damaged rows.
    window.on_welcome(1, welcome(Some(114)), now);
    assert!(matches!(window.poll_event(), Some(Event::Numbered(_))));
    assert!(matches!(
        window.poll_event(),
        Some(Event::Delivered { first: 0, .. })
    ));
    assert_eq!(window.poll_transmit(now), None);
    assert_eq!(window.poll_unsendable(), Some((1, 10, Unsent::Damaged)));
    window.give_up(Unsent::Damaged);
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Append {
            first_seq: 115,
            payload: 2,
            ..
        })
    ));

    // The collector has all of them.
    let mut window: Window<u8> = Window::new(WALL, left(100), now);
    window.push(0, 10, 10);
    window.push_damaged(1, 10);
    window.push(2, 10, 10);
    window.begin_fresh();
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(1, welcome(Some(119)), now);
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Append {
            first_seq: 120,
            payload: 2,
            ..
        })
    ));
    assert_eq!(window.unacknowledged(), 10);
}

#[test]
fn rows_that_a_log_lost_are_reported_although_a_later_one_was_given_up() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, None, now);
    window.push(0, 5, 10);
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(1, welcome(None), now);
    window.poll_transmit(now);
    window.on_ack(4, Some(0), CREDIT, now);
    window.push_damaged(1, 1);
    window.give_up(Unsent::Damaged);
    let mut greet = |writers: &[(u64, u64)]| {
        while window.poll_event().is_some() {}
        window.on_disconnected(now);
        window.on_connected(now);
        let Some(Transmit::Hello { id, .. }) = window.poll_transmit(now) else {
            panic!("no greeting");
        };
        let welcome = Welcome {
            writers: writers.to_vec(),
            ..welcome(None)
        };
        window.on_welcome(id, welcome, now);
        window.poll_event()
    };
    assert_eq!(greet(&[(WALL, 4)]), None, "all are there");
    let lost = Event::Lost { rows: 5, before: 6 };
    assert_eq!(greet(&[(WALL + 1, 8)]), Some(lost), "others are there");
}

#[test]
fn a_batch_that_is_refused_for_its_times_is_given_up_and_later_ones_are_sent() {
    let now = Instant::now();
    let mut window: Window<u8> = Window::new(WALL, None, now);
    for payload in 0..3 {
        window.push(payload, 1, 10);
    }
    window.on_connected(now);
    window.poll_transmit(now);
    window.on_welcome(1, welcome(None), now);
    while window.poll_transmit(now).is_some() {}
    // Requests 2 to 4 are in transit.
    let refuse = |window: &mut Window<u8>, id, detail| {
        window.on_refused(id, Code::Invalid, detail, String::new(), WALL, now);
    };
    refuse(&mut window, 3, 77);
    window.on_refused(4, Code::Gap, 1, String::new(), WALL, now);
    let Some(Transmit::Hello { id, .. }) = window.poll_transmit(now) else {
        panic!("no greeting");
    };
    let has_first = Welcome {
        writers: vec![(WALL, 0)],
        ..welcome(None)
    };
    window.on_welcome(id, has_first, now);
    assert!(matches!(
        window.poll_transmit(now),
        Some(Transmit::Append { payload: 0, .. })
    ));
    assert_eq!(window.poll_transmit(now), None);
    window.on_ack(0, None, CREDIT, now);
    let why = Unsent::Ahead { limit: 77 };
    assert_eq!(window.poll_unsendable(), Some((1, 1, why)));
    window.give_up(why);
    let Some(Transmit::Append {
        id,
        first_seq: 1,
        payload: 2,
        ..
    }) = window.poll_transmit(now)
    else {
        panic!("not sent");
    };
    // Other refusals repeat, so they end the run.
    refuse(&mut window, id, 0);
    assert_eq!(window.ending().unwrap().code, Code::Invalid);
}
