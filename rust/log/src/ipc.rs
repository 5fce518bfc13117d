//! Arrow's metadata, which lets any Arrow library read a segment.

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::{
    Buffer, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use flatbuffers::FlatBufferBuilder;

use crate::columns::stored_schema;
use crate::layout::{Parts, padded};

/// The marker at the start of an encapsulated message, before the length of its metadata.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The schema message of a segment; its length is a multiple of 8 bytes.
pub(crate) fn schema_message() -> Vec<u8> {
    let schema = stored_schema();
    let mut builder = FlatBufferBuilder::new();
    let header = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &schema);
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(header.as_union_value());
    message.add_bodyLength(0);
    let root = message.finish();
    builder.finish(root, None);
    let mut out = Vec::new();
    encapsulate(builder.finished_data(), &mut out);
    out
}

/// Writes the metadata of record batches, and reuses its memory.
#[derive(Default)]
pub(crate) struct Metadata {
    builder: FlatBufferBuilder<'static>,
    nodes: Vec<FieldNode>,
    buffers: Vec<Buffer>,
}

impl Metadata {
    /// Appends the metadata of a record batch of `rows` rows with these buffers; the body follows it.
    pub fn write(&mut self, rows: usize, parts: &Parts, out: &mut Vec<u8>) {
        self.nodes.clear();
        self.buffers.clear();
        let nodes = parts.nodes.iter();
        self.nodes
            .extend(nodes.map(|(length, nulls)| FieldNode::new(*length as i64, *nulls as i64)));
        let mut position = 0;
        for buffer in &parts.buffers {
            self.buffers
                .push(Buffer::new(position as i64, buffer.len() as i64));
            position += padded(buffer.len());
        }
        let builder = &mut self.builder;
        builder.reset();
        let nodes = builder.create_vector(&self.nodes);
        let buffers = builder.create_vector(&self.buffers);
        let mut batch = RecordBatchBuilder::new(builder);
        batch.add_length(rows as i64);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        let header = batch.finish();
        let mut message = MessageBuilder::new(builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::RecordBatch);
        message.add_header(header.as_union_value());
        message.add_bodyLength(position as i64);
        let root = message.finish();
        builder.finish(root, None);
        encapsulate(builder.finished_data(), out);
    }
}

/// The metadata after its length, padded so that the body begins at a multiple of 8.
fn encapsulate(metadata: &[u8], out: &mut Vec<u8>) {
    let length = padded(metadata.len());
    out.extend_from_slice(&CONTINUATION);
    out.extend_from_slice(
        &u32::try_from(length)
            .expect("metadata is short")
            .to_le_bytes(),
    );
    out.extend_from_slice(metadata);
    out.resize(out.len() + length - metadata.len(), 0);
}
