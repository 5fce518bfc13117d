"""Proxies and devices for greenlets.

A proxy has a thread of its own, so that it forwards messages as the blocking one does.
"""

from typing import Any

from .. import _native
from .._exports import exports_only
from .waiting import in_own_thread

__all__ = ["device", "proxy", "proxy_steerable"]


def __dir__() -> list[str]:
    return exports_only(globals())


def device(device_type: int, isocket: Any, osocket: Any) -> int:
    """Passes messages between two sockets, in both directions, and blocks only its greenlet.

    A greenlet that is killed loses no message.

    Args:
        device_type: Has no effect.
        isocket: A bound or connected socket.
        osocket: Another one; -1 for the same.

    Returns:
        Never, in practice: the end of the context raises.

    Raises:
        ContextTerminated: The context ended.

    Source:
        pyzmq's ``zmq.green.device``
    """
    if isinstance(osocket, int) and osocket == -1:
        osocket = isocket
    return proxy(isocket, osocket)


def proxy(
    frontend: _native.Socket, backend: _native.Socket, capture: _native.Socket | None = None
) -> int:
    """Does what `zeroxide.proxy` does, and blocks only its greenlet.

    A greenlet that is killed loses no message.

    Args:
        frontend: A bound or connected socket.
        backend: Another one.
        capture: A PUB, DEALER, PUSH or PAIR socket that gets a copy of every message. The
            proxy waits while it has no room; a PUB always has.

    Returns:
        Never, in practice: the end of the context raises.

    Raises:
        ContextTerminated: The context of a socket ended.
        ZMQError: A socket was closed, or cannot do its part.

    Source:
        zmq_proxy(3)
    """
    return in_own_thread(_native.proxy, frontend, backend, capture)


def proxy_steerable(
    frontend: _native.Socket,
    backend: _native.Socket,
    capture: _native.Socket | None = None,
    control: _native.Socket | None = None,
) -> int:
    """Does what `zeroxide.proxy_steerable` does, and blocks only its greenlet.

    Args:
        frontend: A bound or connected socket.
        backend: Another one.
        capture: As in `proxy`.
        control: A PAIR, PULL, SUB or REP socket that receives the commands ``PAUSE``,
            ``RESUME``, ``TERMINATE`` and ``STATISTICS``.

    Returns:
        0 after ``TERMINATE``.

    Raises:
        ContextTerminated: The context of a socket ended.
        ZMQError: A socket was closed, or cannot do its part.

    Source:
        zmq_proxy_steerable(3)
    """
    return in_own_thread(_native.proxy_steerable, frontend, backend, capture, control)
