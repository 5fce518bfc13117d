"""A socket that is connected to every provider of a service, while they come and go."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from .. import _checks
from .._closing import Closing
from ..error import ZMQError
from ..socket import Socket
from ._driver import clock
from ._events import Enter, Event, Exit
from ._names import DNS, SRV, Resolve, Unanswered, addresses_of, services_of
from ._node import AsyncNode, Node
from ._node_machine import NodeMachine
from ._services import provider

__all__ = ["Follower", "follow"]

# Endpoints of a DNS answer, at most.
_MOST = 1024


class Follower(Closing):
    """Connects a socket to the providers of a service: see `follow`.

    It works until it is closed, or its socket or node is, even if the program drops it.

    Args:
        socket: The socket.

    Source:
        zeroxide only
    """

    def __init__(self, socket: Socket[Any]) -> None:
        self._socket = socket
        self._changed = threading.Condition()
        self._wakers: dict[object, Callable[[], None]] = {}
        # The endpoints by provider: two may have the same one.
        self._providers: dict[Hashable, str] = {}
        self._error: str | None = None
        self._end = threading.Event()
        self._stop: Callable[[], None] = self._end.set

    @property
    def endpoints(self) -> list[str]:
        """The endpoints that the socket is connected to, in order of their arrival."""
        with self._changed:
            return list(dict.fromkeys(self._providers.values()))

    @property
    def error(self) -> str | None:
        """Why the last look-up in the DNS or the last connection failed; None if it did not fail."""
        return self._error

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._end.is_set()

    def wait(self, count: int = 1, timeout: float | None = None) -> bool:
        """Waits until the socket is connected to enough providers.

        Args:
            count: The number of endpoints.
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            Whether there are that many. If not, the time is up, or this object is closed.
        """
        end = None if timeout is None else clock() + _checks.number("timeout", timeout)
        with self._changed:
            while not (enough := len(self.endpoints) >= count) and not self.closed:
                left = None if end is None else (end - clock()) / 1000
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
            return enough

    async def wait_async(self, count: int = 1, timeout: float | None = None) -> bool:
        """Does what `wait` does, without blocking the event loop.

        Args:
            count: The number of endpoints.
            timeout: How long to wait, in ms; None waits without limit.

        Returns:
            Whether there are that many. If not, the time is up, or this object is closed.
        """
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(changed.set)

        seconds = None if timeout is None else _checks.number("timeout", timeout) / 1000
        self._wakers[changed] = wake
        try:
            async with asyncio.timeout(seconds):
                while len(self.endpoints) < count and not self.closed:
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            pass
        finally:
            del self._wakers[changed]
        return len(self.endpoints) >= count

    def close(self) -> None:
        """Stops following. The socket keeps its connections."""
        self._stop()
        self._finish()

    def _finish(self) -> None:
        self._end.set()
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        for waker in list(self._wakers.values()):
            waker()

    def _update(self, changes: Mapping[Hashable, str | None]) -> None:
        """Connects and disconnects. None stands for the end of a provider."""
        with self._changed:
            if self.closed:
                return
            before = set(self._providers.values())
            for key, endpoint in changes.items():
                if endpoint is None:
                    self._providers.pop(key, None)
                elif endpoint in before or self._connect(endpoint):
                    self._providers[key] = endpoint
                    before.add(endpoint)
            for endpoint in before - set(self._providers.values()):
                with contextlib.suppress(ZMQError):
                    self._socket.disconnect(endpoint)
        self._notify()

    def _connect(self, endpoint: str) -> bool:
        try:
            self._socket.connect(endpoint)
        except (ZMQError, UnicodeError) as error:  # a peer may name any bytes as an endpoint
            self._error = str(error)
            return False
        return True

    def _replace(self, endpoints: Iterable[str]) -> None:
        found = sorted(endpoints)[:_MOST]
        gone = self._providers.keys() - set(found)
        self._update(dict.fromkeys(gone) | {endpoint: endpoint for endpoint in found})

    def _look_up(self, resolve: Resolve, interval: float) -> None:
        """Looks names up until the end, in a thread."""
        while not self._end.is_set() and not self._socket.closed:
            try:
                found = resolve()
            except Unanswered as error:
                self._error = str(error)  # the providers may still be there
            else:
                self._error = None
                self._replace(found)
            self._end.wait(interval / 1000)
        self._finish()


def follow(
    socket: Socket[Any],
    service: str,
    *,
    node: Node | AsyncNode | None = None,
    interval: float = 5000,
    resolver: Any = None,
) -> Follower:
    """Connects a socket to every provider of a service, while they come and go.

    The socket decides what the connections are for: a DEALER or PUSH shares its messages among the providers, and
    a SUB hears all of them. If a provider is gone, its connection ends, and messages that wait for it are lost.

    Args:
        socket: A socket of any kind, also of `zeroxide.asyncio`.
        service: The name of a service that nodes offer; ``"dns://host:port"`` for each address of a name, such as that of
            a headless service of Kubernetes; or ``"srv://_name._tcp.domain"`` for SRV records (extra ``dns``), of
            which those with the lowest priority count.
        node: The node that finds the service; not for the DNS.
        interval: How often names are looked up, in ms. If no server answers, the connections stay.
        resolver: A ``dns.resolver.Resolver`` for SRV records; None for the system's name servers.

    Returns:
        An object that tells which endpoints there are, and waits for them.

    Raises:
        ValueError: The service is malformed, or it is the name of one, and there is no node.
        ModuleNotFoundError: SRV records need dnspython.
        ZMQError: The node is closed.

    Example:
        ```python
        with Node() as node, context.socket(zmq.DEALER) as socket:
            follow(socket, "resize", node=node).wait()
            socket.send(b"picture")
        ```

    Source:
        RFC 36, ZRE; RFC 2782, DNS SRV
    """
    _checks.name("service", service, "the name of a service")
    _checks.number("interval", interval, 1)
    follower = Follower(socket)
    if service.startswith((DNS, SRV)):
        if service.startswith(DNS):
            resolve = addresses_of(service, ipv6=bool(socket.ipv6))
        else:
            resolve = services_of(service, resolver)
        threading.Thread(
            target=follower._look_up,
            args=[resolve, interval],
            name="zeroxide_names",
            daemon=True,
        ).start()
    elif node is None:
        raise ValueError(
            f"service {service!r} needs a node to find it: pass node=..., or 'dns://host:port' or 'srv://name'"
        )
    else:
        _follow_node(follower, service, node)
    return follower


def _follow_node(follower: Follower, service: str, node: Node | AsyncNode) -> None:
    driver = node._driver

    def watch(event: Event | None) -> None:
        if event is None or follower._socket.closed:
            driver.unwatch(follower)
            follower._finish()
        elif isinstance(event, Enter):
            if (found := provider(event, service)) is not None:
                follower._update({event.peer: found.endpoint})
        elif isinstance(event, Exit):
            follower._update({event.peer: None})

    def start(machine: NodeMachine) -> None:
        # Under the lock of the node: no event is missed, and none is older than what is found here.
        driver.watch(follower, watch)
        for peer in machine.peers():
            if (found := provider(peer, service)) is not None:
                follower._update({peer.uuid: found.endpoint})

    follower._stop = lambda: driver.unwatch(follower)
    driver.call(start)
