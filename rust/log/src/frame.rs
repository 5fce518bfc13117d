//! A batch as it is stored: a header with checksums, then an Arrow IPC message.
//!
//! ```text
//!  0 magic            4 crc of the header from byte 8 on    8 length of the frame   12 length of the header
//! 16 crc of the rest 20 length of Arrow's metadata         24 first offset         32 epoch
//! 40 first seq       48 receive time                       56 least timestamp      64 greatest timestamp
//! 72 rows known to be on disk when this was written        80 flags (u16), length of the producer's name (u16)
//! 84 offsets covered 88 head of the batch, the producer's name, zeros up to a multiple of 8
//! then, unless the rows were picked, Arrow's metadata; then the buffers
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow_array::Array;
use bytes::Bytes;

use crate::batch::Batch;
use crate::columns::Columns;
use crate::error::BatchError;
use crate::ipc::Metadata;
use crate::layout::{Head, Parts, pad};

pub(crate) const MAGIC: [u8; 4] = *b"ZXF1";

/// Bytes before the head of the batch.
pub(crate) const FIXED: usize = 88;

/// The longest name of a producer, in bytes.
pub const MAX_NAME: usize = 255;

/// No log has as many rows. Readers have offsets as signed numbers, and could not read rows with higher ones. Damage and
/// forgery may lead to such an offset with a right checksum; then it is not used.
pub(crate) const OFFSET_MAX: u64 = 1 << 62;

/// The maximum length of a header: the head of a batch with all columns, and the longest name.
pub(crate) const MAX_HEADER: usize = 512;

/// The sender of a batch, its number, and when it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The producer's name; empty for a plain peer, whose rows have no sequence numbers.
    pub producer: Arc<str>,
    /// The producer's run: a greater epoch fences off the lesser ones.
    pub epoch: u64,
    /// The number of the first row; the others follow.
    pub first_seq: u64,
    /// Microseconds since 1970.
    pub receive_time: i64,
}

impl Origin {
    /// The origin of rows from a plain peer.
    pub fn plain(receive_time: i64) -> Origin {
        Origin {
            producer: "".into(),
            epoch: 0,
            first_seq: 0,
            receive_time,
        }
    }

    /// Whether the rows have sequence numbers.
    pub fn is_numbered(&self) -> bool {
        !self.producer.is_empty()
    }
}

/// The frame's role in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Not part of a transaction.
    Single,
    /// Part of a published transaction that continues in the next frame. The origin's producer is the query, its epoch
    /// the batch.
    Part,
    /// The last frame of a published transaction, which makes the frames before it visible.
    Last,
}

impl Role {
    /// The role that the flags of a header state, if it is a single one.
    fn of(flags: u16) -> Option<Role> {
        match flags & (flag::PART | flag::LAST) {
            0 => Some(Role::Single),
            flag::PART => Some(Role::Part),
            flag::LAST => Some(Role::Last),
            _ => None,
        }
    }
}

mod flag {
    pub const PART: u16 = 1;
    pub const LAST: u16 = 2;
    pub const PICKED: u16 = 4;
    pub const ALL: u16 = 7;
}

/// The header of a frame whose checksum is correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub length: usize,
    pub header_length: usize,
    pub body_crc: u32,
    pub metadata_length: usize,
    pub first_offset: u64,
    pub span: u64,
    pub origin: Origin,
    pub timestamps: (i64, i64),
    pub durable: u64,
    pub role: Role,
    pub is_picked: bool,
    pub head: Head,
}

/// The reason why there is no header at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoHeader {
    /// The bytes end within it.
    Short,
    /// The bytes are not a header.
    Wrong(&'static str),
}

impl Header {
    /// The offset after its last row.
    pub fn end(&self) -> u64 {
        self.first_offset + self.span
    }

