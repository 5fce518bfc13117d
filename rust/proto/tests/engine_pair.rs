//! Two engines, a simulated clock, and a wire that cuts bytes anywhere.

mod wire;

use std::time::{Duration, Instant};
use wire::curve::{client, server};
use wire::{Cut, Pair, config, data, frames, message};
use zeroxide_proto::run::Run;
use zeroxide_proto::{
    CloseReason, Engine, Event, Frame, FrameKind, Message, ProtocolError, SocketType,
};

const CUTS: [Cut; 4] = [Cut::Whole, Cut::Every(1), Cut::Every(7), Cut::Random(42)];
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn every_allowed_pair_shakes_hands_and_no_other() {
    for ours in SocketType::ALL {
        for theirs in SocketType::ALL {
            if [*ours, *theirs].contains(&SocketType::Stream) {
                continue;
            }
            let mut pair = Pair::new(config(*ours), config(*theirs), Cut::Every(5));
            pair.run();
            let (a, b) = (pair.a.events(), pair.b.events());
            if ours.compatible(*theirs) {
                let [Event::Ready(peer)] = &a[..] else {
                    panic!("{ours} {theirs}: {a:?}");
                };
                assert_eq!(peer.socket_type, Some(*theirs));
                assert_eq!(peer.version, (3, 1));
                assert_eq!(peer.mechanism, "NULL");
                assert!(matches!(&b[..], [Event::Ready(_)]), "{b:?}");
            } else {
                for events in [a, b] {
                    assert!(
                        matches!(
                            &events[..],
                            [Event::Closed(
                                CloseReason::Protocol(ProtocolError::SocketType { .. })
                                    | CloseReason::Refused(_)
                            )]
                        ),
                        "{ours} {theirs}: {events:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn messages_arrive_complete_and_in_order_however_the_wire_cuts_them() {
    for cut in CUTS {
        let mut pair = Pair::ready(config(SocketType::Dealer), config(SocketType::Dealer), cut);
        let mut expected = Vec::new();
        for len in [0, 1, 69, 70, 254, 255, 256, 257, 8191, 8192, 70_000] {
            let parts = [vec![len as u8; len], Vec::new(), vec![0xff; len / 2]];
            expected.push(parts.to_vec());
            expected.push(vec![vec![3; len]]);
        }
        for parts in &expected {
            pair.send_a(message(parts));
        }
        pair.run();
        assert_eq!(data(&pair.b.events()), expected, "{cut:?}");
        assert_eq!(pair.a.engine.messages_transmitted(), expected.len() as u64);
        assert!(!pair.a.engine.has_transmit());
    }
}

#[test]
fn a_run_arrives_as_its_messages_at_every_kind_of_peer() {
    for cut in CUTS {
        for (ours, theirs) in [
            (config(SocketType::Pub), config(SocketType::Sub)),
            (server(SocketType::Pub), client(SocketType::Sub)),
        ] {
            let mut pair = Pair::ready(ours, theirs, cut);
            let mut expected = Vec::new();
            // One that is copied into the batch, and one that is sent from where it is.
            for count in [3, 300] {
                let mut run = Run::default();
                for n in 0..count {
                    let parts = vec![vec![n as u8; 70], Vec::new(), vec![7; n]];
                    run.push(&Message::from_frames(message(&parts)));
                    expected.push(parts);
                }
                pair.send_a([Frame::from("between")].into_iter());
                pair.send_a([run.take()].into_iter());
                expected.insert(expected.len() - count, vec![b"between".to_vec()]);
            }
            let mut arrived = Vec::new();
            while pair.step() {
                arrived.extend(pair.b.events());
                // Not one of them counts before it has left.
                let sent = pair.a.engine.messages_transmitted() as usize;
                assert!(sent >= data(&arrived).len() && sent <= expected.len());
            }
            arrived.extend(pair.b.events());
            assert_eq!(data(&arrived), expected);
            assert_eq!(pair.a.engine.messages_transmitted(), 305);
        }
    }
}

#[test]
fn no_message_is_sent_before_the_peer_is_ready() {
    let mut pair = Pair::new(
        config(SocketType::Push),
        config(SocketType::Pull),
        Cut::Whole,
    );
    while !pair.a.engine.is_ready() {
        assert!(!pair.a.engine.can_send());
        pair.a.engine.send(Frame::from("too early"));
        assert!(pair.step());
    }
    pair.run();
    assert_eq!(data(&pair.b.events()), Vec::<Vec<Vec<u8>>>::new());
    assert_eq!(pair.a.engine.messages_transmitted(), 0);
}

#[test]
fn routing_ids_come_from_req_dealer_and_router_only() {
    for (ours, theirs, told) in [
        (SocketType::Dealer, SocketType::Router, true),
        (SocketType::Req, SocketType::Rep, true),
        (SocketType::Router, SocketType::Router, true),
        (SocketType::Push, SocketType::Pull, false),
        (SocketType::Rep, SocketType::Dealer, false),
    ] {
        let mut a = config(ours);
        a.routing_id = "me".into();
        let pair = Pair::ready(a, config(theirs), Cut::Whole);
        let peer = pair.b.engine.peer().unwrap();
        assert_eq!(peer.routing_id, if told { "me" } else { "" });
        let sent = peer.properties.iter().any(|(name, _)| name == "Identity");
        assert_eq!(sent, told);
    }
}

#[test]
fn properties_of_the_application_travel() {
    let mut a = config(SocketType::Pair);
    a.resource = "shop".into();
    a.properties = vec![("X-Colour".to_owned(), "red".into())];
    let pair = Pair::ready(a, config(SocketType::Pair), Cut::Every(3));
    let peer = pair.b.engine.peer().unwrap();
    let names: Vec<_> = peer.properties.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["Socket-Type", "Resource", "X-Colour"]);
    assert_eq!(peer.properties[2].1, "red");
}

#[test]
fn subscriptions_reach_publishers_as_topics() {
    for cut in CUTS {
        let mut pair = Pair::ready(config(SocketType::Sub), config(SocketType::Xpub), cut);
        let mut expected = Vec::new();
        for len in [
            0, 1, 59, 60, 69, 70, 244, 245, 246, 250, 254, 255, 256, 100_000,
        ] {
            for kind in [FrameKind::Subscribe, FrameKind::Cancel] {
                expected.push(Frame::with_kind(kind, &vec![b't'; len]));
            }
        }
        for frame in &expected {
            pair.send_a([frame.clone()].into_iter());
        }
        pair.run();
        assert_eq!(frames(&pair.b.events()), expected);
        assert_eq!(pair.a.engine.messages_transmitted(), 0);
    }
}

#[test]
fn limits_hold_to_the_byte_for_a_frame_and_for_a_message() {
    for (parts, fits) in [
        (vec![999], true),
        (vec![1000], true),
        (vec![1001], false),
        (vec![500, 500], true),
        (vec![500, 501], false),
        (vec![0, 1000, 0], true),
        (vec![1000, 0, 1], false),
    ] {
        let mut b = config(SocketType::Pull);
        b.max_msg_size = Some(1000);
        let mut pair = Pair::ready(config(SocketType::Push), b, Cut::Whole);
        let parts: Vec<_> = parts.into_iter().map(|len| vec![1; len]).collect();
        for _ in 0..2 {
            pair.send_a(message(&parts));
        }
        pair.run();
        let events = pair.b.events();
        if fits {
            assert_eq!(data(&events), [parts.clone(), parts]);
        } else {
            let size = parts.iter().map(|part| part.len() as u64).sum();
            let reason = CloseReason::MessageTooBig { size, limit: 1000 };
            assert_eq!(events.last(), Some(&Event::Closed(reason)));
        }
    }
}

#[test]
fn a_message_has_a_bounded_number_of_frames() {
    for (count, fits) in [(8, true), (9, false)] {
        let mut b = config(SocketType::Pull);
        b.max_frames = 8;
        let mut pair = Pair::ready(config(SocketType::Push), b, Cut::Whole);
        pair.send_a(message(&vec![vec![1]; count]));
        pair.run();
        let events = pair.b.events();
        let closed = Event::Closed(ProtocolError::TooManyFrames(8).into());
        assert_eq!(events.last() == Some(&closed), !fits);
    }
}

#[test]
fn a_full_pipe_stops_decoding_and_reading() {
    let mut pair = Pair::ready(
        config(SocketType::Push),
        config(SocketType::Pull),
        Cut::Whole,
    );
    for index in 0..100u8 {
        pair.send_a(message(&[vec![index; 100]]));
    }
    pair.b.polls = false;
    pair.run();
    assert!(!pair.b.engine.wants_input());
    for index in 0..100 {
        let Some(Event::Frame(frame)) = pair.b.engine.poll_event() else {
            panic!("frame {index} is missing");
        };
        assert_eq!(frame[..], [index; 100]);
        assert!(!pair.b.engine.wants_input());
    }
    assert_eq!(pair.b.engine.poll_event(), None);
    assert!(pair.b.engine.wants_input());
}

#[test]
fn eof_comes_after_everything_received() {
    let mut pair = Pair::ready(
        config(SocketType::Push),
        config(SocketType::Pull),
        Cut::Whole,
    );
    pair.send_a(message(&[vec![1], vec![2]]));
    pair.b.polls = false;
    pair.run();
    let now = pair.now;
    pair.b.engine.handle_eof(now);
    let events = pair.b.drain();
    assert_eq!(data(&events[..2]), [[[1], [2]]]);
    assert_eq!(events[2..], [Event::Closed(CloseReason::PeerClosed)]);
    assert!(!pair.b.engine.wants_input());
    assert!(!pair.b.engine.can_send());
    assert_eq!(pair.b.engine.poll_timeout(), None);
}

#[test]
fn the_handshake_has_a_deadline() {
    let mut a = config(SocketType::Pair);
    a.handshake_ivl = Some(SECOND);
    let mut pair = Pair::new(a, config(SocketType::Pair), Cut::Whole);
    let start = pair.now;
    assert_eq!(pair.a.engine.poll_timeout(), Some(start + SECOND));
    pair.a.engine.handle_timeout(start + SECOND / 2);
    assert_eq!(pair.a.engine.poll_event(), None);
    pair.a.engine.handle_timeout(start + SECOND);
    assert_eq!(
        pair.a.engine.poll_event(),
        Some(Event::Closed(CloseReason::HandshakeTimeout))
    );
    assert_eq!(pair.a.engine.poll_event(), None);
    assert!(!pair.a.engine.has_transmit());
}

#[test]
fn heartbeats_keep_a_quiet_connection_and_silence_ends_it() {
    let mut a = config(SocketType::Pair);
    a.heartbeat_ivl = Some(SECOND);
    a.heartbeat_ttl = SECOND * 3;
    let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Every(1));
    for _ in 0..10 {
        pair.advance(SECOND);
        pair.run();
    }
    assert_eq!(pair.a.drain(), []);
    assert_eq!(pair.b.drain(), []);
    assert!(pair.a.engine.is_ready() && pair.b.engine.is_ready());

    pair.connected = false;
    pair.advance(SECOND);
    pair.advance(SECOND);
    let silence = CloseReason::HeartbeatTimeout;
    assert_eq!(pair.a.drain(), [Event::Closed(silence.clone())]);
    assert_eq!(pair.b.drain(), []);
    pair.advance(SECOND);
    assert_eq!(pair.b.drain(), [Event::Closed(silence)]);
}

#[test]
fn a_transport_with_pings_sends_the_heartbeats() {
    let mut a = config(SocketType::Pair);
    a.heartbeat_ivl = Some(SECOND);
    a.carrier_pings = true;
    let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
    for _ in 0..10 {
        pair.advance(SECOND);
        assert!(pair.a.engine.take_ping() && !pair.a.engine.take_ping());
        assert!(!pair.a.engine.has_transmit(), "no PING of ZMTP");
        pair.a.engine.handle_sign_of_life(pair.now);
    }
    assert!(pair.a.engine.is_ready());
    pair.advance(SECOND);
    pair.advance(SECOND);
    let silence = CloseReason::HeartbeatTimeout;
    assert_eq!(pair.a.drain(), [Event::Closed(silence)]);
}

#[test]
fn heartbeats_wait_for_the_end_of_a_message() {
    let mut a = config(SocketType::Pair);
    a.heartbeat_ivl = Some(SECOND);
    let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
    let mut part = Frame::from("first");
    part.set_more(true);
    pair.a.engine.send(part);
    pair.run();
    pair.advance(SECOND);
    assert!(!pair.a.engine.has_transmit(), "no PING inside a message");
    pair.a.engine.send(Frame::from("last"));
    pair.run();
    assert_eq!(
        data(&pair.b.events()),
        [[b"first".to_vec(), b"last".to_vec()]]
    );
    assert!(pair.a.engine.is_ready());
}

#[test]
fn an_unfinished_message_is_no_silence_of_the_peer() {
    let mut a = config(SocketType::Pair);
    a.heartbeat_ivl = Some(SECOND);
    let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
    let mut part = Frame::from("first");
    part.set_more(true);
    pair.a.engine.send(part);
    pair.run();
    for _ in 0..3 {
        pair.advance(SECOND);
    }
    assert!(pair.a.engine.is_ready());
    // From now on there is an answer to wait for.
    pair.connected = false;
    pair.a.engine.send(Frame::from("last"));
    for _ in 0..3 {
        pair.advance(SECOND);
    }
    assert!(!pair.a.engine.is_ready());
}

/// Sends some bytes of what an engine has to send.
fn trickle(engine: &mut Engine, count: usize, now: Instant) {
    let mut slices = Vec::new();
    let sent = engine.poll_transmit(&mut slices, count).min(count);
    engine.transmitted(sent, now);
}

#[test]
fn a_peer_that_reads_slowly_has_to_answer_once_the_ping_was_sent() {
    for carrier_pings in [false, true] {
        for size in [100, 1 << 20] {
            let mut a = config(SocketType::Pair);
            a.heartbeat_ivl = Some(SECOND);
            a.carrier_pings = carrier_pings;
            let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
            let engine = &mut pair.a.engine;
            engine.send(Frame::from(vec![0; size]));
            let mut now = pair.now;
            let pieces = engine.backlog() / 20;
            for _ in 0..20 {
                now += SECOND / 2;
                if carrier_pings {
                    engine.note_carrier_ping(true, now);
                }
                engine.handle_timeout(now);
                assert!(engine.is_ready(), "it reads {size} bytes");
                trickle(engine, pieces, now);
            }
            // The rest, with the PING.
            while engine.has_transmit() {
                trickle(engine, usize::MAX, now);
            }
            for _ in 0..2 {
                now += SECOND;
                if carrier_pings {
                    engine.note_carrier_ping(false, now);
                }
                engine.handle_timeout(now);
            }
            assert!(!engine.is_ready(), "it did not answer");
        }
    }
}

#[test]
fn later_pings_give_a_silent_peer_no_more_time() {
    for carrier_pings in [false, true] {
        let mut a = config(SocketType::Pair);
        a.heartbeat_ivl = Some(SECOND);
        a.heartbeat_timeout = Some(4 * SECOND);
        a.carrier_pings = carrier_pings;
        let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
        let engine = &mut pair.a.engine;
        let mut now = pair.now;
        for second in 1..=5 {
            now += SECOND;
            if carrier_pings {
                engine.note_carrier_ping(false, now);
            }
            engine.handle_timeout(now);
            assert_eq!(engine.is_ready(), second < 5, "{second}");
            // Messages and PINGs are sent all the time.
            engine.send(Frame::from("more"));
            while engine.has_transmit() {
                trickle(engine, usize::MAX, now);
            }
        }
    }
}

#[test]
fn a_peer_that_reads_slowly_and_never_answers_is_given_up() {
    let mut a = config(SocketType::Pair);
    a.heartbeat_ivl = Some(SECOND);
    a.heartbeat_timeout = Some(3 * SECOND);
    let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
    let engine = &mut pair.a.engine;
    let mut now = pair.now;
    let mut seconds = 0;
    engine.send(Frame::from(vec![0; 100]));
    while engine.is_ready() {
        // The next PING is due long before the one before it has left.
        now += SECOND;
        engine.handle_timeout(now);
        engine.send(Frame::from(vec![0; 28]));
        trickle(engine, 30, now);
        seconds += 1;
        assert!(seconds < 20);
    }
    assert!(seconds > 5, "the first PING had not left");
}

#[test]
fn a_peer_that_reads_nothing_is_silent() {
    let mut a = config(SocketType::Pair);
    a.heartbeat_ivl = Some(SECOND);
    let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
    let engine = &mut pair.a.engine;
    engine.send(Frame::from(vec![0; 1 << 20]));
    let now = pair.now;
    engine.handle_timeout(now + SECOND);
    engine.handle_timeout(now + 2 * SECOND);
    assert!(!engine.is_ready());
}

#[test]
fn a_stalled_application_is_not_a_silent_peer() {
    let mut a = config(SocketType::Pair);
    a.heartbeat_ivl = Some(SECOND);
    let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
    pair.send_b(message(&[vec![1]]));
    pair.a.polls = false;
    pair.run();
    pair.connected = false;
    for _ in 0..10 {
        pair.advance(SECOND);
    }
    assert!(pair.a.engine.is_ready());
    pair.a.polls = true;
    assert_eq!(data(&pair.a.drain()), [[[1]]]);
    pair.advance(SECOND);
    pair.advance(SECOND);
    assert!(!pair.a.engine.is_ready());
}

#[test]
fn a_peer_that_falls_silent_within_a_message_is_given_up() {
    for (bytes, ends) in [
        // A header with half a frame, a frame that announces another one, and complete messages.
        (&b"\x00\x05half"[..], true),
        (b"\x02\0\0", true),
        (b"\x01\x01x", true),
        (b"\x00\x05whole", false),
        (b"\x01\x01x\x00\x01y", false),
    ] {
        let mut a = config(SocketType::Pair);
        a.stall_ivl = Some(SECOND);
        let mut pair = Pair::ready(a, config(SocketType::Pair), Cut::Whole);
        pair.connected = false;
        pair.a.engine.input().extend_from_slice(bytes);
        pair.a.engine.handle_input(pair.now);
        let _ = pair.a.drain();
        pair.advance(SECOND);
        assert!(pair.a.engine.is_ready(), "too early");
        pair.advance(SECOND);
        assert_eq!(pair.a.engine.is_ready(), !ends, "{bytes:?}");
        if ends {
            assert_eq!(pair.a.drain(), [Event::Closed(CloseReason::Stalled)]);
        }
    }
}

#[test]
fn a_backlog_stops_sending_until_it_is_sent() {
    let mut pair = Pair::ready(
        config(SocketType::Push),
        config(SocketType::Pull),
        Cut::Whole,
    );
    let mut sent = 0;
    while pair.a.engine.can_send() {
        pair.a.engine.send(Frame::from(vec![7; 1000]));
        sent += 1;
    }
    assert_eq!(sent, 65536usize.div_ceil(1009));
    assert_eq!(pair.a.engine.messages_transmitted(), 0);
    pair.run();
    assert!(pair.a.engine.can_send());
    assert_eq!(data(&pair.b.events()).len(), sent);
    assert_eq!(pair.a.engine.messages_transmitted(), sent as u64);
}

#[test]
fn transmitted_messages_are_counted_by_their_last_byte() {
    let mut pair = Pair::ready(
        config(SocketType::Push),
        config(SocketType::Pull),
        Cut::Whole,
    );
    let now = pair.now;
    let engine = &mut pair.a.engine;
    for frame in message(&[vec![1; 10], vec![2; 20_000]]) {
        engine.send(frame);
    }
    engine.send(Frame::from("x"));
    // 12 bytes, then 9 + 20,000, then 3.
    for (count, done) in [(12, 0), (9, 0), (19_999, 0), (1, 1), (2, 1), (1, 2)] {
        engine.transmitted(count, now);
        assert_eq!(engine.messages_transmitted(), done);
    }
    assert!(!engine.has_transmit());
}

#[test]
fn large_bodies_are_slices_of_one_read() {
    let mut pair = Pair::ready(
        config(SocketType::Push),
        config(SocketType::Pull),
        Cut::Whole,
    );
    for _ in 0..8 {
        pair.send_a(message(&[vec![1; 1000]]));
    }
    pair.run();
    let frames = frames(&pair.b.events());
    assert_eq!(frames.len(), 8);
    for pair in frames.windows(2) {
        let distance = pair[1].as_ptr() as usize - pair[0].as_ptr() as usize;
        assert_eq!(distance, 1009);
    }
}

#[test]
fn large_bodies_are_sent_from_where_they_are() {
    let mut pair = Pair::ready(
        config(SocketType::Push),
        config(SocketType::Pull),
        Cut::Whole,
    );
    let body = bytes::Bytes::from(vec![1; 100_000]);
    pair.a.engine.send(Frame::from("small"));
    pair.a.engine.send(Frame::from_bytes(body.clone()));
    pair.a.engine.send(Frame::from("small"));
    let mut slices = Vec::new();
    let count = pair.a.engine.poll_transmit(&mut slices, usize::MAX);
    assert_eq!(count, 7 + 9 + 100_000 + 7);
    assert_eq!(slices.len(), 3);
    assert_eq!(slices[1].as_ptr(), body.as_ptr());
    let mut part = Vec::new();
    assert_eq!(pair.a.engine.poll_transmit(&mut part, 1000), 1000);
    assert_eq!(part[1].len(), 1000 - 16);
}

#[test]
fn an_idle_connection_gives_its_buffers_back() {
    let mut pair = Pair::ready(
        config(SocketType::Push),
        config(SocketType::Pull),
        Cut::Every(50_000),
    );
    for _ in 0..5 {
        for _ in 0..100 {
            pair.send_a(message(&[vec![7; 5000]]));
        }
        pair.run();
    }
    assert_eq!(data(&pair.b.events()).len(), 500);
    assert!(pair.b.engine.input().capacity() > 30_000);
    for _ in 0..3 {
        let due = [pair.a.engine.poll_timeout(), pair.b.engine.poll_timeout()];
        if let Some(at) = due.into_iter().flatten().min() {
            pair.advance(at - pair.now);
        }
    }
    assert_eq!(pair.a.engine.poll_timeout(), None);
    assert_eq!(pair.b.engine.poll_timeout(), None);
    assert!(pair.b.engine.input().capacity() < 10_000);
    pair.send_a(message(&[vec![7; 5000]]));
    pair.run();
    assert_eq!(data(&pair.b.events()).len(), 1);
}

#[test]
fn raw_connections_carry_bytes() {
    let mut pair = Pair::new(
        config(SocketType::Stream),
        config(SocketType::Stream),
        Cut::Whole,
    );
    assert!(matches!(pair.a.engine.poll_event(), Some(Event::Ready(_))));
    assert!(matches!(pair.b.engine.poll_event(), Some(Event::Ready(_))));
    assert!(!pair.a.engine.has_transmit());
    pair.send_a(message(&[b"GET /".to_vec()]));
    pair.run();
    pair.send_a(message(&[vec![b'x'; 20_000]]));
    pair.run();
    let got: Vec<u8> = data(&pair.b.events()).concat().concat();
    assert_eq!(got, [b"GET /".to_vec(), vec![b'x'; 20_000]].concat());
    let now = pair.now;
    pair.b.engine.handle_eof(now);
    assert_eq!(pair.b.drain(), [Event::Closed(CloseReason::PeerClosed)]);
}
