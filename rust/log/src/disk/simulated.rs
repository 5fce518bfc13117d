//! Disks of simulated machines. A seed decides what a loss of power leaves, and which operations fail.
//!
//! The first component of a path names the machine. Each thread of the system has machines of its own, so runs on several
//! threads do not disturb each other.
//!
//! | what | what a loss of power leaves of it |
//! | --- | --- |
//! | a write, or a change of a file's length, since its last sync | nothing, a part of it, zeros in its place, or all of it, in any combination with others |
//! | a new, renamed or removed name since the last sync of its folder | the first ones, as a journal keeps them |
//! | data of a sync that failed | as before, but a later sync does not write it: the system takes it for written |
//!
//! A machine stops at an operation that [`stop_after`] chose. From then on, every operation of its process fails, until
//! [`restart`]. A process that was killed leaves what it has written, and a machine without power does not.

mod dice;
mod files;
mod nodes;
mod paths;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};

pub use dice::Dice;
pub use files::{
    File, FileExt, Metadata, OpenOptions, has_name, lock, new_file, read, read_more,
    read_to_string, unlock,
};
pub use paths::{
    DirEntry, Kind, create_missing, exists, identity, is_file, read_dir, remove_file, rename,
    restrict, sync_folder,
};

use nodes::{Nodes, ROOT};

/// How a machine stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its process is killed.
    Kill,
    /// It loses its power.
    Power,
}

/// The faults of a machine's disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// One operation in this many fails; 0 = none.
    pub one_in: usize,
    /// Whether files cannot grow.
    pub is_full: bool,
}

/// An operation that fails.
struct Failing {
    act: Act,
    /// The number of operations of this kind before it.
    before: u64,
    error: fn() -> io::Error,
}

/// A machine with one disk and one process.
#[derive(Default)]
struct Machine {
    nodes: Nodes,
    faults: Faults,
    failing: Vec<Failing>,
    /// The number of changes until it stops, and how.
    stop: Option<(u64, Stop)>,
    stopped: Option<Stop>,
    /// How many microseconds its clock is behind.
    behind: u64,
    /// The number of its process, and of its start.
    process: u64,
    start: u64,
}

/// Everything that a thread simulates.
struct World {
    dice: Dice,
    machines: BTreeMap<String, Machine>,
    /// Microseconds since 1970.
    time: u64,
    /// The machine whose process works.
    current: String,
    is_quiet: bool,
    is_traced: bool,
    operations: u64,
    digest: u64,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new(0, false));
}

impl World {
    fn new(seed: u64, is_traced: bool) -> World {
        World {
            dice: Dice::new(seed, 1),
            machines: BTreeMap::new(),
            time: 1_790_000_000_000_000,
            current: String::new(),
            is_quiet: false,
            is_traced,
            operations: 0,
            digest: seed,
        }
    }
}

/// Begins a run without machines. With a trace, every operation is printed.
pub fn begin(seed: u64, is_traced: bool) {
    WORLD.with_borrow_mut(|world| *world = World::new(seed, is_traced));
}

/// Chooses the machine whose process works from now on.
pub fn enter(machine: &str) {
    WORLD.with_borrow_mut(|world| machine.clone_into(&mut world.current));
}

/// Whether the process that works is alive.
pub fn is_alive() -> bool {
    stopped(&current()).is_none()
}

/// Chooses the faults of a machine's disk.
pub fn set_faults(machine: &str, faults: Faults) {
    with(machine, |_, machine| machine.faults = faults);
}

/// Lets one operation of a machine fail: the one of this kind that comes after `after` others of it.
pub fn fail_at(machine: &str, act: Act, after: u64) {
    with(machine, |_, machine| machine.fail(act, after, broken));
}

/// The same, because the disk is full.
pub fn fill_at(machine: &str, act: Act, after: u64) {
    with(machine, |_, machine| machine.fail(act, after, full));
}

/// The same, because no descriptors are left.
pub fn exhaust_at(machine: &str, act: Act, after: u64) {
    with(machine, |_, machine| machine.fail(act, after, exhausted));
}

/// Stops a machine at its change number `after` from now on.
pub fn stop_after(machine: &str, after: u64, stop: Stop) {
    with(machine, |_, machine| machine.stop = Some((after, stop)));
}

/// Stops a machine now.
pub fn stop(machine: &str, stop: Stop) {
    with(machine, |_, machine| machine.stopped = Some(stop));
}

/// How a machine has stopped, if it has.
pub fn stopped(machine: &str) -> Option<Stop> {
    with(machine, |_, machine| machine.stopped)
}

/// Starts a process on a machine. What its disk has is decided now.
pub fn restart(machine: &str) {
    with(machine, |world, machine| {
        if machine.stopped.take() == Some(Stop::Power) {
            machine.nodes.lose_power(&mut world.dice);
            machine.start += 1;
        }
        machine.nodes.unlock_all();
        machine.stop = None;
        machine.process += 1;
    });
}

/// Prints what happens, if the run has a trace.
pub fn trace(text: impl FnOnce() -> String) {
    if WORLD.with_borrow(|world| world.is_traced && !world.is_quiet) {
        println!("{}", text());
    }
}

/// Runs without faults and stops, for an observer that must not change the run.
pub fn quietly<T>(observe: impl FnOnce() -> T) -> T {
    let before = WORLD.with_borrow_mut(|world| std::mem::replace(&mut world.is_quiet, true));
    let seen = observe();
    WORLD.with_borrow_mut(|world| world.is_quiet = before);
    seen
}

