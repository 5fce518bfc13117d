//! The command: runs seeds of one pattern, or of each pattern in a process of its own.

use std::env;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use zeroxide::simulation::{Repeat, explore};

use super::plan::PATTERNS;
use super::{PATTERN, history, run};

/// Quickly run in `make test`.
const SEEDS: u64 = 300;

const USAGE: &str = "usage: [--seeds N] [--first N] [--pattern NAME] [--seed N]";

struct Request {
    first: u64,
    seeds: u64,
    pattern: Option<String>,
    /// Print what happens.
    one: bool,
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
        Some(name) => run_pattern(name, &request),
        None => run_all(&request),
    };
    match is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn request() -> Result<Request, String> {
    let mut request = Request {
        first: 0,
        seeds: SEEDS,
        pattern: None,
        one: false,
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
        match &*word {
            "--seeds" => request.seeds = number()?,
            "--first" => request.first = number()?,
            "--seed" => {
                (request.first, request.seeds, request.one) = (number()?, 1, true);
            }
            "--pattern" if PATTERNS.iter().any(|pattern| pattern.name == value) => {
                request.pattern = Some(value);
            }
            "--pattern" => {
                let names: Vec<_> = PATTERNS.iter().map(|pattern| pattern.name).collect();
                return Err(format!("--pattern {value}: one of {}", names.join(", ")));
            }
            _ => return Err(format!("{word} is not an option")),
        }
    }
    Ok(request)
}

fn run_pattern(name: &str, request: &Request) -> bool {
    let index = PATTERNS.iter().position(|pattern| pattern.name == name);
    PATTERN.store(index.expect("it was checked"), Ordering::Relaxed);
    let start = Instant::now();
    let repeat = match request.one {
        true => Repeat::Seed(request.first),
        false => Repeat::Range(request.first, request.seeds),
    };
    let result = panic::catch_unwind(AssertUnwindSafe(|| explore(run, repeat)));
    if result.is_err() || request.one {
        println!("{}", history::trace());
    }
    match result {
        Ok(digest) => {
            let seconds = start.elapsed().as_secs_f64();
            let seeds = request.seeds;
            println!(
                "{name}: {seeds} seeds passed in {seconds:.1} s, the last digest is {digest:016x}"
            );
            true
        }
        Err(_) => {
            println!("{name} failed; --pattern {name} --seed N repeats the run");
            false
        }
    }
}

/// Descriptors have the same numbers in every run of a process only if no other thread uses any.
fn run_all(request: &Request) -> bool {
    let width = thread::available_parallelism().map_or(1, NonZero::get);
    let program = env::current_exe().expect("this program has a path");
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
        let mut command = Command::new(&program);
        command.args(["--pattern", pattern.name]);
        command.args(["--first", &request.first.to_string()]);
        command.args(["--seeds", &request.seeds.to_string()]);
        running.push(command.spawn().expect("a process can start"));
    }
    while !running.is_empty() {
        end_one(&mut running);
    }
    is_good
}
