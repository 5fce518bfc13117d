"""What a shutdown could not deliver: the result of `Socket.close` and `Context.term` with a timeout."""

import builtins
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Undelivered", "UndeliveredPeer", "reported"]


@dataclass(frozen=True, slots=True)
class UndeliveredPeer:
    """The messages that one peer did not get.

    Source:
        zeroxide only
    """

    __module__ = "zeroxide"

    endpoint: str
    """What the socket was bound or connected to: ``tcp://127.0.0.1:5555``.

    Empty for all further peers if there are more than a thousand."""
    address: str
    """Where the peer is: ``10.0.0.7:49152``; empty if it was not connected."""
    routing_id: builtins.bytes
    """The peer's name for itself; empty if the peer has not sent one."""
    messages: int
    """The number of messages."""
    bytes: int
    """Their size. Messages that were already encoded count as they would have been transmitted."""

    def __str__(self) -> str:
        if not self.endpoint:
            return "other peers"
        return f"{self.address} at {self.endpoint}" if self.address else self.endpoint


@dataclass(frozen=True, slots=True)
class Undelivered:
    """The messages that were accepted and not delivered before the end.

    It is false if everything was delivered. ``str()`` makes a sentence of it for a log.

    Source:
        zeroxide only
    """

    __module__ = "zeroxide"

    peers: tuple[UndeliveredPeer, ...] = ()
    """The peers that did not get everything, sorted by endpoint."""

    @property
    def messages(self) -> int:
        """The number of messages, for all peers."""
        return sum(peer.messages for peer in self.peers)

    @property
    def bytes(self) -> int:
        """The size of these messages."""
        return sum(peer.bytes for peer in self.peers)

    def __bool__(self) -> bool:
        return bool(self.peers)

    def __str__(self) -> str:
        if not self.peers:
            return "everything was delivered"
        peers = ", ".join(f"{peer.messages} to {peer}" for peer in self.peers)
        noun, verb = ("message", "was") if self.messages == 1 else ("messages", "were")
        return f"{self.messages} {noun} ({self.bytes} bytes) {verb} not delivered: {peers}"

    def __repr__(self) -> str:
        return f"<Undelivered: {self}>"


def reported(peers: Iterable[tuple[str, str, bytes, int, int]]) -> Undelivered:
    """Makes a report of what the extension module returned."""
    return Undelivered(tuple(UndeliveredPeer(*fields) for fields in peers))
