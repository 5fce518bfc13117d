//! Readers that wait at the collector for rows.

mod peer;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use peer::{LONG, Peer, collector, config};
use zeroxide::{Context, Frame, SocketType, Value, Wait, ids};
use zeroxide_pipeline::client::{Client, ClientConfig, ClientError};
use zeroxide_pipeline::collector::Collector;
use zeroxide_pipeline::reader::{Fetch, FetchConfig, Fetched};
use zeroxide_pipeline::wire::{Code, Reply, Request};

fn follow(endpoint: &str, start: u64, topics: &[&str], max_bytes: u64) -> Fetch {
    let client = Client::new(endpoint, ClientConfig::default()).unwrap();
    let config = FetchConfig {
        range: start..u64::MAX,
        topics: topics.iter().map(|&topic| topic.to_owned()).collect(),
        max_bytes,
        log_id: None,
        generation: 0,
        follows: true,
    };
    Fetch::new(Arc::new(client), config)
}

/// The values of the next batch.
fn next(fetch: &mut Fetch) -> Vec<String> {
    fetch.resume();
    match fetch.advance(Some(Instant::now() + LONG)) {
        Ok(Fetched::Batch(stored, range)) => stored
            .rows_within(&range)
            .map(|row| String::from_utf8_lossy(stored.batch.value(row)).into_owned())
            .collect(),
        other => panic!("{other:?}"),
    }
}

/// The numbers at the beginning of the rows before an error, and the error's detail.
fn until_damage(fetch: &mut Fetch) -> (Vec<u64>, u64) {
    let mut rows = Vec::new();
    loop {
        fetch.resume();
        match fetch.advance(Some(Instant::now() + LONG)) {
            Ok(Fetched::Batch(stored, range)) => {
                rows.extend(stored.rows_within(&range).map(|row| -> u64 {
                    let number = str::from_utf8(&stored.batch.value(row)[..3]).unwrap();
                    number.parse().unwrap()
                }))
            }
            Err(ClientError::Refused {
                code: Code::Corrupt,
                detail,
                ..
            }) => return (rows, detail),
            other => panic!("{other:?}"),
        }
    }
}

/// Changes a byte of the row that contains this.
fn damage(dir: &Path, content: &[u8]) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "zlog")
        {
            let mut bytes = fs::read(&path).unwrap();
            let found = bytes
                .windows(content.len())
                .position(|part| part == content);
            let at = found.unwrap() + content.len();
            bytes[at] ^= 1;
            // In place: the collector has the file open.
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.write_all_at(&bytes[at..=at], at as u64).unwrap();
        }
    }
}

#[test]
fn a_follower_waits_at_the_collector_and_gets_each_row_as_it_comes() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a", "b"]);
    let mut fetch = follow(collector.endpoint(), 0, &[], 1 << 20);
    assert_eq!(next(&mut fetch), ["a", "b"]);
    assert_eq!(fetch.position().unwrap().0, 2);
    for round in 0..5_u64 {
        let now = Instant::now();
        assert!(matches!(fetch.advance(Some(now)), Ok(Fetched::Waiting)));
        peer.await_stat("followers", |waiting| waiting == 1);
        let value = format!("{round}");
        peer.append("p", 1, 2 + round, &[&value]);
        assert_eq!(next(&mut fetch), [value]);
        assert_eq!(fetch.position().unwrap().0, 3 + round);
    }
}

#[test]
fn a_request_that_waited_for_long_enough_is_answered_without_rows() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    let reply = peer.ask(Request::Follow {
        start: 0,
        max_bytes: 1 << 20,
        topics: Vec::new(),
        generation: 0,
        wait: 1,
    });
    match reply {
        Reply::Fetched { next, frames, .. } => assert_eq!((next, frames.len()), (0, 0)),
        reply => panic!("{reply:?}"),
    }
}

#[test]
fn a_follower_continues_at_a_collector_that_was_restarted() {
    let (dir, collector) = collector();
    let endpoint = collector.endpoint().to_owned();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a"]);
    let mut fetch = follow(&endpoint, 0, &[], 1 << 20);
    assert_eq!(next(&mut fetch), ["a"]);
    let follower = thread::spawn(move || next(&mut fetch));
    peer.await_stat("followers", |waiting| waiting == 1);
    drop(peer);
    collector.close().unwrap();
    let mut config = config(dir.path());
    config.bind = endpoint;
    let collector = Collector::start(config).unwrap();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 2);
    peer.append("p", 2, 1, &["b"]);
    assert_eq!(follower.join().unwrap(), ["b"]);
}

#[test]
fn a_follower_of_a_topic_passes_over_other_rows() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    let mut fetch = follow(collector.endpoint(), 0, &["wanted"], 1 << 20);
    peer.append("p", 1, 0, &["a", "b"]);
    let until = Instant::now() + LONG;
    while fetch.position().unwrap().0 < 2 {
        let found = fetch.advance(Some(Instant::now() + Duration::from_millis(5)));
        assert!(matches!(found, Ok(Fetched::Waiting)), "{found:?}");
        assert!(Instant::now() < until);
    }
}

