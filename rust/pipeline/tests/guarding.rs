//! Threats to a collector: noise, floods, peers that read nothing, and peers without rights.

mod peer;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use peer::{LONG, Peer, append, batch, collector, config, encode, hello, publish, stage};
use zeroxide::{AllowList, Frame, Message, Value, curve_keypair, ids};
use zeroxide_log::{BatchBuilder, MAX_NAMES, Row};
use zeroxide_pipeline::collector::{Collector, Config, Grant, Grants, Role, Security};
use zeroxide_pipeline::wire::{Attempt, Code, Reply, Request};

#[test]
fn noise_is_refused_and_counted_and_affects_no_other_peer() {
    let (_dir, collector) = collector();
    let mut good = Peer::of(&collector);
    good.hello("p", 1);
    let bad = Peer::of(&collector);
    // A small generator: the noise is the same in each run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let valid = append("p", 1, 0, &["a", "b"]).encode(1);
    for round in 0..500 {
        let frames = (0..1 + random() % 3).map(|index| {
            let mut bytes: Vec<u8> = (0..random() % 100).map(|_| random() as u8).collect();
            if index == 0 && round % 2 == 0 {
                bytes.splice(0..0, [b'Z', b'X', 1, (random() % 16) as u8]);
            }
            Frame::copy_from(&bytes)
        });
        bad.send_raw(Message::from_frames(frames.collect::<Vec<_>>()));
        // A batch with a byte changed.
        let mut payload = valid.last().to_vec();
        let at = random() as usize % payload.len();
        payload[at] ^= 1 << (random() % 8);
        let mut message = Message::single(valid.head().clone());
        message.push(Frame::copy_from(&payload));
        if round % 50 == 0 {
            bad.send_raw(message);
        }
    }
    bad.send_raw(Message::new());
    let mut refused = 0;
    while refused < 500 {
        if let (_, Reply::Refused { .. }) = bad.recv() {
            refused += 1;
        }
    }
    // The accepted noise has the form of rows; the good producer continues after it.
    let last = good.hello("p", 2).map_or(0, |(_, seq)| seq + 1);
    good.append("p", 2, last, &["z"]);
    assert_eq!(good.values().pop().unwrap(), "z");
    assert!(good.stat("malformed") >= 500);
    assert!(collector.is_running());
}

#[test]
fn batches_and_sessions_have_limits() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(Config {
        max_batch_bytes: 1000,
        max_producers: 2,
        ..config(dir.path())
    })
    .unwrap();
    let mut peer = Peer::of(&collector);
    peer.hello("a", 1);
    peer.hello("b", 1);
    peer.hello("b", 2);
    assert_eq!(peer.refused(hello("c", 1)).0, Code::TooMany);
    let large = "x".repeat(2000);
    assert_eq!(
        peer.refused(append("a", 1, 0, &[&large])),
        (Code::TooBig, 1000)
    );
    assert_eq!(
        peer.refused(stage("q", 0, 0, 0, 0, &[&large])),
        (Code::TooBig, 1000)
    );
    assert_eq!(peer.append("a", 1, 0, &["small"]), (0, Some(0)));
    assert_eq!(peer.stat("too-many"), 1);
}

#[test]
fn a_flood_of_requests_for_counters_takes_little_of_the_collectors_time() {
    let (_dir, collector) = collector();
    // One connection may have 64 names.
    let mut peers: Vec<Peer> = (0..150).map(|_| Peer::of(&collector)).collect();
    for (number, peer) in peers.iter_mut().enumerate() {
        for name in 0..60 {
            peer.send(hello(&format!("p{number}-{name}"), 1));
        }
        for _ in 0..60 {
            peer.recv();
        }
    }
    let flooding = &mut peers[0];
    // Each description would be another one, because the number of greetings changes.
    let count: usize = 3000;
    for epoch in 1..=count {
        flooding.send(hello("p", epoch as u64));
        flooding.send(Request::Stats);
    }
    let mut texts = BTreeSet::new();
    for _ in 0..2 * count {
        if let (_, Reply::Stats { json }) = flooding.recv() {
            texts.insert(json);
        }
    }
    assert!(texts.len() < count / 2, "{} descriptions", texts.len());
}

