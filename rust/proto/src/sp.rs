//! The scalability protocols of nanomsg and nng: the socket types, and the bytes that open a connection.
//!
//! Each type has a number on the wire, which is also its [`id`](SocketType::id). A connection begins with eight bytes
//! from each side, which contain that number. Messages follow, each with its length. There are no commands, no
//! properties, no routing ids and no security.

use crate::error::ProtocolError;
use crate::socket_type::{SocketType, TypeFacts};

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
        sp: true,
        ..TypeFacts::new(name, number, peers)
    }
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

/// Bytes that open a connection.
pub const OPENING: usize = 8;

/// The bytes with which a socket of this type opens a connection.
pub fn opening(socket_type: SocketType) -> [u8; OPENING] {
    [0, b'S', b'P', 0, 0, socket_type.id(), 0, 0]
}

/// The type of the peer that opened the connection with `input`; `None` if its opening is incomplete.
pub(crate) fn parse_opening(
    ours: SocketType,
    input: &[u8],
) -> Result<Option<SocketType>, ProtocolError> {
    let expected = opening(ours);
    let is_number = |at| at == 4 || at == 5;
    for (at, (&got, expected)) in input.iter().zip(expected).enumerate() {
        if got != expected && !is_number(at) {
            return Err(ProtocolError::NoOpening { at, got });
        }
    }
    let Some(opening) = input.first_chunk::<OPENING>() else {
        return Ok(None);
    };
    let number = u16::from_be_bytes([opening[4], opening[5]]);
    let known = u8::try_from(number).ok();
    match known.and_then(|number| ours.peer_numbered(number)) {
        Some(peer) => Ok(Some(peer)),
        None => Err(ProtocolError::SocketType {
            ours,
            theirs: named(number),
        }),
    }
}

/// The name of a type, or its number if it has no name here.
fn named(number: u16) -> String {
    const ALL: [SocketType; 10] = [
        PAIR, PUB, SUB, REQ, REP, PUSH, PULL, SURVEYOR, RESPONDENT, BUS,
    ];
    let known = ALL.iter().find(|known| u16::from(known.id()) == number);
    match known {
        Some(known) => known.name().to_owned(),
        None => format!("protocol {number:#06x}"),
    }
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
        assert_eq!(parse_opening(SUB, &whole), Ok(Some(PUB)));
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
                Err(ProtocolError::NoOpening { at, got })
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
}
