"""A node of ZRE without I/O: beacons, messages and the time go in, commands and events come out.

Times are in milliseconds, as in `zeroxide.patterns`.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias
from uuid import UUID

from ._election import Election
from ._events import (
    Enter,
    Evasive,
    Event,
    Exit,
    Join,
    Leader,
    Leave,
    Peer,
    Shout,
    Silent,
    Whisper,
)
from ._zre import MAX_GROUPS, Kind, Message, read_beacon, sender, write_beacon

__all__ = [
    "Announce",
    "Command",
    "Connect",
    "Disconnect",
    "Forget",
    "NodeMachine",
    "Send",
    "Timing",
]

# How often a lost peer that was announced by gossip is tried again, for `expired` ms each time.
_RETRIES = 10

# Endpoints that are remembered from gossip, at most.
_MAX_ANNOUNCED = 10_000

# Nodes from beacons that have not said hello, at most, and as many from gossip. Both are easy to forge, and each node costs
# a socket.
_MAX_STRANGERS = 100

_SEQUENCE = 1 << 16
_STATUS = 1 << 8


@dataclass(frozen=True, slots=True)
class Connect:
    """A peer to open a mailbox for."""

    peer: UUID
    endpoint: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A peer whose mailbox is closed, with everything in it unless `drains`."""

    peer: UUID
    drains: bool


@dataclass(frozen=True, slots=True)
class Send:
    """A message for a peer's mailbox."""

    peer: UUID
    parts: list[bytes]


@dataclass(frozen=True, slots=True)
class Announce:
    """A beacon to broadcast."""

    beacon: bytes


@dataclass(frozen=True, slots=True)
class Forget:
    """A peer whose endpoint gossip need not tell others any more."""

    peer: UUID


Command: TypeAlias = Connect | Disconnect | Send | Announce | Forget


@dataclass(frozen=True, slots=True)
class Timing:
    """When things happen, in ms."""

    interval: float = 1000
    """Between two beacons."""
    evasive: float = 5000
    """How long a peer may be silent before it is evasive."""
    expired: float = 30_000
    """How long a peer may be silent before it is gone."""

    @property
    def tick(self) -> float:
        """How often the peers are looked at."""
        return min(1000.0, self.evasive / 5, self.expired / 5)


@dataclass(slots=True)
class _Peer:
    uuid: UUID
    endpoint: str
    heard: float
    sent: int = 0
    wanted: int = 1
    is_ready: bool = False
    name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    is_evasive: bool = False
    is_silent: bool = False

    def snapshot(self) -> Peer:
        return Peer(
            self.uuid,
            self.name,
            self.endpoint,
            self.headers,
            frozenset(self.groups),
            self.is_evasive,
        )


@dataclass(slots=True)
class _Announced:
    """A node that gossip has announced."""

    endpoint: str
    retries: int = _RETRIES


