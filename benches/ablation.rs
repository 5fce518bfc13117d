//! The worth of each policy of `rust/core/src/pace.rs`: every row is measured with all policies, and without each one.
//!
//! `cargo bench -p zeroxide-benches --features ablation --bench ablation -- "one core"` picks rows by name. Each
//! measurement is a process of its own, and all variants of a row take turns, so that a busy moment of the machine hits
//! all of them. The figures are medians of the rounds. The last table shows for each policy the figure that gets worst
//! without it, among those that it is there for. A policy that nothing gets worse without can be removed.

use std::env;
use std::hint::black_box;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use zeroxide::binding::{Policy, switch_off};
use zeroxide::{Context, Frame, Message, Result, Socket, SocketType, Wait};

const ROUNDS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(100);
const ROUND: Duration = Duration::from_millis(600);

/// A policy to do without, and the rows that it is there for.
struct Variant {
    name: &'static str,
    policy: Option<Policy>,
    rows: &'static [usize],
}

const VARIANTS: [Variant; 9] = [
    variant("all policies", None, &[]),
    variant("Write", Some(Policy::Write), &[0, 1, 2]),
    variant("Turns", Some(Policy::Turns), &[0]),
    variant("Gap", Some(Policy::Gap), &[3, 5]),
    variant("Allowance", Some(Policy::Allowance), &[5]),
    variant("Read", Some(Policy::Read), &[0, 1, 2]),
    variant("ReadRuns", Some(Policy::ReadRuns), &[4]),
    variant("Between", Some(Policy::Between), &[0, 1, 2]),
    variant("Spin", Some(Policy::Spin), &[0]),
];

const fn variant(name: &'static str, policy: Option<Policy>, rows: &'static [usize]) -> Variant {
    Variant { name, policy, rows }
}

struct Row {
    name: &'static str,
    columns: &'static [&'static str],
    measure: fn() -> Result<Vec<f64>>,
}

const TRIPS: &[&str] = &["p50 us", "p99 us", "p99.9 us", "CPU us"];
const MESSAGES: &[&str] = &[RATE, "CPU us"];
/// The only column where more is better.
const RATE: &str = "messages/s";

const ROWS: [Row; 6] = [
    Row {
        name: "REQ/REP 1 B tcp, round trip",
        columns: TRIPS,
        measure: round_trips,
    },
    Row {
        name: "REQ/REP 1 B tcp, all on one core",
        columns: TRIPS,
        measure: || {
            on_one_core();
            round_trips()
        },
    },
    Row {
        name: "REQ/REP 1 B tcp, beside two spinning processes",
        columns: TRIPS,
        measure: || {
            let _beside = [Spinner::start(), Spinner::start()];
            round_trips()
        },
    },
    Row {
        name: "PUSH/PULL 64 B tcp",
        columns: MESSAGES,
        measure: || stream(SocketType::Pull, SocketType::Push, 1),
    },
    Row {
        name: "PUSH/PULL 64 B tcp, 20 messages each millisecond",
        columns: &["p50 us", "p99 us", "CPU us"],
        measure: bursts,
    },
    Row {
        name: "PUB to 16 SUB 64 B tcp",
        columns: MESSAGES,
        measure: || stream(SocketType::Sub, SocketType::Pub, 16),
    },
];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    match &arguments[..] {
        [role] if role == "spin" => loop {
            black_box(());
        },
        [role, row, policy] if role == "measure" => measure(row, policy),
        _ => {
            let wanted = arguments.first().map_or("", String::as_str);
            let rows = ROWS.iter().enumerate();
            let measured: Vec<Figures> = rows
                .filter(|(_, row)| row.name.contains(wanted))
                .map(|(index, row)| compare(index, row))
                .collect();
            judge(&measured);
            Ok(())
        }
    }
}

