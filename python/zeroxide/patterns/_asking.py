"""One request at a time that carries a number, so that its reply is known among late ones."""

import itertools
from abc import abstractmethod
from types import TracebackType
from typing import Self

from .._closing import Closing
from ._driver import Driver, clock
from ._machine import Machine
from ._retrying import NoReply
from ._turn import Turn

__all__ = ["Asker", "AskingMachine", "AsyncAsker"]


class AskingMachine(Machine):
    """The state of the request; the subclass knows the servers.

    Args:
        timeout: How long to wait for the reply, in ms.
    """

    def __init__(self, timeout: float) -> None:
        super().__init__()
        self._timeout = timeout
        self._numbers = itertools.count(1)
        self._ticket = b""
        self._body: list[bytes] = []
        self._limit: float | None = None
        self._reply: list[bytes] | None = None
        self._error: NoReply | None = None

    def begin(self, body: list[bytes], now: float) -> None:
        """Sends a request. One that has no reply yet is given up."""
        self._forget_sends()
        self._ticket = b"%d" % next(self._numbers)
        self._body = body
        self._limit = now + self._timeout
        self._reply = self._error = None
        self._start(now)

    def handle_timeout(self, now: float) -> None:
        if self._limit is not None and now >= self._limit:
            self._limit = None
            self._error = NoReply(f"no server replied in {self._timeout:g} ms")

    def poll_timeout(self) -> float | None:
        return self._limit

    def poll_reply(self) -> list[bytes] | None:
        """Returns the reply, once.

        Raises:
            NoReply: There was none in time.
        """
        if self._error is not None:
            raise self._error
        reply, self._reply = self._reply, None
        return reply

    @property
    def _is_waiting(self) -> bool:
        return self._limit is not None

    @abstractmethod
    def _start(self, now: float) -> None:
        """Sends the request."""

    def _take(self, ticket: bytes, reply: list[bytes]) -> bool:
        """Accepts a reply, unless it is late."""
        if not self._is_waiting or ticket != self._ticket:
            return False
        self._reply = reply
        self._limit = None
        return True


class Asker(Closing):
    """The blocking form of such a client."""

    _driver: Driver
    _machine: AskingMachine

    def _ask(self, body: list[bytes]) -> list[bytes]:
        self._machine.begin(body, clock())
        while (reply := self._machine.poll_reply()) is None:
            self._driver.step()
        return reply

    def close(self) -> None:
        """Closes the sockets."""
        self._driver.close()


class AsyncAsker:
    """The asyncio form of such a client. Requests of several tasks wait for each other."""

    _driver: Driver
    _machine: AskingMachine
    _turn: Turn

    async def _ask(self, body: list[bytes]) -> list[bytes]:
        async with self._turn.lock():
            self._machine.begin(body, clock())
            while (reply := self._machine.poll_reply()) is None:
                await self._driver.step_async()
            return reply

    def close(self) -> None:
        """Closes the sockets."""
        self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
