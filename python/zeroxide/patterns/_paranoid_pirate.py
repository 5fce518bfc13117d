"""Paranoid Pirate: a queue and workers that notice each other's death by heartbeats."""

from dataclasses import dataclass
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._beating_worker import LINK, BeatingWorker, Word
from ._driver import AsyncRunner, Configure, Driver, Runner, clock, opener
from ._heartbeat import Backoff, Heartbeat
from ._machine import Machine
from ._worker import AsyncWorkerRunner, WorkerMachine, WorkerRunner

__all__ = [
    "AsyncParanoidPirateQueue",
    "AsyncParanoidPirateWorker",
    "ParanoidPirateQueue",
    "ParanoidPirateWorker",
]

READY = b"\x01"
HEARTBEAT = b"\x02"


@dataclass(slots=True)
class _Worker:
    beat: Heartbeat
    is_busy: bool = False


class ParanoidQueueMachine(Machine):
    """The queue. A worker that is silent for too long is forgotten."""

    def __init__(self, heartbeat: float, liveness: int) -> None:
        super().__init__()
        self._heartbeat = heartbeat
        self._liveness = liveness
        # In the order in which they became ready or busy.
        self._workers: dict[bytes, _Worker] = {}

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match link, parts:
            case "frontend", [_, b"", _, *_]:
                # A worker would drop anything else, and count as busy from then on.
                self._assign(parts, now)
            case "backend", [address, b"\x02"]:
                # A worker unknown to this queue, which may have restarted, is ready if it does not say otherwise.
                if address not in self._workers:
                    self._set_ready(address, now)
                self._workers[address].beat.received(now)
            case "backend", [address, b"\x01"]:
                self._set_ready(address, now)
            case "backend", [address, client, b"", _, *_]:
                self._set_ready(address, now)
                self._send("frontend", client, *parts[2:])
            case _:
                self.drop()

    def handle_unroutable(self, link: str, parts: list[bytes], now: float) -> None:
        if link == "backend":
            self._workers.pop(parts[0], None)
            if len(parts) > 2 and self.wants("frontend"):
                self._assign(parts[1:], now)

    def handle_timeout(self, now: float) -> None:
        for address, worker in list(self._workers.items()):
            if worker.beat.is_dead(now):
                del self._workers[address]
            elif worker.beat.is_due(now):
                worker.beat.sent(now)
                self._send("backend", address, HEARTBEAT)

    def poll_timeout(self) -> float | None:
        return min((worker.beat.next() for worker in self._workers.values()), default=None)

    def wants(self, link: str) -> bool:
        return link == "backend" or self._first() is not None

    def _first(self) -> bytes | None:
        return next((at for at, worker in self._workers.items() if not worker.is_busy), None)

    def _set_ready(self, address: bytes, now: float) -> None:
        worker = self._workers.pop(address, None)
        if worker is None:
            worker = _Worker(Heartbeat(self._heartbeat, self._liveness))
            worker.beat.sent(now)
        worker.is_busy = False
        worker.beat.received(now)
        self._workers[address] = worker

    def _assign(self, request: list[bytes], now: float) -> None:
        address = self._first()
        assert address is not None, "requests are received only while a worker is ready"
        worker = self._workers.pop(address)
        worker.is_busy = True
        worker.beat.sent(now)
        self._workers[address] = worker
        self._send("backend", address, *request)


class ParanoidWorkerMachine(BeatingWorker[list[bytes]]):
    """The worker."""

    def __init__(self, heartbeat: float, liveness: int, backoff: Backoff, now: float) -> None:
        super().__init__([READY], [HEARTBEAT], heartbeat, liveness, backoff, now)

    def _read(self, parts: list[bytes]) -> Word | tuple[bytes, list[bytes]]:
        match parts:
            case [b"\x02"]:
                return Word.HEARTBEAT
            case [client, b"", _, *_]:
                return client, parts[2:]
        return Word.INVALID

    def _write(self, client: bytes, parts: list[bytes]) -> list[bytes]:
        return [client, b"", *parts]


