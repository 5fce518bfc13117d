"""Sockets of event loops: calls that need not wait do not keep other tasks from running."""

import asyncio
import itertools
import time

import pytest
from loops import subtree
from support import PATIENCE


@pytest.fixture(params=["asyncio", "eventloop.future"])
def aio(request, zmq):
    if request.param == "eventloop.future":
        pytest.importorskip("tornado")
    return subtree(zmq, request.param)


@pytest.fixture
def pipe(zmq, sockets):
    """A PULL socket and a blocking PUSH socket without limits, so that messages arrive as soon as they are sent."""
    pull = sockets.bound(zmq.PULL, "inproc", rcvhwm=0)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=0)
    return pull, push


def cancellations(aio, *others):
    """The exception of a task that was cancelled in a call; tornado's futures have their own."""
    return (asyncio.CancelledError, getattr(aio, "CancelledError", asyncio.CancelledError), *others)


async def turns_before(awaitable):
    """Returns whether the loop turns before the result is set."""
    turned = []
    asyncio.get_running_loop().call_soon(turned.append, True)
    await awaitable
    return bool(turned)


# ---- polling ------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [None, -1, 1000])
def test_a_poll_that_may_wait_lets_the_loop_turn(run, zmq, aio, pipe, timeout):
    pull, push = pipe

    async def main():
        zmq.Socket(shadow=push).send(b"x")
        poller = aio.Poller()
        poller.register(pull, zmq.POLLIN)
        for _ in range(20):
            assert await turns_before(pull.poll(timeout))
            assert await turns_before(push.poll(timeout, zmq.POLLOUT))
            assert await turns_before(poller.poll(timeout))
        assert await pull.poll(timeout) == zmq.POLLIN
        assert await poller.poll(timeout) == [(pull, zmq.POLLIN)]

    run(main())


def test_a_broker_without_workers_lets_others_run(run, zmq, aio, pipe):
    """The polled socket stays readable, because the broker does not read it."""
    pull, push = pipe

    async def broker():
        poller = aio.Poller()
        poller.register(pull, zmq.POLLIN)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            assert await poller.poll(1000)
            assert await pull.poll(1000)

    async def main():
        zmq.Socket(shadow=push).send(b"x")
        polling = asyncio.ensure_future(broker())
        await asyncio.sleep(0.01)
        polling.cancel()
        with pytest.raises(cancellations(aio)):
            await polling

    run(main())


@pytest.mark.zeroxide_only
def test_a_message_taken_by_another_call_is_waited_for(run, zmq, aio, pipe):
    pull, push = pipe

    async def main():
        blocking = zmq.Socket(shadow=push)
        poller = aio.Poller()
        poller.register(pull, zmq.POLLIN)
        for poll in (pull.poll, poller.poll):
            blocking.send(b"x")
            polling = poll(PATIENCE * 1000)
            assert pull.recv(zmq.DONTWAIT).result() == b"x"
            for _ in range(5):
                await asyncio.sleep(0)
            assert not polling.done()
            blocking.send(b"y")
            assert await polling
            assert await pull.recv() == b"y"

    run(main())


# ---- calls that need not wait -------------------------------------------------------


RECEIVING = {
    "recv": lambda zmq, pull: pull.recv(),
    "frame": lambda zmq, pull: pull.recv(copy=False),
    "multipart": lambda zmq, pull: pull.recv_multipart(),
    "string": lambda zmq, pull: pull.recv_string(),
    "into": lambda zmq, pull: pull.recv_into(bytearray(8)),
    "batch": lambda zmq, pull: pull.recv_batch(),
    "next": lambda zmq, pull: anext(pull),
    "recv at once": lambda zmq, pull: pull.recv(zmq.DONTWAIT),
    "frame at once": lambda zmq, pull: pull.recv(zmq.DONTWAIT, copy=False),
    "string at once": lambda zmq, pull: pull.recv_string(zmq.DONTWAIT),
    "batch at once": lambda zmq, pull: pull.recv_batch(timeout=0),
    "poll": lambda zmq, pull: pull.poll(0),
}
SENDING = {
    "send": lambda zmq, pub: pub.send(b"x"),
    "send frame": lambda zmq, pub: pub.send(b"x", copy=False),
    "send parts": lambda zmq, pub: pub.send_multipart([b"a", b"b"]),
    "send string": lambda zmq, pub: pub.send_string("x"),
    "send batch": lambda zmq, pub: pub.send_batch([b"x"] * 3),
    "send iterable": lambda zmq, pub: pub.send_batch(iter([b"x"] * 3)),
    "send at once": lambda zmq, pub: pub.send(b"x", zmq.DONTWAIT),
    "wait connected": lambda zmq, pub: pub.wait_connected(timeout=1000, count=0),
}