/// Measures a row in this process, and prints the figures for [`compare`].
fn measure(row: &str, policy: &str) -> Result<()> {
    let number = |text: &str| text.parse::<usize>().expect("a number");
    if let Some(policy) = VARIANTS[number(policy)].policy {
        switch_off(policy);
    }
    let figures: Vec<String> = (ROWS[number(row)].measure)()?
        .iter()
        .map(f64::to_string)
        .collect();
    println!("{}", figures.join(" "));
    Ok(())
}

/// The medians of a row: for each variant, one figure per column.
struct Figures {
    row: usize,
    medians: Vec<Vec<f64>>,
}

fn compare(index: usize, row: &Row) -> Figures {
    let mut rounds = vec![Vec::new(); VARIANTS.len()];
    for _ in 0..ROUNDS {
        for (variant, figures) in rounds.iter_mut().enumerate() {
            let output = this_program(&["measure", &index.to_string(), &variant.to_string()])
                .output()
                .expect("this program runs");
            let text = String::from_utf8_lossy(&output.stdout);
            let round: Vec<f64> = text
                .split_whitespace()
                .map(|figure| figure.parse().expect("a figure"))
                .collect();
            assert_eq!(round.len(), row.columns.len(), "{}", row.name);
            figures.push(round);
        }
    }
    let median = |rounds: &Vec<Vec<f64>>, column: usize| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let medians: Vec<Vec<f64>> = rounds
        .iter()
        .map(|rounds| {
            (0..row.columns.len())
                .map(|column| median(rounds, column))
                .collect()
        })
        .collect();
    println!("{}", row.name);
    print!("  {:<20}", "");
    row.columns.iter().for_each(|name| print!("{name:>14}"));
    println!();
    for (variant, figures) in VARIANTS.iter().zip(&medians) {
        let without = if variant.policy.is_some() {
            "without "
        } else {
            ""
        };
        print!("  {:<20}", format!("{without}{}", variant.name));
        figures.iter().for_each(|figure| print!("{figure:>14.2}"));
        println!();
    }
    Figures {
        row: index,
        medians,
    }
}

/// Prints for each policy the figure that gets worst without it.
fn judge(measured: &[Figures]) {
    println!("What gets worse without a policy");
    for (number, variant) in VARIANTS.iter().enumerate().skip(1) {
        let mut worst: Option<(f64, &str, &str)> = None;
        for figures in measured
            .iter()
            .filter(|figures| variant.rows.contains(&figures.row))
        {
            let row = &ROWS[figures.row];
            for (column, name) in row.columns.iter().enumerate() {
                let (with, without) = (figures.medians[0][column], figures.medians[number][column]);
                let ratio = if *name == RATE {
                    with / without
                } else {
                    without / with
                };
                if worst.is_none_or(|(most, ..)| ratio > most) {
                    worst = Some((ratio, row.name, name));
                }
            }
        }
        match worst {
            Some((ratio, row, column)) => {
                println!("  {:<12}{ratio:>6.2} x  {column}, {row}", variant.name);
            }
            None => println!("  {:<12}its rows were not measured", variant.name),
        }
    }
}

fn this_program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(arguments);
    command
}

/// A process that uses all it gets of a core.
struct Spinner(Child);

