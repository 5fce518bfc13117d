"""What a node reports about its peers, under Zyre's names."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

__all__ = [
    "Enter",
    "Evasive",
    "Event",
    "Exit",
    "Join",
    "Leader",
    "Leave",
    "Peer",
    "Shout",
    "Silent",
    "Whisper",
]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another node, as it was when this object was made.

    Source:
        RFC 36, ZRE
    """

    uuid: UUID
    """The identity of the node, which is new each time it starts."""
    name: str
    """The name that it has chosen."""
    endpoint: str
    """Where it receives messages, as this node reaches it: ``tcp://192.168.1.7:49152``."""
    headers: Mapping[str, str]
    """Its headers, which do not change while it runs."""
    groups: frozenset[str]
    """The groups that it is in."""
    is_evasive: bool
    """Whether it has been silent for longer than `evasive` of the node."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a peer did, or that happened to it: an object of a subclass.

    Source:
        zyre(3), zyre_event(3)
    """

    peer: UUID
    """The peer."""
    name: str
    """The name that it has chosen."""


@dataclass(frozen=True, slots=True)
class Enter(Event):
    """A peer is there: it has said hello.

    Source:
        zyre_event(3)
    """

    endpoint: str
    """Where it receives messages."""
    headers: Mapping[str, str]
    """Its headers."""


@dataclass(frozen=True, slots=True)
class Evasive(Event):
    """A peer has been silent for a while, and has not answered a ping yet. Reported once per silence.

    Source:
        zyre_event(3)
    """


@dataclass(frozen=True, slots=True)
class Silent(Event):
    """An evasive peer has not answered for another second. Reported once per silence.

    Source:
        zyre_event(3)
    """


@dataclass(frozen=True, slots=True)
class Exit(Event):
    """A peer is gone.

    Source:
        zyre_event(3)
    """

    reason: str
    """Why: ``"goodbye"``, ``"expired"``, ``"messages lost"``, ``"restarted"``, ``"not reading"``."""


@dataclass(frozen=True, slots=True)
class Join(Event):
    """A peer has joined a group.

    Source:
        zyre_event(3)
    """

    group: str
    """The group."""


@dataclass(frozen=True, slots=True)
class Leave(Event):
    """A peer has left a group. A peer that exits leaves its groups without this event.

    Source:
        zyre_event(3)
    """

    group: str
    """The group."""


@dataclass(frozen=True, slots=True)
class Whisper(Event):
    """A peer has sent a message to this node.

    Source:
        zyre_event(3)
    """

    content: list[bytes]
    """The parts of the message."""


@dataclass(frozen=True, slots=True)
class Shout(Event):
    """A peer has sent a message to a group that this node is in.

    Source:
        zyre_event(3)
    """

    group: str
    """The group."""
    content: list[bytes]
    """The parts of the message."""


@dataclass(frozen=True, slots=True)
class Leader(Event):
    """A group has elected a leader, which may be this node.

    Source:
        zyre_event(3)
    """

    group: str
    """The group."""
