"""Requests of one task to services, and their replies, in order.

There is a DEALER socket per service, and a window of requests in transit. A request goes to
the service with the fewest of them, in turn among equals. It goes to another service if this
one has not replied in time, or if the connection is lost; the first reply counts.
"""

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain, count

import zeroxide as zmq

from . import _sockets
from ._service import ERROR, Body
from .options import Attachment

__all__ = ["Calls", "RpcError", "RpcTimeout"]


class RpcError(RuntimeError):
    """A service reported an error, or its reply is invalid.

    The text has the traceback of the service's function. Raised in the tasks of `rpc`: Spark
    shows it as the cause of the failed job.
    """


class RpcTimeout(RpcError):
    """No service has replied in time, or no service was available.

    Raised in the tasks of `rpc`. Spark runs a failed task again, as it does after any error.
    """


@dataclass(frozen=True)
class Calls:
    """The settings for requests; the same for all tasks."""

    endpoints: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    window: int
    timeout_s: float
    retries: int

    def make(self, requests: Iterator[Body]) -> Iterator[bytes]:
        """The replies, in the order of the requests."""
        first = next(requests, None)
        if first is None:
            return  # without requests, no service is needed
        with ExitStack() as stack:
            services = [self._open(endpoint, stack) for endpoint in self.endpoints]
            yield from _Work(self, services).run(chain([first], requests))

    def _open(self, endpoint: str, stack: ExitStack) -> "_Service":
        socket = stack.enter_context(
            _sockets.opened(
                int(zmq.DEALER),
                Attachment((endpoint,), False, self.options),
                timeout_ms=0,
                linger_ms=0,
                # No request is queued for an unavailable service, because another may be available.
                settings=[(int(zmq.IMMEDIATE), 1)],
            )
        )
        losses = stack.enter_context(socket.monitor_events(int(zmq.Event.DISCONNECTED)))
        return _Service(endpoint, socket, losses)


@dataclass(eq=False)
class _Request:
    """A request without a reply, or with a reply that waits for its turn."""

    number: bytes
    body: Body
    deadline: float  # for the reply, or, if no service has the request, for sending it
    tries: int = 0
    service: "_Service | None" = None
    reply: bytes | None = None


@dataclass(eq=False)
class _Service:
    """A service, as this task sees it."""

    endpoint: str
    socket: zmq.Socket
    losses: zmq.SocketEvents
    # The requests that it has not answered, in the order of the deadlines.
    pending: dict[bytes, _Request] = field(default_factory=dict)
    # Whether it failed to reply in time. Other services are then used first, until it replies.
    silent: bool = False

    def load(self) -> tuple[bool, int]:
        """The sort key for choosing the next service."""
        return self.silent, len(self.pending)

    def take(self, request: _Request, deadline: float) -> bool:
        """Sends a request, unless there is no connection or no room."""
        try:
            self.socket.send_multipart([request.number, b"", request.body], zmq.DONTWAIT)
        except zmq.Again:
            return False
        request.service, request.deadline = self, deadline
        request.tries += 1
        self.pending[request.number] = request
        return True


