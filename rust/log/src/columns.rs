//! The columns: those that are stored, and those that a reader gets.

use std::sync::{Arc, LazyLock};

use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, ListArray, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

/// The maximum number of bytes of a batch, so that every column's offsets stay far below 32 bits.
pub const MAX_BATCH: usize = 1 << 30;

/// The maximum number of rows of a batch, so that a column can repeat the longest producer name for each row.
pub const MAX_ROWS: usize = 1 << 23;

/// The set of optional columns that a batch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mask(pub u16);

impl Mask {
    pub const KEY: Mask = Mask(1);
    /// `value` is always present.
    pub const VALUE: Mask = Mask(2);
    pub const TOPIC: Mask = Mask(4);
    pub const TIMESTAMP: Mask = Mask(8);
    pub const HEADERS: Mask = Mask(16);
    pub const FRAMES: Mask = Mask(32);
    /// Only for rows that were picked out of a frame, which carry their offsets. Never stored.
    pub const OFFSET: Mask = Mask(64);

    const ALL: u16 = 127;

    /// None if a bit stands for no column, or if the bit of `value` is missing.
    pub fn checked(bits: u16) -> Option<Mask> {
        (bits & !Mask::ALL == 0 && Mask(bits).has(Mask::VALUE)).then_some(Mask(bits))
    }

    pub const fn has(self, column: Mask) -> bool {
        self.0 & column.0 != 0
    }

    pub const fn with(self, column: Mask, is_there: bool) -> Mask {
        if is_there {
            Mask(self.0 | column.0)
        } else {
            self
        }
    }

    /// The number of buffers of the columns, in the order of Arrow's IPC format.
    pub fn buffers(self) -> usize {
        COLUMNS
            .iter()
            .filter(|(column, _)| self.has(*column))
            .map(|(_, buffers)| buffers)
            .sum()
    }
}

/// The columns in order, each with its number of buffers: validity, offsets and data, then those of its children.
const COLUMNS: [(Mask, usize); 7] = [
    (Mask::KEY, 3),
    (Mask::VALUE, 3),
    (Mask::TOPIC, 3),
    (Mask::TIMESTAMP, 2),
    (Mask::HEADERS, 9),
    (Mask::FRAMES, 5),
    (Mask::OFFSET, 2),
];

/// The columns of a batch, all with the same number of rows.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    pub key: Option<BinaryArray>,
    pub value: BinaryArray,
    pub topic: Option<StringArray>,
    pub timestamp: Option<TimestampMicrosecondArray>,
    pub headers: Option<ListArray>,
    pub frames: Option<ListArray>,
    pub offset: Option<Int64Array>,
}

impl Columns {
    pub fn mask(&self) -> Mask {
        Mask::VALUE
            .with(Mask::KEY, self.key.is_some())
            .with(Mask::TOPIC, self.topic.is_some())
            .with(Mask::TIMESTAMP, self.timestamp.is_some())
            .with(Mask::HEADERS, self.headers.is_some())
            .with(Mask::FRAMES, self.frames.is_some())
            .with(Mask::OFFSET, self.offset.is_some())
    }

    /// The same rows, with each column converted by `change`.
    pub fn map<E>(
        &self,
        mut change: impl FnMut(&dyn Array) -> Result<ArrayRef, E>,
    ) -> Result<Columns, E> {
        fn cast<A: Array + Clone + 'static>(array: ArrayRef) -> A {
            let same = array.as_any().downcast_ref::<A>();
            same.expect("a change keeps the type").clone()
        }
        macro_rules! each {
            ($($column:ident),*) => {
                Ok(Columns {
                    value: cast(change(&self.value)?),
                    $($column: match &self.$column {
                        Some(array) => Some(cast(change(array)?)),
                        None => None,
                    },)*
                })
            };
        }
        each!(key, topic, timestamp, headers, frames, offset)
    }
}

/// Microseconds since 1970, UTC.
pub(crate) fn timestamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The fields of one header.
pub(crate) fn header_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
    ])
}

/// The field of the items in a list of headers.
pub(crate) fn header_item() -> FieldRef {
    static ITEM: LazyLock<FieldRef> = LazyLock::new(|| {
        Arc::new(Field::new(
            "element",
            DataType::Struct(header_fields()),
            true,
        ))
    });
    ITEM.clone()
}

/// The field of the items in a list of frames.
pub(crate) fn frame_item() -> FieldRef {
    static ITEM: LazyLock<FieldRef> =
        LazyLock::new(|| Arc::new(Field::new("element", DataType::Binary, true)));
    ITEM.clone()
}

/// The columns of a segment. A batch has those that its mask names, in this order.
pub(crate) fn stored_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(vec![
            Field::new("key", DataType::Binary, true),
            Field::new("value", DataType::Binary, false),
            Field::new("topic", DataType::Utf8, true),
            Field::new("timestamp", timestamp_type(), true),
            Field::new("headers", DataType::List(header_item()), true),
            Field::new("frames", DataType::List(frame_item()), true),
        ]))
    });
    SCHEMA.clone()
}

/// The columns that a reader gets, optionally with the wide columns `headers` and `frames`.
pub fn fetched_schema(headers: bool, frames: bool) -> SchemaRef {
    static SCHEMAS: LazyLock<[SchemaRef; 4]> = LazyLock::new(|| {
        [0, 1, 2, 3].map(|wide| make_fetched_schema(wide & 1 != 0, wide & 2 != 0))
    });
    SCHEMAS[usize::from(headers) + 2 * usize::from(frames)].clone()
}

fn make_fetched_schema(headers: bool, frames: bool) -> SchemaRef {
    let mut fields = vec![
        Field::new("key", DataType::Binary, true),
        Field::new("value", DataType::Binary, false),
        Field::new("topic", DataType::Utf8, true),
        Field::new("partition", DataType::Int32, false),
        Field::new("offset", DataType::Int64, false),
        Field::new("timestamp", timestamp_type(), false),
        Field::new("timestampType", DataType::Int32, false),
        Field::new("receive_time", timestamp_type(), false),
        Field::new("producer", DataType::Utf8, true),
        Field::new("seq", DataType::Int64, true),
    ];
    if headers {
        fields.push(Field::new("headers", DataType::List(header_item()), true));
    }
    if frames {
        fields.push(Field::new("frames", DataType::List(frame_item()), true));
    }
    Arc::new(Schema::new(fields))
}