#[test]
fn groups_have_a_limit_and_a_dropped_one_makes_room() {
    let (dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    let commit = |group: String| Request::Commit {
        group,
        offset: 0,
        generation: 0,
    };
    let mut refused = 0;
    for first in (0..=MAX_NAMES).step_by(100) {
        let groups = first..first + 100;
        for at in groups.clone() {
            peer.send(commit(format!("group {at}")));
        }
        for _ in groups {
            match peer.recv().1 {
                Reply::Committed => assert_eq!(refused, 0),
                Reply::Refused { code, .. } => {
                    assert_eq!(code, Code::TooMany);
                    refused += 1;
                }
                reply => panic!("{reply:?}"),
            }
        }
    }
    assert_eq!((refused, peer.stat("too-many")), (100, 100));
    assert_eq!(peer.ask(commit("group 0".to_owned())), Reply::Committed);
    collector.close().unwrap();

    let collector = Collector::start(config(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    let other = || commit("other".to_owned());
    assert_eq!(peer.refused(other()).0, Code::TooMany);
    let drop = Request::DropGroup {
        group: "group 0".to_owned(),
    };
    assert_eq!(peer.ask(drop), Reply::Dropped { existed: true });
    assert_eq!(peer.ask(other()), Reply::Committed);
}

#[test]
fn a_reader_that_takes_nothing_does_not_delay_others() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    let large = "x".repeat(1 << 20);
    for seq in 0..64 {
        peer.append("p", 1, seq, &[&large]);
    }
    let mut slow = Peer::of(&collector);
    let fetch = Request::Fetch {
        start: 0,
        end: 64,
        max_bytes: 16 << 20,
        topics: Vec::new(),
        generation: 0,
    };
    let asked: Vec<u64> = (0..15).map(|_| slow.send(fetch.clone())).collect();
    assert_eq!(peer.fetch(60..64, &[]).len(), 4);
    assert_eq!(peer.append("p", 1, 64, &["y"]).0, 64);
    // When it does take them, they are all there.
    let mut answered: Vec<u64> = (0..15).map(|_| slow.recv().0).collect();
    answered.sort_unstable();
    assert_eq!(answered, asked);
}

#[test]
fn strangers_stay_outside() {
    let dir = tempfile::tempdir().unwrap();
    let (server_public, secret_key) = curve_keypair().unwrap();
    let (alice_public, alice_secret) = curve_keypair().unwrap();
    let allow = AllowList::new();
    allow.add(alice_public, "alice");
    let collector = Collector::start(Config {
        security: Some(Security {
            secret_key,
            allow,
            grants: None,
        }),
        ..config(dir.path())
    })
    .unwrap();
    let mut alice = Peer::unconnected();
    alice
        .socket
        .secure_client(&server_public, Some(&alice_secret))
        .unwrap();
    alice.socket.connect(collector.endpoint()).unwrap();
    assert_eq!(alice.hello("p", 1), None);
    let stranger = Peer::unconnected();
    stranger.socket.secure_client(&server_public, None).unwrap();
    stranger.socket.connect(collector.endpoint()).unwrap();
    stranger.send_raw(Request::Info.encode(1));
    let naked = Peer::of(&collector);
    naked.send_raw(Request::Info.encode(1));
    // As long as this takes, the others have had their chance.
    for seq in 0..20 {
        alice.append("p", 1, seq, &["a"]);
    }
    assert!(stranger.try_recv(Duration::ZERO).is_none());
    assert!(naked.try_recv(Duration::ZERO).is_none());
}

#[test]
fn a_later_version_is_refused_with_both_versions() {
    let (_dir, collector) = collector();
    let peer = Peer::of(&collector);
    let mut header = Request::Info.encode(9).head().to_vec();
    header[2] = zeroxide_pipeline::wire::VERSION + 1;
    peer.send_raw(Message::single(Frame::copy_from(&header)));
    let (id, reply) = peer.recv();
    assert!(
        matches!(
            reply,
            Reply::Refused {
                code: Code::Version,
                ..
            }
        ),
        "{reply:?}"
    );
    assert_eq!(id, 0);
    let batch = encode(&batch(&["a"]));
    assert!(!batch.is_empty());
}

#[test]
fn one_connection_does_not_shut_out_others_with_names() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(Config {
        max_producers: 100,
        ..config(dir.path())
    })
    .unwrap();
    let mut greedy = Peer::of(&collector);
    let said = (0..500).map(|number| greedy.ask(hello(&format!("name {number}"), 1)));
    let welcome = said.filter(|reply| matches!(reply, Reply::Welcome { .. }));
    assert_eq!(welcome.count(), 64);
    let mut honest = Peer::of(&collector);
    assert_eq!(honest.hello("p", 1), None);
    honest.append("p", 1, 0, &["a"]);
    assert_eq!(honest.stat("connected_producers"), 65);
    assert_eq!(honest.stat("too-many"), 500 - 64);
}

#[test]
fn keys_have_roles_and_names() {
    let dir = tempfile::tempdir().unwrap();
    let (server_key, secret_key) = curve_keypair().unwrap();
    let allow = AllowList::new();
    let secrets = ["alice", "bob", "reader"].map(|name| {
        let (public, secret) = curve_keypair().unwrap();
        allow.add(public, name);
        secret
    });
    let start = |grants: Option<Grants>| {
        Collector::start(Config {
            security: Some(Security {
                secret_key,
                allow: allow.clone(),
                grants,
            }),
            ..config(dir.path())
        })
        .unwrap()
    };
    let connect = |collector: &Collector, who: usize| {
        let peer = Peer::unconnected();
        let secret = &secrets[who];
        peer.socket
            .secure_client(&server_key, Some(secret))
            .unwrap();
        peer.socket.connect(collector.endpoint()).unwrap();
        peer
    };
    let commit = || Request::Commit {
        group: "g".to_owned(),
        offset: 0,
        generation: 0,
    };

    // A name belongs to the key that used it first, which may return over any connection.
    let collector = start(None);
    let (mut alice, mut bob) = (connect(&collector, 0), connect(&collector, 1));
    alice.hello("p", 1);
    alice.append("p", 1, 0, &["a"]);
    assert_eq!(bob.refused(hello("p", 2)).0, Code::Denied);
    assert_eq!(bob.refused(append("p", 1, 1, &["forged"])).0, Code::Denied);
    assert_eq!(connect(&collector, 0).hello("p", 2), Some((1, 0)));
    bob.hello("q", 1);
    bob.ask(commit());
    assert_eq!(bob.stat("denied"), 2);
    collector.close().unwrap();

    let collector = start(None);
    assert_eq!(
        connect(&collector, 1).refused(hello("p", 3)).0,
        Code::Denied
    );
    assert_eq!(connect(&collector, 0).hello("p", 3), Some((1, 0)));
    collector.close().unwrap();

    let grant = |roles: &[Role], names: &[&str]| Grant {
        roles: roles.to_vec(),
        names: names.iter().map(|name| name.to_string()).collect(),
    };
    let collector = start(Some(Grants::from([
        ("alice".to_owned(), grant(&[Role::Produce], &["sensor-*"])),
        (
            "reader".to_owned(),
            grant(&[Role::Fetch, Role::Commit], &[]),
        ),
    ])));
    let [mut alice, mut bob, mut reader] = [0, 1, 2].map(|who| connect(&collector, who));
    alice.hello("sensor-1", 1);
    alice.append("sensor-1", 1, 0, &["b"]);
    assert_eq!(
        alice.refused(hello("p", 4)).0,
        Code::Denied,
        "not among hers"
    );
    assert_eq!(reader.values(), ["a", "b"]);
    assert_eq!(reader.ask(commit()), Reply::Committed);
    for request in [
        hello("r", 1),
        append("r", 1, 0, &["c"]),
        stage("q", 0, 0, 0, 0, &["d"]),
        publish("q", 0, &[]),
        Request::Stats,
    ] {
        assert_eq!(reader.refused(request).0, Code::Denied);
    }
    assert_eq!(alice.refused(commit()).0, Code::Denied);
    assert_eq!(
        bob.refused(Request::Info).0,
        Code::Denied,
        "nothing was given"
    );
}

#[test]
fn rows_with_times_in_the_future_are_refused_from_every_writer() {
    let (_dir, collector) = collector();
    let mut peer = Peer::of(&collector);
    let timed = |timestamp| {
        let mut builder = BatchBuilder::new();
        let row = Row {
            value: b"x",
            timestamp,
            ..Row::default()
        };
        builder.push(row).unwrap();
        builder.finish()
    };
    let encoded = |timestamp| {
        let mut out = Vec::new();
        timed(timestamp).encode(&mut out);
        Bytes::from(out)
    };
    // A time of the year 294247.
    let far = Some(i64::MAX);
    peer.hello("p", 1);
    let append = |first_seq, timestamp| Request::Append {
        producer: "p".to_owned(),
        epoch: 1,
        first_seq,
        batch: encoded(timestamp),
    };
    assert_eq!(peer.refused(append(0, far)).0, Code::Invalid);
    let stage = |timestamp| Request::Stage {
        query: "q".to_owned(),
        batch: 0,
        attempt: Attempt {
            partition: 0,
            attempt: 0,
        },
        part: 0,
        rows: encoded(timestamp),
    };
    assert_eq!(peer.refused(stage(far)).0, Code::Invalid);
    let refused = collector.append(timed(far), LONG).unwrap_err();
    assert!(refused.to_string().contains("max_ahead_hours"), "{refused}");
    assert_eq!(peer.stat("rows_ahead"), 3);
    assert_eq!(peer.stat("rows"), 0);

    for old in [None, Some(i64::MIN), Some(0)] {
        collector.append(timed(old), LONG).unwrap();
    }
    assert!(matches!(peer.ask(append(0, Some(0))), Reply::Ack { .. }));
    assert_eq!(peer.ask(stage(Some(0))), Reply::Staged);
}

/// A collector whose clients may leave this many bytes of replies unread together.
fn with_unread(dir: &Path, most: u64) -> Collector {
    Collector::start(Config {
        max_unread_bytes: most,
        ..config(dir)
    })
    .unwrap()
}

#[test]
fn replies_without_rows_that_are_not_read_take_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let most = 8 << 20;
    let collector = with_unread(dir.path(), most);
    let mut reader = Peer::of(&collector);
    // They make the replies large.
    for number in 0..250 {
        let commit = Request::Commit {
            group: format!("{number:0100}"),
            offset: 0,
            generation: 0,
        };
        assert_eq!(reader.ask(commit), Reply::Committed);
    }
    let mute: Vec<Peer> = (0..8)
        .map(|_| {
            let mut peer = Peer::unconnected();
            for (option, value) in [(ids::RCVHWM, 1), (ids::RCVBUF, 1 << 16)] {
                peer.socket.set_option(option, &Value::Int(value)).unwrap();
            }
            peer.socket.connect(collector.endpoint()).unwrap();
            for _ in 0..800 {
                peer.send(Request::Stats);
            }
            peer
        })
        .collect();
    reader.await_stat("undelivered", |lost| lost > 100);
    let unread = reader.stat("unread_other_bytes");
    assert!(
        (most / 2..=most / 4 * 5).contains(&unread),
        "{unread} of {most}"
    );
    drop(mute);
    reader.await_stat("unread_other_bytes", |bytes| bytes < 1 << 16);
}

