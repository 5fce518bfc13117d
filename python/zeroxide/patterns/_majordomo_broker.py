"""Majordomo: a broker between clients and the workers of named services."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._driver import AsyncRunner, Configure, Driver, Runner, opener
from ._heartbeat import Heartbeat
from ._machine import Machine, Send
from ._mdp import MDP_0_1, MDP_0_2, Disconnect, Protocol, Ready, Reply
from ._mdp import Heartbeat as Beat
from ._schedule import Schedule
from ._waiting import MAX_REQUEST_BYTES, weight

__all__ = ["AsyncMajordomoBroker", "MajordomoBroker"]

LINK = "peers"

# The names of services that the broker provides itself (RFC 8).
_MANAGEMENT = b"mmi."

# A request that was given to this many workers, all of which died, may be what kills them.
_TRIES = 3

_Key: TypeAlias = tuple[str, bytes]


@dataclass(slots=True)
class _Request:
    client: bytes
    body: list[bytes]
    expiry: float
    size: int
    tries: int = 0
    has_partial: bool = False


@dataclass(slots=True)
class _Worker:
    protocol: Protocol
    service: bytes
    beat: Heartbeat
    request: _Request | None = None


@dataclass(slots=True)
class _Service:
    requests: deque[_Request] = field(default_factory=deque)
    # Workers in the order in which they became idle.
    idle: dict[bytes, None] = field(default_factory=dict)
    workers: int = 0


class BrokerMachine(Machine):
    """The broker, for both versions side by side: a service has clients and workers of one version.

    Args:
        heartbeat: How long the broker is silent to a worker at most, in ms.
        liveness: A worker that is silent for this many heartbeats is dead.
        request_ttl: How long a request waits for a worker, in ms.
        max_requests: How many requests wait at most.
        max_request_bytes: How much memory they take. The last one may go beyond it.
    """

    def __init__(
        self,
        heartbeat: float,
        liveness: int,
        request_ttl: float,
        max_requests: int,
        max_request_bytes: int = MAX_REQUEST_BYTES,
    ) -> None:
        super().__init__()
        self._heartbeat = heartbeat
        self._liveness = liveness
        self._request_ttl = request_ttl
        self._max_requests = max_requests
        self._max_request_bytes = max_request_bytes
        self._waiting = self._waiting_bytes = 0
        self._services: dict[_Key, _Service] = {}
        self._workers: dict[bytes, _Worker] = {}
        # Lower bounds of what is due next: when a worker is looked at, and when the requests of a service are.
        self._beats: Schedule[bytes] = Schedule()
        self._expiries: Schedule[_Key] = Schedule()

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        match parts:
            case [client, b"", b"MDPC01", *frames]:
                self._on_request(MDP_0_1, client, frames, now)
            case [worker, b"", b"MDPW01", *frames]:
                self._on_worker(MDP_0_1, worker, frames, now)
            case [client, b"MDPC02", *frames]:
                self._on_request(MDP_0_2, client, frames, now)
            case [worker, b"MDPW02", *frames]:
                self._on_worker(MDP_0_2, worker, frames, now)
            case [peer, *_] if peer in self._workers:
                self.drop()
                self._dismiss(self._workers[peer].protocol, peer, now)
            case _:
                self.drop()

    def handle_unroutable(self, link: str, parts: list[bytes], now: float) -> None:
        worker = self._workers.get(parts[0])
        if worker is None:
            return
        if (request := worker.request) is not None:
            message = worker.protocol.write_worker_request(request.client, request.body)
            unsent = [parts, *(send.parts for send in self._commands if isinstance(send, Send))]
            # A heartbeat cannot be sent either if the worker has died of its request.
            if [parts[0], *message] in unsent:
                request.tries -= 1  # it never had the request
        self._remove(parts[0], now)

    def handle_timeout(self, now: float) -> None:
        for address in self._beats.pop_due(now):
            worker = self._workers.get(address)
            if worker is None:
                continue  # it went with another one
            if worker.beat.is_dead(now):
                self._remove(address, now)
                continue
            if worker.beat.is_due(now):
                worker.beat.sent(now)
                self._send(LINK, address, *worker.protocol.write_heartbeat())
            self._beats.set_by(address, worker.beat.next())
        for key in self._expiries.pop_due(now):
            service = self._services[key]
            self._expire(service, now)
            if service.requests:
                self._expiries.set_by(key, service.requests[0].expiry)
            self._drop_if_unused(key)

    def handle_close(self) -> None:
        for address, worker in self._workers.items():
            self._send(LINK, address, *worker.protocol.write_disconnect())
        self._workers.clear()
        self._beats.clear()

    def poll_timeout(self) -> float | None:
        dues = (self._beats.next(), self._expiries.next())
        return min((due for due in dues if due is not None), default=None)

    # ---- clients

    def _on_request(
        self, protocol: Protocol, client: bytes, frames: list[bytes], now: float
    ) -> None:
        command = protocol.read_request(frames)
        if command is None:
            self.drop()
            return
        name, body = command.address, command.body
        if name.startswith(_MANAGEMENT):
            answer = self._manage(protocol, name, body)
            reply = protocol.write_reply(name, [answer], is_final=True)
            self._send(LINK, client, *reply)
            return
        key = protocol.version, name
        service = self._services.get(key)
        # A request for an idle worker does not wait, and those that do must not stop it.
        if (service is not None and service.idle) or self._has_room():
            service = self._services.setdefault(key, _Service())
            expiry = now + self._request_ttl
            service.requests.append(_Request(client, body, expiry, weight([name, client, *body])))
            self._wait(key, service.requests[-1])
            self._dispatch(protocol, name, now)
        else:
            self.drop()

    def _has_room(self) -> bool:
        return self._waiting < self._max_requests and self._waiting_bytes < self._max_request_bytes

    def _manage(self, protocol: Protocol, name: bytes, body: list[bytes]) -> bytes:
        if name != b"mmi.service":
            return b"501"
        service = self._services.get((protocol.version, body[0]))
        return b"200" if service is not None and service.workers else b"404"

    # ---- workers

    def _on_worker(
        self, protocol: Protocol, address: bytes, frames: list[bytes], now: float
    ) -> None:
        worker = self._workers.get(address)
        command = protocol.read_from_worker(frames)
        if isinstance(command, Disconnect):
            if worker is not None:
                self._remove(address, now)
            return
        if isinstance(command, Ready):
            if worker is None and not command.service.startswith(_MANAGEMENT):
                self._add(protocol, address, command.service, now)
                return
        elif worker is not None and worker.protocol is protocol:
            if isinstance(command, Beat):
                worker.beat.received(now)
                return
            request = worker.request
            if isinstance(command, Reply) and request and request.client == command.address:
                self._on_reply(worker, address, request, command, now)
                return
        elif worker is None and command is None:
            self.drop()
            return  # not a worker
        self.drop()
        self._dismiss(protocol, address, now)

    def _on_reply(
        self, worker: _Worker, address: bytes, request: _Request, reply: Reply, now: float
    ) -> None:
        worker.beat.received(now)
        message = worker.protocol.write_reply(worker.service, reply.body, is_final=reply.is_final)
        self._send(LINK, request.client, *message)
        if not reply.is_final:
            request.has_partial = True
            return
        worker.request = None
        self._services[worker.protocol.version, worker.service].idle[address] = None
        self._dispatch(worker.protocol, worker.service, now)

    def _add(self, protocol: Protocol, address: bytes, name: bytes, now: float) -> None:
        beat = Heartbeat(self._heartbeat, self._liveness)
        beat.start(now)
        self._beats.set_by(address, beat.next())
        self._workers[address] = _Worker(protocol, name, beat)
        service = self._services.setdefault((protocol.version, name), _Service())
        service.workers += 1
        service.idle[address] = None
        self._dispatch(protocol, name, now)

    def _dismiss(self, protocol: Protocol, address: bytes, now: float) -> None:
        self._send(LINK, address, *protocol.write_disconnect())
        if address in self._workers:
            self._remove(address, now)

    def _remove(self, address: bytes, now: float) -> None:
        """Forgets a worker. Another one gets its request, unless the client has a part of the reply."""
        worker = self._workers.pop(address)
        self._beats.forget(address)
        key = worker.protocol.version, worker.service
        service = self._services[key]
        service.workers -= 1
        service.idle.pop(address, None)
        request = worker.request
        if request is None:
            pass
        elif request.tries >= _TRIES or request.has_partial:
            self.drop()
        else:
            service.requests.appendleft(request)
            self._wait(key, request)
            self._dispatch(worker.protocol, worker.service, now)
        self._drop_if_unused(key)

    # ---- services

    def _dispatch(self, protocol: Protocol, name: bytes, now: float) -> None:
        """Gives waiting requests to idle workers."""
        service = self._services[protocol.version, name]
        self._expire(service, now)
        while service.requests and service.idle:
            address = next(iter(service.idle))
            del service.idle[address]
            request = self._take(service)
            request.tries += 1
            worker = self._workers[address]
            worker.request = request
            worker.beat.sent(now)
            self._send(LINK, address, *protocol.write_worker_request(request.client, request.body))

    def _expire(self, service: _Service, now: float) -> None:
        while service.requests and service.requests[0].expiry <= now:
            self._take(service)
            self.drop()

    def _wait(self, key: _Key, request: _Request) -> None:
        self._waiting += 1
        self._waiting_bytes += request.size
        self._expiries.set_by(key, request.expiry)

    def _take(self, service: _Service) -> _Request:
        request = service.requests.popleft()
        self._waiting -= 1
        self._waiting_bytes -= request.size
        return request

    def _drop_if_unused(self, key: _Key) -> None:
        service = self._services.get(key)
        if service is not None and not service.workers and not service.requests:
            del self._services[key]
            self._expiries.forget(key)


class _Broker:
    def __init__(
        self,
        endpoint: str,
        *,
        heartbeat: float = 2500,
        liveness: int = 3,
        request_ttl: float = 60_000,
        max_requests: int = 10_000,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        machine = BrokerMachine(
            _checks.number("heartbeat", heartbeat, 1),
            _checks.whole("liveness", liveness, 1),
            _checks.number("request_ttl", request_ttl, 1),
            _checks.whole("max_requests", max_requests, 1),
            _checks.whole("max_request_bytes", max_request_bytes, 1),
        )
        open_socket = opener(
            context, SocketType.ROUTER, bind=endpoint, configure=configure, router_mandatory=True
        )
        self._driver = Driver(machine, {LINK: open_socket})

    @property
    def endpoint(self) -> str:
        """Where clients and workers connect, with the port that the system chose."""
        return self._driver.endpoint(LINK)


class MajordomoBroker(_Broker, Runner):
    """A broker between clients and the workers of named services.

    A request goes to the worker of its service that has been idle for the longest time. If a worker
    dies, another one gets its request, unless a partial reply has been sent; after three deaths,
    the request is dropped. Workers notice the death of the broker and register with the next one.

    The broker speaks versions 0.1 and 0.2. A client reaches the workers of its own version. The
    service ``mmi.service`` reports whether a service has workers.

    Args:
        endpoint: Where to bind for clients and workers: ``"tcp://*:5555"``.
        heartbeat: How long the broker is silent to a worker at most, in ms. The workers' value has
            to be about the same.
        liveness: A worker that is silent for this many heartbeats is dead.
        request_ttl: How long a request waits for a worker before it is dropped, in ms.
        max_requests: How many requests wait at most. Further ones are dropped, and their clients
            send them again.
        max_request_bytes: How much memory these requests take, about. The last one may go beyond it.
            Requests for idle workers do not wait, and always get through.
        context: The context of the socket; None for `Context.instance`.
        configure: A function that sets options, such as keys, of the socket before it binds.

    Source:
        RFC 7, MDP 0.1; RFC 18, MDP 0.2; RFC 8, MMI
    """


class AsyncMajordomoBroker(_Broker, AsyncRunner):
    """A `MajordomoBroker` for asyncio.

    The options are those of `MajordomoBroker`.

    Source:
        RFC 7, MDP 0.1; RFC 18, MDP 0.2; RFC 8, MMI
    """
