//! Large transactions, which are made segments of beside the log.

mod peer;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use peer::{LONG, Peer, append, config, crash_image, number, publish, stage};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use zeroxide_pipeline::collector::{Collector, Config};
use zeroxide_pipeline::wire::{Attempt, Code, Reply, Request};

/// Whatever has a byte is a large transaction here.
fn beside(dir: &Path) -> Config {
    Config {
        publish_beside: 0,
        ..config(dir)
    }
}

/// Returns the reply to a request, after any progress messages.
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

/// The same for the next reply to any of these requests.
fn reply_to_one(peer: &Peer, ids: [u64; 2]) -> (u64, Reply) {
    loop {
        let (id, reply) = peer.recv();
        assert!(ids.contains(&id), "{reply:?}");
        if reply != Reply::Publishing {
            return (id, reply);
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
fn rows_appear_together_and_once_after_those_of_others() {
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
    // Which one comes first is open.
    let mut replies = [reply_to(&peer, id), reply_to(&other, again)];
    replies.sort_by_key(|reply| *reply == published(1, 101, true));
    assert_eq!(
        replies,
        [false, true].map(|already| published(1, 101, already))
    );
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

/// The variable that makes this program's `the_collector_of_a_process_of_its_own` a collector of the folder it names.
const FOLDER: &str = "ZEROXIDE_TEST_COLLECTOR";

/// A collector in a process that can be stopped between any two of its system calls.
struct Stoppable {
    process: Child,
    endpoint: String,
}

impl Stoppable {
    fn start(dir: &Path) -> Stoppable {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "the_collector_of_a_process_of_its_own"])
            .arg("--nocapture")
            .env(FOLDER, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines();
        let endpoint = said
            .map(|line| line.unwrap())
            .find_map(|line| Some(line.split_once("endpoint ")?.1.to_owned()));
        Stoppable {
            process,
            endpoint: endpoint.expect("the process says where its collector listens"),
        }
    }

    /// The folder as the process would leave it if it died now. A copy made while it runs would mix several moments.
    fn crash_image(&self, dir: &Path) -> tempfile::TempDir {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
        let image = crash_image(dir);
        kill_process(pid, Signal::CONT).unwrap();
        image
    }
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[test]
fn the_collector_of_a_process_of_its_own() {
    let Some(dir) = env::var_os(FOLDER) else {
        return; // the tests' own process
    };
    let collector = Collector::start(beside(Path::new(&dir))).unwrap();
    println!("endpoint {}", collector.endpoint());
    std::io::stdout().flush().unwrap();
    // Until it is killed, or the process that started it has ended.
    _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn a_process_that_dies_at_any_time_leaves_all_rows_or_none_and_none_are_lost() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Stoppable::start(dir.path());
    let mut peer = Peer::connect(&collector.endpoint);
    peer.hello("p", 1);
    let wide = "w".repeat(100_000);
    let parts = 60;
    for part in 0..parts {
        peer.ask(stage("q", 0, 0, 1, part, &[&wide]));
    }
    let mut publisher = Peer::connect(&collector.endpoint);
    let id = publisher.send(publish("q", 0, &[(0, 1, parts)]));
    // The files during publishing, as a process that dies then would leave them.
    let mut images = Vec::new();
    let deadline = Instant::now() + LONG;
    let mut seq = 0;
    loop {
        images.push((collector.crash_image(dir.path()), seq));
        peer.append("p", 1, seq, &["r"]);
        seq += 1;
        if number(&peer.stats(), "published") == 1 {
            break;
        }
        assert!(Instant::now() < deadline);
    }
    images.push((collector.crash_image(dir.path()), seq));
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
fn a_batch_aborted_during_publishing_is_not_published() {
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

    // The same batch again, perhaps while the first one is still being prepared. Aborting another attempt does not
    // affect it.
    stage_all(&mut peer);
    let published_id = peer.send(publish("q", 0, &[(0, 1, 40)]));
    let aborted_id = peer.send(abort(2));
    let mut replies = std::iter::repeat_with(|| peer.recv());
    // While the machine is busy, the collector may first say that it still publishes.
    let first = replies.find(|(_, reply)| *reply != Reply::Publishing);
    assert_eq!(first, Some((aborted_id, Reply::Aborted)));
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

#[test]
fn a_second_publish_of_a_batch_learns_that_the_rows_are_those_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::start(beside(dir.path())).unwrap();
    let mut peer = Peer::of(&collector);
    let wide = "w".repeat(1 << 20);
    for part in 0..40 {
        assert_eq!(peer.ask(stage("q", 0, 0, 1, part, &[&wide])), Reply::Staged);
    }
    let more = stage("q", 0, 0, 2, 0, &["a", "b", "c"]);
    assert_eq!(peer.ask(more), Reply::Staged);
    let ids = [
        peer.send(publish("q", 0, &[(0, 1, 40)])),
        peer.send(publish("q", 0, &[(0, 2, 1)])),
    ];
    // The second one comes while the first is being prepared, or after it.
    assert_eq!(reply_to_one(&peer, ids), (ids[0], published(0, 40, false)));
    assert_eq!(reply_to_one(&peer, ids), (ids[1], published(0, 40, true)));
    assert_eq!(peer.values().len(), 40);
    collector.close().unwrap();
}
