"""Waiting for many sockets and descriptors in a greenlet."""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import gevent
from gevent.event import Event
from gevent.hub import get_hub

from .. import _checks, _native
from .._exports import exports_only
from .._typing import HasFileno, PolledT
from ..constants import ENOTSOCK, POLLERR, POLLIN, POLLOUT
from ..error import failure
from ..poll import Poller, select_timeout, to_select, trouble_of
from ..poll import zmq_poll as _zmq_poll
from .waiting import Waiting

__all__ = ["_Poller", "patiently", "select", "zmq_poll"]


def __dir__() -> list[str]:
    return exports_only(globals())


_T = TypeVar("_T")
_P = TypeVar("_P", bound="int | HasFileno")


def patiently(look: Callable[[], _T], event: Event, timeout: float | None) -> _T | None:
    """Polls at once, after each `event` and after the time limit, until there is a result.

    Returns None after `timeout` milliseconds; None or a negative timeout means no limit.
    """
    forever = timeout is None or timeout < 0
    deadline = time.monotonic() + (timeout or 0) / 1000
    is_late = False
    while True:
        event.clear()
        found = look()
        if found:
            return found
        if is_late:
            return None
        # A busy hub may not have noticed an event that came in time.
        is_late = not event.wait(None if forever else max(0, deadline - time.monotonic()))


class _Watch:
    """Sets an event whenever one of several objects has an event."""

    def __init__(self, items: Sequence[tuple[Any, int]]) -> None:
        self.event = Event()
        self._joined: list[Waiting] = []
        self._own: list[Waiting] = []
        self._ios: list[Any] = []
        self._troubles: list[Any] = []
        loop = get_hub().loop
        for item, events in items:
            if isinstance(item, _native.Socket):
                self._join(item)
                continue
            fd = _fd(item)
            mask = (1 if events & POLLIN else 0) | (2 if events & POLLOUT else 0)
            trouble = trouble_of(fd, events)
            if trouble is not None:
                self._troubles.append(trouble)
                fd, mask = trouble.fileno(), 1
            if mask:
                io = loop.io(fd, mask)
                self._ios.append(io)
                io.start(self.event.set)

    def _join(self, socket: Any) -> None:
        here = getattr(socket, "_waiting_here", None)
        if here is None:
            waiting = Waiting(socket)
            self._own.append(waiting)
        else:
            waiting = here()
        waiting.join(self.event)
        self._joined.append(waiting)

    def __enter__(self) -> Event:
        return self.event

    def stop(self) -> None:
        """Stops watching descriptors, before they are closed."""
        for io in self._ios:
            io.stop()
            io.close()
        self._ios.clear()
        for trouble in self._troubles:
            trouble.close()
        self._troubles.clear()

    def __exit__(self, *_exception: object) -> None:
        self.stop()
        for waiting in self._joined:
            waiting.leave(self.event)
        for waiting in self._own:
            waiting.close()


def zmq_poll(sockets: Sequence[tuple[_P, int]], timeout: float = -1) -> list[tuple[_P, int]]:
    """Does what `zeroxide.zmq_poll` does, and blocks only the greenlet.

    Args:
        sockets: Pairs of a socket, a descriptor or an object with ``fileno()``, and the
            events to wait for.
        timeout: How long to wait, in ms. A negative number waits without limit, 0 only
            looks.

    Returns:
        Pairs of a socket (or descriptor) and the events it is ready for; empty if the time
        is up. Instead of a file object, they have its descriptor, an `int`, as in pyzmq.

    Source:
        zmq_poll(3); pyzmq's ``zmq.green.zmq_poll``
    """
    found = _zmq_poll(sockets, 0)
    if timeout == 0 or not sockets:
        return found
    if found:
        # Other greenlets run, and may take the messages.
        gevent.sleep(0)
        found = _zmq_poll(sockets, 0)
        if found:
            return found
    there = [(item, events) for item, events in sockets if not _is_closed(item) and _fd(item) >= 0]
    if not there and timeout < 0:
        # It raises the right error.
        return _zmq_poll(sockets, -1)

    def look() -> list[tuple[_P, int]]:
        found = _zmq_poll(there, 0)
        if not found and any(_is_closed(item) for item, _ in there):
            raise failure(ENOTSOCK, "this socket is closed")
        return found

    with _Watch(there) as event:
        return patiently(look, event, timeout) or []


def _is_closed(item: Any) -> bool:
    return isinstance(item, _native.Socket) and item.closed


def _fd(item: Any) -> int:
    """The descriptor to watch: negative for a closed socket of Python, 0 for one of this package."""
    if isinstance(item, _native.Socket):
        return 0
    fd: int = item if isinstance(item, int) else item.fileno()
    return fd


def select(
    rlist: Sequence[_P],
    wlist: Sequence[_P],
    xlist: Sequence[_P],
    timeout: float | None = None,
) -> tuple[list[_P], list[_P], list[_P]]:
    """Does what `zeroxide.select` does, and blocks only the greenlet.

    Args:
        rlist: Sockets and descriptors to receive from.
        wlist: Sockets and descriptors to send to.
        xlist: Sockets and descriptors to watch for errors.
        timeout: How long to wait, in seconds (not ms); None waits without limit.

    Returns:
        Three lists of what is ready to be received from, to be sent to, and in error.
        Instead of file objects, they have descriptors.

    Source:
        pyzmq's ``zmq.green.select``
    """
    millis = select_timeout(timeout)
    ready = zmq_poll(to_select(rlist, wlist, xlist), -1 if millis is None else millis)
    return (
        [item for item, events in ready if events & POLLIN],
        [item for item, events in ready if events & POLLOUT],
        [item for item, events in ready if events & POLLERR],
    )


class _Poller(Poller[PolledT]):
    """Waits for several sockets and file descriptors, and blocks only the greenlet.

    Source:
        pyzmq's ``zmq.green.Poller``
    """

    def poll(self, timeout: float | None = None) -> list[tuple[PolledT, int]]:
        return zmq_poll(self.sockets, _checks.milliseconds(timeout))
