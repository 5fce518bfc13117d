"""The replayable source: ranges of collectors' logs, in streams and in batches.

Spark fixes where a batch ends before any task reads, and keeps that in its checkpoint; what
lies between two offsets never changes in a log, so it may be read as often as Spark likes.
The driver only decides how far to go. Tasks fetch what they were given, and check that no
offset is missing.
"""

import logging
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ..collector.errors import CollectorGone, DataLoss
from . import loss
from .collectors import Collectors, Info, Opener, open_log, opened
from .log_options import EARLIEST, LATEST, LogReadOptions, Where
from .offsets import Offsets, Position, Range, dump, load, ranges, share, split
from .schema import arrow_schema, conform

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LogBatchReader", "LogPartition", "LogStreamReader", "PushdownReader"]

log = logging.getLogger(__name__)

# Record batches are made this large before Spark gets them: each costs the JVM something.
BATCH_ROWS = 16_384
BATCH_BYTES = 8 << 20

# Without `minPartitions`, no task is started for fewer rows than this.
TASK_ROWS = 50_000

# How many batches the noted position stays behind: people do delete the newest entry of a
# checkpoint, and what it stood for must still be there.
BATCHES_BEHIND = 2

PAUSE_S = 0.1


class LogPartition(InputPartition):
    """One range of one log, read by one task."""

    def __init__(self, piece: Range, address: str) -> None:
        super().__init__(piece)
        self.piece = piece
        self.address = address


class _Reader:
    """What the streaming and the batch reader have in common: the tasks."""

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
                    task.check_log(source.info(), options.fail_on_data_loss)
                    if task.done:
                        break
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


class LogStreamReader(_Reader, DataSourceStreamReader):
    """The driver's side of ``spark.readStream``.

    One object lives as long as the query runs, in a process of its own. What it forgets with
    it, Spark remembers: the offsets.
    """

    def __init__(
        self, options: LogReadOptions, schema: StructType, opener: Opener = open_log
    ) -> None:
        self.options = options
        self.columns = schema
        self.topics = options.topics
        self.opener = opener
        self._collectors: Collectors | None = None
        self._seen: dict[str, Info] = {}
        self._target: dict[str, Info] | None = None
        self._last_trigger: float | None = None
        self._ends: deque[Offsets] = deque(maxlen=BATCHES_BEHIND + 1)
        # Where the last batch ended, for a Spark that does not say.
        self._position: Offsets | None = None
        self._began = False

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        infos = _present(self._reach().look(wait=True))
        starts = _resolve(
            self._reach(),
            infos,
            self.options.starting,
            self.options.starting_timestamp,
            "startingOffsets",
            self.options.fail_on_data_loss,
        )
        self._position = {
            name: Position(infos[name].log_id, offset, number)
            for number, (name, offset) in enumerate(starts.items())
        }
        return dump(self._position)

    def latest(self, start: Offsets, *, limited: bool) -> Offsets:
        """Where the batch after `start` ends."""
        if self._target is not None:
            infos: Mapping[str, Info | None] = self._target
        else:
            infos = self._reach().look()
        self._seen.update(_present(infos))
        end = _newest(start, infos, self.options.fail_on_data_loss)
        if not limited:
            return end
        rows = {piece.name: piece.rows for piece in ranges(start, end)}
        if self._wait_for_more(sum(rows.values())):
            return start
        most = self._allowed(rows)
        return {
            name: replace(position, offset=position.offset - (rows[name] - most[name]))
            if name in rows
            else position
            for name, position in end.items()
        }

    def newest(self) -> dict[str, Any] | None:
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
        self._target = _present(self._reach().look(wait=True))

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
            for piece in _pieces(found, self.options)
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
                self._reach().commit(name, self.options.group, position.offset)

    def stop(self) -> None:
        """The query has ended; Spark does not always say so."""
        if self._collectors is not None:
            self._collectors.close()
            self._collectors = None

    def __getstate__(self) -> dict[str, Any]:
        # Tasks get a copy, which has nothing to do with the driver's connections.
        return self.__dict__ | {"_collectors": None, "_seen": {}, "_target": None}

    def _reach(self) -> Collectors:
        # Not in the constructor: the reader is also made where it is only sent to tasks.
        if self._collectors is None:
            self._collectors = Collectors(self.options, self.opener)
        return self._collectors

    def _addresses(self, found: Iterable[Range]) -> dict[str, str]:
        """Where logs are now whose collectors have other names than when the batch was made."""
        if all(piece.name in self.options.endpoints for piece in found):
            return {}
        infos = _present(self._reach().look())
        return {info.log_id: self._reach().address(name) for name, info in infos.items()}

    def _note_beginning(self, found: Iterable[Range]) -> None:
        """Runs that end after a batch or two would never come to note a position.

        Where the batch before this one began is not known; it is taken to have been as large.
        """
        if self.options.group is None:
            return
        for piece in found:
            if piece.name in self.options.endpoints and piece.start > piece.rows:
                self._reach().commit(piece.name, self.options.group, piece.start - piece.rows)

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

    def _allowed(self, rows: Mapping[str, int]) -> dict[str, int]:
        """How many rows of each collector the limits let through."""
        allowed = dict(rows)
        if self.options.max_offsets is not None:
            allowed = share(allowed, self.options.max_offsets)
        if self.options.max_bytes is not None:
            means = {name: _mean_size(self._seen.get(name)) for name in rows}
            sizes = {name: max(round(count * means[name]), 1) for name, count in allowed.items()}
            for name, size in share(sizes, self.options.max_bytes).items():
                # At least one row each, or a row above the limit would hold the query for good.
                most = max(int(size / means[name]), min(1, allowed[name]))
                allowed[name] = min(allowed[name], most)
        return allowed


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
            return self.newest()

