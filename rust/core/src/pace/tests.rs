use super::*;

const US: Duration = Duration::from_micros(1);

/// A connection that last wrote and looked long ago.
fn rested(now: Instant) -> Writing {
    Writing::new(now - Duration::from_secs(1))
}

#[test]
fn a_thread_writes_after_a_gap_and_leaves_a_stream_of_messages_to_the_io_thread() {
    let now = Instant::now();
    let mut writing = rested(now);
    assert!(writing.may_write_now(now, true));
    writing.note_write(now);
    assert!(!writing.may_write_now(now + INLINE_GAP - US, true));
    assert!(writing.may_write_now(now + INLINE_GAP, true));
}

#[test]
fn an_answer_is_written_at_once_unless_something_waits_before_it() {
    let now = Instant::now();
    let mut writing = rested(now);
    writing.note_write(now);
    writing.note_message();
    assert!(writing.may_write_now(now + US, true));
    assert!(!writing.may_write_now(now + US, false));
    writing.note_message();
    assert!(!writing.may_write_now(now + US, true), "two questions");
}

#[test]
fn a_write_looks_for_a_hang_up_unless_a_read_has_just_looked() {
    let now = Instant::now();
    let mut writing = rested(now);
    assert!(writing.must_look_first(now));
    writing.note_look(now);
    assert!(!writing.must_look_first(now + BLIND - US));
    assert!(writing.must_look_first(now + BLIND));
}

#[test]
fn a_thread_that_writes_now_and_then_owes_nothing() {
    let mut now = Instant::now();
    let mut allowance = Allowance::new(now);
    for _ in 0..1000 {
        now += 100 * US;
        allowance = allowance.at(now);
        assert!(allowance.debt < CREDIT);
        now += 5 * US;
        allowance = allowance.after(now);
    }
}

#[test]
fn a_thread_that_does_nothing_else_soon_has_to_stop() {
    let start = Instant::now();
    let mut now = start;
    let mut allowance = Allowance::new(now);
    let mut written = Duration::ZERO;
    for _ in 0..100_000 {
        now += US / 10;
        if allowance.at(now).debt < CREDIT {
            allowance = allowance.at(now);
            now += 5 * US;
            allowance = allowance.after(now);
            written += 5 * US;
        }
    }
    assert!(written <= (now - start) / SHARE + CREDIT, "{written:?}");
}

#[test]
fn an_interruption_is_forgiven_in_the_end() {
    let now = Instant::now();
    let allowance = Allowance::new(now).after(now + 1_000_000 * US);
    assert_eq!(allowance.debt, DEBT_MAX);
    assert!(allowance.at(now + 1_050_000 * US).debt < CREDIT);
}

#[test]
fn a_waiting_thread_reads_single_messages_and_runs_that_it_only_receives() {
    let waiting = Waiting::default();
    let mut rhythm = Rhythm::default();
    rhythm.note_received();
    rhythm.note_sent();
    assert!(waiting.may_read_now(&rhythm));
    assert!(rhythm.awaits_answer());
    rhythm.note_run(2);
    assert!(!waiting.may_read_now(&rhythm));
    assert!(!rhythm.awaits_answer());
    let mut rhythm = Rhythm::default();
    rhythm.note_run(2);
    assert!(waiting.may_read_now(&rhythm));
    waiting.note_read(false);
    assert!(!waiting.may_read_now(&rhythm));
    assert!(waiting.may_read_now(&rhythm));
}

#[test]
fn a_message_that_is_there_at_once_is_no_reason_to_spin_for_longer() {
    let waiting = Waiting::default();
    waiting.spinning.was_useless();
    assert!(!waiting.may_spin_now(true));
    assert!(waiting.spin(|| true));
    waiting.spinning.was_useless();
    let skipped = (0..).take_while(|_| !waiting.may_spin_now(true)).count();
    assert_eq!(skipped, 3, "the first useless try is not forgiven");
    let mut looks = 0;
    if waiting.spin(|| {
        looks += 1;
        looks == 2
    }) {
        waiting.spinning.was_useless();
        assert!(!waiting.may_spin_now(true));
        assert!(waiting.may_spin_now(true));
    }
}

#[test]
fn a_thread_that_says_nothing_does_not_spin() {
    assert!(!Waiting::default().may_spin_now(false));
}

#[test]
fn useless_spinning_ends() {
    let waiting = Waiting::default();
    assert!(!waiting.spin(|| false));
    assert!(!waiting.may_spin_now(true));
}

/// The number of chances that are skipped before the next try.
fn skipped(patience: &Patience) -> u32 {
    (0..).take_while(|_| !patience.is_worth_it()).count() as u32
}

#[test]
fn useless_tries_become_rare() {
    let patience = Patience::default();
    assert_eq!(skipped(&patience), 0);
    for expected in [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, SKIPPED_MAX] {
        patience.was_useless();
        assert_eq!(skipped(&patience), expected);
    }
    patience.paid_off();
    patience.was_useless();
    assert_eq!(skipped(&patience), 1);
}

#[test]
fn tries_that_go_well_make_up_for_it_bit_by_bit() {
    let patience = Patience::default();
    for _ in 0..4 {
        patience.was_useless();
        skipped(&patience);
    }
    (0..10).for_each(|_| patience.went_well());
    patience.was_useless();
    assert_eq!(skipped(&patience), 2 * (15 - 10) + 1);
    (0..20).for_each(|_| patience.went_well());
    patience.was_useless();
    assert_eq!(skipped(&patience), 1);
}
