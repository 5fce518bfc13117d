"""Producers: rows into a collector's log, acknowledged once they are on its disk.

    with zeroxide.Producer("tcp://collector:5555", name="sensor-7") as producer:
        producer.send(b"21.5", key="kitchen", topic="temperature")
        producer.flush()

Every row is in the log exactly once: what is not acknowledged is sent again, also to a
collector that was restarted, and the collector drops what it has already. With
``spool=DIR`` that goes on over the end of the process.
"""

import asyncio as _asyncio
import atexit
import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from . import _native
from ._closing import Closing
from ._typing import ArrowData
from .collector.errors import CollectorError, CollectorGone, Fenced, NotAcknowledged, Refused
from .events import others

if TYPE_CHECKING:
    from typing_extensions import Buffer
else:
    Buffer = object  # Python has a name for it from 3.12 on

__all__ = [
    "AsyncProducer",
    "CollectorError",
    "CollectorGone",
    "Delivery",
    "Fenced",
    "NotAcknowledged",
    "Producer",
    "Refused",
]

Value: TypeAlias = str | Buffer
Headers: TypeAlias = Mapping[str, Value] | Iterable[tuple[str, Value]]
Timestamp: TypeAlias = datetime | float | int
# A value, or a dict with `value` and, if it likes, `key`, `topic`, `headers`, `timestamp`.
Row: TypeAlias = Value | Mapping[str, Any]

_log = logging.getLogger("zeroxide.producer")

# How long a program that ends without closing its producers waits for their last rows.
_LAST_WORDS = 2.0

# How long `close` waits where a spool keeps what is not acknowledged.
_SPOOLED = 5.0

_producers: weakref.WeakSet["_Base"] = weakref.WeakSet()


class Delivery(NamedTuple):
    """Rows whose fate is known.

    They are on the collector's disk if `error` is None. `offset` is that of the first
    row; None if the collector had them before and only now said so.
    """

    first_seq: int | None
    last_seq: int | None
    offset: int | None
    endpoint: str
    error: CollectorError | None = None


