use super::*;
use crate::patterns::rig::{Rig, message, peer};
use zeroxide_proto::engine::PeerInfo;

fn name(frames: &[String]) -> String {
    frames[0].clone()
}

#[test]
fn replies_find_their_way_by_name() {
    let mut rig = Rig::new(&ROUTER);
    let a = rig.accept("alice");
    let b = rig.accept("bob");
    rig.far_send(a, ["", "hello"]);
    rig.far_send(b, ["x", "y"]);
    rig.settle();
    assert_eq!(
        rig.recv_from().unwrap(),
        (vec!["alice".into(), "".into(), "hello".into()], Some(a))
    );
    assert_eq!(rig.recv().unwrap(), ["bob", "x", "y"]);
    rig.send(["bob", "", "1"]).unwrap();
    rig.send(["alice", "2"]).unwrap();
    assert_eq!(rig.far_recv_all(a), ["2"]);
    assert_eq!(rig.far_recv_all(b), ["/1"]);
}

#[test]
fn nameless_peers_get_five_bytes_that_start_with_zero() {
    let mut rig = Rig::new(&ROUTER);
    let a = rig.accept("");
    let b = rig.accept("");
    for id in [a, b] {
        rig.far_send(id, ["hi"]);
    }
    rig.settle();
    let mut names = Vec::new();
    for (id, body) in [(a, "for a"), (b, "for b")] {
        let (got, from) = rig.recv_message().unwrap();
        assert_eq!(from, Some(id));
        let name = got.head().clone();
        assert_eq!((name.len(), name[0]), (5, 0));
        names.push(u32::from_be_bytes(name[1..].try_into().unwrap()));
        rig.send_message(message([&name[..], body.as_bytes()]))
            .unwrap();
        assert_eq!(rig.far_recv_all(id), [body]);
    }
    assert_eq!(names[1], names[0].wrapping_add(1));
}

#[test]
fn undeliverable_messages_are_dropped_and_counted() {
    let mut rig = Rig::with_hwm(&ROUTER, 1);
    let a = rig.accept("a");
    assert!(rig.can_send());
    rig.send(["nobody", "x"]).unwrap();
    assert_eq!(rig.dropped(DropReason::Unroutable), 1);
    rig.send(["a"]).unwrap();
    assert_eq!(rig.dropped(DropReason::Malformed), 1);
    rig.send(["a", "1"]).unwrap();
    rig.send(["a", "2"]).unwrap();
    assert_eq!(rig.dropped(DropReason::HighWater), 1);
    assert!(rig.can_send());
    assert_eq!(rig.far_recv_all(a), ["1"]);
    rig.far_close(a);
    rig.send(["a", "3"]).unwrap();
    assert_eq!(rig.dropped(DropReason::Unroutable), 2);
}

#[test]
fn mandatory_rejects_undeliverable_messages_and_returns_them() {
    let mut rig = Rig::with_hwm(&ROUTER, 1);
    rig.set(PatternOption::RouterMandatory(true)).unwrap();
    assert!(!rig.can_send());
    let rejected = rig.send(["nobody", "x"]).unwrap_err();
    assert_eq!(rejected.error.kind(), ErrorKind::HostUnreachable);
    assert_eq!(rejected.message, message(["nobody", "x"]));

    let a = rig.accept("a");
    let b = rig.accept("b");
    rig.send(["a", "1"]).unwrap();
    let rejected = rig.send(["a", "2"]).unwrap_err();
    assert_eq!(rejected.error.kind(), ErrorKind::Again);
    assert_eq!(rejected.message, message(["a", "2"]));
    assert!(rig.can_send(), "b has room");
    rig.send(["b", "1"]).unwrap();
    assert!(!rig.can_send());
    assert_eq!(rig.far_recv_all(b), ["1"]);
    assert!(rig.can_send());

    rig.far_close(a);
    rig.settle();
    let error = rig.send(["a", "3"]).unwrap_err().error;
    assert_eq!(error.kind(), ErrorKind::HostUnreachable);
    assert_eq!(rig.dropped_in_all(), 0);
}

