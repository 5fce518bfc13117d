"""Waiting for many sockets and file descriptors at once."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from . import _checks, _native
from ._exports import exports_only
from ._native import zmq_poll
from ._typing import HasFileno, PolledT
from .constants import POLLERR, POLLIN, POLLOUT, POLLPRI, PollEvent

__all__ = ["Poller", "select", "zmq_poll"]


def __dir__() -> list[str]:
    return exports_only(globals())


# How many sockets the representation of a poller names.
_SHOWN = 3

_P = TypeVar("_P", bound="int | HasFileno")


class Poller(Generic[PolledT]):
    """Waits for several sockets and file descriptors.

    Anything with a ``fileno()``, and descriptors themselves, can be registered beside
    sockets. A descriptor with an error, or whose other end is closed, is ready for ``POLLERR``
    whatever it is registered for.

    Example:
        >>> poller = zmq.Poller()
        >>> poller.register(pull, zmq.POLLIN)
        >>> push.send(b"job")
        >>> dict(poller.poll(1000)) == {pull: zmq.POLLIN}
        True

    Source:
        zmq_poll(3); pyzmq's ``Poller``
    """

    def __init__(self) -> None:
        self._events: dict[PolledT, int] = {}
        # The same as pairs, which `zmq_poll` takes; rebuilt after a change.
        self._pairs: list[tuple[PolledT, int]] | None = None

    @property
    def sockets(self) -> list[tuple[PolledT, int]]:
        """Pairs of a registered socket (or descriptor) and its events, in order."""
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
        """Adds a socket or descriptor, or changes the events to wait for.

        Args:
            socket: A socket, a descriptor, or an object with ``fileno()``.
            flags: The events: ``POLLIN``, ``POLLOUT``, ``POLLERR``, ``POLLPRI`` or a sum; 0
                removes it.

        Raises:
            TypeError: `socket` is none of these, or `flags` is not a number.

        Source:
            pyzmq's ``Poller.register``
        """
        if not isinstance(flags, int):
            raise TypeError(f"flags are zmq.POLLIN, zmq.POLLOUT or both, not {flags!r}")
        if not isinstance(socket, (_native.Socket, int)) and (
            not hasattr(socket, "fileno") or isinstance(socket, type)
        ):
            cure = "; connect a socket to it, and register that" if _is_address(socket) else ""
            raise TypeError(
                "a poller takes a socket, a descriptor or an object with fileno(), not"
                f" {_checks.shown(socket)}{cure}"
            )
        if flags:
            self._events[socket] = flags
        else:
            self._events.pop(socket, None)
        self._pairs = None

    def modify(self, socket: PolledT, flags: int = POLLIN | POLLOUT) -> None:
        """The same as `register`.

        Args:
            socket: A socket, a descriptor, or an object with ``fileno()``.
            flags: The events to wait for.

        Source:
            pyzmq's ``Poller.modify``
        """
        self.register(socket, flags)

    def unregister(self, socket: PolledT) -> None:
        """Removes a socket or descriptor.

        Args:
            socket: The registered socket, descriptor or file object.

        Raises:
            KeyError: It is not registered.

        Source:
            pyzmq's ``Poller.unregister``
        """
        try:
            del self._events[socket]
        except (KeyError, TypeError):
            raise KeyError(f"not registered with this poller: {_checks.shown(socket)}") from None
        self._pairs = None

    def poll(self, timeout: float | None = None) -> list[tuple[PolledT, int]]:
        """Waits until something that is registered is ready.

        Args:
            timeout: How long to wait, in ms. None or a negative number waits without limit, 0
                only looks.

        Returns:
            Pairs of a socket (or descriptor) and the events it is ready for; empty if the time
            is up. Instead of a file object, they have its descriptor, an `int`, as in pyzmq.

        Raises:
            ContextTerminated: The context of a socket ended.
            ZMQError: ``ENOTSOCK`` if everything is closed and there is no time limit.

        Source:
            zmq_poll(3); pyzmq's ``Poller.poll``
        """
        return zmq_poll(self.sockets, _checks.milliseconds(timeout))


def select(
    rlist: Sequence[_P],
    wlist: Sequence[_P],
    xlist: Sequence[_P],
    timeout: float | None = None,
) -> tuple[list[_P], list[_P], list[_P]]:
    """Does what `select.select` does, for sockets as well.

    Args:
        rlist: Sockets and descriptors to receive from.
        wlist: Sockets and descriptors to send to.
        xlist: Sockets and descriptors to watch for errors.
        timeout: How long to wait, in seconds (not ms); None waits without limit.

    Returns:
        Three lists of what is ready. Instead of file objects, they have descriptors.

    Raises:
        ContextTerminated: The context of a socket ended.

    Example:
        >>> push.send(b"job")
        >>> readable, writable, failed = zmq.select([pull], [push], [], 1.0)
        >>> readable == [pull], writable == [push], failed
        (True, True, [])

    Source:
        pyzmq's ``select``
    """
    millis = select_timeout(timeout)
    ready = zmq_poll(to_select(rlist, wlist, xlist), _checks.milliseconds(millis))
    return (
        [item for item, events in ready if events & POLLIN],
        [item for item, events in ready if events & POLLOUT],
        [item for item, events in ready if events & POLLERR],
    )


def _names(flags: int) -> str:
    return "|".join(str(event.name) for event in PollEvent if flags & event) or str(flags)


def to_select(
    rlist: Sequence[_P], wlist: Sequence[_P], xlist: Sequence[_P]
) -> list[tuple[_P, int]]:
    """Returns what `select` is to wait for, as `zmq_poll` takes it."""
    wanted: dict[_P, int] = {}
    lists = (("rlist", rlist, POLLIN), ("wlist", wlist, POLLOUT), ("xlist", xlist, POLLERR))
    for name, items, event in lists:
        if not isinstance(items, Iterable):
            raise TypeError(f"{name} takes a list of sockets, not {_checks.shown(items)}")
        for item in items:
            wanted[item] = wanted.get(item, 0) | event
    return list(wanted.items())


def trouble_of(item: "int | HasFileno", events: int) -> _native.Trouble | None:
    """Returns what is readable once a descriptor has an error or urgent data.

    Event loops watch a descriptor only for reading or writing. Returns None if `events` has one
    of these, or if the descriptor can have no error.
    """
    if events & (POLLIN | POLLOUT):
        return None
    # gevent and eventlet remove `select.epoll`.
    fd = item if isinstance(item, int) else item.fileno()
    return _native.trouble_of(fd, bool(events & POLLPRI))


def select_timeout(timeout: Any) -> float | None:
    """Returns the timeout of `select`, which has seconds, in ms."""
    if timeout is None or isinstance(timeout, int):
        return None if timeout is None else timeout * 1000
    # `float` would take text.
    if isinstance(timeout, (str, bytes)) or not hasattr(timeout, "__float__"):
        _checks.refuse_timeout(timeout, "seconds")
    seconds = float(timeout)
    if seconds != seconds:
        _checks.refuse_timeout(seconds, "seconds")
    return seconds * 1000


def _is_address(given: object) -> bool:
    return isinstance(given, (str, bytes)) and "://" in str(given)
