//! The cost of topics: bytes per topic and nanoseconds per operation, for 1 to 1 000 000 topics of 20 bytes.
//!
//! `cargo run --release -p zeroxide-proto --example topics`
//!
//! Each line is a separate process, so that memory freed by one measurement is not reused by the next. Bytes are the
//! growth of resident memory. Small numbers of topics are measured in many tables, which then compete for the caches as
//! the sockets of a program would.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use zeroxide_proto::subscription::{SubscriberTable, Subscriptions};

const COUNTS: [usize; 4] = [1, 1_000, 100_000, 1_000_000];
const TEXTS: [&str; 3] = ["random", "counter", "path"];
const LOOKUPS: usize = 3_000_000;
const ROUNDS: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [table, text, count] = &arguments[..] {
        return measure(table, text, count.parse().expect("a number of topics"));
    }
    println!(
        "{:10} {:8} {:>9} {:>8} {:>7} {:>7} {:>7} {:>9}",
        "table", "topics", "count", "B each", "add ns", "hit ns", "miss ns", "remove ns"
    );
    for table in ["subscriber", "publisher"] {
        for (text, count) in TEXTS
            .iter()
            .flat_map(|text| COUNTS.map(|count| (text, count)))
        {
            let program = std::env::current_exe().expect("this program has a path");
            let status = Command::new(program)
                .args([table, text, &count.to_string()])
                .status();
            assert!(
                status.is_ok_and(|status| status.success()),
                "{table} {text} {count}"
            );
        }
    }
}

fn measure(table: &str, text: &str, count: usize) {
    let figures = match table {
        "subscriber" => run::<Subscriptions>(text, count),
        _ => run::<SubscriberTable<u64>>(text, count),
    };
    let [bytes, add, hit, miss, remove] = figures;
    println!(
        "{table:10} {text:8} {count:9} {bytes:8.0} {add:7.0} {hit:7.1} {miss:7.1} {remove:9.0}"
    );
}

/// The measured operations of either table.
trait Table: Default {
    fn add(&mut self, topic: &[u8]);
    fn matches(&self, text: &[u8]) -> bool;
    fn remove_all(&mut self, topics: &[[u8; 20]]);
}

impl Table for Subscriptions {
    fn add(&mut self, topic: &[u8]) {
        self.add(topic);
    }

    fn matches(&self, text: &[u8]) -> bool {
        self.matches(text)
    }

    fn remove_all(&mut self, topics: &[[u8; 20]]) {
        for topic in topics {
            self.remove(topic);
        }
    }
}

/// All topics wanted by one peer, which then leaves.
impl Table for SubscriberTable<u64> {
    fn add(&mut self, topic: &[u8]) {
        self.add(topic, 7);
    }

    fn matches(&self, text: &[u8]) -> bool {
        let mut found = false;
        self.for_each_match(text, |peer| found |= peer == 7);
        found
    }

    fn remove_all(&mut self, _topics: &[[u8; 20]]) {
        self.remove_peer(7, |topic| _ = black_box(topic));
    }
}

/// Bytes per topic, then nanoseconds per added topic, matched text, other text, removed topic.
fn run<T: Table>(text: &str, count: usize) -> [f64; 5] {
    let topics: Vec<[u8; 20]> = (0..count as u64).map(|n| topic(text, n)).collect();
    let others: Vec<[u8; 20]> = (0..count as u64)
        .map(|n| topic(text, n + (1 << 32)))
        .collect();
    let mut tables: Vec<T> = Vec::new();
    tables.resize_with((100_000 / count).max(1), T::default);
    let each = (tables.len() * count) as f64;

    let (before, started) = (resident(), Instant::now());
    for table in &mut tables {
        for topic in &topics {
            table.add(topic);
        }
    }
    let add = started.elapsed().as_nanos() as f64 / each;
    let bytes = (resident() - before) as f64 / each;
    let hit = time(&topics, |text| tables[0].matches(text));
    let miss = time(&others, |text| tables[0].matches(text));
    let started = Instant::now();
    for table in &mut tables {
        table.remove_all(&topics);
    }
    let remove = started.elapsed().as_nanos() as f64 / each;
    [bytes, add, hit, miss, remove]
}

/// Nanoseconds per lookup, in an order the processor cannot guess; the best of some rounds. The texts themselves are read one after the other:
/// a message about to be matched has just been written.
fn time(topics: &[[u8; 20]], mut matches: impl FnMut(&[u8]) -> bool) -> f64 {
    let texts: Vec<[u8; 20]> = (0..LOOKUPS as u64)
        .map(|n| topics[(mix(n) % topics.len() as u64) as usize])
        .collect();
    let round = |texts: &[[u8; 20]]| {
        let started = Instant::now();
        for text in texts {
            black_box(matches(black_box(text)));
        }
        started.elapsed().as_nanos() as f64 / texts.len() as f64
    };
    texts
        .chunks(LOOKUPS / ROUNDS)
        .map(round)
        .fold(f64::INFINITY, f64::min)
}

/// The nth topic, all different: 20 random bytes, a sequence number after a name, or levels with few values each.
fn topic(text: &str, n: u64) -> [u8; 20] {
    let mut topic = [0; 20];
    match text {
        "random" => {
            topic[..8].copy_from_slice(&mix(n).to_le_bytes());
            topic[8..16].copy_from_slice(&n.to_le_bytes());
        }
        "counter" => topic.copy_from_slice(format!("sensor.{n:010}.ab").as_bytes()),
        _ => {
            let (a, b, c) = (n / 10_000, n / 100 % 100, n % 100);
            topic.copy_from_slice(format!("{a:07}/b{b:03}/c{c:02}/raw").as_bytes());
        }
    }
    topic
}

/// A bijective scrambling of 64 bits (the finalizer of splitmix64).
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// Resident memory of this process in bytes.
fn resident() -> i64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has /proc");
    let pages = pages
        .split(' ')
        .nth(1)
        .expect("the second number is resident");
    pages.parse::<i64>().expect("a number of pages") * 4096
}
