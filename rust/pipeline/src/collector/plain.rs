//! Gathers messages of plain ZeroMQ peers into batches, on a thread of its own.
//!
//! Batches go to the serving thread through a short queue. While nothing can be written, the queue stays full and this
//! thread waits. The sockets then reach their high-water marks, and the peers have to wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use zeroxide::{
    Context, ErrorKind, Events, Frame, Message, PollItem, Socket, SocketType, Value, Wait, ids,
};
use zeroxide_log::{Batch, BatchBuilder, Row};

use crate::collector::config::{Config, Framing, Plain};
use crate::collector::stats::Stats;
use crate::threads::spawn;
use crate::wake::{self, Wake, Woken};

/// The size at which a batch is passed on.
const BATCH_BYTES: usize = 4 << 20;

/// The maximum number of messages taken from one socket per turn.
const TURN: usize = 1000;

/// The maximum number of batches between the two threads.
pub(super) const QUEUE: usize = 2;

/// The maximum number of bytes that a peer may have queued here.
const RCVHWM_BYTES: i64 = 64 << 20;

/// Owns the thread while it runs.
#[derive(Debug)]
pub(super) struct Gatherer {
    /// The gathered batches.
    pub batches: Receiver<Batch>,
    /// The actual addresses that were bound or connected.
    pub endpoints: Vec<String>,
    /// The thread's sockets, for their counters.
    pub sockets: Vec<Socket>,
    stop: Arc<AtomicBool>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

impl Gatherer {
    /// Opens the sockets and starts gathering. `ring` is woken for each batch.
    pub fn start(
        context: &Context,
        config: &Config,
        stats: &Arc<Stats>,
        ring: Wake,
    ) -> zeroxide::Result<Gatherer> {
        let mut sockets = Vec::new();
        let mut endpoints = Vec::new();
        let plain = &config.plain;
        for address in &plain.pull {
            let address = Address::parse(address, Side::Bind);
            let socket = open(context, SocketType::Pull, config, &address)?;
            endpoints.push(address.attach(&socket)?);
            sockets.push(socket);
        }
        for (address, topics) in &plain.subscribe {
            let address = Address::parse(address, Side::Connect);
            let socket = open(context, SocketType::Sub, config, &address)?;
            match topics.is_empty() {
                true => socket.subscribe("")?,
                false => topics
                    .iter()
                    .try_for_each(|topic| socket.subscribe(topic))?,
            }
            endpoints.push(address.attach(&socket)?);
            sockets.push(socket);
        }
        let first_router = sockets.len();
        for address in &plain.dealer {
            let address = Address::parse(address, Side::Bind);
            let socket = open(context, SocketType::Router, config, &address)?;
            endpoints.push(address.attach(&socket)?);
            sockets.push(socket);
        }
        let (wake, woken) = wake::pair()?;
        let (sender, batches) = sync_channel(QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let gathering = Gathering {
            sockets: sockets.clone(),
            first_router,
            framing: plain.clone(),
            flush_after: config.flush_after,
            flush_rows: usize::try_from(config.flush_rows)
                .unwrap_or(usize::MAX)
                .max(1),
            builder: BatchBuilder::new(),
            since: None,
            stats: stats.clone(),
            sender,
            ring,
            stop: stop.clone(),
            woken,
        };
        let thread = spawn("collector-plain", move || gathering.run())?;
        Ok(Gatherer {
            batches,
            endpoints,
            sockets,
            stop,
            wake,
            thread: Some(thread),
        })
    }

    /// Makes the thread pass on its rows and end. The queue is disconnected then.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake.wake();
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        self.stop();
        // The thread may wait for room in the queue, which the serving thread no longer makes.
        let (_, empty) = sync_channel(0);
        drop(std::mem::replace(&mut self.batches, empty));
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been printed and affects nothing else.
            let _ = thread.join();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Bind,
    Connect,
}

/// An address, and whether to bind or connect it, according to a prefix `bind:` or `connect:`.
#[derive(Debug)]
struct Address<'a> {
    endpoint: &'a str,
    side: Side,
}

impl Address<'_> {
    fn parse(text: &str, default: Side) -> Address<'_> {
        let text = text.trim();
        let (endpoint, side) = match (text.strip_prefix("bind:"), text.strip_prefix("connect:")) {
            (Some(endpoint), _) => (endpoint, Side::Bind),
            (_, Some(endpoint)) => (endpoint, Side::Connect),
            _ => (text, default),
        };
        Address { endpoint, side }
    }

    fn attach(&self, socket: &Socket) -> zeroxide::Result<String> {
        match self.side {
            Side::Bind => socket.bind(self.endpoint),
            Side::Connect => socket.connect(self.endpoint),
        }
    }
}

