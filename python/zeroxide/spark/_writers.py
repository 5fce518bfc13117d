"""The common interface of all writers to Spark: record batches come in, and each task has an identity.

Spark passes record batches to a writer if it can. The streams of pyspark 4.0 only pass rows,
which this module converts into batches for the other modules.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from ._schema import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchWriter", "StreamWriter", "Task", "Writer", "to_record_batches"]

# Spark's names for these in the properties of a streaming query's tasks; a batch has neither.
QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"

# Rows per record batch if Spark makes none.
BATCH_ROWS = 10_000


@dataclass(frozen=True)
class Task:
    """The current task, as far as Spark identifies it."""

    partition: int = 0
    attempt: int = 0
    query: str | None = None
    batch: int | None = None

    @classmethod
    def current(cls) -> "Task":
        """The task that runs here; without Spark, a single task."""
        from pyspark import TaskContext

        task = TaskContext.get()
        if task is None:
            return cls()
        batch = task.getLocalProperty(BATCH_PROPERTY)
        return cls(
            partition=task.partitionId(),
            attempt=task.attemptNumber(),
            query=task.getLocalProperty(QUERY_PROPERTY) or None,
            batch=int(batch) if batch else None,
        )


class Writer(ABC):
    """A writer of record batches."""

    def __init__(self, schema: StructType) -> None:
        self.schema = schema

    @abstractmethod
    def write_batches(self, batches: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """Writes all rows of one task."""


class BatchWriter(Writer, DataSourceArrowWriter):
    """The base of writers for ``df.write``."""

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """Writes all rows of one task."""
        return self.write_batches(iterator)


if TYPE_CHECKING or hasattr(datasource, "DataSourceStreamArrowWriter"):

    class StreamWriter(Writer, datasource.DataSourceStreamArrowWriter):
        """The base of writers for ``df.writeStream``."""

        def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
            """Writes all rows of one task."""
            return self.write_batches(iterator)

else:

    class StreamWriter(Writer, datasource.DataSourceStreamWriter):
        """The base of writers for ``df.writeStream`` if Spark only passes rows."""

        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            """Writes all rows of one task."""
            return self.write_batches(to_record_batches(iterator, self.schema))


def to_record_batches(rows: Iterable[Any], schema: StructType) -> Iterator["pa.RecordBatch"]:
    """Converts Spark's rows to record batches with the schema that Spark itself would have made."""
    import pyarrow as pa

    types = to_arrow(schema).types
    names = schema.fieldNames()
    converters = [_converter(field.dataType) for field in schema.fields]
    rows = iter(rows)
    while chunk := list(islice(rows, BATCH_ROWS)):
        arrays = []
        columns = zip(*chunk, strict=True)
        for name, column, convert, kind in zip(names, columns, converters, types, strict=True):
            try:
                values: Any = column if convert is None else list(map(convert, column))
            except OverflowError as error:
                raise ValueError(
                    f"column {name!r} has a time that is outside the years 1 to 9999 in UTC: {error}"
                ) from error
            arrays.append(pa.array(values, kind))
        yield pa.RecordBatch.from_arrays(arrays, names)


def _converter(kind: DataType) -> Callable[[Any], Any] | None:
    """Converts Spark's values of this type to those that Arrow takes; None if they are the same."""
    convert: Callable[[Any], Any]
    if isinstance(kind, TimestampType):
        convert = _utc
    elif isinstance(kind, ArrayType):
        element = _converter(kind.elementType)
        if element is None:
            return None

        def convert(values: Any) -> Any:
            return list(map(element, values))
    elif isinstance(kind, MapType):
        key, value = (_converter(one) or _same for one in (kind.keyType, kind.valueType))

        # Not every version of Arrow takes a dict.
        def convert(values: Any) -> Any:
            return [(key(name), value(one)) for name, one in values.items()]
    elif isinstance(kind, StructType):
        parts = [_converter(field.dataType) for field in kind.fields]
        if not any(parts):
            return None
        fields = [part or _same for part in parts]

        def convert(values: Any) -> Any:
            return tuple(part(value) for part, value in zip(fields, values, strict=True))
    else:
        return None
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def _utc(time: datetime) -> datetime:
    """A row's times are local times without a time zone, at any depth; Arrow takes such ones for UTC."""
    try:
        return time.astimezone(UTC)
    except (ValueError, OverflowError):
        # On the first day and the last one, Python looks beyond the years that it has.
        step = timedelta(days=2 if time.year == 1 else -2)
        return (time + step).astimezone(UTC) - step
