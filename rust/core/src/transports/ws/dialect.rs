//! The protocol inside a WebSocket connection, on which the two sides agree by the name of a subprotocol, and its form for
//! the engine above.

use zeroxide_proto::mechanisms;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::sp;

use super::frames::{COMMAND, MORE};
use crate::options::Options;

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
    /// The scalability protocols, with a socket of this type here.
    Sp(SocketType),
}

impl Dialect {
    /// The protocol of the connections of a socket with these options.
    pub(super) fn of(options: &Options) -> Dialect {
        match options.pattern.sp {
            Some(ours) => Dialect::Sp(ours),
            None => Dialect::Zws(options.security.mechanism.name, options.socket_type),
        }
    }

    /// The name of the subprotocol. Over SP, it is the name of the server's type.
    pub(super) fn protocol(self, is_client: bool) -> String {
        match self {
            Dialect::Zws(mechanism, _) => format!("ZWS2.0/{mechanism}"),
            Dialect::Bare(_) => "ZWS2.0".to_owned(),
            Dialect::Sp(ours) => {
                let server = if is_client { peer(ours) } else { ours };
                format!("{}.sp.nanomsg.org", server.name().to_ascii_lowercase())
            }
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
        !matches!(self, Dialect::Sp(_))
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
            Dialect::Sp(ours) => sp::opening(peer(ours)).to_vec(),
        }
    }

    /// How many bytes of the engine's own part of that are not sent.
    pub(super) fn unsent(self) -> usize {
        match self {
            Dialect::Zws(..) => GREETING,
            Dialect::Bare(_) => OLD_GREETING,
            Dialect::Sp(_) => sp::OPENING,
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
            Dialect::Sp(_) => output.extend(size.to_be_bytes()),
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
            Dialect::Sp(_) => 0,
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
            Dialect::Sp(_) => Some((0, u64::from_be_bytes(*header.first_chunk()?))),
        }
    }
}

/// The type of the peer. Over SP, each type has one for its peers.
fn peer(ours: SocketType) -> SocketType {
    ours.peers().first().copied().unwrap_or(ours)
}