/// Microseconds since 1970.
pub fn time() -> u64 {
    WORLD.with_borrow(|world| world.time)
}

/// The same according to the clock of the machine whose process works.
pub fn wall() -> u64 {
    with(&current(), |world, machine| world.time - machine.behind)
}

/// Sets the clock of a machine behind.
pub fn set_behind(machine: &str, microseconds: u64) {
    with(machine, |_, machine| machine.behind = microseconds);
}

/// Lets time pass, in microseconds.
pub fn pass(microseconds: u64) {
    WORLD.with_borrow_mut(|world| world.time += microseconds);
}

/// The number of operations of this run, and a digest of all of them.
pub fn digest() -> (u64, u64) {
    WORLD.with_borrow(|world| (world.operations, world.digest))
}

/// Fills the bytes with random ones.
///
/// # Errors
/// None.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    WORLD.with_borrow_mut(|world| {
        for byte in bytes {
            *byte = world.dice.below(256) as u8;
        }
    });
    Ok(())
}

/// The path and the number of the machine's start, as the text of each of the system's own files.
pub fn system_text(path: &str) -> Option<String> {
    let start = with(&current(), |_, machine| machine.start);
    Some(format!("{path} {start}"))
}

/// Distinguishes this process from earlier ones of its machine.
pub fn process() -> String {
    with(&current(), |_, machine| format!("{:016x}", machine.process))
}

fn current() -> String {
    WORLD.with_borrow(|world| world.current.clone())
}

/// Calls with a machine, which is created if there is none of that name.
fn with<T>(name: &str, call: impl FnOnce(&mut World, &mut Machine) -> T) -> T {
    WORLD.with_borrow_mut(|world| {
        let mut machine = world.machines.remove(name).unwrap_or_default();
        let result = call(world, &mut machine);
        world.machines.insert(name.to_owned(), machine);
        result
    })
}

/// The machine of a path, and the names below its root.
fn split(path: &Path) -> io::Result<(String, Vec<String>)> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let mut names: Vec<String> = names.collect();
    if names.is_empty() {
        return Err(missing());
    }
    let machine = names.remove(0);
    Ok((machine, names))
}

/// The kind of an operation, for faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Reading a file or a folder.
    Read,
    /// Writing to a file, or changing its length.
    Write,
    /// Syncing a file or a folder.
    Sync,
    /// Creating, renaming or removing.
    Name,
}

/// What becomes of an operation.
enum Outcome {
    Done,
    /// It fails, after it has done a part.
    Fails(io::Error),
    /// The machine stops during the operation.
    Stops,
}

impl Machine {
    /// Decides what becomes of an operation, after the machine was found to be alive.
    fn decide(&mut self, world: &mut World, act: Act) -> Outcome {
        if world.is_quiet {
            return Outcome::Done;
        }
        if act != Act::Read
            && let Some((left, stop)) = &mut self.stop
        {
            if *left == 0 {
                self.stopped = Some(*stop);
                return Outcome::Stops;
            }
            *left -= 1;
        }
        if let Some(error) = self.failing(act) {
            return Outcome::Fails(error);
        }
        let rate = self.faults.one_in;
        // Reads are frequent, and fail rarely.
        let rate = if act == Act::Read { rate * 8 } else { rate };
        if rate > 0 && world.dice.one_in(rate) {
            let is_about_room = matches!(act, Act::Write | Act::Name) && world.dice.one_in(2);
            let is_about_descriptors = act == Act::Name && world.dice.one_in(2);
            return Outcome::Fails(match (is_about_room, is_about_descriptors) {
                (true, _) => full(),
                (_, true) => exhausted(),
                _ => broken(),
            });
        }
        Outcome::Done
    }

    fn fail(&mut self, act: Act, before: u64, error: fn() -> io::Error) {
        self.failing.push(Failing { act, before, error });
    }

    /// The error of an operation that was chosen to fail.
    fn failing(&mut self, act: Act) -> Option<io::Error> {
        let mut failing = self.failing.iter();
        let due = failing.position(|failing| failing.act == act && failing.before == 0);
        for failing in self.failing.iter_mut().filter(|failing| failing.act == act) {
            failing.before = failing.before.saturating_sub(1);
        }
        due.map(|due| (self.failing.remove(due).error)())
    }

    fn check(&self) -> io::Result<()> {
        match self.stopped {
            None => Ok(()),
            Some(_) => Err(broken()),
        }
    }

    fn find(&self, names: &[String]) -> io::Result<u64> {
        let mut at = ROOT;
        for name in names {
            at = self.nodes.child(at, name).ok_or_else(missing)?;
        }
        Ok(at)
    }
}

impl World {
    /// Records an operation.
    fn note(&mut self, machine: &str, what: &str, node: u64, numbers: [u64; 2], is_done: bool) {
        if self.is_quiet {
            return;
        }
        self.operations += 1;
        let kind = what
            .bytes()
            .fold(0, |sum: u64, byte| sum * 31 + u64::from(byte));
        for number in [kind, node, numbers[0], numbers[1], u64::from(is_done)] {
            self.digest = dice::mix(self.digest ^ number);
        }
        if self.is_traced {
            let failed = if is_done { "" } else { ", which fails" };
            println!("    {machine}: {what} {node} {numbers:?}{failed}");
        }
    }
}

fn missing() -> io::Error {
    io::Error::from_raw_os_error(2)
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(5)
}

fn exhausted() -> io::Error {
    io::Error::from_raw_os_error(24)
}

fn full() -> io::Error {
    io::Error::from_raw_os_error(28)
}
