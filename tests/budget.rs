//! The memory budget of a context: what all peers together may make it hold.

mod common;

use std::fs;
use std::io::{ErrorKind as IoErrorKind, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::raw::{self, LONG};
use common::{Monitor, SocketExt, Watchdog, socket, until};
use zeroxide::{Context, DropReason, EventKind, Socket, SocketType, Value, Wait, ids};

use SocketType::{Pull, Push};

/// The number of MEMORY_BUDGET.
const MEMORY_BUDGET: i32 = 1101;
/// The number of THREAD_NAME_PREFIX.
const THREAD_NAME_PREFIX: i32 = 9;
const MIB: usize = 1 << 20;

fn context(budget: usize) -> Context {
    let context = Context::new();
    let value = Value::Int(budget as i64);
    context.set_option(MEMORY_BUDGET, &value).unwrap();
    assert_eq!(context.get_option(MEMORY_BUDGET).unwrap(), value);
    context
}

fn bound(context: &Context) -> (Socket, String) {
    let pull = socket(context, Pull);
    pull.int(ids::RCVHWM, 0);
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    (pull, endpoint)
}

/// A peer in another context.
fn client(endpoint: &str) -> Socket {
    let push = socket(&Context::new(), Push);
    push.int(ids::SNDHWM, 0);
    push.connect(endpoint).unwrap();
    push
}

/// Announces a message of `size` bytes and goes on sending it, until the connection ends.
fn begin(mut peer: TcpStream, size: u64) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut header = vec![LONG];
        header.extend(size.to_be_bytes());
        peer.write_all(&header).unwrap();
        let body = vec![0; MIB];
        while let Err(IoErrorKind::Interrupted) | Ok(()) =
            peer.write_all(&body).map_err(|error| error.kind())
        {}
    })
}

#[test]
fn a_default_is_there_and_is_generous() {
    let Value::Int(budget) = Context::new().get_option(MEMORY_BUDGET).unwrap() else {
        panic!("a number");
    };
    assert!(budget > 64 << 20, "{budget}");
    assert!(
        Context::new()
            .set_option(MEMORY_BUDGET, &Value::Int(-1))
            .is_ok()
    );
    assert!(
        Context::new()
            .set_option(MEMORY_BUDGET, &Value::Int(-2))
            .is_err()
    );
}

#[test]
fn what_is_begun_and_can_never_be_completed_goes_and_others_stay() {
    let _watchdog = Watchdog::new("what_is_begun_and_can_never_be_completed_goes_and_others_stay");
    const PEERS: usize = 5;
    let context = context(16 * MIB);
    let (pull, endpoint) = bound(&context);
    let monitor = Monitor::of(&context, &pull);
    let before = client(&endpoint);
    before.put("before");
    assert_eq!(pull.take(), "before");
    let peers: Vec<_> = (0..PEERS)
        .map(|_| begin(raw::join(&endpoint, "PUSH"), 1 << 30))
        .collect();
    for n in 0..20 {
        before.put(&format!("meanwhile {n}"));
        assert_eq!(pull.take(), format!("meanwhile {n}"));
    }
    for peer in peers {
        peer.join().unwrap();
    }
    until(|| pull.dropped(DropReason::NoMemory) == PEERS as u64);
    monitor.wait_for(EventKind::Disconnected);
    // A large message that fits is still one.
    let after = client(&endpoint);
    after.send(vec![7; 8 * MIB].into(), Wait::Forever).unwrap();
    assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 8 * MIB);
    before.put("after");
    assert_eq!(pull.take(), "after");
}