#[test]
fn a_second_peer_of_the_same_name_waits_until_the_first_leaves() {
    let mut rig = Rig::new(&ROUTER);
    let peers = [(); 4].map(|()| rig.accept("x"));
    for id in peers {
        rig.far_send(id, ["from", &format!("{}", id.0 as u32)]);
    }
    rig.settle();
    for (at, id) in peers.into_iter().enumerate().take(3) {
        assert!(!rig.pattern.is_waiting(id));
        assert!(peers[at + 1..].iter().all(|id| rig.pattern.is_waiting(*id)));
        rig.send(["x", "1"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["1"]);
        assert_eq!(rig.recv_from().unwrap().1, Some(id));
        assert!(!rig.can_recv());
        rig.far_close(id);
        rig.settle();
    }
    assert!(peers[..3].iter().all(|id| rig.is_gone(*id)));
    assert_eq!(rig.dropped_in_all(), 0);
}

#[test]
fn messages_of_a_peer_that_never_got_the_name_are_counted() {
    let mut rig = Rig::new(&ROUTER);
    let first = rig.accept("x");
    let second = rig.accept("x");
    rig.far_send(second, ["never read"]);
    rig.settle();
    rig.far_close(second);
    rig.settle();
    assert_eq!(rig.dropped(DropReason::Refused), 1);
    assert!(rig.is_gone(second));
    rig.far_close(first);
    rig.settle();
    assert!(rig.is_empty());
}

#[test]
fn handover_gives_the_name_to_the_newcomer_and_back_when_it_leaves() {
    let mut rig = Rig::new(&ROUTER);
    rig.set(PatternOption::RouterHandover(true)).unwrap();
    let first = rig.accept("x");
    rig.far_send(first, ["unread"]);
    let second = rig.accept("x");
    let third = rig.accept("x");
    assert!(!rig.is_gone(first) && !rig.is_gone(second));
    rig.send(["x", "1"]).unwrap();
    assert_eq!(rig.far_recv_all(third), ["1"]);
    rig.far_send(third, ["2"]);
    rig.settle();
    assert_eq!(rig.recv().unwrap(), ["x", "2"]);
    assert!(!rig.can_recv());
    for (leaves, next) in [(third, second), (second, first)] {
        rig.far_close(leaves);
        rig.settle();
        rig.send(["x", "yours again"]).unwrap();
        assert_eq!(rig.far_recv_all(next), ["yours again"]);
    }
    assert_eq!(rig.recv().unwrap(), ["x", "unread"]);
    assert_eq!(rig.dropped_in_all(), 0);
}

#[test]
fn no_more_than_a_thousand_wait() {
    for handover in [false, true] {
        let mut rig = Rig::new(&ROUTER);
        rig.set(PatternOption::RouterHandover(handover)).unwrap();
        let first = rig.accept("x");
        for _ in 0..1000 {
            let next = rig.accept("x");
            assert!(!rig.is_gone(next));
        }
        let last = rig.accept("x");
        let waiting = |id: &&PipeId| rig.pattern.is_waiting(**id);
        assert_eq!(rig.pipes.ids().iter().filter(waiting).count(), 1000);
        if handover {
            assert!(rig.pattern.is_waiting(first) && !rig.pattern.is_waiting(last));
        } else {
            assert_eq!(rig.doomed(last), Some(DoomReason::DuplicateRoutingId));
        }
    }
}

#[test]
fn handover_happens_only_to_the_same_user() {
    let known = |user: &str| PeerInfo {
        user_id: Some(user.into()),
        ..peer("x")
    };
    let mut rig = Rig::new(&ROUTER);
    rig.set(PatternOption::RouterHandover(true)).unwrap();
    let alice = rig.accept_as(known("alice"));
    for thief in [known("mallory"), peer("x")] {
        let id = rig.accept_as(thief);
        assert!(rig.pattern.is_waiting(id));
    }
    assert!(!rig.pattern.is_waiting(alice));
    let again = rig.accept_as(known("alice"));
    assert!(rig.pattern.is_waiting(alice) && !rig.pattern.is_waiting(again));
    rig.far_close(again);
    rig.settle();
    assert!(!rig.pattern.is_waiting(alice));
}

#[test]
fn a_name_is_refused_to_the_owner_of_another_key() {
    let owner = |key: &'static [u8]| PeerInfo {
        key: Some(Bytes::from_static(key)),
        ..peer("x")
    };
    for handover in [false, true] {
        let mut rig = Rig::new(&ROUTER);
        rig.set(PatternOption::RouterHandover(handover)).unwrap();
        let first = rig.accept_as(owner(b"1"));
        let thieves = [owner(b"2"), peer("x"), owner(b"")].map(|thief| rig.accept_as(thief));
        let second = rig.accept_as(owner(b"1"));
        let holder = if handover { second } else { first };
        for (holder, left) in [
            (holder, true),
            (if handover { first } else { second }, false),
        ] {
            rig.send(["x", "secret"]).unwrap();
            assert_eq!(rig.far_recv_all(holder), ["secret"]);
            rig.far_close(holder);
            rig.settle();
            let waiting = thieves.iter().filter(|id| rig.pattern.is_waiting(**id));
            assert_eq!(waiting.count(), if left { 3 } else { 2 });
        }
        // No peer has the name any more, and it goes to the first or the last one that asked.
        let heir = thieves[if handover { 2 } else { 0 }];
        rig.send(["x", "hello"]).unwrap();
        assert_eq!(rig.far_recv_all(heir), ["hello"]);
        assert_eq!(rig.dropped_in_all(), 0);
    }
}

