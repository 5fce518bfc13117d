//! `zeroxide-fuzz`: see `make fuzz` and docs/reliability.md.

use std::process::ExitCode;
use std::{env, fs};

use zeroxide_fuzz::arguments::Arguments;
use zeroxide_fuzz::targets::TARGETS;
use zeroxide_fuzz::{guard, supervisor, worker};

fn main() -> ExitCode {
    match Arguments::parse(env::args().skip(1)).and_then(|arguments| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing was found.
fn run(arguments: &Arguments) -> Result<bool, String> {
    if arguments.lists {
        TARGETS
            .iter()
            .for_each(|target| println!("{:10} {}", target.name, target.about));
        return Ok(true);
    }
    if let (Some(file), [target]) = (&arguments.replay, &*arguments.targets) {
        let input = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let outcome = guard::on_small_stack(|| guard::run(target, &input));
        println!("{}", outcome.as_ref().err().map_or("no fault", |text| text));
        return Ok(outcome.is_ok());
    }
    if arguments.is_worker {
        return worker::work(arguments).map_err(|error| error.to_string());
    }
    supervisor::supervise(arguments).map_err(|error| error.to_string())
}
