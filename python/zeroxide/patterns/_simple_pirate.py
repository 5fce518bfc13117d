"""Simple Pirate: a queue that gives each request to a worker that is ready, without heartbeats."""

from typing import Any

from ..constants import SocketType
from ..context import Context
from ._driver import AsyncRunner, Configure, Driver, Runner, opener
from ._machine import Machine
from ._worker import AsyncWorkerRunner, WorkerMachine, WorkerRunner

__all__ = [
    "AsyncSimplePirateQueue",
    "AsyncSimplePirateWorker",
    "SimplePirateQueue",
    "SimplePirateWorker",
]

READY = b"\x01"

# How many workers may be ready. Those that have gone count until they are to get a request.
MAX_READY = 100_000


class SimpleQueueMachine(Machine):
    """The queue. A worker is ready after READY and after each reply."""

    def __init__(self) -> None:
        super().__init__()
        # In the order in which they became ready: the first has been idle for the longest time.
        self._ready: dict[bytes, None] = {}

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match link, parts:
            case "frontend", [_, b"", _, *_]:
                self._assign(parts)
            case "backend", [worker, b"", b"\x01"]:
                self._set_ready(worker)
            case "backend", [worker, b"", client, b"", _, *_]:
                self._set_ready(worker)
                self._send("frontend", client, *parts[3:])
            case _:
                self.drop()

    def handle_unroutable(self, link: str, parts: list[bytes], now: float) -> None:
        # The worker has gone. The next one gets its request, or the client asks again.
        if link == "backend" and self._ready:
            self._assign(parts[2:])

    def wants(self, link: str) -> bool:
        return link == "backend" or bool(self._ready)

    def _set_ready(self, worker: bytes) -> None:
        # Without heartbeats, a worker that has gone is noticed when it is to get a request.
        if len(self._ready) < MAX_READY:
            self._ready[worker] = None
        else:
            self.drop()

    def _assign(self, request: list[bytes]) -> None:
        worker = next(iter(self._ready))
        del self._ready[worker]
        self._send("backend", worker, b"", *request)


class SimpleWorkerMachine(WorkerMachine[list[bytes]]):
    """The worker, which has a REQ socket: each reply asks for the next request."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: list[list[bytes]] = []
        self._client: bytes | None = None
        # Whether the queue does not know this worker, because an exception has ended `run`.
        self._is_gone = False
        self._send("queue", READY)

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match parts:
            case [client, b"", _, *_]:
                self._client = client
                self._requests.append(parts[2:])
            case _:  # the queue speaks something else; REQ has to send before it can receive
                self.drop()
                self._send("queue", READY)

    def poll_request(self) -> list[bytes] | None:
        return self._requests.pop() if self._requests else None

    def handle_reply(self, request: list[bytes], parts: list[bytes], now: float) -> None:
        assert self._client is not None, "there is a request"
        self._send("queue", self._client, b"", *parts)
        self._client = None

    def handle_start(self, now: float) -> None:
        if self._is_gone:
            self._is_gone = False
            self._send("queue", READY)

    def handle_end(self, now: float) -> None:
        if self._is_gone:
            return
        self._forget_sends()
        self._requests.clear()
        self._client = None
        self._reopen("queue", lingers=True)
        self._is_gone = True

    def wants(self, link: str) -> bool:
        return self._client is None  # a REQ receives one request, and then sends the reply


class _SimpleQueue:
    def __init__(
        self,
        frontend: str,
        backend: str,
        *,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        clients = opener(context, SocketType.ROUTER, bind=frontend, configure=configure)
        workers = opener(
            context, SocketType.ROUTER, bind=backend, configure=configure, router_mandatory=True
        )
        self._driver = Driver(SimpleQueueMachine(), {"frontend": clients, "backend": workers})

    @property
    def frontend(self) -> str:
        """Where clients connect, with the port that the system chose."""
        return self._driver.endpoint("frontend")

    @property
    def backend(self) -> str:
        """Where workers connect, with the port that the system chose."""
        return self._driver.endpoint("backend")


class SimplePirateQueue(_SimpleQueue, Runner):
    """A queue between clients and workers that survives the death of workers.

    Each request goes to the worker that has been idle for the longest time. While all workers are
    busy, requests wait in the clients' connections. A request whose worker dies has no reply, so
    clients ask again: `LazyPirateClient`. A restarted queue does not know its former workers; a
    `ParanoidPirateQueue` does.

    Args:
        frontend: Where to bind for clients: ``"tcp://*:5555"``.
        backend: Where to bind for workers.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each socket before it binds.

    Source:
        The guide, chapter 4: Simple Pirate Pattern
    """


class AsyncSimplePirateQueue(_SimpleQueue, AsyncRunner):
    """A `SimplePirateQueue` for asyncio.

    The options are those of `SimplePirateQueue`.

    Source:
        The guide, chapter 4: Simple Pirate Pattern
    """


class _SimpleWorker:
    def __init__(
        self,
        endpoint: str,
        *,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        self._machine: WorkerMachine[list[bytes]] = SimpleWorkerMachine()
        open_socket = opener(context, SocketType.REQ, connect=endpoint, configure=configure)
        self._driver = Driver(self._machine, {"queue": open_socket})


class SimplePirateWorker(_SimpleWorker, WorkerRunner[list[bytes]]):
    """A worker of a `SimplePirateQueue`.

    Args:
        endpoint: The backend of the queue.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of the socket before it connects.

    Example:
        ```python
        with SimplePirateWorker("tcp://127.0.0.1:5556") as worker:
            worker.run(lambda request: [part.upper() for part in request])
        ```

    Source:
        The guide, chapter 4: Simple Pirate Pattern
    """


class AsyncSimplePirateWorker(_SimpleWorker, AsyncWorkerRunner[list[bytes]]):
    """A `SimplePirateWorker` for asyncio, whose handler is a coroutine function.

    The options are those of `SimplePirateWorker`.

    Source:
        The guide, chapter 4: Simple Pirate Pattern
    """