impl Spinner {
    fn start() -> Spinner {
        Spinner(this_program(&["spin"]).spawn().expect("this program runs"))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn on_one_core() {
    let mut cores = CpuSet::new();
    cores.set(0);
    sched_setaffinity(None, &cores).expect("core 0 can be used");
}

/// The CPU time of this process, in microseconds.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// A socket in a context of its own.
fn connected(endpoint: &str, kind: SocketType) -> Result<Socket> {
    let socket = Context::new().socket(kind)?;
    socket.connect(endpoint)?;
    Ok(socket)
}

fn round_trips() -> Result<Vec<f64>> {
    let rep = Context::new().socket(SocketType::Rep)?;
    let req = connected(&rep.bind("tcp://127.0.0.1:*")?, SocketType::Req)?;
    thread::scope(|scope| {
        scope.spawn(|| -> Result<()> {
            loop {
                let request = rep.recv(Wait::Forever)?;
                if request.head().is_empty() {
                    return Ok(());
                }
                rep.send(request, Wait::Forever)?;
            }
        });
        let (start, mut trips, mut cpu) = (Instant::now(), Vec::new(), 0.0);
        while start.elapsed() < WARM_UP + ROUND {
            let begun = Instant::now();
            req.send("x", Wait::Forever)?;
            req.recv(Wait::Forever)?;
            if start.elapsed() < WARM_UP {
                cpu = cpu_us();
            } else {
                trips.push(begun.elapsed().as_secs_f64() * 1e6);
            }
        }
        let cpu = cpu_us() - cpu;
        req.send("", Wait::Forever)?;
        trips.sort_by(f64::total_cmp);
        let at = |share: f64| trips[((trips.len() - 1) as f64 * share) as usize];
        Ok(vec![at(0.5), at(0.99), at(0.999), cpu / trips.len() as f64])
    })
}

/// Messages from one socket to others, until the first of them has received for long enough.
fn stream(receiving: SocketType, sending: SocketType, receivers: usize) -> Result<Vec<f64>> {
    let sender = Context::new().socket(sending)?;
    let endpoint = sender.bind("tcp://127.0.0.1:*")?;
    let receivers = (0..receivers)
        .map(|_| {
            let receiver = connected(&endpoint, receiving)?;
            if receiving == SocketType::Sub {
                receiver.subscribe("")?;
            }
            Ok(receiver)
        })
        .collect::<Result<Vec<Socket>>>()?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let until = Instant::now() + Duration::from_millis(50);
                for _ in 0..64 {
                    let message = Message::from(Frame::copy_from(&[7; 64]));
                    // A sender without room ends with the receivers.
                    let _ = sender.send(message, Wait::Until(until));
                }
            }
        });
        for receiver in &receivers[1..] {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let until = Instant::now() + Duration::from_millis(50);
                    let _ = receiver.recv(Wait::Until(until));
                }
            });
        }
        let counted = count(&receivers[0], WARM_UP).and_then(|_| {
            let before = cpu_us();
            let (rate, messages) = count(&receivers[0], ROUND)?;
            Ok(vec![rate, (cpu_us() - before) / messages])
        });
        stop.store(true, Ordering::Relaxed);
        counted
    })
}

/// Messages that come several at a time, to a receiver that keeps up with them: how long each took, and the CPU time.
fn bursts() -> Result<Vec<f64>> {
    const BURST: usize = 20;
    let pull = Context::new().socket(SocketType::Pull)?;
    let push = connected(&pull.bind("tcp://127.0.0.1:*")?, SocketType::Push)?;
    let (start, stop) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| -> Result<()> {
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
                for _ in 0..BURST {
                    let mut body = [0; 64];
                    let now = start.elapsed().as_nanos() as u64;
                    body[..8].copy_from_slice(&now.to_le_bytes());
                    push.send(Message::from(Frame::copy_from(&body)), Wait::Forever)?;
                }
            }
            Ok(())
        });
        let (mut times, mut cpu) = (Vec::new(), 0.0);
        let measured = loop {
            let message = pull.recv(Wait::Forever)?;
            let now = start.elapsed();
            if now < WARM_UP {
                cpu = cpu_us();
                continue;
            }
            let sent = u64::from_le_bytes(message.head()[..8].try_into().expect("8 bytes"));
            times.push((now.as_nanos() as u64).saturating_sub(sent) as f64 / 1e3);
            if now >= WARM_UP + ROUND {
                break cpu_us() - cpu;
            }
        };
        stop.store(true, Ordering::Relaxed);
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        Ok(vec![at(0.5), at(0.99), measured / times.len() as f64])
    })
}

/// Messages per second, and how many there were.
fn count(receiver: &Socket, time: Duration) -> Result<(f64, f64)> {
    let (start, mut messages) = (Instant::now(), 0.0);
    while start.elapsed() < time {
        for _ in 0..64 {
            receiver.recv(Wait::Forever)?;
        }
        messages += 64.0;
    }
    Ok((messages / start.elapsed().as_secs_f64(), messages))
}
