//! A table as one message: an Arrow IPC stream, whole. What comes from peers is not trusted.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::writer::StreamWriter;
use arrow_ipc::{Message, MessageHeader, root_as_message_with_opts};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use flatbuffers::VerifierOptions;

/// Batches of one schema.
#[derive(Debug, Clone)]
pub struct Table {
    /// What every batch has.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

/// Why a message is not a table, or a table no message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// It is something else, or damaged.
    #[error("not a table in Arrow's IPC stream format: {0}")]
    Malformed(String),
    /// Arrow's library refuses it.
    #[error("not a table in Arrow's IPC stream format: {0}")]
    Arrow(#[from] ArrowError),
}

/// The most fields and other parts that the metadata of a message may describe.
const MAX_PARTS: usize = 100_000;

/// How deep types may be nested.
const MAX_DEPTH: usize = 48;

/// The most rows of a batch, as many as Arrow's 32-bit offsets count.
const MAX_ROWS: i64 = i32::MAX as i64;

impl Table {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// All rows as one batch: without a copy if there is one only.
    pub fn to_batch(&self) -> Result<RecordBatch, TableError> {
        match self.batches.as_slice() {
            [batch] => Ok(batch.clone()),
            batches => Ok(concat_batches(&self.schema, batches)?),
        }
    }

    /// The message that says this.
    pub fn encode(&self) -> Result<Vec<u8>, TableError> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
        for batch in &self.batches {
            writer.write(batch)?;
        }
        Ok(writer.into_inner()?)
    }

    /// The table of a message. Lengths are checked before they are believed; columns refer to `bytes`.
    pub fn decode(bytes: Bytes) -> Result<Table, TableError> {
        // The checks are meant to leave nothing to panic about; a peer does not get to find what they miss.
        let decode = AssertUnwindSafe(|| Decoder::default().read(Buffer::from(bytes)));
        catch_unwind(decode).unwrap_or_else(|_| Err(malformed("its metadata contradicts itself")))
    }
}

fn malformed(what: impl Into<String>) -> TableError {
    TableError::Malformed(what.into())
}

/// Reads message after message.
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
                self.schema = Some(Arc::new(try_fb_to_schema(schema)?));
            }
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch();
                let batch = batch.ok_or_else(|| malformed("a batch that is not there"))?;
                check_rows(&batch)?;
                let schema = self.schema()?;
                let decoder = RecordBatchDecoder::try_new(body, batch, schema, &self.dictionaries, &version)?;
                self.batches.push(decoder.read_record_batch()?);
            }
            MessageHeader::DictionaryBatch => {
                let batch = message.header_as_dictionary_batch();
                let batch = batch.ok_or_else(|| malformed("a dictionary that is not there"))?;
                let data = batch.data().ok_or_else(|| malformed("a dictionary without values"))?;
                check_rows(&data)?;
                let schema = self.schema()?;
                read_dictionary(body, batch, &schema, &mut self.dictionaries, &version)?;
            }
            other => {
                let what = other.variant_name().unwrap_or("unknown");
                return Err(malformed(format!("a message of kind {what} where none should be")));
            }
        }
        Ok(())
    }

    fn schema(&self) -> Result<SchemaRef, TableError> {
        self.schema.clone().ok_or_else(|| malformed("rows before the schema"))
    }
}

/// Takes the next message off: its metadata and its body. None at the end.
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
    let length = usize::try_from(length).ok().filter(|length| *length <= there);
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

fn check_rows(batch: &arrow_ipc::RecordBatch<'_>) -> Result<(), TableError> {
    let nodes = batch.nodes().into_iter().flatten();
    let mut lengths = nodes.map(|node| node.length()).chain([batch.length()]);
    match lengths.all(|length| (0..=MAX_ROWS).contains(&length)) {
        true => Ok(()),
        false => Err(malformed("columns of impossible lengths")),
    }
}