class _ParanoidQueue:
    def __init__(
        self,
        frontend: str,
        backend: str,
        *,
        heartbeat: float = 1000,
        liveness: int = 3,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        heartbeat = _checks.number("heartbeat", heartbeat, 1)
        liveness = _checks.whole("liveness", liveness, 1)
        clients = opener(context, SocketType.ROUTER, bind=frontend, configure=configure)
        workers = opener(
            context, SocketType.ROUTER, bind=backend, configure=configure, router_mandatory=True
        )
        machine = ParanoidQueueMachine(heartbeat, liveness)
        self._driver = Driver(machine, {"frontend": clients, "backend": workers})

    @property
    def frontend(self) -> str:
        """Where clients connect, with the port that the system chose."""
        return self._driver.endpoint("frontend")

    @property
    def backend(self) -> str:
        """Where workers connect, with the port that the system chose."""
        return self._driver.endpoint("backend")


class ParanoidPirateQueue(_ParanoidQueue, Runner):
    """A queue between clients and workers. Queue and workers survive each other's death.

    Each request goes to the worker that has been idle for the longest time, among those whose
    heartbeats arrive. While all workers are busy, requests wait in the clients' connections. A
    request whose worker dies has no reply, so clients ask again: `LazyPirateClient`.

    Args:
        frontend: Where to bind for clients: ``"tcp://*:5555"``.
        backend: Where to bind for workers.
        heartbeat: How long the queue is silent to a worker at most, in ms. The workers' value has
            to be about the same.
        liveness: A worker that is silent for this many heartbeats is dead.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each socket before it binds.

    Source:
        RFC 6, PPP; the guide, chapter 4: Paranoid Pirate Pattern
    """


class AsyncParanoidPirateQueue(_ParanoidQueue, AsyncRunner):
    """A `ParanoidPirateQueue` for asyncio.

    The options are those of `ParanoidPirateQueue`.

    Source:
        RFC 6, PPP; the guide, chapter 4: Paranoid Pirate Pattern
    """


class _ParanoidWorker:
    def __init__(
        self,
        endpoint: str,
        *,
        heartbeat: float = 1000,
        liveness: int = 3,
        reconnect: float = 1000,
        reconnect_max: float = 32_000,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        self._machine: WorkerMachine[list[bytes]] = ParanoidWorkerMachine(
            _checks.number("heartbeat", heartbeat, 1),
            _checks.whole("liveness", liveness, 1),
            Backoff(
                _checks.number("reconnect", reconnect, 1),
                _checks.number("reconnect_max", reconnect_max, 1),
            ),
            clock(),
        )
        open_socket = opener(context, SocketType.DEALER, connect=endpoint, configure=configure)
        self._driver = Driver(self._machine, {LINK: open_socket})


class ParanoidPirateWorker(_ParanoidWorker, WorkerRunner[list[bytes]]):
    """A worker of a `ParanoidPirateQueue`, which survives the death and restart of the queue.

    The handler runs in the thread of `run`, and heartbeats stop meanwhile. A handler that takes
    longer than `heartbeat` times `liveness` makes its worker look dead, which delays its next
    request. `AsyncParanoidPirateWorker` sends heartbeats while its handler waits.

    Args:
        endpoint: The backend of the queue.
        heartbeat: How long the worker is silent at most, in ms.
        liveness: A queue that is silent for this many heartbeats is dead.
        reconnect: How long to wait before a new connection replaces that to a dead queue, in
            ms. The time doubles until the queue answers.
        reconnect_max: The longest such time, in ms.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with ParanoidPirateWorker("tcp://127.0.0.1:5556") as worker:
            worker.run(lambda request: [part.upper() for part in request])
        ```

    Source:
        RFC 6, PPP; the guide, chapter 4: Paranoid Pirate Pattern
    """


class AsyncParanoidPirateWorker(_ParanoidWorker, AsyncWorkerRunner[list[bytes]]):
    """A `ParanoidPirateWorker` for asyncio, whose handler is a coroutine function.

    Heartbeats continue while the handler waits. The options are those of
    `ParanoidPirateWorker`.

    Source:
        RFC 6, PPP; the guide, chapter 4: Paranoid Pirate Pattern
    """
