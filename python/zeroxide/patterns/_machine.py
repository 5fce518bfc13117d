"""A protocol's state without I/O: messages and the time go in, commands come out.

Each pattern is a machine. A driver (`_driver`) moves messages between a machine and its
sockets, and tests drive one by hand, with a clock of their own. Times are in milliseconds.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .. import _checks

__all__ = ["Body", "Command", "Machine", "Reopen", "Send", "Subscribe", "ToAll", "as_parts"]

# A message of an application: one part or several.
Body: TypeAlias = bytes | Sequence[bytes]

_BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True, slots=True)
class Send:
    """A message to send over one of the machine's links, each of which is a socket."""

    link: str
    parts: list[bytes]


@dataclass(frozen=True, slots=True)
class Reopen:
    """A link whose socket is replaced by a new one: messages in transit on the old one are lost, unless it lingers."""

    link: str
    lingers: bool = False


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A topic that a SUB receives, or that the peer asked for whose message an XPUB received last."""

    link: str
    topic: bytes
    is_on: bool


@dataclass(frozen=True, slots=True)
class ToAll:
    """An XPUB whose next message is for all subscribers, although it would be for the one whose message came last."""

    link: str


Command: TypeAlias = Send | Reopen | Subscribe | ToAll


class Machine(ABC):
    """The state of one peer of a protocol.

    The driver calls `handle_*` with each message and whenever `poll_timeout` is due, and carries out
    the commands of `poll_command` after each call.
    """

    def __init__(self) -> None:
        self._commands: deque[Command] = deque()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many messages could not be used, or found no room."""
        return self._dropped

    @abstractmethod
    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        """Takes a message that has arrived."""

    # The following do nothing unless a machine overrides them.

    def handle_unroutable(self, link: str, parts: list[bytes], now: float) -> None:  # noqa: B027
        """Takes back a message whose peer is gone, on links that report it."""

    def handle_timeout(self, now: float) -> None:  # noqa: B027
        """Does what is due."""

    def handle_interruption(self, now: float) -> None:  # noqa: B027
        """Recovers from an exception, such as Ctrl-C, that has ended an earlier call at any place."""

    def handle_close(self) -> None:  # noqa: B027
        """Says goodbye to the peers, if the protocol has a word for it."""

    def poll_command(self) -> Command | None:
        """Returns the next command, in order."""
        return self._commands.popleft() if self._commands else None

    def peek_command(self) -> Command | None:
        """Returns the next command, which stays the next one until `forget_command`."""
        return self._commands[0] if self._commands else None

    def forget_command(self, command: Command) -> None:
        """Removes a command, if it is the next one."""
        if self._commands and self._commands[0] is command:
            self._commands.popleft()

    def poll_timeout(self) -> float | None:
        """Returns when `handle_timeout` is due next."""
        return None

    def wants(self, link: str) -> bool:
        """Returns whether to receive from a link now; its messages wait in the socket otherwise."""
        return True

    def drop(self) -> None:
        """Counts a message that goes no further."""
        self._dropped += 1

    def _send(self, link: str, *parts: bytes) -> None:
        self._commands.append(Send(link, list(parts)))

    def _forget_sends(self) -> None:
        """Drops messages that are not sent yet: those of a call that an exception has ended."""
        self._commands = deque(
            command for command in self._commands if not isinstance(command, Send)
        )

    def _reopen(self, link: str, *, lingers: bool = False) -> None:
        self._commands.append(Reopen(link, lingers))


def as_parts(body: Any) -> list[bytes]:
    """Returns the parts of a `Body`, of which there is at least one."""
    if isinstance(body, _BYTES):
        return [bytes(body)]
    if isinstance(body, str) or not isinstance(body, Iterable):
        raise TypeError(f"a message is bytes or a list of bytes, not {_checks.shown(body)}")
    parts = list(body)
    for part in parts:
        if not isinstance(part, _BYTES):
            raise TypeError(f"a part of a message is bytes, not {_checks.shown(part)}")
    return [bytes(part) for part in parts] or [b""]
