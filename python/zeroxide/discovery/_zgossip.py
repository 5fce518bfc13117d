"""The messages of czmq's gossip protocol as bytes."""

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ._wire import Reader, long_string, short_string

__all__ = ["MAX_FRAME", "GossipKind", "GossipMessage"]

MAX_FRAME = 64 * 1024
"""The largest message, in bytes."""

_SIGNATURE = b"\xaa\xa0"
_VERSION = 1


class GossipKind(enum.IntEnum):
    HELLO = 1
    PUBLISH = 2
    PING = 3
    PONG = 4
    INVALID = 5


@dataclass(frozen=True, slots=True)
class GossipMessage:
    """A message. Only PUBLISH has a key and a value."""

    kind: GossipKind
    key: str = ""
    value: str = ""

    def write(self) -> bytes:
        """Returns the frame. A tuple has no time to live, because czmq ignores it."""
        frame = _SIGNATURE + struct.pack(">BB", self.kind, _VERSION)
        if self.kind == GossipKind.PUBLISH:
            frame += short_string(self.key) + long_string(self.value) + bytes(4)
        return frame

    @classmethod
    def read(cls, frames: Sequence[bytes]) -> "GossipMessage | None":
        """Returns the message, or None if it is not one of this protocol."""
        if len(frames) != 1 or len(frames[0]) > MAX_FRAME or frames[0][:2] != _SIGNATURE:
            return None
        reader = Reader(frames[0][2:])
        try:
            kind, version = GossipKind(reader.number(1)), reader.number(1)
            if version != _VERSION:
                return None
            if kind != GossipKind.PUBLISH:
                return cls(kind)
            key, value = reader.string(), reader.long_string()
            reader.number(4)
        except ValueError:  # an unknown kind, or Malformed
            return None
        return cls(kind, key, value)
