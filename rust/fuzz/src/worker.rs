//! The loop: choose an input, change it, run it, and keep it if it reached new code.

use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{process, thread};

use crate::arguments::Arguments;
use crate::mutate::{Chance, Material, mutate};
use crate::{Target, corpus, guard, instruments, processor};

/// The file with the input that runs, in the folder of a target.
pub const CURRENT: &str = "current";
/// The exit code after an input that took too long.
pub const HUNG: i32 = 77;

/// The processor time that an input may take.
const LIMIT: Duration = Duration::from_secs(20);
/// Changes of one input in a row.
const CHANGES: usize = 64;
/// The maximum size of a committed corpus, as text.
const KEPT_BYTES: usize = 20_000;
/// Inputs that shrinking a find may run.
const SHRINKING: usize = 2000;

/// Fuzzes one target in this process. Returns whether nothing was found.
///
/// # Errors
/// The system's errors about files.
pub fn work(arguments: &Arguments) -> io::Result<bool> {
    let [target] = &*arguments.targets else {
        return Err(io::Error::other("a worker has one target"));
    };
    guard::on_small_stack(|| Worker::new(target, arguments)?.work(arguments))
}

/// Where the finds of a target go.
pub struct Finds {
    target: &'static Target,
    folder: PathBuf,
}

impl Finds {
    /// The finds of a target below a folder.
    ///
    /// # Errors
    /// The system's.
    pub fn new(target: &'static Target, out: &Path) -> io::Result<Finds> {
        let folder = out.join(target.name).join("finds");
        fs::create_dir_all(&folder)?;
        Ok(Finds { target, folder })
    }

    /// Saves an input that broke a promise, and prints how.
    ///
    /// # Errors
    /// The system's.
    pub fn save(&self, input: &[u8], how: &str) -> io::Result<()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(input);
        let path = self.folder.join(format!("{hash:016x}"));
        fs::write(&path, input)?;
        let shown = &input[..input.len().min(200)];
        println!("{}: FOUND {how}", self.target.name);
        println!(
            "  {} ({} bytes): {}",
            path.display(),
            input.len(),
            shown.escape_ascii()
        );
        Ok(())
    }
}

/// See the module text.
struct Worker {
    target: &'static Target,
    chance: Chance,
    corpus: Vec<Vec<u8>>,
    /// Which ranges of hits each counter has had.
    seen: Vec<u8>,
    edges: usize,
    runs: u64,
    finds: Finds,
    /// The places of the panics that were found.
    known: HashSet<String>,
    current: File,
}

/// The number of runs, for the thread that notices if one does not end.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Whether the target's time is over.
static OVER: AtomicBool = AtomicBool::new(false);

impl Worker {
    fn new(target: &'static Target, arguments: &Arguments) -> io::Result<Worker> {
        let finds = Finds::new(target, &arguments.out)?;
        let current = File::create(arguments.out.join(target.name).join(CURRENT))?;
        Ok(Worker {
            target,
            chance: Chance::new(arguments.seed),
            corpus: Vec::new(),
            seen: vec![0; instruments::counters()],
            edges: 0,
            runs: 0,
            finds,
            known: HashSet::new(),
            current,
        })
    }

    fn work(mut self, arguments: &Arguments) -> io::Result<bool> {
        let end = Duration::from_secs(arguments.seconds);
        thread::spawn(move || watch(end));
        let mut inputs = (self.target.seeds)();
        inputs.extend(corpus::load(&corpus::committed(), self.target.name)?);
        inputs.extend(corpus::load(&arguments.out, self.target.name)?);
        for input in inputs {
            self.run(&input)?;
        }
        let (seeds, seeded) = (self.corpus.len(), self.edges);
        if self.corpus.is_empty() {
            self.corpus.push(Vec::new());
        }
        while !OVER.load(Relaxed) {
            self.change_one()?;
        }
        let (name, runs, edges) = (self.target.name, self.runs, self.edges);
        let seconds = processor::used().as_secs_f64();
        println!(
            "{name}: {runs} runs in {seconds:.0} s of processor time, {edges} edges ({seeded} by the {seeds} seeds), {} inputs kept, {} finds",
            self.corpus.len(),
            self.known.len()
        );
        corpus::save(&arguments.out, name, &self.corpus)?;
        if arguments.keeps {
            let kept = self.kept();
            corpus::save(&corpus::committed(), name, &kept)?;
        }
        Ok(self.known.is_empty())
    }

