"""A device for greenlets."""

from typing import Any, NoReturn

from .._exports import exports_only
from ..constants import POLLIN
from .poll import _Poller

__all__ = ["device"]


def __dir__() -> list[str]:
    return exports_only(globals())


def device(device_type: int, isocket: Any, osocket: Any) -> NoReturn:
    """Passes messages between two sockets, in both directions, in a greenlet.

    Args:
        device_type: Has no effect.
        isocket: A bound or connected socket.
        osocket: Another one; -1 for the same.

    Raises:
        ContextTerminated: The context ended.

    Source:
        pyzmq's ``zmq.green.device``
    """
    if isinstance(osocket, int) and osocket == -1:
        osocket = isocket
    poller = _Poller()
    poller.register(isocket, POLLIN)
    poller.register(osocket, POLLIN)
    while True:
        ready = dict(poller.poll())
        if isocket in ready:
            osocket.send_multipart(isocket.recv_multipart(copy=False), copy=False)
        if osocket in ready and osocket is not isocket:
            isocket.send_multipart(osocket.recv_multipart(copy=False), copy=False)