#[test]
fn a_follower_beyond_the_end_gets_an_error() {
    let (_dir, collector) = collector();
    let mut fetch = follow(collector.endpoint(), 7, &[], 1 << 20);
    let error = fetch.advance(Some(Instant::now() + LONG)).unwrap_err();
    assert!(
        matches!(error, ClientError::DataLoss { asked: 7, .. }),
        "{error}"
    );
    let again = fetch.advance(Some(Instant::now() + LONG));
    assert!(
        matches!(again, Err(ClientError::DataLoss { asked: 7, .. })),
        "{again:?}"
    );
}

#[test]
fn no_row_is_skipped_after_an_error() {
    let (dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    for number in 0..60 {
        let value = format!("{number:03}{}", "x".repeat(2000));
        peer.append("p", 1, number, &[&value]);
    }
    damage(dir.path(), b"020x");
    let mut fetch = follow(collector.endpoint(), 0, &[], 6000);
    let (rows, detail) = until_damage(&mut fetch);
    assert_eq!(rows, (0..20).collect::<Vec<_>>());
    assert_eq!(detail, 21);
    for _ in 0..5 {
        assert_eq!(until_damage(&mut fetch), (vec![], 21));
        assert_eq!(fetch.position().unwrap().0, 20);
    }
    let mut fetch = follow(collector.endpoint(), detail, &[], 6000);
    for number in 21..60 {
        assert!(next(&mut fetch)[0].starts_with(&format!("{number:03}")));
    }
}

#[test]
fn a_fetch_that_was_closed_is_at_its_end() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a", "b"]);
    let mut fetch = follow(collector.endpoint(), 0, &[], 1 << 20);
    assert_eq!(next(&mut fetch), ["a", "b"]);
    fetch.close();
    assert!(matches!(fetch.advance(None), Ok(Fetched::End)));
    assert_eq!(fetch.position().unwrap().0, 2);
    assert_eq!(fetch.fds().unwrap(), []);
}

#[test]
fn a_wait_can_be_interrupted() {
    let (_dir, collector) = collector();
    let mut fetch = follow(collector.endpoint(), 0, &[], 1 << 20);
    let interrupter = fetch.interrupter().unwrap();
    let mut peer = Peer::of(&collector);
    let waiting = thread::spawn(move || fetch.advance(None).map(|found| format!("{found:?}")));
    peer.await_stat("followers", |waiting| waiting == 1);
    interrupter.interrupt();
    assert_eq!(waiting.join().unwrap().unwrap(), "Waiting");
}

#[test]
fn a_group_can_be_asked_for_its_position() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a", "b"]);
    let ask = || Request::Position {
        group: "g".to_owned(),
    };
    assert_eq!(peer.ask(ask()), Reply::Position { offset: None });
    let commit = Request::Commit {
        group: "g".to_owned(),
        offset: 2,
        generation: 0,
    };
    assert_eq!(peer.ask(commit), Reply::Committed);
    assert_eq!(peer.ask(ask()), Reply::Position { offset: Some(2) });
}

#[test]
fn a_collector_that_is_going_away_is_not_asked_again_at_once() {
    let context = Context::new();
    let router = context.socket(SocketType::Router).unwrap();
    let patience = i64::try_from(LONG.as_millis()).unwrap();
    router
        .set_option(ids::RCVTIMEO, &Value::Int(patience))
        .unwrap();
    let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
    let mut fetch = follow(&endpoint, 0, &[], 1 << 20);
    let now = Instant::now();
    assert!(matches!(fetch.advance(Some(now)), Ok(Fetched::Waiting)));
    let mut request = router.recv(Wait::Default).unwrap();
    let route = request.pop_front().unwrap().into_bytes();
    let (id, _) = Request::decode(request).unwrap();
    let closing = Reply::Refused {
        code: Code::Closing,
        detail: 0,
        text: "the end".to_owned(),
    };
    let mut reply = closing.encode(id);
    reply.push_front(Frame::from_bytes(route));
    router.send(reply, Wait::Default).unwrap();
    // It has let go of the connection, and makes no new one yet.
    let until = Instant::now() + LONG;
    while !fetch.fds().unwrap().is_empty() {
        let now = Instant::now();
        assert!(matches!(fetch.advance(Some(now)), Ok(Fetched::Waiting)));
        assert!(now < until, "it asks again at once");
    }
    // Then it does, although nothing wakes it.
    let interrupter = fetch.interrupter().unwrap();
    let asking = thread::spawn(move || fetch.advance(None).map(|found| format!("{found:?}")));
    router.recv(Wait::Default).unwrap();
    interrupter.interrupt();
    assert_eq!(asking.join().unwrap().unwrap(), "Waiting");
    router.close(Some(Some(Duration::ZERO)));
    context.term().unwrap();
}
