//! [`TlsLayer`]: a TLS connection without I/O, between the bytes of ZMTP and those of TCP.
//!
//! It holds at most what one read has brought, one record, and [`WAITING_MAX`] bytes to send and those of one more
//! write. A handshake message has at most 64 KiB (rustls's limit), and memory for it follows its bytes.

use std::io::{self, BufRead, IoSlice, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use super::explain::{Side, cut, explain, gone};
use crate::error::{Error, ErrorKind, Result};
use crate::transports::layers::outgoing::{Outgoing, WAITING_MAX};
use crate::transports::layers::{Layer, Phase};

/// See the module text.
#[derive(Debug)]
pub(crate) struct TlsLayer {
    pub(super) connection: Connection,
    side: Side,
    phase: Phase,
    /// Received bytes that TLS has not processed, because what it has for above comes first.
    pub(super) received: Vec<u8>,
    /// Bytes for above that TLS holds.
    readable: usize,
    /// The peer has ended its side of the conversation.
    has_ended: bool,
    /// Only the peer can read what is sent. An attacker can pose as a server whose certificate is not checked.
    pub(super) is_private: bool,
    pub(super) outgoing: Outgoing,
}

impl TlsLayer {
    /// The layer of an accepted connection.
    pub(super) fn server(config: Arc<ServerConfig>) -> Result<TlsLayer> {
        let connection = ServerConnection::new(config).map_err(unusable)?;
        Ok(TlsLayer::new(connection.into(), Side::Server))
    }

    /// The layer of a connection to a server of this name.
    pub(super) fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<TlsLayer> {
        let side = Side::Client {
            server: name.to_str().into_owned(),
        };
        let connection = ClientConnection::new(config, name).map_err(unusable)?;
        Ok(TlsLayer::new(connection.into(), side))
    }

    fn new(connection: Connection, side: Side) -> TlsLayer {
        let mut layer = TlsLayer {
            connection,
            side,
            phase: Phase::Opening,
            received: Vec::new(),
            readable: 0,
            has_ended: false,
            is_private: true,
            outgoing: Outgoing::default(),
        };
        layer.collect();
        layer
    }

    /// Processes bytes until there is something for above. Returns how many were processed.
    fn process(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut rest = bytes;
        while self.readable == 0 && !rest.is_empty() && !self.has_ended {
            let read = self.connection.read_tls(&mut rest);
            let state = match read {
                Ok(_) => self.connection.process_new_packets(),
                Err(error) => Err(rustls::Error::General(error.to_string())),
            };
            // An alert for the peer, if this is an error.
            self.collect();
            let state = state.map_err(|error| explain(&error, &self.side, bytes))?;
            self.readable = state.plaintext_bytes_to_read();
            self.has_ended = state.peer_has_closed();
        }
        if self.phase == Phase::Opening && !self.connection.is_handshaking() {
            self.phase = Phase::Open;
        }
        Ok(match self.has_ended && self.readable == 0 {
            // What follows the end is of no interest.
            true => bytes.len(),
            false => bytes.len() - rest.len(),
        })
    }

    /// Takes out what TLS has to send.
    fn collect(&mut self) {
        while self.connection.wants_write() {
            // Memory takes everything.
            let written = self.connection.write_tls(self.outgoing.buffer());
            if !written.is_ok_and(|written| written > 0) {
                break;
            }
        }
    }
}

impl Layer for TlsLayer {
    fn phase(&self) -> Phase {
        self.phase
    }

    fn handle_input(&mut self, bytes: &[u8]) -> Result<()> {
        let processed = self.process(bytes)?;
        self.received.extend_from_slice(&bytes[processed..]);
        Ok(())
    }

    fn handle_end(&mut self, error: Option<io::Error>) -> Result<()> {
        match self.phase {
            Phase::Opening => Err(gone(&self.side, error)),
            // Any program on the way can end a connection of TCP. Only the peer can say in TLS that it is complete.
            Phase::Open if !self.has_ended => Err(cut(&self.side)),
            Phase::Open | Phase::Over => Ok(()),
        }
    }

    fn has_input(&self) -> bool {
        self.readable > 0
    }

    fn poll_input(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let mut reader = self.connection.reader();
        while self.readable > 0 && buffer.len() < buffer.capacity() {
            let Ok(plain) = reader.fill_buf() else { break };
            let count = plain.len().min(buffer.capacity() - buffer.len());
            if count == 0 {
                break;
            }
            buffer.extend_from_slice(&plain[..count]);
            reader.consume(count);
            self.readable = self.readable.saturating_sub(count);
        }
        if self.readable == 0 && !self.received.is_empty() {
            let received = std::mem::take(&mut self.received);
            let processed = self.process(&received)?;
            if processed < received.len() {
                self.received = received;
                self.received.drain(..processed);
            }
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn handle_output(&mut self, slices: &[IoSlice<'_>]) -> usize {
        if self.phase != Phase::Open || self.outgoing.waiting().len() >= WAITING_MAX {
            return 0;
        }
        // TLS limits what one write takes.
        let taken = self.connection.writer().write_vectored(slices);
        self.collect();
        taken.unwrap_or(0)
    }

    fn poll_transmit(&self) -> &[u8] {
        self.outgoing.waiting()
    }

    fn transmitted(&mut self, count: usize) {
        self.outgoing.transmitted(count);
    }

    fn finish(&mut self) {
        self.connection.send_close_notify();
        self.collect();
    }

    fn is_private(&self) -> bool {
        self.is_private
    }
}

fn unusable(error: rustls::Error) -> Error {
    Error::with(ErrorKind::NotSupported, error.to_string())
}
