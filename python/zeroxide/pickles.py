"""Whose pickles are opened: unpickling runs code of the sender's choice."""

import errno
import pickle
import warnings
from typing import Any

from . import as_zmq
from ._native import Frame
from .error import UntrustedPickle, ZMQError

__all__ = ["load"]

_REFUSED = (
    "unpickling runs code of the sender's choice, and nothing proves who sent this from "
    "{peer}. Use send_typed() and recv_typed(), or send_json() and recv_json(); or secure "
    "the connection with CURVE; or, if whoever can reach this socket may run code here, set "
    "trust_pickles = True on the socket or its context"
)

_warned = False


def load(frame: Frame, *, trusted: bool) -> Any:
    """The object in a received frame, if it may be trusted or comes from this machine.

    Raises `UntrustedPickle` otherwise. A program that means pyzmq is only warned.
    """
    if not trusted and not is_trustworthy(frame):
        _refuse(_property(frame, "Peer-Address") or "a peer without an address")
    return pickle.loads(frame.buffer)


def is_trustworthy(frame: Frame) -> bool:
    """Whether a frame comes from this machine, or from a peer that proved who it is."""
    address = _property(frame, "Peer-Address")
    if address is None:
        # From this process, over inproc.
        return True
    return _is_local(address) or _property(frame, "Authenticated") == "yes"


def _property(frame: Frame, name: str) -> str | None:
    try:
        return frame.get(name)
    except ZMQError as error:
        if error.errno != errno.EINVAL:
            raise
        return None


def _is_local(address: str) -> bool:
    """Whether an address is one of this machine's."""
    if address.startswith(":"):
        # Over ipc: user, group and process.
        return True
    # Most programs never get here.
    import ipaddress
    import socket

    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if ip.is_loopback:
        return True
    # Only an address of one's own can be bound to.
    family = socket.AF_INET6 if ip.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _refuse(peer: str) -> None:
    global _warned
    text = _REFUSED.format(peer=peer)
    if not as_zmq.installed():
        raise UntrustedPickle(peer, text)
    if not _warned:
        _warned = True
        warnings.warn(f"recv_pyobj: {text}", RuntimeWarning, stacklevel=5)
