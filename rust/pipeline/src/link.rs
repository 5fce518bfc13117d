//! A connection to one collector, that can be made anew.
//!
//! A DEALER keeps what it could not send for the next connection. Here that is not wanted: what was said in a conversation
//! that broke off must not turn up in the middle of the next. So each connection gets a socket of its own.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use zeroxide::{
    Attempt, Context, EventKind, Key, Message, POLLIN, PollItem, Result, Socket, SocketType,
    Target, Value, Wait, curve_keypair, curve_public, ids, poll,
};

use crate::wake::Woken;

/// What a client needs to talk to a collector that asks for CURVE.
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
    /// The collector's public key, and this side's secret key; a new one if the collector lets anybody in.
    ///
    /// # Errors
    /// When the system gives no random bytes.
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

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is up: messages get through.
    Up,
    /// It was up, and is not any more.
    Down,
    /// The collector does not let this client in.
    Denied(Denial),
    /// An attempt failed that says nothing of the collector: what was denied before may be so no longer.
    Away,
}

/// Why a collector does not let somebody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Denial {
    /// It does not know the key.
    #[error("does not let this client in: it wants to know the public key of the client (allow)")]
    Key,
    /// It asks for CURVE.
    #[error(
        "asks for CURVE, and this side has no keys: give server_key, the collector's public key"
    )]
    NoKey,
    /// It speaks no CURVE.
    #[error(
        "speaks no CURVE, and this side has keys: start the collector with a key, or leave server_key out"
    )]
    NeedlessKey,
    /// It greets, and then breaks off each handshake.
    #[error(
        "breaks off each handshake: server_key is not the collector's public key, or what is there is no collector"
    )]
    ServerKey,
}

/// Of a handshake between two mechanisms, as `zmq.h` numbers it.
pub(crate) const MECHANISM_MISMATCH: u32 = 0x1100_0002;

/// Of a handshake with nothing to say of itself: the peer had greeted and then closed, as the monitor numbers it.
const CLOSED: u32 = 32;

/// Of a handshake that was sealed with other keys, as `zmq.h` numbers it.
pub(crate) const CRYPTOGRAPHIC: u32 = 0x1100_0001;

/// So many handshakes in a row that break off with keys are no accident: they take about half a second.
const BROKEN_OFF: u32 = 3;

/// See the module text.
pub(crate) struct Link {
    context: Context,
    endpoint: String,
    security: Option<Security>,
    socket: Socket,
    /// What happens to the socket's connection.
    events: Socket,
    is_up: AtomicBool,
    /// Handshakes in a row that were broken off by somebody who had greeted.
    broken_off: AtomicU32,
    /// Whether the attempt that is going on has got as far as a handshake.
    is_answered: AtomicBool,
}

/// A ping when nothing was heard for so long, in milliseconds.
const HEARTBEAT_IVL: i64 = 3000;

/// Attempts to connect come at most so far apart, in milliseconds.
const RECONNECT_IVL_MAX: i64 = 1000;

/// The largest message from a collector.
const MAXMSGSIZE: i64 = 2 << 30;

impl Link {
    /// Begins to connect.
    ///
    /// # Errors
    /// When the endpoint is not one, or the system has no more sockets.
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

    /// Begins to connect anew; what was on its way is gone.
    ///
    /// # Errors
    /// As [`open`](Self::open).
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

    /// The next change of the connection.
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
                // One that was never up goes on trying, and counts how often in vain.
                if self.is_up.swap(false, Ordering::Relaxed) {
                    return Some(Change::Down);
                }
                continue;
            }
            if kind == EventKind::ConnectRetried as u16 {
                // Also one address of several that is not there fails an attempt; only the whole round tells.
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

    /// What a handshake that failed means, if that can be told by now.
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
        // A collector says nothing to somebody who has sealed his words for another one. But it greets first: what accepts
        // connections for a collector that is away (a proxy, a tunnel) does not, and the collector may come back.
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

    /// The next message.
    pub(crate) fn poll_message(&self) -> Option<Message> {
        match self.socket.try_recv() {
            Attempt::Done(message) => Some(message),
            Attempt::Contended(()) => self.socket.recv(Wait::Dont).ok(),
            Attempt::WouldBlock(()) | Attempt::Failed(_) => None,
        }
    }

    /// Sends; whether that was possible.
    pub(crate) fn send(&self, message: Message) -> bool {
        self.socket.send(message, Wait::Dont).is_ok()
    }

    /// Waits until there is a message or a change, or the time is over.
    ///
    /// # Errors
    /// `Interrupted` when a signal handler ran; `Terminated`.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Result<()> {
        poll(&mut [readable(&self.socket), readable(&self.events)], until)?;
        Ok(())
    }

    /// The same, or until somebody wakes it.
    pub(crate) fn wait_or_woken(&self, until: Option<Instant>, woken: &Woken) -> Result<()> {
        let woken = PollItem {
            target: Target::Fd(woken.fd()),
            events: POLLIN,
            revents: 0,
        };
        let mut items = [readable(&self.socket), readable(&self.events), woken];
        poll(&mut items, until)?;
        Ok(())
    }

    /// Descriptors that are readable while there is a message or a change.
    pub(crate) fn fds(&self) -> Result<[RawFd; 2]> {
        let fd = |socket: &Socket| {
            let fd = socket.fd()?;
            // Asked for events, it does not tell any more that it can send.
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
    PollItem {
        target: Target::Socket(socket),
        events: POLLIN,
        revents: 0,
    }
}

fn open(
    context: &Context,
    endpoint: &str,
    security: Option<&Security>,
) -> Result<(Socket, Socket)> {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let socket = context.socket(SocketType::Dealer)?;
    let set = |id, number| socket.set_option(id, &Value::Int(number));
    // What may be on its way is bounded by credit, or by the one who asks.
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

    /// Takes connections and closes them again, after a greeting or without a word.
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
                            // A greeting and a HELLO; what is left unread would reset the connection.
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

    /// The first change that is the one that is looked for.
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
    fn whoever_breaks_off_before_a_greeting_is_waited_for() {
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
