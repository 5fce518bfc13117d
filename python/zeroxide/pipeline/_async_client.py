"""A client for asyncio."""

import weakref
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .._optional import needed_by
from .._typing import ArrowData
from ._async_follower import AsyncFollower
from ._client import Client, Info, Published
from ._follow import Start
from ._threads import Threads

if TYPE_CHECKING:
    from .. import _pyarrow as pyarrow
    from ._stats import CollectorStats

__all__ = ["AsyncClient"]


class AsyncClient:
    """A `Client` for asyncio, also available as `zeroxide.asyncio.Client`.

    Its options and methods are those of `Client`, and calls are awaited. `follow` waits in the
    loop itself, and other calls wait in threads of the client, up to eight at a time. When a
    task is cancelled, its call ends.

    Args:
        endpoint: The collector's address.
        timeout_s: Seconds to wait for an answer before asking again.
        retries: How many times to ask again.
        server_key: The collector's public CURVE key.
        public_key: This client's CURVE key.
        secret_key: The secret part of it.

    Raises:
        ZMQError: If the endpoint is malformed.
        ValueError: If a key is malformed.

    Example:
        ```python
        async with AsyncClient("tcp://collector:5555") as client:
            async for row in client.follow("temperature", start="latest"):
                print(row.value)
        ```
    """

    def __init__(
        self,
        endpoint: str,
        *,
        timeout_s: float = 10.0,
        retries: int = 3,
        server_key: str | bytes | None = None,
        public_key: str | bytes | None = None,
        secret_key: str | bytes | None = None,
    ) -> None:
        self._client = Client(
            endpoint,
            timeout_s=timeout_s,
            retries=retries,
            server_key=server_key,
            public_key=public_key,
            secret_key=secret_key,
        )
        self._threads = Threads()
        self._followers: weakref.WeakSet[AsyncFollower] = weakref.WeakSet()

    @property
    def endpoint(self) -> str:
        """The collector's address."""
        return self._client.endpoint

    async def info(self) -> Info:
        """Returns what the collector's log contains; see `Client.info`.

        Returns:
            Its offsets, size, and times of receipt.
        """
        return await self._threads.run(self._client.info)

    async def groups(self) -> dict[str, int]:
        """Returns the positions of the groups of consumers; see `Client.groups`.

        Returns:
            A dict from the group's name to the first offset that the group still needs. It has
            at most 1,000 groups, those that are furthest behind; ``groups_unlisted`` of `stats`
            says how many more there are.
        """
        return await self._threads.run(self._client.groups)

    async def drop_group(self, group: str) -> bool:
        """Forgets a group of consumers; see `Client.drop_group`.

        Args:
            group: The group's name.

        Returns:
            Whether there was such a group.
        """
        return await self._threads.run(self._client.drop_group, group)

    async def committed(self, group: str) -> int | None:
        """Returns the position of a group of consumers; see `Client.committed`.

        Args:
            group: The group's name.

        Returns:
            The first offset that the group still needs; None if it has not committed.
        """
        return await self._threads.run(self._client.committed, group)

    async def commit(self, group: str, offset: int, *, generation: str | None = None) -> int:
        """Stores the position of a group of consumers; see `Client.commit`.

        Args:
            group: The group's name.
            offset: The first offset that the group still needs.
            generation: The generation of the row before it, from `Info.generation`.

        Returns:
            The position that was committed.
        """
        call = self._client.commit
        return await self._threads.run(call, group, offset, generation=generation)

    async def offset_at(self, timestamp: datetime | float | int) -> int:
        """Returns the first offset that was received at a time or later; see `Client.offset_at`.

        Args:
            timestamp: A datetime, a float of seconds, or an int of microseconds since 1970.

        Returns:
            The offset.
        """
        return await self._threads.run(self._client.offset_at, timestamp)

    async def offset_after(self, start: int, size: int) -> int:
        """Returns the end of a range of about `size` bytes; see `Client.offset_after`.

        Args:
            start: The first offset.
            size: Bytes that the rows take in the log.

        Returns:
            The offset after the range.
        """
        return await self._threads.run(self._client.offset_after, start, size)

    async def fetch(
        self,
        start: int,
        end: int,
        *,
        topics: str | Iterable[str] | None = None,
        partition: int = 0,
        headers: bool = False,
        frames: bool = False,
        max_bytes: int = 8 << 20,
        log_id: str | None = None,
        generation: str | None = None,
    ) -> "AsyncIterator[pyarrow.RecordBatch]":
        """Reads a range of offsets, in order; see `Client.fetch`, as for all arguments.

        Args:
            start: The first offset.
            end: The offset after the last row.
            topics: Only rows whose topic begins with one of these.
            partition: The content of the column of that name.
            headers: Whether there is a column of headers.
            frames: Whether there is a column of all frames of a message.
            max_bytes: The size of the answers to ask for, approximately, in bytes.
            log_id: The log that the offsets belong to.
            generation: The generation of the row before `start`.

        Returns:
            An asynchronous iterator over batches of pyarrow.
        """
        with needed_by("AsyncClient.fetch", extra="arrow"):
            import pyarrow

        tables = self._client.fetch_tables(
            start,
            end,
            topics=topics,
            partition=partition,
            headers=headers,
            frames=frames,
            max_bytes=max_bytes,
            log_id=log_id,
            generation=generation,
        )
        while (table := await self._threads.run(next, tables, None)) is not None:
            yield pyarrow.record_batch(table)

    def follow(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        group: str | None = None,
        start: Start | None = None,
        timeout_s: float | None = None,
        max_bytes: int = 8 << 20,
    ) -> AsyncFollower:
        """Reads rows as they arrive, waiting for those that are not there yet.

        The start position is requested with the first row, or at the beginning of an ``async with``
        block.

        Args:
            topics: Only rows whose topic begins with this, or with one of these.
            group: The name of a group of consumers; see `Client.follow`.
            start: An offset, a datetime, ``"earliest"`` or ``"latest"``. Default: the
                group's position; without one, the earliest row.
            timeout_s: Seconds without a row after which the iteration ends; 0 reads only
                the rows that are there. Default: None, no limit.
            max_bytes: The size of the answers to ask for, approximately, in bytes.

        Returns:
            An asynchronous iterator over rows, which is closed when the client is closed.

        Raises:
            TypeError: If an argument is of the wrong type.
            ValueError: If `start` or a number is out of range.
        """
        follower = AsyncFollower(self._client, topics, group, start, timeout_s, max_bytes)
        follower._threads = self._threads
        self._followers.add(follower)
        return follower

    async def stage(
        self, query: str, batch: int, partition: int, attempt: int, part: int, rows: ArrowData
    ) -> int:
        """Writes rows to the collector's disk, to be published later; see `Client.stage`.

        Args:
            query: The name of the query that writes.
            batch: The number of the batch that is published as a whole.
            partition: The task's part of the batch.
            attempt: A number that distinguishes attempts at the same partition.
            part: The number of these rows among those of the attempt, counted from 0.
            rows: An Arrow table or batch with the column `value`.

        Returns:
            The number of rows.
        """
        call = self._client.stage
        return await self._threads.run(call, query, batch, partition, attempt, part, rows)

    async def publish(
        self, query: str, batch: int, parts: Iterable[tuple[int, int, int]]
    ) -> Published:
        """Makes staged rows visible to every reader, all of them or none; see `Client.publish`.

        Args:
            query: As it was given to `stage`.
            batch: As it was given to `stage`.
            parts: (partition, attempt, number of parts) of the attempts that count, at most
                65,536.

        Returns:
            The offsets of the rows.
        """
        return await self._threads.run(self._client.publish, query, batch, parts)

    async def abort(
        self, query: str, batch: int, attempts: Iterable[tuple[int, int]] | None = None
    ) -> None:
        """Forgets staged rows; see `Client.abort`.

        Args:
            query: As it was given to `stage`.
            batch: As it was given to `stage`.
            attempts: (partition, attempt) of those to forget, at most 65,536. Default: None,
                all of the batch.
        """
        await self._threads.run(self._client.abort, query, batch, attempts)

    async def stats(self) -> "CollectorStats":
        """The collector's counters; see `Client.stats`.

        Returns:
            A dict with the counters, see `CollectorStats`.
        """
        return await self._threads.run(self._client.stats)

    async def close(self) -> None:
        """Ends its connections and closes its followers: loops over them end.

        A later call makes new connections.
        """
        followers = list(self._followers)
        self._followers.clear()
        for follower in followers:
            await follower.close()
        self._client.close()
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient {self.endpoint}>"
