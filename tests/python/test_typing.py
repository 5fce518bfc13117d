"""What type checkers make of the public API."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from typing import Any, assert_type

import zeroxide as zmq
from zeroxide.utils.monitor import recv_monitor_message

context = zmq.Context()
assert_type(context, zmq.Context[zmq.Socket[bytes]])
assert_type(zmq.Context.instance(io_threads=2), zmq.Context[zmq.Socket[bytes]])
context.linger = 0
socket = context.socket(zmq.ROUTER)
assert_type(socket, zmq.Socket[bytes])

with socket.bind("tcp://127.0.0.1:*") as bound:
    assert_type(bound, zmq.Socket[bytes])
assert_type(socket.bind_to_random_port("tcp://127.0.0.1"), int)
assert_type(socket.last_endpoint, bytes)
assert_type(socket.linger, int)
assert_type(socket.type, zmq.SocketType)
socket.linger = 0
socket.routing_id = b"me"
socket.hwm = 5
socket.router_mandatory = True

assert_type(socket.recv(), bytes)
assert_type(socket.recv(zmq.DONTWAIT), bytes)
assert_type(socket.recv(copy=False), zmq.Frame)
assert_type(socket.recv(0, False, track=True), zmq.Frame)
assert_type(socket.recv_multipart(), list[bytes])
assert_type(socket.recv_multipart(copy=False), list[zmq.Frame])
assert_type(socket.recv_batch(), list[bytes | list[bytes]])
assert_type(socket.recv_batch(100, timeout=1.5, multipart=True), list[list[bytes]])
assert_type(socket.recv_string(), str)
assert_type(socket.recv_serialized(len), int)
assert_type(socket.recv_into(bytearray(5)), int)
assert_type(socket.poll(100), int)

socket.send(b"bytes")
socket.send(bytearray(b"buffer"), zmq.SNDMORE)
socket.send(memoryview(b"view"), copy=True)
tracker = socket.send(b"zero-copy", copy=False, track=True)
assert_type(tracker, zmq.MessageTracker)
socket.send(zmq.Frame(b"frame"))
socket.send_multipart([b"a", bytearray(b"b"), zmq.Frame(b"c")])
assert_type(socket.send_batch([b"a", [b"b", b"c"], (zmq.Frame(b"d"),)]), int)
assert_type(socket.stats()["dropped"]["high_water"], int)
assert_type(socket.stats()["peers"][0]["endpoint"], str)
socket.flush(5)

poller = zmq.Poller()
poller.register(socket, zmq.POLLIN)
assert_type(poller.poll(10), list[tuple[Any, int]])
event = recv_monitor_message(socket.get_monitor_socket())
assert_type(event["event"], zmq.Event)

try:
    socket.recv()
except zmq.Again as error:
    assert_type(error.errno, int | None)
except zmq.NotFlushed as error:
    assert_type(error.remaining, dict[str, int])


class Special(zmq.Socket[bytes]):
    pass


class Maker(zmq.Context[Special]):
    _socket_class = Special


assert_type(Maker().socket(zmq.PUSH), Special)
assert_type(context.socket(zmq.PUSH, socket_class=zmq.Socket), zmq.Socket[bytes])


def annotated(context: zmq.Context, socket: zmq.Socket, plain: zmq.SyncSocket) -> bytes:
    return socket.recv() + plain.recv()


annotated(context, socket, socket)
"""

ASYNC = """
import asyncio
from typing import Any, assert_type

import zeroxide as zmq
import zeroxide.asyncio
from zeroxide.utils.monitor import recv_monitor_message


async def main() -> None:
    async with zmq.asyncio.Context() as context:
        assert_type(context, zmq.asyncio.Context)
        socket = context.socket(zmq.ROUTER)
        assert_type(socket, zmq.asyncio.Socket)
        assert_type(socket.recv(), asyncio.Future[bytes])
        assert_type(await socket.recv(), bytes)
        assert_type(await socket.recv(copy=False), zmq.Frame)
        assert_type(await socket.recv_multipart(), list[bytes])
        assert_type(await socket.recv_multipart(copy=False), list[zmq.Frame])
        assert_type(await socket.recv_batch(), list[bytes | list[bytes]])
        assert_type(await socket.recv_batch(multipart=True), list[list[bytes]])
        assert_type(await socket.recv_into(bytearray(5)), int)
        assert_type(await socket.recv_string(), str)
        assert_type(await socket.recv_serialized(len), int)
        assert_type(await socket.recv_json(), Any)
        assert_type(await socket.poll(100), int)
        await socket.send(b"x")
        tracker = await socket.send(b"x", copy=False, track=True)
        assert_type(tracker, zmq.MessageTracker)
        await socket.send_multipart([b"a", bytearray(b"b"), zmq.Frame(b"c")])
        assert_type(await socket.send_batch([b"a", [b"b", b"c"]]), int)
        await socket.send_json({})
        await asyncio.gather(socket.send(b"x"), socket.recv())
        async for message in socket:
            assert_type(message, bytes | list[bytes])
        poller = zmq.asyncio.Poller()
        poller.register(socket, zmq.POLLIN)
        assert_type(await poller.poll(10), list[tuple[Any, int]])
        event = await recv_monitor_message(socket.get_monitor_socket())
        assert_type(event["event"], zmq.Event)
        assert_type(zmq.asyncio.Socket.from_socket(zmq.Context().socket(zmq.PUB)), zmq.asyncio.Socket)
        async with context.socket(zmq.PUSH) as push:
            assert_type(push, zmq.asyncio.Socket)
"""

GREEN = """
from typing import assert_type

import zeroxide as blocking
import zeroxide.green as zmq

context = zmq.Context()
socket = context.socket(zmq.PUSH)
socket.send(b"x", zmq.DONTWAIT)
pushes: blocking.SocketType = zmq.PUSH
poller = zmq.Poller()
poller.register(socket, zmq.POLLIN | zmq.POLLOUT)
assert_type(zmq.zmq_version(), str)
try:
    assert_type(socket.recv(), bytes)
except zmq.Again as error:
    assert_type(error.errno, int | None)
"""

MISTAKES = """
import zeroxide as zmq

socket = zmq.Context().socket(zmq.PUSH)
socket.send("text")
socket.send_multipart(["text"])
socket.linger = "long"
socket.recv().encode()
socket.no_such_method()
zmq.NO_SUCH_CONSTANT
"""

pytestmark = [pytest.mark.zeroxide_only, pytest.mark.slow]


def check(zmq, directory: Path, source: str) -> subprocess.CompletedProcess:
    pytest.importorskip("mypy")
    program = directory / "program.py"
    program.write_text(source)
    home = Path(zmq.__file__).parents[1]
    environment = dict(os.environ)
    if home.name != "site-packages":  # where mypy looks by itself
        environment["MYPYPATH"] = str(home)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(program)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=directory,
    )


@pytest.mark.parametrize("source", [PROGRAM, ASYNC, GREEN], ids=["blocking", "asyncio", "green"])
def test_right(zmq, directory, source):
    result = check(zmq, directory, source)
    assert result.returncode == 0, result.stdout + result.stderr


def test_wrong(zmq, directory):
    """Mistakes are found, each in its line."""
    result = check(zmq, directory, MISTAKES)
    found = {int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error:" in line}
    assert found == set(range(5, 11)), result.stdout + result.stderr
