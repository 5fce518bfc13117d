"""The pairs of socket types that can be measured, and where their sockets are."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ...constants import DEALER, PUB, PULL, PUSH, REP, REQ, ROUTER, SUB, SocketType
from ...context import Context
from ...socket import Socket

__all__ = [
    "PATTERNS",
    "Configure",
    "Failed",
    "Pattern",
    "beside",
    "listening_beside",
    "make_socket",
]

Configure = Callable[[Socket[Any]], object]
"""Gives a socket its keys."""


class Failed(Exception):
    """The other side did something else than it was expected to do."""


class Pattern(NamedTuple):
    """A pair of socket types."""

    name: str
    """The types, as in PUSH/PULL."""
    connects: SocketType
    listens: SocketType
    answers: bool
    """Whether each message is answered, so that round trips can be measured."""


PATTERNS = {
    "pushpull": Pattern("PUSH/PULL", PUSH, PULL, answers=False),
    "pubsub": Pattern("PUB/SUB", PUB, SUB, answers=False),
    "reqrep": Pattern("REQ/REP", REQ, REP, answers=True),
    "dealerrouter": Pattern("DEALER/ROUTER", DEALER, ROUTER, answers=True),
}

_PORT = re.compile(r"(.*:)(\d+)")


def make_socket(
    context: Context[Any], kind: SocketType, configure: Configure, timeout: float
) -> Socket[Any]:
    """Creates a socket whose calls fail after `timeout` seconds."""
    socket: Socket[Any] = context.socket(kind)
    socket.linger = 0
    socket.rcvtimeo = socket.sndtimeo = round(timeout * 1000)
    configure(socket)
    if kind == SUB:
        socket.subscribe(b"")
    elif kind == PUB:
        # The receiver counts the messages, so PUB has to wait for it.
        socket.xpub_nodrop = True
    elif kind == ROUTER:
        # A ROUTER drops replies if the queue is full. The client limits how many there are.
        socket.sndhwm = 0
    return socket


def listening_beside(given: str, bound: str) -> str:
    """Where the measured sockets listen: at the next port, or the next name.

    Args:
        given: The endpoint that the socket for requests was given. If the system chose its port,
            it chooses this one, too.
        bound: The endpoint that it is bound to.

    Raises:
        Failed: If there is no next port.
    """
    port = _PORT.fullmatch(bound)
    if port is None:
        return f"{bound}-data"
    if given.endswith((":*", ":0")):
        return f"{port[1]}*"
    if int(port[2]) + 1 == 2**16:
        raise Failed(f"{bound} has no next port, which is needed, too")
    return f"{port[1]}{int(port[2]) + 1}"


def beside(endpoint: str, listening: str) -> str:
    """Where to connect a measured socket.

    Args:
        endpoint: Where the socket for requests is connected.
        listening: Where the measured socket of the peer listens, as the peer sees it.
    """
    mine, theirs = _PORT.fullmatch(endpoint), _PORT.fullmatch(listening)
    return f"{endpoint}-data" if mine is None or theirs is None else f"{mine[1]}{theirs[2]}"
