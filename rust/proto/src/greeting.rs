//! The 64 bytes that open a ZMTP 3 connection, and how they reveal an older peer.
//!
//! The greeting is sent in steps, because each step depends on the version of the peer, and because both sides send it
//! in steps, so neither may wait for the other's 64 bytes before sending.
//!
//! 1. Ten bytes of signature. To a ZMTP 1.0 peer they are the header of a long frame with a routing id, which is why
//!    the padding contains the length of ours.
//! 2. After the peer's signature: the major version.
//! 3. After the peer's major version: the rest; for an old peer that is only our socket type.
//!
//! ```text
//!  0     1                 9    10    11    12               32        33            64
//!  | FF  | routing id + 1  | 7F | 03  | 01  | mechanism, NUL | as-srv  | zeros       |
//! ```

use crate::encoder::Encoder;
use crate::socket_type::SocketType;
use crate::wires::{self, WireSpec};

/// Bytes in a signature.
pub(crate) const SIGNATURE: usize = 10;
/// Bytes in the greeting of a ZMTP 3 peer.
const FULL: usize = 64;
/// Bytes in the greeting of a ZMTP 2.0 peer, and of the 1.0 peers that already sent a signature.
const OLD: usize = 12;

/// The as-server byte and the filler: both zero, because options on each side determine the roles.
const TAIL: [u8; 32] = [0; 32];

/// The kind of peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// ZMTP 1.0 without a signature; the bytes received so far are the start of its first frame.
    Unversioned,
    /// ZMTP 1.0 with a signature.
    V1 { socket_id: u8 },
    /// ZMTP 2.0.
    V2 { socket_id: u8 },
    /// ZMTP 3.0 or later; with later minor versions, we speak the latest one we know.
    V3 {
        minor: u8,
        mechanism: [u8; 20],
        /// Whether the padding of its signature is a length, for ZMTP 1.0 peers.
        counted: bool,
    },
}

/// The result of reading the peer's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More bytes are needed.
    Incomplete,
    /// The greeting is complete; this many bytes of the input belonged to it.
    Complete { peer: Peer, used: usize },
    /// The peer speaks another wire protocol than ZMTP.
    Other(&'static WireSpec),
}

/// Our side of the greeting.
#[derive(Debug)]
pub(crate) struct Greeting {
    socket_type: SocketType,
    mechanism: &'static str,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Signature,
    Major,
    Rest,
}

impl Greeting {
    /// Starts greeting: puts the signature into `output`.
    pub(crate) fn new(
        socket_type: SocketType,
        mechanism: &'static str,
        routing_id: &[u8],
        output: &mut Encoder,
    ) -> Greeting {
        output.put_raw(&[0xff]);
        output.put_raw(&(routing_id.len() as u64 + 1).to_be_bytes());
        output.put_raw(&[0x7f]);
        Greeting {
            socket_type,
            mechanism,
            step: Step::Signature,
        }
    }

    /// Reads everything the peer has sent so far, and adds to `output` what may be sent now.
    pub(crate) fn advance(&mut self, input: &[u8], output: &mut Encoder) -> Progress {
        let Some(first) = input.first() else {
            return Progress::Incomplete;
        };
        let unversioned = Progress::Complete {
            peer: Peer::Unversioned,
            used: 0,
        };
        if let Some((wire, is_certain)) = wires::begun(input) {
            return match is_certain {
                true => Progress::Other(wire),
                false => Progress::Incomplete,
            };
        }
        if *first != 0xff {
            return unversioned;
        }
        let Some(last) = input.get(SIGNATURE - 1) else {
            return Progress::Incomplete;
        };
        // In ZMTP 1.0, this byte has the flags of a routing id, whose bit for "more" is never set.
        if last & 0x01 == 0 {
            return unversioned;
        }
        if self.step == Step::Signature {
            output.put_raw(&[3]);
            self.step = Step::Major;
        }
        let Some(&major) = input.get(SIGNATURE) else {
            return Progress::Incomplete;
        };
        let old = major < 2;
        if self.step == Step::Major {
            if old {
                output.put_raw(&[self.socket_type.id()]);
            } else {
                let mut mechanism = [0; 20];
                for (field, byte) in mechanism.iter_mut().zip(self.mechanism.bytes()) {
                    *field = byte;
                }
                output.put_raw(&[1]);
                output.put_raw(&mechanism);
                output.put_raw(&TAIL);
            }
            self.step = Step::Rest;
        }
        if old {
            let Some(&socket_id) = input.get(OLD - 1) else {
                return Progress::Incomplete;
            };
            let peer = if major == 0 {
                Peer::V1 { socket_id }
            } else {
                Peer::V2 { socket_id }
            };
            return Progress::Complete { peer, used: OLD };
        }
        let Some(rest) = input.get(SIGNATURE + 1..FULL) else {
            return Progress::Incomplete;
        };
        let mut mechanism = [0; 20];
        mechanism.copy_from_slice(&rest[1..21]);
        Progress::Complete {
            peer: Peer::V3 {
                minor: if major == 3 { rest[0] } else { u8::MAX },
                mechanism,
                counted: input[1..SIGNATURE - 1] != [0; 8],
            },
            used: FULL,
        }
    }
}

