//! A connection to one collector, which can be reopened.
//!
//! A DEALER keeps unsent messages for its next connection. That is not wanted here, because messages of a broken
//! conversation must not appear in the next one. So each connection gets a socket of its own.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use zeroxide::binding::{Attempt, SocketInternals};
use zeroxide::{
    Context, EventKind, Events, Key, Message, PollItem, Result, Socket, SocketType, Value, Wait,
    curve_keypair, curve_public, ids, poll,
};

use crate::wake::Woken;

/// The keys that a client needs to talk to a collector with CURVE.
#[derive(Clone)]
pub struct Security {
    server_key: Key,
    secret_key: Key,
    public_key: Key,
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Security(..)")
    }
}

impl Security {
    /// The collector's public key, and this side's secret key. Without a secret key, a new one is generated, which
    /// suits a collector that accepts every client.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn new(server_key: Key, secret_key: Option<Key>) -> Result<Security> {
        let (public_key, secret_key) = match secret_key {
            Some(secret_key) => (curve_public(&secret_key), secret_key),
            None => curve_keypair()?,
        };
        Ok(Security {
            server_key,
            secret_key,
            public_key,
        })
    }
}

/// A change of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The connection is up, and messages get through.
    Up,
    /// The connection was up and has ended.
    Down,
    /// The collector rejected this client.
    Denied(Denial),
    /// An attempt failed without a message from the collector, so an earlier rejection may no longer apply.
    Away,
}

/// The reason why a handshake was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Denial {
    /// The collector does not accept the client's key.
    #[error("does not have the client's public key in its allow list")]
    Key,
    /// The collector requires CURVE.
    #[error(
        "requires CURVE, and this side has no keys: give server_key, the collector's public key"
    )]
    NoKey,
    /// The collector does not support CURVE.
    #[error(
        "does not use CURVE, but this side has keys: start the collector with a key, or leave server_key out"
    )]
    NeedlessKey,
    /// The collector sends its greeting, and then closes the connection during each handshake.
    #[error(
        "closes the connection during each handshake: server_key is not the collector's public key, or no collector is there"
    )]
    ServerKey,
}

/// The monitor's value for a handshake between two mechanisms, from `zmq.h`.
pub(crate) const MECHANISM_MISMATCH: u32 = 0x1100_0002;

/// The monitor's value for a peer that closed the connection after its greeting.
const CLOSED: u32 = 32;

/// The monitor's value for a handshake with the wrong keys, from `zmq.h`.
pub(crate) const CRYPTOGRAPHIC: u32 = 0x1100_0001;

/// The number of consecutive handshakes with keys that must be broken off before that counts as a rejection. They take
/// about half a second.
const BROKEN_OFF: u32 = 3;

/// A connection to a collector, as a producer uses it.
pub(crate) trait Channel {
    /// The address of the collector.
    fn endpoint(&self) -> &str;
    /// Returns the next message.
    fn poll_message(&self) -> Option<Message>;
    /// Returns the next change of the connection.
    fn poll_change(&self) -> Option<Change>;
    /// Sends a message. Returns whether that was possible.
    fn send(&self, message: Message) -> bool;
    /// Reconnects. Messages in transit are lost.
    ///
    /// # Errors
    /// If the system has no more sockets.
    fn reopen(&mut self) -> Result<()>;
}

impl Channel for Link {
    fn endpoint(&self) -> &str {
        Link::endpoint(self)
    }

    fn poll_message(&self) -> Option<Message> {
        Link::poll_message(self)
    }

    fn poll_change(&self) -> Option<Change> {
        Link::poll_change(self)
    }

    fn send(&self, message: Message) -> bool {
        Link::send(self, message)
    }

    fn reopen(&mut self) -> Result<()> {
        Link::reopen(self)
    }
}

/// See the module text.
pub(crate) struct Link {
    context: Context,
    endpoint: String,
    security: Option<Security>,
    socket: Socket,
    /// The monitor of the socket.
    events: Socket,
    is_up: AtomicBool,
    /// The number of consecutive handshakes that a peer broke off after its greeting.
    broken_off: AtomicU32,
    /// Whether the current attempt has reached the handshake.
    is_answered: AtomicBool,
}

/// The silence after which a ping is sent, in milliseconds.
const HEARTBEAT_IVL: i64 = 3000;

/// The maximum interval between attempts to connect, in milliseconds.
const RECONNECT_IVL_MAX: i64 = 1000;

/// The maximum size of a message from a collector.
const MAXMSGSIZE: i64 = 2 << 30;

impl Link {
    /// Begins to connect.
    ///
    /// # Errors
    /// If the endpoint is malformed, or the system has no more sockets.
    pub(crate) fn open(
        context: &Context,
        endpoint: &str,
        security: Option<&Security>,
    ) -> Result<Link> {
        let (socket, events) = open(context, endpoint, security)?;
        Ok(Link {
            context: context.clone(),
            endpoint: endpoint.to_owned(),
            security: security.cloned(),
            socket,
            events,
            is_up: AtomicBool::new(false),
            broken_off: AtomicU32::new(0),
            is_answered: AtomicBool::new(false),
        })
    }

