//! The pipeline on simulated disks, with random programs, stops and faults.
//!
//! ```text
//! RUSTFLAGS="--cfg zeroxide_disk" CARGO_TARGET_DIR=target/disk \
//!     cargo test -p zeroxide-pipeline --profile quick --test simulation -- --seeds 100000
//! ```
//!
//! A failing run prints its seed, and `--seed N` repeats it with a trace.

#[cfg(zeroxide_disk)]
fn main() -> std::process::ExitCode {
    zeroxide_pipeline::simulation::main()
}

#[cfg(not(zeroxide_disk))]
fn main() {}
