//! Queues that overflow to disk: order, the limit, restarts, closing, and errors, with whole sockets.

mod common;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use common::{IpcName, SocketExt, Watchdog, free_tcp_endpoint, inproc_name, socket, text, until};
use tempfile::TempDir;
use zeroxide::{Context, DropReason, ErrorKind, Message, Socket, SocketType, Value, Wait, ids};

use SocketType::{Dealer, Pub, Pull, Push, Req, Router, Sub, Xpub};

const LONG: Option<Duration> = Some(Duration::from_secs(60));

/// A socket that keeps two messages per peer in memory, and the others in `dir`.
fn spilling(context: &Context, socket_type: SocketType, dir: &Path, keep: bool) -> Socket {
    let socket = socket(context, socket_type);
    socket.int(ids::SNDHWM, 2);
    socket.bytes(ids::SPILL_DIR, dir.as_os_str().as_encoded_bytes());
    socket.int(ids::SPILL_KEEP, keep.into());
    socket
}

/// A receiver that keeps two messages.
fn receiver(context: &Context, socket_type: SocketType) -> Socket {
    let socket = socket(context, socket_type);
    socket.int(ids::RCVHWM, 2);
    socket.int(ids::RCVBUF, 4096);
    socket
}

fn spilled(socket: &Socket) -> u64 {
    socket.stats().unwrap().spilled
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Messages that are larger than what kernels keep.
fn large(number: usize) -> Message {
    let mut body = vec![b'.'; 20_000];
    let number = number.to_string();
    body[..number.len()].copy_from_slice(number.as_bytes());
    Message::from(body)
}

fn number_of(message: &Message) -> usize {
    let text = text(message);
    text[..text.find('.').unwrap()].parse().unwrap()
}

#[test]
fn a_slow_reader_gets_everything_in_order() {
    let _watchdog = Watchdog::new("a_slow_reader_gets_everything_in_order");
    let ipc = IpcName::new();
    for endpoint in [
        "tcp://127.0.0.1:*".to_owned(),
        ipc.endpoint(),
        inproc_name(),
    ] {
        for sender in [Push, Dealer] {
            let (context, dir) = (Context::new(), folder());
            let pull = receiver(&context, if sender == Push { Pull } else { Dealer });
            let endpoint = pull.bind(&endpoint).unwrap();
            let push = spilling(&context, sender, dir.path(), false);
            push.int(ids::SNDBUF, 4096);
            push.connect(&endpoint).unwrap();
            for number in 0..500 {
                push.send(large(number), Wait::Dont).unwrap();
            }
            assert!(spilled(&push) > 100, "{endpoint}");
            // New messages follow while the old ones are read.
            let reader = thread::spawn(move || {
                for number in 0..1000 {
                    assert_eq!(number_of(&pull.recv(Wait::Forever).unwrap()), number);
                }
            });
            for number in 500..1000 {
                push.send(large(number), Wait::Dont).unwrap();
            }
            reader.join().unwrap();
            let stats = push.stats().unwrap();
            assert_eq!((stats.spilled, stats.spilled_bytes), (0, 0));
            push.close(None);
            context.term().unwrap();
            let left = fs::read_dir(dir.path()).unwrap().count();
            assert_eq!(left, 1, "only the lock is left");
        }
    }
}

#[test]
fn each_subscriber_and_each_dealer_has_its_own_queue() {
    let _watchdog = Watchdog::new("each_subscriber_and_each_dealer_has_its_own_queue");
    for sender in [Pub, Xpub, Router] {
        let (context, dir) = (Context::new(), folder());
        let from = spilling(&context, sender, dir.path(), false);
        from.int(ids::SNDBUF, 4096);
        let endpoint = from.bind("tcp://127.0.0.1:*").unwrap();
        let peer_type = if sender == Router { Dealer } else { Sub };
        let names = ["fast", "slow"];
        let [fast, slow] = names.map(|name| {
            let peer = receiver(&context, peer_type);
            if sender == Router {
                peer.bytes(ids::ROUTING_ID, name.as_bytes());
            } else {
                peer.subscribe("").unwrap();
            }
            peer.connect(&endpoint).unwrap();
            peer
        });
        until(|| from.peers() == 2);
        if sender != Router {
            until(|| from.get_int(ids::TOPICS_COUNT).unwrap() == 1);
            // Both have subscribed when both have got something.
            for peer in [&fast, &slow] {
                until(|| {
                    from.put("ready");
                    peer.recv(Wait::Dont).is_ok()
                });
            }
            for peer in [&fast, &slow] {
                let end = Message::from("end");
                from.send(end.clone(), Wait::Dont).unwrap();
                while peer.recv(Wait::Forever).unwrap() != end {}
            }
        }
        let send = |number: usize| match sender {
            Router => names.iter().for_each(|name| {
                let mut message = large(number);
                message.push_front((*name).into());
                from.send(message, Wait::Dont).unwrap();
            }),
            _ => from.send(large(number), Wait::Dont).unwrap(),
        };
        let next = |peer: &Socket| loop {
            let message = peer.recv(Wait::Forever).unwrap();
            if message.size() > 100 {
                return number_of(&message);
            }
        };
        for number in 0..300 {
            send(number);
            assert_eq!(next(&fast), number);
        }
        let stats = from.stats().unwrap();
        let waiting = stats.peers.iter().filter(|peer| peer.spilled > 0).count();
        assert_eq!(waiting, 1, "{sender}: the slow one");
        assert!(stats.spilled > 100, "{stats:?}");
        for number in 0..300 {
            assert_eq!(next(&slow), number);
        }
        let stats = from.stats().unwrap();
        assert_eq!(stats.spilled, 0);
        assert_eq!(stats.dropped.dropped(DropReason::HighWater), 0);
    }
}

#[test]
fn messages_wait_on_disk_for_the_first_peer() {
    let _watchdog = Watchdog::new("messages_wait_on_disk_for_the_first_peer");
    let (context, dir) = (Context::new(), folder());
    let push = spilling(&context, Push, dir.path(), false);
    let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
    for number in 0..100 {
        push.put(&number.to_string());
    }
    assert_eq!(spilled(&push), 100);
    let pull = socket(&context, Pull);
    pull.connect(&endpoint).unwrap();
    for number in 0..100 {
        assert_eq!(pull.take(), number.to_string());
    }
}

#[test]
fn at_the_limit_the_rule_of_the_type_applies() {
    let _watchdog = Watchdog::new("at_the_limit_the_rule_of_the_type_applies");
    let (context, dir) = (Context::new(), folder());
    let push = spilling(&context, Push, dir.path(), false);
    push.int(ids::SPILL_BYTES, 10 * (16 + 8 + 2));
    let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
    for number in 10..20 {
        push.put(&number.to_string());
    }
    assert!(!push.events().unwrap().contains(zeroxide::Events::WRITABLE) || spilled(&push) == 10);
    let error = push.send("20", Wait::Dont).unwrap_err();
    assert_eq!(error.error.kind(), ErrorKind::Again);
    assert_eq!(spilled(&push), 10);
    assert!(!push.events().unwrap().contains(zeroxide::Events::WRITABLE));
    // A blocked sender goes on when there is room.
    let blocked = push.clone();
    let sender = thread::spawn(move || blocked.send("20", Wait::Forever).unwrap());
    let pull = socket(&context, Pull);
    pull.connect(&endpoint).unwrap();
    for number in 10..21 {
        assert_eq!(pull.take(), number.to_string());
    }
    sender.join().unwrap();
    assert_eq!(
        push.stats().unwrap().dropped.dropped(DropReason::HighWater),
        0
    );

    let dir = folder();
    let router = spilling(&context, Router, dir.path(), false);
    router.int(ids::SPILL_BYTES, 10 * (16 + 8 + 2));
    let name = inproc_name();
    router.bind(&name).unwrap();
    let dealer = receiver(&context, Dealer);
    dealer.bytes(ids::ROUTING_ID, b"d");
    dealer.connect(&name).unwrap();
    until(|| router.peers() == 1);
    for number in 10..40 {
        router.send(["d", &number.to_string()], Wait::Dont).unwrap();
    }
    assert_eq!(
        (spilled(&router), router.dropped(DropReason::HighWater)),
        (10, 16)
    );
    for number in 10..24 {
        assert_eq!(dealer.take(), number.to_string());
    }
    // The limit may be raised at any time.
    router.int(ids::SPILL_BYTES, 0);
    for number in 0..100 {
        router.send(["d", &number.to_string()], Wait::Dont).unwrap();
    }
    assert_eq!(router.dropped(DropReason::HighWater), 16);
}

#[test]
fn kept_messages_are_sent_by_the_next_socket() {
    let _watchdog = Watchdog::new("kept_messages_are_sent_by_the_next_socket");
    for sender in [Push, Dealer, Router, Pub] {
        let (context, dir) = (Context::new(), folder());
        let endpoint = free_tcp_endpoint();
        let from = spilling(&context, sender, dir.path(), true);
        let message = |number: usize| match sender {
            Router => Message::from_iter(["peer", &number.to_string()]),
            _ => Message::from(number.to_string()),
        };
        let peer_type = match sender {
            Push => Pull,
            Pub => Sub,
            _ => Dealer,
        };
        if sender == Pub {
            // It knows a subscriber by the endpoint that it connects to.
            let sub = receiver(&context, Sub);
            sub.subscribe("").unwrap();
            sub.bind(&endpoint).unwrap();
            from.connect(&endpoint).unwrap();
            until(|| from.get_int(ids::TOPICS_COUNT).unwrap() == 1);
            sub.close_within(LONG).unwrap();
            until(|| from.peers() == 0);
        } else {
            if sender == Router {
                from.bytes(ids::CONNECT_ROUTING_ID, b"peer");
            }
            from.connect(&endpoint).unwrap();
        }
        for number in 0..50 {
            from.send(message(number), Wait::Dont).unwrap();
        }
        let on_disk = spilled(&from) as usize;
        assert_eq!(on_disk, 48, "{sender}");
        // The two in memory are lost, because nothing was connected within the time.
        let report = from.close_within(Some(Duration::ZERO)).unwrap();
        assert_eq!(report.messages(), 50, "{report}");

        let from = spilling(&context, sender, dir.path(), true);
        if sender == Router {
            from.bytes(ids::CONNECT_ROUTING_ID, b"peer");
        }
        from.connect(&endpoint).unwrap();
        // The thread of the socket may have moved some of them to memory already.
        let stats = from.stats().unwrap();
        assert_eq!(
            (stats.spilled + stats.queued_out) as usize,
            on_disk,
            "{sender}"
        );
        from.send(message(50), Wait::Dont).unwrap();
        let peer = socket(&context, peer_type);
        if sender == Pub {
            peer.subscribe("").unwrap();
        }
        peer.bind(&endpoint).unwrap();
        let last = if sender == Pub { 50 } else { 51 };
        for number in 2..last {
            assert_eq!(peer.take(), number.to_string(), "{sender}");
        }
        assert_eq!(spilled(&from), 0);
    }
}

#[test]
fn an_incomplete_message_is_cut_off_and_counted() {
    let _watchdog = Watchdog::new("an_incomplete_message_is_cut_off_and_counted");
    for sender in [Push, Router] {
        let (context, dir) = (Context::new(), folder());
        let from = spilling(&context, sender, dir.path(), true);
        let name = inproc_name();
        from.bind(&name).unwrap();
        let message = |number: usize| match sender {
            Router => Message::from_iter(["peer", &number.to_string()]),
            _ => Message::from(number.to_string()),
        };
        let peer = |context: &Context| {
            let peer = receiver(context, if sender == Push { Pull } else { Dealer });
            if sender == Router {
                peer.bytes(ids::ROUTING_ID, b"peer");
            }
            peer.connect(&name).unwrap();
            peer
        };
        let first = peer(&context);
        until(|| from.peers() == 1);
        for number in 0..10 {
            from.send(message(number), Wait::Dont).unwrap();
        }
        assert_eq!(spilled(&from), 6);
        from.close_within(LONG).unwrap();
        drop(first);
        let path = dir.path().join("queue-0/segment-0000000000");
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length - 1).unwrap();
        // After a socket has closed, that is damage. A process that is killed leaves no such mark.
        let mark = dir
            .path()
            .join(format!("queue-0/synced-0000000000-{length}"));
        let refused = spilling(&context, sender, dir.path(), true);
        let error = refused.bind(&name).unwrap_err().to_string();
        assert!(error.contains("is damaged at byte"), "{error}");
        fs::remove_file(mark).unwrap();

        let from = spilling(&context, sender, dir.path(), true);
        from.bind(&name).unwrap();
        assert_eq!(from.dropped(DropReason::Disk), 1);
        assert_eq!(spilled(&from), 5);
        let peer = peer(&context);
        for number in 4..9 {
            assert_eq!(peer.take(), number.to_string());
        }
    }
}

