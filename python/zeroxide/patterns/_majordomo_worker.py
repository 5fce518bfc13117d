"""Majordomo: workers."""

from collections.abc import Callable
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._beating_worker import LINK, BeatingWorker, Word
from ._driver import Configure, Driver, clock, opener
from ._heartbeat import Backoff
from ._machine import Body, as_parts
from ._mdp import PROTOCOLS, Disconnect, Protocol, Request, Version
from ._worker import AsyncWorkerRunner, WorkerMachine, WorkerRunner

__all__ = ["AsyncMajordomoWorker", "MajordomoRequest", "MajordomoWorker"]


class MajordomoRequest:
    """A request to a service, which the handler of a worker gets.

    Args:
        service: The name of the service.
        parts: The parts of the request.
        partial: Sends a partial reply.

    Source:
        RFC 18, MDP 0.2
    """

    def __init__(
        self, service: str, parts: list[bytes], partial: Callable[[list[bytes]], None]
    ) -> None:
        self.service = service
        """The name of the service."""
        self.parts = parts
        """The parts of the request."""
        self._partial = partial

    def send_partial(self, body: Body) -> None:
        """Sends a part of the reply ahead. The value that the handler returns ends the reply.

        Args:
            body: The partial reply: bytes, or a list of parts.

        Raises:
            ValueError: The worker speaks version 0.1, which has no partial replies.
        """
        self._partial(as_parts(body))


class MajordomoWorkerMachine(BeatingWorker[MajordomoRequest]):
    """The worker. `flush` sends a partial reply while the handler runs."""

    def __init__(
        self,
        protocol: Protocol,
        service: str,
        heartbeat: float,
        liveness: int,
        backoff: Backoff,
        now: float,
    ) -> None:
        self._protocol = protocol
        self._service = service
        self.flush: Callable[[], None] = lambda: None
        hello = protocol.write_ready(service.encode())
        super().__init__(hello, protocol.write_heartbeat(), heartbeat, liveness, backoff, now)

    def handle_close(self) -> None:
        if not self._is_gone:
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        # The broker gives the request to another worker at once, if there is one.
        self._send(LINK, *self._protocol.write_disconnect())

    def _read(self, parts: list[bytes]) -> Word | tuple[bytes, MajordomoRequest]:
        match self._protocol.read_from_broker(parts):
            case None:
                return Word.INVALID
            case Disconnect():
                return Word.DISCONNECT
            case Request(client, body):
                request = MajordomoRequest(
                    self._service, body, lambda parts: self._send_partial(request, parts)
                )
                return client, request
            case _:
                return Word.HEARTBEAT

    def _write(self, client: bytes, parts: list[bytes]) -> list[bytes]:
        return self._protocol.write_worker_reply(client, parts)

    def _send_partial(self, request: MajordomoRequest, parts: list[bytes]) -> None:
        if not self._protocol.streams:
            raise ValueError('partial replies need version="0.2" of the protocol, this is "0.1"')
        if self._current is not None and self._current[1] is request:
            client = self._current[0]
            self._send(LINK, *self._protocol.write_worker_reply(client, parts, is_final=False))
            self.flush()


class _Worker:
    def __init__(
        self,
        endpoint: str,
        service: str,
        *,
        version: Version = "0.1",
        heartbeat: float = 2500,
        liveness: int = 3,
        reconnect: float = 2500,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        if version not in PROTOCOLS:
            raise ValueError(f'version is "0.1" or "0.2", not {_checks.shown(version)}')
        wait = _checks.number("reconnect", reconnect, 1)
        machine = MajordomoWorkerMachine(
            PROTOCOLS[version],
            _checks.name("service", service),
            _checks.number("heartbeat", heartbeat, 1),
            _checks.whole("liveness", liveness, 1),
            Backoff(wait, wait),
            clock(),
        )
        self._machine: WorkerMachine[MajordomoRequest] = machine
        open_socket = opener(context, SocketType.DEALER, connect=endpoint, configure=configure)
        self._driver = Driver(machine, {LINK: open_socket})
        machine.flush = self._driver.flush


class MajordomoWorker(_Worker, WorkerRunner[MajordomoRequest]):
    """A worker of a service, which survives the death and restart of its broker.

    The handler runs in the thread of `run`, and heartbeats stop meanwhile. A handler that takes
    longer than `heartbeat` times `liveness` makes its worker look dead, and another worker gets the
    request. `AsyncMajordomoWorker` sends heartbeats while its handler waits.

    Args:
        endpoint: Where the broker is: ``"tcp://broker:5555"``.
        service: The name of the service. Many workers may offer one service.
        version: The version of the protocol: ``"0.1"`` or ``"0.2"``, as the clients.
        heartbeat: How long the worker is silent at most, in ms.
        liveness: A broker that is silent for this many heartbeats is dead.
        reconnect: How long to wait before a new connection replaces that to a dead broker, in ms.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with MajordomoWorker("tcp://127.0.0.1:5555", "upper") as worker:
            worker.run(lambda request: [part.upper() for part in request.parts])
        ```

    Source:
        RFC 7, MDP 0.1; RFC 18, MDP 0.2
    """


class AsyncMajordomoWorker(_Worker, AsyncWorkerRunner[MajordomoRequest]):
    """A `MajordomoWorker` for asyncio, whose handler is a coroutine function.

    Heartbeats continue while the handler waits. The options are those of `MajordomoWorker`.

    Source:
        RFC 7, MDP 0.1; RFC 18, MDP 0.2
    """
