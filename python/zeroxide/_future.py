"""Sockets and pollers whose calls return futures, for any event loop.

`zeroxide.asyncio` and `zeroxide.eventloop.future` are built on these. The names are those
that programs written for pyzmq import and subclass.

Sending and receiving are native. This module has what a waiting call needs: a loop,
and a future that returns a message to the socket if its task no longer takes it.

The file is long because type checkers need each call of the asynchronous socket with all of its overloads.
"""

import asyncio
import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, Unpack, cast, overload

from . import _checks, _native
from ._tasks import let_tasks_run
from ._typing import PolledT
from ._waiting import wait_for_peers
from .constants import POLLIN, POLLOUT
from .poll import Poller, trouble_of, zmq_poll
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


class _Done:
    """The methods of `Ready`, the future of a call that does not wait, except for awaiting.

    A message that it holds goes back to the socket, unless `result` or `await` has handed it
    out. The future is then cancelled.
    """

    # The result, and the thread and running loop where it was created: `Ready` has
    # room for them. Without a result, the message was given back.
    _result: Any
    _thread: int
    _made_in: asyncio.AbstractEventLoop
    _exception = None
    # asyncio.gather asks the last of its futures, even if only another one was cancelled, and loops show these in debug mode.
    _callbacks = _cancel_message = _source_traceback = None
    _log_traceback = False

    if TYPE_CHECKING:
        # These are native.
        def result(self) -> Any: ...
        def _give_back(self) -> bool: ...

    @property
    def _state(self) -> str:
        return "CANCELLED" if self.cancelled() else "FINISHED"

    def exception(self) -> None:
        if self.cancelled():
            raise asyncio.CancelledError

    def done(self) -> bool:
        return True

    def cancelled(self) -> bool:
        return not hasattr(self, "_result")

    def cancel(self, msg: Any = None) -> bool:
        return False

    def add_done_callback(
        self, callback: Callable[[Any], object], /, *, context: Any = None
    ) -> None:
        loop = self.get_loop()
        if loop is asyncio._get_running_loop():
            loop.call_soon(callback, self, context=context)
        else:
            loop.call_soon_threadsafe(callback, self, context=context)

    def remove_done_callback(self, callback: Callable[[Any], object], /) -> int:
        # The loop already has them.
        return 0

    def get_loop(self) -> asyncio.AbstractEventLoop:
        try:
            return self._made_in
        except AttributeError:
            # The loop has not been requested yet.
            if self._thread != threading.get_ident():
                raise RuntimeError(
                    "the call was made in another thread, whose loop is not known here"
                ) from None
        loop = asyncio._get_running_loop()
        if loop is None:
            return asyncio.get_event_loop()
        self._made_in = loop
        return loop

    def set_result(self, result: object, /) -> None:
        raise asyncio.InvalidStateError("invalid state")

    def set_exception(self, exception: object, /) -> None:
        raise asyncio.InvalidStateError("invalid state")

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return self.get_loop()

    def _make_cancelled_error(self) -> asyncio.CancelledError:
        return asyncio.CancelledError()

    # asyncio's own functions recognise a future by this attribute.
    @property
    def _asyncio_future_blocking(self) -> bool:
        return False

    @_asyncio_future_blocking.setter
    def _asyncio_future_blocking(self, value: bool) -> None:
        pass

    # A task that is made of this future calls these methods; see `_tasks`.
    def send(self, _: Any) -> Any:
        raise StopIteration(self.result())

    def throw(self, kind: Any, value: Any = None, traceback: Any = None, /) -> Any:
        # The task is cancelled before its first step.
        self._give_back()
        raise kind if value is None else value

    def __repr__(self) -> str:
        if self.cancelled():
            return "<Future cancelled>"
        return f"<Future finished result={self._result!r}>"


for _name, _member in vars(_Done).items():
    if _name == "__repr__" or (_name != "_result" and not _name.startswith("__")):
        setattr(_native.Ready, _name, _member)


