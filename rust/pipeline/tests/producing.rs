//! A producer, a collector and a reader, over real sockets and a real disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use zeroxide_log::Row;
use zeroxide_pipeline::client::{Client, ClientConfig, ClientError};
use zeroxide_pipeline::collector::{Collector, Config};
use zeroxide_pipeline::producer::{Failure, Notice, Producer, ProducerConfig};
use zeroxide_pipeline::reader::{Fetch, FetchConfig, Fetched};

const PATIENCE: Duration = Duration::from_secs(20);

/// An address at which a collector can be restarted. Unlike a port, no other process takes it in between.
fn lasting(dir: &Path) -> String {
    format!("ipc://{}/collector", dir.display())
}

fn collector(dir: &Path, bind: &str) -> Collector {
    let mut config = Config::new(dir);
    config.bind = bind.to_owned();
    Collector::start(config).expect("a collector")
}

fn config(endpoint: &str) -> ProducerConfig {
    ProducerConfig {
        endpoints: vec![endpoint.to_owned()],
        name: Some("p".to_owned()),
        ..ProducerConfig::default()
    }
}

fn send(producer: &Producer, value: &str) {
    let row = Row {
        value: value.as_bytes(),
        ..Row::default()
    };
    while producer.push(row).expect("taken").is_none() {
        producer.wait_room(Instant::now() + PATIENCE).expect("room");
    }
}

fn flush(producer: &Producer) {
    let mark = producer.mark();
    let done = producer.wait_mark(&mark, Instant::now() + PATIENCE);
    assert!(done.expect("no failure"), "flushed: {:?}", producer.stats());
}

fn client(endpoint: &str) -> Arc<Client> {
    Arc::new(Client::new(endpoint, ClientConfig::default()).expect("a client"))
}

/// Values and sequence numbers of everything in the log.
fn rows(client: &Arc<Client>) -> Vec<(String, u64)> {
    let info = client.info().expect("info");
    let config = FetchConfig {
        range: info.earliest..info.latest,
        topics: Vec::new(),
        max_bytes: 20_000,
        log_id: Some(info.log_id),
        generation: 0,
        follows: false,
    };
    let mut fetch = Fetch::new(client.clone(), config);
    let mut rows = Vec::new();
    while let Fetched::Batch(stored, range) = fetch.advance(None).expect("rows") {
        for row in stored.rows_within(&range) {
            assert_eq!(stored.offset(row), info.earliest + rows.len() as u64);
            let value = String::from_utf8_lossy(stored.batch.value(row)).into_owned();
            rows.push((value, stored.seq(row).expect("numbered")));
        }
    }
    rows
}

fn expected(count: usize) -> Vec<(String, u64)> {
    (0..count)
        .map(|row| (format!("value {row}"), row as u64))
        .collect()
}

#[test]
fn rows_arrive_once_in_order_and_are_reported() {
    let dir = tempfile::tempdir().expect("a folder");
    let collector = collector(dir.path(), "tcp://127.0.0.1:*");
    let producer = Producer::open(ProducerConfig {
        batch_rows: 100,
        ..config(collector.endpoint())
    })
    .expect("a producer");
    producer.notices().want();
    for row in 0..20_050 {
        send(&producer, &format!("value {row}"));
    }
    flush(&producer);
    assert!(producer.unacknowledged().is_empty());

    assert_eq!(rows(&client(collector.endpoint())), expected(20_050));
    assert_eq!(
        producer.notices().take(),
        [Notice {
            collector: 0,
            first_row: 0,
            rows: 20_050,
            first_seq: Some(0),
            offset: Some(0),
            lost: None,
        }]
    );
    let stats = producer.stats();
    assert_eq!(
        (stats.rows, stats.acknowledged, stats.resent),
        (20_050, 20_050, 0)
    );
    assert_eq!(stats.collectors[0].next_seq, Some(20_050));
    producer.end();
    assert!(matches!(
        producer.push(Row::default()),
        Err(Failure::Closed)
    ));
}

