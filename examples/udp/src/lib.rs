//! A transport in a crate of its own: PUSH and PULL over UDP, one message per datagram.
//!
//! ```
//! use std::sync::Arc;
//! use zeroxide::{Context, SocketType, Wait};
//! use zeroxide_udp::Udp;
//!
//! # fn main() -> zeroxide::Result<()> {
//! let context = Context::new();
//! context.add_transport(Arc::new(Udp))?;
//! let pull = context.socket(SocketType::Pull)?;
//! let endpoint = pull.bind("datagram://127.0.0.1:0")?;
//! let push = context.socket(SocketType::Push)?;
//! push.connect(&endpoint)?;
//! push.send("Hello", Wait::Forever)?;
//! assert_eq!(pull.recv(Wait::Forever)?.head().as_slice(), b"Hello");
//! # Ok(())
//! # }
//! ```
//!
//! A datagram can get lost, and so can its message. A message that does not fit into a datagram is dropped, and so is
//! one that arrives while the receiver is at its high-water mark.

mod datagram;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use zeroxide::{
    Bound, Error, ErrorKind, Hold, MessagePipe, MessagePort, MessageTransport, Result, SocketType,
};

/// The transport. Its endpoints look like `datagram://127.0.0.1:5555`; to bind to port 0 lets the system choose one.
#[derive(Clone, Copy, Debug)]
pub struct Udp;

impl MessageTransport for Udp {
    fn scheme(&self) -> &str {
        "datagram"
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        let expected = if bind {
            SocketType::Pull
        } else {
            SocketType::Push
        };
        if socket != expected {
            let text = "over this transport, PULL sockets bind and PUSH sockets connect";
            return Err(Error::with(ErrorKind::IncompatibleProtocol, text));
        }
        parse(address).map(drop)
    }

    fn bind(&self, address: &str, port: MessagePort) -> Result<Bound> {
        let socket = UdpSocket::bind(parse(address)?)?;
        let local = socket.local_addr()?;
        let receiver = Receiver {
            local,
            stopped: Arc::default(),
        };
        // Datagrams have no connections, so all senders share a pipe. Nothing is sent to them.
        let pipe = port.open("", || {});
        let stopped = receiver.stopped.clone();
        spawn(format!("udp/{}", local.port()), move || {
            receive(&socket, pipe, &stopped);
        })?;
        Ok(Bound {
            endpoint: format!("datagram://{local}"),
            hold: Box::new(receiver),
        })
    }

    fn connect(&self, address: &str, port: MessagePort) -> Result<Hold> {
        let target = parse(address)?;
        let any: SocketAddr = match target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(target)?;
        let bell = Arc::new(Bell::default());
        let ringer = bell.clone();
        let pipe = port.open(&target.to_string(), move || ringer.ring());
        spawn(format!("udp/{}", target.port()), move || {
            send(&socket, pipe, &bell);
        })?;
        // The thread ends when the socket closes its end of the pipe.
        Ok(Box::new(()))
    }
}

/// Ends the thread of a bound address when it is dropped.
struct Receiver {
    local: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        let mut target = self.local;
        if target.ip().is_unspecified() {
            target.set_ip(match target {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        // The thread sleeps until a datagram arrives.
        let _ = UdpSocket::bind((target.ip(), 0)).and_then(|waker| waker.send_to(&[], target));
    }
}

/// Wakes a thread.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let rung = self.changed.wait_while(rung, |rung| !*rung);
        *rung.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

fn receive(socket: &UdpSocket, mut pipe: MessagePipe, stopped: &AtomicBool) {
    let mut buffer = vec![0; datagram::LONGEST + 1];
    loop {
        let received = socket.recv(&mut buffer);
        if stopped.load(Ordering::Acquire) {
            return;
        }
        if let Ok(count) = received
            && let Some(message) = datagram::decode(&buffer[..count])
        {
            // At the high-water mark it is lost, as in a full buffer of the kernel.
            let _ = pipe.try_send(message);
        }
    }
}

fn send(socket: &UdpSocket, mut pipe: MessagePipe, bell: &Bell) {
    loop {
        let closed = pipe.is_closed();
        while let Some(message) = pipe.try_recv() {
            if let Some(datagram) = datagram::encode(&message) {
                // The error may be that of an earlier datagram, for which there was no receiver.
                let _ = socket.send(&datagram).or_else(|_| socket.send(&datagram));
            }
        }
        if closed {
            return;
        }
        bell.wait();
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().name(name).spawn(work)?;
    Ok(())
}

fn parse(address: &str) -> Result<SocketAddr> {
    address.parse().map_err(|_| {
        let text = format!("'{address}' is not an IP address with a port");
        Error::with(ErrorKind::Invalid, text)
    })
}
