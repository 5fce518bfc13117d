//! Rows in columns: the form in which a producer sends them, the log stores them, and a reader gets them.

use arrow_array::{Array, BinaryArray, ListArray, StringArray, StructArray};
use bytes::Bytes;

use crate::columns::Columns;
use crate::error::BatchError;
use crate::layout;

/// Rows whose columns have been checked. Cheap to clone.
///
/// The columns `key`, `topic`, `timestamp`, `headers` and `frames` exist only if a row has a value for them.
#[derive(Debug, Clone)]
pub struct Batch {
    pub(crate) columns: Columns,
}

impl Batch {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.value.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// The length of its wire form.
    pub fn size(&self) -> usize {
        layout::size(&self.columns)
    }

    /// The row's value. Like all accessors of a row, it panics if there is no such row.
    pub fn value(&self, row: usize) -> &[u8] {
        self.columns.value.value(row)
    }

    /// The key, if the row has one.
    pub fn key(&self, row: usize) -> Option<&[u8]> {
        let column = self.columns.key.as_ref()?;
        column.is_valid(row).then(|| column.value(row))
    }

    /// The topic, if the row has one.
    pub fn topic(&self, row: usize) -> Option<&str> {
        let column = self.columns.topic.as_ref()?;
        column.is_valid(row).then(|| column.value(row))
    }

    /// The topics of consecutive rows: each with how many rows it has there, and the bytes of their values. Rows
    /// without a topic count as having an empty one.
    pub fn topic_runs(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        let offsets = self.columns.value.value_offsets();
        let topics = self.columns.topic.is_some();
        let mut row = 0;
        std::iter::from_fn(move || {
            let first = row;
            if first == self.rows() {
                return None;
            }
            let topic = self.topic(first).unwrap_or_default();
            let is_same = |row: usize| self.topic(row).unwrap_or_default() == topic;
            row = match topics {
                true => (first + 1..self.rows())
                    .find(|row| !is_same(*row))
                    .unwrap_or(self.rows()),
                false => self.rows(),
            };
            let bytes = usize::try_from(offsets[row] - offsets[first]).unwrap_or_default();
            Some((topic, row - first, bytes))
        })
    }

    /// The producer's timestamp in microseconds since 1970, if the row has one.
    pub fn timestamp(&self, row: usize) -> Option<i64> {
        let column = self.columns.timestamp.as_ref()?;
        column.is_valid(row).then(|| column.value(row))
    }

    /// The greatest timestamp of the rows that have one.
    pub fn latest_timestamp(&self) -> Option<i64> {
        let column = self.columns.timestamp.as_ref()?;
        column.iter().flatten().max()
    }

    /// The headers of a row, in order.
    pub fn headers(&self, row: usize) -> Vec<(&str, &[u8])> {
        let Some((start, end, items)) = items::<StructArray>(self.columns.headers.as_ref(), row)
        else {
            return Vec::new();
        };
        let names = items.column(0).as_any().downcast_ref::<StringArray>();
        let values = items.column(1).as_any().downcast_ref::<BinaryArray>();
        let (names, values) = names
            .zip(values)
            .expect("headers are structs of text and bytes");
        (start..end)
            .map(|at| (names.value(at), values.value(at)))
            .collect()
    }

    /// The frames of a message that was kept raw, if the row has them.
    pub fn frames(&self, row: usize) -> Option<Vec<&[u8]>> {
        let (start, end, items) = items::<BinaryArray>(self.columns.frames.as_ref(), row)?;
        Some((start..end).map(|at| items.value(at)).collect())
    }

    /// The offset that a row itself carries; only rows that were picked out of a frame have one.
    pub fn offset(&self, row: usize) -> Option<u64> {
        let column = self.columns.offset.as_ref()?;
        Some(column.value(row).cast_unsigned())
    }

    /// `rows` rows from `from` on, without a copy. Panics if there are fewer.
    pub fn slice(&self, from: usize, rows: usize) -> Batch {
        let slice = |array: &dyn Array| Ok::<_, std::convert::Infallible>(array.slice(from, rows));
        let Ok(columns) = self.columns.map(slice);
        Batch { columns }
    }

    /// Appends the wire form: the mask of columns, the number of rows, and the buffers of Arrow's layout, each with its
    /// length.
    pub fn encode(&self, out: &mut Vec<u8>) {
        layout::Parts::of(&self.columns).write(out);
    }

    /// Decodes a batch from its wire form. The sender is not trusted: every length, offset and text is checked. Buffers
    /// that are already aligned for Arrow are not copied.
    pub fn decode(bytes: Bytes) -> Result<Batch, BatchError> {
        let (head, rest) = layout::Head::read(&bytes)?;
        let columns = head.columns(bytes.slice(rest..))?;
        if columns.offset.is_some() {
            return Err(BatchError::Malformed("rows cannot bring their offsets"));
        }
        Ok(Batch { columns })
    }
}

/// The range of a row's items in the array of a list, and that array.
fn items<A: Array + 'static>(list: Option<&ListArray>, row: usize) -> Option<(usize, usize, &A)> {
    let list = list?;
    let position = |at: usize| usize::try_from(list.value_offsets()[at]).unwrap_or(0);
    let items = list.values().as_any().downcast_ref::<A>();
    let items = items.expect("a list's items are what its type says");
    list.is_valid(row)
        .then(|| (position(row), position(row + 1), items))
}

impl PartialEq for Batch {
    fn eq(&self, other: &Batch) -> bool {
        self.rows() == other.rows()
            && (0..self.rows()).all(|row| {
                self.value(row) == other.value(row)
                    && self.key(row) == other.key(row)
                    && self.topic(row) == other.topic(row)
                    && self.timestamp(row) == other.timestamp(row)
                    && self.headers(row) == other.headers(row)
                    && self.frames(row) == other.frames(row)
                    && self.offset(row) == other.offset(row)
            })
    }
}