    /// Changes one input some times.
    fn change_one(&mut self) -> io::Result<()> {
        // Half of the time a recent input, because what it reached is known least.
        let recent = self.corpus.len().div_ceil(8);
        let at = match self.chance.below(2) {
            0 => self.corpus.len() - 1 - self.chance.below(recent),
            _ => self.chance.below(self.corpus.len()),
        };
        let parent = self.corpus[at].clone();
        instruments::start_comparing();
        self.run(&parent)?;
        let compared = instruments::stop_comparing();
        for _ in 0..CHANGES {
            if OVER.load(Relaxed) {
                return Ok(());
            }
            let mut input = parent.clone();
            let material = Material {
                other: &self.corpus[self.chance.below(self.corpus.len())],
                words: self.target.words,
                compared: &compared,
                longest: self.target.longest,
            };
            mutate(&mut input, &material, &mut self.chance);
            self.run(&input)?;
        }
        Ok(())
    }

    /// Runs an input, and keeps it if it reached new code or broke a promise.
    fn run(&mut self, input: &[u8]) -> io::Result<()> {
        self.current.set_len(input.len() as u64)?;
        self.current.write_all_at(input, 0)?;
        instruments::take_counters(|_, _| {});
        let outcome = guard::run(self.target, input);
        self.runs += 1;
        RUNS.store(self.runs, Relaxed);
        let (mut is_new, seen, edges) = (false, &mut self.seen, &mut self.edges);
        instruments::take_counters(|at, hits| {
            let bit = range_of(hits);
            if seen[at] & bit == 0 {
                *edges += usize::from(seen[at] == 0);
                seen[at] |= bit;
                is_new = true;
            }
        });
        match outcome {
            Ok(()) if is_new => self.corpus.push(input.to_vec()),
            Ok(()) => {}
            Err(how) => {
                if self.known.insert(place(&how)) {
                    let input = self.shrunk(input, &how);
                    self.finds.save(&input, &how)?;
                }
            }
        }
        Ok(())
    }

    /// The input without what its fault does not need.
    fn shrunk(&mut self, input: &[u8], how: &str) -> Vec<u8> {
        let (mut input, place_of_it) = (input.to_vec(), place(how));
        let mut runs = 0;
        let mut piece = input.len() / 2;
        while piece > 0 && runs < SHRINKING {
            let mut at = 0;
            while at < input.len() && runs < SHRINKING {
                let mut less = input.clone();
                less.drain(at..(at + piece).min(input.len()));
                runs += 1;
                RUNS.fetch_add(1, Relaxed);
                let is_same =
                    guard::run(self.target, &less).is_err_and(|how| place(&how) == place_of_it);
                if is_same {
                    input = less;
                } else {
                    at += piece;
                }
            }
            piece /= 2;
        }
        input
    }

    /// The shortest inputs that together reach the same edges, as far as they fit into a committed corpus.
    fn kept(&mut self) -> Vec<Vec<u8>> {
        let mut inputs = std::mem::take(&mut self.corpus);
        inputs.sort_by_key(Vec::len);
        let (mut reached, mut size, mut kept) = (vec![false; self.seen.len()], 0, Vec::new());
        for input in inputs {
            instruments::take_counters(|_, _| {});
            let is_clean = guard::run(self.target, &input).is_ok();
            let mut is_new = false;
            let length = input.escape_ascii().to_string().len() + 1;
            if !is_clean || size + length > KEPT_BYTES {
                continue;
            }
            instruments::take_counters(|at, _| {
                is_new |= !std::mem::replace(&mut reached[at], true)
            });
            if is_new {
                size += length;
                kept.push(input);
            }
        }
        kept
    }
}

/// The place of a panic, by which finds are distinguished: the first line of its text.
fn place(how: &str) -> String {
    how.lines().next().unwrap_or_default().to_owned()
}

/// The range of a number of hits, as a bit: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.
fn range_of(hits: u8) -> u8 {
    match hits {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128.. => 128,
    }
}

/// Sets [`OVER`] at the end of the target's time, and ends the process if an input takes too long. The supervisor then
/// takes the input from its file. An input that waits uses no processor time, so it has a limit of its own, which is
/// longer because the process may have to wait, too.
fn watch(end: Duration) {
    let now = || (processor::used(), Instant::now());
    let (mut last, mut since) = (0, now());
    loop {
        thread::sleep(Duration::from_millis(500));
        let (used, _) = now();
        if used >= end {
            OVER.store(true, Relaxed);
        }
        let runs = RUNS.load(Relaxed);
        if runs != last {
            (last, since) = (runs, now());
        } else if used - since.0 > LIMIT || since.1.elapsed() > LIMIT * 10 {
            process::exit(HUNG);
        }
    }
}
