"""Strings, numbers and lists as ZRE and the gossip protocol write them."""

import struct

__all__ = ["Malformed", "Reader", "long_string", "short_string", "text"]

_SHORT = 0xFF


class Malformed(ValueError):
    """Bytes that are not a message of the protocol."""


class Reader:
    """Reads the fields of one frame, in order."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._at = 0

    def number(self, size: int) -> int:
        """Returns an unsigned number of `size` bytes, in network order."""
        return int.from_bytes(self._take(size), "big")

    def string(self) -> str:
        """Returns a string of up to 255 bytes."""
        return text(self._take(self.number(1)))

    def long_string(self) -> str:
        """Returns a string with a length of four bytes."""
        return text(self._take(self.number(4)))

    def count(self, most: int) -> int:
        """Returns the number of items that follow, of which there are `most` at most."""
        count = self.number(4)
        if count > most:
            raise Malformed(f"{count} items where {most} are allowed")
        return count

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._frame):
            raise Malformed("the frame ends in the middle of a field")
        taken = self._frame[self._at : end]
        self._at = end
        return taken


def text(value: bytes) -> str:
    """Returns bytes as text. Bytes that are not UTF-8 survive a round trip."""
    return value.decode("utf-8", "surrogateescape")


def short_string(value: str) -> bytes:
    """Returns a string of up to 255 bytes, after its length."""
    encoded = value.encode("utf-8", "surrogateescape")
    if len(encoded) > _SHORT:
        raise ValueError(f"a string of {len(encoded)} bytes, where {_SHORT} fit")
    return struct.pack(">B", len(encoded)) + encoded


def long_string(value: str) -> bytes:
    """Returns a string after its length in four bytes."""
    encoded = value.encode("utf-8", "surrogateescape")
    return struct.pack(">I", len(encoded)) + encoded
