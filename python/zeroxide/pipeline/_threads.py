"""Threads for the calls of the asyncio forms that have no other way to wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeAlias, TypeVar

from .. import _native
from ._producer import add_attributes

__all__ = ["Threads", "retrieve"]

_T = TypeVar("_T")

# The most calls of one producer or client that wait at the same time.
_MOST = 8

# Calls and where their results go; None ends a thread.
_Work: TypeAlias = "SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]"


class Threads:
    """Makes blocking calls in threads of its own, and ends a call when its task is cancelled.

    The threads of the event loop's default executor are for the program: calls that wait for a
    collector must not take them. Those of a `ThreadPoolExecutor` would keep a program from
    ending if its loop has gone and left a call, so these are daemons.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._work: _Work = SimpleQueue()
        self._threads = 0
        # The calls that were submitted and have not ended.
        self._calls = 0

    async def run(self, call: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
        """Makes a call in a thread.

        Args:
            call: A function that waits in native code only.
            *arguments: Its arguments.
            **options: Its keyword arguments.

        Returns:
            What it returns.
        """
        future, interruption = self._start(partial(call, *arguments, **options))
        try:
            return await asyncio.wrap_future(future)
        finally:
            # The call is still running only if its task was cancelled.
            interruption.interrupt()

    async def run_counted(self, call: Callable[..., int], *arguments: Any) -> int:
        """Makes a call that takes rows in a thread; if cancelled, waits until the call has ended.

        Args:
            call: A function that waits in native code only, returns how many rows it took, and sets
                `sent` of its exceptions to that.
            *arguments: Its arguments.

        Returns:
            What it returns.

        Raises:
            CancelledError: If the task is cancelled, with the number of rows in `sent`.
        """
        future, interruption = self._start(partial(call, *arguments))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError as error:
            interruption.interrupt()
            add_attributes(error, sent=await _taken(future))
            raise

    async def run_to_end(self, call: Callable[..., _T], *arguments: Any) -> _T:
        """Makes a short call in a thread; if cancelled, still waits until the call has ended.

        Args:
            call: A function.
            *arguments: Its arguments.

        Returns:
            What it returns.

        Raises:
            CancelledError: If the task was cancelled meanwhile.
        """
        future, _ = self._start(partial(call, *arguments))
        ended = asyncio.wrap_future(future)
        cancellation = None
        while not ended.done():
            try:
                await asyncio.wait([ended])
            except asyncio.CancelledError as error:
                cancellation = error
        if cancellation is not None:
            raise cancellation
        return ended.result()

    def _start(self, whole: Callable[[], _T]) -> "tuple[Future[_T], _native.Interruption]":
        interruption = _native.Interruption()
        future: Future[_T] = Future()
        future.add_done_callback(self._ended)
        with self._lock:
            if self._threads < min(self._calls + 1, _MOST):
                name = f"zeroxide_{self._threads}"
                thread = Thread(target=_worker, args=(self._work,), name=name, daemon=True)
                thread.start()
                self._threads += 1
            self._calls += 1
            self._work.put((future, partial(interruption.run, whole)))
        return future, interruption

    def _ended(self, _: "Future[Any]") -> None:
        with self._lock:
            self._calls -= 1

    def close(self) -> None:
        """Ends the threads when they have finished their calls; a later call starts new ones."""
        with self._lock:
            threads, self._threads = self._threads, 0
            work, self._work = self._work, SimpleQueue()
        for _ in range(threads):
            work.put(None)

    def __del__(self) -> None:
        self.close()


async def _taken(future: "Future[int]") -> int:
    """The number of rows that a call took which was interrupted, or had not begun."""
    ended = asyncio.wrap_future(future)
    while not ended.done():
        # The task ends anyway, so another cancellation adds nothing.
        with suppress(asyncio.CancelledError):
            await asyncio.wait([ended])
    if ended.cancelled():
        return 0
    error = ended.exception()
    return getattr(error, "sent", 0) if error is not None else ended.result()


def _worker(work: _Work) -> None:
    while (taken := work.get()) is not None:
        _make(*taken)
        # A thread that waits for the next call must not keep the last one alive.
        del taken


def _make(future: "Future[Any]", call: Callable[[], Any]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


def retrieve(future: "asyncio.Future[Any]") -> None:
    """Marks the error of a future as seen, so that asyncio does not report it."""
    if not future.cancelled():
        future.exception()