class _Base(_native.Producer):
    """What both forms of a producer have."""

    def __init__(
        self,
        endpoint: str | Iterable[str],
        *,
        name: str | None = None,
        spool: str | os.PathLike[str] | None = None,
        spool_bytes: int = 1 << 30,
        spool_sync: bool = False,
        max_unacked_rows: int = 1_000_000,
        max_unacked_bytes: int = 64 << 20,
        linger_ms: float = 5,
        batch_rows: int = 8192,
        batch_bytes: int = 512 << 10,
        timeout: float | None = 60.0,
        server_key: str | bytes | None = None,
        public_key: str | bytes | None = None,
        secret_key: str | bytes | None = None,
        _notices: bool = False,
    ) -> None:
        endpoints = [endpoint] if isinstance(endpoint, str) else list(endpoint)
        for option, number in (
            ("max_unacked_rows", max_unacked_rows),
            ("max_unacked_bytes", max_unacked_bytes),
            ("spool_bytes", spool_bytes),
            ("batch_rows", batch_rows),
            ("batch_bytes", batch_bytes),
        ):
            if number < 1:
                raise ValueError(f"{option} must be at least 1, not {number}")
        if linger_ms < 0:
            raise ValueError(f"linger_ms must not be negative: {linger_ms}")
        self._endpoints = endpoints
        self._timeout = timeout
        self._has_spool = spool is not None
        self._pid = os.getpid()
        self._open(
            endpoints,
            name=name,
            spool=None if spool is None else os.fspath(spool),
            spool_bytes=spool_bytes,
            spool_sync=spool_sync,
            max_unacked_rows=max_unacked_rows,
            max_unacked_bytes=max_unacked_bytes,
            linger_ms=linger_ms,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            timeout=timeout,
            server_key=server_key,
            public_key=public_key,
            secret_key=secret_key,
            notices=_notices,
        )
        _producers.add(self)

    @property
    def endpoints(self) -> list[str]:
        """Where its collectors are."""
        return list(self._endpoints)

    def stats(self) -> dict[str, Any]:
        """Counters, and for each collector how it stands.

        `rows` came in and `acknowledged` of them are on disk; with a spool both count
        from what was left in it. For a collector, `next_seq` is the sequence number of
        the next row: as many rows has this name ever sent there. It is None until the
        collector has said what it has. `renumbered` rows went behind those that another
        producer had sent under this name, `set_aside` ones will never be sent (they are not
        among those that are `acknowledged`), and `lost` ones were acknowledged and are not
        in the log any more.
        """
        return self._stats()

    def _report(self) -> None:
        """Logs what stops nothing, and is to be known."""
        for text in self._take_reports():
            _log.warning("%s", text)

    def _delivery(
        self,
        collector: int,
        rows: int,
        first_seq: int | None,
        offset: int | None,
        lost: str | None,
    ) -> Delivery:
        last_seq = None if first_seq is None else first_seq + rows - 1
        error = None if lost is None else NotAcknowledged(lost, {self._endpoints[collector]: rows})
        return Delivery(first_seq, last_seq, offset, self._endpoints[collector], error)

    def _close_now(self, timeout: float) -> dict[str, int]:
        """Ends it after `timeout` seconds at the latest; what is lost, by endpoint."""
        left: dict[str, int] = {}
        try:
            self._shut()
            left = self._flush(timeout)
        except CollectorError as error:
            left = {str(error): 0}
        finally:
            self._end()
        return self._unspooled() if self._has_spool else left

    def _is_kept(self, error: CollectorError) -> bool:
        """Whether an end that this error met leaves rows to the spool, or `_check_spool` tells."""
        passes = isinstance(error, CollectorGone | NotAcknowledged) or bool(self._unspooled())
        return self._has_spool and passes

    def _check_spool(self) -> None:
        """Raises for rows that this end of the producer leaves nowhere."""
        if self._has_spool and (left := self._unspooled()):
            raise NotAcknowledged("there was no room in the spool for the last rows", left)

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        return f"<{type(self).__name__} {', '.join(self._endpoints)}{state}>"


