"""Messages in the body of a request, taken out as it comes in.

Each reader is given chunks with `add`. When it `is_ripe`, `take` gives the messages that are
there as a whole; `finish` gives the rest, and `size` is how many bytes are kept.
"""

import struct
from http import HTTPStatus

from .request import Wrong

__all__ = ["Counted", "Lines", "Whole"]

# From so many bytes on messages are taken out before the body has ended.
_PIECE = 1 << 20


class Whole:
    """One message."""

    is_ripe: bool = False

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self.size: int = 0

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self.size += len(chunk)

    def take(self) -> list[bytes]:
        return []

    def finish(self) -> list[bytes]:
        body = b"".join(self._chunks)
        self._chunks, self.size = [], 0
        return [body]


class Lines(Whole):
    """A message per line that is not empty."""

    is_ripe: bool

    def add(self, chunk: bytes) -> None:
        super().add(chunk)
        # A line without an end is not looked through again with each chunk of it.
        self.is_ripe = self.size >= _PIECE and b"\n" in chunk

    def take(self) -> list[bytes]:
        *lines, rest = super().finish()[0].split(b"\n")
        super().add(rest)
        self.is_ripe = False
        return [line for line in lines if line]

    def finish(self) -> list[bytes]:
        return [line for line in super().finish()[0].split(b"\n") if line]


class Counted:
    """A number of messages, then each with its length."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._count: int | None = None
        # How many bytes the next message takes, as far as is known.
        self._next = 4

    @property
    def size(self) -> int:
        return len(self._buffer)

    @property
    def is_ripe(self) -> bool:
        return self.size >= max(_PIECE, self._next)

    def add(self, chunk: bytes) -> None:
        self._buffer += chunk

    def take(self) -> list[bytes]:
        buffer, at = bytes(self._buffer), 0
        if self._count is None and len(buffer) >= 4:
            (self._count,) = struct.unpack_from(">I", buffer)
            at = 4
        values: list[bytes] = []
        self._next = 4
        while self._count and at + 4 <= len(buffer):
            (length,) = struct.unpack_from(">I", buffer, at)
            if at + 4 + length > len(buffer):
                self._next = 4 + length
                break
            values.append(buffer[at + 4 : at + 4 + length])
            at += 4 + length
            self._count -= 1
        del self._buffer[:at]
        return values

    def finish(self) -> list[bytes]:
        values = self.take()
        if self._count != 0 or self._buffer:
            text = "the lengths in the body do not fit it"
            raise Wrong(HTTPStatus.BAD_REQUEST, text, "malformed")
        return values
