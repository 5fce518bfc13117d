//! Fuzzing of everything that reads bytes of peers or of files, on stable Rust.
//!
//! A [`Target`] feeds bytes to one part of zeroxide and panics if a promise is broken: that is its oracle. The program
//! `zeroxide-fuzz` ([`worker`]) changes bytes at random and keeps what reaches new code, which it sees in counters that LLVM puts into
//! the instrumented crates ([`instruments`], `instrument`). `cargo test` replays the committed corpora without counters.

pub mod arguments;
pub mod corpus;
pub mod guard;
pub mod instruments;
pub mod mutate;
mod processor;
pub mod supervisor;
pub mod targets;
pub mod worker;

/// One part of zeroxide, and how bytes get into it.
pub struct Target {
    /// Its name on the command line, and that of its corpus.
    pub name: &'static str,
    /// The part.
    pub about: &'static str,
    /// Feeds it an input. Panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs to start with, from exchanges between real peers or from real files.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that mutations insert, because comparisons of texts leave no trace in the counters.
    pub words: &'static [&'static [u8]],
    /// The maximum length of an input.
    pub longest: usize,
}
