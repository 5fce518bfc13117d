//! Counts the messages in a stream of bytes that ZMTP 3 wrote without encryption. It is written for this test, so that no fault
//! of the library is in it, too.

const GREETING: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// The number of whole messages among the first bytes of a connection.
pub fn messages(bytes: &[u8]) -> u64 {
    let mut rest = bytes.get(GREETING..).unwrap_or_default();
    let mut count = 0;
    while let Some((flags, after)) = frame(rest) {
        rest = after;
        count += u64::from(flags & (MORE | COMMAND) == 0);
    }
    count
}

/// The flags of the first frame, and what follows it; `None` if it is not whole.
fn frame(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (&flags, rest) = bytes.split_first()?;
    let (length, rest) = match flags & LONG {
        0 => (u64::from(*rest.first()?), &rest[1..]),
        _ => {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            (u64::from_be_bytes(*length), rest)
        }
    };
    let rest = rest.get(usize::try_from(length).ok()?..)?;
    Some((flags, rest))
}
