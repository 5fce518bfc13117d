//! udp: RADIO and DISH by datagrams, and DGRAM.

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use common::{Monitor, SocketExt, Watchdog, inproc_name, socket, text, until};
use zeroxide::{Context, DropReason, ErrorKind, EventKind, Message, Socket, SocketType, Wait, ids};

use SocketType::{Dgram, Dish, Pub, Radio, Sub};

/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn dish(context: &Context, endpoint: &str, groups: &[&str]) -> (Socket, String) {
    let dish = socket(context, Dish);
    let bound = dish.bind(endpoint).unwrap();
    for group in groups {
        dish.join(group).unwrap();
    }
    (dish, bound)
}

fn radio(context: &Context, endpoint: &str) -> Socket {
    let radio = socket(context, Radio);
    radio.connect(endpoint).unwrap();
    radio
}

fn cast(radio: &Socket, group: &str, body: &[u8]) {
    let message = Message::from(body.to_vec()).with_group(group);
    radio.send(message, Wait::Forever).unwrap();
}

fn hear(dish: &Socket) -> (String, Vec<u8>) {
    let message = dish.recv(Wait::Forever).unwrap();
    let group = String::from_utf8(message.group().unwrap().to_vec()).unwrap();
    (group, message.head().to_vec())
}

fn address(endpoint: &str) -> SocketAddr {
    endpoint.strip_prefix("udp://").unwrap().parse().unwrap()
}

/// A socket without the library. Its datagrams have left the kernel's queue when the call returns.
fn plain() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

#[test]
fn groups_are_chosen_by_the_receiver() {
    let _watchdog = Watchdog::new("groups_are_chosen_by_the_receiver");
    let context = Context::new();
    let (dish, endpoint) = dish(&context, "udp://127.0.0.1:*", &["a", ""]);
    let radio = radio(&context, &endpoint);
    for body in [&b""[..], b"x", &[7; 70], &[8; 8192 - 2]] {
        cast(&radio, "ab", b"other group");
        cast(&radio, "a", body);
        assert_eq!(hear(&dish), ("a".to_owned(), body.to_vec()));
    }
    cast(&radio, "", b"no name");
    assert_eq!(hear(&dish), (String::new(), b"no name".to_vec()));
    dish.leave("a").unwrap();
    dish.join("ab").unwrap();
    cast(&radio, "a", b"left");
    cast(&radio, "ab", b"joined");
    assert_eq!(hear(&dish), ("ab".to_owned(), b"joined".to_vec()));
    assert_eq!(dish.dropped(DropReason::Filtered), 5);
    radio.flush(Some(PATIENCE)).unwrap();
    let stats = radio.stats().unwrap();
    assert_eq!((stats.sent, stats.queued_out), (11, 0));
    assert!(stats.peers[0].connected);
    assert_eq!(dish.stats().unwrap().received, 6);
    drop((radio, dish));
    context.term().unwrap();
}

#[test]
fn a_group_that_was_joined_before_a_datagram_was_sent_receives_it() {
    let watchdog = Watchdog::new("a_group_that_was_joined_before_a_datagram_was_sent_receives_it");
    let context = Context::new();
    let (dish, endpoint) = dish(&context, "udp://127.0.0.1:*", &[]);
    let sender = plain();
    for round in 0..200 {
        // The I/O thread is busy while the group is joined.
        for _ in 0..100 {
            sender.send_to(b"\x05other", address(&endpoint)).unwrap();
        }
        let group = format!("{round:03}");
        dish.join(&group).unwrap();
        let datagram = format!("\x03{group}body");
        sender
            .send_to(datagram.as_bytes(), address(&endpoint))
            .unwrap();
        assert_eq!(hear(&dish), (group, b"body".to_vec()));
        watchdog.feed();
    }
}

#[test]
fn the_datagrams_are_those_of_libzmq() {
    let _watchdog = Watchdog::new("the_datagrams_are_those_of_libzmq");
    let context = Context::new();
    let receiver = plain();
    let endpoint = format!("udp://{}", receiver.local_addr().unwrap());
    let radio = radio(&context, &endpoint);
    cast(&radio, "group", b"body");
    cast(&radio, "", b"");
    cast(&radio, &"g".repeat(255), b"!");
    let mut buffer = [0; 300];
    let mut next = || {
        let count = receiver.recv(&mut buffer).unwrap();
        buffer[..count].to_vec()
    };
    assert_eq!(next(), b"\x05groupbody");
    assert_eq!(next(), b"\0");
    assert_eq!(next(), [&[255][..], &[b'g'; 255], b"!"].concat());
}