    /// Reconnects. Messages in transit are lost.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub(crate) fn reopen(&mut self) -> Result<()> {
        let (socket, events) = open(&self.context, &self.endpoint, self.security.as_ref())?;
        self.close();
        (self.socket, self.events) = (socket, events);
        self.is_up.store(false, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn events(&self) -> &Socket {
        &self.events
    }

    /// Returns the next change of the connection.
    pub(crate) fn poll_change(&self) -> Option<Change> {
        loop {
            let event = self.events.recv(Wait::Dont).ok()?;
            let Some([low, high, value @ ..]) = event.head().as_slice().first_chunk::<6>() else {
                continue;
            };
            let kind = u16::from_ne_bytes([*low, *high]);
            let value = u32::from_ne_bytes(*value);
            if kind == EventKind::HandshakeSucceeded as u16 {
                self.broken_off.store(0, Ordering::Relaxed);
                self.is_up.store(true, Ordering::Relaxed);
                return Some(Change::Up);
            }
            if kind == EventKind::Disconnected as u16 {
                // A connection that was never up keeps trying; only failed handshakes are counted.
                if self.is_up.swap(false, Ordering::Relaxed) {
                    return Some(Change::Down);
                }
                continue;
            }
            if kind == EventKind::ConnectRetried as u16 {
                // One unavailable address of several also fails an attempt, so only a complete round without an answer
                // counts.
                if self.is_answered.swap(false, Ordering::Relaxed) {
                    continue;
                }
                self.broken_off.store(0, Ordering::Relaxed);
                return Some(Change::Away);
            }
            self.is_answered.store(true, Ordering::Relaxed);
            if let Some(change) = self.judge(kind, value) {
                return Some(change);
            }
        }
    }

    /// Interprets a failed handshake, if the cause is known yet.
    fn judge(&self, kind: u16, value: u32) -> Option<Change> {
        if kind == EventKind::HandshakeFailedAuth as u16 {
            return Some(Change::Denied(Denial::Key));
        }
        let has_keys = self.security.is_some();
        let is_protocol = kind == EventKind::HandshakeFailedProtocol as u16;
        if is_protocol && value == MECHANISM_MISMATCH {
            return Some(Change::Denied(match has_keys {
                true => Denial::NeedlessKey,
                false => Denial::NoKey,
            }));
        }
        // A collector does not answer a client that encrypts for another key, but it sends its greeting first. A proxy
        // or tunnel that accepts connections for an absent collector sends no greeting, and the collector may return.
        let is_sealed_wrong = match is_protocol {
            true => value == CRYPTOGRAPHIC,
            false => value == CLOSED,
        };
        if !(has_keys && is_sealed_wrong) {
            self.broken_off.store(0, Ordering::Relaxed);
            return Some(Change::Away);
        }
        let broken_off = self.broken_off.fetch_add(1, Ordering::Relaxed) + 1;
        (broken_off >= BROKEN_OFF).then_some(Change::Denied(Denial::ServerKey))
    }

    /// Returns the next message.
    pub(crate) fn poll_message(&self) -> Option<Message> {
        match self.socket.try_recv() {
            Attempt::Done(message) => Some(message),
            Attempt::Contended(()) => self.socket.recv(Wait::Dont).ok(),
            Attempt::WouldBlock(()) | Attempt::Failed(_) => None,
        }
    }

    /// Sends a message. Returns whether that was possible.
    pub(crate) fn send(&self, message: Message) -> bool {
        self.socket.send(message, Wait::Dont).is_ok()
    }

    /// Waits until there is a message or a change, or until the deadline.
    ///
    /// # Errors
    /// `Interrupted` if a signal handler ran; `Terminated`.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Result<()> {
        poll(&mut [readable(&self.socket), readable(&self.events)], until)?;
        Ok(())
    }

    /// The same, or until another thread wakes it.
    pub(crate) fn wait_or_woken(&self, until: Option<Instant>, woken: &Woken) -> Result<()> {
        let woken = PollItem::fd(woken.fd(), Events::READABLE);
        let mut items = [readable(&self.socket), readable(&self.events), woken];
        poll(&mut items, until)?;
        Ok(())
    }

    /// Descriptors that become readable when there is a message or a change.
    pub(crate) fn fds(&self) -> Result<[RawFd; 2]> {
        let fd = |socket: &Socket| {
            let fd = socket.fd()?;
            // Reading the events resets the notification that the socket can send.
            socket.events().map(|_| fd)
        };
        Ok([fd(&self.socket)?, fd(&self.events)?])
    }

