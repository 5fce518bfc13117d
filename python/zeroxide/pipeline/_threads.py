"""Threads for the calls of the asyncio forms that have no other way to wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from .. import _native

__all__ = ["Threads"]

_T = TypeVar("_T")

# The most calls of one producer or client that wait at the same time.
_MOST = 8


class Threads:
    """Makes blocking calls in threads of its own, and ends a call when its task is cancelled.

    The threads of the event loop's default executor are for the program: calls that wait for a
    collector must not take them.
    """

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, call: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
        """Makes a call in a thread.

        Args:
            call: A function that waits in native code only.
            *arguments: Its arguments.
            **options: Its keyword arguments.

        Returns:
            What it returns.
        """
        if self._executor is None:
            self._executor = ThreadPoolExecutor(_MOST, thread_name_prefix="zeroxide")
        interruption = _native.Interruption()
        whole = partial(call, *arguments, **options)
        future = self._executor.submit(interruption.run, whole)
        try:
            return await asyncio.wrap_future(future)
        finally:
            # Only a call whose task was cancelled is still there.
            interruption.interrupt()

    def close(self) -> None:
        """Ends the threads that have nothing to do; a later call begins others."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False)
