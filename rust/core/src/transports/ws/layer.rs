//! [`WsLayer`]: a WebSocket connection without I/O, between the bytes of the engine and those of TCP or TLS.
//!
//! Received bodies pass through as they arrive, so the layer holds no message. It holds the beginning of the upgrade or of
//! a frame, a control frame, what one read has brought, and [`WAITING_MAX`] bytes to send.
//!
//! The file is long because both directions are states of one connection.

use std::io::{self, IoSlice};

use super::dialect::{self, Dialect};
use super::frames::{self, CLOSE, Mask, PING, Start};
use super::upgrade::{self, HEAD_MAX};
use crate::error::{Error, ErrorKind, Result};
use crate::sys::{chance, errno};
use crate::transports::layers::{Layer, Phase};

/// Bytes for above are not taken while this many wait to be sent.
const WAITING_MAX: usize = 64 * 1024;
/// A larger empty buffer is released, because a connection may be idle for long.
const SPARE_MAX: usize = 4096;
/// The longest frame of a message that may be in pieces. nng sends such frames, and accepts up to 1 MiB.
const PIECE_MAX: u64 = 64 * 1024;
/// The status of a normal end.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();
/// The number of masks that are made at a time.
const MASKS: usize = 32;

/// See the module text.
#[derive(Debug)]
pub(crate) struct WsLayer {
    role: Role,
    dialect: Dialect,
    phase: Phase,
    has_ended: bool,
    /// The beginning of what arrives: the upgrade, or the start of a frame.
    head: Vec<u8>,
    inlet: Inlet,
    /// A message is being received in pieces.
    in_pieces: bool,
    /// Where in `ready` the header of the current piece for above is to be.
    piece: Option<usize>,
    /// Bytes for above.
    ready: Vec<u8>,
    outlet: Outlet,
    outgoing: Vec<u8>,
    /// How many of `outgoing` were transmitted.
    sent: usize,
    /// The bytes of control frames after the last byte from above.
    trailing: usize,
}

#[derive(Debug)]
enum Role {
    Client { key: String, masks: Masks },
    Server { path: String },
}

/// Masks that neither the server nor a program on the way can predict (RFC 6455, section 10.3). A system call fetches
/// several.
#[derive(Debug)]
struct Masks {
    bytes: Box<[u8; MASKS * 4]>,
    used: usize,
}

impl Masks {
    fn new() -> Masks {
        Masks {
            bytes: Box::new([0; MASKS * 4]),
            used: MASKS * 4,
        }
    }

    /// The next mask; `None` if the system provides no random bytes.
    fn next(&mut self) -> Option<Mask> {
        if self.used == self.bytes.len() {
            if !chance::fill(&mut *self.bytes) {
                return None;
            }
            self.used = 0;
        }
        let mask = self.bytes[self.used..].first_chunk::<4>()?;
        self.used += mask.len();
        Some(Mask::new(*mask))
    }
}

/// The state of the frame that is being received.
#[derive(Debug)]
enum Inlet {
    Start,
    Body {
        left: u64,
        at: u64,
        mask: Mask,
    },
    /// The body of a frame that is not all of its message.
    Piece {
        left: u64,
        at: u64,
        mask: Mask,
        is_last: bool,
    },
    Control {
        opcode: u8,
        left: usize,
        mask: Mask,
        payload: Vec<u8>,
    },
}

/// The state of the frame that is being taken from above.
#[derive(Debug)]
enum Outlet {
    Greeting {
        left: usize,
    },
    Header {
        bytes: Vec<u8>,
    },
    /// `left` bytes of a frame, and the rest of the message after it.
    Body {
        left: u64,
        at: u64,
        mask: Mask,
        rest: u64,
    },
}

impl Outlet {
    fn header() -> Outlet {
        Outlet::Header { bytes: Vec::new() }
    }
}

