"""Services: who offers one, and sockets that follow its providers, which nodes or the DNS name."""

import asyncio
import signal
import socket
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support import PATIENCE, Background, eventually, finish_script, free_udp_port, start_script

import zeroxide as zmq
from zeroxide import asyncio as zmq_asyncio
from zeroxide.discovery import AsyncNode, Follower, Node, Provider, follow
from zeroxide.discovery import _names as names
from zeroxide.discovery._events import Peer
from zeroxide.discovery._services import provider

pytestmark = pytest.mark.zeroxide_only

LONG = PATIENCE * 1000


@pytest.fixture
def port() -> int:
    """A UDP port that no other test uses."""
    return free_udp_port()


@pytest.fixture
def node(port: int) -> Iterator[Callable[..., Node]]:
    """Makes nodes that see each other, and only each other."""
    nodes: list[Node] = []

    def make(name: str, **options: Any) -> Node:
        nodes.append(Node(name, interface="lo", interval=50, port=port, **options))
        return nodes[-1]

    yield make
    for each in nodes:
        each.close()


@pytest.fixture
def pull(context: Any) -> Callable[..., Any]:
    """Makes PULLs at free ports, or at one of an address."""

    def make(endpoint: str = "tcp://127.0.0.1:*") -> Any:
        made = context.socket(zmq.PULL)
        made.bind(endpoint)
        return made

    return make


@pytest.fixture
def push(context: Any) -> Any:
    return context.socket(zmq.PUSH)


def text(made: Any) -> str:
    endpoint: str = made.last_endpoint.decode()
    return endpoint


def test_a_socket_follows_the_providers_of_a_service(
    node: Callable[..., Node], pull: Callable[..., Any], push: Any
) -> None:
    first, second, other = pull(), pull(), pull()
    own = node("own")
    early = node("early", services={"work": first.last_endpoint, "other": text(other)})
    follower = follow(push, "work", node=own)
    assert follower.wait(timeout=LONG)
    assert follower.endpoints == [text(first)]
    late = node("late", services={"work": text(second)})
    assert follower.wait(2, LONG)
    for _ in range(2):
        push.send(b"both")
    assert first.recv() == second.recv() == b"both"
    early.close()
    eventually(lambda: follower.endpoints == [text(second)])
    push.send(b"second")
    assert second.recv() == b"second"
    late.close()
    eventually(lambda: follower.endpoints == [])
    assert other.poll(0) == 0


def test_two_providers_may_share_an_endpoint(
    node: Callable[..., Node], pull: Callable[..., Any], push: Any
) -> None:
    place = pull()
    own = node("own")
    follower = follow(push, "work", node=own)
    one, two = (node(name, services={"work": text(place)}) for name in "ab")
    assert len(own.survey("work", count=2, timeout=LONG)) == 2
    assert follower.endpoints == [text(place)]
    eventually(lambda: place.stats()["peers"])
    assert len(place.stats()["peers"]) == 1
    one.close()
    eventually(lambda: len(own.providers("work")) == 1)
    push.send(b"still")
    assert place.recv() == b"still"
    two.close()
    eventually(lambda: follower.endpoints == [])


def test_a_follower_ends_with_its_node_and_its_socket(
    node: Callable[..., Node], pull: Callable[..., Any], context: Any
) -> None:
    own, push = node("own"), context.socket(zmq.PUSH)
    by_socket = follow(push, "work", node=own)
    push.close()
    node("event")
    eventually(lambda: by_socket.closed)
    with context.socket(zmq.PUSH) as another:
        closed, by_node = (follow(another, "work", node=own) for _ in range(2))
        closed.close()
        assert closed.closed
        waiting = Background(by_node.wait)
        own.close()
        assert waiting.result() is False
        with pytest.raises(zmq.ZMQError, match="closed"):
            follow(another, "work", node=own)


def test_a_closed_follower_keeps_the_connections(
    node: Callable[..., Node], pull: Callable[..., Any], push: Any
) -> None:
    place = pull()
    own, offering = node("own"), node("offering", services={"work": text(place)})
    with follow(push, "work", node=own) as follower:
        assert follower.wait(timeout=LONG)
    assert own._driver._watchers == {}
    offering.close()
    eventually(lambda: own.peers == [])
    push.send(b"still")
    assert place.recv() == b"still"


