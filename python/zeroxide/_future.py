"""Sockets whose calls return futures, for any event loop.

`zeroxide.asyncio` and `zeroxide.eventloop.future` are built on these, and on the poller. The names are
those that programs written for pyzmq import and subclass.
"""

import asyncio
import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, cast, overload

from . import _checks, _native
from ._async_poller import _AsyncPoller
from ._futures import _Async, _GivesBack
from ._waiting import wait_for_peers
from .socket import Socket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._native import ArrowTable, Frame
    from ._socket_contexts import AsyncSocketContext, ContextCalls
    from ._tracker import MessageTracker
    from ._typing import (
        ArrowData,
        DumpArguments,
        Future,
        LoadArguments,
        Part,
        SendArguments,
        SendObjectArguments,
        SocketArguments,
        TrackArgument,
    )
    from ._undelivered import Undelivered
else:
    Future = asyncio.Future  # at run time, only annotations name it

__all__ = ["_Async", "_AsyncPoller", "_AsyncSocket"]

_T = TypeVar("_T")
_R = TypeVar("_R")


class _AsyncSocket(_Async, _native.AsyncSocket, Socket[Any]):
    """A socket whose sending, receiving and polling return futures.

    A call that does not have to wait returns a future that is done. Waiting calls are served
    in order.
    """

    _poller_class: Any = _AsyncPoller

    def __init__(
        self,
        context: Any = None,
        socket_type: int = -1,
        io_loop: Any = None,
        _from_socket: "Socket[Any] | None" = None,
        **kwargs: "Unpack[SocketArguments]",
    ) -> None:
        if isinstance(context, Socket):
            context, _from_socket = None, context
        if _from_socket is not None:
            kwargs["shadow"] = _from_socket
            super().__init__(**kwargs)
            self.__dict__["_shadow_sock"] = _from_socket
        else:
            super().__init__(context, socket_type, **kwargs)
        if io_loop is not None:
            warnings.warn(
                f"{type(self).__name__}(io_loop) is ignored: the running loop is used",
                DeprecationWarning,
                stacklevel=3,
            )
        # A program's own class of futures is used for all calls.
        standard = self._is_standard()
        if not standard:
            self._Receiving = self._Sending = self._Future
        self._be_quick(standard)

    @classmethod
    def from_socket(cls, socket: Any, io_loop: Any = None) -> Self:
        """Returns an asynchronous handle of a blocking socket.

        Args:
            socket: The socket.
            io_loop: Ignored: the running loop is used. Deprecated.

        Returns:
            The handle. Closing it closes the socket.

        Source:
            pyzmq's ``zmq.asyncio.Socket.from_socket``
        """
        return cls(_from_socket=socket, io_loop=io_loop)

    @functools.cached_property
    def _shadow_sock(self) -> "Socket[bytes]":
        """A blocking handle of this socket."""
        return Socket(shadow=self)

    def open_context(self) -> "AsyncSocketContext":  # type: ignore[override]
        """Opens a context, whose `send` and `recv` are coroutines.

        Returns:
            The context.

        Raises:
            ZMQError: As in `zeroxide.Socket.open_context`.

        Source:
            nng's ``nng_ctx_open``
        """
        from ._socket_contexts import AsyncSocketContext

        return AsyncSocketContext(self, self._context_calls)

    @functools.cached_property
    def _context_calls(self) -> "ContextCalls":
        from ._socket_contexts import ContextCalls

        return ContextCalls(self)

    @overload  # type: ignore[override]
    def close(self, linger: float | None = None) -> None: ...
    @overload
    def close(self, *, timeout: float) -> "Future[Undelivered]": ...
    @overload
    def close(
        self, linger: float | None = None, *, timeout: float | None = None
    ) -> "Future[Undelivered] | None": ...
    def close(
        self, linger: float | None = None, *, timeout: float | None = None
    ) -> "Future[Undelivered] | None":
        """Closes the socket and all its handles; calls that wait are cancelled.

        With a `timeout`, the result is a future: ``await socket.close(timeout=1000)`` waits until
        all messages are delivered, and returns what was not delivered, and to whom. The socket is
        closed when the call returns. A thread of the loop's executor waits.

        Args:
            linger: How long the context keeps sending queued messages, in ms. -1 means no limit,
                and None the value of the option ``LINGER``. A fraction is rounded up.
            timeout: How long to wait until they are delivered, in ms, after which the rest is given
                up. A negative number means no limit, and None that the call does not wait.

        Returns:
            A future of what was not delivered. None without a `timeout`.

        Raises:
            TypeError: Both `linger` and `timeout` are given, or one of them is not a number.
            ValueError: One of them is nan, or `linger` is out of range.

        Source:
            pyzmq's ``zmq.asyncio.Socket.close``; `timeout` is zeroxide's
        """
        # A call that has refused its arguments must leave the calls that wait alone.
        if timeout is None:
            linger = _checks.linger(linger)
            self._forget_calls()
            super().close(linger)
            return None
        if linger is not None:
            raise TypeError("close takes linger or timeout, which replaces it, but not both")
        timeout = _checks.milliseconds(timeout)
        loop = asyncio.get_running_loop()
        self._forget_calls()
        self._close_within(timeout, True)
        close = functools.partial(super().close, timeout=timeout)
        return cast("Future[Undelivered]", loop.run_in_executor(None, close))

    def _forget_calls(self) -> None:
        if not self.closed:
            self._abandon()

    def __del__(self) -> None:
        self._abandon()
        super().__del__()

    async def wait_connected(  # type: ignore[override]
        self, *, count: int = 1, timeout: float | None = None
    ) -> int:
        """Waits until enough peers are connected.

        Args:
            count: How many peers to wait for.
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            How many peers are connected, at least `count`.

        Raises:
            Again: The time is up; the text has the number of connected peers.
        """
        return await wait_for_peers(self, self.count_connected, count, timeout, "connected")

    async def wait_subscribed(  # type: ignore[override]
        self, topic: bytes | str | None = None, count: int = 1, timeout: float | None = None
    ) -> int:
        """Waits until enough peers receive messages with a topic (PUB and XPUB).

        Args:
            topic: The beginning of the messages. None stands for the empty topic.
            count: How many peers to wait for.
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            How many peers subscribed to `topic` or to a prefix of it, at least `count`.

        Raises:
            Again: The time is up; the text has the number of subscribed peers.
            ZMQError: ``ENOTSUP`` if the socket is not PUB or XPUB.
        """

        def look() -> int:
            return self.count_subscribed(topic)

        return await wait_for_peers(self, look, count, timeout, "subscribed")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self.close()

    def _chain(self, recvd: Any, load: Callable[[Any], Any]) -> Any:
        """Does what `_deserialize` does, for a future that this socket has not created."""
        if isinstance(recvd, _GivesBack) and recvd.done() and not recvd.cancelled():
            return recvd._loaded(load)
        if getattr(recvd, "_held", None) is not None:
            recvd._loads += (load,)
            return recvd
        future = self._Future()
        if not asyncio.isfuture(recvd):
            # A subclass has overridden `recv` with a coroutine.
            recvd = asyncio.ensure_future(recvd)

        def finish(_: Any) -> None:
            if future.done():
                if not recvd.cancelled() and recvd.exception() is None:
                    warnings.warn(
                        f"{future} was done before {recvd}: a message is lost",
                        RuntimeWarning,
                        stacklevel=2,
                    )
            elif recvd.cancelled():
                future.cancel()
            elif recvd.exception() is not None:
                future.set_exception(recvd.exception())
            else:
                try:
                    future.set_result(load(recvd.result()))
                except Exception as error:
                    future.set_exception(error)

        def cancel(_: Any) -> None:
            if future.cancelled() and not recvd.done():
                recvd.cancel()

        if recvd.done():
            finish(recvd)
        else:
            recvd.add_done_callback(finish)
            future.add_done_callback(cancel)
        return future

    def _recv_rows(  # type: ignore[override]
        self, max_rows: int, max_bytes: int, timeout: float | None, flags: int, frames: bool
    ) -> "asyncio.Future[ArrowTable]":
        # All waiting messages are taken at once, whatever their size, because they are already in this process.
        messages = self.recv_batch(max_rows, timeout, flags, multipart=True)
        return cast(
            "asyncio.Future[ArrowTable]",
            self._deserialize(
                messages, lambda messages: _native.arrow_rows(self, messages, frames)
            ),
        )

    def _send_rows(  # type: ignore[override]
        self, data: "ArrowData", flags: int = 0
    ) -> Future[int]:
        return self.send_batch(_native.arrow_messages(data), flags)

    if TYPE_CHECKING:
        # Inherited code, which returns futures because the methods it calls do.
        def send_arrow(  # type: ignore[override]
            self, data: ArrowData, flags: int = 0
        ) -> Future[MessageTracker | None]: ...
        def recv_arrow(  # type: ignore[override]
            self, flags: int = 0
        ) -> Future[ArrowTable]: ...
        def send_batch_arrow(  # type: ignore[override]
            self, data: ArrowData, flags: int = 0
        ) -> Future[int]: ...
        def recv_batch_arrow(  # type: ignore[override]
            self,
            max_rows: int = 10_000,
            timeout: float | None = None,
            flags: int = 0,
            *,
            max_bytes: int = ...,
            frames: bool = False,
        ) -> Future[ArrowTable]: ...
        def send_serialized(  # type: ignore[override]
            self,
            msg: _T,
            serialize: Callable[[_T], Sequence[Part]],
            flags: int = 0,
            copy: bool = True,
            **kwargs: Unpack[TrackArgument],
        ) -> Future[MessageTracker | None]: ...
        @overload  # type: ignore[override]
        def recv_serialized(
            self,
            deserialize: Callable[[list[bytes]], _R],
            flags: int = 0,
            copy: Literal[True] = True,
        ) -> Future[_R]: ...
        @overload
        def recv_serialized(
            self,
            deserialize: Callable[[list[Frame]], _R],
            flags: int = 0,
            *,
            copy: Literal[False],
        ) -> Future[_R]: ...
        def recv_serialized(
            self, deserialize: Callable[[Any], _R], flags: int = 0, copy: bool = True
        ) -> Future[_R]: ...
        def send_string(  # type: ignore[override]
            self,
            u: str,
            flags: int = 0,
            copy: bool = True,
            encoding: str = "utf-8",
            **kwargs: Unpack[SendArguments],
        ) -> Future[MessageTracker | None]: ...
        def recv_string(  # type: ignore[override]
            self, flags: int = 0, encoding: str = "utf-8"
        ) -> Future[str]: ...
        def send_json(  # type: ignore[override]
            self,
            obj: object,
            flags: int = 0,
            *,
            routing_id: int | None = None,
            group: str | None = None,
            **kwargs: Unpack[DumpArguments],
        ) -> Future[MessageTracker | None]: ...
        def recv_json(self, flags: int = 0, **kwargs: Unpack[LoadArguments]) -> Future[Any]: ...
        def send_pyobj(  # type: ignore[override]
            self,
            obj: object,
            flags: int = 0,
            protocol: int | None = None,
            **kwargs: Unpack[SendObjectArguments],
        ) -> Future[MessageTracker | None]: ...
        def recv_pyobj(self, flags: int = 0) -> Future[Any]: ...
        def send_typed(  # type: ignore[override]
            self,
            obj: object,
            flags: int = 0,
            *,
            enc_hook: Callable[[Any], Any] | None = None,
            **kwargs: Unpack[SendObjectArguments],
        ) -> Future[MessageTracker | None]: ...
        @overload  # type: ignore[override]
        def recv_typed(
            self,
            kind: type[_T],
            flags: int = 0,
            *,
            dec_hook: Callable[[type, Any], Any] | None = None,
        ) -> Future[_T]: ...
        @overload
        def recv_typed(
            self,
            kind: Any,
            flags: int = 0,
            *,
            dec_hook: Callable[[type, Any], Any] | None = None,
        ) -> Future[Any]: ...
        def recv_typed(
            self,
            kind: Any,
            flags: int = 0,
            *,
            dec_hook: Callable[[type, Any], Any] | None = None,
        ) -> Future[Any]: ...
