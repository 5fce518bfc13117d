"""A follower for asyncio."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from .. import _native
from .._native import ArrowTable
from .._optional import needed_by
from .._turns import others
from ._follow import FollowerBase, Record
from ._threads import Threads, retrieve

if TYPE_CHECKING:
    from .. import _pyarrow as pyarrow

__all__ = ["AsyncFollower"]

_T = TypeVar("_T")

# A waiting follower checks its connection at least this often, in seconds.
_LOOK = 1.0


class AsyncFollower(FollowerBase):
    """Rows of a log as they arrive, for ``async for``; made by `AsyncClient.follow`.

    The iteration waits in the event loop, without a thread. It ends when the follower is
    closed, or when no row arrived for `timeout_s` seconds; with ``timeout_s=0`` it reads the
    rows that are there when it begins. It survives restarts of the collector. A task that is
    cancelled while it waits loses no row. One task at a time may iterate.

    Raises:
        CollectorGone: While iterating, if the collector did not answer for as long as the
            client's calls may take. Iterating again continues at the same position.
        DataLoss: While iterating, if rows that are due are not in the log any more.

    Example:
        ```python
        async with client.follow("temperature", group="report") as rows:
            async for row in rows:
                print(row.offset, row.topic, row.value)
                await rows.commit()
        ```
    """

    _is_waited_for = False
    # The future that a wait in the loop awaits.
    _ready: "asyncio.Future[None] | None" = None
    # The descriptors of that wait.
    _watched: Sequence[int] = ()
    # The task that asks the collector where to begin, and the number of tasks that await it.
    _beginning: "asyncio.Task[_native.Follow] | None" = None
    _beginners = 0
    # Those of the client.
    _threads: Threads

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        if self._is_closed:
            raise StopAsyncIteration
        while self._taken == len(self._rows):
            follow = await self._continued()
            found = await self._wait(follow, follow._next_rows)
            if found is None:
                raise StopAsyncIteration
            self._put(*found)
        return self._take()

    async def tables(self) -> AsyncIterator[ArrowTable]:
        """Reads the rows in tables instead, one for each batch of the log.

        Returns:
            An asynchronous iterator over Arrow tables with the columns of
            `Client.fetch_tables`, headers included.
        """
        self._check_passed()
        while not self._is_closed:
            follow = await self._continued()
            found = await self._wait(follow, follow._next_table)
            if found is None:
                return
            table, end = found
            self._pass(end)
            if table.num_rows:
                yield table

    async def batches(self) -> "AsyncIterator[pyarrow.RecordBatch]":
        """Reads the rows in batches of pyarrow instead; see `tables`.

        Returns:
            An asynchronous iterator over batches with the columns of `Client.fetch`, headers
            included.
        """
        with needed_by("AsyncFollower.batches", extra="arrow"):
            import pyarrow

        async for table in self.tables():
            yield pyarrow.record_batch(table)

    async def commit(self, offset: int | None = None) -> int:
        """Stores the position of the group at the collector; see `Follower.commit`.

        Args:
            offset: The first offset that the group still needs. Default: `position`, after the last
                row that was returned.

        Returns:
            The position that was committed.

        Raises:
            ValueError: If the follower has no group.
            Refused: If the log has other rows before the position than those that were read.
            CollectorGone: If the collector does not answer.
        """
        await self._begun()
        # The current position, because other tasks may read on before the thread runs.
        return await self._threads.run(self._commit, *self._to_commit(offset))

    async def close(self) -> None:
        """Ends the iteration, even if another task waits in it, and closes the connection."""
        # The loop must not watch descriptors that are closed.
        self._unwatch()
        self._stop()
        self._look()

    async def _begun(self) -> _native.Follow:
        return self._follow or await self._shared(self._begin)

    async def _continued(self) -> _native.Follow:
        if self._follow is None or self._is_through():
            return await self._shared(self._continue)
        return self._follow

    async def _shared(self, begin: Callable[[], _native.Follow]) -> _native.Follow:
        """Begins. If the task is cancelled, the next task awaits what it has begun."""
        if self._beginning is None:
            self._beginning = asyncio.create_task(self._threads.run(begin))
            self._beginning.add_done_callback(self._on_begun)
        beginning = self._beginning
        self._beginners += 1
        try:
            return await asyncio.shield(beginning)
        finally:
            self._beginners -= 1
            if not beginning.done():
                # A program that repeatedly waits for a short time makes progress, too.
                beginning.get_loop().call_later(_LOOK, self._give_up, beginning)

    def _give_up(self, beginning: "asyncio.Task[_native.Follow]") -> None:
        """Ends the request for the start if no task awaits it."""
        if self._beginning is beginning and not self._beginners:
            self._beginning = None
            beginning.cancel()

    def _on_begun(self, beginning: "asyncio.Task[_native.Follow]") -> None:
        if self._beginning is beginning:
            self._beginning = None
        retrieve(beginning)

    async def _wait(
        self, follow: _native.Follow, attempt: Callable[[float | None, bool], _T | None]
    ) -> _T | None:
        if self._is_waited_for:
            raise RuntimeError("another task waits for this follower's next row")
        self._is_waited_for = True
        try:
            await others()
            limit = None if self._timeout_s is None else time.monotonic() + self._timeout_s
            found = attempt(0, True)
            while found is None and not follow._stopped:
                left = _LOOK if limit is None else min(_LOOK, limit - time.monotonic())
                if left <= 0:
                    return None
                await self._readable(follow._fds(), left)
                found = attempt(0, False)
            return found
        finally:
            self._is_waited_for = False

    async def _readable(self, descriptors: list[int], limit: float) -> None:
        """Waits in the loop until a descriptor is readable or the time is up (in seconds)."""
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        timer = loop.call_later(limit, self._look)
        self._watched = descriptors
        for descriptor in descriptors:
            loop.add_reader(descriptor, self._look)
        try:
            await self._ready
        finally:
            timer.cancel()
            self._unwatch()
            self._ready = None

    def _unwatch(self) -> None:
        # A loop that was closed while a task waited watches nothing any more.
        if self._ready is not None and not self._ready.get_loop().is_closed():
            for descriptor in self._watched:
                self._ready.get_loop().remove_reader(descriptor)
        self._watched = ()

    def _look(self) -> None:
        if self._ready is None or self._ready.done() or self._ready.get_loop().is_closed():
            return
        self._ready.set_result(None)

    async def __aenter__(self) -> Self:
        await self._begun()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
