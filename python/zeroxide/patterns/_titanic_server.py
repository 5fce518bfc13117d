"""Titanic: a service that stores requests on the disk and executes them when their services are there."""

import heapq
import itertools
import os
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._beating_worker import LINK as QUEUE
from ._driver import AsyncRunner, Configure, Driver, Runner, clock, opener
from ._heartbeat import Backoff
from ._machine import Machine, Reopen, Send
from ._majordomo_client import MajordomoClientMachine
from ._majordomo_worker import MajordomoWorkerMachine
from ._mdp import PROTOCOLS, Protocol, Version
from ._retrying import LINK as SERVER
from ._retrying import NoReply
from ._spool import Spool

__all__ = ["AsyncTitanicServer", "TitanicServer"]

_REQUEST, _REPLY, _CLOSE = _SERVICES = ("titanic.request", "titanic.reply", "titanic.close")
_CLIENT = "client"

_OK = b"200 OK"
_PENDING = b"300 PENDING"
_UNKNOWN = b"400 UNKNOWN"
_ERROR = b"500 ERROR"


class TitanicMachine(Machine):
    """Three workers for clients' calls, and a client that executes the stored requests one by one.

    Args:
        spool: Where requests and replies are stored.
        workers: The workers, by service.
        client: The client of the services that requests are for.
        retry: How long a request waits after its service was not there or did not reply, in ms.
    """

    def __init__(
        self,
        spool: Spool,
        workers: dict[str, MajordomoWorkerMachine],
        client: MajordomoClientMachine,
        retry: float,
        now: float,
    ) -> None:
        super().__init__()
        self._spool = spool
        self._workers = workers
        self._client = client
        self._retry = retry
        # A heap of requests with the time from which on they may be tried.
        self._counter = itertools.count()
        self._pending = [(now, next(self._counter), name) for name in spool.pending()]
        # The request that is being executed, and whether its service is known to be there.
        self._current: str | None = None
        self._service = b""
        self._body: list[bytes] = []
        self._is_called = False
        self._work(now)

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        if link == _CLIENT:
            self._client.handle_message(SERVER, parts, now)
        else:
            self._workers[link].handle_message(QUEUE, parts, now)
        self._work(now)

    def handle_timeout(self, now: float) -> None:
        for machine in self._machines():
            machine.handle_timeout(now)
        self._work(now)

    def handle_close(self) -> None:
        for worker in self._workers.values():
            worker.handle_close()
        self._collect()

    def poll_timeout(self) -> float | None:
        due = [machine.poll_timeout() for machine in self._machines()]
        if self._current is None and self._pending:
            due.append(self._pending[0][0])
        return min((time for time in due if time is not None), default=None)

    @property
    def dropped(self) -> int:
        return self._dropped + sum(machine.dropped for machine in self._machines())

    def wants(self, link: str) -> bool:
        return link != _CLIENT or self._client.wants(SERVER)

    def _machines(self) -> list[Machine]:
        return [*self._workers.values(), self._client]

    def _work(self, now: float) -> None:
        for service, worker in self._workers.items():
            while (request := worker.poll_request()) is not None:
                worker.handle_reply(request, self._answer(service, request.parts, now), now)
        self._execute(now)
        self._collect()

    def _collect(self) -> None:
        for link, machine in [*self._workers.items(), (_CLIENT, self._client)]:
            while (command := machine.poll_command()) is not None:
                if isinstance(command, Send):
                    self._commands.append(Send(link, command.parts))
                elif isinstance(command, Reopen):
                    self._reopen(link, lingers=command.lingers)

    # ---- the three services

    def _answer(self, service: str, parts: list[bytes], now: float) -> list[bytes]:
        try:
            if service == _REQUEST:
                return self._accept(parts, now)
            name = self._spool.name(parts[0])
            if service == _CLOSE:
                return self._close(name)
            return [_UNKNOWN] if name is None else self._look_up(name)
        except OSError:
            return [_ERROR]

    def _accept(self, parts: list[bytes], now: float) -> list[bytes]:
        name = self._spool.add(parts if len(parts) > 1 else [*parts, b""])
        self._push(now, name)
        return [_OK, name.encode()]

    def _look_up(self, name: str) -> list[bytes]:
        reply = self._spool.reply(name)
        if reply is not None:
            return [_OK, *reply]
        return [_UNKNOWN if self._spool.request(name) is None else _PENDING]

    def _close(self, name: str | None) -> list[bytes]:
        if name is not None:
            self._spool.remove(name)
        return [_OK]

    # ---- the stored requests

    def _execute(self, now: float) -> None:
        """Continues with the current request, or begins one that is due."""
        if self._current is not None:
            try:
                reply = self._client.poll_reply()
            except NoReply:
                self._postpone(now)
            else:
                if reply is not None:
                    self._proceed(self._current, reply, now)
        while self._current is None and self._pending and self._pending[0][0] <= now:
            self._begin(heapq.heappop(self._pending)[2], now)

    def _begin(self, name: str, now: float) -> None:
        try:
            request = self._spool.request(name)
        except OSError:
            self._push(now + self._retry, name)
            return
        if request is None:
            return  # closed meanwhile
        self._current, self._is_called = name, False
        self._service, *self._body = request
        # A broker would keep the request of a service without workers for some time only.
        self._client.begin_service(b"mmi.service", [self._service], now)

    def _proceed(self, name: str, reply: list[bytes], now: float) -> None:
        if not self._is_called:
            if reply[0] != b"200":
                self._postpone(now)
                return
            self._is_called = True
            self._client.begin_service(self._service, self._body, now)
        elif not self._client.is_waiting:  # partial replies are not kept
            try:
                if self._spool.request(name) is not None:
                    self._spool.add_reply(name, reply)
                self._current = None
            except OSError:
                self._postpone(now)

    def _postpone(self, now: float) -> None:
        assert self._current is not None
        self._push(now + self._retry, self._current)
        self._current = None

    def _push(self, time: float, name: str) -> None:
        heapq.heappush(self._pending, (time, next(self._counter), name))


