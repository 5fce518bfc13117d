//! The protocol inside a WebSocket connection, on which the two sides agree by the name of a subprotocol, and its form for
//! the engine above.

use zeroxide_proto::error::WIRE_HINT;
use zeroxide_proto::mechanisms;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::wires::{self, Form, Mapping, OverWs, WIRES, WireSpec};

use super::frames::{COMMAND, MORE};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

/// The subprotocol without a mechanism.
const BARE: &str = "ZWS2.0";
/// The greetings of ZMTP 3 and 1.0, which ZWS does not have.
const GREETING: usize = 64;
const OLD_GREETING: usize = 12;
/// The bit of a length that says that another piece of the frame follows.
const PIECE: u64 = 1 << 63;
/// Flags of ZMTP.
const ZMTP_MORE: u8 = 1;
const ZMTP_LONG: u8 = 2;
const ZMTP_COMMAND: u8 = 4;
/// The first byte of a long length in ZMTP 1.0.
const OLD_LONG: u8 = 0xff;

/// The protocol inside a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::transports) enum Dialect {
    /// ZWS 2.0 with a mechanism of ZMTP 3, and a socket of this type here. For the engine, the peer speaks ZMTP 3.0.
    Zws(&'static str, SocketType),
    /// ZWS 2.0 without a mechanism: each side sends its routing id first. For the engine, the peer speaks ZMTP 1.0, and
    /// has a type that fits ours, because it does not say which it has.
    Bare(SocketType),
    /// Another wire protocol than ZMTP, with a socket of this type here.
    Other {
        ours: SocketType,
        form: &'static Form,
        over_ws: &'static OverWs,
    },
}

impl Dialect {
    /// The protocol of the connections of a socket with these options.
    ///
    /// # Errors
    /// `IncompatibleProtocol` if WebSocket does not carry it.
    pub(super) fn of(options: &Options) -> Result<Dialect> {
        match options.pattern.other {
            Some(ours) => Dialect::other(ours),
            None => Ok(Dialect::Zws(
                options.security.mechanism.name,
                options.socket_type,
            )),
        }
    }

    /// That of a type that speaks another wire protocol than ZMTP.
    ///
    /// # Errors
    /// `IncompatibleProtocol` if WebSocket does not carry it.
    pub(super) fn other(ours: SocketType) -> Result<Dialect> {
        let wire = wires::of(ours);
        let form = wire.form.as_ref();
        let dialect = form.and_then(|form| {
            let over_ws = form.over_ws.as_ref()?;
            Some(Dialect::Other {
                ours,
                form,
                over_ws,
            })
        });
        dialect.ok_or_else(|| {
            let text = format!(
                "WebSocket does not carry {}: use tcp or tls+tcp",
                wire.title
            );
            Error::with(ErrorKind::IncompatibleProtocol, text)
        })
    }

    /// The name of the subprotocol. It may depend on the type of the server.
    pub(super) fn protocol(self, is_client: bool) -> String {
        match self {
            Dialect::Zws(mechanism, _) => format!("{BARE}/{mechanism}"),
            Dialect::Bare(_) => BARE.to_owned(),
            Dialect::Other { ours, over_ws, .. } => {
                let server = if is_client { peer(ours) } else { ours };
                (over_ws.protocol)(server)
            }
        }
    }

