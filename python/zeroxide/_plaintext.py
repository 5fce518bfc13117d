"""A warning, once, about passwords that cross a network in clear."""

import warnings
from typing import Any

from .constants import MECHANISM, SecurityMechanism

__all__ = ["warn_if_readable"]

_warned = False


def warn_if_readable(socket: Any, endpoint: str) -> None:
    """Warns once if `socket` speaks PLAIN at an endpoint that other machines can reach."""
    global _warned
    if _warned or not endpoint.startswith("tcp://"):
        return
    if socket.get(MECHANISM) != SecurityMechanism.PLAIN or _is_loopback(endpoint):
        return
    _warned = True
    warnings.warn(
        f"PLAIN at {endpoint}: user names and passwords cross the network unencrypted, and "
        "whoever reads them can use them. Use CURVE (secure_server, secure_client), a "
        "loopback address or ipc; or ignore this warning if a tunnel protects the network",
        RuntimeWarning,
        stacklevel=3,
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