class Producer(_Base, Closing):
    """Sends rows to a collector, or to several, and sees to it that each arrives once.

    Rows gather in batches: one goes when it has `batch_rows` rows or `batch_bytes`
    bytes, or its first row has waited for `linger_ms`. A thread of the producer sends
    them. Rows that are not acknowledged stay in memory; when there are
    `max_unacked_rows` of them, or `max_unacked_bytes`, `send` waits.

    name: under which the collector remembers what it has of this producer. Two
        producers with the same name at a time do not go: the later one wins, the other
        raises `Fenced`. Without one, a random name.
    spool: a folder in which rows are kept until they are acknowledged, so that they
        survive the process; at most `spool_bytes` of them, then `send` waits, as it does
        while the disk is full. The next producer with that folder sends them first, under
        the name that is kept there. With `spool_sync` each batch is synced to the disk, so
        that rows survive a power cut, too.
    timeout: for how many seconds a collector may be gone, or take nothing, before
        `send` and `flush` raise `CollectorGone` (or `Refused`); None: for ever. Rows
        stay where they are, and go out when it is back. With a spool, `send` raises only
        once the spool is full.
    server_key, public_key, secret_key: CURVE, as for sockets. The last two may be left
        out where the collector lets anybody in.
    on_delivery: called with a `Delivery` for rows that are on the collector's disk, or
        that never will be; from a thread of the producer, or from within `flush` and
        `close`, never twice at a time. Rows that follow each other are told of together.

    With several collectors, rows with the same key go to the same one (FNV-1a of the
    key), rows without a key batch by batch in turn to those that are there. Order is kept
    per collector.

    Any thread may use it, but only in the process that made it.
    """

    def __init__(
        self,
        endpoint: str | Iterable[str],
        *,
        name: str | None = None,
        spool: str | os.PathLike[str] | None = None,
        spool_bytes: int = 1 << 30,
        spool_sync: bool = False,
        max_unacked_rows: int = 1_000_000,
        max_unacked_bytes: int = 64 << 20,
        linger_ms: float = 5,
        batch_rows: int = 8192,
        batch_bytes: int = 512 << 10,
        timeout: float | None = 60.0,
        server_key: str | bytes | None = None,
        public_key: str | bytes | None = None,
        secret_key: str | bytes | None = None,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> None:
        self._on_delivery = on_delivery
        # Held while callbacks run: they come one at a time, in order. A callback may flush.
        self._delivering = threading.RLock()
        super().__init__(
            endpoint,
            name=name,
            spool=spool,
            spool_bytes=spool_bytes,
            spool_sync=spool_sync,
            max_unacked_rows=max_unacked_rows,
            max_unacked_bytes=max_unacked_bytes,
            linger_ms=linger_ms,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            timeout=timeout,
            server_key=server_key,
            public_key=public_key,
            secret_key=secret_key,
            _notices=on_delivery is not None,
        )
        if on_delivery is not None:
            # Not a reference: the thread must not keep the producer alive.
            thread = threading.Thread(
                target=_deliver, args=(weakref.ref(self),), name="zeroxide-delivery", daemon=True
            )
            thread.start()

    def flush(self, timeout: float | None = None) -> None:
        """Waits until every row that was sent before is acknowledged.

        Raises `NotAcknowledged` after `timeout` seconds, `CollectorGone` if the collector
        is gone for longer than the producer's own timeout. Raises `Refused`, once, if rows
        were set aside or the collector lost rows that it had acknowledged; the others go on.
        """
        try:
            left = self._flush(timeout)
        finally:
            self._report()
            self._run_callbacks()
        if left:
            raise NotAcknowledged.after(timeout, left)

    def close(self, timeout: float | None = None) -> None:
        """Flushes, and ends the producer. Closing it again does nothing.

        What is not acknowledged after `timeout` seconds is lost, and raises
        `NotAcknowledged`. With a spool it is kept there, and this waits no longer than
        five seconds unless told otherwise.
        """
        if self.closed:
            return
        if self._has_spool and timeout is None:
            timeout = _SPOOLED
        try:
            self._shut()
            try:
                left = self._flush(timeout)
            except CollectorError as error:
                if not self._is_kept(error):
                    raise
                left = {}
        finally:
            self._end()
            self._report()
            self._run_callbacks()
        self._check_spool()
        if left and not self._has_spool:
            raise NotAcknowledged.after(timeout, left)

    def _run_callbacks(self) -> None:
        call = self._on_delivery
        if call is None:
            return
        with self._delivering:
            for collector, _, rows, first_seq, offset, lost in self._take_notices():
                try:
                    call(self._delivery(collector, rows, first_seq, offset, lost))
                except Exception:
                    # As for any thread: whoever waits for a flush did not make this mistake.
                    threading.excepthook(
                        threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread()))
                    )


def _deliver(reference: "weakref.ref[Producer]") -> None:
    """Calls a producer's callback until it ends, or nobody has it any more."""
    while True:
        producer = reference()
        if producer is None:
            return
        there = producer._await_notices(0.5)
        if there is None:
            return
        if there:
            producer._run_callbacks()
        del producer


