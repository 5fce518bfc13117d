//! The scenarios under every interleaving that loom can find, with chunks of two and three items.
//!
//! ```text
//! RUSTFLAGS="--cfg zeroxide_loom" CARGO_TARGET_DIR=target/loom \
//!     cargo test -p zeroxide-queue --test loom --release
//! ```
#![cfg(zeroxide_loom)]

mod scenarios;

use scenarios::{driving, waiting};
use zeroxide_queue::loan::Event::{Recall, Revoke};
use zeroxide_queue::parker::On;

/// Runs a scenario under every interleaving.
fn check_all(scene: impl Fn() + Send + Sync + 'static) {
    loom::model::Builder::new().check(scene);
}

/// Runs a scenario under every interleaving with at most this many preemptions. For longer scenarios, which have too
/// many interleavings: most concurrency bugs need only two preemptions.
fn check_up_to(preemptions: usize, scene: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(scene);
}

#[test]
fn everything_arrives_in_order_flushed_one_by_one() {
    check_up_to(2, || scenarios::everything_arrives_in_order(5, 1));
}

#[test]
fn everything_arrives_in_order_flushed_in_batches() {
    check_up_to(3, || scenarios::everything_arrives_in_order(7, 3));
}

#[test]
fn a_recycled_chunk_is_filled_after_it_was_read() {
    check_all(|| scenarios::a_recycled_chunk_is_filled_after_it_was_read(2));
}

#[test]
fn one_wake_per_sleep() {
    check_all(|| scenarios::one_wake_per_sleep(2));
}

#[test]
fn one_wake_per_sleep_again_and_again() {
    check_up_to(3, || scenarios::one_wake_per_sleep(4));
}

#[test]
fn a_look_leaves_the_wake_to_a_sleeper() {
    check_up_to(3, scenarios::a_look_leaves_the_wake_to_a_sleeper);
}

#[test]
fn rollback_is_invisible() {
    check_all(|| scenarios::rollback_is_invisible(1, 4));
}

#[test]
fn rollback_to_a_seam_is_invisible() {
    check_all(|| scenarios::rollback_is_invisible(2, 3));
}

#[test]
fn both_ends_drop_the_remaining_values() {
    check_all(|| scenarios::both_ends_drop_the_remaining_values(4, 2));
}

#[test]
fn both_ends_drop_the_remaining_values_after_a_recycled_chunk() {
    check_up_to(3, || scenarios::both_ends_drop_the_remaining_values(7, 5));
}

#[test]
fn writers_share_a_queue() {
    check_all(|| scenarios::writers_share_a_queue(1));
}

#[test]
fn writers_share_a_queue_again_and_again() {
    check_up_to(2, || scenarios::writers_share_a_queue(3));
}

#[test]
fn writers_share_a_doorbell() {
    check_up_to(3, || scenarios::writers_share_a_doorbell(1));
}

#[test]
fn writers_share_a_doorbell_again_and_again() {
    check_up_to(2, || scenarios::writers_share_a_doorbell(2));
}

#[test]
fn a_rung_bell_brings_the_news() {
    check_all(scenarios::a_rung_bell_brings_the_news);
}

#[test]
fn a_thread_learns_about_all_news() {
    check_all(|| waiting::threads_learn_about_all_news(&[On::Word], 1, 1));
    check_all(|| waiting::threads_learn_about_all_news(&[On::Descriptors], 1, 1));
    check_up_to(3, || {
        waiting::threads_learn_about_all_news(&[On::Word], 1, 2)
    });
}

#[test]
fn threads_learn_about_all_news() {
    check_up_to(2, || {
        waiting::threads_learn_about_all_news(&[On::Word, On::Descriptors], 1, 1)
    });
}

#[test]
fn a_thread_learns_about_the_news_of_two() {
    check_up_to(2, || {
        waiting::threads_learn_about_all_news(&[On::Word], 2, 1)
    });
    check_up_to(2, || {
        waiting::threads_learn_about_all_news(&[On::Descriptors], 2, 1)
    });
}

#[test]
fn a_thread_waits_for_two_things() {
    check_up_to(2, || waiting::a_thread_waits_for_two_things(On::Word, 1));
    check_up_to(2, || {
        waiting::a_thread_waits_for_two_things(On::Descriptors, 1)
    });
}

#[test]
fn a_late_notice_does_no_harm() {
    check_up_to(3, || {
        waiting::a_late_notice_does_no_harm(On::Word, On::Word)
    });
    check_up_to(3, || {
        waiting::a_late_notice_does_no_harm(On::Word, On::Descriptors)
    });
    check_up_to(3, || {
        waiting::a_late_notice_does_no_harm(On::Descriptors, On::Word)
    });
}

#[test]
fn tasks_learn_about_all_news() {
    check_all(|| waiting::tasks_learn_about_all_news(1, false));
    check_up_to(2, || waiting::tasks_learn_about_all_news(1, true));
}

#[test]
fn watchers_are_raised_while_they_watch() {
    check_up_to(3, || waiting::watchers_are_raised_while_they_watch(1));
    check_up_to(2, || waiting::watchers_are_raised_while_they_watch(2));
}

#[test]
fn three_threads_drive_a_connection_that_is_returned_each_time() {
    check_up_to(2, || {
        driving::messages_are_received_by_either_reader(1, false, &[Recall])
    });
    check_up_to(2, || {
        driving::messages_are_received_by_either_reader(1, false, &[Revoke])
    });
}

#[test]
fn three_threads_drive_a_connection_that_is_paused() {
    check_up_to(2, || {
        driving::messages_are_received_by_either_reader(2, true, &[Recall])
    });
    check_up_to(2, || {
        driving::messages_are_received_by_either_reader(2, true, &[Revoke])
    });
}

#[test]
fn urgent_posts_are_served_by_their_poster_or_by_the_holder() {
    check_all(|| scenarios::urgent_posts_are_served(&[&[true]], 1, [true, false]));
    check_up_to(3, || {
        scenarios::urgent_posts_are_served(&[&[true]], 1, [true, true])
    });
}

#[test]
fn urgent_posts_of_two_posters_are_served() {
    check_up_to(3, || {
        scenarios::urgent_posts_are_served(&[&[true], &[true]], 1, [true, false]);
    });
}

#[test]
fn posts_are_served_in_the_order_of_their_poster() {
    check_up_to(2, || {
        scenarios::urgent_posts_are_served(&[&[false, true], &[true, false]], 1, [true, true]);
    });
}

#[test]
fn an_end_that_leaves_publishes_its_work() {
    check_all(scenarios::an_end_that_leaves_publishes_its_work);
}

#[test]
fn mailboxes_drop_the_remaining_values() {
    check_all(|| scenarios::mailboxes_drop_the_remaining_values(2));
}

#[test]
fn a_lent_thing_is_not_forgotten_while_it_is_looked_for() {
    use zeroxide_queue::loan::Event::{Look, Recall};
    check_up_to(3, || {
        scenarios::a_lent_thing_is_not_forgotten(2, 2, &[Look, Look, Recall])
    });
}

#[test]
fn a_lent_thing_is_not_forgotten_when_it_is_taken_back() {
    use zeroxide_queue::loan::Event::{Look, Revoke};
    check_up_to(3, || {
        scenarios::a_lent_thing_is_not_forgotten(2, 2, &[Look, Revoke, Look])
    });
}
