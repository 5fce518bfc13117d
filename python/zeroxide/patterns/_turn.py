"""Lets one task after the other use a client, in any event loop."""

import asyncio
import weakref

__all__ = ["Turn"]


class Turn:
    """A lock for each event loop: an `asyncio.Lock` belongs to the loop in which a task first waited for it."""

    def __init__(self) -> None:
        # Only the tasks that hold a lock or wait for it keep it alive. A lock may refer to its loop, so this table
        # would otherwise keep every loop alive.
        self._locks: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, weakref.ReferenceType[asyncio.Lock]
        ] = weakref.WeakKeyDictionary()

    def lock(self) -> asyncio.Lock:
        """Returns the lock of the running loop."""
        loop = asyncio.get_running_loop()
        known = self._locks.get(loop)
        lock = None if known is None else known()
        if lock is None:
            lock = asyncio.Lock()
            self._locks[loop] = weakref.ref(lock)
        return lock