async def others_run_beside(call):
    """Makes calls until another task has run; returns whether it has."""
    loop = asyncio.get_running_loop()
    over = []
    loop.call_later(0.002, over.append, True)
    end = time.monotonic() + 1
    while not over and time.monotonic() < end:
        await call()
    return bool(over)


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("form", RECEIVING)
def test_receiving_waiting_messages_lets_other_tasks_run(run, zmq, pipe, form):
    pull, push = pipe

    async def main():
        blocking, receive = zmq.Socket(shadow=push), RECEIVING[form]

        def call():
            blocking.send(b"x")
            return receive(zmq, pull)

        assert await others_run_beside(call)
        assert await others_run_beside(call)

    run(main())


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("form", SENDING)
def test_sending_without_waiting_lets_others_run(run, zmq, context, form):
    pub, send = context.socket(zmq.PUB), SENDING[form]

    async def main():
        assert await others_run_beside(lambda: send(zmq, pub))
        assert await others_run_beside(lambda: send(zmq, pub))

    run(main())


@pytest.mark.zeroxide_only
def test_receiving_without_messages_lets_other_tasks_run(run, zmq, pipe):
    pull, _push = pipe

    async def call():
        with pytest.raises(zmq.Again):
            await pull.recv(zmq.DONTWAIT)

    async def main():
        assert await others_run_beside(call)

    run(main())


@pytest.mark.zeroxide_only
def test_a_poller_that_does_not_wait_lets_others_run(run, zmq, aio, pipe):
    pull, push = pipe
    poller = aio.Poller()
    poller.register(pull, zmq.POLLIN)

    async def main():
        zmq.Socket(shadow=push).send(b"x")
        assert await others_run_beside(lambda: poller.poll(0))

    run(main())


@pytest.mark.zeroxide_only
def test_slow_work_between_ready_calls_lets_others_run(run, zmq, pipe):
    """The time counts, not the number of calls."""
    pull, push = pipe

    async def main():
        blocking = zmq.Socket(shadow=push)
        over = []
        asyncio.get_running_loop().call_soon(over.append, True)
        calls = 0
        while not over:
            calls += 1
            assert calls < 10
            blocking.send(b"x")
            await pull.recv()
            time.sleep(0.02)

    run(main())


@pytest.mark.zeroxide_only
def test_generators_of_tornado_let_others_run(zmq, sockets):
    gen = pytest.importorskip("tornado.gen")
    from tornado.ioloop import IOLoop

    future = subtree(zmq, "eventloop.future")
    with future.Context() as context:
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.rcvhwm = push.sndhwm = 0
        pull.bind("inproc://generators")
        push.connect("inproc://generators")

        @gen.coroutine
        def main():
            over = []
            IOLoop.current().call_later(0.002, over.append, True)
            end = time.monotonic() + 1
            while not over and time.monotonic() < end:
                yield push.send(b"x")
                yield pull.recv()
            assert over

        IOLoop(make_current=False).run_sync(main)
        pull.close()
        push.close()


# ---- what must stay true ------------------------------------------------------------


@pytest.mark.zeroxide_only
@pytest.mark.parametrize(
    "form", ["recv", "string", "frame", "recv at once", "string at once", "frame at once"]
)
def test_a_cancelled_task_loses_no_message(run, zmq, aio, pipe, form):
    """No message is lost even if the task is cancelled while it lets other tasks run."""
    pull, push = pipe
    receive = RECEIVING[form]
    count = 200_000

    async def main():
        blocking, received = zmq.Socket(shadow=push), []

        async def consume():
            while True:
                message = await receive(zmq, pull)
                received.append(int(message if isinstance(message, str) else bytes(message)))

        blocking.send_batch([b"%d" % number for number in range(count)])
        rounds = 0
        while len(received) < count and rounds < 30:
            task = asyncio.ensure_future(consume())
            await asyncio.sleep(0.001)
            rounds += 1
            if not task.cancel():
                break
            with pytest.raises(cancellations(aio, zmq.Again)):
                await task
        while len(received) < count:
            received.append(int(await pull.recv()))
        assert received == list(range(count))
        assert rounds > 1

    run(main())


@pytest.mark.zeroxide_only
def test_a_message_is_sent_before_other_tasks_run(run, zmq, pipe):
    """A program that sends without awaiting, and closes the socket, has sent the message."""
    pull, push = pipe

    async def main():
        for number in itertools.count():
            sending = push.send(b"%d" % number)
            assert await pull.recv() == b"%d" % number
            if not sending.done():
                break
            time.sleep(0.0001)
        assert await sending is None
        at_once = [push.send(b"x", zmq.DONTWAIT) for _ in range(50_000)]
        assert all(future.done() and future.result() is None for future in at_once)

    run(main())


@pytest.mark.zeroxide_only
def test_messages_keep_their_order(run, zmq, pipe):
    pull, push = pipe
    count = 100_000

    async def main():
        async def produce():
            for number in range(count):
                await push.send(b"%d" % number, zmq.DONTWAIT if number % 3 else 0)

        async def consume():
            return [int(await pull.recv()) for _ in range(count)]

        _, received = await asyncio.gather(produce(), consume())
        assert received == list(range(count))

    run(main())