    fn close(&self) {
        self.socket.close(Some(Some(Duration::ZERO)));
        self.events.close(Some(Some(Duration::ZERO)));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

fn readable(socket: &Socket) -> PollItem<'_> {
    PollItem::socket(socket, Events::READABLE)
}

fn open(
    context: &Context,
    endpoint: &str,
    security: Option<&Security>,
) -> Result<(Socket, Socket)> {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let socket = context.socket(SocketType::Dealer)?;
    let set = |id, number| socket.set_option(id, &Value::Int(number));
    // Credit, or the caller, limits the messages in transit.
    set(ids::SNDHWM, 0)?;
    set(ids::LINGER, 0)?;
    set(ids::HEARTBEAT_IVL, HEARTBEAT_IVL)?;
    set(ids::RECONNECT_IVL_MAX, RECONNECT_IVL_MAX)?;
    set(ids::MAXMSGSIZE, MAXMSGSIZE)?;
    if let Some(security) = security {
        let set = |id, key: &Key| socket.set_option(id, &Value::Bytes(key.to_vec()));
        set(ids::CURVE_SERVERKEY, &security.server_key)?;
        set(ids::CURVE_PUBLICKEY, &security.public_key)?;
        set(ids::CURVE_SECRETKEY, &security.secret_key)?;
    }
    let name = format!(
        "inproc://link-events-{}",
        NAMES.fetch_add(1, Ordering::Relaxed)
    );
    let mask = [
        EventKind::HandshakeSucceeded,
        EventKind::Disconnected,
        EventKind::ConnectRetried,
        EventKind::HandshakeFailedAuth,
        EventKind::HandshakeFailedProtocol,
        EventKind::HandshakeFailedNoDetail,
    ];
    socket.monitor(&name, mask.iter().map(|kind| u32::from(*kind as u16)).sum())?;
    let events = context.socket(SocketType::Pair)?;
    events.connect(&name)?;
    socket.connect(endpoint)?;
    Ok((socket, events))
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::Arc;
    use std::thread::{self, JoinHandle};

    use super::*;
    use crate::client::{Client, ClientConfig, ClientError};
    use crate::collector::{Collector, Config, Security as Secured};
    use zeroxide::AllowList;

    /// Accepts connections and closes them, with or without a greeting.
    struct Front {
        address: SocketAddr,
        is_over: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl Front {
        fn start(greets: bool) -> Front {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let is_over = Arc::new(AtomicBool::new(false));
            listener.set_nonblocking(true).unwrap();
            let over = is_over.clone();
            let thread = thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match listener.accept() {
                        Ok((mut stream, _)) if greets => {
                            let mut greeting = [0; 64];
                            greeting[..11].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03");
                            greeting[12..17].copy_from_slice(b"CURVE");
                            greeting[32] = 1;
                            stream.set_nonblocking(false).unwrap();
                            stream.write_all(&greeting).unwrap();
                            // Read the client's greeting and HELLO, because unread bytes would reset the connection.
                            stream.read_exact(&mut [0; 64 + 202]).unwrap();
                        }
                        Ok(_) => {}
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::WouldBlock);
                            thread::sleep(Duration::from_millis(5));
                        }
                    }
                }
            });
            let thread = Some(thread);
            Front {
                address,
                is_over,
                thread,
            }
        }
    }

    impl Drop for Front {
        fn drop(&mut self) {
            self.is_over.store(true, Ordering::Relaxed);
            self.thread.take().unwrap().join().unwrap();
        }
    }

    fn keys() -> Security {
        Security::new(curve_keypair().unwrap().0, None).unwrap()
    }

    /// Waits for a certain change.
    fn await_change(link: &Link, wanted: Change) -> bool {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            match link.poll_change() {
                Some(change) if change == wanted => return true,
                Some(_) => {}
                None => link.wait(Some(until)).unwrap(),
            }
        }
        false
    }

    #[test]
    fn a_peer_that_breaks_off_before_a_greeting_is_waited_for() {
        let front = Front::start(false);
        let config = ClientConfig {
            timeout: Duration::from_millis(1500),
            retries: 0,
            security: Some(keys()),
        };
        let endpoint = format!("tcp://{}", front.address);
        let client = Client::new(&endpoint, config).unwrap();
        assert!(matches!(client.info(), Err(ClientError::Gone { .. })));
    }

    #[test]
    fn a_denial_holds_until_the_collector_is_away() {
        let front = Front::start(true);
        let context = Context::new();
        let endpoint = format!("tcp://{}", front.address);
        let link = Link::open(&context, &endpoint, Some(&keys())).unwrap();
        let denied = Change::Denied(Denial::ServerKey);
        assert!(await_change(&link, denied));
        drop(front);
        assert!(await_change(&link, Change::Away));
        drop(link);
        context.term().unwrap();
    }

    #[test]
    fn a_collector_with_another_key_denies_long_before_time_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new(dir.path());
        config.security = Some(Secured {
            secret_key: curve_keypair().unwrap().1,
            allow: AllowList::anybody(),
            grants: None,
        });
        let collector = Collector::start(config).unwrap();
        let config = ClientConfig {
            timeout: Duration::from_secs(60),
            retries: 0,
            security: Some(keys()),
        };
        let began = Instant::now();
        let client = Client::new(collector.endpoint(), config).unwrap();
        let denied = client.info();
        assert!(matches!(
            denied,
            Err(ClientError::Denied {
                why: Denial::ServerKey,
                ..
            })
        ));
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
