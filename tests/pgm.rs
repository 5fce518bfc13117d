//! epgm and pgm: PUB and XPUB to SUB and XSUB by multicast, on the loopback interface.

mod common;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use common::{Monitor, SocketExt, Watchdog, socket, until};
use zeroxide::{Context, DropReason, ErrorKind, EventKind, Message, Socket, SocketType, Wait, ids};

use SocketType::{Dealer, Dish, Pair, Pub, Push, Radio, Router, Sub, Xpub, Xsub};

/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A group that no other test uses, and its port.
fn group() -> (Ipv4Addr, u16) {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    // The port is not one that the system gives to others.
    let port = 20_000 + NEXT.fetch_add(1, Ordering::Relaxed);
    (Ipv4Addr::new(239, 255, high, low), port)
}

fn endpoint(scheme: &str) -> String {
    let (group, port) = group();
    format!("{scheme}://lo;{group}:{port}")
}

/// A socket with a rate in kbit/s that is no limit for these tests.
fn of_rate(context: &Context, kind: SocketType) -> Socket {
    let socket = socket(context, kind);
    socket.int(ids::RATE, 1_000_000);
    socket
}

fn publisher(context: &Context, endpoint: &str) -> Socket {
    let publisher = of_rate(context, Pub);
    publisher.bind(endpoint).unwrap();
    publisher
}

fn subscriber(context: &Context, endpoint: &str, topics: &[&str]) -> Socket {
    let subscriber = of_rate(context, Sub);
    for topic in topics {
        subscriber.bytes(ids::SUBSCRIBE, topic.as_bytes());
    }
    subscriber.connect(endpoint).unwrap();
    subscriber
}

#[test]
fn every_subscriber_gets_what_it_subscribed_to() {
    let _watchdog = Watchdog::new("every_subscriber_gets_what_it_subscribed_to");
    let context = Context::new();
    let endpoint = endpoint("epgm");
    let all = subscriber(&context, &endpoint, &[""]);
    let some = subscriber(&context, &endpoint, &["b"]);
    let publisher = publisher(&context, &endpoint);
    let sizes = [0, 1, 69, 70, 252, 253, 254, 1450, 5000, 300_000];
    for size in sizes {
        for topic in ["a", "b"] {
            let message = Message::from_frames([topic.into(), vec![7; size].into(), "end".into()]);
            publisher.send(message, Wait::Forever).unwrap();
        }
    }
    for size in sizes {
        for topic in ["a", "b"] {
            let message = all.recv(Wait::Forever).unwrap();
            assert_eq!(message.get(1).unwrap().as_slice(), vec![7; size]);
            assert_eq!((&message.head()[..], message.len()), (topic.as_bytes(), 3));
        }
        let message = some.recv(Wait::Forever).unwrap();
        assert_eq!(
            (&message.head()[..], message.get(1).unwrap().len()),
            (&b"b"[..], size)
        );
    }
    assert_eq!(some.nothing(), ErrorKind::Again);
    assert_eq!(some.dropped(DropReason::Filtered), sizes.len() as u64);
    assert_eq!(all.dropped(DropReason::Gap), 0);
    publisher.flush(Some(PATIENCE)).unwrap();
    let stats = publisher.stats().unwrap();
    assert_eq!((stats.sent, stats.queued_out), (2 * sizes.len() as u64, 0));
    drop((publisher, all, some));
    context.term().unwrap();
}

#[test]
fn any_side_may_bind_and_there_may_be_several_senders() {
    let _watchdog = Watchdog::new("any_side_may_bind_and_there_may_be_several_senders");
    let context = Context::new();
    let endpoint = endpoint("epgm");
    let (xpub, xsub) = (of_rate(&context, Xpub), of_rate(&context, Xsub));
    xsub.bind(&endpoint).unwrap();
    let other = publisher(&context, &endpoint);
    xpub.connect(&endpoint).unwrap();
    // All messages are sent, so a proxy has to get all.
    assert_eq!(xpub.take(), "\u{1}");
    xpub.put("from XPUB");
    other.put("from PUB");
    let mut heard = [xsub.take(), xsub.take()];
    heard.sort();
    assert_eq!(heard, ["from PUB", "from XPUB"]);
}

#[test]
fn messages_are_sent_and_repaired_after_close() {
    let _watchdog = Watchdog::new("messages_are_sent_and_repaired_after_close");
    let context = Context::new();
    let endpoint = endpoint("epgm");
    let subscriber = subscriber(&context, &endpoint, &[""]);
    let publisher = publisher(&context, &endpoint);
    publisher.int(ids::LINGER, -1);
    for number in 0..500 {
        publisher.put(&format!("{number}"));
    }
    drop(publisher);
    for number in 0..500 {
        assert_eq!(subscriber.take(), format!("{number}"));
    }
}