    /// What to change if the peer speaks this subprotocol instead.
    pub(super) fn hint(self, other: &str) -> Option<&'static str> {
        let ours = match self {
            Dialect::Zws(..) | Dialect::Bare(_) => wires::standard(),
            Dialect::Other { ours, .. } => wires::of(ours),
        };
        let theirs = wire_of(other)?;
        match theirs == ours {
            false => Some(WIRE_HINT),
            // The name has the type.
            true if !ours.is_default() => Some("give the peer a type that fits"),
            true => Some("give both sockets the same mechanism"),
        }
    }

    /// The dialects that a server with this one accepts, the best first. A socket without a mechanism needs none.
    pub(super) fn accepted(self) -> impl Iterator<Item = Dialect> {
        let bare = match self {
            // Without commands, a peer cannot join a group.
            Dialect::Zws(name, ours) if name == mechanisms::none().name && !ours.has_groups() => {
                Some(Dialect::Bare(ours))
            }
            _ => None,
        };
        [Some(self), bare].into_iter().flatten()
    }

    /// Whether there are commands beside messages.
    pub(super) fn has_commands(self) -> bool {
        matches!(self, Dialect::Zws(..))
    }

    /// Whether messages begin with a byte of flags.
    pub(super) fn has_flags(self) -> bool {
        match self {
            Dialect::Zws(..) | Dialect::Bare(_) => true,
            Dialect::Other { form, .. } => form.has_parts,
        }
    }

    /// The peer's part of the handshake that the connection does not have, as the engine expects it.
    pub(super) fn greeting(self) -> Vec<u8> {
        match self {
            Dialect::Zws(mechanism, _) => {
                let mut greeting = vec![0; GREETING];
                greeting[0] = 0xff;
                greeting[9] = 0x7f;
                greeting[10] = 3;
                greeting[12..12 + mechanism.len()].copy_from_slice(mechanism.as_bytes());
                greeting
            }
            Dialect::Bare(ours) => {
                let mut greeting = vec![0; OLD_GREETING];
                greeting[0] = 0xff;
                greeting[9] = 0x7f;
                greeting[11] = peer(ours).id();
                greeting
            }
            Dialect::Other { ours, form, .. } => (form.opening)(peer(ours)),
        }
    }

    /// How many bytes of the engine's own part of that are not sent.
    pub(super) fn unsent(self) -> usize {
        match self {
            Dialect::Zws(..) => GREETING,
            Dialect::Bare(_) => OLD_GREETING,
            Dialect::Other { ours, form, .. } => (form.opening)(ours).len(),
        }
    }

    /// Adds the header that a frame with these flags of ZWS has for the engine.
    pub(super) fn put_header(self, flags: u8, size: u64, output: &mut Vec<u8>) {
        let more = if flags & MORE != 0 { ZMTP_MORE } else { 0 };
        match self {
            Dialect::Zws(..) => {
                let command = if flags & COMMAND != 0 {
                    ZMTP_COMMAND
                } else {
                    0
                };
                let flags = more | command;
                match u8::try_from(size) {
                    Ok(size) => output.extend([flags, size]),
                    Err(_) => {
                        output.push(flags | ZMTP_LONG);
                        output.extend(size.to_be_bytes());
                    }
                }
            }
            // The length counts the flags.
            Dialect::Bare(_) => {
                match u8::try_from(size + 1) {
                    Ok(size) if size != OLD_LONG => output.push(size),
                    _ => {
                        output.push(OLD_LONG);
                        output.extend((size + 1).to_be_bytes());
                    }
                }
                output.push(more);
            }
            Dialect::Other { form, .. } => {
                // No frame is larger than memory.
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                (form.put_header)(output, Mapping::Pieces, more != 0, size);
            }
        }
    }

    /// Begins a piece of a frame with these flags of ZWS, whose size is not known yet.
    pub(super) fn put_piece(self, flags: u8, output: &mut Vec<u8>) {
        // A size that needs the long form of the header.
        self.put_header(flags, PIECE - 1, output);
    }

    /// Ends the piece at the front of `piece`, where [`put_piece`](Self::put_piece) has put its header.
    pub(super) fn end_piece(self, is_last: bool, piece: &mut [u8]) {
        let before = match self {
            Dialect::Zws(..) | Dialect::Bare(_) => 1,
            Dialect::Other { over_ws, .. } => over_ws.before,
        };
        // In ZMTP 1.0, the flags follow the length, which counts them.
        let Some((length, rest)) = piece[before..].split_first_chunk_mut::<8>() else {
            return;
        };
        let more = if is_last { 0 } else { PIECE };
        *length = (rest.len() as u64 | more).to_be_bytes();
    }

    /// The flags of ZWS and the size of a frame with this header from the engine; `None` if it is incomplete.
    pub(super) fn parse_header(self, header: &[u8]) -> Option<(u8, u64)> {
        let (&first, rest) = header.split_first()?;
        let more = |flags: u8| if flags & ZMTP_MORE != 0 { MORE } else { 0 };
        match self {
            Dialect::Zws(..) => {
                let size = match first & ZMTP_LONG {
                    0 => u64::from(*rest.first()?),
                    _ => u64::from_be_bytes(*rest.first_chunk()?),
                };
                let command = if first & ZMTP_COMMAND != 0 {
                    COMMAND
                } else {
                    0
                };
                Some((more(first) | command, size))
            }
            Dialect::Bare(_) => {
                let (size, rest) = match first {
                    OLD_LONG => {
                        let (size, rest) = rest.split_first_chunk()?;
                        (u64::from_be_bytes(*size), rest)
                    }
                    size => (u64::from(size), rest),
                };
                Some((more(*rest.first()?), size.saturating_sub(1)))
            }
            Dialect::Other { form, .. } => {
                // The engine has no faulty header.
                let header = (form.parse_header)(header, Mapping::Pieces)
                    .ok()
                    .flatten()?;
                Some((if header.more { MORE } else { 0 }, header.size))
            }
        }
    }
}

/// The wire protocol that has a subprotocol of this name.
fn wire_of(protocol: &str) -> Option<&'static WireSpec> {
    let has = |wire: &WireSpec| {
        let over_ws = wire.form.as_ref().and_then(|form| form.over_ws.as_ref());
        over_ws.is_some_and(|over_ws| {
            let mut names = wire.types.iter().map(|server| (over_ws.protocol)(*server));
            names.any(|name| name.eq_ignore_ascii_case(protocol))
        })
    };
    match protocol.split('/').next() {
        Some(BARE) => Some(wires::standard()),
        _ => WIRES.iter().copied().find(|wire| has(wire)),
    }
}

/// The type of the peer: the first one of those that it may have.
fn peer(ours: SocketType) -> SocketType {
    ours.peers().first().copied().unwrap_or(ours)
}