#[test]
fn a_name_that_the_application_chose_is_not_handed_over() {
    let mut rig = Rig::new(&ROUTER);
    rig.set(PatternOption::RouterHandover(true)).unwrap();
    rig.set(PatternOption::ConnectRoutingId(Bytes::from_static(b"x")))
        .unwrap();
    let chosen = rig.connect();
    rig.ready(chosen, "");
    let other = rig.accept("x");
    rig.send(["x", "1"]).unwrap();
    assert_eq!(rig.far_recv_all(chosen), ["1"]);
    assert!(rig.pattern.is_waiting(other));
    rig.far_close(chosen);
    rig.settle();
    // The name chosen for a NULL peer was protected by no identity.
    rig.send(["x", "2"]).unwrap();
    assert_eq!(rig.far_recv_all(other), ["2"]);
}

#[test]
fn a_waiting_peer_that_has_hung_up_leaves() {
    let mut rig = Rig::with_hwm(&ROUTER, 2);
    let holder = rig.accept("x");
    let waiting = rig.accept("x");
    for text in ["1", "2"] {
        rig.far_send(waiting, [text]);
    }
    rig.settle();
    assert_eq!(rig.dropped_in_all(), 0, "it may still get the name");
    rig.far_hang_up(waiting);
    assert_eq!(rig.dropped(DropReason::Refused), 2);
    // There is room now for what the connection has not delivered.
    rig.far_send(waiting, ["3"]);
    rig.settle();
    assert_eq!(rig.dropped(DropReason::Refused), 3);
    rig.far_close(waiting);
    rig.settle();
    assert!(rig.is_gone(waiting) && !rig.can_recv());
    rig.send(["x", "still here"]).unwrap();
    assert_eq!(rig.far_recv_all(holder), ["still here"]);
}

#[test]
fn a_peer_that_hangs_up_before_it_asks_for_a_used_name_does_not_wait() {
    let mut rig = Rig::with_hwm(&ROUTER, 2);
    rig.accept("x");
    let late = rig.connect();
    rig.far_send(late, ["1"]);
    rig.far_comes_and_goes(late, "x");
    assert_eq!(rig.dropped(DropReason::Refused), 1);
}

