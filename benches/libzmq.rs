//! zeroxide's side of the comparison with libzmq's C: benches/c/libzmq.c has the same roles, arguments and lines of
//! output, and benches/python/native.py builds both, starts them against themselves, and compares.
//!
//! `libzmq ROLE SIZE SECONDS IO_THREADS SOCKETS [ENDPOINT...]`

use std::env;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
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
        "raw_pull" => raw_pull(&task),
        "raw_push" => raw_push(&task),
        "raw_rep" => raw_rep(),
        "raw_req" => raw_req(&task),
        _ => exit(2),
    }
    exit(0)
}

fn bound(task: &Task, kind: SocketType) -> zeroxide::Result<(Socket, String)> {
    let socket = task.context.socket(kind)?;
    let endpoint = socket.bind("tcp://127.0.0.1:*")?;
    Ok((socket, endpoint))
}

fn connected(task: &Task, kind: SocketType, endpoint: &str) -> zeroxide::Result<Socket> {
    let socket = task.context.socket(kind)?;
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

/// The same over a bare connection, one thread on each side and one buffer: the time that the kernel alone takes.
fn raw_pull(task: &Task) {
    let mut stream = raw_accepted();
    let counter = Arc::new(AtomicU64::new(0));
    let (shared, mut buffer) = (Arc::clone(&counter), vec![0; task.size]);
    thread::spawn(move || {
        let mut bytes = 0;
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            bytes += count;
            shared.store((bytes / buffer.len()) as u64, Ordering::Relaxed);
        }
    });
    measure(task, vec![counter]);
}

fn raw_push(task: &Task) {
    let mut stream = raw_connected(task);
    let buffer = vec![0; task.size];
    while stream.write_all(&buffer).is_ok() {}
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

fn raw_accepted() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("endpoints {}", listener.local_addr().expect("its address"));
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_nodelay(true).expect("a tcp connection");
    stream
}

fn raw_connected(task: &Task) -> TcpStream {
    let stream = TcpStream::connect(&task.endpoints[0]).expect("a connection");
    stream.set_nodelay(true).expect("a tcp connection");
    stream
}

/// The same over a bare connection: the time that the kernel alone takes.
fn raw_rep() {
    let mut stream = raw_accepted();
    let mut body = [0; 64];
    while let Ok(count @ 1..) = stream.read(&mut body) {
        stream.write_all(&body[..count]).expect("a peer");
    }
}

fn raw_req(task: &Task) {
    let mut stream = raw_connected(task);
    let mut body = [0; 64];
    turns(task, || {
        stream.write_all(&body[..1]).expect("a peer");
        let _ = stream.read(&mut body).expect("a peer");
    });
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
