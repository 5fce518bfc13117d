"""Freelance, model 1: a client that tries one server after the other."""

from collections.abc import Sequence
from typing import Any

from ..constants import SocketType
from ..context import Context
from ._driver import Configure, Driver, addresses, opener
from ._machine import Body, as_parts
from ._retrying import LINK, AsyncRequester, Requester, RetryMachine
from ._turn import Turn

__all__ = ["AsyncFailoverClient", "FailoverClient"]

# One server alone is tried this many times, as Lazy Pirate does.
_ATTEMPTS = 3


class _Failover:
    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        timeout: float = 1000,
        attempts: int | None = None,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        servers = addresses("endpoints", endpoints)
        if attempts is None:
            attempts = len(servers) if len(servers) > 1 else _ATTEMPTS
        self._turn = Turn()
        self._machine = machine = RetryMachine(len(servers), timeout, attempts)
        open_socket = opener(
            context,
            SocketType.REQ,
            connect=lambda: [servers[machine.server]],
            configure=configure,
        )
        self._driver = Driver(machine, {LINK: open_socket})


class FailoverClient(_Failover, Requester):
    """A client that tries one server after the other until one replies.

    It stays with the server that replied last. This is model 1 of the guide's Freelance Pattern: it
    needs nothing of the servers, which are REP sockets or queues, and each dead server
    on the way costs `timeout`.

    Args:
        endpoints: Where the servers are.
        timeout: How long to wait for the reply of one server, in ms.
        attempts: How many times a request is sent at most. None for once to each server, or for three
            times to a single one.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with FailoverClient(["tcp://one:5555", "tcp://two:5555"]) as client:
            print(client.request(b"Hello"))
        ```

    Source:
        The guide, chapter 4: Freelance Pattern, model 1
    """

    def request(self, body: Body) -> list[bytes]:
        """Sends a request and waits for the reply.

        Args:
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the reply.

        Raises:
            NoReply: No attempt had a reply in time.
        """
        return self._ask(as_parts(body))


class AsyncFailoverClient(_Failover, AsyncRequester):
    """A `FailoverClient` for asyncio. Requests of several tasks wait for each other.

    The options are those of `FailoverClient`.

    Source:
        The guide, chapter 4: Freelance Pattern, model 1
    """

    async def request(self, body: Body) -> list[bytes]:
        """Sends a request and waits for the reply.

        Args:
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the reply.

        Raises:
            NoReply: No attempt had a reply in time.
        """
        return await self._ask(as_parts(body))
