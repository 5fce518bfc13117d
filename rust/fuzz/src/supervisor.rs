//! Runs a worker per target in a process of its own, because an input may end the process: by a stack that overflows, by
//! memory that is refused, or by an abort. Such an input is in the worker's file, and becomes a find here.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;
use std::{env, fs};

use crate::Target;
use crate::arguments::Arguments;
use crate::worker::{CURRENT, Finds, HUNG};
use crate::{instruments, processor};

/// After as many, a target is not started again.
const CRASHES: usize = 20;

/// Fuzzes every target. Returns whether nothing was found.
///
/// # Errors
/// The system's errors about files and processes.
pub fn supervise(arguments: &Arguments) -> io::Result<bool> {
    if instruments::counters() == 0 {
        println!("This build has no counters, so changes are blind: see `make fuzz`.");
    }
    let mut is_clean = true;
    for target in &arguments.targets {
        is_clean &= supervise_one(target, arguments)?;
    }
    Ok(is_clean)
}

fn supervise_one(target: &'static Target, arguments: &Arguments) -> io::Result<bool> {
    let (all, before) = (
        Duration::from_secs(arguments.seconds),
        processor::used_by_children(),
    );
    let mut is_clean = true;
    let mut left = all;
    for crash in 0..CRASHES {
        let mut worker = Command::new(env::current_exe()?);
        worker.args(["--worker", "--target", target.name]);
        worker.args(["--seconds", &left.as_secs().max(1).to_string()]);
        worker.args([
            "--seed",
            &(arguments.seed + 1000 * crash as u64).to_string(),
        ]);
        worker.arg("--out").arg(&arguments.out);
        if arguments.keeps {
            worker.arg("--keep");
        }
        let status = worker.status()?;
        match status.code() {
            Some(0) => return Ok(is_clean),
            Some(1) => return Ok(false),
            Some(2) => return Err(io::Error::other("the worker could not work")),
            _ => {}
        }
        is_clean = false;
        let input = fs::read(arguments.out.join(target.name).join(CURRENT))?;
        let finds = Finds::new(target, &arguments.out)?;
        finds.save(&input, &describe(status))?;
        left = all.saturating_sub(processor::used_by_children() - before);
        if left.is_zero() {
            break;
        }
    }
    Ok(is_clean)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(HUNG), _) => "took too long".to_owned(),
        (_, Some(signal)) => format!("ended the process with signal {signal}"),
        _ => format!("ended the process with {status}"),
    }
}
