//! A table as one message: a complete Arrow IPC stream. Messages of peers are not trusted.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::writer::StreamWriter;
use arrow_ipc::{Message, MessageHeader, root_as_message_with_opts};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use flatbuffers::VerifierOptions;

mod buffers;

use self::buffers::check_buffers;

/// Batches of one schema.
#[derive(Debug, Clone)]
pub struct Table {
    /// The schema of every batch.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

/// The reason why a message is not a table, or a table cannot be a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// It is another format, or damaged.
    #[error("not a table in Arrow's IPC stream format: {0}")]
    Malformed(String),
    /// Arrow's library rejects it.
    #[error("not a table in Arrow's IPC stream format: {0}")]
    Arrow(#[from] ArrowError),
}

/// The maximum number of fields and other parts that the metadata of a message may describe.
const MAX_PARTS: usize = 100_000;

/// The maximum depth of nested types.
const MAX_DEPTH: usize = 48;

/// The maximum number of rows of a batch, given Arrow's 32-bit offsets.
const MAX_ROWS: i64 = i32::MAX as i64;

/// The alignment of the largest number that Arrow does not align itself, in bytes.
const ALIGNMENT: usize = 4;

impl Table {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// All rows as one batch, without a copy if there is only one.
    pub fn to_batch(&self) -> Result<RecordBatch, TableError> {
        match self.batches.as_slice() {
            [batch] => Ok(batch.clone()),
            batches => Ok(concat_batches(&self.schema, batches)?),
        }
    }

    /// Encodes the table as a message.
    pub fn encode(&self) -> Result<Vec<u8>, TableError> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
        for batch in &self.batches {
            writer.write(batch)?;
        }
        Ok(writer.into_inner()?)
    }

    /// Decodes the table of a message. Lengths are checked before they are used. Columns refer to `bytes`.
    pub fn decode(bytes: Bytes) -> Result<Table, TableError> {
        // The checks should leave no cause for a panic. If they miss one, a peer must not be able to use it.
        let decode = AssertUnwindSafe(|| Decoder::default().read(Buffer::from(bytes)));
        catch_unwind(decode).unwrap_or_else(|_| Err(malformed("its metadata contradicts itself")))
    }
}

fn malformed(what: impl Into<String>) -> TableError {
    TableError::Malformed(what.into())
}

/// Reads one message after the other.
#[derive(Default)]
struct Decoder {
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
    batches: Vec<RecordBatch>,
}

impl Decoder {
    fn read(mut self, mut rest: Buffer) -> Result<Table, TableError> {
        while let Some((metadata, body)) = next_message(&mut rest)? {
            self.take(&metadata, &body)?;
        }
        Ok(Table {
            schema: self.schema.ok_or_else(|| malformed("it has no schema"))?,
            batches: self.batches,
        })
    }

    fn take(&mut self, metadata: &Buffer, body: &Buffer) -> Result<(), TableError> {
        let message = parse(metadata)?;
        let version = message.version();
        match message.header_type() {
            MessageHeader::Schema if self.schema.is_none() => {
                let schema = message.header_as_schema();
                let schema = schema.ok_or_else(|| malformed("a schema that is not there"))?;
                let schema = try_fb_to_schema(schema)?;
                schema
                    .fields()
                    .iter()
                    .try_for_each(|field| check_type(field.data_type()))?;
                self.schema = Some(Arc::new(schema));
            }
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch();
                let batch = batch.ok_or_else(|| malformed("a batch that is not there"))?;
                check(&batch, body)?;
                let schema = self.schema()?;
                let types = schema.fields().iter().map(|field| field.data_type());
                let body = placed(body, check_buffers(&batch, types, version)?);
                let decoder = RecordBatchDecoder::try_new(
                    &body,
                    batch,
                    schema,
                    &self.dictionaries,
                    &version,
                )?;
                self.batches.push(decoder.read_record_batch()?);
            }
            MessageHeader::DictionaryBatch => {
                let batch = message.header_as_dictionary_batch();
                let batch = batch.ok_or_else(|| malformed("a dictionary that is not there"))?;
                let data = batch
                    .data()
                    .ok_or_else(|| malformed("a dictionary without values"))?;
                check(&data, body)?;
                let schema = self.schema()?;
                let mut types = Vec::new();
                let fields = schema.fields().iter();
                fields.for_each(|field| add_dictionaries(field.data_type(), &mut types));
                // The width depends on the type of the dictionary's values; at least one of the types must fit.
                let mut types = types.into_iter();
                let align = types
                    .find_map(|values| check_buffers(&data, [values], version).ok())
                    .ok_or_else(|| malformed("a dictionary that ends within an item"))?;
                let body = placed(body, align);
                read_dictionary(&body, batch, &schema, &mut self.dictionaries, &version)?;
            }
            other => {
                let what = other.variant_name().unwrap_or("unknown");
                return Err(malformed(format!(
                    "a message of kind {what} where none should be"
                )));
            }
        }
        Ok(())
    }

    fn schema(&self) -> Result<SchemaRef, TableError> {
        self.schema
            .clone()
            .ok_or_else(|| malformed("rows before the schema"))
    }
}