/// There is no mask for a frame, so it must not be sent.
struct Unmasked;

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
        let request = upgrade::request(host, path, &key, dialect);
        let masks = Masks::new();
        let mut layer = WsLayer::new(Role::Client { key, masks }, dialect);
        layer.outgoing = request.into_bytes();
        Ok(layer)
    }

    /// The layer of an accepted connection, for clients that ask for this path.
    pub(in crate::transports) fn server(path: &str, dialect: Dialect) -> WsLayer {
        let path = path.to_owned();
        WsLayer::new(Role::Server { path }, dialect)
    }

    fn new(role: Role, dialect: Dialect) -> WsLayer {
        WsLayer {
            role,
            dialect,
            phase: Phase::Opening,
            has_ended: false,
            head: Vec::new(),
            inlet: Inlet::Start,
            in_pieces: false,
            piece: None,
            ready: Vec::new(),
            outlet: Outlet::Greeting { left: 0 },
            outgoing: Vec::new(),
            sent: 0,
            trailing: 0,
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
                    self.outgoing.extend(answer.text.into_bytes());
                    self.dialect = answer.outcome?;
                    Some(len)
                }
            },
        };
        let Some(len) = len else {
            return Ok(bytes.len());
        };
        self.head = Vec::new();
        self.phase = Phase::Open;
        self.ready.extend(self.dialect.greeting());
        self.outlet = Outlet::Greeting {
            left: self.dialect.unsent(),
        };
        Ok(len - before)
    }

    fn decode(&mut self, mut bytes: &[u8]) -> Result<()> {
        let from_client = matches!(self.role, Role::Server { .. });
        while !bytes.is_empty() && !self.has_ended {
            match &mut self.inlet {
                Inlet::Start => {
                    self.head.push(bytes[0]);
                    bytes = &bytes[1..];
                    let has_flags = self.dialect.has_flags();
                    let Some(start) = frames::parse(&self.head, from_client, has_flags)? else {
                        continue;
                    };
                    self.head.clear();
                    self.start(start)?;
                }
                Inlet::Body { left, at, mask } => {
                    let count = usize::try_from(*left)
                        .unwrap_or(usize::MAX)
                        .min(bytes.len());
                    let start = self.ready.len();
                    self.ready.extend_from_slice(&bytes[..count]);
                    mask.apply(&mut self.ready[start..], *at);
                    *left -= count as u64;
                    *at += count as u64;
                    bytes = &bytes[count..];
                    if *left == 0 {
                        self.inlet = Inlet::Start;
                    }
                }
                Inlet::Piece {
                    left,
                    at,
                    mask,
                    is_last,
                } => {
                    let count = usize::try_from(*left)
                        .unwrap_or(usize::MAX)
                        .min(bytes.len());
                    if self.piece.is_none() {
                        self.piece = Some(self.ready.len());
                        self.ready.extend(dialect::piece(0, false));
                    }
                    let start = self.ready.len();
                    self.ready.extend_from_slice(&bytes[..count]);
                    mask.apply(&mut self.ready[start..], *at);
                    *left -= count as u64;
                    *at += count as u64;
                    bytes = &bytes[count..];
                    if *left == 0 {
                        let is_last = *is_last;
                        self.inlet = Inlet::Start;
                        self.end_frame(is_last);
                    }
                }
                Inlet::Control { left, payload, .. } => {
                    let count = bytes.len().min(*left);
                    payload.extend_from_slice(&bytes[..count]);
                    *left -= count;
                    bytes = &bytes[count..];
                    if *left == 0 {
                        self.control();
                    }
                }
            }
        }
        self.end_piece(false);
        Ok(())
    }

    /// The end of a frame of a message in pieces.
    fn end_frame(&mut self, is_last: bool) {
        if is_last {
            self.in_pieces = false;
            self.end_piece(true);
        }
    }

    /// Completes the piece for above that is being collected. The last one of a message may be empty.
    fn end_piece(&mut self, is_last: bool) {
        match self.piece.take() {
            Some(at) => {
                let header = dialect::piece(0, is_last);
                let body = at + header.len();
                let header = dialect::piece(self.ready.len() - body, is_last);
                self.ready[at..body].copy_from_slice(&header);
            }
            None if is_last => self.ready.extend(dialect::piece(0, true)),
            None => {}
        }
    }

    fn start(&mut self, start: Start) -> Result<()> {
        match start {
            Start::Piece { is_first, .. } if is_first == self.in_pieces => {
                let text = match is_first {
                    true => "the peer begins a message in the middle of another one",
                    false => "the peer continues a message that it has not begun",
                };
                return Err(Error::with(ErrorKind::Os(errno::PROTOCOL), text));
            }
            Start::Piece {
                is_first: true,
                is_last: true,
                size,
                mask,
            } => {
                self.dialect.put_header(0, size, &mut self.ready);
                if size > 0 {
                    self.inlet = Inlet::Body {
                        left: size,
                        at: 0,
                        mask,
                    };
                }
            }
            Start::Piece {
                is_last,
                size,
                mask,
                ..
            } => {
                self.in_pieces = true;
                match size {
                    0 => self.end_frame(is_last),
                    left => {
                        self.inlet = Inlet::Piece {
                            left,
                            at: 0,
                            mask,
                            is_last,
                        };
                    }
                }
            }
            Start::Frame { flags, size, mask } => {
                self.dialect.put_header(flags, size, &mut self.ready);
                if size > 0 {
                    self.inlet = Inlet::Body {
                        left: size,
                        at: 1,
                        mask,
                    };
                }
            }
            Start::Control { opcode, size, mask } => {
                self.inlet = Inlet::Control {
                    opcode,
                    left: size as usize,
                    mask,
                    payload: Vec::new(),
                };
                if size == 0 {
                    self.control();
                }
            }
        }
        Ok(())
    }

    /// Handles a complete control frame.
    fn control(&mut self) {
        let inlet = std::mem::replace(&mut self.inlet, Inlet::Start);
        let Inlet::Control {
            opcode,
            mask,
            mut payload,
            ..
        } = inlet
        else {
            return;
        };
        mask.apply(&mut payload, 0);
        match opcode {
            CLOSE => {
                self.has_ended = true;
                self.put_control(CLOSE, &payload);
            }
            // A peer that does not read its answers gets no more of them.
            PING if self.waiting() < WAITING_MAX => {
                self.put_control(frames::PONG, &payload);
            }
            _ => {}
        }
    }

    fn put_control(&mut self, opcode: u8, payload: &[u8]) {
        let before = self.outgoing.len();
        let Ok(mask) = self.mask() else { return };
        frames::put_control(opcode, payload, mask, &mut self.outgoing);
        self.trailing += self.outgoing.len() - before;
    }

    /// A new mask if this side is the client. Without random bytes, the connection ends.
    fn mask(&mut self) -> std::result::Result<Option<Mask>, Unmasked> {
        let Role::Client { masks, .. } = &mut self.role else {
            return Ok(None);
        };
        let mask = masks.next();
        self.has_ended |= mask.is_none();
        mask.map(Some).ok_or(Unmasked)
    }

    fn waiting(&self) -> usize {
        self.outgoing.len() - self.sent
    }

    /// Takes bytes from above, as far as there is room. Returns how many.
    fn encode(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() {
            let waiting = self.waiting();
            if waiting >= WAITING_MAX {
                break;
            }
            self.trailing = 0;
            match &mut self.outlet {
                Outlet::Greeting { left } => {
                    let count = rest.len().min(*left);
                    *left -= count;
                    rest = &rest[count..];
                    if *left == 0 {
                        self.outlet = Outlet::header();
                    }
                }
                Outlet::Header { bytes } => {
                    bytes.push(rest[0]);
                    rest = &rest[1..];
                    if let Some((flags, size)) = self.dialect.parse_header(bytes) {
                        let Ok(outlet) = self.begin(flags, size) else {
                            break;
                        };
                        self.outlet = outlet;
                    }
                }
                Outlet::Body {
                    left,
                    at,
                    mask,
                    rest: after,
                } => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX);
                    let count = count.min(rest.len()).min(WAITING_MAX - waiting);
                    let start = self.outgoing.len();
                    self.outgoing.extend_from_slice(&rest[..count]);
                    mask.apply(&mut self.outgoing[start..], *at);
                    *left -= count as u64;
                    *at += count as u64;
                    rest = &rest[count..];
                    if *left == 0 {
                        let after = *after;
                        self.outlet = match after {
                            0 => Outlet::header(),
                            after => match self.begin_piece(false, after) {
                                Ok(outlet) => outlet,
                                Err(Unmasked) => break,
                            },
                        };
                    }
                }
            }
        }
        bytes.len() - rest.len()
    }

    /// Begins a message or a frame of ZMTP.
    fn begin(&mut self, flags: u8, size: u64) -> std::result::Result<Outlet, Unmasked> {
        if !self.dialect.has_flags() {
            return self.begin_piece(true, size);
        }
        let mask = self.mask()?;
        frames::put_frame(flags, size, mask, &mut self.outgoing);
        Ok(match size {
            0 => Outlet::header(),
            left => Outlet::Body {
                left,
                at: 1,
                mask: mask.unwrap_or_default(),
                rest: 0,
            },
        })
    }

    /// Begins a frame with the next part of a message of which `size` bytes are left.
    fn begin_piece(&mut self, is_first: bool, size: u64) -> std::result::Result<Outlet, Unmasked> {
        let (left, mask) = (size.min(PIECE_MAX), self.mask()?);
        let rest = size - left;
        frames::put_piece(is_first, rest == 0, left, mask, &mut self.outgoing);
        Ok(match left {
            0 => Outlet::header(),
            left => Outlet::Body {
                left,
                at: 0,
                mask: mask.unwrap_or_default(),
                rest,
            },
        })
    }
}

