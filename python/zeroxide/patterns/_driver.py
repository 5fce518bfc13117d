"""Moves messages between a machine and its sockets, in a blocking loop or in asyncio.

Sends never wait. A message for which there is no room is lost, as on a broken connection, and
the patterns recover from that.
"""

import asyncio
import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .. import _checks
from .._closing import Closing
from ..constants import DONTWAIT, POLLIN, Errno, SocketOption
from ..context import Context
from ..error import Again, ZMQError, failure
from ..poll import zmq_poll
from ..socket import Socket
from ._machine import Machine, Send, Subscribe, ToAll

if TYPE_CHECKING:
    from ..asyncio import Poller

__all__ = [
    "AsyncRunner",
    "Configure",
    "Driver",
    "Open",
    "Runner",
    "addresses",
    "clock",
    "opener",
]

Configure = Callable[[Socket[Any]], object]
Open = Callable[[], Socket[Any]]

# Messages taken from one socket before the other sockets and the timers have their turn.
_TURN = 100

_CLOSED = "this object is closed"

# How many bytes a pipe holds.
_PIPE = 65_536

# How long a closed socket keeps sending what was handed to it.
_LINGER = 1000


def clock() -> float:
    """Returns the time that machines use."""
    return time.monotonic() * 1000


def addresses(argument: str, endpoints: Any) -> list[str]:
    """Returns a list of endpoints, of which there is at least one."""
    found = [
        _checks.address(endpoint)
        for endpoint in _checks.items(argument, endpoints, "a list of endpoints")
    ]
    if not found:
        raise ValueError(f"{argument} takes at least one endpoint")
    return found


def opener(
    context: Context[Any] | None,
    kind: int,
    *,
    bind: str | None = None,
    connect: Callable[[], list[str]] | str | None = None,
    configure: Configure | None = None,
    **options: Any,
) -> Open:
    """Returns a function that makes a socket, bound or connected; `connect` may be a function of its endpoints."""
    for endpoint in (bind, connect):
        if endpoint is not None and not callable(endpoint):
            _checks.address(endpoint)
    if configure is not None:
        _checks.callback("configure", configure, "a function of a socket")

    def open_socket() -> Socket[Any]:
        # A plain socket, whatever the context makes: both drivers use it.
        socket: Socket[Any] = (context or Context.instance()).socket(kind, Socket)
        try:
            socket.linger = _LINGER
            for name, value in options.items():
                setattr(socket, name, value)
            if configure is not None:
                configure(socket)
            if bind is not None:
                socket.bind(bind)
            if connect is not None:
                for endpoint in connect() if callable(connect) else [connect]:
                    socket.connect(endpoint)
        except BaseException:
            socket.close(linger=0)
            raise
        return socket

    return open_socket


