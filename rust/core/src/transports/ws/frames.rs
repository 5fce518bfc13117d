//! The frames of WebSocket (RFC 6455, section 5), as far as ZWS 2.0 uses them: one binary message is one frame of ZMTP,
//! whose flags are its first byte.

use crate::error::{Error, ErrorKind, Result};
use crate::sys::errno;

const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

/// The longest payload of a control frame.
pub(super) const CONTROL_MAX: usize = 125;

/// Flags of ZWS.
const MORE: u8 = 1;
const COMMAND: u8 = 2;
/// Flags of ZMTP.
const ZMTP_MORE: u8 = 1;
const ZMTP_LONG: u8 = 2;
const ZMTP_COMMAND: u8 = 4;

/// A key that hides bytes from programs on the way; all zeros where there is none.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Mask([u8; 4]);

impl Mask {
    pub(super) fn new(random: [u8; 4]) -> Mask {
        Mask(random)
    }

    /// Masks bytes in place, of which the first is at this offset in the payload.
    pub(super) fn apply(self, bytes: &mut [u8], offset: u64) {
        if self.0 == [0; 4] {
            return;
        }
        let mut key = self.0;
        key.rotate_left((offset % 4) as usize);
        let [a, b, c, d] = key;
        let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        let mut chunks = bytes.chunks_exact_mut(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            chunk.copy_from_slice(&(u64::from_ne_bytes(word) ^ wide).to_ne_bytes());
        }
        for (byte, key) in chunks.into_remainder().iter_mut().zip(key.iter().cycle()) {
            *byte ^= key;
        }
    }
}

/// The start of a received frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// A frame of ZMTP, with the header that it has there.
    Frame { flags: u8, size: u64, mask: Mask },
    /// A control frame.
    Control { opcode: u8, size: u64, mask: Mask },
}

/// Parses the start of a frame; `None` if it is incomplete.
///
/// # Errors
/// If ZWS does not allow such a frame.
pub(super) fn parse(bytes: &[u8], is_masked: bool) -> Result<Option<Start>> {
    let wrong = |why: &str| Error::with(ErrorKind::Os(errno::PROTOCOL), format!("the peer {why}"));
    let Some((&[first, second], rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let opcode = first & 0x0f;
    let is_control = (CLOSE..=PONG).contains(&opcode);
    if first & FINAL == 0 || opcode == 0 {
        return Err(wrong(
            "sends a message in fragments, which ZWS 2.0 does not allow",
        ));
    }
    if first & 0x70 != 0 {
        return Err(wrong(
            "uses an extension of WebSocket that was not negotiated",
        ));
    }
    if opcode != BINARY && !is_control {
        return Err(wrong("sends text, expected binary messages"));
    }
    if (second & MASKED != 0) != is_masked {
        let why = match is_masked {
            true => "does not mask its frames, as clients must",
            false => "masks its frames, which servers must not",
        };
        return Err(wrong(why));
    }
    let short = second & !MASKED;
    if is_control && usize::from(short) > CONTROL_MAX {
        return Err(wrong("sends a control frame of more than 125 bytes"));
    }
    let (size, rest) = match short {
        126 => match rest.split_first_chunk() {
            Some((size, rest)) => (u64::from(u16::from_be_bytes(*size)), rest),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk() {
            Some((size, rest)) => (u64::from_be_bytes(*size), rest),
            None => return Ok(None),
        },
        short => (u64::from(short), rest),
    };
    if size >> 63 != 0 || !is_control && size == 0 {
        return Err(wrong("sends a message of an impossible length"));
    }
    let (mask, rest) = match (is_masked, rest.split_first_chunk()) {
        (false, _) => (Mask::default(), rest),
        (true, Some((mask, rest))) => (Mask(*mask), rest),
        (true, None) => return Ok(None),
    };
    if is_control {
        return Ok(Some(Start::Control { opcode, size, mask }));
    }
    let Some(flags) = rest.first() else {
        return Ok(None);
    };
    let flags = flags ^ mask.0[0];
    if flags & !(MORE | COMMAND) != 0 {
        return Err(wrong("sets flags that ZWS 2.0 does not have"));
    }
    Ok(Some(Start::Frame {
        flags,
        size: size - 1,
        mask,
    }))
}

/// Adds the header that a frame has in ZMTP.
pub(super) fn put_zmtp(flags: u8, size: u64, output: &mut Vec<u8>) {
    let mut zmtp = 0;
    if flags & MORE != 0 {
        zmtp |= ZMTP_MORE;
    }
    if flags & COMMAND != 0 {
        zmtp |= ZMTP_COMMAND;
    }
    match u8::try_from(size) {
        Ok(size) => output.extend([zmtp, size]),
        Err(_) => {
            output.push(zmtp | ZMTP_LONG);
            output.extend(size.to_be_bytes());
        }
    }
}

/// The flags and the size of a frame of ZMTP; `None` if its header is incomplete.
pub(super) fn parse_zmtp(header: &[u8]) -> Option<(u8, u64)> {
    let (&zmtp, rest) = header.split_first()?;
    let size = match zmtp & ZMTP_LONG {
        0 => u64::from(*rest.first()?),
        _ => u64::from_be_bytes(*rest.first_chunk()?),
    };
    let mut flags = 0;
    if zmtp & ZMTP_MORE != 0 {
        flags |= MORE;
    }
    if zmtp & ZMTP_COMMAND != 0 {
        flags |= COMMAND;
    }
    Some((flags, size))
}

/// Adds the start of a frame with these flags and this many bytes of body, which has to be masked from offset 1 on.
pub(super) fn put_frame(flags: u8, size: u64, mask: Option<Mask>, output: &mut Vec<u8>) {
    put_start(BINARY, size + 1, mask, output);
    output.push(flags ^ mask.unwrap_or_default().0[0]);
}

/// Adds a control frame.
pub(super) fn put_control(opcode: u8, payload: &[u8], mask: Option<Mask>, output: &mut Vec<u8>) {
    put_start(opcode, payload.len() as u64, mask, output);
    let start = output.len();
    output.extend_from_slice(payload);
    mask.unwrap_or_default().apply(&mut output[start..], 0);
}

fn put_start(opcode: u8, size: u64, mask: Option<Mask>, output: &mut Vec<u8>) {
    let masked = if mask.is_some() { MASKED } else { 0 };
    output.push(FINAL | opcode);
    match (u8::try_from(size), u16::try_from(size)) {
        (Ok(short), _) if short < 126 => output.push(masked | short),
        (_, Ok(middle)) => {
            output.push(masked | 126);
            output.extend(middle.to_be_bytes());
        }
        _ => {
            output.push(masked | 127);
            output.extend(size.to_be_bytes());
        }
    }
    if let Some(Mask(key)) = mask {
        output.extend(key);
    }
}
