//! The framing of the scalability protocols: the length of a message in eight bytes. Over ipc, a byte with the type of
//! the message comes first.

use super::{Header, long_length};
use crate::error::ProtocolError;

/// The only type of message over ipc: the message itself follows.
const INLINE: u8 = 1;

/// The header at the front of `data`; `None` if it is incomplete.
pub(crate) fn parse_header(data: &[u8], typed: bool) -> Result<Option<Header>, ProtocolError> {
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
pub(crate) fn put_header(output: &mut Vec<u8>, typed: bool, size: usize) {
    if typed {
        output.push(INLINE);
    }
    output.extend_from_slice(&(size as u64).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(parse_header(tcp, false), header(8, 261));
        assert_eq!(parse_header(ipc, true), header(9, 261));
        for end in 0..8 {
            assert_eq!(parse_header(&tcp[..end], false), Ok(None));
            assert_eq!(parse_header(&ipc[..end], true), Ok(None));
        }
        assert_eq!(parse_header(&ipc[..8], true), Ok(None));
    }

    #[test]
    fn impossible_headers_are_refused() {
        let long = b"\x80\0\0\0\0\0\0\0";
        assert_eq!(
            parse_header(long, false),
            Err(ProtocolError::FrameLength(1 << 63))
        );
        // A message in shared memory, which no implementation sends.
        assert_eq!(
            parse_header(b"\x02", true),
            Err(ProtocolError::MessageType(2))
        );
    }

    #[test]
    fn headers_written_are_read_back() {
        for typed in [false, true] {
            for size in [0, 1, 255, 256, 70_000] {
                let mut output = Vec::new();
                put_header(&mut output, typed, size);
                assert_eq!(
                    parse_header(&output, typed),
                    header(output.len(), size as u64)
                );
            }
        }
    }
}
