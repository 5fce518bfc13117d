//! A collector over real sockets: the rows that it accepts, keeps over crashes and restarts, and gives to readers.

mod peer;

use std::time::{Duration, Instant};

use peer::{
    LONG, Peer, append, batch, collector, config, crash_image, hello, number, syncing_late,
};
use zeroxide::{Context, Frame, Message, Socket, SocketType, Wait};
use zeroxide_pipeline::collector::{Collector, Framing};
use zeroxide_pipeline::wire::{Code, Reply, Request};

#[test]
fn acknowledged_rows_can_be_fetched() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    assert_eq!(peer.bounds(), (0, 0));
    assert_eq!(peer.hello("p", 1), None);
    assert_eq!(peer.append("p", 1, 0, &["a", "b"]), (1, Some(0)));
    assert_eq!(peer.append("p", 1, 2, &["c"]), (2, Some(2)));
    assert_eq!(peer.bounds(), (0, 3));
    let rows = peer.fetch(1..3, &[]);
    assert_eq!(rows, [(1, "b".to_owned()), (2, "c".to_owned())]);
    let (_, stored) = peer.fetch_some(0, 3, 1, &[]);
    assert_eq!(stored.len(), 1, "at least one frame, whatever the limit");
    assert_eq!(&*stored[0].origin.producer, "p");
    assert_eq!(peer.fetch_some(3, 10, 1 << 20, &[]).0, 3, "nothing yet");

    let Reply::Info {
        log_id,
        times: Some((first, last)),
        advertise,
        ..
    } = peer.ask(Request::Info)
    else {
        panic!("no times");
    };
    assert_eq!(log_id, collector.log_id());
    assert_eq!(advertise, "", "not configured");
    assert!(first > 1_600_000_000_000_000 && first <= last);
    let at = |peer: &mut Peer, timestamp| match peer.ask(Request::OffsetAt { timestamp }) {
        Reply::Offset { offset } => offset,
        reply => panic!("{reply:?}"),
    };
    assert_eq!(at(&mut peer, first), 0);
    assert_eq!(at(&mut peer, last + 1), 3);
    for (bytes, offset) in [(1, 1), (1 << 20, 3)] {
        let weighed = peer.ask(Request::Weigh { start: 0, bytes });
        assert_eq!(weighed, Reply::Offset { offset });
    }
    match peer.ask(Request::Fetch {
        start: 9,
        end: 10,
        max_bytes: 1,
        topics: Vec::new(),
        generation: 0,
    }) {
        Reply::OutOfRange {
            asked: 9,
            earliest: 0,
            durable: 3,
            ..
        } => {}
        reply => panic!("{reply:?}"),
    }
    collector.close().unwrap();
}

#[test]
fn producers_are_kept_in_order() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    assert_eq!(peer.refused(append("p", 1, 0, &["a"])).0, Code::HelloFirst);
    peer.hello("p", 1);
    assert_eq!(peer.refused(append("p", 1, 1, &["b"])), (Code::Gap, 0));
    peer.append("p", 1, 0, &["a", "b", "c"]);
    assert_eq!(
        peer.append("p", 1, 0, &["a", "b"]),
        (1, None),
        "there already"
    );
    assert_eq!(
        peer.append("p", 1, 2, &["c", "d"]),
        (3, Some(3)),
        "one of two is new"
    );
    assert_eq!(peer.refused(append("p", 1, 5, &["f"])), (Code::Gap, 4));
    assert_eq!(peer.refused(append("p", 1, 4, &[])).0, Code::Invalid);

    // A second run takes over, and the first one is notified.
    let mut other = Peer::of(&collector);
    assert_eq!(other.hello("p", 2), Some((1, 3)));
    assert_eq!(peer.refused(append("p", 1, 4, &["e"])), (Code::Fenced, 2));
    assert_eq!(peer.refused(hello("p", 1)), (Code::Fenced, 2));
    assert_eq!(other.append("p", 2, 4, &["e"]), (4, Some(4)));
    assert_eq!(peer.values(), ["a", "b", "c", "d", "e"]);
    let stats = peer.stats();
    let counted = ["gap", "fenced", "duplicates", "rows"].map(|name| number(&stats, name));
    assert_eq!(counted, [2, 2, 1, 5], "{stats}");
}

