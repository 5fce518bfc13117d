"""Messages sent part by part: a last part that fails ends the message."""

import asyncio

import pytest
from loops import turns
from support import eventually

pytestmark = pytest.mark.zeroxide_only


def begin(zmq, sockets):
    """A socket whose only peer leaves when the first part has been sent."""
    push = sockets.bound(zmq.PUSH)
    pull = sockets.connected(zmq.PULL, push)

    async def head():
        await push.send(b"head", zmq.SNDMORE)
        pull.close()
        blocking = push._shadow_sock
        eventually(lambda: not blocking.poll(0, zmq.POLLOUT))

    return push, head


async def cancelled(zmq, push):
    waiting = asyncio.ensure_future(push.send(b"body"))
    await turns()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def timed_out(zmq, push):
    push.sndtimeo = 10
    with pytest.raises(zmq.Again, match="begin again with the first"):
        await push.send(b"body")
    push.sndtimeo = -1


async def at_once(zmq, push):
    with pytest.raises(zmq.Again, match="begin again with the first"):
        await push.send_multipart([b"neck", b"body"], zmq.DONTWAIT)


@pytest.mark.parametrize("give_up", [cancelled, timed_out, at_once])
def test_a_failed_last_part_ends_the_message(run, zmq, sockets, give_up):
    push, head = begin(zmq, sockets)

    async def main():
        await head()
        await give_up(zmq, push)
        assert push.stats()["dropped"]["unfinished"] == 1
        pull = sockets.connected(zmq.PULL, push)
        await push.send_multipart([b"head 2", b"body 2"])
        assert await pull.recv_multipart() == [b"head 2", b"body 2"]
        assert push.stats()["dropped"]["unfinished"] == 1

    run(main())


def test_a_last_part_that_waits_sends_the_whole_message(run, zmq, sockets):
    push, head = begin(zmq, sockets)

    async def main():
        await head()
        waiting = asyncio.ensure_future(push.send(b"body"))
        await turns()
        pull = sockets.connected(zmq.PULL, push)
        await waiting
        assert await pull.recv_multipart() == [b"head", b"body"]
        assert push.stats()["dropped"]["unfinished"] == 0

    run(main())
