//! Builds columns from rows, one row at a time.

use std::mem;
use std::sync::Arc;

use arrow_array::{BinaryArray, ListArray, StringArray, StructArray, TimestampMicrosecondArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::batch::Batch;
use crate::columns::{Columns, MAX_BATCH, MAX_ROWS, frame_item, header_fields, header_item};
use crate::error::BatchError;

/// One message, borrowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row<'a> {
    /// The row's value.
    pub value: &'a [u8],
    /// The key, for readers that partition by it.
    pub key: Option<&'a [u8]>,
    /// The topic, by which readers select rows.
    pub topic: Option<&'a str>,
    /// The time of the event, in microseconds since 1970; None means the time of receipt.
    pub timestamp: Option<i64>,
    /// Names and values, in order.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// All frames of a message that is kept raw.
    pub frames: Option<&'a [&'a [u8]]>,
}

/// Collects rows. A column that no row needs is not created.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    rows: usize,
    bytes: usize,
    value: Bytes,
    key: Optional<Bytes>,
    topic: Optional<Bytes>,
    timestamp: Optional<Vec<i64>>,
    headers: Optional<Headers>,
    frames: Optional<Frames>,
}

impl BatchBuilder {
    /// Creates a builder without rows.
    pub fn new() -> BatchBuilder {
        BatchBuilder::default()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The approximate size of the batch in bytes.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Adds a row. If the batch would be too large, returns an error and changes nothing.
    pub fn push(&mut self, row: Row<'_>) -> Result<(), BatchError> {
        let size = size_of_row(&row);
        let (bytes, rows) = (self.bytes.saturating_add(size), self.rows + 1);
        if bytes > MAX_BATCH || rows > MAX_ROWS {
            let (bytes, rows) = (bytes as u64, rows as u64);
            return Err(BatchError::TooLarge { bytes, rows });
        }
        let at = self.rows;
        self.value.push(row.value);
        self.key.push(at, row.key, |column, key| column.push(key));
        let topic = row.topic.map(str::as_bytes);
        self.topic
            .push(at, topic, |column, topic| column.push(topic));
        self.timestamp
            .push(at, row.timestamp, |column, time| column.push(time));
        let headers = Some(row.headers).filter(|headers| !headers.is_empty());
        self.headers.push(at, headers, Headers::push);
        self.frames.push(at, row.frames, Frames::push);
        (self.bytes, self.rows) = (bytes, rows);
        Ok(())
    }

    /// Returns the batch of the rows so far, and empties the builder.
    pub fn finish(&mut self) -> Batch {
        let built = mem::take(self);
        let rows = built.rows;
        let text = |(column, nulls): (Bytes, Option<NullBuffer>)| {
            let (offsets, data) = column.finish();
            StringArray::try_new(offsets, data, nulls).expect("topics come as text")
        };
        let columns = Columns {
            value: built.value.array(None),
            key: built
                .key
                .finish(rows)
                .map(|(column, nulls)| column.array(nulls)),
            topic: built.topic.finish(rows).map(text),
            timestamp: built.timestamp.finish(rows).map(|(times, nulls)| {
                TimestampMicrosecondArray::new(ScalarBuffer::from(times), nulls)
                    .with_timezone("UTC")
            }),
            headers: built
                .headers
                .finish(rows)
                .map(|(column, nulls)| column.array(nulls)),
            frames: built
                .frames
                .finish(rows)
                .map(|(column, nulls)| column.array(nulls)),
            offset: None,
        };
        Batch { columns }
    }
}

/// The bytes that a row takes, including its offsets in all columns.
pub(crate) fn size_of_row(row: &Row<'_>) -> usize {
    let headers = row
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 8);
    let frames = row.frames.iter().flat_map(|frames| frames.iter());
    32 + row.value.len()
        + row.key.map_or(0, <[u8]>::len)
        + row.topic.map_or(0, str::len)
        + headers.sum::<usize>()
        + frames.map(|frame| frame.len() + 4).sum::<usize>()
}

/// A column that begins with the first row that has a value for it.
#[derive(Debug, Default)]
struct Optional<C> {
    column: Option<C>,
    /// One bit per row, from the first row without a value on.
    validity: Option<BooleanBufferBuilder>,
}