fn open(
    context: &Context,
    socket_type: SocketType,
    config: &Config,
    address: &Address<'_>,
) -> zeroxide::Result<Socket> {
    let socket = context.socket(socket_type)?;
    let largest = i64::try_from(config.max_batch_bytes).unwrap_or(i64::MAX);
    socket.set_option(ids::MAXMSGSIZE, &Value::Int(largest))?;
    socket.set_option(ids::RCVHWM_BYTES, &Value::Int(RCVHWM_BYTES))?;
    if let Some(security) = config
        .security
        .as_ref()
        .filter(|_| address.side == Side::Bind)
    {
        socket.secure_server(&security.secret_key, &security.allow)?;
    }
    Ok(socket)
}

/// The state of the thread.
struct Gathering {
    sockets: Vec<Socket>,
    /// The ROUTER sockets are the last ones, from this index on.
    first_router: usize,
    framing: Plain,
    flush_after: Duration,
    flush_rows: usize,
    builder: BatchBuilder,
    /// The time of the first row in the builder.
    since: Option<Instant>,
    stats: Arc<Stats>,
    sender: SyncSender<Batch>,
    ring: Wake,
    stop: Arc<AtomicBool>,
    woken: Woken,
}

impl Gathering {
    fn run(mut self) {
        loop {
            let is_last = self.stop.load(Ordering::Acquire);
            let Some(got) = self.take_turns() else {
                break;
            };
            let is_due = |since: Instant| since.elapsed() >= self.flush_after;
            let is_over = (is_last || self.since.is_some_and(is_due)) && !self.hand_on();
            if is_over || is_last || !(got || self.rest()) {
                break;
            }
        }
        for socket in &self.sockets {
            socket.close(Some(Some(Duration::ZERO)));
        }
        // The serving thread notices the disconnected queue when it is woken.
        drop(self.sender);
        self.ring.wake();
    }

    /// Takes some messages from each socket. Returns whether there were any; None at the end.
    fn take_turns(&mut self) -> Option<bool> {
        let mut got = false;
        for index in 0..self.sockets.len() {
            let socket = self.sockets[index].clone();
            let is_router = index >= self.first_router;
            match socket.recv_batch(TURN, Wait::Dont) {
                Ok(messages) => {
                    got = true;
                    for message in messages {
                        // A large message gets a batch of its own, because readers receive whole batches.
                        let size: usize = message.iter().map(Frame::len).sum();
                        if self.builder.size() + size > BATCH_BYTES && !self.hand_on() {
                            return None;
                        }
                        self.take(message, is_router);
                        if self.is_full() && !self.hand_on() {
                            return None;
                        }
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::Again | ErrorKind::Interrupted => {}
                    _ => return None,
                },
            }
        }
        Some(got)
    }

    fn is_full(&self) -> bool {
        self.builder.rows() >= self.flush_rows || self.builder.size() >= BATCH_BYTES
    }

    fn take(&mut self, mut message: Message, is_router: bool) {
        if is_router {
            // The name that the ROUTER gave the peer, and the empty frame of REQ-like peers.
            message.pop_front();
            if message.head().is_empty() {
                message.pop_front();
            }
        }
        let frames: Vec<&[u8]> = message.iter().map(Frame::as_slice).collect();
        let mut headers = Vec::new();
        let row = split(self.framing.framing, &frames, &mut headers);
        if row.frames.is_some() {
            self.stats.plain_unframed.add(1);
        }
        let row = Row {
            frames: row
                .frames
                .or(self.framing.keep_frames.then_some(&frames[..])),
            ..row
        };
        match self.builder.push(row) {
            Ok(()) => {
                self.since.get_or_insert_with(Instant::now);
            }
            // MAXMSGSIZE keeps out frames that are too large for a batch, but the sum of several frames may be.
            Err(_) => self.stats.plain_lost.add(1),
        }
    }

    /// Passes the batch to the serving thread, and waits for room. Returns false if that thread has ended.
    fn hand_on(&mut self) -> bool {
        self.since = None;
        if self.builder.is_empty() {
            return true;
        }
        let batch = self.builder.finish();
        let rows = batch.rows() as u64;
        // Also woken before the wait, because the queue may be full if the serving thread has not looked.
        self.ring.wake();
        let is_sent = self.sender.send(batch).is_ok();
        match is_sent {
            true => self.ring.wake(),
            false => self.stats.plain_lost.add(rows),
        }
        is_sent
    }

    /// Waits for a message, until the batch is due, or for the end. Returns false if the sockets are gone.
    fn rest(&mut self) -> bool {
        let mut items: Vec<PollItem<'_>> = self
            .sockets
            .iter()
            .map(|socket| PollItem::socket(socket, Events::READABLE))
            .chain([PollItem::fd(self.woken.fd(), Events::READABLE)])
            .collect();
        let due = self.since.map(|since| since + self.flush_after);
        match zeroxide::poll(&mut items, due) {
            Ok(_) => {
                if items.last().is_some_and(|item| !item.revents.is_empty()) {
                    self.woken.clear();
                }
                true
            }
            Err(error) => error.kind() == ErrorKind::Interrupted,
        }
    }
}

/// The row of a message. It has `frames` if the message does not match the framing.
fn split<'a>(
    framing: Framing,
    frames: &'a [&'a [u8]],
    headers: &'a mut Vec<(&'a str, &'a [u8])>,
) -> Row<'a> {
    let framed = match (framing, frames) {
        (_, [value]) => Some(row(value)),
        (Framing::TopicFirst, [topic, value]) => str::from_utf8(topic).ok().map(|topic| Row {
            topic: Some(topic),
            ..row(value)
        }),
        (Framing::Envelope, [topic, key, value, pairs @ ..]) if pairs.len() % 2 == 0 => {
            let (pairs, _) = pairs.as_chunks::<2>();
            let names = pairs
                .iter()
                .map(|[name, value]| Some((str::from_utf8(name).ok()?, *value)));
            names
                .collect::<Option<Vec<_>>>()
                .zip(str::from_utf8(topic).ok())
                .map(|(named, topic)| {
                    *headers = named;
                    Row {
                        topic: Some(topic),
                        key: (!key.is_empty()).then_some(*key),
                        headers,
                        ..row(value)
                    }
                })
        }
        _ => None,
    };
    framed.unwrap_or_else(|| Row {
        frames: Some(frames),
        ..row(frames.last().copied().unwrap_or_default())
    })
}

