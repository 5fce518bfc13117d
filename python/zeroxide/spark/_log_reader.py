"""The replayable source: ranges of collectors' logs, in streams and in batches.

Before any task reads, Spark fixes the end of a batch and stores it in its checkpoint. The rows
between two offsets of a log never change, so Spark may read them any number of times. The
driver only decides the range. Tasks fetch their ranges, and check that no offset is missing.
"""

import math
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ._collectors import Collectors, Info, Opener, open_log
from ._log_tasks import LogPartition, RangeReader
from ._offsets import Offsets, Position, Range, dump, load, ranges, share
from ._planning import mean_size, narrow, newest, pieces, present, resolve
from .log_options import LogReadOptions

__all__ = ["LogBatchReader", "PlainStreamReader", "PushdownReader", "StreamReader"]

# The number of batches by which the recorded position lags: if the newest entry of a checkpoint
# is deleted, its rows must still exist.
BATCHES_BEHIND = 2


class LogStreamReader(RangeReader, DataSourceStreamReader):
    """The driver's side of ``spark.readStream``.

    One object lives as long as the query runs, in a separate process. Spark stores the offsets,
    so the object needs no other state.
    """

    def __init__(
        self, options: LogReadOptions, schema: StructType, opener: Opener = open_log
    ) -> None:
        self.options = options
        self.columns = schema
        self.topics: tuple[str, ...] = options.topics
        self.opener = opener
        self._collectors: Collectors | None = None
        self._seen: dict[str, Info] = {}
        self._target: dict[str, Info] | None = None
        self._last_trigger: float | None = None
        self._ends: deque[Offsets] = deque(maxlen=BATCHES_BEHIND + 1)
        # The end of the last batch, for versions of Spark that do not pass it.
        self._position: Offsets | None = None
        self._began = False
        self._first: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """The start of a new query; the same at every call."""
        if self._first is not None:
            return self._first
        # With AvailableNow, the end is fixed before Spark asks for the start, which must not be later.
        infos = self._target
        if infos is None:
            infos = present(self._reach().look(wait=True))
        starts = resolve(
            self._reach(),
            infos,
            self.options.starting,
            self.options.starting_timestamp,
            "startingOffsets",
            self.options.fail_on_data_loss,
        )
        self._first = dump(
            {
                name: Position(
                    infos[name].log_id,
                    offset,
                    number,
                    generation=infos[name].generation(offset),
                )
                for number, (name, offset) in enumerate(starts.items())
            }
        )
        if self.options.group is not None:
            # From now on its rows are kept, even those of a first batch that takes long. Spark also
            # asks readers of restarted queries, whose rows may begin earlier than this offset.
            for name, offset in starts.items():
                self._reach().hold(name, self.options.group, offset)
        return self._first

    def latest(self, start: Offsets, *, limited: bool) -> Offsets:
        """The end of the batch after `start`."""
        if self._target is not None:
            infos: Mapping[str, Info | None] = self._target
        else:
            infos = self._reach().look()
        self._seen.update(present(infos))
        end = newest(start, infos, self.options.fail_on_data_loss)
        if not limited:
            return self._marked(start, end)
        found = ranges(start, end)
        rows = {piece.name: piece.rows for piece in found}
        if self._wait_for_more(sum(rows.values())):
            return start
        most = self._allowed(found)
        end = {
            name: self._back(name, position, rows[name] - most[name])
            if most.get(name) != rows.get(name)
            else position
            for name, position in end.items()
        }
        return self._marked(start, end)

    def reported(self) -> dict[str, Any] | None:
        """The ends of the logs at the last trigger."""
        if not self._seen:
            return None
        numbers = {one.log: one.partition for one in (self._position or {}).values()}
        return dump(
            {
                name: Position(info.log_id, info.latest, numbers.get(info.log_id, number))
                for number, (name, info) in enumerate(self._seen.items())
            }
        )

    def prepareForTriggerAvailableNow(self) -> None:
        """Limits the query to the rows that exist now."""
        self._target = present(self._reach().look(wait=True))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch."""
        first, last = load(start), load(end)
        self._position = last
        reach = self._reach()
        found = ranges(first, last)
        names = self._names(found)
        if found and not self._began:
            self._began = True
            self._note_beginning(found, names, first)
        return [
            LogPartition(
                piece,
                reach.address(names.get(piece.log, piece.name)),
                is_removed=piece.log not in names and self._is_removed(piece.name),
            )
            for piece in pieces(found, self.options)
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Called when Spark has processed all rows before `end`."""
        if self.options.group is None:
            return
        self._ends.append(load(end))
        if len(self._ends) <= BATCHES_BEHIND:
            return
        for name, position in self._ends[0].items():
            seen = self._seen.get(name)
            if seen is not None and seen.log_id == position.log:
                self._reach().commit(name, self.options.group, position.offset, position.generation)

    def stop(self) -> None:
        """Called when the query ends, but not by every version of Spark."""
        if self._collectors is not None:
            self._collectors.close()
            self._collectors = None

    def __getstate__(self) -> dict[str, Any]:
        # Tasks get a copy without the driver's connections.
        return self.__dict__ | {"_collectors": None, "_seen": {}, "_target": None}

    def _marked(self, start: Offsets, end: Offsets) -> Offsets:
        """Adds the start of a query's first batch to its end, because Spark does not store the start.

        To repeat the batch, Spark asks a new reader for the first offset, which may differ.
        """
        before = {position.log: position.offset for position in start.values()}
        if self.options.group is not None:
            old = {position.log: position for position in start.values()}
            end = {name: _since(position, old.get(position.log)) for name, position in end.items()}
        if self._first is None or start != load(self._first):
            return end
        return {
            name: replace(position, begin=before[position.log])
            if position.begin is None and position.offset > before.get(position.log, math.inf)
            else position
            for name, position in end.items()
        }

    def _back(self, name: str, position: Position, rows: int) -> Position:
        """The position this many rows before another."""
        infos = self._target or self._seen
        offset = position.offset - rows
        return replace(position, offset=offset, generation=infos[name].generation(offset))

    def _reach(self) -> Collectors:
        # Not in the constructor, because the reader is also created just to be sent to tasks.
        if self._collectors is None:
            self._collectors = Collectors(self.options, self.opener)
        return self._collectors

    def _names(self, found: Iterable[Range]) -> dict[str, str]:
        """The collectors that have these logs now: they may have changed since the batch was made."""

        def is_there(piece: Range) -> bool:
            seen = self._seen.get(piece.name)
            return seen is not None and seen.log_id == piece.log

        if all(map(is_there, found)):
            return {piece.log: piece.name for piece in found}
        infos = present(self._reach().look())
        return {info.log_id: name for name, info in infos.items()}

    def _is_removed(self, name: str) -> bool:
        """Whether a log that no listed collector has is not that of an unavailable one."""
        return name not in self.options.endpoints and None not in self._reach().look().values()

    def _note_beginning(
        self, found: Iterable[Range], names: Mapping[str, str], start: Offsets
    ) -> None:
        """Records a position in runs that end after a batch or two, which otherwise never would.

        It is the start of the previous batch, if that is known.
        """
        if self.options.group is None:
            return
        since = {position.log: position.since for position in start.values()}
        for piece in found:
            name = names.get(piece.log)
            if name is None:
                continue
            before = since.get(piece.log)
            if before:
                self._reach().commit(name, self.options.group, before)
            else:
                # Spark repeats this batch if it fails, so its rows must be kept in any case.
                kept = piece.start if before is None else before
                self._reach().hold(name, self.options.group, kept)

    def _wait_for_more(self, rows: int) -> bool:
        least = self.options.min_offsets
        if least is None or rows >= least or self._target is not None:
            late = False
        else:
            now = time.monotonic()
            last = self._last_trigger
            late = last is not None and (now - last) * 1000 < self.options.max_delay_ms
        if rows and not late:
            self._last_trigger = time.monotonic()
        return late

    def _allowed(self, found: list[Range]) -> dict[str, int]:
        """The number of rows of each collector that the limits allow."""
        allowed = {piece.name: piece.rows for piece in found}
        if self.options.max_offsets is not None:
            allowed = share(allowed, self.options.max_offsets)
        if self.options.max_bytes is not None:
            means = {name: mean_size(self._seen.get(name)) for name in allowed}
            total = sum(count * means[name] for name, count in allowed.items())
            for piece in found:
                name, count = piece.name, allowed[piece.name]
                size = int(self.options.max_bytes * (count * means[name] / total)) if total else 0
                end = self._reach().offset_after(name, piece.start, size)
                most = int(size / means[name]) if end is None else end - piece.start
                # At least one row each, or a row above the limit would block the query permanently.
                allowed[name] = min(count, max(most, 1))
        return allowed


