//! [`WsLayer`]: a WebSocket connection without I/O, between the bytes of the engine and those of TCP or TLS.
//!
//! It holds the beginning of the upgrade, what its [`Inlet`] holds, and what its [`Outlet`] has to send.

use std::io::{self, IoSlice};

use super::dialect::Dialect;
use super::frames::{CLOSE, PING};
use super::inlet::{Control, Inlet};
use super::outlet::{Masks, Outlet};
use super::upgrade::{self, HEAD_MAX};
use crate::error::{Error, ErrorKind, Result};
use crate::sys::{chance, errno};
use crate::transports::layers::{Layer, Phase};

/// The status of a normal end.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();
/// The status after bytes that do not follow the protocol.
const PROTOCOL_ERROR: [u8; 2] = 1002_u16.to_be_bytes();

/// See the module text.
#[derive(Debug)]
pub(crate) struct WsLayer {
    role: Role,
    dialect: Dialect,
    /// The beginning of the upgrade.
    head: Vec<u8>,
    /// There after the upgrade.
    inlet: Option<Inlet>,
    outlet: Outlet,
    /// The peer has ended the connection.
    has_ended: bool,
    /// A control frame has arrived after the last bytes for above.
    is_alive: bool,
}

#[derive(Debug)]
enum Role {
    Client { key: String },
    Server { path: String },
}

impl WsLayer {
    /// The layer of a connection to a server at this host and path.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub(in crate::transports) fn client(
        host: &str,
        path: &str,
        dialect: Dialect,
    ) -> Result<WsLayer> {
        let mut random = [0; 16];
        if !chance::fill(&mut random) {
            let text = "WebSocket needs random bytes, and the system provides none";
            return Err(Error::with(ErrorKind::NotSupported, text));
        }
        let key = upgrade::key(random);
        let request = upgrade::request(host, path, &key, dialect).into_bytes();
        let outlet = Outlet::new(request, Some(Masks::new()), dialect);
        Ok(WsLayer::new(Role::Client { key }, dialect, outlet))
    }

    /// The layer of an accepted connection, for clients that ask for this path.
    pub(in crate::transports) fn server(path: &str, dialect: Dialect) -> WsLayer {
        let path = path.to_owned();
        let outlet = Outlet::new(Vec::new(), None, dialect);
        WsLayer::new(Role::Server { path }, dialect, outlet)
    }

    fn new(role: Role, dialect: Dialect, outlet: Outlet) -> WsLayer {
        WsLayer {
            role,
            dialect,
            head: Vec::new(),
            inlet: None,
            outlet,
            has_ended: false,
            is_alive: false,
        }
    }

    /// Takes bytes of the upgrade. Returns how many.
    fn open(&mut self, bytes: &[u8]) -> Result<usize> {
        let before = self.head.len();
        let room = HEAD_MAX - before;
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let len = match &self.role {
            Role::Client { key, .. } => upgrade::check_answer(&self.head, key, self.dialect)?,
            Role::Server { path } => match upgrade::answer(&self.head, path, self.dialect) {
                None => None,
                Some((answer, len)) => {
                    self.outlet.put_upgrade(answer.text);
                    self.dialect = answer.outcome?;
                    Some(len)
                }
            },
        };
        let Some(len) = len else {
            return Ok(bytes.len());
        };
        self.head = Vec::new();
        let from_client = matches!(self.role, Role::Server { .. });
        self.inlet = Some(Inlet::new(from_client, self.dialect));
        self.outlet.open(self.dialect);
        Ok(len - before)
    }

    fn decode(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty()
            && !self.has_ended()
            && let Some(inlet) = &mut self.inlet
        {
            if let Some(control) = inlet.decode(&mut bytes)? {
                self.control(control);
            }
        }
        if let Some(inlet) = &mut self.inlet {
            inlet.end_read();
        }
        Ok(())
    }

    fn control(&mut self, control: Control) {
        self.is_alive = true;
        match control.opcode {
            CLOSE => {
                self.has_ended = true;
                self.outlet.close(answer_to_close(&control.payload));
            }
            PING => self.outlet.pong(control.payload),
            // A PONG has its effect by arriving.
            _ => {}
        }
    }
}

/// The payload that answers the one of a CLOSE: the same, if it is empty or has a status that may be sent (RFC 6455 section
/// 7.4) and text.
fn answer_to_close(payload: &[u8]) -> &[u8] {
    match payload.split_first_chunk() {
        None if payload.is_empty() => payload,
        Some((status, text))
            if matches!(u16::from_be_bytes(*status), 1000..=1003 | 1007..=1014 | 3000..=4999)
                && str::from_utf8(text).is_ok() =>
        {
            payload
        }
        _ => &PROTOCOL_ERROR,
    }
}

impl Layer for WsLayer {
    fn phase(&self) -> Phase {
        match self.inlet {
            None => Phase::Opening,
            Some(_) => Phase::Open,
        }
    }

    fn handle_input(&mut self, bytes: &[u8]) -> Result<()> {
        let used = match self.inlet {
            None => self.open(bytes)?,
            Some(_) => 0,
        };
        self.decode(&bytes[used..])
    }

    fn handle_end(&mut self, error: Option<io::Error>) -> Result<()> {
        let text = "the peer ended the connection during the upgrade from HTTP to WebSocket";
        match (&self.inlet, error) {
            (None, None) => Err(Error::with(ErrorKind::Os(errno::CONNECTION_RESET), text)),
            (None, Some(error)) => Err(Error::from(error).about(text)),
            (Some(_), _) => Ok(()),
        }
    }

    fn has_input(&self) -> bool {
        self.inlet.as_ref().is_some_and(Inlet::has_input)
    }

    fn poll_input(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let before = buffer.len();
        if let Some(inlet) = &mut self.inlet {
            inlet.poll_input(buffer);
        }
        self.is_alive &= buffer.len() == before;
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.has_ended || self.outlet.has_failed()
    }

    fn sends_pieces(&self) -> bool {
        true
    }

    fn has_pings(&self) -> bool {
        true
    }

    fn ping(&mut self) {
        if self.inlet.is_some() && !self.has_ended() {
            self.outlet.ping();
        }
    }

    fn owes_ping(&self) -> bool {
        self.outlet.owes_ping()
    }

    fn take_sign_of_life(&mut self) -> bool {
        std::mem::take(&mut self.is_alive)
    }

    fn handle_output(&mut self, slices: &[IoSlice<'_>]) -> usize {
        if self.inlet.is_none() || self.has_ended() {
            return 0;
        }
        self.outlet
            .reserve(slices.iter().map(|slice| slice.len()).sum());
        let mut taken = 0;
        for slice in slices {
            let count = self.outlet.encode(slice);
            taken += count;
            if count < slice.len() {
                break;
            }
        }
        taken
    }

    fn poll_transmit(&self) -> &[u8] {
        self.outlet.poll_transmit()
    }

    fn held(&self) -> usize {
        self.outlet.held()
    }

    fn transmitted(&mut self, count: usize) {
        self.outlet.transmitted(count);
    }

    fn finish(&mut self) {
        if self.inlet.is_some() && !self.has_ended() {
            self.outlet.close(&NORMAL);
        }
    }
}
