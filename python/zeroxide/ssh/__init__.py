"""Tunnels to endpoints that an ssh server can reach: see `zeroxide.ssh.tunnel`."""

from .._exports import exports_only
from .tunnel import (
    openssh_tunnel,
    paramiko_tunnel,
    ssh_tunnel,
    try_passwordless_ssh,
    tunnel_connection,
)

__all__ = [
    "openssh_tunnel",
    "paramiko_tunnel",
    "ssh_tunnel",
    "try_passwordless_ssh",
    "tunnel_connection",
]


def __dir__() -> list[str]:
    return exports_only(globals(), "forward", "tunnel")
