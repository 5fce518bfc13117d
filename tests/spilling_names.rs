//! Messages that a ROUTER keeps on disk follow the name of a peer, whichever connection has it.

mod common;

use std::path::Path;

use common::{SocketExt, Watchdog, socket, text, until};
use zeroxide::{Context, DropReason, Socket, SocketType, Wait, ids};

use SocketType::{Dealer, Router};

/// A ROUTER that keeps messages beyond two per peer, and its endpoint.
fn keeping(context: &Context, dir: &Path) -> (Socket, String) {
    let router = socket(context, Router);
    router.int(ids::SNDHWM, 2);
    router.int(ids::SNDBUF, 4096);
    router.bytes(ids::SPILL_DIR, dir.as_os_str().as_encoded_bytes());
    router.int(ids::SPILL_KEEP, 1);
    let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
    (router, endpoint)
}

/// A client called x, which receives two messages before it reads.
fn client(context: &Context, endpoint: &str) -> Socket {
    let dealer = socket(context, Dealer);
    dealer.bytes(ids::ROUTING_ID, b"x");
    dealer.int(ids::RCVHWM, 2);
    dealer.int(ids::RCVBUF, 4096);
    dealer.int(ids::RECONNECT_IVL, -1);
    dealer.connect(endpoint).unwrap();
    dealer
}

/// Sends messages to x that are larger than what kernels keep.
fn send(router: &Socket, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let body = format!("{number:04}{}", ".".repeat(20_000));
        router.send(["x", &body], Wait::Dont).unwrap();
    }
}

fn number(dealer: &Socket) -> usize {
    let message = dealer.recv(Wait::Forever).unwrap();
    text(&message)[..4].parse().unwrap()
}

fn spilled(router: &Socket) -> usize {
    router.stats().unwrap().spilled as usize
}

/// What x gets in all: the messages on disk, then the new ones.
fn assert_gets(dealer: &Socket, kept: usize, sent: usize, new: usize) {
    let got: Vec<_> = (0..kept + new).map(|_| number(dealer)).collect();
    let expected: Vec<_> = (sent - kept..sent + new).collect();
    assert_eq!(got, expected);
}

/// What x gets after another connection has had the name: some messages were sent to that one meanwhile, and the first
/// one here shows where the others begin.
fn assert_gets_the_rest(dealer: &Socket, sent: usize) {
    let next = number(dealer);
    assert!(next < 40, "{next}");
    for expected in next + 1..sent {
        assert_eq!(number(dealer), expected);
    }
}

#[test]
fn a_client_gets_its_messages_while_one_of_its_own_is_unread() {
    let _watchdog = Watchdog::new("a_client_gets_its_messages_while_one_of_its_own_is_unread");
    let (context, dir) = (Context::new(), tempfile::tempdir().unwrap());
    let (router, endpoint) = keeping(&context, dir.path());
    let first = client(&context, &endpoint);
    first.put("hello");
    assert_eq!(router.take(), "x/hello");
    send(&router, 0..60);
    first.put("unread");
    until(|| router.stats().unwrap().queued_in == 1);
    first.close(None);
    until(|| router.peers() == 0);
    let kept = spilled(&router);
    assert!(kept > 20, "{kept}");
    let second = client(&context, &endpoint);
    until(|| router.peers() == 1);
    send(&router, 60..63);
    assert_gets(&second, kept, 60, 3);
    assert_eq!(spilled(&router), 0);
    assert_eq!(router.take(), "x/unread");
    assert_eq!(router.dropped(DropReason::HighWater), 0);
}

#[test]
fn a_client_that_waited_for_the_name_gets_the_messages() {
    let _watchdog = Watchdog::new("a_client_that_waited_for_the_name_gets_the_messages");
    let (context, dir) = (Context::new(), tempfile::tempdir().unwrap());
    let (router, endpoint) = keeping(&context, dir.path());
    let first = client(&context, &endpoint);
    first.put("hello");
    assert_eq!(router.take(), "x/hello");
    send(&router, 0..60);
    let second = client(&context, &endpoint);
    second.put("hello again");
    until(|| {
        router
            .stats()
            .unwrap()
            .peers
            .iter()
            .any(|peer| peer.waiting)
    });
    first.close(None);
    assert_eq!(router.take(), "x/hello again");
    assert_gets_the_rest(&second, 60);
    assert_eq!(spilled(&router), 0);
}

#[test]
fn a_client_that_takes_over_the_name_gets_the_messages() {
    let _watchdog = Watchdog::new("a_client_that_takes_over_the_name_gets_the_messages");
    let (context, dir) = (Context::new(), tempfile::tempdir().unwrap());
    let (router, endpoint) = keeping(&context, dir.path());
    router.int(ids::ROUTER_HANDOVER, 1);
    let first = client(&context, &endpoint);
    first.put("hello");
    assert_eq!(router.take(), "x/hello");
    send(&router, 0..60);
    let second = client(&context, &endpoint);
    second.put("hello again");
    assert_eq!(router.take(), "x/hello again");
    send(&router, 60..63);
    assert_gets_the_rest(&second, 63);
    assert_eq!(spilled(&router), 0);
}

#[test]
fn the_order_holds_over_several_connections() {
    let _watchdog = Watchdog::new("the_order_holds_over_several_connections");
    let (context, dir) = (Context::new(), tempfile::tempdir().unwrap());
    let (router, endpoint) = keeping(&context, dir.path());
    let mut sent = 0;
    for _ in 0..3 {
        let one = client(&context, &endpoint);
        one.put("hello");
        until(|| router.peers() == 1);
        send(&router, sent..sent + 30);
        sent += 30;
        // Its greeting is still unread when it leaves.
        one.close(None);
        until(|| router.peers() == 0);
    }
    let kept = spilled(&router);
    let last = client(&context, &endpoint);
    until(|| router.peers() == 1);
    send(&router, sent..sent + 3);
    let mut before = None;
    for _ in 0..kept + 3 {
        let next = number(&last);
        assert!(before < Some(next), "{next} after {before:?}");
        before = Some(next);
    }
    assert_eq!(before, Some(sent + 2));
}
