"""Producers: rows into a collector's log, acknowledged once they are on its disk.

    with Producer("tcp://collector:5555", name="sensor-7") as producer:
        producer.send(b"21.5", key="kitchen", topic="temperature")
        producer.flush()

Every row is in the log exactly once. Rows that are not acknowledged are sent again, also
to a collector that was restarted, and the collector drops those that it has already. With
``spool=DIR`` this holds beyond the end of the process.
"""

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from .. import _checks, _native, _observing
from .._closing import Closing
from .._hints import hinting
from .._last_turns import raise_at_end, report_at_end, take_turns
from ._errors import CollectorError, CollectorGone, NotAcknowledged
from ._renamed import renamed

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._stats import ProducerStats
else:
    Buffer = object  # Python has a name for it from 3.12 on

__all__ = [
    "Delivery",
    "Headers",
    "Producer",
    "ProducerBase",
    "Row",
    "Timestamp",
    "Value",
    "add_attributes",
]

Value: TypeAlias = str | Buffer
Headers: TypeAlias = Mapping[str, Value] | Iterable[tuple[str, Value]]
Timestamp: TypeAlias = datetime | float | int
# A value, or a mapping with `value` and optionally `key`, `topic`, `headers`, `timestamp`.
Row: TypeAlias = Value | Mapping[str, Any]

_log = logging.getLogger("zeroxide.producer")

# The time that a program which ends without closing its producers waits for their last rows.
_LAST_WORDS = 2.0

# How long `close` waits where a spool keeps what is not acknowledged.
SPOOLED = 5.0

_producers: weakref.WeakSet["ProducerBase"] = weakref.WeakSet()

# Producers whose `close` was interrupted. The program may have no other reference to one, which must
# not end before its rows are delivered or reported.
_interrupted: set["ProducerBase"] = set()


class Delivery(NamedTuple):
    """The outcome of consecutive rows: on the collector's disk, or lost."""

    first_seq: int | None
    """Sequence number of the first row; None if the rows never got one."""
    last_seq: int | None
    """Sequence number of the last row."""
    offset: int | None
    """Offset of the first row in the log. None if rows were acknowledged together with later ones
    because the collector's replies found no room, or if they were sent again and an earlier
    attempt had delivered some of them.
    """
    endpoint: str
    """The collector's endpoint."""
    error: CollectorError | None = None
    """None if the rows are on the collector's disk; otherwise the reason why they never will be."""


