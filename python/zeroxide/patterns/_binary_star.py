"""Binary Star: a pair of servers, of which one takes over when the other one dies."""

from collections.abc import Callable, Sequence
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._binary_star_state import PairState
from ._driver import Configure, Driver, Open, addresses, clock, opener
from ._machine import Body, as_parts
from ._retrying import LINK, AsyncRequester, Requester, RetryMachine
from ._turn import Turn
from ._waiting import Waiting, weight
from ._worker import AsyncWorkerRunner, WorkerMachine, WorkerRunner

__all__ = [
    "AsyncBinaryStarClient",
    "AsyncBinaryStarServer",
    "BinaryStarClient",
    "BinaryStarServer",
    "pair_links",
]


class BinaryStarMachine(WorkerMachine[list[bytes]]):
    """The server. Requests are served only while it is active."""

    def __init__(self, pair: PairState, on_change: Callable[[bool], object] | None) -> None:
        super().__init__()
        self.pair = pair
        self._on_change = on_change
        self._was_active = False
        self._requests: Waiting[tuple[bytes, list[bytes]]] = Waiting()
        self._client: bytes | None = None

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        if link == "peer":
            self.pair.handle_peer(parts[0], now)
        else:
            match parts:
                case [client, b"", _, *_] if self.pair.handle_client(now):
                    self._requests.push((client, parts[2:]), weight(parts))
                case _:  # or of a client that has to ask the peer
                    self.drop()
        self.handle_timeout(now)

    def handle_timeout(self, now: float) -> None:
        message = self.pair.speak(now)
        if message is not None:
            self._send("state", message)
        if self.pair.is_active is not self._was_active:
            self._was_active = self.pair.is_active
            if not self._was_active:
                self._requests.clear()  # the peer may have taken over: their clients ask it
            if self._on_change is not None:
                self._on_change(self._was_active)

    def poll_timeout(self) -> float | None:
        return self.pair.speaks_at

    def poll_request(self) -> list[bytes] | None:
        if (waiting := self._requests.pop()) is None:
            return None
        self._client, request = waiting
        return request

    def handle_reply(self, request: list[bytes], parts: list[bytes], now: float) -> None:
        if self._client is not None:
            self._send("clients", self._client, b"", *parts)

    def wants(self, link: str) -> bool:
        return link != "state" and (link == "peer" or self._requests.has_room)


def pair_links(
    context: Context[Any] | None, configure: Configure | None, local: str, remote: str
) -> dict[str, Open]:
    """Returns the links between the servers of a pair: the peer's state comes first, before clients' requests."""
    return {
        "peer": opener(context, SocketType.SUB, connect=remote, configure=configure, subscribe=b""),
        "state": opener(context, SocketType.PUB, bind=local, configure=configure),
    }


class _BinaryStarServer:
    def __init__(
        self,
        endpoint: str,
        *,
        is_primary: bool,
        local: str,
        remote: str,
        heartbeat: float = 1000,
        on_change: Callable[[bool], object] | None = None,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        if on_change is not None:
            _checks.callback("on_change", on_change, "a function of a bool")
        self._pair = PairState(
            _checks.flag("is_primary", is_primary),
            _checks.number("heartbeat", heartbeat, 1),
            clock(),
        )
        self._machine: WorkerMachine[list[bytes]] = BinaryStarMachine(self._pair, on_change)
        clients = opener(context, SocketType.ROUTER, bind=endpoint, configure=configure)
        links = pair_links(context, configure, local, remote)
        self._driver = Driver(self._machine, links | {"clients": clients})

    @property
    def is_active(self) -> bool:
        """Whether this server serves the clients."""
        return self._pair.is_active


class BinaryStarServer(_BinaryStarServer, WorkerRunner[list[bytes]]):
    """One of two servers, of which one is active and the other one takes over when it dies.

    After a common start, the primary is active. The passive server ignores requests until its
    peer has been silent for two heartbeats and a client asks: then it becomes active. A server
    that restarts while its peer is active is passive. A server that finds that it did not run for two
    heartbeats steps down, because its peer may have taken over.

    The handler runs in the thread of `run`, and the peer hears nothing meanwhile. A handler that takes
    longer than two heartbeats makes its server look dead.

    Args:
        endpoint: Where to bind for clients: ``"tcp://*:5001"``.
        is_primary: Whether this is the primary. One server of a pair is.
        local: Where to bind for the peer.
        remote: Where the peer binds: its `local`, as this machine reaches it.
        heartbeat: How often the servers tell each other their state, in ms.
        on_change: A function that is called with True when this server becomes active, and with
            False when it ceases to be.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each socket before it binds or
            connects.

    Example:
        ```python
        server = BinaryStarServer(
            "tcp://*:5001", is_primary=True, local="tcp://*:5003", remote="tcp://backup:5004"
        )
        with server:
            server.run(lambda request: b"World")  # raises SplitBrain if both are active
        ```

    Source:
        The guide, chapter 4: Binary Star Pattern
    """


class AsyncBinaryStarServer(_BinaryStarServer, AsyncWorkerRunner[list[bytes]]):
    """A `BinaryStarServer` for asyncio, whose handler is a coroutine function.

    The peer is informed while the handler waits. The options are those of `BinaryStarServer`.

    Source:
        The guide, chapter 4: Binary Star Pattern
    """


class _BinaryStarClient:
    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        timeout: float = 1000,
        settle: float = 2000,
        attempts: int | None = None,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        servers = addresses("endpoints", endpoints)
        self._turn = Turn()
        settle = _checks.number("settle", settle)
        self._machine = machine = RetryMachine(len(servers), timeout, attempts, settle)
        open_socket = opener(
            context,
            SocketType.REQ,
            connect=lambda: [servers[machine.server]],
            configure=configure,
        )
        self._driver = Driver(machine, {LINK: open_socket})


class BinaryStarClient(_BinaryStarClient, Requester):
    """A client of two servers of the class `BinaryStarServer`.

    If one server does not reply, the request goes to the other one. This also is the vote that lets a
    passive server take over.

    Args:
        endpoints: Where the servers are, the primary first.
        timeout: How long to wait for the reply of one server, in ms.
        settle: How long to wait before the other server is asked, in ms. The passive server needs
            two of its heartbeats to notice that its peer is dead.
        attempts: How many times a request is sent at most; None for no limit.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with BinaryStarClient(["tcp://primary:5001", "tcp://backup:5001"]) as client:
            print(client.request(b"Hello"))
        ```

    Source:
        The guide, chapter 4: Binary Star Pattern
    """

    def request(self, body: Body) -> list[bytes]:
        """Sends a request and waits for the reply of the active server.

        Args:
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the reply.

        Raises:
            NoReply: No attempt had a reply in time.
        """
        return self._ask(as_parts(body))


class AsyncBinaryStarClient(_BinaryStarClient, AsyncRequester):
    """A `BinaryStarClient` for asyncio. Requests of several tasks wait for each other.

    The options are those of `BinaryStarClient`.

    Source:
        The guide, chapter 4: Binary Star Pattern
    """

    async def request(self, body: Body) -> list[bytes]:
        """Sends a request and waits for the reply of the active server.

        Args:
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the reply.

        Raises:
            NoReply: No attempt had a reply in time.
        """
        return await self._ask(as_parts(body))