#[test]
fn the_call_refuses_a_message_that_is_too_long() {
    let _watchdog = Watchdog::new("the_call_refuses_a_message_that_is_too_long");
    let context = Context::new();
    let (dish, endpoint) = dish(&context, "udp://127.0.0.1:*", &["g"]);
    let radio = radio(&context, &endpoint);
    let long = Message::from(vec![1; 8191]).with_group("g");
    let failed = radio.send(long.clone(), Wait::Dont).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::MessageSize);
    assert!(
        failed.error.to_string().contains("at most 8192 bytes"),
        "{}",
        failed.error
    );
    assert_eq!(failed.message, long);
    cast(&radio, "g", &[1; 8190]);
    assert_eq!(hear(&dish).1.len(), 8190);
    radio.disconnect(&endpoint).unwrap();
    radio.send(long, Wait::Dont).unwrap();

    let dgram = socket(&context, Dgram);
    let endpoint = dgram.bind("udp://127.0.0.1:*").unwrap();
    let to = |size: usize| {
        let address = address(&endpoint).to_string();
        Message::from_frames([address.as_str().into(), vec![2; size].into()])
    };
    let failed = dgram.send(to(65_508), Wait::Dont).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::MessageSize);
    dgram.send(to(65_507), Wait::Dont).unwrap();
    let back = dgram.recv(Wait::Forever).unwrap();
    assert_eq!(back.iter().nth(1).unwrap().len(), 65_507);
}

#[test]
fn strange_datagrams_are_counted_by_reason() {
    let _watchdog = Watchdog::new("strange_datagrams_are_counted_by_reason");
    let context = Context::new();
    let (dish, endpoint) = dish(&context, "udp://127.0.0.1:*", &["g"]);
    dish.int(ids::MAXMSGSIZE, 100);
    dish.unbind(&endpoint).unwrap();
    let endpoint = dish.bind("udp://127.0.0.1:*").unwrap();
    let sender = plain();
    let send = |datagram: &[u8]| sender.send_to(datagram, address(&endpoint)).unwrap();
    send(b"");
    send(b"\x05g");
    send(b"\xff");
    send(b"\x05group that nobody joined");
    send(&[&b"\x01g"[..], &[0; 101]].concat());
    send(&[&b"\x01g"[..], &[0; 8191]].concat());
    send(&[&b"\x01g"[..], &[0; 100]].concat());
    assert_eq!(hear(&dish).1, [0; 100]);
    assert_eq!(dish.dropped(DropReason::Malformed), 3);
    assert_eq!(dish.dropped(DropReason::Filtered), 1);
    assert_eq!(dish.dropped(DropReason::TooLarge), 2);
}

#[test]
fn datagrams_that_the_kernel_dropped_are_counted() {
    let _watchdog = Watchdog::new("datagrams_that_the_kernel_dropped_are_counted");
    let context = Context::new();
    let dish = socket(&context, Dish);
    dish.int(ids::RCVHWM, 5);
    dish.int(ids::RCVBUF, 1);
    let endpoint = dish.bind("udp://127.0.0.1:*").unwrap();
    dish.join("g").unwrap();
    let sender = plain();
    let total = 500;
    for _ in 0..total {
        sender.send_to(b"\x01gx", address(&endpoint)).unwrap();
    }
    let mut received = 0;
    // The last one arrives when there is room again.
    until(|| {
        while let Ok(message) = dish.recv(Wait::Dont) {
            assert_eq!(text(&message), "x");
            received += 1;
        }
        received + dish.dropped(DropReason::Overrun) >= total
    });
    assert_eq!(received + dish.dropped(DropReason::Overrun), total);
    assert!(received > 0);
}

#[test]
fn a_receiver_that_is_gone_is_counted() {
    let _watchdog = Watchdog::new("a_receiver_that_is_gone_is_counted");
    let context = Context::new();
    let gone = plain().local_addr().unwrap();
    let radio = radio(&context, &format!("udp://{gone}"));
    cast(&radio, "g", b"x");
    until(|| radio.dropped(DropReason::PeerGone) == 1);
    for _ in 0..100 {
        cast(&radio, "g", b"x");
    }
    until(|| radio.dropped(DropReason::PeerGone) > 1);
}

