//! Converts batches from and to Arrow tables of other libraries.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, TimeUnit};

use crate::batch::Batch;
use crate::builder::{BatchBuilder, Row, size_of_row};
use crate::columns::stored_schema;
use crate::error::BatchError;

impl Batch {
    /// The rows as a stream in Arrow's IPC format, with the columns that [`from_record_batch`](Self::from_record_batch)
    /// accepts.
    pub fn to_stream(&self) -> Result<Vec<u8>, BatchError> {
        let columns = &self.columns;
        let all: [(usize, Option<&dyn Array>); 5] = [
            (0, columns.key.as_ref().map(|column| column as &dyn Array)),
            (1, Some(&columns.value)),
            (2, columns.topic.as_ref().map(|column| column as &dyn Array)),
            (
                3,
                columns
                    .timestamp
                    .as_ref()
                    .map(|column| column as &dyn Array),
            ),
            (
                4,
                columns.headers.as_ref().map(|column| column as &dyn Array),
            ),
        ];
        let there = all
            .iter()
            .filter_map(|(at, column)| Some((*at, (*column)?)));
        let (places, arrays): (Vec<usize>, Vec<_>) = there
            .map(|(at, column)| (at, column.slice(0, column.len())))
            .unzip();
        let schema = stored_schema().project(&places).map(Arc::new);
        let stream = schema.and_then(|schema| {
            let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
            writer.write(&RecordBatch::try_new(schema, arrays)?)?;
            writer.into_inner()
        });
        stream.map_err(|_| BatchError::Malformed("columns that Arrow does not take"))
    }

    /// The rows of a table with the column `value` (bytes or text, without nulls) and optionally `key`, `topic`,
    /// `timestamp` and `headers`. Any other column is an error, because it would be lost.
    pub fn from_record_batch(table: &RecordBatch) -> Result<Batch, BatchError> {
        let mut batches = Batch::cut_record_batch(table, usize::MAX)?;
        Ok(batches
            .pop()
            .unwrap_or_else(|| BatchBuilder::new().finish()))
    }

    /// The same in batches of about `bytes` bytes each; a batch may exceed that only if it has a single row.
    pub fn cut_record_batch(table: &RecordBatch, bytes: usize) -> Result<Vec<Batch>, BatchError> {
        let columns = Sources::of(table)?;
        let mut batches = Vec::new();
        let mut builder = BatchBuilder::new();
        let mut headers = Vec::new();
        for row in 0..table.num_rows() {
            headers.clear();
            if let Some(source) = &columns.headers {
                source.read(row, &mut headers)?;
            }
            let row = Row {
                value: columns
                    .value
                    .get(row)
                    .ok_or(BatchError::Malformed("a null in the column value"))?,
                key: columns.key.as_ref().and_then(|key| key.get(row)),
                topic: columns.topic.as_ref().and_then(|topic| topic.text(row)),
                timestamp: columns.timestamp.as_ref().and_then(|times| times.get(row)),
                headers: &headers,
                frames: None,
            };
            let size = builder.size().saturating_add(size_of_row(&row));
            if size > bytes && !builder.is_empty() {
                batches.push(builder.finish());
            }
            builder.push(row)?;
        }
        if !builder.is_empty() {
            batches.push(builder.finish());
        }
        Ok(batches)
    }
}

/// The columns of a table by their purpose.
struct Sources<'a> {
    value: Bytes<'a>,
    key: Option<Bytes<'a>>,
    topic: Option<Bytes<'a>>,
    timestamp: Option<Times<'a>>,
    headers: Option<Headers<'a>>,
}

