"""Reading what `Socket.get_monitor_socket` delivers."""

import struct
from collections.abc import Awaitable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, overload

from . import _checks
from ._exports import exports_only
from .constants import Event

if TYPE_CHECKING:
    from ._future import _AsyncSocket
    from .socket import Socket

__all__ = ["MonitorEvent", "parse_monitor_message", "recv_monitor_message"]


def __dir__() -> list[str]:
    return exports_only(globals())


# Event and value, packed, in the byte order of the machine; the endpoint is the
# second part.
_HEADER = struct.Struct("=Hi")


class MonitorEvent(TypedDict):
    """What happened to a connection or listener.

    Source:
        zmq_socket_monitor(3); pyzmq's ``zmq.utils.monitor``
    """

    event: Event
    """What happened."""
    value: int
    """A file descriptor, an errno, an interval in ms or a protocol error, depending on the event."""
    endpoint: bytes
    """The endpoint that was bound or connected to."""


def parse_monitor_message(msg: Sequence[bytes]) -> MonitorEvent:
    """Takes the two parts of a monitor message apart.

    Args:
        msg: The parts, as received from `Socket.get_monitor_socket`.

    Returns:
        A dict with ``event`` (an `Event`), ``value`` (an int whose meaning depends on the
        event) and ``endpoint`` (`bytes`).

    Raises:
        RuntimeError: It is not a monitor message.

    Source:
        zmq_socket_monitor(3); pyzmq's ``zmq.utils.monitor``
    """
    if not isinstance(msg, (list, tuple)) or len(msg) != 2 or len(msg[0]) != _HEADER.size:
        raise RuntimeError(f"not a monitor message: {msg!r}")
    event, value = _HEADER.unpack(msg[0])
    return {"event": Event(event), "value": value, "endpoint": msg[1]}


@overload
def recv_monitor_message(
    socket: "_AsyncSocket", flags: int = 0
) -> Coroutine[Any, Any, MonitorEvent]: ...
@overload
def recv_monitor_message(socket: "Socket[bytes]", flags: int = 0) -> MonitorEvent: ...
def recv_monitor_message(socket: Any, flags: int = 0) -> Any:
    """Receives one event from a monitor socket.

    Args:
        socket: The result of `Socket.get_monitor_socket`.
        flags: As in `Socket.recv`.

    Returns:
        A dict with ``event`` (an `Event`), ``value`` (an int whose meaning depends on the
        event) and ``endpoint`` (`bytes`). From a socket for asyncio: an awaitable of it.

    Raises:
        Again: Nothing happened within ``RCVTIMEO`` ms.
        RuntimeError: The message is not an event.
        TypeError: `socket` is not a socket.

    Example:
        >>> monitor = pull.get_monitor_socket()
        >>> pull.bind_to_random_port("tcp://127.0.0.1") > 0
        True
        >>> zmq.recv_monitor_message(monitor)["event"].name
        'LISTENING'
        >>> pull.disable_monitor()

    Source:
        pyzmq's ``zmq.utils.monitor.recv_monitor_message``
    """
    if not hasattr(socket, "recv_multipart"):
        raise TypeError(
            f"expected the socket that get_monitor_socket returned, not {_checks.shown(socket)}"
        )
    message = socket.recv_multipart(flags)
    if isinstance(message, Awaitable):
        return _parse_soon(message)
    return parse_monitor_message(message)


async def _parse_soon(message: Awaitable[Sequence[bytes]]) -> MonitorEvent:
    return parse_monitor_message(await message)