/// A producer that does not get the last ACK waits, connects anew and sends its rows again.
#[test]
fn acknowledgements_without_room_are_combined_and_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(Config {
        max_unread_bytes: 4096,
        flush_after: Duration::from_millis(500),
        flush_rows: 1 << 20,
        ..config(dir.path())
    })
    .unwrap();
    let mut peer = Peer::of(&collector);
    peer.hello("p", 1);
    for seq in 0..2000 {
        peer.send(append("p", 1, seq, &["row"]));
    }
    let (mut last, mut acks) = (None, 0);
    while last != Some(1999) {
        match peer.try_recv(Duration::from_secs(3)) {
            Some((_, Reply::Ack { seq, .. })) => last = last.max(Some(seq)),
            other => panic!("{other:?} after {last:?} in {acks} replies"),
        }
        acks += 1;
    }
    assert!(acks < 2000, "they were combined");
    assert_eq!(peer.stat("undelivered"), 0);
}

#[test]
fn readers_that_do_not_read_take_bounded_memory_and_exclude_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let most = 16 << 20;
    let collector = with_unread(dir.path(), most);
    let row = "x".repeat(64 << 10);
    let rows = 384;
    let batches = (0..rows).map(|_| batch(&[&row])).collect();
    collector.begin_append(batches).wait(LONG).unwrap();
    let mute: Vec<Peer> = (0..8)
        .map(|_| {
            let mut peer = Peer::unconnected();
            for (option, value) in [(ids::RCVHWM, 1), (ids::RCVBUF, 1 << 16)] {
                peer.socket.set_option(option, &Value::Int(value)).unwrap();
            }
            peer.socket.connect(collector.endpoint()).unwrap();
            for _ in 0..16 {
                peer.send(Request::Fetch {
                    start: 0,
                    end: rows,
                    max_bytes: 4 << 20,
                    topics: Vec::new(),
                    generation: 0,
                });
            }
            peer
        })
        .collect();
    let mut reader = Peer::of(&collector);
    reader.await_stat("unread_bytes", |bytes| bytes > most / 2);
    reader.await_stat("fetch_waits", |waits| waits > 100);
    assert_eq!(reader.values().len() as u64, rows);
    let unread = reader.stat("unread_bytes");
    assert!(unread < most + (8 << 20), "{unread} of {most}");
    drop(mute);
    reader.await_stat("unread_bytes", |bytes| bytes == 0);
}
