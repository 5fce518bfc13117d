"""ZRE's messages and beacons as bytes: RFC 36, and what Zyre has added to it since."""

import enum
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ._wire import Malformed, Reader, long_string, short_string

__all__ = [
    "BEACON_PORT",
    "MAX_GROUPS",
    "MAX_HEADERS",
    "MAX_HELLO",
    "Kind",
    "Message",
    "identity",
    "read_beacon",
    "sender",
    "write_beacon",
]

BEACON_PORT = 5670
"""The port of beacons, which IANA has assigned to ZRE."""

MAX_HEADERS = 256
MAX_GROUPS = 256
MAX_HELLO = 64 * 1024
"""The largest first frame, in bytes. The content of a message is in the frames after it."""

_SIGNATURE = b"\xaa\xa1"
_VERSION = 2
_BEACON = struct.Struct(">4s16sH")
_BEACON_HEADER = b"ZRE\x01"
_UUID_SIZE = 16


class Kind(enum.IntEnum):
    HELLO = 1
    WHISPER = 2
    SHOUT = 3
    JOIN = 4
    LEAVE = 5
    PING = 6
    PING_OK = 7
    ELECT = 8
    LEADER = 9
    GOODBYE = 10


@dataclass(frozen=True, slots=True)
class Message:
    """A message. Fields that its kind does not have are empty."""

    kind: Kind
    sequence: int = 0
    endpoint: str = ""
    groups: Sequence[str] = ()
    status: int = 0
    name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    member: str = ""
    """The challenger or leader of an election."""
    content: Sequence[bytes] = ()

    def write(self) -> list[bytes]:
        """Returns the frames."""
        frame = _SIGNATURE + struct.pack(">BBH", self.kind, _VERSION, self.sequence)
        match self.kind:
            case Kind.HELLO:
                frame += self._hello()
            case Kind.SHOUT:
                frame += short_string(self.group)
            case Kind.JOIN | Kind.LEAVE:
                frame += short_string(self.group) + bytes([self.status])
            case Kind.ELECT | Kind.LEADER:
                frame += short_string(self.group) + short_string(self.member)
            case _:
                pass
        return [frame, *self.content]

    def _hello(self) -> bytes:
        fields = [short_string(self.endpoint), struct.pack(">I", len(self.groups))]
        fields += map(long_string, self.groups)
        fields += [bytes([self.status]), short_string(self.name)]
        fields.append(struct.pack(">I", len(self.headers)))
        for key, value in self.headers.items():
            fields += [short_string(key), long_string(value)]
        return b"".join(fields)

    @classmethod
    def read(cls, frames: Sequence[bytes]) -> "Message | None":
        """Returns the message, or None if it is not one of this protocol."""
        if not frames or len(frames[0]) > MAX_HELLO or frames[0][:2] != _SIGNATURE:
            return None
        reader = Reader(frames[0][2:])
        try:
            kind, version, sequence = Kind(reader.number(1)), reader.number(1), reader.number(2)
            if version != _VERSION:
                return None
            match kind:
                case Kind.HELLO:
                    return cls._read_hello(sequence, reader)
                case Kind.WHISPER:
                    return cls(kind, sequence, content=frames[1:])
                case Kind.SHOUT:
                    return cls(kind, sequence, group=reader.string(), content=frames[1:])
                case Kind.JOIN | Kind.LEAVE:
                    group, status = reader.string(), reader.number(1)
                    return cls(kind, sequence, group=group, status=status)
                case Kind.ELECT | Kind.LEADER:
                    return cls(kind, sequence, group=reader.string(), member=reader.string())
                case _:
                    return cls(kind, sequence)
        except ValueError:  # an unknown kind, or Malformed
            return None

    @classmethod
    def _read_hello(cls, sequence: int, reader: Reader) -> "Message":
        endpoint = reader.string()
        groups = [reader.long_string() for _ in range(reader.count(MAX_GROUPS))]
        status, name = reader.number(1), reader.string()
        headers = {}
        for _ in range(reader.count(MAX_HEADERS)):
            key = reader.string()
            headers[key] = reader.long_string()
        if any(len(group.encode("utf-8", "surrogateescape")) > 0xFF for group in groups):
            raise Malformed("no other message could name such a group")
        return cls(
            Kind.HELLO,
            sequence,
            endpoint=endpoint,
            groups=groups,
            status=status,
            name=name,
            headers=headers,
        )


def identity(node: uuid.UUID) -> bytes:
    """Returns the routing ID of a node. A UUID alone could begin with a zero, which ZeroMQ reserves."""
    return b"\x01" + node.bytes


def sender(routing_id: bytes) -> uuid.UUID | None:
    """Returns the node that has a routing ID, if it is the one of a node."""
    if len(routing_id) != 1 + _UUID_SIZE or routing_id[0] != 1:
        return None
    return uuid.UUID(bytes=routing_id[1:])


def write_beacon(node: uuid.UUID, port: int) -> bytes:
    """Returns a beacon. A port of 0 says that the node is leaving."""
    return _BEACON.pack(_BEACON_HEADER, node.bytes, port)


def read_beacon(data: bytes) -> tuple[uuid.UUID, int] | None:
    """Returns the node and its port, or None if it is no beacon of this version."""
    if len(data) != _BEACON.size:
        return None
    header, node, port = _BEACON.unpack(data)
    return (uuid.UUID(bytes=node), port) if header == _BEACON_HEADER else None
