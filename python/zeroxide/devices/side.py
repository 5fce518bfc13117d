"""The settings of one of a device's sockets before it exists."""

from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ..socket import Socket

__all__ = ["Side"]


class Side:
    """Remembers the settings of a socket until the device runs and creates it."""

    def __init__(self, argument: str, kind: int) -> None:
        """`argument` is the name of the argument that has the type; a negative one means that there is none."""
        try:
            known = kind in SocketType.__members__.values() or kind < 0
        except TypeError:
            known = False
        if not known or isinstance(kind, bool):
            error = ValueError if isinstance(kind, int) else TypeError
            raise error(
                f"{argument} takes a zmq.SocketType such as zmq.PULL, not {_checks.shown(kind)}"
            )
        self.kind = kind
        self.options: list[tuple[int, Any]] = []
        self.binds: list[str] = []
        self.connects: list[str] = []

    def add_bind(self, address: str) -> None:
        """Remembers an endpoint to bind to."""
        self.binds.append(_checks.address(address))

    def add_connect(self, address: str) -> None:
        """Remembers an endpoint to connect to."""
        self.connects.append(_checks.address(address))

    def add_option(self, option: int, value: Any) -> None:
        """Remembers an option, which a socket of this type must take."""
        if self.kind >= 0:
            # A mistake is reported here, and not in the thread or process of the device.
            with Context() as context, context.socket(self.kind) as probe:
                probe.setsockopt(option, value)
        self.options.append((option, value))

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
