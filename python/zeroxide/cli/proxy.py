"""Passes messages on between two sockets, until it is interrupted.

patterns:
  pubsub    publishers connect to the front (XSUB), subscribers to the back (XPUB)
  reqrep    clients connect to the front (ROUTER), workers to the back (DEALER)
  pipeline  sources connect to the front (PULL), sinks to the back (PUSH)

An endpoint is bound, or connected to if it is written connect:tcp://host:port.
Ports may be *, and what was bound is printed.

examples:
  zeroxide proxy pubsub --front tcp://*:5557 --back tcp://*:5558
  zeroxide proxy reqrep --front tcp://*:5559 --back ipc:///run/workers --capture ipc:///run/seen
  zeroxide proxy pubsub --front connect:tcp://feed:5557 --back tcp://*:5558 --back ipc:///run/feed

with CURVE (see zeroxide keygen --name):
  zeroxide proxy reqrep --front tcp://*:5559 --back tcp://*:5560 \\
      --key keys/proxy.key_secret --allow clients/
  zeroxide proxy pubsub --front connect:tcp://feed:5557 --back tcp://127.0.0.1:5558 \\
      --secure front --key keys/proxy.key_secret --server-key keys/feed.key

orders over --control, a REP socket: PAUSE, RESUME, STATISTICS, TERMINATE
"""

import argparse
import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .. import constants
from ..context import Context
from ..proxy import proxy_steerable
from ..socket import Socket

__all__ = ["add_arguments", "run"]

PATTERNS = {
    "pubsub": (constants.XSUB, constants.XPUB),
    "reqrep": (constants.ROUTER, constants.DEALER),
    "pipeline": (constants.PULL, constants.PUSH),
}

_CONNECT = "connect:"


class _Stop(Exception):
    """A signal asks for the end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What follows ``zeroxide proxy``."""
    endpoints: dict[str, Any] = {"action": "append", "metavar": "ENDPOINT"}
    parser.add_argument("pattern", choices=PATTERNS, help="what the sockets are")
    parser.add_argument("--front", required=True, help="may be given several times", **endpoints)
    parser.add_argument("--back", required=True, help="may be given several times", **endpoints)
    parser.add_argument("--capture", help="publishes a copy of everything", **endpoints)
    parser.add_argument("--control", help="takes orders", **endpoints)
    parser.add_argument(
        "--hwm", type=int, default=1000, metavar="N", help="messages per queue; %(default)s"
    )
    parser.add_argument(
        "--io-threads", type=int, default=1, metavar="N", help="threads for I/O; %(default)s"
    )
    parser.add_argument(
        "--linger",
        type=int,
        default=1000,
        metavar="MS",
        help="how long to go on delivering in the end; %(default)s",
    )
    security = parser.add_argument_group("security")
    security.add_argument("--key", metavar="FILE", help="our certificate with its secret key")
    security.add_argument(
        "--allow",
        metavar="FOLDER",
        help="certificates of those who may connect to us; * for everybody",
    )
    security.add_argument(
        "--server-key", metavar="FILE", help="certificate or key of whom we connect to"
    )
    security.add_argument(
        "--secure",
        choices=("front", "back", "both"),
        default="both",
        help="which sockets the keys are for; %(default)s",
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
        # Interrupted again, it gives up what is still on its way.
        try:
            context.term()
        except _Stop:
            context.destroy(linger=0)


def _attach(name: str, socket: Socket[Any], endpoint: str) -> None:
    if endpoint.startswith(_CONNECT):
        socket.connect(endpoint.removeprefix(_CONNECT))
        verb = "connects to"
    else:
        socket.bind(endpoint)
        verb = "is bound to"
    where = socket.last_endpoint.decode()
    print(f"{name} ({socket.type.name}) {verb} {where}", flush=True)


def _secure(
    options: argparse.Namespace, name: str, socket: Socket[Any], endpoints: list[str]
) -> None:
    """Gives a socket the keys it needs for what will be done with it."""
    if not (options.key or options.server_key or options.allow):
        return
    connects = {endpoint.startswith(_CONNECT) for endpoint in endpoints}
    if connects == {True}:
        if not options.server_key:
            options.fail(f"--{name} connects: whom to is not known without --server-key")
        secret = _load(options, options.key, secret=True) if options.key else None
        socket.secure_client(_load(options, options.server_key, secret=False), secret)
    elif connects == {False}:
        if not (options.key and options.allow):
            options.fail(f"--{name} is bound: it needs --key, and --allow to let anybody in")
        socket.secure_server(_load(options, options.key, secret=True), options.allow)
    else:
        options.fail(f"--{name} binds and connects: it cannot be CURVE's server and client")


def _load(options: argparse.Namespace, source: str, *, secret: bool) -> bytes:
    """A key in Z85, from a certificate; a public one may be given itself."""
    from ..auth import load_certificate

    if not secret and len(source) == 40 and not os.path.exists(source):
        return source.encode()
    public, private = load_certificate(source)
    if secret and private is None:
        options.fail(f"{source} holds no secret key")
    return (private if secret else public) or b""
