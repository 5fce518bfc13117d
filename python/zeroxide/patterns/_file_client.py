"""Credit-based file transfer: clients ask for chunks, a few ahead, so no queue grows."""

import contextlib
import os
import uuid
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .. import _checks
from .._closing import Closing
from ..constants import SocketType
from ..context import Context
from ._driver import Configure, Driver, clock, opener
from ._file_server import MAX_CHUNK, MAX_PIPELINE, FileRefused
from ._machine import Machine
from ._retrying import NoReply
from ._turn import Turn

__all__ = ["AsyncFileClient", "FileClient"]

# The size of a file has fewer digits.
_DIGITS = 20


class FileClientMachine(Machine):
    """The client: it has credit for a few chunks, and each chunk that is taken gives one back.

    Args:
        chunk: How many bytes a chunk has.
        pipeline: How many chunks are asked for or not taken yet at most.
        timeout: How long to wait for the next chunk before it is asked for again, in ms.
        attempts: How often in a row that is done.
    """

    def __init__(self, chunk: int, pipeline: int, timeout: float, attempts: int | None) -> None:
        super().__init__()
        self.begun = 0
        """How many files were begun: an iteration over an earlier one is over."""
        self._chunk = chunk
        self._pipeline = pipeline
        self._timeout = timeout
        self._attempts = attempts
        self._left = attempts
        self._name: bytes | None = None
        self._version: bytes | None = None
        self._size = 0
        self._received = 0
        self._requested = 0
        self._ready: deque[bytes] = deque()
        self._due: float | None = None
        self._error: Exception | None = None

    def begin(self, name: str, now: float) -> None:
        """Begins a file. One that is not complete is given up."""
        self._forget_sends()
        if self._requested > self._received:
            self._reopen("server")
        self.begun += 1
        self._name = os.fsencode(name)
        self._version = self._error = None
        self._size = self._received = self._requested = 0
        self._left = self._attempts
        self._ready.clear()
        self._request(now)

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match parts:
            case [b"error", text] if self._name is not None:
                self._fail(FileRefused(text.decode("utf-8", "replace")))
            case [b"chunk", version, size, offset, data] if (
                self._is_next(offset) and size.isdigit() and len(size) < _DIGITS
            ):
                if self._version is None:
                    self._version, self._size = version, int(size)
                elif version != self._version:
                    self._fail(FileRefused("the file changed while it was fetched"))
                    return
                self._received += len(data)
                self._requested = max(self._requested, self._received)
                if data:
                    self._ready.append(data)
                self._left = self._attempts
                self._due = now + self._timeout
                if self._received >= self._size:
                    self._name = self._due = None
                self._ask_ahead(now)

    def handle_timeout(self, now: float) -> None:
        if self._due is None or now < self._due or self._requested <= self._received:
            return
        if self._left is not None:
            self._left -= 1
        if self._left == 0:
            self._fail(NoReply(f"no chunk arrived in {self._attempts} attempts"))
            return
        self._reopen("server")
        self._requested = self._received
        if self._version is None:
            self._request(now)
        self._ask_ahead(now)

    def poll_timeout(self) -> float | None:
        return self._due

    def poll_chunk(self, now: float) -> bytes | None:
        """Returns the next chunk, once.

        Raises:
            FileRefused: The server does not send the file, or it has changed.
            NoReply: The server does not answer.
        """
        if self._ready:
            data = self._ready.popleft()
            self._ask_ahead(now)
            return data
        if self._error is not None:
            raise self._error
        return None

    @property
    def is_complete(self) -> bool:
        """Whether the whole file was returned."""
        return self._name is None and not self._ready and self._error is None

    def _is_next(self, offset: bytes) -> bool:
        return self._name is not None and offset == b"%d" % self._received

    def _ask_ahead(self, now: float) -> None:
        """Asks for further chunks of a file whose size is known, as far as the credit goes."""
        while (
            self._name is not None
            and self._version is not None
            and self._requested < self._size
            and (self._requested - self._received) // self._chunk + len(self._ready)
            < self._pipeline
        ):
            self._request(now)

    def _request(self, now: float) -> None:
        assert self._name is not None
        offset = self._requested
        # First: after an exception here, another file must not use this socket.
        self._requested += self._chunk
        self._send("server", b"fetch", b"%d" % offset, b"%d" % self._chunk, self._name)
        self._due = now + self._timeout

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._name = self._due = None


