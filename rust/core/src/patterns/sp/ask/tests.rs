use super::*;
use crate::patterns::rig::Rig;

/// The next request at a far end: its header and its body.
fn request(rig: &mut Rig, id: PipeId) -> (Vec<u8>, String) {
    let message = rig.far_recv_message(id).expect("a request");
    rig.settle();
    let whole: Vec<u8> = message.iter().flat_map(|frame| frame.to_vec()).collect();
    let (header, body) = whole.split_at(4);
    assert_ne!(header[0] & 0x80, 0);
    (header.to_vec(), String::from_utf8(body.to_vec()).unwrap())
}

fn reply(rig: &mut Rig, id: PipeId, header: &[u8], body: &str) {
    rig.far_send(id, [[header, body.as_bytes()].concat()]);
    rig.settle();
}

#[test]
fn only_the_reply_with_the_number_of_the_request_counts() {
    let mut rig = Rig::new(&REQ);
    assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
    assert_eq!(rig.send(["x"]).unwrap_err().error.kind(), ErrorKind::Again);
    let id = rig.accept("");
    rig.send(["1"]).unwrap();
    let (first, body) = request(&mut rig, id);
    assert_eq!(body, "1");
    assert!(!rig.can_recv());
    assert_eq!(rig.recv(), Err(ErrorKind::Again));
    for malformed in [&b""[..], b"\0\0\0\x01", b"\x80"] {
        rig.far_send(id, [malformed]);
    }
    reply(&mut rig, id, b"\xff\xff\xff\xff", "other number");
    assert!(!rig.can_recv());
    assert_eq!(rig.dropped(DropReason::Malformed), 3);
    assert_eq!(rig.dropped(DropReason::Stale), 1);
    reply(&mut rig, id, &first, "reply");
    reply(&mut rig, id, &first, "repeated");
    assert_eq!(rig.recv_from().unwrap(), (vec!["reply".into()], Some(id)));
    assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
    rig.send(["2"]).unwrap();
    let (second, _) = request(&mut rig, id);
    assert_ne!(first, second);
    assert!(!rig.can_recv());
    assert_eq!(rig.dropped(DropReason::Stale), 2);
}