    /// Reads the header at the beginning of `bytes`.
    pub fn read(bytes: &[u8]) -> Result<Header, NoHeader> {
        use NoHeader::{Short, Wrong};
        let fixed = bytes.first_chunk::<FIXED>().ok_or(Short)?;
        if fixed[..4] != MAGIC {
            return Err(Wrong("no frame begins here"));
        }
        let (length, header_length) = (u32_at(fixed, 8) as usize, u32_at(fixed, 12) as usize);
        if !(FIXED..=MAX_HEADER).contains(&header_length) || header_length % 8 != 0 {
            return Err(Wrong("a header of an impossible length"));
        }
        let header = bytes.get(..header_length).ok_or(Short)?;
        if crc32c::crc32c(&header[8..]) != u32_at(fixed, 4) {
            return Err(Wrong("the checksum of a header is wrong"));
        }
        let flags = u16_at(fixed, 80);
        let name_length = usize::from(u16_at(fixed, 82));
        let metadata_length = u32_at(fixed, 20) as usize;
        let (head, head_length) =
            Head::read(&header[FIXED..]).map_err(|_| Wrong("a header that describes no batch"))?;
        let name = header[FIXED + head_length..].get(..name_length);
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let name = name.ok_or(Wrong("an invalid producer name"))?;
        let adds_up =
            header_length as u64 + metadata_length as u64 + head.body_size() == length as u64;
        let (first_offset, span) = (u64_at(fixed, 24), u64::from(u32_at(fixed, 84)));
        let first_seq = u64_at(fixed, 40);
        let is_picked = flags & flag::PICKED != 0;
        let covers = if is_picked {
            head.rows as u64 <= span
        } else {
            head.rows as u64 == span
        };
        let durable = u64_at(fixed, 72);
        let is_possible = adds_up
            && flags & !flag::ALL == 0
            && covers
            && are_offsets(first_offset, span)
            && are_numbers(first_seq, span)
            && durable <= first_offset;
        let Some(role) = Role::of(flags).filter(|_| is_possible) else {
            return Err(Wrong("a header that contradicts itself"));
        };
        Ok(Header {
            length,
            header_length,
            body_crc: u32_at(fixed, 16),
            metadata_length,
            first_offset,
            span,
            origin: Origin {
                producer: name.into(),
                epoch: u64_at(fixed, 32),
                first_seq,
                receive_time: u64_at(fixed, 48).cast_signed(),
            },
            timestamps: (
                u64_at(fixed, 56).cast_signed(),
                u64_at(fixed, 64).cast_signed(),
            ),
            durable,
            role,
            is_picked,
            head,
        })
    }

    /// The length and the number of rows that a header states, whether or not it is damaged.
    pub fn claims(bytes: &[u8]) -> Option<(u64, u64)> {
        let fixed = bytes.first_chunk::<FIXED>()?;
        Some((u64::from(u32_at(fixed, 8)), u64::from(u32_at(fixed, 84))))
    }

    /// Whether the bytes after the header match its checksum.
    pub fn fits(&self, frame: &[u8]) -> bool {
        let body = frame.get(self.header_length..self.length);
        body.is_some_and(|body| crc32c::crc32c(body) == self.body_crc)
    }
}

/// Whether a log can have rows at these offsets.
pub(crate) fn are_offsets(first: u64, count: u64) -> bool {
    let end = first.checked_add(count);
    end.is_some_and(|end| end <= OFFSET_MAX)
}

/// Whether rows can have these sequence numbers, which are signed at readers.
pub(crate) fn are_numbers(first: u64, count: u64) -> bool {
    let end = first.checked_add(count);
    end.is_some_and(|end| i64::try_from(end).is_ok())
}

/// The description of a frame, without its rows.
pub(crate) struct Labels<'a> {
    pub first_offset: u64,
    pub span: usize,
    pub origin: &'a Origin,
    pub durable: u64,
    pub role: Role,
}

/// The values that a frame gets when its position in the log is known.
#[derive(Debug)]
pub(crate) struct Placed {
    pub first_offset: u64,
    pub first_seq: u64,
    pub durable: u64,
    pub role: Role,
}

