//! The frames of WebSocket (RFC 6455, section 5), as far as they are used. A binary message is a frame of ZMTP, whose
//! flags are its first byte, or a message of SP. Either may arrive in several frames of WebSocket, its fragments.

use crate::error::{Error, ErrorKind, Result};
use crate::sys::errno;

const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

/// The longest payload of a control frame.
pub(super) const CONTROL_MAX: usize = 125;

/// Flags of ZWS.
pub(super) const MORE: u8 = 1;
pub(super) const COMMAND: u8 = 2;

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
    /// A message, or a fragment of one.
    Data {
        is_first: bool,
        is_last: bool,
        size: u64,
        mask: Mask,
    },
    /// A control frame.
    Control { opcode: u8, size: usize, mask: Mask },
}

/// Parses the start of a frame. Returns it and its length; `None` if it is incomplete.
///
/// # Errors
/// If such a frame is not allowed.
pub(super) fn parse(bytes: &[u8], is_masked: bool) -> Result<Option<(Start, usize)>> {
    let wrong = |why: &str| Error::with(ErrorKind::Os(errno::PROTOCOL), format!("the peer {why}"));
    let Some((&[first, second], rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let opcode = first & 0x0f;
    let is_control = (CLOSE..=PONG).contains(&opcode);
    let is_last = first & FINAL != 0;
    if is_control && !is_last {
        return Err(wrong("sends a control frame in fragments"));
    }
    if first & 0x70 != 0 {
        return Err(wrong(
            "uses an extension of WebSocket that was not negotiated",
        ));
    }
    match opcode {
        BINARY | CONTINUATION | CLOSE..=PONG => {}
        TEXT => return Err(wrong("sends text, expected binary messages")),
        _ => {
            return Err(wrong(
                "sends a frame of a type that WebSocket does not have",
            ));
        }
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
    if size >> 63 != 0 {
        return Err(wrong("sends a message of an impossible length"));
    }
    let (mask, rest) = match (is_masked, rest.split_first_chunk()) {
        (false, _) => (Mask::default(), rest),
        (true, Some((mask, rest))) => (Mask(*mask), rest),
        (true, None) => return Ok(None),
    };
    let start = match is_control {
        true => Start::Control {
            opcode,
            size: short.into(),
            mask,
        },
        false => Start::Data {
            is_first: opcode == BINARY,
            is_last,
            size,
            mask,
        },
    };
    Ok(Some((start, bytes.len() - rest.len())))
}

/// Adds the start of a frame with these flags and this many bytes of body, which has to be masked from offset 1 on.
pub(super) fn put_frame(flags: u8, size: u64, mask: Option<Mask>, output: &mut Vec<u8>) {
    put_start(FINAL | BINARY, size + 1, mask, output);
    output.push(flags ^ mask.unwrap_or_default().0[0]);
}

/// Adds the start of a piece of a message, with this many bytes that have to be masked.
pub(super) fn put_piece(
    is_first: bool,
    is_last: bool,
    size: u64,
    mask: Option<Mask>,
    output: &mut Vec<u8>,
) {
    let opcode = if is_first { BINARY } else { CONTINUATION };
    let last = if is_last { FINAL } else { 0 };
    put_start(last | opcode, size, mask, output);
}

/// Adds a control frame.
pub(super) fn put_control(opcode: u8, payload: &[u8], mask: Option<Mask>, output: &mut Vec<u8>) {
    put_start(FINAL | opcode, payload.len() as u64, mask, output);
    let start = output.len();
    output.extend_from_slice(payload);
    mask.unwrap_or_default().apply(&mut output[start..], 0);
}

fn put_start(first: u8, size: u64, mask: Option<Mask>, output: &mut Vec<u8>) {
    let masked = if mask.is_some() { MASKED } else { 0 };
    output.push(first);
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
