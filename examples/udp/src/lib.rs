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

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use zeroxide::{
    Bound, Error, ErrorKind, Hold, IoWork, IoWorker, MessagePipe, MessagePort, MessageTransport,
    Next, Result, SocketType,
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
        let worker = port.io_worker()?;
        let socket = UdpSocket::bind(parse(address)?)?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        // Datagrams have no connections, so all senders share a pipe. Nothing is sent to them.
        let pipe = port.open("", worker.waker());
        worker.start(Receiver {
            socket,
            pipe,
            buffer: vec![0; datagram::LONGEST + 1],
        });
        Ok(Bound {
            endpoint: format!("datagram://{local}"),
            hold: Box::new(Held(worker)),
        })
    }

    fn connect(&self, address: &str, port: MessagePort) -> Result<Hold> {
        let worker = port.io_worker()?;
        let target = parse(address)?;
        let any: SocketAddr = match target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        socket.connect(target)?;
        let pipe = port.open(&target.to_string(), worker.waker());
        worker.start(Sender {
            socket,
            pipe,
            waiting: None,
        });
        // The work ends when the socket has closed its end of the pipe.
        Ok(Box::new(()))
    }
}

/// A bound address. When it is dropped, the address is free.
struct Held(IoWorker);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The number of datagrams after which other sockets have their turn.
const TURN: usize = 256;

struct Receiver {
    socket: UdpSocket,
    pipe: MessagePipe,
    buffer: Vec<u8>,
}

impl IoWork for Receiver {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn run(&mut self, _: Instant) -> Next {
        for _ in 0..TURN {
            match self.socket.recv(&mut self.buffer) {
                Ok(count) => {
                    if let Some(message) = datagram::decode(&self.buffer[..count]) {
                        // At the high-water mark it is lost, as in a full buffer of the kernel.
                        let _ = self.pipe.try_send(message);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Next::Event,
                Err(_) => {}
            }
        }
        Next::Again
    }
}

struct Sender {
    socket: UdpSocket,
    pipe: MessagePipe,
    /// A datagram for which the kernel had no room.
    waiting: Option<Vec<u8>>,
}

impl Sender {
    /// The next datagram that can be sent.
    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(waiting) = self.waiting.take() {
            return Some(waiting);
        }
        loop {
            let message = self.pipe.try_recv()?;
            if let Some(datagram) = datagram::encode(&message) {
                return Some(datagram);
            }
        }
    }
}

impl IoWork for Sender {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn run(&mut self, _: Instant) -> Next {
        let is_closed = self.pipe.is_closed();
        for _ in 0..TURN {
            let Some(datagram) = self.next() else {
                return if is_closed { Next::Never } else { Next::Event };
            };
            // The error may be that of an earlier datagram, for which there was no receiver.
            let sent = self.socket.send(&datagram);
            let sent = sent.or_else(|_| self.socket.send(&datagram));
            if sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                self.waiting = Some(datagram);
                return Next::Event;
            }
        }
        Next::Again
    }
}

fn parse(address: &str) -> Result<SocketAddr> {
    address.parse().map_err(|_| {
        let text = format!("'{address}' is not an IP address with a port");
        Error::with(ErrorKind::Invalid, text)
    })
}
