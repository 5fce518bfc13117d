"""Sockets of asyncio: waiting for events."""

import asyncio
import os

import pytest
from loops import readable, turns


def test_poll(run, zmq, pipe):
    pull, push = pipe

    async def main():
        assert await pull.poll(0) == 0
        assert await pull.poll(5) == 0
        assert await push.poll(None, zmq.POLLOUT) == zmq.POLLOUT
        assert await push.poll(0, zmq.POLLIN | zmq.POLLOUT) == zmq.POLLOUT
        future = pull.poll()
        assert not future.done()
        await push.send(b"x")
        assert await future == zmq.POLLIN
        assert await pull.poll(timeout=0) == zmq.POLLIN
        assert await pull.recv() == b"x"
        future = pull.poll()
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await future

    run(main())


def test_poll_for_writing(run, zmq, sockets, context):
    push = context.socket(zmq.PUSH)

    async def main():
        assert await push.poll(0, zmq.POLLOUT) == 0
        future = push.poll(None, zmq.POLLOUT)
        pull = sockets.bound(zmq.PULL)
        push.connect(pull.last_endpoint.decode())
        assert await future == zmq.POLLOUT

    run(main())


def test_poller(run, zmq, aio, sockets):
    one, to_one = sockets.pair(zmq.PULL, zmq.PUSH)
    two, to_two = sockets.pair(zmq.PULL, zmq.PUSH)

    async def main():
        poller = aio.Poller()
        assert await poller.poll(0) == []
        assert await poller.poll(5) == []
        poller.register(one, zmq.POLLIN)
        poller.register(two, zmq.POLLIN)
        assert await poller.poll(0) == []
        assert await poller.poll(5) == []
        future = poller.poll()
        await to_two.send(b"x")
        assert await future == [(two, zmq.POLLIN)]
        await to_one.send(b"x")
        await readable(one)
        assert await poller.poll() == [(one, zmq.POLLIN), (two, zmq.POLLIN)]
        await one.recv()
        await two.recv()
        future = poller.poll()
        await turns()
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await future
        poller.register(to_one, zmq.POLLOUT)
        assert await poller.poll() == [(to_one, zmq.POLLOUT)]

    run(main())


@pytest.mark.parametrize("wanted", ["POLLIN", "POLLOUT", "POLLERR", "POLLPRI"])
def test_poller_hears_that_the_other_end_closes(run, zmq, aio, wanted):
    async def main():
        reader, writer = os.pipe()
        poller = aio.Poller()
        poller.register(reader, getattr(zmq, wanted))
        future = poller.poll(5000)
        await turns()
        assert not future.done()
        os.close(writer)
        assert await future == [(reader, zmq.POLLERR)]
        os.close(reader)

    run(main())


def test_poller_for_errors_of_a_file_ends_with_its_time(run, zmq, aio, tmp_path):
    async def main():
        with open(tmp_path / "file", "wb") as file:
            poller = aio.Poller()
            poller.register(file, zmq.POLLERR)
            assert await poller.poll(10) == []

    run(main())


def test_poller_with_descriptors_and_blocking_sockets(run, zmq, aio, sockets, context):
    reader, writer = os.pipe()
    blocking = zmq.Context(context).socket(zmq.PULL, socket_class=zmq.Socket)
    blocking.bind("tcp://127.0.0.1:*")
    push = sockets.connected(zmq.PUSH, blocking)

    async def main():
        poller = aio.Poller()
        poller.register(reader, zmq.POLLIN)
        poller.register(blocking, zmq.POLLIN)
        future = poller.poll()
        os.write(writer, b"x")
        assert await future == [(reader, zmq.POLLIN)]
        os.read(reader, 1)
        future = poller.poll()
        await push.send(b"x")
        assert await future == [(blocking, zmq.POLLIN)]
        assert blocking.recv() == b"x"
        poller.unregister(blocking)
        poller.register(writer, zmq.POLLOUT)
        assert await poller.poll() == [(writer, zmq.POLLOUT)]

    try:
        run(main())
    finally:
        blocking.close()
        os.close(reader)
        os.close(writer)