/// Appends the frame of these columns.
pub(crate) fn write(
    labels: &Labels<'_>,
    columns: &Columns,
    metadata: &mut Metadata,
    out: &mut Vec<u8>,
) {
    let (start, parts) = (out.len(), Parts::of(columns));
    let origin = labels.origin;
    out.reserve(MAX_HEADER + 1024 + parts.body_size());
    out.resize(start + FIXED, 0);
    parts.write_head(out);
    out.extend_from_slice(origin.producer.as_bytes());
    pad(out, start);
    let header_length = out.len() - start;
    let is_picked = columns.offset.is_some();
    if !is_picked {
        metadata.write(columns.value.len(), &parts, out);
    }
    let metadata_length = out.len() - start - header_length;
    parts.write_body(out);

    let (least, greatest) = timestamps(columns, origin.receive_time);
    let flags = flags_of(labels.role) | if is_picked { flag::PICKED } else { 0 };
    let frame = &mut out[start..];
    let short =
        |length: usize| u32::try_from(length).expect("a frame is little more than MAX_BATCH");
    let name_length = u16::try_from(origin.producer.len()).expect("checked against MAX_NAME");
    let body_crc = crc32c::crc32c(&frame[header_length..]);
    let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &MAGIC);
    put(12, &short(header_length).to_le_bytes());
    put(16, &body_crc.to_le_bytes());
    put(20, &short(metadata_length).to_le_bytes());
    put(24, &labels.first_offset.to_le_bytes());
    put(32, &origin.epoch.to_le_bytes());
    put(40, &origin.first_seq.to_le_bytes());
    put(48, &origin.receive_time.to_le_bytes());
    put(56, &least.to_le_bytes());
    put(64, &greatest.to_le_bytes());
    put(72, &labels.durable.to_le_bytes());
    put(80, &flags.to_le_bytes());
    put(82, &name_length.to_le_bytes());
    put(84, &short(labels.span).to_le_bytes());
    let length = short(frame.len());
    frame[8..12].copy_from_slice(&length.to_le_bytes());
    let header_crc = crc32c::crc32c(&frame[8..header_length]);
    frame[4..8].copy_from_slice(&header_crc.to_le_bytes());
}

/// The number of bytes of a frame before its rows.
pub(crate) fn header_length(frame: &[u8]) -> usize {
    let word = frame.get(12..16).and_then(|word| word.first_chunk::<4>());
    word.map_or(0, |word| u32::from_le_bytes(*word) as usize)
}

/// Completes a header that was written before its position in the log was known.
pub(crate) fn place(header: &mut [u8], place: &Placed) {
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(24, &place.first_offset.to_le_bytes());
    put(40, &place.first_seq.to_le_bytes());
    put(72, &place.durable.to_le_bytes());
    put(80, &flags_of(place.role).to_le_bytes());
    let crc = crc32c::crc32c(&header[8..]);
    header[4..8].copy_from_slice(&crc.to_le_bytes());
}

fn flags_of(role: Role) -> u16 {
    match role {
        Role::Single => 0,
        Role::Part => flag::PART,
        Role::Last => flag::LAST,
    }
}

/// The least and the greatest timestamp of the rows. A row without its own has the time of receipt.
fn timestamps(columns: &Columns, receive_time: i64) -> (i64, i64) {
    let Some(column) = &columns.timestamp else {
        return (receive_time, receive_time);
    };
    let own = column.iter().map(|time| time.unwrap_or(receive_time));
    own.fold(None, |range, time| match range {
        None => Some((time, time)),
        Some((least, greatest)) => Some((time.min(least), time.max(greatest))),
    })
    .unwrap_or((receive_time, receive_time))
}

/// A batch with its position in the log.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The offset of its first row; for picked rows, of the first row considered.
    pub first_offset: u64,
    /// The offset after its last row; for picked rows, after the last row considered.
    pub end: u64,
    /// The sender and the time of receipt. For rows that a query published: the query, its batch, and numbers per
    /// query.
    pub origin: Origin,
    /// The least and the greatest timestamp of its rows.
    pub timestamps: (i64, i64),
    /// The rows.
    pub batch: Batch,
    /// The frame, which can be sent unchanged.
    pub bytes: Bytes,
}

/// The contents of a frame's header, for readers that walk a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameInfo {
    /// The number of bytes from this frame to the next.
    pub length: usize,
    /// The offset of its first row.
    pub first_offset: u64,
    /// The offset after its last row.
    pub end: u64,
    /// The sender and the time of receipt.
    pub origin: Origin,
}

impl FrameInfo {
    /// Reads the header at the beginning of `bytes` and checks its checksum. None if it is incomplete.
    pub fn peek(bytes: &[u8]) -> Result<Option<FrameInfo>, BatchError> {
        match Header::read(bytes) {
            Ok(header) => Ok(Some(FrameInfo {
                length: header.length,
                first_offset: header.first_offset,
                end: header.end(),
                origin: header.origin,
            })),
            Err(NoHeader::Short) => Ok(None),
            Err(NoHeader::Wrong(what)) => Err(BatchError::Malformed(what)),
        }
    }
}

