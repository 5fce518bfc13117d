"""A node of the gossip network without I/O: it passes on every tuple of a key and a value that is new to it.

czmq's `zgossip` is the other implementation. Its server forgets a client that is silent for a
second, and then passes no tuples on, without a notice. It says INVALID if such a client publishes
a tuple. This node therefore publishes a tuple of its own again and again instead of sending
pings, and says HELLO if the answer is INVALID.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from ._zgossip import GossipKind, GossipMessage

__all__ = ["GossipMachine", "ToClient", "ToRemote"]

MAX_CLIENTS = 1024
MAX_TUPLES = 10_000
MAX_BYTES = 8 * 1024 * 1024

# Between two messages to each remote node, in ms: a third of the second after which czmq forgets a client.
_ALIVE = 333

# A key keeps its value for so long, in ms. Two nodes that disagree would otherwise pass two values on forever.
_SETTLED = 1000


@dataclass(frozen=True, slots=True)
class ToClient:
    """A message for a node that has connected to this one, whose routing ID it is."""

    client: bytes
    frame: bytes


@dataclass(frozen=True, slots=True)
class ToRemote:
    """A message for a node that this one has connected to, by its place in the list."""

    remote: int
    frame: bytes


@dataclass(slots=True)
class _Tuple:
    value: str
    since: float
    is_own: bool


class GossipMachine:
    """The node.

    Args:
        remotes: How many nodes it connects to.
        now: The time.
    """

    def __init__(self, remotes: int, now: float) -> None:
        self.dropped = 0
        self._remotes = range(remotes)
        self._tuples: dict[str, _Tuple] = {}
        self._size = 0
        # Clients that have said HELLO, the one that has been silent longest first.
        self._clients: OrderedDict[bytes, None] = OrderedDict()
        self._commands: deque[ToClient | ToRemote] = deque()
        self._news: deque[tuple[str, str]] = deque()
        self._due = now + _ALIVE
        for remote in self._remotes:
            self._introduce(remote)

    def publish(self, key: str, value: str, now: float) -> None:
        """Publishes a tuple, which no other node can change."""
        self._store(key, _Tuple(value, now, is_own=True))
        self._spread(key, source=None)

    def forget(self, key: str) -> None:
        """Forgets a tuple of another node. Other nodes may keep it."""
        found = self._tuples.get(key)
        if found is not None and not found.is_own:
            del self._tuples[key]
            self._size -= len(key) + len(found.value)

    def handle_client(self, client: bytes, frames: Sequence[bytes], now: float) -> None:
        """Takes a message of a node that has connected to this one."""
        message = GossipMessage.read(frames)
        match message:
            case None:
                self.dropped += 1
                return
            case GossipMessage(GossipKind.HELLO):
                self._clients.pop(client, None)
                if len(self._clients) >= MAX_CLIENTS:
                    self._clients.popitem(last=False)
                self._clients[client] = None
                for key, found in self._tuples.items():
                    self._to_client(client, GossipMessage(GossipKind.PUBLISH, key, found.value))
            case GossipMessage(GossipKind.PING):
                self._to_client(client, GossipMessage(GossipKind.PONG))
            case GossipMessage(GossipKind.PUBLISH, key, value) if client in self._clients:
                self._learn(key, value, client, now)
            case _:
                self._clients.pop(client, None)
                self._to_client(client, GossipMessage(GossipKind.INVALID))
        if client in self._clients:
            self._clients.move_to_end(client)

    def handle_gone(self, client: bytes) -> None:
        """Forgets a client that has no connection any more."""
        self._clients.pop(client, None)

    def handle_remote(self, remote: int, frames: Sequence[bytes], now: float) -> None:
        """Takes a message of a node that this one has connected to."""
        match GossipMessage.read(frames):
            case None:
                self.dropped += 1
            case GossipMessage(GossipKind.PUBLISH, key, value):
                self._learn(key, value, remote, now)
            case GossipMessage(GossipKind.INVALID):
                # It does not know this node, or does not any more.
                self._introduce(remote)
            case _:
                pass

    def handle_timeout(self, now: float) -> None:
        """Does what is due."""
        if now < self._due:
            return
        self._due = now + _ALIVE
        own = next((key for key, found in self._tuples.items() if found.is_own), None)
        for remote in self._remotes:
            if own is None:
                self._to_remote(remote, GossipMessage(GossipKind.PING))
            else:
                value = self._tuples[own].value
                self._to_remote(remote, GossipMessage(GossipKind.PUBLISH, own, value))

    def poll_command(self) -> ToClient | ToRemote | None:
        """Returns the next command, in order."""
        return self._commands.popleft() if self._commands else None

    def poll_news(self) -> tuple[str, str] | None:
        """Returns the next tuple that is new, in order."""
        return self._news.popleft() if self._news else None

    def poll_timeout(self) -> float:
        """Returns when `handle_timeout` is due next."""
        return self._due

    def _introduce(self, remote: int) -> None:
        self._to_remote(remote, GossipMessage(GossipKind.HELLO))
        for key, found in self._tuples.items():
            self._to_remote(remote, GossipMessage(GossipKind.PUBLISH, key, found.value))

    def _learn(self, key: str, value: str, source: bytes | int, now: float) -> None:
        known = self._tuples.get(key)
        if known is not None and (
            known.value == value or known.is_own or now < known.since + _SETTLED
        ):
            return
        while len(self._tuples) >= MAX_TUPLES or self._size + len(key) + len(value) > MAX_BYTES:
            oldest = next((name for name, found in self._tuples.items() if not found.is_own), None)
            if oldest is None:
                self.dropped += 1
                return
            self.forget(oldest)
        self._store(key, _Tuple(value, now, is_own=False))
        self._news.append((key, value))
        self._spread(key, source)

    def _store(self, key: str, new: _Tuple) -> None:
        old = self._tuples.get(key)
        self._size += len(new.value) + (len(key) if old is None else -len(old.value))
        self._tuples[key] = new

    def _spread(self, key: str, source: bytes | int | None) -> None:
        message = GossipMessage(GossipKind.PUBLISH, key, self._tuples[key].value)
        for client in self._clients:
            if client != source:
                self._to_client(client, message)
        for remote in self._remotes:
            if remote != source:
                self._to_remote(remote, message)

    def _to_client(self, client: bytes, message: GossipMessage) -> None:
        self._commands.append(ToClient(client, message.write()))

    def _to_remote(self, remote: int, message: GossipMessage) -> None:
        self._commands.append(ToRemote(remote, message.write()))
