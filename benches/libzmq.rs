//! zeroxide's side of the comparison with libzmq's C: benches/c/libzmq.c has the same roles, arguments and lines of
//! output, and benches/python/native.py builds both, starts them against themselves, and compares.
//!
//! `libzmq ROLE SIZE SECONDS IO_THREADS SOCKETS [ENDPOINT...]`
//!
//! In the environment, ZEROXIDE_BENCH_BIND is the endpoint to bind instead of one of tcp, ZEROXIDE_BENCH_RATE the limit of
//! multicast transports in kbit/s, and ZEROXIDE_BENCH_CERTIFICATES the folder with ca.pem, server.pem and server.key.

mod bare;

use std::env;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zeroxide::{Context, ContextOptions, Frame, Message, Socket, SocketType, Wait};

const WARM_UP: Duration = Duration::from_millis(150);
const RUN: u64 = 64;
const MOST_TRIPS: usize = 4_000_000;

type Outcome = zeroxide::Result<()>;

struct Task {
    context: Context,
    size: usize,
    seconds: f64,
    sockets: usize,
    endpoints: Vec<String>,
}

fn main() -> Outcome {
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let Some((role, rest)) = words.split_first() else {
        println!("benches/python/native.py runs this");
        return Ok(());
    };
    if rest.len() < 4 {
        println!("{}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    let number = |place: usize| rest[place].parse::<f64>().expect("a number");
    let mut options = ContextOptions::default();
    options.io_threads = number(2) as usize;
    let task = Task {
        context: Context::with_options(options),
        size: number(0) as usize,
        seconds: number(1),
        sockets: number(3) as usize,
        endpoints: rest[4..].to_vec(),
    };
    match role.as_str() {
        "pull" => pull(&task)?,
        "push" => push(&task)?,
        "inproc" => inproc(&task)?,
        "rep" => rep(&task)?,
        "req" => req(&task)?,
        "count" => count(&task)?,
        "giant_bind" => giant_bind(&task)?,
        "giant_connect" => giant_connect(&task)?,
        "sub" => sub(&task)?,
        "pub" => publish(&task)?,
        "raw_pull" => bare::pull(&task, bare::accepted()),
        "raw_push" => bare::push(&task, bare::connected(&task)),
        "raw_rep" => bare::rep(),
        "raw_req" => bare::req(&task),
        "tls_pull" => bare::pull(&task, bare::accepted_with_tls()),
        "tls_push" => bare::push(&task, bare::connected_with_tls(&task)),
        _ => exit(2),
    }
    exit(0)
}

fn bound(task: &Task, kind: SocketType) -> zeroxide::Result<(Socket, String)> {
    let socket = opened(task, kind)?;
    let wanted = env::var("ZEROXIDE_BENCH_BIND");
    let endpoint = socket.bind(wanted.as_deref().unwrap_or("tcp://127.0.0.1:*"))?;
    Ok((socket, endpoint))
}

/// A socket with the settings of the environment.
fn opened(task: &Task, kind: SocketType) -> zeroxide::Result<Socket> {
    let socket = task.context.socket(kind)?;
    if let Ok(limit) = env::var("ZEROXIDE_BENCH_RATE") {
        socket.set_rate(limit.parse().expect("a number"))?;
    }
    if env::var_os("ZEROXIDE_BENCH_CERTIFICATES").is_some() {
        socket.set_tls_certificate(&bare::certificate("server.pem"))?;
        socket.set_tls_key(&bare::certificate("server.key"))?;
        socket.set_tls_ca(&bare::certificate("ca.pem"))?;
        socket.set_tls_client_auth(0)?;
    }
    Ok(socket)
}

fn connected(task: &Task, kind: SocketType, endpoint: &str) -> zeroxide::Result<Socket> {
    let socket = opened(task, kind)?;
    socket.connect(endpoint)?;
    Ok(socket)
}

fn send(socket: &Socket, body: &[u8]) {
    socket
        .send(Message::from(Frame::copy_from(body)), Wait::Forever)
        .expect("a socket that is open");
}

fn recv(socket: &Socket) -> Message {
    socket.recv(Wait::Forever).expect("a socket that is open")
}

// ---- streams -------------------------------------------------------------------------------------------------------

fn pull(task: &Task) -> Outcome {
    let (sockets, endpoints): (Vec<_>, Vec<_>) = (0..task.sockets)
        .map(|_| bound(task, SocketType::Pull))
        .collect::<zeroxide::Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    println!("endpoints {}", endpoints.join(" "));
    let counters = sockets.into_iter().map(read_on).collect();
    measure(task, counters);
    Ok(())
}

/// Reads forever in a thread; returns the count of messages read.
fn read_on(socket: Socket) -> Arc<AtomicU64> {
    let counter = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&counter);
    thread::spawn(move || {
        loop {
            for _ in 0..RUN {
                recv(&socket);
            }
            shared.store(shared.load(Ordering::Relaxed) + RUN, Ordering::Relaxed);
        }
    });
    counter
}

/// Counts what the readers receive between the two lines.
fn measure(task: &Task, counters: Vec<Arc<AtomicU64>>) {
    let total = || -> u64 {
        counters
            .iter()
            .map(|counter| counter.load(Ordering::Relaxed))
            .sum()
    };
    while total() == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(WARM_UP);
    println!("begin");
    let (before, start) = (total(), Instant::now());
    thread::sleep(Duration::from_secs_f64(task.seconds));
    println!("end {} {}", total() - before, start.elapsed().as_nanos());
}

fn push(task: &Task) -> Outcome {
    for endpoint in &task.endpoints {
        write_on(connected(task, SocketType::Push, endpoint)?, task.size);
    }
    loop {
        thread::park();
    }
}

fn write_on(socket: Socket, size: usize) {
    thread::spawn(move || {
        let body = vec![0; size];
        loop {
            send(&socket, &body);
        }
    });
}

/// Over a multicast transport, both sides take the group.
fn sub(task: &Task) -> Outcome {
    let (socket, endpoint) = bound(task, SocketType::Sub)?;
    socket.subscribe(b"")?;
    println!("endpoints {endpoint}");
    measure(task, vec![read_on(socket)]);
    Ok(())
}

fn publish(task: &Task) -> Outcome {
    let (socket, _) = bound(task, SocketType::Pub)?;
    socket.set_xpub_nodrop(true)?;
    write_on(socket, task.size);
    loop {
        thread::park();
    }
}

fn inproc(task: &Task) -> Outcome {
    let reader = task.context.socket(SocketType::Pull)?;
    reader.bind("inproc://bench")?;
    write_on(
        connected(task, SocketType::Push, "inproc://bench")?,
        task.size,
    );
    measure(task, vec![read_on(reader)]);
    Ok(())
}

// ---- in turns ------------------------------------------------------------------------------------------------------

/// Nanoseconds of round trips, sorted.
fn trips(limit: Duration, most: usize, mut trip: impl FnMut()) -> Vec<u128> {
    let (start, mut times) = (Instant::now(), Vec::with_capacity(1 << 16));
    let mut before = start;
    while before - start < limit && times.len() < most {
        trip();
        let now = Instant::now();
        times.push((now - before).as_nanos());
        before = now;
    }
    times.sort_unstable();
    times
}

fn say_trips(name: &str, times: &[u128]) {
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    println!(
        "{name} {} {} {} {}",
        times.len(),
        at(0.5),
        at(0.99),
        at(0.999)
    );
}

fn turns(task: &Task, mut trip: impl FnMut()) {
    trips(WARM_UP, MOST_TRIPS, &mut trip);
    println!("begin");
    let limit = Duration::from_secs_f64(task.seconds);
    say_trips("end", &trips(limit, MOST_TRIPS, trip));
}

fn req(task: &Task) -> Outcome {
    let socket = connected(task, SocketType::Req, &task.endpoints[0])?;
    let body = vec![0; task.size];
    turns(task, || {
        send(&socket, &body);
        recv(&socket);
    });
    Ok(())
}

/// An exact number of trips, for counting system calls.
fn count(task: &Task) -> Outcome {
    let socket = connected(task, SocketType::Req, &task.endpoints[0])?;
    let body = vec![0; task.size];
    trips(Duration::MAX, task.seconds as usize, || {
        send(&socket, &body);
        recv(&socket);
    });
    send(&socket, b"");
    recv(&socket);
    Ok(())
}

fn rep(task: &Task) -> Outcome {
    let (socket, endpoint) = bound(task, SocketType::Rep)?;
    println!("endpoints {endpoint}");
    loop {
        let request = recv(&socket);
        let last = request.head().is_empty();
        socket
            .send(request, Wait::Forever)
            .expect("a socket that is open");
        if last {
            thread::sleep(Duration::from_millis(50)); // the last answer leaves
            return Ok(());
        }
    }
}

// ---- beside a giant ------------------------------------------------------------------------------------------------

fn giant_bind(task: &Task) -> Outcome {
    let (small, one) = bound(task, SocketType::Rep)?;
    let (large, other) = bound(task, SocketType::Pull)?;
    println!("endpoints {one} {other}");
    let arrived = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&arrived);
    thread::spawn(move || {
        loop {
            recv(&small);
            send(&small, &[u8::from(seen.load(Ordering::SeqCst))]);
        }
    });
    let giant = recv(&large);
    arrived.store(true, Ordering::SeqCst);
    drop(giant);
    loop {
        thread::park();
    }
}

fn giant_connect(task: &Task) -> Outcome {
    let small = connected(task, SocketType::Req, &task.endpoints[0])?;
    let large = connected(task, SocketType::Push, &task.endpoints[1])?;
    turns(task, || {
        send(&small, b"x");
        recv(&small);
    });
    let size = task.size;
    let sender = thread::spawn(move || {
        large
            .send(Message::from(vec![7; size]), Wait::Forever)
            .expect("a socket that is open");
        large
    });
    let (mut times, mut arrived) = (Vec::new(), false);
    while !arrived {
        let before = Instant::now();
        send(&small, b"x");
        arrived = recv(&small).head().as_slice() == [1];
        times.push(before.elapsed().as_nanos());
    }
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100];
    let longest = times[times.len() - 1];
    println!("giant {} {} {} {longest}", times.len(), at(50), at(99));
    drop(sender.join());
    Ok(())
}
