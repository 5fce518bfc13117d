//! The common part of the integration tests: no result depends on the speed of the machine.
//!
//! A test waits for events, never for time to pass. If there is no event, it polls until the expected state is reached.
//! A [`Watchdog`] ends the process if a test waits for something that never happens.

// Each test binary uses a part of this.
#![allow(dead_code)]

pub mod certificates;
pub mod deadlines;
pub mod raw;

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, Frame, Message, Socket, SocketType, Value, Wait, ids,
};

/// Longer than any test takes anywhere.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ends the process, saying which test hangs, unless it is dropped in time.
pub struct Watchdog {
    alive: Sender<()>,
}

impl Watchdog {
    /// Watches a test.
    pub fn new(test: &'static str) -> Watchdog {
        Watchdog::with_patience(test, PATIENCE)
    }

    /// Watches a test that may take long.
    pub fn with_patience(test: &'static str, patience: Duration) -> Watchdog {
        let (alive, listen) = mpsc::channel();
        thread::spawn(move || {
            let mut limit = patience;
            while let Err(RecvTimeoutError::Timeout) | Ok(()) = {
                let heard = listen.recv_timeout(limit);
                if heard == Err(RecvTimeoutError::Timeout) {
                    eprintln!(
                        "{test} has waited for {patience:?} for something that does not come"
                    );
                    print_threads();
                    process::abort();
                }
                limit = patience;
                heard
            } {}
        });
        Watchdog { alive }
    }

    /// The test has come a step further.
    pub fn feed(&self) {
        let _ = self.alive.send(());
    }
}

fn print_threads() {
    for task in fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let (name, call) = (read("comm"), read("syscall"));
        eprintln!("  thread {}: {}", name.trim(), call.trim());
    }
}

/// How often a default run does something, and how often one with `ZEROXIDE_FULL=1`.
pub fn rounds(normal: usize, full: usize) -> usize {
    if env::var_os("ZEROXIDE_FULL").is_some_and(|set| set == "1") {
        full
    } else {
        normal
    }
}

