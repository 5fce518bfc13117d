"""Sockets and pollers whose calls return futures, for whatever event loop.

`zeroxide.asyncio` and `zeroxide.eventloop.future` are made of these. The names are those
that programs written for pyzmq import and subclass.
"""

import asyncio
import collections
import contextlib
import warnings
from collections.abc import Callable
from typing import Any, Self

from .constants import DONTWAIT, ENOTSUP, EVENTS, POLLIN, POLLOUT, RCVTIMEO, SNDTIMEO
from .error import Again, ZMQError
from .poll import Poller
from .socket import Socket

__all__ = ["_Async", "_AsyncPoller", "_AsyncSocket"]


class _Async:
    """Which loop, and which futures."""

    _Future: Any = asyncio.Future

    def _default_loop(self) -> Any:
        raise NotImplementedError("a subclass says which loop is in use")

    def _get_loop(self) -> Any:
        return self._default_loop()


class _Call:
    """A call that waits."""

    def __init__(self, future: Any, attempt: Callable[[], Any]) -> None:
        self.future = future
        self.attempt = attempt
        self.timer: Any = None


class _AsyncSocket(_Async, Socket[Any]):
    """A socket whose sending, receiving and polling return futures."""

    _poller_class: Any = None
    _shadow_sock: Any = None
    _current_loop: Any = None
    _receivers: Any = None
    _senders: Any = None
    _watched: bool = False

    def __init__(
        self,
        context: Any = None,
        socket_type: int = -1,
        io_loop: Any = None,
        _from_socket: Any = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(context, Socket):
            context, _from_socket = None, context
        if _from_socket is not None:
            super().__init__(shadow=_from_socket)
            self._shadow_sock = _from_socket
        else:
            super().__init__(context, socket_type, **kwargs)
            self._shadow_sock = Socket(shadow=self)
        if io_loop is not None:
            warnings.warn(
                "the running loop is used; io_loop is ignored",
                DeprecationWarning,
                stacklevel=3,
            )
        self._receivers = collections.deque()
        self._senders = collections.deque()

    @classmethod
    def from_socket(cls, socket: Any, io_loop: Any = None) -> Self:
        """An async handle of a socket."""
        return cls(_from_socket=socket, io_loop=io_loop)

    def close(self, linger: int | None = None) -> None:
        if not self.closed:
            for queue in (self._receivers, self._senders):
                while queue:
                    call = queue.popleft()
                    with contextlib.suppress(RuntimeError):
                        self._finish(call, call.future.cancel)
            self._watch(False)
        super().close(linger)

    def recv(self, flags: int = 0, copy: bool = True, track: bool = False) -> Any:
        return self._receive(
            flags, lambda: super(_AsyncSocket, self).recv(DONTWAIT | flags, copy, track)
        )

    def recv_multipart(self, flags: int = 0, copy: bool = True, track: bool = False) -> Any:
        return self._receive(
            flags,
            lambda: super(_AsyncSocket, self).recv_multipart(DONTWAIT | flags, copy, track),
        )

    def recv_into(self, buffer: Any, /, *, nbytes: int = 0, flags: int = 0) -> Any:
        return self._receive(
            flags,
            lambda: super(_AsyncSocket, self).recv_into(
                buffer, nbytes=nbytes, flags=DONTWAIT | flags
            ),
        )

    def send(  # type: ignore[override]
        self, data: Any, flags: int = 0, copy: bool = True, track: bool = False, **kwargs: Any
    ) -> Any:
        return self._send(
            flags,
            lambda: super(_AsyncSocket, self).send(
                data, flags | DONTWAIT, copy=copy, track=track, **kwargs
            ),
        )

    def send_multipart(
        self,
        msg_parts: Any,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        **kwargs: Any,
    ) -> Any:
        return self._send(
            flags,
            lambda: super(_AsyncSocket, self).send_multipart(
                msg_parts, flags | DONTWAIT, copy=copy, track=track, **kwargs
            ),
        )

    def poll(self, timeout: float | None = None, flags: int = POLLIN) -> Any:
        if self.closed:
            raise ZMQError(ENOTSUP)
        poller = self._poller_class()
        poller.register(self, flags)
        return self._deserialize(poller.poll(timeout), lambda found: dict(found).get(self, 0))

    def _deserialize(self, recvd: Any, load: Callable[[Any], Any]) -> Any:
        future = self._Future()

        def chain(_: Any) -> None:
            if future.done():
                return
            if recvd.cancelled():
                future.cancel()
            elif recvd.exception():
                future.set_exception(recvd.exception())
            else:
                try:
                    future.set_result(load(recvd.result()))
                except Exception as error:
                    future.set_exception(error)

        def chain_cancel(_: Any) -> None:
            if not recvd.done():
                recvd.cancel()

        if recvd.done():
            chain(recvd)
        else:
            recvd.add_done_callback(chain)
            future.add_done_callback(chain_cancel)
        return future

    def _receive(self, flags: int, attempt: Callable[[], Any]) -> Any:
        return self._begin(self._receivers, flags, attempt, RCVTIMEO)

    def _send(self, flags: int, attempt: Callable[[], Any]) -> Any:
        return self._begin(self._senders, flags, attempt, SNDTIMEO)

    def _begin(self, queue: Any, flags: int, attempt: Callable[[], Any], timeout: int) -> Any:
        future = self._Future()
        call = _Call(future, attempt)
        if not queue:
            try:
                result = attempt()
            except Again as error:
                if flags & DONTWAIT:
                    future.set_exception(error)
                    return future
            except Exception as error:
                future.set_exception(error)
                return future
            else:
                future.set_result(result)
                return future
        limit: Any = super().get(timeout)
        loop = self._get_loop()
        if limit >= 0:

            def expire() -> None:
                if not future.done():
                    future.set_exception(Again())

            call.timer = loop.call_later(limit / 1000, expire)
        queue.append(call)
        self._watch(True)
        return future

    def _finish(self, call: _Call, settle: Callable[..., Any], *arguments: Any) -> None:
        if call.timer is not None:
            call.timer.cancel()
        if not call.future.done():
            settle(*arguments)

    def _serve(self, queue: Any) -> None:
        while queue:
            call = queue[0]
            if call.future.done():
                queue.popleft()
                continue
            try:
                result = call.attempt()
            except Again:
                return
            except Exception as error:
                queue.popleft()
                self._finish(call, call.future.set_exception, error)
            else:
                queue.popleft()
                self._finish(call, call.future.set_result, result)

    def _on_ready(self) -> None:
        self._serve(self._receivers)
        self._serve(self._senders)
        if not self._receivers and not self._senders:
            self._watch(False)
        elif not self.closed:
            with contextlib.suppress(ZMQError):
                super().get(EVENTS)

    def _watch(self, on: bool) -> None:
        loop = self._current_loop
        if on:
            now = self._get_loop()
            if self._watched and loop is now:
                return
            self._watch(False)
            self._current_loop = now
            now.add_reader(self.fileno(), self._on_ready)
            self._watched = True
        elif self._watched:
            self._watched = False
            if not loop.is_closed():
                loop.remove_reader(self.fileno())


class _AsyncPoller(_Async, Poller):
    """A poller whose `poll` returns a future."""

    _socket_class: Any = _AsyncSocket

    def poll(self, timeout: float | None = -1) -> Any:
        future = self._Future()
        try:
            found = super().poll(0)
        except Exception as error:
            future.set_exception(error)
            return future
        if found or timeout == 0:
            future.set_result(found)
            return future
        loop = self._get_loop()
        descriptors = []
        for item, _events in self.sockets:
            descriptors.append(item if isinstance(item, int) else item.fileno())

        def look() -> None:
            if future.done():
                return
            try:
                found = super(_AsyncPoller, self).poll(0)
            except Exception as error:
                future.set_exception(error)
                return
            if found:
                future.set_result(found)

        def expire() -> None:
            if not future.done():
                future.set_result([])

        def leave(_: Any) -> None:
            if timer is not None:
                timer.cancel()
            for fd in descriptors:
                loop.remove_reader(fd)
                loop.remove_writer(fd)

        timer = None
        if timeout is not None and timeout > 0:
            timer = loop.call_later(timeout / 1000, expire)
        future.add_done_callback(leave)
        for (item, events), fd in zip(self.sockets, descriptors, strict=True):
            if isinstance(item, Socket) or events & POLLIN:
                loop.add_reader(fd, look)
            if not isinstance(item, Socket) and events & POLLOUT:
                loop.add_writer(fd, look)
        return future