impl Layer for WsLayer {
    fn phase(&self) -> Phase {
        self.phase
    }

    fn handle_input(&mut self, bytes: &[u8]) -> Result<()> {
        let used = match self.phase {
            Phase::Opening => self.open(bytes)?,
            Phase::Open | Phase::Over => 0,
        };
        self.decode(&bytes[used..])
    }

    fn handle_end(&mut self, error: Option<io::Error>) -> Result<()> {
        let text = "the peer ended the connection during the upgrade from HTTP to WebSocket";
        match (self.phase, error) {
            (Phase::Opening, None) => {
                Err(Error::with(ErrorKind::Os(errno::CONNECTION_RESET), text))
            }
            (Phase::Opening, Some(error)) => Err(Error::from(error).about(text)),
            (Phase::Open | Phase::Over, _) => Ok(()),
        }
    }

    fn has_input(&self) -> bool {
        !self.ready.is_empty()
    }

    fn poll_input(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let room = buffer.capacity() - buffer.len();
        let count = self.ready.len().min(room);
        buffer.extend_from_slice(&self.ready[..count]);
        match count == self.ready.len() && self.ready.capacity() > SPARE_MAX {
            true => self.ready = Vec::new(),
            false => drop(self.ready.drain(..count)),
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn sends_pieces(&self) -> bool {
        !self.dialect.has_flags()
    }

    fn handle_output(&mut self, slices: &[IoSlice<'_>]) -> usize {
        if self.phase != Phase::Open || self.has_ended {
            return 0;
        }
        let mut taken = 0;
        for slice in slices {
            let count = self.encode(slice);
            taken += count;
            if count < slice.len() {
                break;
            }
        }
        taken
    }

    fn poll_transmit(&self) -> &[u8] {
        &self.outgoing[self.sent..]
    }

    fn held(&self) -> usize {
        self.waiting().saturating_sub(self.trailing)
    }

    fn transmitted(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.outgoing.len() {
            self.sent = 0;
            match self.outgoing.capacity() > SPARE_MAX {
                true => self.outgoing = Vec::new(),
                false => self.outgoing.clear(),
            }
        }
    }

    fn finish(&mut self) {
        if self.phase == Phase::Open && !self.has_ended {
            self.put_control(CLOSE, &NORMAL);
        }
    }
}
