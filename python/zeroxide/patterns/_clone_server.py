"""Clone: a server of a shared hashmap, alone or as one of a pair."""

import heapq
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._binary_star import pair_links
from ._binary_star_state import PairState
from ._chp import HUGZ, ICANHAZ, KTHXBAI, Entry, hugz, three_endpoints
from ._driver import AsyncRunner, Configure, Driver, Runner, clock, opener
from ._machine import Machine
from ._snapshots import Snapshots

__all__ = ["AsyncCloneServer", "CloneServer"]

# A passive server sends this to its peer. The answer is KVSYNC with UUIDs and properties, and KTHXBAI with the sequence
# number of the server. RFC 12 leaves the messages between servers open.
_MIRROR = b"ICANHAZ!"

# How many UUIDs of updates are remembered, to drop an update that arrives again.
_REMEMBERED = 10_000

# The memory for values by default.
_MAX_BYTES = 256 << 20

# An update that a living peer has not published for this many heartbeats will not be published.
_FORGOTTEN = 5


class CloneServerMachine(Machine):
    """The server.

    Args:
        pair: The state of the pair, or None for a server without a peer.
        heartbeat: How often HUGZ is sent while there are no updates, in ms.
        max_keys: How many keys there may be.
        now: The time.
        max_bytes: How many bytes keys, properties and values may have.
    """

    def __init__(
        self,
        pair: PairState | None,
        heartbeat: float,
        max_keys: int,
        now: float,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        super().__init__()
        self._pair = pair
        self._heartbeat = heartbeat
        self._forgotten = heartbeat * _FORGOTTEN
        self._max_keys = max_keys
        self._max_bytes = max_bytes
        self._is_active = pair is None
        self._sequence = 0
        self._map: dict[bytes, Entry] = {}
        self._bytes = 0
        self._snapshots = Snapshots()
        # When values with a time to live end: a heap of times, keys and sequence numbers.
        self._ends: list[tuple[float, bytes, int]] = []
        # The UUIDs of updates in the map, the newest last.
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        # Updates of clients that the active server has not published yet, by UUID.
        self._pending: OrderedDict[bytes, tuple[Entry, float]] = OrderedDict()
        self._pending_bytes = 0
        # The map of the active server as far as it has arrived, and its updates meanwhile.
        self._mirror: dict[bytes, Entry] | None = None
        self._held: list[Entry] = []
        self._asks_at: float | None = None
        self._hugz_at = now + heartbeat

    @property
    def has_map(self) -> bool:
        """Whether the server is active, or has the map of the active one."""
        return self._is_active or (self._asks_at is None and self._mirror is not None)

    # ---- messages

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match link:
            case "peer":
                assert self._pair is not None
                self._pair.handle_peer(parts[0], now)
            case "snapshots":
                self._on_snapshot_request(parts, now)
            case "collector":
                if (entry := Entry.read(parts)) is not None:
                    self._on_update(entry, now)
                else:
                    self.drop()
            case "published":
                if not self._is_active and (entry := Entry.read(parts)) is not None:
                    self._on_published(entry, now)
            case "mirror":
                if not self._is_active and (entry := Entry.read(parts)) is not None:
                    self._on_mirrored(entry, now)
        self._follow_pair(now)

    def handle_timeout(self, now: float) -> None:
        self._follow_pair(now)
        if not self._is_active:
            self._hugz_at = now + self._heartbeat
            if self._asks_at is not None and now >= self._asks_at:
                self._ask(now)
            return
        while self._ends and self._ends[0][0] <= now:
            _, key, sequence = heapq.heappop(self._ends)
            entry = self._map.get(key)
            if entry is not None and entry.sequence == sequence:
                self._publish(replace(entry, uuid=b"", properties=b"", value=b""), now)
        if now >= self._hugz_at:
            self._hugz_at = now + self._heartbeat
            self._send("publisher", *hugz())
        self._send_slice()

    def poll_timeout(self) -> float | None:
        if self._snapshots.is_busy:
            return 0.0
        due = [self._hugz_at]
        if self._pair is not None:
            due.append(self._pair.speaks_at)
        if self._is_active and self._ends:
            due.append(self._ends[0][0])
        if not self._is_active and self._asks_at is not None:
            due.append(self._asks_at)
        return min(due)

    # ---- clients

    def _on_snapshot_request(self, parts: list[bytes], now: float) -> None:
        match parts:
            case [client, word, subtree] if word == ICANHAZ:
                if self._pair is None or self._pair.handle_client(now):
                    self._follow_pair(now)
                    self._ask_for_snapshot(client, subtree)
            case [peer, word] if word == _MIRROR and self._is_active:
                self._ask_for_snapshot(peer, None)
            case _:
                self.drop()

    def _ask_for_snapshot(self, client: bytes, subtree: bytes | None) -> None:
        was_busy = self._snapshots.is_busy
        if not self._snapshots.ask(client, subtree):
            self.drop()
        elif not was_busy:
            self._send_slice()

    def _send_slice(self) -> None:
        for parts in self._snapshots.send(self._map.values(), self._sequence):
            self._send("snapshots", *parts)

    def _on_update(self, entry: Entry, now: float) -> None:
        if entry.key in (HUGZ, KTHXBAI) or (entry.uuid and entry.uuid in self._seen):
            return
        if self._is_active:
            self._apply(entry, now)
        elif entry.uuid:
            if (known := self._pending.get(entry.uuid)) is not None:
                self._pending_bytes -= known[0].size
            self._pending[entry.uuid] = entry, now
            self._pending_bytes += entry.size
            while len(self._pending) > _REMEMBERED or self._pending_bytes > self._max_bytes:
                self._forget_pending(next(iter(self._pending)))
                self.drop()

    def _forget_pending(self, uuid: bytes) -> None:
        if (known := self._pending.pop(uuid, None)) is not None:
            self._pending_bytes -= known[0].size

    def _apply(self, entry: Entry, now: float) -> None:
        if self._has_room(entry):
            self._publish(entry, now)
        else:
            self.drop()

    def _has_room(self, entry: Entry) -> bool:
        if not entry.value:
            return True
        known = self._map.get(entry.key)
        if known is None:
            is_fine, before = len(self._map) < self._max_keys, 0
        else:
            is_fine, before = True, known.size
        return is_fine and self._bytes - before + entry.size <= self._max_bytes

    def _publish(self, entry: Entry, now: float) -> None:
        self._sequence += 1
        entry = replace(entry, sequence=self._sequence)
        self._store(entry, now)
        self._send("publisher", *entry.frames())
        self._hugz_at = now + self._heartbeat

    def _store(self, entry: Entry, now: float) -> None:
        if entry.uuid:
            self._seen[entry.uuid] = None
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        if (known := self._map.get(entry.key)) is not None:
            self._bytes -= known.size
        if not entry.value:
            self._map.pop(entry.key, None)
            return
        self._map[entry.key] = entry
        self._bytes += entry.size
        ttl = entry.ttl
        if ttl is not None:
            heapq.heappush(self._ends, (now + ttl * 1000, entry.key, entry.sequence))
            if len(self._ends) > 2 * len(self._map) + 100:
                # Values that were replaced before their end.
                self._ends = [
                    (time, key, sequence)
                    for time, key, sequence in self._ends
                    if (kept := self._map.get(key)) and kept.sequence == sequence
                ]
                heapq.heapify(self._ends)

    # ---- the pair

    def _follow_pair(self, now: float) -> None:
        if self._pair is None:
            return
        message = self._pair.speak(now)
        if message is not None:
            self._send("state", message)
        if self._pair.is_active and not self._is_active:
            self._become_active(now)
        elif not self._pair.is_active and self._is_active:
            self._is_active = False
            self._snapshots.clear()
            self._pending.clear()
            self._pending_bytes = 0
        if self._asks_at is None and not self._is_active and self._mirror is None:
            self._ask(now)

    def _become_active(self, now: float) -> None:
        """Continues with the map of the peer, and with the updates that the peer has not published."""
        self._is_active = True
        self._asks_at = self._mirror = None
        self._held.clear()
        pending, self._pending = self._pending, OrderedDict()
        self._pending_bytes = 0
        for entry, _ in pending.values():
            if entry.uuid not in self._seen:
                self._apply(entry, now)

    def _ask(self, now: float) -> None:
        """Asks the peer for its map, again and again until it answers as the active server."""
        self._mirror = None
        self._held.clear()
        self._asks_at = now + self._heartbeat
        self._reopen("mirror")
        self._send("mirror", _MIRROR)

    def _on_mirrored(self, entry: Entry, now: float) -> None:
        if self._asks_at is None:
            return
        self._asks_at = now + self._heartbeat
        if self._mirror is None:
            self._mirror = {}
        if entry.key != KTHXBAI:
            self._mirror[entry.key] = entry
            return
        self._asks_at = None
        self._sequence = entry.sequence
        self._ends.clear()
        entries, self._map = self._mirror, {}
        self._bytes = 0
        for known in entries.values():
            self._store(known, now)
        held, self._held = self._held, []
        for update in held:
            self._on_published(update, now)

    def _on_published(self, entry: Entry, now: float) -> None:
        """Takes an update of the active server, or a sign that it lives."""
        while self._pending and next(iter(self._pending.values()))[1] < now - self._forgotten:
            # The active server had the time to publish it: it was before the map of the peer arrived, or was refused.
            self._forget_pending(next(iter(self._pending)))
        if entry.key == HUGZ:
            return
        if self._asks_at is not None:
            self._held.append(entry)
            return
        if entry.sequence != self._sequence + 1:
            if entry.sequence > self._sequence:
                self._ask(now)  # updates are missing
            return
        self._forget_pending(entry.uuid)
        self._sequence = entry.sequence
        self._store(entry, now)

    def wants(self, link: str) -> bool:
        if link == "published":
            # Updates of the peer wait in the socket while there are many that cannot be used yet.
            return len(self._held) < _REMEMBERED
        return link not in ("publisher", "state")  # these only send


class _CloneServer:
    def __init__(
        self,
        endpoint: str,
        *,
        peer: str | None = None,
        is_primary: bool = True,
        local: str | None = None,
        remote: str | None = None,
        heartbeat: float = 1000,
        max_keys: int = 100_000,
        max_bytes: int = _MAX_BYTES,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        heartbeat = _checks.number("heartbeat", heartbeat, 1)
        max_keys = _checks.whole("max_keys", max_keys, 1)
        max_bytes = _checks.whole("max_bytes", max_bytes, 1)
        if (peer is None) != (local is None) or (peer is None) != (remote is None):
            raise ValueError("a server of a pair needs peer, local and remote")
        snapshots, publisher, collector = three_endpoints(_checks.address(endpoint))
        room = max_keys + 1000  # a snapshot fits into a client's queue
        links = {}
        self._pair: PairState | None = None
        if peer is not None and local is not None and remote is not None:
            self._pair = PairState(_checks.flag("is_primary", is_primary), heartbeat, clock())
            their_snapshots, their_updates, _ = three_endpoints(_checks.address(peer))
            links = pair_links(context, configure, local, remote)
            links["published"] = opener(
                context,
                SocketType.SUB,
                connect=their_updates,
                configure=configure,
                subscribe=b"",
                rcvhwm=room,
            )
            links["mirror"] = opener(
                context,
                SocketType.DEALER,
                connect=their_snapshots,
                configure=configure,
                rcvhwm=room,
            )
        links["publisher"] = opener(
            context, SocketType.PUB, bind=publisher, configure=configure, sndhwm=room
        )
        links["collector"] = opener(
            context, SocketType.SUB, bind=collector, configure=configure, subscribe=b""
        )
        links["snapshots"] = opener(
            context, SocketType.ROUTER, bind=snapshots, configure=configure, sndhwm=room
        )
        self._machine = CloneServerMachine(self._pair, heartbeat, max_keys, clock(), max_bytes)
        self._driver = Driver(self._machine, links)

    @property
    def is_active(self) -> bool:
        """Whether this server serves the clients; always, without a peer."""
        return self._pair is None or self._pair.is_active

    @property
    def has_map(self) -> bool:
        """Whether this server is active, or follows the active one and could take over without loss."""
        return self._machine.has_map


class CloneServer(_CloneServer, Runner):
    """A server of a hashmap that all `CloneClient` objects share, alone or as one of a pair.

    It gives new clients the map, takes their updates, and publishes each update with a number. The map is
    in memory. In a pair, the passive server follows the active one and takes over when it dies, as a
    `BinaryStarServer` does; it has the updates that the active one did not publish any more.

    Args:
        endpoint: Where to bind: ``"tcp://*:5556"``. The server also uses the two ports after it, or,
            over other transports, the names with ``+1`` and ``+2``.
        peer: The endpoint of the other server of a pair, as this machine reaches it.
        is_primary: Whether this is the primary. One server of a pair is.
        local: Where to bind for the peer.
        remote: Where the peer binds: its `local`.
        heartbeat: How often the server shows that it lives, in ms.
        max_keys: How many keys there may be. Further ones are dropped.
        max_bytes: How many bytes the keys, values and properties may have. An update that exceeds
            this is dropped.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each socket before it binds or
            connects.

    Raises:
        ValueError: Not all options of a pair are given, or the endpoint has no port.

    Example:
        ```python
        with CloneServer("tcp://*:5556") as server:
            server.run()
        ```

    Source:
        RFC 12, CHP; the guide, chapter 5: Reliable Pub-Sub (Clone Pattern), model 6
    """


class AsyncCloneServer(_CloneServer, AsyncRunner):
    """A `CloneServer` for asyncio.

    The options are those of `CloneServer`.

    Source:
        RFC 12, CHP; the guide, chapter 5: Reliable Pub-Sub (Clone Pattern), model 6
    """