class _Waiting(asyncio.Future[Any]):
    """The future of a call that waits."""

    # The future that it replaces.
    _stands_for: ClassVar[Any] = asyncio.Future

    # The queue it is in; set by the native code.
    _lane: "_native.Lane | None" = None
    # The progress of a task that was made of this future; see `_tasks`.
    _steps: "Generator[Any, None, Any] | None" = None

    def cancel(self, msg: Any = None) -> bool:
        if not super().cancel(msg):
            return False
        if self._lane is not None:
            self._lane._on_cancel()
        return True

    def send(self, value: Any) -> Any:
        if self._steps is None:
            self._steps = self.__await__()
        return self._steps.send(value)

    def throw(self, kind: Any, value: Any = None, traceback: Any = None, /) -> Any:
        if self._steps is None:
            self._give_up()
            raise kind if value is None else value
        return self._steps.throw(kind if value is None else value)

    def _give_up(self) -> None:
        """Called when the task that was made of it is cancelled before its first step."""
        self.cancel()


class _GivesBack(_Waiting):
    """Waits for a message, and returns it to the socket if the awaiting task is cancelled.

    After a future gets its result and before the awaiting task continues, other tasks run, and
    may cancel that task. It then never sees the result, and with an ordinary future, the
    message would be lost. The same holds for a future that is dropped.
    """

    # Set by the native code, together with the result. It returns the message when the last
    # reference to it is gone, unless its `keep` was called.
    _undo: "_native.Undo | None" = None
    # The same for a message that has arrived while the result is not set yet, because the loop must turn first.
    _held: "_native.Undo | None" = None
    # The functions that make the result from the message, in order.
    _loads: "tuple[Callable[[Any], Any], ...]" = ()
    # The number of tasks at `await`.
    _awaited = 0
    # Whether the next callback belongs to the task that has just begun to wait.
    _task_comes = False
    # The number of callbacks that do not belong to tasks.
    _listeners = 0
    # The future is done, but the awaiting task first lets other tasks run, which have waited for long.
    _turns = False

    def cancel(self, msg: Any = None) -> bool:
        if not super().cancel(msg):
            return False
        self._give_back_held()
        return True

    def add_done_callback(self, callback: Callable[[Any], object], /, **context: Any) -> None:
        super().add_done_callback(callback, **context)
        if self._task_comes:
            self._task_comes = False
        else:
            self._listeners += 1

    def remove_done_callback(self, callback: Callable[[Any], object], /) -> int:
        removed = super().remove_done_callback(callback)
        self._listeners -= removed
        return removed

    def result(self) -> Any:
        result = super().result()
        # A task that awaits also calls this when it wakes up, and may still be cancelled.
        if self._undo is not None and (not self._awaited or self._listeners > 0):
            self._undo.keep()
            self._undo = None
        return result

    def __await__(self) -> Generator[Any, None, Any]:
        done = self.done()
        if not done or self._turns:
            self._turns = False
            if not done:
                self._asyncio_future_blocking = True
                self._task_comes = True
            self._awaited += 1
            try:
                yield None if done else self
            except BaseException:
                self._awaited -= 1
                if not self._awaited:
                    self._give_back()
                raise
            self._awaited -= 1
            if not self.done():
                raise RuntimeError("await wasn't used with future")
        # The code that gets here has the message.
        if self._undo is not None:
            self._undo.keep()
            self._undo = None
        return super().result()

    __iter__ = __await__

    def _loaded(self, load: Callable[[Any], Any]) -> Any:
        """Returns the same future, with `load` applied to its result."""
        if self.exception() is not None:
            return self
        future = type(self)(loop=self.get_loop())
        undo, self._undo = self._undo, None
        try:
            future.set_result(load(self.result()))
        except Exception as error:
            if undo is not None:
                undo.keep()
            future.set_exception(error)
        else:
            future._undo = undo
        future._turns = True
        return future

    def _give_up(self) -> None:
        if not self.cancel():
            self._give_back()

    def _give_back_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.give_back()

    def _give_back(self) -> None:
        self._give_back_held()
        undo, self._undo = self._undo, None
        # A result that a callback has seen is not lost, so it must not be returned.
        if undo is not None and self.done() and self._listeners <= 0:
            undo.give_back()
            # From now on, the future behaves as if cancelled before it got a result.
            self.__init__(loop=self.get_loop())  # type: ignore[misc]
            self.cancel()
            # Marks the cancellation as retrieved, so that it is not reported.
            self.cancelled()


