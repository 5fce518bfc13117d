"""Contexts of sockets for asyncio: several requests or surveys at a time."""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from . import _native
from ._closing import Closing
from ._native import strerror
from ._turns import others
from .constants import NOBLOCK, Errno
from .error import Again

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from ._typing import Part
    from .socket import Socket

__all__ = ["AsyncSocketContext", "ContextCalls"]

_T = TypeVar("_T")


class ContextCalls:
    """The calls that wait in contexts of one socket. Those of an event loop share a descriptor.

    Args:
        socket: The socket.
    """

    def __init__(self, socket: "Socket[Any]") -> None:
        self._socket = socket
        self._loops: WeakKeyDictionary[AbstractEventLoop, _Calls] = WeakKeyDictionary()

    async def repeat(self, call: Callable[[], _T]) -> _T:
        """Repeats a call at every event of the socket, until it does not raise `Again`.

        Args:
            call: The call.

        Returns:
            Its result.
        """
        import asyncio  # blocking programs do not need it

        loop = asyncio.get_running_loop()
        calls = self._loops.get(loop)
        if calls is None:
            calls = self._loops[loop] = _Calls(self._socket)
        calls.join(loop)
        try:
            while True:
                try:
                    return call()
                except Again:
                    await calls.event(loop)
        finally:
            if not calls.leave(loop) and self._socket.closed:
                self._loops.pop(loop, None)


class _Calls:
    """The calls of one event loop."""

    def __init__(self, socket: "Socket[Any]") -> None:
        self._watcher = _native.Watcher(socket)
        self._count = 0
        self._waiting: set[Future[None]] = set()

    def join(self, loop: "AbstractEventLoop") -> None:
        """A call begins. Events from now on are reported."""
        self._count += 1
        if self._count == 1:
            self._watcher.watch()
            loop.add_reader(self._watcher.fileno(), self._wake)

    def leave(self, loop: "AbstractEventLoop") -> int:
        """A call ends. Returns how many are left."""
        self._count -= 1
        if self._count == 0:
            loop.remove_reader(self._watcher.fileno())
            self._watcher.rest()
        return self._count

    async def event(self, loop: "AbstractEventLoop") -> None:
        """Waits for the next event."""
        ready: Future[None] = loop.create_future()
        self._waiting.add(ready)
        try:
            await ready
        finally:
            self._waiting.discard(ready)

    def _wake(self) -> None:
        # First, because an event during the calls makes the descriptor readable again.
        self._watcher.clear()
        for ready in self._waiting:
            if not ready.done():
                ready.set_result(None)


class AsyncSocketContext(Closing):
    """One of several conversations of an asyncio socket, made by `Socket.open_context`.

    It works like `zeroxide.SocketContext`, but `send` and `recv` are coroutines.

    Args:
        socket: The socket.
        calls: The calls that wait in contexts of this socket.

    Source:
        nng's ``nng_ctx``
    """

    def __init__(self, socket: "Socket[Any]", calls: ContextCalls) -> None:
        self._socket = socket
        self._context = _native.SocketContext(socket)
        self._calls = calls

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._context.closed

    def close(self) -> None:
        """Ends the conversation. Its request or survey is forgotten.

        A call that waits in this context raises `ZMQError` with ``ENOTSOCK``.
        """
        self._context.close()

    async def send(self, data: "Part", flags: int = 0) -> None:
        """Sends a request, a survey or an answer.

        Args:
            data: The message: `bytes` or any object with the buffer protocol.
            flags: ``NOBLOCK`` raises `Again` instead of waiting.

        Raises:
            Again: No peer had room in time.
            ZMQError: As in `zeroxide.SocketContext.send`.
        """
        limit = -1 if flags else self._socket.sndtimeo
        await self._repeat(lambda: self._context.send(data, flags | NOBLOCK), flags, limit)

    async def recv(self, flags: int = 0) -> bytes:
        """Receives the reply to the request, an answer to the survey, or the next question.

        Args:
            flags: ``NOBLOCK`` raises `Again` instead of waiting.

        Returns:
            The message.

        Raises:
            Again: No message came in time.
            ZMQError: As in `zeroxide.SocketContext.recv`.
        """
        limit = -1 if flags else self._socket.rcvtimeo
        return await self._repeat(lambda: self._context.recv(flags | NOBLOCK), flags, limit)

    async def _repeat(self, call: Callable[[], _T], flags: int, limit: int) -> _T:
        import asyncio  # blocking programs do not need it

        await others()
        try:
            return call()
        except Again:
            if flags & NOBLOCK:
                raise
        try:
            async with asyncio.timeout(None if limit < 0 else limit / 1000):
                return await self._calls.repeat(call)
        except TimeoutError:
            # A message may have come in time while the loop was busy.
            with contextlib.suppress(Again):
                return call()
            reason = f"nothing happened within {limit} ms"
            raise Again(msg=f"{strerror(Errno.EAGAIN)}: {reason}") from None

    def __repr__(self) -> str:
        state = "closed, " if self.closed else ""
        return f"<zmq.asyncio.SocketContext at {id(self):#x}: {state}of {self._socket!r}>"