#[test]
fn the_context_ends_after_the_datagrams_of_closed_sockets_have_left() {
    let _watchdog =
        Watchdog::new("the_context_ends_after_the_datagrams_of_closed_sockets_have_left");
    let receiver = plain();
    let here = receiver.local_addr().unwrap();
    let mut buffer = [0; 100];
    for _ in 0..50 {
        let context = Context::new();
        let radio = context.socket(Radio).unwrap();
        radio.connect(&format!("udp://{here}")).unwrap();
        let dgram = context.socket(Dgram).unwrap();
        dgram.bind("udp://127.0.0.1:*").unwrap();
        for _ in 0..50 {
            cast(&radio, "", b"last");
            let message = Message::from_frames([here.to_string().as_str().into(), "\0last".into()]);
            dgram.send(message, Wait::Forever).unwrap();
        }
        radio.close(None);
        dgram.close(None);
        context.term().unwrap();
        for _ in 0..100 {
            let count = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"\0last");
        }
    }
}

#[test]
fn an_address_is_free_when_unbind_and_close_return() {
    let watchdog = Watchdog::new("an_address_is_free_when_unbind_and_close_return");
    let context = Context::new();
    let (first, endpoint) = dish(&context, "udp://127.0.0.1:*", &["g"]);
    let second = socket(&context, Dgram);
    let taken = second.bind(&endpoint).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AddressInUse);
    for _ in 0..50 {
        first.unbind(&endpoint).unwrap();
        second.bind(&endpoint).unwrap();
        second.unbind(&endpoint).unwrap();
        first.bind(&endpoint).unwrap();
        watchdog.feed();
    }
    first.close(None);
    second.bind(&endpoint).unwrap();
    let other = socket(&context, Dish);
    second.close(None);
    other.bind(&endpoint).unwrap();
    other.join("g").unwrap();
    cast(&radio(&context, &endpoint), "g", b"still here");
    assert_eq!(hear(&other).1, b"still here");
}

#[test]
fn dgram_talks_to_any_program() {
    let _watchdog = Watchdog::new("dgram_talks_to_any_program");
    let context = Context::new();
    let dgram = socket(&context, Dgram);
    let endpoint = dgram.bind("udp://127.0.0.1:*").unwrap();
    let other = plain();
    let here = other.local_addr().unwrap().to_string();
    other.send_to(b"question", address(&endpoint)).unwrap();
    let question = dgram.recv(Wait::Forever).unwrap();
    assert_eq!(text(&question), format!("{here}/question"));
    dgram.send(question, Wait::Forever).unwrap();
    let mut buffer = [0; 20];
    let (count, from) = other.recv_from(&mut buffer).unwrap();
    assert_eq!(
        (&buffer[..count], from),
        (&b"question"[..], address(&endpoint))
    );
    for parts in [&["here"][..], &["127.0.0.1:1", "a", "b"], &["nowhere", "a"]] {
        let message = Message::from_frames(parts.iter().map(|part| (*part).into()));
        let failed = dgram.send(message, Wait::Dont).unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::Invalid);
    }
    let second = dgram.bind("udp://127.0.0.1:*").unwrap_err();
    assert_eq!(second.kind(), ErrorKind::AddressInUse);
    assert!(second.to_string().contains(&endpoint), "{second}");
}

#[test]
fn both_families() {
    let _watchdog = Watchdog::new("both_families");
    if UdpSocket::bind("[::1]:0").is_err() {
        return println!("skipped: there is no IPv6");
    }
    let context = Context::new();
    let off = socket(&context, Dish).bind("udp://[::1]:*").unwrap_err();
    assert_eq!(off.kind(), ErrorKind::NoDevice);
    let dish = socket(&context, Dish);
    dish.int(ids::IPV6, 1);
    let endpoint = dish.bind("udp://*:*").unwrap();
    dish.join("g").unwrap();
    let port = address(&endpoint).port();
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        let radio = socket(&context, Radio);
        radio.int(ids::IPV6, 1);
        radio.connect(&format!("udp://{host}:{port}")).unwrap();
        cast(&radio, "g", host.as_bytes());
        assert_eq!(hear(&dish).1, host.as_bytes());
    }
    let dgram = socket(&context, Dgram);
    dgram.int(ids::IPV6, 1);
    dgram.bind("udp://[::]:*").unwrap();
    let four = plain();
    let six = UdpSocket::bind("[::1]:0").unwrap();
    six.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 10];
    for other in [four, six] {
        let to = other.local_addr().unwrap().to_string();
        let message = Message::from_frames([to.as_str().into(), "hi".into()]);
        dgram.send(message, Wait::Forever).unwrap();
        let (_, from) = other.recv_from(&mut buffer).unwrap();
        other.send_to(b"ho", from).unwrap();
        assert_eq!(dgram.take(), format!("{to}/ho"));
    }
}