/// Takes the next message: its metadata and its body. None at the end.
fn next_message(rest: &mut Buffer) -> Result<Option<(Buffer, Buffer)>, TableError> {
    let Some(mut length) = word(rest) else {
        return match rest.is_empty() {
            true => Ok(None),
            false => Err(malformed("it ends within a length")),
        };
    };
    rest.advance(4);
    // Streams from before Arrow 0.15 have no marker before the length.
    if length == u32::MAX {
        length = word(rest).ok_or_else(|| malformed("it ends within a length"))?;
        rest.advance(4);
    }
    if length == 0 {
        return Ok(None);
    }
    let metadata = take(rest, u64::from(length))?;
    let body = parse(&metadata)?.bodyLength();
    let body = u64::try_from(body).map_err(|_| malformed("a body of negative length"))?;
    Ok(Some((metadata, take(rest, body)?)))
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.first_chunk()?))
}

fn take(rest: &mut Buffer, length: u64) -> Result<Buffer, TableError> {
    let there = rest.len();
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= there);
    let length = length.ok_or_else(|| malformed("it ends within a message"))?;
    let taken = rest.slice_with_length(0, length);
    rest.advance(length);
    Ok(taken)
}

fn parse(metadata: &[u8]) -> Result<Message<'_>, TableError> {
    let limits = VerifierOptions {
        max_depth: MAX_DEPTH,
        max_tables: MAX_PARTS,
        ..VerifierOptions::default()
    };
    root_as_message_with_opts(&limits, metadata).map_err(|error| malformed(error.to_string()))
}

/// The same bytes, with `align` at an address that suits numbers. A message may begin anywhere.
fn placed(body: &Buffer, align: bool) -> Buffer {
    match body.as_ptr().align_offset(ALIGNMENT) {
        1.. if align => Buffer::from(body.as_slice()),
        _ => body.clone(),
    }
}

/// Checks the lengths in a batch before they are used.
fn check(batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer) -> Result<(), TableError> {
    let nodes = batch.nodes().into_iter().flatten();
    let mut lengths = nodes.map(|node| node.length()).chain([batch.length()]);
    if !lengths.all(|length| (0..=MAX_ROWS).contains(&length)) {
        return Err(malformed("columns of impossible lengths"));
    }
    let mut buffers = batch.buffers().into_iter().flatten();
    let is_within = buffers.all(|buffer| {
        let end = buffer.offset().checked_add(buffer.length());
        let end = end.and_then(|end| usize::try_from(end).ok());
        buffer.offset() >= 0 && buffer.length() >= 0 && end.is_some_and(|end| end <= body.len())
    });
    match is_within {
        true => Ok(()),
        false => Err(malformed("columns outside of the message")),
    }
}

/// Sizes in types are signed, and not all of Arrow's code expects negative ones.
fn check_type(data_type: &DataType) -> Result<(), TableError> {
    use DataType::{
        Dictionary, FixedSizeBinary, FixedSizeList, LargeList, LargeListView, List, ListView, Map,
        RunEndEncoded, Struct, Union,
    };
    match data_type {
        FixedSizeBinary(size) | FixedSizeList(_, size) if *size < 0 => {
            Err(malformed("items of a negative size"))
        }
        Dictionary(_, of) => check_type(of),
        List(item)
        | LargeList(item)
        | ListView(item)
        | LargeListView(item)
        | FixedSizeList(item, _) => check_type(item.data_type()),
        Map(item, _) => match item.data_type() {
            Struct(fields) if fields.len() == 2 => check_type(item.data_type()),
            _ => Err(malformed("a map that is not a list of pairs")),
        },
        RunEndEncoded(ends, _) if !ends.data_type().is_run_ends_type() => {
            Err(malformed("run ends that are not integers"))
        }
        RunEndEncoded(_, values) => check_type(values.data_type()),
        Struct(fields) => fields
            .iter()
            .try_for_each(|field| check_type(field.data_type())),
        Union(fields, _) => fields
            .iter()
            .try_for_each(|(_, field)| check_type(field.data_type())),
        _ => Ok(()),
    }
}

/// The types of the values of all dictionaries.
fn add_dictionaries<'a>(data_type: &'a DataType, found: &mut Vec<&'a DataType>) {
    use DataType::{
        Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView, Map, RunEndEncoded,
        Struct, Union,
    };
    match data_type {
        Dictionary(_, values) => {
            found.push(values);
            add_dictionaries(values, found);
        }
        List(item)
        | LargeList(item)
        | ListView(item)
        | LargeListView(item)
        | Map(item, _)
        | FixedSizeList(item, _) => add_dictionaries(item.data_type(), found),
        RunEndEncoded(_, values) => add_dictionaries(values.data_type(), found),
        Struct(fields) => {
            fields
                .iter()
                .for_each(|field| add_dictionaries(field.data_type(), found));
        }
        Union(fields, _) => {
            fields
                .iter()
                .for_each(|(_, field)| add_dictionaries(field.data_type(), found));
        }
        _ => {}
    }
}
