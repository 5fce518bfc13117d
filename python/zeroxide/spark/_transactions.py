"""The writers to a collector's log: a batch of a query appears there completely, and once.

Each task *stages* its rows at the collector, under a number that no other attempt has, and
tells the driver how many parts it staged. When all tasks are done, the driver *publishes*
the attempts that Spark chose; only then do their rows have offsets. Other rows staged by retries,
speculation and lost executors are never named, and are discarded.

The collector keeps the last batch that each query has published, in the log itself, and
answers a repetition with the offsets of the first time: a batch that Spark replays, because
the driver ended between the collector's commit and its own, changes nothing.
"""

import logging
import secrets
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from ..pipeline import Refused
from ._collectors import CLIENT_KEYS, is_away
from ._ipc import to_stream
from ._schema import check_loggable
from ._sockets import look_up
from ._writers import BatchWriter, StreamWriter, Task, Writer
from .options import LogWriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LogStreamWriter", "LogWriter", "Staged", "connect"]

log: logging.Logger = logging.getLogger(__name__)

# Spark passes small batches of wide rows, and each part costs a round trip.
PART_BYTES = 4 << 20
PART_ROWS = 100_000

# How often the collector is asked while option 'ackTimeoutMs' lasts.
TRIES = 3

# The wait before a collector that refused a request temporarily is asked again.
PAUSE_S = 0.5

# The most attempts that a collector takes in one request.
ATTEMPTS = 65_536