/// The rows that follow each other in the log, after a burst for whose replies the collector has no room.
#[test]
fn rows_that_are_acknowledged_together_have_no_offset_but_the_last() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut small = Config::new(dir.path());
    small.max_unread_bytes = 4096;
    small.flush_after = Duration::from_millis(500);
    small.flush_rows = 1 << 20;
    let collector = Collector::start(small).expect("a collector");
    let producer = Producer::open(ProducerConfig {
        batch_rows: 1,
        ..config(collector.endpoint())
    })
    .expect("a producer");
    producer.notices().want();
    let count = 2000;
    for row in 0..count {
        send(&producer, &format!("value {row}"));
    }
    flush(&producer);
    let notices = producer.notices().take();
    let mut next = 0;
    for notice in &notices {
        assert_eq!((notice.first_row, notice.lost.as_ref()), (next, None));
        assert_eq!(notice.first_seq, Some(next));
        // It is the only writer, so the offset of a row is its number.
        assert!(
            notice.offset.is_none_or(|offset| offset == next),
            "{notice:?}"
        );
        next += notice.rows;
    }
    assert_eq!(next, count);
    assert!(notices.iter().any(|notice| notice.offset.is_none()));
    let last = notices.last().expect("a notice");
    assert!(last.offset.is_some(), "{last:?}");
    assert_eq!(producer.stats().resent, 0, "no reply was lost");
}

#[test]
fn a_collector_that_comes_late_and_again_gets_everything_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let sockets = tempfile::tempdir().expect("a folder");
    let endpoint = lasting(sockets.path());
    let producer = Producer::open(config(&endpoint)).expect("a producer");
    for row in 0..100 {
        send(&producer, &format!("value {row}"));
    }
    let second = collector(dir.path(), &endpoint);
    flush(&producer);
    drop(second);
    for row in 100..200 {
        send(&producer, &format!("value {row}"));
    }
    let third = collector(dir.path(), &endpoint);
    flush(&producer);
    assert_eq!(rows(&client(&endpoint)), expected(200));
    drop(third);
}

#[test]
fn a_name_continues_its_numbers_and_fences_the_earlier_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let collector = collector(dir.path(), "tcp://127.0.0.1:*");
    let first = Producer::open(config(collector.endpoint())).expect("a producer");
    send(&first, "value 0");
    flush(&first);
    let second = Producer::open(config(collector.endpoint())).expect("a producer");
    send(&second, "value 1");
    flush(&second);
    assert_eq!(rows(&client(collector.endpoint())), expected(2));

    send(&first, "too late");
    let mark = first.mark();
    match first.wait_mark(&mark, Instant::now() + PATIENCE) {
        Err(Failure::Fenced {
            name,
            unacknowledged,
            ..
        }) => assert_eq!((name.as_str(), unacknowledged), ("p", 1)),
        other => panic!("{other:?}"),
    }
    first.notices().want();
    first.end();
    let notices = first.notices().take();
    assert_eq!((notices[0].rows, notices[0].first_seq), (1, Some(1)));
    assert!(notices[0].lost.is_some());
}

#[test]
fn a_spool_outlives_its_producer() {
    let dir = tempfile::tempdir().expect("a folder");
    let spool = tempfile::tempdir().expect("a folder");
    let sockets = tempfile::tempdir().expect("a folder");
    let endpoint = lasting(sockets.path());
    let first = collector(dir.path(), &endpoint);
    let spooling = |name: Option<&str>| ProducerConfig {
        name: name.map(str::to_owned),
        spool: Some(spool.path().to_owned()),
        batch_rows: 10,
        max_bytes: 1000,
        ..config(&endpoint)
    };
    let producer = Producer::open(spooling(Some("p"))).expect("a producer");
    for row in 0..55 {
        send(&producer, &format!("value {row}"));
    }
    flush(&producer);
    drop(first);
    // More rows than fit into memory, while no collector is running.
    for row in 55..500 {
        send(&producer, &format!("value {row}"));
    }
    assert!(
        matches!(Producer::open(spooling(None)), Err(Failure::Spool(_))),
        "in use"
    );
    producer.end();
    drop(producer);

    assert!(matches!(
        Producer::open(spooling(Some("q"))),
        Err(Failure::Spool(_))
    ));
    let producer = Producer::open(spooling(None)).expect("a producer");
    assert_eq!(producer.name(), "p");
    for row in 500..600 {
        send(&producer, &format!("value {row}"));
    }
    let _second = collector(dir.path(), &endpoint);
    flush(&producer);
    assert_eq!(rows(&client(&endpoint)), expected(600));
    assert_eq!(producer.stats().collectors[0].next_seq, Some(600));
}

/// Returns how many rows a run counts that ends at once.
fn counted(config: ProducerConfig) -> Option<u64> {
    let producer = Producer::open(config).expect("a producer");
    producer.end();
    producer.stats().collectors[0].next_seq
}

