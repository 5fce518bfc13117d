//! The common part of the benches: Criterion, set to take a little more than a second per row.

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};

/// The rows of one bench.
pub type Rows<'a> = BenchmarkGroup<'a, WallTime>;

/// Runs a bench. Arguments after `--` select rows by name; for others, see `--help`.
pub fn run(name: &str, bench: impl FnOnce(&mut Rows<'_>)) {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut rows = criterion.benchmark_group(name);
    bench(&mut rows);
    rows.finish();
    criterion.final_summary();
}

/// A row: the time that a call takes, and how many of its `each` items a second holds.
#[allow(dead_code, reason = "routing takes the times of its rows itself")]
pub fn measure(rows: &mut Rows<'_>, name: &str, each: usize, mut call: impl FnMut()) {
    rows.throughput(Throughput::Elements(each as u64));
    rows.bench_function(name, |bencher| bencher.iter(&mut call));
}
