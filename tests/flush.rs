//! Waiting until sent messages have been passed to the peers' kernels.

mod common;

use std::thread;
use std::time::Duration;

use common::{IpcName, SocketExt, Watchdog, free_tcp_endpoint, inproc_name, socket, until};
use zeroxide::{Context, ErrorKind, SocketType};

use SocketType::{Pull, Push};

const SOON: Option<Duration> = Some(Duration::from_millis(20));

#[test]
fn remaining_messages_are_reported_by_endpoint() {
    let _watchdog = Watchdog::new("remaining_messages_are_reported_by_endpoint");
    let context = Context::new();
    let push = socket(&context, Push);
    push.flush(None).unwrap();
    let mut absent = [free_tcp_endpoint(), IpcName::new().endpoint()];
    absent.iter().for_each(|e| drop(push.connect(e).unwrap()));
    (0..7).for_each(|n| push.put(&n.to_string()));
    let mut failed = push.flush(SOON).unwrap_err();
    assert_eq!(failed.error.kind(), ErrorKind::Again);
    failed.remaining.sort();
    absent.sort();
    let told: Vec<_> = failed.remaining.iter().map(|(name, _)| name).collect();
    assert_eq!(told, absent.iter().collect::<Vec<_>>());
    assert_eq!(failed.remaining.iter().map(|(_, n)| n).sum::<u64>(), 7);
}

#[test]
fn flushed_messages_survive_a_close_without_linger() {
    let _watchdog = Watchdog::new("flushed_messages_survive_a_close_without_linger");
    let context = Context::new();
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), IpcName::new().endpoint()] {
        let pull = socket(&context, Pull);
        let endpoint = pull.bind(&endpoint).unwrap();
        for size in [1, 1 << 20] {
            let push = socket(&context, Push);
            push.connect(&endpoint).unwrap();
            let reader = {
                let pull = pull.clone();
                thread::spawn(move || (0..50).for_each(|_| drop(pull.take())))
            };
            (0..50).for_each(|_| push.put(&"x".repeat(size)));
            push.flush(None).unwrap();
            push.close(Some(Some(Duration::ZERO)));
            reader.join().unwrap();
        }
    }
}

#[test]
fn messages_over_inproc_have_arrived() {
    let _watchdog = Watchdog::new("messages_over_inproc_have_arrived");
    let context = Context::new();
    let (pull, push) = (socket(&context, Pull), socket(&context, Push));
    push.connect(&pull.bind(&inproc_name()).unwrap()).unwrap();
    push.put("there");
    push.flush(None).unwrap();
    assert_eq!(pull.take(), "there");
}

#[test]
fn the_end_of_the_socket_ends_the_wait() {
    let _watchdog = Watchdog::new("the_end_of_the_socket_ends_the_wait");
    let context = Context::new();
    for shut_down in [false, true] {
        let push = socket(&context, Push);
        push.connect(&free_tcp_endpoint()).unwrap();
        push.put("never leaves");
        let waiting = {
            let push = push.clone();
            thread::spawn(move || push.flush(None).unwrap_err().error.kind())
        };
        until(|| push.stats().unwrap().queued_out == 1);
        let expected = if shut_down {
            context.shutdown();
            ErrorKind::Terminated
        } else {
            push.close(None);
            ErrorKind::NotSocket
        };
        assert_eq!(waiting.join().unwrap(), expected);
    }
}
