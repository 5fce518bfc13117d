"""The asyncio forms of producers and clients."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from .._turns import others
from .._typing import ArrowData
from ._errors import CollectorError, NotAcknowledged
from ._producer import SPOOLED, Delivery, Headers, ProducerBase, Row, Timestamp, Value

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
        # For each collector, rows that somebody waits for, in order.
        self._waiting: list[deque[tuple[int, asyncio.Future[Delivery]]]] = [
            deque() for _ in self._endpoints
        ]
        # Below this row everything is acknowledged, for each collector.
        self._acked = [0] * len(self._endpoints)
        self._progress: asyncio.Event = asyncio.Event()

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
        # A failure that the caller does not look at is no warning.
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
            NotAcknowledged: If the row is lost: too large for the collector, or not
                acknowledged when the producer was closed.
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
            values: Values, or dicts with `value` and optionally `key`, `topic`, `headers`
                and `timestamp`.
            key: For rows without their own, as are the other arguments.
            topic: See `send`.
            headers: See `send`.
            timestamp: See `send`.

        Returns:
            The number of rows. `flush` waits until they are on the collector's disk.

        Raises:
            CollectorGone: As `send`. The error's `sent` is the number of rows that were
                accepted, and `unsent` a row that was read from the iterable and was not.
        """
        self._watch()
        if isinstance(values, list | tuple):
            take = super().send_batch
            return await asyncio.to_thread(take, list(values), key, topic, headers, timestamp)
        if isinstance(values, str | bytes):
            raise TypeError("send_batch takes many values; send takes one")
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
            _tell(error, sent=taken, **left)
            raise
        return taken

    async def send_arrow(self, data: ArrowData) -> int:  # type: ignore[override]
        """Accepts the rows of a table, waiting in a thread while there is no room.

        Args:
            data: An Arrow table or batch with the column `value` and optionally `key`,
                `topic`, `timestamp` and `headers`.

        Returns:
            The number of rows.
        """
        self._watch()
        return await asyncio.to_thread(super().send_arrow, data)

    async def flush(self, timeout: float | None = None) -> None:
        """Waits until every row that was sent before is on the collector's disk.

        Args:
            timeout: Seconds to wait; None waits for as long as the collector is there.

        Raises:
            NotAcknowledged: After `timeout` seconds.
            CollectorGone: If the collector is gone for longer than the producer's timeout.
            Refused: Once, if rows were set aside, or if the collector lost rows that it had
                acknowledged. The other rows are sent as usual.
        """
        self._watch()
        await others()
        marks = self._mark()
        deadline = None if timeout is None else time.monotonic() + timeout
        while any(acked < mark for acked, mark in zip(self._acked, marks, strict=True)):
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise NotAcknowledged.after(timeout, self._flush(0))
            self._check_pending()
            await self._step(left)
        self._report()
        self._check_setback()

    async def close(self, timeout: float | None = None) -> None:
        """Flushes and ends the producer. Closing it again does nothing.

        Args:
            timeout: Seconds to wait for acknowledgements. The default is None, no limit
                (five seconds with a spool, which keeps the rest).

        Raises:
            NotAcknowledged: If rows are lost, since they were not acknowledged in time.
            CollectorGone: If the collector is gone for longer than the producer's timeout.
        """
        if self.closed:
            return
        if self._has_spool and timeout is None:
            timeout = SPOOLED
        try:
            self._shut()
            await self.flush(timeout)
        except CollectorError as error:
            if not self._is_kept(error):
                raise
        finally:
            await asyncio.to_thread(self._end)
            self._report()
            self._collect()
            if self._loop is not None:
                self._loop.remove_reader(self._notices_fd())
        self._check_spool()

    def _watch(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                raise RuntimeError("an asyncio producer belongs to the loop it was first used in")
            loop.add_reader(self._notices_fd(), self._collect)
            self._loop = loop
        return loop

    async def _step(self, limit: float | None = None) -> None:
        """Waits until something happens, or for a moment."""
        self._progress.clear()
        # Patience may be over without anything having happened.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._progress.wait(), min(0.25, limit or 0.25))

    def _collect(self) -> None:
        """Completes the futures of rows whose outcome is known, and calls `on_delivery`."""
        for collector, first_row, rows, first_seq, offset, lost in self._take_notices():
            waiting = self._waiting[collector]
            end = first_row + rows
            # Rows that are set aside are done with, too; those that are lost with the producer are not.
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


def _tell(error: BaseException, **told: Any) -> None:
    # An exception that takes no attributes goes without.
    with contextlib.suppress(AttributeError):
        for name, value in told.items():
            setattr(error, name, value)


def _look(future: "asyncio.Future[Delivery]") -> None:
    if not future.cancelled():
        future.exception()
