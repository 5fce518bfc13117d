//! The scalability protocols of nanomsg and nng: the socket types, and the bytes of a connection.
//!
//! Each type has a number on the wire, which is also its [`id`](SocketType::id). A connection begins with eight bytes
//! from each side, which contain that number. Messages follow, each with its length. There are no commands, no
//! properties, no routing ids and no security.

use super::{Form, Header, Mapping, Opened, OverWs, WireSpec, long_length};
use crate::error::ProtocolError;
use crate::socket_type::{SocketType, TypeFacts};

/// See the module text.
pub static SP: WireSpec = WireSpec {
    name: "SP",
    title: "the scalability protocols",
    number: NUMBER,
    types: &[
        PAIR, PUB, SUB, REQ, REP, PUSH, PULL, SURVEYOR, RESPONDENT, BUS,
    ],
    form: Some(Form {
        has_parts: false,
        begins: b"\0SP\0",
        opening: |socket_type| opening(socket_type).to_vec(),
        parse_opening,
        parse_header,
        put_header,
        over_ws: Some(OverWs {
            protocol: |server| format!("{}.sp.nanomsg.org", server.name().to_ascii_lowercase()),
            before: 0,
        }),
    }),
};

/// The value of WIRE_PROTOCOL.
const NUMBER: i32 = 1;

/// Exchanges messages with one peer.
pub const PAIR: SocketType = SocketType::Other(&PAIR_FACTS);
/// Publishes to all its peers.
pub const PUB: SocketType = SocketType::Other(&PUB_FACTS);
/// Receives what it subscribed to, out of everything that is published.
pub const SUB: SocketType = SocketType::Other(&SUB_FACTS);
/// Sends a request, then waits for its reply.
pub const REQ: SocketType = SocketType::Other(&REQ_FACTS);
/// Receives a request, then sends its reply.
pub const REP: SocketType = SocketType::Other(&REP_FACTS);
/// Sends to pullers, round-robin.
pub const PUSH: SocketType = SocketType::Other(&PUSH_FACTS);
/// Receives from pushers, fairly.
pub const PULL: SocketType = SocketType::Other(&PULL_FACTS);
/// Sends a survey to all respondents, and receives their answers for a while.
pub const SURVEYOR: SocketType = SocketType::Other(&SURVEYOR_FACTS);
/// Receives surveys, and may answer each.
pub const RESPONDENT: SocketType = SocketType::Other(&RESPONDENT_FACTS);
/// Sends to all its peers, and receives from all of them.
pub const BUS: SocketType = SocketType::Other(&BUS_FACTS);

static PAIR_FACTS: TypeFacts = facts("PAIR", 0x10, || &[PAIR]);
static PUB_FACTS: TypeFacts = facts("PUB", 0x20, || &[SUB]);
static SUB_FACTS: TypeFacts = facts("SUB", 0x21, || &[PUB]);
static REQ_FACTS: TypeFacts = facts("REQ", 0x30, || &[REP]);
static REP_FACTS: TypeFacts = facts("REP", 0x31, || &[REQ]);
static PUSH_FACTS: TypeFacts = facts("PUSH", 0x50, || &[PULL]);
static PULL_FACTS: TypeFacts = facts("PULL", 0x51, || &[PUSH]);
static SURVEYOR_FACTS: TypeFacts = facts("SURVEYOR", 0x62, || &[RESPONDENT]);
static RESPONDENT_FACTS: TypeFacts = facts("RESPONDENT", 0x63, || &[SURVEYOR]);
static BUS_FACTS: TypeFacts = facts("BUS", 0x70, || &[BUS]);

const fn facts(name: &'static str, number: u8, peers: fn() -> &'static [SocketType]) -> TypeFacts {
    TypeFacts {
        wire: NUMBER,
        ..TypeFacts::new(name, number, peers)
    }
}

/// Bytes that open a connection.
pub const OPENING: usize = 8;
/// The only type of message over ipc: the message itself follows.
const INLINE: u8 = 1;

/// The bytes with which a socket of this type opens a connection.
pub fn opening(socket_type: SocketType) -> [u8; OPENING] {
    [0, b'S', b'P', 0, 0, socket_type.id(), 0, 0]
}

/// The type of the peer that opened the connection with `input`; `None` if its opening is incomplete.
fn parse_opening(ours: SocketType, input: &[u8]) -> Opened {
    let expected = opening(ours);
    let is_number = |at| at == 4 || at == 5;
    for (at, (&got, expected)) in input.iter().zip(expected).enumerate() {
        if got != expected && !is_number(at) {
            let wire = SP.title;
            return Err(ProtocolError::NoOpening { wire, at, got });
        }
    }
    let Some(opening) = input.first_chunk::<OPENING>() else {
        return Ok(None);
    };
    let number = u16::from_be_bytes([opening[4], opening[5]]);
    let known = u8::try_from(number).ok();
    match known.and_then(|number| ours.peer_numbered(number)) {
        Some(peer) => Ok(Some((peer, OPENING))),
        None => Err(ProtocolError::SocketType {
            ours,
            theirs: named(number),
        }),
    }
}

