"""Sockets of asyncio: descriptors, and how programs end."""

import asyncio
import gc
import os

import pytest
from loops import turns
from support import Background, run_script

pytestmark = pytest.mark.zeroxide_only


# ---- descriptors --------------------------------------------------------------------


def test_the_descriptor_in_another_loop(run, zmq, pipe):
    """Level-triggered: receiving one message per event is enough, whatever their number."""
    pull, push = (socket._shadow_sock for socket in pipe)
    count = 100

    async def main():
        loop, received = asyncio.get_running_loop(), []
        done = loop.create_future()

        def on_readable():
            if pull.poll(0):
                received.append(pull.recv())
            if len(received) == count:
                done.set_result(None)

        loop.add_reader(pull.fileno(), on_readable)
        for number in range(count):
            push.send(b"%d" % number)
        await done
        loop.remove_reader(pull.fileno())
        assert received == [b"%d" % number for number in range(count)]

    run(main())


def test_the_descriptor_beside_calls_that_wait(run, zmq, pipe):
    """Other code watches the socket's own descriptor and asks for events."""
    pull, push = pipe

    async def main():
        loop, seen = asyncio.get_running_loop(), []
        loop.add_reader(pull.fileno(), lambda: seen.append(pull.get(zmq.EVENTS)))
        futures = [pull.recv() for _ in range(50)]
        for number in range(50):
            await push.send(b"%d" % number)
            await asyncio.sleep(0)
        assert await asyncio.gather(*futures) == [b"%d" % number for number in range(50)]
        loop.remove_reader(pull.fileno())

    run(main())


def test_descriptors_are_released(run, zmq, aio):

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    async def main():
        context = aio.Context()
        warm = context.socket(zmq.PULL)
        warm.recv().cancel()
        before = descriptors()
        for _ in range(50):
            with context.socket(zmq.PULL) as pull:
                pull.recv()
                handle = aio.Socket.from_socket(pull._shadow_sock)
                handle.recv()
                del handle
                await turns(2)
        gc.collect()
        assert descriptors() <= before + 5
        context.destroy()

    run(main())


# ---- programs -----------------------------------------------------------------------


def test_no_noise_at_the_end(zmq):
    """A program that ends while calls are waiting ends quietly and soon."""
    _, errors = run_script(
        zmq.__name__,
        """
        import asyncio, zeroxide.asyncio
        async def main():
            context = zeroxide.asyncio.Context()
            pull = context.socket(zmq.PULL)
            pull.bind("tcp://127.0.0.1:*")
            main.kept = [pull, pull.recv(), asyncio.ensure_future(wait(pull))]
            await asyncio.sleep(0)
        async def wait(pull):
            async for _ in pull:
                pass
        asyncio.run(main())
        """,
    )
    assert errors == ""


def test_a_fork_in_a_loop(zmq):
    """A child releases the sockets that it inherited, and its parent's loop."""
    output, _ = run_script(
        zmq.__name__,
        """
        import asyncio, gc, os, zeroxide.asyncio
        async def main():
            context = zeroxide.asyncio.Context()
            pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
            pull.bind("inproc://x")
            push.connect("inproc://x")
            pending = pull.recv()
            await asyncio.sleep(0)
            child = os.fork()
            if not child:
                pull.close()
                del pull, push, context, pending
                gc.collect()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            await push.send(b"x")
            print(await pending)
            context.destroy(linger=0)
        asyncio.run(main())
        """,
    )
    assert output == "b'x'\n"


def test_a_fork_beside_a_watcher(zmq):
    """A child that uses or drops a watcher does not affect its parent."""
    output, _ = run_script(
        zmq.__name__,
        """
        import gc, os, select
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://x")
        push.connect("inproc://x")
        watcher = zmq._native.Watcher(pull)
        watcher.watch()
        assert not pull.poll(0)
        push.send(b"x")
        child = os.fork()
        if not child:
            watcher.clear()
            watcher.rest()
            del watcher
            gc.collect()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(len(select.select([watcher.fileno()], [], [], 0)[0]))
        context.destroy(linger=0)
        """,
    )
    assert output == "1\n"


def test_a_burst_between_processes(run, zmq, sockets):
    """No message is missed if the sender runs outside this loop."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    count = 20_000

    async def main():
        blocking = push._shadow_sock

        def send():
            for number in range(count):
                blocking.send(b"%d" % number)

        thread = Background(send)
        for number in range(count):
            assert await pull.recv() == b"%d" % number
        await asyncio.to_thread(thread.result)

    run(main())
