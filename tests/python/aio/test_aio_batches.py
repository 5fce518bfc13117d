"""Sockets of asyncio: many messages in one call, and calls that cost no turn of the loop."""

import asyncio
import itertools

import pytest
from loops import CountingSelector, readable, turns
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only


# ---- batches and iteration ----------------------------------------------------------


def test_recv_batch(run, zmq, pipe):
    pull, push = pipe

    async def main():
        waiting = pull.recv_batch()
        assert not waiting.done()
        await push.send(b"a")
        assert await waiting == [b"a"]
        messages = [b"%d" % number for number in range(100)]
        assert await push.send_batch(messages) == 100
        received = []
        while len(received) < 100:
            batch = await pull.recv_batch(7)
            assert 1 <= len(batch) <= 7
            received += batch
        assert received == messages
        await push.send_multipart([b"x", b"y"])
        await push.send(b"z")
        received = await pull.recv_batch()
        while len(received) < 2:
            received += await pull.recv_batch()
        assert received == [[b"x", b"y"], b"z"]
        await push.send(b"z")
        assert await pull.recv_batch(multipart=True) == [[b"z"]]
        with pytest.raises(zmq.Again):
            await pull.recv_batch(timeout=5)
        with pytest.raises(zmq.Again):
            await pull.recv_batch(timeout=0)
        with pytest.raises(zmq.Again):
            await pull.recv_batch(flags=zmq.DONTWAIT)
        with pytest.raises(ValueError):
            pull.recv_batch(0)

    run(main())


def test_send_batch_waits(run, zmq, sockets):
    pull = sockets.bound(zmq.PULL, rcvhwm=10)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=10)
    body = b"x" * 10_000

    async def main():
        batch = push.send_batch([b"%06d" % number + body for number in range(1000)])
        behind = push.send(b"%06d" % 1000 + body)
        assert not batch.done() and not behind.done()
        numbers = [int((await pull.recv())[:6]) for _ in range(1001)]
        assert numbers == list(range(1001))
        assert await batch == 1000
        await behind
        assert await push.send_batch([]) == 0
        with pytest.raises(TypeError):
            await push.send_batch([b"x", "text"])

    run(main())


def test_send_batch_runs_out_of_time(run, zmq, sockets, context):
    lonely = context.socket(zmq.PUSH)

    async def main():
        lonely.sndtimeo = 5
        with pytest.raises(zmq.Again):
            await lonely.send_batch([b"x"])
        with pytest.raises(zmq.Again):
            await lonely.send_batch([b"x"], zmq.DONTWAIT)
        pull = sockets.bound(zmq.PULL, rcvhwm=1)
        push = sockets.connected(zmq.PUSH, pull, sndhwm=1, sndtimeo=50)
        sent = await push.send_batch([b"x" * 100_000] * 1000)
        assert 0 < sent < 1000

    run(main())


def test_async_for(run, zmq, pipe):
    pull, push = pipe

    async def consume():
        received = []
        async for message in pull:
            received.append(message)
            if message == b"last":
                break
        return received

    async def main():
        task = asyncio.ensure_future(consume())
        await turns()
        await push.send(b"a")
        await push.send_multipart([b"b", b"c"])
        await push.send(b"last")
        await push.send(b"not taken")
        assert await task == [b"a", [b"b", b"c"], b"last"]
        assert await pull.recv() == b"not taken"
        # Closing ends the iteration, whether it waits or not.
        task = asyncio.ensure_future(consume())
        await turns()
        pull.close()
        assert await task == []
        assert await consume() == []

    run(main())


def test_async_with(run, zmq, aio):
    async def main():
        async with aio.Context() as context:
            async with context.socket(zmq.PULL) as pull:
                pull.bind("inproc://x")
                pending = pull.recv()
            assert pull.closed
            assert pending.cancelled()
            left_open = context.socket(zmq.PUB)
        assert context.closed and left_open.closed

    run(main())


# ---- what is there costs no turn ----------------------------------------------------


def test_a_message_that_has_arrived_costs_no_turn(run, zmq, pipe):
    pull, push = pipe

    async def main():
        loop, count = asyncio.get_running_loop(), 500
        for number in range(count):
            await push.send(b"%d" % number)
        turned = []
        for number in range(count):
            await readable(pull)
            loop.call_soon(turned.append, number)
            assert await pull.recv() == b"%d" % number
            assert not turned
            await asyncio.sleep(0)
            turned.clear()

    run(main())


def test_a_burst_wakes_the_loop_once(zmq, pipe):
    pull, push = pipe
    selector = CountingSelector()

    async def main():
        futures = [pull.recv() for _ in range(200)]
        await turns()
        before = selector.wakes
        blocking = push._shadow_sock
        for number in range(200):
            blocking.send(b"%d" % number)
        # Blocks the loop until the whole burst has arrived.
        while pull.stats()["queued_in"] < 200:
            pass
        assert await asyncio.gather(*futures) == [b"%d" % number for number in range(200)]
        assert selector.wakes - before <= 2

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())


