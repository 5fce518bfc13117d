"""Sockets for asyncio: the calls that would block return futures.

    context = zeroxide.asyncio.Context()
    socket = context.socket(zeroxide.PULL)
    ...
    message = await socket.recv()
    async for message in socket:
        ...

Any loop that has `add_reader` works, uvloop's included. A message that has arrived is
returned without a turn of the loop, unless other tasks have waited for long. A burst of
messages wakes the loop once, and a cancelled call loses no message. A socket can be made
before its loop runs, and can be used in another loop later.
"""

import asyncio
import functools
import importlib
import selectors
import sys
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from . import _async_poller, _checks, _future
from ._exports import exports_only
from ._typing import PolledT
from .context import Context as _Context
from .error import ProactorSelectorThreadWarning as ProactorSelectorThreadWarning

if TYPE_CHECKING:
    from ._undelivered import Undelivered
    from .pipeline import AsyncClient as Client
    from .pipeline import AsyncProducer as Producer

__all__ = ["Client", "Context", "Poller", "Producer", "Socket", "ZMQEventLoop", "install"]


class _AsyncIO:
    _Future: Any = asyncio.Future
    _READ = selectors.EVENT_READ
    _WRITE = selectors.EVENT_WRITE

    def _default_loop(self) -> asyncio.AbstractEventLoop:
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            warnings.warn(
                "no event loop is running: use zeroxide.asyncio inside one",
                RuntimeWarning,
                stacklevel=4,
            )
        try:
            return asyncio.get_event_loop()
        except RuntimeError:
            raise RuntimeError(
                "no event loop is running: use zeroxide.asyncio in a coroutine, such as one that"
                " asyncio.run runs, or a zeroxide.Context without one"
            ) from None


class Poller(_AsyncIO, _async_poller._AsyncPoller[PolledT]):
    """Waits for several sockets and file descriptors in an asyncio loop.

    It works like `zeroxide.Poller`, but `poll` returns a future.

    Source:
        pyzmq's ``zmq.asyncio.Poller``
    """

    def _watch_raw_socket(self, loop: Any, socket: Any, evt: int, f: Callable[..., object]) -> None:
        if evt & self._READ:
            loop.add_reader(socket, f)
        if evt & self._WRITE:
            loop.add_writer(socket, f)

    def _unwatch_raw_sockets(self, loop: Any, *sockets: Any) -> None:
        for socket in sockets:
            loop.remove_reader(socket)
            loop.remove_writer(socket)


class Socket(_AsyncIO, _future._AsyncSocket):
    """A socket for asyncio, made by `zeroxide.asyncio.Context.socket`.

    The methods are those of `zeroxide.Socket`. Methods that send, receive or wait return a future
    of that method's result: ``await socket.recv()``. Options and
    everything else are the same. ``async for message in socket`` receives messages until the
    socket is closed. Calls that wait are served in order, and a cancelled one loses no
    message.

    Args:
        context: The context, or a socket to make another handle of.
        socket_type: The type: a `SocketType` such as ``zmq.PULL``.
        io_loop: Ignored: the running loop is used. Deprecated.
        _from_socket: The socket to make another handle of.
        **kwargs: Further arguments of `zeroxide.Socket`.

    Source:
        pyzmq's ``zmq.asyncio.Socket``
    """

    _poller_class = Poller


Poller._socket_class = Socket


class Context(_Context[Socket]):
    """A context whose sockets are for asyncio.

    It works like `zeroxide.Context`. As an ``async with`` block, it closes its sockets and
    terminates at the end, without blocking the loop.

    Source:
        pyzmq's ``zmq.asyncio.Context``
    """

    _socket_class: ClassVar[type[Any]] = Socket
    # Not the instance of blocking contexts.
    _instance: ClassVar[Any] = None

    @overload  # type: ignore[override]
    def term(self) -> None: ...
    @overload
    def term(self, *, timeout: float) -> "asyncio.Future[Undelivered]": ...
    @overload
    def term(self, *, timeout: float | None = None) -> "asyncio.Future[Undelivered] | None": ...
    def term(self, *, timeout: float | None = None) -> "asyncio.Future[Undelivered] | None":
        """Waits until every socket is closed and its messages are sent, then ends the context.

        With a `timeout`, the result is a future: ``await context.term(timeout=1000)`` waits, and
        returns what was not delivered, and to whom. A thread of the loop's executor waits.

        Args:
            timeout: How long to wait, in ms; see `zeroxide.Context.term`.

        Returns:
            A future of what was not delivered. None without a `timeout`.

        Source:
            pyzmq's ``zmq.asyncio.Context.term``; `timeout` is zeroxide's
        """
        if timeout is None:
            return super().term()
        # A call that has refused its argument must not end the context.
        timeout = _checks.milliseconds(timeout)
        loop = asyncio.get_running_loop()
        self.shutdown()
        term: Callable[[], Undelivered] = functools.partial(super().term, timeout=timeout)  # type: ignore[assignment]
        return loop.run_in_executor(None, term)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes the sockets, and terminates without holding up the loop."""
        if not self.closed:
            self._close_sockets()
            await asyncio.to_thread(self.term)


def __getattr__(name: str) -> Any:
    # A program that uses only sockets does not load the pipeline.
    if name in ("Client", "Producer"):
        pipeline = importlib.import_module(".pipeline", __package__)
        globals()[name] = getattr(pipeline, f"Async{name}")
        return globals()[name]
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
    )


def __dir__() -> list[str]:
    return exports_only(globals())


class ZMQEventLoop(asyncio.SelectorEventLoop):
    """An ordinary event loop. Deprecated: zeroxide works with any loop.

    Args:
        selector: The selector that the loop uses.

    Source:
        pyzmq's ``zmq.asyncio.ZMQEventLoop``
    """

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        _deprecated()
        super().__init__(selector)


def install() -> None:
    """Does nothing. Deprecated: zeroxide works with any loop.

    Source:
        pyzmq's ``zmq.asyncio.install``
    """
    _deprecated()


def _deprecated() -> None:
    # Once in the life of a program, as in pyzmq.
    if not getattr(sys.modules[__name__], "_warned", False):
        globals()["_warned"] = True
        warnings.warn(
            "ZMQEventLoop and zeroxide.asyncio.install() are not needed: any loop will do",
            DeprecationWarning,
            stacklevel=3,
        )
