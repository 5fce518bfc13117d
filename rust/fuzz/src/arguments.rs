//! The command line.

use std::path::PathBuf;

use crate::Target;
use crate::targets::TARGETS;

/// How the program is used.
pub const USAGE: &str = "\
usage: zeroxide-fuzz [--target NAME]... [--seconds N] [--seed N] [--out FOLDER] [--keep]
       zeroxide-fuzz --replay FILE --target NAME
       zeroxide-fuzz --list

--target NAME   fuzz this target only; may be repeated
--seconds N     how long each target runs, in processor time (default 10)
--seed N        the seed of the random changes (default 1)
--out FOLDER    where grown corpora and finds go (default build/fuzz)
--keep          reduce the grown corpora to what reaches new code, and replace the committed ones with them
--replay FILE   run the target on the bytes of a file";

/// The program's arguments.
pub struct Arguments {
    /// The targets; all by default.
    pub targets: Vec<&'static Target>,
    /// How long each target runs, in seconds of processor time.
    pub seconds: u64,
    /// The seed of the random changes.
    pub seed: u64,
    /// Where grown corpora and finds go.
    pub out: PathBuf,
    /// Whether to replace the committed corpora.
    pub keeps: bool,
    /// A file to run instead.
    pub replay: Option<PathBuf>,
    /// Whether to list the targets instead.
    pub lists: bool,
    /// Whether this process is a worker of another one.
    pub is_worker: bool,
}

impl Arguments {
    /// Parses them.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut arguments = Arguments {
            targets: Vec::new(),
            seconds: 10,
            seed: 1,
            out: PathBuf::from("build/fuzz"),
            keeps: false,
            replay: None,
            lists: false,
            is_worker: false,
        };
        while let Some(name) = given.next() {
            let mut value = || given.next().ok_or(format!("{name} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("{text} is not a number"));
            match &*name {
                "--target" => arguments.targets.push(target(&value()?)?),
                "--seconds" => arguments.seconds = number(value()?)?,
                "--seed" => arguments.seed = number(value()?)?,
                "--out" => arguments.out = value()?.into(),
                "--replay" => arguments.replay = Some(value()?.into()),
                "--keep" => arguments.keeps = true,
                "--list" => arguments.lists = true,
                "--worker" => arguments.is_worker = true,
                other => return Err(format!("there is no argument {other}\n\n{USAGE}")),
            }
        }
        if arguments.targets.is_empty() {
            arguments.targets = TARGETS.iter().collect();
        }
        Ok(arguments)
    }
}

fn target(name: &str) -> Result<&'static Target, String> {
    let known = || TARGETS.iter().map(|target| target.name);
    let found = TARGETS.iter().find(|target| target.name == name);
    found.ok_or_else(|| {
        let known = known().collect::<Vec<_>>().join(", ");
        format!("there is no target {name}; there are {known}")
    })
}
