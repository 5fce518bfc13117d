"""Waiting for peers in asyncio; threads wait in the extension module."""

import asyncio
from collections.abc import Callable
from typing import Any

from . import _checks, _native
from ._turns import Readable, others
from .socket import Socket

__all__ = ["wait_for_peers"]


async def wait_for_peers(
    socket: Socket[Any],
    look: Callable[[], int],
    count: int,
    timeout: float | None,
    what: str,
) -> int:
    """Waits up to `timeout` ms until `look` finds `count`; raises `Again` otherwise."""
    _checks.whole("count", count)
    millis = _checks.milliseconds(timeout)
    seconds = None if millis < 0 else millis / 1000
    await others()
    watcher = _native.Watcher(socket)
    readable = Readable(watcher)
    found = 0
    watcher.watch()
    try:
        async with asyncio.timeout(seconds):
            while True:
                # In this order, because an event in between makes the descriptor readable again.
                watcher.clear()
                found = look()
                if found >= count:
                    return found
                await readable.wait()
    except TimeoutError:
        # A peer may have come in time while the loop was busy.
        found = look()
        if found >= count:
            return found
        raise socket._too_few(found, count, what) from None
    finally:
        watcher.rest()
