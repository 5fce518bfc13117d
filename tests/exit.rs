//! The end of a program that exits without terminating its contexts: it is bounded, and reports lost messages.

mod common;

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use common::{SocketExt, Watchdog, free_tcp_endpoint, raw, socket, until};
use zeroxide::{Context, SocketType, Wait};

use SocketType::{Pull, Push};

#[test]
fn an_idle_termination_gives_up_and_reports_undelivered_messages() {
    let _watchdog = Watchdog::new("an_idle_termination_gives_up_and_reports_undelivered_messages");
    let context = Context::new();
    let push = context.socket(Push).unwrap();
    let nobody = free_tcp_endpoint();
    push.connect(&nobody).unwrap();
    push.put("one");
    push.put("two");
    let elsewhere = Context::new();
    let pull = socket(&elsewhere, Pull);
    let busy = context.socket(Push).unwrap();
    busy.connect(&pull.bind("tcp://127.0.0.1:*").unwrap())
        .unwrap();
    until(|| busy.peers() == 1);
    busy.put("three");
    let left = context.term_idle(Duration::from_secs(1)).unwrap();
    assert_eq!((left.peers.len(), left.messages(), left.bytes()), (1, 2, 6));
    assert_eq!(left.peers[0].endpoint, nobody);
    assert_eq!(pull.take(), "three");
    assert!(push.is_closed() && busy.is_closed());
}

/// Bytes that move are progress, even if it takes long until a message is complete.
#[test]
fn an_idle_termination_waits_for_a_large_message() {
    let _watchdog = Watchdog::new("an_idle_termination_waits_for_a_large_message");
    let context = Context::new();
    let push = context.socket(Push).unwrap();
    let endpoint = push.bind("tcp://127.0.0.1:*").unwrap();
    let mut slow = raw::join(&endpoint, "PULL");
    until(|| push.peers() == 1);
    // More than the kernel keeps for the two.
    let size = 48 << 20;
    push.send(vec![7u8; size], Wait::Forever).unwrap();
    let reader = thread::spawn(move || {
        let mut received = 0;
        let mut some = vec![0; 256 << 10];
        while received < size {
            received += slow.read(&mut some).unwrap();
            thread::sleep(Duration::from_millis(15));
        }
    });
    // All of it takes twice as long as that, and no piece of it nearly so long.
    let left = context.term_idle(Duration::from_millis(1500)).unwrap();
    assert!(left.is_empty(), "{left}");
    reader.join().unwrap();
}

/// An exiting program waits for all its contexts together, not for one after the other.
#[test]
fn contexts_that_are_shut_down_run_out_of_patience_together() {
    let _watchdog = Watchdog::new("contexts_that_are_shut_down_run_out_of_patience_together");
    let nobody = free_tcp_endpoint();
    let contexts: Vec<Context> = (0..50).map(|_| Context::new()).collect();
    for context in &contexts {
        let push = context.socket(Push).unwrap();
        push.connect(&nobody).unwrap();
        push.put("lost");
        push.close(None);
    }
    contexts.iter().for_each(Context::shutdown);
    let begin = Instant::now();
    for context in &contexts {
        let left = context.term_idle(Duration::from_secs(1)).unwrap();
        assert_eq!(left.messages(), 1);
        assert_eq!(left.peers[0].endpoint, nobody);
    }
    assert!(begin.elapsed() < Duration::from_secs(25), "not 50");
}
