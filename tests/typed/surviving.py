"""Peers of the reliability patterns, as programs use them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import zeroxide as zmq
from zeroxide import patterns


def secure(socket: zmq.Socket[Any]) -> None:
    socket.sndhwm = 10


def ask() -> None:
    with patterns.LazyPirateClient("tcp://server:5555", configure=secure) as client:
        try:
            assert_type(client.request(b"one part"), list[bytes])
            assert_type(client.request([b"two", b"parts"]), list[bytes])
        except patterns.NoReply as error:
            print(error)
    with patterns.MajordomoClient("tcp://broker:5555", version="0.2", attempts=None) as services:
        assert_type(services.has_service("echo"), bool)
        for reply in services.stream("echo", b"request"):
            assert_type(reply, list[bytes])
    with patterns.TitanicClient("tcp://broker:5555") as titanic:
        assert_type(titanic.submit("echo", b"request"), str)
        assert_type(titanic.fetch("name"), list[bytes] | None)
    with patterns.BinaryStarClient(["tcp://one:5555", "tcp://two:5555"], settle=500) as pair:
        assert_type(pair.request(b"request"), list[bytes])


async def ask_async() -> None:
    async with patterns.AsyncFreelanceClient(["tcp://one:5555"], context=zmq.Context()) as client:
        assert_type(await client.request(b"request"), list[bytes])
    async with patterns.AsyncMajordomoClient("tcp://broker:5555") as services:
        async for reply in services.stream("echo", b"request"):
            assert_type(reply, list[bytes])
    async with patterns.AsyncFileClient("tcp://server:6000") as files:
        async for chunk in files.fetch("name"):
            assert_type(chunk, bytes)
        await files.download("name", Path("copy"))
    async with patterns.AsyncCloneClient(["tcp://server:5556"], subtree="/config/") as clone:
        clone.set("/config/level", b"high", ttl=60)
        assert_type(await clone.wait(1000), bool)
        assert_type(clone.values, Mapping[str, bytes])


def upper(request: list[bytes]) -> list[bytes]:
    return [part.upper() for part in request]


def answer(request: patterns.MajordomoRequest) -> bytes:
    assert_type(request.service, str)
    request.send_partial(b"half")
    return request.parts[0]


async def answer_async(request: patterns.MajordomoRequest) -> list[bytes]:
    return request.parts


def serve() -> None:
    with patterns.ParanoidPirateQueue("tcp://*:*", "tcp://*:*", heartbeat=500) as queue:
        assert_type(queue.frontend, str)
        queue.run()
    with patterns.ParanoidPirateWorker("tcp://queue:5556") as worker:
        worker.run(upper)
    with patterns.MajordomoWorker("tcp://broker:5555", "echo", version="0.2") as worker_of_service:
        worker_of_service.run(answer)
    with patterns.CloneServer("tcp://*:5556") as clone:
        assert_type(clone.is_active, bool)
        clone.stop()


async def serve_async() -> None:
    async with patterns.AsyncMajordomoWorker("tcp://broker:5555", "echo") as worker:
        await worker.run(answer_async)
    async with patterns.AsyncLastValueCache("tcp://*:5557", "tcp://*:5558") as cache:
        await cache.run()
