//! The bytes of a batch: a head with the lengths of all buffers, then the buffers as Arrow's IPC format has them.
//!
//! ```text
//! u16 mask, u16 number of buffers, u32 rows, u32 length of each buffer, zeros up to a multiple of 8
//! the buffers, each followed by zeros up to a multiple of 8
//! ```
//!
//! The same bytes are sent by producers, stored in segments after Arrow's metadata, and sent to readers.

use std::sync::Arc;

use arrow_array::{
    Array, BinaryArray, Int64Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use bytes::Bytes;

use crate::columns::{Columns, MAX_BATCH, MAX_ROWS, Mask, frame_item, header_fields, header_item};
use crate::error::BatchError;

/// Bytes before the lengths.
const FIXED: usize = 8;

/// `length` including its padding.
pub(crate) const fn padded(length: usize) -> usize {
    length.next_multiple_of(8)
}

/// Appends zeros up to the next multiple of 8 after `start`.
pub(crate) fn pad(out: &mut Vec<u8>, start: usize) {
    out.resize(start + padded(out.len() - start), 0);
}

/// The length of the wire form.
pub(crate) fn size(columns: &Columns) -> usize {
    Parts::of(columns).size()
}

// --- Writing ---

/// A node of Arrow's metadata: the length of an array and how many of its items are null.
pub(crate) type Node = (usize, usize);

/// The buffers of a batch's columns, and their description in Arrow's metadata.
pub(crate) struct Parts {
    mask: Mask,
    rows: usize,
    pub nodes: Vec<Node>,
    pub buffers: Vec<Buffer>,
}

impl Parts {
    pub fn of(columns: &Columns) -> Parts {
        let mask = columns.mask();
        let mut parts = Parts {
            mask,
            rows: columns.value.len(),
            nodes: Vec::with_capacity(10),
            buffers: Vec::with_capacity(mask.buffers()),
        };
        if let Some(key) = &columns.key {
            parts.bytes(key.nulls(), key.offsets(), key.values());
        }
        let value = &columns.value;
        parts.bytes(None, value.offsets(), value.values());
        if let Some(topic) = &columns.topic {
            parts.bytes(topic.nulls(), topic.offsets(), topic.values());
        }
        if let Some(timestamp) = &columns.timestamp {
            parts.validity(parts.rows, timestamp.nulls());
            parts.buffers.push(timestamp.values().inner().clone());
        }
        if let Some(headers) = &columns.headers {
            let items = parts.list(headers);
            let items = items.as_any().downcast_ref::<StructArray>();
            let items = items.expect("headers are structs");
            parts.validity(items.len(), None);
            let names = items.column(0).as_any().downcast_ref::<StringArray>();
            let names = names.expect("headers have names of text");
            parts.bytes(None, names.offsets(), names.values());
            parts.items(items.column(1));
        }
        if let Some(frames) = &columns.frames {
            let items = parts.list(frames);
            parts.items(&items);
        }
        if let Some(offset) = &columns.offset {
            parts.validity(parts.rows, None);
            parts.buffers.push(offset.values().inner().clone());
        }
        debug_assert_eq!(parts.buffers.len(), mask.buffers());
        parts
    }

    /// The number of bytes that `write` appends.
    pub fn size(&self) -> usize {
        self.head_size() + self.body_size()
    }

    pub fn head_size(&self) -> usize {
        padded(FIXED + 4 * self.buffers.len())
    }

    pub fn body_size(&self) -> usize {
        self.buffers.iter().map(|buffer| padded(buffer.len())).sum()
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.size());
        self.write_head(out);
        self.write_body(out);
    }

    pub fn write_head(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let count = u16::try_from(self.buffers.len()).expect("a batch has few buffers");
        out.extend_from_slice(&self.mask.0.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&short(self.rows).to_le_bytes());
        for buffer in &self.buffers {
            out.extend_from_slice(&short(buffer.len()).to_le_bytes());
        }
        pad(out, start);
    }

    pub fn write_body(&self, out: &mut Vec<u8>) {
        let start = out.len();
        for buffer in &self.buffers {
            out.extend_from_slice(buffer);
            pad(out, start);
        }
    }

    fn validity(&mut self, rows: usize, nulls: Option<&NullBuffer>) {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        self.nodes
            .push((rows, nulls.map_or(0, NullBuffer::null_count)));
        let bits = nulls.map_or_else(|| Buffer::from(&[]), |nulls| nulls.inner().sliced());
        self.buffers
            .push(bits.slice_with_length(0, bits.len().min(rows.div_ceil(8))));
    }

    fn bytes(&mut self, nulls: Option<&NullBuffer>, offsets: &OffsetBuffer<i32>, data: &Buffer) {
        self.validity(offsets.len() - 1, nulls);
        let (first, last) = (position(offsets.first()), position(offsets.last()));
        self.buffers.push(rebased(offsets));
        self.buffers
            .push(data.slice_with_length(first, last - first));
    }

    /// Adds the bytes inside a list.
    fn items(&mut self, items: &Arc<dyn Array>) {
        let items = items.as_any().downcast_ref::<BinaryArray>();
        let items = items.expect("items are bytes");
        self.bytes(None, items.offsets(), items.values());
    }

    /// Adds the list itself; returns the items of its rows.
    fn list(&mut self, list: &ListArray) -> Arc<dyn Array> {
        self.validity(list.len(), list.nulls());
        let offsets = list.offsets();
        self.buffers.push(rebased(offsets));
        let first = position(offsets.first());
        list.values().slice(first, position(offsets.last()) - first)
    }
}

