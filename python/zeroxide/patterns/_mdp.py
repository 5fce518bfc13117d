"""The frames of the Majordomo Protocol, versions 0.1 (RFC 7) and 0.2 (RFC 18).

Both versions have the same commands in different frames. A `Protocol` writes and reads those of
one version; the address of a peer, which a ROUTER puts in front, is not among them.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = [
    "MDP_0_1",
    "MDP_0_2",
    "PROTOCOLS",
    "Disconnect",
    "Heartbeat",
    "Protocol",
    "Ready",
    "Reply",
    "Request",
    "Version",
]

Version: TypeAlias = Literal["0.1", "0.2"]


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker offers a service."""

    service: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client to a service, or that of a client to a worker."""

    address: bytes
    """The name of the service, or the address of the client."""
    body: list[bytes]


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply to a client, from a service or from a worker."""

    address: bytes
    """The name of the service, or the address of the client."""
    body: list[bytes]
    is_final: bool = True
    """Whether it is the last one to its request; always, in version 0.1."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Keeps a connection alive."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Ends a conversation."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """One version of MDP."""

    version: Version
    client_header: bytes
    worker_header: bytes
    start: tuple[bytes, ...]
    """The frames before the header: version 0.1 has the delimiter of a REQ there."""
    streams: bool
    """Whether a request may have partial replies. The commands of clients then have numbers, too."""
    heartbeat: bytes
    disconnect: bytes

    # ---- between client and broker

    def write_request(self, service: bytes, body: list[bytes]) -> list[bytes]:
        word = [b"\x01"] if self.streams else []
        return [*self.start, self.client_header, *word, service, *body]

    def read_request(self, frames: list[bytes]) -> Request | None:
        """Returns the request in frames of this version, those in front of the header removed."""
        match frames:
            case [b"\x01", service, _, *_] if self.streams:
                return Request(service, frames[2:])
            case [service, _, *_] if not self.streams:
                return Request(service, frames[1:])
        return None

    def write_reply(self, service: bytes, body: list[bytes], *, is_final: bool) -> list[bytes]:
        word = [b"\x03" if is_final else b"\x02"] if self.streams else []
        return [*self.start, self.client_header, *word, service, *body]

    def read_reply(self, parts: list[bytes]) -> Reply | None:
        frames = self._after(self.client_header, parts)
        match frames:
            case [b"\x02" | b"\x03" as word, service, _, *_] if self.streams:
                return Reply(service, frames[2:], word == b"\x03")
            case [service, _, *_] if not self.streams:
                return Reply(service, frames[1:])
        return None

    # ---- from worker to broker

    def write_ready(self, service: bytes) -> list[bytes]:
        return [*self.start, self.worker_header, b"\x01", service]

    def write_worker_reply(
        self, client: bytes, body: list[bytes], *, is_final: bool = True
    ) -> list[bytes]:
        # REPLY and PARTIAL have one number, in different versions.
        word = b"\x04" if is_final and self.streams else b"\x03"
        return [*self.start, self.worker_header, word, client, b"", *body]

    def read_from_worker(
        self, frames: list[bytes]
    ) -> Ready | Reply | Heartbeat | Disconnect | None:
        """Returns the command in frames of this version, those up to the header removed."""
        match frames:
            case [b"\x01", service]:
                return Ready(service)
            case [b"\x03", client, b"", _, *_]:
                return Reply(client, frames[3:], not self.streams)
            case [b"\x04", client, b"", _, *_] if self.streams:
                return Reply(client, frames[3:])
            case [word] if word == self.heartbeat:
                return Heartbeat()
            case [word] if word == self.disconnect:
                return Disconnect()
        return None

    # ---- from broker to worker

    def write_worker_request(self, client: bytes, body: list[bytes]) -> list[bytes]:
        return [*self.start, self.worker_header, b"\x02", client, b"", *body]

    def read_from_broker(self, parts: list[bytes]) -> Request | Heartbeat | Disconnect | None:
        frames = self._after(self.worker_header, parts)
        match frames:
            case [b"\x02", client, b"", _, *_]:
                return Request(client, frames[3:])
            case [word] if word == self.heartbeat:
                return Heartbeat()
            case [word] if word == self.disconnect:
                return Disconnect()
        return None

    # ---- in both directions

    def write_heartbeat(self) -> list[bytes]:
        return [*self.start, self.worker_header, self.heartbeat]

    def write_disconnect(self) -> list[bytes]:
        return [*self.start, self.worker_header, self.disconnect]

    def _after(self, header: bytes, parts: list[bytes]) -> list[bytes]:
        front = [*self.start, header]
        return parts[len(front) :] if parts[: len(front)] == front else []


MDP_0_1: Final = Protocol(
    version="0.1",
    client_header=b"MDPC01",
    worker_header=b"MDPW01",
    start=(b"",),
    streams=False,
    heartbeat=b"\x04",
    disconnect=b"\x05",
)

MDP_0_2: Final = Protocol(
    version="0.2",
    client_header=b"MDPC02",
    worker_header=b"MDPW02",
    start=(),
    streams=True,
    heartbeat=b"\x05",
    disconnect=b"\x06",
)

PROTOCOLS: Final = {protocol.version: protocol for protocol in (MDP_0_1, MDP_0_2)}
