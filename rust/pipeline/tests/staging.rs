//! Batches of sinks: staged where readers do not see them, and published once and completely.

mod peer;

use peer::{Peer, append, collector, config, crash_image, publish, stage, syncing_late};
use zeroxide_pipeline::collector::Collector;
use zeroxide_pipeline::wire::{Attempt, Code, Reply, Request};

#[test]
fn an_empty_batch_is_published_once_its_mark_is_on_disk() {
    let (_dir, collector) = syncing_late(u64::MAX);
    let mut peer = Peer::of(&collector);
    let first = peer.send(publish("q", 0, &[]));
    peer.await_stat_quietly("published");
    let again = peer.send(publish("q", 0, &[]));
    peer.await_stat_quietly("published_again");
    collector.close().unwrap();
    for (id, known) in [(first, false), (again, true)] {
        let (answered, reply) = peer.recv();
        assert_eq!(answered, id);
        assert!(
            matches!(reply, Reply::Published { first: 0, end: 0, already } if already == known),
            "{reply:?}"
        );
    }
}

#[test]
fn a_batch_of_a_sink_is_published_once_and_completely() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    let published = |peer: &mut Peer, request| match peer.ask(request) {
        Reply::Published {
            first,
            end,
            already,
        } => (first, end, already),
        reply => panic!("{reply:?}"),
    };
    // Attempt 1 at partition 0 failed half-way, attempt 2 is there in full.
    for request in [
        stage("q", 0, 0, 1, 0, &["lost"]),
        stage("q", 0, 0, 2, 0, &["a", "b"]),
        stage("q", 0, 0, 2, 1, &["c"]),
        stage("q", 0, 1, 3, 0, &["d"]),
    ] {
        assert_eq!(peer.ask(request), Reply::Staged);
    }
    assert_eq!(peer.bounds(), (0, 0), "they are not visible");
    let missing = publish("q", 0, &[(0, 2, 3)]);
    assert_eq!(peer.refused(missing).0, Code::NotStaged);
    let won = [(0, 2, 2), (1, 3, 1)];
    assert_eq!(published(&mut peer, publish("q", 0, &won)), (0, 4, false));
    assert_eq!(peer.values(), ["a", "b", "c", "d"]);

    // The driver died after its commit, and everything is repeated.
    assert_eq!(peer.ask(stage("q", 0, 0, 9, 0, &["a", "b"])), Reply::Staged);
    assert_eq!(
        published(&mut peer, publish("q", 0, &[(0, 9, 1)])),
        (0, 4, true)
    );
    assert_eq!(published(&mut peer, publish("q", 1, &[])), (4, 4, false));
    assert_eq!(
        published(&mut peer, publish("q", 0, &[])),
        (0, 0, true),
        "an older one"
    );
    assert_eq!(peer.values().len(), 4);
    peer.await_stat("staged_batches", |count| count == 0);

    let abort = |attempts: &[u64]| Request::Abort {
        query: "q".to_owned(),
        batch: 2,
        attempts: attempts
            .iter()
            .map(|attempt| Attempt {
                partition: 0,
                attempt: *attempt,
            })
            .collect(),
    };
    for attempt in [1, 2] {
        assert_eq!(
            peer.ask(stage("q", 2, 0, attempt, 0, &["x"])),
            Reply::Staged
        );
    }
    assert_eq!(peer.ask(abort(&[1])), Reply::Aborted);
    assert_eq!(
        peer.refused(publish("q", 2, &[(0, 1, 1)])).0,
        Code::NotStaged
    );
    assert_eq!(
        published(&mut peer, publish("q", 2, &[(0, 2, 1)])),
        (4, 5, false)
    );
    assert_eq!(peer.refused(abort(&[])).0, Code::Invalid, "published");
}

#[test]
fn rows_that_cannot_be_published_are_not_staged_and_no_attempt_is_published_twice() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    let mut broken = stage("q", 0, 0, 1, 0, &["a"]);
    if let Request::Stage { rows, .. } = &mut broken {
        rows.truncate(rows.len() - 1);
    }
    assert_eq!(peer.refused(broken).0, Code::Malformed);
    let missing = publish("q", 0, &[(0, 1, 1)]);
    assert_eq!(peer.refused(missing).0, Code::NotStaged);
    // Only staged parts can be published.
    assert_eq!(peer.ask(stage("q", 0, 0, 2, 0, &["a"])), Reply::Staged);
    let twice = publish("q", 0, &[(0, 2, 1); 2]);
    assert_eq!(peer.refused(twice).0, Code::Invalid);
    assert_eq!(peer.bounds(), (0, 0));
}

#[test]
fn staged_rows_survive_a_crash() {
    let (dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    for partition in 0..3 {
        let row = format!("row {partition}");
        assert_eq!(
            peer.ask(stage("q", 5, partition, 1, 0, &[&row])),
            Reply::Staged
        );
    }
    let image = crash_image(dir.path());
    let won = [(0, 1, 1), (1, 1, 1), (2, 1, 1)];
    let after = Collector::start(config(image.path())).unwrap();
    let mut peer = Peer::of(&after);
    assert!(matches!(
        peer.ask(publish("q", 5, &won)),
        Reply::Published {
            first: 0,
            end: 3,
            already: false
        }
    ));
    let image = crash_image(image.path());
    let after = Collector::start(config(image.path())).unwrap();
    let mut peer = Peer::of(&after);
    assert!(matches!(
        peer.ask(publish("q", 5, &won)),
        Reply::Published {
            first: 0,
            end: 3,
            already: true
        }
    ));
    assert_eq!(peer.values(), ["row 0", "row 1", "row 2"]);
    assert_eq!(peer.stat("staged_batches"), 0);
}

#[test]
fn parts_are_staged_again_once_the_log_was_restored_as_a_copy() {
    let place = tempfile::tempdir().unwrap();
    let (path, copy) = (place.path().join("log"), place.path().join("copy"));
    let collector = Collector::start(config(&path)).unwrap();
    let (mut peer, mut writer) = (Peer::of(&collector), Peer::of(&collector));
    writer.hello("p", 1);
    writer.append("p", 1, 0, &["a"]);
    assert_eq!(peer.ask(stage("q", 0, 0, 1, 0, &["b"])), Reply::Staged);
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([&path, &copy])
        .status();
    assert!(copied.unwrap().success());
    assert_eq!(peer.ask(stage("q", 0, 0, 1, 1, &["c"])), Reply::Staged);
    std::fs::rename(&path, place.path().join("old")).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    // Its sync shows that the folder is another one, and the collector opens the log in that.
    writer.send(append("p", 1, 1, &["x"]));
    peer.await_stat("recoveries", |count| count > 0);

    let won = [(0, 1, 2)];
    assert_eq!(peer.refused(publish("q", 0, &won)).0, Code::NotStaged);
    assert_eq!(peer.ask(stage("q", 0, 0, 1, 1, &["c"])), Reply::Staged);
    let published = peer.ask(publish("q", 0, &won));
    assert!(
        matches!(
            published,
            Reply::Published {
                first: 1,
                end: 3,
                ..
            }
        ),
        "{published:?}"
    );
    collector.close().unwrap();
}
