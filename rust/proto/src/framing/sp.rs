//! The framing of the scalability protocols: the length of a message in eight bytes. What else there is depends on the
//! [`Mapping`].

use super::{Header, long_length};
use crate::error::ProtocolError;
use crate::sp::Mapping;

/// The only type of message over ipc: the message itself follows.
const INLINE: u8 = 1;
/// Bytes of a header without a type.
pub(crate) const HEADER: usize = 8;

/// The header at the front of `data`; `None` if it is incomplete.
pub(crate) fn parse_header(data: &[u8], mapping: Mapping) -> Result<Option<Header>, ProtocolError> {
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
pub(crate) fn put_header(output: &mut Vec<u8>, mapping: Mapping, size: usize) {
    if mapping == Mapping::Typed {
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

    #[test]
    fn headers_written_are_read_back() {
        for mapping in [Mapping::Sized, Mapping::Typed, Mapping::Pieces] {
            for size in [0, 1, 255, 256, 70_000] {
                let mut output = Vec::new();
                put_header(&mut output, mapping, size);
                assert_eq!(
                    parse_header(&output, mapping),
                    header(output.len(), size as u64)
                );
            }
        }
    }
}
