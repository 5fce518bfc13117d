//! The columns that a reader gets.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::columns::fetched_schema;
use crate::frame::Stored;

impl Stored {
    /// The rows with offsets in `range`, in the columns of [`fetched_schema`]. `partition` and other values of the
    /// whole frame are repeated in every row. A row without a timestamp of its own gets the time of receipt, and
    /// `timestampType` 1.
    pub fn to_record_batch(
        &self,
        range: Range<u64>,
        partition: i32,
        headers: bool,
        frames: bool,
    ) -> RecordBatch {
        let chosen = self.rows_within(&range);
        let rows = chosen.len();
        let columns = self.batch.slice(chosen.start, rows).columns;
        let numbers = ScalarBuffer::<i64>::from(match &columns.offset {
            Some(offset) => offset.values().to_vec(),
            None => {
                let first = self.first_offset.cast_signed() + chosen.start as i64;
                (first..first + rows as i64).collect()
            }
        });
        let seq: Option<ScalarBuffer<i64>> = self.origin.is_numbered().then(|| {
            let distance = self.origin.first_seq.cast_signed() - self.first_offset.cast_signed();
            numbers.iter().map(|offset| offset + distance).collect()
        });
        let (timestamp, timestamp_type) = self.timestamps_of(columns.timestamp.as_ref(), rows);
        let receive_time = vec![self.origin.receive_time; rows];
        let mut arrays: Vec<ArrayRef> = vec![
            or_nulls(columns.key, &DataType::Binary, rows),
            Arc::new(columns.value),
            or_nulls(columns.topic, &DataType::Utf8, rows),
            Arc::new(Int32Array::from(vec![partition; rows])),
            Arc::new(Int64Array::new(numbers, None)),
            Arc::new(timestamp),
            Arc::new(timestamp_type),
            Arc::new(TimestampMicrosecondArray::from(receive_time).with_timezone("UTC")),
            self.producers(rows),
            or_nulls(
                seq.map(|seq| Int64Array::new(seq, None)),
                &DataType::Int64,
                rows,
            ),
        ];
        let schema = fetched_schema(headers, frames);
        let mut wide = |column: Option<ListArray>| {
            let field = schema.field(arrays.len());
            arrays.push(or_nulls(column, field.data_type(), rows));
        };
        if headers {
            wide(columns.headers);
        }
        if frames {
            wide(columns.frames);
        }
        RecordBatch::try_new(schema.clone(), arrays).expect("columns as the schema has them")
    }

    /// Timestamps for all rows, and which of them are the producer's.
    fn timestamps_of(
        &self,
        own: Option<&TimestampMicrosecondArray>,
        rows: usize,
    ) -> (TimestampMicrosecondArray, Int32Array) {
        let received = self.origin.receive_time;
        match own {
            Some(own) if own.null_count() == 0 => (own.clone(), Int32Array::from(vec![0; rows])),
            Some(own) => {
                let times = own
                    .iter()
                    .map(|time| time.unwrap_or(received))
                    .collect::<Vec<_>>();
                let types = (0..rows)
                    .map(|row| i32::from(own.is_null(row)))
                    .collect::<Vec<_>>();
                (
                    TimestampMicrosecondArray::from(times).with_timezone("UTC"),
                    types.into(),
                )
            }
            None => {
                let times = TimestampMicrosecondArray::from(vec![received; rows]);
                (times.with_timezone("UTC"), Int32Array::from(vec![1; rows]))
            }
        }
    }

    /// The producer's name in every row.
    fn producers(&self, rows: usize) -> ArrayRef {
        let name = &self.origin.producer;
        if !self.origin.is_numbered() {
            return new_null_array(&DataType::Utf8, rows);
        }
        let offsets = OffsetBuffer::from_repeated_length(name.len(), rows);
        let names = Buffer::from_vec(name.as_bytes().repeat(rows));
        Arc::new(StringArray::try_new(offsets, names, None).expect("a name is text"))
    }
}

/// The column, or one of nulls.
fn or_nulls<A: Array + 'static>(column: Option<A>, of: &DataType, rows: usize) -> ArrayRef {
    match column {
        Some(column) => Arc::new(column),
        None => new_null_array(of, rows),
    }
}