#[test]
fn a_small_half_message_is_nobodys_harm() {
    let _watchdog = Watchdog::new("a_small_half_message_is_nobodys_harm");
    let context = context(16 * MIB);
    let (pull, endpoint) = bound(&context);
    let half: Vec<_> = (0..200)
        .map(|_| {
            let mut peer = raw::join(&endpoint, "PUSH");
            peer.write_all(b"\x02\0\0\0\0\x40\0\0\0begun").unwrap();
            peer
        })
        .collect();
    until(|| pull.peers() == half.len());
    let client = client(&endpoint);
    for _ in 0..3 {
        client.send(vec![7; 4 * MIB].into(), Wait::Forever).unwrap();
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 4 * MIB);
    }
    assert_eq!(pull.peers(), half.len() + 1);
    assert_eq!(pull.dropped(DropReason::NoMemory), 0);
}

#[test]
fn what_nobody_receives_holds_its_senders_back_and_is_not_lost() {
    let _watchdog = Watchdog::new("what_nobody_receives_holds_its_senders_back_and_is_not_lost");
    const COUNT: usize = 64;
    let context = context(8 * MIB);
    let (pull, endpoint) = bound(&context);
    let clients = [client(&endpoint), client(&endpoint)];
    for client in &clients {
        for _ in 0..COUNT {
            client.send(vec![7; MIB].into(), Wait::Forever).unwrap();
        }
    }
    let queued = || pull.stats().unwrap().queued_in;
    until(|| queued() >= 4);
    // A peer with few messages is served in between.
    let modest = client(&endpoint);
    modest.put("little");
    let mut seen = 0;
    for _ in 0..=2 * COUNT {
        assert!(queued() <= 10, "{} wait", queued());
        seen += usize::from(pull.recv(Wait::Forever).unwrap().size() == MIB);
    }
    assert_eq!(seen, 2 * COUNT);
    assert_eq!(pull.dropped(DropReason::NoMemory), 0);
}

#[test]
fn many_small_messages_count_with_what_they_take() {
    let _watchdog = Watchdog::new("many_small_messages_count_with_what_they_take");
    let context = context(4 * MIB);
    let (pull, endpoint) = bound(&context);
    let mut peer = raw::join(&endpoint, "PUSH");
    let flood = thread::spawn(move || {
        for _ in 0..400 {
            peer.write_all(&[0; 2000]).unwrap();
        }
        peer
    });
    let queued = || pull.stats().unwrap().queued_in;
    until(|| queued() >= 30_000);
    let mut received = 0;
    while received < 400 * 1000 {
        assert!(queued() < 100_000, "{} wait", queued());
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 0);
        received += 1;
    }
    drop(flood.join().unwrap());
}

#[test]
fn who_is_held_back_in_the_middle_of_decoding_costs_no_time() {
    let _watchdog = Watchdog::new("who_is_held_back_in_the_middle_of_decoding_costs_no_time");
    let context = context(MIB);
    let prefix = Value::from("held");
    context.set_option(THREAD_NAME_PREFIX, &prefix).unwrap();
    let (pull, endpoint) = bound(&context);
    let mut peer = raw::join(&endpoint, "PUSH");
    // More than three quarters of the budget with what each takes, in a single read.
    const COUNT: usize = 12_000;
    peer.write_all(&[0; 2 * COUNT]).unwrap();
    let queued = || pull.stats().unwrap().queued_in;
    until(|| queued() == COUNT as u64);
    let before = io_time("held/ZMQbg/IO/");
    thread::sleep(Duration::from_millis(500));
    let spent = io_time("held/ZMQbg/IO/") - before;
    assert!(spent < Duration::from_millis(100), "{spent:?} of 500 ms");
    for _ in 0..COUNT {
        assert_eq!(pull.recv(Wait::Forever).unwrap().size(), 0);
    }
    peer.write_all(&raw::frame(0, b"after")).unwrap();
    assert_eq!(pull.take(), "after");
}

/// How long the thread of this name has been on a CPU.
fn io_time(name: &str) -> Duration {
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        // Threads of other tests end meanwhile.
        let comm = fs::read_to_string(task.join("comm")).unwrap_or_default();
        if comm.trim_end().starts_with(name) {
            let text = fs::read_to_string(task.join("schedstat")).unwrap();
            return Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap());
        }
    }
    panic!("there is no thread {name}");
}
