"""Warnings about security settings that are allowed, but probably mistakes."""

import warnings
from typing import Any

from ._native import curve_public
from .constants import (
    CURVE_PUBLICKEY,
    CURVE_SECRETKEY,
    CURVE_SERVER,
    MECHANISM,
    SecurityMechanism,
)

__all__ = ["warn_of_security"]

_NULL, _PLAIN = SecurityMechanism.NULL, SecurityMechanism.PLAIN
_has_warned_of_plain = False


def warn_of_security(socket: Any, addr: Any) -> None:
    """Warns about the settings of `socket` for an endpoint that it is about to bind or connect."""
    if socket.closed:
        return
    mechanism = socket.get(MECHANISM)
    if mechanism == _NULL or not isinstance(addr, str | bytes):
        return
    endpoint = addr if isinstance(addr, str) else addr.decode("utf-8", "replace")
    if mechanism == _PLAIN:
        _warn_of_plain(endpoint)
    elif not socket.get(CURVE_SERVER):
        _warn_of_keys(socket, endpoint)


def _warn_of_plain(endpoint: str) -> None:
    """Warns once about passwords that other machines can read."""
    global _has_warned_of_plain
    if _has_warned_of_plain or not endpoint.startswith("tcp://") or _is_loopback(endpoint):
        return
    _has_warned_of_plain = True
    warnings.warn(
        f"PLAIN at {endpoint}: user names and passwords cross the network unencrypted, and "
        "other machines can read and use them. Use CURVE (secure_server, secure_client), a "
        "loopback address or ipc; or ignore this warning if a tunnel protects the network",
        RuntimeWarning,
        stacklevel=4,
    )


def _warn_of_keys(socket: Any, endpoint: str) -> None:
    """Warns about a client whose two keys belong to different pairs."""
    public, secret = socket.get(CURVE_PUBLICKEY), socket.get(CURVE_SECRETKEY)
    # Without a secret key, the call itself will fail.
    if public and secret and curve_public(secret) != public:
        warnings.warn(
            f"{endpoint}: curve_publickey does not belong to curve_secretkey, so no server will "
            "accept this socket. Set both from one curve_keypair(), or leave curve_publickey out",
            RuntimeWarning,
            stacklevel=4,
        )


def _is_loopback(endpoint: str) -> bool:
    # Only programs that use PLAIN reach this line.
    import ipaddress

    # A source address may come first: tcp://SOURCE;HOST:PORT.
    address = endpoint.removeprefix("tcp://").rpartition(";")[2]
    host = address.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("localhost", "lo")
