"""Record batches as message bodies: Arrow IPC streams."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["from_stream", "one_batch", "to_stream"]


def to_stream(
    batch: "pa.RecordBatch", metadata: dict[bytes, bytes] | None = None
) -> "memoryview[int]":
    """Serialises a batch as a stream, with additional metadata in its schema."""
    import pyarrow as pa

    if metadata:
        batch = batch.replace_schema_metadata((batch.schema.metadata or {}) | metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    # Not as bytes: copying a large batch costs ten times as much as everything else.
    return memoryview(sink.getvalue())


def from_stream(body: "bytes | memoryview[int]") -> "pa.RecordBatch":
    """Reads and validates a stream, because another program sent it."""
    import pyarrow as pa

    with pa.ipc.open_stream(body) as stream:
        table = stream.read_all()
    table.validate(full=True)
    return one_batch(table)


def one_batch(table: "pa.Table") -> "pa.RecordBatch":
    """A table's rows as one batch, even if there are none.

    Raises ValueError if one batch cannot hold them.
    """
    import pyarrow as pa

    batches = table.combine_chunks().to_batches()
    if len(batches) > 1:
        # The offsets of such a column end at 2 GiB, so pyarrow keeps several chunks.
        raise ValueError(
            f"{table.num_rows} rows are more than one record batch holds, as a column has more than"
            " 2 GiB: use fewer rows, or the types large_string and large_binary"
        )
    if batches:
        return batches[0]
    empty = [pa.array([], field.type) for field in table.schema]
    return pa.RecordBatch.from_arrays(empty, schema=table.schema)
