"""Sockets that return futures of tornado.

tornado's futures are now those of asyncio, except for cancelling: a cancelled one of these has
failed with this module's `CancelledError`. If you do not need that, use `zeroxide.asyncio`.
"""

import asyncio
import warnings
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, cast

from tornado.concurrent import Future
from tornado.ioloop import IOLoop

from .. import _async_poller, _future, _futures, _native
from .._exports import exports_only
from .._typing import PolledT
from ..context import Context as _Context
from ..socket import Socket as _Socket

__all__ = ["CancelledError", "Context", "Poller", "Socket"]


def __dir__() -> list[str]:
    return exports_only(globals())


class CancelledError(Exception):
    """The call was cancelled.

    Source:
        pyzmq's ``zmq.eventloop.future.CancelledError``
    """


class _TornadoFuture(Future):  # type: ignore[type-arg]
    """A future that is cancelled by failing."""

    def cancel(self, msg: Any = None) -> bool:
        if self.done():
            return False
        self.set_exception(CancelledError())
        return True

    def cancelled(self) -> bool:
        return self.done() and isinstance(self.exception(), CancelledError)


class _TornadoWaiting(_futures._Waiting, _TornadoFuture):
    _stands_for = _TornadoFuture


class _TornadoGivesBack(_futures._GivesBack, _TornadoFuture):
    _stands_for = _TornadoFuture


class _AsyncTornado(_futures._Async):
    _Future = _TornadoFuture
    _Receiving = _TornadoGivesBack
    _Sending = _TornadoWaiting
    _READ = IOLoop.READ
    _WRITE = IOLoop.WRITE

    def _default_loop(self) -> IOLoop:
        return IOLoop.current()

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        # Every loop of tornado uses one of asyncio.
        return cast(asyncio.AbstractEventLoop, self._get_loop().asyncio_loop)


class Poller(_AsyncTornado, _async_poller._AsyncPoller[PolledT]):
    """Waits for several sockets and file descriptors; `poll` returns a future.

    Source:
        pyzmq's ``zmq.eventloop.future.Poller``
    """

    def _watch_raw_socket(self, loop: Any, socket: Any, evt: int, f: Callable[..., object]) -> None:
        loop.add_handler(socket, lambda _fd, _events: f(), evt)

    def _unwatch_raw_sockets(self, loop: Any, *sockets: Any) -> None:
        for socket in sockets:
            loop.remove_handler(socket)


class _Registered:
    """A socket in a loop's list for ``close(all_fds=True)``."""

    def __init__(self, socket: "_Socket[Any]", watcher: _native.Watcher) -> None:
        self._socket = weakref.ref(socket)
        self._watcher = watcher

    def fileno(self) -> int:
        return self._watcher.fileno()

    def close(self) -> None:
        socket = self._socket()
        if socket is not None:
            socket.close()


class Socket(_AsyncTornado, _future._AsyncSocket):
    """A socket whose calls return tornado's futures.

    Source:
        pyzmq's ``zmq.eventloop.future.Socket``
    """

    _poller_class = Poller
    _registered: _Registered | None = None

    def _get_loop(self) -> IOLoop:
        previous = self._current_loop
        loop: IOLoop = super()._get_loop()
        if loop is not previous:
            self._leave(previous)
            # Never readable: only the list matters.
            self._registered = _Registered(self, _native.Watcher(self))
            loop.add_handler(self._registered, _ignore, 0)
        return loop

    def _leave(self, loop: Any) -> None:
        # A closed loop has already removed it. The last reference may be dropped in any thread;
        # without a watched descriptor, this only removes an entry from a dict.
        registered, self._registered = self._registered, None
        if loop is not None and registered is not None and not _is_closed(loop):
            loop.remove_handler(registered)

    def _forget_calls(self) -> None:
        # Even if another handle has closed it.
        self._leave_loop()
        super()._forget_calls()

    def _abandon(self) -> None:
        self._leave_loop()
        super()._abandon()

    def _leave_loop(self) -> None:
        loop, self._current_loop = self._current_loop, None
        self._leave(loop)


def _is_closed(loop: Any) -> bool:
    return bool(loop.asyncio_loop.is_closed())


def _ignore(_fd: Any, _events: int) -> None:
    pass


Poller._socket_class = Socket


class Context(_Context[Socket]):
    """A context whose sockets return tornado's futures.

    Args:
        *args: The arguments of `zeroxide.Context`.
        **kwargs: The keyword arguments of `zeroxide.Context`, and ``io_loop``, which is
            ignored: the current loop is used.

    Source:
        pyzmq's ``zmq.eventloop.future.Context``
    """

    _socket_class: ClassVar[type[Any]] = Socket
    # Not the class of blocking contexts.
    _instance: ClassVar[Any] = None
    io_loop: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.pop("io_loop", None) is not None:
            warnings.warn(
                f"{type(self).__name__}(io_loop) is ignored: the current loop is used",
                DeprecationWarning,
                stacklevel=2,
            )
        super().__init__(*args, **kwargs)
