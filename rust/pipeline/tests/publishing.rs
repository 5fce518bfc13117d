//! Large transactions, which are made segments of beside the log.

mod peer;

use std::time::Instant;

use peer::{LONG, Peer, append, config, crash_image, number, publish, stage};
use zeroxide_pipeline::collector::{Collector, Config};
use zeroxide_pipeline::wire::{Attempt, Code, Reply, Request};

/// Whatever has a byte is a large transaction here.
fn beside(dir: &std::path::Path) -> Config {
    Config {
        publish_beside: 0,
        ..config(dir)
    }
}

/// The reply to a request, behind what says that there is more to come.
fn reply_to(peer: &Peer, id: u64) -> Reply {
    loop {
        match peer.recv() {
            (answered, Reply::Publishing) => assert_eq!(answered, id),
            (answered, reply) => {
                assert_eq!(answered, id);
                return reply;
            }
        }
    }
}

fn published(first: u64, end: u64, already: bool) -> Reply {
    Reply::Published {
        first,
        end,
        already,
    }
}

#[test]
fn rows_appear_whole_and_once_behind_those_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(beside(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a"]);
    for part in 0..50 {
        let reply = peer.ask(stage("q", 4, 0, 1, part, &["x", "y"]));
        assert_eq!(reply, Reply::Staged);
    }
    // Asked twice, as by a client that missed the answer.
    let mut other = Peer::of(&collector);
    let (id, again) = (
        peer.send(publish("q", 4, &[(0, 1, 50)])),
        other.send(publish("q", 4, &[(0, 1, 50)])),
    );
    assert_eq!(reply_to(&peer, id), published(1, 101, false));
    assert!(matches!(
        reply_to(&other, again),
        Reply::Published {
            first: 1,
            end: 101,
            ..
        }
    ));
    let id = peer.send(publish("q", 4, &[(0, 1, 50)]));
    assert_eq!(reply_to(&peer, id), published(1, 101, true));
    peer.append("p", 1, 1, &["b"]);
    let values = peer.values();
    assert_eq!((values.len(), &*values[0], &*values[101]), (102, "a", "b"));
    peer.await_stat("staged_batches", |count| count == 0);
    assert_eq!(peer.stat("published"), 1);
    assert_eq!(peer.stat("published_rows"), 100);
    collector.close().unwrap();

    let collector = Collector::start(config(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    assert_eq!(peer.values(), values);
    let id = peer.send(publish("q", 4, &[(0, 1, 50)]));
    assert_eq!(reply_to(&peer, id), published(1, 101, true));
}

#[test]
fn a_process_that_dies_at_any_time_leaves_all_rows_or_none_and_none_are_lost() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(beside(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    let wide = "w".repeat(100_000);
    let parts = 60;
    for part in 0..parts {
        peer.ask(stage("q", 0, 0, 1, part, &[&wide]));
    }
    let mut publisher = Peer::of(&collector);
    let id = publisher.send(publish("q", 0, &[(0, 1, parts)]));
    // What is there while it is published, as a process that dies then would leave it.
    let mut images = Vec::new();
    let deadline = Instant::now() + LONG;
    let mut seq = 0;
    loop {
        images.push((crash_image(dir.path()), seq));
        peer.append("p", 1, seq, &["r"]);
        seq += 1;
        if number(&peer.stats(), "published") == 1 {
            break;
        }
        assert!(Instant::now() < deadline);
    }
    images.push((crash_image(dir.path()), seq));
    assert!(matches!(
        reply_to(&publisher, id),
        Reply::Published { already: false, .. }
    ));
    drop(collector);

    for (image, acknowledged) in images {
        let collector = Collector::start(beside(image.path())).unwrap();
        assert!(collector.recovery().damaged.is_empty());
        let mut peer = Peer::of(&collector);
        let count = |peer: &mut Peer| {
            let values = peer.values();
            let rows = values.iter().filter(|value| *value == "r").count() as u64;
            (rows, values.len() as u64 - rows)
        };
        let (rows, staged) = count(&mut peer);
        assert!(rows >= acknowledged, "{rows} of {acknowledged}");
        assert!(staged == 0 || staged == u64::from(parts), "{staged} rows");
        let id = peer.send(publish("q", 0, &[(0, 1, parts)]));
        match reply_to(&peer, id) {
            Reply::Published {
                first,
                end,
                already,
            } => {
                assert_eq!((end - first, already), (u64::from(parts), staged > 0));
            }
            reply => panic!("{reply:?}"),
        }
        assert_eq!(count(&mut peer).1, u64::from(parts));
    }
}

#[test]
fn a_collector_that_is_closed_sends_publishers_away() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(beside(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    let wide = "w".repeat(1 << 20);
    for part in 0..40 {
        peer.ask(stage("q", 0, 0, 1, part, &[&wide]));
    }
    let id = peer.send(publish("q", 0, &[(0, 1, 40)]));
    // A request that it has not received is not answered.
    let mut other = Peer::of(&collector);
    let is_preparing = || {
        let mut entries = std::fs::read_dir(dir.path()).unwrap();
        entries.any(|entry| {
            let name = entry.unwrap().file_name();
            name.to_string_lossy().ends_with("preparing")
        })
    };
    while !is_preparing() && other.stat("published") == 0 {}
    collector.close().unwrap();
    let reply = reply_to(&peer, id);
    let collector = Collector::start(beside(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    let was_published = matches!(reply, Reply::Published { .. });
    assert!(
        was_published || matches!(reply, Reply::Refused { .. }),
        "{reply:?}"
    );
    let id = peer.send(publish("q", 0, &[(0, 1, 40)]));
    assert_eq!(reply_to(&peer, id), published(0, 40, was_published));
    peer.hello("p", 1);
    let request = append("p", 1, 0, &["after"]);
    assert!(matches!(peer.ask(request), Reply::Ack { .. }));
}

#[test]
fn what_is_aborted_while_it_is_being_published_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(beside(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    let wide = "w".repeat(1 << 20);
    let stage_all = |peer: &mut Peer| {
        for part in 0..40 {
            assert_eq!(peer.ask(stage("q", 0, 0, 1, part, &[&wide])), Reply::Staged);
        }
    };
    let abort = |attempt| Request::Abort {
        query: "q".to_owned(),
        batch: 0,
        attempts: vec![Attempt {
            partition: 0,
            attempt,
        }],
    };
    stage_all(&mut peer);
    let published_id = peer.send(publish("q", 0, &[(0, 1, 40)]));
    let aborted_id = peer.send(abort(1));
    let mut refused = false;
    loop {
        match peer.recv() {
            (_, Reply::Publishing) => {}
            (id, Reply::Refused { code, .. }) => {
                assert_eq!((id, code), (published_id, Code::NotStaged));
                refused = true;
            }
            (id, reply) => {
                assert_eq!((id, reply), (aborted_id, Reply::Aborted));
                break;
            }
        }
    }
    assert!(refused);
    assert_eq!(peer.ask(abort(1)), Reply::Aborted);

    // The same batch again, perhaps while the first one is still being prepared; another attempt that is aborted is none of it.
    stage_all(&mut peer);
    let published_id = peer.send(publish("q", 0, &[(0, 1, 40)]));
    let aborted_id = peer.send(abort(2));
    let (id, reply) = peer.recv();
    assert_eq!((id, reply), (aborted_id, Reply::Aborted));
    assert_eq!(reply_to(&peer, published_id), published(0, 40, false));
    assert_eq!(peer.stat("published"), 1);
    assert_eq!(peer.refused(abort(1)).0, Code::Invalid);
    let id = peer.send(publish("q", 0, &[(0, 1, 40)]));
    assert_eq!(reply_to(&peer, id), published(0, 40, true));
    collector.close().unwrap();
    let left = std::fs::read_dir(dir.path()).unwrap();
    let mut left = left.map(|entry| entry.unwrap().path());
    assert!(!left.any(|path| path.extension().is_some_and(|suffix| suffix == "preparing")));
}
