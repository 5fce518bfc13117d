"""The futures that calls on sockets return, and the event loops they belong to.

Sending and receiving are native. This module has what a waiting call needs: a loop,
and a future that returns a message to the socket if its task no longer takes it.
"""

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ClassVar

from . import _native
from ._tasks import let_tasks_run

__all__ = ["_Async", "_GivesBack", "_Waiting"]


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
