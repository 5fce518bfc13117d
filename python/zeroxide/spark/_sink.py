"""The writers: rows are sent as messages of PUSH, DEALER or PUB sockets in the tasks.

A completed task has handed every row to the kernel. A task that fails halfway
has sent some of its rows, and its next attempt sends all of them. Each row arrives at least
once or, over PUB, at most once at each subscriber. ``includeHeaders`` adds the row and the
attempt to every message, for receivers that drop repetitions.
"""

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

import zeroxide as zmq

from . import _sockets
from ._framing import SPARK_HEADER, Outgoing, join, least_framing, to_rows
from ._ipc import to_stream
from ._schema import check_writable
from ._writers import BatchWriter, StreamWriter, Task, Writer
from .options import ENVELOPE, SINGLE, TOPIC_FIRST, WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Sent", "SocketStreamWriter", "SocketWriter"]

log: logging.Logger = logging.getLogger(__name__)

# The interval of checks for the peers.
LOOK_S = 0.005

# The socket of a collector, in the reason why one of another type cannot connect.
COLLECTORS = '"ROUTER"'


@dataclass
class Sent(WriterCommitMessage):
    """The counts of one task."""

    rows: int
    messages: int
    partition: int
    attempt: int


class _Sender(Writer):
    """The common part of both writers in the tasks."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(schema)
        self.options = options
        # Replaces the query's id where Spark has none: in a batch.
        self.job: str = uuid.uuid4().hex
        if options.frame == "arrow":
            self.columns: list[str] = []
            self.framing = SINGLE if options.topic is None else TOPIC_FIRST
            return
        self.columns = check_writable(schema)
        if options.topic is not None and "topic" in self.columns:
            self.columns.remove("topic")
        least = least_framing(
            self.columns, topic=options.topic is not None, header=options.include_headers
        )
        self.framing = options.framing or least
        order = (SINGLE, TOPIC_FIRST, ENVELOPE)
        if order.index(self.framing) < order.index(least):
            raise ValueError(
                f"framing={self.framing} has no place for all of {', '.join(self.columns)}"
                f"{' and the topic' if options.topic is not None else ''}: it takes {least}"
            )

    def write_batches(self, batches: Iterator["pa.RecordBatch"]) -> Sent:
        """Sends all rows of one task, and returns when the kernel has taken them."""
        task = Task.current()
        sent = Sent(0, 0, task.partition, task.attempt)
        # Without rows, the task does not wait for peers.
        first = next(batches, None)
        if first is None:
            return sent
        options = self.options
        kind, settings = _socket(options)
        with _sockets.opened(
            kind,
            options.attachment,
            timeout_ms=options.flush_timeout_ms,
            linger_ms=options.flush_timeout_ms,
            settings=settings,
        ) as socket:
            _wait_for_peers(socket, options)
            mark = self._mark(task)
            for batch in chain([first], batches):
                messages = self._messages(batch, mark, sent.rows)
                _send(socket, messages, options, sent)
                sent.rows += batch.num_rows
            _flush(socket, options, sent)
        return sent

    def finished(self, messages: list[WriterCommitMessage | None], what: str) -> None:
        """Logs in the driver what was sent."""
        sent = [message for message in messages if isinstance(message, Sent)]
        log.info("zeromq: %s sent %d rows", what, sum(message.rows for message in sent))

    def failed(self, messages: list[WriterCommitMessage | None], what: str) -> None:
        """Logs in the driver what was sent and cannot be undone."""
        sent = [message for message in messages if isinstance(message, Sent)]
        log.warning(
            "zeromq: %s failed after at least %d rows had been sent, which cannot be taken back",
            what,
            sum(message.rows for message in sent),
        )

    def _messages(self, batch: "pa.RecordBatch", mark: str | None, first_row: int) -> Outgoing:
        if self.options.frame == "arrow":
            metadata = {} if mark is None else {SPARK_HEADER: f"{mark},{first_row}".encode()}
            body = to_stream(batch, metadata)
            topic = self.options.topic
            return [body] if topic is None else [(topic, body)]
        columns = to_rows(batch, self.columns)
        marks = None
        if mark is not None:
            numbers = range(first_row, first_row + batch.num_rows)
            marks = [f"{mark},{number}".encode() for number in numbers]
        return join(columns, self.framing, self.options.topic, marks)

    def _mark(self, task: Task) -> str | None:
        """The start of each header, before the row's number; None without headers."""
        if not self.options.include_headers:
            return None
        query = self.options.query_name or task.query or self.job
        batch = task.batch if self.options.batch_id is None else self.options.batch_id
        return f"{query},{batch or 0},{task.partition},{task.attempt}"