impl Stored {
    /// Reads the batch of a frame, from a file or from a collector. Checks both checksums and all contents.
    pub fn parse(bytes: Bytes) -> Result<Stored, BatchError> {
        let header = Header::read(&bytes).map_err(|error| match error {
            NoHeader::Short => BatchError::Malformed("a frame's header that ends too soon"),
            NoHeader::Wrong(what) => BatchError::Malformed(what),
        })?;
        if bytes.len() != header.length {
            return Err(BatchError::Length {
                expected: header.length as u64,
                got: bytes.len() as u64,
            });
        }
        if !header.fits(&bytes) {
            return Err(BatchError::Malformed("the checksum of a frame is wrong"));
        }
        Stored::from_checked(header, bytes)
    }

    /// The same, if the checksums have been checked.
    pub(crate) fn from_checked(header: Header, bytes: Bytes) -> Result<Stored, BatchError> {
        let body = bytes.slice(header.header_length + header.metadata_length..);
        let batch = Batch {
            columns: header.head.columns(body)?,
        };
        if header.is_picked != batch.columns.offset.is_some() {
            return Err(BatchError::Malformed("picked rows without their offsets"));
        }
        if let Some(offset) = &batch.columns.offset {
            let covered = header.first_offset..header.end();
            let ends = [offset.values().first(), offset.values().last()];
            if ends
                .iter()
                .flatten()
                .any(|at| !covered.contains(&at.cast_unsigned()))
            {
                return Err(BatchError::Malformed("picked rows from somewhere else"));
            }
        }
        Ok(Stored {
            first_offset: header.first_offset,
            end: header.end(),
            origin: header.origin,
            timestamps: header.timestamps,
            batch,
            bytes,
        })
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// The offset of a row. Panics if there is no such row.
    pub fn offset(&self, row: usize) -> u64 {
        assert!(row < self.rows(), "a row of the batch");
        self.batch
            .offset(row)
            .unwrap_or(self.first_offset + row as u64)
    }

    /// The sequence number of a row; None if a plain peer sent it.
    pub fn seq(&self, row: usize) -> Option<u64> {
        let at = self.offset(row) - self.first_offset;
        self.origin
            .is_numbered()
            .then(|| self.origin.first_seq + at)
    }

    /// The rows with offsets within `range`.
    pub fn rows_within(&self, range: &Range<u64>) -> Range<usize> {
        let row_of = |offset: u64| match &self.batch.columns.offset {
            Some(column) => column
                .values()
                .partition_point(|at| at.cast_unsigned() < offset),
            None => {
                let row = offset.saturating_sub(self.first_offset);
                usize::try_from(row).unwrap_or(usize::MAX).min(self.rows())
            }
        };
        let start = row_of(range.start);
        start..row_of(range.end).max(start)
    }

    /// A new frame of only the rows whose topic begins with one of `prefixes`, each with its offset. Rows without a
    /// topic count as having an empty one.
    pub fn pick(&self, prefixes: &[&str]) -> Stored {
        let rows = self.rows();
        let keep: Vec<bool> = (0..rows)
            .map(|row| {
                let topic = self.batch.topic(row).unwrap_or_default();
                prefixes.iter().any(|prefix| topic.starts_with(prefix))
            })
            .collect();
        let mut columns = self.batch.columns.clone();
        if columns.offset.is_none() {
            let first = self.first_offset.cast_signed();
            columns.offset = Some((first..first + rows as i64).collect::<Vec<i64>>().into());
        }
        let keep = arrow_array::BooleanArray::from(keep);
        let columns = columns.map(|column| arrow_select::filter::filter(column, &keep));
        let columns = columns.expect("a filter as long as its columns");
        let labels = Labels {
            first_offset: self.first_offset,
            span: usize::try_from(self.end - self.first_offset)
                .expect("a frame covers few offsets"),
            origin: &self.origin,
            durable: 0,
            role: Role::Single,
        };
        let mut bytes = Vec::new();
        write(&labels, &columns, &mut Metadata::default(), &mut bytes);
        Stored {
            timestamps: timestamps(&columns, self.origin.receive_time),
            batch: Batch { columns },
            bytes: Bytes::from(bytes),
            ..self.clone()
        }
    }
}

fn u16_at(bytes: &[u8; FIXED], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; FIXED], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn u64_at(bytes: &[u8; FIXED], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}
