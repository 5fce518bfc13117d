"""Clients: what a collector has, its rows, and the two steps of an exactly-once sink.

client = Client("tcp://collector:5555")
info = client.info()
for batch in client.fetch(info.earliest, info.latest):
    ...  # pyarrow.RecordBatch
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._closing import Closing
from .._optional import needed_by
from .._typing import ArrowData

if TYPE_CHECKING:
    from .. import _pyarrow as pyarrow

__all__ = ["Client", "Info", "Published"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Info:
    """What a collector has.

    `earliest` is the first offset that can be fetched, `latest` the one behind the last.
    `log_id` stays the same for as long as the log's folder does. `first_received` and
    `last_received` are when these rows came in; None without rows.

    `generations` are the openings of the log that wrote rows, each with its first offset:
    an older copy of the folder, put in its place, goes on with another one.
    """

    log_id: str
    earliest: int
    latest: int
    first_received: datetime | None
    last_received: datetime | None
    bytes: int
    advertise: str
    generations: tuple[tuple[int, str], ...] = ()

    def generation(self, offset: int) -> str | None:
        """That of the row before `offset`: to be kept with it, and given to `fetch`.

        None at the beginning, and for rows from before they were kept.
        """
        at = bisect_left(self.generations, offset, key=itemgetter(0))
        return self.generations[at - 1][1] if at else None

    def check(self, offset: int, generation: str | None) -> int | None:
        """None if who has read up to `offset`, where `generation` was, has read this log.

        If not: from which offset on its rows are others, as far as that is known.
        """
        here = self.generation(offset)
        if here is None or generation is None or here == generation:
            return None
        known = [one[1] for one in self.generations]
        if generation in known[:-1]:
            return self.generations[known.index(generation) + 1][0]
        return self.generations[known.index(here)][0]


class Published(NamedTuple):
    """Rows that were published: their offsets, and whether they had been there before."""

    first: int
    end: int
    already: bool


class Client(_native.Client, Closing):
    """Asks the collector at `endpoint`.

    A call that is not answered within `timeout` seconds is made again on a new
    connection, up to `retries` times; then it raises `CollectorGone`. Making a call twice
    does no harm: whatever it asks for is done once. What the collector refuses raises
    `Refused`, whose `code` says why.

    The keys are for CURVE, as with sockets. Any thread may use a client, but only in the
    process that made it.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        server_key: str | bytes | None = None,
        public_key: str | bytes | None = None,
        secret_key: str | bytes | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._open(
            endpoint,
            timeout=timeout,
            retries=retries,
            server_key=server_key,
            public_key=public_key,
            secret_key=secret_key,
        )

    def info(self) -> Info:
        """What the collector has."""
        log_id, earliest, latest, times, size, advertise, generations = self._info()
        first, last = (None, None) if times is None else map(_time, times)
        return Info(log_id, earliest, latest, first, last, size, advertise, tuple(generations))

    def groups(self) -> dict[str, int]:
        """The groups of consumers, and the offset below which each needs nothing any more."""
        groups: dict[str, int] = self.stats()["groups"]
        return groups

    def commit(self, group: str, offset: int, *, generation: str | None = None) -> None:
        """A group of consumers needs nothing below `offset` any more.

        That deletes nothing, unless the collector was started with `retention_groups`.
        `generation` is that of the row before, from `Info.generation`: where the log has
        another row there, this raises `Refused` (``other-rows``).
        """
        self._commit(group, offset, generation)

    def offset_at(self, timestamp: datetime | float | int) -> int:
        """The first offset that was received at `timestamp` or later.

        A datetime, a float of seconds, or an int of microseconds since 1970. It is that of
        the next row to come if everything was received earlier.
        """
        if isinstance(timestamp, datetime):
            timestamp = timestamp.timestamp()
        micros = round(timestamp * 1e6) if isinstance(timestamp, float) else timestamp
        return self._offset_at(micros)

    def offset_after(self, start: int, size: int) -> int:
        """How far rows from `start` on go that take about `size` bytes in the log.

        At least one row, if there is one; never beyond what can be fetched.
        """
        if start < 0 or size < 0:
            raise ValueError(f"there are no {size} bytes from offset {start} on")
        return self._offset_after(start, size)

    def fetch(
        self,
        start: int,
        end: int,
        *,
        topics: str | Iterable[str] | None = None,
        partition: int = 0,
        headers: bool = False,
        frames: bool = False,
        max_bytes: int = 8 << 20,
        log_id: str | None = None,
        generation: str | None = None,
    ) -> "Iterator[pyarrow.RecordBatch]":
        """The rows with offsets from `start` to `end`, exclusive, in order.

        The columns are those of the Spark source; `partition` is what stands in the column
        of that name. With `topics`, only rows whose topic begins with one of them.
        `max_bytes` is about how much is asked for at once; several requests are on their
        way. Raises `DataLoss` if the log does not have all of the range, is not the one
        with the id `log_id`, or is an older copy of it that has grown: then the row before
        `start` is not of `generation`, which `Info.generation` said when it was read.
        """
        with needed_by("Client.fetch", extra="arrow"):
            import pyarrow

        for table in self.fetch_tables(
            start,
            end,
            topics=topics,
            partition=partition,
            headers=headers,
            frames=frames,
            max_bytes=max_bytes,
            log_id=log_id,
            generation=generation,
        ):
            yield pyarrow.record_batch(table)

    def fetch_tables(
        self,
        start: int,
        end: int,
        *,
        topics: str | Iterable[str] | None = None,
        partition: int = 0,
        headers: bool = False,
        frames: bool = False,
        max_bytes: int = 8 << 20,
        log_id: str | None = None,
        generation: str | None = None,
    ) -> _native.Fetch:
        """As `fetch`, in tables for whoever understands Arrow: pyarrow is not needed."""
        if start < 0 or end < start:
            raise ValueError(f"there are no offsets from {start} to {end}")
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be at least 1, not {max_bytes}")
        return self._fetch(
            start,
            end,
            topics=[topics] if isinstance(topics, str) else list(topics or ()),
            max_bytes=max_bytes,
            log_id=log_id,
            generation=generation,
            partition=partition,
            headers=headers,
            frames=frames,
        )

    def stage(
        self, query: str, batch: int, partition: int, attempt: int, part: int, rows: ArrowData
    ) -> int:
        """Brings rows to the collector's disk that nobody sees before they are published.

        `rows` is anything that speaks Arrow, with a column `value` and, if it likes, `key`,
        `topic`, `timestamp`, `headers`. They are part `part`, counted from 0, of what an
        attempt at a partition of a query's batch has to say. Returns how many rows. Raises
        `Refused` (``too-many``, ``full``...) while the collector cannot take them.
        """
        return self._stage(query, batch, (partition, attempt), part, rows)

    def publish(self, query: str, batch: int, parts: Iterable[tuple[int, int, int]]) -> Published:
        """Lets everybody see what attempts have staged: all of it or nothing, once.

        `parts` are (partition, attempt, number of parts), in the order in which the rows
        shall appear; what else was staged for the batch is forgotten. A batch that was
        published before is not published again. Raises `Refused` (``not-staged``) if a part
        is missing.
        """
        return Published(*self._publish(query, batch, list(parts)))

    def abort(
        self, query: str, batch: int, attempts: Iterable[tuple[int, int]] | None = None
    ) -> None:
        """Forgets what attempts (partition, attempt) have staged; None: all of the batch.

        Also while it is being published: nothing of it will be in the log. Once it is there,
        raises `Refused` (`invalid`).
        """
        wanted = None if attempts is None else list(attempts)
        # None of them is nothing to do, and not all of them.
        if wanted != []:
            self._abort(query, batch, wanted or [])

    def stats(self) -> dict[str, Any]:
        """The collector's counters."""
        stats: dict[str, Any] = json.loads(self._stats())
        return stats

    def __repr__(self) -> str:
        return f"<Client {self.endpoint}>"


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
