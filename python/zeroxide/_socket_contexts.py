"""Contexts of sockets for asyncio: several requests or surveys at a time."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _native
from ._closing import Closing
from ._turns import others, readable
from .constants import NOBLOCK, Errno
from .error import Again

if TYPE_CHECKING:
    from ._typing import Part
    from .socket import Socket

__all__ = ["AsyncSocketContext"]

_T = TypeVar("_T")


class AsyncSocketContext(Closing):
    """One of several conversations of an asyncio socket, made by `Socket.open_context`.

    It works like `zeroxide.SocketContext`, but `send` and `recv` are coroutines.

    Args:
        socket: The socket.

    Source:
        nng's ``nng_ctx``
    """

    def __init__(self, socket: "Socket[Any]") -> None:
        self._socket = socket
        self._context = _native.SocketContext(socket)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._context.closed

    def close(self) -> None:
        """Ends the conversation. Its request or survey is forgotten."""
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
        watcher = _native.Watcher(self._socket)
        watcher.watch()
        try:
            async with asyncio.timeout(None if limit < 0 else limit / 1000):
                while True:
                    # In this order, because an event in between makes the descriptor readable again.
                    watcher.clear()
                    try:
                        return call()
                    except Again:
                        await readable(watcher)
        except TimeoutError:
            raise Again(Errno.EAGAIN, f"nothing happened within {limit} ms") from None
        finally:
            watcher.rest()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._socket!r}>"