class Driver:
    """One machine, and a socket for each of its links."""

    def __init__(self, machine: Machine, links: Mapping[str, Open]) -> None:
        self._machine = machine
        self._open = dict(links)
        self._sockets: dict[str, Socket[Any]] = {}
        # The poller of tasks, and what it polls.
        self._poller: tuple[Poller[Any], list[Socket[Any]]] | None = None
        # The poll of a task, and whether it was cancelled only to poll something else.
        self._waiting: Any = None
        self._is_nudged = False
        # A pipe. The lock keeps `stop` from writing to a descriptor that `close` has given back to the system. A
        # handler of a signal may interrupt both of them, and call `stop`.
        self._wake: tuple[int, int] | None = None
        self._wake_lock = threading.RLock()
        self._process = os.getpid()
        self._is_stopped = False
        self._is_closed = False
        # Whether an exception may have ended an earlier step while the machine or the sockets were changed.
        self._is_interrupted = False
        try:
            for link, open_socket in self._open.items():
                self._sockets[link] = open_socket()
        except BaseException:
            self.close()
            raise

    def endpoint(self, link: str) -> str:
        """Returns where a link is bound."""
        return self._sockets[link].last_endpoint.decode()

    @property
    def dropped(self) -> int:
        return self._machine.dropped

    def flush(self) -> None:
        """Carries out the machine's commands.

        An exception of a signal handler, such as Ctrl-C, may end it between any two steps.
        """
        if self._is_closed:
            raise failure(Errno.ENOTSOCK, _CLOSED)
        while (command := self._machine.peek_command()) is not None:
            if isinstance(command, Send):
                # A lost message is like one on a broken connection, but a repeated one could be the reply to
                # another request.
                self._machine.forget_command(command)
                self._send(command)
                continue
            # The others stay until they are done, and may be carried out again.
            if isinstance(command, Subscribe):
                option = SocketOption.SUBSCRIBE if command.is_on else SocketOption.UNSUBSCRIBE
                self._sockets[command.link].set(option, command.topic)
            elif isinstance(command, ToAll):
                # Set again, it makes the socket forget the subscriber.
                self._sockets[command.link].set(SocketOption.XPUB_MANUAL_LAST_VALUE, 1)
            else:
                self._sockets[command.link].close(linger=None if command.lingers else 0)
                self._sockets[command.link] = self._open[command.link]()
            self._machine.forget_command(command)

    def step(self, limit: float | None = None) -> None:
        """Waits until a message arrives or something is due, `limit` ms at most, and handles it."""
        self._prepare()
        pairs: list[tuple[Any, int]] = [(socket, POLLIN) for socket in self._wanted()]
        if (wake := self._wake) is not None:
            pairs.append((wake[0], POLLIN))
        zmq_poll(pairs, self._patience(limit))
        self._empty_wake()
        self._take()

    async def step_async(self, limit: float | None = None) -> None:
        """Does the same in asyncio."""
        from ..asyncio import Poller

        self._prepare()
        wanted = self._wanted()
        if self._poller is None or wanted != self._poller[1]:
            poller: Poller[Any] = Poller()
            for socket in wanted:
                poller.register(socket, POLLIN)
            self._poller = poller, wanted
        self._waiting = self._poller[0].poll(self._patience(limit))
        try:
            await self._waiting
        except asyncio.CancelledError:
            task = asyncio.current_task()
            is_cancelled = task is not None and task.cancelling()
            if self._is_closed and not is_cancelled:
                raise failure(Errno.ENOTSOCK, _CLOSED) from None
            if not self._is_nudged or is_cancelled:
                raise
        finally:
            self._waiting = None
            self._is_nudged = False
        self._take()

    def nudge(self) -> None:
        """Makes a `step_async` of another task look again at what the machine wants."""
        if self._waiting is not None and not self._waiting.done():
            self._is_nudged = True
            self._waiting.cancel()

    def prepare_stop(self) -> None:
        """Makes `stop` end a `step` that waits in another thread."""
        with self._wake_lock:
            if self._wake is None and not self._is_closed:
                self._wake = os.pipe()
                # Neither a write to a full pipe nor a read from an empty one waits.
                for descriptor in self._wake:
                    os.set_blocking(descriptor, False)

    def forget_stop(self) -> None:
        """Lets steps wait again, after the loop that `stop` was to end."""
        self._is_stopped = False

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    def stop(self) -> None:
        """Makes the steps of another thread return at once from now on."""
        if self._process != os.getpid():
            # The pipe wakes the parent, and the lock may be held by a thread that the child does not have.
            return
        self._is_stopped = True
        with self._wake_lock:
            if self._wake is not None:
                with contextlib.suppress(BlockingIOError):
                    os.write(self._wake[1], b"\0")

    def _empty_wake(self) -> None:
        with self._wake_lock:
            if self._wake is not None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake[0], _PIPE)

    def close(self) -> None:
        """Closes the sockets, after the last commands."""
        try:
            if self._sockets.keys() == self._open.keys() and not self._is_closed:
                self._machine.handle_close()
                with contextlib.suppress(ZMQError):  # the context may be terminated
                    self.flush()
        finally:
            # From here on, no socket is opened again: it would never be closed.
            self._is_closed = True
            self._close()

    def _close(self) -> None:
        for socket in self._sockets.values():
            socket.close()
        with self._wake_lock:
            wake, self._wake = self._wake, None
            for descriptor in wake or ():
                os.close(descriptor)
        self._poller = None

    def _send(self, command: Send) -> None:
        try:
            self._sockets[command.link].send_multipart(command.parts, DONTWAIT)
        except Again:
            self._machine.drop()
        except ZMQError as error:
            if error.errno != Errno.EHOSTUNREACH:
                raise
            self._machine.handle_unroutable(command.link, command.parts, clock())

    def _wanted(self) -> list[Socket[Any]]:
        wants = self._machine.wants
        return [socket for link, socket in self._sockets.items() if wants(link)]

    def _patience(self, limit: float | None) -> int:
        due = self._machine.poll_timeout()
        waits = [] if limit is None else [limit]
        if due is not None:
            waits.append(max(0.0, due - clock()))
        return math.ceil(min(waits)) if waits else -1

    def _prepare(self) -> None:
        if self._is_interrupted:
            self._machine.handle_interruption(clock())
        self._is_interrupted = True
        self.flush()
        self._is_interrupted = False

    def _take(self) -> None:
        self._is_interrupted = True
        # Messages first: a peer whose heartbeat has arrived is alive, however late this process reads it.
        for link in self._sockets:
            for _ in range(_TURN):
                if not self._machine.wants(link):
                    break
                try:
                    # A message may have caused another socket here.
                    parts = self._sockets[link].recv_multipart(DONTWAIT)
                except Again:
                    break
                self._machine.handle_message(link, parts, clock())
                self.flush()
        now = clock()
        due = self._machine.poll_timeout()
        if due is not None and due <= now:
            self._machine.handle_timeout(now)
        self.flush()
        self._is_interrupted = False


class Runner(Closing):
    """The blocking form of a server: it works while `run` runs."""

    _driver: Driver

    @property
    def dropped(self) -> int:
        """How many messages were not what the protocol asks for, or found no room, and went no further."""
        return self._driver.dropped

    def run(self) -> None:
        """Serves until `stop` is called in another thread, or an exception such as Ctrl-C ends it.

        Raises:
            ContextTerminated: The context was terminated.
        """
        self._driver.prepare_stop()
        while not self._driver.is_stopped:
            self._driver.step()
        self._driver.forget_stop()

    def stop(self) -> None:
        """Makes `run` return, in this thread or another one.

        If `run` is not running, its next call returns at once. Calls after that serve again.
        """
        self._driver.stop()

    def close(self) -> None:
        """Closes the sockets."""
        self._driver.close()


class AsyncRunner:
    """The asyncio form of a server: it works while a task runs `run`."""

    _driver: Driver

    @property
    def dropped(self) -> int:
        """How many messages were not what the protocol asks for, or found no room, and went no further."""
        return self._driver.dropped

    async def run(self) -> None:
        """Serves until its task is cancelled.

        Raises:
            ContextTerminated: The context was terminated.
        """
        while True:
            await self._driver.step_async()

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