/// The name of a type, or its number if it has no name here.
fn named(number: u16) -> String {
    let known = SP
        .types
        .iter()
        .find(|known| u16::from(known.id()) == number);
    match known {
        Some(known) => known.name().to_owned(),
        None => format!("protocol {number:#06x}"),
    }
}

/// The header at the front of `data`; `None` if it is incomplete.
fn parse_header(data: &[u8], mapping: Mapping) -> Result<Option<Header>, ProtocolError> {
    let typed = mapping == Mapping::Typed;
    let rest = match data.split_first() {
        Some((&kind, rest)) if typed => {
            if kind != INLINE {
                return Err(ProtocolError::MessageType(kind));
            }
            rest
        }
        _ => data,
    };
    let Some(size) = rest.first_chunk() else {
        return Ok(None);
    };
    Ok(Some(Header {
        len: size.len() + usize::from(typed),
        size: long_length(*size)?,
        more: false,
        command: false,
    }))
}

/// Adds the header of a message.
fn put_header(output: &mut Vec<u8>, mapping: Mapping, _more: bool, size: usize) {
    if mapping == Mapping::Typed {
        output.push(INLINE);
    }
    output.extend_from_slice(&(size as u64).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_nanomsg() {
        // The family of a protocol times 16, and the role.
        for (socket_type, family, role) in [
            (PAIR, 1, 0),
            (PUB, 2, 0),
            (SUB, 2, 1),
            (REQ, 3, 0),
            (REP, 3, 1),
            (PUSH, 5, 0),
            (PULL, 5, 1),
            (SURVEYOR, 6, 2),
            (RESPONDENT, 6, 3),
            (BUS, 7, 0),
        ] {
            assert_eq!(socket_type.id(), family * 16 + role, "{socket_type}");
            for peer in socket_type.peers() {
                assert!(socket_type.compatible(*peer) && peer.compatible(socket_type));
            }
        }
    }

    #[test]
    fn types_of_the_two_wire_protocols_do_not_mix() {
        assert!(!REQ.compatible(SocketType::Rep));
        assert!(!SocketType::Pair.compatible(PAIR));
        assert!(!SocketType::Sub.compatible(PUB));
    }

    #[test]
    fn openings_are_read_to_the_first_wrong_byte() {
        let whole = opening(PUB);
        assert_eq!(whole, *b"\0SP\0\0\x20\0\0");
        assert_eq!(parse_opening(SUB, &whole), Ok(Some((PUB, OPENING))));
        for end in 0..OPENING {
            assert_eq!(parse_opening(SUB, &whole[..end]), Ok(None));
        }
        // A greeting of ZMTP, a later version of this one, and a reserved byte.
        for (input, at) in [
            (&b"\xff\0\0"[..], 0),
            (b"\0SP\x01", 3),
            (b"\0SP\0\0\x20\0\x01", 7),
        ] {
            let got = *input.last().unwrap();
            let got = if at == 0 { 0xff } else { got };
            assert_eq!(
                parse_opening(SUB, input),
                Err(ProtocolError::NoOpening {
                    wire: SP.title,
                    at,
                    got
                })
            );
        }
    }

    #[test]
    fn peers_of_another_type_are_refused_by_name() {
        for (number, theirs) in [(0x21, "SUB"), (0x11, "protocol 0x0011")] {
            let input = [0, b'S', b'P', 0, 0, number, 0, 0];
            let error = parse_opening(SUB, &input).unwrap_err();
            let theirs = theirs.to_owned();
            assert_eq!(error, ProtocolError::SocketType { ours: SUB, theirs });
        }
        assert!(parse_opening(SUB, b"\0SP\0\x01\x20\0\0").is_err());
    }

    fn header(len: usize, size: u64) -> Result<Option<Header>, ProtocolError> {
        Ok(Some(Header {
            len,
            size,
            more: false,
            command: false,
        }))
    }

    #[test]
    fn headers_are_those_of_the_transport_mappings() {
        let (tcp, ipc) = (b"\0\0\0\0\0\0\x01\x05", b"\x01\0\0\0\0\0\0\x01\x05");
        assert_eq!(parse_header(tcp, Mapping::Sized), header(8, 261));
        assert_eq!(parse_header(tcp, Mapping::Pieces), header(8, 261));
        assert_eq!(parse_header(ipc, Mapping::Typed), header(9, 261));
        for end in 0..8 {
            assert_eq!(parse_header(&tcp[..end], Mapping::Sized), Ok(None));
            assert_eq!(parse_header(&ipc[..end], Mapping::Typed), Ok(None));
        }
        assert_eq!(parse_header(&ipc[..8], Mapping::Typed), Ok(None));
    }

    #[test]
    fn impossible_headers_are_refused() {
        let long = b"\x80\0\0\0\0\0\0\0";
        assert_eq!(
            parse_header(long, Mapping::Sized),
            Err(ProtocolError::FrameLength(1 << 63))
        );
        // A message in shared memory, which no implementation sends.
        assert_eq!(
            parse_header(b"\x02", Mapping::Typed),
            Err(ProtocolError::MessageType(2))
        );
    }
}
