"""A poller whose `poll` returns a future, for any event loop."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _checks
from ._futures import _Async
from ._typing import PolledT
from .constants import POLLIN, POLLOUT
from .poll import Poller, trouble_of, zmq_poll
from .socket import Socket

if TYPE_CHECKING:
    from ._typing import Future
else:
    Future = asyncio.Future  # at run time, only annotations name it

__all__ = ["_AsyncPoller"]


class _AsyncPoller(_Async, Poller[PolledT]):
    """A poller whose `poll` returns a future."""

    _socket_class: Any
    _READ: int
    _WRITE: int

    def _watch_raw_socket(self, loop: Any, socket: Any, evt: int, f: Callable[..., object]) -> None:
        raise NotImplementedError("a subclass knows how its loop watches descriptors")

    def _unwatch_raw_sockets(self, loop: Any, *sockets: Any) -> None:
        raise NotImplementedError("a subclass knows how its loop watches descriptors")

    def poll(  # type: ignore[override]
        self, timeout: float | None = -1
    ) -> Future[list[tuple[PolledT, int]]]:
        """Waits until something that is registered is ready; returns a future.

        Args:
            timeout: How long to wait, in ms. None or a negative number waits without limit, 0
                only looks.

        Returns:
            A future of pairs of a socket (or descriptor) and the events it is ready for; empty
            if the time is up. Instead of a file object, they have its descriptor, an `int`, as in pyzmq.
        """
        try:
            limit = _checks.milliseconds(timeout)
            found = super().poll(0)
        except Exception as error:
            future: Future[Any] = self._Future()
            future.set_exception(error)
            return future
        if limit == 0:
            settled: Future[Any] = self._settled(found)
            return settled
        waiting: Future[Any] = _Watch(self, limit, bool(found)).future
        return waiting


class _Watch:
    """One call of `_AsyncPoller.poll` that waits."""

    def __init__(self, poller: _AsyncPoller[Any], timeout: int, found: bool) -> None:
        self.future = (poller._Sending if poller._is_standard() else poller._Future)()
        self._poller = poller
        self._pairs = list(poller.sockets)
        self._loop = poller._get_loop()
        self._pending: list[Any] = []
        self._descriptors: list[Any] = []
        self._troubles: list[Any] = []
        # Blocking sockets get a handle that does not block.
        self._handles: dict[Any, Any] = {}
        self._timer = None
        if timeout > 0:
            self._timer = self._loop.call_later(timeout / 1000, self._on_timeout)
        self.future.add_done_callback(self._on_done)
        if found:
            # The loop turns first, because a socket may stay ready for long.
            poller._event_loop().call_soon(self._on_event)
        else:
            self._begin()

    def _begin(self) -> None:
        try:
            for item, events in self._pairs:
                if isinstance(item, Socket):
                    future = self._handle(item).poll(None, events)
                    future.add_done_callback(self._on_event)
                    self._pending.append(future)
                else:
                    self._watch(item, events)
        except Exception as error:
            self._fail(error)

    def _handle(self, socket: Any) -> Any:
        if isinstance(socket, self._poller._socket_class):
            return socket
        if socket not in self._handles:
            self._handles[socket] = self._poller._socket_class.from_socket(socket)
        return self._handles[socket]

    def _watch(self, item: Any, events: int) -> None:
        poller = self._poller
        mask = (poller._READ if events & POLLIN else 0) | (poller._WRITE if events & POLLOUT else 0)
        trouble = trouble_of(item, events)
        if trouble is not None:
            self._troubles.append(trouble)
            item, mask = trouble, poller._READ
        poller._watch_raw_socket(self._loop, item, mask, self._on_event)
        self._descriptors.append(item)

    def _end(self) -> None:
        pending, self._pending = self._pending, []
        for future in pending:
            future.remove_done_callback(self._on_event)
            if not future.done():
                future.cancel()
                # An exception that is not retrieved is not an error here; tornado would log it.
                future.cancelled()
        descriptors, self._descriptors = self._descriptors, []
        if descriptors:
            self._poller._unwatch_raw_sockets(self._loop, *descriptors)
        troubles, self._troubles = self._troubles, []
        for trouble in troubles:
            trouble.close()

    def _on_event(self, what: Any = None) -> None:
        if self.future.done():
            return
        if what is not None and what in self._pending and what.cancelled():
            # The socket was closed.
            self.future.cancel()
            return
        self._end()
        try:
            found = zmq_poll(self._pairs, 0)
        except Exception as error:
            self._fail(error)
            return
        if found:
            self.future.set_result(found)
        else:
            # Another receiver has taken the message.
            self._begin()

    def _on_timeout(self) -> None:
        if self.future.done():
            return
        try:
            # A busy loop may call this before it notices an event that came in time.
            found = zmq_poll(self._pairs, 0)
        except Exception as error:
            self._fail(error)
        else:
            self.future.set_result(found)

    def _fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def _on_done(self, _future: Any) -> None:
        if self._timer is not None:
            # tornado's loop returns a token, asyncio's a handle.
            if hasattr(self._timer, "cancel"):
                self._timer.cancel()
            else:
                self._loop.remove_timeout(self._timer)
        # Callbacks may run when the loop is closed.
        with contextlib.suppress(RuntimeError):
            self._end()
        for handle in self._handles.values():
            handle._abandon()
