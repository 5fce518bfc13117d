//! CURVE with peers that set flags on the frame that carries a MESSAGE: those inside are the ones that count.

mod wire;

use std::time::Duration;
use wire::curve::{client, server};
use wire::{Cut, Pair, data, frame_starts, frames, message};
use zeroxide_proto::{CloseReason, EngineConfig, Event, Frame, FrameKind, SocketType};

const MORE: u8 = 0x01;
const COMMAND: u8 = 0x04;

/// Carries bytes from `a` to `b`, and the other way round, with these flags outside.
fn run(pair: &mut Pair, flags: u8) {
    loop {
        let now = pair.now;
        let (mut to_b, mut to_a) = (pair.a.output(now), pair.b.output(now));
        if to_b.is_empty() && to_a.is_empty() {
            return;
        }
        for bytes in [&mut to_b, &mut to_a] {
            for at in frame_starts(bytes) {
                bytes[at] |= flags;
            }
        }
        for piece in to_b.chunks(7) {
            pair.b.feed(piece, now);
        }
        for piece in to_a.chunks(1000) {
            pair.a.feed(piece, now);
        }
    }
}

fn pairs(a: EngineConfig, b: EngineConfig) -> impl Iterator<Item = (Pair, u8)> {
    [0, MORE, COMMAND, MORE | COMMAND]
        .into_iter()
        .map(move |flags| (Pair::ready(a.clone(), b.clone(), Cut::Whole), flags))
}

#[test]
fn messages_have_the_parts_that_are_marked_inside() {
    let all = [
        vec![b"alone".to_vec()],
        vec![Vec::new(), b"request".to_vec()],
        vec![vec![1; 69], Vec::new(), vec![2; 300]],
        // Longer than a command may be.
        vec![vec![3; 200_000]],
    ];
    for (mut pair, flags) in pairs(client(SocketType::Req), server(SocketType::Rep)) {
        for parts in &all {
            pair.send_a(message(parts));
            pair.send_b(message(parts));
        }
        run(&mut pair, flags);
        assert!(data(&pair.b.events()) == all, "{flags}");
        assert!(data(&pair.a.events()) == all, "{flags}");
    }
}

#[test]
fn subscriptions_and_heartbeats_are_recognised_by_their_content() {
    let mut sub = client(SocketType::Sub);
    sub.heartbeat_ivl = Some(Duration::from_secs(1));
    for (mut pair, flags) in pairs(sub, server(SocketType::Pub)) {
        let topic = Frame::with_kind(FrameKind::Subscribe, b"topic");
        let long = Frame::with_kind(FrameKind::Cancel, &[b'x'; 100_000]);
        pair.send_a([topic.clone(), long.clone()].into_iter());
        for _ in 0..5 {
            run(&mut pair, flags);
            pair.advance(Duration::from_secs(1));
        }
        assert_eq!(frames(&pair.b.events()), [topic, long], "{flags}");
        assert!(pair.a.engine.is_ready() && pair.b.engine.is_ready());
    }
}

#[test]
fn limits_hold_whatever_is_outside() {
    let mut small = server(SocketType::Pull);
    small.max_msg_size = Some(100);
    small.max_frames = 3;
    let too_large = [vec![vec![1; 101]], vec![vec![1; 60]; 2], vec![vec![1]; 4]];
    for parts in &too_large {
        for (mut pair, flags) in pairs(client(SocketType::Push), small.clone()) {
            pair.send_a(message(&[vec![1; 100]]));
            run(&mut pair, flags);
            assert_eq!(frames(&pair.b.events()).len(), 1);
            pair.send_a(message(parts));
            run(&mut pair, flags);
            let events = pair.b.events();
            assert!(matches!(events.last(), Some(Event::Closed(_))), "{flags}");
        }
    }
    // The header alone is sufficient, once it exceeds the limit of a command.
    for flags in [MORE, COMMAND, MORE | COMMAND] {
        let mut pair = Pair::ready(client(SocketType::Push), small.clone(), Cut::Whole);
        let header = [&[0x02 | flags][..], &100_000u64.to_be_bytes()].concat();
        pair.b.feed(&header, pair.now);
        let [Event::Closed(reason)] = &pair.b.events()[..] else {
            panic!("{flags}");
        };
        assert!(matches!(reason, CloseReason::MessageTooBig { .. }));
    }
}
