"""Frames, which travel between endpoints, and the messages of an application inside of them."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class Kind(StrEnum):
    """The kinds of frames. A tree has a host at its top, so a parent is above its children."""

    # From a child to its parent.
    JOIN = "JOIN"  # asks for a place in the tree
    SYNC = (
        "SYNC"  # asks for everything that the child's document lacks; the body is its state vector
    )
    HERE = "HERE"  # the child lives; with the members below it and their load
    CLAIM = "CLAIM"  # a new host, sent to members of the old tree
    # From a parent to its children, or to one of them.
    BEAT = "BEAT"  # the parent lives; with its path to the host
    ACCEPT = "ACCEPT"  # a place in the tree
    REFER = "REFER"  # the address of another endpoint, which has room
    YIELD = "YIELD"  # the child is to refer one of its children to another endpoint
    WAIT = "WAIT"  # this endpoint has no way to a host itself
    STATE = "STATE"  # everything that the child's document lacks
    FILL = "FILL"  # everything that the parent's own document lacked
    MEMBERS = "MEMBERS"  # the tree
    # In both directions.
    SEND = "SEND"  # a message of the application
    WORK = "WORK"  # work for any endpoint
    DONE = "DONE"  # its result
    BYE = "BYE"  # the sender leaves


@dataclass(frozen=True, slots=True)
class Frame:
    """A kind, a few values, and bytes that only the application understands."""

    kind: str
    header: dict[str, Any]
    body: bytes = b""

    def parts(self) -> list[bytes]:
        """Returns the parts of a ZeroMQ message."""
        return [self.kind.encode(), json.dumps(self.header).encode(), self.body]

    @classmethod
    def read(cls, parts: list[bytes]) -> Self:
        """Reads a frame from the parts of a message; raises ValueError if it is none."""
        kind, header, body = parts
        values = json.loads(header)
        if not isinstance(values, dict):
            raise ValueError("a header is a JSON object")
        return cls(Kind(kind.decode()), values, body)


@dataclass(frozen=True, slots=True)
class Message:
    """A message from one endpoint to all others.

    `origin` is the identity of that endpoint, by which it recognises the echo of its message. `serial` counts the
    messages of one origin.
    """

    channel: str
    origin: str
    serial: int
    body: bytes

    def frame(self, **extra: Any) -> Frame:
        header = {"channel": self.channel, "origin": self.origin, "serial": self.serial}
        return Frame(Kind.SEND, header | extra, self.body)

    @classmethod
    def of(cls, frame: Frame) -> Self:
        header = frame.header
        return cls(header["channel"], header["origin"], header["serial"], frame.body)


@dataclass(frozen=True, slots=True)
class Work:
    """Work that one endpoint of the cluster does for `origin`."""

    id: str
    origin: str
    task: str
    body: bytes

    def frame(self) -> Frame:
        return Frame(
            Kind.WORK, {"id": self.id, "origin": self.origin, "task": self.task}, self.body
        )

    @classmethod
    def of(cls, frame: Frame) -> Self:
        header = frame.header
        return cls(header["id"], header["origin"], header["task"], frame.body)


@dataclass(frozen=True, slots=True)
class Member:
    """An endpoint as others see it. `parent` is the identity of the endpoint above it, "" for a host."""

    id: str
    name: str
    address: str
    web: str = ""
    parent: str = ""

    def header(self) -> dict[str, str]:
        return asdict(self)
