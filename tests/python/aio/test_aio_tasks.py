"""Calls as tasks, and calls whose result no code waits for."""

import asyncio
import gc

import pytest

pytestmark = pytest.mark.zeroxide_only

LIMIT = 20


@pytest.fixture
def run():
    """Runs a program with a PUSH and a PULL socket that are connected."""
    import zeroxide as zmq
    import zeroxide.asyncio

    def run(program):
        async def main():
            context = zeroxide.asyncio.Context()
            try:
                pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
                push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
                await asyncio.wait_for(program(push, pull), LIMIT)
            finally:
                context.destroy(0)

        asyncio.run(main())

    return run


def test_a_task_receives_a_message_that_comes_later(run):
    async def program(push, pull):
        task = asyncio.create_task(pull.recv())
        await asyncio.sleep(0)
        await push.send(b"later")
        assert await task == b"later"

    run(program)


def test_a_task_receives_a_message_that_is_there(run):
    async def program(push, pull):
        await push.send_multipart([b"a", b"b"])
        await pull.poll()
        assert await asyncio.create_task(pull.recv_multipart(), name="mine") == [b"a", b"b"]

    run(program)


def test_task_groups_take_every_call(run):
    async def program(push, pull):
        async with asyncio.TaskGroup() as group:
            received = group.create_task(pull.recv_string())
            sent = group.create_task(push.send_string("text"))
            ready = group.create_task(push.poll(0, 2))
        assert (received.result(), sent.result(), ready.result()) == ("text", None, 2)
        poller = type(pull)._poller_class()
        poller.register(pull, 1)
        for timeout in (0, 1):
            assert await asyncio.create_task(poller.poll(timeout)) == []

    run(program)


def test_a_task_raises_what_the_call_raises(run):
    import zeroxide as zmq

    async def program(push, pull):
        with pytest.raises(zmq.Again):
            await asyncio.create_task(pull.recv(zmq.DONTWAIT))
        pull.rcvtimeo = 1
        with pytest.raises(zmq.Again):
            await asyncio.create_task(pull.recv())

    run(program)


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("is_there", [False, True])
def test_a_cancelled_task_loses_no_message(run, turns, is_there):
    async def program(push, pull):
        if is_there:
            await push.send(b"1")
            await pull.poll()
        task = asyncio.create_task(pull.recv())
        for _ in range(turns):
            await asyncio.sleep(0)
        was_done = task.done()
        task.cancel()
        done = await asyncio.wait([task])
        assert done
        if was_done:
            assert task.result() == b"1"
        else:
            if not is_there:
                await push.send(b"1")
            assert await pull.recv() == b"1"

    run(program)


def test_calls_are_futures_as_before(run):
    async def program(push, pull):
        calls = [pull.recv(), pull.recv(), push.send(b"1")]
        assert not any(map(asyncio.iscoroutine, calls))
        assert all(map(asyncio.isfuture, calls))
        done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert calls[2] in done
        assert asyncio.ensure_future(calls[1]) is calls[1]
        await push.send(b"2")
        assert await asyncio.gather(calls[0], calls[1]) == [b"1", b"2"]
        seen = []
        pull.recv().add_done_callback(seen.append)
        await push.send(b"3")
        while not seen:
            await asyncio.sleep(0)
        assert seen[0].result() == b"3"

    run(program)


def test_an_abandoned_call_consumes_no_message(run):
    async def program(push, pull):
        for receive in (pull.recv, pull.recv_multipart, pull.recv_string, pull.recv_json):
            receive()
        gc.collect()
        await push.send(b"for the one who waits")
        assert await pull.recv() == b"for the one who waits"
        pull.recv()
        await push.send(b"second")
        await asyncio.sleep(0.01)
        assert await pull.recv() == b"second"

    run(program)


def test_an_abandoned_call_does_not_hold_up_later_calls(run):
    async def program(push, pull):
        pull.recv()
        waiting = asyncio.create_task(pull.recv())
        pull.recv()
        behind = asyncio.create_task(pull.recv())
        await asyncio.sleep(0)
        await push.send(b"1")
        await push.send(b"2")
        assert await waiting == b"1"
        assert await behind == b"2"

    run(program)
