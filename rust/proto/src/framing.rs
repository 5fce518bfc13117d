//! Divides the bytes of a connection into frames: each version of the framing has one file, with its only parser.

use crate::wires::{Form, Mapping};
pub(crate) use crate::wires::{Header, long_length};

pub(crate) mod v1;
pub(crate) mod v2;

/// The framing on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Framing {
    /// ZMTP 1.0: the length comes first and counts the flags.
    V1,
    /// ZMTP 2.0 and later: flags, then the length.
    V2,
    /// No framing: each read is a frame.
    Raw,
    /// That of another wire protocol.
    Other(&'static Form, Mapping),
}

/// The bit of a length that says that another piece of the frame follows. No transport has it on the wire.
const PIECE: u64 = 1 << 63;

/// Where a long header has its length, for a transport that may pass on a frame in pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Long {
    /// Bytes of the header.
    pub(crate) header: usize,
    /// Bytes before the length. Bits of the first byte say whether the header is a long one.
    before: usize,
    marks: u8,
    /// Bytes that the length counts in addition to the body.
    extra: u64,
}

impl Framing {
    /// Whether this is the framing of ZMTP 2.0 and later.
    #[inline]
    pub(crate) fn is_v2(self) -> bool {
        matches!(self, Framing::V2)
    }

    /// The form of a long header.
    pub(crate) fn long(self) -> Long {
        let (header, before, marks, extra) = match self {
            Framing::V1 => (10, 1, v1::LONG, 1),
            Framing::V2 | Framing::Raw => (9, 1, v2::LONG, 0),
            Framing::Other(form, _) => {
                let before = form.over_ws.as_ref().map_or(0, |ws| ws.before);
                (before + 8, before, 0, 0)
            }
        };
        Long {
            header,
            before,
            marks,
            extra,
        }
    }
}

impl Long {
    /// Whether a piece begins here that is not the last one of its frame.
    pub(crate) fn is_piece(self, data: &[u8]) -> bool {
        let is_long = data
            .first()
            .is_some_and(|first| first & self.marks == self.marks);
        is_long && data.get(self.before).is_some_and(|byte| byte >> 7 != 0)
    }

    /// The bytes of the piece that begins here, and whether another one follows; `None` if its header is incomplete.
    pub(crate) fn piece(self, data: &[u8]) -> Option<(u64, bool)> {
        let header = data.get(..self.header)?;
        let length = u64::from_be_bytes(*header[self.before..].first_chunk()?);
        let size = (length & !PIECE).saturating_sub(self.extra);
        Some((size, length & PIECE != 0))
    }

    /// The header that begins here, with another length.
    pub(crate) fn whole(self, data: &[u8], size: u64) -> Vec<u8> {
        let mut header = data[..self.header].to_vec();
        let length = size.saturating_add(self.extra);
        header[self.before..self.before + 8].copy_from_slice(&length.to_be_bytes());
        header
    }
}