#[test]
fn a_spool_that_may_lack_rows_does_not_count_them_until_a_collector_has_answered() {
    let dir = tempfile::tempdir().expect("a folder");
    let (log, spool, older) = (
        dir.path().join("log"),
        dir.path().join("spool"),
        dir.path().join("older"),
    );
    let endpoint = lasting(dir.path());
    let spooling = || ProducerConfig {
        spool: Some(spool.clone()),
        ..config(&endpoint)
    };
    let first = collector(&log, &endpoint);
    let write = |values: &[&str]| {
        let producer = Producer::open(spooling()).expect("a producer");
        values.iter().for_each(|value| send(&producer, value));
        flush(&producer);
        producer.end();
    };
    write(&["a", "b", "c"]);
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([&spool, &older])
        .status();
    assert!(copied.expect("cp").success());
    write(&["d", "e"]);
    first.close().expect("closed");
    assert_eq!(counted(spooling()), Some(5));

    // As after a loss of power: an older state, and no record of an orderly end.
    std::fs::remove_dir_all(&spool).expect("removed");
    std::fs::rename(&older, &spool).expect("renamed");
    for entry in std::fs::read_dir(&spool).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            std::fs::remove_file(path.join("use")).expect("removed");
        }
    }
    for _ in 0..2 {
        assert_eq!(counted(spooling()), None);
    }
    let _second = collector(&log, &endpoint);
    write(&["f"]);
    assert_eq!(counted(spooling()), Some(6));
    let values = rows(&client(&endpoint));
    let values: Vec<&str> = values.iter().map(|(value, _)| value.as_str()).collect();
    assert_eq!(values, ["a", "b", "c", "d", "e", "f"]);
}

#[test]
fn a_spool_with_rows_for_another_address_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let spool = tempfile::tempdir().expect("a folder");
    let collector = collector(dir.path(), "tcp://127.0.0.1:*");
    let at = |endpoint: &str| ProducerConfig {
        spool: Some(spool.path().to_owned()),
        ..config(endpoint)
    };
    // No collector is listening there.
    let producer = Producer::open(at("tcp://127.0.0.1:9")).expect("a producer");
    for row in 0..7 {
        send(&producer, &format!("value {row}"));
    }
    drop(producer);

    let new = collector
        .endpoint()
        .replace(|c: char| !(c.is_ascii_alphanumeric() || c == '.'), "_");
    match Producer::open(at(collector.endpoint())).err() {
        Some(Failure::Spool(text)) => assert_eq!(
            text,
            format!(
                "the spool {} holds 7 rows for tcp___127.0.0.1_9: start once with that endpoint, or, if that collector \
                 is now at {}, rename the folder to {new}",
                spool.path().display(),
                collector.endpoint()
            )
        ),
        other => panic!("{other:?}"),
    }
    std::fs::rename(
        spool.path().join("tcp___127.0.0.1_9"),
        spool.path().join(new),
    )
    .expect("renamed");
    let producer = Producer::open(at(collector.endpoint())).expect("a producer");
    flush(&producer);
    assert_eq!(rows(&client(collector.endpoint())), expected(7));
    drop(producer);
    // Everything has arrived, so a producer with other endpoints loses nothing.
    drop(Producer::open(at("tcp://127.0.0.1:9")).expect("a producer"));
}

#[test]
fn nothing_is_sent_before_the_spool_keeps_its_base() {
    let dir = tempfile::tempdir().expect("a folder");
    let spool = tempfile::tempdir().expect("a folder");
    let sockets = tempfile::tempdir().expect("a folder");
    let endpoint = lasting(sockets.path());
    let producer = Producer::open(ProducerConfig {
        spool: Some(spool.path().to_owned()),
        ..config(&endpoint)
    })
    .expect("a producer");
    send(&producer, "value 0");
    // In the way of the file.
    let is_log = |path: &PathBuf| path.join("LOCK").exists();
    let entries = std::fs::read_dir(spool.path()).expect("a folder");
    let mut folders = entries.map(|entry| entry.expect("an entry").path());
    let folder = folders.find(is_log).expect("the log of the spool");
    std::fs::create_dir(folder.join("base.new")).expect("a folder");

    let _second = collector(dir.path(), &endpoint);
    let mark = producer.mark();
    match producer.wait_mark(&mark, Instant::now() + PATIENCE) {
        Err(Failure::Spool(_)) => {}
        other => panic!("{other:?}"),
    }
    // Some more turns.
    for _ in 0..20 {
        producer.mark();
        std::thread::sleep(Duration::from_millis(10));
    }
    producer.end();
    assert_eq!(rows(&client(&endpoint)), []);
}

