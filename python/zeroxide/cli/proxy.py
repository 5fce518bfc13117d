"""Runs a proxy, which forwards messages between two sockets.

patterns:
  pubsub    publishers connect to the front (XSUB), subscribers to the back (XPUB)
  reqrep    clients connect to the front (ROUTER), workers to the back (DEALER)
  pipeline  sources connect to the front (PULL), sinks to the back (PUSH)

Endpoints are bound; the prefix connect: connects instead, as in connect:tcp://host:5557.
A port of * picks a free one. The endpoints are printed.

examples:
  zeroxide proxy pubsub --front tcp://*:5557 --back tcp://*:5558
  zeroxide proxy reqrep --front tcp://*:5559 --back ipc:///run/workers --capture ipc:///run/seen
  zeroxide proxy pubsub --front connect:tcp://feed:5557 --back tcp://*:5558 --back ipc:///run/feed

with CURVE (see zeroxide keygen --name):
  zeroxide proxy reqrep --front tcp://*:5559 --back tcp://*:5560 \\
      --key keys/proxy.key_secret --allow clients/
  zeroxide proxy pubsub --front connect:tcp://feed:5557 --back tcp://127.0.0.1:5558 \\
      --secure front --key keys/proxy.key_secret --server-key keys/feed.key

commands to --control, a REP socket: PAUSE, RESUME, STATISTICS, TERMINATE
"""

import argparse
import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .. import constants
from .._arguments import Choice, above, folder
from ..context import Context
from ..proxy import proxy_steerable
from ..socket import Socket
from .keys import public_key, secret_key

__all__ = ["add_arguments", "run"]

PATTERNS = {
    "pubsub": (constants.XSUB, constants.XPUB),
    "reqrep": (constants.ROUTER, constants.DEALER),
    "pipeline": (constants.PULL, constants.PUSH),
}

_PATTERN = Choice(*PATTERNS)
_SECURE = Choice("front", "back", "both")

_CONNECT = "connect:"


class _Stop(Exception):
    """A signal asked the proxy to stop."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide proxy``."""
    endpoints: dict[str, Any] = {"action": "append", "metavar": "ENDPOINT"}
    parser.add_argument(
        "pattern", type=_PATTERN, choices=_PATTERN.values, help="the pair of socket types"
    )
    parser.add_argument(
        "--front", required=True, help="endpoint of the front (required, repeatable)", **endpoints
    )
    parser.add_argument(
        "--back", required=True, help="endpoint of the back (required, repeatable)", **endpoints
    )
    parser.add_argument(
        "--capture", help="endpoint of a PUB socket that copies every message", **endpoints
    )
    parser.add_argument("--control", help="endpoint of a REP socket for commands", **endpoints)
    parser.add_argument(
        "--hwm",
        type=above(0, "messages"),
        default=1000,
        metavar="N",
        help="messages per queue, 0 for no limit (default: %(default)s)",
    )
    parser.add_argument(
        "--io-threads",
        type=above(1, "threads"),
        default=1,
        metavar="N",
        help="I/O threads (default: %(default)s)",
    )
    parser.add_argument(
        "--linger",
        type=above(-1, "milliseconds"),
        default=1000,
        metavar="MS",
        help="time to deliver queued messages at the end, -1 for no limit (default: %(default)s)",
    )
    security = parser.add_argument_group("security")
    security.add_argument(
        "--key", type=secret_key, metavar="FILE", help="the proxy's certificate with its secret key"
    )
    security.add_argument(
        "--allow",
        type=folder,
        metavar="FOLDER",
        help="certificates that may connect to bound endpoints, or * for any key",
    )
    security.add_argument(
        "--server-key",
        type=public_key,
        metavar="FILE",
        help="the server's certificate or public key in Z85, for connect: endpoints",
    )
    security.add_argument(
        "--secure",
        type=_SECURE,
        choices=_SECURE.values,
        default="both",
        help="the sockets that use the keys (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Serves until SIGINT, SIGTERM or TERMINATE."""
    with _stopped_by(signal.SIGINT, signal.SIGTERM):
        _serve(options)
    return 0


@contextlib.contextmanager
def _stopped_by(*numbers: signal.Signals) -> Iterator[None]:
    """Lets signals raise `_Stop`."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stop

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _serve(options: argparse.Namespace) -> None:
    front_type, back_type = PATTERNS[options.pattern]
    context: Context[Any] = Context(options.io_threads)
    context.sndhwm = context.rcvhwm = options.hwm
    context.linger = options.linger
    sockets: list[Socket[Any]] = []

    def make(name: str, kind: int) -> Socket[Any] | None:
        endpoints = getattr(options, name)
        if not endpoints:
            return None
        socket: Socket[Any] = context.socket(kind)
        sockets.append(socket)
        if options.secure in (name, "both") and name in ("front", "back"):
            _secure(options, name, socket, endpoints)
        for endpoint in endpoints:
            _attach(name, socket, endpoint)
        return socket

    try:
        front, back = make("front", front_type), make("back", back_type)
        capture, control = make("capture", constants.PUB), make("control", constants.REP)
        assert front is not None and back is not None, "required arguments"
        proxy_steerable(front, back, capture, control)
    except _Stop:
        pass
    finally:
        for socket in sockets:
            socket.close()
        # A second signal gives up what has not been delivered.
        try:
            context.term()
        except _Stop:
            context.destroy(linger=0)


def _attach(name: str, socket: Socket[Any], endpoint: str) -> None:
    if endpoint.startswith(_CONNECT):
        socket.connect(endpoint.removeprefix(_CONNECT))
        verb = "connected to"
    else:
        socket.bind(endpoint)
        verb = "bound to"
    where = socket.last_endpoint.decode()
    print(f"{name} ({socket.type.name}) {verb} {where}", flush=True)


def _secure(
    options: argparse.Namespace, name: str, socket: Socket[Any], endpoints: list[str]
) -> None:
    """Gives a socket the keys for its endpoints."""
    if not (options.key or options.server_key or options.allow):
        return
    connects = {endpoint.startswith(_CONNECT) for endpoint in endpoints}
    if connects == {True}:
        if not options.server_key:
            options.fail(f"--{name} connects, so it requires --server-key")
        socket.secure_client(options.server_key, options.key)
    elif connects == {False}:
        if not (options.key and options.allow):
            options.fail(f"--{name} binds, so it requires --key and --allow")
        socket.secure_server(options.key, options.allow)
    else:
        options.fail(
            f"--{name} binds and connects: with CURVE, a socket is either server or client"
        )
