"""pyzmq's thread that frees what was sent without copying.

There is none here: buffers are given back when the extension module is next called.
What programs do to it before a fork or at their end does nothing.
"""

import os
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any

from zeroxide import _native
from zeroxide.context import Context

__all__ = ["GarbageCollector", "gc"]


class GarbageCollector:
    """Has nothing to collect."""

    url = "inproc://pyzmq.gc.01"
    thread: Thread | None = None

    def __init__(self, context: Context[Any] | None = None) -> None:
        self.pid = os.getpid()
        self._context = context

    @property
    def refs(self) -> Mapping[int, None]:
        """One entry for each buffer that is not free yet; there is nothing behind the keys."""
        return dict.fromkeys(range(_native.lent_buffers()))

    @property
    def context(self) -> Context[Any]:
        """A context that nothing is done with."""
        if self._context is None or self._context.closed:
            self._context = Context.instance()
        return self._context

    @context.setter
    def context(self, context: Context[Any]) -> None:
        self._context = context

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return False

    def start(self) -> None:
        """Nothing needs to be started."""

    def stop(self) -> None:
        """Nothing runs that could be stopped."""

    def store(self, obj: object, event: Event | None = None) -> int:
        """Frees at once: nothing but pyzmq's own code has a use for this."""
        if event is not None:
            event.set()
        return 0


gc = GarbageCollector()
