"""Lets `asyncio.create_task` take a call, which is a future and not a coroutine."""

import asyncio
from collections.abc import Callable
from typing import Any

__all__ = ["let_tasks_run"]


class _Idle:
    """A loop that never runs what it is given."""

    def get_debug(self) -> bool:
        return False

    def call_soon(self, *_: Any, **__: Any) -> None:
        pass

    def call_exception_handler(self, _: Any) -> None:
        pass


def let_tasks_run(*makers: Callable[[Any], Any]) -> None:
    """Lets tasks run calls, which have the methods of coroutines that tasks use.

    Args:
        makers: For each class of calls, a function that makes a call for a loop.

    A task asks `asyncio.iscoroutine`, once for each class, and then remembers the answer.
    So do these functions, for themselves: if a class is known to them while it is asked,
    tasks accept it from then on. Afterwards they must not know it any more, as
    `asyncio.wait` accepts futures and refuses coroutines.

    A Python whose asyncio has no such memory, as only that of CPython has, refuses such
    tasks as before.
    """
    known = getattr(asyncio.coroutines, "_iscoroutine_typecache", None)
    if not isinstance(known, set):
        return
    loop: Any = _Idle()
    for make in makers:
        call = make(loop)
        known.add(type(call))
        try:
            task: asyncio.Task[Any] = asyncio.Task(call, loop=loop)
        finally:
            known.discard(type(call))
        # The task ends here, before it has begun, and must not warn about that.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
