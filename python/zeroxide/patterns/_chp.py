"""The frames of the Clustered Hashmap Protocol (RFC 12), and the three endpoints of a server."""

import re
from dataclasses import dataclass, replace

__all__ = [
    "HUGZ",
    "ICANHAZ",
    "KTHXBAI",
    "Entry",
    "check_subtree",
    "hugz",
    "kthxbai",
    "three_endpoints",
]

ICANHAZ = b"ICANHAZ?"
KTHXBAI = b"KTHXBAI"
HUGZ = b"HUGZ"

_SUBTREE = re.compile(r"(/([^/]+/)+)?")
_TCP = re.compile(r"(?P<front>tcp://.*:)(?P<port>\d+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value: the frames of KVSYNC, KVPUB, KVSET, and of the other commands with five frames."""

    key: bytes
    sequence: int
    uuid: bytes
    properties: bytes
    value: bytes

    def frames(self) -> list[bytes]:
        sequence = self.sequence.to_bytes(8, "big")
        return [self.key, sequence, self.uuid, self.properties, self.value]

    def synced(self) -> "Entry":
        """Returns the entry as KVSYNC has it."""
        return replace(self, uuid=b"", properties=b"")

    @classmethod
    def read(cls, frames: list[bytes]) -> "Entry | None":
        match frames:
            case [key, sequence, uuid, properties, value] if len(sequence) == 8 and len(uuid) in (
                0,
                16,
            ):
                return cls(key, int.from_bytes(sequence, "big"), uuid, properties, value)
        return None

    @property
    def size(self) -> int:
        """How much memory the entry takes, about."""
        return len(self.key) + len(self.properties) + len(self.value)

    @property
    def ttl(self) -> float | None:
        """The seconds that the value lives, or None if it has no end."""
        for line in self.properties.split(b"\n"):
            name, equals, text = line.partition(b"=")
            if name == b"ttl" and equals:
                try:
                    ttl = float(text)
                except ValueError:
                    return None
                return ttl if 0 < ttl < 1e9 else None
        return None


def hugz() -> list[bytes]:
    return Entry(HUGZ, 0, b"", b"", b"").frames()


def kthxbai(sequence: int, subtree: bytes) -> list[bytes]:
    return Entry(KTHXBAI, sequence, b"", b"", subtree).frames()


def check_subtree(subtree: str) -> bytes:
    """Returns a subtree as it is sent: empty, or a path that begins and ends with a slash."""
    if not isinstance(subtree, str) or _SUBTREE.fullmatch(subtree) is None:
        raise ValueError(f'subtree is "" or a path such as "/config/", not {subtree!r}')
    return subtree.encode()


def three_endpoints(endpoint: str) -> tuple[str, str, str]:
    """Returns where a server's snapshots, its updates and its collector are.

    They are at three consecutive ports, as the RFC says. Over other transports the names end in
    ``+1`` and ``+2``.
    """
    found = _TCP.fullmatch(endpoint)
    if found is None:
        if endpoint.startswith("tcp://"):
            raise ValueError(f"{endpoint!r} needs a port: the server uses it and the two after it")
        return endpoint, f"{endpoint}+1", f"{endpoint}+2"
    front, port = found["front"], int(found["port"])
    return endpoint, f"{front}{port + 1}", f"{front}{port + 2}"