#[test]
fn closing_delivers_what_is_on_disk() {
    let _watchdog = Watchdog::new("closing_delivers_what_is_on_disk");
    for waits in [false, true] {
        let (context, dir, elsewhere) = (Context::new(), folder(), Context::new());
        let push = spilling(&context, Push, dir.path(), false);
        let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
        for number in 0..200 {
            push.send(large(number), Wait::Dont).unwrap();
        }
        let pull = receiver(&elsewhere, Pull);
        let reader = thread::spawn(move || {
            pull.connect(&endpoint).unwrap();
            for number in 0..200 {
                assert_eq!(number_of(&pull.recv(Wait::Forever).unwrap()), number);
            }
        });
        let report = if waits {
            push.close_within(LONG).unwrap()
        } else {
            push.close(Some(None));
            assert!(push.is_closed());
            context.term_within(LONG).unwrap()
        };
        // Before the reader, which would wait for what is lost.
        assert!(report.is_empty(), "{report}");
        reader.join().unwrap();
        context.term().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn undeliverable_messages_are_reported_and_removed() {
    let _watchdog = Watchdog::new("undeliverable_messages_are_reported_and_removed");
    for linger in [None, Some(Duration::from_millis(50)), Some(Duration::ZERO)] {
        let (context, dir) = (Context::new(), folder());
        let push = spilling(&context, Push, dir.path(), false);
        push.connect(&free_tcp_endpoint()).unwrap();
        for number in 0..10 {
            push.put(&number.to_string());
        }
        let report = match linger {
            None => push.close_within(Some(Duration::from_millis(50))).unwrap(),
            linger => {
                push.close(Some(linger));
                context.term_within(LONG).unwrap()
            }
        };
        assert_eq!((report.peers.len(), report.messages()), (2, 10), "{report}");
        let path = dir.path().display().to_string();
        let on_disk = report.peers.iter().find(|peer| peer.endpoint == path);
        assert_eq!(on_disk.unwrap().messages, 8, "{report}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn flush_waits_for_the_disk() {
    let _watchdog = Watchdog::new("flush_waits_for_the_disk");
    let (context, dir) = (Context::new(), folder());
    let push = spilling(&context, Push, dir.path(), false);
    let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
    for number in 0..100 {
        push.put(&number.to_string());
    }
    let error = push.flush(Some(Duration::ZERO)).unwrap_err();
    let path = dir.path().display().to_string();
    assert_eq!(error.remaining, [(path, 100)]);
    let pull = socket(&context, Pull);
    pull.connect(&endpoint).unwrap();
    push.flush(LONG).unwrap();
    assert_eq!(spilled(&push), 0);
}

#[test]
fn errors_name_the_folder_and_the_endpoint() {
    let _watchdog = Watchdog::new("errors_name_the_folder_and_the_endpoint");
    let (context, dir) = (Context::new(), folder());
    let first = spilling(&context, Push, dir.path(), false);
    first.bind("tcp://127.0.0.1:*").unwrap();
    let endpoint = free_tcp_endpoint();
    let second = spilling(&context, Push, dir.path(), false);
    let error = second.connect(&endpoint).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddressInUse);
    for part in [&*endpoint, &dir.path().to_string_lossy(), "is in use by"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    // The folder is free again.
    first.close_within(LONG).unwrap();
    second.connect(&endpoint).unwrap();
    let change = second.set_option(ids::SPILL_KEEP, &Value::Int(1));
    assert_eq!(change.unwrap_err().kind(), ErrorKind::Invalid);

    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let third = spilling(&context, Router, &file, false);
    let error = third.bind(&inproc_name()).unwrap_err();
    assert!(
        error.to_string().contains(&*file.to_string_lossy()),
        "{error}"
    );

    let req = socket(&context, Req);
    let error = req
        .set_option(ids::SPILL_DIR, &Value::from("x"))
        .unwrap_err();
    let text = "SPILL_DIR is an option of PUB, DEALER, ROUTER, PUSH and XPUB, not of REQ";
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn many_threads_and_pullers_share_one_disk() {
    let _watchdog = Watchdog::new("many_threads_and_pullers_share_one_disk");
    let (context, dir) = (Context::new(), folder());
    let push = spilling(&context, Push, dir.path(), false);
    push.int(ids::SPILL_BYTES, 20_000);
    let name = inproc_name();
    let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
    push.bind(&name).unwrap();
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let push = push.clone();
            thread::spawn(move || {
                for number in 0..2000 {
                    push.send([sender.to_string(), number.to_string()], Wait::Forever)
                        .unwrap();
                }
            })
        })
        .collect();
    let pullers: Vec<_> = [endpoint, name]
        .map(|endpoint| {
            let pull = receiver(&context, Pull);
            pull.connect(&endpoint).unwrap();
            thread::spawn(move || {
                let mut last = [-1i64; 4];
                let mut count = 0;
                while let Ok(message) = pull.recv(Wait::Forever) {
                    if message.len() == 1 {
                        return count;
                    }
                    let number = |at: usize| -> i64 {
                        let frame = message.get(at).unwrap();
                        std::str::from_utf8(frame).unwrap().parse().unwrap()
                    };
                    let sender = number(0) as usize;
                    assert!(number(1) > last[sender]);
                    last[sender] = number(1);
                    count += 1;
                }
                count
            })
        })
        .into();
    for sender in senders {
        sender.join().unwrap();
    }
    push.flush(LONG).unwrap();
    // Until each has got one.
    while !pullers.iter().all(thread::JoinHandle::is_finished) {
        let _ = push.send(
            "end",
            Wait::Until(Instant::now() + Duration::from_millis(10)),
        );
    }
    let counts: Vec<_> = pullers.into_iter().map(|one| one.join().unwrap()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 8000, "{counts:?}");
}

#[test]
fn messages_on_disk_for_a_peer_that_leaves_are_counted_or_reported_like_those_in_memory() {
    let _watchdog = Watchdog::new(
        "messages_on_disk_for_a_peer_that_leaves_are_counted_or_reported_like_those_in_memory",
    );
    for (sender, is_closing) in [(Router, false), (Router, true), (Pub, false), (Pub, true)] {
        let (context, dir) = (Context::new(), folder());
        let from = spilling(&context, sender, dir.path(), false);
        from.int(ids::SNDBUF, 4096);
        let endpoint = from.bind("tcp://127.0.0.1:*").unwrap();
        let (peer, name): (_, &[u8]) = match sender {
            Router => (receiver(&context, Dealer), b"peer"),
            _ => (receiver(&context, Sub), b""),
        };
        if sender == Router {
            peer.bytes(ids::ROUTING_ID, name);
        } else {
            peer.subscribe("").unwrap();
        }
        peer.connect(&endpoint).unwrap();
        match sender {
            Router => until(|| from.peers() == 1),
            _ => until(|| from.get_int(ids::TOPICS_COUNT).unwrap() == 1),
        }
        for number in 0..300 {
            let mut message = large(number);
            if sender == Router {
                message.push_front("peer".into());
            }
            from.send(message, Wait::Dont).unwrap();
        }
        let on_disk = spilled(&from);
        assert!(on_disk > 100, "{sender}");
        let leave = || peer.close(Some(Some(Duration::ZERO)));
        let report = if is_closing {
            let closed = from.clone();
            let closing = thread::spawn(move || closed.close_within(LONG).unwrap());
            until(|| from.is_closed());
            leave();
            closing.join().unwrap()
        } else {
            leave();
            until(|| from.dropped(DropReason::PeerGone) > on_disk);
            assert_eq!(spilled(&from), 0);
            from.close_within(LONG).unwrap()
        };
        // A few reached the peer meanwhile.
        assert_eq!(report.messages() > 100, is_closing, "{sender}: {report}");
        assert_eq!(report.is_empty(), !is_closing, "{sender}: {report}");
        for peer in &report.peers {
            assert_eq!((&*peer.endpoint, &*peer.routing_id), (&*endpoint, name));
        }
        context.term().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_slow_subscriber_is_disconnected_when_its_disk_is_full() {
    let _watchdog = Watchdog::new("a_slow_subscriber_is_disconnected_when_its_disk_is_full");
    let limit = 1_000_000;
    for endpoint in [inproc_name(), "tcp://127.0.0.1:*".to_owned()] {
        let (context, dir) = (Context::new(), folder());
        let publisher = spilling(&context, Pub, dir.path(), false);
        publisher.int(ids::SNDBUF, 4096);
        publisher.int(ids::SPILL_BYTES, limit as i64);
        publisher.int(ids::SLOW_SUBSCRIBER, 2);
        let endpoint = publisher.bind(&endpoint).unwrap();
        let is_local = endpoint.starts_with("inproc");
        let slow = receiver(&context, Sub);
        slow.int(ids::RECONNECT_IVL, 1);
        slow.subscribe("").unwrap();
        slow.connect(&endpoint).unwrap();
        until(|| publisher.get_int(ids::TOPICS_COUNT).unwrap() == 1);
        let (mut sent, mut most) = (0, 0);
        while publisher.dropped(DropReason::TooSlow) == 0 {
            publisher.send(large(sent), Wait::Dont).unwrap();
            sent += 1;
            most = most.max(publisher.stats().unwrap().spilled_bytes);
        }
        assert!((limit - 21_000..=limit).contains(&most), "{most}");
        // The messages on disk and the one without room, and over tcp those in memory.
        let lost = publisher.dropped(DropReason::TooSlow);
        let on_disk = most / (20_000 + 24);
        if is_local {
            assert_eq!(lost, on_disk + 1);
            let error = slow.recv(Wait::Forever).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooSlow);
            let unread = slow.dropped(DropReason::TooSlow);
            assert_eq!(lost + unread, sent as u64, "each is counted once");
        } else {
            assert!(lost > on_disk, "{lost} of {on_disk}");
            // It comes back, and gets what is sent from then on.
            let next = Message::from("next");
            until(|| {
                publisher.send(next.clone(), Wait::Dont).unwrap();
                slow.recv(Wait::Dont).is_ok_and(|message| message == next)
            });
        }
        for reason in [DropReason::HighWater, DropReason::Disk] {
            assert_eq!(publisher.dropped(reason), 0, "{endpoint}");
        }
        assert_eq!(spilled(&publisher), 0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
