//! Runs a scenario in many schedules.

use std::cell::Cell;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use super::schedule::Seeds;
use super::{WORLD, serve};

/// Deep enough for the core, whose I/O threads decode and route in one call.
const STACK: usize = 512 << 10;
/// The switches after which a schedule counts as one that never ends.
const STEPS: usize = 2_000_000;

std::thread_local! {
    /// The panics in this thread of the system. I/O threads survive those of their handlers.
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// By how many the descriptors may grow over many schedules, since threads of the program may keep some.
const DESCRIPTORS: usize = 20;

/// Which schedules to run.
#[derive(Clone, Copy, Debug)]
pub enum Repeat {
    /// This many, with the seeds from 0 on.
    Times(u64),
    /// From the first of these seeds on, as many as the second says.
    Range(u64, u64),
    /// The one with this seed.
    Seed(u64),
}

/// Runs `scenario` in many schedules. It may use [`spawn`](super::spawn), and everything that it starts has to end. Returns
/// the [digest](super::digest()) of the last schedule, which is the same for the same seed.
///
/// # Panics
/// If a thread panics or waits forever; the seed is printed. If many descriptors stay open.
pub fn explore(scenario: fn(), repeat: Repeat) -> u64 {
    count_panics();
    let (first, count) = match repeat {
        Repeat::Times(count) => (0, count),
        Repeat::Range(first, count) => (first, count),
        Repeat::Seed(seed) => (seed, 1),
    };
    let mut config = Config::new();
    config.stack_size = STACK;
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    config.silence_warnings = true;
    config
        .ungraceful_shutdown_config
        .immediately_return_on_panic = true;
    let before = descriptors();
    let runner = Runner::new(Seeds::new(first, count), config);
    let found = panic::catch_unwind(AssertUnwindSafe(|| runner.run(move || run(scenario))));
    if let Err(panic) = found {
        let seed = WORLD.with_borrow(|world| world.seed);
        eprintln!("failed with seed {seed}; ZEROXIDE_SEED={seed} repeats the schedule");
        panic::resume_unwind(panic);
    }
    let left = descriptors().saturating_sub(before);
    assert!(left < DESCRIPTORS, "{left} descriptors were not closed");
    WORLD.with_borrow(|world| world.digest)
}

fn run(scenario: fn()) {
    WORLD.with_borrow_mut(|world| world.threads = 1);
    let kernel = shuttle::thread::spawn(serve);
    PANICS.set(0);
    scenario();
    WORLD.with_borrow_mut(|world| world.threads -= 1);
    kernel.join().expect("a panic ends the schedule");
    assert_eq!(PANICS.get(), 0, "an I/O thread panicked");
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            before(panic);
        }));
    });
}
