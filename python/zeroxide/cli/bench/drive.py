"""The side that connects: it decides what is measured, and has the results."""

import json
import os
from collections.abc import Iterator
from typing import Any

from ...constants import PUB, REQ
from ...context import Context
from ...error import Again
from ...socket import Socket
from ..streams import TimedOut
from .figures import Measurement
from .loops import ask, ask_ahead, send
from .patterns import PATTERNS, Configure, Failed, beside, make_socket

__all__ = ["Driver", "Plan"]

# The first measurement of a series has this many messages, and fewer if they are large.
_FIRST_COUNT = 1000
_FIRST_BYTES = 16 << 20

# How much of the time of a measurement a series must take, so that the number of messages follows from it.
_ENOUGH = 0.05


class Plan:
    """How to measure. Times are in seconds."""

    def __init__(
        self, *, seconds: float, count: int | None, repeats: int, window: int, timeout: float
    ) -> None:
        self.seconds = seconds
        self.count = count
        self.repeats = repeats
        self.window = window
        self.timeout = timeout


class Driver:
    """The requests to one listening side."""

    def __init__(
        self, context: Context[Any], endpoint: str, configure: Configure, plan: Plan
    ) -> None:
        self._context = context
        self._endpoint = endpoint
        self._configure = configure
        self._plan = plan
        self._client = os.urandom(8).hex()
        self._control = make_socket(context, REQ, configure, plan.timeout)
        self._control.connect(endpoint)

    def close(self, *, ends: bool) -> None:
        """Closes its socket. The listening side ends, too, or is free for another client."""
        try:
            self._request(do="end" if ends else "close")
        finally:
            self._control.close()

    def series(self, transport: str, name: str, sizes: list[int]) -> Iterator[Measurement]:
        """Measures one pattern with each size.

        Raises:
            Failed: If the other side reports an error.
            TimedOut: If it does not answer.
        """
        pattern = PATTERNS[name]
        listening = str(self._request(do="open", pattern=name)["listening"])
        socket = make_socket(self._context, pattern.connects, self._configure, self._plan.timeout)
        try:
            socket.connect(beside(self._endpoint, listening))
            self._wait_connected(socket)
            for size in sizes:
                count = self._plan.count or self._suitable_count(socket, name, size)
                results = [
                    self._measure(socket, name, size, count) for _ in range(self._plan.repeats)
                ]
                yield Measurement(transport, pattern.name, size, count, results)
        finally:
            socket.close()

    def _wait_connected(self, socket: Socket[Any]) -> None:
        timeout = round(self._plan.timeout * 1000)
        try:
            if socket.type == PUB:
                socket.wait_subscribed(b"", 1, timeout)
            else:
                socket.wait_connected(timeout=timeout)
        except Again as error:
            raise TimedOut(str(error)) from None

    def _suitable_count(self, socket: Socket[Any], name: str, size: int) -> int:
        """How many messages take about the time that a measurement should take. This warms up, too."""
        count = max(10, min(_FIRST_COUNT, _FIRST_BYTES // max(size, 1)))
        while True:
            rate, _ = self._measure(socket, name, size, count)
            wanted = rate * self._plan.seconds
            if count >= wanted * _ENOUGH:
                return max(10, round(wanted))
            count = max(count + 1, round(min(count * 10, wanted * _ENOUGH)))

    def _measure(
        self, socket: Socket[Any], name: str, size: int, count: int
    ) -> tuple[float, list[int]]:
        """Returns the messages per second, and the nanoseconds of each round trip."""
        pattern, window, body = PATTERNS[name], self._plan.window, bytes(size)
        warm_up = window if name == "dealerrouter" else max(1, count // 20)
        self._send(do="measure", size=size, warm_up=warm_up, count=count)
        trips: list[int] = []
        try:
            if not pattern.answers:
                send(socket, body, warm_up + count)
                elapsed = 0
            elif name == "dealerrouter":
                trips, elapsed = ask_ahead(socket, body, count, window)
            else:
                trips = ask(socket, body, warm_up + count)[0][warm_up:]
                elapsed = sum(trips)
        except Again as error:
            # If the other side has stopped, its reply has the reason.
            self._receive()
            raise TimedOut(f"{pattern.name}: {error}") from None
        reply = self._receive()
        elapsed = elapsed or int(reply["nanoseconds"])
        return count / (max(elapsed, 1) / 1e9), trips

    def _request(self, **request: Any) -> dict[str, Any]:
        self._send(**request)
        return self._receive()

    def _send(self, **request: Any) -> None:
        self._control.send(json.dumps({"client": self._client, **request}).encode())

    def _receive(self) -> dict[str, Any]:
        try:
            reply = json.loads(self._control.recv())
        except Again:
            raise TimedOut(
                f"no answer from {self._endpoint} within {self._plan.timeout:g} s; expected"
                " zeroxide bench --listen there"
            ) from None
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise Failed(f"{self._endpoint} is no zeroxide bench --listen")
        if "error" in reply:
            raise Failed(f"{self._endpoint}: {reply['error']}")
        return reply
