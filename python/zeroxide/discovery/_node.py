"""A node of a ZRE network, in a blocking form and for asyncio."""

import asyncio
import contextlib
import ipaddress
import math
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias
from uuid import UUID, uuid4

from .. import _checks
from .._closing import Closing
from ..constants import SocketType
from ..context import Context
from ..error import ZMQError
from ..socket import Socket
from ._beacon import Beacon, interfaces, own_address
from ._driver import Driver, clock
from ._events import Event, Peer
from ._gossip_machine import GossipMachine
from ._node_machine import NodeMachine, Timing
from ._services import Provider, provider, service_headers
from ._zgossip import MAX_FRAME
from ._zre import BEACON_PORT, MAX_GROUPS, MAX_HEADERS, MAX_HELLO, identity

__all__ = ["AsyncNode", "Node"]

Configure: TypeAlias = Callable[[Socket[Any]], object]

# A message of an application: one part or several.
Body: TypeAlias = bytes | Iterable[bytes]

_BYTES = (bytes, bytearray, memoryview)

# Messages that wait for one peer, at most. A peer for which there are more does not read.
_MAILBOX = 100_000

_MAX_MESSAGE = 64 * 1024 * 1024

# Of the sockets for gossip: what waits for one node, at most, and the largest message. A node for which there is more
# catches up later.
_GOSSIP = {"sndhwm_bytes": 128 * 1024, "maxmsgsize": MAX_FRAME}

_LOCALHOST = "127.0.0.1"