/// The mechanism named by a greeting, without the padding.
pub(crate) fn mechanism_name(field: &[u8; 20]) -> &[u8] {
    let end = field
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    &field[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Framing;

    fn bytes(output: &Encoder) -> Vec<u8> {
        let mut slices = Vec::new();
        output.poll_transmit(&mut slices, usize::MAX);
        slices.iter().flat_map(|slice| slice.to_vec()).collect()
    }

    // ZMTP 3.1 as specified in RFC 37, from a peer with an empty routing id.
    const V31_NULL: &[u8; 64] =
        b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

    fn greet() -> (Greeting, Encoder) {
        let mut output = Encoder::new(Framing::V2);
        let greeting = Greeting::new(SocketType::Dealer, "NULL", b"", &mut output);
        (greeting, output)
    }

    #[test]
    fn our_greeting_is_the_one_of_the_rfc_and_comes_in_three_steps() {
        let (mut greeting, mut output) = greet();
        assert_eq!(bytes(&output), V31_NULL[..10]);
        for end in 0..10 {
            greeting.advance(&V31_NULL[..end], &mut output);
            assert_eq!(output.backlog(), 10, "after {end} bytes");
        }
        greeting.advance(&V31_NULL[..10], &mut output);
        assert_eq!(bytes(&output), V31_NULL[..11]);
        greeting.advance(&V31_NULL[..11], &mut output);
        assert_eq!(bytes(&output), V31_NULL);
        let progress = greeting.advance(&V31_NULL[..63], &mut output);
        assert_eq!(progress, Progress::Incomplete);
        let progress = greeting.advance(V31_NULL, &mut output);
        let mut mechanism = [0; 20];
        mechanism[..4].copy_from_slice(b"NULL");
        let peer = Peer::V3 {
            minor: 1,
            mechanism,
            counted: true,
        };
        assert_eq!(progress, Progress::Complete { peer, used: 64 });
        assert_eq!(output.backlog(), 64);
        assert_eq!(mechanism_name(&mechanism), b"NULL");
    }

    #[test]
    fn all_at_once_gives_the_same_bytes() {
        let (mut greeting, mut output) = greet();
        greeting.advance(V31_NULL, &mut output);
        assert_eq!(bytes(&output), V31_NULL);
    }

    #[test]
    fn the_padding_carries_the_length_of_the_routing_id() {
        let mut output = Encoder::new(Framing::V2);
        Greeting::new(SocketType::Dealer, "NULL", &[b'x'; 255], &mut output);
        assert_eq!(bytes(&output), b"\xff\0\0\0\0\0\0\x01\0\x7f");
    }

    #[test]
    fn a_peer_of_zmtp_2_gets_our_socket_type() {
        let (mut greeting, mut output) = greet();
        let progress = greeting.advance(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05", &mut output);
        let peer = Peer::V2 { socket_id: 5 };
        assert_eq!(progress, Progress::Complete { peer, used: 12 });
        assert_eq!(bytes(&output), b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x05");
    }

    #[test]
    fn a_peer_of_zmtp_1_is_known_by_its_first_or_tenth_byte() {
        for input in [&b"\x01"[..], b"\x05\0abc", b"\xff\0\0\0\0\0\0\x01\0\0"] {
            let (mut greeting, mut output) = greet();
            let progress = greeting.advance(input, &mut output);
            let peer = Peer::Unversioned;
            assert_eq!(progress, Progress::Complete { peer, used: 0 });
            assert_eq!(output.backlog(), 10);
        }
    }

    #[test]
    fn a_peer_of_another_wire_protocol_is_known_by_its_first_bytes() {
        let (mut greeting, mut output) = greet();
        for end in 1..4 {
            let progress = greeting.advance(&b"\0SP\0"[..end], &mut output);
            assert_eq!(progress, Progress::Incomplete, "after {end} bytes");
        }
        let progress = greeting.advance(b"\0SP\0\0\x30", &mut output);
        assert_eq!(progress, Progress::Other(&wires::sp::SP));
        for input in [&b"\0\0"[..], b"\0SP\x01"] {
            let peer = Peer::Unversioned;
            let progress = greeting.advance(input, &mut output);
            assert_eq!(progress, Progress::Complete { peer, used: 0 });
        }
    }

    #[test]
    fn every_later_version_is_spoken_to_as_the_latest() {
        for major in 2..=255 {
            let mut input = *V31_NULL;
            input[10] = major;
            input[11] = 0;
            let (mut greeting, mut output) = greet();
            match greeting.advance(&input, &mut output) {
                Progress::Complete {
                    peer: Peer::V3 { minor, .. },
                    used: 64,
                } => assert_eq!(minor == 0, major == 3),
                other => panic!("version {major}: {other:?}"),
            }
        }
    }

    #[test]
    fn mechanism_names_end_at_the_padding() {
        assert_eq!(mechanism_name(&[0; 20]), b"");
        assert_eq!(mechanism_name(&[b'A'; 20]), [b'A'; 20]);
        let mut odd = [0; 20];
        odd[..4].copy_from_slice(b"NULL");
        odd[19] = b'X';
        assert_ne!(mechanism_name(&odd), b"NULL");
    }
}
