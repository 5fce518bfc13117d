"""The columns, as schemas of Spark and of Arrow.

Spark accepts a record batch only if its schema equals the one that Spark derives from its own:
the same order, names, types and nullability, ``binary`` and ``string`` with 32-bit offsets,
timestamps in microseconds of UTC.
"""

from collections.abc import Callable, Iterable
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "LOG_COLUMNS",
    "arrow_schema",
    "check_loggable",
    "check_readable",
    "check_writable",
    "conform",
    "spark_schema",
    "to_arrow",
]

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

# All fields of a message, for reading and writing.
COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),  # the number of its collector
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),  # 0: the producer's, 1: that of receipt
    "receive_time": TimestampType(),
    "producer": StringType(),
    "seq": LongType(),
    "headers": ArrayType(HEADER),
    "frames": ArrayType(BinaryType()),
}

# The columns that a collector's log always has; headers and frames are optional.
LOG_COLUMNS = tuple(name for name in COLUMNS if name not in ("headers", "frames"))

# The columns that every message has.
NEVER_NULL = ("value", "partition", "offset", "timestamp", "timestampType", "receive_time")

# Columns that the writer sends. Text is sent as UTF-8.
TEXT_OR_BYTES = (StringType, BinaryType)
SENT = ("value", "key", "topic", "headers")


def spark_schema(names: Iterable[str]) -> StructType:
    """The columns of these names."""
    return StructType([StructField(name, COLUMNS[name]) for name in names])


def arrow_schema(schema: StructType) -> "pa.Schema":
    """The schema that Spark requires of record batches for these columns."""
    import pyarrow as pa

    types: dict[str, Any] = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "receive_time": pa.timestamp("us", tz="UTC"),
        "producer": pa.string(),
        "seq": pa.int64(),
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        "frames": pa.list_(pa.binary()),
    }
    return pa.schema([pa.field(f.name, types[f.name], nullable=f.nullable) for f in schema.fields])


def conform(batch: "pa.RecordBatch", target: "pa.Schema") -> "pa.RecordBatch":
    """The columns of a record batch that Spark expects, in its order and with its nullability.

    No data is copied: Spark compares whole schemas, and only their descriptions differ.
    """
    import pyarrow as pa

    if batch.schema.equals(target):
        return batch
    arrays = []
    for field in target:
        array = batch.column(batch.schema.get_field_index(field.name))
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def to_arrow(schema: StructType) -> "pa.Schema":
    """Converts columns of Spark to Arrow; times are in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    # Before 4.2, times were always in UTC, and there is no such setting.
    takes_zone = "timezone" in signature(to_arrow_schema).parameters
    convert: Callable[..., pa.Schema] = to_arrow_schema
    return convert(schema, timezone="UTC") if takes_zone else convert(schema)


def check_readable(schema: StructType, available: Iterable[str]) -> None:
    """Raises unless these options give these columns; a reader may request fewer of them."""
    available = list(available)
    if not schema.fields:
        # Rows without columns arrive in Spark as none at all.
        raise ValueError(
            "the schema has no columns: name at least one, such as .schema('value binary'), or"
            " leave it out"
        )
    for field in schema.fields:
        if schema.names.count(field.name) > 1:
            # Spark accepts this, and then cannot read the batches.
            raise ValueError(f"the schema has column {field.name!r} more than once: name it once")
        if field.name not in available:
            raise ValueError(
                f"there is no column {field.name!r} to read with these options, only:"
                f" {', '.join(available)}"
            )
        if field.dataType != COLUMNS[field.name]:
            raise ValueError(
                f"column {field.name!r} is {COLUMNS[field.name].simpleString()},"
                f" not {field.dataType.simpleString()}"
            )
        if not field.nullable and field.name not in NEVER_NULL:
            raise ValueError(f"column {field.name!r} may be null: do not ask for NOT NULL")


def check_writable(schema: StructType) -> list[str]:
    """The columns that are sent; raises if there is no column ``value``.

    Columns with other names are ignored, as by Spark's Kafka sink, unless only their case differs.
    """
    fields = {field.name: field.dataType for field in schema.fields}
    check_case(fields, SENT)
    if "value" not in fields:
        raise ValueError(
            "the writer needs a column 'value'; there is "
            f"{', '.join(fields) or 'none'}: select(to_json(struct('*')).alias('value')),"
            " or set frame=arrow"
        )
    sent = [name for name in SENT if name in fields]
    for name in sent:
        kind = fields[name]
        fits = _is_headers(kind) if name == "headers" else isinstance(kind, TEXT_OR_BYTES)
        if not fits:
            wanted = HEADER.simpleString() if name == "headers" else "string or binary"
            wanted = f"array<{wanted}>" if name == "headers" else wanted
            raise ValueError(f"column {name!r} is {kind.simpleString()}, not {wanted}")
    return sent


def check_case(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises for a column whose name differs from a known one in its case only: its values would be lost."""
    given = list(given)
    for name in given:
        meant = name.lower()
        if meant != name and meant in known and meant not in given:
            raise ValueError(
                f"column {name!r} would not be sent: rename it to {meant!r}, or drop it"
            )


def check_loggable(schema: StructType) -> list[str]:
    """The columns that are sent to a log, with the time of each row."""
    columns = check_writable(schema)
    check_case(schema.names, ["timestamp"])
    for field in schema.fields:
        if field.name == "timestamp":
            if not isinstance(field.dataType, TimestampType):
                raise ValueError(
                    f"column 'timestamp' is {field.dataType.simpleString()}, not timestamp"
                )
            columns.append("timestamp")
    return columns


def _is_headers(kind: DataType) -> bool:
    # The query decides nullability and the order of the header's fields.
    return (
        isinstance(kind, ArrayType)
        and isinstance(kind.elementType, StructType)
        and {f.name: type(f.dataType) for f in kind.elementType.fields}
        == {"key": StringType, "value": BinaryType}
    )
