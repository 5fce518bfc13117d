"""What the sockets of a process have done so far."""

import json
from typing import Any, TypedDict, cast

from .. import _checks, _native

__all__ = [
    "ContextSnapshot",
    "PeerSnapshot",
    "Snapshot",
    "SocketSnapshot",
    "parse",
    "snapshot",
]

# The version of the form that `parse` reads.
VERSION = 1


class PeerSnapshot(TypedDict):
    """A peer of a socket.

    Source:
        zeroxide only
    """

    id: int
    """A number that no other peer of the socket has had."""
    endpoint: str
    """The endpoint that was bound or connected to."""
    address: str
    """The peer's address."""
    routing_id: str
    """The peer's routing id, in hexadecimal digits after ``0x`` if it is no printable text."""
    connected: bool
    """Whether the connection is open."""
    waiting: bool
    """Whether another peer has the same routing id. Nothing is read until that id is free."""
    sent: int
    """Messages that were sent."""
    sent_bytes: int
    """Bytes of the messages that were sent."""
    received: int
    """Messages that were received."""
    received_bytes: int
    """Bytes of the messages that were received."""
    queued_out: int
    """Messages that wait to be sent."""
    queued_in: int
    """Messages that wait to be received by the program."""
    spilled: int
    """Messages that wait in ``SPILL_DIR`` for the peer."""
    spilled_bytes: int
    """Bytes of these messages on disk."""
    reconnects: int
    """Connections that replaced a lost one."""
    full_out: int
    """How often the queue to the peer reached its high-water mark."""
    full_in: int
    """How often the queue from the peer reached its high-water mark."""
    dropped: dict[str, int]
    """Messages that were not delivered, by reason, without reasons that did not occur."""


class SocketSnapshot(TypedDict):
    """A socket.

    Source:
        zeroxide only
    """

    id: int
    """A number that no other socket of the context has had."""
    type: str
    """The socket's type, such as ``PUSH``."""
    routing_id: str
    """The socket's own routing id."""
    bound: list[str]
    """The endpoints that it is bound to."""
    connected: list[str]
    """The endpoints that it is connected to, or tries to."""
    sndhwm: int
    """The high-water mark of the queue to each peer, in messages; 0 for none."""
    rcvhwm: int
    """The high-water mark of the queue from each peer, in messages; 0 for none."""
    sent: int
    """Messages that were sent."""
    sent_bytes: int
    """Bytes of the messages that were sent."""
    received: int
    """Messages that were received."""
    received_bytes: int
    """Bytes of the messages that were received."""
    queued_out: int
    """Messages that wait to be sent."""
    queued_in: int
    """Messages that wait to be received by the program."""
    lingering: int
    """Messages that `disconnect`, `unbind` or a STREAM left to deliver. They wait for ``LINGER``, and ``queued_out`` does not count them."""
    spilled: int
    """Messages that wait in ``SPILL_DIR``."""
    spilled_bytes: int
    """Bytes of these messages on disk."""
    connections: int
    """Connections that were made, with peers that have left, too."""
    reconnects: int
    """How many of them replaced a lost connection of an endpoint that the socket connected to."""
    full_out: int
    """How often a queue to a peer reached its high-water mark."""
    full_in: int
    """How often a queue from a peer reached its high-water mark."""
    no_subscriber: int
    """Published messages that no peer subscribes to."""
    missed_events: int
    """Events that monitors did not get."""
    dropped: dict[str, int]
    """Messages that were not delivered, by reason, without reasons that did not occur."""
    peers_connected: int
    """How many peers are connected."""
    peers_unlisted: int
    """How many peers are not listed."""
    peers: list[PeerSnapshot]
    """The peers with the longest queues."""


class ContextSnapshot(TypedDict):
    """A context.

    Source:
        zeroxide only
    """

    id: int
    """A number that no other context of the process has had."""
    io_threads: int
    """The number of its I/O threads."""
    memory: int
    """How many bytes its peers make it hold, as `MEMORY_BUDGET` counts them."""
    memory_budget: int
    """The limit of that; 0 for none."""
    sockets: list[SocketSnapshot]
    """Its sockets."""


class Snapshot(TypedDict):
    """A process, as `snapshot` returns it and an observer answers.

    Source:
        zeroxide only
    """

    version: int
    """The version of this form: 1."""
    zeroxide: str
    """The version of zeroxide in the process."""
    pid: int
    """The number of the process."""
    command: str
    """The command line of the process, cut off after 200 characters."""
    time: float
    """When the snapshot was taken, in seconds since 1970."""
    contexts: list[ContextSnapshot]
    """The contexts."""


def snapshot(peers: int = 100) -> Snapshot:
    """Returns what the sockets of this process have done so far.

    Args:
        peers: The number of peers to list for each socket. Those with the longest queues come
            first if there are more.

    Returns:
        A dict with every context and every open socket of the process.

    Example:
        >>> push.send(b"hello")
        >>> contexts = zmq.metrics.snapshot()["contexts"]
        >>> {socket["type"]: socket["sent"] for socket in contexts[-1]["sockets"]}["PUSH"]
        1

    Source:
        zeroxide only
    """
    return parse(_native.snapshot(_checks.whole("peers", peers)))


def parse(text: str | bytes) -> Snapshot:
    """Returns the snapshot that an observer has answered.

    Args:
        text: The answer.

    Returns:
        The snapshot, without sockets that were closed while it was taken.

    Raises:
        ValueError: The answer reports an error, or has another version.

    Example:
        >>> parse = zmq.metrics.parse
        >>> parse('{"version": 1, "pid": 1, "contexts": []}')["pid"]
        1

    Source:
        zeroxide only
    """
    found: Any = json.loads(text)
    if not isinstance(found, dict) or found.get("version") != VERSION:
        version = found.get("version") if isinstance(found, dict) else None
        raise ValueError(f"expected a snapshot of version {VERSION}, got version {version}")
    if "error" in found:
        raise ValueError(f"the observed program refused the request: {found['error']}")
    for context in found["contexts"]:
        open_sockets = (socket for socket in context["sockets"] if "closed" not in socket)
        context["sockets"] = list(open_sockets)
    return cast(Snapshot, found)
