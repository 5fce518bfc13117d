"""A device for greenlets."""

from typing import Any, NoReturn

from ..constants import POLLIN
from .poll import _Poller

__all__ = ["device"]


def device(device_type: int, isocket: Any, osocket: Any) -> NoReturn:
    """Forwards messages between two sockets in both directions; ends by raising.

    `device_type` has no effect. -1 for `osocket` means `isocket`.
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
