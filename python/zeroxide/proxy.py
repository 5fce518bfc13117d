"""Forwards messages between two sockets."""

from typing import Any

from ._exports import exports_only
from ._native import proxy, proxy_steerable
from .socket import Socket

__all__ = ["device", "proxy", "proxy_steerable"]


def __dir__() -> list[str]:
    return exports_only(globals())


def device(device_type: int, frontend: Socket[Any], backend: Socket[Any]) -> int:
    """The old name of `proxy`. New programs call `proxy`.

    Args:
        device_type: Has no effect.
        frontend: A bound or connected socket.
        backend: Another one.

    Returns:
        The result of `proxy`.

    Source:
        pyzmq's ``device``
    """
    return proxy(frontend, backend)