class _Node:
    def __init__(
        self,
        name: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        services: Mapping[str, str | bytes] | None = None,
        interface: str | None = None,
        port: int | None = None,
        gossip: str | Iterable[str] = (),
        gossip_bind: str | None = None,
        endpoint: str | None = None,
        advertised: str | None = None,
        interval: float = 1000,
        evasive: float = 5000,
        expired: float = 30_000,
        max_peers: int = 1024,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        uuid = uuid4()
        self._gossip_endpoint: str | None = None
        hubs = [gossip] if isinstance(gossip, str) else _checks.items("gossip", gossip, "endpoints")
        hubs = [_checks.address(hub) for hub in hubs]
        if port is None and not hubs and gossip_bind is None:
            port = BEACON_PORT
        if port is not None:
            port = _checks.whole("port", port, 1, 1 << 16)
        timing = Timing(
            _checks.number("interval", interval, 1),
            _checks.number("evasive", evasive, 1),
            _checks.number("expired", expired, 1),
        )
        host = _own_host(interface)
        if endpoint is None:
            endpoint = f"tcp://{host if interface is not None else '*'}:*"
        for address in (endpoint, gossip_bind, advertised):
            if address is not None:
                _checks.address(address)
        if configure is not None:
            _checks.callback("configure", configure, "a function of a socket")
        name = uuid.hex[:6].upper() if name is None else _name("name", name)
        checked = _checked_headers(headers or {}, services or {})
        most = _checks.whole("max_peers", max_peers, 1)
        own_context = None
        if context is None:
            context = own_context = Context()
            context.max_sockets = _max_sockets(most)

        def open_socket(kind: int, **options: Any) -> Socket[Any]:
            # A plain socket, whatever the context makes: the thread uses it.
            socket: Socket[Any] = context.socket(kind, Socket)
            try:
                for option, value in options.items():
                    setattr(socket, option, value)
                if configure is not None:
                    configure(socket)
            except BaseException:
                socket.close(linger=0)
                raise
            return socket

        def open_mailbox() -> Socket[Any]:
            # A peer sends nothing this way.
            own = identity(uuid)
            mailbox = open_socket(SocketType.DEALER, routing_id=own, sndhwm=_MAILBOX, rcvhwm=1)
            mailbox._leave_descriptors()
            return mailbox

        with contextlib.ExitStack() as opened:
            if own_context is not None:
                opened.callback(own_context.term)
            inbox = open_socket(SocketType.ROUTER, router_handover=True, maxmsgsize=_MAX_MESSAGE)
            opened.callback(inbox.close, linger=0)
            inbox.bind(endpoint)
            bound = inbox.last_endpoint.decode()
            clients = None
            if gossip_bind is not None:
                clients = open_socket(SocketType.ROUTER, router_mandatory=True, **_GOSSIP)
                opened.callback(clients.close, linger=0)
                clients.bind(gossip_bind)
                self._gossip_endpoint = clients.last_endpoint.decode()
            remotes = []
            for hub in hubs:
                remotes.append(open_socket(SocketType.DEALER, linger=0, **_GOSSIP))
                opened.callback(remotes[-1].close, linger=0)
                remotes[-1].connect(hub)
            beacon = None
            if port is not None:
                if not bound.startswith("tcp://"):
                    raise ValueError(f"beacons announce a tcp port, and endpoint is {endpoint!r}")
                beacon = Beacon(port, interface)
                opened.callback(beacon.close)
            addresses = _Addresses(bound, advertised, host)
            machine = NodeMachine(
                uuid,
                name,
                None if port is None else addresses.port,
                addresses.seen_from,
                checked,
                timing,
                most,
                clock(),
            )
            exchange = None
            if hubs or gossip_bind is not None:
                exchange = GossipMachine(len(hubs), clock())
                exchange.publish(uuid.hex.upper(), addresses.seen_from(""), clock())
            self._driver = Driver(
                machine, inbox, open_mailbox, beacon, exchange, clients, remotes, own_context
            )
            opened.pop_all()
        self._uuid = uuid
        self._name = name
        self._endpoint = addresses.seen_from("")
        self._finalizer = weakref.finalize(self, Driver.close, self._driver)

    @property
    def uuid(self) -> UUID:
        """The identity of this node, which is new for each object."""
        return self._uuid

    @property
    def name(self) -> str:
        """The name of this node."""
        return self._name

    @property
    def endpoint(self) -> str:
        """Where this node receives messages: ``tcp://192.168.1.7:49152``."""
        return self._endpoint

    @property
    def gossip_endpoint(self) -> str | None:
        """Where other nodes connect for gossip; None without `gossip_bind`."""
        return self._gossip_endpoint

    @property
    def peers(self) -> list[Peer]:
        """The peers that are there."""
        return self._driver.look(NodeMachine.peers)

    @property
    def groups(self) -> list[str]:
        """The groups that this node is in."""
        return self._driver.look(lambda machine: list(machine.own_groups))

    @property
    def dropped(self) -> int:
        """How many messages, beacons and tuples were not what the protocol asks for, or found no room."""
        return self._driver.dropped

    def peer(self, uuid: UUID) -> Peer | None:
        """Returns a peer.

        Args:
            uuid: Its identity, as in `Event.peer`.

        Returns:
            The peer; None if it is not there.
        """
        return self._driver.look(lambda machine: machine.peer(uuid))

    def providers(self, service: str) -> list[Provider]:
        """Returns the peers that offer a service, as far as this node knows now.

        Args:
            service: The name of the service.

        Returns:
            The providers, those first that have entered first.
        """
        _checks.name("service", service)
        found = (provider(peer, service) for peer in self.peers)
        return [each for each in found if each is not None]

    def join(self, group: str) -> None:
        """Joins a group. Members receive what other nodes shout to it.

        Args:
            group: Its name, of up to 255 bytes. A node is in 256 groups at most.

        Raises:
            ValueError: The name is too long, or there are too many groups.
        """
        group = _name("group", group)
        if len(self.groups) >= MAX_GROUPS:
            raise ValueError(f"a node is in {MAX_GROUPS} groups at most")
        self._driver.call(lambda machine: machine.join(group))

    def leave(self, group: str) -> None:
        """Leaves a group.

        Args:
            group: Its name.
        """
        group = _name("group", group)
        self._driver.call(lambda machine: machine.leave(group))

    def contest(self, group: str) -> None:
        """Joins a group, and stands for its leader. `Leader` reports who is elected.

        An election begins whenever a contestant meets a new member, and when the leader leaves.

        Args:
            group: Its name.
        """
        self.join(group)
        self._driver.call(lambda machine: machine.contest(group))

    def whisper(self, peer: UUID, body: Body) -> bool:
        """Sends a message to a peer. Never waits.

        Args:
            peer: The peer: `Event.peer`, or `Peer.uuid`.
            body: The message: bytes, or a list of parts.

        Returns:
            Whether the peer is there. If it is, the message is lost only if the peer exits.

        Raises:
            TypeError: `peer` is not a UUID, or `body` is not a message.
        """
        if not isinstance(peer, UUID):
            raise TypeError(f"peer takes a UUID, not {_checks.shown(peer)}")
        parts = _parts(body)
        return self._driver.call(lambda machine: machine.whisper(peer, parts))

    def shout(self, group: str, body: Body) -> int:
        """Sends a message to the members of a group, of which this node need not be one. Never waits.

        Args:
            group: The group.
            body: The message: bytes, or a list of parts.

        Returns:
            How many peers it was sent to.
        """
        group, parts = _name("group", group), _parts(body)
        return self._driver.call(lambda machine: machine.shout(group, parts))

    def close(self) -> None:
        """Says goodbye to the peers, and closes the sockets.

        If the node has a context of its own, the call waits until the goodbyes are sent, up to a second for peers that
        cannot be reached.
        """
        self._finalizer()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r} {self._uuid} at {self._endpoint}>"


