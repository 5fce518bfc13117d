"""Converts between the frames of messages and columns.

The functions take lists of whole columns, not rows, because a Python call per message
would cost more than all other steps.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from ._schema import arrow_schema
from .options import ENVELOPE, SINGLE, TOPIC_FIRST, Framing, ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = [
    "SPARK_HEADER",
    "Columns",
    "Incoming",
    "Outgoing",
    "join",
    "least_framing",
    "split",
    "to_record_batch",
    "to_rows",
]

# The messages that `recv_batch` returns and `send_batch` takes: bytes or lists of bytes.
Incoming: TypeAlias = list[Any]
Outgoing: TypeAlias = "Sequence[bytes | memoryview[int] | tuple[bytes | memoryview[int], ...]]"

# Lists of equal length by the name of their column.
Columns: TypeAlias = dict[str, list[Any]]

# The name of the writer's own header.
SPARK_HEADER = b"spark"


def split(messages: Incoming, options: ReadOptions) -> Columns:
    """Converts messages to columns; ``value`` is always present, others depend on the framing."""
    any_number = options.include_frames
    if options.framing == SINGLE and not any_number:
        if list in set(map(type, messages)):
            _refuse(max(len(m) for m in messages if type(m) is list), options.framing)
        return {"value": messages}

    lengths = set(map(len, messages))
    if options.framing == ENVELOPE:
        columns = _open_envelopes(messages, lengths)
    else:
        allowed = 1 if options.framing == SINGLE else 2
        if not any_number and max(lengths) > allowed:
            _refuse(max(lengths), options.framing)
        columns = {"value": [m[-1] for m in messages]}
        if options.framing == TOPIC_FIRST:
            columns["topic"] = [m[0] if len(m) > 1 else None for m in messages]
    if options.include_frames:
        columns["frames"] = messages
    return columns


def to_record_batch(
    columns: Columns, times: Sequence[tuple[int, int]], schema: "StructType"
) -> "pa.RecordBatch":
    """Makes a record batch exactly as Spark expects it.

    `times` is the number of rows received at each microsecond.
    """
    import numpy as np
    import pyarrow as pa

    target = arrow_schema(schema)
    rows = len(columns["value"])
    arrays = []
    for field in target:
        if field.name == "timestamp":
            counts, micros = zip(*times, strict=True)
            stamps = np.repeat(np.array(micros, dtype=np.int64), counts)
            arrays.append(pa.array(stamps).view(field.type))
        elif field.name not in columns:
            arrays.append(pa.nulls(rows, field.type))
        elif field.name == "topic":
            arrays.append(_text(columns["topic"]))
        else:
            arrays.append(pa.array(columns[field.name], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def least_framing(columns: Iterable[str], *, topic: bool, header: bool) -> Framing:
    """The simplest framing that holds all of these columns."""
    if header or not {"key", "headers"}.isdisjoint(columns):
        return ENVELOPE
    return TOPIC_FIRST if topic or "topic" in columns else SINGLE


def to_rows(batch: "pa.RecordBatch", names: Iterable[str]) -> Columns:
    """The named columns of a record batch as lists of bytes; headers as lists of pairs."""
    import pyarrow as pa

    columns: Columns = {}
    for name in names:
        column = batch.column(batch.schema.get_field_index(name))
        if name == "headers":
            columns[name] = [_header_frames(row) for row in column.to_pylist()]
        else:
            # numpy creates all of the bytes objects in one C loop.
            as_bytes = column.cast(pa.binary())
            columns[name] = as_bytes.to_numpy(zero_copy_only=False).tolist()
    return columns


def join(
    columns: Columns, framing: Framing, topic: bytes | None, marks: Sequence[bytes] | None
) -> Outgoing:
    """Converts columns to messages; `topic` applies to all rows, `marks` has the header of each."""
    values = columns["value"]
    missing = values.count(None)
    if missing:
        raise ValueError(
            f"column 'value' is null in {missing} of {len(values)} rows, but a message cannot be"
            " null: filter these rows out, or replace null with coalesce"
        )
    if framing == SINGLE:
        return values
    if topic is not None:
        topics: Iterable[bytes] = repeat(topic, len(values))
    else:
        topics = _without_none(columns.get("topic"), len(values))
    if framing == TOPIC_FIRST:
        return list(zip(topics, values, strict=True))
    keys = _without_none(columns.get("key"), len(values))
    rows: Iterable[tuple[bytes, ...]]
    if marks is None:
        rows = zip(topics, keys, values, strict=True)
    else:
        rows = zip(topics, keys, values, repeat(SPARK_HEADER, len(values)), marks, strict=True)
    if "headers" not in columns:
        return list(rows)
    return [(*row, *more) for row, more in zip(rows, columns["headers"], strict=True)]


def _open_envelopes(messages: Any, lengths: set[int]) -> Columns:
    for length in lengths:
        # A single frame is a body without its envelope, usually the end of the stream.
        if length % 2 == 0:
            _refuse(length, ENVELOPE)
    return {
        "topic": [m[0] if len(m) > 1 else None for m in messages],
        "key": [m[1] or None if len(m) > 1 else None for m in messages],
        "value": [m[2] if len(m) > 1 else m[0] for m in messages],
        "headers": [
            [
                {"key": name.decode("utf-8", "replace"), "value": value}
                for name, value in zip(m[3::2], m[4::2], strict=True)
            ]
            for m in messages
        ],
    }


def _refuse(length: int, framing: Framing) -> None:
    expected = {
        SINGLE: "one frame",
        TOPIC_FIRST: "one or two frames",
        ENVELOPE: "topic, key, value and pairs of header frames",
    }
    raise ValueError(
        f"received a message of {length} frames, but framing={framing} expects"
        f" {expected[framing]}: set another framing, or framing=single with includeFrames=true,"
        " which takes any number"
    )


def _text(topics: list[bytes | None]) -> "pa.Array":
    import pyarrow as pa

    try:
        return pa.array(topics, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        # A peer may send any bytes as a topic; invalid ones must not end the read.
        decoded = [None if t is None else t.decode("utf-8", "replace") for t in topics]
        return pa.array(decoded, pa.string())


def _without_none(column: list[bytes | None] | None, rows: int) -> Iterable[bytes]:
    if column is None:
        return repeat(b"", rows)
    return [b"" if item is None else item for item in column]


def _header_frames(row: list[dict[str, Any] | None] | None) -> list[bytes]:
    frames: list[bytes] = []
    for header in filter(None, row or ()):
        frames += (header["key"] or "").encode(), header["value"] or b""
    return frames
