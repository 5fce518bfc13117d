"""Yields to other tasks, and waits for a descriptor, in asyncio.

The first call imports asyncio, which blocking programs do not need.
"""

from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

__all__ = ["Readable", "others"]


async def others() -> None:
    """Lets other tasks have their turn, if they have waited for long."""
    if _native.turn_is_over():
        import asyncio

        await asyncio.sleep(0)


class Readable:
    """Waits in asyncio until the descriptor of `source` is readable, in any number of tasks.

    A loop has one reader for a descriptor, so the tasks of a loop share it.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._waiting: dict[AbstractEventLoop, set[Future[None]]] = {}

    async def wait(self) -> None:
        """Waits until the descriptor is readable. Another task may read first."""
        import asyncio

        loop = asyncio.get_running_loop()
        descriptor = self._source.fileno()
        waiting = self._waiting.get(loop)
        if waiting is None:
            waiting = self._waiting[loop] = set()
            loop.add_reader(descriptor, _finish, waiting)
        ready = loop.create_future()
        waiting.add(ready)
        try:
            await ready
        finally:
            waiting.remove(ready)
            if not waiting:
                del self._waiting[loop]
                loop.remove_reader(descriptor)


def _finish(waiting: "set[Future[None]]") -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