class Node(_Node, Closing):
    """A node of a ZRE network: it finds the other nodes, and exchanges messages with them.

    Nodes find each other by UDP broadcasts, or through gossip if `gossip` or `gossip_bind` is given. The node
    works in a thread of its own from the start, so its peers see it alive while the program computes or
    waits. Times are in milliseconds.

    Args:
        name: A name for people; None for the beginning of the identity.
        headers: Properties that peers receive with `Enter`.
        services: The services that this program offers, and their tcp endpoints, such as `last_endpoint` of a socket:
            see `follow` and `survey`. Peers know them as headers ``X-SERVICE-name``.
        interface: The name or address of the only interface to use, such as ``"lo"``; None for all
            that broadcast.
        port: The UDP port of the beacons; None for 5670, or for no beacons if there is gossip.
        gossip: The gossip endpoints of other nodes to connect to.
        gossip_bind: Where other nodes connect for gossip: ``"tcp://*:5670"``.
        endpoint: Where to bind for messages; None for a free tcp port.
        advertised: Where peers reach `endpoint` from their side of a NAT.
        interval: How often a beacon is sent.
        evasive: A peer that is silent for this long is evasive. It gets pings from half of this time on.
        expired: A peer that is silent for this long is gone.
        max_peers: How many peers the node has at most.
        context: The context of the sockets; None for one of the node's own. Another one needs a ``MAX_SOCKETS`` of at least
            twice `max_peers`, plus what the program uses. An authenticator decides about the node's peers only if it has the
            same context.
        configure: A function that sets options of each socket before it binds or connects.

    Raises:
        ValueError: An argument is out of range, or no interface has this name or address.
        OSError: The port of the beacons cannot be shared.

    Example:
        ```python
        with Node("kitchen", headers={"room": "1"}) as node:
            node.join("chat")
            for event in node:
                match event:
                    case Enter(peer, name):
                        print(name, "is there")
                        node.whisper(peer, b"hello")
                    case Shout(_, name, "chat", content):
                        print(name, content)
        ```

    Source:
        RFC 36, ZRE; zyre(3)
    """

    def recv(self, timeout: float | None = None) -> Event | None:
        """Waits for the next event.

        From the first call on, 10,000 events or 64 MiB wait here. If there are more, messages wait in
        the sockets. A node that is never asked drops further events, and counts them in `dropped`.

        Args:
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            The event; None if the time is up.

        Raises:
            ZMQError: The node is closed.
            ContextTerminated: The context was terminated.
        """
        return self._driver.wait(None if timeout is None else _checks.number("timeout", timeout))

    def survey(
        self, service: str, *, count: int | None = None, timeout: float = 1000
    ) -> list[Provider]:
        """Finds out who offers a service.

        Args:
            service: The name of the service.
            count: How many providers are enough; None waits for the whole time.
            timeout: How long to wait, in ms. Nodes meet within one or two of their beacons.

        Returns:
            The providers, those first that have entered first.

        Raises:
            ZMQError: The node is closed.
        """
        most = _survey_arguments(service, count, timeout)
        self._driver.wait_for(lambda machine: len(self.providers(service)) >= most, timeout)
        return self.providers(service)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        try:
            event = self.recv()
        except ZMQError:
            raise StopIteration from None
        if event is None:
            raise StopIteration
        return event


