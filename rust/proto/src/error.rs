//! The reasons why a connection ends: [`CloseReason`], and faults of a peer: [`ProtocolError`].

use std::collections::TryReserveError;

use crate::socket_type::SocketType;

/// The reason why an engine has ended. Always its last report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed its side; everything it sent before has been reported.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// The peer closed its side, and had not completed its last message.
    #[error("the peer closed the connection in the middle of a message")]
    Truncated,
    /// The peer closed its side before its greeting was complete, like a proxy whose backend is away.
    #[error("the peer closed the connection before its greeting was over")]
    NotGreeted,
    /// The peer did not complete the handshake in time.
    #[error("expected the handshake to be over within the handshake interval, it is not")]
    HandshakeTimeout,
    /// The peer sent nothing within the time allowed by a PING or by its own TTL.
    #[error("expected a sign of life within the heartbeat timeout, none came")]
    HeartbeatTimeout,
    /// The peer began a message and did not continue it.
    #[error("expected the rest of a message, the peer is silent")]
    Stalled,
    /// The peer broke the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The peer's authenticator refused us with this status code (300, 400 or 500).
    #[error("the peer refused us with status {0}")]
    AuthFailed(u16),
    /// The peer sent an ERROR command with this reason.
    #[error("the peer refused the connection: {0:?}")]
    Refused(String),
    /// Our authenticator refused the peer with this status code.
    #[error("the authenticator refused the peer with status {0}")]
    Denied(u16),
    /// The credentials of this mechanism mean nothing without an authenticator that checks them.
    #[error("expected an authenticator to check {0} credentials, but there is none")]
    NobodyToAsk(&'static str),
    /// Our authenticator gave an invalid answer.
    #[error("expected a verdict from the authenticator, but its answer is invalid: {problem}")]
    Authenticator {
        /// The value of a monitor's HANDSHAKE_FAILED_PROTOCOL event, as `zmq.h` numbers them.
        code: u32,
        /// The fault of the answer.
        problem: &'static str,
    },
    /// Our own settings do not suffice for the mechanism.
    #[error("cannot speak {mechanism}: {problem}")]
    Misconfigured {
        /// The mechanism.
        mechanism: &'static str,
        /// The missing or invalid setting.
        problem: &'static str,
    },
    /// The driver of the engine panicked. The engine itself never reports this.
    #[error("internal error in this connection")]
    Internal,
    /// There is no memory, or none left for this peer, for messages from or to it.
    #[error("expected memory for the messages of this connection, there is none")]
    OutOfMemory,
    /// Our cipher has given every number to a frame. Two frames with the same number would reveal their contents.
    #[error(
        "expected a number for the next encrypted frame, but this connection has used all of them"
    )]
    NumbersUsedUp,
    /// A frame, or the frames of a message together, exceed the limit.
    #[error("expected a message of at most {limit} bytes, the peer sends {size}")]
    MessageTooBig {
        /// The minimum size of the message, according to the frame header that exceeded the limit.
        size: u64,
        /// The limit.
        limit: u64,
    },
}

impl From<TryReserveError> for CloseReason {
    fn from(_: TryReserveError) -> CloseReason {
        CloseReason::OutOfMemory
    }
}

/// What to change if two sockets speak different wire protocols.
pub const WIRE_HINT: &str = "give both sockets the same WIRE_PROTOCOL, or the peer another type";

