"""Titanic: requests and replies in files, each of which is complete or does not exist."""

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
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in self._folder.glob("*.part"):
            path.unlink()

    def pending(self) -> list[str]:
        """Returns the names of the requests without a reply, the oldest first."""
        requests = [
            (path.stat().st_mtime_ns, path.stem)
            for path in self._folder.glob("*.request")
            if not path.with_suffix(".reply").exists()
        ]
        return [name for _, name in sorted(requests)]

    def add(self, parts: list[bytes]) -> str:
        """Stores a request, and returns its name: 32 hexadecimal characters."""
        name = uuid.uuid4().hex
        self._write(f"{name}.request", parts)
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
        for suffix in ("request", "reply"):
            (self._folder / f"{name}.{suffix}").unlink(missing_ok=True)
        self._sync_folder()

    @staticmethod
    def name(text: bytes) -> str | None:
        """Returns the name of a request as a client sent it, or None if there cannot be such a name."""
        return text.decode().lower() if _NAME.fullmatch(text) else None

    def _write(self, name: str, parts: list[bytes]) -> None:
        part = self._folder / f"{name}.part"
        with part.open("wb") as file:
            for data in parts:
                file.write(_LENGTH.pack(len(data)))
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._folder / name)
        self._sync_folder()

    def _read(self, name: str) -> list[bytes] | None:
        try:
            data = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        parts, position = [], 0
        while position < len(data):
            (length,) = _LENGTH.unpack_from(data, position)
            position += _LENGTH.size
            parts.append(data[position : position + length])
            position += length
        return parts

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
