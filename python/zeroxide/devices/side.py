"""The settings of one of a device's sockets before it exists."""

from typing import Any

from ..context import Context
from ..socket import Socket

__all__ = ["Side"]


class Side:
    """Remembers the settings of a socket until the device runs and creates it."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.options: list[tuple[int, Any]] = []
        self.binds: list[str] = []
        self.connects: list[str] = []

    def make(self, context: Context[Any]) -> Socket[Any]:
        """Creates the socket without settings."""
        socket: Socket[Any] = context.socket(self.kind)
        return socket

    def set_options(self, socket: Socket[Any]) -> None:
        """Sets the options; a routing id that is set after connecting has no effect."""
        for option, value in self.options:
            socket.setsockopt(option, value)

    def bind(self, socket: Socket[Any]) -> None:
        """Binds it to its endpoints."""
        for address in self.binds:
            socket.bind(address)

    def connect(self, socket: Socket[Any]) -> None:
        """Connects it to its endpoints."""
        for address in self.connects:
            socket.connect(address)