class NodeMachine:
    """The node.

    Args:
        uuid: The identity of the node.
        name: Its name.
        port: The port of its inbox for beacons; None to send none.
        endpoint_for: Returns where a peer at an endpoint reaches this node.
        headers: Its headers.
        timing: Its times.
        max_peers: How many peers it has at most.
        now: The time.
    """

    def __init__(
        self,
        uuid: UUID,
        name: str,
        port: int | None,
        endpoint_for: Callable[[str], str],
        headers: Mapping[str, str],
        timing: Timing,
        max_peers: int,
        now: float,
    ) -> None:
        self.uuid = uuid
        self.name = name
        self.own_groups: list[str] = []
        self.dropped = 0
        self._port = port
        self._endpoint_for = endpoint_for
        self._headers = dict(headers)
        self._timing = timing
        self._max_peers = max_peers
        self._status = 0
        self._peers: dict[UUID, _Peer] = {}
        # Peers that have not said hello, from beacons and from gossip, the oldest first.
        self._greeted: dict[UUID, _Peer] = {}
        self._invited: dict[UUID, _Peer] = {}
        self._announced: dict[UUID, _Announced] = {}
        # Those of them that wait for a place among the peers, the one that gets it next last.
        self._waiting: OrderedDict[UUID, None] = OrderedDict()
        # The numbers with which the earlier connections of peers would go on: these are read beside new ones.
        self._leftovers: dict[UUID, int] = {}
        self._contested: set[str] = set()
        self._elections: dict[str, Election] = {}
        self._leaders: dict[str, UUID] = {}
        self._commands: deque[Command] = deque()
        self._events: deque[Event] = deque()
        self._beacon_at = now
        self._looks_at = now + timing.tick

    # Calls of the application.

    def join(self, group: str) -> None:
        """Joins a group."""
        if group not in self.own_groups:
            self.own_groups.append(group)
            self._change_groups(Kind.JOIN, group)

    def leave(self, group: str) -> None:
        """Leaves a group."""
        if group in self.own_groups:
            self.own_groups.remove(group)
            self._contested.discard(group)
            self._end_election(group)
            self._change_groups(Kind.LEAVE, group)

    def contest(self, group: str) -> None:
        """Makes this node a candidate for the leader of a group that it is in."""
        self._contested.add(group)
        if self._members(group):
            self._elect(group)

    def whisper(self, peer: UUID, content: list[bytes]) -> bool:
        """Sends a message to a peer, and returns whether there is one."""
        found = self._peers.get(peer)
        if found is None or not found.is_ready:
            return False
        self._send(found, Message(Kind.WHISPER, content=content))
        return True

    def shout(self, group: str, content: list[bytes]) -> int:
        """Sends a message to the members of a group, and returns to how many."""
        members = self._members(group)
        for member in members:
            self._send(self._peers[member], Message(Kind.SHOUT, group=group, content=content))
        return len(members)

    def peers(self) -> list[Peer]:
        """Returns the peers that have said hello."""
        return [peer.snapshot() for peer in self._peers.values() if peer.is_ready]

    def peer(self, uuid: UUID) -> Peer | None:
        """Returns a peer that has said hello."""
        found = self._peers.get(uuid)
        return found.snapshot() if found is not None and found.is_ready else None

    # Input.

    def handle_beacon(self, data: bytes, host: str, now: float) -> None:
        """Takes a beacon, which came from a host."""
        match read_beacon(data):
            case None:
                self.dropped += 1
            case node, _ if node == self.uuid:
                pass
            case node, 0:
                if node in self._peers:
                    self._remove(self._peers[node], "goodbye")
            case node, port:
                if node not in self._peers:
                    if self._makes_place(self._greeted, now):
                        self._greeted[node] = self._add(node, f"tcp://{host}:{port}", now)
                    else:
                        self.dropped += 1

    def handle_announcement(self, key: str, value: str, now: float) -> None:
        """Takes the endpoint of a node from gossip."""
        endpoint, _, _ = value.partition("|")  # a public key may follow
        try:
            node = UUID(hex=key)
        except ValueError:
            return  # gossip carries other things, too
        if node == self.uuid or not self._is_usable(endpoint):
            return
        if node not in self._announced and len(self._announced) >= _MAX_ANNOUNCED:
            self.dropped += 1
            stale = next((other for other in self._announced if other not in self._peers), None)
            if stale is None:
                return
            self._forget(stale)
        self._announced[node] = _Announced(endpoint)
        self._invite(node, now)

    def handle_message(self, parts: list[bytes], now: float) -> None:
        """Takes a message from the inbox, whose first part is the routing ID of its sender."""
        node = sender(parts[0])
        message = Message.read(parts[1:])
        if node is None or node == self.uuid or message is None:
            self.dropped += 1
            return
        peer = self._peers.get(node)
        is_leftover = self._is_leftover(node, message)
        if message.kind == Kind.HELLO:
            peer = self._greet(peer, node, message, now)
        elif peer is None and node in self._announced:
            # The peer takes this node for one that knows it. Saying hello makes it say hello, too.
            self._invite(node, now)
        if peer is None or not peer.is_ready:
            self.dropped += 1
            return
        if message.sequence != peer.wanted:
            if is_leftover:
                self.dropped += 1
                return
            self._remove(peer, "messages lost")
            self._leftovers[node] = (message.sequence + 1) % _SEQUENCE
            if self._may_return(node):
                self._invite(node, now)
            return
        peer.wanted = (peer.wanted + 1) % _SEQUENCE
        self._hear(peer, now)
        self._process(peer, message)

    def handle_full(self, node: UUID) -> None:
        """Gives up a peer whose mailbox has no room. A message is missing now, so no other may follow."""
        if node in self._peers:
            self.dropped += 1
            self._remove(self._peers[node], "not reading")

    def handle_failure(self, node: UUID) -> None:
        """Forgets a peer to whose endpoint no socket connects."""
        if node in self._peers:
            self.dropped += 1
            self._forget(node)
            self._remove(self._peers[node], "expired")

    def handle_timeout(self, now: float, *, has_read: bool = True) -> None:
        """Does what is due. `has_read` says whether what has arrived was read."""
        if self._port is not None and now >= self._beacon_at:
            self._beacon_at = now + self._timing.interval
            self._commands.append(Announce(write_beacon(self.uuid, self._port)))
        if now < self._looks_at:
            return
        # If this process did not run, or its application does not read, silence says nothing about the peers.
        is_fair = has_read and now < self._looks_at + self._timing.evasive / 2
        self._looks_at = now + self._timing.tick
        for peer in list(self._peers.values()):
            if self._peers.get(peer.uuid) is not peer:
                continue  # it went with a peer of the same endpoint
            if not is_fair:
                peer.heard = max(peer.heard, now - self._timing.evasive / 2)
            self._look_at(peer, now)
        self._admit(now)

    def handle_close(self) -> None:
        """Says goodbye."""
        for peer in list(self._peers.values()):
            self._send(peer, Message(Kind.GOODBYE))
            self._commands.append(Disconnect(peer.uuid, drains=peer.is_ready))
        self._peers.clear()
        self._waiting.clear()
        if self._port is not None:
            self._commands.append(Announce(write_beacon(self.uuid, 0)))

    # Output.

    def poll_command(self) -> Command | None:
        """Returns the next command, in order."""
        return self._commands.popleft() if self._commands else None

    def poll_event(self) -> Event | None:
        """Returns the next event, in order."""
        return self._events.popleft() if self._events else None

    def poll_timeout(self) -> float:
        """Returns when `handle_timeout` is due next."""
        return self._looks_at if self._port is None else min(self._looks_at, self._beacon_at)

    # Peers.

    def _add(self, node: UUID, endpoint: str, now: float) -> _Peer:
        """Makes and greets a peer, for which there is a place."""
        # One that never said hello and has the endpoint of another one is a leftover of a node that restarted.
        for other in [*self._greeted.values(), *self._invited.values()]:
            if other.endpoint == endpoint:
                self._remove(other, "restarted")
        self._waiting.pop(node, None)
        peer = self._peers[node] = _Peer(node, endpoint, now)
        self._commands.append(Connect(node, endpoint))
        self._send(
            peer,
            Message(
                Kind.HELLO,
                endpoint=self._endpoint_for(endpoint),
                groups=list(self.own_groups),
                status=self._status,
                name=self.name,
                headers=self._headers,
            ),
        )
        return peer

    def _invite(self, node: UUID, now: float) -> None:
        """Lets an announced node have the next place, if it has none."""
        if node not in self._peers:
            self._waiting[node] = None
            self._waiting.move_to_end(node)
            self._admit(now)

    def _admit(self, now: float) -> None:
        """Gives the places that there are to announced nodes that wait, the newest first."""
        while self._waiting and self._makes_place(self._invited, now):
            node = next(reversed(self._waiting))
            self._invited[node] = self._add(node, self._announced[node].endpoint, now)

    def _makes_place(self, strangers: dict[UUID, _Peer], now: float) -> bool:
        """Returns whether there is a place for one more stranger of a kind.

        The oldest one gives its place up if it had the time of a beacon to say hello.
        """
        if len(strangers) >= _MAX_STRANGERS:
            oldest = _oldest(strangers)
        elif len(self._peers) >= self._max_peers:
            oldest = _oldest(self._greeted, self._invited)
        else:
            return True
        if oldest is None or now - oldest.heard < self._timing.interval:
            return False
        self._give_up(oldest)
        return True

    def _give_up(self, stranger: _Peer) -> None:
        """Forgets a node that has not said hello. If gossip has announced it, it is tried again, after the others."""
        self._remove(stranger, "expired")
        if self._may_return(stranger.uuid):
            self._waiting[stranger.uuid] = None
            self._waiting.move_to_end(stranger.uuid, last=False)

    def _may_return(self, node: UUID) -> bool:
        """Returns whether gossip has announced a lost node, and it was not tried too often."""
        announced = self._announced.get(node)
        if announced is None:
            return False
        if announced.retries == 0:
            self._forget(node)
            return False
        announced.retries -= 1
        return True

    def _greet(self, peer: _Peer | None, node: UUID, hello: Message, now: float) -> _Peer | None:
        if hello.sequence != 1 or not self._is_usable(hello.endpoint):
            return None
        if peer is not None and peer.is_ready:
            # It has lost this node, and found it again.
            self._remove(peer, "messages lost")
        peer = self._peers.get(node)
        if peer is None:
            if len(self._peers) >= self._max_peers:
                oldest = _oldest(self._greeted, self._invited)
                if oldest is None:
                    return None
                self._give_up(oldest)
            peer = self._add(node, hello.endpoint, now)
        self._greeted.pop(node, None)
        self._invited.pop(node, None)
        for other in list(self._peers.values()):
            if other is not peer and other.is_ready and other.endpoint == peer.endpoint:
                self._remove(other, "restarted")
        peer.is_ready = True
        peer.wanted = 1
        peer.name = hello.name
        peer.headers = MappingProxyType(dict(hello.headers))
        if node in self._announced:
            self._announced[node].retries = _RETRIES
        self._admit(now)
        return peer

    def _remove(self, peer: _Peer, reason: str) -> None:
        del self._peers[peer.uuid]
        self._greeted.pop(peer.uuid, None)
        self._invited.pop(peer.uuid, None)
        if reason in ("goodbye", "restarted"):
            self._forget(peer.uuid)
        self._commands.append(Disconnect(peer.uuid, drains=False))
        if peer.is_ready:
            self._leftovers[peer.uuid] = peer.wanted
            if len(self._leftovers) > self._max_peers:
                del self._leftovers[next(iter(self._leftovers))]
            self._events.append(Exit(peer.uuid, peer.name, reason))
            for group in peer.groups:
                self._elect_again(group, peer.uuid)

    def _is_leftover(self, node: UUID, message: Message) -> bool:
        """Returns whether a message has the next number of an earlier connection."""
        if message.kind == Kind.HELLO or message.sequence != self._leftovers.get(node):
            return False
        self._leftovers[node] = (message.sequence + 1) % _SEQUENCE
        return True

    def _forget(self, node: UUID) -> None:
        self._waiting.pop(node, None)
        if self._announced.pop(node, None) is not None:
            self._commands.append(Forget(node))

    def _hear(self, peer: _Peer, now: float) -> None:
        peer.heard = now
        peer.is_evasive = peer.is_silent = False

    def _look_at(self, peer: _Peer, now: float) -> None:
        quiet = now - peer.heard
        if quiet >= self._timing.expired:
            if peer.is_ready:
                self._remove(peer, "expired")
                if self._may_return(peer.uuid):
                    self._invite(peer.uuid, now)
            else:
                self._give_up(peer)
            return
        if not peer.is_ready or quiet < self._timing.evasive / 2:
            return
        self._send(peer, Message(Kind.PING))
        if quiet >= self._timing.evasive and not peer.is_evasive:
            peer.is_evasive = True
            self._events.append(Evasive(peer.uuid, peer.name))
        if quiet >= self._timing.evasive + self._timing.tick and not peer.is_silent:
            peer.is_silent = True
            self._events.append(Silent(peer.uuid, peer.name))

    def _is_usable(self, endpoint: str) -> bool:
        """Returns whether to connect to an endpoint that a peer has named: one of this node's own transport."""
        scheme, separator, address = self._endpoint_for(endpoint).partition("://")
        return bool(separator and address) and endpoint.startswith(scheme + separator)

    def _send(self, peer: _Peer, message: Message) -> None:
        peer.sent = (peer.sent + 1) % _SEQUENCE
        numbered = Message(
            message.kind,
            peer.sent,
            message.endpoint,
            message.groups,
            message.status,
            message.name,
            message.headers,
            message.group,
            message.member,
            message.content,
        )
        self._commands.append(Send(peer.uuid, numbered.write()))

    def _process(self, peer: _Peer, message: Message) -> None:
        match message.kind:
            case Kind.HELLO:
                self._events.append(Enter(peer.uuid, peer.name, peer.endpoint, peer.headers))
                for group in message.groups:
                    self._on_join(peer, group)
            case Kind.WHISPER:
                self._events.append(Whisper(peer.uuid, peer.name, list(message.content)))
            case Kind.SHOUT if message.group in self.own_groups:
                self._events.append(
                    Shout(peer.uuid, peer.name, message.group, list(message.content))
                )
            case Kind.JOIN:
                self._on_join(peer, message.group)
            case Kind.LEAVE if message.group in peer.groups:
                peer.groups.remove(message.group)
                self._events.append(Leave(peer.uuid, peer.name, message.group))
                self._elect_again(message.group, peer.uuid)
            case Kind.PING:
                self._send(peer, Message(Kind.PING_OK))
            case Kind.ELECT | Kind.LEADER:
                self._on_election(peer, message)
            case Kind.GOODBYE:
                self._remove(peer, "goodbye")
            case _:
                pass

    # Groups.

    def _change_groups(self, kind: Kind, group: str) -> None:
        self._status = (self._status + 1) % _STATUS
        for peer in self._peers.values():
            self._send(peer, Message(kind, group=group, status=self._status))

    def _members(self, group: str) -> list[UUID]:
        return [peer.uuid for peer in self._peers.values() if group in peer.groups]

    def _on_join(self, peer: _Peer, group: str) -> None:
        if group in peer.groups:
            return
        if len(peer.groups) >= MAX_GROUPS:
            self.dropped += 1
            return
        peer.groups.add(group)
        self._events.append(Join(peer.uuid, peer.name, group))
        if group in self._contested:
            self._elect(group)

    # Elections.

    def _elect(self, group: str) -> None:
        self._leaders.pop(group, None)
        election = self._elections[group] = Election(self.uuid)
        self._campaign(group, election.start(self._members(group)))

    def _elect_again(self, group: str, gone: UUID) -> None:
        """Holds another election if a member has left that mattered for the last one."""
        was_running = self._elections.pop(group, None) is not None
        if self._leaders.get(group) == gone:
            del self._leaders[group]
        elif not was_running:
            return
        if group not in self._contested:
            return
        if self._members(group):
            self._elect(group)
        else:
            self._crown(group, self.uuid, self.name)

    def _on_election(self, peer: _Peer, message: Message) -> None:
        group, members = message.group, self._members(message.group)
        try:
            member = UUID(hex=message.member)
        except ValueError:
            member = None
        if member is None or group not in self.own_groups or peer.uuid not in members:
            self.dropped += 1
        elif message.kind == Kind.ELECT:
            if group not in self._elections and group in self._contested:
                self._elect(
                    group
                )  # the last one is over, and this contestant may be the better one
            election = self._elections.setdefault(group, Election(self.uuid))
            self._campaign(group, election.handle_elect(peer.uuid, member, members))
        elif group in self._elections:
            sends, is_over = self._elections[group].handle_leader(member, members)
            self._campaign(group, sends)
            if is_over:
                self._end_election(group)
                if member == self.uuid:
                    self._crown(group, self.uuid, self.name)
                elif member in members:
                    self._crown(group, member, self._peers[member].name)

    def _campaign(self, group: str, sends: Iterable[tuple[UUID, bool, UUID]]) -> None:
        for node, is_leader, member in sends:
            if node in self._peers:
                kind = Kind.LEADER if is_leader else Kind.ELECT
                message = Message(kind, group=group, member=member.hex.upper())
                self._send(self._peers[node], message)

    def _crown(self, group: str, leader: UUID, name: str) -> None:
        self._leaders[group] = leader
        self._events.append(Leader(leader, name, group))

    def _end_election(self, group: str) -> None:
        self._elections.pop(group, None)
        self._leaders.pop(group, None)


def _oldest(*strangers: dict[UUID, _Peer]) -> _Peer | None:
    """Returns the oldest of peers that have not said hello."""
    oldest = (next(iter(each.values())) for each in strangers if each)
    return min(oldest, key=lambda peer: peer.heard, default=None)