#[test]
fn keys_choose_the_collector_and_rows_without_one_take_turns() {
    let (one, two) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let collectors = [one.path(), two.path()].map(|dir| collector(dir, "tcp://127.0.0.1:*"));
    let endpoints = collectors
        .each_ref()
        .map(|collector| collector.endpoint().to_owned());
    let producer = Producer::open(ProducerConfig {
        endpoints: endpoints.to_vec(),
        batch_rows: 10,
        ..config("")
    })
    .expect("a producer");
    // Rows without a key go round one that is not there yet.
    let until = Instant::now() + PATIENCE;
    while !producer.stats().collectors.iter().all(|c| c.is_connected) {
        assert!(Instant::now() < until, "{:?}", producer.stats());
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut keyed = [0; 2];
    for row in 0..1000 {
        let key = format!("key {}", row % 7);
        let row = Row {
            value: b"keyed",
            key: Some(key.as_bytes()),
            ..Row::default()
        };
        let place = producer.push(row).expect("taken").expect("room");
        let wanted = zeroxide_pipeline::producer::lane_of(key.as_bytes(), 2);
        assert_eq!(place.collector, wanted);
        keyed[wanted] += 1;
    }
    for _ in 0..1000 {
        send(&producer, "unkeyed");
    }
    flush(&producer);
    let counts = endpoints.map(|endpoint| rows(&client(&endpoint)).len());
    assert_eq!(counts.iter().sum::<usize>(), 2000);
    // By batches, and round a collector that has just paused for long: not in equal shares.
    assert!(
        counts
            .iter()
            .zip(keyed)
            .all(|(count, keyed)| *count > keyed),
        "{counts:?}"
    );
}

#[test]
fn rows_that_the_log_does_not_have_are_an_error_that_names_them() {
    let dir = tempfile::tempdir().expect("a folder");
    let collector = collector(dir.path(), "tcp://127.0.0.1:*");
    let producer = Producer::open(config(collector.endpoint())).expect("a producer");
    for row in 0..10 {
        send(&producer, &format!("value {row}"));
    }
    flush(&producer);
    let client = client(collector.endpoint());
    let fetch = |range: std::ops::Range<u64>, log_id| {
        let config = FetchConfig {
            range,
            topics: Vec::new(),
            max_bytes: 1 << 20,
            log_id,
            generation: 0,
            follows: false,
        };
        let mut fetch = Fetch::new(client.clone(), config);
        loop {
            match fetch.advance(None) {
                Ok(Fetched::Batch(..)) => {}
                other => return other,
            }
        }
    };
    assert!(matches!(
        fetch(3..10, Some(collector.log_id())),
        Ok(Fetched::End)
    ));
    assert!(matches!(fetch(10..10, None), Ok(Fetched::End)));
    match fetch(5..20, None) {
        Err(ClientError::DataLoss {
            asked,
            earliest,
            latest,
            ..
        }) => assert_eq!((asked, earliest, latest), (10, 0, 10)),
        other => panic!("{other:?}"),
    }
    match fetch(0..10, Some([7; 16])) {
        Err(ClientError::DataLoss { text, .. }) => assert!(text.contains("replaced"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_absent_collector_is_reported_in_time() {
    // On a busy machine the patience may be over before the row is there.
    let producer = (1..)
        .map(|tenths| {
            Producer::open(ProducerConfig {
                patience: Some(Duration::from_millis(100 * tenths)),
                ..config("tcp://127.0.0.1:9")
            })
            .expect("a producer")
        })
        .find(|producer| {
            let row = Row {
                value: b"value",
                ..Row::default()
            };
            producer.push(row).is_ok()
        })
        .expect("one in time");
    let mark = producer.mark();
    match producer.wait_mark(&mark, Instant::now() + PATIENCE) {
        Err(Failure::Gone { unacknowledged, .. }) => assert_eq!(unacknowledged, 1),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        producer.push(Row::default()),
        Err(Failure::Gone { .. })
    ));

    let config = ClientConfig {
        timeout: Duration::from_millis(30),
        retries: 2,
        security: None,
    };
    let client = Client::new("tcp://127.0.0.1:9", config).expect("a client");
    assert!(matches!(client.info(), Err(ClientError::Gone { .. })));
}

#[test]
fn rows_that_are_set_aside_are_not_acknowledged() {
    let dir = tempfile::tempdir().expect("a folder");
    let bind = lasting(dir.path());
    let producer = Producer::open(ProducerConfig {
        batch_rows: 1,
        ..config(&bind)
    })
    .expect("a producer");
    // Before the collector has reported its limit.
    for value in ["small", &"l".repeat(5000), "small"] {
        send(&producer, value);
    }
    let mut small = Config::new(dir.path());
    small.bind = bind.clone();
    small.max_batch_bytes = 1000;
    let collector = Collector::start(small).expect("a collector");
    let until = Instant::now() + PATIENCE;
    while producer.stats().unacknowledged > 0 {
        assert!(Instant::now() < until, "{:?}", producer.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    let stats = producer.stats();
    assert_eq!((stats.rows, stats.acknowledged), (3, 2));
    assert_eq!(stats.collectors[0].set_aside, 1);
    assert_eq!(rows(&client(collector.endpoint())).len(), 2);
}

#[test]
fn a_larger_limit_of_a_collector_holds_for_producers_that_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = dir.path().join("log");
    let bind = lasting(dir.path());
    let limited = |max_batch_bytes| {
        let mut config = Config::new(&log);
        config.bind = bind.clone();
        config.max_batch_bytes = max_batch_bytes;
        Collector::start(config).expect("a collector")
    };
    let small = limited(1 << 20);
    let producer = Producer::open(config(&bind)).expect("a producer");
    send(&producer, "before");
    flush(&producer);
    let large = Row {
        value: &[0; 2 << 20],
        ..Row::default()
    };
    assert!(producer.push(large).is_err());
    small.close().expect("closed");
    let _large = limited(16 << 20);
    // Only a collector that has reported its limit acknowledges.
    send(&producer, "between");
    flush(&producer);
    assert!(producer.push(large).expect("taken").is_some());
    flush(&producer);
    assert_eq!(rows(&client(&bind)).len(), 3);
}

/// Rows with a time that is too far ahead, between and within batches of others.
#[test]
fn a_row_that_is_refused_for_its_time_does_not_block_others() {
    let dir = tempfile::tempdir().expect("a folder");
    let collector = collector(&dir.path().join("log"), "tcp://127.0.0.1:*");
    let day = 24 * 3600 * 1_000_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = i64::try_from(now.expect("after 1970").as_micros()).expect("before 294247");
    for (run, batch_rows) in [(0, 1), (1, 100)] {
        let producer = Producer::open(ProducerConfig {
            name: Some(format!("p{run}")),
            spool: Some(dir.path().join(format!("spool{run}"))),
            batch_rows,
            ..config(collector.endpoint())
        })
        .expect("a producer");
        producer.notices().want();
        let times = [
            None,
            Some(now + 2 * day),
            Some(now),
            Some(now + 3 * day),
            None,
        ];
        for (row, timestamp) in times.into_iter().enumerate() {
            let value = format!("value {row}");
            let value = value.as_bytes();
            let row = Row {
                value,
                timestamp,
                ..Row::default()
            };
            assert!(producer.push(row).expect("taken").is_some());
        }
        let mark = producer.mark();
        let mut reports = Vec::new();
        loop {
            assert!(reports.len() < 10, "{reports:?}");
            match producer.wait_mark(&mark, Instant::now() + PATIENCE) {
                Ok(true) => break,
                Ok(false) => panic!("{:?}", producer.stats()),
                Err(failure) => reports.push(failure.to_string()),
            }
        }
        assert!((1..=2).contains(&reports.len()), "{reports:?}");
        assert!(reports[0].contains("max_ahead_hours"), "{reports:?}");
        assert!(reports[0].contains("set-aside"), "{reports:?}");
        let stats = producer.stats();
        assert_eq!(stats.collectors[0].set_aside, 2);
        assert_eq!(stats.acknowledged, 3);
        let notices = producer.notices().take();
        let lost = notices.iter().filter(|notice| notice.lost.is_some());
        assert_eq!(lost.map(|notice| notice.rows).sum::<u64>(), 2);
        producer.end();
    }
    let good = ["value 0", "value 2", "value 4"].into_iter().zip(0..);
    let good = good.map(|(value, seq)| (value.to_owned(), seq));
    let all: Vec<_> = good.clone().chain(good).collect();
    assert_eq!(rows(&client(collector.endpoint())), all);
    for run in 0..2 {
        let aside = dir.path().join(format!("spool{run}/set-aside"));
        assert_eq!(std::fs::read_dir(aside).expect("a folder").count(), 2);
    }
}
