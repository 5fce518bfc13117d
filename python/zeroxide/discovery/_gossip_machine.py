"""A node of the gossip network without I/O: it passes on every tuple of a key and a value that is new to it.

czmq's `zgossip` is the other implementation. Its server forgets a client that is silent for a
second, and then passes no tuples on, without a notice. It says INVALID if such a client publishes
a tuple. This node therefore publishes a tuple of its own again and again instead of sending
pings, and says HELLO if the answer is INVALID.

A node that has missed tuples, because it is new or its connection was full, catches up: the tuples
have serial numbers in the order of their changes, and the node gets those after the last one that
was sent to it. So a slow node costs a number, and not a copy of all tuples.
"""

from bisect import bisect_right
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

# Between two attempts to send to nodes whose connections are full, in ms.
_RETRY = 50

# A client that takes nothing for so long is forgotten, in ms.
_STALLED = 10_000

# Tuples for nodes that catch up, in each turn of the driver.
_CATCH_UP = 1000

# A key keeps its value for so long, in ms. Two nodes that disagree would otherwise pass two values on forever.
_SETTLED = 1000


@dataclass(frozen=True, slots=True)
class ToClient:
    """A message for a node that has connected to this one, whose routing ID it is."""

    client: bytes
    frame: bytes
    serial: int = 0
    """The serial number of the tuple, if it is one."""


@dataclass(frozen=True, slots=True)
class ToRemote:
    """A message for a node that this one has connected to, by its place in the list."""

    remote: int
    frame: bytes
    serial: int = 0
    """As above."""


@dataclass(slots=True)
class _Tuple:
    value: str
    since: float
    is_own: bool
    serial: int = 0


@dataclass(slots=True)
class _Stall:
    """A node whose connection is full: the last tuple that was sent to it, and since when."""

    cursor: int
    since: float


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
        # The serial numbers of tuples with their keys, in order. Some are outdated.
        self._log: list[tuple[int, str]] = []
        self._serial = 0
        # Nodes that catch up, and the last tuple that was sent to each.
        self._behind: OrderedDict[bytes | int, int] = OrderedDict()
        self._allowance = _CATCH_UP
        # Nodes whose connections were full, until they have caught up, and those of them that wait for the next attempt.
        self._full: dict[bytes | int, _Stall] = {}
        self._paused: set[bytes | int] = set()
        self._retry = 0.0
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
                self.handle_gone(client)
                if len(self._clients) >= MAX_CLIENTS:
                    self.handle_gone(next(iter(self._clients)))
                    self.dropped += 1
                self._clients[client] = None
                self._behind[client] = 0
            case GossipMessage(GossipKind.PING):
                self._to_client(client, GossipMessage(GossipKind.PONG))
            case GossipMessage(GossipKind.PUBLISH, key, value) if client in self._clients:
                self._learn(key, value, client, now)
            case _:
                self.handle_gone(client)
                self._to_client(client, GossipMessage(GossipKind.INVALID))
        if client in self._clients:
            self._clients.move_to_end(client)

    def handle_gone(self, client: bytes) -> None:
        """Forgets a client that has no connection any more."""
        self._clients.pop(client, None)
        self._behind.pop(client, None)
        self._full.pop(client, None)
        self._paused.discard(client)

    def handle_full(self, command: ToClient | ToRemote, now: float) -> None:
        """Takes back a message for which the connection had no room."""
        target = command.client if isinstance(command, ToClient) else command.remote
        if not command.serial or (isinstance(target, bytes) and target not in self._clients):
            return
        cursor = min(command.serial - 1, self._behind.pop(target, command.serial))
        stall = self._full.get(target)
        if stall is None or (target not in self._paused and cursor > stall.cursor):
            self._full[target] = _Stall(cursor, now)
        elif isinstance(target, bytes) and now >= stall.since + _STALLED:
            return self.handle_gone(target)
        else:
            stall.cursor = min(cursor, stall.cursor)
        self._paused.add(target)
        self._retry = now + _RETRY

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
        self._allowance = _CATCH_UP
        if now >= self._retry:
            self._behind.update((target, self._full[target].cursor) for target in self._paused)
            self._paused.clear()
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
        if self._commands:
            return self._commands.popleft()
        while self._behind and self._allowance:
            target, cursor = self._behind.popitem(last=False)
            key = self._next_after(cursor)
            if key is None:
                self._full.pop(target, None)
                continue
            self._allowance -= 1
            self._behind[target] = self._tuples[key].serial
            return self._publish_to(target, key)
        return None

    def poll_news(self) -> tuple[str, str] | None:
        """Returns the next tuple that is new, in order."""
        return self._news.popleft() if self._news else None

    def poll_timeout(self) -> float:
        """Returns when `handle_timeout` is due next."""
        if self._behind:
            return 0.0
        return min(self._due, self._retry) if self._paused else self._due

    def _introduce(self, remote: int) -> None:
        self._to_remote(remote, GossipMessage(GossipKind.HELLO))
        self._full.pop(remote, None)
        self._paused.discard(remote)
        self._behind[remote] = 0

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
            self.dropped += 1
        self._store(key, _Tuple(value, now, is_own=False))
        self._news.append((key, value))
        self._spread(key, source)

    def _store(self, key: str, new: _Tuple) -> None:
        old = self._tuples.get(key)
        self._size += len(new.value) + (len(key) if old is None else -len(old.value))
        self._serial += 1
        new.serial = self._serial
        self._tuples[key] = new
        self._log.append((new.serial, key))
        if len(self._log) > 2 * len(self._tuples) + 100:
            self._log = [entry for entry in self._log if self._is_current(*entry)]

    def _is_current(self, serial: int, key: str) -> bool:
        found = self._tuples.get(key)
        return found is not None and found.serial == serial

    def _next_after(self, cursor: int) -> str | None:
        """The key of the first tuple that changed after this one."""
        for place in range(bisect_right(self._log, cursor, key=_serial), len(self._log)):
            serial, key = self._log[place]
            if self._is_current(serial, key):
                return key
        return None

    def _spread(self, key: str, source: bytes | int | None) -> None:
        targets: list[bytes | int] = [*self._clients, *self._remotes]
        for target in targets:
            # Those that catch up get it with the others.
            if target != source and target not in self._behind and target not in self._paused:
                self._commands.append(self._publish_to(target, key))

    def _publish_to(self, target: bytes | int, key: str) -> ToClient | ToRemote:
        found = self._tuples[key]
        frame = GossipMessage(GossipKind.PUBLISH, key, found.value).write()
        if isinstance(target, bytes):
            return ToClient(target, frame, found.serial)
        return ToRemote(target, frame, found.serial)

    def _to_client(self, client: bytes, message: GossipMessage) -> None:
        self._commands.append(ToClient(client, message.write()))

    def _to_remote(self, remote: int, message: GossipMessage) -> None:
        self._commands.append(ToRemote(remote, message.write()))


def _serial(entry: tuple[int, str]) -> int:
    return entry[0]