class AsyncProducer(_Base):
    """A producer for asyncio: `zeroxide.asyncio.Producer`.

        async with zeroxide.asyncio.Producer("tcp://collector:5555") as producer:
            delivery = await producer.send(b"21.5")   # taken
            receipt = await delivery                  # acknowledged: a Delivery
            await producer.flush()

    `await send(...)` waits while there is no room, and returns a future that is done
    when the row is on the collector's disk; nobody has to wait for it. The options are
    those of `Producer`, without `on_delivery`.
    """

    def __init__(self, endpoint: str | Iterable[str], **options: Any) -> None:
        if "on_delivery" in options:
            raise TypeError("await what send returns instead of on_delivery")
        super().__init__(endpoint, _notices=True, **options)
        self._loop: _asyncio.AbstractEventLoop | None = None
        # For each collector, rows that somebody waits for, in order.
        self._waiting: list[deque[tuple[int, _asyncio.Future[Delivery]]]] = [
            deque() for _ in self._endpoints
        ]
        # Below this row everything is acknowledged, for each collector.
        self._acked = [0] * len(self._endpoints)
        self._progress: _asyncio.Event = _asyncio.Event()

    async def send(  # type: ignore[override]
        self,
        value: Value,
        key: Value | None = None,
        topic: Value | None = None,
        headers: Headers | None = None,
        timestamp: Timestamp | None = None,
    ) -> "_asyncio.Future[Delivery]":
        """Takes a row, waiting while there is no room. Returns a future of its delivery."""
        loop = self._watch()
        await others()
        while (place := self._try_send(value, key, topic, headers, timestamp)) is None:
            self._mark()
            await self._step()
            self._check()
        collector, row = place
        future: _asyncio.Future[Delivery] = loop.create_future()
        # Nobody has to look at it, also if it ends badly.
        future.add_done_callback(_look)
        self._waiting[collector].append((row, future))
        return future

    async def send_batch(  # type: ignore[override]
        self,
        values: Iterable[Row],
        key: Value | None = None,
        topic: Value | None = None,
        headers: Headers | None = None,
        timestamp: Timestamp | None = None,
    ) -> int:
        """Takes many rows, waiting while there is no room. Returns how many.

        Rows of a list or tuple are taken in a thread; other iterables are asked for one row after
        the other, in the loop.
        """
        self._watch()
        if isinstance(values, list | tuple):
            take = super().send_batch
            return await _asyncio.to_thread(take, list(values), key, topic, headers, timestamp)
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
        """Takes the rows of a table, waiting in a thread while there is no room."""
        self._watch()
        return await _asyncio.to_thread(super().send_arrow, data)

    async def flush(self, timeout: float | None = None) -> None:
        """Waits until every row that was sent before is acknowledged; see `Producer.flush`."""
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
        """Flushes, and ends the producer; see `Producer.close`."""
        if self.closed:
            return
        if self._has_spool and timeout is None:
            timeout = _SPOOLED
        try:
            self._shut()
            await self.flush(timeout)
        except CollectorError as error:
            if not self._is_kept(error):
                raise
        finally:
            await _asyncio.to_thread(self._end)
            self._report()
            self._collect()
            if self._loop is not None:
                self._loop.remove_reader(self._notices_fd())
        self._check_spool()

    def _watch(self) -> _asyncio.AbstractEventLoop:
        loop = _asyncio.get_running_loop()
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
            await _asyncio.wait_for(self._progress.wait(), min(0.25, limit or 0.25))

    def _collect(self) -> None:
        """Tells those who wait."""
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


def _look(future: "_asyncio.Future[Delivery]") -> None:
    if not future.cancelled():
        future.exception()


def _close_all() -> None:
    """What a program left open gets a moment for its last rows; what is lost then is said."""
    deadline = time.monotonic() + _LAST_WORDS
    for producer in list(_producers):
        if producer.closed or producer._pid != os.getpid():
            continue
        for endpoint, rows in producer._close_now(max(0.0, deadline - time.monotonic())).items():
            print(
                f"zeroxide: a producer was not closed: {endpoint} has not acknowledged {rows} rows"
                if rows
                else f"zeroxide: a producer was not closed: {endpoint}",
                file=sys.stderr,
            )


atexit.register(_close_all)