# The batch of a write without a number. It is never repeated, so the log may forget the oldest of them (see rust/log).
ONLY_BATCH = 2**63 - 1


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The rows that one task has staged: the attempt that is published if Spark chooses it."""

    query: str
    batch: int
    partition: int
    attempt: int
    parts: int
    rows: int


class _Stager(Writer):
    """The common part of both writers, in the tasks and at the driver."""

    def __init__(self, options: LogWriteOptions, schema: StructType) -> None:
        super().__init__(schema)
        self.options = options
        self.columns: list[str] = [] if options.frame == "arrow" else check_loggable(schema)

    @abstractmethod
    def transaction(self, task: Task) -> tuple[str, int]:
        """Returns the query and the batch under which the log takes this task's rows once."""

    def write_batches(self, batches: Iterator["pa.RecordBatch"]) -> Staged:
        """Stages all rows of one task, and returns when the collector has them."""
        task = Task.current()
        query, batch = self.transaction(task)
        # Spark's own number starts again with a stage or a driver, while tasks of the old
        # one may still run: only a random number distinguishes them.
        attempt = secrets.randbits(63)
        parts = rows = 0
        client = None
        try:
            pieces = chain.from_iterable(map(_cut, batches))
            for part in _merge(map(self._rows, pieces)):
                client = client or connect(self.options)
                waiting = [part]
                while waiting:
                    piece = waiting.pop()
                    where = (query, batch, task.partition, attempt, parts)
                    try:
                        self._insist(client.stage, *where, piece)
                    except Refused as error:
                        if error.code != "too-big" or piece.num_rows < 2:
                            raise
                        # This collector accepts smaller batches than others.
                        half = piece.num_rows // 2
                        waiting += piece.slice(half), piece.slice(0, half)
                        continue
                    parts += 1
                    rows += piece.num_rows
        finally:
            if client is not None:
                client.close()
        return Staged(query, batch, task.partition, attempt, parts, rows)

    def _insist(self, request: Callable[..., Any], *arguments: Any) -> Any:
        """Asks the collector, and repeats temporary refusals until `ackTimeoutMs`."""
        deadline = time.monotonic() + self.options.ack_timeout_ms / 1000
        while True:
            try:
                return request(*arguments)
            except Refused as error:
                if not is_away(error) or time.monotonic() + PAUSE_S > deadline:
                    raise
                log.warning("zeromq: waiting for collector %s: %s", self.options.endpoint, error)
            time.sleep(PAUSE_S)

    def publish(
        self, messages: list[WriterCommitMessage | None], batch_id: int | None = None
    ) -> None:
        """Makes the rows of the tasks readable, all at once."""
        staged = _with_rows(messages)
        if not staged:
            return
        query, batch = staged[0].query, staged[0].batch
        if batch_id is not None and batch_id != batch:
            raise RuntimeError(
                f"Spark commits batch {batch_id}, but its tasks were given the number {batch}"
                f" (property of the task); no row of it was published"
            )
        client = connect(self.options)
        try:
            parts = [(task.partition, task.attempt, task.parts) for task in staged]
            first, end, already = self._insist(client.publish, query, batch, parts)
        finally:
            client.close()
        rows = sum(task.rows for task in staged)
        if already and first == end and rows:
            raise RuntimeError(
                f"batch {batch} of query {query} is older than the last batch of that name that"
                f" collector {self.options.endpoint} has: the checkpoint was deleted or reset,"
                " or two queries share option 'queryName'. Nothing of this batch was written: give"
                " the new query another name"
            )
        if end - first != rows:
            text = (
                f"batch {batch} of query {query} had been published before with {end - first} rows,"
                f" and has {rows} now: those of the first time stay"
            )
            # Rows of the log that are whole Arrow batches may have other borders with the same rows.
            if self.options.frame != "arrow":
                raise RuntimeError(
                    f"{text}, and nothing of this batch was written, as rows could be missing. The"
                    " checkpoint may have lost its newest entries, or the query does not return"
                    " the same rows again. Restore the checkpoint, or give the query a new one,"
                    f" which begins after the rows that collector {self.options.endpoint} has."
                    " If foreachBatch writes a batch several times, give each of these writes its"
                    " own option 'queryName'"
                )
            log.warning("zeromq: %s", text)
        log.info(
            "zeromq: batch %d of %s %s offsets %d to %d",
            batch,
            query,
            "had been published before, as" if already else "is published, as",
            first,
            end,
        )

    def discard(self, messages: list[WriterCommitMessage | None]) -> None:
        """Makes the collector discard the staged rows at once, instead of when they expire."""
        staged = _with_rows(messages)
        if not staged:
            return
        try:
            client = connect(self.options)
            try:
                attempts = [(task.partition, task.attempt) for task in staged]
                for start in range(0, len(attempts), ATTEMPTS):
                    some = attempts[start : start + ATTEMPTS]
                    self._insist(client.abort, staged[0].query, staged[0].batch, some)
            finally:
                client.close()
        except Exception as error:  # the write has already failed for another reason
            log.warning("zeromq: what a failed write had staged was not discarded: %s", error)

    def _rows(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa

        if self.options.frame == "arrow":
            columns = {"value": pa.array([bytes(to_stream(batch))], pa.binary())}
        else:
            columns = {name: _column(batch, name) for name in self.columns}
        if self.options.topic is not None:
            columns["topic"] = pa.repeat(pa.scalar(self.options.topic), len(columns["value"]))
        return pa.RecordBatch.from_pydict(columns)


class LogWriter(_Stager, BatchWriter):
    """Writes a batch query's rows: once, or once under its number."""

    def __init__(self, options: LogWriteOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        if options.query_name is not None and options.batch_id is None:
            raise ValueError(
                "option 'queryName' needs 'batchId' in df.write: it is the number that makes a"
                " write repeatable. Set it, or leave out both"
            )
        # A write without a number is unique.
        self.job: str = f"write-{uuid.uuid4().hex}"

    def transaction(self, task: Task) -> tuple[str, int]:
        """Returns the query and batch that the options name, or unique ones for this write.

        Not the query and the batch of a stream that calls this from ``foreachBatch``: it may
        do so twice for a batch.
        """
        if self.options.query_name is not None and self.options.batch_id is not None:
            return self.options.query_name, self.options.batch_id
        return self.job, ONLY_BATCH

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called when all tasks are done: their rows become readable."""
        self.publish(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called when a task failed permanently: no row becomes readable."""
        self.discard(messages)


class LogStreamWriter(_Stager, StreamWriter):
    """Writes a streaming query's rows, each batch once."""

    def __init__(self, options: LogWriteOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        if options.batch_id is not None:
            raise ValueError("option 'batchId' is for df.write: a stream numbers its batches")

    def transaction(self, task: Task) -> tuple[str, int]:
        """The query, which its checkpoint remembers, and Spark's number of the batch."""
        query = task.query or self.options.query_name or self.options.checkpoint
        if query is None:
            raise RuntimeError(
                "this Spark does not tell its tasks which query they belong to, and nothing else"
                " that survives a restart does: set option 'queryName'"
            )
        if task.batch is None:
            raise RuntimeError(
                "this Spark does not tell its tasks which batch they belong to: use foreachBatch"
                " and df.write with options 'queryName' and 'batchId'"
            )
        return query, task.batch

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called when all tasks of this batch are done: their rows become readable."""
        self.publish(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called when a task of this batch failed permanently: no row becomes readable."""
        self.discard(messages)


def connect(options: LogWriteOptions) -> Any:
    """A client of the collector."""
    keys = {
        CLIENT_KEYS[name]: look_up(f"zmq.{name}", text) for name, text in options.socket_options
    }
    # Not at the top: a package without pyarrow has no client, and needs none to be imported.
    make = import_module("zeroxide.pipeline").Client
    # A collector that was restarted answers sooner if it is asked on a new connection.
    timeout = options.ack_timeout_ms / 1000 / TRIES
    return make(options.endpoint, timeout_s=timeout, retries=TRIES - 1, **keys)


def _with_rows(messages: list[WriterCommitMessage | None]) -> list[Staged]:
    return [message for message in messages if isinstance(message, Staged) and message.parts]


def _cut(batch: "pa.RecordBatch", most: int = PART_BYTES) -> Iterator["pa.RecordBatch"]:
    """The same rows in batches of at most this size, unless a single row is larger."""
    if batch.num_rows < 2 or batch.nbytes <= most:
        yield batch
        return
    # Rows may have any size, so each half is checked separately.
    half = batch.num_rows // 2
    yield from _cut(batch.slice(0, half), most)
    yield from _cut(batch.slice(half), most)


def _merge(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """Combines the rows into batches that are worth a round trip."""
    import pyarrow as pa

    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if pending and (rows + batch.num_rows > PART_ROWS or size + batch.nbytes > PART_BYTES):
            yield pa.concat_batches(pending)
            pending, rows, size = [], 0, 0
        if batch.num_rows:
            pending.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
    if pending:
        yield pa.concat_batches(pending)


def _column(batch: "pa.RecordBatch", name: str) -> "pa.Array":
    """Converts a column of the query to the type that it has in the log."""
    import pyarrow as pa

    column = batch.column(batch.schema.get_field_index(name))
    if name == "value" and column.null_count:
        raise ValueError(
            f"column 'value' is null in {column.null_count} of {batch.num_rows} rows, but a"
            " message cannot be null: filter these rows out, or replace null with coalesce"
        )
    types = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "timestamp": pa.timestamp("us", "UTC"),
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    }
    column = column.cast(types[name])
    if name == "timestamp" and column.null_count:
        # Like a missing column, null makes the time of writing the row's time.
        column = column.fill_null(pa.scalar(time.time_ns() // 1000, types[name]))
    return column