def test_a_killed_provider_is_left_and_its_successor_found(
    port: int, node: Callable[..., Node], pull: Callable[..., Any], push: Any
) -> None:
    times = {"evasive": 500, "expired": 1500}
    place = pull()
    own = node("own", **times)
    follower = follow(push, "work", node=own)
    script = f"""
        from zeroxide.discovery import Node
        node = Node("provider", interface="lo", port={port}, interval=50, services={{"work": "tcp://127.0.0.1:1"}}, **{times})
        sys.stdin.read()
    """
    process = start_script("zeroxide", f"import sys\n{textwrap.dedent(script)}")
    assert follower.wait(timeout=LONG)
    process.send_signal(signal.SIGKILL)
    finish_script(process, -signal.SIGKILL)
    eventually(lambda: follower.endpoints == [])
    node("successor", services={"work": text(place)}, **times)
    assert follower.wait(timeout=LONG)
    push.send(b"hello")
    assert place.recv() == b"hello"


def test_a_survey(node: Callable[..., Node]) -> None:
    own = node("own")
    assert own.survey("work", timeout=0) == []
    offering = node("offering", services={"work": "tcp://*:5555", "else": "tcp://10.0.0.1:1"})
    expected = [Provider(offering.uuid, "offering", "tcp://127.0.0.1:5555")]
    assert own.survey("work", count=1, timeout=LONG) == expected
    assert own.survey("work", timeout=100) == expected
    assert own.providers("nothing") == []
    [peer] = own.peers
    assert peer.headers["X-SERVICE-else"] == "tcp://10.0.0.1:1"


def test_asyncio(port: int, node: Callable[..., Node], pull: Callable[..., Any]) -> None:
    place = pull()

    async def main() -> None:
        async with AsyncNode("own", interface="lo", port=port, interval=50) as own:
            assert await own.survey("work", timeout=0) == []
            survey = asyncio.create_task(own.survey("work", count=1, timeout=LONG))
            await asyncio.sleep(0)
            offering = node("offering", services={"work": text(place)})
            assert [each.peer for each in await survey] == [offering.uuid]
            with zmq_asyncio.Context() as context, context.socket(zmq.PUSH) as push:
                follower = follow(push, "work", node=own)
                assert await follower.wait_async(timeout=LONG)
                assert not await follower.wait_async(2, timeout=10)
                await push.send(b"hello")
                assert place.recv() == b"hello"
                waiting = asyncio.create_task(follower.wait_async(2))
                closing = asyncio.create_task(own.survey("else", timeout=LONG))
                await asyncio.sleep(0)
                own.close()
                assert await waiting is False
                with pytest.raises(zmq.ZMQError, match="closed"):
                    await closing

    asyncio.run(main())


@pytest.mark.parametrize(
    ("value", "endpoint", "found"),
    [
        ("tcp://1.2.3.4:5", "tcp://10.0.0.1:1", "tcp://1.2.3.4:5"),
        ("tcp://*:5", "tcp://10.0.0.1:1", "tcp://10.0.0.1:5"),
        ("tcp://0.0.0.0:5", "tcp://10.0.0.1:1", "tcp://10.0.0.1:5"),
        ("tcp://*:5", "ipc:///tmp/x", None),
        ("ipc:///tmp/secret", "tcp://10.0.0.1:1", None),
        ("inproc://x", "tcp://10.0.0.1:1", None),
        ("tcp://", "tcp://10.0.0.1:1", None),
        ("tcp://5", "tcp://10.0.0.1:1", None),
        ("", "tcp://10.0.0.1:1", None),
    ],
)
def test_endpoints_of_peers(value: str, endpoint: str, found: str | None) -> None:
    from uuid import UUID

    headers = {"X-SERVICE-work": value}
    peer = Peer(UUID(int=1), "peer", endpoint, headers, frozenset(), is_evasive=False)
    provided = provider(peer, "work")
    assert (provided.endpoint if provided else None) == found


def test_an_endpoint_that_cannot_be_used_is_reported(node: Callable[..., Node], push: Any) -> None:
    own = node("own")
    follower = follow(push, "work", node=own)
    node("liar", headers={"X-SERVICE-work": "tcp://a b:-1"})
    assert "a b" in eventually(lambda: follower.error)
    assert follower.endpoints == []


# The DNS.


class Zone:
    """Answers for `socket.getaddrinfo`, which change."""

    def __init__(self, *addresses: str) -> None:
        self.answer: Any = list(addresses)

    def __call__(self, host: str, port: int, family: int, kind: int) -> list[Any]:
        assert (host, family, kind) == ("workers.example", socket.AF_INET, socket.SOCK_STREAM)
        if isinstance(self.answer, Exception):
            raise self.answer
        return [(family, kind, 6, "", (address, port)) for address in self.answer]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Zone:
    zone = Zone()
    monkeypatch.setattr(names.socket, "getaddrinfo", zone)
    return zone