#[test]
fn a_peer_that_has_hung_up_gives_its_name_to_the_next_one() {
    for handover in [false, true] {
        let mut rig = Rig::with_hwm(&ROUTER, 2);
        rig.set(PatternOption::RouterHandover(handover)).unwrap();
        rig.set(PatternOption::RouterMandatory(true)).unwrap();
        let first = rig.accept("x");
        for text in ["1", "2"] {
            rig.far_send(first, [text]);
        }
        rig.far_hang_up(first);
        assert!(!rig.can_send(), "no peer is left");
        let error = rig.send(["x", "lost?"]).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::HostUnreachable);
        let second = rig.accept("x");
        rig.send(["x", "hello again"]).unwrap();
        assert_eq!(rig.far_recv_all(second), ["hello again"]);
        assert_eq!(rig.recv().unwrap(), ["x", "1"]);
        rig.far_send(first, ["3"]);
        rig.far_close(first);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["x", "2"]);
        assert_eq!(rig.recv().unwrap(), ["x", "3"]);
        rig.settle();
        assert!(rig.is_gone(first) && !rig.pattern.is_waiting(second));
        assert_eq!(rig.dropped_in_all(), 0);
    }
}

#[test]
fn a_peer_to_which_the_socket_connects_keeps_its_name_when_it_hangs_up() {
    let mut rig = Rig::with_hwm(&ROUTER, 2);
    let peer = rig.connect();
    rig.ready(peer, "x");
    rig.far_hang_up(peer);
    rig.send(["x", "for later"]).unwrap();
    let other = rig.accept("x");
    assert!(rig.pattern.is_waiting(other));
    rig.ready(peer, "x");
    assert_eq!(rig.far_recv_all(peer), ["for later"]);
    assert_eq!(rig.dropped_in_all(), 0);
}

#[test]
fn a_peer_that_returns_gets_its_name_even_while_its_last_messages_are_unread() {
    let mut rig = Rig::new(&ROUTER);
    let first = rig.accept("x");
    rig.far_send(first, ["last words"]);
    rig.far_close(first);
    // Before the socket is notified of the loss.
    let second = rig.accept_at_once("x");
    assert!(!rig.is_gone(second));
    rig.send(["x", "welcome back"]).unwrap();
    assert_eq!(rig.far_recv_all(second), ["welcome back"]);
    assert_eq!(rig.recv().unwrap(), ["x", "last words"]);
    assert!(!rig.can_recv());
    rig.settle();
    assert!(rig.is_gone(first));
    rig.send(["x", "still there?"]).unwrap();
    assert_eq!(rig.far_recv_all(second), ["still there?"]);
}

#[test]
fn names_that_peers_may_not_have_are_refused() {
    let mut rig = Rig::new(&ROUTER);
    let nameless = rig.accept("");
    rig.far_send(nameless, ["hi"]);
    rig.settle();
    let name = |rig: &mut Rig| rig.recv_message().unwrap().0.head().to_bytes();
    let generated = name(&mut rig);
    for bad in [&generated[..], &[b'x'; 256]] {
        let id = rig.accept_as(peer(bad));
        assert_eq!(rig.doomed(id), Some(DoomReason::InvalidRoutingId));
    }
    for good in [&[b'x'; 255][..], b"\0", b"\0\0", &[0; 16]] {
        let id = rig.accept_as(peer(good));
        rig.far_send(id, ["hi"]);
        rig.settle();
        assert_eq!(name(&mut rig), good);
    }
}

#[test]
fn a_connecting_pipe_is_anonymous_until_it_is_ready() {
    let mut rig = Rig::new(&ROUTER);
    let id = rig.connect();
    rig.far_send(id, ["too early"]);
    rig.settle();
    assert!(!rig.can_recv());
    rig.ready(id, "server");
    assert_eq!(rig.recv().unwrap(), ["server", "too early"]);
}