impl<'a> Sources<'a> {
    fn of(table: &'a RecordBatch) -> Result<Sources<'a>, BatchError> {
        let (mut value, mut key, mut topic) = (None, None, None);
        let (mut timestamp, mut headers) = (None, None);
        let fields = table.schema_ref().fields();
        for (at, (field, array)) in fields.iter().zip(table.columns()).enumerate() {
            let wrong = |expected| {
                // Their rows may be far larger than the table, so they are not decoded here.
                let is_coded = matches!(array.data_type(), DataType::Dictionary(..));
                let coded = "text or bytes: cast it from a dictionary (categorical) first";
                wrong(
                    field.name(),
                    array.data_type(),
                    if is_coded { coded } else { expected },
                )
            };
            if fields[..at]
                .iter()
                .any(|other| other.name() == field.name())
            {
                return Err(wrong("there may be one column of each name"));
            }
            let bytes = || Bytes::of(array).ok_or_else(|| wrong("bytes or text"));
            match field.name().as_str() {
                "value" => value = Some(bytes()?),
                "key" => key = Some(bytes()?),
                "topic" => topic = Some(Bytes::of_text(array).ok_or_else(|| wrong("text"))?),
                "timestamp" => {
                    timestamp = Some(Times::of(array).ok_or_else(|| wrong("a timestamp"))?)
                }
                "headers" => {
                    let expected = "a list (not a large one) of structs of text and bytes";
                    headers = Headers::of(array).ok_or_else(|| wrong(expected))?;
                }
                name if name.starts_with("__index_level_") => {
                    let expected = "the index of pandas is no column: use reset_index(drop=True)";
                    return Err(wrong(expected));
                }
                _ => return Err(wrong("there are value, key, topic, timestamp and headers")),
            }
        }
        Ok(Sources {
            value: value.ok_or_else(|| wrong("value", &DataType::Null, "it must be there"))?,
            key,
            topic,
            timestamp,
            headers,
        })
    }
}

fn wrong(name: &str, found: &DataType, expected: &'static str) -> BatchError {
    BatchError::Column {
        name: name.to_owned(),
        found: found.to_string(),
        expected,
    }
}

/// A column of bytes or of text, in any of Arrow's forms.
enum Bytes<'a> {
    Binary(&'a arrow_array::BinaryArray),
    LargeBinary(&'a arrow_array::LargeBinaryArray),
    BinaryView(&'a arrow_array::BinaryViewArray),
    FixedSize(&'a arrow_array::FixedSizeBinaryArray),
    Text(&'a arrow_array::StringArray),
    LargeText(&'a arrow_array::LargeStringArray),
    TextView(&'a arrow_array::StringViewArray),
    /// A column of nulls, of no type.
    Nothing,
}

impl<'a> Bytes<'a> {
    fn of(array: &'a dyn Array) -> Option<Bytes<'a>> {
        Some(match array.data_type() {
            DataType::Binary => Bytes::Binary(array.as_binary()),
            DataType::LargeBinary => Bytes::LargeBinary(array.as_binary()),
            DataType::BinaryView => Bytes::BinaryView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Bytes::FixedSize(array.as_fixed_size_binary()),
            _ => return Bytes::of_text(array),
        })
    }

    fn of_text(array: &'a dyn Array) -> Option<Bytes<'a>> {
        Some(match array.data_type() {
            DataType::Utf8 => Bytes::Text(array.as_string()),
            DataType::LargeUtf8 => Bytes::LargeText(array.as_string()),
            DataType::Utf8View => Bytes::TextView(array.as_string_view()),
            DataType::Null => Bytes::Nothing,
            _ => return None,
        })
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Bytes::Binary(array) => array.is_valid(row).then(|| array.value(row)),
            Bytes::LargeBinary(array) => array.is_valid(row).then(|| array.value(row)),
            Bytes::BinaryView(array) => array.is_valid(row).then(|| array.value(row)),
            Bytes::FixedSize(array) => array.is_valid(row).then(|| array.value(row)),
            _ => self.text(row).map(str::as_bytes),
        }
    }

    fn text(&self, row: usize) -> Option<&'a str> {
        match self {
            Bytes::Text(array) => array.is_valid(row).then(|| array.value(row)),
            Bytes::LargeText(array) => array.is_valid(row).then(|| array.value(row)),
            Bytes::TextView(array) => array.is_valid(row).then(|| array.value(row)),
            _ => None,
        }
    }
}

/// A column of timestamps.
struct Times<'a> {
    array: &'a dyn Array,
    unit: Option<TimeUnit>,
}

impl<'a> Times<'a> {
    fn of(array: &'a dyn Array) -> Option<Times<'a>> {
        let unit = match array.data_type() {
            DataType::Timestamp(unit, _) => Some(*unit),
            DataType::Null => None,
            _ => return None,
        };
        Some(Times { array, unit })
    }

    /// In microseconds. A time out of range becomes the nearest representable one.
    fn get(&self, row: usize) -> Option<i64> {
        let unit = self.unit.filter(|_| self.array.is_valid(row))?;
        Some(match unit {
            TimeUnit::Second => {
                let seconds = self.array.as_primitive::<TimestampSecondType>().value(row);
                seconds.saturating_mul(1_000_000)
            }
            TimeUnit::Millisecond => {
                let millis = self
                    .array
                    .as_primitive::<TimestampMillisecondType>()
                    .value(row);
                millis.saturating_mul(1000)
            }
            TimeUnit::Microsecond => self
                .array
                .as_primitive::<TimestampMicrosecondType>()
                .value(row),
            TimeUnit::Nanosecond => {
                let nanos = self
                    .array
                    .as_primitive::<TimestampNanosecondType>()
                    .value(row);
                nanos.div_euclid(1000)
            }
        })
    }
}

/// A column of headers.
struct Headers<'a> {
    list: &'a arrow_array::ListArray,
    items: &'a StructArray,
    names: Bytes<'a>,
    values: Bytes<'a>,
}

impl<'a> Headers<'a> {
    /// The inner value is None if this is a column of nulls.
    fn of(array: &'a dyn Array) -> Option<Option<Headers<'a>>> {
        if array.data_type() == &DataType::Null {
            return Some(None);
        }
        let list = array.as_list_opt::<i32>()?;
        let items = list.values().as_struct_opt()?;
        let [names, values] = items.columns() else {
            return None;
        };
        Some(Some(Headers {
            list,
            items,
            names: Bytes::of_text(names)?,
            values: Bytes::of(values)?,
        }))
    }

    /// Adds the headers of a row. A null among them is no header, whatever its fields hold. A null value becomes an empty one.
    fn read(&self, row: usize, into: &mut Vec<(&'a str, &'a [u8])>) -> Result<(), BatchError> {
        if self.list.is_null(row) {
            return Ok(());
        }
        let ends =
            [row, row + 1].map(|at| usize::try_from(self.list.value_offsets()[at]).unwrap_or(0));
        for at in (ends[0]..ends[1]).filter(|at| self.items.is_valid(*at)) {
            let name = self
                .names
                .text(at)
                .ok_or(BatchError::Malformed("a header without a name"))?;
            into.push((name, self.values.get(at).unwrap_or_default()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryArray, ListArray, StringArray};
    use arrow_buffer::{NullBuffer, OffsetBuffer};
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn a_null_among_headers_is_no_header() {
        let field = |name, data_type| Arc::new(Field::new(name, data_type, true));
        let fields = [
            field("key", DataType::Utf8),
            field("value", DataType::Binary),
        ];
        // Below a null, there may be anything.
        let names = StringArray::from(vec![Some("a"), Some("b"), None, Some("d")]);
        let values = BinaryArray::from(vec![Some(&b"1"[..]), Some(b"2"), None, None]);
        let items = StructArray::new(
            fields.to_vec().into(),
            vec![Arc::new(names), Arc::new(values)],
            Some(NullBuffer::from(vec![true, false, false, true])),
        );
        let headers = ListArray::new(
            field("item", items.data_type().clone()),
            OffsetBuffer::from_lengths([2, 1, 1]),
            Arc::new(items),
            None,
        );
        let values = BinaryArray::from(vec![&b"x"[..], b"y", b"z"]);
        let columns: [(&str, Arc<dyn Array>); 2] =
            [("value", Arc::new(values)), ("headers", Arc::new(headers))];
        let table = RecordBatch::try_from_iter(columns).unwrap();
        let batch = Batch::from_record_batch(&table).unwrap();
        assert_eq!(batch.headers(0), [("a", &b"1"[..])]);
        assert_eq!(batch.headers(1), []);
        assert_eq!(batch.headers(2), [("d", &b""[..])]);
    }
}
