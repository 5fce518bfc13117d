"""Greenlets that wait for a socket."""

import contextlib
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import gevent
from gevent.event import Event
from gevent.hub import get_hub
from gevent.monkey import get_original
from gevent.threadpool import ThreadPool

from .. import _native
from ..constants import DONTWAIT
from ..error import Again

__all__ = ["Waiting", "in_own_thread", "in_thread", "others"]

_T = TypeVar("_T")

# The most proxies of one hub.
_MOST = 1000

# One per thread, not per greenlet.
_thread_ident = get_original("_thread", "get_ident")


class _Turn(get_original("_thread", "_local")):  # type: ignore[misc]
    """When the hub of a thread last ran other greenlets."""

    def __init__(self) -> None:
        # The time until which no other greenlet has waited for long.
        self.until = 0.0
        # The hub has a callback that reports when others have run.
        self.told = False

    def end(self) -> None:
        self.told = False


_turn = _Turn()

# How many seconds a greenlet may continue with calls that do not wait.
_GRACE = 0.001


def others() -> None:
    """Lets other greenlets run, if they have waited for long."""
    turn, now = _turn, time.monotonic()
    if now < turn.until:
        return
    turn.until = now + _GRACE
    if not turn.told:
        turn.told = True
        get_hub().loop.run_callback(turn.end)
    elif gevent.getcurrent() is not get_hub():
        gevent.sleep(0)


class Waiting:
    """The greenlets of one hub that wait for one socket.

    Those with the same operation wait in a queue: an event wakes the first, and when it has
    finished, it wakes the next. A greenlet that only watches is woken every time.
    """

    def __init__(self, socket: _native.Socket) -> None:
        self._watcher = _native.Watcher(socket)
        hub = get_hub()
        # Sockets keep this as long as the hub exists.
        self._hub = weakref.ref(hub)
        self._io = hub.loop.io(self._watcher.fileno(), 1)
        self._lines: dict[int, deque[Event]] = {}
        self._watchers: list[Event] = []

    def call(
        self,
        event: int,
        attempt: Callable[[int], _T],
        flags: int,
        timeout: float,
        late: Callable[[], BaseException],
    ) -> _T:
        """Tries until a call does not have to wait, for `timeout` seconds; negative means no limit.

        When the time is over, raises the exception that `late` returns.
        """
        line = self._lines.setdefault(event, deque())
        turn = Event()
        line.append(turn)
        deadline = time.monotonic() + timeout
        is_late = False
        try:
            self._watch()
            while True:
                # An event may have occurred before the watch began.
                if line[0] is turn:
                    turn.clear()
                    try:
                        return attempt(flags | DONTWAIT)
                    except Again:
                        pass
                if is_late:
                    raise late()
                # Tries once more after the time limit: a busy hub may not have noticed an event that came in time.
                left = None if timeout < 0 else max(0, deadline - time.monotonic())
                is_late = not turn.wait(left)
        finally:
            line.remove(turn)
            if line:
                line[0].set()
            self._rest()

    def join(self, event: Event) -> None:
        """Sets `event` at every event of the socket, until `leave`."""
        self._watchers.append(event)
        self._watch()

    def leave(self, event: Event) -> None:
        """Undoes `join`."""
        self._watchers.remove(event)
        self._rest()

    def has_waiters(self, event: int) -> bool:
        """Whether a greenlet waits in the queue."""
        return bool(self._lines.get(event))

    def wake(self) -> None:
        """Makes all waiting greenlets try again."""
        self._watcher.clear()
        for line in self._lines.values():
            if line:
                line[0].set()
        for event in self._watchers:
            event.set()

    def close(self) -> None:
        """Wakes all greenlets for the last time, from any thread."""
        hub = self._hub()
        loop = None if hub is None else hub.loop
        if hub is None or loop is None:
            # The waiting greenlets and the loop's watcher ended with the hub.
            self._watcher.rest()
        elif hub.thread_ident == _thread_ident():
            self._close()
        else:
            loop.run_callback_threadsafe(self._close)

    def _close(self) -> None:
        self.wake()
        self._watcher.rest()
        self._io.stop()
        self._io.close()

    def _watch(self) -> None:
        self._watcher.watch()
        if not self._io.active:
            self._io.start(self.wake)

    def _rest(self) -> None:
        # A hub without watchers can detect that it is done.
        if not self._watchers and not any(self._lines.values()):
            self._watcher.rest()
            self._io.stop()


def in_own_thread(call: Callable[..., _T], *arguments: Any) -> _T:
    """Runs a native call that may never return in a thread of its own, and ends it with its greenlet.

    The greenlet ends after the thread, so the call no longer takes messages then.
    """
    hub = get_hub()
    if gevent.getcurrent() is hub:
        return call(*arguments)
    pool = getattr(hub, "_zeroxide_proxies", None)
    if pool is None:
        pool = hub._zeroxide_proxies = ThreadPool(_MOST, hub=hub)
    interruption = _native.Interruption()

    def attempt() -> tuple[Any, BaseException | None]:
        try:
            return interruption.run(partial(call, *arguments)), None
        except BaseException as error:
            # The pool would print it.
            return None, error

    running = pool.spawn(attempt)
    try:
        result, error = running.get()
    finally:
        interruption.interrupt()
        while not running.ready():
            # Another kill, or a timeout, changes nothing: the thread ends soon.
            with contextlib.suppress(gevent.GreenletExit, gevent.Timeout):
                running.wait()
    if error is not None:
        raise error
    return cast(_T, result)


def in_thread(call: Callable[..., _T], *arguments: Any) -> _T:
    """Runs a blocking call in a thread, while other greenlets continue."""
    hub = get_hub()
    if gevent.getcurrent() is hub:
        return call(*arguments)
    result: _T = hub.threadpool.apply(call, arguments)
    return result
