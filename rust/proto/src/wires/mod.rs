//! Wire protocols: what a connection carries between its two sockets.
//!
//! [`ZMTP`] is built into the engine. Every other one is a file with a [`WireSpec`], which holds all facts about it, and a
//! line in [`WIRES`]. Its [`Form`] describes it to the engine: the bytes that open a connection, and the headers before
//! messages. Everything else, such as limits and batches, is the same for all of them.
//!
//! A wire protocol with a form has no commands. So it has no security mechanism, no routing ids, no groups and no
//! heartbeats, except those of the transport. Subscriptions are messages, as in ZMTP 2.0, if the type of a peer
//! [publishes](crate::socket_type::TypeFacts::publishes); otherwise the pattern has to filter.

pub mod sp;

use std::fmt;

use crate::error::ProtocolError;
use crate::socket_type::SocketType;

/// Every wire protocol, in the order of their numbers.
pub static WIRES: &[&WireSpec] = &[&ZMTP, &sp::SP];

/// The protocol of ZeroMQ, which sockets speak unless they are set to another one.
pub static ZMTP: WireSpec = WireSpec {
    name: "ZMTP",
    title: "ZMTP",
    number: 0,
    types: SocketType::ALL,
    form: None,
};

/// The description of a wire protocol.
pub struct WireSpec {
    /// The name, in capitals. In lower case, it is the name of the capability.
    pub name: &'static str,
    /// The name in a sentence.
    pub title: &'static str,
    /// The value of the option WIRE_PROTOCOL, and the place in [`WIRES`].
    pub number: i32,
    /// The socket types that speak it. One with the name of a type of ZeroMQ takes the place of that type when the option
    /// is set.
    pub types: &'static [SocketType],
    /// How connections open, and how messages are divided; `None` for ZMTP.
    pub form: Option<Form>,
}

/// How connections open, and how messages are divided.
pub struct Form {
    /// Whether messages may have several parts. If not, the parts that a pattern sends are joined.
    pub has_parts: bool,
    /// The bytes that every opening begins with. No greeting of ZMTP begins with the first of them.
    pub begins: &'static [u8],
    /// The bytes with which a socket of this type opens a connection. Both sides send them without waiting.
    pub opening: fn(SocketType) -> Vec<u8>,
    /// Reads the opening at the front of the received bytes. See [`Opened`].
    pub parse_opening: fn(ours: SocketType, input: &[u8]) -> Opened,
    /// Reads the header of a message or part at the front of the received bytes; `None` if it is incomplete.
    pub parse_header: fn(&[u8], Mapping) -> Result<Option<Header>, ProtocolError>,
    /// Adds the header of a message or part: whether another part follows, and the bytes of the body.
    pub put_header: fn(&mut Vec<u8>, Mapping, more: bool, size: usize),
    /// How WebSocket carries it; `None` if it does not.
    pub over_ws: Option<OverWs>,
}

/// The type of the peer, and the bytes of its opening; `None` if it is incomplete. An error names the fault of the peer.
pub type Opened = Result<Option<(SocketType, usize)>, ProtocolError>;

/// How WebSocket carries a wire protocol: a message or part in a message of WebSocket, without its header. If messages
/// may have several parts, a byte of flags comes first, as in RFC 45.
pub struct OverWs {
    /// The name of the subprotocol, for a server of this type.
    pub protocol: fn(SocketType) -> String,
    /// The bytes before the length in the header with [`Mapping::Pieces`], at most two. The length is the end of that
    /// header: eight bytes, the highest first, which count the body only.
    pub before: usize,
}

/// The start of a message, or of a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the header itself.
    pub len: usize,
    /// Bytes of the body.
    pub size: u64,
    /// Whether another part follows.
    pub more: bool,
    /// Whether it is a command of ZMTP.
    pub command: bool,
}

/// How a transport carries messages. Of these, ZMTP only has the difference between `Pieces` and the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mapping {
    /// Each message after its length, as over tcp.
    #[default]
    Sized,
    /// The same, with a type before the length, as over ipc.
    Typed,
    /// The same as `Sized`, but a peer may send a message, or a frame of ZMTP, in pieces before it knows the length. Each
    /// has a long header. The highest bit of its length says that another piece follows. No transport has this on the
    /// wire. It is for transports with frames of their own, as ws is.
    Pieces,
}

/// The wire protocol that sockets speak unless they are set to another one.
pub fn standard() -> &'static WireSpec {
    &ZMTP
}

