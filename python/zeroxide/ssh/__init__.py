"""Tunnels to endpoints that an ssh server can reach: see `zeroxide.ssh.tunnel`."""

from typing import TYPE_CHECKING

from .._exports import exports_only, on_demand
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


_MODULES = ("forward", "tunnel")


def __dir__() -> list[str]:
    return exports_only(globals(), *_MODULES)


if not TYPE_CHECKING:  # for type checkers, a missing name is a mistake
    __getattr__ = on_demand(__name__, *_MODULES)
