"""The batch reader of ``mode=live``: sockets in tasks.

A socket gives each message once. If a task fails, the messages it has received are lost, so a task
that would read the same partition again refuses: silently missing rows would be worse.
"""

import logging
import math
import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import zeroxide as zmq

from . import _sockets
from ._claims import claim
from ._framing import Columns, Incoming, split, to_record_batch
from .options import SINGLE, ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EndpointPartition", "LiveReader"]

log: logging.Logger = logging.getLogger(__name__)

# A record batch is passed to Spark when it has this size, or this long after its first
# message. Rows wait for others, because each batch has a cost in the JVM.
BATCH_ROWS = 16_384
BATCH_BYTES = 8 << 20
BATCH_S = 0.1

# Few messages are taken at once until their size is known.
FIRST_ROWS = 64

# A column of bytes holds at most 2 GiB, and Spark's own buffers for it little more than this.
COLUMN_BYTES = 1 << 30
LARGEST = (1 << 31) - 1


# Spark's number of an action: a frame that is counted twice is two reads, a sort is one.
ACTION_PROPERTY = "spark.sql.execution.id"


class EndpointPartition(InputPartition):
    """One endpoint, read by one task, once."""

    def __init__(self, name: str, endpoint: str) -> None:
        super().__init__(name)
        self.name = name
        self.endpoint = endpoint


class LiveReader(DataSourceReader):
    """Reads what arrives at PULL or SUB sockets, one per endpoint."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.columns = schema

    def partitions(self) -> list[InputPartition]:
        """One per endpoint."""
        scan = uuid.uuid4().hex
        endpoints = enumerate(self.options.attachment.endpoints)
        return [EndpointPartition(f"{scan}-{index}", endpoint) for index, endpoint in endpoints]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Receives until the first limit is reached."""
        assert isinstance(partition, EndpointPartition)
        _refuse_repetition(partition)
        options = self.options
        kind, settings = zmq.PULL, []
        if options.socket == "sub":
            kind = zmq.SUB
            settings = [(int(zmq.SUBSCRIBE), prefix.encode()) for prefix in options.subscribe]
        with _sockets.opened(
            kind,
            replace(options.attachment, endpoints=(partition.endpoint,)),
            timeout_ms=options.timeout_ms,
            linger_ms=0,
            settings=settings,
        ) as socket:
            intake = _Intake(socket, options, partition.endpoint)
            while not intake.ended_by:
                batch = intake.next_batch()
                for part in batch.parts():
                    yield to_record_batch(part.columns, part.times, self.columns)
            intake.report()


