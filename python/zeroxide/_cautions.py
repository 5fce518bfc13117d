"""Warnings about security settings that are allowed, and hardly meant."""

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
_plain_was_told = False


def warn_of_security(socket: Any, endpoint: str) -> None:
    """Warns about what `socket` was told to use at an endpoint it was just bound or connected to."""
    mechanism = socket.get(MECHANISM)
    if mechanism == _NULL:
        return
    if mechanism == _PLAIN:
        _warn_of_plain(endpoint)
    elif not socket.get(CURVE_SERVER):
        _warn_of_keys(socket, endpoint)


def _warn_of_plain(endpoint: str) -> None:
    """Once: passwords that other machines can read."""
    global _plain_was_told
    if _plain_was_told or not endpoint.startswith("tcp://") or _is_loopback(endpoint):
        return
    _plain_was_told = True
    warnings.warn(
        f"PLAIN at {endpoint}: user names and passwords cross the network unencrypted, and "
        "whoever reads them can use them. Use CURVE (secure_server, secure_client), a "
        "loopback address or ipc; or ignore this warning if a tunnel protects the network",
        RuntimeWarning,
        stacklevel=4,
    )


def _warn_of_keys(socket: Any, endpoint: str) -> None:
    """A client whose two keys are of different pairs."""
    public, secret = socket.get(CURVE_PUBLICKEY), socket.get(CURVE_SECRETKEY)
    if public and curve_public(secret) != public:
        warnings.warn(
            f"{endpoint}: curve_publickey does not belong to curve_secretkey, so no server will "
            "let this socket in. Set both from one curve_keypair(), or leave curve_publickey out",
            RuntimeWarning,
            stacklevel=4,
        )


def _is_loopback(endpoint: str) -> bool:
    # Only programs that speak PLAIN get here.
    import ipaddress

    # A source address may stand in front: tcp://SOURCE;HOST:PORT.
    address = endpoint.removeprefix("tcp://").rpartition(";")[2]
    host = address.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
