"""Decides which pickles are opened, because unpickling runs code that the sender chooses."""

import errno
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from . import as_zmq
from ._native import Frame, own_addresses
from .error import UntrustedPickle, ZMQError

__all__ = ["Trust", "is_local_endpoint", "load", "load_of_program"]

_REFUSED = (
    "unpickling runs code of the sender's choice, and the sender at {peer} is not "
    "authenticated. Use send_typed() and recv_typed(), or send_json() and recv_json(); or secure "
    "the connection with CURVE; or, if every peer that can reach this socket may run code here, set "
    "trust_pickles = True on the socket or its context"
)

_UNKNOWN = (
    "unpickling runs code of the sender's choice, and this socket's own recv does not tell who the sender is: "
    "peers on other machines can reach the socket. Use send_typed() and recv_typed(), or send_json() and "
    "recv_json(); or, if every peer that can reach this socket may run code here, set trust_pickles = True "
    "on the socket or its context"
)

NOBODY = "nobody"

_NOBODY = (
    "unpickling runs code of the sender's choice, and trust_pickles = 'nobody' refuses all pickles, "
    "including this one from {peer}. Use send_typed() and recv_typed(), or send_json() and recv_json()"
)

_warned = False


# True: all pickles; False: those from this machine or from authenticated peers; 'nobody': none.
Trust: TypeAlias = "bool | Literal['nobody']"


def load(frame: Frame, *, trusted: Trust) -> Any:
    """Unpickles a received frame, if it is trusted or comes from this machine.

    Otherwise raises `UntrustedPickle`. A program written for pyzmq only gets a warning.
    """
    if trusted == NOBODY:
        peer = _property(frame, "Peer-Address") or "a peer of this process"
        raise UntrustedPickle(peer, _NOBODY.format(peer=peer))
    if not trusted and not is_trustworthy(frame):
        peer = _property(frame, "Peer-Address") or "a peer without an address"
        _refuse(peer, _REFUSED.format(peer=peer))
    import pickle

    return pickle.loads(frame.buffer)


def load_of_program(body: Any, *, trusted: Trust, is_local: Callable[[], bool]) -> Any:
    """Does the same for what the `recv` of a program returned, which may not tell who sent it.

    That is so for `bytes`, and for frames that the program has made.
    """
    if hasattr(body, "buffer"):
        if _property(body, "Peer-Address") is not None:
            return load(body, trusted=trusted)
        body = body.buffer
    peer = "a peer that is not known"
    if trusted == NOBODY:
        raise UntrustedPickle(peer, _NOBODY.format(peer=peer))
    if not trusted and not is_local():
        _refuse(peer, _UNKNOWN)
    import pickle

    return pickle.loads(body)


def is_local_endpoint(endpoint: str) -> bool:
    """Whether only programs on this machine can be at the other end. Does not know proxies and tunnels."""
    transport, _, address = endpoint.partition("://")
    if transport in ("inproc", "ipc"):
        return True
    # A source address may come first: tcp://SOURCE;HOST:PORT.
    host = address.rpartition(";")[2].rpartition(":")[0]
    # A host name cannot be all digits and dots. Without `ipaddress`, because all programs get here.
    is_loopback = host.startswith("127.") and host.replace(".", "").isdigit()
    return transport == "tcp" and (is_loopback or host in ("localhost", "[::1]"))


def is_trustworthy(frame: Frame) -> bool:
    """Whether a frame comes from this machine, or from an authenticated peer."""
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
    # Most programs never reach this line.
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
    # Trying to bind the address proves nothing: with ip_nonlocal_bind, every address can be bound.
    return str(ip).partition("%")[0] in own_addresses()


def _refuse(peer: str, text: str) -> None:
    global _warned
    if not as_zmq.installed():
        raise UntrustedPickle(peer, text)
    if not _warned:
        _warned = True
        warnings.warn(f"recv_pyobj: {text}", RuntimeWarning, stacklevel=5)
