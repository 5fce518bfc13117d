"""Clone: a client with its own copy of a shared hashmap, or of a subtree."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Self

from .. import _checks
from .._closing import Closing
from ..constants import SocketType
from ..context import Context
from ._chp import HUGZ, ICANHAZ, KTHXBAI, Entry, check_subtree, three_endpoints
from ._driver import Configure, Driver, addresses, clock, opener
from ._machine import Machine

__all__ = ["AsyncCloneClient", "CloneClient"]

# Updates that no server has published yet, at most.
_MAX_UNCONFIRMED = 10_000

# How often an update is sent again to a server that lives. After that, it was overwritten, or the server refuses it.
_RESENDS = 5

# Updates that wait in the socket while the map is fetched, at most.
_ROOM = 101_000


@dataclass(slots=True)
class _Own:
    """An own update, which is sent again while no server is known to have published it."""

    entry: Entry
    due: float
    resends: int = 0


class CloneClientMachine(Machine):
    """The client. It fetches the map, then follows the updates, and goes to the next server if one is silent.

    Args:
        servers: How many servers there are.
        subtree: The beginning of the keys it wants.
        ttl: How long a server may be silent, in ms.
        resend: How long to wait for an own update to be published before it is sent again, in ms.
        now: The time.
    """

    def __init__(self, servers: int, subtree: bytes, ttl: float, resend: float, now: float) -> None:
        super().__init__()
        self.server = 0
        self.values: dict[str, bytes] = {}
        self.is_synced = False
        self.changes = 0
        self._servers = servers
        self._subtree = subtree
        self._ttl = ttl
        self._resend = resend
        self._sequence = 0
        # Whether the next update has the next number: not before the first one, and not in a subtree.
        self._is_exact = False
        # The number of the last update from this connection; 0 before the first one.
        self._heard = 0
        # Whether the map that the client has was sent when its subscription had arrived: no update is between them.
        self._is_gapless = False
        self._snapshot: dict[str, bytes] = {}
        # Whether the map, or the map once more, is on its way.
        self._is_fetching = False
        self._asks_at = 0.0
        self._expiry = 0.0
        # The newest own update of a key that is not known to be published.
        self._unconfirmed: dict[bytes, _Own] = {}
        self._start(now)

    def set(self, key: bytes, value: bytes, ttl: float | None, now: float) -> None:
        """Sends an update."""
        # Without an exponent, which not every server reads.
        seconds = "" if ttl is None else f"{ttl:.3f}".rstrip("0").rstrip(".")
        properties = b"" if ttl is None else b"ttl=%s\n" % seconds.encode()
        entry = Entry(key, 0, uuid.uuid4().bytes, properties, value)
        if key.startswith(self._subtree):  # of others, no server reports the update to this client
            if key not in self._unconfirmed and len(self._unconfirmed) >= _MAX_UNCONFIRMED:
                raise BufferError(f"{_MAX_UNCONFIRMED} updates wait for a server")
            self._unconfirmed[key] = _Own(entry, now + self._resend)
        self._send("publisher", *entry.frames())

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        entry = Entry.read(parts)
        if entry is None:
            return
        if link == "snapshots":
            if self._is_fetching:
                self._expiry = now + self._ttl
                self._asks_at = now + self._ttl / 2
                self._on_snapshot(entry)
        else:
            self._expiry = now + self._ttl
            if not self._is_gapless:
                self._is_gapless = True
                if entry.key == HUGZ or entry.sequence > self._sequence + 1:
                    # Updates may have been published after the map was sent and before the subscription arrived.
                    self._heard = 0 if entry.key == HUGZ else entry.sequence
                    self._ask_again(now)
                    return
            if entry.key != HUGZ:
                self._on_update(entry, now)

    def handle_timeout(self, now: float) -> None:
        if now >= self._expiry:
            self.server = (self.server + 1) % self._servers
            self._restart(now)
        if self._is_fetching:
            if now >= self._asks_at:
                self._ask_again(now)
            return
        for key, own in list(self._unconfirmed.items()):
            if now < own.due:
                continue
            if own.resends == _RESENDS:
                del self._unconfirmed[key]
                continue
            own.resends += 1
            own.due = now + self._resend
            self._send("publisher", *own.entry.frames())

    def handle_interruption(self, now: float) -> None:
        self._restart(now)  # an update may be missing

    def poll_timeout(self) -> float | None:
        if self._is_fetching:
            return min(self._expiry, self._asks_at)
        return min([self._expiry, *(own.due for own in self._unconfirmed.values())])

    def wants(self, link: str) -> bool:
        return link == "snapshots" or (link == "updates" and not self._is_fetching)

    def _restart(self, now: float) -> None:
        self.is_synced = False
        for link in ("snapshots", "updates"):
            self._reopen(link)
        self._start(now)

    def _start(self, now: float) -> None:
        self._expiry = now + self._ttl
        self._heard = 0
        self._is_gapless = False
        self._ask(now)

    def _ask_again(self, now: float) -> None:
        self._reopen("snapshots")  # the rest of an earlier answer is not taken for this one
        self._ask(now)

    def _ask(self, now: float) -> None:
        self._snapshot = {}
        self._is_fetching = True
        self._asks_at = now + self._ttl / 2
        self._send("snapshots", ICANHAZ, self._subtree)

    def _on_snapshot(self, entry: Entry) -> None:
        if entry.key != KTHXBAI:
            self._snapshot[_text(entry.key)] = entry.value
            return
        self.is_synced = True
        self._is_fetching = False
        self._is_exact = False
        self._sequence = entry.sequence
        for key, own in list(self._unconfirmed.items()):
            if self._snapshot.get(_text(key), b"") == own.entry.value:
                del self._unconfirmed[key]  # published before this client followed the server
        if self._snapshot != self.values:
            self.changes += 1
            self.values.clear()
            self.values.update(self._snapshot)
        self._snapshot = {}

    def _on_update(self, entry: Entry, now: float) -> None:
        if entry.sequence <= self._heard:
            self._restart(
                now
            )  # the numbers begin anew: the server has restarted, perhaps with another map
            return
        self._heard = entry.sequence
        if entry.sequence <= self._sequence or not entry.key.startswith(self._subtree):
            return
        if self._is_exact and entry.sequence != self._sequence + 1:
            self._restart(now)  # updates are missing
            return
        self._is_exact = not self._subtree
        self._sequence = entry.sequence
        own = self._unconfirmed.get(entry.key)
        if own is not None and own.entry.uuid == entry.uuid:
            del self._unconfirmed[entry.key]
        key = _text(entry.key)
        if entry.value:
            self.values[key] = entry.value
        else:
            self.values.pop(key, None)
        self.changes += 1


class _CloneClient:
    def __init__(
        self,
        servers: Sequence[str],
        *,
        subtree: str = "",
        ttl: float = 5000,
        resend: float = 1000,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        endpoints = [three_endpoints(server) for server in addresses("servers", servers)]
        prefix = check_subtree(subtree)
        self._machine = machine = CloneClientMachine(
            len(endpoints),
            prefix,
            _checks.number("ttl", ttl, 1),
            _checks.number("resend", resend, 1),
            clock(),
        )

        def current(place: int) -> Callable[[], list[str]]:
            return lambda: [endpoints[machine.server][place]]

        def subscribe(socket: Any) -> None:
            if configure is not None:
                configure(socket)
            for topic in (prefix, HUGZ) if prefix else (b"",):
                socket.subscribe(topic)

        links = {
            "snapshots": opener(
                context,
                SocketType.DEALER,
                connect=current(0),
                configure=configure,
                rcvhwm=_ROOM,
            ),
            "updates": opener(
                context, SocketType.SUB, connect=current(1), configure=subscribe, rcvhwm=_ROOM
            ),
            # All servers get the updates, so that the passive one of a pair has those that the other did not publish.
            "publisher": opener(
                context,
                SocketType.PUB,
                connect=lambda: [collector for _, _, collector in endpoints],
                configure=configure,
                # A server that comes back gets no old updates, which were published or are sent again.
                immediate=True,
            ),
        }
        self._driver = Driver(machine, links)
        self._values = MappingProxyType(machine.values)
        self._seen = 0

    @property
    def values(self) -> Mapping[str, bytes]:
        """The map as this client knows it. It changes during `wait` only."""
        return self._values

    @property
    def is_synced(self) -> bool:
        """Whether the client has the map of a server and follows its updates."""
        return self._machine.is_synced

    def set(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        """Sends a new value to the servers. It is in `values` when a server has published it.

        The update is sent again until it is published, up to five times to a server that lives, if the key
        is in the client's subtree.

        Args:
            key: The key, such as ``"/config/level"``.
            value: The value. An empty one deletes the key.
            ttl: How long the value lives, in seconds; None for no end.

        Raises:
            BufferError: 10,000 keys have updates that no server has published.
            TypeError: The value is not bytes.
            ValueError: The key is one that the protocol uses itself.
        """
        name = _checks.name("key", key, "a key").encode("utf-8", "surrogateescape")
        if name in (HUGZ, KTHXBAI):
            raise ValueError(f"the protocol uses {key!r} itself")
        if not isinstance(value, bytes):
            raise TypeError(f"value takes bytes, not {_checks.shown(value)}")
        if ttl is not None:
            ttl = _checks.number("ttl", ttl, 0.001)
        self._machine.set(name, value, ttl, clock())
        self._driver.flush()

    def delete(self, key: str) -> None:
        """Deletes a key.

        Args:
            key: The key.
        """
        self.set(key, b"")

    def _has_changed(self) -> bool:
        changed = self._machine.changes != self._seen
        self._seen = self._machine.changes
        return changed

    def close(self) -> None:
        """Closes the sockets."""
        self._driver.close()


class CloneClient(_CloneClient, Closing):
    """A client with a copy of the hashmap of a `CloneServer` or of a pair of them.

    The copy follows the server while the program calls `wait`, which it has to do again and again.
    If the server is silent, the client goes to the next one and fetches the map there.

    Args:
        servers: The endpoints of the servers. Each also uses the two ports after it.
        subtree: The part of the map to copy: ``""``, or a path such as ``"/config/"``.
        ttl: A server that is silent for this long is dead, in ms.
        resend: How long to wait for an own update to be published before it is sent again, in ms.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with CloneClient(["tcp://primary:5556", "tcp://backup:5556"]) as client:
            client.set("/level", b"high", ttl=60)
            while client.wait():
                print(dict(client.values))
        ```

    Source:
        RFC 12, CHP; the guide, chapter 5: Reliable Pub-Sub (Clone Pattern), model 6
    """

    def wait(self, timeout: float | None = None) -> bool:
        """Follows the server until the map changes.

        Args:
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            Whether the map has changed since the last call.
        """
        end = None if timeout is None else clock() + timeout
        self._driver.step(0)
        while not (changed := self._has_changed()):
            left = None if end is None else end - clock()
            if left is not None and left <= 0:
                break
            self._driver.step(left)
        return changed


class AsyncCloneClient(_CloneClient):
    """A `CloneClient` for asyncio.

    The options are those of `CloneClient`.

    Source:
        RFC 12, CHP; the guide, chapter 5: Reliable Pub-Sub (Clone Pattern), model 6
    """

    async def wait(self, timeout: float | None = None) -> bool:
        """Follows the server until the map changes.

        Args:
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            Whether the map has changed since the last call.
        """
        end = None if timeout is None else clock() + timeout
        await self._driver.step_async(0)
        while not (changed := self._has_changed()):
            left = None if end is None else end - clock()
            if left is not None and left <= 0:
                break
            await self._driver.step_async(left)
        return changed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")
