//! ZMTP 1.0 and 2.0: the framing of 1.0, and what an old peer tells about itself.
//!
//! Old peers know no commands, no properties and no mechanisms. After the greeting each side sends one frame
//! with its routing id, then messages; subscriptions are messages that start with 01 or 00. A peer of ZMTP
//! 1.0 without a signature filters at the subscriber and sends no subscriptions, so a publisher that meets
//! one pretends it subscribed to everything.

use crate::decoder::{Header, long_length};
use crate::error::ProtocolError;
use crate::greeting::Peer;
use crate::socket_type::SocketType;

/// The longest routing id a peer may announce.
pub(crate) const MAX_ROUTING_ID: usize = 255;

const MORE: u8 = 0x01;
const LONG: u8 = 0xff;

/// The header at the front of `data` in the framing of ZMTP 1.0; `None` when it is incomplete.
pub(crate) fn parse_header(data: &[u8]) -> Result<Option<Header>, ProtocolError> {
    let Some(&first) = data.first() else {
        return Ok(None);
    };
    let (len, size) = if first == LONG {
        let Some(size) = data[1..].first_chunk() else {
            return Ok(None);
        };
        (10, long_length(*size)?)
    } else {
        (2, u64::from(first))
    };
    let Some(size) = size.checked_sub(1) else {
        return Err(ProtocolError::FrameEmpty);
    };
    let Some(&flags) = data.get(len - 1) else {
        return Ok(None);
    };
    if flags & !MORE != 0 {
        return Err(ProtocolError::FrameFlags(flags));
    }
    Ok(Some(Header {
        len,
        size,
        more: flags & MORE != 0,
        command: false,
    }))
}

/// Adds the header of a frame in the framing of ZMTP 1.0.
pub(crate) fn put_header(output: &mut Vec<u8>, more: bool, size: usize) {
    // The flags byte counts; 255 in its place announces the long form.
    match u8::try_from(size + 1) {
        Ok(len) if len != LONG => output.push(len),
        _ => {
            output.push(LONG);
            output.extend_from_slice(&(size as u64 + 1).to_be_bytes());
        }
    }
    output.push(u8::from(more));
}

/// The version an old peer speaks, and its socket type if it says and if that type may talk to ours.
pub(crate) fn introduce(
    peer: &Peer,
    ours: SocketType,
) -> Result<((u8, u8), Option<SocketType>), ProtocolError> {
    let (version, id) = match peer {
        Peer::V2 { socket_id } => ((2, 0), socket_id),
        Peer::V1 { socket_id } => ((1, 0), socket_id),
        Peer::Unversioned | Peer::V3 { .. } => return Ok(((1, 0), None)),
    };
    match SocketType::from_id(i32::from(*id)) {
        Some(theirs) if ours.compatible(theirs) => Ok((version, Some(theirs))),
        Some(theirs) => Err(ProtocolError::SocketType {
            ours,
            theirs: theirs.name().to_owned(),
        }),
        None => Err(ProtocolError::SocketType {
            ours,
            theirs: format!("number {id}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: usize, size: u64, more: bool) -> Result<Option<Header>, ProtocolError> {
        Ok(Some(Header {
            len,
            size,
            more,
            command: false,
        }))
    }

    #[test]
    fn headers_are_those_of_rfc_13() {
        assert_eq!(parse_header(b"\x01\0"), header(2, 0, false));
        assert_eq!(parse_header(b"\x06\x01hello"), header(2, 5, true));
        assert_eq!(parse_header(b"\xfe\0"), header(2, 253, false));
        let long = b"\xff\0\0\0\0\0\0\x01\0\x01";
        assert_eq!(parse_header(long), header(10, 255, true));
        for end in 0..long.len() {
            assert_eq!(parse_header(&long[..end]), Ok(None));
        }
    }

    #[test]
    fn impossible_headers_are_refused() {
        assert_eq!(parse_header(b"\0"), Err(ProtocolError::FrameEmpty));
        assert_eq!(
            parse_header(b"\xff\0\0\0\0\0\0\0\0"),
            Err(ProtocolError::FrameEmpty)
        );
        assert_eq!(
            parse_header(b"\xff\x80\0\0\0\0\0\0\0"),
            Err(ProtocolError::FrameLength(1 << 63))
        );
        // The start of an HTTP request.
        assert_eq!(parse_header(b"GET /"), Err(ProtocolError::FrameFlags(b'E')));
    }

    #[test]
    fn headers_written_are_read_back() {
        for size in [0, 1, 252, 253, 254, 255, 256, 70_000] {
            for more in [false, true] {
                let mut output = Vec::new();
                put_header(&mut output, more, size);
                assert_eq!(
                    parse_header(&output),
                    header(output.len(), size as u64, more)
                );
                assert_eq!(output.len(), if size < 254 { 2 } else { 10 });
            }
        }
    }

    #[test]
    fn old_peers_are_checked_as_far_as_they_tell() {
        let ours = SocketType::Rep;
        assert_eq!(introduce(&Peer::Unversioned, ours), Ok(((1, 0), None)));
        let req = Some(SocketType::Req);
        assert_eq!(
            introduce(&Peer::V1 { socket_id: 3 }, ours),
            Ok(((1, 0), req))
        );
        assert_eq!(
            introduce(&Peer::V2 { socket_id: 3 }, ours),
            Ok(((2, 0), req))
        );
        for socket_id in [0, 4, 11, 12, 255] {
            assert!(introduce(&Peer::V2 { socket_id }, ours).is_err());
        }
    }
}