/// Polls until `seen` returns true, for states without an event.
pub fn until(mut seen: impl FnMut() -> bool) {
    while !seen() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The calling thread, for [`until_asleep`].
pub fn own_thread() -> PathBuf {
    Path::new("/proc").join(fs::read_link("/proc/thread-self").unwrap())
}

/// Polls until another thread sleeps in the kernel.
pub fn until_asleep(thread: &Path) {
    until(|| {
        let stat = fs::read_to_string(thread.join("stat")).unwrap();
        let (_, after_name) = stat.rsplit_once(')').unwrap();
        after_name.trim_start().starts_with('S')
    });
}

/// Tests that count descriptors, threads or memory of the process must not run beside others.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many descriptors this process has open.
pub fn descriptors() -> usize {
    // One of them is the folder that is being read.
    fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// How many threads this process has.
pub fn threads() -> usize {
    status("Threads:")
}

/// Resident memory in KiB.
pub fn resident() -> usize {
    status("VmRSS:")
}

/// Address space in KiB.
pub fn mapped() -> usize {
    status("VmSize:")
}

fn status(key: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The processor time that this process has used.
pub fn processor_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime)
        .try_into()
        .unwrap()
}

/// A unique ipc endpoint, in a folder that is removed with it.
pub struct IpcName {
    path: PathBuf,
}

impl IpcName {
    /// A fresh one.
    pub fn new() -> IpcName {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        IpcName {
            path: env::temp_dir().join(format!("zeroxide-{}-{n}.sock", process::id())),
        }
    }

    /// The endpoint.
    pub fn endpoint(&self) -> String {
        format!("ipc://{}", self.path.display())
    }
}

impl Drop for IpcName {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A unique inproc endpoint.
pub fn inproc_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("inproc://{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A TCP endpoint that was free a moment ago, and that the system does not assign by itself: it lies
/// below the ports that connections get.
pub fn free_tcp_endpoint() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let n = process::id()
            .wrapping_mul(61)
            .wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let address = format!("127.0.0.1:{}", 10_000 + n % 20_000);
        if TcpListener::bind(&address).is_ok() {
            return format!("tcp://{address}");
        }
    }
}

/// The address of a tcp endpoint, for a raw peer.
pub fn address(endpoint: &str) -> &str {
    endpoint.strip_prefix("tcp://").unwrap()
}

/// A message of these frames.
pub fn message<const N: usize>(frames: [&[u8]; N]) -> Message {
    Message::from_frames(frames.map(Frame::copy_from))
}

/// The frames of a message as texts, joined by slashes.
pub fn text(message: &Message) -> String {
    let frames: Vec<_> = message
        .iter()
        .map(|frame| String::from_utf8_lossy(frame))
        .collect();
    frames.join("/")
}

/// Methods that the helpers below add to sockets.
pub trait SocketExt {
    /// Sets a numeric option.
    fn int(&self, id: i32, value: i64);
    /// Sets an option of bytes.
    fn bytes(&self, id: i32, value: &[u8]);
    /// Sends a text, waiting as long as it takes.
    fn put(&self, text: &str);
    /// Receives a message as text, waiting as long as it takes.
    fn take(&self) -> String;
    /// The kind of error that receiving without waiting ends with.
    fn nothing(&self) -> ErrorKind;
    /// How many messages of the socket were dropped for this reason.
    fn dropped(&self, reason: DropReason) -> u64;
    /// How many of the socket's peers are connected now.
    fn peers(&self) -> usize;
}

impl SocketExt for Socket {
    fn int(&self, id: i32, value: i64) {
        self.set_option(id, &Value::Int(value)).unwrap();
    }

    fn bytes(&self, id: i32, value: &[u8]) {
        self.set_option(id, &Value::Bytes(value.to_vec())).unwrap();
    }

    fn put(&self, text: &str) {
        self.send(text, Wait::Forever).unwrap();
    }

    fn take(&self) -> String {
        text(&self.recv(Wait::Forever).unwrap())
    }

    fn nothing(&self) -> ErrorKind {
        self.recv(Wait::Dont).unwrap_err().kind()
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.stats().unwrap().dropped.dropped(reason)
    }

    fn peers(&self) -> usize {
        self.stats()
            .unwrap()
            .peers
            .iter()
            .filter(|peer| peer.connected)
            .count()
    }
}

/// Makes sockets with the linger of tests, which do not wait for remaining messages.
pub fn socket(context: &Context, socket_type: SocketType) -> Socket {
    let socket = context.socket(socket_type).unwrap();
    socket.int(ids::LINGER, 0);
    socket
}

/// A bound and a connected socket over tcp on this machine, and the endpoint.
pub fn tcp_pair(
    context: &Context,
    bound: SocketType,
    connected: SocketType,
) -> (Socket, Socket, String) {
    let server = socket(context, bound);
    let endpoint = server.bind("tcp://127.0.0.1:*").unwrap();
    let client = socket(context, connected);
    client.connect(&endpoint).unwrap();
    (server, client, endpoint)
}

/// The events of a socket, in order.
pub struct Monitor {
    pair: Socket,
}

/// An event as a monitor receives it.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct Seen {
    /// A value of [`EventKind`].
    pub kind: u16,
    /// The value, whose meaning depends on `kind`.
    pub value: u32,
    /// The endpoint it happened to.
    pub endpoint: String,
}

impl Monitor {
    /// Watches a socket from now on.
    pub fn of(context: &Context, socket: &Socket) -> Monitor {
        let endpoint = inproc_name();
        socket.monitor(&endpoint, 0xffff).unwrap();
        let pair = self::socket(context, SocketType::Pair);
        pair.int(ids::RCVHWM, 0);
        pair.connect(&endpoint).unwrap();
        Monitor { pair }
    }

    /// The next event.
    pub fn next(&self) -> Seen {
        read_event(&self.pair.recv(Wait::Forever).unwrap())
    }

    /// The next event, if there is one already.
    pub fn try_next(&self) -> Option<Seen> {
        self.pair
            .recv(Wait::Dont)
            .ok()
            .map(|message| read_event(&message))
    }

    /// Skips other events up to the first one of this kind, and returns it.
    pub fn wait_for(&self, kind: EventKind) -> Seen {
        loop {
            let seen = self.next();
            if seen.kind == kind as u16 {
                return seen;
            }
        }
    }
}

fn read_event(message: &Message) -> Seen {
    let head = message.head();
    Seen {
        kind: u16::from_ne_bytes(head[..2].try_into().unwrap()),
        value: u32::from_ne_bytes(head[2..6].try_into().unwrap()),
        endpoint: String::from_utf8_lossy(message.get(1).unwrap()).into_owned(),
    }
}

/// Runs `work` in `count` threads and waits for all of them. If one panics, the caller panics.
pub fn in_threads(count: usize, work: impl Fn(usize) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let threads: Vec<_> = (0..count)
        .map(|n| {
            let work = work.clone();
            thread::spawn(move || work(n))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