/// A program between a sender and its receivers, which loses datagrams. It uses the port of the group on another group.
struct Path {
    inlet: UdpSocket,
    to: SocketAddr,
}

impl Path {
    /// A member of the group `from`.
    fn new(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Path {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.bind(&SocketAddr::from(from).into()).unwrap();
        socket
            .join_multicast_v4(&from.0, &Ipv4Addr::LOCALHOST)
            .unwrap();
        socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        let inlet: UdpSocket = socket.into();
        inlet
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        Path {
            inlet,
            to: to.into(),
        }
    }
}

#[test]
fn a_gap_is_counted_and_reported() {
    let _watchdog = Watchdog::new("a_gap_is_counted_and_reported");
    let context = Context::new();
    let (sent, heard) = (group(), group());
    let path = Path::new(sent, heard);
    let subscriber = socket(&context, Sub);
    subscriber.int(ids::RATE, 1_000_000);
    // A window of one packet: nothing can be repaired.
    subscriber.int(ids::RECOVERY_IVL, 0);
    subscriber.bytes(ids::SUBSCRIBE, b"");
    let events = Monitor::of(&context, &subscriber);
    subscriber
        .bind(&format!("epgm://lo;{}:{}", heard.0, heard.1))
        .unwrap();
    let publisher = publisher(&context, &format!("epgm://lo;{}:{}", sent.0, sent.1));
    let mut number = 0u32;
    let mut buffer = [0; 2000];
    let mut lost = 0;
    while lost < 3 || number < 20 {
        publisher
            .send(number.to_string().as_str(), Wait::Forever)
            .unwrap();
        publisher.flush(Some(PATIENCE)).unwrap();
        number += 1;
        while let Ok(size) = path.inlet.recv(&mut buffer) {
            // The group is not part of these packets, but the port is.
            buffer[2..4].copy_from_slice(&heard.1.to_be_bytes());
            let is_data = buffer[4] == 4;
            if is_data && (10..13).contains(&number) {
                lost += 1;
            } else {
                reseal(&mut buffer[..size]);
                path.inlet.send_to(&buffer[..size], path.to).unwrap();
            }
            if is_data {
                break;
            }
        }
    }
    let expected = (0..20).filter(|number| !(9..12).contains(number));
    for number in expected {
        assert_eq!(subscriber.take(), number.to_string());
    }
    let mut reported = 0;
    while reported < 3 {
        reported += events.wait_for(EventKind::Gap).value;
    }
    assert_eq!((reported, subscriber.dropped(DropReason::Gap)), (3, 3));
}

/// Computes the checksum of a packet again.
fn reseal(packet: &mut [u8]) {
    packet[6..8].fill(0);
    let mut sum = 0u32;
    for word in packet.chunks(2) {
        let low = word.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([word[0], low]));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    packet[6..8].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[test]
fn the_rate_is_a_limit() {
    let _watchdog = Watchdog::new("the_rate_is_a_limit");
    let context = Context::new();
    let endpoint = endpoint("epgm");
    let subscriber = subscriber(&context, &endpoint, &[""]);
    let publisher = socket(&context, Pub);
    publisher.int(ids::RATE, 1000);
    publisher.int(ids::SNDHWM, 10);
    publisher.bind(&endpoint).unwrap();
    // 125,000 bytes per second: these are sent one after the other, and the queue becomes full.
    for _ in 0..100 {
        publisher.send(vec![0; 10_000], Wait::Forever).unwrap();
    }
    let dropped = publisher.dropped(DropReason::HighWater);
    assert!(dropped > 50, "{dropped}");
    for _ in 0..5 {
        assert_eq!(subscriber.recv(Wait::Forever).unwrap().size(), 10_000);
    }
}

#[test]
fn a_receiver_at_its_mark_reads_no_more() {
    let _watchdog = Watchdog::new("a_receiver_at_its_mark_reads_no_more");
    let context = Context::new();
    let endpoint = endpoint("epgm");
    let subscriber = of_rate(&context, Sub);
    subscriber.int(ids::RCVHWM, 10);
    subscriber.bytes(ids::SUBSCRIBE, b"");
    subscriber.bind(&endpoint).unwrap();
    let publisher = publisher(&context, &endpoint);
    for number in 0..200 {
        publisher.put(&format!("{number}"));
    }
    until(|| subscriber.stats().unwrap().queued_in >= 10);
    for number in 0..200 {
        assert_eq!(subscriber.take(), format!("{number}"));
    }
}

#[test]
fn bytes_that_are_no_packets_are_counted() {
    let _watchdog = Watchdog::new("bytes_that_are_no_packets_are_counted");
    let context = Context::new();
    let (group, port) = group();
    let endpoint = format!("epgm://lo;{group}:{port}");
    let subscriber = subscriber(&context, &endpoint, &[""]);
    let stranger = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    stranger.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    let to = SocketAddr::from((group, port)).into();
    for bytes in [&b"no packet"[..], &[0; 40], &[7; 9000], &[4; 20_000]] {
        stranger.send_to(bytes, &to).unwrap();
    }
    until(|| {
        let dropped = subscriber.stats().unwrap().dropped;
        (
            dropped.dropped(DropReason::Malformed),
            dropped.dropped(DropReason::TooLarge),
        ) == (3, 1)
    });
    let publisher = publisher(&context, &endpoint);
    publisher.put("still here");
    assert_eq!(subscriber.take(), "still here");
}

#[test]
fn events_are_reported() {
    let _watchdog = Watchdog::new("events_are_reported");
    let context = Context::new();
    let endpoint = endpoint("epgm");
    let subscriber = of_rate(&context, Sub);
    let events = Monitor::of(&context, &subscriber);
    subscriber.bind(&endpoint).unwrap();
    assert_eq!(events.next().kind, EventKind::Listening as u16);
    let publisher = of_rate(&context, Pub);
    let publisher_events = Monitor::of(&context, &publisher);
    publisher.connect(&endpoint).unwrap();
    assert_eq!(publisher_events.next().kind, EventKind::Connected as u16);
    assert_eq!(
        publisher.wait_subscribed("any", 1, Wait::Forever).unwrap(),
        1
    );
    assert_eq!(events.next().kind, EventKind::Accepted as u16);
    publisher.int(ids::LINGER, -1);
    publisher.disconnect(&endpoint).unwrap();
    assert_eq!(publisher_events.next().kind, EventKind::Disconnected as u16);
    assert_eq!(events.next().kind, EventKind::Disconnected as u16);
    subscriber.unbind(&endpoint).unwrap();
    assert_eq!(events.next().kind, EventKind::Closed as u16);
}

#[test]
fn combinations_without_sense_are_refused_with_a_sentence() {
    let context = Context::new();
    for scheme in ["epgm", "pgm"] {
        let endpoint = endpoint(scheme);
        for kind in [Dealer, Dish, Pair, Push, Radio, Router] {
            let socket = socket(&context, kind);
            for error in [
                socket.bind(&endpoint).unwrap_err(),
                socket.connect(&endpoint).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::IncompatibleProtocol);
                assert!(
                    error.to_string().contains("from PUB and XPUB to SUB"),
                    "{error}"
                );
            }
        }
        let publisher = socket(&context, Pub);
        let error = publisher
            .bind(&format!("{scheme}://lo;127.0.0.1:5555"))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error.to_string().contains("interface;group:port"),
            "{error}"
        );
        let error = publisher
            .connect(&format!("{scheme}://nope;239.0.0.1:5555"))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoDevice);
    }
}

#[test]
fn pgm_needs_a_privilege() {
    let _watchdog = Watchdog::new("pgm_needs_a_privilege");
    let context = Context::new();
    let endpoint = endpoint("pgm");
    let subscriber = of_rate(&context, Sub);
    subscriber.bytes(ids::SUBSCRIBE, b"");
    if let Err(error) = subscriber.bind(&endpoint) {
        assert_eq!(error.kind(), ErrorKind::Access);
        assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
        println!("the rest is skipped: no CAP_NET_RAW");
        return;
    }
    let publishers = [
        publisher(&context, &endpoint),
        publisher(&context, &endpoint),
    ];
    for publisher in &publishers {
        for number in 0..100 {
            publisher.put(&format!("{number}"));
        }
        for number in 0..100 {
            assert_eq!(subscriber.take(), format!("{number}"));
        }
    }
    let long = vec![8; 100_000];
    publishers[0].send(long.clone(), Wait::Forever).unwrap();
    assert_eq!(
        subscriber.recv(Wait::Forever).unwrap().head().as_slice(),
        long
    );
    assert_eq!(subscriber.dropped(DropReason::Malformed), 0);
}
