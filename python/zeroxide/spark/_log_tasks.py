"""The tasks of a read: each fetches one range, and checks that no offset is missing."""

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from ..pipeline import CollectorError, CollectorGone, DataLoss, Refused
from . import _loss
from ._collectors import Info, Opener, is_away, opened
from ._offsets import Range
from ._schema import arrow_schema, conform
from .log_options import LogReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LogPartition", "RangeReader"]

log: logging.Logger = logging.getLogger(__name__)

# Each record batch has a cost in the JVM, whatever its size. Small ones are combined up to this
# size. From a quarter of it on, they are passed unchanged, because combining means copying.
BATCH_ROWS = 16_384
BATCH_BYTES = 8 << 20

# The wait before an unavailable collector is asked again.
PAUSE_S = 0.1


class LogPartition(InputPartition):
    """One range of one log, read by one task."""

    def __init__(self, piece: Range, address: str, *, is_removed: bool = False) -> None:
        super().__init__(piece)
        self.piece = piece
        self.address = address
        # Whether no collector of the option has this log, although all of them answer.
        self.is_removed = is_removed


class RangeReader:
    """The common part of the streaming and the batch reader."""

    options: LogReadOptions
    columns: StructType
    topics: tuple[str, ...]
    opener: Opener

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of one range, in batches exactly as Spark expects them."""
        if not isinstance(partition, LogPartition):
            return  # Spark's replacement for an empty list
        target = arrow_schema(self.columns)
        for batch in _together(self._rows(partition)):
            yield conform(batch, target)

    def _rows(self, partition: LogPartition) -> Iterator["pa.RecordBatch"]:
        """Fetches a range; waits for a collector that disappears, and then requests the rest."""
        piece, options = partition.piece, self.options
        task = _Task(piece, whole=not self.topics)
        away_since: float | None = None
        grace = options.grace_ms / 1000
        while not task.done:
            asked = time.monotonic()
            left = grace if away_since is None else grace - (asked - away_since)
            try:
                with opened(options, partition.address, self.opener, left) as source:
                    task.check(source.info())
                    fetched = source.fetch(
                        task.next,
                        task.piece.end,
                        topics=self.topics or None,
                        partition=piece.partition,
                        headers=options.include_headers,
                        frames=options.include_frames,
                        log_id=piece.log,
                        generation=dict(task.piece.marks).get(task.next),
                    )
                    for batch in task.explained(fetched):
                        # Of a stored batch, the part in the range may have no row of the topics.
                        if batch.num_rows:
                            yield task.take(batch)
                        asked, away_since = time.monotonic(), None
                    task.finish()
            except DataLoss as error:
                if options.fail_on_data_loss:
                    raise
                task.go_on(error)
            except CollectorError as error:
                if not is_away(error):
                    raise
                if away_since is None:
                    away_since = asked
                if time.monotonic() - away_since >= grace:
                    if partition.is_removed:
                        loss = _loss.removed(piece.name, piece.log, task.next)
                        if options.fail_on_data_loss:
                            raise loss from error
                        task.go_on(loss)
                        continue
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
    """The progress of one task."""

    piece: Range
    whole: bool  # every offset must arrive, because no topics are filtered out

    def __post_init__(self) -> None:
        self.next = self.piece.start

    @property
    def done(self) -> bool:
        return self.next >= self.piece.end

    def check(self, info: Info) -> None:
        """Checks, before any row is read, that this is the right log and that it has the whole range."""
        piece, has = self.piece, (info.earliest, info.latest)
        if info.log_id != piece.log:
            raise self._replaced(info.log_id, *has)
        if self.next < info.earliest:
            raise _loss.trimmed(piece.name, piece.log, self.next, *has)
        if info.latest < piece.end:
            raise _loss.moved_back(piece.name, piece.log, piece.end, *has)
        for offset, generation in piece.marks:
            others = info.check(offset, generation)
            if others is not None:
                raise _loss.other_rows(piece.name, piece.log, offset, others, *has)

    def explained(self, fetched: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        """A client's exception, with advice for this query."""
        piece = self.piece
        try:
            yield from fetched
        except Refused as error:
            if error.code != "corrupt":
                raise
            behind = error.detail or piece.end
            raise _loss.damaged(piece.name, piece.log, self.next, behind, str(error)) from error
        except DataLoss as error:
            has = (error.earliest, error.latest)
            if error.log_id != piece.log:
                raise self._replaced(error.log_id, *has) from error
            if error.others is not None:
                raise _loss.other_rows(
                    piece.name, piece.log, error.asked, error.others, *has
                ) from error
            if error.asked < error.earliest:
                raise _loss.trimmed(piece.name, piece.log, error.asked, *has) from error
            raise _loss.moved_back(piece.name, piece.log, error.asked, *has) from error

    def take(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """Checks that nothing is missing before this batch, or in it."""
        piece = self.piece
        offsets = batch.column(batch.schema.get_field_index("offset"))
        first, last = offsets[0].as_py(), offsets[len(offsets) - 1].as_py()
        expected = first == self.next if self.whole else self.next <= first <= last < piece.end
        if not expected:
            raise _loss.not_dense(piece.name, piece.log, self.next, first)
        if self.whole and last - first + 1 != len(offsets):
            numbers = offsets.to_pylist()
            hole = next(n for n, offset in enumerate(numbers, first) if n != offset)
            error = _loss.not_dense(piece.name, piece.log, hole, numbers[hole - first])
            error.earliest = last + 1
            raise error
        self.next = last + 1
        return batch

    def finish(self) -> None:
        """Checks whether the end of the fetch is the end of the range."""
        if self.whole and self.next < self.piece.end:
            raise _loss.cut_short(self.piece.name, self.piece.log, self.next, self.piece.end)
        self.next = self.piece.end

    def go_on(self, error: DataLoss) -> None:
        """Continues after missing rows, if that is allowed."""
        _loss.warn_of(error)
        piece = self.piece
        if error.others is not None:
            # The remaining rows belong to the next batch, which begins with them.
            end = min(max(error.others, self.next), piece.end)
            self.piece = replace(piece, end=end, marks=())
        elif error.log_id == piece.log and error.earliest > self.next:
            self.next = min(error.earliest, piece.end)
        elif error.log_id == piece.log and self.next < error.latest < piece.end:
            self.piece = replace(piece, end=error.latest)
        else:
            self.next = piece.end

    def _replaced(self, now: str, earliest: int, latest: int) -> DataLoss:
        piece = self.piece
        return _loss.replaced(
            piece.name, piece.log, self.next, now, earliest, latest, end=piece.end
        )


def _together(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """Combines record batches to a size that is worth the transfer to the JVM."""
    import pyarrow as pa

    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        its_rows, its_size = batch.num_rows, batch.nbytes
        is_large = its_rows >= BATCH_ROWS // 4 or its_size >= BATCH_BYTES // 4
        is_full = rows + its_rows > BATCH_ROWS or size + its_size > BATCH_BYTES
        if kept and (is_large or is_full):
            yield _one(kept)
            kept, rows, size = [], 0, 0
        if is_large:
            yield batch
            continue
        kept.append(batch)
        rows += its_rows
        size += its_size
    if kept:
        yield _one(kept)


def _one(batches: "list[pa.RecordBatch]") -> "pa.RecordBatch":
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