#[test]
fn a_multicast_group_has_many_members() {
    let _watchdog = Watchdog::new("a_multicast_group_has_many_members");
    let context = Context::new();
    let port = UdpSocket::bind("0.0.0.0:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for group in ["239.255.77.1", "[ff02::7:7]"] {
        let bind = format!("udp://lo;{group}:{port}");
        let members: Vec<_> = (0..3)
            .filter_map(|_| {
                let dish = socket(&context, Dish);
                dish.int(ids::IPV6, 1);
                let bound = dish.bind(&bind);
                assert_eq!(*bound.as_ref().unwrap_or(&bind), bind);
                bound.ok()?;
                dish.join("g").unwrap();
                Some(dish)
            })
            .collect();
        if members.is_empty() {
            println!("skipped: no multicast to {group} here");
            continue;
        }
        let other = socket(&context, Dish);
        other
            .bind(&format!("udp://127.0.0.1;239.255.77.2:{port}"))
            .unwrap();
        other.join("g").unwrap();
        let radio = socket(&context, Radio);
        radio.int(ids::IPV6, 1);
        radio.int(ids::MULTICAST_MAXTPDU, 1000);
        radio.int(ids::RECONNECT_IVL, -1);
        if radio.connect(&bind).is_err() {
            println!("skipped: no route to {group} here");
            continue;
        }
        cast(&radio, "g", b"to all");
        for member in &members {
            assert_eq!(hear(member).1, b"to all");
        }
        // A member of another group, at the same port.
        assert_eq!(other.nothing(), ErrorKind::Again);
        let long = Message::from(vec![0; 1000 - 28]).with_group("g");
        let failed = radio.send(long, Wait::Dont).unwrap_err();
        assert_eq!(failed.error.kind(), ErrorKind::MessageSize);
    }
}

#[test]
fn multicast_does_not_return_if_it_must_not() {
    let _watchdog = Watchdog::new("multicast_does_not_return_if_it_must_not");
    let context = Context::new();
    // The loopback interface returns everything.
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    if probe.connect("192.0.2.1:9").is_err() {
        return println!("skipped: there is no other interface");
    }
    let interface = probe.local_addr().unwrap().ip();
    let endpoint = format!("udp://{interface};239.255.77.3:*");
    let (dish, _) = dish(&context, &endpoint, &["g"]);
    let bound = dish.last_endpoint().unwrap();
    let silent = socket(&context, Radio);
    silent.int(ids::MULTICAST_LOOP, 0);
    silent.connect(&bound).unwrap();
    cast(&silent, "g", b"not here");
    silent.flush(Some(PATIENCE)).unwrap();
    cast(&radio(&context, &bound), "g", b"here");
    assert_eq!(hear(&dish).1, b"here");
}

#[test]
fn events_are_reported() {
    let _watchdog = Watchdog::new("events_are_reported");
    let context = Context::new();
    let dish = socket(&context, Dish);
    let dish_events = Monitor::of(&context, &dish);
    let endpoint = dish.bind("udp://127.0.0.1:*").unwrap();
    let listening = dish_events.next();
    assert_eq!(listening.kind, EventKind::Listening as u16);
    assert_eq!(listening.endpoint, endpoint);
    let radio = socket(&context, Radio);
    let radio_events = Monitor::of(&context, &radio);
    radio.connect(&endpoint).unwrap();
    assert_eq!(radio_events.next().kind, EventKind::Connected as u16);
    assert_eq!(radio.wait_connected(1, Wait::Forever).unwrap(), 1);
    assert_eq!(radio.wait_subscribed("any", 1, Wait::Forever).unwrap(), 1);
    radio.disconnect(&endpoint).unwrap();
    assert_eq!(radio_events.next().kind, EventKind::Disconnected as u16);
    assert_eq!(
        dish.bind(&endpoint).unwrap_err().kind(),
        ErrorKind::AddressInUse
    );
    assert_eq!(dish_events.next().kind, EventKind::BindFailed as u16);
    dish.unbind(&endpoint).unwrap();
    assert_eq!(dish_events.next().kind, EventKind::Closed as u16);
}

