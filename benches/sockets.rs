//! Sockets without Python: PUSH/PULL messages per second and REQ/REP round trips, both ends in one process, each on a
//! thread of its own (and its own context, but for inproc). `cargo bench --bench sockets -- tcp` picks rows by name.

use std::env;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zeroxide::{Context, Frame, Message, Result, Socket, SocketType, Wait};

const ROUNDS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(100);
const ROUND: Duration = Duration::from_millis(500);
const SIZES: [usize; 5] = [8, 64, 1024, 16 * 1024, 256 * 1024];

fn main() -> Result<()> {
    let wanted = env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
        .unwrap_or_default();
    let path = env::temp_dir().join(format!("zeroxide-bench-{}", std::process::id()));
    for transport in ["tcp", "ipc", "inproc"] {
        for size in SIZES {
            let name = format!("PUSH/PULL {transport} {size} B");
            if name.contains(&wanted) {
                rounds(&name, "messages/s", || {
                    throughput(&endpoint(transport, &path), size)
                })?;
            }
        }
        let name = format!("REQ/REP {transport} 1 B");
        if name.contains(&wanted) {
            rounds(&name, "us one way, median", || {
                latency(&endpoint(transport, &path))
            })?;
        }
    }
    Ok(())
}

fn endpoint(transport: &str, path: &Path) -> String {
    match transport {
        "tcp" => "tcp://127.0.0.1:*".to_owned(),
        "ipc" => format!("ipc://{}", path.display()),
        _ => "inproc://bench".to_owned(),
    }
}

/// Prints the median, the least and the most of several rounds.
fn rounds(name: &str, unit: &str, run: impl Fn() -> Result<f64>) -> Result<()> {
    let mut results = (0..ROUNDS).map(|_| run()).collect::<Result<Vec<f64>>>()?;
    results.sort_by(f64::total_cmp);
    let (least, median, most) = (results[0], results[ROUNDS / 2], results[ROUNDS - 1]);
    println!("{name:<32} {median:>12.1} {unit} ({least:.1}-{most:.1})");
    Ok(())
}

/// A bound socket and one connected to it.
fn pair(bound: SocketType, connected: SocketType, endpoint: &str) -> Result<(Socket, Socket)> {
    let context = Context::new();
    let one = context.socket(bound)?;
    let endpoint = one.bind(endpoint)?;
    let other = if endpoint.starts_with("inproc:") {
        context
    } else {
        Context::new()
    };
    let other = other.socket(connected)?;
    other.connect(&endpoint)?;
    Ok((one, other))
}

/// Messages per second that arrive.
fn throughput(endpoint: &str, size: usize) -> Result<f64> {
    let (pull, push) = pair(SocketType::Pull, SocketType::Push, endpoint)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let body = vec![7; size];
            // The timeout lets the loop end when the receiver no longer reads.
            while !stop.load(Ordering::Relaxed) {
                let until = Instant::now() + Duration::from_millis(50);
                for _ in 0..64 {
                    if push
                        .send(Message::from(Frame::copy_from(&body)), Wait::Until(until))
                        .is_err()
                    {
                        break;
                    }
                }
            }
        });
        let counted = count(&pull, WARM_UP).and_then(|_| count(&pull, ROUND));
        stop.store(true, Ordering::Relaxed);
        counted
    })
}

fn count(pull: &Socket, time: Duration) -> Result<f64> {
    let (start, mut messages) = (Instant::now(), 0_u32);
    while start.elapsed() < time {
        for _ in 0..64 {
            pull.recv(Wait::Forever)?;
        }
        messages += 64;
    }
    Ok(f64::from(messages) / start.elapsed().as_secs_f64())
}

/// Half of the median round trip, in microseconds.
fn latency(endpoint: &str) -> Result<f64> {
    let (rep, req) = pair(SocketType::Rep, SocketType::Req, endpoint)?;
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
        let (start, mut trips) = (Instant::now(), Vec::new());
        while start.elapsed() < WARM_UP + ROUND {
            let begun = Instant::now();
            req.send("x", Wait::Forever)?;
            req.recv(Wait::Forever)?;
            if start.elapsed() > WARM_UP {
                trips.push(begun.elapsed().as_secs_f64());
            }
        }
        req.send("", Wait::Forever)?;
        trips.sort_by(f64::total_cmp);
        Ok(trips[trips.len() / 2] / 2.0 * 1e6)
    })
}
