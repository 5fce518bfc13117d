"""Tunnels to endpoints behind an ssh server: see `zeroxide.ssh.tunnel`."""

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
