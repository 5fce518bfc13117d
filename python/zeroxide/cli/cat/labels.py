"""Messages with a label beside their only part: the group of RADIO and DISH, and the peer's number of SERVER and PEER.

The label is shown as the first part of a message, and taken from there.
"""

from collections.abc import Sequence
from typing import Any

from ...constants import EHOSTUNREACH, SocketType
from ...error import Again, ZMQError
from ...frame import Frame
from ...socket import Socket
from ..formats import Malformed, Message, parts_of

__all__ = ["LABELLED", "Labels"]

LABELLED = (SocketType.RADIO, SocketType.DISH, SocketType.SERVER, SocketType.PEER)


class Labels:
    """Receives and sends messages of a socket whose messages have labels.

    Args:
        socket: The socket.
        target: The label of all messages that are sent, which then are only their part.
    """

    def __init__(self, socket: Socket[Any], target: str | int | None) -> None:
        self._socket = socket
        self._target = target
        self._has_groups = socket.type in (SocketType.RADIO, SocketType.DISH)

    def recv_batch(
        self, max_messages: int, timeout: float | None = None, flags: int = 0
    ) -> list[Message]:
        """Receives messages, each with its label as the first part."""
        frames: Any = self._socket.recv_batch(max_messages, timeout, flags, copy=False)
        return [[self._label_of(frame), frame.bytes] for frame in frames]

    def send_batch(self, messages: Sequence[Message], flags: int = 0) -> int:
        """Sends messages; returns how many. As a ROUTER does, it drops those of peers that have gone.

        Raises:
            Malformed: If a message has no label, or more than one part beside it.
        """
        for number, message in enumerate(messages):
            label, body = self._split(message)
            try:
                self._socket.send(body, flags, **label)
            except Again:
                if number:
                    return number
                raise
            except ZMQError as error:
                if error.errno != EHOSTUNREACH:
                    raise
        return len(messages)

    def topic(self, message: Message) -> bytes:
        """What a peer of a RADIO must have joined to receive a message."""
        label, _ = self._split(message)
        return str(label.get("group", "")).encode()

    def _label_of(self, frame: Frame) -> bytes:
        return frame.group.encode() if self._has_groups else b"%d" % frame.routing_id

    def _split(self, message: Message) -> tuple[dict[str, Any], bytes]:
        parts = parts_of(message)
        # Replies to a peer have its number, whatever the target.
        if self._target is not None and len(parts) == 1:
            return self._named(self._target), parts[0]
        kind = "group" if self._has_groups else "routing id"
        if len(parts) != 2:
            raise Malformed(f"expected a {kind} and one part, got a message of {len(parts)} parts")
        try:
            text = parts[0].decode()
            return self._named(text if self._has_groups else int(text)), parts[1]
        except ValueError:
            raise Malformed(f"expected a {kind}, got {parts[0][:40]!r}") from None

    def _named(self, label: str | int) -> dict[str, Any]:
        return {"group": label} if self._has_groups else {"routing_id": label}