class AsyncNode(_Node):
    """A `Node` for asyncio.

    The node works in its thread, too, so it stays alive while the loop is busy. The options are those of `Node`.

    Source:
        RFC 36, ZRE; zyre(3)
    """

    async def recv(self, timeout: float | None = None) -> Event | None:
        """Waits for the next event, as `Node.recv` does.

        Args:
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            The event; None if the time is up.

        Raises:
            ZMQError: The node is closed.
            ContextTerminated: The context was terminated.
        """
        loop = asyncio.get_running_loop()
        seconds = None if timeout is None else _checks.number("timeout", timeout) / 1000
        end = None if seconds is None else loop.time() + seconds
        while (event := self._driver.take()) is None:
            future: asyncio.Future[None] = loop.create_future()

            def wake(future: asyncio.Future[None] = future) -> None:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(_set, future)

            self._driver.wake_later(future, wake)
            try:
                async with asyncio.timeout_at(end):
                    await future
            except TimeoutError:
                return self._driver.take()  # it may have come in time while the loop was busy
            finally:
                self._driver.forget_waker(future)
        return event

    async def survey(
        self, service: str, *, count: int | None = None, timeout: float = 1000
    ) -> list[Provider]:
        """Finds out who offers a service, as `Node.survey` does.

        Args:
            service: The name of the service.
            count: How many providers are enough; None waits for the whole time.
            timeout: How long to wait, in ms. Nodes meet within one or two of their beacons.

        Returns:
            The providers, those first that have entered first.

        Raises:
            ZMQError: The node is closed.
        """
        most = _survey_arguments(service, count, timeout)
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def watch(event: Event | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(changed.set)

        self._driver.watch(changed, watch)
        try:
            async with asyncio.timeout(timeout / 1000):
                while len(self.providers(service)) < most:
                    await changed.wait()
                    changed.clear()
                    self._driver.check()
        except TimeoutError:
            pass
        finally:
            self._driver.unwatch(changed)
        return self.providers(service)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        try:
            event = await self.recv()
        except ZMQError:
            raise StopAsyncIteration from None
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Addresses:
    """Where peers reach the inbox."""

    def __init__(self, bound: str, advertised: str | None, host: str) -> None:
        self._bound = bound
        self._advertised = advertised
        self._host = host
        self._is_anywhere = bound.startswith(("tcp://0.0.0.0:", "tcp://[::]:"))
        self.port = int(bound.rpartition(":")[2]) if bound.startswith("tcp://") else 0

    def seen_from(self, endpoint: str) -> str:
        """Returns the endpoint for a peer: one with the address of the interface that leads to it."""
        if self._advertised is not None:
            return self._advertised
        if not self._is_anywhere:
            return self._bound
        remote = endpoint.removeprefix("tcp://").rpartition(":")[0]
        try:
            host = own_address(str(ipaddress.IPv4Address(remote)))
        except ValueError:  # a name, which could take long to look up
            host = ""
        return f"tcp://{host or self._host}:{self.port}"


def _max_sockets(max_peers: int) -> int:
    """Returns how many sockets a node needs: a mailbox for each peer, those that still say goodbye, and the others."""
    return min(max(1000, 2 * max_peers), 1 << 30)


def _own_host(interface: str | None) -> str:
    """Returns the address of the interface, or of the first one."""
    if interface is not None:
        _checks.name("interface", interface, "the name or address of an interface")
    found = interfaces(interface)
    if interface is not None and not found:
        raise ValueError(f"no interface that broadcasts has the name or address {interface!r}")
    return found[0].address if found else _LOCALHOST


def _survey_arguments(service: Any, count: Any, timeout: Any) -> float:
    """Returns how many providers are enough."""
    _checks.name("service", service)
    _checks.number("timeout", timeout)
    return math.inf if count is None else _checks.whole("count", count, 1)


def _name(argument: str, value: Any) -> str:
    text = _checks.name(argument, value)
    if len(text.encode("utf-8", "surrogateescape")) > 0xFF:
        raise ValueError(f"{argument} takes up to 255 bytes, not {_checks.shown(value)}")
    return text


def _checked_headers(headers: Any, services: Any) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers takes a mapping, not {_checks.shown(headers)}")
    headers = {**headers, **service_headers(services)}
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"headers takes up to {MAX_HEADERS} of them, not {len(headers)}")
    checked = {
        _name("a header", key): _checks.name("the value of a header", value, "text")
        for key, value in headers.items()
    }
    size = sum(len(key) + 4 * len(value) for key, value in checked.items())
    if size > MAX_HELLO // 2:
        raise ValueError(f"headers takes up to {MAX_HELLO // 2} bytes, not {size}")
    return checked


def _parts(body: Any) -> list[bytes]:
    if isinstance(body, _BYTES):
        return [bytes(body)]
    parts = _checks.items("body", body, "bytes or a list of bytes")
    for part in parts:
        if not isinstance(part, _BYTES):
            raise TypeError(f"a part of a message is bytes, not {_checks.shown(part)}")
    return [bytes(part) for part in parts] or [b""]


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