impl<C: Column> Optional<C> {
    /// Adds row `at`: a value, by `push`, or none.
    fn push<T>(&mut self, at: usize, item: Option<T>, push: impl FnOnce(&mut C, T)) {
        let Some(item) = item else {
            if let Some(column) = &mut self.column {
                column.push_nothing();
                self.validity.get_or_insert_with(|| valid(at)).append(false);
            }
            return;
        };
        let column = self.column.get_or_insert_with(|| {
            let mut column = C::default();
            if at > 0 {
                (0..at).for_each(|_| column.push_nothing());
                let mut bits = BooleanBufferBuilder::new(at + 1);
                bits.append_n(at, false);
                self.validity = Some(bits);
            }
            column
        });
        push(column, item);
        if let Some(bits) = &mut self.validity {
            bits.append(true);
        }
    }

    fn finish(self, rows: usize) -> Option<(C, Option<NullBuffer>)> {
        let nulls = self.validity.map(|mut bits| NullBuffer::new(bits.finish()));
        debug_assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == rows));
        self.column.map(|column| (column, nulls))
    }
}

/// Bits for rows that all have a value.
fn valid(rows: usize) -> BooleanBufferBuilder {
    let mut bits = BooleanBufferBuilder::new(rows + 1);
    bits.append_n(rows, true);
    bits
}

trait Column: Default {
    fn push_nothing(&mut self);
}

/// Consecutive bytes, and where each value ends.
#[derive(Debug)]
struct Bytes {
    offsets: Vec<i32>,
    data: Vec<u8>,
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes {
            offsets: vec![0],
            data: Vec::new(),
        }
    }
}

impl Bytes {
    fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.offsets.push(end(self.data.len()));
    }

    fn finish(self) -> (OffsetBuffer<i32>, Buffer) {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        (offsets, Buffer::from_vec(self.data))
    }

    fn array(self, nulls: Option<NullBuffer>) -> BinaryArray {
        let (offsets, data) = self.finish();
        BinaryArray::new(offsets, data, nulls)
    }
}

impl Column for Bytes {
    fn push_nothing(&mut self) {
        self.offsets.push(end(self.data.len()));
    }
}

impl Column for Vec<i64> {
    fn push_nothing(&mut self) {
        self.push(0);
    }
}

/// Lists of names and values.
#[derive(Debug)]
struct Headers {
    offsets: Vec<i32>,
    names: Bytes,
    values: Bytes,
}

impl Default for Headers {
    fn default() -> Headers {
        Headers {
            offsets: vec![0],
            names: Bytes::default(),
            values: Bytes::default(),
        }
    }
}

impl Headers {
    fn push(&mut self, headers: &[(&str, &[u8])]) {
        for (name, value) in headers {
            self.names.push(name.as_bytes());
            self.values.push(value);
        }
        self.push_nothing();
    }

    fn array(self, nulls: Option<NullBuffer>) -> ListArray {
        let (offsets, names) = self.names.finish();
        let names = StringArray::try_new(offsets, names, None).expect("names come as text");
        let values = self.values.array(None);
        let items = StructArray::new(
            header_fields(),
            vec![Arc::new(names), Arc::new(values)],
            None,
        );
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        ListArray::new(header_item(), offsets, Arc::new(items), nulls)
    }
}

impl Column for Headers {
    fn push_nothing(&mut self) {
        self.offsets.push(end(self.names.offsets.len() - 1));
    }
}

/// Lists of frames.
#[derive(Debug)]
struct Frames {
    offsets: Vec<i32>,
    items: Bytes,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            offsets: vec![0],
            items: Bytes::default(),
        }
    }
}

impl Frames {
    fn push(&mut self, frames: &[&[u8]]) {
        frames.iter().for_each(|frame| self.items.push(frame));
        self.push_nothing();
    }

    fn array(self, nulls: Option<NullBuffer>) -> ListArray {
        let items = self.items.array(None);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        ListArray::new(frame_item(), offsets, Arc::new(items), nulls)
    }
}

impl Column for Frames {
    fn push_nothing(&mut self) {
        self.offsets.push(end(self.items.offsets.len() - 1));
    }
}

fn end(length: usize) -> i32 {
    i32::try_from(length).expect("a batch is smaller than MAX_BATCH")
}
