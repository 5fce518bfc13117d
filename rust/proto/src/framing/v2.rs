//! The framing of ZMTP 2.0 and later (RFC 23 and 37, "Framing"): flags, then the length in one byte or eight.

use super::{Header, long_length};
use crate::error::ProtocolError;

pub(crate) const MORE: u8 = 0x01;
pub(crate) const LONG: u8 = 0x02;
pub(crate) const COMMAND: u8 = 0x04;

/// The longest header, in bytes.
pub(crate) const HEADER_MAX: usize = 9;

/// The header at the front of `data` in the framing of ZMTP 2.0 and later; `None` if it is incomplete.
#[inline]
pub(crate) fn parse_header(data: &[u8]) -> Result<Option<Header>, ProtocolError> {
    let Some(&flags) = data.first() else {
        return Ok(None);
    };
    // A command never has more frames.
    if flags & (MORE | COMMAND) == MORE | COMMAND {
        return Err(ProtocolError::FrameFlags(flags));
    }
    parse_any_header(flags, data)
}

/// Like [`parse_header`], for a frame that wraps another one. The kind of the frame is inside the wrapping. Peers set
/// the outer flags differently, and those are not authenticated.
pub(crate) fn parse_wrapping(data: &[u8]) -> Result<Option<Header>, ProtocolError> {
    let Some(&flags) = data.first() else {
        return Ok(None);
    };
    let header = parse_any_header(flags, data)?;
    Ok(header.map(|header| Header {
        more: false,
        command: false,
        ..header
    }))
}

#[inline]
fn parse_any_header(flags: u8, data: &[u8]) -> Result<Option<Header>, ProtocolError> {
    // The other bits are reserved.
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err(ProtocolError::FrameFlags(flags));
    }
    let (len, size) = if flags & LONG == 0 {
        let Some(&size) = data.get(1) else {
            return Ok(None);
        };
        (2, u64::from(size))
    } else {
        let Some(size) = data[1..].first_chunk() else {
            return Ok(None);
        };
        (9, long_length(*size)?)
    };
    Ok(Some(Header {
        len,
        size,
        more: flags & MORE != 0,
        command: flags & COMMAND != 0,
    }))
}

/// Adds the header of a frame in the framing of ZMTP 2 and later.
#[inline]
pub(crate) fn put_header(buffer: &mut Vec<u8>, flags: u8, size: usize) {
    if size <= 255 {
        return buffer.extend_from_slice(&[flags, size as u8]);
    }
    let mut header = [0; 9];
    header[0] = flags | LONG;
    header[1..].copy_from_slice(&(size as u64).to_be_bytes());
    buffer.extend_from_slice(&header);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: usize, size: u64, more: bool, command: bool) -> Option<Header> {
        Some(Header {
            len,
            size,
            more,
            command,
        })
    }

    #[test]
    fn headers_are_those_of_rfc_37() {
        let cases: &[(&[u8], _)] = &[
            (b"\0\0", header(2, 0, false, false)),
            (b"\x01\xff", header(2, 255, true, false)),
            (b"\x04\x1a\x05READY", header(2, 26, false, true)),
            (b"\x02\0\0\0\0\0\0\x01\0", header(9, 256, false, false)),
            (b"\x03\0\0\0\0\0\0\0\0", header(9, 0, true, false)),
            (
                b"\x06\x7f\xff\xff\xff\xff\xff\xff\xff",
                header(9, u64::MAX >> 1, false, true),
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(parse_header(bytes).as_ref(), Ok(expected));
            let len = if bytes[0] & LONG == 0 { 2 } else { 9 };
            for end in 0..len {
                assert_eq!(parse_header(&bytes[..end]), Ok(None));
            }
        }
    }

    #[test]
    fn impossible_headers_are_refused_by_their_first_wrong_byte() {
        for flags in [0x08, 0x10, 0x80, 0x05, 0x07] {
            assert_eq!(
                parse_header(&[flags]),
                Err(ProtocolError::FrameFlags(flags))
            );
        }
        let long = b"\x02\x80\0\0\0\0\0\0\0";
        assert_eq!(parse_header(long), Err(ProtocolError::FrameLength(1 << 63)));
    }
}
