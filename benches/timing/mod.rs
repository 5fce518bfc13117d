//! What the benches share: run something for a while, several times over, and print the nanoseconds of one.

use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(100);

/// Prints the median and the least time that one of the `each` items of a `call` took.
pub fn measure(name: &str, each: usize, mut call: impl FnMut()) {
    call();
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round(each, &mut call)).collect();
    rounds.sort_by(f64::total_cmp);
    let (least, median) = (rounds[0], rounds[ROUNDS / 2]);
    println!(
        "{name:<52} {median:>9.1} ns  (least {least:.1})  {:>8.2} M/s",
        1e3 / median
    );
}

/// Calls until the time is up; nanoseconds per item.
fn round(each: usize, call: &mut impl FnMut()) -> f64 {
    let (start, mut items) = (Instant::now(), 0);
    while start.elapsed() < ROUND {
        call();
        items += each;
    }
    start.elapsed().as_nanos() as f64 / items as f64
}
