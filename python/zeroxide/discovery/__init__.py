"""Programs of a network that find each other without configuration: ZRE, the protocol of Zyre.

    from zeroxide.discovery import Node

A `Node` reports the peers that enter and leave, exchanges messages with them, and works with
nodes of Zyre. `follow` connects a socket to every provider of a service, which nodes or the DNS
name. Times are in milliseconds.
"""

from typing import Any

from .._exports import exports_only
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
from ._follow import Follower, follow
from ._node import AsyncNode, Node
from ._services import Provider

__all__ = [
    "AsyncNode",
    "Enter",
    "Evasive",
    "Event",
    "Exit",
    "Follower",
    "Join",
    "Leader",
    "Leave",
    "Node",
    "Peer",
    "Provider",
    "Shout",
    "Silent",
    "Whisper",
    "follow",
]


def __dir__() -> list[str]:
    return exports_only(globals())


def _adopt(name: str, value: Any) -> None:
    """Shows a public name under this package, in tracebacks and pickles too."""
    if getattr(value, "__module__", "").startswith(__name__ + "."):
        value.__module__ = __name__


for _name in __all__:
    _adopt(_name, globals()[_name])
del _name
