"""Clients: the state of a collector, its rows, and the two steps of an exactly-once sink.

client = Client("tcp://collector:5555")
info = client.info()
for batch in client.fetch(info.earliest, info.latest):
    ...  # a pyarrow.RecordBatch
for row in client.follow(group="report"):
    ...  # a Record, as soon as it is on the collector's disk
"""

import json
import threading
import weakref
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .. import _checks, _native, _observing
from .._closing import Closing
from .._hints import hinting
from .._native import ArrowTable
from .._optional import needed_by
from .._typing import ArrowData
from ._follow import Follower, Start
from ._renamed import renamed

if TYPE_CHECKING:
    from .. import _pyarrow as pyarrow
    from ._stats import CollectorStats

__all__ = ["Client", "Info", "Published"]

_FollowerT = TypeVar("_FollowerT", bound=Follower)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_num_rows = attrgetter("num_rows")


@dataclass(frozen=True)
class Info:
    """What a collector's log contains."""

    log_id: str
    """Identifies the log: it stays the same for as long as the log's folder exists."""
    earliest: int
    """The first offset that can be fetched."""
    latest: int
    """The offset after the last row that can be fetched."""
    first_received: datetime | None
    """When the first of these rows was received; None without rows."""
    last_received: datetime | None
    """When the last of these rows was received; None without rows."""
    bytes: int
    """Size of the log on disk, in bytes."""
    advertise: str
    """The address that the collector gives to others; empty if that is where it was asked."""
    generations: tuple[tuple[int, str], ...] = ()
    """The openings of the log that wrote rows: the first offset and the id of each.

    They tell rows of this log from those of a copy of its folder that was made earlier and has
    grown since.
    """

    def generation(self, offset: int) -> str | None:
        """Returns the generation of the row before an offset. Keep it with the offset for `fetch`.

        Args:
            offset: How far rows were read.

        Returns:
            The generation; None at the beginning, and for rows of old versions that did not
            record it.
        """
        at = bisect_left(self.generations, offset, key=itemgetter(0))
        return self.generations[at - 1][1] if at else None

    def check(self, offset: int, generation: str | None) -> int | None:
        """Checks whether rows that were read before are still those of this log.

        Args:
            offset: How far rows were read.
            generation: The generation of the row before it, at that time.

        Returns:
            None if they are. If not, the first offset whose row differs, as far as that is
            known.
        """
        here = self.generation(offset)
        if here is None or generation is None or here == generation:
            return None
        known = [one[1] for one in self.generations]
        if generation in known[:-1]:
            return self.generations[known.index(generation) + 1][0]
        return self.generations[known.index(here)][0]


class Published(NamedTuple):
    """Rows that were published."""

    first: int
    """The offset of the first row."""
    end: int
    """The offset after the last row."""
    already: bool
    """Whether they had been published before, or were being published already.

    Then the rows may be those of other attempts.
    """


