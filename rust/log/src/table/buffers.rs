//! Whether the buffers of a batch fit its columns: [`check_buffers`].

use arrow_ipc::MetadataVersion;
use arrow_schema::{DataType, UnionMode};

use super::{TableError, malformed};

/// The requirements of a buffer.
#[derive(Clone, Copy)]
struct Needs {
    /// The bytes of an item. The buffer must end at the end of one.
    width: i64,
    /// The least number of bytes.
    least: i64,
    /// Whether its offset in the body must be a multiple of the width.
    aligned: bool,
}

/// Checks that buffers of numbers end at the end of a number, and that those of unions have an item for each row and are
/// aligned. Arrow's reader checks the lengths of others, and aligns them. Returns true if the body itself must be aligned.
pub(super) fn check_buffers<'a>(
    batch: &arrow_ipc::RecordBatch<'_>,
    columns: impl IntoIterator<Item = &'a DataType>,
    version: MetadataVersion,
) -> Result<bool, TableError> {
    let views = batch.variadicBufferCounts().into_iter().flatten();
    let nodes = batch.nodes().into_iter().flatten();
    let mut walk = Walk {
        lengths: nodes.map(|node| node.length()),
        views: views.map(|count| usize::try_from(count).unwrap_or(0)),
        most: batch.buffers().map_or(0, |buffers| buffers.len()),
        unions_have_nulls: version < MetadataVersion::V5,
        needs: Vec::new(),
    };
    columns.into_iter().for_each(|column| walk.add(column));
    let buffers = batch.buffers().into_iter().flatten();
    let fits = |(buffer, needs): (&arrow_ipc::Buffer, &Needs)| {
        buffer.length() % needs.width == 0
            && buffer.length() >= needs.least
            && (!needs.aligned || buffer.offset() % needs.width == 0)
    };
    match buffers.zip(&walk.needs).all(fits) {
        true => Ok(walk.needs.iter().any(|needs| needs.aligned)),
        false => Err(malformed("columns that end within an item, or too early")),
    }
}

/// Visits columns in the order in which their buffers are in a batch.
struct Walk<L, V> {
    /// The number of rows of each column that is left.
    lengths: L,
    /// The number of buffers with text of each column of views that is left.
    views: V,
    /// The number of buffers of the batch, which bounds what is collected.
    most: usize,
    /// Before version 5 of the metadata, a union had a buffer that marks nulls.
    unions_have_nulls: bool,
    needs: Vec<Needs>,
}

impl<L: Iterator<Item = i64>, V: Iterator<Item = usize>> Walk<L, V> {
    fn add(&mut self, data_type: &DataType) {
        use DataType::{
            Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeList, LargeListView,
            LargeUtf8, List, ListView, Map, Null, RunEndEncoded, Struct, Union, Utf8, Utf8View,
        };
        if let Dictionary(key, _) = data_type {
            return self.add(key);
        }
        let rows = self.lengths.next().unwrap_or(0);
        match data_type {
            Null => {}
            Utf8 | Binary => self.items([1, 4, 1]),
            LargeUtf8 | LargeBinary => self.items([1, 8, 1]),
            Utf8View | BinaryView => {
                self.items([1, 16]);
                let texts = self.views.next().unwrap_or(0).min(self.most);
                self.items(std::iter::repeat_n(1, texts));
            }
            List(item) | Map(item, _) => {
                self.items([1, 4]);
                self.add(item.data_type());
            }
            LargeList(item) => {
                self.items([1, 8]);
                self.add(item.data_type());
            }
            ListView(item) => {
                self.items([1, 4, 4]);
                self.add(item.data_type());
            }
            LargeListView(item) => {
                self.items([1, 8, 8]);
                self.add(item.data_type());
            }
            FixedSizeList(item, _) => {
                self.items([1]);
                self.add(item.data_type());
            }
            Struct(fields) => {
                self.items([1]);
                fields.iter().for_each(|field| self.add(field.data_type()));
            }
            RunEndEncoded(ends, values) => {
                self.add(ends.data_type());
                self.add(values.data_type());
            }
            Union(fields, mode) => {
                self.items(self.unions_have_nulls.then_some(1));
                self.rows(1, rows);
                if *mode == UnionMode::Dense {
                    self.rows(4, rows);
                }
                fields
                    .iter()
                    .for_each(|(_, field)| self.add(field.data_type()));
            }
            number => {
                let width = number.primitive_width().unwrap_or(1);
                self.items([1, i64::try_from(width).unwrap_or(1)]);
            }
        }
    }

    /// Adds buffers with any number of items of these widths.
    fn items(&mut self, widths: impl IntoIterator<Item = i64>) {
        let needs = widths.into_iter().map(|width| Needs {
            width,
            least: 0,
            aligned: false,
        });
        self.needs.extend(needs);
    }

    /// Adds a buffer with an item for each row.
    fn rows(&mut self, width: i64, rows: i64) {
        let least = width.saturating_mul(rows);
        let aligned = width > 1;
        self.needs.push(Needs {
            width,
            least,
            aligned,
        });
    }
}