else:

    class StreamReader(LogStreamReader):  # type: ignore[no-redef]
        """For Spark 4.0 and 4.1, which only ask how far one could go."""

        def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
            """Where the next batch ends."""
            # A new query was asked for its first offset, and one that goes on was asked for the
            # partitions of its last batch; so where this batch begins is known either way.
            if self._position is None:
                infos = _present(self._reach().look(wait=True))
                return dump(
                    {
                        name: Position(info.log_id, info.latest, number)
                        for number, (name, info) in enumerate(infos.items())
                    }
                )
            return dump(self.latest(self._position, limited=True))


class LogBatchReader(_Reader, DataSourceReader):
    """``spark.read``: what there is when the query is planned."""

    def __init__(
        self, options: LogReadOptions, schema: StructType, opener: Opener = open_log
    ) -> None:
        self.options = options
        self.columns = schema
        self.topics = options.topics
        self.opener = opener

    def partitions(self) -> list[InputPartition]:
        """The tasks."""
        collectors = Collectors(self.options, self.opener)
        try:
            found = self.narrowed(collectors, self._ranges(collectors))
            return [
                LogPartition(piece, collectors.address(piece.name))
                for piece in _pieces(found, self.options)
            ]
        finally:
            collectors.close()

    def narrowed(self, collectors: Collectors, found: list[Range]) -> list[Range]:
        """The ranges that are left when filters are known."""
        return found

    def _ranges(self, collectors: Collectors) -> list[Range]:
        options = self.options
        infos = _present(collectors.look(wait=True))
        keep = options.fail_on_data_loss
        first = _resolve(
            collectors,
            infos,
            options.starting,
            options.starting_timestamp,
            "startingOffsets",
            keep,
        )
        last = _resolve(
            collectors, infos, options.ending, options.ending_timestamp, "endingOffsets", keep
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
            found = [_narrow(piece, column, comparison, value, collectors) for piece in found]
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

    def check_log(self, info: Info, keep: bool) -> None:
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


def _present(infos: Mapping[str, Info | None]) -> dict[str, Info]:
    return {name: info for name, info in infos.items() if info is not None}


def _newest(start: Offsets, infos: Mapping[str, Info | None], keep: bool) -> Offsets:
    """The end of all logs, checked against where the query stands in them."""
    by_log = {position.log: position for position in start.values()}
    serving: dict[str, str] = {}
    for name, info in _present(infos).items():
        if info.log_id in serving:
            raise ValueError(
                f"option 'endpoint' has one collector twice: {serving[info.log_id]} and {name} are"
                f" both log {info.log_id}"
            )
        serving[info.log_id] = name
    numbers = [position.partition for position in start.values()]
    free = max(numbers, default=-1) + 1
    end: Offsets = {}
    for name, info in infos.items():
        old = start.get(name)
        if info is None:
            if old is not None:
                end[name] = old
            continue
        position = by_log.get(info.log_id)
        if position is not None:
            end[name] = _onward(name, position, info, keep)
        elif old is not None and old.log not in serving:
            error = loss.replaced(
                name, old.log, old.offset, info.log_id, info.earliest, info.latest
            )
            _refuse(error, keep)
            end[name] = Position(info.log_id, info.latest, old.partition, info.earliest)
        else:
            log.info("zeromq: collector %s is new to this query: from its earliest row on", name)
            end[name] = Position(info.log_id, info.latest, free, info.earliest)
            free += 1
    someone_is_away = any(info is None for info in infos.values())
    for name, position in start.items():
        if position.log in serving or name in infos:
            continue
        if someone_is_away:
            # It may be the one that is away, under another name.
            end[name] = position
        else:
            _refuse(loss.removed(name, position.log, position.offset), keep)
    return end


def _onward(name: str, position: Position, info: Info, keep: bool) -> Position:
    here = replace(position, begin=None)
    if position.offset < info.earliest:
        _refuse(loss.trimmed(name, info.log_id, position.offset, info.earliest, info.latest), keep)
        return replace(here, offset=info.latest, begin=info.earliest)
    if position.offset > info.latest:
        _refuse(
            loss.moved_back(name, info.log_id, position.offset, info.earliest, info.latest), keep
        )
        return replace(here, offset=info.latest)
    return replace(here, offset=info.latest)


def _refuse(error: DataLoss, keep: bool) -> None:
    if keep:
        raise error
    log.warning("zeromq: going on without rows, as failOnDataLoss=false allows: %s", error)


def _resolve(
    collectors: Collectors,
    infos: Mapping[str, Info],
    where: Where,
    timestamp: int | None,
    option: str,
    keep: bool,
) -> dict[str, int]:
    """The offset of each collector that an option means."""
    if timestamp is not None:
        found = {name: collectors.offset_at(name, timestamp) for name in infos}
        return {
            name: min(max(offset, infos[name].earliest), infos[name].latest)
            for name, offset in found.items()
        }
    if not isinstance(where, str):
        _check_names(option, where, infos)
    offsets = {}
    for name, info in infos.items():
        mark = where if isinstance(where, str) else where[name]
        if mark == EARLIEST:
            offsets[name] = info.earliest
        elif mark == LATEST:
            offsets[name] = info.latest
        else:
            assert isinstance(mark, int)
            if mark < info.earliest:
                error = loss.trimmed(name, info.log_id, mark, info.earliest, info.latest)
                _refuse(error, keep)
            if mark > info.latest:
                raise ValueError(
                    f"option {option!r} is {mark} for collector {name}, whose log has offsets"
                    f" {info.earliest} to {info.latest}"
                )
            offsets[name] = max(mark, info.earliest)
    return offsets


def _check_names(option: str, where: Mapping[str, Any], infos: Mapping[str, Info]) -> None:
    missing = [name for name in infos if name not in where]
    unknown = [name for name in where if name not in infos]
    if missing or unknown:
        raise ValueError(
            f"option {option!r} must name the collectors of option 'endpoint', as they are written"
            f" there: {', '.join(missing) or 'none'} missing, {', '.join(unknown) or 'none'} unknown"
        )


def _pieces(found: list[Range], options: LogReadOptions) -> list[Range]:
    given = options.min_partitions
    return split(
        found,
        given or len(os.sched_getaffinity(0)),
        most_rows=options.max_records,
        least_rows=TASK_ROWS if given is None else 1,
    )


def _mean_size(info: Info | None) -> float:
    if info is None or info.latest <= info.earliest:
        return 1.0
    return max(info.bytes / (info.latest - info.earliest), 1.0)


def _narrow(
    piece: Range, column: str, comparison: str, value: Any, collectors: Collectors
) -> Range:
    empty = replace(piece, end=piece.start)
    if column == "partition":
        fits = {
            "=": piece.partition == value,
            ">": piece.partition > value,
            ">=": piece.partition >= value,
            "<": piece.partition < value,
            "<=": piece.partition <= value,
        }[comparison]
        return piece if fits else empty
    if column == "receive_time":
        if comparison not in (">", ">=", "="):
            return piece  # clocks are set back: only what begins late enough is sure
        micros = round(value.timestamp() * 1_000_000)
        first = collectors.offset_at(piece.name, micros)
        return replace(piece, start=min(max(piece.start, first), piece.end))
    start, end = piece.start, piece.end
    if comparison in ("=", ">="):
        start = max(start, value)
    if comparison == ">":
        start = max(start, value + 1)
    if comparison in ("=", "<="):
        end = min(end, value + 1)
    if comparison == "<":
        end = min(end, value)
    return replace(piece, start=start, end=max(start, end))
