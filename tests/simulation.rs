//! Whole contexts on a simulated network, with random programs and faults.
//!
//! ```text
//! RUSTFLAGS="--cfg zeroxide_shuttle" CARGO_TARGET_DIR=target/shuttle \
//!     cargo test -p zeroxide --profile quick --test simulation -- --pattern pubsub --seeds 1000
//! ```
//!
//! A failing run prints its seed and what happened before, and `--seed N` repeats it.

#[cfg(zeroxide_shuttle)]
mod simulated;

#[cfg(zeroxide_shuttle)]
fn main() -> std::process::ExitCode {
    simulated::runner::main()
}

#[cfg(not(zeroxide_shuttle))]
fn main() {}
