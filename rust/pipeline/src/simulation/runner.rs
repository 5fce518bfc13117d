//! The command: runs seeds on all processors, or repeats one of them with its trace.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use std::{env, thread};

use super::world::run;

/// Run in `make test`.
const SEEDS: u64 = 1000;

/// One seed in this many is run twice, to see that it repeats its run.
const REPEATED: u64 = 20;

const USAGE: &str = "usage: [--seeds N] [--first N] [--seed N] [--threads N]";

struct Request {
    first: u64,
    seeds: u64,
    threads: usize,
    /// Print what happens.
    is_traced: bool,
}

/// Runs the seeds that the arguments name. See `make simulate`.
pub fn main() -> ExitCode {
    let request = match request() {
        Ok(request) => request,
        Err(wrong) => {
            eprintln!("{wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let start = Instant::now();
    let next = AtomicU64::new(request.first);
    let end = request.first + request.seeds;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..request.threads {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    if let Err(wrong) = check(seed, request.is_traced) {
                        println!("pipeline, seed {seed}: {wrong}");
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    if is_over.load(Ordering::Relaxed) {
        println!("pipeline failed; --pattern pipeline --seed N repeats the run");
        return ExitCode::FAILURE;
    }
    println!("pipeline: {} seeds passed in {seconds:.1} s", request.seeds);
    ExitCode::SUCCESS
}

/// Runs a seed, and some of them again.
fn check(seed: u64, is_traced: bool) -> Result<(), String> {
    let run = |is_traced| {
        let result = catch_unwind(AssertUnwindSafe(|| run(seed, is_traced)));
        result.unwrap_or_else(|_| Err("a panic, printed above".to_owned()))
    };
    let first = run(is_traced)?;
    if is_traced || !seed.is_multiple_of(REPEATED) {
        return Ok(());
    }
    match run(false)? {
        again if again == first => Ok(()),
        again => Err(format!(
            "the seed does not repeat its run: {first:016x}, then {again:016x}"
        )),
    }
}

fn request() -> Result<Request, String> {
    let mut request = Request {
        first: 0,
        seeds: SEEDS,
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        is_traced: false,
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
            "--threads" => request.threads = number()? as usize,
            "--seed" => {
                (request.first, request.seeds) = (number()?, 1);
                request.is_traced = true;
            }
            // The same arguments as those of the simulation of sockets.
            "--pattern" if value == "pipeline" => {}
            _ => return Err(format!("{word} {value} is not an option")),
        }
    }
    Ok(request)
}