/// A fault of a peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The peer speaks a version without security, but ours is enabled.
    #[error("expected ZMTP 3 because of mechanism {mechanism}, the peer speaks ZMTP {version}")]
    VersionTooOld {
        /// Our mechanism.
        mechanism: &'static str,
        /// The major version of the peer.
        version: u8,
    },
    /// The two sides are set to different security mechanisms.
    #[error("expected mechanism {ours}, the peer uses {theirs:?}")]
    MechanismMismatch {
        /// Our mechanism.
        ours: &'static str,
        /// The mechanism in the peer's greeting.
        theirs: String,
    },
    /// The peer does not open the connection as our wire protocol does.
    #[error(
        "expected the opening of {wire}, got {got:#04x} as its byte {at}{}",
        if *at == 0 && *got == 0xff { format!(": the peer speaks ZMTP; {WIRE_HINT}") } else { String::new() }
    )]
    NoOpening {
        /// Our wire protocol, as a sentence names it.
        wire: &'static str,
        /// The position of the first wrong byte.
        at: usize,
        /// The byte.
        got: u8,
    },
    /// We speak ZMTP, and the peer does not.
    #[error("expected ZMTP, the peer speaks {theirs}; {}", WIRE_HINT)]
    OtherWire {
        /// The name of the peer's wire protocol.
        theirs: &'static str,
    },
    /// The header of a message names an unknown type.
    #[error("expected a message of type 1, got type {0}")]
    MessageType(u8),
    /// The two socket types may not talk to each other.
    #[error("a {ours} socket cannot talk to a {theirs:?} socket")]
    SocketType {
        /// Our type.
        ours: SocketType,
        /// The type that the peer announced.
        theirs: String,
    },
    /// The first byte of a frame has bits set that no version defines.
    #[error("expected the flag bits a frame may have, got {0:#04x}")]
    FrameFlags(u8),
    /// A frame of ZMTP 1.0 counts its flags byte, so it cannot have length zero.
    #[error("expected a frame of at least its flags byte, got length zero")]
    FrameEmpty,
    /// Lengths have 63 bits.
    #[error("expected a frame length below 2^63, got {0}")]
    FrameLength(u64),
    /// A message with more frames than allowed.
    #[error("expected a message of at most {0} frames, the peer sends more")]
    TooManyFrames(usize),
    /// A command longer than allowed.
    #[error("expected a command of at most {limit} bytes, the peer sends {size}")]
    CommandTooBig {
        /// Length in the frame header.
        size: u64,
        /// Longest command we read.
        limit: u64,
    },
    /// A command frame whose name is incomplete.
    #[error("expected a command with a name, got a frame that does not hold one")]
    CommandName,
    /// A known command with malformed data.
    #[error("malformed {command}: {problem}")]
    Malformed {
        /// The command.
        command: &'static str,
        /// The fault.
        problem: &'static str,
    },
    /// A command that is not allowed here.
    #[error("expected {expected}, got {got}")]
    UnexpectedCommand {
        /// The commands that are allowed here.
        expected: &'static str,
        /// The received command.
        got: String,
    },
    /// The properties in a handshake command are malformed.
    #[error("malformed metadata: {0}")]
    Metadata(&'static str),
    /// Commands have consecutive numbers. This one was repeated, or others are missing.
    #[error("expected the command numbered {expected}, got number {got}")]
    Sequence {
        /// The expected number.
        expected: u64,
        /// The received number.
        got: u64,
    },
    /// The peer's proof does not match the keys of this connection.
    #[error("expected proof of the peer's keys, got {0}")]
    KeyExchange(&'static str),
    /// An encrypted command does not match the keys.
    #[error("expected {0} sealed with the right keys, it does not open")]
    Cryptographic(&'static str),
}

impl ProtocolError {
    /// Whether the peer finds the same fault in our greeting.
    pub(crate) fn is_mutual(&self) -> bool {
        matches!(
            self,
            ProtocolError::MechanismMismatch { .. }
                | ProtocolError::NoOpening { .. }
                | ProtocolError::OtherWire { .. }
                | ProtocolError::SocketType { .. }
        )
    }

    /// The value of a monitor's HANDSHAKE_FAILED_PROTOCOL event, as `zmq.h` numbers them.
    pub fn code(&self) -> u32 {
        const UNSPECIFIED: u32 = 0x1000_0000;
        const UNEXPECTED_COMMAND: u32 = 0x1000_0001;
        const INVALID_SEQUENCE: u32 = 0x1000_0002;
        const KEY_EXCHANGE: u32 = 0x1000_0003;
        const MALFORMED_COMMAND: u32 = 0x1000_0011;
        const INVALID_METADATA: u32 = 0x1000_0018;
        const CRYPTOGRAPHIC: u32 = 0x1100_0001;
        const MECHANISM_MISMATCH: u32 = 0x1100_0002;
        match self {
            ProtocolError::VersionTooOld { .. }
            | ProtocolError::NoOpening { .. }
            | ProtocolError::OtherWire { .. }
            | ProtocolError::MessageType(_)
            | ProtocolError::FrameFlags(_)
            | ProtocolError::FrameEmpty
            | ProtocolError::FrameLength(_)
            | ProtocolError::TooManyFrames(_) => UNSPECIFIED,
            ProtocolError::MechanismMismatch { .. } => MECHANISM_MISMATCH,
            ProtocolError::SocketType { .. } | ProtocolError::Metadata(_) => INVALID_METADATA,
            ProtocolError::CommandTooBig { .. } | ProtocolError::CommandName => MALFORMED_COMMAND,
            ProtocolError::Malformed { command, .. } => match *command {
                "MESSAGE" => 0x1000_0012,
                "HELLO" => 0x1000_0013,
                "INITIATE" => 0x1000_0014,
                "ERROR" => 0x1000_0015,
                "READY" => 0x1000_0016,
                "WELCOME" => 0x1000_0017,
                _ => MALFORMED_COMMAND,
            },
            ProtocolError::UnexpectedCommand { .. } => UNEXPECTED_COMMAND,
            ProtocolError::Sequence { .. } => INVALID_SEQUENCE,
            ProtocolError::KeyExchange(_) => KEY_EXCHANGE,
            ProtocolError::Cryptographic(_) => CRYPTOGRAPHIC,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_contain_the_expected_and_the_received_value() {
        let shown = [
            (
                CloseReason::MessageTooBig {
                    size: 11,
                    limit: 10,
                }
                .to_string(),
                "expected a message of at most 10 bytes, the peer sends 11",
            ),
            (
                CloseReason::from(ProtocolError::SocketType {
                    ours: SocketType::Push,
                    theirs: "PUB".to_owned(),
                })
                .to_string(),
                "a PUSH socket cannot talk to a \"PUB\" socket",
            ),
        ];
        for (got, expected) in shown {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn codes_are_those_of_the_monitor_events() {
        let malformed = |command| ProtocolError::Malformed {
            command,
            problem: "",
        };
        assert_eq!(malformed("READY").code(), 0x1000_0016);
        assert_eq!(malformed("ERROR").code(), 0x1000_0015);
        assert_eq!(malformed("PING").code(), 0x1000_0011);
        assert_eq!(ProtocolError::Metadata("").code(), 0x1000_0018);
        let mismatch = ProtocolError::MechanismMismatch {
            ours: "NULL",
            theirs: "CURVE".to_owned(),
        };
        assert_eq!(mismatch.code(), 0x1100_0002);
    }
}