class _FileClient:
    def __init__(
        self,
        endpoint: str,
        *,
        chunk: int = 250_000,
        pipeline: int = 10,
        timeout: float = 2500,
        attempts: int | None = 3,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        self._turn = Turn()
        self._machine = FileClientMachine(
            _checks.whole("chunk", chunk, 1, MAX_CHUNK + 1),
            _checks.whole("pipeline", pipeline, 1, MAX_PIPELINE + 1),
            _checks.number("timeout", timeout, 1),
            None if attempts is None else _checks.whole("attempts", attempts, 1),
        )
        open_socket = opener(context, SocketType.DEALER, connect=endpoint, configure=configure)
        self._driver = Driver(self._machine, {"server": open_socket})


class FileClient(_FileClient, Closing):
    """Fetches files from a `FileServer`.

    The client asks for a few chunks ahead. It continues where it was if the server dies and comes
    back, and raises an error if the file has changed meanwhile.

    Args:
        endpoint: Where the server is: ``"tcp://server:6000"``.
        chunk: How many bytes a chunk has, at most 4,000,000.
        pipeline: How many chunks are in transit or not used yet at most, 50 or less.
        timeout: How long to wait for the next chunk before it is asked for again, in ms.
        attempts: How often in a row that is done; None for no limit.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with FileClient("tcp://127.0.0.1:6000") as client:
            client.download("measurements.csv", "/tmp/measurements.csv")
        ```

    Source:
        The guide, chapter 7: Transferring Files, model 3
    """

    def fetch(self, name: str) -> Iterator[bytes]:
        """Iterates over the chunks of a file.

        Args:
            name: The file, relative to the server's folder.

        Yields:
            The next chunk.

        Raises:
            FileRefused: The server does not send the file, or it has changed.
            NoReply: The server does not answer.
            RuntimeError: The client has begun another file before the iteration ended.
        """
        self._machine.begin(_checks.name("name", name, "the name of a file"), clock())
        begun = self._machine.begun
        while not self._machine.is_complete:
            data = self._machine.poll_chunk(clock())
            if data is None:
                self._driver.step()
            else:
                yield data
                if self._machine.begun != begun:
                    raise RuntimeError("another file has ended this iteration")

    def download(self, name: str, path: str | os.PathLike[str]) -> None:
        """Copies a file. The target appears when it is complete.

        Args:
            name: The file, relative to the server's folder.
            path: The target.

        Raises:
            FileRefused: The server does not send the file, or it has changed.
            NoReply: The server does not answer.
        """
        with _Target(path) as target:
            for data in self.fetch(name):
                target.write(data)

    def close(self) -> None:
        """Closes the socket."""
        self._driver.close()


class AsyncFileClient(_FileClient):
    """A `FileClient` for asyncio. It fetches one file at a time.

    The options are those of `FileClient`.

    Source:
        The guide, chapter 7: Transferring Files, model 3
    """

    async def fetch(self, name: str) -> AsyncIterator[bytes]:
        """Iterates over the chunks of a file.

        Args:
            name: The file, relative to the server's folder.

        Yields:
            The next chunk.

        Raises:
            FileRefused: The server does not send the file, or it has changed.
            NoReply: The server does not answer.
        """
        _checks.name("name", name, "the name of a file")
        async with self._turn.lock():
            self._machine.begin(name, clock())
            while not self._machine.is_complete:
                data = self._machine.poll_chunk(clock())
                if data is None:
                    await self._driver.step_async()
                else:
                    yield data

    async def download(self, name: str, path: str | os.PathLike[str]) -> None:
        """Copies a file. The target appears when it is complete.

        Args:
            name: The file, relative to the server's folder.
            path: The target.

        Raises:
            FileRefused: The server does not send the file, or it has changed.
            NoReply: The server does not answer.
        """
        with _Target(path) as target:
            async for data in self.fetch(name):
                target.write(data)

    def close(self) -> None:
        """Closes the socket."""
        self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Target:
    """A file that appears under its name when it is complete."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(_checks.path("path", path))
        # A name of its own: there is no symbolic link, and no other download writes there.
        self._part = self._path.with_name(f".{uuid.uuid4().hex}.part")

    def __enter__(self) -> Self:
        self._file = self._part.open("xb")
        return self

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._file.close()
            if kind is None:
                self._part.replace(self._path)
        finally:
            with contextlib.suppress(OSError):
                self._part.unlink()