/// The wire protocol with this number; `None` if there is none.
pub fn numbered(number: i64) -> Option<&'static WireSpec> {
    let mut all = WIRES.iter().copied();
    all.find(|wire| i64::from(wire.number) == number)
}

/// The wire protocol other than ZMTP that begins as `input` does, and whether its beginning is complete.
pub(crate) fn begun(input: &[u8]) -> Option<(&'static WireSpec, bool)> {
    WIRES.iter().find_map(|wire| {
        let begins = wire.form.as_ref()?.begins;
        let len = begins.len().min(input.len());
        (input[..len] == begins[..len]).then_some((*wire, len == begins.len()))
    })
}

/// The wire protocol that a type speaks. ZMTP, if its number is not in the table.
pub fn of(socket_type: SocketType) -> &'static WireSpec {
    numbered(socket_type.wire().into()).unwrap_or(&ZMTP)
}

/// A length of eight bytes; the highest bit must be clear.
pub(crate) fn long_length(bytes: [u8; 8]) -> Result<u64, ProtocolError> {
    let length = u64::from_be_bytes(bytes);
    if length >> 63 != 0 {
        return Err(ProtocolError::FrameLength(length));
    }
    Ok(length)
}

impl WireSpec {
    /// Whether sockets speak it unless they are set to another one.
    pub fn is_default(&self) -> bool {
        self.number == ZMTP.number
    }
}

/// By number only.
impl PartialEq for WireSpec {
    fn eq(&self, other: &WireSpec) -> bool {
        self.number == other.number
    }
}

impl Eq for WireSpec {}

impl fmt::Debug for WireSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for OverWs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverWs")
            .field("before", &self.before)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form")
            .field("has_parts", &self.has_parts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_and_types_know_their_protocol() {
        for (place, wire) in WIRES.iter().enumerate() {
            assert_eq!(usize::try_from(wire.number), Ok(place), "{wire:?}");
            assert_eq!(wire.form.is_none(), wire.is_default(), "{wire:?}");
            for socket_type in wire.types {
                assert_eq!(of(*socket_type), *wire, "{socket_type}");
                for peer in socket_type.peers() {
                    assert_eq!(of(*peer), *wire, "{peer}");
                    assert!(socket_type.compatible(*peer) && peer.compatible(*socket_type));
                }
            }
        }
        assert_eq!(numbered(-1), None);
        assert_eq!(numbered(WIRES.len() as i64), None);
    }

    #[test]
    fn openings_are_read_back_and_not_before_they_are_complete() {
        for form in WIRES
            .iter()
            .filter_map(|wire| wire.form.as_ref().map(|form| (wire, form)))
        {
            let (wire, form) = form;
            for ours in wire.types {
                for peer in ours.peers() {
                    let opening = (form.opening)(*peer);
                    let opened = (form.parse_opening)(*ours, &opening);
                    assert_eq!(opened, Ok(Some((*peer, opening.len()))), "{wire:?}");
                    for end in 0..opening.len() {
                        let opened = (form.parse_opening)(*ours, &opening[..end]);
                        assert_eq!(opened, Ok(None), "{wire:?} {end}");
                    }
                }
            }
        }
    }

    #[test]
    fn headers_are_read_back_in_every_mapping() {
        for form in WIRES.iter().filter_map(|wire| wire.form.as_ref()) {
            for mapping in [Mapping::Sized, Mapping::Typed, Mapping::Pieces] {
                for size in [0, 1, 255, 256, 70_000] {
                    for more in [false, form.has_parts] {
                        let mut output = Vec::new();
                        (form.put_header)(&mut output, mapping, more, size);
                        let expected = Header {
                            len: output.len(),
                            size: size as u64,
                            more,
                            command: false,
                        };
                        let parse = |data: &[u8]| (form.parse_header)(data, mapping);
                        assert_eq!(parse(&output), Ok(Some(expected)));
                        for end in 0..output.len() {
                            assert_eq!(parse(&output[..end]), Ok(None));
                        }
                        if let (Mapping::Pieces, Some(over_ws)) = (mapping, &form.over_ws) {
                            assert!(over_ws.before <= 2);
                            assert_eq!(output.len(), over_ws.before + 8);
                            assert_eq!(output[over_ws.before..], (size as u64).to_be_bytes());
                        }
                    }
                }
            }
        }
    }
}
