//! Divides the bytes of a connection into frames: each version of the framing has one file, with its only parser.

use crate::error::ProtocolError;
use crate::sp::Mapping;

pub(crate) mod sp;
pub(crate) mod v1;
pub(crate) mod v2;

/// The framing on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// ZMTP 1.0: the length comes first and counts the flags.
    V1,
    /// ZMTP 2.0 and later: flags, then the length.
    V2,
    /// No framing: each read is a frame.
    Raw,
    /// The scalability protocols: the length of a message comes first.
    Sp(Mapping),
}

/// The start of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of the header itself.
    pub(crate) len: usize,
    /// Bytes of the body.
    pub(crate) size: u64,
    pub(crate) more: bool,
    pub(crate) command: bool,
}

/// A long length; the highest bit must be clear.
fn long_length(bytes: [u8; 8]) -> Result<u64, ProtocolError> {
    let length = u64::from_be_bytes(bytes);
    if length >> 63 != 0 {
        return Err(ProtocolError::FrameLength(length));
    }
    Ok(length)
}
