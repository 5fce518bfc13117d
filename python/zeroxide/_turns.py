"""Yields to other tasks, and waits for a descriptor, in asyncio.

The first call imports asyncio, which blocking programs do not need.
"""

from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from asyncio import Future

__all__ = ["others", "readable"]


async def others() -> None:
    """Lets other tasks have their turn, if they have waited for long."""
    if _native.turn_is_over():
        import asyncio

        await asyncio.sleep(0)


async def readable(source: Any) -> None:
    """Waits in asyncio until the descriptor of `source` is readable."""
    import asyncio

    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    descriptor = source.fileno()
    loop.add_reader(descriptor, _finish, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def _finish(future: "Future[None]") -> None:
    if not future.done():
        future.set_result(None)
