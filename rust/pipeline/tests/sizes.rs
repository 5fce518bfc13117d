//! Batches that are too large for a collector are refused with its limit, and counted.

mod peer;

use std::time::{Duration, Instant};

use peer::{LONG, Peer, batch, config, encode};
use zeroxide::{Context, Frame, Message, SocketType, Wait};
use zeroxide_pipeline::client::{Client, ClientConfig, ClientError};
use zeroxide_pipeline::collector::{Collector, CollectorError, Config};
use zeroxide_pipeline::wire::{Attempt, Code, Reply, Request};

fn append(bytes: usize) -> Request {
    Request::Append {
        producer: "p".to_owned(),
        epoch: 1,
        first_seq: 0,
        batch: encode(&batch(&[&"x".repeat(bytes)])),
    }
}

fn stage(bytes: usize) -> Request {
    Request::Stage {
        query: "q".to_owned(),
        batch: 0,
        attempt: Attempt {
            partition: 0,
            attempt: 0,
        },
        part: 0,
        rows: encode(&batch(&[&"x".repeat(bytes)])),
    }
}

#[test]
fn a_batch_that_is_too_large_is_refused_with_the_limit_and_the_connection_stays() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(config(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    for request in [append(20 << 20), stage(60 << 20)] {
        assert_eq!(peer.refused(request), (Code::TooBig, 16 << 20));
    }
    assert_eq!(peer.append("p", 1, 0, &["fits"]), (0, Some(0)));
    assert_eq!(peer.stat("too-big"), 2);
    let limits = peer.ask(Request::Limits);
    let max_batch_bytes = 16 << 20;
    assert_eq!(limits, Reply::Limits { max_batch_bytes });

    let large = batch(&[&"x".repeat(20 << 20)]);
    match collector.append(large, LONG) {
        Err(CollectorError::Refused { code, text }) => {
            assert_eq!(code, Code::TooBig);
            assert!(text.contains("16777216"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(peer.stat("too-big"), 3);
}

#[test]
fn a_message_that_is_not_even_read_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(Config {
        max_batch_bytes: 1000,
        ..config(dir.path())
    })
    .unwrap();
    let mut stranger = Peer::of(&collector);
    stranger.send(append(66 << 20));
    let mut peer = Peer::of(&collector);
    peer.await_stat("too_large", |count| count == 1);
    drop(stranger);

    // Rows of this process are cut to it.
    let rows: Vec<String> = (0..100).map(|row| format!("{row:0100}")).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    assert_eq!(collector.append(batch(&rows), LONG).unwrap(), 0..100);
    assert_eq!(peer.values(), rows);

    // A client learns the limit before it sends a batch of that size.
    let client = Client::new(collector.endpoint(), ClientConfig::default()).unwrap();
    let reply = client.call(Request::Limits).unwrap();
    match client.read_limits(reply, 66 << 20) {
        Err(ClientError::Refused { code, detail, .. }) => {
            assert_eq!((code, detail), (Code::TooBig, 1000));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_of_a_plain_peer_that_is_too_large_is_counted_and_others_come_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.plain.pull = vec!["tcp://127.0.0.1:*".to_owned()];
    let collector = Collector::start(config).unwrap();
    let mut peer = Peer::of(&collector);
    let context = Context::new();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(&collector.plain_endpoints()[0]).unwrap();
    let send = |body: Vec<u8>| {
        let message = Message::single(Frame::from_bytes(body.into()));
        push.send(message, Wait::Until(Instant::now() + LONG))
            .unwrap();
    };
    send(b"before".to_vec());
    send(vec![0; 20 << 20]);
    peer.await_stat("plain_too_large", |count| count == 1);
    // The connection that comes after the one that ended takes it.
    send(b"behind".to_vec());
    peer.await_stat("durable", |rows| rows == 2);
    assert_eq!(peer.values(), ["before", "behind"]);
    push.close(Some(Some(Duration::ZERO)));
    context.term().unwrap();
}

#[test]
fn rows_that_gather_are_cut_by_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config {
        flush_after: Duration::from_secs(3600),
        flush_rows: 1000,
        ..config(dir.path())
    };
    config.plain.pull = vec!["tcp://127.0.0.1:*".to_owned()];
    let collector = Collector::start(config).unwrap();
    let context = Context::new();
    let push = context.socket(SocketType::Push).unwrap();
    push.connect(&collector.plain_endpoints()[0]).unwrap();
    for bytes in [3 << 20, 12 << 20, 3 << 20] {
        let message = Message::single(Frame::from_bytes(vec![0; bytes].into()));
        push.send(message, Wait::Until(Instant::now() + LONG))
            .unwrap();
    }
    let mut peer = Peer::of(&collector);
    peer.await_stat("plain_rows", |rows| rows >= 2);
    collector.close().unwrap();
    let collector = Collector::start(peer::config(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    let (_, stored) = peer.fetch_some(0, 3, 64 << 20, &[]);
    let sizes: Vec<usize> = stored
        .iter()
        .map(|stored| stored.bytes.len() >> 20)
        .collect();
    assert_eq!(sizes[..2], [3, 12]);
    push.close(Some(Some(Duration::ZERO)));
    context.term().unwrap();
}
