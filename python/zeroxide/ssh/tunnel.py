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

from .._exports import exports_only
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


def __dir__() -> list[str]:
    return exports_only(globals())


class MaxRetryExceeded(Exception):
    """The ssh server does not answer in time.

    Source:
        pyzmq's ``zmq.ssh.tunnel.MaxRetryExceeded``
    """


def select_random_ports(n: int) -> list[int]:
    """Returns ports that are free now.

    Args:
        n: How many.

    Returns:
        The ports.

    Source:
        pyzmq's ``zmq.ssh.tunnel.select_random_ports``
    """
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(_sockets.socket()) for _ in range(n)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def try_passwordless_ssh(server: str, keyfile: str | None, paramiko: bool | None = None) -> bool:
    """Tells whether an ssh server accepts a login without a password.

    Args:
        server: The server: ``user@host:port``, where user and port are optional.
        keyfile: A file with a private key; None for ssh's own choice.
        paramiko: Whether to use the library paramiko instead of the program ``ssh``.

    Returns:
        Whether it does.

    Raises:
        MaxRetryExceeded: The server does not answer.
        SSHException: The server is unknown, or refuses.

    Source:
        pyzmq's ``zmq.ssh.try_passwordless_ssh``
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
    """Connects a socket to an address that an ssh server can reach.

    Args:
        socket: The socket.
        addr: The address as seen from the server: ``tcp://10.0.0.5:5555``.
        server: The server: ``user@host:port``, where user and port are optional.
        keyfile: A file with a private key; None for ssh's own choice.
        password: The password; None asks at the terminal if one is needed.
        paramiko: Whether to use the library paramiko instead of the program ``ssh``.
        timeout: How long an unused tunnel stays open, in seconds.

    Returns:
        The tunnel, as in `open_tunnel`.

    Source:
        pyzmq's ``zmq.ssh.tunnel_connection``
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
    """Opens a tunnel through an ssh server.

    Args:
        addr: The address as seen from the server: ``tcp://10.0.0.5:5555``.
        server: The server: ``user@host:port``, where user and port are optional.
        keyfile: A file with a private key; None for ssh's own choice.
        password: The password; None asks at the terminal if one is needed.
        paramiko: Whether to use the library paramiko instead of the program ``ssh``.
        timeout: How long an unused tunnel stays open, in seconds.

    Returns:
        The address to connect to instead, and the tunnel: the number of ssh's process, or
        the process of paramiko.

    Raises:
        ValueError: `addr` is no tcp address.

    Source:
        pyzmq's ``zmq.ssh.tunnel.open_tunnel``
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
    """Opens a tunnel with the program ``ssh``.

    Args:
        lport: The local port.
        rport: The port behind the server.
        server: The server: ``user@host:port``, where user and port are optional.
        remoteip: The address behind the server, as seen from there.
        keyfile: A file with a private key; None for ssh's own choice.
        password: The password; None asks at the terminal if one is needed.
        timeout: How long an unused tunnel stays open, in seconds.

    Returns:
        The number of ssh's process.

    Source:
        pyzmq's ``zmq.ssh.tunnel.openssh_tunnel``
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
    """Opens a tunnel with the library paramiko, in another process.

    Args:
        lport: The local port.
        rport: The port behind the server.
        server: The server: ``user@host:port``, where user and port are optional.
        remoteip: The address behind the server, as seen from there.
        keyfile: A file with a private key; None for ssh's own choice.
        password: The password; None asks at the terminal if one is needed.
        timeout: Has no effect: the tunnel closes when this program ends.

    Returns:
        The process.

    Source:
        pyzmq's ``zmq.ssh.tunnel.paramiko_tunnel``
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