let_tasks_run(
    lambda _: _native.Ready(None),
    lambda loop: _Waiting(loop=loop),
    lambda loop: _GivesBack(loop=loop),
)


# Errors of programs that forget `await` name the class, and programs know it by this name.
for _kind in (_native.Ready, _Waiting, _GivesBack):
    _kind.__name__ = "Future"


def _settle(future: Any, result: Any) -> None:
    if future.done():
        return
    if isinstance(future, _GivesBack):
        undo, future._held = future._held, None
        try:
            for load in future._loads:
                result = load(result)
        except Exception as error:
            if undo is not None:
                undo.keep()
            future.set_exception(error)
            return
        future._undo = undo
    future.set_result(result)


class _Async:
    """The loop and the class of futures."""

    _Future: Any = asyncio.Future
    # The class of futures of waiting calls.
    _Receiving: Any = _GivesBack
    _Sending: Any = _Waiting
    _current_loop: Any = None

    def _default_loop(self) -> Any:
        raise NotImplementedError("a subclass says which loop is in use")

    def _get_loop(self) -> Any:
        """The loop to wait in."""
        self._current_loop = self._default_loop()
        return self._current_loop

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        """The same loop as an asyncio loop."""
        loop: asyncio.AbstractEventLoop = self._get_loop()
        return loop

    def _is_standard(self) -> bool:
        """Whether the futures have this module's class, not a program's own."""
        return getattr(self._Receiving, "_stands_for", None) is self._Future

    def _settled(self, result: Any) -> Any:
        """A future that has a result."""
        if not self._is_standard():
            future = self._Future()
            future.set_result(result)
            return future
        return self._turning(result) if _native.turn_is_over() else _native.Ready(result)

    def _turning(self, result: Any, undo: "_native.Undo | None" = None) -> Any:
        """A future that has a result; the awaiting task lets other tasks run first."""
        future = self._Receiving()
        future.set_result(result)
        if self._is_standard():
            future._turns, future._undo = True, undo
        return future

    def _settled_next_turn(self, result: Any, undo: "_native.Undo | None" = None) -> Any:
        """A future that gets its result after other tasks have run."""
        future = self._Sending() if undo is None else self._Receiving()
        if undo is not None:
            future._held = undo
        asyncio.get_running_loop().call_soon(_settle, future, result)
        return future


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
    def close(self, linger: int | None = None) -> None: ...
    @overload
    def close(self, *, timeout: float) -> "Future[Undelivered]": ...
    @overload
    def close(
        self, linger: int | None = None, *, timeout: float | None = None
    ) -> "Future[Undelivered] | None": ...
    def close(
        self, linger: int | None = None, *, timeout: float | None = None
    ) -> "Future[Undelivered] | None":
        """Closes the socket and all its handles; calls that wait are cancelled.

        With a `timeout`, the result is a future: ``await socket.close(timeout=1000)`` waits until
        all messages are delivered, and returns what was not delivered, and to whom. The socket is
        closed when the call returns. A thread of the loop's executor waits.

        Args:
            linger: How long the context keeps sending queued messages, in ms. -1 means no limit,
                and None the value of the option ``LINGER``.
            timeout: How long to wait until they are delivered, in ms, after which the rest is given
                up. A negative number means no limit, and None that the call does not wait.

        Returns:
            A future of what was not delivered. None without a `timeout`.

        Raises:
            TypeError: Both `linger` and `timeout` are given.

        Source:
            pyzmq's ``zmq.asyncio.Socket.close``; `timeout` is zeroxide's
        """
        if timeout is None or linger is not None:
            self._forget_calls()
            super().close(linger, timeout=timeout)
            return None
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
