"""pyzmq's thread that frees memory sent without copying.

zeroxide has no such thread: buffers are released at the next call of the extension module.
Calls that programs make before a fork or at their end have no effect.
"""

import os
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any

from zeroxide import _native
from zeroxide.context import Context

__all__ = ["GarbageCollector", "gc"]


class GarbageCollector:
    """A collector that has nothing to collect."""

    url = "inproc://pyzmq.gc.01"
    thread: Thread | None = None

    def __init__(self, context: Context[Any] | None = None) -> None:
        self.pid = os.getpid()
        self._context = context

    @property
    def refs(self) -> Mapping[int, None]:
        """One entry for each buffer that is not free yet; the values are empty."""
        return dict.fromkeys(range(_native.lent_buffers()))

    @property
    def context(self) -> Context[Any]:
        """A context that is not used."""
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
        """Does nothing: there is no thread to start."""

    def stop(self) -> None:
        """Does nothing: there is no thread to stop."""

    def store(self, obj: object, event: Event | None = None) -> int:
        """Frees memory at once: only pyzmq's own code needs this."""
        if event is not None:
            event.set()
        return 0


gc = GarbageCollector()
