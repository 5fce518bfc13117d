//! Whole contexts on one thread of the system, in an order that a seed decides. Only with `--cfg zeroxide_shuttle`.
//!
//! shuttle runs the threads of the core as coroutines, and switches between them at every atomic, lock and park
//! ([`sync`](super::sync)). Everything else by which a thread can wait, or learn the time, ends here:
//!
//! * a word ([`sleep_on`], [`wake`]) and descriptors ([`pause`]). Sockets and eventfds are the kernel's, but are only asked
//!   without blocking. On one thread, the kernel's answers depend on nothing but the order of the calls.
//! * the time ([`now`]), which advances a little with each look, and far when every thread sleeps.
//! * the *kernel thread*, which notices descriptors that became ready and deadlines that passed. The scheduler runs it
//!   from time to time, so notice comes early or late, and whenever no other thread can run. If it finds nothing to do
//!   then for a long time, a wake-up was lost, and it reports what every thread waits for.
//!
//! Memory is sequentially consistent here. Weaker orders are loom's subject (`zeroxide-queue`).

mod explore;
pub mod network;
mod schedule;
pub(crate) mod thread;

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::time::{Duration, Instant};
use std::{mem, ptr};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread::Thread;

pub use explore::{Repeat, explore};
use network::Network;
pub use shuttle::thread::yield_now;
pub use thread::{JoinHandle, sleep, spawn};

/// The time that passes with a look at the clock: one of these.
const TICKS: [Duration; 4] = [
    Duration::from_nanos(50),
    Duration::from_nanos(500),
    Duration::from_micros(5),
    Duration::from_micros(30),
];
/// The maximum time that passes at once while threads run, unless a scenario needs less.
const LEAP: Duration = Duration::from_millis(2);
/// The time by which every schedule ends. Timers that look after a connection would hide a lost wake-up otherwise.
const LIFE: Duration = Duration::from_secs(600);
/// Once in this many turns, the kernel is asked even if no call has been noted since the turn before.
const UNNOTED: usize = 16;

std::thread_local! {
    /// One for each thread of the system, since each explores on its own.
    static WORLD: RefCell<World> = RefCell::new(World::new(0));
    /// A descriptor or the network may have changed since the kernel was asked.
    static STIRRED: Cell<bool> = const { Cell::new(true) };
}

struct World {
    /// Of this schedule.
    seed: u64,
    random: Random,
    start: Instant,
    now: Instant,
    sleepers: Vec<Sleeper>,
    next: u64,
    /// The threads that have not ended, without the kernel thread.
    threads: usize,
    /// Set if no thread but the kernel thread can run.
    idle: bool,
    /// A digest of all decisions so far.
    digest: u64,
    /// See [`LEAP`].
    leap: Duration,
    network: Network,
    /// When the network has more to do.
    due: Option<Instant>,
    /// The last turn woke no thread, and none could run.
    is_still: bool,
}

struct Sleeper {
    number: u64,
    thread: Thread,
    awaits: Awaits,
    deadline: Option<Instant>,
    woken: Option<Woken>,
}

