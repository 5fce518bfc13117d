"""Runs a handler for the requests that a worker's machine has received, one at a time."""

import asyncio
import contextlib
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

    # The following do nothing unless a machine overrides them.

    def handle_start(self, now: float) -> None:
        """Begins to ask for requests again, after `handle_end`."""

    def handle_end(self, now: float) -> None:
        """Leaves the queue after an exception. It gives up the requests without a reply, so that their clients ask again."""


class _Serving(Generic[R]):
    """The ends of `run`."""

    _driver: Driver
    _machine: WorkerMachine[R]
    _is_serving = False

    def _start(self) -> None:
        if self._is_serving:
            # An exception, such as a second Ctrl-C, has also ended `_give_up`.
            self._machine.handle_end(clock())
        self._is_serving = True
        self._machine.handle_start(clock())

    def _give_up(self) -> None:
        self._machine.handle_end(clock())
        # The caller gets the exception that has ended `run`. If a socket cannot be opened, the next `run` reports it.
        with contextlib.suppress(Exception):
            self._driver.flush()
        self._is_serving = False


class WorkerRunner(_Serving[R], Closing):
    """The blocking form of a worker.

    No heartbeat is sent while the handler runs, so a handler that takes longer than the heartbeats
    allow makes its worker look dead.
    """

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
            self._start()
            while not self._driver.is_stopped:
                request = self._machine.poll_request()
                if request is None:
                    self._driver.step()
                else:
                    reply = as_parts(handler(request))
                    self._machine.handle_reply(request, reply, clock())
                    self._driver.step(0)  # heartbeats, however many requests wait
            self._is_serving = False
            self._driver.forget_stop()
        except BaseException:
            self._give_up()
            raise

    def stop(self) -> None:
        """Makes `run` return, in this thread or another one, after the request it is answering.

        If `run` is not running, its next call returns at once. Calls after that serve again.
        """
        self._driver.stop()

    def close(self) -> None:
        """Closes the socket."""
        self._driver.close()


class AsyncWorkerRunner(_Serving[R]):
    """The asyncio form of a worker. Heartbeats continue while the handler waits."""

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
        try:
            self._start()
            await self._serve(handler)
        except BaseException:
            self._give_up()
            raise

    async def _serve(self, handler: Callable[[R], Awaitable[Body]]) -> None:
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