/// The offsets, shifted to begin at zero.
fn rebased(offsets: &OffsetBuffer<i32>) -> Buffer {
    let first = offsets.first();
    if first == 0 {
        return offsets.inner().inner().clone();
    }
    Buffer::from_vec(offsets.iter().map(|at| at - first).collect::<Vec<_>>())
}

/// An offset as an index. Arrow's constructors reject negative ones.
fn position(offset: i32) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

fn short(length: usize) -> u32 {
    u32::try_from(length).expect("a batch is smaller than MAX_BATCH")
}

// --- Reading ---

/// The head of a batch: the lengths of its buffers, which are consistent in total but not checked otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub mask: Mask,
    pub rows: usize,
    lengths: Vec<u32>,
}

impl Head {
    /// Reads the head at the beginning of `bytes`; returns it with its length.
    pub fn read(bytes: &[u8]) -> Result<(Head, usize), BatchError> {
        let too_short = |expected: usize| BatchError::Length {
            expected: expected as u64,
            got: bytes.len() as u64,
        };
        let fixed = bytes.first_chunk::<FIXED>();
        let [a, b, c, d, rows @ ..] = *fixed.ok_or_else(|| too_short(FIXED))?;
        let mask = Mask::checked(u16::from_le_bytes([a, b]));
        let mask = mask.ok_or(BatchError::Malformed("columns that do not exist"))?;
        let count = mask.buffers();
        if usize::from(u16::from_le_bytes([c, d])) != count {
            return Err(BatchError::Malformed(
                "another number of buffers than its columns have",
            ));
        }
        let (rows, size) = (u32::from_le_bytes(rows) as usize, padded(FIXED + 4 * count));
        let table = bytes.get(FIXED..size).ok_or_else(|| too_short(size))?;
        let (table, rest) = table.split_at(4 * count);
        if rest.iter().any(|byte| *byte != 0) {
            return Err(BatchError::Malformed("padding that is not zero"));
        }
        let lengths: Vec<u32> = table
            .as_chunks::<4>()
            .0
            .iter()
            .map(|length| u32::from_le_bytes(*length))
            .collect();
        let head = Head {
            mask,
            rows,
            lengths,
        };
        if rows > MAX_ROWS || head.body_size() > MAX_BATCH as u64 {
            return Err(BatchError::TooLarge {
                bytes: head.body_size(),
                rows: rows as u64,
            });
        }
        Ok((head, size))
    }

    /// The number of bytes of the buffers, with padding.
    pub fn body_size(&self) -> u64 {
        let padded = |length: &u32| u64::from(*length).next_multiple_of(8);
        self.lengths.iter().map(padded).sum()
    }

    /// The columns whose buffers are exactly `body`.
    pub fn columns(&self, body: Bytes) -> Result<Columns, BatchError> {
        if body.len() as u64 != self.body_size() {
            return Err(BatchError::Length {
                expected: self.body_size(),
                got: body.len() as u64,
            });
        }
        let mut buffers = Buffers {
            body: Buffer::from(body),
            lengths: self.lengths.iter(),
            at: 0,
        };
        let (rows, mask) = (self.rows, self.mask);
        Ok(Columns {
            key: optional(mask.has(Mask::KEY), || buffers.bytes(rows))?,
            value: buffers.bytes_without_nulls(rows)?,
            topic: optional(mask.has(Mask::TOPIC), || buffers.text(rows))?,
            timestamp: optional(mask.has(Mask::TIMESTAMP), || buffers.timestamps(rows))?,
            headers: optional(mask.has(Mask::HEADERS), || buffers.headers(rows))?,
            frames: optional(mask.has(Mask::FRAMES), || buffers.frames(rows))?,
            offset: optional(mask.has(Mask::OFFSET), || buffers.picked(rows))?,
        })
    }
}

fn optional<T>(
    is_there: bool,
    read: impl FnOnce() -> Result<T, BatchError>,
) -> Result<Option<T>, BatchError> {
    is_there.then(read).transpose()
}

/// Takes the buffers of a body one by one.
struct Buffers<'a> {
    body: Buffer,
    lengths: std::slice::Iter<'a, u32>,
    at: usize,
}