class ProducerBase(_native.Producer):
    """The common part of the blocking and the asyncio producer: options, counters, the end."""

    # Whether rows are reported one by one, beside those for `on_delivery`.
    _reports_rows: ClassVar[bool] = False
    # Whether a signal or a cancellation ended `close` early. The next call continues it.
    _is_interrupted = False
    # Whether `close` has learnt what became of the rows, and its error if some are lost.
    _is_decided = False
    _outcome: CollectorError | None = None

    @renamed(timeout="timeout_s")
    @hinting
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
        timeout_s: float | None = 60.0,
        server_key: str | bytes | None = None,
        public_key: str | bytes | None = None,
        secret_key: str | bytes | None = None,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> None:
        if isinstance(endpoint, str) or not isinstance(endpoint, Iterable):
            endpoint = [endpoint]
        endpoints = [_checks.endpoint(one) for one in endpoint]
        if name is not None:
            _checks.name("name", name)
        for option, seconds in (("linger_ms", linger_ms), ("timeout_s", timeout_s)):
            if seconds is not None or option == "linger_ms":
                _checks.number(option, seconds)
        for option, number in (
            ("max_unacked_rows", max_unacked_rows),
            ("max_unacked_bytes", max_unacked_bytes),
            ("spool_bytes", spool_bytes),
            ("batch_rows", batch_rows),
            ("batch_bytes", batch_bytes),
        ):
            _checks.whole(option, number, least=1)
        if on_delivery is not None and not callable(on_delivery):
            raise TypeError(
                f"on_delivery takes a function of a Delivery, not {_checks.shown(on_delivery)}"
            )
        _let_go_of_delivered()
        self._endpoints = endpoints
        self._timeout_s = timeout_s
        self._has_spool = spool is not None
        self._pid = os.getpid()
        self._on_delivery = on_delivery
        self._open(
            endpoints,
            name=name,
            spool=None if spool is None else _checks.path("spool", spool),
            spool_bytes=spool_bytes,
            spool_sync=_checks.flag("spool_sync", spool_sync),
            max_unacked_rows=max_unacked_rows,
            max_unacked_bytes=max_unacked_bytes,
            linger_ms=linger_ms,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            timeout=timeout_s,
            server_key=server_key,
            public_key=public_key,
            secret_key=secret_key,
            notices=self._reports_rows or on_delivery is not None,
        )
        _observing.note_start()
        self._begin()
        _producers.add(self)

    def _begin(self) -> None:
        """Prepares what a form needs before its first row."""
        raise NotImplementedError("the blocking and the asyncio form prepare themselves")

    @property
    def endpoints(self) -> list[str]:
        """The addresses of its collectors."""
        return list(self._endpoints)

    def stats(self) -> "ProducerStats":
        """Returns the producer's counters, and its state at each collector.

        Returns:
            A dict with the numbers of accepted, acknowledged and unacknowledged rows, and for
            each collector whether it is connected, and if not, why.
        """
        stats: ProducerStats = self._stats()
        return stats

    def _report(self) -> None:
        """Logs events that matter to the user but do not stop the producer."""
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
        """Ends it within `timeout` seconds; returns the number of lost rows by endpoint."""
        left: dict[str, int] = {}
        self._shut()
        try:
            left = self._flush(timeout)
        except CollectorError as error:
            left = {str(self._outcome or error): 0}
        # Not after an exception of a signal handler: the next call reports what is left.
        self._end()
        return self._unspooled() if self._has_spool else left

    def _is_closed_for_good(self) -> bool:
        return self.closed and not (self._is_interrupted and self._pid == os.getpid())

    def _interrupt(self) -> None:
        """Keeps a producer whose `close` was interrupted, until all of its rows are delivered.

        If a spool has them all, the producer ends at once: its next run sends them.
        """
        self._is_interrupted = True
        if self._has_spool and not self._unspooled():
            self._is_decided = True
            self._end()
            return
        _let_go_of_delivered()
        _interrupted.add(self)

    def _has_delivered(self) -> bool:
        return not self._stats()["unacknowledged"]

    def _let_go(self) -> None:
        _interrupted.discard(self)

    def _finish(self) -> None:
        """Ends `close`: raises its error if rows are lost."""
        self._is_interrupted = False
        self._let_go()
        outcome, self._outcome = self._outcome, None
        if outcome is not None:
            raise outcome
        self._check_spool()

    def _is_kept(self, error: CollectorError) -> bool:
        """Whether the spool keeps the rows of a producer whose end met this error."""
        passes = isinstance(error, CollectorGone | NotAcknowledged) or bool(self._unspooled())
        return self._has_spool and passes

    def _check_spool(self) -> None:
        """Raises if some rows could not be put into the spool: they are lost."""
        if self._has_spool and (left := self._unspooled()):
            raise NotAcknowledged("the last rows could not be put into the spool", left)

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        return f"<{type(self).__name__} {', '.join(self._endpoints)}{state}>"


