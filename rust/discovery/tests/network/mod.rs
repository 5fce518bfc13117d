//! Nodes that see each other, and only each other.

#![allow(dead_code)] // each test file uses a part of it

use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use zeroxide::{Context, Socket, SocketType, Wait};
use zeroxide_discovery::{Builder, Event, Node};

/// How long to wait for an event that will happen, also on a machine that runs twenty other programs.
pub const PATIENCE: Duration = Duration::from_secs(50);

/// A UDP port on the loopback interface that no other test uses.
pub struct Lan {
    port: u16,
}

impl Lan {
    pub fn new() -> Lan {
        let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = probe.local_addr().unwrap().port();
        Lan { port }
    }

    pub fn node(&self, name: &str) -> Builder {
        let builder = Node::builder(name).interface("lo").port(self.port);
        builder.interval(Duration::from_millis(50))
    }

    /// A node that gives up silent peers soon.
    pub fn hasty(&self, name: &str) -> Builder {
        let builder = self.node(name).evasive(Duration::from_millis(500));
        builder.expired(Duration::from_millis(1500))
    }
}

pub fn socket(context: &Context, socket_type: SocketType) -> Socket {
    let socket = context.socket(socket_type).unwrap();
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    socket
}

/// A tcp endpoint that no other program uses now.
pub fn free_tcp_endpoint() -> String {
    let probe = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("tcp://{}", probe.local_addr().unwrap())
}

pub fn next(node: &Node) -> Event {
    node.recv(Wait::Until(Instant::now() + PATIENCE))
        .expect("an event in time")
}

/// The first result of a function of the next events.
pub fn find<T>(node: &Node, function: impl Fn(&Event) -> Option<T>) -> T {
    loop {
        if let Some(found) = function(&next(node)) {
            return found;
        }
    }
}

/// Waits for a condition that causes no event.
pub fn until(condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
