"""Freelance, model 3: clients that know which of their servers live, and ask one of these."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._asking import Asker, AskingMachine, AsyncAsker
from ._driver import Configure, Driver, addresses, opener
from ._heartbeat import Backoff
from ._machine import Body, as_parts
from ._turn import Turn
from ._waiting import Waiting, weight
from ._worker import AsyncWorkerRunner, WorkerMachine, WorkerRunner

__all__ = [
    "AsyncFreelanceClient",
    "AsyncFreelanceServer",
    "FreelanceClient",
    "FreelanceServer",
]

PING = b"PING"
PONG = b"PONG"

# The time between the first two PINGs to a server without an answer, in ms. It doubles up to the regular time.
_FIRST_PING = 50


@dataclass(slots=True)
class _Server:
    pings: Backoff
    ping_at: float = 0.0
    expiry: float = 0.0
    was_asked: bool = field(default=False)


class FreelanceClientMachine(AskingMachine):
    """The client. A server that was silent for longer than `ttl` is dead until it answers a PING.

    Args:
        servers: The identities of the servers, the preferred one first.
        ping: How often a server is asked whether it lives, in ms.
        ttl: How long the answer counts, in ms.
        resend: How long to wait for one server before another one is asked, in ms.
        timeout: How long to wait for the reply, in ms.
    """

    def __init__(
        self, servers: list[bytes], ping: float, ttl: float, resend: float, timeout: float
    ) -> None:
        super().__init__(timeout)
        self._ping = ping
        self._ttl = ttl
        self._resend = resend
        self._servers = {name: _Server(Backoff(min(_FIRST_PING, ping), ping)) for name in servers}
        self._asked: bytes | None = None
        self._resend_at = 0.0

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match parts:
            case [name, ticket, *body] if name in self._servers:
                server = self._servers[name]
                server.expiry = now + self._ttl
                server.pings.reset()
                if body:
                    if self._take(ticket, body):
                        self._asked = None
                elif ticket != PONG:
                    return
                if self._is_waiting and self._asked is None:
                    self._ask_next(now)

    def handle_unroutable(self, link: str, parts: list[bytes], now: float) -> None:
        server = self._servers[parts[0]]
        server.expiry = now
        if len(parts) > 2 and self._asked == parts[0]:
            self._ask_next(now)

    def handle_timeout(self, now: float) -> None:
        super().handle_timeout(now)
        for name, server in self._servers.items():
            if now >= server.ping_at:
                wait = self._ping if server.expiry > now else server.pings.wait()
                server.ping_at = now + wait
                self._send("servers", name, PING)
        if not self._is_waiting:
            self._asked = None
        elif self._asked is not None and now >= self._resend_at:
            self._ask_next(now)

    def poll_timeout(self) -> float | None:
        if not self._is_waiting:
            return None
        assert self._limit is not None
        due = [server.ping_at for server in self._servers.values()]
        if self._asked is not None:
            due.append(self._resend_at)
        return min(self._limit, *due)

    def _start(self, now: float) -> None:
        self._asked = None
        for server in self._servers.values():
            server.was_asked = False
        self.handle_timeout(now)
        self._ask_next(now)

    def _ask_next(self, now: float) -> None:
        """Sends the request to the first living server that has not had it, or again to the first."""
        living = [name for name, server in self._servers.items() if server.expiry > now]
        if not living:
            self._asked = None
            return
        if all(self._servers[name].was_asked for name in living):
            for server in self._servers.values():
                server.was_asked = False
        self._asked = next(name for name in living if not self._servers[name].was_asked)
        self._servers[self._asked].was_asked = True
        self._resend_at = now + self._resend
        self._send("servers", self._asked, self._ticket, *self._body)


class FreelanceServerMachine(WorkerMachine[list[bytes]]):
    """The server: it answers PINGs, and returns the control frame of each request."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: Waiting[tuple[bytes, bytes, list[bytes]]] = Waiting()
        self._current: tuple[bytes, bytes, list[bytes]] | None = None

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match parts:
            case [client, b"PING"]:
                self._send("clients", client, PONG)
            case [client, control, _, *_] if self._requests.has_room:
                self._requests.push((client, control, parts[2:]), weight(parts))
            case _:
                self.drop()

    def poll_request(self) -> list[bytes] | None:
        self._current = self._requests.pop()
        return None if self._current is None else self._current[2]

    def handle_reply(self, request: list[bytes], parts: list[bytes], now: float) -> None:
        if self._current is not None:
            client, control, _ = self._current
            self._send("clients", client, control, *parts)


