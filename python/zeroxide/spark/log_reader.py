"""The replayable source: ranges of collectors' logs, in streams and in batches.

Spark fixes where a batch ends before any task reads, and keeps that in its checkpoint; what
lies between two offsets never changes in a log, so it may be read as often as Spark likes.
The driver only decides how far to go. Tasks fetch what they were given, and check that no
offset is missing.
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

from .collectors import Collectors, Info, Opener, open_log
from .log_options import LogReadOptions
from .log_tasks import LogPartition, RangeReader
from .offsets import Offsets, Position, Range, dump, load, ranges, share
from .planning import mean_size, narrow, newest, pieces, present, resolve

__all__ = ["LogBatchReader", "PlainStreamReader", "PushdownReader", "StreamReader"]

# How many batches the noted position stays behind: people do delete the newest entry of a
# checkpoint, and what it stood for must still be there.
BATCHES_BEHIND = 2


class LogStreamReader(RangeReader, DataSourceStreamReader):
    """The driver's side of ``spark.readStream``.

    One object lives as long as the query runs, in a process of its own. What it forgets with
    it, Spark remembers: the offsets.
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
        # Where the last batch ended, for a Spark that does not say.
        self._position: Offsets | None = None
        self._began = False
        self._first: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins; the same whenever it is asked."""
        if self._first is not None:
            return self._first
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
            # From now on its rows are kept, also those of a first batch that takes long.
            for name, offset in starts.items():
                self._reach().commit(name, self.options.group, offset)
        return self._first

    def latest(self, start: Offsets, *, limited: bool) -> Offsets:
        """Where the batch after `start` ends."""
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
        """The end of all that was seen at the last trigger."""
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
        """The query shall end at what there is now."""
        self._target = present(self._reach().look(wait=True))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch."""
        first, last = load(start), load(end)
        self._position = last
        reach = self._reach()
        found = ranges(first, last)
        if found and not self._began:
            self._began = True
            self._note_beginning(found)
        addresses = self._addresses(found)
        return [
            LogPartition(piece, addresses.get(piece.log) or reach.address(piece.name))
            for piece in pieces(found, self.options)
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Spark is done with everything before `end`."""
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
        """The query has ended; Spark does not always say so."""
        if self._collectors is not None:
            self._collectors.close()
            self._collectors = None

    def __getstate__(self) -> dict[str, Any]:
        # Tasks get a copy, which has nothing to do with the driver's connections.
        return self.__dict__ | {"_collectors": None, "_seen": {}, "_target": None}

    def _marked(self, start: Offsets, end: Offsets) -> Offsets:
        """The end of a query's first batch says where it begins, as Spark does not keep that.

        To repeat the batch, Spark asks a new reader for the first offset, which may be another.
        """
        if self._first is None or start != load(self._first):
            return end
        before = {position.log: position.offset for position in start.values()}
        return {
            name: replace(position, begin=before[position.log])
            if position.begin is None and position.offset > before.get(position.log, math.inf)
            else position
            for name, position in end.items()
        }

    def _back(self, name: str, position: Position, rows: int) -> Position:
        """So many rows before a position."""
        infos = self._target or self._seen
        offset = position.offset - rows
        return replace(position, offset=offset, generation=infos[name].generation(offset))

    def _reach(self) -> Collectors:
        # Not in the constructor: the reader is also made where it is only sent to tasks.
        if self._collectors is None:
            self._collectors = Collectors(self.options, self.opener)
        return self._collectors

    def _addresses(self, found: Iterable[Range]) -> dict[str, str]:
        """Where logs are now whose collectors have other names than when the batch was made."""
        if all(piece.name in self.options.endpoints for piece in found):
            return {}
        infos = present(self._reach().look())
        return {info.log_id: self._reach().address(name) for name, info in infos.items()}

    def _note_beginning(self, found: Iterable[Range]) -> None:
        """Runs that end after a batch or two would never come to note a position.

        Where the batch before this one began is not known; it is taken to have been as large.
        """
        if self.options.group is None:
            return
        noted = {one.log: one.offset for one in load(self._first).values()} if self._first else {}
        for piece in found:
            # A first batch that is repeated: what was noted as the first offset is behind it.
            too_far = noted.get(piece.log, 0) > piece.start
            if piece.name in self.options.endpoints and (piece.start > piece.rows or too_far):
                behind = max(piece.start - piece.rows, 0)
                self._reach().commit(piece.name, self.options.group, behind)

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
        """How many rows of each collector the limits let through."""
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
                # At least one row each, or a row above the limit would hold the query for good.
                allowed[name] = min(count, max(most, 1))
        return allowed


class PlainStreamReader(LogStreamReader):
    """For a Spark that only asks how far one could go: 4.0 and 4.1."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Where the next batch ends."""
        # A query that goes on was asked for the partitions of its last batch, first of all; a new
        # one will be asked for its first offset, but only afterwards.
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
        """For a Spark that says where a batch begins and how much it may have: 4.2 and newer."""

        def getDefaultReadLimit(self) -> ReadLimit:
            """The limit of the options; `latestOffset` knows the other one if there are two."""
            if self.options.max_offsets is not None:
                return ReadMaxRows(self.options.max_offsets)
            if self.options.max_bytes is not None:
                return ReadMaxBytes(self.options.max_bytes)
            return ReadAllAvailable()

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            """Where the next batch ends."""
            # Trigger.Once wants everything at once, whatever the options say.
            everything = isinstance(limit, ReadAllAvailable)
            has_limit = not isinstance(self.getDefaultReadLimit(), ReadAllAvailable)
            return dump(self.latest(load(start), limited=not (everything and has_limit)))

        def reportLatestOffset(self) -> dict[str, Any] | None:
            """What progress shows beside the end of the batch; the difference is the lag."""
            return self.reported()

else:
    StreamReader = PlainStreamReader  # type: ignore[misc, assignment]


class LogBatchReader(RangeReader, DataSourceReader):
    """``spark.read``: what there is when the query is planned."""

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
        """The ranges that are left when filters are known."""
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
                    f"of collector {name} the options 'starting...' mean offset {first[name]}, and"
                    f" 'ending...' mean offset {last[name]}, which is before that"
                )
        return [
            Range(name, infos[name].log_id, number, first[name], last[name])
            for number, name in enumerate(infos)
            if first[name] < last[name]
        ]


class PushdownReader(LogBatchReader):
    """A batch that reads less where filters allow it.

    All filters stay with Spark, which applies them to what is read.
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
        """Takes note of what narrows a range, and gives all of it back."""
        for one in filters:
            self._note(one)
            yield one

    def narrowed(self, collectors: Collectors, found: list[Range]) -> list[Range]:
        """The ranges that these filters leave."""
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