#[test]
fn a_run_that_was_welcomed_fences_the_older_one_for_every_later_process() {
    let (dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a"]);
    peer.hello("q", 1);
    for name in ["p", "q"] {
        peer.hello(name, 2);
    }
    let image = crash_image(dir.path());
    let after = Collector::start(config(image.path())).unwrap();
    let mut peer = Peer::of(&after);
    assert_eq!(peer.refused(hello("p", 1)), (Code::Fenced, 2));
    assert_eq!(peer.refused(hello("q", 1)), (Code::Fenced, 2));
    assert_eq!(peer.hello("p", 2), Some((1, 0)));
    assert_eq!(peer.hello("q", 2), None);
    assert_eq!(peer.append("q", 2, 0, &["b"]), (0, Some(1)));
    assert_eq!(peer.values(), ["a", "b"]);
}

#[test]
fn many_batches_are_on_their_way_at_once() {
    let (_dir, collector) = syncing_late(51_000);
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    let rows: Vec<String> = (0..1000).map(|row| row.to_string()).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let before = peer.stat("syncs");
    let mut sent = Vec::new();
    for first in 0..51 {
        sent.push(peer.send(append("p", 1, first * 1000, &rows)));
    }
    for (index, id) in sent.into_iter().enumerate() {
        let (answered, reply) = peer.recv();
        assert_eq!(answered, id);
        let first = index as u64 * 1000;
        assert!(
            matches!(reply, Reply::Ack { seq, offset, .. } if seq == first + 999 && offset == Some(first)),
            "{reply:?}"
        );
    }
    assert_eq!(peer.values().len(), 51_000);
    let syncs = peer.stat("syncs") - before;
    assert_eq!(syncs, 1, "all of them together");
}

#[test]
fn a_crash_loses_nothing_that_was_acknowledged() {
    let (dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 7);
    peer.append("p", 7, 0, &["a", "b"]);
    let image = crash_image(dir.path());
    peer.append("p", 7, 2, &["c"]);
    collector.close().unwrap();
    let (reply, _) = (peer.recv().1, ());
    assert!(
        matches!(
            reply,
            Reply::Status {
                code: Code::Closing,
                ..
            }
        ),
        "{reply:?}"
    );

    // After the crash.
    let after = Collector::start(config(image.path())).unwrap();
    assert_eq!(after.log_id(), collector.log_id());
    let mut peer = Peer::of(&after);
    assert_eq!(peer.refused(append("p", 7, 2, &["c"])).0, Code::HelloFirst);
    assert_eq!(peer.refused(hello("p", 6)), (Code::Fenced, 7));
    assert_eq!(peer.hello("p", 8), Some((7, 1)));
    assert_eq!(peer.append("p", 8, 1, &["b", "c"]), (2, Some(2)));
    assert_eq!(peer.values(), ["a", "b", "c"]);

    // After the orderly end.
    let again = Collector::start(config(dir.path())).unwrap();
    let mut peer = Peer::of(&again);
    assert_eq!(peer.hello("p", 8), Some((7, 2)));
    assert_eq!(peer.values(), ["a", "b", "c"]);
    let taken = Collector::start(config(dir.path()))
        .unwrap_err()
        .to_string();
    assert!(taken.contains("in use"), "{taken}");
}

#[test]
fn an_orderly_end_answers_requests_in_transit() {
    let (_dir, collector) = syncing_late(u64::MAX);
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    let id = peer.send(append("p", 1, 0, &["a"]));
    peer.await_stat_quietly("rows");
    collector.close().unwrap();
    let (answered, reply) = peer.recv();
    assert_eq!(answered, id);
    assert!(matches!(reply, Reply::Ack { seq: 0, .. }), "{reply:?}");
    assert!(matches!(
        peer.recv().1,
        Reply::Status {
            code: Code::Closing,
            ..
        }
    ));
    assert!(!collector.is_running());
    assert!(collector.stats(LONG).is_err());
    collector.close().unwrap();
}

#[test]
fn topics_are_filtered_where_the_rows_are() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["room/1:a", "hall:b", "c"]);
    peer.append("p", 1, 3, &["hall:d"]);
    peer.append("p", 1, 4, &["room/2:e", "room:f"]);
    let owned = |rows: &[(u64, &str)]| {
        rows.iter()
            .map(|(at, row)| (*at, row.to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(peer.fetch(0..6, &["room/"]), owned(&[(0, "a"), (4, "e")]));
    assert_eq!(
        peer.fetch(1..6, &["room", "hall"]),
        owned(&[(1, "b"), (3, "d"), (4, "e"), (5, "f")])
    );
    assert_eq!(peer.fetch(0..6, &["cellar"]), []);
    let (next, stored) = peer.fetch_some(3, 4, 1 << 20, &["room"]);
    assert_eq!((next, stored.len()), (4, 0), "looked at, and nothing found");
}

#[test]
fn groups_are_kept_and_shown() {
    let (dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a", "b"]);
    let commit = |group: &str, offset| Request::Commit {
        group: group.to_owned(),
        offset,
        generation: 0,
    };
    assert_eq!(peer.ask(commit("g", 2)), Reply::Committed);
    assert_eq!(peer.refused(commit("g", 3)), (Code::Invalid, 2));
    assert!(peer.stats().contains("\"groups\":{\"g\":2}"));
    collector.close().unwrap();
    let collector = Collector::start(config(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    assert!(peer.stats().contains("\"groups\":{\"g\":2}"));
    let drop = Request::DropGroup {
        group: "g".to_owned(),
    };
    let dropped = |existed| Reply::Dropped { existed };
    assert_eq!(peer.ask(drop.clone()), dropped(true));
    assert_eq!(peer.ask(drop), dropped(false));
    assert!(peer.stats().contains("\"groups\":{}"));
}

#[test]
fn an_older_copy_of_a_folder_that_has_grown_is_distinguished_from_the_log_that_was_read() {
    let (dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a", "b"]);
    let copy = crash_image(dir.path());
    peer.append("p", 1, 2, &["c", "d"]);
    let generations = |peer: &mut Peer| match peer.ask(Request::Info) {
        Reply::Info { generations, .. } => generations,
        reply => panic!("{reply:?}"),
    };
    let read = generations(&mut peer).before(4);
    assert_ne!(read, 0);

    let again = Collector::start(config(copy.path())).unwrap();
    assert_eq!(again.log_id(), collector.log_id());
    let mut peer = Peer::of(&again);
    peer.hello("q", 1);
    peer.append("q", 1, 0, &["C", "D", "E"]);
    let fetch = |start, generation| Request::Fetch {
        start,
        end: 9,
        max_bytes: 1 << 20,
        topics: Vec::new(),
        generation,
    };
    let reply = peer.ask(fetch(4, read));
    assert!(
        matches!(
            reply,
            Reply::OutOfRange {
                others: Some(2),
                ..
            }
        ),
        "{reply:?}"
    );
    let commit = |offset| Request::Commit {
        group: "g".to_owned(),
        offset,
        generation: read,
    };
    assert_eq!(peer.refused(commit(4)), (Code::OtherRows, 2));
    // Up to the copy it is the same log.
    assert_eq!(peer.ask(commit(2)), Reply::Committed);
    for (start, generation) in [(2, read), (4, 0), (5, generations(&mut peer).before(5))] {
        let reply = peer.ask(fetch(start, generation));
        assert!(matches!(reply, Reply::Fetched { .. }), "{reply:?}");
    }
}

#[test]
fn plain_peers_are_gathered() {
    let dir = tempfile::tempdir().unwrap();
    let context = Context::new();
    let publisher = context.socket(SocketType::Pub).unwrap();
    let address = publisher.bind("tcp://127.0.0.1:*").unwrap();
    let mut settings = config(dir.path());
    settings.plain.framing = Framing::TopicFirst;
    settings.plain.pull = vec!["tcp://127.0.0.1:*".to_owned()];
    settings.plain.dealer = vec!["tcp://127.0.0.1:*".to_owned()];
    settings.plain.subscribe = vec![(address, vec!["tick".to_owned()])];
    let collector = Collector::start(settings).unwrap();
    let [pull, subscribed, dealer] = collector.plain_endpoints() else {
        panic!("{:?}", collector.plain_endpoints());
    };
    assert!(subscribed.starts_with("tcp://127.0.0.1:"));
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(pull).unwrap();
    let mut peer = Peer::of(&collector);
    let parts = |parts: &[&str]| {
        Message::from_frames(parts.iter().map(|part| Frame::copy_from(part.as_bytes())))
    };
    push.send(parts(&["push/1", "one"]), Wait::Forever).unwrap();
    push.send(parts(&["two"]), Wait::Forever).unwrap();
    push.send(parts(&["a", "b", "three"]), Wait::Forever)
        .unwrap();
    peer.await_stat("plain_rows", |rows| rows == 3);
    let requester = context.socket(SocketType::Dealer).unwrap();
    requester.connect(dealer).unwrap();
    requester
        .send(parts(&["", "dealer", "four"]), Wait::Forever)
        .unwrap();
    peer.await_stat("plain_rows", |rows| rows == 4);
    publisher
        .wait_subscribed(b"tick", 1, Wait::Until(Instant::now() + LONG))
        .unwrap();
    publisher
        .send(parts(&["other", "unheard"]), Wait::Forever)
        .unwrap();
    publisher
        .send(parts(&["tick", "five"]), Wait::Forever)
        .unwrap();
    peer.await_stat("durable", |rows| rows == 5);
    assert_eq!(peer.values(), ["one", "two", "three", "four", "five"]);
    assert_eq!(peer.stat("plain_unframed"), 1);
    let (_, stored) = peer.fetch_some(0, 5, 1 << 20, &[]);
    let rows: Vec<(Option<&str>, Option<usize>)> = stored
        .iter()
        .flat_map(|stored| {
            (0..stored.rows()).map(|row| {
                (
                    stored.batch.topic(row),
                    stored.batch.frames(row).map(|frames| frames.len()),
                )
            })
        })
        .collect();
    let tick = (Some("tick"), None);
    assert_eq!(
        rows,
        [
            (Some("push/1"), None),
            (None, None),
            (None, Some(3)),
            (Some("dealer"), None),
            tick
        ]
    );
    assert!(stored.iter().all(|stored| !stored.origin.is_numbered()));

    // Rows sent before the end are in the log.
    for number in 0..100 {
        push.send(parts(&["last", &number.to_string()]), Wait::Forever)
            .unwrap();
    }
    push.flush(Some(LONG)).unwrap();
    peer.await_stat("plain_rows", |rows| rows == 105);
    collector.close().unwrap();
    for socket in [push, requester, publisher] {
        socket.close(Some(Some(Duration::ZERO)));
    }
    context.term().unwrap();
}

/// Ends a flood also if its test fails. Otherwise the collector might never end, and fill the disk.
struct CloseAtEnd(Socket);

impl Drop for CloseAtEnd {
    fn drop(&mut self) {
        self.0.close(Some(Some(Duration::ZERO)));
    }
}

#[test]
fn a_flood_of_plain_peers_leaves_time_for_requests_retention_and_the_end() {
    let (dir, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut settings = config(dir.path());
    settings.plain.pull = vec![format!("ipc://{}/pull", sockets.path().display())];
    settings.retain_every = Duration::from_millis(10);
    settings.log.segment_bytes = 1 << 20;
    settings.log.retention_bytes = Some(4 << 20);
    let collector = Collector::start(settings).unwrap();
    let context = Context::new();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(&collector.plain_endpoints()[0]).unwrap();
    let _end = CloseAtEnd(push.clone());
    let flood = push.clone();
    let flooding = std::thread::spawn(move || {
        let value = vec![0; 60_000];
        while flood
            .send(Message::from(Frame::copy_from(&value)), Wait::Forever)
            .is_ok()
        {}
    });
    let mut peer = Peer::of(&collector);
    peer.await_stat("plain_rows", |rows| rows > 2000);
    let deadline = Instant::now() + LONG;
    while peer.bounds().0 == 0 {
        assert!(Instant::now() < deadline, "retention is applied");
    }
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(collector.close()));
    is_done.recv_timeout(LONG).unwrap().unwrap();
    push.close(Some(Some(Duration::ZERO)));
    flooding.join().unwrap();
    context.term().unwrap();
}

#[test]
fn rows_of_this_process_are_durable_when_append_returns() {
    let (_dir, collector) = collector();
    assert_eq!(collector.append(batch(&["a", "b"]), LONG).unwrap(), 0..2);
    assert_eq!(collector.append(batch(&["c"]), LONG).unwrap(), 2..3);
    assert_eq!(Peer::of(&collector).values(), ["a", "b", "c"]);
    let stats = collector.stats(LONG).unwrap();
    assert_eq!(number(&stats, "local_rows"), 3);
    assert!(stats.contains("\"state\":\"fine\""));
    collector.close().unwrap();
    assert!(collector.append(batch(&["d"]), LONG).is_err());
}

#[test]
fn closing_waits_only_for_rows_in_transit() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = config(dir.path());
    settings.retain_every = Duration::from_secs(3600);
    settings.plain.pull = vec!["tcp://127.0.0.1:*".to_owned()];
    let collector = Collector::start(settings).unwrap();
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(collector.close()));
    is_done.recv_timeout(LONG).unwrap().unwrap();
}

#[test]
fn a_name_outlives_an_epoch_that_no_clock_gives() {
    let (dir, collector) = collector();
    let mut stranger = Peer::of(&collector);
    let mut peer = Peer::of(&collector);
    let wall = 1_000_000 * std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    peer.hello("p", wall);
    peer.append("p", wall, 0, &["a"]);
    let years = 10 * 365 * 24 * 3600 * 1_000_000;
    for epoch in [u64::MAX, u64::MAX - 1, wall + years] {
        let (code, follow) = stranger.refused(hello("p", epoch));
        assert_eq!(code, Code::Fenced);
        assert!(follow < epoch, "{follow} can be followed by an honest run");
        assert_eq!(stranger.refused(hello("fresh", epoch)).0, Code::Fenced);
    }
    peer.append("p", wall, 1, &["b"]);
    // The next runs, here and after a restart.
    assert_eq!(peer.hello("p", wall + 1), Some((wall, 1)));
    assert_eq!(peer.hello("fresh", wall), None);
    assert_eq!(peer.refused(append("p", wall, 2, &["old"])).0, Code::Fenced);
    collector.close().unwrap();
    let collector = Collector::start(config(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    assert_eq!(peer.hello("p", wall + 2), Some((wall, 1)));
    peer.append("p", wall + 2, 2, &["c"]);
    assert_eq!(peer.values(), ["a", "b", "c"]);
}

#[test]
fn a_log_with_an_epoch_that_nothing_can_follow_continues() {
    let dir = tempfile::tempdir().unwrap();
    let wall = 1_000_000 * std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let mut log = zeroxide_log::Log::open(dir.path(), zeroxide_log::LogConfig::default()).unwrap();
    let origin = zeroxide_log::Origin {
        producer: "p".into(),
        epoch: u64::MAX,
        first_seq: 0,
        receive_time: 0,
    };
    log.append(&origin, &batch(&["a"])).unwrap();
    log.close().unwrap();
    let collector = Collector::start(config(dir.path())).unwrap();
    let mut stale = Peer::of(&collector);
    let mut peer = Peer::of(&collector);
    peer.hello("p", wall);
    peer.append("p", wall, 1, &["b"]);
    assert_eq!(
        stale.refused(append("p", u64::MAX, 2, &["old"])).0,
        Code::HelloFirst
    );
    assert_eq!(stale.refused(hello("p", u64::MAX)).0, Code::Fenced);
    let image = crash_image(dir.path());
    collector.close().unwrap();
    for dir in [image.path(), dir.path()] {
        let collector = Collector::start(config(dir)).unwrap();
        let mut peer = Peer::of(&collector);
        assert_eq!(peer.refused(hello("p", wall - 1)), (Code::Fenced, wall));
        assert_eq!(peer.hello("p", wall + 1), Some((wall, 1)));
        assert_eq!(peer.values(), ["a", "b"]);
    }
}