def _since(position: Position, before: Position | None) -> Position:
    """The position with the start of the last batch that had rows."""
    began = position.begin
    if before is not None and position.offset == before.offset:
        return replace(position, since=before.since)
    if began is None and before is not None:
        began = before.offset
    return replace(position, since=began)


class PlainStreamReader(LogStreamReader):
    """For Spark 4.0 and 4.1, which only ask for the latest offset."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Where the next batch ends."""
        # For a continued query, Spark first requests the partitions of its last batch. For a new
        # query, it requests the first offset, but only after this call.
        if self._position is None:
            self._position = load(self.initialOffset())
        return dump(self.latest(self._position, limited=True))


if hasattr(DataSourceStreamReader, "getDefaultReadLimit"):
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    class StreamReader(LogStreamReader, SupportsTriggerAvailableNow):
        """For Spark 4.2 and newer, which pass the start and the limit of a batch."""

        def getDefaultReadLimit(self) -> ReadLimit:
            """The limit in the options; if there are two, `latestOffset` applies the other one."""
            if self.options.max_offsets is not None:
                return ReadMaxRows(self.options.max_offsets)
            if self.options.max_bytes is not None:
                return ReadMaxBytes(self.options.max_bytes)
            return ReadAllAvailable()

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            """Where the next batch ends."""
            # Trigger.Once reads everything at once, whatever the options are.
            everything = isinstance(limit, ReadAllAvailable)
            has_limit = not isinstance(self.getDefaultReadLimit(), ReadAllAvailable)
            return dump(self.latest(load(start), limited=not (everything and has_limit)))

        def reportLatestOffset(self) -> dict[str, Any] | None:
            """The value that progress shows next to the end of the batch; the difference is the lag."""
            return self.reported()

