//! The command: runs seeds of one pattern, or of each pattern in a process of its own, or compares two runs of each seed.

use std::collections::BTreeMap;
use std::env;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use zeroxide::simulation::{Repeat, explore};

use super::plan::PATTERNS;
use super::{PATTERN, history, run};

/// The seeds of each pattern in `make test`, and how many of them run twice.
const FEW: u64 = 1000;
const TWICE: u64 = 20;
/// By how much `ZEROXIDE_FULL` multiplies both.
const MORE: u64 = 5;

const USAGE: &str =
    "usage: [--seeds N] [--first N] [--pattern NAME] [--seed N] [--twice N] [--digests up|down]";

#[derive(Clone)]
struct Request {
    first: u64,
    seeds: u64,
    pattern: Option<String>,
    /// Print what happens.
    one: bool,
    /// Run each seed in two processes, and compare what happens.
    twice: bool,
    /// Print the digest of each run.
    digests: Option<Order>,
}

/// The order of the seeds.
#[derive(Clone, Copy)]
enum Order {
    Up,
    Down,
}

/// See the module text.
pub fn main() -> ExitCode {
    let request = match request() {
        Ok(request) => request,
        Err(wrong) => {
            eprintln!("{wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let is_good = match &request.pattern {
        _ if request.twice => compare_all(&request),
        Some(name) => run_pattern(name, &request),
        None if env::args().len() > 1 => run_all(&request),
        None => run_all(&request) && compare_all(&request.some_twice()),
    };
    match is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn request() -> Result<Request, String> {
    let mut request = Request {
        first: 0,
        seeds: FEW * more(),
        pattern: None,
        one: false,
        twice: false,
        digests: None,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{word} {value}: not a number"))
        };
        match (&*word, &*value) {
            ("--seeds", _) => request.seeds = number()?,
            ("--twice", _) => (request.seeds, request.twice) = (number()?, true),
            ("--first", _) => request.first = number()?,
            ("--seed", _) => {
                (request.first, request.seeds, request.one) = (number()?, 1, true);
            }
            ("--digests", "up") => request.digests = Some(Order::Up),
            ("--digests", "down") => request.digests = Some(Order::Down),
            ("--pattern", _) if PATTERNS.iter().any(|pattern| pattern.name == value) => {
                request.pattern = Some(value);
            }
            ("--pattern", _) => {
                let names: Vec<_> = PATTERNS.iter().map(|pattern| pattern.name).collect();
                return Err(format!("--pattern {value}: one of {}", names.join(", ")));
            }
            _ => return Err(format!("{word} {value} is not an option")),
        }
    }
    Ok(request)
}

fn more() -> u64 {
    match env::var_os("ZEROXIDE_FULL") {
        Some(_) => MORE,
        None => 1,
    }
}

impl Request {
    fn some_twice(&self) -> Request {
        Request {
            seeds: TWICE * more(),
            twice: true,
            ..self.clone()
        }
    }
}

fn run_pattern(name: &str, request: &Request) -> bool {
    let index = PATTERNS.iter().position(|pattern| pattern.name == name);
    PATTERN.store(index.expect("it was checked"), Ordering::Relaxed);
    let start = Instant::now();
    let (first, seeds) = (request.first, request.seeds);
    let result = panic::catch_unwind(AssertUnwindSafe(|| match request.digests {
        Some(Order::Down) => (first..first + seeds).rev().for_each(|seed| {
            explore(run, Repeat::Seed(seed));
        }),
        _ => drop(explore(run, Repeat::Range(first, seeds))),
    }));
    if result.is_err() || request.one {
        println!("{}", history::trace());
    }
    if request.digests.is_some() {
        for (seed, digest) in history::digests() {
            println!("{seed} {digest:016x}");
        }
    } else if result.is_ok() {
        let seconds = start.elapsed().as_secs_f64();
        println!("{name}: {seeds} seeds passed in {seconds:.1} s");
    }
    if result.is_err() {
        println!("{name} failed; --pattern {name} --seed N repeats the run");
    }
    result.is_ok()
}

/// Descriptors have the same numbers in every run of a process only if no other thread uses any.
fn child(name: &str, request: &Request) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(["--pattern", name]);
    command.args(["--first", &request.first.to_string()]);
    command.args(["--seeds", &request.seeds.to_string()]);
    command
}

fn run_all(request: &Request) -> bool {
    let width = thread::available_parallelism().map_or(1, NonZero::get);
    let mut is_good = true;
    let mut running: Vec<Child> = Vec::new();
    let mut end_one = |running: &mut Vec<Child>| {
        let mut child = running.remove(0);
        is_good &= child.wait().is_ok_and(|status| status.success());
    };
    for pattern in PATTERNS {
        if running.len() == width {
            end_one(&mut running);
        }
        let mut command = child(pattern.name, request);
        running.push(command.spawn().expect("a process can start"));
    }
    while !running.is_empty() {
        end_one(&mut running);
    }
    is_good
}

/// Runs the seeds in two processes, in one of them backwards: nothing may depend on the process, or on the runs before.
fn compare_all(request: &Request) -> bool {
    let is_asked = |name: &str| request.pattern.as_ref().is_none_or(|asked| asked == name);
    let names = PATTERNS.iter().map(|pattern| pattern.name);
    let names = names.filter(|name| is_asked(name));
    // All of them, so that every difference is shown.
    let are_good: Vec<bool> = names.map(|name| compare(name, request)).collect();
    !are_good.contains(&false)
}

fn compare(name: &str, request: &Request) -> bool {
    let start = |order| {
        let mut command = child(name, request);
        command.args(["--digests", order]).stdout(Stdio::piped());
        command.spawn().expect("a process can start")
    };
    let [up, down] = ["up", "down"].map(start).map(digests);
    let seeds = request.first..request.first + request.seeds;
    let differs = |seed: &u64| !up.contains_key(seed) || up.get(seed) != down.get(seed);
    let different: Vec<u64> = seeds.filter(differs).collect();
    match different.is_empty() {
        true => println!("{name}: {} seeds repeat", request.seeds),
        false => println!("{name}: these seeds do not repeat: {different:?}"),
    }
    different.is_empty()
}

/// The output of a process with `--digests`.
fn digests(child: Child) -> BTreeMap<u64, String> {
    let output = child.wait_with_output().expect("a process ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let entry = |line: &str| {
        let (seed, digest) = line.split_once(' ')?;
        Some((seed.parse().ok()?, digest.to_owned()))
    };
    text.lines().filter_map(entry).collect()
}
