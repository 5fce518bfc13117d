//! [`Conversation`]: a layer of a stream for the fuzzer.

use std::net::Ipv4Addr;
use std::sync::Arc;

use zeroxide_proto::mechanisms;
use zeroxide_proto::socket_type::SocketType;

use super::layers::{Layer, Phase};
use super::socks::{Destination, Request, Socks};
use super::ws::{Dialect, WsLayer};
use crate::error::Result;

/// One side of a protocol between a descriptor and ZMTP, without I/O.
pub struct Conversation(Box<dyn Layer>);

impl Conversation {
    /// A server of WebSocket, before the upgrade.
    pub fn ws_server(ours: SocketType) -> Conversation {
        Conversation(Box::new(WsLayer::server("", dialect(ours))))
    }

    /// A client of WebSocket, before the upgrade.
    pub fn ws_client(ours: SocketType) -> Conversation {
        let client = WsLayer::client("h", "", dialect(ours));
        Conversation(Box::new(client.expect("random bytes")))
    }

    /// A server of WebSocket, after the upgrade.
    pub fn opened_ws_server(ours: SocketType) -> Conversation {
        let request = Conversation::ws_client(ours).output();
        Conversation::ws_server(ours).after(&request)
    }

    /// A client of WebSocket, after the upgrade.
    pub fn opened_ws_client(ours: SocketType) -> Conversation {
        let client = Conversation::ws_client(ours);
        let mut server = Conversation::ws_server(ours).after(client.0.poll_transmit());
        client.after(&server.output())
    }

    /// A client of a SOCKS proxy.
    pub fn socks() -> Conversation {
        let destination = Destination::Ip(Ipv4Addr::LOCALHOST.into());
        let request = Request::new(destination, 80, "user", "word");
        let request = Arc::new(request.expect("short names"));
        Conversation(Box::new(Socks::new(request)))
    }

    fn after(mut self, bytes: &[u8]) -> Conversation {
        self.input(bytes).expect("what the other side sends");
        self.output();
        self
    }

    /// Takes bytes of the peer or the proxy. Returns those for above.
    ///
    /// # Errors
    /// If they do not follow the protocol.
    pub fn input(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        // As `Layers` has it: bytes pass by a layer that is over, and do not come to one that has ended.
        if self.0.phase() == Phase::Over {
            return Ok(bytes.to_vec());
        }
        if self.0.has_ended() {
            return Ok(Vec::new());
        }
        self.0.handle_input(bytes)?;
        let mut above = Vec::new();
        while self.0.has_input() {
            above.reserve(4096);
            self.0.poll_input(&mut above)?;
        }
        Ok(above)
    }

    /// The bytes to send.
    pub fn output(&mut self) -> Vec<u8> {
        let bytes = self.0.poll_transmit().to_vec();
        self.0.transmitted(bytes.len());
        bytes
    }
}

fn dialect(ours: SocketType) -> Dialect {
    Dialect::Zws(mechanisms::none().name, ours)
}
