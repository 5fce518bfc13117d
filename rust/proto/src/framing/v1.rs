//! The framing of ZMTP 1.0 (RFC 13): the length, which includes the flags, then the flags.

use super::{Header, long_length};
use crate::error::ProtocolError;

const MORE: u8 = 0x01;
/// In place of a length, announces one of eight bytes.
pub(crate) const LONG: u8 = 0xff;

/// The header at the front of `data` in the framing of ZMTP 1.0; `None` if it is incomplete.
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
    // The flags byte is included; 255 in its place announces the long form.
    match u8::try_from(size + 1) {
        Ok(len) if len != LONG => output.push(len),
        _ => {
            output.push(LONG);
            output.extend_from_slice(&(size as u64 + 1).to_be_bytes());
        }
    }
    output.push(u8::from(more));
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
}
