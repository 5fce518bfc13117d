"""Messages in the body of a request, parsed as it arrives.

Each reader gets chunks with `add`. When it `is_ripe`, `take` returns the complete messages;
`finish` returns the rest, and `size` is the number of bytes kept.
"""

import struct
from http import HTTPStatus

from .request import Wrong

__all__ = ["Counted", "Lines", "Whole"]

# From this many bytes on, messages are taken out before the body has ended.
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
    """One message per line that is not empty."""

    is_ripe: bool

    def add(self, chunk: bytes) -> None:
        super().add(chunk)
        # An incomplete line is not searched again with each chunk.
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
        # The size of the next message in bytes, if known.
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
