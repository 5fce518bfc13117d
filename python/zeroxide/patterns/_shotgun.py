"""Freelance, model 2: a client that asks all servers at once, and takes the first reply."""

from collections.abc import Sequence
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._asking import Asker, AskingMachine, AsyncAsker
from ._driver import Configure, Driver, addresses, opener
from ._machine import Body, as_parts
from ._turn import Turn
from ._waiting import Waiting, weight
from ._worker import AsyncWorkerRunner, WorkerMachine, WorkerRunner

__all__ = [
    "AsyncShotgunClient",
    "AsyncShotgunServer",
    "ShotgunClient",
    "ShotgunServer",
]


class ShotgunClientMachine(AskingMachine):
    """The client. Each server has its own link, so that each gets each request once."""

    def __init__(self, servers: int, timeout: float) -> None:
        super().__init__(timeout)
        # When the oldest request without a reply was sent, by server.
        self._unanswered: list[float | None] = [None] * servers

    def _start(self, now: float) -> None:
        for server, since in enumerate(self._unanswered):
            if since is not None and now - since >= self._timeout:
                # A dead server does not get what was asked meanwhile when it comes back.
                self._reopen(str(server))
                self._unanswered[server] = None
            self._send(str(server), b"", self._ticket, *self._body)
            if self._unanswered[server] is None:
                self._unanswered[server] = now

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        self._unanswered[int(link)] = None
        match parts:
            case [b"", ticket, *reply]:
                self._take(ticket, reply)


class ShotgunServerMachine(WorkerMachine[list[bytes]]):
    """The server: a reply begins with the number of its request."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: Waiting[tuple[bytes, bytes, list[bytes]]] = Waiting()
        self._current: tuple[bytes, bytes, list[bytes]] | None = None

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match parts:
            case [client, b"", ticket, _, *_]:
                self._requests.push((client, ticket, parts[3:]), weight(parts))
            case _:
                self.drop()

    def poll_request(self) -> list[bytes] | None:
        self._current = self._requests.pop()
        return None if self._current is None else self._current[2]

    def handle_reply(self, request: list[bytes], parts: list[bytes], now: float) -> None:
        if self._current is not None:
            client, ticket, _ = self._current
            self._send("clients", client, b"", ticket, *parts)

    def wants(self, link: str) -> bool:
        return self._requests.has_room


class _ShotgunClient:
    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        timeout: float = 2500,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        servers = addresses("endpoints", endpoints)
        self._turn = Turn()
        self._machine: AskingMachine = ShotgunClientMachine(
            len(servers), _checks.number("timeout", timeout)
        )
        links = {
            str(number): opener(context, SocketType.DEALER, connect=server, configure=configure)
            for number, server in enumerate(servers)
        }
        self._driver = Driver(self._machine, links)


class ShotgunClient(_ShotgunClient, Asker):
    """A client that sends each request to all servers, and takes the first reply.

    It needs no time to recover from the death of a server, at the cost of every server doing all the
    work. This is model 2 of the guide's Freelance Pattern.

    Args:
        endpoints: Where the servers are.
        timeout: How long to wait for the first reply, in ms.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Source:
        The guide, chapter 4: Freelance Pattern, model 2
    """

    def request(self, body: Body) -> list[bytes]:
        """Sends a request to all servers and waits for the first reply.

        Args:
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the reply.

        Raises:
            NoReply: No server replied in time.
        """
        return self._ask(as_parts(body))


class AsyncShotgunClient(_ShotgunClient, AsyncAsker):
    """A `ShotgunClient` for asyncio. Requests of several tasks wait for each other.

    The options are those of `ShotgunClient`.

    Source:
        The guide, chapter 4: Freelance Pattern, model 2
    """

    async def request(self, body: Body) -> list[bytes]:
        """Sends a request to all servers and waits for the first reply.

        Args:
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the reply.

        Raises:
            NoReply: No server replied in time.
        """
        return await self._ask(as_parts(body))


class _ShotgunServer:
    def __init__(
        self,
        endpoint: str,
        *,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        self._machine: WorkerMachine[list[bytes]] = ShotgunServerMachine()
        open_socket = opener(context, SocketType.ROUTER, bind=endpoint, configure=configure)
        self._driver = Driver(self._machine, {"clients": open_socket})

    @property
    def endpoint(self) -> str:
        """Where clients connect, with the port that the system chose."""
        return self._driver.endpoint("clients")


class ShotgunServer(_ShotgunServer, WorkerRunner[list[bytes]]):
    """A server of a `ShotgunClient`.

    Args:
        endpoint: Where to bind: ``"tcp://*:5555"``.
        context: The context of the socket; None for `Context.instance`.
        configure: A function that sets options, such as keys, of the socket before it binds.

    Source:
        The guide, chapter 4: Freelance Pattern, model 2
    """


class AsyncShotgunServer(_ShotgunServer, AsyncWorkerRunner[list[bytes]]):
    """A `ShotgunServer` for asyncio, whose handler is a coroutine function.

    The options are those of `ShotgunServer`.

    Source:
        The guide, chapter 4: Freelance Pattern, model 2
    """
