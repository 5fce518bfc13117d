"""One of a device's sockets before it exists: what it will be and where it will be."""

from typing import Any

from ..context import Context
from ..socket import Socket

__all__ = ["Side"]


class Side:
    """Remembers what to do with a socket once the device runs and makes it."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.options: list[tuple[int, Any]] = []
        self.binds: list[str] = []
        self.connects: list[str] = []

    def make(self, context: Context[Any]) -> Socket[Any]:
        """The socket, with nothing done to it."""
        socket: Socket[Any] = context.socket(self.kind)
        return socket

    def set_options(self, socket: Socket[Any]) -> None:
        """What comes first: a routing id set later would not count."""
        for option, value in self.options:
            socket.setsockopt(option, value)

    def bind(self, socket: Socket[Any]) -> None:
        """Binds it wherever it shall be bound."""
        for address in self.binds:
            socket.bind(address)

    def connect(self, socket: Socket[Any]) -> None:
        """Connects it wherever it shall be connected."""
        for address in self.connects:
            socket.connect(address)
