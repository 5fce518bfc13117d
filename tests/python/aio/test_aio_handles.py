"""Sockets of asyncio: several handles, threads and loops."""

import asyncio
import gc
import weakref

import pytest
from loops import LOOPS, readable, run_in, turns
from support import PATIENCE, Background

pytestmark = pytest.mark.zeroxide_only


def test_cancelled_calls_with_a_programs_own_futures(run, zmq, aio, context):
    class Future(asyncio.Future):
        pass

    class Socket(aio.Socket):
        _Future = Future

    async def main():
        with context.socket(zmq.PULL, socket_class=Socket) as pull:
            alive = []
            for _ in range(2000):
                future = pull.recv()
                alive.append(weakref.ref(future))
                future.cancel()
                del future
            await turns()
            assert sum(reference() is not None for reference in alive) < 200

    run(main())


def test_a_subclass_with_coroutines(run, zmq, aio, context):
    class Socket(aio.Socket):
        async def recv(self, *arguments, **options):
            return (await super().recv(*arguments, **options)).upper()

    async def main():
        with context.socket(zmq.PULL, socket_class=Socket) as pull:
            pull.bind("inproc://upper")
            with context.socket(zmq.PUSH) as push:
                push.connect("inproc://upper")
                await push.send(b"a")
                await push.send(b"b")
                assert await pull.recv() == b"A"
                assert await pull.recv_string() == "B"

    run(main())


def test_terminating_raises(run, zmq, aio):
    async def main():
        context = aio.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        poller = aio.Poller()
        poller.register(pull, zmq.POLLIN)
        calls = [pull.recv(), pull.recv_string(), pull.poll(), push.send(b"x"), poller.poll()]
        await turns()
        Background(context.term)
        for call in calls:
            with pytest.raises(zmq.ContextTerminated):
                await call
        with pytest.raises(zmq.ContextTerminated):
            await pull.recv()
        with pytest.raises(zmq.ContextTerminated):
            await push.send(b"x")
        pull.close()
        push.close()

    run(main())


def test_closed_by_another_handle(run, pipe):
    pull, _ = pipe

    async def main():
        futures = [pull.recv(), pull.poll(), pull.__anext__()]
        await turns()
        pull._shadow_sock.close()
        with pytest.raises(asyncio.CancelledError):
            await futures[0]
        with pytest.raises(asyncio.CancelledError):
            await futures[1]
        with pytest.raises(StopAsyncIteration):
            await futures[2]

    run(main())


def test_closed_in_another_thread(run, pipe):
    pull, _ = pipe

    async def main():
        future = pull.recv()
        await turns()
        await asyncio.to_thread(pull.close)
        with pytest.raises(asyncio.CancelledError):
            await future

    run(main())


def test_another_thread_receives_too(run, pipe):
    """Each thread gets one message, whichever is faster."""
    pull, push = pipe
    count = 400

    async def main():
        taken = []

        def receive():
            while (body := pull._shadow_sock.recv()) != b"end":
                taken.append(body)

        thread = Background(receive)
        mine = []

        async def receive_here():
            while (body := await pull.recv()) != b"end":
                mine.append(body)

        task = asyncio.ensure_future(receive_here())
        for number in range(count):
            await push.send(b"%d" % number)
            if number % 20 == 0:
                await asyncio.sleep(0)
        await push.send(b"end")
        await push.send(b"end")
        await task
        await asyncio.to_thread(thread.result)
        assert sorted(int(body) for body in mine + taken) == list(range(count))

    run(main())


def test_two_loops_at_once(zmq, pipe):
    pull, push = pipe
    count, received = 1000, []

    async def receive():
        while (body := await pull.recv()) != b"end":
            received.append(int(body))

    async def send():
        for number in range(count):
            await push.send(b"%d" % number)
        await push.send(b"end")
        await push.send(b"end")

    threads = [Background(run_in, loop, receive()) for loop in (LOOPS[0], LOOPS[-1])]
    run_in("asyncio", send())
    for thread in threads:
        thread.result()
    assert sorted(received) == list(range(count))


def test_calls_do_not_wait_for_those_of_a_closed_loop(zmq, pipe):
    pull, push = pipe
    left = []

    async def wait():
        await pull.poll(1)

    async def leave():
        left.append(pull.recv())

    async def main():
        await push.send(b"x")
        await readable(pull)
        return await pull.recv(zmq.DONTWAIT)

    loop = asyncio.new_event_loop()
    # This loop has waited before, so the socket already knows it.
    with asyncio.Runner() as runner:
        runner.run(wait())
        loop.run_until_complete(leave())
        loop.close()
        assert runner.run(main()) == b"x"


def test_a_loop_that_is_asked_may_use_the_socket(zmq, pipe):
    """A loop's `is_closed` may be Python code."""
    pull, _ = pipe
    seen = []

    class Loop(asyncio.SelectorEventLoop):
        asking = False

        def is_closed(self):
            if self.asking:
                self.asking = False
                seen.append(len(pull._recv_futures))
            return super().is_closed()

    async def wait():
        pull.recv().cancel()
        await turns()

    with asyncio.Runner(loop_factory=Loop) as one, asyncio.Runner() as other:
        one.run(wait())
        one.get_loop().asking = True
        other.run(wait())
    assert seen == [0]


def test_a_pending_call_keeps_its_socket(run, zmq, sockets, context):
    push = sockets.bound(zmq.PUSH)

    async def main():
        pending = sockets.connected(zmq.PULL, push).recv()
        gc.collect()
        await push.send(b"x")
        assert await pending == b"x"

    with pytest.warns(ResourceWarning):
        run(main())
        gc.collect()


def test_a_forgotten_socket_is_closed(run, zmq, context):
    async def main():
        pull = context.socket(zmq.PULL)
        pull.recv().cancel()
        await turns()
        blocking = zmq.Socket.shadow(pull.underlying)
        blocking._shadow_obj = None
        with pytest.warns(ResourceWarning):
            del pull
            gc.collect()
        assert blocking.closed

    run(main())


def test_sockets_and_loops_are_collected(zmq, aio):
    """A loop that was never closed, with waiting calls, is collected like any other object."""
    context = aio.Context()
    sockets = [context.socket(zmq.PULL)]

    def leave():
        loop = asyncio.new_event_loop()
        pull = sockets[0]

        async def wait():
            return [pull.recv(), pull.poll()]

        loop.run_until_complete(wait())
        return weakref.ref(loop)

    with pytest.warns(ResourceWarning):
        loop = leave()
        sockets.pop().close()
        gc.collect()
        gc.collect()
    assert loop() is None
    context.term()


def test_outside_of_a_loop(zmq, pipe):
    pull, push = pipe
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        with pytest.warns(RuntimeWarning, match="loop"):
            future = pull.recv()
        push.send(b"x")
        assert loop.run_until_complete(future) == b"x"
        assert loop.run_until_complete(push.send(b"y")) is None
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_loops_without_readers(zmq, pipe):
    """A loop that cannot watch descriptors raises, and leaves nothing behind."""
    pull, push = pipe

    class Loop(asyncio.SelectorEventLoop):
        def add_reader(self, *_arguments):
            raise NotImplementedError

    async def main():
        with pytest.raises(NotImplementedError):
            pull.recv()
        await push.send(b"x")
        assert pull._shadow_sock.poll(PATIENCE * 1000)
        assert await pull.recv() == b"x"

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())