class SocketWriter(_Sender, BatchWriter):
    """Writes a batch query's rows."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called when all tasks are done, and all rows have been handed to the kernel."""
        self.finished(messages, "the write")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called when a task failed permanently."""
        self.failed(messages, "the write")


class SocketStreamWriter(_Sender, StreamWriter):
    """Writes a streaming query's rows, batch after batch."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called when all tasks of this batch are done, and all rows have been handed to the kernel."""
        self.finished(messages, f"batch {batchId}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Called when a task of this batch failed permanently."""
        self.failed(messages, f"batch {batchId}")


def _socket(options: WriteOptions) -> tuple[int, list[tuple[int, int | bytes]]]:
    settings: list[tuple[int, int | bytes]] = [(int(zmq.SNDTIMEO), options.flush_timeout_ms)]
    if options.socket == "pub":
        # For a slow subscriber, it waits as long as a flush would, instead of dropping
        # messages.
        return int(zmq.PUB), [*settings, (int(zmq.XPUB_NODROP), 1)]
    # No message is queued for a peer that is not connected, and may never be.
    kind = zmq.DEALER if options.socket == "dealer" else zmq.PUSH
    return int(kind), [*settings, (int(zmq.IMMEDIATE), 1)]


def _wait_for_peers(socket: zmq.Socket, options: WriteOptions) -> None:
    deadline = time.monotonic() + options.flush_timeout_ms / 1000
    while True:
        # A publisher receives only subscriptions from its peers.
        there = sum(
            peer["connected"] and (options.socket != "pub" or peer["received"] > 0)
            for peer in socket.stats()["peers"]
        )
        if there >= options.wait_peers:
            return
        if time.monotonic() >= deadline:
            # Its endpoints, and why those that failed did.
            state = repr(socket).partition(": ")[2].removesuffix(">")
            hint = ": to write to a collector's log, set option 'socket' to 'log'"
            raise TimeoutError(
                f"{there} of {options.wait_peers} peers (option 'waitPeers') were at {state}"
                f" after {options.flush_timeout_ms} ms (option 'flushTimeoutMs'); nothing was"
                f" sent{hint if COLLECTORS in state else ''}"
            )
        time.sleep(LOOK_S)


def _send(socket: zmq.Socket, messages: Outgoing, options: WriteOptions, sent: Sent) -> None:
    try:
        taken = socket.send_batch(messages)
        while taken < len(messages):
            taken += socket.send_batch(messages[taken:])
    except zmq.Again as error:
        raise TimeoutError(
            f"no peer at {', '.join(options.attachment.endpoints)} took a message for"
            f" {options.flush_timeout_ms} ms (option 'flushTimeoutMs'), after at least"
            f" {sent.messages} messages of this task"
        ) from error
    sent.messages += taken


def _flush(socket: zmq.Socket, options: WriteOptions, sent: Sent) -> None:
    try:
        socket.flush(options.flush_timeout_ms)
    except zmq.Again as error:
        raise TimeoutError(
            f"{error} after {options.flush_timeout_ms} ms (option 'flushTimeoutMs'), of"
            f" {sent.messages} messages of this task"
        ) from error
