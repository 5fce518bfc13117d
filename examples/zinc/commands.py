"""The commands of a node to its endpoint."""

from dataclasses import dataclass

from .message import Frame, Member, Message, Work

# The topic of publications for all children. Those for one child have its identity as the topic.
ALL = "*"


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish a frame to the children that subscribe to the topic."""

    topic: str
    frame: Frame


@dataclass(frozen=True, slots=True)
class Push:
    """Send a frame to the parent."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Connect:
    """Connect to another parent instead of the present one."""

    address: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a frame to an endpoint, as soon as it can be reached."""

    address: str
    frame: Frame


@dataclass(frozen=True, slots=True)
class Deliver:
    """Give a message to its handlers."""

    message: Message


@dataclass(frozen=True, slots=True)
class Confirm:
    """The host has published the own message with this serial number."""

    serial: int


@dataclass(frozen=True, slots=True)
class Offer:
    """Call `Node.sync` with the state vector of the document."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Call `Node.state` with a fragment for a child whose document lacks something."""

    child: str
    number: int
    vector: bytes


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge a fragment into the document, and then call `Node.fill`.

    `vector` is the state vector of the parent's document if the parent may lack a part of this endpoint's document.
    """

    body: bytes
    vector: bytes | None


@dataclass(frozen=True, slots=True)
class Run:
    """Do work, and then call `Node.done`."""

    work: Work


@dataclass(frozen=True, slots=True)
class Finish:
    """Own work has its result, or the sentence of the error with which it failed."""

    id: str
    result: bytes
    error: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The members of the cluster have changed: the host first, and parents before children."""

    members: list[Member]


Command = (
    Publish
    | Push
    | Connect
    | Tell
    | Deliver
    | Confirm
    | Offer
    | Snapshot
    | Merge
    | Run
    | Finish
    | Tree
)
