"""Runs a handler for the requests that a worker's machine has received, one at a time."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from .. import _checks
from .._closing import Closing
from ._driver import Driver, clock
from ._machine import Body, Machine, as_parts

__all__ = ["AsyncWorkerRunner", "WorkerMachine", "WorkerRunner"]

R = TypeVar("R")


class WorkerMachine(Machine, Generic[R]):
    """A machine that has requests to answer."""

    @abstractmethod
    def poll_request(self) -> R | None:
        """Returns the next request, once."""

    @abstractmethod
    def handle_reply(self, request: R, parts: list[bytes], now: float) -> None:
        """Takes the reply to the request that was polled last."""


class WorkerRunner(Closing, Generic[R]):
    """The blocking form of a worker.

    No heartbeat is sent while the handler runs, so a handler that takes longer than the heartbeats
    allow makes its worker look dead.
    """

    _driver: Driver
    _machine: WorkerMachine[R]

    @property
    def dropped(self) -> int:
        """How many messages were not what the protocol asks for, or found no room, and went no further."""
        return self._driver.dropped

    def run(self, handler: Callable[[R], Body]) -> None:
        """Answers requests until `stop` is called in another thread, or an exception ends it.

        Args:
            handler: A function of a request that returns the reply: bytes, or a list of parts. An
                exception that it raises ends `run`, and the request gets no reply.

        Raises:
            ContextTerminated: The context was terminated.
        """
        _checks.callback("handler", handler, "a function of a request that returns the reply")
        self._driver.prepare_stop()
        try:
            while not self._driver.is_stopped:
                request = self._machine.poll_request()
                if request is None:
                    self._driver.step()
                else:
                    reply = as_parts(handler(request))
                    self._machine.handle_reply(request, reply, clock())
                    self._driver.step(0)  # heartbeats, however many requests wait
        finally:
            self._driver.forget_stop()

    def stop(self) -> None:
        """Makes `run` return, in this thread or another one, after the request it is answering.

        If `run` is not running, its next call returns at once. Calls after that serve again.
        """
        self._driver.stop()

    def close(self) -> None:
        """Closes the socket."""
        self._driver.close()


class AsyncWorkerRunner(Generic[R]):
    """The asyncio form of a worker. Heartbeats continue while the handler waits."""

    _driver: Driver
    _machine: WorkerMachine[R]

    @property
    def dropped(self) -> int:
        """How many messages were not what the protocol asks for, or found no room, and went no further."""
        return self._driver.dropped

    async def run(self, handler: Callable[[R], Awaitable[Body]]) -> None:
        """Answers requests until its task is cancelled, or an exception ends it.

        Args:
            handler: A coroutine function of a request that returns the reply: bytes, or a list of
                parts. An exception that it raises ends `run`, and the request gets no reply.

        Raises:
            ContextTerminated: The context was terminated.
        """
        _checks.callback(
            "handler", handler, "a coroutine function of a request that returns the reply"
        )
        arrived = asyncio.Event()
        pump = asyncio.ensure_future(self._pump(arrived))
        pump.add_done_callback(lambda _: arrived.set())
        try:
            while True:
                await arrived.wait()
                arrived.clear()
                if pump.done():
                    await pump
                while (request := self._machine.poll_request()) is not None:
                    reply = as_parts(await handler(request))
                    self._machine.handle_reply(request, reply, clock())
                    self._driver.flush()
                    self._driver.nudge()  # there is room for requests again
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)

    async def _pump(self, arrived: asyncio.Event) -> None:
        while True:
            await self._driver.step_async()
            arrived.set()

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