def test_a_socket_follows_the_addresses_of_a_name(
    zone: Zone, pull: Callable[..., Any], push: Any
) -> None:
    first = pull("tcp://127.0.0.1:*")
    port = text(first).rpartition(":")[2]
    second = pull(f"tcp://127.0.0.2:{port}")
    with follow(push, f"dns://workers.example:{port}", interval=20) as follower:
        assert not follower.wait(timeout=50)
        zone.answer = ["127.0.0.1", "127.0.0.2"]
        assert follower.wait(2, LONG)
        zone.answer = ["127.0.0.2"]
        eventually(lambda: follower.endpoints == [text(second)])
        push.send(b"one is left")
        assert second.recv() == b"one is left"
        # No server answers: the provider may still be there.
        zone.answer = socket.gaierror(socket.EAI_AGAIN, "try again")
        assert eventually(lambda: follower.error) == "workers.example: try again"
        assert follower.endpoints == [text(second)]
        # A headless service without pods that are ready.
        zone.answer = socket.gaierror(socket.EAI_NONAME, "unknown")
        eventually(lambda: follower.endpoints == [])
        assert follower.error is None
    eventually(lambda: all(each.name != "zeroxide_names" for each in threading.enumerate()))


def test_a_real_name(pull: Callable[..., Any], push: Any) -> None:
    place = pull()
    port = text(place).rpartition(":")[2]
    with follow(push, f"dns://localhost:{port}") as follower:
        assert follower.wait(timeout=LONG)
    push.send(b"hello")
    assert place.recv() == b"hello"


class NameServer(threading.Thread):
    """A name server with SRV records: (priority, port, target)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.records: list[tuple[int, int, str]] | None = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def run(self) -> None:
        import dns.flags
        import dns.message
        import dns.rcode
        import dns.rrset

        while True:
            data, place = self._socket.recvfrom(4096)
            if not data:
                self._socket.close()
                return
            request = dns.message.from_wire(data)
            response = dns.message.make_response(request)
            response.flags |= dns.flags.RA
            if self.records is None:
                response.set_rcode(dns.rcode.NXDOMAIN)
            elif self.records:
                lines = [f"{first} 0 {port} {target}" for first, port, target in self.records]
                name = request.question[0].name
                response.answer.append(dns.rrset.from_text(name, 5, "IN", "SRV", *lines))
            self._socket.sendto(response.to_wire(), place)

    def stop(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.sendto(b"", ("127.0.0.1", self.port))
        self.join(PATIENCE)


@pytest.fixture
def server() -> Iterator[NameServer]:
    pytest.importorskip("dns", reason="dnspython is not installed")
    server = NameServer()
    server.start()
    yield server
    if server.is_alive():
        server.stop()


def resolver_of(server: NameServer) -> Any:
    import dns.resolver

    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], server.port
    resolver.lifetime = 0.5
    return resolver


def srv(push: Any, server: NameServer) -> Follower:
    source = "srv://_work._tcp.example.com"
    return follow(push, source, interval=20, resolver=resolver_of(server))


def test_a_socket_follows_srv_records(
    server: NameServer, pull: Callable[..., Any], push: Any
) -> None:
    first, second = pull(), pull()
    ports = [int(text(place).rpartition(":")[2]) for place in (first, second)]
    server.records = [(10, port, "localhost.") for port in ports] + [(20, 1, "spare.")]
    with srv(push, server) as follower:
        assert follower.wait(2, LONG)
        assert set(follower.endpoints) == {f"tcp://localhost:{port}" for port in ports}
        for _ in range(2):
            push.send(b"both")
        assert first.recv() == second.recv() == b"both"
        server.records = [(10, ports[1], "localhost.")]
        eventually(lambda: follower.endpoints == [f"tcp://localhost:{ports[1]}"])
        server.records = None
        eventually(lambda: follower.endpoints == [])
        server.records = [(0, 0, ".")]
        assert not follower.wait(timeout=50)
        server.records = [(0, ports[0], "localhost.")]
        assert follower.wait(1, LONG)
        server.stop()
        assert "example.com" in eventually(lambda: follower.error)
        assert follower.endpoints == [f"tcp://localhost:{ports[0]}"]


@pytest.mark.parametrize(
    ("service", "text"),
    [
        ("work", "needs a node to find it"),
        ("dns://name", "takes 'dns://host:port'"),
        ("dns://:5", "takes 'dns://host:port'"),
        ("dns://name:70000", "takes 'dns://host:port'"),
        ("srv://", "takes 'srv://_name._tcp.domain'"),
    ],
)
def test_mistakes_are_reported(push: Any, service: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        follow(push, service)


@pytest.mark.parametrize(
    ("services", "kind", "text"),
    [
        (["work"], TypeError, "services takes a mapping"),
        ({"work": "ipc:///tmp/x"}, ValueError, "a service has a tcp endpoint"),
        ({1: "tcp://*:5"}, TypeError, "the name of a service takes a name"),
    ],
)
def test_services_are_checked(services: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        Node(interface="lo", services=services)