#[test]
fn a_reconnected_peer_keeps_its_name_or_brings_another() {
    let mut rig = Rig::new(&ROUTER);
    let id = rig.connect();
    rig.ready(id, "one");
    rig.disconnected(id);
    rig.send(["one", "queued"]).unwrap();
    rig.ready(id, "one");
    rig.send(["one", "sent"]).unwrap();
    assert_eq!(rig.far_recv_all(id), ["queued", "sent"]);
    rig.disconnected(id);
    rig.ready(id, "two");
    rig.send(["one", "x"]).unwrap();
    assert_eq!(rig.dropped(DropReason::Unroutable), 1);
    rig.send(["two", "y"]).unwrap();
    assert_eq!(rig.far_recv_all(id), ["y"]);
    // Without a name of its own, it gets an automatic one and keeps it.
    let mut names = Vec::new();
    for _ in 0..2 {
        rig.disconnected(id);
        rig.ready(id, "");
        rig.far_send(id, ["hi"]);
        rig.settle();
        names.push(name(&rig.recv().unwrap()));
    }
    assert_eq!(names[0], names[1]);
    assert!(names[0].starts_with("\\x00"));
}

#[test]
fn the_application_may_name_the_peer_of_its_next_connect() {
    let mut rig = Rig::new(&ROUTER);
    let choose = |id: &'static [u8]| PatternOption::ConnectRoutingId(Bytes::from_static(id));
    rig.set(choose(b"chosen")).unwrap();
    // A peer that connects meanwhile neither gets the name nor can take it.
    let other = rig.accept("other");
    let thief = rig.accept("chosen");
    assert_eq!(rig.doomed(thief), Some(DoomReason::DuplicateRoutingId));
    let id = rig.connect();
    rig.send(["chosen", "early"]).unwrap();
    rig.ready(id, "its own idea");
    rig.send(["chosen", "late"]).unwrap();
    assert_eq!(rig.far_recv_all(id), ["early", "late"]);
    rig.far_send(id, ["hi"]);
    rig.settle();
    assert_eq!(rig.recv().unwrap(), ["chosen", "hi"]);
    assert_eq!(rig.set(choose(b"chosen")), Err(ErrorKind::AddressInUse));
    assert_eq!(rig.set(choose(b"")), Err(ErrorKind::Invalid));
    assert!(rig.far_recv_all(other).is_empty());
    // Only once.
    let next = rig.connect();
    rig.ready(next, "");
    rig.far_send(next, ["hi"]);
    rig.settle();
    assert!(rig.recv().unwrap()[0].starts_with("\\x00"));
}

#[test]
fn peers_that_come_and_go_leave_nothing_behind() {
    let mut rig = Rig::new(&ROUTER);
    for round in 0..1000 {
        let id = rig.accept(&format!("peer {}", round % 7));
        rig.far_send(id, ["x"]);
        rig.settle();
        assert_eq!(name(&rig.recv().unwrap()), format!("peer {}", round % 7));
        rig.far_close(id);
        rig.settle();
    }
    assert!(rig.is_empty());
    assert_eq!(rig.dropped_in_all(), 0);
}

#[test]
fn room_found_by_another_check_makes_a_peer_writable() {
    let mut rig = Rig::with_hwm(&ROUTER, 100);
    rig.set(PatternOption::RouterMandatory(true)).unwrap();
    let id = rig.accept("a");
    let body = vec![0u8; 256 << 10];
    let msg = || crate::patterns::rig::message([&b"a"[..], &body[..]]);
    for _ in 0..5 {
        rig.send_message(msg()).unwrap();
    }
    for _ in 0..3 {
        rig.far_recv(id).unwrap();
    }
    while rig.send_message(msg()).is_ok() {}
    rig.far_recv(id).unwrap();
    rig.settle();
    assert!(!rig.can_send());
    for _ in 0..3 {
        rig.far_recv(id).unwrap();
        rig.settle();
    }
    rig.send_message(msg()).unwrap();
    rig.far_recv_all(id);
    rig.settle();
    assert!(rig.can_send());
}
