"""Lazy Pirate: a client that gives up on a silent server and asks again."""

from typing import Any

from ..constants import SocketType
from ..context import Context
from ._driver import Configure, Driver, opener
from ._machine import Body, as_parts
from ._retrying import LINK, AsyncRequester, Requester, RetryMachine
from ._turn import Turn

__all__ = ["AsyncLazyPirateClient", "LazyPirateClient"]


class _LazyPirate:
    def __init__(
        self,
        endpoint: str,
        *,
        timeout: float = 2500,
        attempts: int | None = 3,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        self._turn = Turn()
        self._machine = RetryMachine(1, timeout, attempts)
        open_socket = opener(context, SocketType.REQ, connect=endpoint, configure=configure)
        self._driver = Driver(self._machine, {LINK: open_socket})


class LazyPirateClient(_LazyPirate, Requester):
    """A client that survives the death and restart of its server.

    It sends a request, waits for the reply, and otherwise closes its REQ socket, opens another
    and sends the request again. The server may execute a request more than once. It may be a REP
    socket, a `SimplePirateQueue` or a `ParanoidPirateQueue`.

    Args:
        endpoint: Where the server is: ``"tcp://server:5555"``.
        timeout: How long to wait for the reply to one attempt, in ms.
        attempts: How many times a request is sent at most; None for no limit.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with LazyPirateClient("tcp://127.0.0.1:5555") as client:
            print(client.request(b"Hello"))
        ```

    Source:
        The guide, chapter 4: Lazy Pirate Pattern
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


class AsyncLazyPirateClient(_LazyPirate, AsyncRequester):
    """A `LazyPirateClient` for asyncio. Requests of several tasks wait for each other.

    The options are those of `LazyPirateClient`.

    Source:
        The guide, chapter 4: Lazy Pirate Pattern
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
