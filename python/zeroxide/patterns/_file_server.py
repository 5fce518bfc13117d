"""Credit-based file transfer: the server, which keeps nothing of its clients."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._driver import AsyncRunner, Configure, Driver, Runner, opener
from ._machine import Machine

__all__ = ["MAX_CHUNK", "MAX_PIPELINE", "AsyncFileServer", "FileRefused", "FileServer"]

# The largest chunk that a client may ask for, and how many it may ask for ahead.
MAX_CHUNK = 4_000_000
MAX_PIPELINE = 50

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class FileRefused(OSError):
    """The server does not send the file, or the file changed while it was sent.

    Source:
        zeroxide only
    """


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file, and what the file was when it was read."""

    version: bytes
    size: int
    data: bytes


def read_chunk(folder: Path, name: str, offset: int, size: int) -> Chunk:
    """Reads a part of a file in a folder.

    Raises:
        FileRefused: There is no such file in the folder.
    """
    try:
        # Symbolic links and ".." do not lead out of the folder.
        path = Path(os.path.realpath(folder / name))
        if not path.is_relative_to(folder) or not path.is_file():
            raise FileRefused(f"there is no file {name!r}")
        # A link or a pipe that takes the file's place here is neither followed nor waited for.
        with open(os.open(path, _FLAGS), "rb", buffering=0) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise FileRefused(f"there is no file {name!r}")
            version = b"%d-%d-%d" % (facts.st_ino, facts.st_mtime_ns, facts.st_size)
            return Chunk(version, facts.st_size, os.pread(file.fileno(), size, offset))
    except FileRefused:
        raise
    except OSError as error:
        raise FileRefused(f"file {name!r} cannot be read: {error.strerror}") from error
    except ValueError as error:  # a name with a null byte
        raise FileRefused(f"file {name!r} cannot be read: {error}") from error


class FileServerMachine(Machine):
    """The server, which keeps nothing of its clients.

    Args:
        read: Reads a part of a file.
    """

    def __init__(self, read: Callable[[str, int, int], Chunk]) -> None:
        super().__init__()
        self._read = read

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match parts:
            case [client, b"fetch", offset, size, name]:
                self._send("clients", client, *self._answer(offset, size, name))
            case _:
                self.drop()

    def _answer(self, offset: bytes, size: bytes, name: bytes) -> list[bytes]:
        try:
            start, count = int(offset), int(size)
            if not (0 <= start < 2**63 and 1 <= count <= MAX_CHUNK):
                raise FileRefused(f"a chunk has 1 to {MAX_CHUNK} bytes")
            chunk = self._read(os.fsdecode(name), start, count)
        except (FileRefused, ValueError) as error:
            return [b"error", str(error).encode("utf-8", "replace")]
        return [b"chunk", chunk.version, b"%d" % chunk.size, b"%d" % start, chunk.data]


class _FileServer:
    def __init__(
        self,
        endpoint: str,
        folder: str | os.PathLike[str],
        *,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        root = Path(_checks.path("folder", folder)).resolve(strict=True)
        machine = FileServerMachine(lambda name, offset, size: read_chunk(root, name, offset, size))
        open_socket = opener(
            context,
            SocketType.ROUTER,
            bind=endpoint,
            configure=configure,
            sndhwm=2 * MAX_PIPELINE,
            rcvhwm=2 * MAX_PIPELINE,
        )
        self._driver = Driver(machine, {"clients": open_socket})

    @property
    def endpoint(self) -> str:
        """Where clients connect, with the port that the system chose."""
        return self._driver.endpoint("clients")


class FileServer(_FileServer, Runner):
    """Sends the files of a folder to clients, at the rate at which each client takes them.

    The server keeps nothing of its clients. After its restart, they continue where they were.

    Args:
        endpoint: Where to bind: ``"tcp://*:6000"``.
        folder: The folder. Files outside of it are not sent.
        context: The context of the socket; None for `Context.instance`.
        configure: A function that sets options, such as keys, of the socket before it binds.

    Example:
        ```python
        with FileServer("tcp://*:6000", "/srv/files") as server:
            server.run()
        ```

    Source:
        The guide, chapter 7: Transferring Files, model 3
    """


class AsyncFileServer(_FileServer, AsyncRunner):
    """A `FileServer` for asyncio. Reading a chunk from the disk blocks the loop.

    The options are those of `FileServer`.

    Source:
        The guide, chapter 7: Transferring Files, model 3
    """
