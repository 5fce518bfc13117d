"""The extensions in Python. Run with the folder of the built module on the path; see `tools/stages.py`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

extensions = pytest.importorskip("zeroxide_extensions")

import zeroxide as zmq  # noqa: E402  (it must follow)
import zeroxide.asyncio  # noqa: E402

PATIENCE = 60_000
SECRET = b"0123456789abcdef"


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as context:
        extensions.add_udp(context)
        extensions.add_mesh(context)
        extensions.add_token(context)
        context.linger = 0
        context.rcvtimeo = context.sndtimeo = PATIENCE
        yield context


def test_messages_arrive_over_udp(context: zmq.Context) -> None:
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.bind("datagram://127.0.0.1:0")
        push.connect(pull.last_endpoint)
        for number in range(100):
            push.send_multipart([b"number", str(number).encode()])
            assert pull.recv_multipart() == [b"number", str(number).encode()]


def test_a_bus_reaches_every_peer(context: zmq.Context) -> None:
    with context.socket(extensions.MESH) as hall, context.socket(128) as kitchen:
        hall.bind("tcp://127.0.0.1:*")
        kitchen.connect(hall.last_endpoint)
        with context.socket(128) as cellar:
            cellar.connect(hall.last_endpoint)
            hall.wait_connected(count=2)
            hall.send_multipart([b"dinner", b"is ready"])
            for other in (kitchen, cellar):
                assert other.recv_multipart() == [b"dinner", b"is ready"]
            kitchen.wait_connected(count=1)
            kitchen.send(b"thanks")
            assert hall.recv() == b"thanks"
        assert hall.poll(0) == 0
        kitchen.send(b"more?")
        assert hall.poll(PATIENCE) == zmq.POLLIN
        assert hall.recv(zmq.DONTWAIT) == b"more?"
        assert (hall.stats()["sent"], hall.stats()["received"]) == (2, 2)


def test_a_bus_has_a_number_for_a_type(context: zmq.Context) -> None:
    with context.socket(128) as mesh:
        assert mesh.type == mesh.get(zmq.TYPE) == 128
        assert repr(mesh).startswith("<zmq.Socket(128) at")
        assert zmq.Socket(shadow=mesh).type == 128
        mesh.send(b"alone")
        assert mesh.stats()["dropped"]["no_peer"] == 1
        with context.socket(zmq.PAIR) as pair:
            mesh.bind("inproc://mesh")
            with pytest.raises(zmq.ZMQError, match="bound by a MESH socket"):
                pair.connect("inproc://mesh")


def test_a_bus_is_awaited() -> None:
    async def talk() -> None:
        async with zeroxide.asyncio.Context() as context:
            extensions.add_mesh(context)
            with context.socket(128) as one, context.socket(128) as other:
                one.bind("tcp://127.0.0.1:*")
                other.connect(one.last_endpoint)
                await one.wait_connected(count=1)
                received = asyncio.ensure_future(other.recv())
                await one.send(b"are you there?")
                assert await received == b"are you there?"
                assert await other.poll(0) == 0
                await one.send_multipart([b"two", b"parts"])
                assert await other.poll(PATIENCE) == zmq.POLLIN
                assert await other.recv_multipart() == [b"two", b"parts"]

    asyncio.run(asyncio.wait_for(talk(), PATIENCE / 1000))


def test_sockets_with_the_same_token_talk(context: zmq.Context) -> None:
    with context.socket(zmq.REP) as server, context.socket(zmq.REQ) as client:
        server.setsockopt(extensions.TOKEN_SERVER, 1)
        server.setsockopt(extensions.TOKEN_SECRET, SECRET)
        server.bind("tcp://127.0.0.1:*")
        client.setsockopt(extensions.TOKEN_NAME, b"sensor 7")
        client.setsockopt(extensions.TOKEN_SECRET, SECRET)
        assert client.getsockopt(extensions.TOKEN_NAME) == b"sensor 7"
        assert (server.get(extensions.TOKEN_SERVER), client.get(extensions.TOKEN_SERVER)) == (1, 0)
        client.connect(server.last_endpoint)
        client.send(b"21 degrees")
        request = server.recv(copy=False)
        assert (request.bytes, request.get("User-Id")) == (b"21 degrees", "sensor 7")
        server.send(b"thanks")
        assert client.recv() == b"thanks"


def test_a_client_with_another_token_is_refused(context: zmq.Context) -> None:
    with context.socket(zmq.PULL) as server, context.socket(zmq.PUSH) as client:
        server.setsockopt(extensions.TOKEN_SERVER, 1)
        server.setsockopt(extensions.TOKEN_SECRET, SECRET)
        events = server.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        server.bind("tcp://127.0.0.1:*")
        client.setsockopt(extensions.TOKEN_NAME, b"sensor 7")
        client.setsockopt(extensions.TOKEN_SECRET, b"another token of some length")
        client.connect(server.last_endpoint)
        assert events.poll(PATIENCE) == zmq.POLLIN


def test_values_of_options_are_checked(context: zmq.Context) -> None:
    with context.socket(zmq.PULL) as socket:
        with pytest.raises(TypeError, match="TOKEN_SECRET takes bytes"):
            socket.setsockopt(extensions.TOKEN_SECRET, 7)
        with pytest.raises(TypeError, match="TOKEN_SERVER takes 0 or 1"):
            socket.setsockopt(extensions.TOKEN_SERVER, b"yes")
        socket.setsockopt(extensions.TOKEN_SERVER, 1)
        with pytest.raises(zmq.ZMQError, match="TOKEN needs TOKEN_SECRET"):
            socket.bind("tcp://127.0.0.1:*")


def test_other_contexts_are_as_before() -> None:
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        with pytest.raises(zmq.ZMQError, match="no transport is called 'datagram'"):
            pull.bind("datagram://127.0.0.1:0")
        with pytest.raises(zmq.ZMQError, match="there is no socket type 128"):
            context.socket(128)
        with pytest.raises(zmq.ZMQError, match="no socket option 2000"):
            pull.setsockopt(extensions.TOKEN_SERVER, 1)
        with context.socket(zmq.PUSH) as push:
            pull.bind("tcp://127.0.0.1:*")
            push.connect(pull.last_endpoint)
            push.send(b"hello")
            assert pull.recv() == b"hello"


def test_mistakes_are_reported(context: zmq.Context) -> None:
    with pytest.raises(zmq.ZMQError, match="'datagram' already"):
        extensions.add_udp(context)
    with pytest.raises(zmq.ZMQError, match="called MESH already"):
        extensions.add_mesh(context)
    with pytest.raises(zmq.ZMQError, match="TOKEN cannot be added"):
        extensions.add_token(context)
    with (
        context.socket(zmq.DEALER) as dealer,
        pytest.raises(zmq.ZMQError, match="PUSH sockets connect"),
    ):
        dealer.connect("datagram://127.0.0.1:1")


def test_an_import_in_the_wrong_order_says_what_to_do() -> None:
    program = "import zeroxide, zeroxide_extensions"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "import zeroxide_extensions before it" in result.stderr
