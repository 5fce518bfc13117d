"""Producers and clients for gevent."""

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import gevent
from gevent.hub import get_hub
from gevent.lock import RLock
from gevent.socket import wait_read
from gevent.threadpool import ThreadPool

from .. import _native
from .._native import ArrowTable
from .._typing import ArrowData
from ..constants import POLLIN
from ..pipeline._client import Client as _BlockingClient
from ..pipeline._follow import Follower as _BlockingFollower
from ..pipeline._follow import Record, Start
from ..pipeline._producer import Headers, Row, Timestamp, Value, add_attributes
from ..pipeline._producer import Producer as _BlockingProducer
from .poll import _Watch
from .waiting import others

__all__ = ["Client", "Follower", "Producer"]

_T = TypeVar("_T")
_CallableT = TypeVar("_CallableT", bound=Callable[..., Any])

# The maximum number of calls that wait in a hub's threads at the same time.
_MOST = 8

# A waiting follower checks its connection at least this often, in seconds.
_LOOK = 1.0


def _patiently(call: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    """Makes a blocking call in a thread, while other greenlets run.

    If the greenlet is killed or its `gevent.Timeout` expires, the call ends.
    """
    hub = get_hub()
    if gevent.getcurrent() is hub:
        return call(*arguments, **options)
    interruption = _native.Interruption()

    def attempt() -> tuple[Any, BaseException | None]:
        try:
            return interruption.run(partial(call, *arguments, **options)), None
        except BaseException as error:
            # The pool would print it.
            return None, error

    try:
        result, error = _pool(hub).apply(attempt)
    finally:
        # The call is still running only if its greenlet no longer waits for it.
        interruption.interrupt()
    if error is not None:
        raise error
    return cast(_T, result)


def _pool(hub: Any) -> ThreadPool:
    """The hub's threads for calls that wait. Its own pool is for the program and for resolving names."""
    pool = getattr(hub, "_zeroxide_pool", None)
    if pool is None:
        pool = hub._zeroxide_pool = ThreadPool(_MOST, hub=hub)
    return cast(ThreadPool, pool)


def _patient(call: _CallableT) -> _CallableT:
    """Returns the method with each call made in a thread."""

    @wraps(call)
    def patient(*arguments: Any, **options: Any) -> Any:
        return _patiently(call, *arguments, **options)

    return patient  # type: ignore[return-value]


class Producer(_BlockingProducer):
    """A `zeroxide.pipeline.Producer` for gevent: a call that waits blocks only its greenlet.

    `on_delivery` is called in a greenlet.
    """

    def _begin(self) -> None:
        self._delivering = RLock()
        if self._on_delivery is not None:
            gevent.spawn(_deliver, weakref.ref(self), os.dup(self._notices_fd()))

    def send(
        self,
        value: Value,
        key: Value | None = None,
        topic: Value | None = None,
        headers: Headers | None = None,
        timestamp: Timestamp | None = None,
    ) -> None:
        others()
        if self._try_send(value, key, topic, headers, timestamp) is None:
            _patiently(super().send, value, key, topic, headers, timestamp)

    def send_batch(
        self,
        values: Iterable[Row],
        key: Value | None = None,
        topic: Value | None = None,
        headers: Headers | None = None,
        timestamp: Timestamp | None = None,
    ) -> int:
        if isinstance(values, list | tuple):
            return _patiently(super().send_batch, list(values), key, topic, headers, timestamp)
        if isinstance(values, str | bytes | bytearray | memoryview | Mapping):
            raise TypeError("send_batch takes many values; send takes one")
        taken, left = 0, {}
        try:
            for row in values:
                left = {"unsent": row}
                others()
                if not self._try_take(row, key, topic, headers, timestamp):
                    _patiently(super().send_batch, [row], key, topic, headers, timestamp)
                left = {}
                taken += 1
        except BaseException as error:
            add_attributes(error, sent=taken, **left)
            raise
        return taken

    def send_arrow(self, data: ArrowData) -> int:
        return _patiently(super().send_arrow, data)

    if not TYPE_CHECKING:
        # Type checkers see the inherited methods: only the waiting differs.
        _flush = _patient(_BlockingProducer._flush)
        _end = _patient(_BlockingProducer._end)


class Follower(_BlockingFollower):
    """Rows of a log as they arrive; made by `zeroxide.green.Client.follow`.

    It does what `zeroxide.pipeline.Follower` does, and blocks only its greenlet.
    """

    _watch: "_Watch | None" = None
    _is_waited_for = False

    def __next__(self) -> Record:
        if self._is_closed:
            raise StopIteration
        while self._taken == len(self._rows):
            follow = self._continue()
            found = self._wait(follow, follow._next_rows)
            if found is None:
                raise StopIteration
            self._put(*found)
        return self._take()

    def tables(self) -> Iterator[ArrowTable]:
        """Reads the rows in tables instead; see `zeroxide.pipeline.Follower.tables`.

        Returns:
            An iterator over Arrow tables.
        """
        self._check_passed()
        while not self._is_closed:
            follow = self._continue()
            found = self._wait(follow, follow._next_table)
            if found is None:
                return
            table, end = found
            self._pass(end)
            yield table

    def _wait(
        self, follow: _native.Follow, attempt: Callable[[float | None, bool], _T | None]
    ) -> _T | None:
        if self._is_waited_for:
            raise RuntimeError("another greenlet waits for this follower's next row")
        self._is_waited_for = True
        try:
            others()
            limit = None if self._timeout_s is None else time.monotonic() + self._timeout_s
            found = attempt(0, True)
            while found is None and not follow._stopped:
                left = _LOOK if limit is None else min(_LOOK, limit - time.monotonic())
                if left <= 0:
                    return None
                watch = self._watch = _Watch([(fd, POLLIN) for fd in follow._fds()])
                with watch as event:
                    event.wait(left)
                found = attempt(0, False)
            return found
        finally:
            self._watch = None
            self._is_waited_for = False

    def close(self) -> None:
        """Ends the iteration, even if another greenlet waits in it, and closes the connection."""
        # The hub must not watch descriptors that are closed.
        if self._watch is not None:
            self._watch.stop()
            self._watch.event.set()
        self._stop()


class Client(_BlockingClient):
    """A `zeroxide.pipeline.Client` for gevent: a call that waits blocks only its greenlet.

    `follow` waits without a thread. Other calls wait in threads, up to eight at a time. When a
    greenlet is killed, its call ends.
    """

    if not TYPE_CHECKING:
        # Type checkers see the inherited methods: only the waiting differs.
        _info = _patient(_BlockingClient._info)
        _position = _patient(_BlockingClient._position)
        _commit = _patient(_BlockingClient._commit)
        _offset_at = _patient(_BlockingClient._offset_at)
        _offset_after = _patient(_BlockingClient._offset_after)
        _stage = _patient(_BlockingClient._stage)
        _publish = _patient(_BlockingClient._publish)
        _abort = _patient(_BlockingClient._abort)
        _stats = _patient(_BlockingClient._stats)

        def _fetch(self, start: int, end: int, **options: Any) -> Any:
            return _tables(super()._fetch(start, end, **options))

    def drop_group(self, group: str) -> bool:
        return _patiently(super().drop_group, group)

    def follow(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        group: str | None = None,
        start: Start | None = None,
        timeout_s: float | None = None,
        max_bytes: int = 8 << 20,
    ) -> Follower:
        """Reads rows as they arrive; see `zeroxide.pipeline.Client.follow`.

        Args:
            topics: Only rows whose topic begins with this, or with one of these.
            group: The name of a group of consumers.
            start: An offset, a datetime, ``"earliest"`` or ``"latest"``. Default: the
                group's position; without one, the earliest row.
            timeout_s: Seconds without a row after which the iteration ends; 0 reads only
                the rows that are there. Default: None, no limit.
            max_bytes: About how many bytes to ask for at once.

        Returns:
            An iterator over rows, which is closed at the end of a ``with`` block, or when the
            client is closed.
        """
        return self._begun(Follower(self, topics, group, start, timeout_s, max_bytes))


def _deliver(reference: "weakref.ref[Producer]", notices: int) -> None:
    """Calls a producer's callback until the producer ends or is forgotten."""
    try:
        while (producer := reference()) is not None:
            there = producer._await_notices(0)
            if there is None:
                return
            if there:
                producer._run_callbacks()
            del producer
            with contextlib.suppress(TimeoutError):
                wait_read(notices, _LOOK)
    finally:
        os.close(notices)


def _tables(tables: _native.Fetch) -> Iterator[ArrowTable]:
    while (table := _patiently(next, tables, None)) is not None:
        yield table


# In tracebacks and `help()`, too.
for _kind in (Client, Follower, Producer):
    _kind.__module__ = __package__
