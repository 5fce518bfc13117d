"""Sends one request at a time, and sends it again on a new socket while no reply arrives."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from .. import _checks
from .._closing import Closing
from ._driver import Driver, clock
from ._machine import Machine
from ._turn import Turn

__all__ = ["AsyncRequester", "NoReply", "Requester", "RetryMachine"]

LINK = "server"


class NoReply(TimeoutError):
    """No reply arrived in time, after all attempts.

    The request may have been executed nevertheless: its reply may be what was lost.

    Source:
        zeroxide only
    """


class RetryMachine(Machine):
    """The client of one of several servers, which it tries in turn.

    Each attempt has its own socket, so a late reply to an earlier attempt is never taken for the
    reply to a later request.

    Args:
        servers: How many servers there are. The attempts go around them.
        timeout: How long to wait for the reply to one attempt, in ms.
        attempts: How many times a request is sent at most; None for no limit.
        settle: How long to wait before the next server is tried, in ms.
    """

    def __init__(
        self, servers: int, timeout: float, attempts: int | None, settle: float = 0
    ) -> None:
        super().__init__()
        self.server = 0
        self.begun = 0
        """How many requests were begun: an iteration over the replies to an earlier one is over."""
        self._servers = servers
        self._timeout = _checks.number("timeout", timeout)
        self._attempts = None if attempts is None else _checks.whole("attempts", attempts, 1)
        self._settle = settle
        self._request: list[bytes] | None = None
        self._replies: list[list[bytes]] = []
        self._left: int | None = None
        self._due: float | None = None
        self._is_settling = False
        self._is_used = False
        self._error: NoReply | None = None

    def begin(self, request: Sequence[bytes], now: float) -> None:
        """Sends a request. One that has no reply yet is given up."""
        self.begun += 1
        # An exception may have ended the earlier request at any place. As long as its socket may have been used, the
        # mark for that is set.
        self._commands.clear()
        self._request = list(request)
        self._replies.clear()
        self._error = None
        self._left = self._attempts
        self._is_settling = False
        if self._is_used:
            self._reopen(LINK)
        self._attempt(now)

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        if self._request is not None and (reply := self._read(parts)) is not None:
            self._replies.append(reply)
            self._finish()

    def handle_timeout(self, now: float) -> None:
        if self._request is None or self._due is None or now < self._due:
            return
        if self._is_settling:
            self._is_settling = False
            self._reopen(LINK)
            self._attempt(now)
            return
        if self._left is not None:
            self._left -= 1
        if self._left == 0:
            self._give_up()
            return
        self.server = (self.server + 1) % self._servers
        self._is_settling = True
        self._due = now + self._settle
        self.handle_timeout(now)

    def poll_reply(self) -> list[bytes] | None:
        """Returns the reply, once.

        Raises:
            NoReply: There was none in any attempt.
        """
        if self._replies:
            return self._replies.pop(0)
        if self._error is not None:
            raise self._error
        return None

    @property
    def is_waiting(self) -> bool:
        """Whether more of the reply may arrive."""
        return self._request is not None

    def poll_timeout(self) -> float | None:
        return self._due

    def wants(self, link: str) -> bool:
        return self._request is not None  # a REQ without a request cannot receive

    def _read(self, parts: list[bytes]) -> list[bytes] | None:
        """Returns the reply in a message, or None for a message that is not the reply."""
        return parts

    def _attempt(self, now: float) -> None:
        assert self._request is not None
        self._is_used = True
        self._send(LINK, *self._request)
        self._due = now + self._timeout

    def _finish(self) -> None:
        self._request = self._due = None
        self._is_used = False

    def _give_up(self) -> None:
        self._error = NoReply(self._reason())
        # The next request begins with the next server, since this one did not answer.
        self.server = (self.server + 1) % self._servers
        self._request = self._due = None

    def _reason(self) -> str:
        tried = f"{self._attempts} attempts" if self._attempts != 1 else "one attempt"
        return f"no reply in {tried} of {self._timeout:g} ms each"


class Requester(Closing):
    """The blocking form of a client."""

    _driver: Driver
    _machine: RetryMachine

    def _ask(self, request: Sequence[bytes]) -> list[bytes]:
        self._machine.begin(request, clock())
        return self._next()

    def _next(self) -> list[bytes]:
        while (reply := self._machine.poll_reply()) is None:
            self._driver.step()
        return reply

    def close(self) -> None:
        """Closes the socket."""
        self._driver.close()


class AsyncRequester:
    """The asyncio form of a client. Requests of several tasks wait for each other."""

    _driver: Driver
    _machine: RetryMachine
    _turn: Turn

    async def _ask(self, request: Sequence[bytes]) -> list[bytes]:
        async with self._turn.lock():
            self._machine.begin(request, clock())
            return await self._next()

    async def _next(self) -> list[bytes]:
        while (reply := self._machine.poll_reply()) is None:
            await self._driver.step_async()
        return reply

    def close(self) -> None:
        """Closes the socket."""
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
