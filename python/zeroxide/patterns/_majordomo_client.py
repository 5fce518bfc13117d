"""Majordomo: clients."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._driver import Configure, Driver, clock, opener
from ._machine import Body, as_parts
from ._mdp import PROTOCOLS, Protocol, Version
from ._retrying import LINK, AsyncRequester, Requester, RetryMachine
from ._turn import Turn

__all__ = ["AsyncMajordomoClient", "MajordomoClient"]


class MajordomoClientMachine(RetryMachine):
    """The client. A request is not repeated after its first partial reply."""

    def __init__(self, protocol: Protocol, timeout: float, attempts: int | None) -> None:
        super().__init__(1, timeout, attempts)
        self._protocol = protocol
        self._service = b""
        self._has_partial = False

    def begin_service(self, service: bytes, body: list[bytes], now: float) -> None:
        """Sends a request to a service."""
        self._service = service
        self._has_partial = False
        self.begin(self._protocol.write_request(service, body), now)

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        reply = self._protocol.read_reply(parts)
        if self._request is None or reply is None or reply.address != self._service:
            return
        self._replies.append(reply.body)
        if reply.is_final:
            self._finish()
        else:
            self._has_partial = True
            self._left = 1
            self._due = now + self._timeout

    def _reason(self) -> str:
        if self._has_partial:
            return f"the reply ended after a part, and nothing followed for {self._timeout:g} ms"
        return super()._reason()


class _Client:
    def __init__(
        self,
        endpoint: str,
        *,
        version: Version = "0.1",
        timeout: float = 2500,
        attempts: int | None = 3,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        if version not in PROTOCOLS:
            raise ValueError(f'version is "0.1" or "0.2", not {_checks.shown(version)}')
        self._turn = Turn()
        machine = MajordomoClientMachine(PROTOCOLS[version], timeout, attempts)
        self._machine: RetryMachine = machine
        self._majordomo = machine
        # A DEALER for both versions: it can receive several replies, and writes REQ's delimiter itself.
        open_socket = opener(context, SocketType.DEALER, connect=endpoint, configure=configure)
        self._driver = Driver(machine, {LINK: open_socket})

    def _begin(self, service: str, body: Body) -> None:
        name = _checks.name("service", service).encode()
        self._majordomo.begin_service(name, as_parts(body), clock())


class MajordomoClient(_Client, Requester):
    """A client of the services behind a `MajordomoBroker`.

    It sends a request again if no reply arrives, so a service may execute a request more than
    once.

    Args:
        endpoint: Where the broker is: ``"tcp://broker:5555"``.
        version: The version of the protocol: ``"0.1"`` or ``"0.2"``, as the workers.
        timeout: How long to wait for the reply to one attempt, in ms, and for the next partial
            reply.
        attempts: How many times a request is sent at most; None for no limit.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with MajordomoClient("tcp://127.0.0.1:5555") as client:
            print(client.request("upper", b"Hello"))
        ```

    Source:
        RFC 7, MDP 0.1; RFC 18, MDP 0.2; RFC 8, MMI
    """

    def request(self, service: str, body: Body) -> list[bytes]:
        """Sends a request to a service and waits for the reply.

        Args:
            service: The name of the service.
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the last reply. `stream` returns partial replies, too.

        Raises:
            NoReply: No attempt had a reply in time.
        """
        *_, last = self.stream(service, body)
        return last

    def stream(self, service: str, body: Body) -> Iterator[list[bytes]]:
        """Sends a request to a service and iterates over its replies.

        The request is not repeated after the first partial reply.

        Args:
            service: The name of the service.
            body: The request: bytes, or a list of parts.

        Yields:
            The parts of each partial reply, and of the last one.

        Raises:
            NoReply: No attempt had a reply in time, or the replies stopped before the last one.
            RuntimeError: The client has sent another request before the iteration ended.
        """
        self._begin(service, body)
        begun = self._machine.begun
        while self._machine.begun == begun:
            if self._machine.is_waiting:
                yield self._next()
            elif (reply := self._machine.poll_reply()) is not None:
                yield reply
            else:
                return
        raise RuntimeError("another request has ended this iteration")

    def has_service(self, service: str) -> bool:
        """Asks the broker whether a service has workers.

        Args:
            service: The name of the service.

        Returns:
            Whether at least one worker is registered.

        Raises:
            NoReply: No attempt had a reply in time.
            NotImplementedError: The broker does not know about its services.
        """
        return _has_service(self.request("mmi.service", _checks.name("service", service).encode()))


class AsyncMajordomoClient(_Client, AsyncRequester):
    """A `MajordomoClient` for asyncio. Requests of several tasks wait for each other.

    The options are those of `MajordomoClient`.

    Source:
        RFC 7, MDP 0.1; RFC 18, MDP 0.2; RFC 8, MMI
    """

    async def request(self, service: str, body: Body) -> list[bytes]:
        """Sends a request to a service and waits for the reply.

        Args:
            service: The name of the service.
            body: The request: bytes, or a list of parts.

        Returns:
            The parts of the last reply. `stream` returns partial replies, too.

        Raises:
            NoReply: No attempt had a reply in time.
        """
        last: list[bytes] = []
        async for reply in self.stream(service, body):
            last = reply
        return last

    async def stream(self, service: str, body: Body) -> AsyncIterator[list[bytes]]:
        """Sends a request to a service and iterates over its replies.

        The request is not repeated after the first partial reply. Other requests wait until the
        iteration ends.

        Args:
            service: The name of the service.
            body: The request: bytes, or a list of parts.

        Yields:
            The parts of each partial reply, and of the last one.

        Raises:
            NoReply: No attempt had a reply in time, or the replies stopped before the last one.
        """
        async with self._turn.lock():
            self._begin(service, body)
            while self._machine.is_waiting:
                yield await self._next()
            while (reply := self._machine.poll_reply()) is not None:
                yield reply

    async def has_service(self, service: str) -> bool:
        """Asks the broker whether a service has workers.

        Args:
            service: The name of the service.

        Returns:
            Whether at least one worker is registered.

        Raises:
            NoReply: No attempt had a reply in time.
            NotImplementedError: The broker does not know about its services.
        """
        name = _checks.name("service", service).encode()
        return _has_service(await self.request("mmi.service", name))


def _has_service(reply: list[bytes]) -> bool:
    match reply:
        case [b"200", *_]:
            return True
        case [b"404", *_]:
            return False
    raise NotImplementedError(f"mmi.service of the broker answered {_checks.shown(reply)}")
