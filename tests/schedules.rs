//! Whole contexts in many schedules: threads, sockets, I/O threads and connections.
//!
//! ```text
//! RUSTFLAGS="--cfg zeroxide_shuttle" CARGO_TARGET_DIR=target/shuttle \
//!     cargo test -p zeroxide --profile quick --test schedules
//! ```
//!
//! `ZEROXIDE_FULL=1` runs 100,000 schedules of each scenario, `ZEROXIDE_SCHEDULES=N` another number. A failing schedule
//! prints its seed, and `ZEROXIDE_SEED=N` repeats it (name the scenario, too).
#![cfg(zeroxide_shuttle)]

mod scenarios;

use std::env;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeroxide::simulation::{Repeat, explore};

/// Quickly run in `make test`.
const FEW: u64 = 1000;
const MANY: u64 = 100_000;

#[test]
fn a_seed_repeats_its_schedule() {
    let _alone = alone();
    for scenario in [
        scenarios::lent::another_thread_sends,
        scenarios::ipc::connect_and_bind,
    ] {
        let digest = |seed| explore(scenario, Repeat::Seed(seed));
        let digests: Vec<u64> = (0..200).map(digest).collect();
        assert_eq!(digests, (0..200).map(digest).collect::<Vec<_>>());
        assert_ne!(digests[0], digests[1]);
    }
}

/// Scenarios run one after the other: side by side, they share the descriptors of the process, and a seed does not always
/// repeat its schedule.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check(scenario: fn()) {
    let _alone = alone();
    let number = |name| {
        env::var(name)
            .ok()
            .map(|text| text.parse().expect("a number"))
    };
    let count = number("ZEROXIDE_SCHEDULES");
    let many = env::var_os("ZEROXIDE_FULL").is_some();
    explore(
        scenario,
        match number("ZEROXIDE_SEED") {
            Some(seed) => Repeat::Seed(seed),
            None => Repeat::Times(count.unwrap_or(if many { MANY } else { FEW })),
        },
    );
}

macro_rules! scenarios {
    ($($module:ident: $($name:ident)*;)*) => {
        $(mod $module {
            $(#[test] fn $name() { super::check(super::scenarios::$module::$name); })*
        })*
    };
}

scenarios! {
    inproc:
        connect_and_bind
        both_directions
        one_of_two_senders_closes
        a_full_pipe
        a_pipe_full_of_bytes
        two_receivers
        poll_beside_receive
        coming_and_going;
    ipc:
        connect_and_bind
        both_directions
        a_full_connection
        a_connection_full_of_bytes
        term_lingers
        term_lingers_for_a_while
        a_peer_goes
        unbind_while_connecting
        poll_beside_receive;
    lent:
        round_trips
        another_thread_sends
        two_receivers
        another_thread_closes
        the_peer_closes
        the_peer_sends_more_than_is_awaited;
    ending:
        close_ends_receive_inproc
        shutdown_ends_receive_inproc
        term_ends_receive_inproc
        close_ends_receive_ipc
        shutdown_ends_receive_ipc
        term_ends_receive_ipc
        close_ends_send
        shutdown_ends_send
        term_ends_send
        term_in_two_threads
        term_within_beside_socket;
    pubsub:
        inproc
        over_ipc
        an_idle_subscriber;
}
