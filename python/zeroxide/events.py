"""What happens to a socket's connections, as objects: `Socket.monitor_events`."""

from dataclasses import dataclass
from typing import Self

from . import _native
from ._closing import Closing
from ._exports import exports_only
from ._turns import Readable, others
from .constants import Event
from .error import Again

__all__ = ["SocketEvent", "SocketEvents"]


def __dir__() -> list[str]:
    return exports_only(globals())


@dataclass(frozen=True, slots=True)
class SocketEvent:
    """Something that happened to a connection or a listener.

    Fields that are unknown, or do not apply to the kind of event, are empty.

    Source:
        zmq_socket_monitor(3); zeroxide only
    """

    kind: Event
    """What happened: ``Event.CONNECTED``, ``Event.HANDSHAKE_FAILED_AUTH``, ..."""
    endpoint: str
    """What was bound or connected to: ``tcp://127.0.0.1:5555``."""
    address: str
    """Where the peer is: ``10.0.0.7:49152``; over ipc ``:uid:gid:pid``."""
    routing_id: bytes
    """The peer's name for itself; empty until the peer has sent it."""
    mechanism: str
    """How the connection is secured, once the handshake is done: ``CURVE``."""
    user_id: str
    """Whom the authenticator took the peer for."""
    reason: str
    """Why, in words, where something failed or ended."""
    value: int
    """A file descriptor, an errno, an interval in ms, a protocol error or a status, by kind."""
    timestamp: float
    """When, in seconds since 1970."""
    missed: int
    """How many events before this one were not kept, since 10,000 others had not been read."""


class SocketEvents(Closing):
    """An iterator over the events of a socket: see `Socket.monitor_events`.

    Works with ``for`` and ``async for``. If several threads or tasks iterate, each event goes to
    one of them. The iteration ends when the socket or the iterator
    is closed; a ``for`` loop also ends when nothing happens for `timeout` ms. As a ``with``
    block, the iterator closes itself.

    Args:
        stream: The events, from the extension module.
        timeout: How long a ``for`` loop waits for the next event, in ms; None waits without
            limit.

    Source:
        zeroxide only
    """

    def __init__(self, stream: _native.EventStream, timeout: float | None = None) -> None:
        self._stream = stream
        self._readable = Readable(stream)
        self._timeout = timeout
        self._is_closed = False

    def recv(self, timeout: float | None = None) -> SocketEvent | None:
        """Waits for the next event.

        Args:
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            The event; None if the socket or the iterator is closed.

        Raises:
            Again: The time is up.
            ContextTerminated: The context ended.
        """
        event = self._stream.recv(timeout)
        if event is None:
            return None
        kind, value, endpoint, address, routing_id, *about, timestamp, missed = event
        mechanism, user_id, reason = about
        return SocketEvent(
            Event(kind),
            endpoint,
            address,
            routing_id,
            mechanism,
            user_id,
            reason,
            value,
            timestamp,
            missed,
        )

    def fileno(self) -> int:
        """Returns a file descriptor that is readable while `recv` need not wait.

        Returns:
            The descriptor.
        """
        return self._stream.fileno()

    def close(self) -> None:
        """Closes the iterator; calls that wait for an event return."""
        self._is_closed = True
        self._stream.close()

    def __repr__(self) -> str:
        timeout = "" if self._timeout is None else f"timeout={self._timeout}"
        closed = " closed" if self._is_closed else ""
        return f"<zmq.{type(self).__name__.lstrip('_')}({timeout}) at {id(self):#x}{closed}>"

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SocketEvent:
        try:
            event = self.recv(self._timeout)
        except Again:
            event = None
        if event is None:
            raise StopIteration
        return event

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SocketEvent:
        await others()
        while True:
            try:
                event = self.recv(0)
            except Again:
                await self._readable.wait()
                continue
            if event is None:
                raise StopAsyncIteration
            return event