class _TitanicServer:
    def __init__(
        self,
        endpoint: str,
        folder: str | os.PathLike[str],
        *,
        version: Version = "0.1",
        heartbeat: float = 2500,
        liveness: int = 3,
        reconnect: float = 2500,
        timeout: float = 2500,
        retry: float = 1000,
        max_requests: int = 100_000,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        if version not in PROTOCOLS:
            raise ValueError(f'version is "0.1" or "0.2", not {_checks.shown(version)}')
        spool = Spool(
            _checks.path("folder", folder), _checks.whole("max_requests", max_requests, 1)
        )
        protocol: Protocol = PROTOCOLS[version]
        heartbeat = _checks.number("heartbeat", heartbeat, 1)
        liveness = _checks.whole("liveness", liveness, 1)
        wait = _checks.number("reconnect", reconnect, 1)
        now = clock()
        workers = {
            service: MajordomoWorkerMachine(
                protocol, service, heartbeat, liveness, Backoff(wait, wait), now
            )
            for service in _SERVICES
        }
        client = MajordomoClientMachine(protocol, timeout, 1)
        machine = TitanicMachine(spool, workers, client, _checks.number("retry", retry, 1), now)
        open_socket = opener(context, SocketType.DEALER, connect=endpoint, configure=configure)
        self._driver = Driver(machine, dict.fromkeys([*_SERVICES, _CLIENT], open_socket))


class TitanicServer(_TitanicServer, Runner):
    """Stores requests on the disk, and executes them when their services are there.

    It is a worker of a `MajordomoBroker` for ``titanic.request``, ``titanic.reply`` and
    ``titanic.close``, and a client of the services that the requests are for. Clients and workers
    need not run at the same time. A request that was accepted survives the death of every
    peer, and of this server.

    A request is executed again if no reply arrives, so it may be executed more than once.

    Args:
        endpoint: Where the broker is: ``"tcp://broker:5555"``.
        folder: Where requests and replies are stored. One server uses a folder.
        version: The version of the protocol: ``"0.1"`` or ``"0.2"``.
        heartbeat: How long the server is silent to the broker at most, in ms.
        liveness: A broker that is silent for this many heartbeats is dead.
        reconnect: How long to wait before a new connection replaces that to a dead broker, in ms.
        timeout: How long to wait for the reply of a service, in ms.
        retry: How long a request waits if its service is not there or does not reply, in ms.
        max_requests: How many requests are stored at most. Each counts until a client discards it.
            Further ones are refused.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each new socket before it
            connects.

    Example:
        ```python
        with TitanicServer("tcp://127.0.0.1:5555", "/var/spool/titanic") as server:
            server.run()
        ```

    Source:
        RFC 9, TSP
    """


class AsyncTitanicServer(_TitanicServer, AsyncRunner):
    """A `TitanicServer` for asyncio. Writing to the disk blocks the loop.

    The options are those of `TitanicServer`.

    Source:
        RFC 9, TSP
    """
