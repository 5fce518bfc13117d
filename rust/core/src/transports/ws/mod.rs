//! WebSocket: the transports `ws` and `wss`, which carry ZMTP as ZWS 2.0 (RFC 45), and the scalability protocols as nng
//! does.
//!
//! The upgrade from HTTP is a file of its own. From then on, the layer turns frames of the engine into messages of
//! WebSocket and back. The dialect says how: it adds the part of the handshake that the connection does not have.

mod dialect;
mod frames;
mod inlet;
mod layer;
mod outlet;
mod upgrade;

use std::os::fd::BorrowedFd;

use zeroxide_proto::socket_type::SocketType;

pub(super) use self::dialect::Dialect;
pub(super) use self::layer::WsLayer;
use super::address::plain;
use super::tcp::{TCP, renamed};
use super::tls::{Client, Server};
use super::{Arrival, ByteTransport, Listen, Opening, Target, Targets, no_plain_bytes};
use crate::error::Result;
use crate::options::Options;

/// See the module text.
pub(super) struct Ws {
    scheme: &'static str,
    capability: &'static str,
    /// Inside TLS.
    is_secure: bool,
}

pub(super) static WS: Ws = Ws {
    scheme: "ws",
    capability: "WS",
    is_secure: false,
};

pub(super) static WSS: Ws = Ws {
    scheme: "wss",
    capability: "WSS",
    is_secure: true,
};

impl ByteTransport for Ws {
    fn scheme(&self) -> &'static str {
        self.scheme
    }

    fn capability(&self) -> &'static str {
        self.capability
    }

    fn carries_plain_bytes(&self) -> bool {
        false
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        if socket.is_raw() {
            return Err(no_plain_bytes(socket.name(), self.scheme));
        }
        let (address, path) = split(address);
        upgrade::check_path(path)?;
        TCP.check(address, socket, bind)
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        if options.is_raw() {
            return Err(no_plain_bytes("a socket with ROUTER_RAW", self.scheme));
        }
        let server = match self.is_secure {
            true => Some(Server::new(options)?),
            false => None,
        };
        let (address, path) = split(address);
        let dialect = Dialect::of(options)?;
        // Last, because it takes over the descriptor in USE_FD, if there is one.
        let inner = TCP.listen(address, options)?;
        Ok(Box::new(WsListener {
            inner,
            server,
            scheme: self.scheme,
            path: path.to_owned(),
            dialect,
        }))
    }

    fn resolved(&self, address: &str, options: &Options) -> Vec<String> {
        let (address, path) = split(address);
        let endpoints = TCP.resolved(address, options).into_iter();
        endpoints
            .map(|endpoint| format!("{}{path}", renamed(&endpoint, self.scheme)))
            .collect()
    }

    fn targets(&self, address: &str, options: &Options) -> Result<Targets> {
        if options.is_raw() {
            return Err(no_plain_bytes("a socket with ROUTER_RAW", self.scheme));
        }
        Dialect::of(options)?;
        let (address, _) = split(address);
        if self.is_secure {
            Client::new(address, options)?;
        }
        TCP.targets(address, options)
    }

    fn open(&self, address: &str, target: &Target, options: &Options) -> Result<Opening> {
        let (address, path) = split(address);
        let Opening { stream, connected } = TCP.open(address, target, options)?;
        let stream = match self.is_secure {
            true => stream.with_layer(Client::new(address, options)?.layer()?),
            false => stream,
        };
        // A source address is of no interest to the server.
        let host = plain(address.rsplit(';').next().unwrap_or(address));
        let layer = WsLayer::client(&host, path, Dialect::of(options)?)?;
        Ok(Opening {
            stream: stream.with_layer(layer),
            connected,
        })
    }
}

struct WsListener {
    inner: Box<dyn Listen>,
    /// For wss.
    server: Option<Server>,
    scheme: &'static str,
    path: String,
    dialect: Dialect,
}

impl Listen for WsListener {
    fn accept(&self) -> Result<Option<Arrival>> {
        let layered = |arrival: Arrival| {
            let mut stream = arrival?;
            if let Some(server) = &self.server {
                stream = stream.with_layer(server.layer()?);
            }
            let layer = WsLayer::server(&self.path, self.dialect);
            Ok(stream.with_layer(layer))
        };
        Ok(self.inner.accept()?.map(layered))
    }

    fn endpoint(&self) -> String {
        let endpoint = renamed(&self.inner.endpoint(), self.scheme);
        format!("{endpoint}{}", self.path)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.inner.fd()
    }
}

/// The address of TCP, and the path with its slash; empty if there is none.
fn split(address: &str) -> (&str, &str) {
    let end = address.find('/').unwrap_or(address.len());
    address.split_at(end)
}

#[cfg(test)]
mod tests;
