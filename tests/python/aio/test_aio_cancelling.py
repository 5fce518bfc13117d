"""Sockets of asyncio: calls that are cancelled."""

import asyncio

import pytest
from loops import turns


def test_a_cancelled_call_takes_no_message(run, pipe):
    pull, push = pipe

    async def main():
        futures = [pull.recv() for _ in range(5)]
        assert futures[0].cancel()
        assert futures[3].cancel()
        for number in range(3):
            await push.send(b"%d" % number)
        received = await asyncio.gather(*futures, return_exceptions=True)
        assert [r for r in received if isinstance(r, bytes)] == [b"0", b"1", b"2"]
        assert isinstance(received[0], asyncio.CancelledError)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pull.recv_multipart(), 0.001)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pull.recv_string(), 0.001)
        await push.send_string("last")
        assert await pull.recv_string() == "last"

    run(main())


@pytest.mark.parametrize("is_last", [True, False])
def test_gathered_calls_of_which_one_is_done_can_be_cancelled(run, zmq, pipe, is_last):
    """asyncio asks the last of them for its error, and without one, the gathering never ends."""
    pull, push = pipe

    async def main():
        waiting, done = push.poll(1 << 30, zmq.POLLIN), push.send(b"")
        calls = [waiting, done] if is_last else [done, waiting]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 0.01)
        assert waiting.cancelled()
        assert await pull.recv() == b""

    run(main())


def test_a_cancelled_send_sends_nothing(run, zmq, sockets, context):
    push = context.socket(zmq.PUSH)

    async def main():
        futures = [push.send(b"%d" % number) for number in range(4)]
        futures[1].cancel()
        futures[2].cancel()
        pull = sockets.bound(zmq.PULL)
        push.connect(pull.last_endpoint.decode())
        assert [await pull.recv(), await pull.recv()] == [b"0", b"3"]

    run(main())


@pytest.mark.parametrize(
    "call",
    [
        "recv",
        "recv_multipart",
        pytest.param("recv_string", marks=pytest.mark.zeroxide_only),
        "poll",
    ],
)
def test_closing_cancels(run, pipe, call):
    pull, _push = pipe

    async def main():
        futures = [getattr(pull, call)() for _ in range(3)]
        task = asyncio.ensure_future(asyncio.wait(futures))
        await turns()
        pull.close()
        await task
        assert all(future.cancelled() for future in futures)
        assert pull.closed

    run(main())


def test_closing_cancels_senders(run, zmq, context):
    push = context.socket(zmq.PUSH)

    async def main():
        future = push.send(b"x")
        await turns()
        push.close()
        with pytest.raises(asyncio.CancelledError):
            await future

    run(main())


def test_a_closed_socket_raises(run, zmq, pipe):
    pull, push = pipe
    pull.close()
    push.close()

    async def main():
        with pytest.raises(zmq.ZMQError) as caught:
            pull.recv()
        assert caught.value.errno == zmq.ENOTSOCK
        with pytest.raises(zmq.ZMQError) as caught:
            await pull.recv(zmq.DONTWAIT)
        assert caught.value.errno == zmq.ENOTSOCK
        with pytest.raises(zmq.ZMQError) as caught:
            await push.send(b"x")
        assert caught.value.errno == zmq.ENOTSOCK
        with pytest.raises(zmq.ZMQError) as caught:
            pull.poll()
        assert caught.value.errno == zmq.ENOTSUP

    run(main())
