use super::*;
use crate::patterns::DoomReason;
use crate::patterns::rig::Rig;

/// The number of the next survey at a far end.
fn number(rig: &mut Rig, id: PipeId) -> Vec<u8> {
    let message = rig.far_recv_message(id).expect("a survey");
    rig.settle();
    message.head()[..4].to_vec()
}

fn answer(rig: &mut Rig, id: PipeId, number: &[u8], body: &str) {
    rig.far_send(id, [[number, body.as_bytes()].concat()]);
    rig.settle();
}

#[test]
fn every_peer_is_asked_and_may_answer() {
    let mut rig = Rig::new(&SURVEYOR);
    assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
    rig.send(["nobody?"]).unwrap();
    assert_eq!(rig.dropped(DropReason::NoPeer), 1);
    assert_eq!(rig.recv(), Err(ErrorKind::Again));
    let (a, b) = (rig.accept(""), rig.accept(""));
    rig.send(["?"]).unwrap();
    let (to_a, to_b) = (number(&mut rig, a), number(&mut rig, b));
    assert_eq!(to_a, to_b);
    answer(&mut rig, b, &to_b, "b");
    answer(&mut rig, a, &to_a, "a");
    assert!(rig.can_recv());
    let mut answers = rig.recv_all();
    answers.sort();
    assert_eq!(answers, ["a", "b"]);
    assert!(!rig.can_recv());
    let error = rig.send(["1", "2"]).unwrap_err().error;
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn answers_after_the_deadline_are_dropped() {
    let mut rig = Rig::new(&SURVEYOR);
    let id = rig.accept("");
    let before = clock::now();
    rig.send(["?"]).unwrap();
    let first = number(&mut rig, id);
    let due = rig.pattern.poll_timeout().unwrap();
    assert!(due >= before + SURVEY_TIMEOUT);
    answer(&mut rig, id, &first, "in time");
    rig.handle_timeout(due);
    answer(&mut rig, id, &first, "late");
    assert_eq!(rig.dropped(DropReason::Stale), 1);
    assert!(rig.can_recv());
    assert_eq!(rig.recv().unwrap(), ["in time"]);
    assert!(rig.can_recv(), "the end can be learned");
    assert_eq!(rig.recv(), Err(ErrorKind::TimedOut));
    assert!(!rig.can_recv());
    assert_eq!(rig.recv(), Err(ErrorKind::Fsm));
    rig.send(["again?"]).unwrap();
    assert!(!rig.can_recv());
    assert_eq!(rig.dropped(DropReason::Stale), 1);
}

#[test]
fn a_new_survey_replaces_the_last_one() {
    let mut rig = Rig::new(&SURVEYOR);
    let id = rig.accept("");
    rig.set(PatternOption::SurveyTimeout(None)).unwrap();
    rig.send(["1?"]).unwrap();
    assert_eq!(rig.pattern.poll_timeout(), None);
    let first = number(&mut rig, id);
    answer(&mut rig, id, &first, "1");
    rig.send(["2?"]).unwrap();
    let second = number(&mut rig, id);
    answer(&mut rig, id, &second, "2");
    rig.far_send(id, [&b"\0"[..]]);
    rig.settle();
    assert_eq!(rig.recv_all(), ["2"]);
    assert_eq!(rig.dropped(DropReason::Stale), 1);
    assert_eq!(rig.dropped(DropReason::Malformed), 1);
}

#[test]
fn each_context_gets_the_answers_to_its_own_survey() {
    let mut rig = Rig::new(&SURVEYOR);
    let id = rig.accept("");
    let mut numbers = Vec::new();
    for context in 0..2 {
        rig.pattern.enter(context);
        rig.send(["?"]).unwrap();
        numbers.push(number(&mut rig, id));
    }
    answer(&mut rig, id, &numbers[0], "to 0");
    answer(&mut rig, id, &numbers[1], "to 1");
    assert_eq!(rig.recv_all(), ["to 1"]);
    rig.pattern.enter(0);
    assert_eq!(rig.recv_all(), ["to 0"]);
    answer(&mut rig, id, &numbers[0], "more");
    rig.pattern.enter(1);
    assert!(!rig.can_recv());
    rig.pattern.end_context(&mut rig.pipes, 0);
    assert_eq!(rig.dropped(DropReason::Stale), 1);
}

/// The other context reads it, because its own survey goes on.
#[test]
fn a_late_answer_that_another_context_reads_is_dropped() {
    let mut rig = Rig::new(&SURVEYOR);
    let id = rig.accept("");
    rig.send(["over?"]).unwrap();
    let over = number(&mut rig, id);
    let due = rig.pattern.poll_timeout().unwrap();
    rig.set(PatternOption::SurveyTimeout(None)).unwrap();
    rig.pattern.enter(1);
    rig.send(["going on?"]).unwrap();
    let going_on = number(&mut rig, id);
    rig.handle_timeout(due);
    answer(&mut rig, id, &over, "late");
    answer(&mut rig, id, &going_on, "in time");
    assert_eq!(rig.recv_all(), ["in time"]);
    assert_eq!(rig.dropped(DropReason::Stale), 1);
    rig.pattern.enter(0);
    assert_eq!(rig.recv(), Err(ErrorKind::TimedOut));
}

#[test]
fn answers_that_no_context_takes_count_for_the_mark_and_stop_no_other_context() {
    let mut rig = Rig::with_hwm(&SURVEYOR, 4);
    let id = rig.accept("");
    let mut numbers = Vec::new();
    for context in 0..2 {
        rig.pattern.enter(context);
        rig.send(["?"]).unwrap();
        numbers.push(number(&mut rig, id));
    }
    for _ in 0..20 {
        answer(&mut rig, id, &numbers[0], "to 0");
    }
    assert_eq!(rig.pipes.get(id).unwrap().queued_in(), 2);
    assert_eq!(rig.dropped(DropReason::HighWater), 18);
    for _ in 0..20 {
        answer(&mut rig, id, &numbers[1], "to 1");
        assert_eq!(rig.recv().unwrap(), ["to 1"]);
    }
    rig.far_close(id);
    rig.settle();
    assert!(!rig.is_gone(id), "it has left answers");
    rig.pattern.enter(0);
    assert_eq!(rig.recv_all(), ["to 0", "to 0"]);
    assert!(rig.is_gone(id));
}

#[test]
fn a_peer_that_the_socket_leaves_takes_its_answers_along() {
    let mut rig = Rig::new(&SURVEYOR);
    let id = rig.accept("");
    rig.send(["?"]).unwrap();
    let number = number(&mut rig, id);
    answer(&mut rig, id, &number, "!");
    assert!(rig.can_recv());
    rig.pipes.doom(id, DoomReason::Requested);
    assert!(!rig.can_recv() || rig.is_gone(id));
    assert!(!rig.can_recv());
    assert_eq!(rig.dropped(DropReason::Refused), 1);
}

#[test]
fn a_peer_that_leaves_is_forgotten_without_a_survey() {
    let mut rig = Rig::new(&SURVEYOR);
    let id = rig.accept("");
    rig.far_send(id, ["unasked"]);
    rig.far_close(id);
    rig.settle();
    assert!(rig.is_gone(id));
}

#[test]
fn late_answers_are_dropped_without_another_survey() {
    let mut rig = Rig::with_hwm(&SURVEYOR, 4);
    let id = rig.accept("");
    rig.send(["?"]).unwrap();
    let first = number(&mut rig, id);
    let due = rig.pattern.poll_timeout().unwrap();
    rig.handle_timeout(due);
    for late in 1..20 {
        answer(&mut rig, id, &first, "late");
        assert_eq!(rig.dropped(DropReason::Stale), late);
        assert_eq!(rig.pipes.queued_in(id), 0);
    }
    assert_eq!(rig.recv(), Err(ErrorKind::TimedOut));
    answer(&mut rig, id, &first, "later");
    assert_eq!(rig.dropped(DropReason::Stale), 20);
}

#[test]
fn answers_for_a_context_that_has_ended_are_dropped() {
    let mut rig = Rig::new(&SURVEYOR);
    let id = rig.accept("");
    rig.pattern.enter(1);
    rig.send(["?"]).unwrap();
    let number = number(&mut rig, id);
    answer(&mut rig, id, &number, "unread");
    rig.pattern.end_context(&mut rig.pipes, 1);
    assert_eq!(rig.dropped(DropReason::Stale), 1);
    answer(&mut rig, id, &number, "late");
    assert_eq!(rig.dropped(DropReason::Stale), 2);
    assert_eq!(rig.pipes.queued_in(id), 0);
}

/// The I/O thread serves other sockets in between.
#[test]
fn many_unasked_messages_are_dropped_in_several_looks() {
    let mut rig = Rig::new(&SURVEYOR);
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

/// It is the alarm of another survey, or comes early.
#[test]
fn an_alarm_before_the_deadline_drops_no_answer() {
    let mut rig = Rig::with_hwm(&SURVEYOR, 4);
    let id = rig.accept("");
    rig.send(["?"]).unwrap();
    let number = number(&mut rig, id);
    for _ in 0..4 {
        answer(&mut rig, id, &number, "in time");
    }
    rig.handle_timeout(clock::now());
    assert_eq!(rig.recv_all().len(), 4);
}