else:
    StreamReader = PlainStreamReader  # type: ignore[misc, assignment]


class LogBatchReader(RangeReader, DataSourceReader):
    """``spark.read``: the rows that exist when the query is planned."""

    def __init__(
        self, options: LogReadOptions, schema: StructType, opener: Opener = open_log
    ) -> None:
        self.options = options
        self.columns = schema
        self.topics: tuple[str, ...] = options.topics
        self.opener = opener

    def partitions(self) -> list[InputPartition]:
        """The tasks."""
        collectors = Collectors(self.options, self.opener)
        try:
            found = self.narrowed(collectors, self._ranges(collectors))
            return [
                LogPartition(piece, collectors.address(piece.name))
                for piece in pieces(found, self.options)
            ]
        finally:
            collectors.close()

    def narrowed(self, collectors: Collectors, found: list[Range]) -> list[Range]:
        """The ranges that remain after the filters."""
        return found

    def _ranges(self, collectors: Collectors) -> list[Range]:
        options = self.options
        infos = present(collectors.look(wait=True))
        keep = options.fail_on_data_loss
        first = resolve(
            collectors,
            infos,
            options.starting,
            options.starting_timestamp,
            "startingOffsets",
            keep,
        )
        last = resolve(
            collectors, infos, options.ending, options.ending_timestamp, "endingOffsets", keep
        )
        for name in infos:
            if first[name] > last[name]:
                raise ValueError(
                    f"for collector {name}, the options 'starting...' mean offset {first[name]}, but"
                    f" 'ending...' mean offset {last[name]}, which is before that"
                )
        return [
            Range(name, infos[name].log_id, number, first[name], last[name])
            for number, name in enumerate(infos)
            if first[name] < last[name]
        ]


class PushdownReader(LogBatchReader):
    """A batch that reads less if filters allow it.

    All filters also stay with Spark, which applies them to the rows.
    """

    topics: tuple[str, ...]

    def __init__(
        self, options: LogReadOptions, schema: StructType, opener: Opener = open_log
    ) -> None:
        super().__init__(options, schema, opener)
        self._bounds: list[tuple[str, str, Any]] = []
        if not hasattr(DataSourceReader, "pushFilters"):
            raise ValueError("option 'filterPushdown' needs pyspark 4.1 or newer")

    def pushFilters(self, filters: "list[datasource.Filter]") -> "Iterable[datasource.Filter]":
        """Keeps the filters that narrow a range, and returns all filters to Spark."""
        for one in filters:
            self._note(one)
            yield one

    def narrowed(self, collectors: Collectors, found: list[Range]) -> list[Range]:
        """The ranges that remain after these filters."""
        for column, comparison, value in self._bounds:
            found = [narrow(piece, column, comparison, value, collectors) for piece in found]
        return [piece for piece in found if piece.rows > 0]

    def _note(self, one: "datasource.Filter") -> None:
        kinds = {
            datasource.EqualTo: "=",
            datasource.GreaterThan: ">",
            datasource.GreaterThanOrEqual: ">=",
            datasource.LessThan: "<",
            datasource.LessThanOrEqual: "<=",
        }
        column = getattr(one, "attribute", ())
        comparison = kinds.get(type(one))
        value = getattr(one, "value", None)
        if column in (("offset",), ("partition",), ("receive_time",)) and comparison is not None:
            self._bounds.append((column[0], comparison, value))
        elif column == ("topic",) and not self.topics:
            if comparison == "=" or isinstance(one, datasource.StringStartsWith):
                self.topics = (str(value),)
            elif isinstance(one, datasource.In) and None not in one.value:
                self.topics = tuple(map(str, one.value))
