//! Finds the messages in a stream of bytes that ZMTP 3 wrote without encryption. It is written for this test, so that no fault
//! of the library is in it, too.

use super::letter;

const GREETING: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A message on the wire.
#[derive(Debug)]
pub struct Written {
    /// The socket that wrote the letter, and its number.
    pub letter: (u16, u32),
    /// How many bytes of the stream there are up to its last one.
    pub end: u64,
}

/// The whole messages among the first bytes of a connection.
pub fn messages(bytes: &[u8]) -> Vec<Written> {
    let mut rest = bytes.get(GREETING..).unwrap_or_default();
    let mut messages = Vec::new();
    let mut letter = None;
    while let Some((flags, body, after)) = frame(rest) {
        rest = after;
        if flags & COMMAND != 0 {
            continue;
        }
        // Envelopes and groups are shorter than a letter.
        letter = letter.or_else(|| letter::name(body));
        if flags & MORE == 0 {
            let end = (bytes.len() - rest.len()) as u64;
            let letter = letter.take().expect("programs send letters only");
            messages.push(Written { letter, end });
        }
    }
    messages
}

/// The flags and the body of the first frame, and what follows it; `None` if it is not whole.
fn frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&flags, rest) = bytes.split_first()?;
    let (length, rest) = match flags & LONG {
        0 => (u64::from(*rest.first()?), &rest[1..]),
        _ => {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            (u64::from_be_bytes(*length), rest)
        }
    };
    let (body, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((flags, body, rest))
}
