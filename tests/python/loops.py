"""Running coroutines in tests, on asyncio's own loop and on uvloop."""

import asyncio
import selectors
from collections.abc import Coroutine
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from support import PATIENCE

LOOPS = ["asyncio", *(["uvloop"] if find_spec("uvloop") else [])]


def run_in(loop: str, main: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine to its end in a new loop."""
    factory = None if loop == "asyncio" else import_module(loop).new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(with_patience(main))


async def with_patience(main: Coroutine[Any, Any, Any]) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await main


async def turns(count: int = 3) -> None:
    """Lets the loop run for some turns."""
    for _ in range(count):
        await asyncio.sleep(0)


async def readable(socket: Any) -> None:
    """Waits until a message can be received."""
    assert await socket.poll(PATIENCE * 1000)


class CountingSelector(selectors.DefaultSelector):
    """Counts how often descriptors were ready."""

    def __init__(self) -> None:
        super().__init__()
        self.wakes = 0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(timeout)
        self.wakes += len(ready)
        return ready


def subtree(module: ModuleType, name: str) -> ModuleType:
    """A submodule of the module under test."""
    return import_module(f"{module.__name__}.{name}")
