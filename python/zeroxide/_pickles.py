"""Whose pickles are opened: unpickling runs code of the sender's choice."""

import errno
import warnings
from typing import Any, Literal, TypeAlias

from . import as_zmq
from ._native import Frame, own_addresses
from .error import UntrustedPickle, ZMQError

__all__ = ["Trust", "load"]

_REFUSED = (
    "unpickling runs code of the sender's choice, and nothing proves who sent this from "
    "{peer}. Use send_typed() and recv_typed(), or send_json() and recv_json(); or secure "
    "the connection with CURVE; or, if whoever can reach this socket may run code here, set "
    "trust_pickles = True on the socket or its context"
)

NOBODY = "nobody"

_NOBODY = (
    "unpickling runs code of the sender's choice, and trust_pickles = 'nobody' allows none, also "
    "not from {peer}. Use send_typed() and recv_typed(), or send_json() and recv_json()"
)

_warned = False


# All, those that come from this machine or a peer that proved who it is, or none.
Trust: TypeAlias = "bool | Literal['nobody']"


def load(frame: Frame, *, trusted: Trust) -> Any:
    """The object in a received frame, if it may be trusted or comes from this machine.

    Raises `UntrustedPickle` otherwise. A program that means pyzmq is only warned.
    """
    if trusted == NOBODY:
        peer = _property(frame, "Peer-Address") or "a peer of this process"
        raise UntrustedPickle(peer, _NOBODY.format(peer=peer))
    if not trusted and not is_trustworthy(frame):
        _refuse(_property(frame, "Peer-Address") or "a peer without an address")
    import pickle

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
    # Most programs never get here.
    import ipaddress
    import re

    # Over ipc: user, group and process. No address of tcp begins with a single colon.
    if re.fullmatch(r":\d+:\d+:-?\d+", address):
        return True

    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_loopback:
        return True
    # What can be bound to tells nothing: with ip_nonlocal_bind that is any address.
    return str(ip).partition("%")[0] in own_addresses()


def _refuse(peer: str) -> None:
    global _warned
    text = _REFUSED.format(peer=peer)
    if not as_zmq.installed():
        raise UntrustedPickle(peer, text)
    if not _warned:
        _warned = True
        warnings.warn(f"recv_pyobj: {text}", RuntimeWarning, stacklevel=5)