fn row(value: &[u8]) -> Row<'_> {
    Row {
        value,
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(framing: Framing, frames: &[&str], expected: &Row<'_>) {
        let frames: Vec<&[u8]> = frames.iter().map(|frame| frame.as_bytes()).collect();
        let mut headers = Vec::new();
        assert_eq!(
            split(framing, &frames, &mut headers),
            *expected,
            "{frames:?}"
        );
    }

    #[test]
    fn frames_become_columns() {
        let plain = row(b"v");
        for framing in [Framing::Single, Framing::TopicFirst, Framing::Envelope] {
            check(framing, &["v"], &plain);
        }
        let topic = Row {
            topic: Some("t"),
            ..row(b"v")
        };
        check(Framing::TopicFirst, &["t", "v"], &topic);
        check(Framing::Envelope, &["t", "", "v"], &topic);
        let all = Row {
            key: Some(b"k"),
            headers: &[("a", b"1"), ("b", b"")],
            ..topic
        };
        check(Framing::Envelope, &["t", "k", "v", "a", "1", "b", ""], &all);
    }

    #[test]
    fn messages_that_do_not_match_the_framing_are_kept_raw() {
        let two: [&[u8]; 2] = [b"t", b"v"];
        let raw = Row {
            frames: Some(&two),
            ..row(b"v")
        };
        check(Framing::Single, &["t", "v"], &raw);
        check(Framing::Envelope, &["t", "v"], &raw);
        let binary: [&[u8]; 2] = [b"\xff", b"v"];
        let mut headers = Vec::new();
        let row = split(Framing::TopicFirst, &binary, &mut headers);
        assert_eq!((row.topic, row.frames), (None, Some(&binary[..])));
    }

    #[test]
    fn a_prefix_selects_bind_or_connect() {
        let side = |text| Address::parse(text, Side::Bind).side;
        assert_eq!(side("tcp://*:1"), Side::Bind);
        assert_eq!(side(" connect:tcp://h:1"), Side::Connect);
        let address = Address::parse("bind:tcp://*:1", Side::Connect);
        assert_eq!((address.side, address.endpoint), (Side::Bind, "tcp://*:1"));
    }
}
