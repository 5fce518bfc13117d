"""Following a log: rows as they arrive, and a position that survives the program."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from .. import _checks, _native
from .._closing import Closing
from .._native import ArrowTable
from .._optional import needed_by

if TYPE_CHECKING:
    from .. import _pyarrow as pyarrow
    from ._client import Client

__all__ = ["Follower", "FollowerBase", "Record", "Start"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The first and the last datetime, in microseconds since 1970.
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)

# The start: an offset, a time of receipt, or one end of the log.
Start: TypeAlias = int | datetime | Literal["earliest", "latest"]


class Record(NamedTuple):
    """A row of the log."""

    value: bytes
    """The row's value."""
    topic: str | None
    """Its topic; None without one."""
    key: bytes | None
    """Its key; None without one."""
    headers: tuple[tuple[str, bytes | None], ...]
    """Names and values, in order; a name may occur twice."""
    timestamp: datetime
    """When it happened, in UTC: the producer's time, or else the time of receipt.

    A time before the year 1 or after 9999 is the nearest `datetime`.
    """
    offset: int
    """Its place in the log."""
    producer: str | None
    """The name of its producer; None for rows of plain ZeroMQ peers and over HTTP."""
    seq: int | None
    """The producer's number of the row; None without a producer."""


class FollowerBase:
    """The common part of the blocking and the asyncio follower: the start and the position."""

    def __init__(
        self,
        client: "Client",
        topics: str | Iterable[str] | None,
        group: str | None,
        start: Start | None,
        timeout_s: float | None,
        max_bytes: int,
    ) -> None:
        if start not in (None, "earliest", "latest") and not isinstance(start, datetime):
            if isinstance(start, bool) or not isinstance(start, (int, str)):
                raise TypeError(
                    f"start takes an offset, a datetime, 'earliest' or 'latest', not {start!r}"
                )
            if isinstance(start, str):
                raise ValueError(
                    f"start must be an offset, a datetime, 'earliest' or 'latest', not {start!r}"
                )
            _checks.offset("start", start)
        if timeout_s is not None:
            _checks.number("timeout_s", timeout_s)
        if group is not None:
            _checks.name("group", group)
        self._client = client
        self._topics = _checks.topics("topics", topics)
        self._group = group
        self._start = start
        # With a timeout of 0, a loop reads the rows that are there when it begins.
        self._is_bounded = timeout_s == 0
        self._timeout_s = timeout_s or None
        self._max_bytes = _checks.size("max_bytes", max_bytes)
        self._follow: _native.Follow | None = None
        self._log_id: str | None = None
        self._is_closed = False
        # The batch that arrived last, and how many of its rows have been returned.
        self._rows: Sequence[tuple[Any, ...]] = ()
        self._taken = 0
        # The offsets after the batch that arrived last, and after the row that was returned last.
        self._end = self._position = 0

    @property
    def group(self) -> str | None:
        """The group whose position `commit` stores."""
        return self._group

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._is_closed

    @property
    def position(self) -> int:
        """The offset after the last row that was returned. This is what `commit` commits.

        With topics, rows of other topics before the next row that is due count as read.
        """
        return self._place()[0]

    def _place(self) -> tuple[int, str | None]:
        """The position and, as far as it is known, the generation of the row before."""
        if self._follow is not None and self._taken == len(self._rows):
            return self._follow._position() or (self._end, None)
        return self._position, None

    def _begin(self) -> _native.Follow:
        """Asks the collector for the start position, unless it is known."""
        if self._follow is None:
            info = self._client.info()
            start = self._start
            if start is None and self._group is not None:
                start = self._client.committed(self._group)
            if start is None or start == "earliest":
                start = info.earliest
            elif start == "latest":
                start = info.latest
            elif isinstance(start, datetime):
                start = self._client.offset_at(start)
            self._end = self._position = start
            self._log_id = info.log_id
            latest = info.latest
            if self._is_bounded and start > latest:
                # Rows may have arrived between the two requests.
                latest = self._client.info().latest
            return self._open(start, None, latest)
        return self._follow

    def _continue(self) -> _native.Follow:
        """Begins. After the last row that was there, asks for rows that have arrived since."""
        follow = self._begin()
        if self._is_through():
            return self._open(*self._place(), self._client.info().latest)
        return follow

    def _is_through(self) -> bool:
        """Whether all rows that were there were read."""
        return self._follow is not None and self._follow._stopped and not self._is_closed

    def _open(self, start: int, generation: str | None, latest: int) -> _native.Follow:
        # If the start is beyond the end of the log, the collector explains why it has no such row. A request without
        # an end would wait for the row if the log has grown up to there meanwhile.
        end = latest if start <= latest else start + 1
        follow = self._client._follow(
            start,
            end if self._is_bounded else None,
            topics=self._topics,
            max_bytes=self._max_bytes,
            log_id=self._log_id,
            generation=generation,
            partition=0,
            headers=True,
            frames=False,
        )
        self._follow = follow
        if self._is_closed:
            follow._stop()
        return follow

    def _take(self) -> Record:
        """The next row of those that have arrived."""
        offset, value, key, topic, micros, producer, seq, headers = self._rows[self._taken]
        self._taken += 1
        self._position = offset + 1
        # Tables, and producers in Rust, may have times that Python has not.
        timestamp = _EPOCH + timedelta(microseconds=min(max(micros, _FIRST), _LAST))
        return Record(value, topic, key, headers, timestamp, offset, producer, seq)

    def _put(self, rows: Sequence[tuple[Any, ...]], end: int) -> None:
        self._rows, self._taken, self._end = rows, 0, end

    def _pass(self, end: int) -> None:
        """Rows up to `end` are returned as a table."""
        self._rows, self._taken, self._end, self._position = (), 0, end, end

    def _check_passed(self) -> None:
        if self._taken < len(self._rows):
            raise RuntimeError(
                "some rows of the last batch were not taken: iterate over rows or over tables"
            )

    def _to_commit(self, offset: int | None) -> tuple[str, int, str | None]:
        """The group, what to commit for it, and the generation of the row before."""
        if self._group is None:
            raise ValueError("there is no group to commit for: follow(..., group='name')")
        if offset is None:
            return self._group, *self._place()
        return self._group, offset, None

    def _commit(self, group: str, offset: int, generation: str | None) -> int:
        return self._client.commit(group, offset, generation=generation)

    def _stop(self) -> None:
        self._is_closed = True
        if self._follow is not None:
            self._follow._stop()

    def __repr__(self) -> str:
        group = "" if self._group is None else f" group={self._group!r}"
        state = " closed" if self._is_closed else ""
        return (
            f"<{type(self).__name__} {self._client.endpoint}{group}"
            f" position={self._position}{state}>"
        )