#[test]
fn a_new_request_replaces_the_last_one() {
    let mut rig = Rig::new(&REQ);
    let (a, b) = (rig.accept(""), rig.accept(""));
    rig.send(["1"]).unwrap();
    rig.send(["2"]).unwrap();
    assert_eq!(rig.dropped(DropReason::Stale), 1);
    let (first, _) = request(&mut rig, a);
    let (second, _) = request(&mut rig, b);
    reply(&mut rig, a, &first, "late");
    assert!(!rig.can_recv());
    reply(&mut rig, b, &second, "reply");
    assert_eq!(rig.recv().unwrap(), ["reply"]);
    let error = rig.send(["1", "2"]).unwrap_err().error;
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn a_request_is_sent_again_when_its_time_has_passed() {
    let mut rig = Rig::new(&REQ);
    let (a, b) = (rig.accept(""), rig.accept(""));
    let ivl = Duration::from_secs(5);
    rig.set(PatternOption::ResendIvl(Some(ivl))).unwrap();
    let before = clock::now();
    rig.send(["?"]).unwrap();
    let first = request(&mut rig, a);
    let due = rig.pattern.poll_timeout().unwrap();
    assert!(due >= before + ivl);
    rig.handle_timeout(due - Duration::from_millis(1));
    assert!(rig.far_recv_message(b).is_none());
    rig.handle_timeout(due);
    assert_eq!(request(&mut rig, b), first);
    assert_eq!(rig.pattern.poll_timeout(), Some(due + ivl));
    // Either peer may reply.
    reply(&mut rig, a, &first.0, "!");
    assert_eq!(rig.recv().unwrap(), ["!"]);
    assert_eq!(rig.pattern.poll_timeout(), None);
    rig.set(PatternOption::ResendIvl(None)).unwrap();
    rig.send(["?"]).unwrap();
    assert_eq!(rig.pattern.poll_timeout(), None);
}

#[test]
fn a_request_moves_on_when_its_peer_leaves() {
    let mut rig = Rig::new(&REQ);
    let a = rig.accept("");
    rig.send(["?"]).unwrap();
    let first = request(&mut rig, a);
    rig.far_close(a);
    rig.settle();
    assert!(rig.is_gone(a));
    let b = rig.accept("");
    assert_eq!(request(&mut rig, b), first);
    reply(&mut rig, b, &first.0, "!");
    rig.far_close(b);
    rig.settle();
    assert_eq!(rig.recv().unwrap(), ["!"]);
}

#[test]
fn a_request_is_sent_again_over_the_next_connection_once() {
    let mut rig = Rig::new(&REQ);
    let id = rig.connect();
    rig.send(["early"]).unwrap();
    rig.ready(id, "");
    rig.disconnected(id);
    // It is still in the queue.
    let due = rig.pattern.poll_timeout().unwrap();
    rig.handle_timeout(due);
    let first = request(&mut rig, id);
    assert!(rig.far_recv_message(id).is_none());
    rig.ready(id, "");
    rig.disconnected(id);
    assert!(rig.far_recv_message(id).is_none());
    rig.ready(id, "");
    assert_eq!(request(&mut rig, id), first);
    assert!(rig.far_recv_message(id).is_none());
}

#[test]
fn a_request_that_waits_for_an_absent_peer_goes_to_the_next_one_that_connects() {
    let mut rig = Rig::new(&REQ);
    let (absent, late) = (rig.connect(), rig.connect());
    rig.send(["?"]).unwrap();
    let due = rig.pattern.poll_timeout().unwrap();
    rig.handle_timeout(due);
    assert!(rig.far_recv_message(late).is_none());
    rig.ready(late, "");
    let asked = request(&mut rig, late);
    // The copy for the absent peer is not sent once more.
    assert_eq!(request(&mut rig, absent), asked);
    assert!(rig.far_recv_message(absent).is_none());
    reply(&mut rig, late, &asked.0, "!");
    assert_eq!(rig.recv().unwrap(), ["!"]);
}

#[test]
fn a_request_in_the_queue_of_a_lost_peer_goes_to_a_connected_one() {
    let mut rig = Rig::new(&REQ);
    let (lost, other) = (rig.accept(""), rig.accept(""));
    rig.send(["?"]).unwrap();
    rig.disconnected(lost);
    assert_eq!(request(&mut rig, other), request(&mut rig, lost));
}

#[test]
fn connected_peers_come_first() {
    let mut rig = Rig::with_hwm(&REQ, 1);
    let (absent, there) = (rig.connect(), rig.accept(""));
    for number in 0..3 {
        rig.send([format!("{number}")]).unwrap();
        assert_eq!(request(&mut rig, there).1, format!("{number}"));
    }
    rig.send(["3"]).unwrap();
    assert!(rig.can_send(), "the absent peer has room");
    rig.send(["4"]).unwrap();
    assert!(!rig.can_send());
    assert_eq!(request(&mut rig, absent).1, "4");
    assert_eq!(request(&mut rig, there).1, "3");
    assert_eq!(request(&mut rig, there).1, "4");
}

#[test]
fn each_context_gets_the_reply_to_its_own_request() {
    let mut rig = Rig::new(&REQ);
    let id = rig.accept("");
    let mut headers = Vec::new();
    for context in 0..3 {
        rig.pattern.enter(context);
        rig.send([format!("{context}")]).unwrap();
        headers.push(request(&mut rig, id).0);
    }
    for context in [2, 0, 1] {
        reply(&mut rig, id, &headers[context], &format!("{context}"));
    }
    for context in [1, 0] {
        rig.pattern.enter(context);
        assert!(rig.can_recv());
        assert_eq!(rig.recv().unwrap(), [format!("{context}")]);
        assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
    }
    rig.pattern.end_context(&mut rig.pipes, 2);
    assert_eq!(rig.dropped(DropReason::Stale), 1);
    rig.pattern.enter(2);
    assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
    assert_eq!(rig.pattern.poll_timeout(), None);
}

#[test]
fn large_requests_are_shared_and_small_ones_copied() {
    for (len, shares) in [(COPY_MAX, false), (COPY_MAX + 1, true)] {
        let message = Message::from(&vec![7; len][..]);
        let is_same = kept(&message).head().as_ptr() == message.head().as_ptr();
        assert_eq!(is_same, shares);
    }
}

#[test]
fn replies_that_no_request_waits_for_are_dropped_without_another_request() {
    let mut rig = Rig::with_hwm(&REQ, 4);
    let id = rig.accept("");
    rig.send(["?"]).unwrap();
    let (header, _) = request(&mut rig, id);
    reply(&mut rig, id, &header, "!");
    for repeated in 1..20 {
        reply(&mut rig, id, &header, "again");
        assert_eq!(rig.dropped(DropReason::Stale), repeated);
    }
    assert_eq!(rig.recv().unwrap(), ["!"]);
    reply(&mut rig, id, &header, "late");
    assert_eq!(rig.dropped(DropReason::Stale), 20);
    assert_eq!(rig.pipes.queued_in(id), 0);
}

/// The I/O thread serves other sockets in between.
#[test]
fn many_unasked_replies_are_dropped_in_several_looks() {
    let mut rig = Rig::new(&REQ);
    let id = rig.accept("");
    for _ in 0..LOOK_MAX + 10 {
        rig.far_send(id, [b"\x80\0\0\x01"]);
    }
    rig.settle();
    assert_eq!(rig.dropped(DropReason::Stale), LOOK_MAX as u64);
    let due = rig.pattern.poll_timeout().unwrap();
    rig.handle_timeout(due);
    assert_eq!(rig.dropped(DropReason::Stale), LOOK_MAX as u64 + 10);
    assert_eq!(rig.pattern.poll_timeout(), None);
}

/// The two ways in which a peer leaves.
const LEAVES: [fn(&mut Rig, PipeId); 2] = [
    |rig, id| rig.disconnected(id),
    |rig, id| {
        rig.far_close(id);
        rig.settle();
    },
];

#[test]
fn a_reply_counts_however_much_its_peer_sent_before_it_left() {
    for leave in LEAVES {
        let mut rig = Rig::new(&REQ);
        let (asked, other) = (rig.accept(""), rig.accept(""));
        rig.send(["?"]).unwrap();
        let (header, _) = request(&mut rig, asked);
        let stale = 3 * LOOK_MAX;
        for _ in 0..stale {
            rig.far_send(asked, [b"\xff\xff\xff\xff late"]);
        }
        rig.far_send(asked, [[&header, &b"!"[..]].concat()]);
        leave(&mut rig, asked);
        assert!(rig.far_recv_message(other).is_none(), "asked again");
        assert_eq!(rig.recv().unwrap(), ["!"]);
        assert_eq!(rig.dropped(DropReason::Stale), stale as u64);
    }
}

#[test]
fn no_more_than_a_part_of_what_others_sent_is_read_when_a_peer_leaves() {
    for leave in LEAVES {
        let mut rig = Rig::new(&REQ);
        let (gone, other) = (rig.accept(""), rig.accept(""));
        // One look is for the message that came, the other one for the peer that left.
        for _ in 0..2 * LOOK_MAX + 10 {
            rig.far_send(other, [b"\xff\xff\xff\xff late"]);
        }
        leave(&mut rig, gone);
        assert_eq!(rig.pipes.queued_in(other), 10);
        let due = rig.pattern.poll_timeout().expect("a look at the rest");
        rig.handle_timeout(due);
        assert_eq!(rig.pipes.queued_in(other), 0);
    }
}