impl Buffers<'_> {
    fn next(&mut self) -> Buffer {
        let length = *self.lengths.next().expect("as many as the mask has") as usize;
        let buffer = self.body.slice_with_length(self.at, length);
        self.at += padded(length);
        buffer
    }

    /// Numbers of 4 or 8 bytes, which Arrow requires to be aligned.
    fn numbers<T: arrow_buffer::ArrowNativeType>(
        &mut self,
        count: usize,
    ) -> Result<ScalarBuffer<T>, BatchError> {
        let buffer = self.next();
        if buffer.len() != count * size_of::<T>() {
            return Err(BatchError::Malformed("a buffer that does not fit its rows"));
        }
        let is_aligned = buffer.as_ptr().align_offset(align_of::<T>()) == 0;
        let buffer = if is_aligned {
            buffer
        } else {
            Buffer::from(&*buffer)
        };
        Ok(ScalarBuffer::new(buffer, 0, count))
    }

    fn validity(&mut self, rows: usize) -> Result<Option<NullBuffer>, BatchError> {
        let bits = self.next();
        if bits.is_empty() {
            return Ok(None);
        }
        if bits.len() != rows.div_ceil(8) {
            return Err(BatchError::Malformed(
                "a validity bitmap that does not fit its rows",
            ));
        }
        Ok(Some(NullBuffer::new(BooleanBuffer::new(bits, 0, rows))))
    }

    fn no_validity(&mut self) -> Result<(), BatchError> {
        match self.next().is_empty() {
            true => Ok(()),
            false => Err(BatchError::Malformed("nulls where there are none")),
        }
    }

    /// Offsets that begin at zero and never decrease, with the last one.
    fn offsets(&mut self, rows: usize) -> Result<OffsetBuffer<i32>, BatchError> {
        let offsets = self.numbers::<i32>(rows + 1)?;
        if offsets[0] != 0 || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(BatchError::Malformed("offsets that fall"));
        }
        Ok(OffsetBuffer::new(offsets))
    }

    fn offsets_and_data(&mut self, rows: usize) -> Result<(OffsetBuffer<i32>, Buffer), BatchError> {
        let offsets = self.offsets(rows)?;
        let data = self.next();
        if position(offsets.last()) != data.len() {
            return Err(BatchError::Malformed("offsets that do not fit their data"));
        }
        Ok((offsets, data))
    }

    fn bytes(&mut self, rows: usize) -> Result<BinaryArray, BatchError> {
        let nulls = self.validity(rows)?;
        let (offsets, data) = self.offsets_and_data(rows)?;
        BinaryArray::try_new(offsets, data, nulls).map_err(|_| BatchError::Malformed("bytes"))
    }

    fn bytes_without_nulls(&mut self, rows: usize) -> Result<BinaryArray, BatchError> {
        self.no_validity()?;
        let (offsets, data) = self.offsets_and_data(rows)?;
        BinaryArray::try_new(offsets, data, None).map_err(|_| BatchError::Malformed("bytes"))
    }

    fn text(&mut self, rows: usize) -> Result<StringArray, BatchError> {
        let nulls = self.validity(rows)?;
        let (offsets, data) = self.offsets_and_data(rows)?;
        StringArray::try_new(offsets, data, nulls)
            .map_err(|_| BatchError::Malformed("text that is not UTF-8"))
    }

    fn timestamps(&mut self, rows: usize) -> Result<TimestampMicrosecondArray, BatchError> {
        let nulls = self.validity(rows)?;
        let values = self.numbers::<i64>(rows)?;
        let array = TimestampMicrosecondArray::try_new(values, nulls);
        let array = array.map_err(|_| BatchError::Malformed("timestamps"))?;
        Ok(array.with_timezone("UTC"))
    }

    fn picked(&mut self, rows: usize) -> Result<Int64Array, BatchError> {
        self.no_validity()?;
        let values = self.numbers::<i64>(rows)?;
        let is_rising = values.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_rising || values.first().is_some_and(|first| *first < 0) {
            return Err(BatchError::Malformed("rows that are out of order"));
        }
        Int64Array::try_new(values, None).map_err(|_| BatchError::Malformed("offsets of rows"))
    }

    fn headers(&mut self, rows: usize) -> Result<ListArray, BatchError> {
        let nulls = self.validity(rows)?;
        let offsets = self.offsets(rows)?;
        let items = position(offsets.last());
        self.no_validity()?; // of the structs
        self.no_validity()?; // of their names
        let (name_offsets, names) = self.offsets_and_data(items)?;
        let names = StringArray::try_new(name_offsets, names, None)
            .map_err(|_| BatchError::Malformed("a header's name that is not UTF-8"))?;
        let values = self.bytes_without_nulls(items)?;
        let pairs = StructArray::try_new(
            header_fields(),
            vec![Arc::new(names), Arc::new(values)],
            None,
        );
        pairs
            .and_then(|pairs| ListArray::try_new(header_item(), offsets, Arc::new(pairs), nulls))
            .map_err(|_| BatchError::Malformed("headers"))
    }

    fn frames(&mut self, rows: usize) -> Result<ListArray, BatchError> {
        let nulls = self.validity(rows)?;
        let offsets = self.offsets(rows)?;
        let items = self.bytes_without_nulls(position(offsets.last()))?;
        ListArray::try_new(frame_item(), offsets, Arc::new(items), nulls)
            .map_err(|_| BatchError::Malformed("frames"))
    }
}
