"""The tasks of a read: each fetches one range, and checks that no offset is missing."""

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from ..collector.errors import CollectorGone, DataLoss
from . import loss
from .collectors import Info, Opener, opened
from .log_options import LogReadOptions
from .offsets import Range
from .schema import arrow_schema, conform

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LogPartition", "RangeReader"]

log = logging.getLogger(__name__)

# Record batches are made this large before Spark gets them: each costs the JVM something.
BATCH_ROWS = 16_384
BATCH_BYTES = 8 << 20

# Before a collector that is away is asked again.
PAUSE_S = 0.1


class LogPartition(InputPartition):
    """One range of one log, read by one task."""

    def __init__(self, piece: Range, address: str) -> None:
        super().__init__(piece)
        self.piece = piece
        self.address = address


class RangeReader:
    """What the streaming and the batch reader have in common."""

    options: LogReadOptions
    columns: StructType
    topics: tuple[str, ...]
    opener: Opener

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of one range, in batches exactly as Spark wants them."""
        if not isinstance(partition, LogPartition):
            return  # what Spark puts in place of an empty list
        target = arrow_schema(self.columns)
        for batch in _together(self._rows(partition)):
            yield conform(batch, target)

    def _rows(self, partition: LogPartition) -> Iterator["pa.RecordBatch"]:
        """Fetches a range; a collector that goes away is waited for, and asked for the rest."""
        piece, options = partition.piece, self.options
        task = _Task(piece, whole=not self.topics)
        away_since: float | None = None
        while not task.done:
            reached = task.next
            try:
                with opened(options, partition.address, self.opener) as source:
                    if not task.is_there(source.info(), options.fail_on_data_loss):
                        continue
                    for batch in source.fetch(
                        task.next,
                        task.piece.end,
                        topics=self.topics or None,
                        partition=piece.partition,
                        headers=options.include_headers,
                        frames=options.include_frames,
                        log_id=piece.log,
                    ):
                        yield task.take(batch)
                    task.finish()
            except DataLoss as error:
                task.go_on(error, options.fail_on_data_loss)
            except CollectorGone as error:
                if task.next > reached:
                    away_since = None
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since >= options.grace_ms / 1000:
                    raise CollectorGone(
                        f"collector {piece.name} did not deliver rows [{task.next}, {piece.end})"
                        f" within option 'collector.graceMs' ({options.grace_ms} ms): {error}",
                        piece.name,
                        time.monotonic() - away_since,
                    ) from error
                log.warning("zeromq: waiting for collector %s: %s", piece.name, error)
                time.sleep(PAUSE_S)


@dataclass
class _Task:
    """How far one task has come."""

    piece: Range
    whole: bool  # every offset must come, because no topics are sorted out
    skipped: int = 0

    def __post_init__(self) -> None:
        self.next = self.piece.start

    @property
    def done(self) -> bool:
        return self.next >= self.piece.end

    def is_there(self, info: Info, keep: bool) -> bool:
        """Before anything is taken from it: is it the log that was meant, does it have all this?"""
        piece = self.piece
        if info.log_id != piece.log:
            error = loss.replaced(
                piece.name,
                piece.log,
                self.next,
                info.log_id,
                info.earliest,
                info.latest,
                end=piece.end,
            )
            self.go_on(error, keep)
        elif self.next < info.earliest:
            error = loss.trimmed(
                piece.name, piece.log, self.next, min(info.earliest, piece.end), info.latest
            )
            error.earliest = info.earliest
            self.go_on(error, keep)
        elif info.latest < piece.end:
            error = loss.moved_back(piece.name, piece.log, piece.end, info.earliest, info.latest)
            if keep:
                raise error
            log.warning("zeromq: %s", error)
            self.piece = replace(piece, end=max(info.latest, self.next))
        return not self.done

    def take(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """Checks that nothing is missing before this batch, or in it."""
        piece = self.piece
        offsets = batch.column(batch.schema.get_field_index("offset"))
        first, last = offsets[0].as_py(), offsets[len(offsets) - 1].as_py()
        dense = last - first + 1 == len(offsets) and first == self.next
        if (self.whole and not dense) or first < self.next or last >= piece.end:
            raise loss.not_dense(piece.name, piece.log, self.next, first)
        self.next = last + 1
        return batch

    def finish(self) -> None:
        """The fetch has ended; is it the end of the range?"""
        if self.whole and self.next < self.piece.end:
            raise loss.cut_short(self.piece.name, self.piece.log, self.next, self.piece.end)
        self.next = self.piece.end

    def go_on(self, error: DataLoss, keep: bool) -> None:
        """Rows are missing: an error, or a warning and the rows behind them."""
        if keep:
            raise error
        log.warning("zeromq: going on without rows, as failOnDataLoss=false allows: %s", error)
        same_log = error.log_id == self.piece.log
        behind = error.earliest if same_log and error.earliest > self.next else self.piece.end
        self.next = min(behind, self.piece.end)


def _together(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """Record batches of a size that is worth their way to the JVM."""
    import pyarrow as pa

    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if kept and (rows + batch.num_rows > BATCH_ROWS or size + batch.nbytes > BATCH_BYTES):
            yield _one(kept)
            kept, rows, size = [], 0, 0
        kept.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if kept:
        yield _one(kept)


def _one(batches: "list[pa.RecordBatch]") -> "pa.RecordBatch":
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
