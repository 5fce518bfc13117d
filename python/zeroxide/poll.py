"""Waiting for many sockets and file descriptors at once."""

import math
from collections.abc import Sequence
from typing import Generic, TypeVar

from ._native import zmq_poll
from ._typing import HasFileno, PolledT
from .constants import POLLERR, POLLIN, POLLOUT, PollEvent

__all__ = ["Poller", "select", "zmq_poll"]


# How many sockets the representation of a poller names.
_SHOWN = 3

_P = TypeVar("_P", bound="int | HasFileno")


class Poller(Generic[PolledT]):
    """Remembers what to wait for, as `select.poll` does.

    Whatever has a ``fileno()``, and file descriptors themselves, can be registered
    beside sockets.
    """

    def __init__(self) -> None:
        self._events: dict[PolledT, int] = {}
        # The same as pairs, in the form `zmq_poll` wants; made anew after a change.
        self._pairs: list[tuple[PolledT, int]] | None = None

    @property
    def sockets(self) -> list[tuple[PolledT, int]]:
        """What is registered, with the events waited for, in order."""
        if self._pairs is None:
            self._pairs = list(self._events.items())
        return self._pairs

    def __contains__(self, socket: object) -> bool:
        return socket in self._events

    def __repr__(self) -> str:
        pairs = self.sockets
        shown = [f"{item!r} for {_names(flags)}" for item, flags in pairs[:_SHOWN]]
        if len(pairs) > _SHOWN:
            shown.append(f"{len(pairs) - _SHOWN} more")
        return f"<zmq.{type(self).__name__.lstrip('_')}({', '.join(shown)})>"

    def register(self, socket: PolledT, flags: int = POLLIN | POLLOUT) -> None:
        """Waits for `flags` on `socket` from now on; no flags means no longer."""
        if not isinstance(flags, int):
            raise TypeError(f"flags are zmq.POLLIN, zmq.POLLOUT or both, not {flags!r}")
        if flags:
            self._events[socket] = flags
        else:
            self._events.pop(socket, None)
        self._pairs = None

    def modify(self, socket: PolledT, flags: int = POLLIN | POLLOUT) -> None:
        """The same as `register`."""
        self.register(socket, flags)

    def unregister(self, socket: PolledT) -> None:
        """Forgets `socket`; raises `KeyError` when it is not registered."""
        del self._events[socket]
        self._pairs = None

    def poll(self, timeout: float | None = None) -> list[tuple[PolledT, int]]:
        """Waits up to `timeout` milliseconds, None for ever, until something is ready.

        Returns pairs of socket (or file descriptor) and events; ``[]`` on time-out.
        """
        return zmq_poll(self.sockets, _milliseconds(timeout))


def select(
    rlist: Sequence[_P],
    wlist: Sequence[_P],
    xlist: Sequence[_P],
    timeout: float | None = None,
) -> tuple[list[_P], list[_P], list[_P]]:
    """`select.select` for sockets too; `timeout` is in seconds, None for ever."""
    wanted: dict[_P, int] = {}
    for items, event in ((rlist, POLLIN), (wlist, POLLOUT), (xlist, POLLERR)):
        for item in items:
            wanted[item] = wanted.get(item, 0) | event
    ready = zmq_poll(
        list(wanted.items()),
        _milliseconds(None if timeout is None else timeout * 1000),
    )
    return (
        [item for item, events in ready if events & POLLIN],
        [item for item, events in ready if events & POLLOUT],
        [item for item, events in ready if events & POLLERR],
    )


def _names(flags: int) -> str:
    return "|".join(str(event.name) for event in PollEvent if flags & event) or str(flags)


def _milliseconds(timeout: float | None) -> int:
    """Whole milliseconds, never shorter than asked for; -1 is for ever."""
    if timeout is None or timeout < 0 or timeout == math.inf:
        return -1
    return math.ceil(timeout)