#[test]
fn combinations_without_sense_are_refused_with_a_sentence() {
    let context = Context::new();
    let refused = |kind: SocketType, bind: bool, endpoint: &str| {
        let socket = socket(&context, kind);
        let done = match bind {
            true => socket.bind(endpoint),
            false => socket.connect(endpoint),
        };
        done.unwrap_err()
    };
    for (kind, bind) in [
        (Radio, true),
        (Dish, false),
        (Dgram, false),
        (Pub, true),
        (Sub, false),
    ] {
        let error = refused(kind, bind, "udp://127.0.0.1:5555");
        assert_eq!(error.kind(), ErrorKind::IncompatibleProtocol);
        assert!(error.to_string().contains("RADIO connects"), "{error}");
    }
    for endpoint in ["tcp://127.0.0.1:*", "ipc://@dgram", &inproc_name()] {
        for bind in [true, false] {
            let error = refused(Dgram, bind, endpoint);
            assert_eq!(error.kind(), ErrorKind::IncompatibleProtocol);
            assert!(error.to_string().contains("needs udp"), "{error}");
        }
    }
    for (kind, endpoint, expected) in [
        (Dish, "udp://127.0.0.1", ErrorKind::Invalid),
        (Dish, "udp://lo;127.0.0.1:5555", ErrorKind::Invalid),
        (Dish, "udp://nope;239.0.0.1:5555", ErrorKind::NoDevice),
        (Dish, "udp://192.0.2.1;239.0.0.1:5555", ErrorKind::NoDevice),
        (Dish, "udp://192.0.2.1:5555", ErrorKind::AddressNotAvailable),
        (Dish, "udp://no.such.interface:5555", ErrorKind::NoDevice),
        (Radio, "udp://*:5555", ErrorKind::Invalid),
        (Radio, "udp://127.0.0.1:0", ErrorKind::Invalid),
        (Radio, "udp://[ff02::1]:5555", ErrorKind::NoDevice),
    ] {
        let error = refused(kind, kind == Dish, endpoint);
        assert_eq!(error.kind(), expected, "{endpoint}: {error}");
    }
}

#[test]
fn a_socket_that_expects_security_is_refused() {
    let context = Context::new();
    let (server, secret) = zeroxide::curve_keypair().unwrap();
    let (secured, client) = (socket(&context, Dish), socket(&context, Radio));
    secured
        .secure_server(&secret, &zeroxide::AllowList::new())
        .unwrap();
    client.secure_client(&server, None).unwrap();
    let errors = [
        secured.bind("udp://127.0.0.1:*").unwrap_err(),
        client.connect("udp://127.0.0.1:9").unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("has CURVE"), "{error}");
    }
}

#[test]
fn a_descriptor_cannot_be_taken_over() {
    let context = Context::new();
    let dish = socket(&context, Dish);
    dish.int(ids::USE_FD, 0);
    let error = dish.bind("udp://127.0.0.1:*").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("USE_FD"), "{error}");
}

#[test]
fn without_io_threads_there_is_no_udp() {
    let context = Context::new();
    context
        .set_option(zeroxide::context_ids::IO_THREADS, &zeroxide::Value::Int(0))
        .unwrap();
    let error = socket(&context, Dish)
        .bind("udp://127.0.0.1:*")
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoThread);
}

#[test]
fn a_name_is_looked_up_without_blocking_and_messages_wait_for_it() {
    let _watchdog = Watchdog::new("a_name_is_looked_up_without_blocking_and_messages_wait_for_it");
    let context = Context::new();
    let (dish, endpoint) = dish(&context, "udp://127.0.0.1:*", &["g"]);
    let radio = socket(&context, Radio);
    let events = Monitor::of(&context, &radio);
    radio
        .connect(&endpoint.replace("127.0.0.1", "localhost"))
        .unwrap();
    cast(&radio, "g", b"early");
    assert_eq!(hear(&dish), ("g".to_owned(), b"early".to_vec()));
    events.wait_for(EventKind::Connected);
    let peer = &radio.stats().unwrap().peers[0];
    assert!(peer.connected);
    radio.close(None);
}

#[test]
fn messages_for_a_name_that_does_not_exist_are_reported() {
    let _watchdog = Watchdog::new("messages_for_a_name_that_does_not_exist_are_reported");
    let context = Context::new();
    let radio = socket(&context, Radio);
    let failures = radio.event_stream(EventKind::Closed as u32).unwrap();
    // A name is not longer than 63 characters between dots, so no server is asked.
    let endpoint = format!("udp://{}.invalid:5555", "x".repeat(64));
    radio.int(ids::RECONNECT_IVL, 1);
    radio.connect(&endpoint).unwrap();
    for _ in 0..5 {
        cast(&radio, "g", b"body");
    }
    for _ in 0..2 {
        let failure = failures.next(Wait::Forever).unwrap().unwrap();
        let reason = failure.reason.unwrap();
        assert!(reason.contains("cannot resolve"), "{reason}");
    }
    assert!(!radio.stats().unwrap().peers[0].connected);
    let report = radio.close_within(Some(Duration::ZERO)).unwrap();
    let [left] = &report.peers[..] else {
        panic!("{report}");
    };
    assert_eq!((left.messages, &left.endpoint), (5, &endpoint));
    context.term().unwrap();
}