enum Awaits {
    /// The address of a word.
    Word(usize),
    Descriptors(Vec<PollFd<'static>>),
    Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Woken {
    Called,
    TimedOut,
}

/// The current time.
pub fn now() -> Instant {
    WORLD.with_borrow_mut(|world| {
        let tick = TICKS[world.random.below(TICKS.len())];
        world.now += tick;
        world.now
    })
}

/// A random number of this schedule.
pub(crate) fn number() -> u64 {
    WORLD.with_borrow_mut(|world| world.random.next())
}

/// The seed of this schedule.
pub fn seed() -> u64 {
    WORLD.with_borrow(|world| world.seed)
}

/// A digest of all decisions of this schedule so far.
pub fn digest() -> u64 {
    WORLD.with_borrow(|world| world.digest)
}

/// The time jumps, as after a machine was suspended.
pub fn jump(time: Duration) {
    WORLD.with_borrow_mut(|world| world.now += time);
}

/// Sets the maximum time that passes at once while threads run.
pub fn set_leap(time: Duration) {
    WORLD.with_borrow_mut(|world| world.leap = time);
}

/// Sleeps until [`wake`] is called for `word`, if it holds `expected`. Returns false if the deadline passed first.
pub(super) fn sleep_on(word: &AtomicU32, expected: u32, deadline: Option<Instant>) -> bool {
    // No other thread runs between the look and the entry into the list.
    word.load(Ordering::Relaxed) != expected
        || rest(Awaits::Word(address(word)), deadline) == Woken::Called
}

/// Wakes the threads that sleep on `word`.
pub(crate) fn wake(word: &AtomicU32) {
    let address = address(word);
    let woken = WORLD.with_borrow_mut(|world| {
        world.wake(|sleeper| match sleeper.awaits {
            Awaits::Word(other) if other == address => Some(Woken::Called),
            _ => None,
        })
    });
    woken.iter().for_each(Thread::unpark);
}

/// Returns once one of the descriptors is ready or the deadline has passed. The caller then asks the kernel, which answers
/// at once.
pub(super) fn pause(fds: &[PollFd<'_>], deadline: Option<Instant>) {
    loop {
        // SAFETY: only the lifetime differs. The sleeper is gone when `rest` returns, and the caller borrows the
        // descriptors until then.
        let mut polled: Vec<PollFd<'static>> = unsafe { mem::transmute(fds.to_vec()) };
        if is_any_ready(&mut polled) || deadline.is_some_and(|at| at <= now()) {
            return;
        }
        rest(Awaits::Descriptors(polled), deadline);
    }
}

fn address(word: &AtomicU32) -> usize {
    ptr::from_ref(word).addr()
}

/// Asks the kernel, which does not wait.
fn is_any_ready(polled: &mut [PollFd<'_>]) -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // A failed call would make a real wait return, too.
    poll(polled, Some(&at_once)).map_or(true, |ready| ready > 0)
}

/// A program has made a call that may make descriptors ready. Calls that close descriptors are not noted.
pub(super) fn stir() {
    STIRRED.set(true);
}

/// The calling thread sleeps until it is woken or the deadline passes.
fn rest(awaits: Awaits, deadline: Option<Instant>) -> Woken {
    let number = WORLD.with_borrow_mut(|world| world.enter(awaits, deadline));
    loop {
        if let Some(woken) = WORLD.with_borrow_mut(|world| world.leave(number)) {
            return woken;
        }
        shuttle::thread::park();
    }
}

/// The kernel thread. Ends when all others have.
fn serve() {
    loop {
        // The scheduler says whether other threads can run when it continues this one.
        shuttle::thread::yield_now();
        let woken = WORLD.with_borrow_mut(World::turn);
        if WORLD.with_borrow(|world| world.threads == 0) {
            return;
        }
        woken.iter().for_each(Thread::unpark);
    }
}

impl World {
    fn new(seed: u64) -> World {
        let start = Instant::now();
        stir();
        World {
            seed,
            random: Random::new(!seed),
            start,
            now: start,
            sleepers: Vec::new(),
            next: 0,
            threads: 0,
            idle: false,
            digest: 0,
            leap: LEAP,
            network: Network::new(),
            due: None,
            is_still: false,
        }
    }

    fn enter(&mut self, awaits: Awaits, deadline: Option<Instant>) -> u64 {
        self.next += 1;
        self.sleepers.push(Sleeper {
            number: self.next,
            thread: shuttle::thread::current(),
            awaits,
            deadline,
            woken: None,
        });
        self.next
    }

    /// Removes a sleeper that was woken.
    fn leave(&mut self, number: u64) -> Option<Woken> {
        let number = |sleeper: &Sleeper| sleeper.number == number;
        let at = self.sleepers.iter().position(number)?;
        let woken = self.sleepers[at].woken?;
        self.sleepers.remove(at);
        Some(woken)
    }

    /// Marks the sleepers for which there is a reason, and returns their threads.
    fn wake(&mut self, mut reason: impl FnMut(&mut Sleeper) -> Option<Woken>) -> Vec<Thread> {
        let mut threads = Vec::new();
        for sleeper in &mut self.sleepers {
            if sleeper.woken.is_none() {
                sleeper.woken = reason(sleeper);
                threads.extend(sleeper.woken.map(|_| sleeper.thread.clone()));
            }
        }
        threads
    }

    /// What to ask the kernel about the descriptors of sleepers.
    fn polled(&self) -> Vec<PollFd<'static>> {
        let sleepers = self.sleepers.iter();
        let asleep = sleepers.filter(|sleeper| sleeper.woken.is_none());
        let fds = asleep.filter_map(|sleeper| match &sleeper.awaits {
            Awaits::Descriptors(fds) => Some(fds),
            Awaits::Word(_) | Awaits::Time => None,
        });
        fds.flatten().cloned().collect()
    }

    /// Asks the kernel once about all sleepers.
    fn wake_ready(&mut self) -> Vec<Thread> {
        let mut polled = self.polled();
        if polled.is_empty() || !is_any_ready(&mut polled) {
            return Vec::new();
        }
        let answers: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        self.wake_by(&answers)
    }

    /// Wakes the sleepers whose descriptors are ready, according to the answers about all of them.
    fn wake_by(&mut self, answers: &[PollFlags]) -> Vec<Thread> {
        let mut answers = answers.iter();
        self.wake(|sleeper| match &sleeper.awaits {
            Awaits::Descriptors(fds) => {
                let answers = answers.by_ref().take(fds.len());
                let ready = answers.filter(|flags| !flags.is_empty()).count();
                (ready > 0).then_some(Woken::Called)
            }
            Awaits::Word(_) | Awaits::Time => None,
        })
    }

    /// Looks at the network, at descriptors and at deadlines, and returns the threads that it woke.
    fn turn(&mut self) -> Vec<Thread> {
        let woken = self.look();
        let woken = match woken.is_empty() {
            true => self.pass_time(),
            false => woken,
        };
        self.is_still = self.idle && woken.is_empty();
        woken
    }

    /// Looks at the network and at descriptors. Most of the time of a schedule was spent in asking the kernel in every turn,
    /// so it is asked only if its answers may have changed.
    fn look(&mut self) -> Vec<Thread> {
        let is_noted = STIRRED.replace(false);
        let may_differ = match self.idle {
            // What no call has noted is found when every thread waits.
            true => !self.is_still,
            false => self.random.below(UNNOTED) == 0,
        };
        if !is_noted && !may_differ {
            return match self.due.is_some_and(|due| due <= self.now) && self.pump() {
                true => self.wake_ready(),
                false => Vec::new(),
            };
        }
        let mut polled = self.network.polled();
        let links = polled.len();
        polled.extend(self.polled());
        is_any_ready(&mut polled);
        let answers: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        self.network.note(&answers[..links], self.now);
        match self.pump() {
            true => self.wake_ready(),
            false => self.wake_by(&answers[links..]),
        }
    }

    /// Moves what is due in the network. Returns whether descriptors have changed.
    fn pump(&mut self) -> bool {
        let moved;
        (self.due, moved) = self.network.pump(&mut self.random, self.now);
        moved
    }

    /// The time advances, to the next deadline if no thread can run. Returns the threads that it wakes.
    fn pass_time(&mut self) -> Vec<Thread> {
        if self.idle && self.threads > 0 {
            let deadlines = self.sleepers.iter().filter_map(|sleeper| sleeper.deadline);
            let deadlines = deadlines.chain(self.due);
            let soon = |at: &Instant| *at < self.start + LIFE;
            let earliest = deadlines.min().filter(soon);
            let earliest = earliest.unwrap_or_else(|| panic!("{}", self.stuck()));
            self.now = self.now.max(earliest);
        } else {
            let nanos = self.random.below(self.leap.as_nanos() as usize);
            self.now += Duration::from_nanos(nanos as u64);
        }
        let now = self.now;
        self.wake(|sleeper| {
            let passed = sleeper.deadline.is_some_and(|at| at <= now);
            passed.then_some(Woken::TimedOut)
        })
    }

    fn note(&mut self, next: usize, choices: usize) {
        let decision = (next << 16 | choices) as u64;
        self.digest = (self.digest ^ decision)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(5);
    }

    fn stuck(&self) -> String {
        let mut text = format!("{} threads wait forever:", self.threads);
        for sleeper in &self.sleepers {
            let name = sleeper.thread.name().unwrap_or("?");
            let what = match &sleeper.awaits {
                Awaits::Word(address) => format!("a word at {address:#x}"),
                Awaits::Descriptors(polled) => format!("{polled:?}"),
                Awaits::Time => "a time".to_owned(),
            };
            let _ = write!(text, "\n  {name} waits for {what}");
        }
        text + "\n  and any others for locks or for threads to end"
    }
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        // Neighbouring seeds must differ everywhere, and the state must not be 0.
        let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mut random = Random((mixed ^ (mixed >> 29)) | 1);
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 33) % end as u64) as usize
    }
}