class Follower(FollowerBase, Closing):
    """Rows of a log as they arrive: an iterator over `Record`, made by `Client.follow`.

    The iteration waits at the collector for the next row. It ends when the follower is
    closed, from any thread, or when no row arrived for `timeout_s` seconds; another loop
    continues where it ended. With ``timeout_s=0`` a loop reads the rows that are there when
    it begins. It survives restarts of the collector. One thread at a time
    may iterate.

    Raises:
        CollectorGone: While iterating, if the collector did not answer for as long as the
            client's calls may take. Iterating again continues at the same position.
        DataLoss: While iterating, if rows that are due are not in the log any more:
            retention deleted them, or the log was replaced. The error names the rows that are left.

    Example:
        ```python
        with client.follow("temperature", group="report") as rows:
            for row in rows:
                print(row.offset, row.topic, row.value)
                rows.commit()
        ```
    """

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        if self._is_closed:
            raise StopIteration
        while self._taken == len(self._rows):
            found = self._continue()._next_rows(self._timeout_s, True)
            if found is None:
                raise StopIteration
            self._put(*found)
        return self._take()

    def tables(self) -> Iterator[ArrowTable]:
        """Reads the rows in tables instead, one for each batch of the log.

        Returns:
            An iterator over Arrow tables with the columns of `Client.fetch_tables`, headers
            included. It ends as the iteration over rows does.
        """
        self._check_passed()
        while not self._is_closed:
            found = self._continue()._next_table(self._timeout_s, True)
            if found is None:
                return
            table, end = found
            self._pass(end)
            if table.num_rows:
                yield table

    def batches(self) -> "Iterator[pyarrow.RecordBatch]":
        """Reads the rows in batches of pyarrow instead; see `tables`.

        Returns:
            An iterator over batches with the columns of `Client.fetch`, headers included.
        """
        with needed_by("Follower.batches", extra="arrow"):
            import pyarrow

        return map(pyarrow.record_batch, self.tables())

    def commit(self, offset: int | None = None) -> int:
        """Stores the position of the group at the collector.

        The next follower of the group begins there. The collector writes positions to its
        disk every five seconds, and when it ends. After a crash of the collector's machine, the
        last rows may be read again.

        Args:
            offset: The first offset that the group still needs. Default: `position`, after the last
                row that was returned.

        Returns:
            The position that was committed.

        Raises:
            ValueError: If the follower has no group.
            Refused: If the log has other rows before the position than those that were read.
            CollectorGone: If the collector does not answer.
        """
        self._begin()
        return self._commit(*self._to_commit(offset))

    def close(self) -> None:
        """Ends the iteration, also one that waits in another thread, and the connection."""
        self._stop()
