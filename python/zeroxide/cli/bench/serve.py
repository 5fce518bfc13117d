"""The side that listens: it does what the other side asks for, one measurement after the other.

Requests and replies are JSON objects over REQ and REP. The measured sockets are others, at the
next port or the next name.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from ...constants import POLLIN, REP, ROUTER
from ...context import Context
from ...error import Again, ZMQError
from ...poll import Poller
from ...socket import Socket
from .loops import answer, receive, route_back
from .patterns import PATTERNS, Configure, Pattern, listening_beside, make_socket

__all__ = ["serve"]

# The most that a client can ask for.
_MAX_COUNT = 10**9
_MAX_SIZE = 1 << 30


class _Refused(Exception):
    """A request that is malformed, or comes at a wrong time."""


def serve(
    context: Context[Any],
    endpoint: str,
    configure: Configure,
    timeout: float,
    *,
    on_bound: Callable[[str, str], None],
    parent: int | None = None,
) -> None:
    """Serves clients, one at a time.

    Args:
        context: The context of the sockets.
        endpoint: Where to listen.
        configure: What gives each socket its keys.
        timeout: Seconds without a message after which a measurement fails, and another client
            may come.
        on_bound: Called with the endpoint that is bound, and that of measured sockets.
        parent: The read end of a pipe, whose end ends the service. So does the request of the
            client, then.
    """
    control: Socket[Any] = context.socket(REP)
    control.linger = 1000
    configure(control)
    try:
        control.bind(endpoint)
        bound = control.last_endpoint.decode()
        beside = listening_beside(endpoint, bound)
        on_bound(bound, beside)
        session = _Session(context, beside, configure, timeout)
        try:
            _answer(control, session, parent)
        finally:
            session.close()
    finally:
        control.close()


def _answer(control: Socket[Any], session: "_Session", parent: int | None) -> None:
    poller: Poller[Any] = Poller()
    poller.register(control, POLLIN)
    if parent is not None:
        poller.register(parent, POLLIN)
    while True:
        ready = dict(poller.poll())
        if parent in ready:
            return
        parts = control.recv_multipart()
        try:
            if len(parts) != 1:
                raise _Refused("the request has several parts")
            request = json.loads(parts[0])
            if not isinstance(request, dict):
                raise _Refused("the request is no JSON object")
            reply = session.do(request)
        except (_Refused, ValueError, RecursionError) as error:
            request, reply = {}, {"error": str(error)}
        except Again:
            request, reply = {}, {"error": "messages did not arrive"}
        except ZMQError as error:
            request, reply = {}, {"error": str(error)}
        control.send(json.dumps(reply).encode())
        if parent is not None and request.get("do") == "end":
            return


class _Session:
    """What the listening side has for one client: the measured socket."""

    def __init__(
        self, context: Context[Any], endpoint: str, configure: Configure, timeout: float
    ) -> None:
        self._context = context
        self._endpoint = endpoint
        self._configure = configure
        self._timeout = timeout
        self._client: object = None
        self._heard = 0.0
        self._pattern: Pattern | None = None
        self._socket: Socket[Any] | None = None

    def do(self, request: dict[str, Any]) -> dict[str, Any]:
        """Does what a client asks for; returns the reply."""
        client = request.get("client")
        if self._client not in (None, client):
            if time.monotonic() < self._heard + self._timeout:
                raise _Refused("it is measuring with another client")
            self.close()
        self._client = client
        try:
            return self._do(request)
        except BaseException:
            self.close()
            raise
        finally:
            self._heard = time.monotonic()

    def close(self) -> None:
        """Closes the measured socket, and is free for another client."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._pattern = self._client = None

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.get("do"):
            case "open":
                return self._open(str(request.get("pattern")))
            case "measure":
                return self._measure(request)
            case "close" | "end":
                self.close()
                return {}
            case what:
                raise _Refused(f"there is no request {what!r}")

    def _open(self, name: str) -> dict[str, Any]:
        if name not in PATTERNS:
            raise _Refused(f"there is no pattern {name!r}")
        if self._socket is not None:
            self._socket.close()
        self._pattern = PATTERNS[name]
        socket = make_socket(self._context, self._pattern.listens, self._configure, self._timeout)
        self._socket = socket
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                socket.bind(self._endpoint)
            except ZMQError:
                # The socket before it may have the address for a moment.
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.01)
            else:
                return {"listening": socket.last_endpoint.decode()}

    def _measure(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._socket is None or self._pattern is None:
            raise _Refused("no pattern is open")
        warm_up, count = (_number(request, name, _MAX_COUNT) for name in ("warm_up", "count"))
        size = _number(request, "size", _MAX_SIZE)
        if self._pattern.answers:
            (route_back if self._socket.type == ROUTER else answer)(self._socket, warm_up + count)
            return {}
        elapsed, got = receive(self._socket, warm_up, count)
        if count and got != size:
            raise _Refused(f"a message of {got} bytes arrived instead of one of {size}")
        return {"nanoseconds": elapsed}


def _number(request: dict[str, Any], name: str, most: int) -> int:
    value = request.get(name)
    if not isinstance(value, int) or not 0 <= value <= most:
        raise _Refused(f"{name} is not a number from 0 to {most}")
    return value
