//! What people who look at a collector see: producers, topics, and the last rows.

mod peer;

use std::fs;
use std::time::{Duration, Instant};

use peer::{LONG, Peer, append, collector, config, number, publish, stage};
use zeroxide_pipeline::collector::{Collector, Tail};
use zeroxide_pipeline::wire::{Reply, Request};

/// Waits until the counters contain a text.
fn await_text(collector: &Collector, text: &str) {
    let deadline = Instant::now() + LONG;
    loop {
        let stats = collector.stats(LONG).unwrap();
        if stats.contains(text) {
            return;
        }
        assert!(Instant::now() < deadline, "{text} in {stats}");
    }
}

fn tail(collector: &Collector, topic: Option<&str>, most: usize) -> Tail {
    collector.tail(topic, most, LONG).unwrap()
}

/// Offsets and values, the last one first.
fn rows(tail: &Tail) -> Vec<(u64, String)> {
    tail.rows
        .iter()
        .map(|(stored, row)| {
            let value = String::from_utf8_lossy(stored.batch.value(*row));
            (stored.offset(*row), value.into_owned())
        })
        .collect()
}

#[test]
fn producers_are_listed_and_whether_they_are_connected() {
    let (_dir, collector) = collector();
    let mut first = Peer::of(&collector);
    first.hello("first \"one\"", 1);
    let mut second = Peer::of(&collector);
    second.hello("second", 1);
    second.append("second", 1, 0, &["a", "b"]);
    let stats = second.stats();
    let listed =
        r#"{"name":"second","connected":true,"stopped":false,"last_seq":1,"silent_seconds":"#;
    assert!(stats.contains(listed), "{stats}");
    let listed = r#"{"name":"first \"one\"","connected":true,"stopped":false,"last_seq":null,"silent_seconds":"#;
    assert!(stats.contains(listed), "{stats}");
    assert_eq!(number(&stats, "producers_unlisted"), 0);
    drop(second);
    // Those that are connected come first.
    await_text(
        &collector,
        r#"{"name":"second","connected":false,"stopped":false,"last_seq":1,"silent_seconds":"#,
    );
    await_text(&collector, r#""producers":[{"name":"first "#);
    drop(first);
    await_text(&collector, r#"{"name":"first \"one\"","connected":false"#);
}

#[test]
fn of_very_many_producers_few_are_listed() {
    let (_dir, collector) = collector();
    let mut peers: Vec<Peer> = (0..5).map(|_| Peer::of(&collector)).collect();
    for number in 0..250 {
        peers[number / 50].hello(&format!("p{number}"), 1);
    }
    let stats = collector.stats(LONG).unwrap();
    assert_eq!(stats.matches(r#"{"name":"p"#).count(), 100);
    assert_eq!(number(&stats, "producers_unlisted"), 150);
    assert_eq!(number(&stats, "connected_producers"), 250);
    // The one that was heard last comes first.
    assert!(stats.contains(r#""producers":[{"name":"p249","#), "{stats}");
}

#[test]
fn requests_that_wait_for_a_row_end_with_their_client() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    let mut other = Peer::of(&collector);
    for peer in [&mut peer, &mut other] {
        peer.send(Request::Follow {
            start: 0,
            max_bytes: 1 << 20,
            topics: Vec::new(),
            generation: 0,
            wait: u32::MAX,
        });
    }
    await_text(&collector, r#""followers":2,"#);
    drop(peer);
    await_text(&collector, r#""followers":1,"#);
    // The other one is still waiting, and gets its row.
    let append = Request::Hello {
        producer: "p".to_owned(),
        epoch: 1,
        next_seq: 0,
    };
    assert!(matches!(other.ask(append), Reply::Welcome { .. }));
    other.send(peer::append("p", 1, 0, &["a"]));
    let deadline = Instant::now() + LONG;
    while !matches!(other.recv().1, Reply::Fetched { next: 1, .. }) {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn rows_of_every_origin_count_under_their_topics() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    // One publication goes the way of large ones.
    config.publish_beside = 150;
    let collector = Collector::start(config).unwrap();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    peer.append("p", 1, 0, &["a:1", "b:22", "3"]);
    // Rows that are in the log already do not count again.
    peer.ask(append("p", 1, 0, &["a:1", "b:22", "3"]));
    collector.append(peer::batch(&["a:1"]), LONG).unwrap();
    for (batch, rows) in [&["a:1"][..], &["b:22", "b:22", "b:22", "b:22", "b:22"]]
        .iter()
        .enumerate()
    {
        let batch = batch as u64;
        peer.ask(stage("q", batch, 0, 0, 0, rows));
        let mut reply = peer.ask(publish("q", batch, &[(0, 0, 1)]));
        while reply == Reply::Publishing {
            reply = peer.recv().1;
        }
        assert!(matches!(reply, Reply::Published { .. }), "{reply:?}");
    }
    let counted = concat!(
        r#""topics":[{"topic":"b","rows":6,"bytes":12},{"topic":"a","rows":3,"bytes":3},{"topic":"","rows":1,"bytes":1}],"#,
        r#""topics_unlisted":{"topics":0,"rows":0,"bytes":0}"#
    );
    let stats = peer.stats();
    assert!(stats.contains(counted), "{stats}");
}

#[test]
fn the_last_rows_come_first() {
    let (_dir, collector) = collector();
    let empty = tail(&collector, None, 10);
    assert_eq!((rows(&empty), empty.from, empty.end), (vec![], 0, 0));
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    let mut seq = 0;
    // Batches of all sizes.
    for batch in 0..200 {
        let rows: Vec<String> = (0..batch % 7 + 1)
            .map(|row| match (seq + row) % 100 {
                0 => format!("rare:{}", seq + row),
                _ => format!("often:{}", seq + row),
            })
            .collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        peer.append("p", 1, seq, &rows);
        seq += rows.len() as u64;
    }
    let named = |offsets: &[u64]| -> Vec<(u64, String)> {
        offsets.iter().map(|at| (*at, at.to_string())).collect()
    };
    let last = tail(&collector, None, 3);
    assert_eq!(rows(&last), named(&[seq - 1, seq - 2, seq - 3]));
    assert_eq!((last.from, last.end), (seq - 3, seq));
    let rare: Vec<u64> = (0..seq).rev().filter(|at| at % 100 == 0).collect();
    let some = tail(&collector, Some("rare"), 2);
    assert_eq!(rows(&some), named(&rare[..2]));
    assert_eq!(some.from, rare[1]);
    assert_eq!(rows(&tail(&collector, Some("rare"), 1000)), named(&rare));
    // A topic is meant as a whole.
    assert_eq!(rows(&tail(&collector, Some("rar"), 10)), []);
    let everything = tail(&collector, None, usize::MAX);
    assert_eq!((everything.rows.len() as u64, everything.from), (seq, 0));
}

#[test]
fn looking_for_rows_reads_a_part_of_the_log() {
    let (_dir, collector) = collector();
    // Of large rows as many as may be read.
    let large = "x".repeat(3 << 20);
    for number in 0..8 {
        let row = format!("{number}{large}");
        collector.append(peer::batch(&[&row]), LONG).unwrap();
    }
    let found = tail(&collector, None, 100);
    let numbers: Vec<&u8> = found
        .rows
        .iter()
        .map(|(stored, row)| &stored.batch.value(*row)[0])
        .collect();
    assert!(numbers.starts_with(&[&b'7', &b'6']), "{numbers:?}");
    assert!(numbers.len() < 5 && found.from >= 4, "{}", found.from);
    // Of small ones, too.
    let mut small = vec!["wanted:first"];
    small.resize(100_000, "x:y");
    for part in small.chunks(1000) {
        collector.append(peer::batch(part), LONG).unwrap();
    }
    let found = tail(&collector, Some("wanted"), 1);
    assert_eq!(rows(&found), []);
    assert!(found.from > found.end - 70_000, "{}", found.from);
}

#[test]
fn damaged_rows_are_passed_over() {
    let (dir, collector) = collector();
    for row in ["first", "second", "third"] {
        collector.append(peer::batch(&[row]), LONG).unwrap();
    }
    let path = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "zlog")
        });
    let path = path.unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|part| part == b"third").unwrap();
    bytes[at] ^= 1;
    let file = fs::File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    let found = tail(&collector, None, 10);
    assert!(rows(&found).len() < 3);
    assert_eq!(found.from, 0);
    let _ = collector.tail(None, 10, Duration::ZERO);
}
