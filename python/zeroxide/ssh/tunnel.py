"""Tunnels through ssh for sockets that connect.

    tunnel_connection(socket, "tcp://10.0.0.5:5555", "me@gateway.example.org")

connects the socket to ``10.0.0.5:5555`` as seen from the gateway. The program
``ssh`` makes the tunnel and uses its configuration; with ``paramiko=True``, the library
does, if it is installed. Servers must be known (``~/.ssh/known_hosts``).
"""

import atexit
import contextlib
import getpass
import os
import socket as _sockets
from multiprocessing import Process
from typing import Any

from ..socket import Socket
from . import openssh
from .openssh import SSHException
from .server import Server

__all__ = [
    "MaxRetryExceeded",
    "SSHException",
    "open_tunnel",
    "openssh_tunnel",
    "paramiko_tunnel",
    "select_random_ports",
    "ssh_tunnel",
    "try_passwordless_ssh",
    "tunnel_connection",
]


class MaxRetryExceeded(Exception):
    """The ssh server does not answer in time."""


def select_random_ports(n: int) -> list[int]:
    """Returns `n` ports that are currently free."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(_sockets.socket()) for _ in range(n)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def try_passwordless_ssh(server: str, keyfile: str | None, paramiko: bool | None = None) -> bool:
    """Whether the server accepts a login without a password.

    Raises `SSHException` if the server is unknown, and `MaxRetryExceeded` if it does not
    answer.
    """
    target = Server.parse(server)
    if paramiko:
        return _try_paramiko(target, keyfile)
    try:
        return openssh.lets_in(target, keyfile)
    except TimeoutError as error:
        raise MaxRetryExceeded(str(error)) from error


def tunnel_connection(
    socket: Socket[Any],
    addr: str,
    server: str,
    keyfile: str | None = None,
    password: str | None = None,
    paramiko: bool | None = None,
    timeout: int = 60,
) -> int | Process:
    """Connects a socket to `addr`, a tcp endpoint as seen from the ssh server.

    Returns the tunnel, as `open_tunnel` does.
    """
    endpoint, tunnel = open_tunnel(addr, server, keyfile, password, paramiko, timeout)
    socket.connect(endpoint)
    return tunnel


def open_tunnel(
    addr: str,
    server: str,
    keyfile: str | None = None,
    password: str | None = None,
    paramiko: bool | None = None,
    timeout: int = 60,
) -> tuple[str, int | Process]:
    """Opens a tunnel to `addr`; returns the endpoint to connect to instead, and the tunnel.

    `server` is ``user@host:port``; user and port are optional. The tunnel is a process id,
    or the process object if paramiko makes it. It closes when it is not in use,
    but not in the first `timeout` seconds. If a password is needed and none is given,
    ssh asks for it at the terminal.
    """
    scheme, separator, rest = addr.partition("://")
    host, _, port = rest.rpartition(":")
    if not separator or scheme != "tcp" or not host or not port.isdecimal():
        raise ValueError(f"a tunnel leads to tcp://host:port, not to {addr!r}")
    [local] = select_random_ports(1)
    make = paramiko_tunnel if paramiko else openssh_tunnel
    tunnel = make(local, int(port), server, host.strip("[]"), keyfile, password, timeout)
    return f"tcp://127.0.0.1:{local}", tunnel


def openssh_tunnel(
    lport: int,
    rport: int,
    server: str,
    remoteip: str = "127.0.0.1",
    keyfile: str | None = None,
    password: str | None = None,
    timeout: int = 60,
) -> int:
    """Makes a tunnel from the local port `lport` to ``remoteip:rport`` as seen from the server.

    The program ``ssh`` makes the tunnel; returns its process id.
    """
    if password is None and not try_passwordless_ssh(server, keyfile):
        password = _ask(server)
    forward = openssh.Forward(lport, remoteip, rport)
    return openssh.open_tunnel(Server.parse(server), forward, keyfile, password, timeout)


ssh_tunnel = openssh_tunnel


def paramiko_tunnel(
    lport: int,
    rport: int,
    server: str,
    remoteip: str = "127.0.0.1",
    keyfile: str | None = None,
    password: str | None = None,
    timeout: int = 60,
) -> Process:
    """Does the same as `openssh_tunnel` with the library paramiko in another process.

    The tunnel ends with this program; `timeout` has no effect.
    """
    _paramiko()
    if password is None and not try_passwordless_ssh(server, keyfile, paramiko=True):
        password = _ask(server)
    arguments = (lport, rport, Server.parse(server), remoteip, keyfile, password)
    process = Process(target=_serve_paramiko, args=arguments, daemon=True)
    process.start()
    atexit.register(process.terminate)
    return process


def _ask(server: str) -> str:
    return getpass.getpass(f"{server}'s password: ")


# ---- paramiko -----------------------------------------------------------------------------


def _paramiko() -> Any:
    try:
        import paramiko
    except ImportError as error:
        raise ImportError(
            "paramiko is not installed (pip install paramiko); tunnels through OpenSSH do not need it"
        ) from error
    return paramiko


def _connect_paramiko(server: Server, keyfile: str | None, password: str | None) -> Any:
    paramiko = _paramiko()
    client = paramiko.SSHClient()
    client.load_system_host_keys()
    # RejectPolicy is the default, because an unknown server may be an impostor.
    policy = os.environ.get("PYZMQ_PARAMIKO_HOST_KEY_POLICY")
    if policy:
        client.set_missing_host_key_policy(getattr(paramiko, f"{policy}Policy")())
    client.connect(
        server.host,
        server.port or 22,
        username=server.user,
        key_filename=keyfile,
        password=password,
        look_for_keys=True,
    )
    return client


def _try_paramiko(server: Server, keyfile: str | None) -> bool:
    paramiko = _paramiko()
    try:
        _connect_paramiko(server, keyfile, None).close()
    except paramiko.AuthenticationException:
        return False
    return True


def _serve_paramiko(
    lport: int,
    rport: int,
    server: Server,
    remoteip: str,
    keyfile: str | None,
    password: str | None,
) -> None:
    from .forward import forward_tunnel

    client = _connect_paramiko(server, keyfile, password)
    with contextlib.suppress(KeyboardInterrupt):
        forward_tunnel(lport, remoteip, rport, client.get_transport())
