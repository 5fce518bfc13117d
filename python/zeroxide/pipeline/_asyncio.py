"""Producers and clients for asyncio.

The file is long because each call repeats its signature and its documentation for this form.
"""

import asyncio
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .. import _checks, _native
from .._native import ArrowTable
from .._optional import needed_by
from .._turns import others
from .._typing import ArrowData
from ._client import Client, Info, Published
from ._errors import CollectorError, NotAcknowledged
from ._follow import FollowerBase, Record, Start
from ._producer import (
    SPOOLED,
    Delivery,
    Headers,
    ProducerBase,
    Row,
    Timestamp,
    Value,
    add_attributes,
)
from ._renamed import renamed
from ._threads import Threads

if TYPE_CHECKING:
    from .. import _pyarrow as pyarrow
    from ._stats import CollectorStats

__all__ = ["AsyncClient", "AsyncFollower", "AsyncProducer"]

_T = TypeVar("_T")

# A waiting follower checks its connection at least this often, in seconds.
_LOOK = 1.0


class AsyncProducer(ProducerBase):
    """A `Producer` for asyncio, also available as `zeroxide.asyncio.Producer`.

    The options are those of `Producer`. `on_delivery` is called in the event loop. A
    producer belongs to the loop in which it is first used.

    Example:
        ```python
        async with AsyncProducer("tcp://collector:5555") as producer:
            delivery = await producer.send_and_wait(b"21.5")  # on the collector's disk

            future = await producer.send(b"21.6")  # accepted, on its way
            delivery = await future  # on the collector's disk

            await producer.send_batch([b"21.7", b"21.8"])
            await producer.flush()  # everything is on the collector's disk
        ```
    """

    _reports_rows = True

    def _begin(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        # For each collector, the rows that futures wait for, in order.
        self._waiting: list[deque[tuple[int, asyncio.Future[Delivery]]]] = [
            deque() for _ in self._endpoints
        ]
        # For each collector, the row below which everything is acknowledged.
        self._acked = [0] * len(self._endpoints)
        self._progress: asyncio.Event = asyncio.Event()
        self._threads = Threads()

    async def send(  # type: ignore[override]
        self,
        value: Value,
        key: Value | None = None,
        topic: Value | None = None,
        headers: Headers | None = None,
        timestamp: Timestamp | None = None,
    ) -> "asyncio.Future[Delivery]":
        """Accepts a row, waiting while there is no room for it.

        Args:
            value: The row's value; `str` is encoded as UTF-8.
            key: Rows with the same key go to the same collector.
            topic: The row's topic, in UTF-8.
            headers: A dict, or pairs of a name and a value.
            timestamp: When it happened: a datetime, a float of seconds or an int of
                microseconds since 1970. Without one, the time of its receipt counts.

        Returns:
            A future of the row's `Delivery`, done once the row is on the collector's disk.
            It need not be awaited. `send_and_wait` waits for it.

        Raises:
            CollectorGone: If there was no room, and the collector was gone, for longer than
                the producer's timeout.
            Refused: If the collector took nothing for that long.
            Fenced: If another producer has taken over the name.
        """
        loop = self._watch()
        await others()
        while (place := self._try_send(value, key, topic, headers, timestamp)) is None:
            self._mark()
            await self._step()
            self._check()
        collector, row = place
        future: asyncio.Future[Delivery] = loop.create_future()
        # A failure that the caller does not retrieve causes no warning.
        future.add_done_callback(_look)
        self._waiting[collector].append((row, future))
        return future

    async def send_and_wait(
        self,
        value: Value,
        key: Value | None = None,
        topic: Value | None = None,
        headers: Headers | None = None,
        timestamp: Timestamp | None = None,
    ) -> Delivery:
        """Sends a row and waits until it is on the collector's disk.

        Rows that are sent one after the other in this way wait for a sync each; for many
        rows, `send` them all and `flush`, or wait for several at once with
        `asyncio.gather`.

        Args:
            value: The row's value; `str` is encoded as UTF-8.
            key: Rows with the same key go to the same collector.
            topic: The row's topic, in UTF-8.
            headers: A dict, or pairs of a name and a value.
            timestamp: When it happened; see `send`.

        Returns:
            The row's `Delivery`, with its sequence number and offset.

        Raises:
            ValueError: If the row is larger than the collector accepts.
            NotAcknowledged: If the row is lost: accepted before the collector's limit was
                known and larger than that, or not acknowledged when the producer was closed.
            CollectorGone: As `send`. A row that was accepted is waited for as long as it
                takes; use `asyncio.timeout` to limit that.
        """
        delivery = await self.send(value, key, topic, headers, timestamp)
        return await delivery

    async def send_batch(  # type: ignore[override]
        self,
        values: Iterable[Row],
        key: Value | None = None,
        topic: Value | None = None,
        headers: Headers | None = None,
        timestamp: Timestamp | None = None,
    ) -> int:
        """Accepts many rows, waiting while there is no room.

        A list or tuple is accepted in a thread. Any other iterable is read row by row in
        the loop.

        Args:
            values: Values, or mappings with `value` and optionally `key`, `topic`,
                `headers` and `timestamp`.
            key: For rows without their own, as are the other arguments.
            topic: See `send`.
            headers: See `send`.
            timestamp: See `send`.

        Returns:
            The number of rows. `flush` waits until they are on the collector's disk.

        Raises:
            CollectorGone: As `send`. The error's `sent` is the number of rows that were
                accepted, and `unsent` a row that was read from the iterable and was not.
                The same holds for the `CancelledError` of a cancelled call.
            TypeError: If `values` is a single value.
        """
        self._watch()
        if isinstance(values, list | tuple):
            take = super().send_batch
            rows = list(values)
            return await self._threads.run_counted(take, rows, key, topic, headers, timestamp)
        if isinstance(values, str | bytes | bytearray | memoryview | Mapping):
            raise TypeError("send_batch takes many values; send takes one")
        if not isinstance(values, Iterable):
            raise TypeError(
                "send_batch takes a list of values, or anything to iterate over,"
                f" not {_checks.shown(values)}"
            )
        taken, left = 0, {}
        try:
            for row in values:
                left = {"unsent": row}
                while not self._try_take(row, key, topic, headers, timestamp):
                    self._mark()
                    await self._step()
                    self._check()
                left = {}
                taken += 1
                await others()
        except BaseException as error:
            add_attributes(error, sent=taken, **left)
            raise
        return taken

    async def send_arrow(self, data: ArrowData) -> int:  # type: ignore[override]
        """Accepts the rows of a table, waiting in a thread while there is no room.

        Args:
            data: An Arrow table or batch with the column `value` and optionally `key`,
                `topic`, `timestamp` and `headers`.

        Returns:
            The number of rows.

        Raises:
            CollectorGone: As `send`. The error's `sent` is the number of rows that were
                accepted, as is that of the `CancelledError` of a cancelled call.
            ValueError: If a column has the wrong type.
        """
        self._watch()
        try:
            # A stream of another library may wait in code that a cancellation does not reach.
            table = await self._threads.run(ArrowTable._of, data)
        except asyncio.CancelledError as error:
            add_attributes(error, sent=0)
            raise
        return await self._threads.run_counted(super().send_arrow, table)

    @renamed(timeout="timeout_s")
    async def flush(self, timeout_s: float | None = None) -> None:
        """Waits until every row that was sent before is on the collector's disk.

        Args:
            timeout_s: Seconds to wait; None waits for as long as the collector is there.

        Raises:
            NotAcknowledged: After `timeout_s` seconds.
            CollectorGone: If the collector is gone for longer than the producer's timeout.
            Refused: Once, if rows were set aside, or if the collector lost rows that it had
                acknowledged. The other rows are sent as usual.
        """
        if timeout_s is not None:
            _checks.number("timeout_s", timeout_s)
        self._watch()
        await others()
        marks = self._mark()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while any(acked < mark for acked, mark in zip(self._acked, marks, strict=True)):
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                left_rows = self._flush(0)
                raise NotAcknowledged.after(timeout_s, left_rows, closed=self.closed)
            self._check_pending()
            await self._step(left)
        self._report()
        self._check_setback()

    @renamed(timeout="timeout_s")
    async def close(self, timeout_s: float | None = None) -> None:
        """Flushes and ends the producer. Closing it again does nothing.

        If the call is cancelled, the producer takes no more rows, but still delivers those that it
        has, or leaves them to its spool. Calling `close` again continues the wait. If the program
        ends instead, rows that are not acknowledged within two seconds are reported on stderr.

        Args:
            timeout_s: Seconds to wait for acknowledgements. The default is None, no limit
                (five seconds with a spool, which keeps the rest).

        Raises:
            NotAcknowledged: If rows are lost, since they were not acknowledged in time.
            CollectorGone: If rows are lost, since the collector was gone for longer than the
                producer's timeout_s. A producer with a spool keeps them and does not raise.
        """
        if timeout_s is not None:
            _checks.number("timeout_s", timeout_s)
        if self._is_closed_for_good():
            return
        if self._has_spool and timeout_s is None:
            timeout_s = SPOOLED
        if self._loop is not None and self._loop.is_closed():
            # Its futures have ended with it. The rows are still delivered.
            self._loop = None
            self._progress = asyncio.Event()
            for waiting in self._waiting:
                waiting.clear()
        try:
            if not self._is_decided:
                self._shut()
                await self._decide(timeout_s)
            await self._threads.run_to_end(self._end)
        except BaseException:
            self._interrupt()
            self._collect()
            raise
        self._collect()
        self._stop_watching()
        try:
            self._report()
        finally:
            self._finish()

    async def _decide(self, timeout_s: float | None) -> None:
        """Waits until the rows are acknowledged, or never will be."""
        try:
            await self.flush(timeout_s)
        except CollectorError as error:
            self._outcome = None if self._is_kept(error) else error
        self._is_decided = True

    def _rest(self) -> None:
        """Leaves the loop after an interrupted `close`, once all rows are delivered."""
        is_over = self._is_decided and self._outcome is None
        if self._is_interrupted and (is_over or self._has_delivered()):
            self._stop_watching()
            self._let_go()

    def _has_delivered(self) -> bool:
        if self._loop is not None and self._loop.is_closed():
            return super()._has_delivered()
        # Not the counters: a `close` that continues needs the notices, too.
        return all(acked >= mark for acked, mark in zip(self._acked, self._mark(), strict=True))

    def _stop_watching(self) -> None:
        self._threads.close()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._notices_fd())

    def _watch(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                raise RuntimeError("an asyncio producer belongs to the loop it was first used in")
            loop.add_reader(self._notices_fd(), self._collect)
            self._loop = loop
        return loop

    async def _step(self, limit: float | None = None) -> None:
        """Waits until something happens, or for a moment; it may also end without a reason."""
        self._progress.clear()
        # Not asyncio.wait_for, which loses a cancellation that comes just after the event
        # (Python 3.11).
        timer = self._watch().call_later(min(0.25, limit or 0.25), self._progress.set)
        try:
            await self._progress.wait()
        finally:
            timer.cancel()

    def _collect(self) -> None:
        """Completes the futures of rows whose outcome is known, and calls `on_delivery`."""
        for collector, first_row, rows, first_seq, offset, lost in self._take_notices():
            waiting = self._waiting[collector]
            end = first_row + rows
            # Rows that were set aside are finished, too; rows that are lost with the producer are not.
            if lost is None or not self.closed:
                self._acked[collector] = max(self._acked[collector], end)
            while waiting and waiting[0][0] < end:
                row, future = waiting.popleft()
                if future.done():
                    continue
                at = row - first_row
                seq = None if first_seq is None else first_seq + at
                place = None if offset is None else offset + at
                delivery = self._delivery(collector, 1, seq, place, lost)
                if delivery.error is None:
                    future.set_result(delivery)
                else:
                    future.set_exception(delivery.error)
            if self._on_delivery is not None:
                try:
                    self._on_delivery(self._delivery(collector, rows, first_seq, offset, lost))
                except Exception as error:
                    message = "on_delivery of a producer failed"
                    asyncio.get_running_loop().call_exception_handler(
                        {"message": message, "exception": error}
                    )
        self._progress.set()
        self._rest()

    async def __aenter__(self) -> Self:
        self._watch()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncFollower(FollowerBase):
    """Rows of a log as they arrive, for ``async for``; made by `AsyncClient.follow`.

    The iteration waits in the event loop, without a thread. It ends when the follower is
    closed, or when no row arrived for `timeout_s` seconds; with ``timeout_s=0`` it reads the
    rows that are there when it begins. It survives restarts of the collector. A task that is
    cancelled while it waits loses no row. One task at a time may iterate.

    Raises:
        CollectorGone: While iterating, if the collector did not answer for as long as the
            client's calls may take. Iterating again continues at the same position.
        DataLoss: While iterating, if rows that are due are not in the log any more.

    Example:
        ```python
        async with client.follow("temperature", group="report") as rows:
            async for row in rows:
                print(row.offset, row.topic, row.value)
                await rows.commit()
        ```
    """

    _is_waited_for = False
    # The future that a wait in the loop awaits.
    _ready: "asyncio.Future[None] | None" = None
    # The descriptors of that wait.
    _watched: Sequence[int] = ()
    # The task that asks the collector where to begin, and the number of tasks that await it.
    _beginning: "asyncio.Task[_native.Follow] | None" = None
    _beginners = 0
    # Those of the client.
    _threads: Threads

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        if self._is_closed:
            raise StopAsyncIteration
        while self._taken == len(self._rows):
            follow = await self._continued()
            found = await self._wait(follow, follow._next_rows)
            if found is None:
                raise StopAsyncIteration
            self._put(*found)
        return self._take()

    async def tables(self) -> AsyncIterator[ArrowTable]:
        """Reads the rows in tables instead, one for each batch of the log.

        Returns:
            An asynchronous iterator over Arrow tables with the columns of
            `Client.fetch_tables`, headers included.
        """
        self._check_passed()
        while not self._is_closed:
            follow = await self._continued()
            found = await self._wait(follow, follow._next_table)
            if found is None:
                return
            table, end = found
            self._pass(end)
            if table.num_rows:
                yield table

    async def batches(self) -> "AsyncIterator[pyarrow.RecordBatch]":
        """Reads the rows in batches of pyarrow instead; see `tables`.

        Returns:
            An asynchronous iterator over batches with the columns of `Client.fetch`, headers
            included.
        """
        with needed_by("AsyncFollower.batches", extra="arrow"):
            import pyarrow

        async for table in self.tables():
            yield pyarrow.record_batch(table)

    async def commit(self, offset: int | None = None) -> int:
        """Stores the position of the group at the collector; see `Follower.commit`.

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
        await self._begun()
        # The current position, because other tasks may read on before the thread runs.
        return await self._threads.run(self._commit, *self._to_commit(offset))

    async def close(self) -> None:
        """Ends the iteration, even if another task waits in it, and closes the connection."""
        # The loop must not watch descriptors that are closed.
        self._unwatch()
        self._stop()
        self._look()

    async def _begun(self) -> _native.Follow:
        return self._follow or await self._shared(self._begin)

    async def _continued(self) -> _native.Follow:
        if self._follow is None or self._is_through():
            return await self._shared(self._continue)
        return self._follow

    async def _shared(self, begin: Callable[[], _native.Follow]) -> _native.Follow:
        """Begins. If the task is cancelled, the next task awaits what it has begun."""
        if self._beginning is None:
            self._beginning = asyncio.create_task(self._threads.run(begin))
            self._beginning.add_done_callback(self._on_begun)
        beginning = self._beginning
        self._beginners += 1
        try:
            return await asyncio.shield(beginning)
        finally:
            self._beginners -= 1
            if not beginning.done():
                # A program that repeatedly waits for a short time makes progress, too.
                beginning.get_loop().call_later(_LOOK, self._give_up, beginning)

    def _give_up(self, beginning: "asyncio.Task[_native.Follow]") -> None:
        """Ends the request for the start if no task awaits it."""
        if self._beginning is beginning and not self._beginners:
            self._beginning = None
            beginning.cancel()

    def _on_begun(self, beginning: "asyncio.Task[_native.Follow]") -> None:
        if self._beginning is beginning:
            self._beginning = None
        _look(beginning)

    async def _wait(
        self, follow: _native.Follow, attempt: Callable[[float | None, bool], _T | None]
    ) -> _T | None:
        if self._is_waited_for:
            raise RuntimeError("another task waits for this follower's next row")
        self._is_waited_for = True
        try:
            await others()
            limit = None if self._timeout_s is None else time.monotonic() + self._timeout_s
            found = attempt(0, True)
            while found is None and not follow._stopped:
                left = _LOOK if limit is None else min(_LOOK, limit - time.monotonic())
                if left <= 0:
                    return None
                await self._readable(follow._fds(), left)
                found = attempt(0, False)
            return found
        finally:
            self._is_waited_for = False

    async def _readable(self, descriptors: list[int], limit: float) -> None:
        """Waits in the loop until a descriptor is readable or the time is up (in seconds)."""
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        timer = loop.call_later(limit, self._look)
        self._watched = descriptors
        for descriptor in descriptors:
            loop.add_reader(descriptor, self._look)
        try:
            await self._ready
        finally:
            timer.cancel()
            self._unwatch()
            self._ready = None

    def _unwatch(self) -> None:
        # A loop that was closed while a task waited watches nothing any more.
        if self._ready is not None and not self._ready.get_loop().is_closed():
            for descriptor in self._watched:
                self._ready.get_loop().remove_reader(descriptor)
        self._watched = ()

    def _look(self) -> None:
        if self._ready is None or self._ready.done() or self._ready.get_loop().is_closed():
            return
        self._ready.set_result(None)

    async def __aenter__(self) -> Self:
        await self._begun()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncClient:
    """A `Client` for asyncio, also available as `zeroxide.asyncio.Client`.

    Its options and methods are those of `Client`, and calls are awaited. `follow` waits in the
    loop itself, and other calls wait in threads of the client, up to eight at a time. When a
    task is cancelled, its call ends.

    Args:
        endpoint: The collector's address.
        timeout_s: Seconds to wait for an answer before asking again.
        retries: How many times to ask again.
        server_key: The collector's public CURVE key.
        public_key: This client's CURVE key.
        secret_key: The secret part of it.

    Raises:
        ZMQError: If the endpoint is malformed.
        ValueError: If a key is malformed.

    Example:
        ```python
        async with AsyncClient("tcp://collector:5555") as client:
            async for row in client.follow("temperature", start="latest"):
                print(row.value)
        ```
    """

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
        self._client = Client(
            endpoint,
            timeout_s=timeout_s,
            retries=retries,
            server_key=server_key,
            public_key=public_key,
            secret_key=secret_key,
        )
        self._threads = Threads()
        self._followers: weakref.WeakSet[AsyncFollower] = weakref.WeakSet()

    @property
    def endpoint(self) -> str:
        """The collector's address."""
        return self._client.endpoint

    async def info(self) -> Info:
        """Returns what the collector's log contains; see `Client.info`.

        Returns:
            Its offsets, size, and times of receipt.
        """
        return await self._threads.run(self._client.info)

    async def groups(self) -> dict[str, int]:
        """Returns the positions of the groups of consumers; see `Client.groups`.

        Returns:
            A dict from the group's name to the first offset that the group still needs. It has
            at most 1,000 groups, those that are furthest behind; ``groups_unlisted`` of `stats`
            says how many more there are.
        """
        return await self._threads.run(self._client.groups)

    async def drop_group(self, group: str) -> bool:
        """Forgets a group of consumers; see `Client.drop_group`.

        Args:
            group: The group's name.

        Returns:
            Whether there was such a group.
        """
        return await self._threads.run(self._client.drop_group, group)

    async def committed(self, group: str) -> int | None:
        """Returns the position of a group of consumers; see `Client.committed`.

        Args:
            group: The group's name.

        Returns:
            The first offset that the group still needs; None if it has not committed.
        """
        return await self._threads.run(self._client.committed, group)

    async def commit(self, group: str, offset: int, *, generation: str | None = None) -> int:
        """Stores the position of a group of consumers; see `Client.commit`.

        Args:
            group: The group's name.
            offset: The first offset that the group still needs.
            generation: The generation of the row before it, from `Info.generation`.

        Returns:
            The position that was committed.
        """
        call = self._client.commit
        return await self._threads.run(call, group, offset, generation=generation)

    async def offset_at(self, timestamp: datetime | float | int) -> int:
        """Returns the first offset that was received at a time or later; see `Client.offset_at`.

        Args:
            timestamp: A datetime, a float of seconds, or an int of microseconds since 1970.

        Returns:
            The offset.
        """
        return await self._threads.run(self._client.offset_at, timestamp)

    async def offset_after(self, start: int, size: int) -> int:
        """Returns the end of a range of about `size` bytes; see `Client.offset_after`.

        Args:
            start: The first offset.
            size: Bytes that the rows take in the log.

        Returns:
            The offset after the range.
        """
        return await self._threads.run(self._client.offset_after, start, size)

    async def fetch(
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
    ) -> "AsyncIterator[pyarrow.RecordBatch]":
        """Reads a range of offsets, in order; see `Client.fetch`, as for all arguments.

        Args:
            start: The first offset.
            end: The offset after the last row.
            topics: Only rows whose topic begins with one of these.
            partition: The content of the column of that name.
            headers: Whether there is a column of headers.
            frames: Whether there is a column of all frames of a message.
            max_bytes: The size of the answers to ask for, approximately, in bytes.
            log_id: The log that the offsets belong to.
            generation: The generation of the row before `start`.

        Returns:
            An asynchronous iterator over batches of pyarrow.
        """
        with needed_by("AsyncClient.fetch", extra="arrow"):
            import pyarrow

        tables = self._client.fetch_tables(
            start,
            end,
            topics=topics,
            partition=partition,
            headers=headers,
            frames=frames,
            max_bytes=max_bytes,
            log_id=log_id,
            generation=generation,
        )
        while (table := await self._threads.run(next, tables, None)) is not None:
            yield pyarrow.record_batch(table)

    def follow(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        group: str | None = None,
        start: Start | None = None,
        timeout_s: float | None = None,
        max_bytes: int = 8 << 20,
    ) -> AsyncFollower:
        """Reads rows as they arrive, waiting for those that are not there yet.

        The start position is requested with the first row, or at the beginning of an ``async with``
        block.

        Args:
            topics: Only rows whose topic begins with this, or with one of these.
            group: The name of a group of consumers; see `Client.follow`.
            start: An offset, a datetime, ``"earliest"`` or ``"latest"``. Default: the
                group's position; without one, the earliest row.
            timeout_s: Seconds without a row after which the iteration ends; 0 reads only
                the rows that are there. Default: None, no limit.
            max_bytes: The size of the answers to ask for, approximately, in bytes.

        Returns:
            An asynchronous iterator over rows, which is closed when the client is closed.

        Raises:
            TypeError: If an argument is of the wrong type.
            ValueError: If `start` or a number is out of range.
        """
        follower = AsyncFollower(self._client, topics, group, start, timeout_s, max_bytes)
        follower._threads = self._threads
        self._followers.add(follower)
        return follower

    async def stage(
        self, query: str, batch: int, partition: int, attempt: int, part: int, rows: ArrowData
    ) -> int:
        """Writes rows to the collector's disk, to be published later; see `Client.stage`.

        Args:
            query: The name of the query that writes.
            batch: The number of the batch that is published as a whole.
            partition: The task's part of the batch.
            attempt: A number that distinguishes attempts at the same partition.
            part: The number of these rows among those of the attempt, counted from 0.
            rows: An Arrow table or batch with the column `value`.

        Returns:
            The number of rows.
        """
        call = self._client.stage
        return await self._threads.run(call, query, batch, partition, attempt, part, rows)

    async def publish(
        self, query: str, batch: int, parts: Iterable[tuple[int, int, int]]
    ) -> Published:
        """Makes staged rows visible to every reader, all of them or none; see `Client.publish`.

        Args:
            query: As it was given to `stage`.
            batch: As it was given to `stage`.
            parts: (partition, attempt, number of parts) of the attempts that count, at most
                65,536.

        Returns:
            The offsets of the rows.
        """
        return await self._threads.run(self._client.publish, query, batch, parts)

    async def abort(
        self, query: str, batch: int, attempts: Iterable[tuple[int, int]] | None = None
    ) -> None:
        """Forgets staged rows; see `Client.abort`.

        Args:
            query: As it was given to `stage`.
            batch: As it was given to `stage`.
            attempts: (partition, attempt) of those to forget, at most 65,536. Default: None,
                all of the batch.
        """
        await self._threads.run(self._client.abort, query, batch, attempts)

    async def stats(self) -> "CollectorStats":
        """The collector's counters; see `Client.stats`.

        Returns:
            A dict with the counters, see `CollectorStats`.
        """
        return await self._threads.run(self._client.stats)

    async def close(self) -> None:
        """Ends its connections and closes its followers: loops over them end.

        A later call makes new connections.
        """
        followers = list(self._followers)
        self._followers.clear()
        for follower in followers:
            await follower.close()
        self._client.close()
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient {self.endpoint}>"


def _look(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()