@dataclass
class _Batch:
    """Collects messages for one record batch."""

    columns: Columns = field(default_factory=dict)
    # The number of rows received at each microsecond.
    times: list[tuple[int, int]] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def add(self, columns: Columns, size: int) -> None:
        rows = len(columns["value"])
        if not rows:
            return
        for name, column in columns.items():
            self.columns.setdefault(name, []).extend(column)
        self.times.append((rows, time.time_ns() // 1000))
        self.rows += rows
        self.size += size

    def parts(self) -> Iterator["_Batch"]:
        """Splits this batch into pieces that fit into Arrow columns: nearly always one, or none."""
        if self.size <= COLUMN_BYTES:
            if self.rows:
                yield self
            return
        sizes = _sizes(self.columns)
        if max(sizes) > LARGEST:
            raise ValueError(
                f"received a message of {max(sizes)} bytes, but a column of Spark holds at most"
                f" {LARGEST}: limit peers with zmq.maxmsgsize"
            )
        ends = list(accumulate(sizes))
        received = self.times[-1][1]
        first = 0
        while first < self.rows:
            taken = ends[first - 1] if first else 0
            last = max(first + 1, bisect_right(ends, taken + COLUMN_BYTES))
            columns = {name: column[first:last] for name, column in self.columns.items()}
            yield _Batch(columns, [(last - first, received)], last - first)
            first = last


class _Intake:
    """Receives messages for one task until one of its limits is reached."""

    def __init__(self, socket: zmq.Socket, options: ReadOptions, endpoint: str) -> None:
        self.socket = socket
        self.options = options
        self.endpoint = endpoint
        self.rows = 0
        self.size = 0
        self.ended_by: str | None = None
        self._deadline = time.monotonic() + options.timeout_ms / 1000
        self._room = FIRST_ROWS
        # Single frames are not wrapped in lists.
        if options.framing != SINGLE or options.include_frames:
            self._recv: Callable[..., Incoming] = partial(socket.recv_batch, multipart=True)
        else:
            self._recv = socket.recv_batch

    def next_batch(self) -> _Batch:
        """Waits for messages, then a little longer for more of them."""
        batch = _Batch()
        until = self._deadline
        while not self.ended_by and batch.rows < BATCH_ROWS and batch.size < BATCH_BYTES:
            left = until - time.monotonic()
            if left <= 0:
                break
            try:
                messages = self._recv(self._most(), math.ceil(left * 1000))
            except zmq.Again:
                continue
            if not batch.rows:
                until = min(self._deadline, time.monotonic() + BATCH_S)
            self._take(messages, batch)
        if not self.ended_by and time.monotonic() >= self._deadline:
            self.ended_by = "timeoutMs"
        return batch

    def report(self) -> None:
        """Logs in the executor how this partition ended."""
        options = self.options
        unexpected = options.end_of_stream is not None and self.ended_by != "endOfStream"
        log.log(
            logging.WARNING if unexpected else logging.INFO,
            "zeromq: %s ended by %s after %d messages, %d bytes; %d were left in the socket",
            self.endpoint,
            self.ended_by,
            self.rows,
            self.size,
            self.socket.stats()["queued_in"],
        )

    def _most(self) -> int:
        left = self.options.max_rows
        return self._room if left is None else min(self._room, left - self.rows)

    def _take(self, messages: Incoming, batch: _Batch) -> None:
        options = self.options
        columns = split(messages, options)
        end = options.end_of_stream
        if end is not None and end in columns["value"]:
            at = columns["value"].index(end)
            if at + 1 < len(messages):
                log.warning(
                    "zeromq: %d messages from %s came after the end of its stream and are lost",
                    len(messages) - at - 1,
                    self.endpoint,
                )
            columns = {name: column[:at] for name, column in columns.items()}
            self.ended_by = "endOfStream"
        size = sum(_sizes(columns))
        batch.add(columns, size)
        rows = len(columns["value"])
        self.rows += rows
        self.size += size
        if options.max_rows is not None and self.rows >= options.max_rows:
            self.ended_by = self.ended_by or "maxRows"
        if options.max_bytes is not None and self.size >= options.max_bytes:
            self.ended_by = self.ended_by or "maxBytes"
        if rows:
            wanted = BATCH_BYTES
            if options.max_bytes is not None:
                wanted = min(wanted, options.max_bytes - self.size)
            self._room = min(max(wanted * rows // max(size, 1), 1), BATCH_ROWS)


def _sizes(columns: Columns) -> list[int]:
    """The bytes of each message that will be in columns."""
    if "frames" in columns:
        return [sum(map(len, frames)) for frames in columns["frames"]]
    return list(map(len, columns["value"]))


def _refuse_repetition(partition: EndpointPartition) -> None:
    from pyspark import TaskContext

    task = TaskContext.get()
    action = None if task is None else task.getLocalProperty(ACTION_PROPERTY)
    if task is not None and task.attemptNumber() > 0:
        raise RuntimeError(
            f"reading {partition.endpoint} failed before (see the reason above in Spark's log) and"
            " cannot be repeated: with mode=live, the messages that the first attempt received"
            " are lost"
        )
    if not claim(f"{partition.name}-{action}"):
        raise RuntimeError(
            f"{partition.endpoint} was already read by this query, and its messages cannot be read"
            " again: with mode=live, keep the rows with .cache() before sorting them or using"
            " them twice"
        )
