"""The common interface of all writers to Spark: record batches come in, and each task has an identity.

Spark passes record batches to a writer if it can. The streams of pyspark 4.0 only pass rows,
which this module converts into batches for the other modules.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType, TimestampType

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
    rows = iter(rows)
    while chunk := list(islice(rows, BATCH_ROWS)):
        arrays = []
        for column, field, kind in zip(zip(*chunk, strict=True), schema.fields, types, strict=True):
            values: Any = column
            if isinstance(field.dataType, TimestampType):
                # A row's times are local times without a time zone.
                values = [time and time.astimezone(UTC) for time in column]
            arrays.append(pa.array(values, kind))
        yield pa.RecordBatch.from_arrays(arrays, names)