class Client(_native.Client, Closing):
    """Reads a collector's log, and publishes to it in two steps.

    A call that is not answered within `timeout_s` is repeated on a new connection, up to
    `retries` times; then it raises `CollectorGone`. Repeating a call is safe: whatever it
    asks for happens once. A request that the collector refuses raises `Refused`, whose
    `code` is a word for programs.

    Any thread may use a client, but only in the process that made it. A client connects
    when it is first used, and closes itself at the end of a ``with`` block.

    Args:
        endpoint: The collector's address.
        timeout_s: Seconds to wait for an answer before asking again.
        retries: How many times to ask again.
        server_key: The collector's public CURVE key.
        public_key: This client's CURVE key. It can be omitted together with `secret_key`
            where the collector admits every key.
        secret_key: The secret part of it.

    Raises:
        ZMQError: If the endpoint is malformed.
        ValueError: If a key is malformed.

    Example:
        ```python
        with Client("tcp://collector:5555") as client:
            info = client.info()
            print(info.latest - info.earliest, "rows")
        ```
    """

    @renamed(timeout="timeout_s")
    @hinting
    def __init__(
        self,
        endpoint: str,
        *,
        timeout_s: float = 10.0,
        retries: int = 3,
        server_key: str | bytes | None = None,
        public_key: str | bytes | None = None,
        secret_key: str | bytes | None = None,
    ) -> None:
        self.endpoint: str = _checks.endpoint(endpoint)
        self._followers: weakref.WeakSet[Follower] = weakref.WeakSet()
        # A thread may close the client while another begins to follow.
        self._adding = threading.Lock()
        self._open(
            endpoint,
            timeout=_checks.number("timeout_s", timeout_s),
            retries=_checks.whole("retries", retries, beyond=2**32),
            server_key=server_key,
            public_key=public_key,
            secret_key=secret_key,
        )
        _observing.note_start()

    def info(self) -> Info:
        """Returns what the collector's log contains.

        Returns:
            Its offsets, size, and times of receipt.

        Raises:
            CollectorGone: If the collector does not answer, as for every call.
        """
        log_id, earliest, latest, times, size, advertise, generations = self._info()
        first, last = (None, None) if times is None else map(_time, times)
        return Info(log_id, earliest, latest, first, last, size, advertise, tuple(generations))

    def groups(self) -> dict[str, int]:
        """Returns the positions of the groups of consumers.

        Returns:
            A dict from the group's name to the first offset that the group still needs. It has
            at most 1,000 groups, those that are furthest behind. ``groups_unlisted`` of
            `stats` says how many more there are, and `committed` has the position of any group.

        Raises:
            Refused: If the client's key lacks the role ``admin``; `committed` does not need
                that role.
        """
        return self.stats()["groups"]

    def committed(self, group: str) -> int | None:
        """Returns the position of a group of consumers.

        Args:
            group: The group's name.

        Returns:
            The first offset that the group still needs; None if it has not committed.
        """
        return self._position(_checks.name("group", group))

    def commit(self, group: str, offset: int, *, generation: str | None = None) -> int:
        """Stores the position of a group of consumers at the collector.

        This deletes no rows, unless the collector was started with `retention_groups`.

        Args:
            group: The group's name. The first commit creates the group.
            offset: The first offset that the group still needs.
            generation: The generation of the row before it, from `Info.generation`.

        Returns:
            The position that was committed.

        Raises:
            Refused: With the code ``invalid`` if the log ends before the offset, and
                ``other-rows`` if it has another row there than `generation` says.
        """
        _checks.name("group", group)
        if generation is not None:
            _checks.name("generation", generation, "what Info.generation returned")
        self._commit(group, _checks.offset("offset", offset), generation)
        return offset

    def offset_at(self, timestamp: datetime | float | int) -> int:
        """Returns the first offset that was received at a time or later.

        Args:
            timestamp: A datetime, a float of seconds, or an int of microseconds since 1970.

        Returns:
            The offset. If every row was received earlier, the offset of the next row.

        Raises:
            TypeError: If `timestamp` is none of these.
            ValueError: If it is NaN, or too large.
        """
        if isinstance(timestamp, datetime):
            timestamp = timestamp.timestamp()
        takes = (
            "timestamp takes a datetime, a float of seconds or an int of microseconds since 1970"
        )
        if isinstance(timestamp, bool) or not isinstance(timestamp, (int, float)):
            raise TypeError(f"{takes}, not {_checks.shown(timestamp)}")
        micros = timestamp * 1e6 if isinstance(timestamp, float) else timestamp
        if not -(2**63) <= micros < 2**63:
            raise ValueError(f"{takes}, not {_checks.shown(timestamp)}")
        micros = round(micros)
        return self._offset_at(micros)

    def offset_after(self, start: int, size: int) -> int:
        """Returns the end of a range of rows that takes about a given number of bytes.

        Args:
            start: The first offset.
            size: Bytes that the rows take in the log.

        Returns:
            The offset after the range. The range has at least one row, if there is one, and only
            rows that can be fetched.

        Raises:
            ValueError: If an argument is negative.
        """
        return self._offset_after(_checks.offset("start", start), _checks.whole("size", size))

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
        """Reads a range of offsets, in order. `follow` also reads rows that arrive later.

        Args:
            start: The first offset.
            end: The offset after the last row.
            topics: Only rows whose topic begins with one of these.
            partition: The content of the column of that name.
            headers: Whether there is a column of headers.
            frames: Whether there is a column of all frames of a message.
            max_bytes: The size of the answers to ask for, approximately, in bytes. Several
                requests are under way at the same time.
            log_id: The log that the offsets belong to, from `Info.log_id`.
            generation: The generation of the row before `start`, when that was read.

        Returns:
            An iterator over batches of pyarrow, with the columns of the Spark source.

        Raises:
            DataLoss: While iterating, if the log does not have all of the range, is not the
                one with the id `log_id`, or is an older copy of it that has grown.
            CollectorGone: While iterating, if nothing arrived for as long as a call may take.
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
    ) -> Iterator[ArrowTable]:
        """Does what `fetch` does, with tables for any Arrow library: pyarrow is not needed.

        Args:
            start: See `fetch`, as for all arguments.
            end: See `fetch`.
            topics: See `fetch`.
            partition: See `fetch`.
            headers: See `fetch`.
            frames: See `fetch`.
            max_bytes: See `fetch`.
            log_id: See `fetch`.
            generation: See `fetch`.

        Returns:
            An iterator over Arrow tables.

        Raises:
            ValueError: If there are no such offsets, or `max_bytes` is below 1.
        """
        if _checks.offset("end", end) < _checks.offset("start", start):
            raise ValueError(f"there are no offsets from {start} to {end}")
        for argument, value in (("log_id", log_id), ("generation", generation)):
            if value is not None:
                _checks.name(argument, value, "what Client.info() returned")
        tables = self._fetch(
            start,
            end,
            topics=_checks.topics("topics", topics),
            max_bytes=_checks.size("max_bytes", max_bytes),
            log_id=log_id,
            generation=generation,
            partition=_checks.whole("partition", partition, beyond=2**31),
            headers=_checks.flag("headers", headers),
            frames=_checks.flag("frames", frames),
        )
        # Of a stored batch, the part in the range may have no row of the topics.
        return filter(_num_rows, tables)

    def follow(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        group: str | None = None,
        start: Start | None = None,
        timeout_s: float | None = None,
        max_bytes: int = 8 << 20,
    ) -> Follower:
        """Reads rows as they arrive, waiting for those that are not there yet.

        Args:
            topics: Only rows whose topic begins with this, or with one of these.
            group: The name of a group of consumers. The group's position is where a
                follower begins, and what `Follower.commit` stores. Each of two
                followers of a group gets all rows: a group is only a stored position.
            start: Where to begin: an offset, a datetime (the first row that was received
                then or later), ``"earliest"`` or ``"latest"``. Default: the group's
                position; without one, the earliest row.
            timeout_s: Seconds without a row after which the iteration ends. With 0, a loop
                reads the rows that are there when it begins (the first loop reads those that
                were there at this call). Default: None, no limit.
            max_bytes: The size of the answers to ask for, approximately, in bytes.

        Returns:
            An iterator over rows, which is closed at the end of a ``with`` block, and when
            the client is closed.

        Raises:
            CollectorGone: If the collector does not answer.
            TypeError: If an argument is of the wrong type.
            ValueError: If `start` or a number is out of range.

        Example:
            ```python
            with client.follow("temperature", group="report") as rows:
                for row in rows:
                    print(row.offset, row.topic, row.value)
                    rows.commit()
            ```
        """
        return self._begun(Follower(self, topics, group, start, timeout_s, max_bytes))

    def _begun(self, follower: _FollowerT) -> _FollowerT:
        """Begins a follower, which `close` closes."""
        with self._adding:
            self._followers.add(follower)
        follower._begin()
        return follower

    def stage(
        self, query: str, batch: int, partition: int, attempt: int, part: int, rows: ArrowData
    ) -> int:
        """Writes rows to the collector's disk. Readers do not see them before they are published.

        Args:
            query: The name of the writer, such as a Spark query.
            batch: The number of the batch that is published as a whole.
            partition: The task's part of the batch.
            attempt: A number that distinguishes attempts at the same partition.
            part: The number of these rows among those of the attempt, counted from 0.
            rows: An Arrow table or batch with the column `value` and optionally `key`,
                `topic`, `timestamp` and `headers`; at most 1,048,576 rows.

        Returns:
            The number of rows.

        Raises:
            Refused: While the collector cannot accept them. The code is ``too-many``, ``full``
                or ``too-big``, for example.
        """
        _check_batch(query, batch)
        place = (
            _checks.whole("partition", partition, beyond=2**32),
            _checks.whole("attempt", attempt),
        )
        return self._stage(query, batch, place, _checks.whole("part", part, beyond=2**32), rows)

    def publish(self, query: str, batch: int, parts: Iterable[tuple[int, int, int]]) -> Published:
        """Makes staged rows visible to every reader: all of them or none, and only once.

        Other rows staged for the batch are discarded. A batch that was published before is
        not published again.

        Args:
            query: As it was given to `stage`.
            batch: As it was given to `stage`.
            parts: (partition, attempt, number of parts) of the attempts that count, in the
                order of their rows in the log. At most 65,536.

        Returns:
            The offsets of the rows.

        Raises:
            Refused: With the code ``not-staged`` if a part is missing, and ``too-many`` if too many
                requests wait at the collector. Then try again.
        """
        _check_batch(query, batch)
        wanted = _numbers("parts", parts, "(partition, attempt, number of parts)")
        return Published(*self._publish(query, batch, wanted))

    def abort(
        self, query: str, batch: int, attempts: Iterable[tuple[int, int]] | None = None
    ) -> None:
        """Discards staged rows, even while they are being published.

        Args:
            query: As it was given to `stage`.
            batch: As it was given to `stage`.
            attempts: (partition, attempt) of those to forget, at most 65,536. Default: None,
                all of the batch.

        Raises:
            Refused: With the code ``invalid`` if the batch is published, and ``too-many`` if too many
                requests wait at the collector. Then try again.
        """
        _check_batch(query, batch)
        wanted = (
            None if attempts is None else _numbers("attempts", attempts, "(partition, attempt)")
        )
        # An empty list forgets nothing, and not all of them.
        if wanted != []:
            self._abort(query, batch, wanted or [])

    def stats(self) -> "CollectorStats":
        """Returns the collector's counters.

        If it is asked very often, by this client and others, the collector repeats its last answer, so that
        answers take little of its time. Such numbers are about a second old at most.

        Returns:
            A dict with the counters: see `CollectorStats`.

        Raises:
            Refused: If the client's key lacks the role ``admin``.
        """
        stats: CollectorStats = json.loads(self._stats())
        return stats

    def close(self) -> None:
        """Closes the connections and the followers. Loops over followers end.

        A later call makes new connections.
        """
        with self._adding:
            followers = list(self._followers)
            self._followers.clear()
        for follower in followers:
            follower.close()
        super().close()

    def __repr__(self) -> str:
        return f"<Client {self.endpoint}>"


def _check_batch(query: str, batch: int) -> None:
    _checks.name("query", query)
    _checks.whole("batch", batch)


def _numbers(argument: str, given: Iterable[tuple[int, ...]], form: str) -> list[Any]:
    """The tuples of numbers, which have the form of `form`."""
    takes = f"a list of {form}"
    tuples = _checks.items(argument, given, takes)
    names = form.strip("()").split(", ")
    for one in tuples:
        if not isinstance(one, tuple) or len(one) != len(names):
            raise TypeError(f"{argument} takes {takes}, not {_checks.shown(given)}")
        for name, value in zip(names, one, strict=True):
            beyond = 2**63 if name == "attempt" else 2**32
            _checks.whole(f"{argument}: {name}", value, beyond=beyond)
    return tuples


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
