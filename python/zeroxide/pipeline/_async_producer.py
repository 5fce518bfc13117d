"""A producer for asyncio."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from .. import _checks
from .._native import ArrowTable
from .._turns import others
from .._typing import ArrowData
from ._errors import CollectorError, NotAcknowledged
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
from ._threads import Threads, retrieve

__all__ = ["AsyncProducer"]


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
        future.add_done_callback(retrieve)
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
