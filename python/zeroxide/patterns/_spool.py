"""Titanic: requests and replies in files, each of which is complete or does not exist."""

import contextlib
import errno
import os
import re
import struct
import uuid
from pathlib import Path

__all__ = ["Spool"]

_NAME = re.compile(rb"[0-9A-Fa-f]{32}")
_LENGTH = struct.Struct(">Q")


class Spool:
    """A folder with a file for each request and for each reply.

    A request or reply that a method has stored survives the death of the process, and of the machine.

    Args:
        folder: The folder, which is created if it does not exist.
        max_requests: How many requests it may have, with those that have a reply.
    """

    def __init__(self, folder: str | os.PathLike[str], max_requests: int = 100_000) -> None:
        self._folder = Path(folder)
        self._max_requests = max_requests
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in self._folder.glob("*.part"):
            path.unlink()
        self._count = len(self._requests())

    def pending(self) -> list[str]:
        """Returns the names of the requests without a reply, the oldest first."""
        requests = [
            (path.stat().st_mtime_ns, path.stem)
            for path in self._requests()
            if not path.with_suffix(".reply").exists()
        ]
        return [name for _, name in sorted(requests)]

    def add(self, parts: list[bytes]) -> str:
        """Stores a request, and returns its name: 32 hexadecimal characters.

        Raises:
            OSError: The disk or the folder is full.
        """
        if self._count >= self._max_requests:
            raise OSError(errno.ENOSPC, f"the folder has {self._max_requests} requests")
        name = uuid.uuid4().hex
        try:
            self._write(f"{name}.request", parts)
        except OSError:
            # It may be there, but the client gets an error.
            with contextlib.suppress(OSError):
                (self._folder / f"{name}.request").unlink(missing_ok=True)
            raise
        self._count += 1
        return name

    def add_reply(self, name: str, parts: list[bytes]) -> None:
        """Stores the reply to a request."""
        self._write(f"{name}.reply", parts)

    def request(self, name: str) -> list[bytes] | None:
        """Returns a request, or None if there is none."""
        return self._read(f"{name}.request")

    def reply(self, name: str) -> list[bytes] | None:
        """Returns the reply to a request, or None if there is none."""
        return self._read(f"{name}.reply")

    def remove(self, name: str) -> None:
        """Removes a request and its reply, if they exist."""
        # The request first: a reply alone is not pending.
        request = self._folder / f"{name}.request"
        with contextlib.suppress(FileNotFoundError):
            request.unlink()
            self._count -= 1
        request.with_suffix(".reply").unlink(missing_ok=True)
        self._sync_folder()

    @staticmethod
    def name(text: bytes) -> str | None:
        """Returns the name of a request as a client sent it, or None if there cannot be such a name."""
        return text.decode().lower() if _NAME.fullmatch(text) else None

    def _requests(self) -> list[Path]:
        return [
            path
            for path in self._folder.glob("*.request")
            if _NAME.fullmatch(os.fsencode(path.stem))
        ]

    def _write(self, name: str, parts: list[bytes]) -> None:
        part = self._folder / f"{name}.part"
        try:
            with part.open("wb") as file:
                for data in parts:
                    file.write(_LENGTH.pack(len(data)))
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._folder / name)
        except OSError:
            part.unlink(missing_ok=True)  # its room may be what the disk lacks
            raise
        self._sync_folder()

    def _read(self, name: str) -> list[bytes] | None:
        try:
            data = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        parts, position = [], 0
        while position < len(data):
            start = position + _LENGTH.size
            position = start + int.from_bytes(data[position:start], "big")
            parts.append(data[start:position])
        if position != len(data) or not parts:
            raise OSError(errno.EIO, "the file is damaged", str(self._folder / name))
        return parts

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