def test_messages_that_no_call_waits_for_do_not_wake_the_loop(zmq, pipe):
    """This holds before and after a call has waited."""
    pull, push = pipe
    selector = CountingSelector()

    async def main():
        future = pull.recv()
        await push.send(b"x")
        await future
        cancelled = pull.recv()
        await turns()
        cancelled.cancel()
        push._shadow_sock.send(b"y")
        while not pull.stats()["queued_in"]:
            pass
        await turns(10)
        before = selector.wakes
        await turns(50)
        # Except for at most one, which was already in transit.
        assert selector.wakes <= before + 1
        assert await pull.recv() == b"y"

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())


def test_a_socket_that_never_waits_needs_no_descriptor(run, zmq, pipe):
    pull, push = pipe

    async def main():
        await push.send(b"x")
        assert pull._shadow_sock.poll(PATIENCE * 1000)
        loop = asyncio.get_running_loop()
        add_reader, added = loop.add_reader, []
        if isinstance(loop, asyncio.BaseEventLoop):
            loop.add_reader = lambda *arguments: (added.append(arguments), add_reader(*arguments))
        assert await pull.recv() == b"x"
        assert not added

    run(main())


# ---- messages that are not there yet ----------------------------------------------------------


@pytest.fixture
def full(zmq, context):
    """A PULL and a PUSH socket with room for 10 messages."""
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.rcvhwm = push.sndhwm = 5
    pull.bind("inproc://full")
    push.connect("inproc://full")
    return pull, push


def numbers(taken):
    for number in itertools.count():
        taken.append(number)
        yield b"%d" % number


def test_send_batch_takes_no_more_than_there_is_room_for(run, zmq, full):
    pull, push = full

    async def main():
        taken = []
        endless = numbers(taken)
        assert await push.send_batch(endless, zmq.DONTWAIT) == len(taken) == 10
        with pytest.raises(zmq.Again):
            await push.send_batch(endless, zmq.DONTWAIT)
        push.sndtimeo = 10
        with pytest.raises(zmq.Again):
            await push.send_batch(endless)
        assert len(taken) == 10
        assert await pull.recv() == b"0"
        assert await pull.recv_batch() == [b"%d" % number for number in range(1, 10)]
        assert await push.send_batch(endless) == len(taken) - 10 == 10

    run(main())


def test_a_cancelled_send_batch_loses_no_item(run, zmq, full):
    pull, push = full

    async def main():
        taken, received = [], []
        endless = numbers(taken)
        for _ in range(10):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(push.send_batch(endless), 0.005)
            received += await pull.recv_batch()
        while len(received) < len(taken):
            received += await pull.recv_batch()
        assert received == [b"%d" % number for number in taken]

    run(main())


def test_an_endless_iterable_is_sent_item_by_item_and_lets_other_tasks_run(run, zmq, sockets):
    pull = sockets.bound(zmq.PULL, "inproc", rcvhwm=0)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=0)

    async def main():
        taken = []
        sending = asyncio.ensure_future(push.send_batch(numbers(taken)))
        received = [await pull.recv() for _ in range(1000)]
        assert received == [b"%d" % number for number in range(1000)]
        await asyncio.sleep(0.01)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        received += await pull.recv_batch(len(taken))
        while len(received) < len(taken):
            received += await pull.recv_batch(len(taken))
        assert received[-1] == b"%d" % taken[-1]
        # A call that does not wait returns the number sent when other tasks have to run.
        before = len(taken)
        assert await push.send_batch(numbers(taken), zmq.DONTWAIT) == len(taken) - before > 0

    run(main())


def test_an_iterable_may_use_the_socket(run, zmq, full):
    pull, push = full

    async def main():
        own = []

        def messages():
            for number in range(100):
                own.append(push.send(b"own"))
                yield b"%d" % number

        sending = push.send_batch(messages())
        received = [await pull.recv() for _ in range(200)]
        assert await sending == 100
        await asyncio.gather(*own)
        assert received.count(b"own") == 100
        assert [body for body in received if body != b"own"] == [b"%d" % n for n in range(100)]

    run(main())


def test_an_iterable_that_raises(run, zmq, full):
    pull, push = full

    async def main():
        def messages():
            yield from (b"x" for _ in range(15))
            raise LookupError("the end")

        sending = push.send_batch(messages())
        assert [await pull.recv() for _ in range(15)] == [b"x"] * 15
        with pytest.raises(LookupError, match="the end") as caught:
            await sending
        assert caught.value.sent == 15

    run(main())