class Producer(ProducerBase, Closing):
    """Sends rows to one or several collectors; each row arrives exactly once.

    A thread of the producer sends rows in batches. A batch is sent when it has `batch_rows`
    rows or `batch_bytes` bytes, or when its first row has waited for `linger_ms`. Rows that
    are not acknowledged stay in memory. When there are `max_unacked_rows` of them, or
    `max_unacked_bytes`, `send` waits.

    With several collectors, rows with the same key go to the same collector (FNV-1a of the
    key). Batches of rows without a key go to those that are connected, in turn. The order
    of rows is kept per collector.

    Any thread may use a producer, but only in the process that made it. It closes itself at
    the end of a ``with`` block.

    Args:
        endpoint: Address of the collector, or addresses of several.
        name: The name under which the collector remembers which rows it has. A producer
            that is started again with the same name continues its sequence numbers. Of two
            producers with one name at the same time, the later one wins and the earlier one
            raises `Fenced`. Default: a random name.
        spool: A folder in which rows are kept until they are acknowledged, so that they
            survive the process. The next producer with this folder sends them first, under
            the name that is kept there.
        spool_bytes: The maximum number of bytes in the spool; then `send` waits, as it does
            while the disk is full.
        spool_sync: Syncs each batch to the disk, so that rows also survive a power cut.
        max_unacked_rows: Rows that may be unacknowledged.
        max_unacked_bytes: Bytes that may be unacknowledged.
        linger_ms: Milliseconds that a row waits for others of its batch.
        batch_rows: Rows of a batch.
        batch_bytes: Bytes of a batch.
        timeout_s: Seconds for which a collector may be gone, or accept nothing, before `send`
            and `flush` raise `CollectorGone` or `Refused`; None means no limit. The rows
            are kept, and are sent when the collector is back. With a spool, `send` raises
            only once the spool is full.
        server_key: The collector's public CURVE key.
        public_key: This producer's CURVE key. It can be omitted together with `secret_key`
            where the collector admits every key.
        secret_key: The secret part of it.
        on_delivery: A function that is called with a `Delivery` for rows that are on the
            collector's disk, or never will be. It is called from a thread of the producer,
            or within `flush` and `close`, and never twice at the same time. Consecutive rows
            are reported in one call.

    Raises:
        ValueError: If a number is out of range, or a key is malformed.
        CollectorError: If the spool cannot be used, or an endpoint is malformed.

    Example:
        ```python
        with Producer("tcp://collector:5555", name="sensor-7") as producer:
            producer.send(b"21.5", key="kitchen", topic="temperature")
            producer.flush()
        ```
    """

    def _begin(self) -> None:
        # Held while callbacks run, so that they run one at a time and in order. A callback may
        # flush.
        self._delivering = threading.RLock()
        if self._on_delivery is not None:
            # Not a reference: the thread must not keep the producer alive.
            thread = threading.Thread(
                target=_deliver, args=(weakref.ref(self),), name="zeroxide-delivery", daemon=True
            )
            thread.start()

    @renamed(timeout="timeout_s")
    def flush(self, timeout_s: float | None = None) -> None:
        """Waits until every row that was sent before is on the collector's disk.

        Args:
            timeout_s: Seconds to wait; None waits for as long as the collector is there.

        Raises:
            NotAcknowledged: After `timeout_s` seconds; `remaining` has the number of rows.
            CollectorGone: If the collector is gone for longer than the producer's timeout_s.
            Refused: Once, if rows were set aside, or if the collector lost rows that it had
                acknowledged. The other rows are sent as usual.
        """
        if timeout_s is not None:
            _checks.number("timeout_s", timeout_s)
        try:
            left = self._flush(timeout_s)
        finally:
            self._report()
            self._run_callbacks()
        if left:
            raise NotAcknowledged.after(timeout_s, left, closed=self.closed)

    @renamed(timeout="timeout_s")
    def close(self, timeout_s: float | None = None) -> None:
        """Flushes and ends the producer. Closing it again does nothing.

        If a signal handler raises during the call, the producer takes no more rows, but still
        delivers those that it has, or leaves them to its spool. Calling `close` again continues the
        wait. If the program ends instead, rows that are not acknowledged within two seconds are
        reported on stderr.

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
        try:
            if not self._is_decided:
                self._shut()
                self._decide(timeout_s)
            self._end()
        except BaseException:
            self._interrupt()
            raise
        try:
            self._report()
            self._run_callbacks()
        finally:
            self._finish()

    def _decide(self, timeout_s: float | None) -> None:
        """Waits until the rows are acknowledged, or never will be."""
        try:
            left = self._flush(timeout_s)
        except CollectorError as error:
            self._outcome = None if self._is_kept(error) else error
        else:
            if left and not self._has_spool:
                self._outcome = NotAcknowledged.after(timeout_s, left, closed=True)
        self._is_decided = True

    def _run_callbacks(self) -> None:
        call = self._on_delivery
        if call is None:
            return
        with self._delivering:
            for collector, _, rows, first_seq, offset, lost in self._take_notices():
                try:
                    call(self._delivery(collector, rows, first_seq, offset, lost))
                except Exception:
                    # As in any thread, because the caller of `flush` did not make this mistake.
                    threading.excepthook(
                        threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread()))
                    )


def _deliver(reference: "weakref.ref[Producer]") -> None:
    """Calls a producer's callback until the producer ends or is forgotten."""
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


def _let_go_of_delivered() -> None:
    """Lets go of the producers that need no other call of `close`."""
    for producer in list(_interrupted):
        if producer._pid != os.getpid() or producer._has_delivered():
            producer._let_go()


def add_attributes(error: BaseException, **attributes: Any) -> None:
    """Adds attributes to an exception, if it takes any."""
    with contextlib.suppress(AttributeError):
        for name, value in attributes.items():
            setattr(error, name, value)


def _close_all() -> None:
    """Gives producers that were left open a moment for their last rows; reports what is lost."""
    deadline = time.monotonic() + _LAST_WORDS
    ends = [
        partial(_report_end, producer, deadline)
        for producer in list(_producers)
        if producer._pid == os.getpid() and not producer._is_closed_for_good()
    ]
    raise_at_end(take_turns(ends))


def _report_end(producer: ProducerBase, deadline: float, hurried: bool) -> None:
    """Ends one producer, and prints which rows are lost; without a wait if `hurried`."""
    patience = 0.0 if hurried else max(0.0, deadline - time.monotonic())
    left = producer._close_now(patience)
    for endpoint, rows in left.items():
        lost = f" has not acknowledged {rows} row{'' if rows == 1 else 's'}" if rows else ""
        report_at_end(f"zeroxide: a producer was not closed: {endpoint}{lost}")


atexit.register(_close_all)