class _FreelanceClient:
    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        ping: float = 2000,
        ttl: float = 6000,
        resend: float = 1000,
        timeout: float = 3000,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        servers = addresses("endpoints", endpoints)
        self._turn = Turn()
        self._machine: AskingMachine = FreelanceClientMachine(
            [server.encode() for server in servers],
            _checks.number("ping", ping, 1),
            _checks.number("ttl", ttl, 1),
            _checks.number("resend", resend, 1),
            _checks.number("timeout", timeout),
        )
        open_socket = opener(
            context,
            SocketType.ROUTER,
            connect=lambda: servers,
            configure=configure,
            router_mandatory=True,
        )
        self._driver = Driver(self._machine, {"servers": open_socket})


class FreelanceClient(_FreelanceClient, Asker):
    """A client of several equal servers without a broker.

    It asks the first server of its list that lives, and another one if that does not answer. Which
    servers live is known from PINGs, which are sent while a request waits. This is model 3 of
    the guide's Freelance Pattern.

    Args:
        endpoints: Where the servers are, the preferred one first. They are also the servers'
            identities.
        ping: How often a server is asked whether it lives, in ms.
        ttl: How long a server that has answered counts as alive, in ms.
        resend: How long to wait for one server before another one is asked, in ms.
        timeout: How long to wait for the reply, in ms.
        context: The context of the socket; None for `Context.instance`.
        configure: A function that sets options, such as keys, of the socket before it connects.

    Example:
        ```python
        with FreelanceClient(["tcp://one:5555", "tcp://two:5555"]) as client:
            print(client.request(b"Hello"))
        ```

    Source:
        RFC 10, FLP; the guide, chapter 4: Freelance Pattern, model 3
    """

    def request(self, body: Body) -> list[bytes]:
        """Sends a request and waits for the reply.

        Args:
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the reply.

        Raises:
            NoReply: No server replied in time.
        """
        return self._ask(as_parts(body))


class AsyncFreelanceClient(_FreelanceClient, AsyncAsker):
    """A `FreelanceClient` for asyncio. Requests of several tasks wait for each other.

    The options are those of `FreelanceClient`.

    Source:
        RFC 10, FLP; the guide, chapter 4: Freelance Pattern, model 3
    """

    async def request(self, body: Body) -> list[bytes]:
        """Sends a request and waits for the reply.

        Args:
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the reply.

        Raises:
            NoReply: No server replied in time.
        """
        return await self._ask(as_parts(body))


class _FreelanceServer:
    def __init__(
        self,
        endpoint: str,
        *,
        public: str | None = None,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        identity = _checks.address(endpoint if public is None else public)
        if "*" in identity:
            raise ValueError(
                f"{identity!r} has a wildcard: public takes the endpoint that clients connect to"
            )
        self._machine: WorkerMachine[list[bytes]] = FreelanceServerMachine()
        open_socket = opener(
            context,
            SocketType.ROUTER,
            bind=endpoint,
            configure=configure,
            routing_id=identity.encode(),
        )
        self._driver = Driver(self._machine, {"clients": open_socket})


class FreelanceServer(_FreelanceServer, WorkerRunner[list[bytes]]):
    """A server in the pool of a `FreelanceClient`.

    The handler runs in the thread of `run`, and PINGs are not answered meanwhile. A handler that
    takes longer than a client's `ttl` makes its server look dead.

    Args:
        endpoint: Where to bind: ``"tcp://*:5555"``.
        public: Where clients connect, which is the server's identity: ``"tcp://10.0.0.7:5555"``. None
            if this is `endpoint`.
        context: The context of the socket; None for `Context.instance`.
        configure: A function that sets options, such as keys, of the socket before it binds.

    Raises:
        ValueError: There is a wildcard in the identity.

    Source:
        RFC 10, FLP; the guide, chapter 4: Freelance Pattern, model 3
    """


class AsyncFreelanceServer(_FreelanceServer, AsyncWorkerRunner[list[bytes]]):
    """A `FreelanceServer` for asyncio, whose handler is a coroutine function.

    PINGs are answered while the handler waits. The options are those of `FreelanceServer`.

    Source:
        RFC 10, FLP; the guide, chapter 4: Freelance Pattern, model 3
    """
