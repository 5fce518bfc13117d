"""Forwards connections to a local port through a transport of paramiko."""

import contextlib
import logging
import select
import socketserver
from typing import Any

from .._exports import exports_only

__all__ = ["forward_tunnel"]


def __dir__() -> list[str]:
    return exports_only(globals())


_log = logging.getLogger("zeroxide.ssh")

_CHUNK = 65536


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def forward_tunnel(local_port: int, remote_host: str, remote_port: int, transport: Any) -> None:
    """Passes connections to a local port on through an ssh transport. Does not return.

    Args:
        local_port: The port to listen at, on 127.0.0.1.
        remote_host: The host to connect to, as seen from the ssh server.
        remote_port: The port there.
        transport: A transport of paramiko.

    Source:
        pyzmq's ``zmq.ssh.forward.forward_tunnel``
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            target = (remote_host, remote_port)
            try:
                channel = transport.open_channel("direct-tcpip", target, self.request.getpeername())
            except Exception:
                _log.exception("no channel to %s:%s", *target)
                return
            if channel is None:
                _log.error("the ssh server refuses %s:%s", *target)
                return
            with contextlib.closing(channel):
                _shuttle(self.request, channel)

    with _Server(("127.0.0.1", local_port), Handler) as server:
        server.serve_forever()


def _shuttle(one: Any, other: Any) -> None:
    """Forwards bytes in both directions until either end closes."""
    while True:
        for source in select.select([one, other], [], [])[0]:
            data = source.recv(_CHUNK)
            if not data:
                return
            (other if source is one else one).sendall(data)