class _Work:
    """The requests of one task."""

    def __init__(self, how: Calls, services: list[_Service]) -> None:
        self.how = how
        self.services = services
        self.unsent: deque[_Request] = deque()
        self.unanswered: dict[bytes, _Request] = {}
        # Tasks start with different services.
        start = os.getpid() % len(services)
        self.turn = deque(services[start:] + services[:start])

    def run(self, bodies: Iterator[Body]) -> Iterator[bytes]:
        """The replies, in the order of the bodies."""
        window: deque[_Request] = deque()
        numbers = count()
        for body in bodies:
            number = next(numbers).to_bytes(8, "big")
            request = _Request(number, body, time.monotonic() + self.how.timeout_s)
            self.unanswered[number] = request
            window.append(request)
            self.unsent.append(request)
            self._send()
            if len(window) >= self.how.window:
                yield from self._answered(window)
        while window:
            yield from self._answered(window)

    def _answered(self, window: "deque[_Request]") -> Iterator[bytes]:
        """Waits for the first reply, and yields all replies that have arrived."""
        while window[0].reply is None:
            self._wait()
        while window and (reply := window[0].reply) is not None:
            window.popleft()
            yield reply

    def _send(self) -> None:
        while self.unsent:
            request = self.unsent[0]
            if request.reply is None and not self._sent(request):
                return
            self.unsent.popleft()

    def _sent(self, request: _Request) -> bool:
        deadline = time.monotonic() + self.how.timeout_s
        for service in sorted(self.turn, key=_Service.load):
            if service.take(request, deadline):
                self.turn.remove(service)
                self.turn.append(service)
                return True
        return False

    def _wait(self) -> None:
        """Waits for a reply, a loss, room for a request, or the first deadline."""
        poller = zmq.Poller()
        for service in self.services:
            events = zmq.POLLIN | (zmq.POLLOUT if self.unsent else 0)
            poller.register(service.socket, events)
            poller.register(service.losses.fileno(), zmq.POLLIN)
        left = min(request.deadline for request in self._first_due()) - time.monotonic()
        ready = dict(poller.poll(max(left, 0) * 1000))
        for service in self.services:
            if ready.get(service.socket, 0) & zmq.POLLIN:
                self._receive(service)
            # After its last replies.
            if service.losses.fileno() in ready:
                self._lose(service)
        self._send()
        self._expire()

    def _first_due(self) -> Iterator[_Request]:
        """The request with the earliest deadline of each queue."""
        for service in self.services:
            yield from list(service.pending.values())[:1]
        if self.unsent:
            yield self.unsent[0]

    def _receive(self, service: _Service) -> None:
        messages: list[list[bytes]] = []
        with suppress(zmq.Again):
            messages = service.socket.recv_batch(flags=zmq.DONTWAIT, multipart=True)
        for number, *rest in messages:
            service.silent = False
            request = self.unanswered.pop(number, None)
            if request is None:
                continue  # another service was faster
            if request.service is not None:
                request.service.pending.pop(number)
            request.reply = _result(rest, service.endpoint)
            request.body = b""

    def _lose(self, service: _Service) -> None:
        with suppress(zmq.Again):
            while service.losses.recv(0) is not None:
                pass
        for request in list(service.pending.values()):
            self._repeat(request, "was lost before it replied")

    def _expire(self) -> None:
        now = time.monotonic()
        for service in self.services:
            late = [request for request in service.pending.values() if request.deadline <= now]
            for request in late:
                service.silent = True
                self._repeat(request, f"has not replied for {self.how.timeout_s:g} s")
        if self.unsent and self.unsent[0].deadline <= now:
            raise RpcTimeout(
                f"none of {', '.join(self.how.endpoints)} took a request for"
                f" {self.how.timeout_s:g} s ('timeout'): start one, or find out why it takes none"
            )

    def _repeat(self, request: _Request, why: str) -> None:
        service = request.service
        assert service is not None, "only what was sent can be sent again"
        if request.tries > self.how.retries:
            raise RpcTimeout(
                f"{service.endpoint} {why}; this was attempt {request.tries} of this request: allow"
                " more time ('timeout') or attempts ('retries'), or add services"
            )
        del service.pending[request.number]
        request.service = None
        request.deadline = time.monotonic() + self.how.timeout_s
        self.unsent.append(request)


def _result(frames: list[bytes], endpoint: str) -> bytes:
    if len(frames) == 2 and frames[0] == b"":
        return frames[1]
    if len(frames) == 3 and frames[1] == ERROR:
        raise RpcError(f"the service at {endpoint} failed:\n{frames[2].decode('utf-8', 'replace')}")
    raise RpcError(
        f"the service at {endpoint} replied with {len(frames)} frames after the request's number,"
        " instead of an empty one and a result"
    )
